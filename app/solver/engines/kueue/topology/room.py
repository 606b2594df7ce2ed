"""What is left in the leaves of every flavor's forest, as a decision sees it and changes it.

Pod sets of one ask are placed one group after the other, each seeing what those before it took.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.topology import Amounts, Domain, Forest
from app.solver.engines.kueue.topology.placement import Placed, Placement, PodSet, Wanted, fit, wanted_of
from app.solver.kubernetes import PODS
from app.solver.model.base import Quantity, parse_quantity, scale_of
from app.solver.model.configuration import Flavor
from app.solver.model.kueue import TopologyAssignment, TopologyDomain
from app.solver.model.state import Node, Task, Workload

Remaining = Callable[[str, int], Amounts]
"""What is left in a leaf of a flavor's forest."""
Units = Callable[[str, Amounts], list[int] | None]
Assumed = dict[tuple[str, ...], Amounts]
Look = Callable[[PodSet, Forest, Wanted, Placement], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pods of one pod set go: a flavor, and how many by leaf of its forest."""

    flavor: str
    pods: Placed


@dataclass(frozen=True, slots=True)
class Misfit:
    """The pod set that does not fit, and why."""

    task: str
    reason: str


def place_all(
    forests: Mapping[str, Forest],
    pod_sets: Sequence[tuple[str, PodSet]],
    remaining: Remaining,
    units: Units | None = None,
    look: Look | None = None,
) -> tuple[dict[str, Place], Misfit | None]:
    """Places by name of the task for pod sets with their flavors, up to the first that does not fit. ``units``: how
    many pods fit in each leaf of a flavor, where that is known for all leaves at once; ``look`` is shown each group's
    placement before it is made."""
    places: dict[str, Place] = {}
    hosts: Assumed = {}
    for flavor in sorted({flavor for flavor, _ in pod_sets}):
        forest = forests[flavor]
        # Hosts are the same whatever flavor they are seen through; other leaves are a flavor's own.
        assumed = hosts if forest.hosts else {}
        for group in groups([of for name, of in pod_sets if name == flavor]):
            workers, leader = roles(group)
            wanted = wanted_of(forest, workers, leader)
            left = _left(forest, flavor, remaining, assumed)
            known = units(flavor, workers.requests) if units is not None and not assumed else None
            if isinstance(wanted, str):
                return places, Misfit(workers.task.name, wanted)
            placement = Placement(forest, left, workers, leader, wanted, known)
            if look is not None:
                look(workers, forest, wanted, placement)
            placed = placement.places()
            if isinstance(placed, str):
                return places, Misfit(workers.task.name, placed)
            for of, pods in zip((workers, leader), placed, strict=True):
                if of is not None:
                    places[of.task.name] = Place(flavor, pods)
                    _assume(forest, assumed, of, pods)
    return places, None


def shown(forest: Forest, pods: Placed) -> TopologyAssignment:
    """As the wire has it: domains in the order of all their label values."""
    leaves = sorted((forest.leaves[leaf] for leaf in pods), key=lambda leaf: leaf.values)
    domains = [TopologyDomain(values=list(forest.key(leaf.values)), count=pods[leaf.leaf]) for leaf in leaves]
    return TopologyAssignment(levels=forest.shown_levels, domains=domains)


def groups(pod_sets: Sequence[PodSet]) -> list[list[PodSet]]:
    """Pod sets that are placed together, in order of the first of each."""
    by_name: dict[str, list[PodSet]] = {}
    for i, of in enumerate(pod_sets):
        name = of.request.pod_set_group if of.request is not None else None
        by_name.setdefault(f"/{i}" if name is None else name, []).append(of)
    return list(by_name.values())


def roles(group: list[PodSet]) -> tuple[PodSet, PodSet | None]:
    """Workers and their leader: the one with fewer pods, of two with as many the second."""
    if len(group) < 2:
        return group[0], None
    first, second = group[:2]
    return (second, first) if first.count < second.count else (first, second)


def _left(forest: Forest, flavor: str, remaining: Remaining, assumed: Assumed) -> Callable[[int], Amounts]:
    if not assumed:
        return lambda leaf: remaining(flavor, leaf)

    def left(leaf: int) -> Amounts:
        there, taken = remaining(flavor, leaf), assumed.get(forest.key(forest.leaves[leaf].values))
        return there if taken is None else {name: amount - taken.get(name, 0) for name, amount in there.items()}

    return left


def _assume(forest: Forest, assumed: Assumed, of: PodSet, pods: Placed) -> None:
    for leaf, count in pods.items():
        taken = assumed.setdefault(forest.key(forest.leaves[leaf].values), {})
        for name, amount in of.requests.items():
            taken[name] = taken.get(name, 0) + amount * count


PodSets = tuple[tuple[str, PodSet], ...]
"""Pod sets with the flavor through which each uses nodes."""
_MOST = 2**62
Usage = dict[tuple[str, int], Amounts]
"""Steps by resource, by flavor and leaf."""


class Rooms:
    """Of one state, shared and never written. ``left``: by flavor, by leaf, what neither pods outside of Kueue nor
    running work use. Hosts are used through whatever flavor of hosts, other leaves through their own alone."""

    def __init__(
        self, flavors: Mapping[str, Flavor], topologies: Mapping[str, Sequence[str]], nodes: Sequence[Node],
        workloads: Iterable[Workload],
    ) -> None:  # fmt: skip
        self.forests = {name: Forest(flavors[name], levels, nodes) for name, levels in sorted(topologies.items())}
        self.left = {name: [dict(of) for of in forest.free] for name, forest in self.forests.items()}
        self._known: dict[int, Usage] = {}
        self._per_pod: dict[tuple[tuple[str, Quantity], ...], Amounts] = {}
        self._columns: dict[tuple[str, str, bool], NDArray[np.int64] | None] = {}
        self._through_hosts = [name for name, forest in self.forests.items() if forest.hosts]
        for workload in workloads:
            for flavor, leaf, requests, count in self._uses(workload):
                _subtract(self.left[flavor][leaf], requests, count)
        self._per_pod.clear()

    def units(self, flavor: str, requests: Amounts, *, empty: bool) -> list[int] | None:
        """How many pods of ``requests`` each leaf has room for; None where that does not go into machine integers."""
        most: NDArray[np.int64] | None = None
        for name, amount in requests.items():
            if amount <= 0:
                continue
            column = self._column(flavor, name, empty=empty)
            if column is None or amount > _MOST:
                return None
            fits = column // amount
            most = fits if most is None else np.minimum(most, fits)
        if most is None:
            return None
        units: list[int] = np.maximum(most, 0).tolist()
        return units

    def _column(self, flavor: str, name: str, *, empty: bool) -> NDArray[np.int64] | None:
        key = flavor, name, empty
        if key not in self._columns:
            values = [of.get(name, 0) for of in (self.forests[flavor].free if empty else self.left[flavor])]
            whole = all(-_MOST < value < _MOST for value in values)
            self._columns[key] = np.array(values, dtype=np.int64) if whole else None
        return self._columns[key]

    def moved(self, gone: Iterable[Workload], fresh: Iterable[Workload]) -> "Rooms":
        """The same nodes once some workloads are no longer what they were, and others are new."""
        other = copy(self)
        other.left = {name: list(of) for name, of in self.left.items()}
        other._known, other._per_pod = {}, {}
        other._columns = {key: column for key, column in self._columns.items() if key[2]}
        own: set[tuple[str, int]] = set()
        for workloads, sign in ((gone, -1), (fresh, 1)):
            for workload in workloads:
                for flavor, leaf, requests, count in other._uses(workload):
                    if (flavor, leaf) not in own:
                        own.add((flavor, leaf))
                        other.left[flavor][leaf] = dict(other.left[flavor][leaf])
                    _subtract(other.left[flavor][leaf], requests, sign * count)
        return other

    def _uses(self, workload: Workload) -> Iterator[tuple[str, int, Amounts, int]]:
        """Flavor, leaf, what a pod takes, and how many pods, through every flavor that shows the leaf."""
        for task in workload.tasks:
            flavor = self.flavor_of(task)
            if flavor is None or task.topology_assignment is None:
                continue
            asked = tuple(task.requests.items())  # often the same: read once
            requests = self._per_pod.get(asked)
            if requests is None:
                requests = self._per_pod[asked] = per_pod(task)
            for name in self._through_hosts if self.forests[flavor].hosts else [flavor]:
                index = self.forests[name].index
                for domain in task.topology_assignment.domains:
                    leaf = index.get(tuple(domain.values))
                    if leaf is not None:
                        yield name, leaf, requests, domain.count

    def flavor_of(self, task: Task) -> str | None:
        """The flavor through which it uses nodes."""
        for name in task.flavors.values() if task.flavors is not None else ():
            if name in self.forests:
                return name
        return None

    def free(self, flavor: str) -> list[list[tuple[Domain, Amounts, Amounts]]]:
        """By level, of each domain: what is left in it, and the most of each resource that is left in one leaf."""
        forest = self.forests[flavor]
        total: dict[Domain, Amounts] = {}
        most: dict[Domain, Amounts] = {}
        for leaf, left in zip(forest.leaves, self.left[flavor], strict=True):
            domain: Domain | None = leaf
            while domain is not None:
                _subtract(total.setdefault(domain, {}), left, -1)
                best = most.setdefault(domain, {})
                best |= {name: max(amount, best.get(name, amount)) for name, amount in left.items()}
                domain = domain.above
        return [[(domain, total[domain], most[domain]) for domain in of] for of in forest.by_level]

    def spare(self, flavor: str, resources: Iterable[str]) -> dict[str, dict[str, tuple[int, int]]]:
        """By level, by resource: what is left in all domains together, and the most that is left in one."""
        forest = self.forests[flavor]
        by_level: dict[str, dict[str, tuple[int, int]]] = {level: {} for level in forest.levels}
        for name in resources if forest.leaves else ():
            column = self._column(flavor, name, empty=False)
            if column is None:
                continue
            left = np.maximum(column, 0)
            for level, place in zip(forest.levels, forest.place_of, strict=True):
                sums = np.zeros(int(place.max()) + 1, dtype=np.int64)
                np.add.at(sums, place, left)
                by_level[level][name] = int(left.sum()), int(sums.max())
        return by_level

    def used_by(self, workload: Workload) -> Usage:
        """What it uses of its own flavors' leaves."""
        known = self._known.get(id(workload))
        if known is None:
            known = self._known[id(workload)] = self._used_by(workload)
        return known

    def _used_by(self, workload: Workload) -> Usage:
        usage: Usage = {}
        for task in workload.tasks:
            flavor = self.flavor_of(task)
            if flavor is None or task.topology_assignment is None:
                continue
            requests = per_pod(task)
            for domain in task.topology_assignment.domains:
                leaf = self.forests[flavor].index.get(tuple(domain.values))
                if leaf is not None:
                    _subtract(usage.setdefault((flavor, leaf), {}), requests, -domain.count)
        return usage

    def used_at(self, pod_sets: Iterable[tuple[str, PodSet]], places: Mapping[str, Place]) -> Usage:
        """What pod sets use where they are placed."""
        usage: Usage = {}
        for flavor, of in pod_sets:
            place = places.get(of.task.name)
            for leaf, count in place.pods.items() if place is not None else ():
                _subtract(usage.setdefault((flavor, leaf), {}), of.requests, -count)
        return usage


class Room:
    """One decision's own. ``taken``: beyond what the state has, negative where it was given back. What fits where is
    kept up to date for the pod sets that were last asked about: a search for victims asks after each of them."""

    __slots__ = ("_asked", "_changed", "_first", "rooms", "taken")

    def __init__(self, rooms: Rooms, taken: Usage | None = None) -> None:
        self.rooms = rooms
        self.taken: Usage = {} if taken is None else taken
        self._asked: PodSets | None = None
        self._first: tuple[str, Placement] | None = None
        self._changed: set[tuple[str, int]] = set()

    def copy(self) -> "Room":
        return Room(self.rooms, {key: dict(of) for key, of in self.taken.items()})

    def add(self, usage: Usage, sign: int = 1) -> None:
        """It is used from here on, or (``sign`` -1) no longer."""
        for key, amounts in usage.items():
            _subtract(self.taken.setdefault(key, {}), amounts, -sign)
        if self._asked is not None:
            self._changed.update(usage)

    def fits(self, pod_sets: PodSets) -> bool:
        """Whether all of them find places. Most often the first group is what does not."""
        if self._asked is not pod_sets:
            self._asked, self._first = pod_sets, self._first_group(pod_sets)
        elif self._first is not None:
            flavor, placement = self._first
            for changed, leaf in self._changed:
                if changed == flavor:
                    placement.changed(leaf)
        self._changed.clear()
        if self._first is None or self._first[1].why_not() is not None:
            return False
        return len(pod_sets) == 1 or place_all(self.rooms.forests, pod_sets, self.left, self.units)[1] is None

    def _first_group(self, pod_sets: PodSets) -> tuple[str, Placement] | None:
        flavor = min(name for name, _ in pod_sets)
        workers, leader = roles(groups([of for name, of in pod_sets if name == flavor])[0])
        forest = self.rooms.forests[flavor]
        wanted = wanted_of(forest, workers, leader)
        if isinstance(wanted, str):
            return None
        units = self.units(flavor, workers.requests)
        return flavor, Placement(forest, lambda leaf: self.left(flavor, leaf), workers, leader, wanted, units)

    def units(self, flavor: str, requests: Amounts) -> list[int] | None:
        """How many pods of ``requests`` each leaf has room for now; None where that must be counted one by one."""
        most = self.rooms.units(flavor, requests, empty=False)
        if most is not None:
            asked = [pair for pair in requests.items() if pair[1] > 0]
            for changed, leaf in self.taken:
                if changed == flavor:
                    most[leaf] = fit(asked, self.left(flavor, leaf))
        return most

    def empty_units(self, flavor: str, requests: Amounts) -> list[int] | None:
        """The same with no work of Kueue's."""
        return self.rooms.units(flavor, requests, empty=True)

    def left(self, flavor: str, leaf: int) -> Amounts:
        """What is left there."""
        there, taken = self.rooms.left[flavor][leaf], self.taken.get((flavor, leaf))
        return (
            there if taken is None else {name: there.get(name, 0) - taken.get(name, 0) for name in {**there, **taken}}
        )

    def empty(self, flavor: str, leaf: int) -> Amounts:
        """What would be left there with no work of Kueue's."""
        return self.rooms.forests[flavor].free[leaf]

    def holds(self, pod_sets: Iterable[tuple[str, PodSet]], places: Mapping[str, Place]) -> bool:
        """Whether each leaf has room for the pods that are placed in it: each pod set for itself, and the number of
        pods aside (Kueue: Fits)."""
        for flavor, of in pod_sets:
            place = places.get(of.task.name)
            for leaf, count in place.pods.items() if place is not None else ():
                left = self.left(flavor, leaf)
                if any(left.get(name, 0) < amount * count for name, amount in _asked(of) if amount > 0):
                    return False
        return True


def per_pod(task: Task) -> Amounts:
    """What one pod takes of its node. Raises QuantityError."""
    requests = {name: parse_quantity(value, scale_of(name)) for name, value in task.requests.items()}
    requests[PODS] = requests.get(PODS, 0) + 1
    return requests


def _asked(of: PodSet) -> Iterable[tuple[str, int]]:
    return ((name, amount - (name == PODS)) for name, amount in of.requests.items())


def _subtract(amounts: Amounts, requests: Amounts, count: int) -> None:
    for name, amount in requests.items():
        amounts[name] = amounts.get(name, 0) - amount * count
