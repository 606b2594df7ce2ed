"""Who must stop so that the preemptor fits: classical preemption, and the one door to it and to fair sharing's.

Classical: candidates by their place in the cohort tree, up to two attempts, then minimisation.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue import candidates, fair_preemption
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.candidates import SILENT, Indices, Recorder
from app.solver.engines.kueue.configuration import CompiledConfiguration, Policy
from app.solver.engines.kueue.nomination import Reason, Target
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Usage
from app.solver.engines.kueue.state import NO_PRIORITY
from app.solver.question import safe_point

Spared = Literal["ask-would-borrow", "queue-back-within-quota"]


@dataclass(frozen=True, slots=True)
class CandidateClasses:
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
    overlay: Overlay, preemptor: Preemptor, contested: frozenset[int], record: Recorder = SILENT
) -> list[Target]:
    """Victims, empty when no attempt makes room. See ``targets.get_targets``."""
    among = collect(overlay, preemptor, contested)
    if record is SILENT and not (len(among.own) or len(among.hierarchical) or len(among.priority)):
        return []
    search = _Search(overlay, preemptor, contested, record, among)
    for borrow in search.attempts():
        record.attempt_begins(overlay, borrow=borrow)
        targets = search.attempt(borrow=borrow)
        if targets:
            return targets
    return []


def collect(overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> CandidateClasses:
    """Own candidates, and those of others found while walking up from the queue to its root."""
    configuration, queue = overlay.state.configuration, preemptor.queue
    policy, path = configuration.policy[queue], configuration.tree.path(queue)
    nobody: Indices = np.zeros(0, dtype=np.int64)
    own = hierarchical = priority = nobody
    lowest = overlay.state.lowest_priority((queue,))
    if lowest is not None and _admits(policy.within_cluster_queue, lowest, preemptor.priority):
        own = candidates.using(overlay, [queue], contested)
        own = candidates.allowed(overlay, preemptor, policy.within_cluster_queue, own)
    ancestor: dict[int, int] = {}
    if len(path) > 1 and policy.reclaim_within_cohort != "Never":
        reclaiming: list[int] = []
        others: list[int] = []
        fits: list[bool] = []
        for level, cohort in enumerate(path[1:]):
            for other in _exceeding(overlay, cohort, path[level], contested):
                fits = fits or overlay.usage.fits_by_level(path, dict(preemptor.request))
                ancestor[other] = cohort
                # The advantage of a lower level, once there, holds all the way up.
                (reclaiming if True in fits[: level + 1] else others).append(other)
        hierarchical, priority = (
            candidates.allowed(
                overlay, preemptor, policy.reclaim_within_cohort, candidates.using(overlay, queues, contested)
            )
            if queues
            else nobody
            for queues in (reclaiming, others)
        )
    return CandidateClasses(own, hierarchical, priority, ancestor, _with_borrowing(overlay, preemptor, priority))


def _exceeding(overlay: Overlay, cohort: int, visited: int, contested: frozenset[int]) -> list[int]:
    """Queues below ``cohort``, outside ``visited``, that borrow in a contested flavor-resource, as does every cohort
    on the way to them: a subtree within its quota is left alone as a whole."""
    configuration, usage = overlay.state.configuration, overlay.usage
    out: list[int] = []
    pending = [cohort]
    while pending:
        node = pending.pop()
        if cohorts := configuration.child_cohorts[node]:
            pending += [c for c in usage.exceeding(cohorts, contested) if c != visited]
        out += [q for q in usage.exceeding(configuration.child_queues[node], contested) if q != visited]
    return out


def _with_borrowing(overlay: Overlay, preemptor: Preemptor, candidates: Indices) -> frozenset[int]:
    """Candidates of lower priority than the preemptor, and at most the threshold, where borrowWithinCohort is on."""
    policy = overlay.state.configuration.policy[preemptor.queue]
    if not policy.borrow_within_cohort or not len(candidates):
        return frozenset()
    priority = overlay.state.priority[candidates]
    low = priority < preemptor.priority
    if policy.threshold is not None:
        low &= priority <= policy.threshold
    return frozenset(candidates[low].tolist())


def _in_order(overlay: Overlay, among: CandidateClasses) -> Iterable[int]:
    """Evicted ones of every class first; in both halves hierarchical before priority before own candidates."""
    depth = overlay.state.configuration.tree.depth
    nearest_first = {queue: -depth[cohort] for queue, cohort in among.ancestor.items()}
    return candidates.evicted_first(overlay, (among.hierarchical, among.priority, among.own), nearest_first)


class Proposals:
    """Judges sets of candidates that somebody else would have go, by the attempts of one preemptor."""

    def __init__(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        self._search = _Search(overlay, preemptor, contested, SILENT, collect(overlay, preemptor, contested))
        among = self._search.classes
        self._classes = [frozenset(of.tolist()) for of in (among.own, among.hierarchical, among.priority)]
        self.candidates = frozenset[int]().union(*self._classes)

    def stays(self, chosen: frozenset[int]) -> dict[int, str]:
        """Of ``chosen`` candidates those that would stay, by rule; none where an attempt takes them all and the ask
        then fits. Where no attempt does, what the one says that takes the most."""
        every = self._search.classes
        own, hierarchical, priority = (np.array(sorted(of & chosen), dtype=np.int64) for of in self._classes)
        among = replace(every, own=own, hierarchical=hierarchical, priority=priority)
        said = [self._search.try_all(among, borrow=borrow) for borrow in self._search.attempts()]
        return min(said, key=len)


class _Search:
    """The candidates of one preemptor, and the attempts at them."""

    def __init__(
        self,
        overlay: Overlay,
        preemptor: Preemptor,
        contested: frozenset[int],
        record: Recorder,
        among: CandidateClasses,
    ) -> None:
        self._overlay = overlay
        self._preemptor = preemptor
        self._contested = contested
        self._record = record
        self.classes = among
        self._candidates = _in_order(overlay, among)

    def attempts(self) -> tuple[bool, ...]:
        """Whether to allow borrowing, attempt by attempt."""
        among, queue = self.classes, self._preemptor.queue
        if not len(among.hierarchical) and not len(among.priority):
            return (True,)
        if self._overlay.state.configuration.policy[queue].borrow_within_cohort:
            return (True, False)
        if not _under_nominal(self._overlay, queue, self._contested):
            return (True,)
        return (True, False) if len(among.hierarchical) else (False, True)

    def attempt(self, *, borrow: bool) -> list[Target]:
        """Remove candidates in order until the preemptor fits, then put back whom it does not need gone."""
        overlay, preemptor, record = self._overlay, self._preemptor, self._record
        may_go_for_a_loan = self._usable_while_borrowing() if borrow else None
        targets: list[Target] = []
        for workload in self._candidates:
            safe_point()
            queue = int(overlay.state.queue[workload])
            reason: Reason = "InClusterQueue"
            if queue != preemptor.queue:
                loan = workload in self.classes.with_borrowing
                reason = "InCohortReclaimWhileBorrowing" if loan else "InCohortReclamation"
                spared = self._spared(workload, queue, may_go_for_a_loan)
                if spared is not None:
                    (record.would_borrow if spared == "ask-would-borrow" else record.back_within)(overlay, workload)
                    continue
            overlay.remove(workload)
            targets.append((workload, reason))
            fits = overlay.fits(preemptor, borrow=borrow)
            record.taken(overlay, preemptor, targets, fits=fits)
            if fits:
                return overlay.spare(preemptor, targets, record.put_back, borrow=borrow)
        record.search_failed(overlay, targets)
        for workload, _ in targets:
            overlay.restore(workload)
        return []

    def _spared(self, workload: int, queue: int, may_go_for_a_loan: frozenset[int] | None) -> Spared | None:
        """The rule by which a candidate of another queue stays when its turn comes; None where it goes."""
        loan = workload in self.classes.with_borrowing
        if may_go_for_a_loan is not None and not loan and workload not in may_go_for_a_loan:
            return "ask-would-borrow"
        if not _still_exceeds(self._overlay, queue, self.classes.ancestor[queue], self._contested):
            return "queue-back-within-quota"
        return None

    def try_all(self, chosen: CandidateClasses, *, borrow: bool) -> dict[int, str]:
        """Of ``chosen`` candidates those that would stay, by rule, were all of them to go in order."""
        overlay, preemptor = self._overlay, self._preemptor
        may_go_for_a_loan = self._usable_while_borrowing() if borrow else None
        taken, stays = list[int](), dict[int, str]()
        for workload in _in_order(overlay, chosen):
            queue = int(overlay.state.queue[workload])
            spared = None if queue == preemptor.queue else self._spared(workload, queue, may_go_for_a_loan)
            if spared is not None:
                stays[workload] = spared
                continue
            overlay.remove(workload)
            taken.append(workload)
        if not stays and not overlay.fits(preemptor, borrow=borrow):
            stays = dict.fromkeys(taken, "not-enough")
        for workload in taken:
            overlay.restore(workload)
        return stays

    def _usable_while_borrowing(self) -> frozenset[int] | None:
        """Candidates of other queues that may go for an ask that borrows, whatever their priority; None: all."""
        return frozenset(self.classes.hierarchical.tolist()) if len(self.classes.priority) else None


def _under_nominal(overlay: Overlay, queue: int, contested: frozenset[int]) -> bool:
    """Whether the queue uses strictly less than its nominal quota of every contested flavor-resource."""
    quotas, used = overlay.usage.quotas, overlay.usage.used
    return all(used[cell] < quotas.nominal[cell] for cell in (quotas.cells[queue][fr] for fr in contested))


def _still_exceeds(overlay: Overlay, queue: int, ancestor: int, contested: frozenset[int]) -> bool:
    """Whether the queue, and every cohort between it and ``ancestor``, borrows at this moment."""
    parent, node = overlay.state.configuration.tree.parent, queue
    while node != ancestor:
        if not overlay.usage.exceeds(node, contested):
            return False
        node = parent[node]
    return True


class _Bounds(NamedTuple):
    """Of a queue and a flavor-resource: the queue's policy; what is there; what those of other queues use who may go
    whatever priority asks; the queues of which some may. ``within``: what an ask may want at most for whom others go,
    whatever goes in its own queue, None: anything; ``nominal``: what is left of nominal quota, which with what goes
    there is another such limit."""

    policy: Policy
    there: int
    anybody: int
    others: Sequence[int]
    within: int | None
    nominal: int


_COUNT = -1


class Freeable:
    """How much could be there for an ask once somebody has gone, and more at most: no search for victims finds any for
    more, whatever else the ask wants. Whoever the policies let it touch is thought gone at once, in a classical search
    only those whom an attempt may take. ``lowest``: by node, the priority. ``_use``: by node, by priority, what runs
    there uses of each flavor-resource; under ``_COUNT`` how many there are. ``_sums``: of a node, by flavor-resource,
    these priorities in order and what those below each use."""

    def __init__(self, configuration: CompiledConfiguration, usage: Usage) -> None:
        """``usage``: kept up to date by somebody else, before ``add`` and ``remove`` are told."""
        self._configuration = configuration
        self._usage = usage
        self.lowest = [NO_PRIORITY] * len(configuration.tree)
        self._use: list[dict[int, dict[int, int]]] = [{} for _ in self.lowest]
        self._sums: list[dict[int, tuple[list[int], list[int]]]] = [{} for _ in self.lowest]
        self._bounds: dict[tuple[int, int], _Bounds] = {}
        self._there = defaultdict[int, dict[int, int]](dict)
        self._most: dict[tuple[int, int, int], int] = {}

    def add(self, node: int, priority: int, amounts: Amounts) -> None:
        """One more of ``priority`` runs there."""
        self._moved(node)
        use = self._use[node].setdefault(priority, {_COUNT: 0})
        use[_COUNT] += 1
        for fr, amount in amounts:
            use[fr] = use.get(fr, 0) + amount
        self.lowest[node] = min(self.lowest[node], priority)

    def remove(self, node: int, priority: int, amounts: Amounts) -> None:
        """One of them does no longer."""
        self._moved(node)
        by_priority = self._use[node]
        use = by_priority[priority]
        use[_COUNT] -= 1
        if use[_COUNT]:
            for fr, amount in amounts:
                use[fr] -= amount
        else:
            del by_priority[priority]
            if priority == self.lowest[node]:
                self.lowest[node] = min(by_priority, default=NO_PRIORITY)

    def _moved(self, node: int) -> None:
        self._most.clear()
        self._bounds.clear()
        self._there.clear()
        self._sums[node].clear()

    def lacking(self, queue: int, request: Amounts) -> list[tuple[int, int]]:
        """Of what is asked for, that of which there is not so much as things are."""
        there = self._there[queue]
        return [
            (fr, amount) for fr, amount in request
            if amount > (there[fr] if fr in there else self._available(queue, fr))
        ]  # fmt: skip

    def _available(self, queue: int, fr: int) -> int:
        """What there is as things are."""
        there = self._there[queue]
        if fr not in there:
            there[fr] = self._usage.available_cell(self._usage.quotas.cells[queue][fr])
        return there[fr]

    def most(self, queue: int, fr: int, priority: int) -> int:
        """For an ask of ``queue`` with this priority."""
        known = self._most.get((queue, fr, priority))
        if known is None:
            known = self._most[queue, fr, priority] = self._worked_out(queue, fr, priority)
        return known

    def _worked_out(self, queue: int, fr: int, priority: int) -> int:
        bounds = self._bounds.get((queue, fr))
        if bounds is None:
            bounds = self._bounds[queue, fr] = self._bounds_of(queue, fr)
        policy, there, anybody, others, within, nominal = bounds
        own = self._within_reach(policy.within_cluster_queue, queue, fr, priority)
        alone = there + own
        together = alone + anybody
        for other in others:
            together += self._within_reach(policy.reclaim_within_cohort, other, fr, priority)
        return together if within is None else max(alone, min(together, max(within, nominal + own)))

    def _bounds_of(self, queue: int, fr: int) -> _Bounds:
        configuration, quotas, used = self._configuration, self._usage.quotas, self._usage.used
        policy, cell = configuration.policy[queue], quotas.cells[queue][fr]
        there = self._available(queue, fr)
        if policy.reclaim_within_cohort == "Never" or configuration.tree.parent[queue] == ROOTLESS:
            return _Bounds(policy, there, 0, (), None, 0)
        others, anybody = [other for other in configuration.queues_of(queue) if other != queue], 0
        if policy.reclaim_within_cohort == "Any":
            anybody = sum([used[of] for other in others if (of := quotas.cells[other].get(fr)) is not None])
            others.clear()
        if configuration.fair_sharing or policy.borrow_within_cohort:
            return _Bounds(policy, there, anybody, others, None, 0)
        # Others go for an ask with room of its own below their common cohort, or that stays within nominal quota.
        within, below = 0, 0
        for node in quotas.tree.path(queue)[:-1]:
            of = quotas.cells[node][fr]
            room = quotas.subtree[of] - used[of]
            within = within if room < 0 else max(within, below + room)
            below += max(0, quotas.local[of] - used[of])
        nominal = quotas.nominal[cell] - used[cell]
        return _Bounds(policy, there, anybody, others, within, nominal if nominal > 0 else -NO_PRIORITY)

    def _within_reach(self, policy: str, node: int, fr: int, priority: int) -> int:
        """What those use of ``fr`` whom ``policy`` lets an ask touch, and more at most."""
        if policy == "Never":
            return 0
        sums = self._sums[node].get(fr)
        if sums is None:
            use = self._use[node]
            lowest_first = sorted(use)
            below = accumulate([use[of].get(fr, 0) for of in lowest_first], initial=0)
            sums = self._sums[node][fr] = lowest_first, list(below)
        lowest_first, amounts = sums
        if policy == "Any":
            return amounts[-1]
        return amounts[(bisect_left if policy == "LowerPriority" else bisect_right)(lowest_first, priority)]


Rooms = list[dict[int, int]]
"""What is there by flavor-resource, attempt by attempt."""


class MostRoom(Recorder):
    """Takes note of what is there for ``queue`` once all have gone whom a search in vain may take. ``rooms``: for each
    attempt; none where nobody may go."""

    def __init__(self, queue: int) -> None:
        self.rooms: Rooms = []
        self._queue = queue
        self._borrow = True

    def attempt_begins(self, overlay: Overlay, *, borrow: bool) -> None:
        """See ``Recorder``."""
        del overlay
        self._borrow = borrow

    def search_failed(self, overlay: Overlay, targets: Iterable[Target]) -> None:
        """See ``Recorder``."""
        del targets
        usage, quotas = overlay.usage, overlay.usage.quotas
        cells = quotas.cells[self._queue]
        room = {fr: usage.available_cell(cell) for fr, cell in cells.items()}
        if not self._borrow:
            room = {fr: min(room[fr], quotas.nominal[cell] - usage.used[cell]) for fr, cell in cells.items()}
        self.rooms.append(room)


def any_fits(rooms: Rooms, request: Iterable[tuple[int, int]]) -> bool:
    """Whether ``request`` is no more than what is there in one of the attempts."""
    return any(all(amount <= room[fr] for fr, amount in request) for room in rooms)


def get_targets(overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder) -> list[Target]:
    """Victims in Kueue's order, empty when no set of them makes room. The overlay is left as it was.

    ``contested``: the flavor-resources of the request whose assignment needs preemption; only they select
    candidates, but all of ``preemptor.request`` must fit in the end. Called with one flavor-resource and one amount
    (``preemptor.only``) it is Kueue's simulation for a single flavor. Like Kueue it tests for a fit only after a
    removal, so that a call for what already fits still names a victim.
    """
    safe_point()
    contested = frozenset(contested)
    record.search_begins(overlay, preemptor, contested)
    if not _anybody_low_enough(overlay, preemptor, record):
        return []
    algorithm = fair_preemption.search if overlay.state.configuration.fair_sharing else search
    return algorithm(overlay, preemptor, contested, record)


def _anybody_low_enough(overlay: Overlay, preemptor: Preemptor, record: Recorder) -> bool:
    """Whether the lowest priority that runs within reach lets the policies pick anybody at all.

    KEP-83's shortcut: where nobody's priority is low enough, candidates need not be looked for."""
    configuration, state, queue = overlay.state.configuration, overlay.state, preemptor.queue
    policy = configuration.policy[queue]
    own = state.lowest_priority((queue,))
    others: int | None = None
    if configuration.tree.parent[queue] != ROOTLESS and policy.reclaim_within_cohort != "Never":
        others = state.lowest_priority([q for q in configuration.queues_of(queue) if q != queue])
    reach = ((policy.within_cluster_queue, own), (policy.reclaim_within_cohort, others))
    if any(lowest is not None and _admits(rule, lowest, preemptor.priority) for rule, lowest in reach):
        return True
    record.nobody_low_enough(preemptor, own, others)
    return False


def _admits(policy: str, lowest: int, priority: int) -> bool:
    if policy == "LowerOrNewerEqualPriority":
        return lowest <= priority
    return policy == "Any" or (policy == "LowerPriority" and lowest < priority)


def nobody(overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder) -> list[Target]:
    """The search of an ask that never preempts."""
    record.never_preempts(overlay)
    return []


def not_yet(overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder) -> list[Target]:
    """The search of an ask that has not waited long enough to preempt (KEP-83)."""
    record.not_yet(overlay)
    return []
