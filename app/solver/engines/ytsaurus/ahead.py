"""Goes ahead of the compiled state in a run that nobody watches: what is free on nodes, what pools use and what both
carry, kept up change by change; and rounds that are plain from these, since everybody gets what they ask for.

Where limits leave room for all demand, it is everybody's fair share. Then nothing that runs is plainly preemptible, and
while nobody starves aggressively nobody has to go: each heartbeat starts what fits its node, the least satisfied
operation first. All else is asked.
"""

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
    INFINITE,
    SLACK,
    is_additive,
    leaves_room,
    limit_shares,
    pools_lacking,
    shares_of,
)
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, backoffs_over
from app.solver.engines.ytsaurus.operations import NEVER, QUIET, UNLIMITED_STEPS, Flags, Floats, Ints, Standing
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


class _Want:
    """Tasks of one operation that are alike, one after another. ``used``: what its operation has been given."""

    def __init__(self, ask: Ask, task: Task, need: Ints, rank: tuple[int, int]) -> None:
        self.ask, self.task, self.rank = ask, task, rank
        self.vector = need
        self.need: tuple[int, ...] = tuple(need.tolist())
        self.left = task.count


NOWHERE = -1


class Allocation(NamedTuple):
    """``node``: its row, or NOWHERE; ``usage``: steps; ``begun``: microseconds."""

    task: Task
    node: int
    usage: Ints
    begun: int


class Operation:
    """``usage``, ``wanted``: steps; ``allocations``: oldest first, with ``usages`` and ``nodes`` of each;
    ``row``: shares used, wanted and allowed, as bytes; ``tasks``: those that wait, with what each needs."""

    __slots__ = (
        "allocations", "ask", "is_gang", "level", "name", "nodes", "pool", "row", "since", "tasks", "usage", "usages",
        "wanted", "weight",
    )  # fmt: skip

    def __init__(self, name: str, pool: int, work: Workload | Ask, width: int) -> None:
        self.name, self.pool = name, pool
        self.weight = 1.0 if work.weight is None else float(work.weight)
        self.is_gang = work.ytsaurus is not None and work.ytsaurus.is_gang
        self.usage: tuple[int, ...] = (0,) * width
        self.wanted: tuple[int, ...] = (0,) * width
        self.allocations: list[Allocation] = []
        self.usages: Ints
        self.nodes: list[int] = []
        self.tasks: list[tuple[Task, tuple[int, ...]]] = []
        self.ask: Ask | None = None
        self.row: bytes | None = None
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
        self._columns, self._root = config.columns, len(config.tree)
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
        wants = None if self._exceeded else self._wants(asks)
        if wants is None:
            return None
        added = np.zeros(self._pool_usage.shape)
        for want in wants:
            added[self._paths[self._config.tree.index[want.ask.queue]]] += want.vector * want.left
        demand = shares_of(self._cluster, self._pool_usage + added)
        if not leaves_room(demand, self._limits):
            return None
        wakes: list[int] = []
        pools = self._pools_now(demand, demand, now, wakes)
        operations = self._operations_now(wants, standings, now, wakes)
        if operations is None or any(level == AGGRESSIVE for level, _ in pools):
            return None
        starts = self._starts(wants)
        if starts is None:
            return None
        self._pools_stand(pools)
        return Plain(starts, starts[-1][2] + 1, operations, wakes)

    def _wants(self, asks: Sequence[Ask]) -> list[_Want] | None:
        wants: list[_Want] = []
        for i, ask in enumerate(asks):
            pool = self._config.tree.index.get(ask.queue)
            if pool is None or ask.id in self._held or not _says_nothing(ask) or not goes_anywhere(ask):
                return None
            for task in ask.tasks:
                need = self._vector(task.requests)
                if need is None or task.required_node is not None or task.count < 1:
                    return None
                wants.append(_Want(ask, task, need, (int(self._columns.left[pool]), i)))
        return wants if 0 < sum([want.left for want in wants]) <= MOST_STARTS else None

    def _pools_now(self, demand: Floats, fair: Floats, now: int, later: list[int]) -> list[tuple[int, int]]:
        """How pools stand at ``now``; ``later``: instants at which time alone changes that."""
        if not self._config.settings.enable_pool_starvation:
            return self._pools
        root = self._root
        usage = shares_of(self._cluster, self._pool_usage.astype(float))[:root]
        below = pools_lacking(usage, demand[:root], fair[:root], self._columns.tolerance).tolist()
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
        timeouts = [float(self._columns.timeout[pool]) * part]
        if self._columns.enable_aggressive_starvation[pool]:
            timeouts.append(self._config.settings.aggressive_timeout * part)
        return timeouts

    def _operations_now(
        self, wants: list[_Want], standings: Mapping[str, Standing], now: int, later: list[int]
    ) -> dict[str, Standing] | None:
        """Of operations below their fair share; None: one starves aggressively."""
        out: dict[str, Standing] = {}
        for name, mine in _by_operation(wants).items():
            part = min(sum([want.left for want in mine]) / self._config.settings.count_coefficient, 1.0)
            timeouts = self._timeouts(self._config.tree.index[mine[0].ask.queue], part)
            level, since = moved_on(standings.get(name, QUIET).codes, True, timeouts, now, later)
            if level == AGGRESSIVE:
                return None
            out[name] = Standing.of(level, since)
        return out

    def _starts(self, wants: list[_Want]) -> list[tuple[Ask, Task, int]] | None:
        """What each heartbeat starts, in the order of nodes; None: something finds no room."""
        satisfaction = _Satisfaction(self._cluster, wants)
        starts: list[tuple[Ask, Task, int]] = []
        fitting: dict[tuple[int, ...], Flags] = {}
        pending, node = wants, 0
        while pending:
            for want in pending:
                if want.need not in fitting:
                    fitting[want.need] = self._fitting(want.need)
            some = [fitting[need] for need in {want.need for want in pending}]
            fits = some[0] if len(some) == 1 else np.logical_or.reduce(some)
            node += int(fits[node:].argmax())
            if not fits[node]:
                return None
            free: list[int] = self._free[:, node].tolist()
            while rows := [want for want in pending if all(need <= f for need, f in zip(want.need, free, strict=True))]:
                want = satisfaction.least(rows)
                want.left -= 1
                free = [f - need for f, need in zip(free, want.need, strict=True)]
                satisfaction.given(want)
                starts.append((want.ask, want.task, node))
                pending = pending if want.left else [other for other in pending if other.left]
            node += 1
            if pending and node == len(self.names):
                return None
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
        return _says_nothing(workload) and not any(self._amounts(task) is None for task in workload.tasks)

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


class _Satisfaction:
    """Of operations that use nothing yet and are due all that they want, as they are given it."""

    def __init__(self, cluster: CompiledState, wants: list[_Want]) -> None:
        self._total: list[float] = cluster.total.tolist()
        self._several = len({want.ask.id for want in wants}) > 1
        self._fair: dict[str, list[float]] = {}
        self._used: dict[str, Ints] = {}
        if self._several:
            for name, mine in _by_operation(wants).items():
                self._fair[name] = shares_of(cluster, _sum(mine).astype(float)).tolist()
                self._used[name] = np.zeros_like(mine[0].vector)

    def given(self, want: _Want) -> None:
        if self._several:
            self._used[want.ask.id] += want.vector

    def least(self, wants: list[_Want]) -> _Want:
        """Lowest satisfaction; equal ones: first in a depth-first walk; of one operation its first want."""
        if not self._several or len(wants) == 1:
            return wants[0]
        known = [self._of(want.ask.id) for want in wants]
        lowest = min(known) + EPSILON
        return min((want for want, of in zip(wants, known, strict=True) if of <= lowest), key=lambda want: want.rank)

    def _of(self, name: str) -> float:
        fair = self._fair[name]
        if all(part <= EPSILON for part in fair):
            return INFINITE
        used = [
            amount / total if total > 0 else 0.0
            for amount, total in zip(self._used[name].tolist(), self._total, strict=True)
        ]
        return min([amount / part if part > 0 else 1.0 for amount, part in zip(used, fair, strict=True)])


def _by_operation(wants: list[_Want]) -> dict[str, list[_Want]]:
    out: dict[str, list[_Want]] = {}
    for want in wants:
        out.setdefault(want.ask.id, []).append(want)
    return out


def _sum(wants: list[_Want]) -> Ints:
    return np.add.reduce([want.vector * want.left for want in wants])


def moved_on(
    before: tuple[int, int], is_below: bool, timeouts: list[float], now: int, later: list[int]
) -> tuple[int, int]:
    """How starvation, and since when, moves on of an element that may be below its fair share."""
    if not is_below:
        return 0, NEVER
    level, since = before
    if since == NEVER:
        since = now
    else:
        passed = [now - since > timeout for timeout in timeouts]
        level = AGGRESSIVE if passed[1:] == [True] else NORMAL if passed[0] else level
    later += [instant for timeout in timeouts if (instant := since + floor(timeout) + 1) > now]
    return level, since


def plain_tree(config: CompiledConfiguration) -> bool:
    """Whether all that fits is everybody's share, and every node takes all that fits it."""
    settings = config.settings
    if not is_additive(config) or settings.best_allocation_share or settings.min_spare or settings.absolute_tolerance:
        return False
    return not any(pool.shares.tags is not None or pool.forbid_operations for pool in config.pools)


def _says_nothing(work: Workload | Ask) -> bool:
    """Whether it says nothing itself that makes fair shares or heartbeats others, and carries nothing."""
    block = work.ytsaurus
    idle = block is None or (block.starvation in (None, "non_starving") and block.below_fair_share_since is None)
    return idle and carries_only(work)


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
