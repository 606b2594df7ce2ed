"""YuniKorn as an engine: from a question to decisions, the order of one cycle, and the rules that answers name.

Files are those of yunikorn-core's ``pkg/scheduler/objects``; "Preemption Design" is the page of that name in YuniKorn's
documentation, whose laws are numbered in its order.
"""

from collections.abc import Iterator
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
from app.solver.engines.yunikorn.rule_sets import DIFFERENCES
from app.solver.engines.yunikorn.state import CompiledState, compile_state
from app.solver.engines.yunikorn.update import update
from app.solver.model.decision import Decision, Placement, Plan, Result, each_alone, plan_of
from app.solver.model.problems import PROPOSALS, Rule
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.stopping import safe_point

_DESIGN = "Preemption Design"
_VICTIMS = "queue.go, findEligiblePreemptionVictims"
_TRY = "preemption.go, TryPreemption"
_PRECONDITIONS = "preemption.go, CheckPreconditions"
_REQUIRED = "required_node_preemptor.go"

_CANDIDATES = (
    ("asking-queue", "A task of the asking queue itself, where preemption does not look.", f"{_DESIGN}, law 3"),
    ("outside-the-fence", "Its queue is not below the fence of the asking queue.", f"{_DESIGN}, law 7"),
    ("priority-fence", "A priority fence above its queue has a higher offset than the ask's priority.", _VICTIMS),
    ("preemption-disabled", "Its queue has preemption.policy disabled.", _VICTIMS),
    (
        "no-claim",
        "No queue of the ask's path below the fork of both is under its guarantee in what the ask needs.",
        f"{_DESIGN}, law 4",
    ),
    ("within-guarantee", "Its queue is not over its guarantee.", f"{_DESIGN}, law 5"),
    ("bound-to-its-node", "It requires its node, as a DaemonSet pod does, and can run nowhere else.", _VICTIMS),
    ("already-leaving", "It is being preempted, or has been released, already.", _VICTIMS),
    ("on-no-node", "It runs on no node, so that no node gains room without it.", _VICTIMS),
    ("no-common-resource", "It names no resource that the ask names.", _VICTIMS),
    ("higher-priority", "Its priority is higher than the ask's, as seen from its queue.", f"{_DESIGN}, law 6"),
    ("same-application", "It belongs to the ask's own application.", f"{_DESIGN}, law 3"),
    ("law-2", "Without it a queue would be below its guarantee.", f"{_DESIGN}, law 2"),
    ("on-another-node", "It is not on the node that the ask requires.", _REQUIRED),
    ("node-held", "Its node is held for another ask.", "preemption.go, initWorkingState"),
    (
        "node-closed",
        "Its node is unschedulable, too small for the ask, or none that passes its predicates.",
        "preemption.go, initWorkingState",
    ),
    ("makes-room", "It goes, and makes room for the ask.", _TRY),
    ("fits-without", "It was taken and put back, because the ask fits without it.", _DESIGN),
    ("makes-no-room", "It may go, but all that may go on its node does not make room for the ask.", _TRY),
    ("not-reached", "It may go, but the search ended before it was needed.", _TRY),
    (
        "part-waits",
        "It would have gone for one task of the ask, and stays because another task can't be placed.",
        "Arbiter",
    ),
    ("may-be-preempted", "Nothing protects it.", _VICTIMS),
    ("opted-out", "It has opted out of preemption and goes as a last resort.", f"{_DESIGN}, law 1"),
    (
        "originator",
        "It is the originator of its application and goes after its other tasks.",
        "preemption.go, sortVictimsForPreemption",
    ),
    ("nothing-runs", "The application has no running task.", "Arbiter"),
)
_STEPS = (
    ("fence", "How far up the tree victims are looked for.", "queue.go, findPreemptionFenceRoot"),
    (
        "guarantee-left",
        "What is left of the guarantee on the ask's side.",
        "preemption.go, GetRemainingGuaranteedResource",
    ),
    ("task", "What became of one task of an ask that has several.", "Arbiter"),
    ("node", "A node that can make room, and who would go there.", "preemption.go, calculateVictimsByNode"),
    ("node-out", "A node that was searched in vain.", "preemption.go, calculateVictimsByNode"),
)
_FAILURES = (
    ("too-many-applications", "As many applications run as its queue, user or group may have.", "queue.go, canRunApp"),
    ("user-limit", "Its user or group may have no more of its queue.", "ugm/manager.go, Headroom"),
    ("preemption-off", "Preemption is off in the partition (preemption.enabled).", "partition.go"),
    ("never-preempts", "The ask's own policy is Never.", _PRECONDITIONS),
    ("already-triggered", "The ask has triggered preemption before.", _PRECONDITIONS),
    ("too-young", "The ask is younger than the preemption.delay of its queue.", _PRECONDITIONS),
    ("checked-lately", "The last preemption check of the ask was less than 15 s ago.", _PRECONDITIONS),
    ("attempts-exhausted", "The queue has had its preemption attempts of this cycle.", "application.go, tryPreemption"),
    ("queue-guarantees", "The ask's side is not under its guarantee.", f"{_DESIGN}, law 4"),
    ("no-candidates", "Nobody inside the fence may be preempted for the ask.", _VICTIMS),
    ("no-node", "No node can make room for the ask.", _TRY),
    ("nodes-held", "Every node that could make room is held for another ask.", "preemption.go, initWorkingState"),
    ("no-victims", "No victim would help the ask.", _TRY),
    ("shortfall", "What the victims free is short of the ask.", _TRY),
    ("resources-releasing", "What the ask needs is being released already.", "Arbiter"),
    ("required-node", "Nothing that may go makes room on the node that the ask requires.", _REQUIRED),
    ("required-node-released", "Preemption on the required node was triggered before.", _REQUIRED),
)  # fmt: skip


def _rules() -> Iterator[Rule]:
    for rule, sentence, source in (*_CANDIDATES, *_STEPS, *_FAILURES):
        yield Rule(rule=rule, sentence=sentence, source=source)
    for difference in DIFFERENCES:
        sentence = f"The rule sets part. Documented: {difference.documented}; released: {difference.shipped}."
        yield Rule(rule=difference.rule, sentence=sentence, source=f"{_DESIGN}; {difference.source}")


RULES: tuple[Rule, ...] = (*_rules(), *PROPOSALS)


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
