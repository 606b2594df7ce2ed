from typing import Any

import msgspec
import pytest

from app.solver.apply import Index, delta_of
from app.solver.delta import apply_delta
from app.solver.model.base import to_datetime
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


def test_what_never_ran_takes_nothing_with_it() -> None:
    """KAI takes a pod back to which the same cycle gave a place; another may start in it."""
    back = {"workload": "ask", "task": "t", "queue": "q", "reason": "r", "node": "n1", "just_placed": True}
    assert shape(carried_out([ASK], [{"ask": "ask", "outcome": "wait"}], [back], [])) == shape(STATE)


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


def test_an_ask_that_takes_the_place_of_what_it_evicts_is_no_move() -> None:
    """Only a placement without an ask carries a task on: here a new one of the same name comes, and comes last."""
    ask = {"id": "next", "workload": "w1", "queue": "q", "tasks": [{"name": "a"}]}
    gone = {"workload": "w1", "task": "a", "queue": "q", "reason": "r"}
    placement = {"ask": "next", "workload": "w1", "task": "a", "node": "n2", "pipelined": True}
    new = carried_out([ask], [{"ask": "next", "outcome": "preempt"}], [gone], [placement])
    assert shape(new)["w1"] == [("b", "n1"), ("a", "n2")]
    assert new.workloads[0].tasks[1].started_at == to_datetime(NOW)


def test_whoever_is_placed_is_not_admitted_again_and_the_others_are() -> None:
    pending = [ASK | {"id": name} for name in ("placed", "admitted", "waits", "preempts")]
    decisions = [
        {"ask": "unknown", "outcome": "admit"},
        {"ask": "placed", "outcome": "admit"},
        {"ask": "admitted", "outcome": "admit", "node": "n1"},
        {"ask": "waits", "outcome": "wait", "node": "n1"},
        {"ask": "preempts", "outcome": "preempt"},
    ]
    new = carried_out(pending, decisions, [], [{"ask": "placed", "task": "t", "node": "n2", "pipelined": False}])
    assert shape(new) == {
        "w1": [("a", "n1"), ("b", "n1")], "w2": [("a", "n2")], "placed": [("t", "n2")], "admitted": [("t", "n1")],
    }  # fmt: skip
    assert [r.ask.id for r in new.reservations] == ["ask"]


def test_an_ask_becomes_a_workload_with_all_that_it_says() -> None:
    says = {"uid": "u", "min_available": 2, "weight": 3.0, "limit": {"cpu": 4}, "created_at": "2026-01-01T00:00:00Z"}
    pending: list[Any] = [{**ASK, **says, "preemptible": False}, {"id": "plain", "queue": "q", "tasks": []}]
    new = carried_out(pending, [{"ask": one["id"], "outcome": "admit"} for one in pending], [], [])
    first, second = new.workloads[2:]
    assert (first.id, first.uid, first.queue, first.priority) == ("ask", "u", "q", 7)
    assert (first.min_available, first.weight, first.limit) == (2, 3.0, {"cpu": 4})
    assert (first.preemptible, first.created_at, first.started_at) == (
        False,
        to_datetime(1767225600 * 10**6),
        to_datetime(NOW),
    )
    assert (second.preemptible, second.priority, second.uid, second.created_at) == (True, 0, None, None)
    assert new.reservations == [], "what it held is released"


def test_of_several_tasks_the_one_that_is_named_is_placed() -> None:
    ask = {"id": "new", "queue": "q", "tasks": [{"name": "t"}, {"name": "u"}]}
    placement = {"ask": "new", "task": "u", "node": "n2", "pipelined": False}
    new = carried_out([ask], [{"ask": "new", "outcome": "admit"}], [], [placement])
    assert shape(new)["new"] == [("u", "n2")]


def test_units_of_one_task_get_names_of_their_own() -> None:
    ask = {"id": "next", "workload": "w1", "queue": "q", "tasks": [{"name": "b", "count": 9}]}
    placement = {"ask": "next", "task": "b", "node": "n2", "pipelined": False}
    new = carried_out([ask], [{"ask": "next", "outcome": "admit"}], [], [placement, placement])
    assert shape(new)["w1"] == [("a", "n1"), ("b", "n1"), ("b-0", "n2"), ("b-1", "n2")]
    assert [task.count for task in new.workloads[0].tasks] == [1, 1, 1, 1]
    alone = carried_out([ask | {"workload": "fresh"}], [], [], [placement, placement])
    assert shape(alone)["fresh"] == [("b-0", "n2"), ("b-1", "n2")]


def test_a_node_given_to_a_preemptor_is_reserved_once() -> None:
    reserved = carried_out([{**ASK, "id": "other"}], [{"ask": "other", "outcome": "preempt", "node": "n1"}], [], [])
    assert [(r.node, r.ask.id) for r in reserved.reservations] == [("n2", "ask"), ("n1", "other")]
    again = carried_out([ASK], [{"ask": "ask", "outcome": "preempt", "node": "n2"}], [], [])
    assert len(again.reservations) == 1
    both = [{**ASK, "id": "other"}, ASK]
    elsewhere = [
        {"ask": "other", "outcome": "preempt", "node": "n2"},
        {"ask": "ask", "outcome": "preempt", "node": "n1"},
    ]
    new = carried_out(both, elsewhere, [], [])
    assert [(r.node, r.ask.id) for r in new.reservations] == [("n2", "ask"), ("n2", "other"), ("n1", "ask")]


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
