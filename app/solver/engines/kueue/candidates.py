"""Who may have to stop: the policies that let a preemptor touch them, the order in which they go; and
whoever wants to hear of the search, moment by moment.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.fair_share import Rivals
from app.solver.engines.kueue.nomination import CycleUsage, Nomination, Suit, Target
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.state import CompiledState, Places, instant
from app.solver.engines.kueue.topology.room import Misfit, Place, PodSets
from app.solver.model.base import micros
from app.solver.model.decision import Explanation, Victim
from app.solver.model.state import Ask, Task


class Recorder:
    """Keeps nothing."""

    def boosted(self, given: int, counts: int) -> None:
        """The ask's priority counts as another one after waiting (KEP-83)."""

    def consumed(self, local_queue: str, usage: float, *, known: bool) -> None:
        """Its queue goes by what LocalQueues have consumed; ``known``: whether anybody said it of this one."""

    def resumes(self, scan: Mapping[str, Mapping[str, int]]) -> None:
        """The scan of flavors goes on where the last cycle left it."""

    def flavor_refused(self, task: str, flavor: str, reason: str) -> None:
        """A pod set may not use a flavor at all."""

    def nodes_short(self, overlay: Overlay, pod_sets: PodSets, misfit: Misfit, *, empty: bool) -> None:
        """Quota is there, and nodes have no room for a pod set; ``empty``: nor would they with nothing of Kueue's."""

    def placed(self, overlay: Overlay, pod_sets: PodSets, places: Mapping[str, Place]) -> None:
        """All find places, with those gone that stop for it; the overlay is as it was before."""

    def flavor_considered(self, task: str, flavor: str, suit: Suit) -> None:
        """How well a flavor suits a pod set."""

    def reduced(self, tasks: Sequence[Task], counts: Sequence[int]) -> None:
        """The full size can't be had, these counts can: what was said of candidates was for another size."""

    def never_preempts(self, overlay: Overlay) -> None:
        """The ask's policy is to stop nobody."""

    def not_yet(self, overlay: Overlay) -> None:
        """The ask has not waited long enough to stop anybody (KEP-83)."""

    def search_begins(self, overlay: Overlay, preemptor: Preemptor, contested: frozenset[int]) -> None:
        """A search for victims: what was said of candidates before belongs to another one."""

    def nobody_low_enough(self, preemptor: Preemptor, own: int | None, others: int | None) -> None:
        """No priority within reach is low enough; ``own``, ``others``: the lowest ones, None where nothing runs."""

    def attempt_begins(self, overlay: Overlay, *, borrow: bool) -> None:
        """Classical: everybody is a candidate again, for a search that may or may not let the ask borrow."""

    def would_borrow(self, overlay: Overlay, workload: int) -> None:
        """Classical: may go only for an ask that does not borrow, which this attempt lets it."""

    def back_within(self, overlay: Overlay, workload: int) -> None:
        """Classical: with those before it gone, its queue or a cohort above it is within quota."""

    def round_begins(self, strategy: str, *, reclaims: bool) -> None:
        """Fair sharing: queues are gone through by share; ``reclaims``: candidates go without comparing shares."""

    def cohorts_tie(self, overlay: Overlay, cohorts: Sequence[int]) -> None:
        """Fair sharing: these have the same share, and the origin goes into one of them by chance."""

    def taking(self, overlay: Overlay, workload: int, rivals: Rivals) -> None:
        """Fair sharing: about to be taken because of these shares."""

    def too_low(self, overlay: Overlay, workloads: Iterable[int], rivals: Rivals, strategy: str) -> None:
        """Fair sharing: these stay, for the shares do not pass the strategy."""

    def taken(self, overlay: Overlay, preemptor: Preemptor, targets: Sequence[Target], *, fits: bool) -> None:
        """The last of ``targets`` has been taken out; ``fits``: whether the ask fits now."""

    def put_back(self, overlay: Overlay, workload: int) -> None:
        """The ask fits with it."""

    def search_failed(self, overlay: Overlay, targets: Iterable[Target]) -> None:
        """Nobody is taken in the end: the ask does not fit even with these gone, whom the search may take."""

    def trees_by_chance(self, trees: int) -> None:
        """Cycle, fair sharing: heads of so many cohort trees, which the origin takes in any order."""

    def in_order(self, place: int, heads: int, level: int) -> None:
        """Cycle: the head's turn; ``place`` counts from 0."""

    def again(self) -> None:
        """Cycle: assigned anew, since somebody of its victims stops for an earlier head."""

    def places_taken(self) -> None:
        """Cycle: assigned anew, since earlier heads took the nodes that it was to have."""

    def reserves(self) -> None:
        """Cycle: nobody may stop for it, and it keeps its capacity from later heads."""

    def overlaps(self, cycle_usage: CycleUsage, head: Nomination, message: str) -> None:
        """Cycle: skipped, since its victims stop for earlier heads."""

    def outrun(self, cycle_usage: CycleUsage, head: Nomination, message: str) -> None:
        """Cycle: skipped, since it does not fit with what earlier heads took."""

    def deferred(self, cycle_usage: CycleUsage, head: Nomination) -> None:
        """Cycle: it fits once those have stopped who stop for earlier heads."""

    def behind(self, ask: Ask, head: Ask, rest: str) -> None:
        """Cycle: another ask of its queue goes first."""

    def inadmissible(self, ask: Ask, why: str) -> None:
        """It is not tried at all."""

    def fits(self, ask: Ask) -> None:
        """Admitted without stopping anybody."""

    def preempts(self, ask: Ask, victims: Sequence[Victim]) -> None:
        """These stop for it."""

    def waits(self, ask: Ask, reasons: str, *, hopeless: bool) -> None:
        """It waits, or can never run."""

    def blocked(self, overlay: Overlay, nomination: Nomination, cycle_usage: CycleUsage | None) -> None:
        """Nothing lets it in: to say what stands most in the way. ``cycle_usage``: of the cycle that it is part of."""

    def explanation(self) -> Explanation | None:
        """What is told of it all."""
        return None


SILENT = Recorder()


Indices = NDArray[np.int64]
FEW = 64
"""So many are faster in plain Python than in NumPy, which takes microseconds a call whatever the size."""
FEW_QUEUES = 48
FEW_OF = 32
_BLOCK = 128


def ascending(overlay: Overlay, candidates: Indices, level: Mapping[int, int]) -> Iterator[int]:
    """``candidates`` of one class by priority, then latest start, then UID; sorted only as far as it is read.

    A decision usually stops after a few victims, while ties of priority run into the thousands. Equal UIDs: the
    ``level`` of the queue, which is the order in which Kueue collects them, then the id. Where queues go by what
    LocalQueues have consumed, that goes before priority between those of one queue: see ``_by_usage``."""
    if overlay.favour is not None:
        yield from _by_usage(overlay, candidates.tolist(), level)
        return
    if len(candidates) <= FEW:
        yield from _few_ascending(overlay, candidates, level)
        return
    state, places, rank = overlay.state, overlay.state.places, overlay.rank
    if places is not None and rank is places.rank:
        ordered = _by_place(places, candidates)
        place = places.rank[ordered] if places.ties else None
    else:
        place = state.priority[candidates] if rank is None else rank[candidates]
        sorting = np.argsort(place, kind="stable")
        ordered, place = candidates[sorting], place[sorting]
    if place is None:
        for begin in range(0, len(ordered), _BLOCK):
            yield from ordered[begin : begin + _BLOCK].tolist()
        return
    begin = 0
    for end in [*(np.flatnonzero(np.diff(place)) + 1).tolist(), len(ordered)]:
        yield from _sorted_alike(overlay, ordered[begin:end].tolist(), level, ranked=rank is not None)
        begin = end


def _by_usage(overlay: Overlay, candidates: list[int], level: Mapping[int, int]) -> Iterator[int]:
    """Each queue's own order is kept, and the first of the queues that goes first by the rest of the comparison is
    next: across queues Kueue's comparison goes round in circles, and what comes of it is chance."""
    queue, by_queue = overlay.state.queue, dict[int, list[int]]()
    for workload in candidates:
        by_queue.setdefault(int(queue[workload]), []).append(workload)
    for of in by_queue.values():
        sort_queue(overlay, of)

    def key(i: int) -> tuple[Any, ...]:
        _, _, *rest, (uid, name) = sort_key(overlay, i, -1)
        return (*rest, uid, level.get(int(queue[i]), 0), name)

    return merge(*by_queue.values(), key=key)


def _few_ascending(overlay: Overlay, candidates: Indices, level: Mapping[int, int]) -> Iterator[int]:
    if not len(candidates):
        return
    ranks = overlay.rank
    place = overlay.state.priority if ranks is None else ranks
    alike: dict[int, list[int]] = {}
    for workload, rank in zip(candidates.tolist(), place[candidates].tolist(), strict=True):
        alike.setdefault(rank, []).append(workload)
    for rank in sorted(alike):
        yield from _sorted_alike(overlay, alike[rank], level, ranked=ranks is not None)


def _by_place(places: Places, candidates: Indices) -> Indices:
    """``candidates`` in an order known beforehand."""
    if len(candidates) * FEW_OF < len(places.order):
        return candidates[np.argsort(places.rank[candidates], kind="stable")]
    chosen = np.zeros(len(places.order), dtype=bool)
    chosen[candidates] = True
    return places.order[chosen[places.order]]


def _sorted_alike(overlay: Overlay, alike: list[int], level: Mapping[int, int], *, ranked: bool) -> Iterable[int]:
    """Workloads of equal priority, or ``ranked`` alike: latest start first, then UID. Ties are broken only once they
    are reached."""
    if len(alike) < 2:
        return alike
    state, every = overlay.state, overlay.state.workloads

    def tie(i: int) -> tuple[str, int, str]:
        of = every[i]
        return (of.uid or "", level.get(int(state.queue[i]), 0), of.id)

    if ranked:
        return sorted(alike, key=tie)
    # Instants compare faster as they are than as integers, which only an unknown start needs.
    starts: dict[int, Any] = {i: every[i].started_at for i in alike}
    if None in starts.values():
        starts = {i: state.started(i, overlay.now) for i in alike}
    alike.sort(key=starts.__getitem__, reverse=True)
    return chain.from_iterable(sorted(tied, key=tie) for tied in _runs(alike, starts))


def _runs(ordered: Sequence[int], starts: Mapping[int, Any]) -> Iterator[list[int]]:
    """Stretches of equal start."""
    run: list[int] = []
    for i in ordered:
        if run and starts[i] != starts[run[0]]:
            yield run
            run = []
        run.append(i)
    yield run


def sort_key(overlay: Overlay, workload: int, queue: int) -> tuple[bool, bool, int, int, tuple[str, str]]:
    """The whole comparator as a key; ``queue`` is the preemptor's."""
    state, rank = overlay.state, overlay.rank
    return (
        workload not in state.evicted,
        int(state.queue[workload]) == queue,
        int(state.priority[workload]) if rank is None else int(rank[workload]),
        -state.started(workload, overlay.now) if rank is None else 0,
        state.uid(workload),
    )


def sort_queue(overlay: Overlay, workloads: list[int]) -> None:
    """Sort workloads of one queue by the comparator."""
    state, rank = overlay.state, overlay.rank
    evicted, every, now = state.evicted, state.workloads, overlay.now
    if overlay.favour is not None and (first := overlay.favour.of(workloads)) is not None:
        workloads.sort(key=lambda i: (i not in evicted, first[i], sort_key(overlay, i, -1)))
        return
    if rank is not None:
        place = dict(zip(workloads, rank[workloads].tolist(), strict=True))
        if not evicted and len(set(place.values())) == len(place):
            workloads.sort(key=place.__getitem__)
            return
        workloads.sort(key=lambda i: (i not in evicted, place[i], every[i].uid or "", every[i].id))
        return
    priority = dict(zip(workloads, state.priority[workloads].tolist(), strict=True))

    def key(i: int) -> tuple[bool, int, int, str, str]:
        of = every[i]
        started = of.started_at
        return (i not in evicted, priority[i], -(now if started is None else micros(started)), of.uid or "", of.id)

    workloads.sort(key=key)


def using(overlay: Overlay, queues: Sequence[int], contested: frozenset[int]) -> Indices:
    """Workloads of ``queues`` that have a flavor assigned which is contested, whatever the amount."""
    state = overlay.state
    if not queues:
        return np.zeros(0, dtype=np.int64)
    if len(queues) == 1:
        workloads = state.by_queue(queues[0])
    elif len(queues) <= FEW_QUEUES:
        workloads = np.concatenate([state.by_queue(q) for q in queues])
    else:
        chosen = np.zeros(len(state.configuration.tree), dtype=bool)
        chosen[list(queues)] = True
        workloads = np.flatnonzero(chosen[state.queue])
    workloads = workloads[state.shapes.using(contested)[state.shape[workloads]]]
    absent = overlay.gone | overlay.barred
    return workloads[~_marks(state, absent)[workloads]] if absent else workloads


def allowed(overlay: Overlay, preemptor: Preemptor, policy: str, candidates: Indices) -> Indices:
    """Those that ``policy`` lets the preemptor touch."""
    if policy == "Any" or not len(candidates):
        return candidates
    if policy == "Never":
        return candidates[:0]
    priority = overlay.state.priority[candidates]
    if policy == "LowerPriority":
        return candidates[priority < preemptor.priority]
    lower = priority < preemptor.priority
    for i in np.flatnonzero(priority == preemptor.priority).tolist():
        created = instant(overlay.state.workloads[int(candidates[i])].created_at)
        lower[i] = preemptor.created < created
    return candidates[lower]


def evicted_first(overlay: Overlay, classes: Sequence[Indices], level: Mapping[int, int]) -> Iterable[int]:
    """Workloads already being evicted before the others; in both halves class by class, each in ascending order."""
    evicted = overlay.state.evicted
    if evicted:
        going = _marks(overlay.state, evicted)
        classes = [*(of[going[of]] for of in classes), *(of[~going[of]] for of in classes)]
    return _Once(chain.from_iterable(ascending(overlay, of, level) for of in classes))


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


def _marks(state: CompiledState, chosen: Collection[int]) -> NDArray[np.bool_]:
    """By workload: whether it is one of ``chosen``."""
    marks = np.zeros(len(state.workloads), dtype=bool)
    marks[np.fromiter(chosen, dtype=np.int64, count=len(chosen))] = True
    return marks


class Pool:
    """Candidates by queue; looked up when a queue is looked into."""

    __slots__ = ("_chosen", "_state", "queues")

    def __init__(self, state: CompiledState, candidates: NDArray[np.int64]) -> None:
        self._state = state
        self._chosen = np.zeros(len(state.workloads), dtype=bool)
        self._chosen[candidates] = True
        self.queues: list[int] = np.flatnonzero(np.bincount(state.queue[candidates])).tolist()

    def of(self, queue: int) -> list[int]:
        """The queue's candidates, in the order of the state."""
        members = self._state.by_queue(queue)
        return members[self._chosen[members]].tolist()

    def items(self) -> Iterator[tuple[int, list[int]]]:
        """Every queue that has candidates, with them."""
        return ((queue, self.of(queue)) for queue in self.queues)


class Leftover:
    """Candidates that failed a round, by queue."""

    __slots__ = ("_by_queue",)

    def __init__(self) -> None:
        self._by_queue: dict[int, list[int]] = {}

    def add(self, queue: int, workloads: Iterable[int]) -> None:
        """Keep these for the next round."""
        self._by_queue.setdefault(queue, []).extend(workloads)

    @property
    def queues(self) -> list[int]:
        """Queues with candidates left over."""
        return list(self._by_queue)

    def of(self, queue: int) -> list[int]:
        """The queue's, in no particular order."""
        return self._by_queue[queue]
