"""What stands most in the way of an ask that waits, in one sentence."""

from app.solver.engines.kueue.nominate import Nomination, demands
from app.solver.engines.kueue.protection import fr_name
from app.solver.engines.kueue.snapshot import Snapshot
from app.solver.engines.kueue.whatif import bottleneck, smallest_changes
from app.solver.model.quantity import units
from app.solver.trace import Why

_WORDS = {
    "priority": "has a priority that the policy does not let the ask preempt",
    "not-newer": "has the ask's priority and is not newer",
    "within-nominal": "runs in queues that are within their quota",
    "within-cluster-queue-never": "runs in the ask's own queue, where withinClusterQueue is Never",
    "reclaim-within-cohort-never": "runs in other queues, and reclaimWithinCohort is Never",
    "not-preemptible": "is marked as not preemptible",
    "own-workload": "belongs to the ask itself",
    "already-leaving": "stops for another ask already",
    "ask-would-borrow": "could only go for an ask that does not borrow",
    "queue-back-within-quota": "is in queues that would be back within quota before the ask fits",
    "share-too-low": "is in queues whose share is not high enough against the ask's",
    "not-enough": "could go, but all of it together is not enough",
}


def blocked(snapshot: Snapshot, nomination: Nomination, why: Why) -> None:
    """Record the dominant blocker, and the smallest change that would let the ask in."""
    why.blocked(_sentence(snapshot, nomination, why), *smallest_changes(snapshot, nomination))


def _sentence(snapshot: Snapshot, nomination: Nomination, why: Why) -> str:
    queue, usage = nomination.preemptor.queue, snapshot.usage
    lacks = [
        (amount - usage.available(queue, fr), fr, amount)
        for demand in demands(snapshot, nomination)
        for fr, amount in demand.items()
        if amount > usage.available(queue, fr)
    ]
    if not lacks:
        return "; ".join(nomination.assignment.lacking) or "nothing is short, but nobody may be preempted"
    # The largest lack, against what was wanted: steps of different resources do not compare.
    short, fr, amount = max(lacks, key=lambda lack: (lack[0] / lack[2], -lack[1]))
    resource, most = usage.quotas.frs[fr][1], usage.quotas.potential_available(queue, fr)
    text = f"{fr_name(snapshot, fr)}: {units(short, resource)} more needed; "
    if amount > most:
        return f"{text}even with nothing running the queue could have {units(most, resource)} at most"
    return text + bottleneck(snapshot, queue, fr) + _holders(snapshot, fr, why)


def _holders(snapshot: Snapshot, fr: int, why: Why) -> str:
    """Whose usage of what is short could not be had, by the rule that accounts for most of it."""
    index = {workload.id: i for i, workload in enumerate(snapshot.loaded.workloads)}
    held: dict[str, tuple[int, int]] = {}
    for record in why.candidates():
        amount = dict(snapshot.loaded.amounts(index[record.workload])).get(fr, 0)
        if record.rule in _WORDS and amount:
            total, count = held.get(record.rule, (0, 0))
            held[record.rule] = (total + amount, count + 1)
    if not held:
        return ""
    rule, (total, count) = max(held.items(), key=lambda item: (item[1], item[0]))
    resource = snapshot.usage.quotas.frs[fr][1]
    return f"; most of it ({units(total, resource)} in {count} workload(s)) {_WORDS[rule]}"
