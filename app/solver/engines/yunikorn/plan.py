"""One question: a quota enforced, every ask on its own overlay, or one scheduling cycle over all of them."""

from typing import Any

from app.solver.engines.yunikorn.compile.state import CompiledState
from app.solver.engines.yunikorn.decide.ask import Context, apply, decide
from app.solver.engines.yunikorn.decide.cycle import in_turn
from app.solver.engines.yunikorn.decide.outcome import Outcome
from app.solver.engines.yunikorn.decide.overlay import Overlay
from app.solver.engines.yunikorn.decide.quota_change import enforce
from app.solver.engines.yunikorn.decide.record import Silent
from app.solver.engines.yunikorn.decide.request import Request, check_asks, requests_of
from app.solver.engines.yunikorn.report import answer
from app.solver.engines.yunikorn.report.comparison import Comparisons
from app.solver.engines.yunikorn.report.explain import recorder
from app.solver.model.decision import Decision, Placement, Plan, Result, each_alone, plan_of
from app.solver.question import Question
from app.solver.stopping import safe_point


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask, or bring a queue under its limit. Raises InvalidInput for what YuniKorn can't take."""
    options = question.options.yunikorn
    if options is not None and options.enforce_quota is not None:
        return enforce(state, question, options.enforce_quota)
    check_asks(state, question.asks)
    context = Context(question.now, options is None or options.node_choice == "scored")
    cycle = question.mode == "cycle"
    overlay = Overlay(state)
    asks = in_turn(state, question.asks) if cycle else question.asks
    decisions: dict[str, Decision] = {}
    placements: dict[str, list[Placement]] = {}
    notes: dict[str, Any] = {}
    cancelled: list[dict[str, str]] = []
    comparisons = Comparisons()
    for turn, ask in enumerate(asks):
        if turn and not cycle:
            overlay = Overlay(state)
        record = recorder(question.why())
        overlay, outcomes = _units(overlay, requests_of(state, ask), context, record, comparisons)
        decisions[ask.id] = answer.answer(overlay, ask, outcomes, question.now, record)
        waits = decisions[ask.id].outcome == "wait"
        placements[ask.id] = [] if waits else answer.placements(overlay, ask, outcomes)
        notes[ask.id] = answer.carried(outcomes[-1][0], outcomes[-1][1], question.now)
        cancelled += [one for _, outcome in outcomes for one in answer.cancelled(overlay, outcome.cancelled)]
    told: dict[str, Any] = {"asks": notes, "cancelled_reservations": cancelled}
    plans = [_plan([decisions[ask.id]], placements[ask.id]) for ask in asks]
    if not cycle:
        return each_alone([(decisions[ask.id], own) for ask, own in zip(asks, plans, strict=True)], told)
    return Result(
        decisions=[decisions[ask.id] for ask in question.asks],
        order=[ask.id for ask in asks],
        plan=_plan([decisions[ask.id] for ask in asks], [p for own in plans for p in own.placements]),
        notes=told,
    )


def _plan(decided: list[Decision], placements: list[Placement]) -> Plan:
    return Plan(evictions=plan_of(decided).evictions, placements=placements)


def _units(
    overlay: Overlay, requests: list[Request], context: Context, record: Silent, comparisons: Comparisons
) -> tuple[Overlay, list[tuple[Request, Outcome]]]:
    """The allocation asks of one ask, each seeing what the ones before took; all of them, or nobody is evicted."""
    trial = overlay if len(requests) == 1 else overlay.copy()
    outcomes: list[tuple[Request, Outcome]] = []
    for request in requests:
        safe_point()
        outcome = decide(trial, request, context, record)
        record.decided(trial, request, outcome)
        if record.on:
            comparisons.compare(trial, request, context, outcome, record)
        outcomes.append((request, outcome))
        if len(requests) > 1 or outcome.kind != "wait" or outcome.cancelled:
            comparisons.forget()
        if outcome.kind == "wait" and len(requests) > 1:
            return overlay, outcomes[-1:]
        apply(trial, request, outcome)
    return trial, outcomes
