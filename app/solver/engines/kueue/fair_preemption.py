"""Fair sharing preemption: who goes is decided by the shares of queues and cohorts, from the root cohort down."""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue import candidates
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.candidates import SILENT, Leftover, Pool, Recorder
from app.solver.engines.kueue.fair_share import Rivals, Share, Standing, share_without, shares, standing
from app.solver.engines.kueue.nomination import Reason, Target
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.question import safe_point

_Head = tuple[bool, bool, int, int, tuple[str, str]]
_QueueEntry = tuple[bool, float, bool, _Head | tuple[()], int]
_CohortEntry = tuple[bool, float, str, int]
_BELOW_ALL = Share(False, -1.0)


class Tournament:
    """Candidates by queue, and the choice of the next queue. A queue's candidates are sorted when it is first looked
    into: most queues never are.

    Shares include the preemptor's request, which the caller has booked on its queue."""

    def __init__(
        self, overlay: Overlay, preemptor_queue: int, candidates: Pool | Leftover, record: Recorder = SILENT
    ) -> None:  # fmt: skip
        self._overlay = overlay
        self._record = record
        self._own = preemptor_queue
        self._configuration = overlay.state.configuration
        self._above = frozenset(self._configuration.tree.path(preemptor_queue)[1:])
        self._candidates = candidates
        self._entered = frozenset(candidates.queues)
        self._waiting: dict[int, deque[int]] = {}
        self._unsorted: dict[int, list[int]] = {}
        self._standings: dict[int, Standing] = {}
        self._queues: dict[int, list[_QueueEntry]] = {}
        self._cohorts: dict[int, list[_CohortEntry]] = {}
        self._populated = self._configuration.tree.above(candidates.queues)

    def next(self) -> int | None:
        """The queue to take a candidate from, or None when no candidates are left to consider."""
        root = self._configuration.root[self._own]
        if root == self._own:
            return self._own if self.waiting(self._own) else None
        while True:
            safe_point()
            node = root
            path: list[int] = []
            while True:
                queue, queue_share = self._highest_queue(node)
                cohort, cohort_share = self._highest_cohort(node)
                if queue is None and cohort is None:
                    break
                if cohort is None or (queue is not None and queue_share > cohort_share):
                    return queue
                # On equal shares the cohort goes first: the most unfair queue may be inside it.
                path.append(node)
                if self._record is not SILENT and len(tied := self._tied(node)) > 1:
                    self._record.cohorts_tie(self._overlay, tied)
                node = cohort
            if not path:
                return None
            # All of its children are done with, so this cohort is too.
            heappop(self._cohorts[path[-1]])

    def waiting(self, queue: int) -> deque[int]:
        """The queue's remaining candidates, first to go first."""
        queued = self._waiting.get(queue)
        if queued is None:
            mine = list(self.remaining(queue))
            candidates.sort_queue(self._overlay, mine)
            queued = self._waiting[queue] = deque(mine)
        return queued

    def remaining(self, queue: int) -> Sequence[int]:
        """The same in no particular order."""
        queued = self._waiting.get(queue)
        if queued is not None:
            return queued
        mine = self._unsorted.get(queue)
        if mine is None:
            mine = self._unsorted[queue] = self._candidates.of(queue) if queue in self._entered else []
        return mine

    def surrender(self, queue: int) -> Sequence[int]:
        """Take nothing more from this queue; what was left of it."""
        left = self.remaining(queue)
        self._waiting[queue] = deque()
        return left

    def changed(self, queue: int) -> None:
        """The queue's usage has changed: its share and those of its cohorts are out of date."""
        node, parent = queue, self._configuration.tree.parent
        while node != ROOTLESS:
            self._standings.pop(node, None)
            node = parent[node]

    def share(self, node: int) -> Share:
        """The node's share at this moment."""
        return self._standing(node).share

    def _standing(self, node: int) -> Standing:
        """Computed only when something below the node has changed."""
        known = self._standings.get(node)
        if known is None:
            known = self._standings[node] = standing(self._configuration, self._overlay.usage, node)
        return known

    def _highest_queue(self, cohort: int) -> tuple[int | None, Share]:
        """The unpruned child queue with the highest share; between equals the one whose first candidate goes first.

        A queue is done with for good when it is out of candidates or does not borrow (the preemptor's own may)."""
        heap = self._queues.get(cohort)
        if heap is None:
            queues = [q for q in self._configuration.child_queues[cohort] if q in self._entered]
            current = shares(self._configuration, self._overlay.usage, queues)
            heap = self._queues[cohort] = [_entry(q, share) for q, share in zip(queues, current, strict=True)]
            heapify(heap)
        while heap:
            weightless, value, known, head, queue = heap[0]
            borrows, now = self._standing(queue)
            if not self._waits(queue) or (queue != self._own and not borrows):
                heappop(heap)
            elif (not now.weightless, -now.value) != (weightless, value):
                heapreplace(heap, _entry(queue, now))
            elif not known and not any(entry[:2] == (weightless, value) for entry in heap[1:3]):
                return queue, now
            else:
                first = candidates.sort_key(self._overlay, self.waiting(queue)[0], self._own)
                if known and head == first:
                    return queue, now
                heapreplace(heap, (weightless, value, True, first, queue))
        return None, _BELOW_ALL

    def _waits(self, queue: int) -> bool:
        known = self._waiting.get(queue)
        return known is None or bool(known)

    def _highest_cohort(self, parent: int) -> tuple[int | None, Share]:
        """The unpruned child cohort with the highest share. Between equals Kueue's choice is random, this one goes by
        name. A cohort that does not borrow is done with, unless the preemptor is below it."""
        heap = self._cohorts.get(parent)
        if heap is None:
            heap = self._cohorts[parent] = [
                self._cohort_entry(c) for c in self._configuration.child_cohorts[parent] if c in self._populated
            ]
            heapify(heap)
        while heap:
            weightless, value, name, cohort = heap[0]
            borrows, now = self._standing(cohort)
            if cohort not in self._above and not borrows:
                heappop(heap)
                continue
            if (not now.weightless, -now.value) != (weightless, value):
                heapreplace(heap, (not now.weightless, -now.value, name, cohort))
                continue
            return cohort, now
        return None, _BELOW_ALL

    def _tied(self, parent: int) -> list[int]:
        """The unpruned child cohorts whose share is the highest."""
        heap = self._cohorts[parent]
        first = heap[0][:2]
        cohorts: list[int] = []
        for *share, _, cohort in heap:
            if tuple(share) == first:
                borrows, now = self._standing(cohort)
                if (not now.weightless, -now.value) == first and (cohort in self._above or borrows):
                    cohorts.append(cohort)
        return cohorts

    def _cohort_entry(self, cohort: int) -> _CohortEntry:
        now = self.share(cohort)
        return (not now.weightless, -now.value, self._configuration.tree.names[cohort], cohort)


def _entry(queue: int, share: tuple[bool, float]) -> _QueueEntry:
    """Before any with a known head of the same share, so that all equals are looked at before one is chosen."""
    weightless, value = share
    return (not weightless, -value, False, (), queue)


def search(
    overlay: Overlay, preemptor: Preemptor, contested: frozenset[int], record: Recorder = SILENT
) -> list[Target]:
    """Victims, empty when no set of them makes room. See ``targets.get_targets``."""
    candidates = collect(overlay, preemptor, contested)
    if not candidates.queues:
        return []
    strategies = overlay.state.configuration.strategies
    search = _Search(overlay, preemptor, contested, record)
    overlay.usage.add(preemptor.queue, preemptor.request)
    fits = search.first_round(candidates, final=strategies[0] == "LessThanOrEqualToFinalShare")
    if not fits and len(strategies) > 1:
        fits = search.second_round()
    overlay.usage.remove(preemptor.queue, preemptor.request)
    if fits:
        return overlay.spare(preemptor, search.targets, record.put_back)
    record.search_failed(overlay, search.targets)
    for workload, _ in search.targets:
        overlay.restore(workload)
    return []


def collect(overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> Pool:
    """Candidates by queue: the preemptor's own by its policy, and those of every queue of the same tree that uses more
    than its nominal quota of a contested flavor-resource."""
    configuration, queue = overlay.state.configuration, preemptor.queue
    policy = configuration.policy[queue]
    own = candidates.using(overlay, [queue], contested)
    parts = [candidates.allowed(overlay, preemptor, policy.within_cluster_queue, own)]
    if configuration.tree.parent[queue] >= 0 and policy.reclaim_within_cohort != "Never":
        others = [q for q in overlay.usage.exceeding(configuration.queues_of(queue), contested) if q != queue]
        using = candidates.using(overlay, others, contested)
        parts.append(candidates.allowed(overlay, preemptor, policy.reclaim_within_cohort, using))
    return Pool(overlay.state, np.concatenate(parts))


class Proposals:
    """Judges sets of candidates that somebody else would have go, by the strategies of the configuration."""

    def __init__(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        self._overlay, self._preemptor, self._contested = overlay, preemptor, contested
        pool = collect(overlay, preemptor, contested)
        self.candidates = frozenset(workload for _, of in pool.items() for workload in of)

    def stays(self, chosen: frozenset[int]) -> dict[int, str]:
        """Of ``chosen`` candidates those that would stay, by rule, were as many as may to go; none where all of them
        may and the ask then fits."""
        overlay, preemptor = self._overlay, self._preemptor
        search = _Search(overlay, preemptor, self._contested, SILENT, until_it_fits=False)
        strategies = overlay.state.configuration.strategies
        overlay.usage.add(preemptor.queue, preemptor.request)
        pool = Pool(overlay.state, np.array(sorted(chosen), dtype=np.int64))
        search.first_round(pool, final=strategies[0] == "LessThanOrEqualToFinalShare")
        if len(strategies) > 1:
            search.second_round()
        taken = [workload for workload, _ in search.targets]
        stays = {workload: self._rule(workload) for workload in sorted(chosen.difference(taken))}
        overlay.usage.remove(preemptor.queue, preemptor.request)
        if not stays and not overlay.fits(preemptor):
            stays = dict.fromkeys(taken, "not-enough")
        for workload in taken:
            overlay.restore(workload)
        return stays

    def _rule(self, workload: int) -> str:
        """Of one that stays, once the others have gone."""
        queue = int(self._overlay.state.queue[workload])
        borrows = self._overlay.usage.exceeds(queue, self._contested)
        return "share-too-low" if borrows else "queue-back-within-quota"


class _Search:
    """One search. ``targets``: taken so far, all removed from the overlay."""

    def __init__(
        self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int], record: Recorder, *,
        until_it_fits: bool = True,
    ) -> None:  # fmt: skip
        self._until_it_fits = until_it_fits
        self.targets: list[Target] = []
        self._overlay = overlay
        self._preemptor = preemptor
        self._contested = contested
        self._record = record
        self._retry = Leftover()
        path = overlay.state.configuration.tree.path(preemptor.queue)
        self._below = dict(zip(path[1:], path, strict=False))

    def first_round(self, candidates: Pool, *, final: bool) -> bool:
        """Take by the first strategy; ``final``: by the share that the target keeps, not by the one it has. True when
        the preemptor fits."""
        tournament = Tournament(self._overlay, self._preemptor.queue, candidates, self._record)
        reclaims = self._within_nominal()
        strategy = "LessThanOrEqualToFinalShare" if final else "LessThanInitialShare"
        self._record.round_begins(strategy, reclaims=reclaims)
        while (queue := tournament.next()) is not None:
            if queue == self._preemptor.queue:
                fits = self._take(tournament, queue, tournament.waiting(queue).popleft(), "InClusterQueue")
            elif reclaims:
                fits = self._take(tournament, queue, tournament.waiting(queue).popleft(), "InCohortReclamation")
            else:
                fits = self._take_fairly(tournament, queue, final=final)
            if fits:
                return True
        return False

    def second_round(self) -> bool:
        """One try a queue: its first candidate left over goes if the preemptor's share is below the queue's."""
        tournament = Tournament(self._overlay, self._preemptor.queue, self._retry, self._record)
        self._record.round_begins("LessThanInitialShare", reclaims=False)
        while (queue := tournament.next()) is not None:
            rivals = self._rivals(tournament, queue)
            if rivals.ours < rivals.theirs:
                head = tournament.waiting(queue)[0]
                tournament.surrender(queue)
                if self._take(tournament, queue, head, "InCohortFairSharing", rivals):
                    return True
            else:
                left = tournament.surrender(queue)
                self._record.too_low(self._overlay, left, rivals, "LessThanInitialShare")
        return False

    def _take_fairly(self, tournament: Tournament, queue: int, *, final: bool) -> bool:
        """Take the queue's first candidate that passes; those that fail wait for the second round.

        A queue whose share is below the preemptor's already has none that passes: taking can only lower it further.
        That covers Kueue's own shortcut for a preemptor of infinite share. By final share it has none either when
        taking the least of what any of them uses would lower it too far."""
        rivals = self._rivals(tournament, queue)
        strategy = "LessThanOrEqualToFinalShare" if final else "LessThanInitialShare"
        hopeless = rivals.ours > rivals.theirs
        if final and not hopeless:
            least = self._least(tournament.remaining(queue))
            hopeless = rivals.ours > self._share_without(rivals.their_side, queue, least)
        if hopeless:
            left = tournament.surrender(queue)
            self._retry.add(queue, left)
            self._record.too_low(self._overlay, left, rivals, strategy)
            return False
        waiting = tournament.waiting(queue)
        while waiting:
            safe_point()
            workload = waiting.popleft()
            limit = rivals.theirs
            if final:
                uses = self._overlay.state.amounts(workload)
                limit = self._share_without(rivals.their_side, queue, uses)
            if rivals.ours <= limit if final else rivals.ours < limit:
                return self._take(tournament, queue, workload, "InCohortFairSharing", rivals)
            self._retry.add(queue, (workload,))
            self._record.too_low(self._overlay, (workload,), rivals, strategy)
        return False

    def _least(self, workloads: Sequence[int]) -> Amounts:
        """The least that any of them uses of each flavor-resource that all use."""
        state = self._overlay.state
        shapes: list[int] = state.shape[list(workloads)].tolist()
        amounts = list(map(state.shapes.amounts.__getitem__, set(shapes)))
        least, most = min(amounts), max(amounts)
        if {1} == set(map(len, amounts)) and least[0][0] == most[0][0]:
            return least  # the commonest kind: all use one flavor-resource, the same
        used = list(map(dict, amounts))
        return tuple((fr, min(of[fr] for of in used)) for fr in used[0] if all(fr in of for of in used))

    def _share_without(self, node: int, queue: int, amounts: Amounts) -> Share:
        return share_without(self._overlay.state.configuration, self._overlay.usage, node, queue, amounts)

    def _take(
        self, tournament: Tournament, queue: int, workload: int, reason: Reason, rivals: Rivals | None = None
    ) -> bool:
        """Remove a workload; whether the preemptor fits now."""
        overlay, preemptor = self._overlay, self._preemptor
        if rivals is not None:
            self._record.taking(overlay, workload, rivals)
        overlay.remove(workload)
        tournament.changed(queue)
        self.targets.append((workload, reason))
        overlay.usage.remove(preemptor.queue, preemptor.request)
        fits = overlay.fits(preemptor)
        self._record.taken(overlay, preemptor, self.targets, fits=fits)
        overlay.usage.add(preemptor.queue, preemptor.request)
        return fits and self._until_it_fits

    def _within_nominal(self) -> bool:
        """Whether the preemptor's queue, with the ask, stays within its nominal quota of everything contested (Kueue:
        FairSharingPreemptWithinNominal)."""
        return not self._overlay.usage.exceeds(self._preemptor.queue, self._contested)

    def _rivals(self, tournament: Tournament, queue: int) -> Rivals:
        """The two children of the lowest common cohort on the ways to the preemptor and to ``queue``."""
        parent = self._overlay.state.configuration.tree.parent
        node = queue
        while (above := parent[node]) not in self._below:
            node = above
        mine = self._below[above]
        return Rivals(above, mine, node, tournament.share(mine), tournament.share(node))
