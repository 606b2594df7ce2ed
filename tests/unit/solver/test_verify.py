"""verify() rejects the answers of deliberately broken engines."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.solver.index import Index
from app.solver.model.decision import Condition, Decision, Placement, Plan, PlannedEviction, Result, Victim, plan_of
from app.solver.model.state import Ask, State
from app.solver.question import Question
from app.solver.verify import BrokenLaw, verify

STATE = msgspec.convert(
    {
        "nodes": [{"name": "n", "capacity": {"cpu": 1}}],
        "workloads": [{"id": "w", "queue": "q", "tasks": [{"name": "t"}]}],
    },
    State,
)
QUESTION = Question(now=0, asks=[Ask(id="a", queue="q", tasks=[])])
WAITS = Condition(
    type="QuotaReserved",
    status="False",
    reason="Pending",
    message="no",
    last_transition_time=datetime(2026, 1, 1, tzinfo=UTC),
)


def victim(workload: str = "w", task: str | None = None, freed: float = 1) -> Victim:
    return Victim(workload=workload, task=task, queue="q", reason="r", message="m", conditions=[], freed={"cpu": freed})


def decision(**fields: Any) -> Decision:
    return Decision(**({"ask": "a", "outcome": "preempt", "victims": [victim()], "conditions": [WAITS]} | fields))


def result(*decisions: Decision, plan: Plan | None = None, order: list[str] | None = None) -> Result:
    return Result(decisions=list(decisions), order=order, plan=plan or plan_of(list(decisions)))


def test_a_sound_answer_passes() -> None:
    verify(STATE, Index(STATE), QUESTION, result(decision()))


EVICTION = PlannedEviction(workload="w", queue="q", reason="r")
NOBODY = Plan(evictions=[], placements=[])


def placed(ask: str, node: str) -> Plan:
    return Plan(evictions=[EVICTION], placements=[Placement(ask=ask, task="t", node=node, pipelined=False)])


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (result(), "answered once"),
        (result(decision(), decision()), "answered once"),
        (result(decision(ask="other")), "answered once"),
        (result(decision(), order=["ghost"]), "order names"),
        (result(decision(victims=[victim("ghost")])), "does not run"),
        (result(decision(victims=[victim(task="ghost")])), "does not run"),
        (result(decision(victims=[victim(), victim()])), "victim twice"),
        (result(decision(victims=[victim(freed=-1)])), "negative"),
        (result(decision(outcome="admit")), "evicts somebody"),
        (result(decision(outcome="wait", victims=[], conditions=[])), "without a condition"),
        (result(decision(), plan=NOBODY), "not in the plan"),
        (result(decision(), plan=Plan(evictions=[EVICTION, EVICTION], placements=[])), "twice"),
        (result(decision(), plan=placed("a", "ghost")), "unknown node"),
        (result(decision(), plan=placed("b", "n")), "unknown ask"),
    ],
)  # fmt: skip
def test_a_broken_engine_is_caught(broken: Result, law: str) -> None:
    with pytest.raises(BrokenLaw, match=law):
        verify(STATE, Index(STATE), QUESTION, broken)
