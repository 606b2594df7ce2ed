"""A state as arrays: nodes, operations, allocations. Built once, read only.

Rows are nodes, operations (workloads first, then the asks that are operations of their own) or allocations;
columns are resources. Amounts are int64 steps (thousandths of cpu and gpu, whole units of the rest).
"""

from collections.abc import Hashable, Sequence
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any, TypedDict, TypeVar, cast

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from app.solver.compiled import ROOTLESS, ResourceIndex
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, ordered
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    STARVATION_CODE,
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Ints,
    Levels,
    Operations,
    compile_operations,
    instants,
    matrix,
    operation_names,
)
from app.solver.engines.ytsaurus.reading import Reader, Where, has_labels, tags_of
from app.solver.engines.ytsaurus.settings import has_overrides
from app.solver.model.base import Quantity, Resources, micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.model.ytsaurus import PoolState

T = TypeVar("T")
_block = attrgetter("ytsaurus")
_MOST = float(2**62)
_SPARSE = 16


class Allocations(Struct, frozen=True, eq=False):
    """One row an allocation that runs, by operation and then oldest first (equal starts: input order).

    ``operation``, ``node`` (-1: on no named node), ``task``: position among its workload's tasks;
    ``has_gap``: uses less cpu than it asked for; ``of``: first row of each operation, and the end.
    """

    operation: Ints
    node: Ints
    task: Ints
    usage: Ints
    has_gap: Flags
    started: Ints
    of: Ints

    def __len__(self) -> int:
        return len(self.operation)


class Recent:
    """What was worked out last for some version of a state, by what it is: the key that it depends on, and the result.

    All versions that follow one another have one, so that what did not change need not be worked out again. A lookup
    compares the whole key, so who asks gets the same with it and without. ``rough``: whether nobody looks at
    more of fair shares than what they decide."""

    __slots__ = ("_known", "_of_this_turn", "_parts", "rough")

    def __init__(self) -> None:
        self.rough = False
        self._known: dict[str, tuple[tuple[object, ...], Any]] = {}
        self._parts: dict[Hashable, Any] = {}
        self._of_this_turn: dict[Hashable, Any] = {}

    def turn(self) -> None:
        """Something is worked out anew: of its parts, those of the last time are known to it."""
        self._parts, self._of_this_turn = self._of_this_turn, {}

    def part(self, key: Hashable) -> Any:
        """What was worked out in the last turn or this one for all that ``key`` says, or None."""
        known = self._of_this_turn.get(key)
        if known is None and (known := self._parts.get(key)) is not None:
            self._of_this_turn[key] = known
        return known

    def keep(self, key: Hashable, part: T) -> T:
        """``part`` is known from now on. Nobody may change it, and it holds whatever ``key`` names by ``id``."""
        self._of_this_turn[key] = part
        return part

    def get(self, what: str, key: tuple[object, ...]) -> Any:
        """The result where ``key`` is that of the last time (arrays by content, all else by identity), or None."""
        known, result = self._known.get(what, (None, None))
        same = known is not None and all(old is new or _equal(old, new) for old, new in zip(known, key, strict=True))
        return result if same else None

    def put(self, what: str, key: tuple[object, ...], result: Any) -> None:
        """Forget the last result for this one. Nobody may change it, nor the arrays of ``key``."""
        self._known[what] = (key, result)


def _equal(old: object, new: object) -> bool:
    arrays = isinstance(old, np.ndarray) and isinstance(new, np.ndarray)
    return arrays and np.array_equal(cast(NDArray[Any], old), cast(NDArray[Any], new))


class CompiledState(Struct, frozen=True, eq=False):
    """A loaded state. ``named``: resources that the configuration or a node names; ``total``: what the nodes have in
    all; ``on_node``: allocation rows by node, those on no named node first; ``node_start``: where each node's begin
    there, and the end; ``usage``: by operation; ``pool_volumes``: accumulated unit-seconds by resource;
    ``pool_ratios``: the integral share that each pool was given last, the root's last."""

    config: CompiledConfiguration
    state: State
    index: ResourceIndex
    named: frozenset[str]
    node_index: dict[str, int]
    node_limits: Ints
    schedulable: Flags
    total: Floats
    last_preemptive: Ints
    overcommit_since: Ints
    operations: Operations
    operation_index: dict[str, int]
    allocations: Allocations
    on_node: Ints
    node_start: Ints
    usage: Ints
    pool_starvation: Levels
    pool_since: Ints
    pool_volumes: list[dict[str, float]]
    pool_ratios: Floats
    recent: Recent = field(default_factory=Recent)

    def allocations_on(self, node: int) -> Ints:
        """Rows of the allocations that run on ``node``."""
        return self.on_node[self.node_start[node] : self.node_start[node + 1]]

    def task_of(self, allocation: int) -> Task:
        """The task that allocation row ``allocation`` is."""
        a = self.allocations
        return self.state.workloads[int(a.operation[allocation])].tasks[int(a.task[allocation])]


def compile_state(config: CompiledConfiguration, state: State) -> CompiledState:
    """Compile ``state``. Raises InvalidInput with every problem of its own, QuantityError and KeyError for others."""
    problems: list[Problem] = []
    named = config_and_nodes(config, state.nodes)
    requests = requests_of(state.workloads)
    index = ResourceIndex(ordered(named | names_of(state.workloads, requests), "/state"))
    node_index = {node.name: i for i, node in enumerate(state.nodes)}
    limits = node_limits(index, state.nodes)
    operations = compile_operations(config, index, state.workloads, ("state", "workloads"), problems)
    allocations = compile_allocations(index, state.workloads, requests, node_index)
    usage = sum_of(allocations, len(state.workloads))
    if problems:
        raise InvalidInput(problems)
    refuse_overflow(limits, ("state", "nodes"))
    refuse_overflow(allocations.usage, ("state", "workloads"))
    on_node, node_start = by_node(allocations.node, len(state.nodes))
    last, since = heartbeats_left(state.nodes)
    return CompiledState(
        config=config,
        state=state,
        index=index,
        named=named,
        node_index=node_index,
        node_limits=limits,
        schedulable=schedulable(state.nodes),
        total=total(limits),
        last_preemptive=last,
        overcommit_since=since,
        operations=operations,
        operation_index={name: i for i, name in enumerate(operations.ids)},
        allocations=allocations,
        on_node=on_node,
        node_start=node_start,
        usage=usage,
        **pool_states(config, state),
    )


def refuse_overflow(amounts: Ints, where: Where) -> None:
    """Raise InvalidInput where the column sums of ``amounts`` would not fit int64."""
    if len(amounts) and float(np.abs(amounts.astype(float)).sum(axis=0).max(initial=0.0)) >= _MOST:
        raise InvalidInput([Problem(pointer=pointer(*where), detail="the amounts of one resource add up to over 2^62")])


def distinct(maps: list[Resources]) -> tuple[list[Resources], list[int]]:
    """Distinct resource maps, and which of them each one is: a cluster repeats a few hundred."""
    seen: dict[tuple[Quantity, ...], int] = {}
    which = [seen.setdefault((*amounts, *amounts.values()), len(seen)) for amounts in maps]
    halves = ((key, len(key) // 2) for key in seen)
    return [dict(zip(map(str, key[:half]), key[half:], strict=True)) for key, half in halves], which


def config_and_nodes(config: CompiledConfiguration, nodes: Sequence[Node]) -> frozenset[str]:
    """Every resource that the configuration or a node names."""
    capacities, _ = distinct([node.capacity for node in nodes])
    return frozenset(config.resources).union(*capacities, *(node.occupied for node in nodes if node.occupied))


class Requests(Struct, frozen=True, eq=False):
    """Tasks of some workloads, the distinct requests among them, and which of these each task has."""

    tasks: list[Task]
    shapes: list[Resources]
    shape_of: list[int]


def requests_of(workloads: Sequence[Workload]) -> Requests:
    """What ``workloads`` request."""
    tasks = [t for w in workloads for t in w.tasks]
    return Requests(tasks, *distinct([t.requests for t in tasks]))


def names_of(workloads: Sequence[Workload], requests: Requests) -> set[str]:
    """Every resource that an operation or an allocation of one names."""
    usages, _ = distinct([t.usage for t in requests.tasks if t.usage is not None])
    names = set[str]().union(*requests.shapes, *usages, *(w.limit for w in workloads if w.limit))
    for option in [o for w in workloads if (o := w.ytsaurus) is not None]:
        if has_overrides(option):
            names |= operation_names(option)
    return names


def schedulable(nodes: Sequence[Node]) -> Flags:
    """By node."""
    return np.array([node.schedulable for node in nodes], bool)


def total(limits: Ints) -> Floats:
    """What nodes have in all."""
    return np.maximum(limits, 0).sum(axis=0).astype(float)


def heartbeats_left(nodes: Sequence[Node]) -> tuple[Ints, Ints]:
    """By node, in microseconds: its last preemptive scheduling, and since when it is overcommitted. After a heartbeat
    of all nodes, most have the same block."""
    blocks = list(map(_block, nodes))
    names = list(map(id, blocks))
    of = dict(zip(names, blocks, strict=True))
    place = dict(zip(of, range(len(of)), strict=True))
    row = np.fromiter(map(place.__getitem__, names), np.int64, len(names))
    last = instants([None if left is None else left.last_preemptive_scheduling_at for left in of.values()])
    since = instants([None if left is None else left.overcommit_since for left in of.values()])
    return last[row], since[row]


def by_node(node: Ints, count: int) -> tuple[Ints, Ints]:
    """``on_node`` and ``node_start``, given the node of each allocation."""
    small = np.int16 if count < 2**15 else np.int64  # NumPy sorts short integers by radix
    order = np.argsort(node.astype(small), kind="stable")
    return order, np.cumsum(np.bincount(np.maximum(node, -1) + 1, minlength=count + 1))


def node_limits(index: ResourceIndex, nodes: Sequence[Node]) -> Ints:
    """By node, capacity without what is occupied. Raises QuantityError."""
    capacities, which = distinct([node.capacity for node in nodes])
    rows = np.array([index.vector(amounts) for amounts in capacities], np.int64).reshape(-1, len(index))
    out = rows[np.array(which, np.int64)]
    for i in [i for i, node in enumerate(nodes) if node.occupied]:
        out[i] -= np.array(index.vector(nodes[i].occupied), np.int64)
    return out


def _usages(index: ResourceIndex, requests: Requests) -> tuple[Ints, Flags]:
    """What each task of ``requests`` uses, and whether that is less cpu than it asked for."""
    tasks = requests.tasks
    shapes = np.array([index.vector(shape) for shape in requests.shapes], np.int64).reshape(-1, len(index))
    usage = shapes[np.array(requests.shape_of, np.int64)] if tasks else np.zeros((0, len(index)), np.int64)
    has_gap = np.zeros(len(tasks), bool)
    cpu = index.index.get("cpu")
    usages = [t.usage for t in tasks]
    if usages.count(None) < len(usages):
        using = [i for i, usage_of in enumerate(usages) if usage_of is not None]
        reals, real_of = distinct([usages[i] or {} for i in using])
        real = np.array([index.vector(amounts) for amounts in reals], np.int64)[np.array(real_of, np.int64)]
        has_gap[using] = False if cpu is None else real[:, cpu] < usage[using, cpu]
        usage[using] = real
    counts = [t.count for t in tasks]
    if counts.count(1) < len(counts):
        for i in [i for i, count in enumerate(counts) if count != 1]:
            usage[i] = _times(usage[i], counts[i])
    return usage, has_gap


def compile_allocations(
    index: ResourceIndex, workloads: Sequence[Workload], requests: Requests, node_index: dict[str, int]
) -> Allocations:
    """The allocations of ``workloads``, which are operations 0, 1... Raises QuantityError, KeyError, InvalidInput."""
    tasks = requests.tasks
    sizes = np.array([len(w.tasks) for w in workloads], np.int64)
    operation = np.repeat(np.arange(len(workloads)), sizes)
    first = np.cumsum(sizes) - sizes
    task = np.arange(len(tasks)) - np.repeat(first, sizes)
    usage, has_gap = _usages(index, requests)
    node = np.array([-1 if t.node is None else node_index[t.node] for t in tasks], np.int64)
    started = instants([t.started_at for t in tasks])
    rows = np.argsort(started, kind="stable")
    rows = rows[np.argsort(operation[rows], kind="stable")]
    states = [t.state for t in tasks]
    if states.count("running") < len(states):
        rows = rows[np.array([state == "running" for state in states], bool)[rows]]
    operation = operation[rows]
    return Allocations(
        operation=operation,
        node=node[rows],
        task=task[rows],
        usage=usage[rows],
        has_gap=has_gap[rows],
        started=started[rows],
        of=np.searchsorted(operation, np.arange(len(workloads) + 1)),
    )


def _times(row: Ints, count: int) -> Ints:
    if float(row.max(initial=0)) * count >= _MOST:
        raise InvalidInput([Problem(pointer="/state/workloads", detail="the amounts of one task add up to over 2^62")])
    return row * count


def sum_of(allocations: Allocations, operations: int) -> Ints:
    """Usage of each operation. Differences of prefix sums: exact on integers."""
    sums = np.zeros((len(allocations) + 1, allocations.usage.shape[1]), np.int64)
    np.cumsum(allocations.usage, axis=0, out=sums[1:])
    return sums[allocations.of[1 : operations + 1]] - sums[allocations.of[:operations]]


def node_usage(cluster: CompiledState) -> Ints:
    """Usage of the allocations of each node, exactly."""
    if len(cluster.on_node) * _SPARSE < len(cluster.node_index):
        out = np.zeros((len(cluster.node_index), cluster.allocations.usage.shape[1]), np.int64)
        placed = cluster.on_node[cluster.node_start[0] :]
        np.add.at(out, cluster.allocations.node[placed], cluster.allocations.usage[placed])
        return out
    usage = cluster.allocations.usage[cluster.on_node]
    sums = np.zeros((len(usage) + 1, usage.shape[1]), np.int64)
    np.cumsum(usage, axis=0, out=sums[1:])
    return sums[cluster.node_start[1:]] - sums[cluster.node_start[:-1]]


Selector = frozenset[tuple[str, str]]
_tasks, _selector = attrgetter("tasks"), attrgetter("node_selector")


def tagged(cluster: CompiledState, asks: Sequence[Ask], names: Sequence[str], operation: Ints, ask: Ints) -> Ints:
    """By operation, steps that the nodes of its filter have: it can use no more. ``names``: of the operations;
    ``operation``, ``ask``: of each want.

    An operation's filter is the ``node_selector`` of its tasks, those that run and those that are wanted; where they
    differ, any of them (``ComputeSchedulingTagFilterResourceLimits``)."""
    out = np.full((len(names), len(cluster.index)), UNLIMITED_STEPS, np.int64)
    workloads = cluster.state.workloads
    selecting = _selecting(workloads)
    if not (selecting or any(selects(wanted.tasks) for wanted in asks)):
        return out
    pending: dict[int, list[Task]] = {}
    asked_of: dict[int, int] = dict(zip(ask.tolist(), operation.tolist(), strict=True))
    for asked, row in asked_of.items():
        pending.setdefault(row, []).extend(asks[asked].tasks)
    rows = selecting + [row for row, tasks in pending.items() if selects(tasks)]
    having: dict[frozenset[Selector], Ints] = {}
    for row in rows:
        running = workloads[row].tasks if row < len(workloads) else []
        selectors = frozenset(selector_of(task) for task in (*running, *pending.get(row, ())))
        if frozenset() not in selectors:
            if selectors not in having:
                having[selectors] = _amounts(cluster, matching(cluster, selectors))
            out[row] = having[selectors]
    return out


def _selecting(workloads: Sequence[Workload]) -> list[int]:
    """Rows of those with a selector. Clusters without any are seen to be so in a tenth of the time."""
    if not any(map(_selector, chain.from_iterable(map(_tasks, workloads)))):
        return []
    return [row for row, workload in enumerate(workloads) if selects(workload.tasks)]


def selects(tasks: Sequence[Task]) -> bool:
    """Whether one of ``tasks`` says which nodes it may use."""
    return any([task.node_selector for task in tasks])  # noqa: C419  # half the time, and a cluster has 100,000


def pool_tagged(cluster: CompiledState) -> Ints:
    """By pool, what the nodes of its ``scheduling_tag_filter`` have."""
    filters = [pool.shares.tags for pool in cluster.config.pools]
    out = np.full((len(filters), len(cluster.index)), UNLIMITED_STEPS, np.int64)
    if any(filters):
        tags = [tags_of(node.labels) for node in cluster.state.nodes]
        for i, formula in enumerate(filters):
            if formula is not None:
                out[i] = _amounts(cluster, np.array([formula.holds(of) for of in tags], bool))
    return out


def admitting(cluster: CompiledState) -> list[frozenset[str] | None]:
    """By pool, the nodes that its filter and those of the pools above admit; None: every node."""
    tree, pools = cluster.config.tree, cluster.config.pools
    out: list[frozenset[str] | None] = [None] * len(tree)
    for i in tree.top_down:
        above = None if tree.parent[i] == ROOTLESS else out[tree.parent[i]]
        formula = pools[i].shares.tags
        out[i] = above
        if formula is not None:
            own = frozenset(node.name for node in cluster.state.nodes if formula.holds(tags_of(node.labels)))
            out[i] = own if above is None else own & above
    return out


def selector_of(task: Task) -> Selector:
    """Which nodes a task may use, by their labels."""
    return frozenset((task.node_selector or {}).items())


def matching(cluster: CompiledState, selectors: frozenset[Selector]) -> Flags:
    """By node: whether one of these allows it."""
    nodes = cluster.state.nodes
    return np.array([any(has_labels(node.labels, selector) for selector in selectors) for node in nodes], bool)


def _amounts(cluster: CompiledState, nodes: Flags) -> Ints:
    return np.maximum(cluster.node_limits[nodes], 0).sum(axis=0)


def pool_limits(cluster: CompiledState) -> tuple[Ints, Ints]:
    """By pool, the root last: its limits, and by how much preemptive starts may exceed them."""
    config, index = cluster.config, cluster.index
    limits: tuple[Ints, Ints] | None = cluster.recent.get("limits", (config, index))
    if limits is None:
        limits = (
            with_root(matrix(index, config.limits, UNLIMITED_STEPS), UNLIMITED_STEPS),
            with_root(matrix(index, [p.limits_tolerance or {} for p in config.pools]), 0),
        )
        cluster.recent.put("limits", (config, index), limits)
    return limits


def with_root(rows: Ints, fill: int) -> Ints:
    """By pool, and the same of the root."""
    return np.concatenate((rows, np.full((1, rows.shape[1]), fill, np.int64)))


def carries_nothing(work: Workload | Ask) -> bool:
    """Whether it neither starves nor is below its fair share."""
    block = work.ytsaurus
    return block is None or (block.starvation in (None, "non_starving") and block.below_fair_share_since is None)


def goes_anywhere(ask: Ask) -> bool:
    """Whether it may use every node, and is an operation of its own."""
    return (
        ask.feasible_nodes is None and ask.required_node is None and ask.workload is None and ask.pending_reason is None
    )


class PoolStates(TypedDict):
    """Columns of a cluster, by pool, of what a state carries of each: starvation, and the volume of an integral
    guarantee. ``pool_ratios`` with the root last."""

    pool_starvation: Levels
    pool_since: Ints
    pool_volumes: list[dict[str, float]]
    pool_ratios: Floats


def pool_states(config: CompiledConfiguration, state: State) -> PoolStates:
    """Raises InvalidInput."""
    starvation, since = np.zeros(len(config.tree), np.int8), np.full(len(config.tree), NEVER, np.int64)
    volumes: list[dict[str, float]] = [{} for _ in config.pools]
    ratios, problems = np.zeros(len(config.tree) + 1), list[Problem]()
    for name, queue in state.queues.items():
        own = queue.ytsaurus
        if own is None:
            continue
        i = config.tree.index[name]
        starvation[i] = STARVATION_CODE[own.starvation]
        if own.below_fair_share_since is not None:
            since[i] = micros(own.below_fair_share_since)
        _check(own, Reader(("state", "queues", name, "ytsaurus"), problems))
        volumes[i] = own.accumulated_volume or {}
        ratios[i] = own.last_share_ratio or 0.0
    if problems:
        raise InvalidInput(problems)
    return PoolStates(pool_starvation=starvation, pool_since=since, pool_volumes=volumes, pool_ratios=ratios)


def _check(own: PoolState, read: Reader) -> None:
    read.number("last_share_ratio", own.last_share_ratio, 0.0)
    below = read.below("accumulated_volume")
    for resource, volume in (own.accumulated_volume or {}).items():
        below.number(resource, volume, 0.0)
        if volume == inf:
            below.refuse(resource, "not a finite number")
