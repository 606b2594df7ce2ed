"""Fair sharing preemption: who goes is decided by the shares of queues and cohorts.

Source: Kueue ``pkg/scheduler/preemption/preemption.go`` (fairPreemptions) and ``fairsharing/``. The ask's own usage
counts in every share from the start of the search to its end; it is left out only where a fit is tested.
"""

from collections.abc import Sequence

import numpy as np

from app.solver.engines.kueue.compile.amounts import Amounts
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor, Reason, Target
from app.solver.engines.kueue.decide.recorder import SILENT, Recorder
from app.solver.engines.kueue.decide.share import Rivals, Share, share_without
from app.solver.engines.kueue.decide.victims import minimise, order
from app.solver.engines.kueue.decide.victims.pool import Leftover, Pool
from app.solver.engines.kueue.decide.victims.tournament import Tournament
from app.solver.stopping import safe_point


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
        return minimise.spare(overlay, preemptor, search.targets, True, record)
    record.search_failed(overlay, search.targets)
    for workload, _ in search.targets:
        overlay.restore(workload)
    return []


def collect(overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> Pool:
    """Candidates by queue: the preemptor's own by its policy, and those of every queue of the same tree that uses more
    than its nominal quota of a contested flavor-resource."""
    configuration, queue = overlay.state.configuration, preemptor.queue
    policy = configuration.policy[queue]
    own = order.using(overlay, [queue], contested)
    parts = [order.allowed(overlay, preemptor, policy.within_cluster_queue, own)]
    if configuration.tree.parent[queue] >= 0 and policy.reclaim_within_cohort != "Never":
        others = [q for q in overlay.usage.exceeding(configuration.queues_of(queue), contested) if q != queue]
        using = order.using(overlay, others, contested)
        parts.append(order.allowed(overlay, preemptor, policy.reclaim_within_cohort, using))
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
        tournament = Tournament(self._overlay, self._preemptor.queue, candidates)
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
        tournament = Tournament(self._overlay, self._preemptor.queue, self._retry)
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
        found = list(map(state.shapes.found.__getitem__, set(shapes)))
        least, most = min(found), max(found)
        if {1} == set(map(len, found)) and least[0][0] == most[0][0]:
            return least  # the commonest kind: all use one flavor-resource, the same
        used = list(map(dict, found))
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
