"""What objects say of evictions: who was evicted, for whom, and why. Pure.

Kueue: the conditions `Evicted` (reason `Preempted`) and `Preempted` of a Workload; their message names the UID of the
Workload that it was for (pkg/scheduler/preemption). KAI: an Event with reason `Evict`, whose message names the pod and
the PodGroup that it was for (pkg/scheduler/api). YuniKorn: an Event on the pod, whose message names the allocation that
it was for, which is the UID of a pod (pkg/scheduler/objects/events). Evictions for other reasons (a stopped queue, pods
that were not ready in time, a gang that is not whole) name nobody. kube-scheduler: an Event on the pod with reason
`Preempted`, whose message has the UID of the pod or the pod group that it was for (framework/preemption/executor.go).
"""

from collections.abc import Iterable

from app.following.objects import followed_of
from app.formats.kueue.workloads import awaits_victims
from app.formats.objects import Evidence, Item, condition, part, text_of
from app.solver.model.configuration import EngineName

NOT_NAMED = "the cluster does not say for whom"


def evidence(engine: EngineName, kind: str, old: Item | None, new: Item) -> Evidence | None:
    """What ``new`` says of an eviction that ``old`` did not; None for nearly every object."""
    reader = followed_of(engine).evidence.get(kind)
    return None if reader is None else reader(old, new)


def ends(kind: str, old: Item | None, new: Item | None) -> bool:
    """Whether a pod is told to end by this change, or is gone without."""
    if kind != "Pod" or old is None or "deletionTimestamp" in part(old, "metadata"):
        return False
    return new is None or "deletionTimestamp" in part(new, "metadata")


def reserves(item: Item | None) -> bool:
    """Whether a Workload holds quota."""
    return item is not None and condition(item, "QuotaReserved") is not None


def admissions(changes: Iterable[tuple[Item | None, Item | None]]) -> list[Item]:
    """The Workloads that got quota with these changes, as they are with it. Kueue may evict what it only assumes to be
    admitted, and then writes both with one change: it was admitted before it was evicted."""
    return [_standing(new) for old, new in changes if new is not None and reserves(new) and not reserves(old)]


def _standing(item: Item) -> Item:
    """An admission takes back that a Workload is evicted: where it says so, that came after."""
    if condition(item, "Evicted") is None:
        return item
    status = part(item, "status")
    kept = [
        one for one in status["conditions"] if one not in (condition(item, "Evicted"), condition(item, "Preempted"))
    ]
    return {**item, "status": {**status, "conditions": kept}}


def preempts(item: Item) -> bool:
    """Whether a Workload waits for victims to stop, as Kueue's scheduler says of it."""
    waits = condition(item, "QuotaReserved", "False")
    return waits is not None and awaits_victims(text_of(waits.get("message")))


def nominated(item: Item) -> bool:
    """Whether Kueue's scheduler has had a look at a Workload that waits: it writes down why it waits."""
    return condition(item, "QuotaReserved", None) is not None
