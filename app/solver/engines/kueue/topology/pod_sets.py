"""The pod sets of one ask, placed one group after the other, each seeing what those before it took.

Source: Kueue ``pkg/cache/scheduler/clusterqueue_snapshot.go`` (FindTopologyAssignmentsForWorkload): flavor by flavor in
order of name, groups in order of their first pod set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.solver.engines.kueue.topology.forest import Amounts, Forest
from app.solver.engines.kueue.topology.placement import Placed, Placement, PodSet, wanted_of
from app.solver.model.kueue import TopologyAssignment, TopologyDomain

Remaining = Callable[[str, int], Amounts]
"""What is left in a leaf of a flavor's forest."""
Units = Callable[[str, Amounts], list[int] | None]
Assumed = dict[tuple[str, ...], Amounts]


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
) -> tuple[dict[str, Place], Misfit | None]:
    """Places by name of the task for pod sets with their flavors, up to the first that does not fit. ``units``: how
    many pods fit in each leaf of a flavor, where that is known for all leaves at once."""
    found: dict[str, Place] = {}
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
            placed = (
                wanted if isinstance(wanted, str) else Placement(forest, left, workers, leader, wanted, known).places()
            )
            if isinstance(placed, str):
                return found, Misfit(workers.task.name, placed)
            for of, pods in zip((workers, leader), placed, strict=True):
                if of is not None:
                    found[of.task.name] = Place(flavor, pods)
                    _assume(forest, assumed, of, pods)
    return found, None


def shown(forest: Forest, pods: Placed) -> TopologyAssignment:
    """As the wire has it: domains in the order of all their label values."""
    leaves = sorted((forest.leaves[leaf] for leaf in pods), key=lambda leaf: leaf.values)
    domains = [TopologyDomain(values=list(forest.key(leaf.values)), count=pods[leaf.leaf]) for leaf in leaves]
    return TopologyAssignment(levels=forest.shown_levels, domains=domains)


def groups(pod_sets: Sequence[PodSet]) -> list[list[PodSet]]:
    """Pod sets that are placed together, in order of the first of each."""
    found: dict[str, list[PodSet]] = {}
    for i, of in enumerate(pod_sets):
        name = of.request.pod_set_group if of.request is not None else None
        found.setdefault(f"/{i}" if name is None else name, []).append(of)
    return list(found.values())


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
