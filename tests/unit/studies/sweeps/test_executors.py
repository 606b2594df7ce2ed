"""Who runs the points of a sweep, with processes and a cluster that die by plan: what is tried again, how often, and
what is told of what fails."""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.solver.model.problems import InvalidInput, Problem
from app.studies import sweep_executors as module
from app.studies.sweep_executors import ATTEMPTS, CONTEXT, Local, Played, Point, Ran, on_ray, outlive_nobody
from tests.support.instead import Instead

TRACES = {"t": Played([b"lines"], b"{}", 0.5), "s": Played([b"others"], b"{}", None)}
Fault = BaseException | None


def point(key: str, trace: str = "t") -> Point:
    return Point("c", trace, 0, {}, key.encode(), key)


def summary(request: bytes, trace: Played) -> bytes:
    """What a simulation comes to here."""
    if request.startswith(b"wrong"):
        raise ValueError("first line\nlast line  \n")
    return request + b" on " + trace.chunks[0]


class Pool:
    """An executor without processes. ``faults``: what becomes of each time that a request is met; a process that dies
    takes what is begun after it along."""

    made: list["Pool"]
    faults: dict[bytes, Iterator[Fault]]

    def __init__(self, workers: int, context: Any, initializer: Callable[[], None]) -> None:
        self.said = (workers, context.get_start_method(), initializer)
        self.warmed = list[object]()
        self.met = list[bytes]()
        self.open = self.whole = True
        self.made.append(self)

    def submit(self, call: Callable[..., Any], *given: Any) -> Future[Any]:
        assert self.open, "it is shut down"
        future: Future[Any] = Future()
        if len(given) == 1:
            self.warmed.append(given[0])
            call(*given)
            return future
        if not self.whole:
            raise BrokenProcessPool
        self.met.append(given[0])
        fault = next(self.faults.get(given[0], iter(())), None)
        if fault is None:
            future.set_result(call(*given))
        else:
            future.set_exception(fault)
            self.whole = not isinstance(fault, BrokenProcessPool)
        return future

    def shutdown(self, *, cancel_futures: bool) -> None:
        assert cancel_futures, "nobody waits for what is not begun"
        assert self.open, "once is enough"
        self.open = False


@pytest.fixture
def pools(instead: Instead) -> list[Pool]:
    Pool.made, Pool.faults = [], {}
    instead(module, ProcessPoolExecutor=Pool, play=summary)
    return Pool.made


def came(found: Iterator[Ran]) -> dict[str, tuple[bytes | None, str]]:
    return {ran.point.key: (ran.summary, ran.error) for ran in found}


def test_each_point_is_played_on_its_trace_and_what_fails_is_told(pools: list[Pool]) -> None:
    run = Local(3)
    for _ in range(2):
        assert came(run([point("a"), point("b", "s"), point("wrong"), point("d")], TRACES)) == {
            "a": (b"a on lines", ""), "b": (b"b on others", ""), "wrong": (None, "last line"), "d": (b"d on lines", ""),
        }  # fmt: skip
    said = (3, CONTEXT.get_start_method(), outlive_nobody)
    assert [(pool.said, pool.open, len(pool.met)) for pool in pools] == [(said, False, 4)] * 2


def test_processes_are_warmed_with_their_engines_before_the_run(pools: list[Pool], instead: Instead) -> None:
    read = list[str]()
    instead(module, engine_of=read.append)
    with Local(2, ["yunikorn", "kai"]) as run:
        (pool,) = pools
        assert sorted(read) == ["kai", "kai", "yunikorn", "yunikorn"], "each engine by each process"
        assert list(run([point("a")], TRACES))
        assert (pools, pool.met, pool.open) == ([pool], [b"a"], False)
    with Local(1):
        assert pools[-1].open
    assert [pool.open for pool in pools] == [False, False], "nobody ran anything"


def test_whoever_stops_listening_leaves_no_process_behind(pools: list[Pool]) -> None:
    with closing(cast("Generator[Ran]", Local(1)([point("a"), point("b")], TRACES))) as found:
        next(found)
    assert [pool.open for pool in pools] == [False]


@pytest.mark.parametrize("deaths", range(ATTEMPTS + 1))
def test_a_point_whose_process_dies_is_tried_three_times_and_the_others_until_they_run(
    pools: list[Pool], deaths: int
) -> None:
    dead = BrokenProcessPool("a process in the process pool was terminated abruptly")
    Pool.faults = {b"b": iter([dead] * deaths)}
    found = came(Local(1)([point(key) for key in "abc"], TRACES))
    assert found.pop("b") == ((b"b on lines", "") if deaths < 3 else (None, str(dead)))
    assert found == {"a": (b"a on lines", ""), "c": (b"c on lines", "")}
    met = [request for pool in pools for request in pool.met]
    assert (met.count(b"a"), met.count(b"b"), met.count(b"c")) == (1, min(deaths + 1, 3), 1)
    assert [pool.open for pool in pools] == [False] * len(pools)
    assert [pool.whole for pool in pools[:deaths]] == [False] * min(deaths, len(pools)), "a broken one runs no more"


def test_what_goes_wrong_with_a_process_but_not_by_its_death_is_not_tried_again(pools: list[Pool]) -> None:
    Pool.faults = {b"a": iter([MemoryError()])}
    assert came(Local(1)([point("a"), point("b")], TRACES)) == {"a": (None, "MemoryError"), "b": (b"b on lines", "")}
    assert [pool.met for pool in pools] == [[b"a", b"b"]]


def test_a_process_reads_a_trace_once(tmp_path: Path, instead: Instead) -> None:
    instead(module, play=summary)
    play: Callable[[bytes, str], tuple[bytes | None, str]] = module._play  # pyright: ignore[reportPrivateUsage]
    file = tmp_path / "0"
    file.write_bytes(msgspec.msgpack.encode(TRACES["s"]))
    assert play(b"a", str(file)) == (b"a on others", "")
    file.unlink()
    assert play(b"b", str(file)) == (b"b on others", "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("one\ntwo\n three \n\n"), " three"), (ValueError(" \n "), "ValueError"),
        (KeyError(), "KeyError"), (ValueError("x" * 400 + "y" * 100 + "z"), "x" * 400 + "y" * 100),
        (InvalidInput([Problem(pointer=f"/{i}", detail=f"no {i}") for i in range(7)]),
         "/0: no 0; /1: no 1; /2: no 2; /3: no 3; /4: no 4"),
    ],
)  # fmt: skip
def test_an_error_is_told_by_its_last_line_or_its_name_and_input_by_its_first_five_problems(
    error: BaseException, said: str, pools: list[Pool]
) -> None:
    Pool.faults = {b"a": iter([error])}
    assert came(Local(1)([point("a")], TRACES)) == {"a": (None, said)}


class Cluster(SimpleNamespace):
    """As much of Ray as a sweep asks of it; ``lost``: requests whose nodes die too often."""

    def __init__(self, *, initialized: bool = False) -> None:
        super().__init__(began=[], store=[], retries=[], initialized=initialized)

    def is_initialized(self) -> bool:
        return self.initialized

    def init(self, **said: object) -> None:
        self.began.append(said)
        self.initialized = True

    def put(self, value: object) -> tuple[str, int]:
        self.store.append(value)
        return "stored", len(self.store) - 1

    def remote(self, *, max_retries: int) -> Callable[[Callable[..., Any]], Any]:
        self.retries.append(max_retries)

        def task(call: Callable[..., Any]) -> Any:
            def begun(request: bytes, trace: tuple[str, int]) -> tuple[object, ...]:
                return "task", call, request, trace

            return SimpleNamespace(remote=begun)

        return task

    def wait(self, left: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        assert self.initialized
        assert 0 < num_returns <= len(left), "as Ray itself says"
        return left[-num_returns:], left[:-num_returns]

    def get(self, task: tuple[Any, Any, bytes, tuple[str, int]]) -> object:
        _, call, request, (_, number) = task
        if request == b"lost":
            raise RuntimeError("its worker died\nthe node is gone")
        return call(request, self.store[number])


def on_a_cluster(cluster: Cluster, traces: Mapping[str, Played], *keys: str) -> dict[str, tuple[bytes | None, str]]:
    return came(on_ray("ray://here:1")([point(key, "s" if key == "b" else "t") for key in keys], traces))


def test_a_cluster_gets_each_trace_once_and_a_task_for_each_point(
    monkeypatch: pytest.MonkeyPatch, instead: Instead
) -> None:
    instead(module, play=summary)
    for initialized in (False, True):
        cluster = Cluster(initialized=initialized)
        monkeypatch.setitem(sys.modules, "ray", cluster)  # pyright: ignore[reportArgumentType]
        assert on_a_cluster(cluster, TRACES, "a", "lost", "b", "wrong", "d") == {
            "a": (b"a on lines", ""), "lost": (None, "the node is gone"), "b": (b"b on others", ""),
            "wrong": (None, "last line"), "d": (b"d on lines", ""),
        }  # fmt: skip
        assert (cluster.store, cluster.retries) == (list(TRACES.values()), [3])
        assert cluster.began == ([] if initialized else [{"address": "ray://here:1", "log_to_driver": False}])


def test_without_ray_it_is_said_before_anything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ImportError):
        on_ray("ray://here:1")
