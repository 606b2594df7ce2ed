"""Everybody whose fair share is asked for, with demand and limits: a state with its pending work.

Pools are rows 0..P-1 in document order; row P is the tree's implicit root.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from app.solver.compiled import ResourceIndex
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, ordered
from app.solver.engines.ytsaurus.curves import TOLERANCE
from app.solver.engines.ytsaurus.operations import (
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Ints,
    Operations,
    compile_operations,
    least,
    most,
    operation_names,
    pool_sums,
    quotients,
    same_but_standing,
    standing,
)
from app.solver.engines.ytsaurus.polyline import EPSILON
from app.solver.engines.ytsaurus.state import (
    CompiledState,
    Selector,
    admitting,
    distinct,
    matching,
    pool_limits,
    pool_tagged,
    selector_of,
    selects,
    tagged,
    with_root,
)
from app.solver.model import ytsaurus as wire
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Task, Workload

SLACK = 1e-6
"""A part of the cluster, and a weight, that no sum of doubles is off by."""


def in_plain_shares(steps: Iterable[float], total: Iterable[float]) -> list[float]:
    """``guarantees.to_shares`` of one row."""
    return [amount / whole if whole > 0 else 0.0 for amount, whole in zip(steps, total, strict=True)]


def carries_only(work: Workload | Ask) -> bool:
    """Whether it says nothing itself that makes fair shares or heartbeats others, whatever it carries."""
    block = work.ytsaurus
    return (
        not work.limit
        and (work.weight is None or work.weight > SLACK)
        and (
            block is None
            or block
            == wire.Workload(
                starvation=block.starvation,
                below_fair_share_since=block.below_fair_share_since,
                is_gang=block.is_gang,
            )
        )
        and not selects(work.tasks)
    )


class Wants(Struct, frozen=True, eq=False):
    """Pending work: one row a task of an ask. ``need``: steps of one allocation; ``count``: how many are wanted;
    ``shapes``: distinct needs, and ``shape`` which of them each is."""

    operation: Ints
    ask: Ints
    task: Ints
    need: Ints
    count: Ints
    shapes: Ints
    shape: Ints

    def __len__(self) -> int:
        return len(self.operation)


class Situation(Struct, frozen=True, eq=False):
    """``usage``: steps, by operation; ``pool_usage``: by pool, the root last; ``pending``: allocations wanted by
    operation; ``depth``: of each pool, the root's is -1; ``parent``: of each pool, the root's is itself;
    ``tagged``, ``pool_tagged``: steps that the nodes of a tag filter have, UNLIMITED_STEPS without one; ``due``: fair
    shares once they were worked out, of all situations that differ only in what pools and operations carry."""

    cluster: CompiledState
    operations: Operations
    wants: Wants
    usage: Ints
    pool_usage: Ints
    pool_limits: Ints
    pool_limits_tolerance: Ints
    tagged: Ints
    pool_tagged: Ints
    pending: Ints
    wanted: Floats
    parent: Ints
    depth: Ints
    operation_parent: Ints
    due: list[Any] = field(default_factory=list)

    @property
    def config(self) -> CompiledConfiguration:
        """The configuration that the state was loaded for."""
        return self.cluster.config

    @property
    def root(self) -> int:
        """Row of the implicit root."""
        return len(self.cluster.config.tree)

    @property
    def total(self) -> Floats:
        """What the nodes have in all, in whole units."""
        return self.units(self.cluster.total)

    def carried(self, maps: Sequence[Mapping[str, float]]) -> Floats:
        """Amounts by resource, one map a pool, as rows; the root last, with nothing."""
        out = np.zeros((self.root + 1, len(self.resources)))
        names = self.cluster.index.index
        for i, amounts in enumerate(maps):
            for name, amount in amounts.items():
                if name in names:
                    out[i, names[name]] = amount
        return out

    def units(self, steps: Floats) -> Floats:
        """Steps by resource in whole units."""
        return steps / np.array(self.cluster.index.scales, float)

    @property
    def resources(self) -> list[str]:
        """Names of the columns."""
        return self.cluster.index.names


def situate(cluster: CompiledState, asks: Sequence[Ask]) -> Situation:
    """``cluster`` with pending ``asks``. Raises InvalidInput with every problem.

    Asks of an operation that already runs add to its demand; an ask without one is an operation of its own that runs
    nothing yet. What follows the last situation of this state, and differs from it only in what pools and operations
    carry, shares all else with it."""
    own = cluster.operations
    key = (
        cluster.allocations, cluster.usage, cluster.index, cluster.config, cluster.state.nodes,
        own.integers, own.numbers, own.flags, own.limits, own.non_preemptible,
    )  # fmt: skip
    known: tuple[Sequence[Ask], list[int], Situation] | None = cluster.recent.get("situation", key)
    if known is not None and _asked_alike(known[0], asks):
        _, fresh, before = known
        return _standing(before, cluster, [asks[i] for i in fresh])
    situation, fresh = _situated(cluster, asks)
    cluster.recent.put("situation", key, (list(asks), fresh, situation))
    return situation


def _asked_alike(before: Sequence[Ask], now: Sequence[Ask]) -> bool:
    """Whether asks differ only in what their operations carry."""
    return len(before) == len(now) and all(same_but_standing(was, ask) for was, ask in zip(before, now, strict=True))


def _standing(before: Situation, cluster: CompiledState, fresh: Sequence[Ask]) -> Situation:
    """``before`` with what ``cluster`` and the asks that are operations of their own carry."""
    cluster = _widened(cluster, set(before.resources))
    level, since = cluster.operations.starvation, cluster.operations.since
    if fresh:
        standings = [standing(ask.ytsaurus) for ask in fresh]
        level = np.concatenate((level, np.array([code for code, _ in standings], np.int8)))
        since = np.concatenate((since, np.array([instant for _, instant in standings], np.int64)))
    return replace(before, cluster=cluster, operations=replace(before.operations, starvation=level, since=since))


def _situated(cluster: CompiledState, asks: Sequence[Ask]) -> tuple[Situation, list[int]]:
    """And the asks that are operations of their own."""
    cluster = _widened(cluster, _ask_names(asks))
    config, index = cluster.config, cluster.index
    problems: list[Problem] = []
    rows, fresh = _rows(cluster, asks, problems)
    operations = cluster.operations
    usage = cluster.usage
    if fresh:
        new = compile_operations(config, index, [asks[i] for i in fresh], ("asks",), problems)
        new = replace(new, ids=[_operation_name(asks[i]) for i in fresh])
        operations = operations.joined(new)
        usage = np.concatenate((usage, np.zeros((len(fresh), len(index)), np.int64)))
    wants = _wants(index, asks, rows)
    if problems:
        raise InvalidInput(problems)
    active = ~operations.suspended[wants.operation]
    pending = _sums(wants.operation[active], wants.count[active], len(operations))
    wanted = np.zeros((len(operations), len(index)))
    np.add.at(wanted, wants.operation[active], wants.need[active].astype(float) * wants.count[active, None])
    parent, depth = config.columns.parent, config.columns.depth
    limits, tolerance = pool_limits(cluster)
    situation = Situation(
        cluster=cluster,
        operations=operations,
        wants=wants,
        usage=usage,
        pool_usage=pool_sums(usage, operations.pool, parent, depth),
        pool_limits=limits,
        pool_limits_tolerance=tolerance,
        tagged=tagged(cluster, asks, operations.ids, wants.operation, wants.ask),
        pool_tagged=with_root(pool_tagged(cluster), UNLIMITED_STEPS),
        pending=pending,
        wanted=wanted,
        parent=parent,
        depth=depth,
        operation_parent=operations.pool,
    )
    return situation, fresh


def best_allocation(situation: Situation) -> Floats:
    """What an operation could use at best, where asked for: each node holds whole allocations of average memory.

    The recorded decisions leave this cut out, so it is off by default; see docs/engines/ytsaurus.md.
    """
    index, total = situation.cluster.index.index, situation.cluster.total
    out = np.full((len(situation.operations), len(total)), np.inf)
    memory, slots = index.get("memory"), index.get("user_slots")
    if not situation.config.settings.best_allocation_share or memory is None or slots is None or total[memory] <= 0:
        return out
    wanted = situation.usage.astype(float) + situation.wanted
    many = wanted[:, slots] > 0
    average = np.floor(quotients(wanted[:, memory], wanted[:, slots], many, 0.0))
    rows = np.flatnonzero(average > 0)
    sizes, kind = np.unique(average[rows], return_inverse=True)
    held, nodes = np.unique(np.maximum(situation.cluster.node_limits[:, memory], 0), return_counts=True)
    best = np.zeros(len(sizes))
    for memory_of_node, count in zip(held.astype(float), nodes, strict=True):
        best += np.floor(memory_of_node / sizes) * count
    out[rows, memory] = (best * sizes / total[memory])[kind]
    return out


def _sums(rows: Ints, counts: Ints, n: int) -> Ints:
    out = np.zeros(n, np.int64)
    np.add.at(out, rows, counts)
    return out


def _operation_name(ask: Ask) -> str:
    return ask.id if ask.workload is None else ask.workload


def _rows(cluster: CompiledState, asks: Sequence[Ask], problems: list[Problem]) -> tuple[list[int], list[int]]:
    """Operation row of each ask, and the asks that are operations of their own, in order."""
    rows: list[int] = []
    fresh: list[int] = []
    known = dict[str, int]()
    workloads = cluster.state.workloads
    for i, ask in enumerate(asks):
        name = _operation_name(ask)
        row = cluster.operation_index.get(name, known.get(name))
        if row is None:
            row = known[name] = len(cluster.operations) + len(fresh)
            fresh.append(i)
        of = workloads[row].queue if row < len(workloads) else asks[fresh[row - len(workloads)]].queue
        if of != ask.queue:
            detail = f"operation {name!r} is in pool {of!r}"
            problems.append(Problem(pointer=pointer("asks", i, "queue"), detail=detail))
        rows.append(row)
    return rows, fresh


def _wants(index: ResourceIndex, asks: Sequence[Ask], rows: list[int]) -> Wants:
    """Pending work, by ask and then by task."""
    sizes = np.array([len(ask.tasks) for ask in asks], np.int64)
    tasks = [task for ask in asks for task in ask.tasks]
    shapes, shape_of = distinct([task.requests for task in tasks])
    needs = np.array([index.vector(shape) for shape in shapes], np.int64).reshape(-1, len(index))
    which = np.array(shape_of, np.int64)
    return Wants(
        operation=np.repeat(np.array(rows, np.int64), sizes),
        ask=np.repeat(np.arange(len(asks)), sizes),
        task=np.arange(len(tasks)) - np.repeat(np.cumsum(sizes) - sizes, sizes),
        need=needs[which],
        count=np.array([task.count for task in tasks], np.int64),
        shapes=needs,
        shape=which,
    )


def _ask_names(asks: Sequence[Ask]) -> set[str]:
    names = set[str]()
    for ask in asks:
        names.update(ask.limit or ())
        if ask.ytsaurus is not None:
            names |= operation_names(ask.ytsaurus)
    shapes, _ = distinct([task.requests for ask in asks for task in ask.tasks])
    return names.union(*shapes)


def _widened(cluster: CompiledState, names: set[str]) -> CompiledState:
    """The cluster with columns for ``names`` too."""
    old = cluster.index
    if names <= old.index.keys():
        return cluster
    index = ResourceIndex(ordered(names | set(old.names), "/asks"))
    columns = np.array([index.index[name] for name in old.names], np.int64)

    def spread(rows: Ints, fill: int = 0) -> Ints:
        out = np.full((len(rows), len(index)), fill, np.int64)
        out[:, columns] = rows
        return out

    total = np.zeros(len(index))
    total[columns] = cluster.total
    operations = cluster.operations
    return replace(
        cluster,
        index=index,
        node_limits=spread(cluster.node_limits),
        total=total,
        operations=replace(
            operations,
            limits=spread(operations.limits, UNLIMITED_STEPS),
            non_preemptible=spread(operations.non_preemptible, UNLIMITED_STEPS),
        ),
        allocations=replace(cluster.allocations, usage=spread(cluster.allocations.usage)),
        usage=spread(cluster.usage),
    )


def _restricted(ask: Ask, task: Task) -> bool:
    """Whether the task says itself that it may run on some nodes only."""
    required = task.required_node or ask.required_node
    return ask.feasible_nodes is not None or required is not None or bool(task.node_selector)


class Feasible(Struct, frozen=True, eq=False):
    """Where each want may run. ``anywhere``: no restriction; ``on``: restricted wants that a node serves."""

    anywhere: Flags
    on: dict[int, Ints]


def feasible(situation: Situation, asks: Sequence[Ask]) -> Feasible:
    """Nodes by ask: feasible_nodes, required_node, node_selector and the tag filters of the pools above together."""
    cluster, wants = situation.cluster, situation.wants
    anywhere = np.ones(len(wants), bool)
    on: dict[int, list[int]] = {}
    serving: dict[Selector, Flags] = {}
    admitted = admitting(cluster)
    if all(within is None for within in admitted) and not any(_restricted(ask, t) for ask in asks for t in ask.tasks):
        return Feasible(anywhere, {})
    for row in range(len(wants)):
        ask = asks[int(wants.ask[row])]
        task = ask.tasks[int(wants.task[row])]
        within = admitted[int(situation.operations.pool[wants.operation[row]])]
        if within is None and not _restricted(ask, task):
            continue
        required = task.required_node or ask.required_node
        anywhere[row] = False
        names: Sequence[str] = list(cluster.node_index) if ask.feasible_nodes is None else ask.feasible_nodes
        if task.node_selector:
            if (key := selector_of(task)) not in serving:
                serving[key] = matching(cluster, frozenset((key,)))
            serves = serving[key]
            names = [name for name in names if serves[cluster.node_index[name]]]
        for name in dict.fromkeys(names):
            if (required is None or name == required) and (within is None or name in within):
                on.setdefault(cluster.node_index[name], []).append(row)
    return Feasible(anywhere, {node: np.array(rows, np.int64) for node, rows in on.items()})


class Children(Struct, frozen=True, eq=False):
    """How children follow their pool's fit factor f, by weight, or one after another where the pool is FIFO:
    suggestion = (f - shift) / scale, between 0 and 1.

    ``end``: the largest f of each pool, 1, or the number of children where they come one after another; ``fifo``:
    by pool. In a FIFO pool the shift of a child is its place."""

    scale: Floats
    shift: Floats
    pool_scale: Floats
    pool_shift: Floats
    end: Floats
    fifo: Flags

    def place(self, row: int, is_pool: bool) -> float:
        """The place of a child of a FIFO pool."""
        return float(self.pool_shift[row] if is_pool else self.shift[row])


def children_of(situation: Situation, weight: Floats) -> Children:
    """``weight``: of pools."""
    own = situation.operations.weight
    root = situation.root
    above, pool_above = situation.operation_parent, situation.parent[:root]
    scale, pool_scale = scales(own, above, weight, situation.parent)
    shift, pool_shift = np.zeros(len(own)), np.zeros(root + 1)
    fifo = np.array([pool.mode == "fifo" for pool in situation.config.pools] + [False], bool)
    end = np.ones(root + 1)
    if fifo.any():
        rank, pool_rank = _ranks(situation, fifo, weight)
        inside, pool_inside = fifo[above], np.append(fifo[pool_above], False)
        scale[inside], shift[inside] = 1.0, rank[inside]
        pool_scale[pool_inside], pool_shift[pool_inside] = 1.0, pool_rank[pool_inside]
        count = np.bincount(np.concatenate((above, pool_above)))  # the root has some child
        end = np.where(fifo, np.maximum(count, 1.0), 1.0)
    return Children(scale, shift, pool_scale, pool_shift, end, fifo)


def scales(own: Floats, above: Ints, weight: Floats, parent: Ints) -> tuple[Floats, Floats]:
    """By weight, of operations (``own``, in pools ``above``), and of pools, the root last (``weight``, ``parent``)."""
    root = len(parent) - 1
    pool_above, weight = parent[:root], weight[:root]
    smallest = np.full(root + 1, np.inf)
    np.minimum.at(smallest, above, np.where(own > EPSILON, own, np.inf))
    np.minimum.at(smallest, pool_above, np.where(weight > EPSILON, weight, np.inf))
    return _ratio(smallest[above], own), np.append(_ratio(smallest[pool_above], weight), 1.0)


def _ratio(smallest: Floats, weight: Floats) -> Floats:
    """Smallest weight over own: infinite for a negligible one, which is never suggested anything."""
    return quotients(smallest, weight, weight > EPSILON, np.inf)


def _ranks(situation: Situation, fifo: Flags, weight: Floats) -> tuple[Ints, Ints]:
    """Places in FIFO pools, of operations and of pools: heavier first, then older, then as in the input (pools
    first)."""
    root, own = situation.root, situation.operations
    pools = np.flatnonzero(fifo[situation.parent[:root]])
    operations = np.flatnonzero(fifo[situation.operation_parent])
    above = np.concatenate((situation.parent[pools], situation.operation_parent[operations]))
    weights = np.concatenate((weight[pools], own.weight[operations]))
    created = np.concatenate((np.full(len(pools), np.iinfo(np.int64).min), own.created[operations]))
    order = np.lexsort((created, -weights, above))
    sorted_above = above[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(sorted_above, sorted_above)
    rank, pool_rank = np.zeros(len(own), np.int64), np.zeros(root + 1, np.int64)
    rank[operations], pool_rank[pools] = place[len(pools) :], place[: len(pools)]
    return rank, pool_rank


class Demands(Struct, frozen=True, eq=False):
    """What operations use and could use; shares, one row an operation."""

    usage: Floats
    demand: Floats
    limits: Floats

    @property
    def gap(self) -> Floats:
        """From usage to demand."""
        return self.demand - self.usage

    def take(self, rows: Ints) -> "Demands":
        """These rows only."""
        return Demands(self.usage[rows], self.demand[rows], self.limits[rows])

    def between(self, part: Floats) -> Floats:
        """The point ``part`` of the way from usage to demand; both ends exactly.

        The origin comes here by way of a fit factor between 1 and 2 (``InterpolateNormalized``, twice)."""
        each = (np.where(part < 0.5, 1.0 + part, 2.0 - (1.0 - part)) - 1.0)[:, None]
        return np.where(each < 0.5, self.usage + self.gap * each, self.demand - self.gap * (1 - each))


def phases(of: Demands) -> tuple[Floats, Floats, Floats]:
    """Largest usage share, the limit that stops usage (inf: none), how far towards the demand limits let go."""
    usage, gap, limits = of.usage, of.gap, of.limits
    stop = least(np.where(limits < usage - TOLERANCE, limits, np.inf))
    reach = least(quotients(limits - usage, gap, gap > 0, 1.0))
    return most(usage), stop, np.clip(reach, 0.0, 1.0)


def operation_values(of: Demands, suggestion: Floats) -> Floats:
    """H of each operation at its suggestion.

    First up to the usage, equally in every resource; then towards the demand, in proportion, until some
    resource exhausts the suggestion or its limit.
    """
    usage, stop, reach = phases(of)
    ramp = quotients(suggestion[:, None] - of.usage, of.gap, of.gap > 0, np.inf)
    part = np.minimum(least(ramp), reach)
    second = (suggestion > usage + TOLERANCE) & np.isinf(stop)
    within = np.minimum(of.usage, np.minimum(suggestion, stop)[:, None])
    return np.where(second[:, None], of.between(part), within)
