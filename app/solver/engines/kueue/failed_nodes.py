"""Running work on a node that failed: its pods get another host, or the workload is evicted for it.

Nobody is preempted for a replacement. It is looked for before anything that waits, one workload after the other, and
takes what it finds. One workload with several failed nodes is evicted without looking.

Source: Kueue ``pkg/cache/scheduler/tas_flavor_snapshot.go`` (findReplacementAssignment, requiredReplacementDomain),
``pkg/scheduler/scheduler.go`` (handleFailedTASReplacement; TASFailedNodeReplacement and its FailFast are on),
``pkg/controller/tas/node_controller.go`` (evictWorkloadIfNeeded).
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

from msgspec.structs import replace

from app.solver.engines.kueue.state import CompiledState, instant
from app.solver.engines.kueue.topology.forest import Domain, Forest
from app.solver.engines.kueue.topology.placement import Placement, PodSet, Wanted, layers_of, wanted_of
from app.solver.engines.kueue.topology.room import Rooms, Usage
from app.solver.kubernetes import HOSTNAME
from app.solver.model.decision import Placement as PlannedPlacement
from app.solver.model.decision import PlannedEviction
from app.solver.model.kueue import TopologyAssignment, TopologyDomain, TopologyRequest
from app.solver.model.kueue import Workload as Block
from app.solver.model.state import State, Task, Workload

REASON = "NodeFailures"
_MOST = 8


@dataclass(frozen=True, slots=True)
class Replaced:
    """``state``: with the hosts that replace failed ones taken; ``assignments``: those of the workloads that go on."""

    state: CompiledState
    evictions: list[PlannedEviction]
    placements: list[PlannedPlacement]
    assignments: dict[str, dict[str, TopologyAssignment]]


def replaced(state: CompiledState) -> Replaced:
    """What becomes of running work with failed nodes."""
    rooms = state.rooms
    hit = [of for of in state.workloads if of.kueue is not None and of.kueue.unhealthy_nodes and not of.evicted]
    found = Replaced(state, [], [], {})
    if rooms is None or not hit:
        return found
    now: dict[str, Workload] = {}
    for workload in sorted(hit, key=lambda of: (-of.priority, instant(of.created_at), of.uid or "", of.id)):
        nodes = workload.kueue.unhealthy_nodes if workload.kueue is not None else []
        tasks = _tasks(rooms, workload, nodes[0]) if len(set(nodes)) == 1 else None
        if tasks is None:
            found.evictions.append(PlannedEviction(workload=workload.id, queue=workload.queue, reason=REASON))
            continue
        after = now[workload.id] = replace(workload, tasks=tasks)
        rooms = rooms.moved([workload], [after])
        _told(found, rooms, workload, after)
    other = copy(state)
    other.rooms, other.workloads = rooms, [now.get(of.id, of) for of in state.workloads]
    return Replaced(other, found.evictions, found.placements, found.assignments)


def marked(state: State, rooms: Rooms) -> list[Workload]:
    """Work on hosts that are there no longer, as Kueue marks it."""
    there, found = {node.labels.get(HOSTNAME) for node in state.nodes}, list[Workload]()
    for workload in state.workloads:
        lost = {
            domain.values[-1]
            for task in workload.tasks
            if (flavor := rooms.flavor_of(task)) is not None and rooms.forests[flavor].hosts
            for domain in (task.topology_assignment.domains if task.topology_assignment is not None else ())
            if domain.values[-1] not in there
        }
        if lost and not workload.evicted:
            nodes = sorted(lost)[:_MOST]
            found.append(replace(workload, kueue=replace(workload.kueue or Block(), unhealthy_nodes=nodes)))
    return found


def _told(found: Replaced, rooms: Rooms, before: Workload, after: Workload) -> None:
    """Note where the pods of a workload go that were on the failed node."""
    for was, task in zip(before.tasks, after.tasks, strict=True):
        if task is was or task.topology_assignment is None or was.topology_assignment is None:
            continue
        found.assignments.setdefault(after.id, {})[task.name] = task.topology_assignment
        old = {tuple(of.values): of.count for of in was.topology_assignment.domains}
        for of in task.topology_assignment.domains:
            if of.count > old.get(tuple(of.values), 0):
                forest = rooms.forests[rooms.flavor_of(task) or ""]
                node = forest.nodes[forest.index[tuple(of.values)]]
                name = of.values[-1] if node is None else node.name
                found.placements.append(
                    PlannedPlacement(workload=after.id, task=task.name, node=name, pipelined=False)
                )  # fmt: skip


def _tasks(rooms: Rooms, workload: Workload, node: str) -> list[Task] | None:
    """Its pod sets with others in place of host ``node``; None where that can't be."""
    out: list[Task] = []
    taken: Usage = {}
    for task in workload.tasks:
        assignment, flavor = task.topology_assignment, rooms.flavor_of(task)
        lost = sum(of.count for of in assignment.domains if of.values[-1] == node) if assignment is not None else 0
        if assignment is None or flavor is None or not rooms.forests[flavor].hosts or not lost:
            out.append(task)
            continue
        rest = {tuple(of.values): of.count for of in assignment.domains if of.values[-1] != node}
        pods = _elsewhere(rooms, flavor, task, lost, rest, taken)
        if pods is None:
            return None
        for values, count in pods.items():
            rest[values] = rest.get(values, 0) + count
        forest = rooms.forests[flavor]
        ordered = sorted(rest, key=lambda values, forest=forest: forest.leaves[forest.index[values]].values)
        domains = [TopologyDomain(values=list(values), count=rest[values]) for values in ordered]
        out.append(replace(task, topology_assignment=replace(assignment, domains=domains)))
    return out


def _elsewhere(
    rooms: Rooms, flavor: str, task: Task, lost: int, rest: Mapping[tuple[str, ...], int], taken: Usage
) -> dict[tuple[str, ...], int] | None:
    """Hosts for the ``lost`` pods, beside the ``rest`` that stay; ``taken``: by pod sets before it, and now by it."""
    forest = rooms.forests[flavor]
    workers = PodSet.of(task, lost)
    wanted = wanted_of(forest, workers, None)
    if isinstance(wanted, str) or any(values not in forest.index for values in rest):
        return None  # what stays is on a host that is gone too
    within = _within(forest, task.topology_request, wanted, lost, rest)
    if within is not None and layers_of(task.topology_request) and lost % wanted.size:
        workers = PodSet.of(replace(task, topology_request=_patched(task.topology_request, lost)), lost)
        wanted = wanted_of(forest, workers, None)
        if isinstance(wanted, str):
            return None

    def left(leaf: int) -> dict[str, int]:
        there, used = rooms.left[flavor][leaf], taken.get((flavor, leaf), {})
        return {name: amount - used.get(name, 0) for name, amount in there.items()}

    placed = Placement(forest, left, workers, None, wanted, within=within).places()
    if isinstance(placed, str):
        return None
    for leaf, count in placed[0].items():
        used = taken.setdefault((flavor, leaf), {})
        for name, amount in workers.requests.items():
            used[name] = used.get(name, 0) + amount * count
    return {forest.key(forest.leaves[leaf].values): count for leaf, count in placed[0].items()} or None


def _within(
    forest: Forest, request: TopologyRequest | None, wanted: Wanted, lost: int, rest: Mapping[tuple[str, ...], int]
) -> Domain | None:
    """The domain that the replacement must be in: that of the slice that it completes, else that which is required.
    None: any. Where several slices could be completed Kueue takes one by chance, this the first."""
    if not rest or request is None:
        return None
    layers = layers_of(request)
    if layers and lost % wanted.size:
        broken = next(((key, size) for key, size in reversed(layers) if size and lost % size), None)
        if len(layers) > 1 and broken is not None:
            return _incomplete(forest, forest.levels.index(broken[0]), broken[1] or 1, lost, rest)
        return _incomplete(forest, wanted.slice_level, wanted.size, lost, rest)
    return _above(forest, next(iter(rest)), wanted.level) if request.required is not None else None


def _incomplete(forest: Forest, level: int, size: int, lost: int, rest: Mapping[tuple[str, ...], int]) -> Domain | None:
    pods: dict[Domain, int] = {}
    for values, count in rest.items():
        domain = _above(forest, values, level)
        pods[domain] = pods.get(domain, 0) + count
    return next((domain for domain, count in pods.items() if (count + lost) % size == 0), None)


def _above(forest: Forest, values: tuple[str, ...], level: int) -> Domain:
    domain = forest.leaves[forest.index[values]]
    while domain.level > level and domain.above is not None:
        domain = domain.above
    return domain


def _patched(request: TopologyRequest | None, lost: int) -> TopologyRequest | None:
    """The innermost layer of slices that the lost pods fill, or none: the rest of it stands already."""
    if request is None:
        return None
    kept = next(((key, size) for key, size in reversed(layers_of(request)) if size and lost % size == 0), None)
    key, size = kept if kept is not None else (None, None)
    return replace(request, slice_layers=None, slice_required=key, slice_size=size)
