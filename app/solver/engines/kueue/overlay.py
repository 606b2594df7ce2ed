"""What one decision sees and changes: Kueue's snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.admission_sharing import Favour
from app.solver.engines.kueue.quota import FlavorResource, Usage
from app.solver.engines.kueue.state import CompiledState
from app.solver.engines.kueue.topology.room import Look, Misfit, Place, PodSets, Room, place_all

Reason = Literal["InClusterQueue", "InCohortReclamation", "InCohortReclaimWhileBorrowing", "InCohortFairSharing"]
Target = tuple[int, Reason]
"""(workload index, reason)."""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Pending work as the algorithms see it. ``request``: steps by flavor-resource, in ascending order, all above 0;
    ``created``: microseconds, the queue-order timestamp; ``pod_sets``: those to be placed, with their flavors."""

    id: str
    queue: int
    priority: int
    created: int
    request: tuple[tuple[int, int], ...]
    pod_sets: PodSets = ()

    def only(self, fr: int, value: int) -> "Preemptor":
        """The same ask wanting ``value`` of one flavor-resource and nothing else (flavor simulations)."""
        return Preemptor(self.id, self.queue, self.priority, self.created, ((fr, value),))


class Overlay:
    """``now`` in microseconds. ``gone``: workloads taken out of the overlay; ``barred``: those that stay but are no
    candidates (not preemptible, or the ask's own running workload). ``rank``: places of workloads, worked out for many
    asks at once, known of the state, or chosen by the ask's queue (KEP-83), that stand for priority and start; or None.
    ``favour``: what counts before that between candidates of one queue; None: nothing.
    """

    __slots__ = ("barred", "favour", "gone", "now", "rank", "room", "state", "usage")

    def __init__(self, state: CompiledState, now: int) -> None:
        self.state = state
        self.now = now
        self.usage = state.usage()
        self.room = None if state.rooms is None else Room(state.rooms)
        self.gone: set[int] = set()
        self.barred: frozenset[int] = state.protected
        self.favour: Favour | None = None
        self.rank: NDArray[np.int64] | None = self.usual_rank()

    def usual_rank(self) -> NDArray[np.int64] | None:
        """The places that the state knows of, where they hold now."""
        places = self.state.places
        return places.rank if places is not None and places.hold(self.now) else None

    def imagine(self, usage: Usage) -> "Overlay":
        """A copy in which quotas and usage are others."""
        other = copy(self)
        other.usage, other.gone = usage, set(self.gone)
        other.room = None if self.room is None else self.room.copy()
        return other

    def spare_own(self, workload: str | None) -> None:
        """An ask never evicts the running workload that it belongs to."""
        if workload is not None:
            self.barred |= {i for i, w in enumerate(self.state.workloads) if w.id == workload}

    def fr(self, queue: int, flavor: str, resource: str) -> int:
        """Index of a flavor-resource, with a cell for ``queue``; one that nobody has quota for gets one too."""
        quotas = self.usage.quotas
        at = quotas.fr_index.get((flavor, resource))
        if at is None or at not in quotas.cells[queue]:
            self._provide(queue, [(flavor, resource)])
            at = self.usage.quotas.fr_index[(flavor, resource)]
        return at

    def request(self, queue: int, amounts: Mapping[FlavorResource, int]) -> tuple[tuple[int, int], ...]:
        """``amounts`` by index, ascending, ready for a Preemptor."""
        self._provide(queue, sorted(amounts))
        index = self.usage.quotas.fr_index
        return tuple(sorted((index[fr], amount) for fr, amount in amounts.items()))

    def _provide(self, queue: int, frs: Sequence[FlavorResource]) -> None:
        """Cells for all of ``frs``, made at once: each extension copies the quota tables."""
        quotas = self.usage.quotas
        known = [*quotas.frs, *(fr for fr in frs if fr not in quotas.fr_index)]
        index = {fr: at for at, fr in enumerate(known)}
        pairs = [(queue, index[fr]) for fr in frs]
        if quotas.missing(pairs):
            self.usage.grow(quotas.extended(known, pairs))

    def remove(self, workload: int) -> None:
        """Take the workload's usage off. It stays a candidate of searches already under way."""
        state = self.state
        self.usage.remove(int(state.queue[workload]), state.amounts(workload))
        if self.room is not None:
            self.room.add(self.room.rooms.used_by(state.workloads[workload]), -1)

    def restore(self, workload: int) -> None:
        """The inverse of ``remove``."""
        state = self.state
        self.usage.add(int(state.queue[workload]), state.amounts(workload))
        if self.room is not None:
            self.room.add(self.room.rooms.used_by(state.workloads[workload]))

    def fits(self, preemptor: Preemptor, *, borrow: bool = True) -> bool:
        """Whether quota is left for it, and its pod sets find places (Kueue: workloadFits)."""
        if not self.usage.fits(preemptor.queue, preemptor.request, borrow=borrow):
            return False
        return not preemptor.pod_sets or (self.room is not None and self.room.fits(preemptor.pod_sets))

    def place(
        self, pod_sets: PodSets, *, empty: bool = False, look: Look | None = None
    ) -> tuple[dict[str, Place], Misfit | None]:
        """Where pod sets go as things are; ``empty``: as if nothing of Kueue's ran. ``look``: see ``place_all``."""
        room = self.room
        assert room is not None, "whoever has pod sets to place has nodes"
        if empty:
            return place_all(room.rooms.forests, pod_sets, room.empty, room.empty_units, look)
        return place_all(room.rooms.forests, pod_sets, room.left, room.units, look)

    def evict(self, workloads: Iterable[int]) -> None:
        """Take workloads out for good: neither usage nor candidates from here on."""
        for workload in workloads:
            if workload not in self.gone:
                self.gone.add(workload)
                self.remove(workload)

    def revive(self, workloads: Iterable[int]) -> None:
        """Undo ``evict``."""
        for workload in workloads:
            if workload in self.gone:
                self.gone.discard(workload)
                self.restore(workload)
