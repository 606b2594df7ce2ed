from typing import Any

import msgspec
import pytest

from app.solver.apply import delta_of
from app.solver.delta import apply_delta
from app.solver.index import Index
from app.solver.model.decision import Decision, Plan
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, State

STATE = msgspec.convert(
    {
        "nodes": [{"name": n, "capacity": {"cpu": 4}} for n in ("n1", "n2")],
        "workloads": [
            {"id": "w1", "queue": "q", "tasks": [{"name": "a", "node": "n1"}, {"name": "b", "node": "n1"}]},
            {"id": "w2", "queue": "q", "tasks": [{"name": "a", "node": "n2"}]},
        ],
        "reservations": [{"node": "n2", "ask": {"id": "ask", "queue": "q", "tasks": []}}],
    },
    State,
)
NOW = 1_000_000


def carried_out(asks: list[Any], decisions: list[Any], evictions: list[Any], placements: list[Any]) -> State:
    index = Index(STATE)
    delta = delta_of(
        STATE,
        index,
        1,
        msgspec.convert(asks, list[Ask]),
        msgspec.convert([{"victims": [], "conditions": [], **d} for d in decisions], list[Decision]),
        msgspec.convert({"evictions": evictions, "placements": placements}, Plan),
        NOW,
    )
    return apply_delta(STATE, index, delta)[0]


def shape(state: State) -> dict[str, list[tuple[str, str | None]]]:
    return {w.id: [(t.name, t.node) for t in w.tasks] for w in state.workloads}


ASK = {"id": "ask", "queue": "q", "priority": 7, "tasks": [{"name": "t", "requests": {"cpu": 1}}]}


def test_evictions_remove_and_placements_run() -> None:
    new = carried_out(
        [ASK],
        [{"ask": "ask", "outcome": "preempt"}],
        [{"workload": "w1", "task": "a", "queue": "q", "reason": "r"}, {"workload": "w2", "queue": "q", "reason": "r"}],
        [{"ask": "ask", "task": "t", "node": "n2", "pipelined": True}],
    )
    assert shape(new) == {"w1": [("b", "n1")], "ask": [("t", "n2")]}
    assert new.workloads[1].priority == 7
    assert new.reservations == []


def test_an_eviction_that_is_placed_again_is_a_move() -> None:
    new = carried_out(
        [],
        [],
        [{"workload": "w1", "task": "a", "queue": "q", "reason": "consolidation"}],
        [{"workload": "w1", "task": "a", "node": "n2", "pipelined": True}],
    )
    assert shape(new)["w1"] == [("a", "n2"), ("b", "n1")]


def test_an_admitted_ask_runs_with_its_flavors_and_counts() -> None:
    ask = {"id": "new", "queue": "q", "tasks": [{"name": "t", "count": 3, "min_count": 1}]}
    assignment = {"ask": "new", "outcome": "admit", "assignment": {"t": {"cpu": "spot"}}, "counts": {"t": 2}}
    new = carried_out([ask], [assignment], [], [])
    task = new.workloads[2].tasks[0]
    assert (task.count, task.flavors, task.min_count) == (2, {"cpu": "spot"}, None)


def test_units_of_one_task_get_names_of_their_own() -> None:
    ask = {"id": "next", "workload": "w1", "queue": "q", "tasks": [{"name": "b", "count": 9}]}
    placement = {"ask": "next", "task": "b", "node": "n2", "pipelined": False}
    new = carried_out([ask], [{"ask": "next", "outcome": "admit"}], [], [placement, placement])
    assert shape(new)["w1"] == [("a", "n1"), ("b", "n1"), ("b-0", "n2"), ("b-1", "n2")]


def test_a_node_given_to_a_preemptor_is_reserved_once() -> None:
    reserved = carried_out([{**ASK, "id": "other"}], [{"ask": "other", "outcome": "preempt", "node": "n1"}], [], [])
    assert [(r.node, r.ask.id) for r in reserved.reservations] == [("n2", "ask"), ("n1", "other")]
    again = carried_out([ASK], [{"ask": "ask", "outcome": "preempt", "node": "n2"}], [], [])
    assert len(again.reservations) == 1


@pytest.mark.parametrize(
    ("evictions", "placements", "where"),
    [
        ([{"workload": "ghost", "queue": "q", "reason": "r"}], [], "/plan/evictions/0"),
        ([{"workload": "w1", "task": "z", "queue": "q", "reason": "r"}], [], "/plan/evictions/0"),
        ([], [{"ask": "ghost", "task": "t", "node": "n1", "pipelined": False}], "/plan/placements/0"),
    ],
)
def test_what_no_longer_runs_is_an_error(evictions: list[Any], placements: list[Any], where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        carried_out([ASK], [], evictions, placements)
    assert [p.pointer for p in refused.value.problems] == [where]
