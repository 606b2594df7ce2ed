"""YuniKorn as an engine: the way from a question to decisions, and the order of one cycle."""

from typing import Any

from app.solver.engine import Engine
from app.solver.engines.yunikorn import FACTS, report
from app.solver.engines.yunikorn.ask import Context, apply, decide
from app.solver.engines.yunikorn.candidates import Outcome, Silent
from app.solver.engines.yunikorn.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.yunikorn.explain import Comparisons, recorder
from app.solver.engines.yunikorn.overlay import Overlay, Request, check_asks, requests_of
from app.solver.engines.yunikorn.preemptibility import judge, preemptibility
from app.solver.engines.yunikorn.quota_change import enforce
from app.solver.engines.yunikorn.report import effective_settings, findings, shares
from app.solver.engines.yunikorn.rounds import YuniKornRounds
from app.solver.engines.yunikorn.rules import RULES
from app.solver.engines.yunikorn.state import CompiledState, compile_state
from app.solver.engines.yunikorn.update import update
from app.solver.model.decision import Decision, Placement, Plan, Result, each_alone, plan_of
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.stopping import safe_point


def _turn(state: CompiledState, ask: Ask, request: Request) -> tuple[int, int, str]:
    """The order of a cycle: priority as the root sees it, then age, then id."""
    priority = request.priority
    for q in state.configuration.paths[request.queue]:
        settings = state.configuration.settings[q]
        priority = settings.priority_offset if settings.priority_fence else priority + settings.priority_offset
    return -priority, request.created, ask.id


def plan(state: CompiledState, question: Question) -> Result:
    """Decide every ask, or bring a queue under its limit. Raises InvalidInput for what YuniKorn can't take."""
    options = question.options.yunikorn
    if options is not None and options.enforce_quota is not None:
        return enforce(state, question, options.enforce_quota)
    check_asks(state, question.asks)
    context = Context(question.now, options is None or options.node_choice == "scored")
    cycle = question.mode == "cycle"
    overlay = Overlay(state)
    requests = {ask.id: requests_of(state, ask) for ask in question.asks}
    asks = sorted(question.asks, key=lambda ask: _turn(state, ask, requests[ask.id][0])) if cycle else question.asks
    decisions: dict[str, Decision] = {}
    placements: dict[str, list[Placement]] = {}
    notes: dict[str, Any] = {}
    cancelled: list[dict[str, str]] = []
    comparisons = Comparisons()
    for turn, ask in enumerate(asks):
        if turn and not cycle:
            overlay = Overlay(state)
        record = recorder(question.why())
        overlay, outcomes = _units(overlay, requests[ask.id], context, record, comparisons)
        decisions[ask.id] = report.answer(overlay, ask, outcomes, question.now, record)
        waits = decisions[ask.id].outcome == "wait"
        placements[ask.id] = [] if waits else report.placements(overlay, ask, outcomes)
        notes[ask.id] = report.carried(outcomes[-1][0], outcomes[-1][1], question.now)
        cancelled += [one for _, outcome in outcomes for one in report.cancelled(overlay, outcome.cancelled)]
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


ENGINE: Engine[CompiledConfiguration, CompiledState] = Engine(
    facts=FACTS,
    rules=RULES,
    configure=compile_configuration,
    load=compile_state,
    update=update,
    plan=plan,
    rounds=YuniKornRounds,
    shares=shares,
    preemptibility=preemptibility,
    judge=judge,
    effective_settings=effective_settings,
    findings=findings,
)
"""Guaranteed queues, fences and nodes."""
