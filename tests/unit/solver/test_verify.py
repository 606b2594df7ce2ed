"""verify() rejects the answers of deliberately broken engines."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.solver.model.decision import Condition, Decision, Placement, Plan, PlannedEviction, Result, Victim, plan_of
from app.solver.model.state import Ask, State, Task
from app.solver.question import Question
from app.solver.solve import BrokenLaw, verify

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


RUNNING = {workload.id: workload for workload in STATE.workloads}


def verified(question: Question, answer: Result) -> None:
    verify(question, answer, RUNNING.get, lambda: {node.name for node in STATE.nodes})


def victim(workload: str = "w", task: str | None = None, freed: float = 1) -> Victim:
    return Victim(workload=workload, task=task, queue="q", reason="r", message="m", conditions=[], freed={"cpu": freed})


def decision(**fields: Any) -> Decision:
    return Decision(**({"ask": "a", "outcome": "preempt", "victims": [victim()], "conditions": [WAITS]} | fields))


def result(*decisions: Decision, plan: Plan | None = None, order: list[str] | None = None) -> Result:
    return Result(decisions=list(decisions), order=order, plan=plan or plan_of(list(decisions)))


def test_a_sound_answer_passes() -> None:
    verified(QUESTION, result(decision()))


@pytest.mark.parametrize(
    "sound",
    [
        decision(victims=[], outcome="admit", conditions=[]),
        decision(outcome="wait"),
        decision(victims=[], outcome="infeasible"),
        decision(conditions=[]),
        decision(victims=[victim(freed=0)]),
        decision(victims=[victim(task="t")]),
        decision(victims=[victim(), victim(task="t")]),
    ],
)
def test_every_sound_outcome_passes(sound: Decision) -> None:
    verified(QUESTION, result(sound, order=["a"]))
    alone = msgspec.structs.replace(sound, plan=plan_of([sound]))
    verified(QUESTION, result(alone, order=[], plan=NOBODY))


@pytest.mark.parametrize(("workload", "task", "sound"), [("a", "p", True), ("a", "o", False), ("w", "t", False)])
def test_only_a_pod_of_an_ask_can_have_been_placed_just_now(workload: str, task: str, sound: bool) -> None:
    question = Question(now=0, asks=[Ask(id="a", queue="q", tasks=[Task(name="p")])])
    back = PlannedEviction(workload=workload, task=task, queue="q", reason="r", just_placed=True)
    answer = result(decision(victims=[]), plan=Plan(evictions=[back], placements=[]))
    if sound:
        verified(question, answer)
    else:
        with pytest.raises(BrokenLaw, match="is no pod of an ask"):
            verified(question, answer)


def test_what_runs_may_be_placed_and_the_ask_itself() -> None:
    for one in (Placement(workload="w", task="t", node="n", pipelined=True), placed("a", "n").placements[0]):
        verified(QUESTION, result(decision(), plan=Plan(evictions=[EVICTION], placements=[one])))


def test_what_runs_may_move_without_being_anybodys_victim() -> None:
    move = Placement(workload="w", task="t", node="n", pipelined=True)
    verified(QUESTION, result(decision(victims=[]), plan=Plan(evictions=[], placements=[move])))


EVICTION = PlannedEviction(workload="w", queue="q", reason="r")
NOBODY = Plan(evictions=[], placements=[])


def placed(ask: str, node: str) -> Plan:
    return Plan(evictions=[EVICTION], placements=[Placement(ask=ask, task="t", node=node, pipelined=False)])


GHOST = PlannedEviction(workload="ghost", queue="q", reason="r")


def _moved(workload: str) -> Plan:
    return Plan(evictions=[EVICTION], placements=[Placement(workload=workload, task="t", node="n", pipelined=True)])


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
        (result(decision(outcome="infeasible", victims=[], conditions=[])), "without a condition"),
        (result(decision(outcome="infeasible")), "evicts somebody"),
        (result(decision(), plan=_moved("ghost")), "unknown workload"),
        (result(decision(), plan=Plan(evictions=[EVICTION, GHOST], placements=[])), "does not run"),
        (result(decision(plan=NOBODY), plan=NOBODY), "not in the plan"),
        (result(decision(victims=[], plan=Plan(evictions=[GHOST], placements=[])), plan=NOBODY), "does not run"),
        (result(decision(victims=[], plan=placed("b", "n")), plan=NOBODY), "unknown ask"),
    ],
)  # fmt: skip
def test_a_broken_engine_is_caught(broken: Result, law: str) -> None:
    with pytest.raises(BrokenLaw, match=law):
        verified(QUESTION, broken)
