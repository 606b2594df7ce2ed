"""Goes ahead of the compiled state in a run that nobody watches: what is free on nodes, what pools use and what both
carry, kept up change by change; and rounds that are plain from these, since everybody gets what they ask for.

Where limits leave room for all demand, it is everybody's fair share. Then nothing that runs is plainly preemptible, and
while nobody starves aggressively nobody has to go: each heartbeat starts what fits its node, the least satisfied
operation first. All else is asked.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver import rounds
from app.solver.compiled import ROOTLESS
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.fair_shares import (
    EPSILON,
    SLACK,
    is_additive,
    leaves_room,
    limit_shares,
    local_satisfaction,
    pools_lacking,
    shares_of,
)
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, backoffs_over
from app.solver.engines.ytsaurus.operations import NEVER, QUIET, UNLIMITED_STEPS, Flags, Floats, Ints, Standing
from app.solver.engines.ytsaurus.pool_curves import curve_of
from app.solver.engines.ytsaurus.preparation import AGGRESSIVE, NORMAL
from app.solver.engines.ytsaurus.situation import pool_limits, pool_sums, selects
from app.solver.engines.ytsaurus.state import CompiledState, node_usage
from app.solver.model import ytsaurus as wire
from app.solver.model.base import Resources, micros, to_datetime
from app.solver.model.state import Ask, Node, QueueState, Task, Workload
from app.solver.rounds import Turn

_LARGE = 2**50
"""Steps of one task that are counted exactly in doubles, with those of many others."""


class Plain(NamedTuple):
    """What a round comes to in which everything starts. ``starts``: ask, task and row of the node, in order; ``heard``:
    how many nodes; ``standings``: of the operations that asked; ``wakes``: when somebody would begin to starve."""

    starts: list[tuple[Ask, Task, int]]
    heard: int
    standings: dict[str, Standing]
    wakes: list[int]


NOWHERE = -1


class Allocation(NamedTuple):
    """``node``: its row, or NOWHERE; ``usage``: steps; ``begun``: microseconds."""

    task: Task
    node: int
    usage: Ints
    begun: int


class Due:
    """What operations of a kind stand at: shares, whether they are below their fair share, and their satisfaction, once
    that is worked out."""

    __slots__ = ("below", "closed", "demand", "fair", "satisfaction", "usage")

    def __init__(self, usage: Floats, demand: Floats, fair: Floats, closed: Flags, below: bool) -> None:
        self.usage, self.demand, self.fair, self.closed, self.below = usage, demand, fair, closed, below
        self.satisfaction: float | None = None


class Alike:
    """A kind of operations: pool, weight, and steps that they want. ``row``: shares used, wanted and allowed, as bytes;
    ``usage``, ``demand``: the same; ``curve``: what they take of a suggestion; ``fits``: whether what they want is
    allowed; ``due``: by what was suggested, as far as it is known."""

    __slots__ = ("curve", "demand", "due", "fits", "pool", "row", "usage", "wanted", "weight")

    def __init__(self, pool: int, weight: float, wanted: tuple[int, ...], shares: Floats) -> None:
        """``shares``: used, wanted and allowed, one row each."""
        self.pool, self.weight, self.wanted = pool, weight, wanted
        self.usage, self.demand, limits = shares
        self.row = shares.tobytes()
        self.curve = curve_of(self.row)
        self.fits = bool((self.demand <= limits).all())
        self.due: dict[float, Due] = {}


class Operation:
    """``usage``, ``wanted``: steps; ``allocations``: oldest first; ``taken``: those that are not protected by what is
    due, with their levels; ``tasks``: those that wait, with what each needs; ``needs``: all of these; ``timeouts``:
    after which it starves."""

    __slots__ = (
        "allocations", "ask", "is_gang", "kind", "level", "name", "needs", "pool", "since", "taken", "tasks",
        "timeouts", "usage", "wanted", "weight",
    )  # fmt: skip

    def __init__(self, name: str, pool: int, work: Workload | Ask, width: int) -> None:
        self.name, self.pool = name, pool
        self.weight = 1.0 if work.weight is None else float(work.weight)
        self.is_gang = work.ytsaurus is not None and work.ytsaurus.is_gang
        self.usage: tuple[int, ...] = (0,) * width
        self.wanted: tuple[int, ...] = (0,) * width
        self.allocations: list[Allocation] = []
        self.taken: tuple[Due, list[tuple[Allocation, int]]] | None = None
        self.tasks: list[tuple[Task, tuple[int, ...]]] = []
        self.needs: dict[tuple[int, ...], int] = {}
        self.timeouts: list[float] = []
        self.ask: Ask | None = None
        self.kind: Alike | None = None
        self.level, self.since = 0, NEVER


class Ahead(rounds.Ahead[CompiledState]):
    """See ``rounds.Ahead``. ``names``: of nodes; ``_free``: by resource and node; ``_pool_usage``: the root last;
    ``_last``: when each node tried preemption; ``_pools``: starvation of each, 0 or 1, and since when it is below its
    fair share."""

    @staticmethod
    def of(cluster: CompiledState) -> "Ahead | None":
        """None: something runs, or is configured, that makes rounds other than plain."""
        config, own = cluster.config, cluster.operations
        if not plain_tree(config) or (cluster.overcommit_since != NEVER).any() or not len(cluster.node_index):
            return None
        if own.graceful.any() or own.suspended.any() or own.starvation.any() or (own.since != NEVER).any():
            return None
        if (
            not (own.weight > SLACK).all()
            or (own.limits < UNLIMITED_STEPS).any()
            or (cluster.pool_starvation > 1).any()
        ):
            return None
        ahead = Ahead(cluster)
        if (ahead._free < 0).any() or not all(map(ahead._is_plain, cluster.state.workloads)):
            return None
        return ahead

    def __init__(self, cluster: CompiledState, *, counted: bool = True) -> None:
        """``counted``: with what runs; without, that is still to be told."""
        config = cluster.config
        self._cluster, self._config = cluster, config
        self._columns, self._root, self._width = config.columns, len(config.tree), len(cluster.index)
        self._node_index, self.names = cluster.node_index, list(cluster.node_index)
        self._free: Ints = np.ascontiguousarray((cluster.node_limits - (node_usage(cluster) if counted else 0)).T)
        self._able: Flags | None = None if cluster.schedulable.all() else cluster.schedulable
        columns = config.columns
        self._pool_usage = pool_sums(
            cluster.usage if counted else np.zeros_like(cluster.usage),
            cluster.operations.pool,
            columns.parent,
            columns.depth,
        )
        limits, _ = pool_limits(cluster)
        self._limits = limit_shares(cluster, limits, np.full_like(limits, UNLIMITED_STEPS))
        self._paths = [_path(config, pool) for pool in range(self._root)]
        enabled = columns.enable_aggressive_starvation.tolist()
        self._patience = [
            [float(timeout), float(config.settings.aggressive_timeout)][: 1 + aggressive]
            for timeout, aggressive in zip(columns.timeout.tolist(), enabled, strict=True)
        ]
        self._pools: list[tuple[int, int]] = list(
            zip(cluster.pool_starvation.tolist(), cluster.pool_since.tolist(), strict=True)
        )
        self._last: Ints = cluster.last_preemptive.copy()
        self._stale_nodes: Flags = np.zeros(len(self.names), bool)
        self._stale_pools: set[int] = set()
        self._held: dict[str, Workload] = {w.id: w for w in cluster.state.workloads if counted}
        self._vectors: dict[tuple[object, ...], Ints | None] = {}
        self._exceeded = False

    def moved(self, name: str, after: Workload | None) -> bool:
        before = self._held.pop(name, None)
        if before is not None:
            self._count(before, -1)
        if after is None:
            return True
        if not self._is_plain(after):
            return False
        self._held[name] = after
        self._count(after, 1)
        return not any((self._free[:, self._node_index[task.node]] < 0).any() for task in after.tasks if task.node)

    def state(self, follow: Callable[[], CompiledState]) -> CompiledState | None:
        del follow  # a round that is not plain looks at everything

    def left(self, node: Callable[[str], Node]) -> Turn:
        turn = Turn()
        blocks: dict[int, wire.Node] = {}
        for row in np.flatnonzero(self._stale_nodes).tolist():
            last = int(self._last[row])
            block = blocks.get(last)
            if block is None:
                block = blocks[last] = wire.Node(last_preemptive_scheduling_at=to_datetime(last))
            turn.nodes.append(replace(node(self.names[row]), ytsaurus=block))
        for pool in sorted(self._stale_pools):
            standing = Standing.of(*self._pools[pool])
            block = wire.PoolState(starvation=standing.starvation, below_fair_share_since=standing.below_since)
            turn.queues[self._config.tree.names[pool]] = QueueState(ytsaurus=block)
        self._stale_nodes[:] = False
        self._stale_pools.clear()
        return turn

    def heard(self, nodes: int, now: int) -> None:
        """Heartbeats of the first ``nodes`` were processed at ``now``: each tried preemption where it might again."""
        last = self._last[:nodes]
        over = backoffs_over(last, self._config.settings.backoff, now)
        last[over] = now
        self._stale_nodes[:nodes] |= over

    def preempted(self, names: Sequence[str], left: wire.Node) -> None:
        """A round that was asked has left this behind on these nodes, in the state too."""
        last = left.last_preemptive_scheduling_at
        self._last[[self._node_index[name] for name in names]] = NEVER if last is None else micros(last)
        self._exceeded = self._exceeded or left.overcommit_since is not None

    def everybody_starts(self, asks: Sequence[Ask], standings: Mapping[str, Standing], now: int) -> Plain | None:
        """The round of ``now``, for which pools stand from now on as its update has them; None: it has to be asked.

        ``standings``: of operations that wait, as the last update left them."""
        everybody = None if self._exceeded else self._asking_only(asks)
        if everybody is None:
            return None
        added = np.zeros(self._pool_usage.shape)
        for operation in everybody:
            added[self._paths[operation.pool]] += operation.wanted
        demand = shares_of(self._cluster, self._pool_usage + added)
        if not leaves_room(demand, self._limits):
            return None
        wakes: list[int] = []
        pools = self._pools_now(self._pools_below(demand, demand), now, wakes)
        operations = self._operations_now(everybody, standings, now, wakes)
        if operations is None or any(level == AGGRESSIVE for level, _ in pools):
            return None
        wanted = shares_of(self._cluster, np.array([operation.wanted for operation in everybody], float))
        nothing, closed = np.zeros(self._width), np.ones(self._width, bool)
        starts = self._started(everybody, [Due(nothing, of, of, closed, below=True) for of in wanted])
        if len(starts) < sum([len(operation.tasks) for operation in everybody]):
            return None
        self._pools_stand(pools)
        return Plain(starts, starts[-1][2] + 1, operations, wakes)

    def _asking_only(self, asks: Sequence[Ask]) -> list[Operation] | None:
        """Operations of which nothing runs; None: not all that asks is of such, or it can't be told."""
        everybody: list[Operation] = []
        for ask in asks:
            pool = self._config.tree.index.get(ask.queue)
            if pool is None or ask.id in self._held or not _carries_nothing(ask):
                return None
            operation = Operation(ask.id, pool, ask, self._width)
            if not self._asks_for(operation, ask):
                return None
            everybody.append(operation)
        return everybody if 0 < sum([len(operation.tasks) for operation in everybody]) <= MOST_STARTS else None

    def _asks_for(self, operation: Operation, ask: Ask | None) -> bool:
        """Whether what ``ask``, or nobody, wants of ``operation`` from now on can be told."""
        operation.kind = operation.ask = None
        operation.tasks, operation.needs = [], {}
        operation.wanted = (0,) * self._width
        if ask is None:
            operation.timeouts = self._timeouts(operation.pool, 0.0)
            return True
        if not (carries_only(ask) and goes_anywhere(ask)) or self._config.tree.names[operation.pool] != ask.queue:
            return False
        tasks: list[tuple[Task, tuple[int, ...]]] = []
        requests, need = None, None
        for task in ask.tasks:
            if task.requests is not requests:
                requests, vector = task.requests, self._vector(task.requests)
                need = None if vector is None else tuple(vector.tolist())
            if need is None or task.required_node is not None or task.count != 1:
                return False
            tasks.append((task, need))
        operation.tasks, operation.needs = tasks, Counter([need for _, need in tasks])
        operation.wanted = tuple(map(sum, zip(*[need for _, need in tasks], strict=True)))
        part = min(len(tasks) / self._config.settings.count_coefficient, 1.0)
        operation.timeouts = self._timeouts(operation.pool, part)
        operation.ask = ask
        return True

    def _pools_below(self, demand: Floats, fair: Floats) -> list[bool]:
        """By pool, whether it is below its fair share; one row of shares a pool, the root last."""
        root = self._root
        usage = shares_of(self._cluster, self._pool_usage.astype(float))[:root]
        return pools_lacking(usage, demand[:root], fair[:root], self._columns.tolerance).tolist()

    def _pools_now(self, below: list[bool], now: int, later: list[int]) -> list[tuple[int, int]]:
        """How pools stand at ``now``; ``later``: instants at which time alone changes that."""
        if not self._config.settings.enable_pool_starvation:
            return self._pools
        return [
            moved_on(self._pools[pool], is_below, self._timeouts(pool, 1.0), now, later)
            for pool, is_below in enumerate(below)
        ]

    def _pools_stand(self, pools: list[tuple[int, int]]) -> bool:
        """So from now on; whether that is otherwise than before."""
        changed = {pool for pool, after in enumerate(pools) if after != self._pools[pool]}
        self._pools = pools
        self._stale_pools |= changed
        return bool(changed)

    def _timeouts(self, pool: int, part: float) -> list[float]:
        """After which somebody in ``pool`` starves, and where that may be does so aggressively."""
        return [timeout * part for timeout in self._patience[pool]]

    def _operations_now(
        self, everybody: list[Operation], standings: Mapping[str, Standing], now: int, later: list[int]
    ) -> dict[str, Standing] | None:
        """Of operations that are all below their fair share; None: one starves aggressively."""
        out: dict[str, Standing] = {}
        for operation in everybody:
            before = standings.get(operation.name, QUIET).codes
            level, since = moved_on(before, True, operation.timeouts, now, later)
            if level == AGGRESSIVE:
                return None
            out[operation.name] = Standing.of(level, since)
        return out

    def _started(self, everybody: list[Operation], due: list[Due]) -> list[tuple[Ask, Task, int]]:
        """What each heartbeat starts, in the order of nodes."""
        starts: list[tuple[Ask, Task, int]] = []
        wanting = {i: list(op.tasks) for i, op in enumerate(everybody) if op.tasks}
        needs = dict.fromkeys([need for i in wanting for need in everybody[i].needs])
        fitting = [self._fitting(need) for need in needs]
        given: dict[int, Ints] = {}
        now = {i: of for i in wanting if (of := due[i].satisfaction) is not None}

        def satisfactions(able: list[int]) -> list[float]:
            if missing := [i for i in able if i not in now]:
                usage = [
                    to_shares(given[i].astype(float), self._cluster.total) if i in given else due[i].usage
                    for i in missing
                ]
                fair, closed = np.stack([due[i].fair for i in missing]), np.stack([due[i].closed for i in missing])
                known = local_satisfaction(np.stack(usage), fair, closed).tolist()
                now.update(zip(missing, known, strict=True))
                for i in missing:
                    if i not in given:
                        due[i].satisfaction = now[i]
            return [now[i] for i in able]

        left = self._columns.left
        for node in map(int, np.flatnonzero(np.logical_or.reduce(fitting))):
            free: list[int] = self._free[:, node].tolist()
            while wanting:
                fits = {need for need in needs if all([n <= f for n, f in zip(need, free, strict=True)])}  # noqa: C419
                able = [
                    i for i, tasks in wanting.items()
                    if len(fits) == len(needs) or (fits and any(need in fits for _, need in tasks))
                ]  # fmt: skip
                if not able:
                    break
                i = able[0]
                if len(able) > 1:
                    known = satisfactions(able)
                    lowest = min(known) + EPSILON
                    least = [i for i, of in zip(able, known, strict=True) if of <= lowest]
                    i = min(least, key=lambda i: (left[everybody[i].pool], i))
                op, tasks = everybody[i], wanting[i]
                task, need = tasks.pop(next(k for k, (_, need) in enumerate(tasks) if need in fits))
                if not tasks:
                    del wanting[i]
                free = [f - n for f, n in zip(free, need, strict=True)]
                given[i] = given.get(i, np.array(op.usage, np.int64)) + need
                now.pop(i, None)
                if op.ask is not None:
                    starts.append((op.ask, task, node))
            if not wanting:
                break
        return starts

    def _fitting(self, need: tuple[int, ...]) -> Flags:
        """By node: whether so much is free. Nothing is where nothing is asked for: no node is overcommitted."""
        fits = np.ones(len(self.names), bool) if self._able is None else self._able.copy()
        for amount, free in zip(need, self._free, strict=True):
            if amount:
                fits &= free >= amount
        return fits

    def _is_plain(self, workload: Workload) -> bool:
        """Whether it can be counted, and uses so much that its fair share protects all of it when that is what it
        wants."""
        return (
            _carries_nothing(workload)
            and carries_only(workload)
            and not any(self._amounts(task) is None for task in workload.tasks)
        )

    def _count(self, workload: Workload, sign: int) -> None:
        path = self._paths[self._config.tree.index[workload.queue]]
        for task in workload.tasks:
            amounts = self._amounts(task)
            if amounts is not None:
                self._pool_usage[path] += sign * amounts
                if task.node is not None:
                    self._free[:, self._node_index[task.node]] -= sign * amounts

    def _amounts(self, task: Task) -> Ints | None:
        """What a running task uses; None: that can't be told here."""
        vector = self._vector(task.requests if task.usage is None else task.usage)
        return None if vector is None or task.state != "running" else vector * task.count

    def _vector(self, amounts: Resources) -> Ints | None:
        """Steps by resource; None: they are no part of the cluster to speak of, or can't be told."""
        key = (*amounts, *amounts.values())
        if key not in self._vectors:
            known = amounts.keys() <= self._cluster.index.index.keys()
            vector = np.array(self._cluster.index.vector(amounts), np.int64) if known else None
            if vector is not None and (
                int(vector.max(initial=0)) >= _LARGE
                or not (shares_of(self._cluster, vector.astype(float)) > EPSILON).any()
            ):
                vector = None
            self._vectors[key] = vector
        return self._vectors[key]


def moved_on(
    before: tuple[int, int], is_below: bool, timeouts: list[float], now: int, later: list[int]
) -> tuple[int, int]:
    """How starvation, and since when, moves on of an element that may be below its fair share."""
    if not is_below:
        return 0, NEVER
    level, since = before
    starves = since != NEVER
    since = since if starves else now
    for reached, timeout in enumerate(timeouts, NORMAL):
        if starves and now - since > timeout:
            level = reached
        if (instant := since + floor(timeout) + 1) > now:
            later.append(instant)
    return level, since


def plain_tree(config: CompiledConfiguration) -> bool:
    """Whether all that fits is everybody's share, and every node takes all that fits it."""
    settings = config.settings
    if not is_additive(config) or settings.best_allocation_share or settings.min_spare or settings.absolute_tolerance:
        return False
    return not any(pool.shares.tags is not None or pool.forbid_operations for pool in config.pools)


def _carries_nothing(work: Workload | Ask) -> bool:
    block = work.ytsaurus
    return block is None or (block.starvation in (None, "non_starving") and block.below_fair_share_since is None)


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


def goes_anywhere(ask: Ask) -> bool:
    return (
        ask.feasible_nodes is None and ask.required_node is None and ask.workload is None and ask.pending_reason is None
    )


def _path(config: CompiledConfiguration, pool: int) -> Ints:
    """``pool``, those above and the root, which comes last."""
    path: list[int] = []
    while pool != ROOTLESS:
        path.append(pool)
        pool = config.tree.parent[pool]
    return np.array([*path, len(config.tree)], np.int64)
