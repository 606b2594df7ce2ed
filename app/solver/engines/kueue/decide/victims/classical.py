"""Classical preemption: candidates by their place in the cohort tree, up to two attempts, then minimisation.

Source: Kueue ``pkg/scheduler/preemption/preemption.go`` (classicalPreemptions) and ``classical/``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.solver.engines.kueue.decide.overlay import Preemptor, Reason, Snapshot, Target
from app.solver.engines.kueue.decide.recorder import SILENT, Recorder
from app.solver.engines.kueue.decide.victims import minimise, order
from app.solver.engines.kueue.decide.victims.order import Indices
from app.solver.stopping import safe_point


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates by class. ``hierarchical``: of queues found where the preemptor's side has room for the whole request
    below their common cohort, so that it reclaims what is its own; ``priority``: of the other queues.

    ``ancestor``: by queue, the cohort at which it was found. ``with_borrowing``: those of ``priority`` that may go even
    if the preemptor borrows in the end (borrowWithinCohort)."""

    own: Indices
    hierarchical: Indices
    priority: Indices
    ancestor: dict[int, int]
    with_borrowing: frozenset[int]


def search(
    snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], record: Recorder = SILENT
) -> list[Target]:
    """Victims, empty when no attempt makes room. See ``targets.get_targets``."""
    found = collect(snapshot, preemptor, contested)
    candidates = _Once(_in_order(snapshot, found))
    for borrow in _attempts(snapshot, preemptor, contested, found):
        record.attempt_begins(snapshot, borrow=borrow)
        targets = _attempt(snapshot, preemptor, contested, found, candidates, borrow, record)
        if targets:
            return targets
    return []


def collect(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int]) -> Found:
    """Own candidates, and those of others found while walking up from the queue to its root."""
    configured, queue = snapshot.loaded.configured, preemptor.queue
    policy, path = configured.policy[queue], configured.tree.path(queue)
    nobody: Indices = np.zeros(0, dtype=np.int64)
    own = hierarchical = priority = nobody
    if policy.within_cluster_queue != "Never":
        own = order.using(snapshot, [queue], contested)
        own = order.allowed(snapshot, preemptor, policy.within_cluster_queue, own)
    ancestor: dict[int, int] = {}
    if len(path) > 1 and policy.reclaim_within_cohort != "Never":
        reclaiming: list[int] = []
        others: list[int] = []
        fits, advantage = snapshot.usage.fits_by_level(queue, dict(preemptor.request)), False
        for level, cohort in enumerate(path[1:]):
            # The advantage of a lower level, once there, holds all the way up.
            advantage = advantage or fits[level]
            for other in _exceeding(snapshot, cohort, path[level], contested):
                ancestor[other] = cohort
                (reclaiming if advantage else others).append(other)
        hierarchical, priority = (
            order.allowed(snapshot, preemptor, policy.reclaim_within_cohort, order.using(snapshot, queues, contested))
            for queues in (reclaiming, others)
        )
    return Found(own, hierarchical, priority, ancestor, _with_borrowing(snapshot, preemptor, priority))


def _exceeding(snapshot: Snapshot, cohort: int, visited: int, contested: frozenset[int]) -> list[int]:
    """Queues below ``cohort``, outside ``visited``, that borrow in a contested flavor-resource, as does every cohort
    on the way to them: a subtree within its quota is left alone as a whole."""
    configured, usage = snapshot.loaded.configured, snapshot.usage
    out: list[int] = []
    pending = [cohort]
    while pending:
        node = pending.pop()
        pending += [c for c in configured.child_cohorts[node] if c != visited and usage.exceeds(c, contested)]
        out += [q for q in configured.child_queues[node] if q != visited and usage.exceeds(q, contested)]
    return out


def _with_borrowing(snapshot: Snapshot, preemptor: Preemptor, candidates: Indices) -> frozenset[int]:
    """Candidates of lower priority than the preemptor, and at most the threshold, where borrowWithinCohort is on."""
    policy = snapshot.loaded.configured.policy[preemptor.queue]
    if not policy.borrow_within_cohort or not len(candidates):
        return frozenset()
    priority = snapshot.loaded.priority[candidates]
    low = priority < preemptor.priority
    if policy.threshold is not None:
        low &= priority <= policy.threshold
    return frozenset(candidates[low].tolist())


def _in_order(snapshot: Snapshot, found: Found) -> Iterator[int]:
    """Evicted ones of every class first; in both halves hierarchical before priority before own candidates."""
    classes = [order.split_evicted(snapshot, of) for of in (found.hierarchical, found.priority, found.own)]
    depth = snapshot.loaded.configured.tree.depth
    nearest_first = {queue: -depth[cohort] for queue, cohort in found.ancestor.items()}
    return order.chain(order.ascending(snapshot, of[half], nearest_first) for half in (0, 1) for of in classes)


def _attempts(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], found: Found) -> tuple[bool, ...]:
    """Whether to allow borrowing, attempt by attempt."""
    if not len(found.hierarchical) and not len(found.priority):
        return (True,)
    if snapshot.loaded.configured.policy[preemptor.queue].borrow_within_cohort:
        return (True, False)
    if not _under_nominal(snapshot, preemptor.queue, contested):
        return (True,)
    return (True, False) if len(found.hierarchical) else (False, True)


def _under_nominal(snapshot: Snapshot, queue: int, contested: frozenset[int]) -> bool:
    """Whether the queue uses strictly less than its nominal quota of every contested flavor-resource."""
    quotas, used = snapshot.usage.quotas, snapshot.usage.used
    return all(used[cell] < quotas.nominal[cell] for cell in (quotas.cells[queue][fr] for fr in contested))


def _attempt(
    snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], found: Found,
    candidates: "_Once", borrow: bool, record: Recorder,
) -> list[Target]:  # fmt: skip
    """Remove candidates in order until the preemptor fits, then put back whom it does not need gone."""
    loaded, usage, queue = snapshot.loaded, snapshot.usage, preemptor.queue
    hierarchical = frozenset(found.hierarchical.tolist()) if borrow and len(found.priority) else frozenset[int]()
    targets: list[Target] = []
    for workload in candidates:
        safe_point()
        of = int(loaded.queue[workload])
        reason: Reason = "InClusterQueue"
        if of != queue:
            reason = "InCohortReclaimWhileBorrowing" if workload in found.with_borrowing else "InCohortReclamation"
            if borrow and reason == "InCohortReclamation" and len(found.priority) and workload not in hierarchical:
                record.would_borrow(snapshot, workload)
                continue
            if not _still_exceeds(snapshot, of, found.ancestor[of], contested):
                record.back_within(snapshot, workload)
                continue
        snapshot.remove(workload)
        targets.append((workload, reason))
        fits = usage.fits(queue, preemptor.request, borrow=borrow)
        record.taken(snapshot, preemptor, targets, fits=fits)
        if fits:
            return minimise.spare(snapshot, preemptor, targets, borrow, record)
    record.search_failed(snapshot, targets)
    for workload, _ in targets:
        snapshot.restore(workload)
    return []


def _still_exceeds(snapshot: Snapshot, queue: int, ancestor: int, contested: frozenset[int]) -> bool:
    """Whether the queue, and every cohort between it and ``ancestor``, borrows at this moment."""
    parent, node = snapshot.loaded.configured.tree.parent, queue
    while node != ancestor:
        if not snapshot.usage.exceeds(node, contested):
            return False
        node = parent[node]
    return True


class _Once:
    """An iterator that can be gone over again; what was sorted for the first attempt serves the second."""

    def __init__(self, source: Iterator[int]) -> None:
        self._source = source
        self._seen: list[int] = []

    def __iter__(self) -> Iterator[int]:
        yield from self._seen
        for item in self._source:
            self._seen.append(item)
            yield item
