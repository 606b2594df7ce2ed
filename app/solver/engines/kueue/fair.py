"""Fair sharing preemption: who goes is decided by the shares of queues and cohorts.

Source: Kueue ``pkg/scheduler/preemption/preemption.go`` (fairPreemptions) and ``fairsharing/``. The ask's own usage
counts in every share from the start of the search to its end; it is left out only where a fit is tested.
"""

import math

import numpy as np

from app.solver.engines.kueue import minimise, order
from app.solver.engines.kueue.share import Share, share
from app.solver.engines.kueue.snapshot import Preemptor, Reason, Snapshot, Target
from app.solver.engines.kueue.tournament import Tournament, group
from app.solver.trace import SILENT, Why


def search(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], why: Why = SILENT) -> list[Target]:
    """Victims, empty when no set of them makes room. See ``targets.get_targets``."""
    candidates = collect(snapshot, preemptor, contested)
    if not candidates:
        return []
    strategies = snapshot.loaded.configured.strategies
    search = _Search(snapshot, preemptor, contested, why)
    snapshot.usage.add(preemptor.queue, preemptor.request)
    fits = search.first_round(candidates, final=strategies[0] == "LessThanOrEqualToFinalShare")
    if not fits and len(strategies) > 1:
        fits = search.second_round()
    snapshot.usage.remove(preemptor.queue, preemptor.request)
    if fits:
        return minimise.spare(snapshot, preemptor, search.targets, True, why)
    for workload, _ in search.targets:
        snapshot.restore(workload)
    return []


def collect(snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int]) -> dict[int, list[int]]:
    """Candidates by queue: the preemptor's own by its policy, and those of every queue of the same tree that uses more
    than its nominal quota of a contested flavor-resource."""
    configured, queue = snapshot.loaded.configured, preemptor.queue
    policy = configured.policy[queue]
    own = order.using(snapshot, [queue], contested)
    parts = [order.allowed(snapshot, preemptor, policy.within_cluster_queue, own)]
    if configured.tree.parent[queue] >= 0 and policy.reclaim_within_cohort != "Never":
        others = [q for q in configured.queues_of(queue) if q != queue and snapshot.usage.exceeds(q, contested)]
        using = order.using(snapshot, others, contested)
        parts.append(order.allowed(snapshot, preemptor, policy.reclaim_within_cohort, using))
    return group(snapshot, np.concatenate(parts).tolist())


class _Search:
    """One search. ``targets``: taken so far, all removed from the snapshot."""

    def __init__(self, snapshot: Snapshot, preemptor: Preemptor, contested: frozenset[int], why: Why) -> None:
        self.targets: list[Target] = []
        self._snapshot = snapshot
        self._preemptor = preemptor
        self._contested = contested
        self._why = why
        self._retry: list[int] = []
        path = snapshot.loaded.configured.tree.path(preemptor.queue)
        self._below = dict(zip(path[1:], path, strict=False))

    def first_round(self, candidates: dict[int, list[int]], *, final: bool) -> bool:
        """Take by the first strategy; ``final``: by the share that the target keeps, not by the one it has. True when
        the preemptor fits."""
        tournament = Tournament(self._snapshot, self._preemptor.queue, candidates, sorted_already=False)
        reclaims = self._within_nominal()
        while (queue := tournament.next()) is not None:
            waiting = tournament.waiting(queue)
            if queue == self._preemptor.queue:
                taken = self._take(tournament, queue, waiting.popleft(), "InClusterQueue")
            elif reclaims:
                taken = self._take(tournament, queue, waiting.popleft(), "InCohortReclamation")
            else:
                taken = self._take_fairly(tournament, queue, final=final)
            if taken:
                return True
        return False

    def second_round(self) -> bool:
        """One try a queue: its first candidate left over goes if the preemptor's share is below the queue's."""
        candidates = group(self._snapshot, self._retry)
        tournament = Tournament(self._snapshot, self._preemptor.queue, candidates, sorted_already=True)
        while (queue := tournament.next()) is not None:
            mine, theirs = self._rivals(queue)
            head = tournament.waiting(queue)[0]
            tournament.drop(queue)
            below = tournament.share(mine) < tournament.share(theirs)
            if below and self._take(tournament, queue, head, "InCohortFairSharing"):
                return True
        return False

    def _take_fairly(self, tournament: Tournament, queue: int, *, final: bool) -> bool:
        """Take the queue's first candidate that passes; those that fail wait for the second round."""
        mine, theirs = self._rivals(queue)
        ours, before = tournament.share(mine), tournament.share(theirs)
        waiting = tournament.waiting(queue)
        if math.isinf(ours.weighted) and not math.isinf(before.weighted):
            self._retry += waiting
            waiting.clear()
            return False
        while waiting:
            workload = waiting.popleft()
            passes = ours <= self._share_without(theirs, workload) if final else ours < before
            if passes:
                return self._take(tournament, queue, workload, "InCohortFairSharing")
            self._retry.append(workload)
        return False

    def _share_without(self, node: int, workload: int) -> Share:
        self._snapshot.remove(workload)
        found = share(self._snapshot.loaded.configured, self._snapshot.usage, node)
        self._snapshot.restore(workload)
        return found

    def _take(self, tournament: Tournament, queue: int, workload: int, reason: Reason) -> bool:
        """Remove a workload; whether the preemptor fits now."""
        snapshot, preemptor = self._snapshot, self._preemptor
        snapshot.remove(workload)
        tournament.changed(queue)
        self.targets.append((workload, reason))
        snapshot.usage.remove(preemptor.queue, preemptor.request)
        fits = snapshot.usage.fits(preemptor.queue, preemptor.request)
        snapshot.usage.add(preemptor.queue, preemptor.request)
        return fits

    def _within_nominal(self) -> bool:
        """Whether the preemptor's queue, with the ask, stays within its nominal quota of everything contested (Kueue:
        FairSharingPreemptWithinNominal)."""
        return not self._snapshot.usage.exceeds(self._preemptor.queue, self._contested)

    def _rivals(self, queue: int) -> tuple[int, int]:
        """The two children of the lowest common cohort on the ways to the preemptor and to ``queue``."""
        parent = self._snapshot.loaded.configured.tree.parent
        while (above := parent[queue]) not in self._below:
            queue = above
        return self._below[above], queue
