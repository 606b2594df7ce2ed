"""What the rounds of all engines that place tasks have in common, asked of the plainest one."""

from typing import Any

import msgspec
import pytest

from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Plan, PlannedEviction, Result
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, Workload
from app.solver.rounds import Move, PlacedRounds

CONFIGURATION = {
    "queues": [
        {"name": "root", "quota": {"cpu": {"guaranteed": "unlimited"}, "memory": {"limit": 4}}},
        {
            "name": "a",
            "parent": "root",
            "resource_groups": [
                {
                    "resources": ["cpu"],
                    "flavors": [{"name": name, "quota": {"cpu": {"guaranteed": 2}}} for name in ("x", "y")],
                }
            ],
        },
    ]
}
NOW = 1_000_000


class Plain(PlacedRounds[None, None]):
    """The plainest engine: nothing but what all have; ``wakes``: when time alone matters."""

    unit = "task"
    wakes: int | None = None

    def wakes_at(self) -> int | None:
        return self.wakes


@pytest.fixture
def rounds() -> Plain:
    return Plain(None, msgspec.convert(CONFIGURATION, Configuration), RunOptions())


def ask(name: str, *tasks: str) -> Ask:
    return msgspec.convert({"id": name, "queue": "a", "tasks": [{"name": task} for task in tasks]}, Ask)


def answer(placements: list[dict[str, Any]], evictions: list[dict[str, Any]] | None = None) -> Result:
    placed = [{"pipelined": False} | one for one in placements]
    gone = [{"queue": "a", "reason": "r"} | one for one in evictions or []]
    return Result(decisions=[], plan=msgspec.convert({"evictions": gone, "placements": placed}, Plan))


def nobody(eviction: PlannedEviction) -> bool:
    del eviction
    return False


def test_a_round_is_due_once_for_each_change_while_somebody_waits(rounds: Plain) -> None:
    assert not rounds.due(NOW)
    rounds.freed("a")
    assert not rounds.due(NOW), "nobody waits"
    rounds.arrive(ask("x", "t"))
    assert rounds.due(NOW)
    rounds.answered(rounds.question(NOW, lambda name: False), answer([]), nobody)
    assert not rounds.due(NOW)
    rounds.freed("a")
    assert rounds.due(NOW)
    rounds.mark_seen(acted=False)
    rounds.changed(None, msgspec.convert({}, Configuration), [])
    assert rounds.due(NOW)
    assert rounds.guarantees() == {}
    rounds.leave("x")
    rounds.leave("x")
    assert not rounds.due(NOW)


def test_time_alone_makes_it_due_at_that_instant(rounds: Plain) -> None:
    rounds.arrive(ask("x", "t"))
    rounds.mark_seen(acted=False)
    rounds.wakes = NOW
    assert [rounds.due(NOW - 1), rounds.due(NOW), rounds.due(NOW + 1)] == [False, True, True]


def test_everybody_is_asked_for_by_name_and_belongs_to_what_runs_already(rounds: Plain) -> None:
    for name in ("y", "x"):
        rounds.arrive(ask(name, "t"))
    asked = rounds.question(NOW, lambda name: name == "y")
    assert (asked.now, asked.mode) == (NOW, "cycle")
    assert [(one.id, one.workload) for one in asked.asks] == [("x", None), ("y", "y")]


def test_an_answer_starts_moves_and_stops(rounds: Plain) -> None:
    """x starts one of its two tasks now, the other once room is made; y starts whole; w moves; v leaves already."""
    rounds.arrive(ask("x", "one", "two"))
    rounds.arrive(ask("y", "t", "u"))
    placements = [
        {"ask": "x", "task": "two", "node": "n"},
        {"ask": "x", "task": "one", "node": "m", "pipelined": True},
        {"workload": "w", "task": "a", "node": "m"},
        {"ask": "y", "task": "t", "node": "n"},
        {"ask": "y", "task": "u", "node": "m"},
    ]
    result = answer(placements, [{"workload": "v"}, {"workload": "u"}])
    question = rounds.question(NOW, lambda name: False)
    turn = rounds.answered(question, result, lambda eviction: eviction.workload == "v")
    assert [eviction.workload for eviction in turn.evicted] == ["u"]
    assert turn.moved == [Move("w", "a", "m")]
    assert [(one.job, [(t.name, t.node, t.state, t.started_at) for t in one.tasks]) for one in turn.started] == [
        ("x", [("two", "n", "running", to_datetime(NOW))]),
        ("y", [("t", "n", "running", to_datetime(NOW)), ("u", "m", "running", to_datetime(NOW))]),
    ]
    assert {name: [t.name for t in one.tasks] for name, one in rounds.waiting.items()} == {"x": ["one"]}
    assert not turn.more


def test_what_is_told_to_stop_is_on_its_way(rounds: Plain) -> None:
    running = {"id": "w", "queue": "a", "tasks": [{"name": "a"}, {"name": "b"}]}
    workload = msgspec.convert(running, Workload)
    usual = workload.tasks[0].state
    states = [[t.state for t in rounds.evicting(workload, task).tasks] for task in ("b", None)]
    assert states == [[usual, "releasing"], ["releasing", "releasing"]]


def test_what_is_guaranteed_and_what_there_is(rounds: Plain) -> None:
    """Flavors are added up; without a bound nothing is guaranteed; what others occupy counts where nodes have it."""
    assert rounds.guarantees() == {"root": {}, "a": {"cpu": 4000}}
    nodes = [
        {"name": "n", "capacity": {"cpu": 4, "memory": 8}, "occupied": {"cpu": 1, "disk": 3}},
        {"name": "m", "capacity": {"cpu": "500m"}},
    ]
    assert rounds.capacity(msgspec.convert(nodes, list[Node])) == {"cpu": 3500, "memory": 8}
    assert rounds.capacity([]) == {}
