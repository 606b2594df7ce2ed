"""Outcomes as the wire shows them: decisions, victims, conditions, plan, and what to carry over."""

from datetime import datetime
from typing import Any

from app.solver.engines.yunikorn.decide.outcome import REASONS, Outcome
from app.solver.engines.yunikorn.decide.overlay import Held, Overlay
from app.solver.engines.yunikorn.decide.record import Silent
from app.solver.engines.yunikorn.decide.request import Request
from app.solver.engines.yunikorn.decide.wording import counted
from app.solver.model import instant
from app.solver.model.decision import Condition, Decision, Placement, Victim
from app.solver.model.state import Ask

EVICTED = "PreemptedByScheduler"


def answer(overlay: Overlay, ask: Ask, outcomes: list[tuple[Request, Outcome]], now: int, record: Silent) -> Decision:
    """The decision of one ask from what became of its allocation asks."""
    at = instant.at(now)
    kinds = {outcome.kind for _, outcome in outcomes}
    kind = "wait" if "wait" in kinds else "preempt" if "preempt" in kinds else "admit"
    placed = {} if kind == "wait" else {r.task.name: _node(overlay, o) for r, o in outcomes if o.node is not None}
    victims = [
        victim(overlay, task, EVICTED, f"preempted to make room for ask {ask.id} of {ask.queue}", at)
        for _, outcome in outcomes
        for task in outcome.victims
        if kind == "preempt"
    ]
    nodes = list(dict.fromkeys(placed.values()))
    conditions = [_condition(overlay, request, outcome, at) for request, outcome in outcomes]
    return Decision(
        ask=ask.id, outcome=kind, node=nodes[0] if len(nodes) == 1 else None, placements=placed or None,
        victims=victims, conditions=list(dict.fromkeys(conditions)), explanation=record.explanation(overlay, outcomes),
    )  # fmt: skip


def victim(overlay: Overlay, task: int, reason: str, message: str, at: datetime) -> Victim:
    """A task that goes, and what that frees."""
    state = overlay.state
    workload, name = state.label(task)
    return Victim(
        workload=workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
        reason=reason, message=message,
        conditions=[
            Condition(type="Preempted", status="True", reason=reason, message=message, last_transition_time=at)
        ],
        freed=state.resources.units(state.amounts(task)),
    )  # fmt: skip


def placements(overlay: Overlay, ask: Ask, outcomes: list[tuple[Request, Outcome]]) -> list[Placement]:
    """Where its tasks go: now, or (pipelined) once the victims have left the reserved node."""
    return [
        Placement(ask=ask.id, task=request.task.name, node=_node(overlay, outcome), pipelined=outcome.kind == "preempt")
        for request, outcome in outcomes
        if outcome.node is not None
    ]


def carried(request: Request, outcome: Outcome, now: int) -> dict[str, Any]:
    """The ask's ``yunikorn`` block for the next request, after this one."""
    young = {"too-young", "checked-lately", "never-preempts", "already-triggered", "attempts-exhausted"}
    checked = outcome.kind == "preempt" or (outcome.kind == "wait" and outcome.failed not in young)
    last = now if checked and request.required is None else request.checked
    block: dict[str, Any] = {"triggered_preemption": request.triggered or outcome.kind == "preempt"}
    if last is not None:
        block["last_preemption_check_at"] = instant.at(last)
    return block


def _node(overlay: Overlay, outcome: Outcome) -> str:
    assert outcome.node is not None
    return overlay.state.node_names[outcome.node]


def _condition(overlay: Overlay, request: Request, outcome: Outcome, at: datetime) -> Condition:
    status = "False"
    if outcome.kind == "admit":
        status, reason, message = "True", "Allocated", f"fits on {_node(overlay, outcome)}"
    elif outcome.kind == "preempt":
        reason = "NodeReserved"
        gone = counted(len(outcome.victims), "preempted task")
        message = f"{_node(overlay, outcome)} is reserved for the ask; it waits for {gone} to leave"
    else:
        reason, message = REASONS[outcome.failed or ""][0], outcome.reason
    return Condition(type="Allocated", status=status, reason=reason, message=message, last_transition_time=at)


def cancelled(overlay: Overlay, dropped: list[tuple[int, Held]]) -> list[dict[str, str]]:
    """Reservations of other asks that gave way."""
    return [{"node": overlay.state.node_names[node], "ask": held.ask.id} for node, held in dropped]
