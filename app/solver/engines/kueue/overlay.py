"""Kueue's snapshot, as one decision sees and changes it: usage of the quota tree, and who is out of it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.admission_sharing import Favour
from app.solver.engines.kueue.configuration import NOWHERE, FlavorResource, Quotas
from app.solver.engines.kueue.state import CompiledState
from app.solver.engines.kueue.topology.room import Look, Misfit, Place, PodSets, Room, place_all
from app.solver.question import safe_point

R = TypeVar("R")


class Usage:
    """Usage by cell of one decision, over shared quotas; what Kueue's overlay keeps per resource node."""

    __slots__ = ("quotas", "used")

    def __init__(self, quotas: Quotas, used: list[int]) -> None:
        self.quotas = quotas
        self.used = used

    @staticmethod
    def of(state: CompiledState) -> "Usage":
        """A fresh copy for one decision."""
        return Usage(state.quotas, state.used.copy())

    def copy(self) -> "Usage":
        """An independent copy."""
        return Usage(self.quotas, self.used.copy())

    def under(self, quotas: Quotas, fr: int) -> "Usage":
        """The same queues' usage under quotas that differ in ``fr``: what cohorts hold follows from it."""
        new = Usage(quotas, self.used + [0] * (len(quotas.node) - len(self.used)))
        used, above, local = new.used, quotas.above, quotas.local
        column = [of[fr] for node in quotas.tree.top_down if fr in (of := quotas.cells[node])]
        for cell in column:
            if quotas.tree.children[quotas.node[cell]]:
                used[cell] = 0
        for cell in reversed(column):
            if above[cell] != NOWHERE:
                used[above[cell]] += max(0, used[cell] - local[cell])
        return new

    def grow(self, quotas: Quotas) -> None:
        """Go on with an extension of the same quotas."""
        self.used += [0] * (len(quotas.node) - len(self.used))
        self.quotas = quotas

    def add(self, node: int, amounts: Iterable[tuple[int, int]]) -> None:
        """Book (flavor-resource, amount) pairs on ``node``; the parent sees only what exceeds the local part."""
        quotas, used = self.quotas, self.used
        cells, local, above = quotas.cells[node], quotas.local, quotas.above
        for fr, amount in amounts:
            cell, value = cells[fr], amount
            while True:
                before = used[cell]
                used[cell] = before + value
                free = local[cell] - before
                if free > 0:
                    value -= free
                    if value <= 0:
                        break
                cell = above[cell]
                if cell == NOWHERE:
                    break

    def remove(self, node: int, amounts: Iterable[tuple[int, int]]) -> None:
        """The inverse of ``add``: usage of a cohort is a function of its children's, so any order will do."""
        quotas, used = self.quotas, self.used
        cells, local, above = quotas.cells[node], quotas.local, quotas.above
        for fr, amount in amounts:
            cell, value = cells[fr], amount
            while True:
                before = used[cell]
                used[cell] = before - value
                stored = before - local[cell]
                if stored < value:
                    value = stored
                    if value <= 0:
                        break
                cell = above[cell]
                if cell == NOWHERE:
                    break

    def available_cell(self, cell: int) -> int:
        """What the cell's node could still take; may be negative."""
        quotas, used = self.quotas, self.used
        above, local, subtree, borrowing = quotas.above, quotas.local, quotas.subtree, quotas.borrowing
        best: int | None = None
        gathered = 0
        while True:
            up, use = above[cell], used[cell]
            if up == NOWHERE:
                total = gathered + subtree[cell] - use
                return total if best is None or total < best else best
            own = local[cell]
            free = own - use
            if free > 0:
                gathered += free
                free = 0
            limit = borrowing[cell]
            if limit is not None:
                # free is now minus the part of this node's usage that its parent stores.
                cap = gathered + subtree[cell] - own + free + limit
                if best is None or cap < best:
                    best = cap
            cell = up

    def available(self, node: int, fr: int) -> int:
        """What a ClusterQueue can still take of ``fr``: never negative."""
        return max(0, self.available_cell(self.quotas.cells[node][fr]))

    def fits(self, node: int, request: Iterable[tuple[int, int]], *, borrow: bool = True) -> bool:
        """Whether every non-zero amount is available; without ``borrow`` also within the node's nominal quota."""
        cells = self.quotas.cells[node]
        for fr, value in request:
            if value:
                cell = cells[fr]
                if not borrow and self.used[cell] + value > self.quotas.nominal[cell]:
                    return False
                if value > self.available_cell(cell):
                    return False
        return True

    def exceeds(self, node: int, frs: Collection[int]) -> bool:
        """Whether the node borrows in one of ``frs``: usage beyond its own nominal quota (ClusterQueue, which has
        nothing below) or beyond the quota of its subtree (cohort). No quota counts as 0."""
        return bool(self.exceeding((node,), frs))

    def exceeding(self, nodes: Iterable[int], frs: Collection[int]) -> list[int]:
        """Those of ``nodes`` that do: a thousand at a time costs less than a thousand calls."""
        cells, used, subtree = self.quotas.cells, self.used, self.quotas.subtree
        if len(frs) == 1:
            (fr,) = frs
            return [
                member for member in nodes if (cell := cells[member].get(fr)) is not None and used[cell] > subtree[cell]
            ]
        out: list[int] = []
        for node in nodes:
            of = cells[node]
            for fr in frs:
                cell = of.get(fr)
                if cell is not None and used[cell] > subtree[cell]:
                    out.append(node)
                    break
        return out

    def alike(self, fr: int, other: int) -> bool:
        """Whether limits and usage of both are the same on every node."""
        quotas, used = self.quotas, self.used
        columns = used, quotas.nominal, quotas.borrowing, quotas.lending
        for cells in quotas.cells:
            a, b = cells.get(fr), cells.get(other)
            if a is None or b is None:
                if a is not b:
                    return False
            elif any(column[a] != column[b] for column in columns):
                return False
        return True

    def fits_by_level(self, path: Iterable[int], request: Mapping[int, int]) -> list[bool]:
        """For each node of ``path``, which goes up to a root: whether the request, less what lower levels can keep for
        themselves, is within the quota of that subtree (Kueue: QuantitiesFitInQuota)."""
        quotas, used, rest = self.quotas, self.used, dict(request)
        out: list[bool] = []
        for level in path:
            cells, fits = quotas.cells[level], True
            for fr, value in rest.items():
                cell = cells[fr]
                if used[cell] + value > quotas.subtree[cell]:
                    fits = False
                # Local quota to spare takes nothing off what other levels lend: the rest is never negative.
                rest[fr] = max(0, value - max(0, quotas.local[cell] - used[cell]))
            out.append(fits)
        return out


class Preemptor(NamedTuple):
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
    ``favour``: what counts before that between candidates of one queue; None: nothing. Nobody's place is worked out,
    and nobody looked for who is barred, before somebody asks.
    """

    __slots__ = ("_barred", "_own", "_rank", "_ranked", "favour", "gone", "now", "room", "state", "usage")

    def __init__(self, state: CompiledState, now: int) -> None:
        self.state = state
        self.now = now
        self.usage = Usage.of(state)
        self.room = None if state.rooms is None else Room(state.rooms)
        self.gone: set[int] = set()
        self.favour: Favour | None = None
        self.prepare(None, Overlay.usual_rank)

    def prepare(self, own: str | None, ranked: "Ranked") -> None:
        """For an ask that never evicts its ``own`` running workload; ``ranked`` works out the places."""
        self._own = own
        self._ranked: Ranked | None = ranked
        self._barred: frozenset[int] | None = None
        self._rank: NDArray[np.int64] | None = None

    @property
    def barred(self) -> frozenset[int]:
        if self._barred is None:
            self._barred = self.state.protected
            if self._own is not None:
                self._barred |= {i for i, w in enumerate(self.state.workloads) if w.id == self._own}
        return self._barred

    @property
    def rank(self) -> NDArray[np.int64] | None:
        if self._ranked is not None:
            self._rank, self._ranked = self._ranked(self), None
        return self._rank

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

    def fr(self, queue: int, flavor: str, resource: str) -> int:
        """Index of a flavor-resource, with a cell for ``queue``; one that nobody has quota for gets one too."""
        quotas = self.usage.quotas
        index = quotas.fr_index.get((flavor, resource))
        if index is None or index not in quotas.cells[queue]:
            self._provide(queue, [(flavor, resource)])
            index = self.usage.quotas.fr_index[(flavor, resource)]
        return index

    def fr_name(self, fr: int) -> str:
        """As explanations write a flavor-resource: ``flavor/resource``."""
        return "/".join(self.usage.quotas.frs[fr])

    def request(self, queue: int, amounts: Mapping[FlavorResource, int]) -> tuple[tuple[int, int], ...]:
        """``amounts`` by index, ascending, ready for a Preemptor."""
        quotas = self.usage.quotas
        if any(quotas.fr_index.get(fr) not in quotas.cells[queue] for fr in amounts):
            self._provide(queue, sorted(amounts))
        index = self.usage.quotas.fr_index
        return tuple(sorted((index[fr], amount) for fr, amount in amounts.items()))

    def _provide(self, queue: int, frs: Sequence[FlavorResource]) -> None:
        """Cells for all of ``frs``, made at once: each extension copies the quota tables."""
        quotas = self.usage.quotas
        known = [*quotas.frs, *(fr for fr in frs if fr not in quotas.fr_index)]
        index = {fr: i for i, fr in enumerate(known)}
        pairs = [(queue, index[fr]) for fr in frs]
        self.usage.grow(quotas.extended(known, pairs))

    def alike(self, fr: int, other: int) -> bool:
        """Whether a classical search comes to the same for as much of either: what limits and uses one does the other
        as well."""
        state = self.state
        return not state.configuration.fair_sharing and state.shapes.alike(fr, other) and self.usage.alike(fr, other)

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

    def spare(
        self, preemptor: Preemptor, targets: list[tuple[int, R]], put_back: "Callable[[Overlay, int], None]",
        *, borrow: bool = True,
    ) -> list[tuple[int, R]]:  # fmt: skip
        """The targets that must go, in Kueue's order: a spared one's place is taken by the last of the list;
        ``put_back`` hears of it. Called with every target removed; leaves them all restored."""
        victims = list(targets)
        for i in range(len(victims) - 2, -1, -1):
            safe_point()
            workload = victims[i][0]
            self.restore(workload)
            if self.fits(preemptor, borrow=borrow):
                victims[i] = victims[-1]
                victims.pop()
                put_back(self, workload)
            else:
                self.remove(workload)
        for workload, _ in victims:
            self.restore(workload)
        return victims

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


Ranked = Callable[[Overlay], NDArray[np.int64] | None]
