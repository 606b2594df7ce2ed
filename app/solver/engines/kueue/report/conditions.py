"""The conditions and messages that Kueue would write: of victims, of the ask, and of what is short."""

from collections.abc import Sequence
from datetime import datetime

from app.solver.compiled.tree import Tree
from app.solver.engines.kueue.decide.overlay import Overlay, Reason, Target
from app.solver.model.decision import Condition, Shortage, Units, Victim
from app.solver.model.instant import at
from app.solver.model.quantity import units
from app.solver.model.state import Ask, Workload

_WAY: dict[Reason, str] = {
    "InClusterQueue": "in the ClusterQueue",
    "InCohortReclamation": "due to reclamation within the cohort",
    "InCohortReclaimWhileBorrowing": "due to reclamation within the cohort while borrowing",
    "InCohortFairSharing": "due to Fair Sharing within the cohort",
}
_UNKNOWN = "UNKNOWN"
_MOST_NAMED = 3
_MOST_SAID = 20


def path(tree: Tree, node: int) -> str:
    """From the root down, as Kueue writes it in messages: ``/root/team/queue``."""
    return "/" + "/".join(tree.names[i] for i in reversed(tree.path(node)))


def victims(overlay: Overlay, ask: Ask, queue: int, targets: Sequence[Target]) -> list[Victim]:
    """The targets in Kueue's order, each with its Evicted and Preempted conditions as of the overlay's ``now``."""
    tree, when = overlay.state.configuration.tree, at(overlay.now)
    mine = path(tree, queue)
    return [_victim(overlay, ask, mine, target, when) for target in targets]


def _victim(overlay: Overlay, ask: Ask, preemptor_path: str, target: Target, when: datetime) -> Victim:
    workload, reason = target
    state = overlay.state
    tree, node = state.configuration.tree, int(state.queue[workload])
    message = (
        f"Preempted to accommodate a workload (UID: {ask.uid or _UNKNOWN}) {_WAY[reason]}; "
        f"preemptor path: {preemptor_path}; preemptee path: {path(tree, node)}"
    )
    return Victim(
        workload=state.workloads[workload].id, queue=tree.names[node], reason=reason, message=message,
        conditions=[
            _condition("Evicted", "Preempted", message, when),
            _condition("Preempted", reason, message, when),
            *_aftermath(state.workloads[workload], message, when),
        ],
        freed=freed(overlay, workload), on_preemption=state.workloads[workload].on_preemption,
    )  # fmt: skip


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


def summary(ask: Ask, victims: Sequence[Victim]) -> str:
    """What is asked of whom, in one sentence."""
    queues = sorted({victim.queue for victim in victims})
    where = ", ".join(queues[:_MOST_NAMED]) + (f" and {len(queues) - _MOST_NAMED} more" * (len(queues) > _MOST_NAMED))
    return f"{ask.id} runs in {ask.queue} once {len(victims)} workload(s) of {where} stop"


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
    return _condition("QuotaReserved", "QuotaReserved", f"Quota reserved in ClusterQueue {name}", at(overlay.now))


def pending(overlay: Overlay, message: str) -> Condition:
    """The ask has no quota yet, and why."""
    return Condition(
        type="QuotaReserved", status="False", reason="Pending", message=message,
        last_transition_time=at(overlay.now),
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
                    resource=resource, flavor=flavor, queue=name, requested=units(amount, resource),
                    available=units(available, resource), short=units(amount - available, resource),
                )
            )  # fmt: skip
    return out


def shortage_text(overlay: Overlay, queue: int, request: Sequence[tuple[int, int]]) -> str:
    """The shortages as a person reads them; what is past every quota and limit on the way up says so."""
    quotas, wanted = overlay.usage.quotas, dict(request)
    found = shortages(overlay, queue, request)
    parts: list[str] = []
    for short in found[:_MOST_SAID]:
        fr = quotas.fr_index[(short.flavor or "", short.resource)]
        most = quotas.potential_available(queue, fr)
        part = f"insufficient unused quota for {short.resource} in flavor {short.flavor}, {short.short} more needed"
        if wanted[fr] > most:
            part += f" (requested {short.requested}, while this queue can never have more than"
            part += f" {units(most, short.resource)})"
        parts.append(part)
    more = [f"and {len(found) - _MOST_SAID} more"] if len(found) > _MOST_SAID else []
    return "; ".join(parts + more)
