"""The answer for one ask as the wire has it, with the conditions and messages that Kueue would write.

Also what every queue and cohort is entitled to, uses and borrows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.solver.compiled import ROOTLESS, Tree
from app.solver.engines.kueue.candidates import Recorder
from app.solver.engines.kueue.configuration import DEFAULT_FLAVOR, CompiledConfiguration, Quotas
from app.solver.engines.kueue.cycle import demands
from app.solver.engines.kueue.fair_share import lendable, share
from app.solver.engines.kueue.flavors import never_fits
from app.solver.engines.kueue.nomination import CycleUsage, Mode, Nomination, Reason, Target
from app.solver.engines.kueue.overlay import Overlay, Usage
from app.solver.engines.kueue.state import CompiledState
from app.solver.engines.kueue.topology.room import Rooms, shown
from app.solver.model.base import to_datetime, units, units_of
from app.solver.model.decision import Condition, Decision, Shortage, Units, Victim
from app.solver.model.kueue import TopologyAssignment
from app.solver.model.request import Options
from app.solver.model.state import Ask, Workload

_WAY: dict[Reason, str] = {
    "InClusterQueue": "in the ClusterQueue",
    "InCohortReclamation": "due to reclamation within the cohort",
    "InCohortReclaimWhileBorrowing": "due to reclamation within the cohort while borrowing",
    "InCohortFairSharing": "due to Fair Sharing within the cohort",
}
_UNKNOWN = "UNKNOWN"
_MOST_SAID = 20
_SHOWN_DOMAINS = 1000


def path(tree: Tree, node: int) -> str:
    """From the root down, as Kueue writes it in messages: ``/root/team/queue``."""
    return "/" + "/".join(tree.names[i] for i in reversed(tree.path(node)))


def eviction_details(overlay: Overlay, ask: Ask, queue: int, targets: Sequence[Target]) -> list[Victim]:
    """The targets in Kueue's order, each with its Evicted and Preempted conditions as of the overlay's ``now``."""
    state, when = overlay.state, to_datetime(overlay.now)
    tree = state.configuration.tree
    victims: list[Victim] = []
    said: dict[tuple[int, Reason], list[Condition]] = {}
    for target, reason in targets:
        workload, node = state.workloads[target], int(state.queue[target])
        conditions = said.get((node, reason))
        if conditions is None:
            message = (
                f"Preempted to accommodate a workload (UID: {ask.uid or _UNKNOWN}) {_WAY[reason]}; "
                f"preemptor path: {path(tree, queue)}; preemptee path: {path(tree, node)}"
            )
            conditions = said[node, reason] = [
                _condition("Evicted", "Preempted", message, when), _condition("Preempted", reason, message, when),
            ]  # fmt: skip
        message = conditions[0].message
        victims.append(
            Victim(
                workload=workload.id, queue=tree.names[node], reason=reason, message=message,
                conditions=[*conditions, *_aftermath(workload, message, when)],
                freed=freed(overlay, target), on_preemption=workload.on_preemption,
            )
        )  # fmt: skip
    return victims


def _aftermath(workload: Workload, message: str, when: datetime) -> list[Condition]:
    """What happens to the victim afterwards, where it says so itself (KEP-83: onPreemption)."""
    if workload.on_preemption is None:
        return []
    requeued = workload.on_preemption == "Requeue"
    return [
        Condition(
            type="Requeued", status="True" if requeued else "False",
            reason="Preempted" if requeued else "TerminatedOnPreemption",
            message=message if requeued else "Terminates on preemption: it is not queued again",
            last_transition_time=when,
        )
    ]  # fmt: skip


def beyond(victims: Sequence[Victim]) -> list[str] | None:
    """The rule that goes beyond Kueue in how these victims end, if any: Kueue queues every one of them again."""
    return ["on_preemption"] if any(victim.on_preemption == "Terminate" for victim in victims) else None


def freed(overlay: Overlay, workload: int) -> dict[str, Units]:
    """What the workload gives back, by resource over all its flavors, in whole units."""
    totals: dict[str, int] = {}
    for fr, amount in overlay.state.amounts(workload):
        resource = overlay.usage.quotas.frs[fr][1]
        totals[resource] = totals.get(resource, 0) + amount
    return {resource: units(amount, resource) for resource, amount in sorted(totals.items()) if amount}


def _condition(kind: str, reason: str, message: str, when: datetime) -> Condition:
    return Condition(type=kind, status="True", reason=reason, message=message, last_transition_time=when)


def reserved(overlay: Overlay, queue: int) -> Condition:
    """The ask has its quota."""
    name = overlay.state.configuration.tree.names[queue]
    return _condition(
        "QuotaReserved", "QuotaReserved", f"Quota reserved in ClusterQueue {name}", to_datetime(overlay.now)
    )


def pending_condition(overlay: Overlay, message: str) -> Condition:
    """The ask has no quota yet, and why."""
    return Condition(
        type="QuotaReserved", status="False", reason="Pending", message=message,
        last_transition_time=to_datetime(overlay.now),
    )  # fmt: skip


def shortages(overlay: Overlay, queue: int, request: Sequence[tuple[int, int]]) -> list[Shortage]:
    """What is short, by flavor and resource, against what the queue can take at this moment."""
    usage, name = overlay.usage, overlay.state.configuration.tree.names[queue]
    out: list[Shortage] = []
    frs = usage.quotas.frs
    for fr, amount in sorted(request, key=lambda pair: frs[pair[0]]):
        available = usage.available(queue, fr)
        if amount > available:
            flavor, resource = frs[fr]
            out.append(
                Shortage(
                    resource=resource, flavor=flavor, queue=name, node=None,
                    **units_of(resource, requested=amount, available=available, short=amount - available),
                )
            )  # fmt: skip
    return out


def shortage_text(overlay: Overlay, queue: int, request: Sequence[tuple[int, int]], lacks: list[Shortage]) -> str:
    """The shortages as a person reads them; what is past every quota and limit on the way up says so."""
    quotas, wanted = overlay.usage.quotas, dict(request)
    parts: list[str] = []
    for short in lacks[:_MOST_SAID]:
        fr = quotas.fr_index[(short.flavor or "", short.resource)]
        most = quotas.potential_available(queue, fr)
        part = f"insufficient unused quota for {short.resource} in flavor {short.flavor}, {short.short} more needed"
        if wanted[fr] > most:
            part += f" (requested {short.requested}, while this queue can never have more than"
            part += f" {units(most, short.resource)})"
        parts.append(part)
    more = [f"and {len(lacks) - _MOST_SAID} more"] if len(lacks) > _MOST_SAID else []
    return "; ".join(parts + more)


def answer(
    overlay: Overlay,
    nomination: Nomination,
    record: Recorder,
    waiting: str | None = None,
    cycle_usage: CycleUsage | None = None,
) -> Decision:
    """What becomes of a nominated ask. ``waiting``: why it waits although its nomination alone would let it go on;
    ``cycle_usage``: of the cycle that it is part of."""
    goes = waiting is None and nomination.assignment.mode is not Mode.NO_FIT
    if goes and nomination.assignment.mode is Mode.FIT:
        return _admitted(overlay, nomination, record)
    if goes and nomination.targets:
        return _preempting(overlay, nomination, record)
    if waiting is None:
        record.blocked(overlay, nomination, cycle_usage)
    return _waiting(overlay, nomination, record, waiting)


def _admitted(overlay: Overlay, nomination: Nomination, record: Recorder) -> Decision:
    ask, assignment = nomination.ask, nomination.assignment
    record.fits(ask)
    return Decision(
        ask=ask.id, outcome="admit", assignment=assignment.flavors(), borrowing=assignment.level > 0, victims=[],
        topology_assignment=_places(overlay, nomination),
        counts=_counts(nomination), conditions=[reserved(overlay, nomination.preemptor.queue)],
        explanation=record.explanation(),
    )  # fmt: skip


def _preempting(overlay: Overlay, nomination: Nomination, record: Recorder) -> Decision:
    ask, assignment, queue = nomination.ask, nomination.assignment, nomination.preemptor.queue
    wanted = nomination.preemptor.request
    victims = eviction_details(overlay, ask, queue, nomination.targets)
    record.preempts(ask, victims)
    lacks = shortages(overlay, queue, wanted)
    reasons = "; ".join(filter(None, [_misfit(nomination), shortage_text(overlay, queue, wanted, lacks)]))
    pending = f"{reasons}. " if reasons else ""
    pending += f"Pending the preemption of {len(nomination.targets)} workload(s)"
    return Decision(
        ask=ask.id, outcome="preempt", assignment=assignment.flavors(), borrowing=assignment.level > 0,
        topology_assignment=_places(overlay, nomination),
        counts=_counts(nomination), victims=victims, shortages=lacks or None,
        beyond=beyond(victims), conditions=[pending_condition(overlay, pending)],
        explanation=record.explanation(),
    )  # fmt: skip


def _waiting(overlay: Overlay, nomination: Nomination, record: Recorder, waiting: str | None) -> Decision:
    ask, assignment, queue = nomination.ask, nomination.assignment, nomination.preemptor.queue
    wanted = [pair for demand in demands(overlay, nomination) for pair in demand.items()]
    never = None if nomination.pinned else never_fits(overlay.state.configuration, queue, ask.tasks)
    hopeless = never is not None
    lacks = shortages(overlay, queue, wanted)
    text = shortage_text(overlay, queue, wanted, lacks)
    reasons = "; ".join(filter(None, [waiting, never, *assignment.lacking, text]))
    if not reasons:
        reasons = "; ".join(filter(None, [_misfit(nomination), "no workload may be preempted"]))
    record.waits(ask, reasons, hopeless=hopeless)
    return Decision(
        ask=ask.id, outcome="infeasible" if hopeless else "wait", victims=[], shortages=lacks or None,
        conditions=[pending_condition(overlay, reasons)], explanation=record.explanation(),
    )  # fmt: skip


def _misfit(nomination: Nomination) -> str:
    """Which of its pods find no places as things are, where quota is there."""
    misfit = nomination.assignment.misfit
    return "" if misfit is None else f"{misfit.task}: {misfit.reason}"


def waits_behind(overlay: Overlay, ask: Ask, head: Ask, record: Recorder) -> Decision:
    """Another ask of its queue is the head of a cycle."""
    configuration = overlay.state.configuration
    strict = configuration.policy[configuration.tree.index[ask.queue]].strict_fifo
    rest = (
        "nothing of a StrictFIFO queue goes before its head is admitted"
        if strict
        else "one ask of a queue is tried in a cycle; a head that can't be admitted steps aside in the next"
    )
    record.behind(ask, head, rest)
    message = f"Waits behind {head.id}, the head of ClusterQueue {ask.queue}: {rest}"
    return Decision(
        ask=ask.id, outcome="wait", victims=[], conditions=[pending_condition(overlay, message)],
        explanation=record.explanation(),
    )  # fmt: skip


def _places(overlay: Overlay, nomination: Nomination) -> dict[str, TopologyAssignment] | None:
    if overlay.room is None or not nomination.places:
        return None
    forests = overlay.room.rooms.forests
    return {task: shown(forests[place.flavor], place.pods) for task, place in nomination.places.items()}


def _counts(nomination: Nomination) -> dict[str, int] | None:
    """Sizes by pod set, where they are reduced."""
    tasks, counts = nomination.ask.tasks, nomination.assignment.counts
    if counts == [task.count for task in tasks]:
        return None
    return {task.name: count for task, count in zip(tasks, counts, strict=True)}


MOST = 2**63 - 1
"""What Kueue reports where a queue of weight 0 borrows: no number is large enough."""


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """Queues and cohorts by name, quantities in whole units, flavors of a resource added up.

    ``fair_share``: the nominal quota of the subtree; ``usage``; ``borrowed``: usage beyond it, flavor by flavor;
    ``lendable``: the most that the parent could give, what ``share`` is measured against; ``share``: the weighted
    share as Kueue's status shows it, rounded up; ``precise_share``: the same as it is compared, absent where it is
    infinite; ``dominant_resource``: the resource that makes the share; ``flavors``: see ``_by_flavor``. With
    topologies: see ``_topologies``."""
    del asks, now  # what waits has no share here, and shares do not move with time
    configuration, usage = state.configuration, Usage.of(state)
    body = {"queues": {name: _line(configuration, usage, node) for node, name in enumerate(configuration.tree.names)}}
    return body if state.rooms is None else body | {"topologies": _topologies(state.rooms)}


def _topologies(rooms: Rooms) -> dict[str, Any]:
    """By flavor that has a topology, by level: each domain with what is left there (``free``) and the most of each
    resource that is left in one domain of the lowest level (``largest``), the first of many."""
    return {
        flavor: [
            {
                "level": level, "domains_in_all": len(domains),
                "domains": [
                    {"values": list(domain.values), "free": _units(free), "largest": _units(largest)}
                    for domain, free, largest in domains[:_SHOWN_DOMAINS]
                ],
            }
            for level, domains in zip(forest.levels, rooms.free(flavor), strict=True)
        ]
        for flavor, forest in rooms.forests.items()
    }  # fmt: skip


def _line(configuration: CompiledConfiguration, usage: Usage, node: int) -> dict[str, Any]:
    quotas, cells = usage.quotas, usage.quotas.cells[node]
    parent = configuration.tree.parent[node]
    over = {fr: max(0, usage.used[cells[fr]] - quotas.subtree[cells[fr]]) for fr in quotas.own[node]}
    borrowed = {} if parent == ROOTLESS else _by_resource(quotas, over.items())
    pool = {} if parent == ROOTLESS else lendable(quotas, parent)
    mine = share(configuration, usage, node)
    out: dict[str, Any] = {
        "fair_share": _units(_by_resource(quotas, ((fr, quotas.subtree[cell]) for fr, cell in cells.items()))),
        "usage": _units(_by_resource(quotas, ((fr, usage.used[cell]) for fr, cell in cells.items()))),
        "borrowed": _units(borrowed),
        "lendable": _units(pool),
        "weight": configuration.weight[node],
        "share": MOST if mine.weighted >= MOST else math.ceil(mine.value),
    }
    if not math.isinf(mine.weighted):
        out["precise_share"] = mine.value
    ratios = {r: amount * 1000.0 / pool[r] for r, amount in borrowed.items() if amount and pool[r] > 0}
    if ratios:
        out["dominant_resource"] = max(sorted(ratios), key=ratios.__getitem__)
    if any(flavor != DEFAULT_FLAVOR for flavor, _ in configuration.quotas.frs):
        out["flavors"] = _by_flavor(usage, cells, borrows=parent != ROOTLESS)
    return out


def _by_flavor(
    usage: Usage, cells: Mapping[int, int], *, borrows: bool
) -> dict[str, dict[str, dict[str, int | float]]]:
    """The same by flavor and resource, where quotas name flavors: ``fair_share``, ``usage``, ``borrowed``, and
    ``lendable``, what of the fair share it does not use and its parent may give to others."""
    quotas, lines = usage.quotas, dict[str, dict[str, dict[str, int | float]]]()
    for fr, cell in cells.items():
        flavor, resource = quotas.frs[fr]
        mine, used = quotas.subtree[cell], usage.used[cell]
        amounts = {"fair_share": mine, "usage": used}
        if borrows:
            amounts |= {"borrowed": max(0, used - mine), "lendable": max(0, mine - max(used, quotas.local[cell]))}
        lines.setdefault(flavor, {})[resource] = units_of(resource, **amounts)
    return lines


def _by_resource(quotas: Quotas, amounts: Iterable[tuple[int, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for fr, amount in amounts:
        resource = quotas.frs[fr][1]
        out[resource] = out.get(resource, 0) + amount
    return out


def _units(steps: Mapping[str, int]) -> dict[str, int | float]:
    return {resource: units(amount, resource) for resource, amount in sorted(steps.items())}
