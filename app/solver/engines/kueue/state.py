"""A State compiled against a Kueue configuration: columns and order of workloads, usage of every queue and cohort; and
columns that follow change by change.

The order is that of candidates.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from datetime import datetime
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.amounts import Amounts, Shapes
from app.solver.engines.kueue.configuration import CompiledConfiguration, Quotas
from app.solver.engines.kueue.topology.room import Rooms
from app.solver.model.base import exact, micros
from app.solver.model.kueue import QueueState
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import State, Workload

Key = tuple[int, int, str, str]
OLDEST = -(2**62)
"""In microseconds: before any start. An unknown start is as old."""


class Places:
    """``order``: indices of all workloads, first to go first; ``rank``: the place of each, equal for those that only
    their ids tell apart. ``latest``: no known start is later, in microseconds, where some start is unknown."""

    WORTHWHILE: ClassVar[int] = 512

    __slots__ = ("latest", "order", "rank", "ties")

    def __init__(self, order: NDArray[np.int64], alike: NDArray[np.bool_], latest: int | None) -> None:
        """``alike``: by place, whether only the id tells it from the one before."""
        self.order = order
        self.rank = np.empty_like(order)
        self.rank[order] = np.cumsum(~alike)
        self.ties = bool(alike.any())
        self.latest = latest

    @staticmethod
    def of(workloads: Sequence[Workload], priority: NDArray[np.int64]) -> "Places":
        """Sort them all."""
        keys = [_key(w, p) for w, p in zip(workloads, priority.tolist(), strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        alike = [keys[a][:3] == keys[b][:3] for a, b in pairwise(order)]
        unknown = any(w.started_at is None for w in workloads)
        latest = max((micros(w.started_at) for w in workloads if w.started_at), default=OLDEST) if unknown else None
        return Places(np.array(order, dtype=np.int64), np.array([False, *alike][: len(order)], dtype=bool), latest)

    def hold(self, now: int) -> bool:
        """Whether the places are right at ``now``: an unknown start counts as ``now``, which must be the latest."""
        return self.latest is None or self.latest < now

    def moved(self, was: NDArray[np.int64], workloads: Sequence[Workload], priority: NDArray[np.int64]) -> "Places":
        """The places after a change. ``was``: by new index, the old index of those that are as they were, in any order,
        which keep theirs; -1: of the others, which are put in. ``workloads``, ``priority``: after the change."""
        stay = np.flatnonzero(was >= 0)
        index = np.full(len(self.order), -1, dtype=np.int64)
        index[was[stay]] = stay
        staying = self.order[index[self.order] >= 0]
        order, rank = index[staying], self.rank[staying]
        alike = np.concatenate((np.zeros(min(1, len(rank)), dtype=bool), np.diff(rank) == 0))
        new = np.flatnonzero(was < 0).tolist()

        def key(i: int) -> Key:
            return _key(workloads[i], int(priority[i]))

        arriving = sorted((key(i), i) for i in new)
        where = [bisect_left(range(len(order)), k, key=lambda spot: key(int(order[spot]))) for k, _ in arriving]
        order = np.insert(order, where, [i for _, i in arriving])
        alike = np.insert(alike, where, False)
        for shift, spot in enumerate(where):
            for place in (spot + shift, spot + shift + 1):
                if 0 < place < len(order):
                    alike[place] = key(int(order[place - 1]))[:3] == key(int(order[place]))[:3]
        return Places(order, alike, self._latest(workloads, new))

    def _latest(self, workloads: Sequence[Workload], new: Sequence[int]) -> int | None:
        """Never too early: one that has left may still count."""
        starts = [workloads[i].started_at for i in new]
        if self.latest is None and None not in starts:
            return None
        if self.latest is None:
            return max((micros(w.started_at) for w in workloads if w.started_at), default=OLDEST)
        return max([self.latest, *(micros(start) for start in starts if start is not None)])


def _key(workload: Workload, priority: int) -> Key:
    started = workload.started_at
    return (priority, OLDEST if started is None else -micros(started), workload.uid or "", workload.id)


_SAFE = 2**62
NO_PRIORITY = 2**62
FEW = 64
"""So many are faster in plain Python than in NumPy, which takes microseconds a call whatever the size."""
_SMALL_TREE = 2**15
_ANOTHER = -1
_EXACT = 2**53
"""Sums below this are exact in doubles."""
_MOST_CELLS = 2**20


class CompiledState:
    """Immutable once built, caches aside. Columns by workload index, in the order of the request.

    ``queue``: its node; ``shape``: index into ``shapes.amounts``, the amounts it uses; ``evicted``, ``protected``:
    indices of workloads being evicted, and of those marked not preemptible. ``quotas``: the configuration's, extended
    where running workloads use what has no quota; ``used``: usage by cell. ``rooms``: what is left on nodes, where
    flavors have topologies. ``local_queues``: what they have consumed, as it was given. ``places``: where a workload
    stands in the order of candidates, once that has paid off (``settle``).
    """

    __slots__ = (
        "_costs", "_lowest", "_members", "_settled", "configuration", "evicted", "local_queues", "places",
        "priority", "protected", "queue", "quotas", "rooms", "shape", "shapes", "used", "workloads",
    )  # fmt: skip

    def __init__(
        self, configuration: CompiledConfiguration, workloads: list[Workload], queue: NDArray[np.int64],
        priority: NDArray[np.int64], evicted: frozenset[int], protected: frozenset[int],
    ) -> None:  # fmt: skip
        self.configuration = configuration
        self.workloads = workloads
        self.queue = queue
        self.priority = priority
        self.evicted = evicted
        self.protected = protected
        self.shapes: Shapes
        self.shape: NDArray[np.int64]
        self.quotas: Quotas
        self.used: list[int]
        self.rooms: Rooms | None = None
        self.local_queues: dict[str, QueueState] = {}
        self.places: Places | None = None
        self._settled = 0
        self._costs: bool | None = None
        self._lowest: list[int] | None = None
        self._members: tuple[NDArray[np.int64], list[int]] | None = None

    def by_queue(self, node: int) -> NDArray[np.int64]:
        """Indices of the workloads that run in ClusterQueue ``node``, ascending."""
        if self._members is None:
            if len(self.workloads) <= FEW:
                return np.flatnonzero(self.queue == node)
            self._members = self._by_queue()
        members, starts = self._members
        return members[starts[node] : starts[node + 1]]

    def _by_queue(self) -> tuple[NDArray[np.int64], list[int]]:
        """Indices by queue, and where those of each queue begin: of use to whoever looks for victims, or for an
        explanation."""
        queue, nodes = self.queue, len(self.configuration.tree)
        # NumPy sorts 16-bit integers in linear time.
        members = np.argsort(queue.astype(np.int16) if nodes < _SMALL_TREE else queue, kind="stable")
        return members, np.searchsorted(queue[members], np.arange(nodes + 1)).tolist()

    def lowest_priority(self, nodes: Iterable[int]) -> int | None:
        """The lowest priority that runs in these ClusterQueues; None when nothing runs there."""
        lowest = self._lowest
        if lowest is None:
            lowest = self._lowest = self._lowest_by_node()
        least = min(map(lowest.__getitem__, nodes), default=NO_PRIORITY)
        return None if least == NO_PRIORITY else least

    def _lowest_by_node(self) -> list[int]:
        if len(self.workloads) > FEW:
            by_node = np.full(len(self.configuration.tree), NO_PRIORITY, dtype=np.int64)
            np.minimum.at(by_node, self.queue, self.priority)
            return by_node.tolist()
        lowest = [NO_PRIORITY] * len(self.configuration.tree)
        nodes: list[int] = self.queue.tolist()
        priorities: list[int] = self.priority.tolist()
        for node, priority in zip(nodes, priorities, strict=True):
            lowest[node] = min(lowest[node], priority)
        return lowest

    def amounts(self, workload: int) -> Amounts:
        """What the workload uses."""
        return self.shapes.amounts[int(self.shape[workload])]

    def has_costs(self) -> bool:
        """Whether some workload brings milestones of its own (KEP-83)."""
        if self._costs is None:
            self._costs = any(w.disruption_cost_milestones for w in self.workloads)
        return self._costs

    def known(self, costs: bool, lowest: list[int] | None = None) -> None:
        """``has_costs`` and, by node, the lowest priority that runs there, from whoever has looked."""
        self._costs, self._lowest = costs, lowest

    def with_priority(self, priority: NDArray[np.int64]) -> "CompiledState":
        """The same state with other priorities in force (KEP-83: those of long runners fall)."""
        other = copy(self)
        other.priority = priority
        other.places = other._lowest = None
        return other

    def settle(self) -> None:
        """To be told of every answer given from this state. From the second on it is worth knowing the place of every
        workload in the order of candidates."""
        if self._settled == 1 and len(self.workloads) >= Places.WORTHWHILE:
            self.places = Places.of(self.workloads, self.priority)
        self._settled += 1

    def settled_as(self, before: "CompiledState") -> None:
        """This is the next version of ``before``, and as settled."""
        self._settled = before._settled

    def lowest_as(self, before: "CompiledState", leaving: Sequence[int], fresh: Iterable[int]) -> None:
        """This is the next version of ``before``; ``leaving``: indices there of workloads that are others here, or
        none; ``fresh``: those here. What the lowest priorities were is looked up again only where the lowest left."""
        if before._lowest is None or len(leaving) > FEW:
            return
        lowest, again = before._lowest.copy(), set[int]()
        for i in leaving:
            node = int(before.queue[i])
            if before.priority[i] == lowest[node]:
                again.add(node)
        for i in fresh:
            node = int(self.queue[i])
            lowest[node] = min(lowest[node], int(self.priority[i]))
        for node in again:
            lowest[node] = int(self.priority[self.queue == node].min(initial=NO_PRIORITY))
        self._lowest = lowest

    def costs_as(self, before: "CompiledState", fresh: Iterable[int]) -> None:
        """This is the next version of ``before``; ``fresh``: indices of workloads that are others, or new. Where none
        brought costs, only these can."""
        if before._costs is False:
            self._costs = any(self.workloads[i].disruption_cost_milestones for i in fresh)

    def started(self, workload: int, now: int) -> int:
        """When quota was reserved, in microseconds; ``now`` where unknown (Kueue: no QuotaReserved condition)."""
        since = self.workloads[workload].started_at
        return now if since is None else micros(since)

    def uid(self, workload: int) -> tuple[str, str]:
        """The last tie-break: the UID, then the id, so that the order of the request never decides."""
        of = self.workloads[workload]
        return (of.uid or "", of.id)


class Running:
    """What runs. ``queues``: node of its queue; ``shapes``: index of what it uses; ``_was``: where it stood when the
    columns were last taken, -1 where it is another since. Where somebody leaves, the last one takes the place."""

    def __init__(self, loaded: CompiledState) -> None:
        self.workloads = list(loaded.workloads)
        self.places = {workload.id: i for i, workload in enumerate(self.workloads)}
        self.queues = array("q", loaded.queue.tolist())
        self.shapes = array("q", loaded.shape.tolist())
        self._priorities = array("q", loaded.priority.tolist())
        self._was = array("q", range(len(self.workloads)))

    def add(self, workload: Workload, node: int, shape: int) -> None:
        """It runs from now on."""
        self.places[workload.id] = len(self.workloads)
        self.workloads.append(workload)
        self.queues.append(node)
        self.shapes.append(shape)
        self._priorities.append(workload.priority)
        self._was.append(_ANOTHER)

    def replace(self, i: int, workload: Workload) -> None:
        """The one at ``i`` is another, and counts for as much."""
        self.workloads[i] = workload
        self._was[i] = _ANOTHER

    def remove(self, i: int) -> None:
        """The one at ``i`` runs no longer."""
        del self.places[self.workloads[i].id]
        last = self.workloads.pop()
        if i < len(self.workloads):
            self.workloads[i], self.places[last.id] = last, i
        for column in (self.queues, self.shapes, self._priorities, self._was):
            of_last = column.pop()
            if i < len(column):
                column[i] = of_last

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Queues, priorities, shapes and where each stood when they were last taken, as of now."""
        columns = np.array(self.queues), np.array(self._priorities), np.array(self.shapes), np.array(self._was)
        self._was = array("q", range(len(self.workloads)))
        return columns


def compile_state(configuration: CompiledConfiguration, state: State) -> CompiledState:
    """Compile. Raises InvalidInput, QuantityError or KeyError (an unknown queue)."""
    workloads, index = state.workloads, configuration.tree.index
    everybody = range(len(workloads))
    marks = marked(workloads)
    out = CompiledState(
        configuration, workloads,
        queue=_column([index[w.queue] for w in workloads]), priority=_column([w.priority for w in workloads]),
        evicted=marks.evicted, protected=marks.protected,
    )  # fmt: skip
    out.known(marks.costs)
    refuse_cohorts(configuration, out.queue, everybody)
    out.shapes = Shapes(configuration, frozenset([None, *(node.name for node in state.nodes)]))
    out.shape = out.shapes.column(workloads, out.queue, everybody)
    totals = sums(out.queue, out.shape, out.shapes.amounts, len(out.shapes.frs))
    quotas = configuration.quotas
    out.quotas = quotas.extended(out.shapes.frs, totals) if quotas.missing(totals) else quotas
    out.used = _usage(out.quotas, totals)
    out.rooms = rooms_of(configuration, state)
    out.local_queues = local_queues_of(state)
    return out


def local_queues_of(state: State) -> dict[str, QueueState]:
    """What LocalQueues have consumed. Raises QuantityError."""
    blocks = {name: of.kueue for name, of in state.queues.items() if of.kueue is not None}
    for of in blocks.values():
        for value in (*(of.consumed or {}).values(), *of.penalty.values()):
            exact(value)
    return blocks


def rooms_of(configuration: CompiledConfiguration, state: State) -> Rooms | None:
    """What is left on nodes; None where no flavor has a topology. Raises QuantityError."""
    if not configuration.topologies:
        return None
    return Rooms(configuration.flavors, configuration.topologies, state.nodes, state.workloads)


class Marks(NamedTuple):
    """What few workloads have: indices of those being evicted and of those that are not preemptible, and whether some
    bring milestones of their own."""

    evicted: frozenset[int]
    protected: frozenset[int]
    costs: bool


def marked(workloads: Sequence[Workload]) -> Marks:
    """All of it in one pass; only where something is marked it is looked for."""
    if not _some_marked(workloads):
        return _UNMARKED
    return Marks(
        frozenset(i for i, w in enumerate(workloads) if leaving(w)),
        frozenset(i for i, w in enumerate(workloads) if not w.preemptible),
        any(w.disruption_cost_milestones for w in workloads),
    )


def leaving(workload: Workload) -> bool:
    """Whether its eviction has begun, or begins now as its LocalQueue is drained."""
    return workload.evicted or (workload.kueue is not None and workload.kueue.drained)


_UNMARKED = Marks(frozenset(), frozenset(), costs=False)


def _some_marked(workloads: Sequence[Workload]) -> bool:
    for w in workloads:  # noqa: SIM110 - a generator takes twice as long
        if w.evicted or not w.preemptible or w.disruption_cost_milestones or w.kueue is not None:
            return True
    return False


def _column(values: list[int]) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64, count=len(values))


def instant(moment: datetime | None) -> int:
    """Microseconds; absent is older than everything."""
    return OLDEST if moment is None else micros(moment)


def refuse_cohorts(
    configuration: CompiledConfiguration, queues: Sequence[int] | NDArray[np.int64], indices: Iterable[int]
) -> None:
    """Raises InvalidInput where a queue is a cohort; ``indices``: of the workloads in the state."""
    cohorts = configuration.is_cohort
    wrong = any(map(cohorts.__getitem__, queues)) if len(queues) <= FEW else np.array(cohorts, dtype=bool)[queues].any()
    if wrong:
        raise InvalidInput(
            Problem(pointer=pointer("state", "workloads", i, "queue"), detail="a cohort holds no workloads")
            for i, queue in zip(indices, queues, strict=True)
            if configuration.is_cohort[queue]
        )


def _usage(quotas: Quotas, totals: dict[tuple[int, int], int]) -> list[int]:
    """Sums by (queue, flavor-resource), once up the tree: a cohort holds what each child cannot keep local."""
    used = [0] * len(quotas.node)
    for (node, fr), total in totals.items():
        used[quotas.cells[node][fr]] = total
    for node in reversed(quotas.tree.top_down):
        for cell in quotas.cells[node].values():
            above = quotas.above[cell]
            if above >= 0 and used[cell] > quotas.local[cell]:
                used[above] += used[cell] - quotas.local[cell]
    return used


def sums(
    queue: NDArray[np.int64], shape: NDArray[np.int64], shapes: list[Amounts], frs: int
) -> dict[tuple[int, int], int]:
    """Usage by (queue, flavor-resource). Exact: Python integers where a sum could pass int64."""
    if len(queue) <= FEW:
        return _few_sums(queue.tolist(), shape.tolist(), shapes)
    amounts = [amount for of in shapes for _, amount in of]
    if not amounts:
        return {}
    kind = np.int64 if max(amounts) * max(1, len(queue)) < _SAFE else object
    keys: list[NDArray[np.int64]] = []
    values: list[NDArray[Any]] = []
    for k in range(max(map(len, shapes))):
        fr = np.array([of[k][0] if k < len(of) else -1 for of in shapes], dtype=np.int64)[shape]
        amount = np.array([of[k][1] if k < len(of) else 0 for of in shapes], dtype=kind)[shape]
        has = fr >= 0
        keys.append((queue * frs + fr)[has])
        values.append(amount[has])
    key, value = np.concatenate(keys), np.concatenate(values)
    distinct: NDArray[np.int64]
    sums: NDArray[Any]
    if max(amounts) * len(key) < _EXACT and (int(queue.max(initial=0)) + 1) * frs <= _MOST_CELLS:
        distinct = np.flatnonzero(np.bincount(key))
        sums = np.bincount(key, weights=value)[distinct].astype(np.int64)
    else:
        distinct, inverse = np.unique(key, return_inverse=True)
        sums = np.zeros(len(distinct), dtype=kind)
        np.add.at(sums, inverse, value)
    return {divmod(key, frs): total for key, total in zip(distinct.tolist(), sums.tolist(), strict=True)}


def _few_sums(queue: list[int], shape: list[int], shapes: list[Amounts]) -> dict[tuple[int, int], int]:
    totals: dict[tuple[int, int], int] = {}
    for node, of in zip(queue, shape, strict=True):
        for fr, amount in shapes[of]:
            totals[node, fr] = totals.get((node, fr), 0) + amount
    return totals
