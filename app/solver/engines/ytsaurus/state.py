"""A state as arrays: nodes, operations, allocations. Built once, read only.

Rows are nodes, operations (workloads first, then the asks that are operations of their own) or allocations;
columns are resources. Amounts are int64 steps (thousandths of cpu and gpu, whole units of the rest).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from app.solver.compiled.resources import ResourceIndex
from app.solver.engines.ytsaurus.compile import Inherited, PoolTree, ordered
from app.solver.engines.ytsaurus.settings import OperationSettings, Steps, Where, operation_settings
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.model.ytsaurus import Starvation
from app.solver.model.ytsaurus import Workload as OperationOptions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Levels = npt.NDArray[np.int8]

UNLIMITED = 2**62
"""A limit or threshold that was not given."""
NEVER = -(2**63)
"""An instant that was not given: older than everything."""
_MOST = float(2**62)

STARVATION: tuple[Starvation, Starvation, Starvation] = ("non_starving", "starving", "aggressively_starving")
STARVATION_CODE: dict[str | None, int] = {None: 0, "non_starving": 0, "starving": 1, "aggressively_starving": 2}


@dataclass(frozen=True, slots=True)
class Operations:
    """One row an operation. ``tolerance`` and ``timeout`` are inherited already; ``non_preemptible`` too, with
    ``protects`` saying whether it names any resource. Instants and durations in microseconds."""

    ids: list[str]
    pool: Ints
    weight: Floats
    limits: Ints
    created: Ints
    graceful: Flags
    gang: Flags
    suspended: Flags
    tolerance: Floats
    timeout: Ints
    non_preemptible: Ints
    protects: Flags
    preemption_timeout: Ints
    graceful_timeout: Ints
    starvation: Levels
    since: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def joined(self, other: "Operations") -> "Operations":
        """These operations, then ``other``'s."""
        columns = {
            name: np.concatenate((getattr(self, name), getattr(other, name)))
            for name in self.__slots__
            if name != "ids"
        }
        return Operations(ids=self.ids + other.ids, **columns)


@dataclass(frozen=True, slots=True)
class Allocations:
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


@dataclass(frozen=True, slots=True)
class Cluster:
    """A loaded state. ``free_total``: what the tree's nodes have in all; ``on_node``: allocation rows by node."""

    config: PoolTree
    state: State
    index: ResourceIndex
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

    def allocations_on(self, node: int) -> Ints:
        """Rows of the allocations that run on ``node``."""
        return self.on_node[self.node_start[node] : self.node_start[node + 1]]

    def task_of(self, allocation: int) -> Task:
        """The task that allocation row ``allocation`` is."""
        a = self.allocations
        return self.state.workloads[int(a.operation[allocation])].tasks[int(a.task[allocation])]


def load(config: PoolTree, state: State) -> Cluster:
    """Compile ``state``. Raises InvalidInput with every problem of its own, QuantityError and KeyError for others."""
    problems: list[Problem] = []
    tasks = [t for w in state.workloads for t in w.tasks]
    shapes, shape_of = _shapes(tasks)
    options = [o for w in state.workloads if (o := w.ytsaurus) is not None]
    index = ResourceIndex(ordered(_names(config, state, shapes, options)))
    node_index = {node.name: i for i, node in enumerate(state.nodes)}
    node_limits = _node_limits(index, state.nodes)
    operations = compile_operations(config, index, state.workloads, "state", "workloads", problems)
    allocations = _allocations(index, state.workloads, tasks, shapes, shape_of, node_index)
    usage = _sum_of(allocations, len(state.workloads))
    if problems:
        raise InvalidInput(problems)
    refuse_overflow(node_limits, ("state", "nodes"))
    refuse_overflow(allocations.usage, ("state", "workloads"))
    by_node = np.argsort(allocations.node, kind="stable")
    starvation, since = _pool_states(config, state)
    return Cluster(
        config=config,
        state=state,
        index=index,
        node_index=node_index,
        node_limits=node_limits,
        schedulable=np.array([node.schedulable for node in state.nodes], bool),
        total=np.maximum(node_limits, 0).sum(axis=0).astype(float),
        last_preemptive=_instants(
            [None if n.ytsaurus is None else n.ytsaurus.last_preemptive_scheduling_at for n in state.nodes]
        ),
        overcommit_since=_instants([None if n.ytsaurus is None else n.ytsaurus.overcommit_since for n in state.nodes]),
        operations=operations,
        operation_index={name: i for i, name in enumerate(operations.ids)},
        allocations=allocations,
        on_node=by_node,
        node_start=np.searchsorted(allocations.node[by_node], np.arange(len(state.nodes) + 1)),
        usage=usage,
        pool_starvation=starvation,
        pool_since=since,
    )


def matrix(index: ResourceIndex, rows: Sequence[Steps], missing: int = 0) -> Ints:
    """Resource maps as a dense matrix. Raises KeyError for a resource that the index does not know."""
    out = np.full((len(rows), len(index)), missing, np.int64)
    columns = index.index
    for i, row in enumerate(rows):
        for name, value in row.items():
            out[i, columns[name]] = value
    return out


def compile_operations(
    config: PoolTree, index: ResourceIndex, of: Sequence[Workload | Ask], top: str, kind: str | None,
    problems: list[Problem],
) -> Operations:  # fmt: skip
    """The operations that ``of`` are; problems are added to ``problems``, with pointers below ``top``/``kind``."""
    pools = config.tree.index
    pool = [pools[w.queue] for w in of]
    settings = config.settings
    inherited = config.inherited
    plain, plain_options = OperationSettings(), OperationOptions()
    own: list[OperationSettings] = [plain] * len(of)
    options: list[OperationOptions] = [plain_options] * len(of)
    base: Where = (top,) if kind is None else (top, kind)
    for i, w in enumerate(of):
        if w.ytsaurus is not None:
            options[i] = w.ytsaurus
            own[i] = operation_settings(w.ytsaurus, (*base, i, "ytsaurus"), problems)
        if config.pools[pool[i]].forbid_operations and config.is_inner(pool[i]):
            detail = f"pool {w.queue!r} has child pools and forbids immediate operations"
            problems.append(Problem(pointer=pointer(*base, i, "queue"), detail=detail))
        if w.weight is not None and not 0 <= w.weight < float("inf"):
            detail = f"{w.weight!r} is out of range: at least 0, and finite"
            problems.append(Problem(pointer=pointer(*base, i, "weight"), detail=detail))
    limits = np.full((len(of), len(index)), UNLIMITED, np.int64)
    thresholds = np.full((len(of), len(index)), UNLIMITED, np.int64)
    protects = np.zeros(len(of), bool)
    for i, w in enumerate(of):
        if w.limit:
            for r, value in index.steps(w.limit).items():
                limits[i, r] = value
        for name, value in (own[i].limits or {}).items():
            r = index.index[name]
            limits[i, r] = min(limits[i, r], value)
        threshold = operation_threshold(inherited[pool[i]], own[i])
        if threshold:
            protects[i] = True
            for name, value in threshold.items():
                thresholds[i, index.index[name]] = value
    return Operations(
        ids=[w.id for w in of],
        pool=np.array(pool, np.int64),
        weight=np.array([1.0 if w.weight is None else w.weight for w in of], float),
        limits=limits,
        created=_instants([w.created_at for w in of]),
        graceful=np.array([o.preemption_mode == "graceful" for o in options], bool),
        gang=np.array([o.is_gang for o in options], bool),
        suspended=np.array([o.suspended for o in options], bool),
        tolerance=np.array([operation_tolerance(inherited[p], o) for p, o in zip(pool, own, strict=True)], float),
        timeout=np.array([operation_timeout(inherited[p], o) for p, o in zip(pool, own, strict=True)], np.int64),
        non_preemptible=thresholds,
        protects=protects,
        preemption_timeout=_durations([o.preemption_timeout for o in own], settings.preemption_timeout),
        graceful_timeout=_durations([o.graceful_timeout for o in own], settings.graceful_timeout),
        starvation=np.array([STARVATION_CODE[o.starvation] for o in options], np.int8),
        since=_instants([o.below_fair_share_since for o in options]),
    )


def operation_tolerance(pool: Inherited, own: OperationSettings) -> float:
    """An operation may only be less demanding than its pool: the smaller tolerance."""
    return pool.tolerance if own.tolerance is None else min(own.tolerance, pool.tolerance)


def operation_timeout(pool: Inherited, own: OperationSettings) -> int:
    """An operation may only be more patient than its pool: the longer timeout, microseconds."""
    return pool.timeout if own.timeout is None else max(own.timeout, pool.timeout)


def operation_threshold(pool: Inherited, own: OperationSettings) -> Steps:
    """An operation may only lower its pool's threshold, or name a resource that the pool leaves out."""
    if not own.non_preemptible:
        return pool.non_preemptible
    return pool.non_preemptible | {
        name: min(value, pool.non_preemptible.get(name, value)) for name, value in own.non_preemptible.items()
    }


def refuse_overflow(amounts: Ints, at: Where) -> None:
    """Raise InvalidInput where the column sums of ``amounts`` would not fit int64."""
    if len(amounts) and float(np.abs(amounts.astype(float)).sum(axis=0).max(initial=0.0)) >= _MOST:
        raise InvalidInput([Problem(pointer=pointer(*at), detail="the amounts of one resource add up to over 2^62")])


def _shapes(tasks: list[Task]) -> tuple[list[dict[str, Any]], list[int]]:
    """Distinct resource maps, and which of them each task's requests are: a cluster repeats a few hundred."""
    seen: dict[tuple[Any, ...], int] = {}
    shape_of = [seen.setdefault(tuple(t.requests.items()), len(seen)) for t in tasks]
    return [dict(shape) for shape in seen], shape_of


def _names(config: PoolTree, state: State, shapes: list[dict[str, Any]], options: list[OperationOptions]) -> set[str]:
    names = set(config.resources)
    for node in state.nodes:
        names.update(node.capacity, node.occupied)
    for shape in shapes:
        names.update(shape)
    for workload in state.workloads:
        names.update(workload.limit or ())
        for task in workload.tasks:
            if task.usage is not None:
                names.update(task.usage)
    for option in options:
        names.update(operation_names(option))
    return names


def operation_names(option: OperationOptions) -> set[str]:
    """Every resource that an operation's options name."""
    names = {*(option.non_preemptible_resource_usage_threshold or ()), *(option.resource_limits or ())}
    return names if option.max_unpreemptible_running_job_count is None else names | {"user_slots"}


def _node_limits(index: ResourceIndex, nodes: list[Node]) -> Ints:
    out = np.zeros((len(nodes), len(index)), np.int64)
    for i, node in enumerate(nodes):
        out[i] = index.vector(node.capacity)
        if node.occupied:
            out[i] -= np.array(index.vector(node.occupied), np.int64)
    return out


def _allocations(
    index: ResourceIndex, workloads: list[Workload], tasks: list[Task], shapes: list[dict[str, Any]],
    shape_of: list[int], node_index: dict[str, int],
) -> Allocations:  # fmt: skip
    sizes = np.array([len(w.tasks) for w in workloads], np.int64)
    operation = np.repeat(np.arange(len(workloads)), sizes)
    first = np.cumsum(sizes) - sizes
    task = np.arange(len(tasks)) - np.repeat(first, sizes)
    requests = np.array([index.vector(shape) for shape in shapes], np.int64).reshape(-1, len(index))
    usage = requests[np.array(shape_of, np.int64)] if tasks else np.zeros((0, len(index)), np.int64)
    has_gap = np.zeros(len(tasks), bool)
    cpu = index.index.get("cpu")
    for i, t in enumerate(tasks):
        if t.usage is not None:
            real = np.array(index.vector(t.usage), np.int64)
            has_gap[i] = cpu is not None and real[cpu] < usage[i, cpu]
            usage[i] = real
        if t.count != 1:
            usage[i] = _times(usage[i], t.count)
    node = np.array([-1 if t.node is None else node_index[t.node] for t in tasks], np.int64)
    started = _instants([t.started_at for t in tasks])
    rows = np.lexsort((started, operation))
    running = np.array([t.state == "running" for t in tasks], bool)
    if not running.all():
        rows = rows[running[rows]]
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


def _sum_of(allocations: Allocations, operations: int) -> Ints:
    """Usage of each operation. Differences of prefix sums: exact on integers."""
    sums = np.zeros((len(allocations) + 1, allocations.usage.shape[1]), np.int64)
    np.cumsum(allocations.usage, axis=0, out=sums[1:])
    return sums[allocations.of[1 : operations + 1]] - sums[allocations.of[:operations]]


def _pool_states(config: PoolTree, state: State) -> tuple[Levels, Ints]:
    starvation = np.zeros(len(config.tree), np.int8)
    since = np.full(len(config.tree), NEVER, np.int64)
    for name, queue in state.queues.items():
        if queue.ytsaurus is not None:
            i = config.tree.index[name]
            starvation[i] = STARVATION_CODE[queue.ytsaurus.starvation]
            if queue.ytsaurus.below_fair_share_since is not None:
                since[i] = micros(queue.ytsaurus.below_fair_share_since)
    return starvation, since


def _durations(values: list[int | None], default: int) -> Ints:
    return np.array([default if value is None else value for value in values], np.int64)


def _instants(values: list[datetime | None]) -> Ints:
    """Microseconds since 1970. ``timestamp`` is exact to the microsecond until 2255; later ones take the slow way."""
    known = np.array([0.0 if value is None else value.timestamp() for value in values], float)
    out = np.rint(known * 1e6).astype(np.int64)
    for i in np.flatnonzero(np.abs(known) > 9e9):
        late = values[i]
        out[i] = NEVER if late is None else micros(late)
    if None in values:
        out[np.array([value is None for value in values], bool)] = NEVER
    return out
