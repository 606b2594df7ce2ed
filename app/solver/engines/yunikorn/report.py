"""What YuniKorn says: decisions and plans, ``POST /v1/shares``, ``POST /v1/effective-settings``, findings."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.solver.compiled import ROOTLESS
from app.solver.engines.yunikorn.candidates import REASONS, Outcome, Silent, counted, path_limits
from app.solver.engines.yunikorn.configuration import (
    KNOWN,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PRIORITY_OFFSET,
    PRIORITY_POLICY,
    QUOTA_DELAY,
    SECOND,
    Amounts,
    CompiledConfiguration,
    QueueSettings,
    compile_configuration,
    parse,
)
from app.solver.engines.yunikorn.overlay import Held, Overlay, Request, check_asks, requests_of
from app.solver.engines.yunikorn.state import CompiledState
from app.solver.model import base
from app.solver.model.base import units
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.decision import Condition, Decision, Placement, Victim
from app.solver.model.problems import Finding, InvalidInput, pointer
from app.solver.model.request import Options
from app.solver.model.state import Ask, State

EVICTED = "PreemptedByScheduler"


def answer(overlay: Overlay, ask: Ask, outcomes: list[tuple[Request, Outcome]], now: int, record: Silent) -> Decision:
    """The decision of one ask from what became of its allocation asks."""
    instant = base.to_datetime(now)
    if len(outcomes) == 1 and outcomes[0][1].kind == "wait":
        return Decision(
            ask=ask.id, outcome="wait", victims=[], conditions=[_condition(overlay, outcomes[0][1], instant)],
            explanation=record.explanation(overlay, outcomes),
        )  # fmt: skip
    kinds = {outcome.kind for _, outcome in outcomes}
    kind = "wait" if "wait" in kinds else "preempt" if "preempt" in kinds else "admit"
    placed = {} if kind == "wait" else {r.task.name: _node(overlay, o) for r, o in outcomes if o.node is not None}
    victims = [
        victim(overlay, task, EVICTED, f"preempted to make room for ask {ask.id} of {ask.queue}", instant)
        for _, outcome in outcomes
        for task in outcome.victims
        if kind == "preempt"
    ]
    nodes = list(dict.fromkeys(placed.values()))
    conditions = [_condition(overlay, outcome, instant) for _, outcome in outcomes]
    return Decision(
        ask=ask.id, outcome=kind, node=nodes[0] if len(nodes) == 1 else None, placements=placed or None,
        victims=victims, conditions=list(dict.fromkeys(conditions)), explanation=record.explanation(overlay, outcomes),
    )  # fmt: skip


def victim(overlay: Overlay, task: int, reason: str, message: str, instant: datetime) -> Victim:
    """A task that goes, and what that frees."""
    state = overlay.state
    workload, name = state.label(task)
    return Victim(
        workload=workload, task=name, queue=state.queue_name(task), node=state.tasks[task].node,
        reason=reason, message=message,
        conditions=[
            Condition(type="Preempted", status="True", reason=reason, message=message, last_transition_time=instant)
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


_UNTRIED = {
    "too-many-applications",
    "user-limit",
    "preemption-off",
    "too-young",
    "checked-lately",
    "never-preempts",
    "already-triggered",
    "attempts-exhausted",
}


def tried(outcome: Outcome) -> bool:
    """Whether the ask looked for victims, so that its next try has to wait."""
    return outcome.kind == "preempt" or (outcome.kind == "wait" and outcome.failed not in _UNTRIED)


def carried(request: Request, outcome: Outcome, now: int) -> dict[str, Any]:
    """The ask's ``yunikorn`` block for the next request, after this one."""
    last = now if tried(outcome) and request.required is None else request.checked
    block: dict[str, Any] = {} if request.ask.yunikorn is None else msgspec.to_builtins(request.ask.yunikorn)
    block["triggered_preemption"] = request.triggered or outcome.kind == "preempt"
    if last is not None:
        block["last_preemption_check_at"] = base.to_datetime(last)
    return block


def _node(overlay: Overlay, outcome: Outcome) -> str:
    assert outcome.node is not None
    return overlay.state.node_names[outcome.node]


def _condition(overlay: Overlay, outcome: Outcome, instant: datetime) -> Condition:
    status = "False"
    if outcome.kind == "admit":
        status, reason, message = "True", "Allocated", f"fits on {_node(overlay, outcome)}"
    elif outcome.kind == "preempt":
        reason = "NodeReserved"
        gone = counted(len(outcome.victims), "preempted task")
        message = f"{_node(overlay, outcome)} is reserved for the ask; it waits for {gone} to leave"
    else:
        reason, message = REASONS[outcome.failed or ""][0], outcome.reason
    return Condition(type="Allocated", status=status, reason=reason, message=message, last_transition_time=instant)


def cancelled(overlay: Overlay, dropped: list[tuple[int, Held]]) -> list[dict[str, str]]:
    """Reservations of other asks that gave way."""
    return [{"node": overlay.state.node_names[node], "ask": held.ask.id} for node, held in dropped]


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """By queue, in whole units: ``fair_share`` is the guarantee (own, else the smallest inherited one),
    ``remaining`` what is left of it (negative when over), ``preemptable`` what could go without a queue on the path
    falling below its guarantee, ``share`` the largest part of a guarantee that is used. The time has no say."""
    del now, options
    check_asks(state, asks)
    overlay = Overlay(state)
    pending = _pending(state, asks)
    queues = state.configuration
    return {
        "queues": {queues.tree.names[q]: _queue(overlay, q, pending.get(q, {})) for q in queues.by_path},
        "workloads": _workloads(state),
    }


def _queue(overlay: Overlay, q: int, pending: dict[str, int | float]) -> dict[str, Any]:
    state, queues = overlay.state, overlay.state.configuration
    used = {r: amount for r, amount in enumerate(state.allocated[q]) if amount}
    leaving = {r: amount for r, amount in enumerate(state.preempting[q]) if amount}
    guarantee = _entitled(state, q)
    left = {r: min(overlay.slack[cell] for cell in cells) for r, cells in queues.path_cells[q].items()}
    preemptable = {
        r: max(0, min(amount - leaving.get(r, 0), -left[r])) if r in left else amount - leaving.get(r, 0)
        for r, amount in used.items()
    }
    shown = state.resources.units
    shown_queue: dict[str, Any] = {
        "fair_share": shown(guarantee), "guaranteed": shown(queues.guaranteed[q] or {}),
        "limit": shown(path_limits(state, q)[q]), "usage": shown(used), "preempting": shown(leaving),
        "remaining": shown(left), "preemptable": shown(preemptable), "pending": pending,
    }  # fmt: skip
    ratios = [(used.get(r, 0) - leaving.get(r, 0)) / amount for r, amount in guarantee.items() if amount]
    if ratios:
        shown_queue["share"] = max(ratios)
    return shown_queue


def _entitled(state: CompiledState, q: int) -> Amounts:
    """The queue's own guarantee; for resources it does not name, the smallest above it."""
    queues = state.configuration
    inherited = {r: min(queues.guarantee_of[cell] for cell in cells) for r, cells in queues.path_cells[q].items()}
    return {**inherited, **(queues.guaranteed[q] or {})}


def _pending(state: CompiledState, asks: list[Ask]) -> dict[int, dict[str, int | float]]:
    """What the asks ask for, by queue of their paths."""
    steps: dict[int, dict[str, int]] = {}
    for ask in asks:
        for request in requests_of(state, ask):
            for q in state.configuration.paths[request.queue]:
                of = steps.setdefault(q, {})
                for r, amount in request.amounts.items():
                    name = request.resources.names[r]
                    of[name] = of.get(name, 0) + amount
    return {q: {name: units(amount, name) for name, amount in of.items()} for q, of in steps.items()}


def _workloads(state: CompiledState) -> dict[str, Any]:
    totals: list[Amounts] = [{} for _ in state.workloads]
    column: list[int] = state.workload.tolist()
    for task, of in enumerate(column):
        for r, amount in state.amounts(task).items():
            totals[of][r] = totals[of].get(r, 0) + amount
    return {
        workload.id: {"queue": workload.queue, "usage": state.resources.units(totals[i])}
        for i, workload in enumerate(state.workloads)
    }


def effective_settings(queues: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Durations in seconds, quotas in whole units; ``sources`` names where each property that isn't default is set.
    What runs has no say."""
    del state
    return {
        "settings": {"rules": queues.rules.name, "release": queues.release, "preemption": queues.preemption},
        "queues": {queues.tree.names[i]: _effective_queue(queues, i) for i in queues.by_path},
    }


def _effective_queue(queues: CompiledConfiguration, i: int) -> dict[str, Any]:
    settings = queues.settings[i]
    return {
        **_effective_properties(settings),
        "leaf": queues.leaf[i],
        "guaranteed": queues.resources.units(queues.guaranteed[i] or {}),
        "limit": queues.resources.units(queues.limit[i] or {}),
        "sources": settings.sources,
    }


def _effective_properties(settings: QueueSettings) -> dict[str, Any]:
    return {
        PREEMPTION_POLICY: settings.preemption_policy,
        PREEMPTION_DELAY: _seconds(settings.preemption_delay),
        PRIORITY_POLICY: "fence" if settings.priority_fence else "default",
        PRIORITY_OFFSET: settings.priority_offset,
        QUOTA_DELAY: _seconds(settings.quota_delay),
    }


def _seconds(nanoseconds: int) -> int | float:
    whole, rest = divmod(nanoseconds, SECOND)
    return nanoseconds / SECOND if rest else whole


OTHER_PROPERTIES = frozenset({"application.sort.policy", "application.sort.priority"})
"""Properties of YuniKorn that have no say in preemption."""


def findings(configuration: Configuration) -> list[Finding]:
    """Property values that fall back, settings without effect, paths that look like ancestors."""
    problems = [problem for i, queue in enumerate(configuration.queues) for problem in _properties(i, queue)]
    try:
        queues = compile_configuration(configuration)
    except InvalidInput:
        return problems
    problems += _without_effect(configuration.queues, queues)
    problems += _prefixes(queues)
    return problems


def _properties(i: int, queue: Queue) -> Iterator[Finding]:
    block = queue.yunikorn
    if block is None:
        return
    template = block.child_template.properties if block.child_template is not None else {}
    for where, properties in ((("properties",), block.properties), (("child_template", "properties"), template)):
        for name, text in sorted(properties.items()):
            place = pointer("queues", i, "yunikorn", *where, name)
            if name not in KNOWN:
                if name not in OTHER_PROPERTIES:
                    detail = f"{name!r} is no property that preemption knows; it is kept and ignored"
                    yield Finding(rule="unknown-property", severity="warning", pointer=place, detail=detail)
                continue
            parsed = parse(name, text)
            if parsed.problem is not None:
                yield Finding(rule=parsed.rule, severity="warning", pointer=place, detail=f"{name}: {parsed.problem}")


def _without_effect(documents: Sequence[Queue], queues: CompiledConfiguration) -> Iterator[Finding]:
    """Settings that nothing reads."""
    for i, queue in enumerate(documents):
        root = queues.tree.parent[i] == ROOTLESS
        properties = queue.yunikorn.properties if queue.yunikorn is not None else {}
        place = ("queues", i, "yunikorn", "properties")
        if root and PREEMPTION_POLICY in properties and not queues.rules.reads_root_policy:
            detail = "preemption.policy has no effect on the root"
            yield Finding(
                rule="root-policy", severity="info", pointer=pointer(*place, PREEMPTION_POLICY), detail=detail
            )
        if not queues.leaf[i] and PREEMPTION_DELAY in properties and not queues.rules.inherits_delay:
            detail = "preemption.delay works on leaf queues only"
            yield Finding(
                rule="parent-delay", severity="info", pointer=pointer(*place, PREEMPTION_DELAY), detail=detail
            )
        if queues.leaf[i] and queues.settings[i].preemption_policy == "fence" and not root:
            detail = "a fence on a leaf: its asks find no victims at all, they are never in their own queue"
            yield Finding(rule="leaf-fence", severity="info", pointer=pointer(*place, PREEMPTION_POLICY), detail=detail)
        dynamic = queue.yunikorn is not None and queue.yunikorn.dynamic
        if dynamic and properties:
            detail = "a queue made at run time takes its properties from the child template, not from its own"
            yield Finding(rule="dynamic-properties", severity="warning", pointer=pointer(*place), detail=detail)


def _prefixes(queues: CompiledConfiguration) -> Iterator[Finding]:
    """Released rules only: a queue whose path begins like another's counts as its ancestor."""
    if not queues.rules.ancestors_by_path:
        return
    names = queues.tree.names
    ordered = queues.by_path
    for place, i in enumerate(ordered):
        if not queues.guaranteed[i] or queues.tree.parent[i] == ROOTLESS:
            continue
        for j in ordered[place + 1 :]:
            if not names[j].startswith(names[i]):
                break
            if not queues.tree.is_ancestor(i, j):
                yield Finding(
                    rule="path-prefix", severity="warning", pointer=pointer("queues", i, "name"),
                    detail=f"{names[j]!r} begins like {names[i]!r}: its asks may take this queue below its guarantee",
                )  # fmt: skip
                break
