"""What objects say of evictions: who was evicted, for whom, and why. Pure.

Kueue: the conditions `Evicted` (reason `Preempted`) and `Preempted` of a Workload; their message names the UID of the
Workload that it was for (pkg/scheduler/preemption). KAI: an Event with reason `Evict`, whose message names the pod and
the PodGroup that it was for (pkg/scheduler/api). YuniKorn: an Event on the pod, whose message names the allocation that
it was for, which is the UID of a pod (pkg/scheduler/objects/events). Evictions for other reasons (a stopped queue, pods
that were not ready in time, a gang that is not whole) name nobody. kube-scheduler: an Event on the pod with reason
`Preempted`, whose message has the UID of the pod or the pod group that it was for (framework/preemption/executor.go).
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from app.following.objects import Item, Key, condition, instant, key_of, part
from app.formats.kueue.workloads import awaits_victims
from app.solver.model.configuration import EngineName

NOT_NAMED = "the cluster does not say for whom"

_KUEUE = re.compile(r"\(UID: ([^,)\s]+)")
_KAI = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted by (higher priority )?workload ([^/\s]+)/(\S+)")
_KAI_MOVED = re.compile(r"Pod ([^/\s]+)/(\S+) was preempted and rescheduled")
_YUNIKORN = re.compile(r"Preempted by (\S+) from application (\S+) in (\S+)")
_YUNIKORN_QUOTA = re.compile(r"Preempted by [Qq]uota change")
_KUBE_SCHEDULER = re.compile(r"Preempted by (?:an? )?\S+ (\S+) on node ")
_UNKNOWN = "UNKNOWN"
"""What Kueue writes where it does not know."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One eviction. ``victim``: namespace and name of its Workload or Pod; ``by``: the UID of whom it was for, or
    `namespace/name`; empty where nobody is named; ``at``: when, as the cluster says it; ``message``: in its words;
    ``preempted``: whether the scheduler did it to let others run."""

    victim: Key
    by: str
    reason: str | None
    at: datetime | None
    message: str = ""
    preempted: bool = True


def evidence(engine: EngineName, kind: str, old: Item | None, new: Item) -> Evidence | None:
    """What ``new`` says of an eviction that ``old`` did not; None for nearly every object."""
    reader = _READERS.get((engine, kind))
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
    return waits is not None and awaits_victims(_text(waits.get("message")))


def nominated(item: Item) -> bool:
    """Whether Kueue's scheduler has had a look at a Workload that waits: it writes down why it waits."""
    return condition(item, "QuotaReserved", None) is not None


def _kueue(old: Item | None, new: Item) -> Evidence | None:
    evicted = condition(new, "Evicted")
    if old is None or evicted is None or (was := condition(old, "Evicted")) == evicted:
        return None
    if was is not None and was.get("lastTransitionTime") == evicted.get("lastTransitionTime"):
        return None
    at, said, why = (
        instant(evicted.get("lastTransitionTime")),
        _text(evicted.get("message")),
        _text(evicted.get("reason")),
    )
    if why != "Preempted":
        return Evidence(key_of(new), "", why, at, said, preempted=False) if why else None
    preempted = condition(new, "Preempted") or {}
    message = _text(preempted.get("message")) or said
    found = _KUEUE.search(message)
    by = found[1] if found is not None and found[1] != _UNKNOWN else ""
    return Evidence(key_of(new), by, _text(preempted.get("reason")) or None, at, message)


def _kai(old: Item | None, new: Item) -> Evidence | None:
    message = _new_message(old, new)
    if new.get("reason") != "Evict" or message is None:
        return None
    if (found := _KAI.match(message)) is not None:
        space, pod, higher, by_space, by = found.groups()
        reason = "preempt" if higher else "reclaim"
        return Evidence((space, pod), f"{by_space}/{by.removesuffix('.')}", reason, _event_time(new), message)
    if (moved := _KAI_MOVED.match(message)) is not None:
        return Evidence((moved[1], moved[2]), "", None, _event_time(new), message)
    about = part(new, "involvedObject")
    if about.get("kind") != "Pod":
        return None
    victim = _text(about.get("namespace")), _text(about.get("name"))
    return Evidence(victim, "", None, _event_time(new), message, preempted=False)


def _yunikorn(old: Item | None, new: Item) -> Evidence | None:
    message, about = _new_message(old, new), part(new, "involvedObject")
    if message is None or about.get("kind") != "Pod":
        return None
    victim = _text(about.get("namespace")), _text(about.get("name"))
    if (found := _YUNIKORN.match(message)) is not None:
        return Evidence(victim, found[1], None, _event_time(new), message)
    if _YUNIKORN_QUOTA.match(message):
        return Evidence(victim, "", None, _event_time(new), message)
    return None


def _kube_scheduler(old: Item | None, new: Item) -> Evidence | None:
    message, about = _new_message(old, new), part(new, "involvedObject")
    found = None if message is None or new.get("reason") != "Preempted" else _KUBE_SCHEDULER.match(message)
    if found is None or message is None or about.get("kind") != "Pod":
        return None
    victim = _text(about.get("namespace")), _text(about.get("name"))
    return Evidence(victim, found[1], "PreemptionByScheduler", _event_time(new), message)


def _new_message(old: Item | None, new: Item) -> str | None:
    """What an Event says; None where it is only counted on."""
    message = _text(new.get("message"))
    return message if old is None or old.get("message") != message else None


def _event_time(event: Item) -> datetime | None:
    times = (instant(event.get(name)) for name in ("eventTime", "lastTimestamp", "firstTimestamp"))
    return next((at for at in times if at is not None), None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_READERS: dict[tuple[EngineName, str], Callable[[Item | None, Item], Evidence | None]] = {
    ("kueue", "Workload"): _kueue,
    ("kai", "Event"): _kai,
    ("yunikorn", "Event"): _yunikorn,
    ("kube-scheduler", "Event"): _kube_scheduler,
}
