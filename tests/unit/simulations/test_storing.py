"""A simulation as a job: what is stored of each variant, how far it tells that it is, and where it stops."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.jobs.chunks import ChunkWriter, lines_of
from app.jobs.repository import Chunk, Claimed
from app.jobs.worker import LimitPassed, Unwanted, Work
from app.simulations import running
from app.simulations.core.scenario import in_order
from app.simulations.core.sink import FIRST
from app.simulations.results import Outcome
from app.simulations.running import STREAMS, Limits, Simulating
from app.simulations.schemas import Change, Job
from app.solver.model.problems import InvalidInput
from tests.unit.simulations.running import job
from tests.unit.simulations.test_kueue_run import two_queues

JOBS = [job("one", "a", 3, 0, 10), job("two", "a", 2, 4, 5), job("own", "b", 2, 6, 5)]
TWICE = [{"name": "x"}, {"name": "y", "set": {"queues.a.quota.cpu.guaranteed": 5}}]


class Stored:
    """A stored trace that tells how often its jobs were read."""

    start: datetime | None = None

    def __init__(self, jobs: Any = JOBS, changes: Any = ()) -> None:
        self._changes = convert(list(changes), list[Change])
        self._jobs = in_order(convert(jobs, list[Job]), FIRST)
        self.total = len(self._jobs)
        self.read = self.checked = 0

    def changes(self) -> list[Change]:
        return self._changes

    def jobs(self) -> Iterator[Job]:
        self.read += 1
        return iter(self._jobs)

    def numbered(self) -> Iterator[tuple[int, Job]]:
        self.checked += 1
        return enumerate(self._jobs, 7)


class Bench:
    """Does one simulation. ``raw``, ``lines``: what is stored by stream, as it is and decoded; ``asked_for``: its
    request; ``progress``: what it told each time it was asked whether to stop."""

    def __init__(self) -> None:
        self.raw: dict[str, list[bytes]] = defaultdict(list)
        self.asked_for: dict[str, Any] = {}
        self.lines: dict[str, list[Any]] = defaultdict(list)
        self.progress: list[Any] = []
        self.asked = 0
        self.stop_at = -1
        self._writer = ChunkWriter(self._store, 1 << 30)
        self.work = Work(self._writer, self._check)

    def _store(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            found = lines_of(chunk, 0, None)[0].splitlines()
            self.raw[chunk.stream] += found
            self.lines[chunk.stream] += map(msgspec.json.decode, found)

    def _check(self) -> None:
        self.asked += 1
        self.progress.append(self.work.progress)
        if self.asked == self.stop_at:
            raise Unwanted

    def do(self, trace: Stored | None = None, days: float = 365, **more: Any) -> Outcome:
        body = {"configuration": two_queues(), "trace": "t" if trace else {"jobs": JOBS}, **more}
        self.asked_for = body
        claimed = Claimed(UUID(int=2), "simulation", 1, 0, UUID(int=1) if trace else None, b"")
        opened: Any = lambda _: trace  # noqa: E731
        doing = Simulating(Compiled(None), opened, Limits(days))
        outcome = doing.do(claimed, msgspec.json.encode(body), self.work)
        self._writer.flush()
        return msgspec.json.decode(outcome, type=Outcome)


def test_every_stream_of_every_variant_is_stored_and_differences_are_told() -> None:
    of = Bench()
    outcome = of.do(variants=TWICE)
    assert set(of.lines) == {f"{number}/{kind}" for number in (0, 1) for kind in STREAMS}
    evictions = [one.summary.total.evictions for one in outcome.variants]
    assert ([one.name for one in outcome.variants], evictions) == (["x", "y"], [1, 0])
    for number, one in enumerate(outcome.variants):
        kinds = [line["kind"] for line in of.lines[f"{number}/events"]]
        assert (kinds.count("evicted"), kinds.count("finished")) == (evictions[number], 3)
        assert [line["n"] for line in of.lines[f"{number}/rounds"]] == list(range(1, one.summary.rounds + 1))
        assert all(line["state"] for line in of.lines[f"{number}/rounds"])
        assert len(of.lines[f"{number}/records"]) == one.summary.rounds
        assert {line["job"] for line in of.lines[f"{number}/jobs"]} == {"one", "two", "own"}
        assert {line[0] for line in of.lines[f"{number}/levels"]} >= {"", "a", "b"}
    assert {one.variant for one in outcome.differences} == {"y"}
    assert Bench().do().differences == []


def test_how_far_it_is_tells_the_variant_the_virtual_time_and_how_many_have_ended() -> None:
    of = Bench()
    of.do(variants=TWICE)
    told = [one for one in of.progress if one is not None]
    assert of.progress[0] is None
    assert told[0] == {"variants_done": 0, "variant": 0, "at": FIRST, "ended": 0, "total": 3, "rounds": 1}
    last = of.work.progress
    assert last is not None
    assert {name: last[name] for name in ("variants_done", "variant", "ended", "total")} == {
        "variants_done": 1, "variant": 1, "ended": 3, "total": 3,
    }  # fmt: skip
    assert last["at"] > FIRST
    assert sorted({one["variant"] for one in told}) == [0, 1]


def test_it_stops_where_it_is_told_to() -> None:
    of = Bench()
    of.do()
    whole = of.asked
    stopped = Bench()
    stopped.stop_at = whole - 1
    with pytest.raises(Unwanted):
        stopped.do()


def test_past_so_many_days_of_virtual_time_from_its_first_event_it_fails_and_names_the_setting() -> None:
    late = [job("a", "a", 1, "2003-01-01T00:00:00Z", 86_400)]
    assert Bench().do(trace=Stored(late), days=1, start="2000-01-01T00:00:00Z").variants[0].summary.makespan == 86_400
    with pytest.raises(LimitPassed, match=r"^it is past 0\.5 days of virtual time \(ARBITER_SIMULATION_DAYS\)$"):
        Bench().do(trace=Stored(late), days=0.5)
    with pytest.raises(LimitPassed):
        Bench().do(trace=Stored([job("a", "a", 1, 0, 86_400.000001)]), days=1)


def test_a_stored_trace_is_read_once_for_all_variants_where_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    inline = Bench().do(variants=TWICE)
    for most, read in ((3, 1), (2, 2)):
        monkeypatch.setattr(running, "_SHARED", most)
        trace = Stored()
        assert Bench().do(trace=trace, variants=TWICE) == inline
        assert (trace.read, trace.checked) == (read, 2)
    alone = Stored()
    of = Bench()
    of.do(trace=alone)
    assert (alone.read, alone.checked, of.work.progress and of.work.progress["total"]) == (1, 1, 3)


def test_what_is_wrong_with_a_stored_trace_is_named_by_line_under_each_variant() -> None:
    large = [*JOBS[:2], job("large", "a", 6, 7, 1)]
    variants = [{"name": "roomy", "set": {"queues.a.quota.cpu.guaranteed": 6}}, {"name": "as it is"}]
    Bench().do(trace=Stored(large), variants=variants[:1])
    with pytest.raises(InvalidInput) as refused:
        Bench().do(trace=Stored(large), variants=variants)
    assert [problem.pointer for problem in refused.value.problems] == ["/trace/lines/9/ask"]
