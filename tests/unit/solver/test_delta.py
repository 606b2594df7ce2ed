import tracemalloc
from typing import Any

import msgspec
import pytest

from app.base.decoding import convert
from app.solver import solve
from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Delta, State
from app.solver.solve import Loaded

STATE = msgspec.convert(
    {
        "nodes": [{"name": "n1", "capacity": {"cpu": 1}}, {"name": "n2", "capacity": {"cpu": 2}}],
        "workloads": [{"id": w, "queue": "q", "tasks": [{"name": "a"}, {"name": "b"}]} for w in ("w1", "w2", "w3")],
        "reservations": [{"node": "n1", "ask": {"id": "r", "queue": "q", "tasks": []}}],
    },
    State,
)


def applied(**fields: Any) -> State:
    new, index, _ = apply_delta(STATE, Index(STATE), msgspec.convert({"generation": 1, **fields}, Delta))
    assert index.workloads == {w.id: i for i, w in enumerate(new.workloads)}
    assert index.nodes == {n.name for n in new.nodes}
    return new


def test_what_changes_keeps_its_place_and_what_is_added_comes_last() -> None:
    new = applied(
        workloads={
            "remove": ["w1"],
            "change": [{"id": "w2", "queue": "q", "priority": 5}],
            "add": [{"id": "w0", "queue": "q"}, {"id": "w9", "queue": "q"}],
        },
        nodes={"remove": ["n2"], "add": [{"name": "n0", "capacity": {}}]},
    )
    assert [w.id for w in new.workloads] == ["w2", "w3", "w0", "w9"]
    assert new.workloads[0].priority == 5
    assert [n.name for n in new.nodes] == ["n1", "n0"]
    assert [w.id for w in STATE.workloads] == ["w1", "w2", "w3"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["w1", "w2", "w3"]),
        ({"change": [{"id": "w2", "queue": "q"}]}, ["w1", "w2", "w3"]),
        ({"remove": ["w2"]}, ["w1", "w3"]),
        ({"remove": ["w1", "w2"]}, ["w3"]),
        ({"remove": ["w3", "w1"]}, ["w2"]),
        ({"add": [{"id": "w0", "queue": "q"}, {"id": "w9", "queue": "q"}]}, ["w1", "w2", "w3", "w0", "w9"]),
    ],
)
def test_one_operation_at_a_time_keeps_the_index(changes: dict[str, Any], expected: list[str]) -> None:
    assert [w.id for w in applied(workloads=changes).workloads] == expected


def test_tasks_change_one_by_one() -> None:
    new = applied(
        tasks={
            "add": [{"workload": "w2", "task": {"name": "c"}}],
            "change": [{"workload": "w2", "task": {"name": "a", "count": 3}}],
            "remove": [{"workload": "w2", "task": "b"}, {"workload": "w3", "task": "a"}],
        }
    )
    assert [(t.name, t.count) for t in new.workloads[1].tasks] == [("a", 3), ("c", 1)]
    assert [t.name for t in new.workloads[2].tasks] == ["b"]


def test_reservations_come_and_go() -> None:
    new = applied(
        reservations={
            "remove": [{"node": "n1", "ask": "r"}],
            "add": [{"node": "n2", "ask": {"id": "s", "queue": "q", "tasks": []}}],
        }
    )
    assert [(r.node, r.ask.id) for r in new.reservations] == [("n2", "s")]


def test_a_delta_that_fails_names_every_fault_and_changes_nothing() -> None:
    before = msgspec.json.encode(STATE)
    with pytest.raises(InvalidInput) as refused:
        applied(
            workloads={
                "remove": ["ghost", "w1"],
                "change": [{"id": "w1", "queue": "q"}, {"id": "nobody", "queue": "q"}],
                "add": [{"id": "w2", "queue": "q"}],
            },
            tasks={
                "add": [{"workload": "w3", "task": {"name": "a"}}],
                "change": [{"workload": "phantom", "task": {"name": "a"}}],
                "remove": [{"workload": "w2", "task": "a"}, {"workload": "w3", "task": "z"}],
            },
            reservations={"remove": [{"node": "n2", "ask": "r"}]},
        )
    assert [p.pointer for p in refused.value.problems] == [
        "/tasks/remove/1/task",
        "/tasks/add/0/task",
        "/tasks/change/0/workload",
        "/workloads/change/1/id",
        "/workloads/remove/0",
        "/workloads/remove/1",
        "/workloads/add/0/id",
        "/reservations/remove/0",
    ]
    assert msgspec.json.encode(STATE) == before


@pytest.mark.parametrize("engine", ["kueue", "yunikorn", "kai", "ytsaurus"])
def test_what_a_delta_of_workloads_takes_does_not_grow_with_the_nodes(engine: str) -> None:
    queues = [{"name": "root"}, {"name": "q", "parent": "root", "quota": {"cpu": {"guaranteed": 9}}}]
    configured = solve.configure(convert({"engine": engine, "queues": queues}, Configuration))
    nodes = [{"name": f"n{i}", "capacity": {"cpu": 4}} for i in range(20_000)]

    def workload(name: str) -> dict[str, Any]:
        return {"id": name, "queue": "q", "tasks": [{"name": "t", "requests": {"cpu": 1}, "node": "n7"}]}

    def added(loaded: Loaded, name: str) -> Loaded:
        delta = convert({"generation": 1, "workloads": {"add": [workload(name)]}}, Delta)
        return solve.update(loaded, *apply_delta(loaded.state, loaded.index, delta), generation=None)

    state = {"nodes": nodes, "workloads": [workload(f"w{i}") for i in range(100)]}
    loaded = added(solve.load(configured, convert(state, State)), "first")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        added(loaded, "second")
        taken = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert taken < 600_000, "not even a set of their names, of 1 MB"
