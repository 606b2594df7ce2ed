"""A kept state equals the whole one, moves by deltas, and goes when it must."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.snapshot_store import BYTES_PER_JSON_BYTE, SnapshotStore
from app.base.errors import Conflict, NotFound
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, Delta, State
from app.solver.question import Question, stoppable
from app.solver.solve import Configured
from tests.support.countdown import Countdown, Stopped
from tests.support.profiles import examples


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def configured(engine: str = "kueue", limit: int = 4) -> Configured:
    queues: list[Any] = [{"name": "c"}] + [
        {
            "name": f"q{i}",
            "parent": "c",
            "quota": {"cpu": {"guaranteed": limit}},
            "kueue": {
                "preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"},
            },
        }
        for i in range(2)
    ]
    return solve.configure(msgspec.convert({"flavors": [{"name": "default"}], "queues": queues}, Configuration), engine)


def workload(identity: str, queue: int = 0, priority: int = 0, cpu: int = 1) -> dict[str, Any]:
    task = {"name": "m", "requests": {"cpu": cpu}, "flavors": {"cpu": "default"}}
    return {"id": identity, "uid": identity, "queue": f"q{queue}", "priority": priority, "tasks": [task]}


def state(*workloads: dict[str, Any]) -> State:
    return msgspec.convert({"workloads": list(workloads)}, State)


def delta(generation: int, **fields: Any) -> Delta:
    return msgspec.convert({"generation": generation, **fields}, Delta)


def store(budget: int = 10**9, idle: float = 100) -> tuple[SnapshotStore, Clock]:
    clock = Clock()
    return SnapshotStore(budget=budget, idle=idle, clock=clock), clock


ASKS = msgspec.convert(
    [
        {
            "id": f"a{i}",
            "uid": f"a{i}",
            "queue": f"q{i}",
            "priority": 5,
            "tasks": [{"name": "m", "requests": {"cpu": 3}}],
        }
        for i in range(2)
    ],
    list[Ask],
)


def answers(loaded: solve.Loaded) -> bytes:
    answer = solve.decide(loaded, Question(0, ASKS, explain="full"))
    return msgspec.json.encode(msgspec.structs.replace(answer, state=msgspec.structs.replace(
        answer.state, snapshot=None, generation=None
    )))  # fmt: skip


CHANGE = st.tuples(
    st.sampled_from(["add", "change", "remove"]),
    st.integers(0, 7),
    st.integers(0, 1),
    st.integers(0, 9),
    st.integers(0, 4),
)


@examples(60)
@given(st.lists(st.lists(CHANGE, max_size=5), max_size=6))
def test_after_any_deltas_the_answer_is_byte_for_byte_that_of_the_whole_state(
    rounds: list[list[tuple[str, int, int, int, int]]],
) -> None:
    kept, _ = store()
    compiled = configured()
    expected: dict[str, dict[str, Any]] = {"w0": workload("w0")}
    kept.put("s", compiled, state(*expected.values()), 100)
    for generation, changes in enumerate(rounds, start=1):
        fields: dict[str, list[Any]] = {"add": [], "change": [], "remove": []}
        before, added = set(expected), []
        named: set[str] = set()
        for kind, number, queue, priority, cpu in changes:
            identity = f"w{number}"
            if identity in named or (kind == "add") == (identity in before):
                continue
            named.add(identity)
            if kind == "remove":
                fields[kind].append(identity)
                del expected[identity]
            elif kind == "change":
                fields[kind].append(workload(identity, queue, priority, cpu))
                expected[identity] = workload(identity, queue, priority, cpu)
            else:
                fields[kind].append(workload(identity, queue, priority, cpu))
                added.append((identity, workload(identity, queue, priority, cpu)))
        expected.update(added)
        kept.apply("s", delta(generation, workloads=fields))
        whole = solve.load(compiled, state(*expected.values()))
        assert answers(kept.loaded(compiled, "s")) == answers(whole)


def test_a_running_decision_keeps_the_generation_it_began_with() -> None:
    kept, _ = store()
    compiled = configured()
    kept.put("s", compiled, state(workload("w0")), 100)
    before = kept.loaded(compiled, "s")
    first = answers(before)
    kept.apply("s", delta(1, workloads={"remove": ["w0"], "add": [workload("w1", cpu=4)]}))
    assert answers(before) == first
    assert answers(kept.loaded(compiled, "s")) != first


def test_a_stale_delta_is_a_conflict_and_a_failing_one_changes_nothing() -> None:
    kept, _ = store()
    kept.put("s", configured(), state(workload("w0")), 100)
    kept.apply("s", delta(1, workloads={"add": [workload("w1")]}))
    with pytest.raises(Conflict) as stale:
        kept.apply("s", delta(1, workloads={"add": [workload("w2")]}))
    assert stale.value.extra == {"code": "stale_generation", "generation": 2}
    with pytest.raises(InvalidInput):
        kept.apply("s", delta(2, workloads={"add": [workload("w3"), workload("w3")]}))
    with pytest.raises(InvalidInput) as unknown:
        kept.apply("s", delta(2, workloads={"add": [workload("w4") | {"queue": "ghost"}]}))
    assert [p.pointer for p in unknown.value.problems] == ["/workloads/add/0/queue"]
    assert [w.id for w in kept.get("s").loaded.state.workloads] == ["w0", "w1"]
    assert kept.get("s").generation == 2


def test_a_revised_configuration_compiles_the_state_again() -> None:
    kept, _ = store()
    kept.put("s", configured(), state(workload("w0")), 100)
    revised = configured(limit=9)
    assert kept.loaded(revised, "s").configured is revised
    assert answers(kept.loaded(revised, "s")) == answers(solve.load(revised, state(workload("w0"))))


def test_idle_snapshots_expire_and_the_least_used_makes_room() -> None:
    kept, clock = store(budget=1500, idle=100)
    for i, name in enumerate("abc"):
        clock.now = float(i)
        if name == "c":
            kept.get("a")
        kept.put(name, configured(), state(workload("w0")), 100)
    assert kept.names() == ["a", "c"]
    clock.now = 101.5
    kept.get("c")
    clock.now = 103
    assert kept.names() == ["c"]
    with pytest.raises(NotFound) as lost:
        kept.get("a")
    assert lost.value.extra == {"code": "snapshot_lost"}


def test_one_alone_is_kept_however_large_it_is() -> None:
    kept, _ = store(budget=1)
    for name in ("a", "b", "b"):
        kept.put(name, configured(), state(), 100)
        assert kept.names() == [name]


def test_tasks_are_counted_along() -> None:
    kept, _ = store()
    kept.put("s", configured(), state(workload("w0"), workload("w1")), 100)
    more = [{"workload": "w0", "task": {"name": f"t{i}"}} for i in range(3)]
    assert kept.apply("s", delta(1, tasks={"add": more}, workloads={"add": [workload("w2")]})).tasks == 6
    fewer = [{"workload": "w0", "task": "t1"}]
    assert kept.apply("s", delta(2, tasks={"remove": fewer}, workloads={"remove": ["w1"]})).tasks == 4


def test_no_two_changes_get_the_same_generation() -> None:
    """A put compiles for long; deltas that come meanwhile must not be given the generation that it will have."""
    kept, _ = store()
    compiled = configured()
    document = state(*(workload(f"w{i}") for i in range(50)))
    kept.put("s", compiled, document, 100)
    given: list[int] = []

    def put() -> None:
        given.extend(kept.put("s", compiled, document, 100).generation for _ in range(30))

    def change() -> None:
        for i in range(200):
            with suppress(Conflict):
                given.append(kept.apply("s", delta(kept.get("s").generation, workloads={"change": [
                    workload("w0", priority=i % 9)
                ]})).generation)  # fmt: skip

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=target) for target in (put, change, put, change)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sorted(given) == list(range(2, kept.get("s").generation + 1))


def test_a_change_that_is_stopped_at_its_last_safe_point_has_changed_nothing() -> None:
    kept, _ = store()
    compiled = configured()
    kept.put("s", compiled, state(workload("w0")), 100)

    def attempts(change: Callable[[], object]) -> int:
        for left in range(1000):
            try:
                with stoppable(Countdown(left)):
                    change()
            except Stopped:
                assert kept.get("s").generation == 1
            else:
                return left
        raise AssertionError

    assert attempts(lambda: kept.apply("s", delta(1, workloads={"add": [workload("w1")]}))) > 0
    assert kept.get("s").generation == 2
    kept.delete("s")
    kept.put("s", compiled, state(workload("w0")), 100)
    assert attempts(lambda: kept.put("s", compiled, state(), 100)) > 2
    assert kept.get("s").generation == 2


def test_the_estimate_grows_with_nodes_workloads_and_asks() -> None:
    """One node, two workloads and an ask are 4; two more asks make 6; then but the node is left."""
    kept, clock = store()
    state = msgspec.convert(
        {"nodes": [{"name": "n", "capacity": {}}], "workloads": [workload("w"), workload("v")]}, State
    )
    beside = solve.Beside(ASKS[:1], None)
    first = kept.put("s", configured(), state, 1000, beside=beside)
    assert (first.items, first.size, first.tasks) == (4, 1000 * BYTES_PER_JSON_BYTE, 2)
    asks = [msgspec.to_builtins(ASKS[1]) | {"id": name, "uid": name} for name in ("x", "y")]
    clock.now = 7
    grown = kept.apply("s", delta(1, asks={"add": asks}))
    assert (grown.items, grown.size, grown.tasks) == (6, first.size * 6 // 4, 2)
    assert kept.totals == (1, grown.size)
    empty = kept.apply("s", delta(2, workloads={"remove": ["w", "v"]}, asks={"remove": ["a0", "x", "y"]}))
    assert (empty.items, empty.size, empty.tasks) == (1, grown.size // 6, 0)
    clock.now = 9
    assert (kept.age_seconds(empty), kept.idle_seconds("s"), kept.idle_seconds("other")) == (9, 2, 0)
