"""Goes ahead of the compiled state in a run that nobody watches: what is free on nodes, what pools use and what both
carry, kept up change by change; and rounds that are plain from these, since everybody gets what they ask for.

Where limits leave room for all demand, it is everybody's fair share. Then nothing that runs is plainly preemptible, and
while nobody starves aggressively nobody has to go: each heartbeat starts what fits its node, the least satisfied
operation first. All else is asked.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor
from operator import add, gt, sub
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver import rounds
from app.solver.engines.ytsaurus.fair_shares import (
    EPSILON,
    INFINITE,
    ROUNDING,
    SATISFIABLE,
    leaves_room,
    limit_shares,
    plain_tree,
    pools_lacking,
    shares_of,
)
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, backoffs_over
from app.solver.engines.ytsaurus.kinds import HARDLY, Alike, Due, Kind, Kinds, Operation, Shares, grouped, value_at
from app.solver.engines.ytsaurus.operations import NEVER, QUIET, UNLIMITED_STEPS, Flags, Floats, Ints, Standing
from app.solver.engines.ytsaurus.preparation import AGGRESSIVE, NORMAL
from app.solver.engines.ytsaurus.situation import (
    SLACK,
    carries_nothing,
    carries_only,
    goes_anywhere,
    in_plain_shares,
    pool_limits,
    pool_sums,
)
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


_MOST_DUE = 32
"""Suggestions to a kind that are remembered."""
Scales = dict[tuple[int, float], float]


class Part:
    """Operations of a pool, until one of them is another: how many of each kind; ``wanted``: steps, together."""

    __slots__ = ("_fit", "_of", "counts", "fits", "pool", "wanted", "weights")

    def __init__(self, pool: int, counts: dict[Alike, int]) -> None:
        self.pool, self.counts = pool, counts
        self.wanted = [sum(column) for column in zip(*[
            [count * steps for steps in kind.wanted] for kind, count in counts.items()
        ], strict=True)]  # fmt: skip
        self.fits = all([kind.fits for kind in counts])  # noqa: C419
        self.weights = frozenset([(pool, kind.weight) for kind in counts])
        self._of: Kinds | None = None
        self._fit: float | None = None

    def grouped(self, scale: Scales) -> Kinds:
        """Those that take alike are one. ``scale``: always the same for the weights there are."""
        if self._of is None:
            self._of = grouped([Kind(kind.curve, scale[self.pool, kind.weight], n) for kind, n in self.counts.items()])
        return self._of

    def is_due(self, fit: float, scale: Scales, tolerance: float) -> bool:
        """Whether it is sure what is due to each where the pool's fit factor is this; that is so ``now``."""
        if self._fit == fit:
            return True
        self._fit = None
        for kind in self.counts:
            part = min(fit / scale[self.pool, kind.weight], 1.0, kind.curve[-1][0])  # more makes no difference
            due = kind.due.get(part) or due_to(kind, part, tolerance)
            if due is None:
                return False
            if len(kind.due) >= _MOST_DUE:
                kind.due.clear()
            kind.now = kind.due[part] = due
        self._fit = fit
        return True


class Heartbeats:
    """What heartbeats start, one after another: ``starts``: ask, task and row of the node; ``wanting``: tasks that wait
    still, by place in ``everybody``; ``needs``: of all of them."""

    def __init__(self, everybody: list[Operation], due: list[Due], left: Ints, total: list[float]) -> None:
        """``left``: by pool, its place in a depth-first walk."""
        self.everybody, self._due, self._left, self._total = everybody, due, left, total
        self.wanting = {i: list(op.tasks) for i, op in enumerate(everybody) if op.tasks}
        self.needs = dict.fromkeys([need for i in self.wanting for need in everybody[i].needs])
        self.starts: list[tuple[Ask, Task, int]] = []
        self._given: dict[int, tuple[int, ...]] = {}
        self._now = {i: of for i in self.wanting if (of := due[i].satisfaction) is not None}

    def start(
        self, node: int, free: list[int], among: Iterable[int] | None = None, own: Mapping[int, list[int]] | None = None
    ) -> tuple[int, tuple[int, ...]] | None:
        """The least satisfied operation (``among`` these) of which something fits ``free`` starts that: its place, and
        what it needs. ``own``: what of ``free`` is nothing to an operation itself."""
        fits = [need for need in self.needs if all([n <= f for n, f in zip(need, free, strict=True)])]  # noqa: C419
        if not fits:
            return None
        wanting = self.wanting if among is None else [i for i in among if i in self.wanting]
        able = list(wanting)
        if own or len(fits) < len(self.needs):
            able = [i for i in wanting if self._first(i, fits, free, own) is not None]
        if not able:
            return None
        i = able[0] if len(able) == 1 else self._least_satisfied(able)
        tasks = self.wanting[i]
        task, need = tasks.pop(self._first(i, fits, free, own) or 0)
        if not tasks:
            del self.wanting[i]
        self.charge(i, need)
        if (ask := self.everybody[i].ask) is not None:
            self.starts.append((ask, task, node))
        return i, need

    def _first(
        self, i: int, fits: list[tuple[int, ...]], free: list[int], own: Mapping[int, list[int]] | None
    ) -> int | None:
        """The first task of ``i`` that fits."""
        for k, (_, need) in enumerate(self.wanting[i]):
            if need in fits and not (own and i in own and any(map(gt, need, map(sub, free, own[i])))):
                return k
        return None

    def charge(self, i: int, amounts: Iterable[int]) -> None:
        """``i`` uses so much more."""
        self._given[i] = tuple(map(add, self._given.get(i, self.everybody[i].usage), amounts))
        self._now.pop(i, None)

    def _least_satisfied(self, able: list[int]) -> int:
        """Equal ones: first in a depth-first walk."""
        now, due, given, total = self._now, self._due, self._given, self._total
        for i in able:
            if i not in now:
                if i in given:
                    now[i] = satisfaction(in_plain_shares(given[i], total), due[i])
                else:
                    now[i] = due[i].satisfaction = satisfaction(due[i].usage, due[i])
        lowest = min([now[i] for i in able]) + EPSILON
        left, everybody = self._left, self.everybody
        return min([i for i in able if now[i] <= lowest], key=lambda i: (left[everybody[i].pool], i))


Take = Callable[[Heartbeats, int, list[int]], None]
"""Takes on a node, by its row, of which so much is free."""


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
        self._paths = [np.array([*config.tree.path(pool), self._root], np.int64) for pool in range(self._root)]
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
        nothing, closed = (0.0,) * self._width, (True,) * self._width
        due = [Due(nothing, of, of, closed, below=True) for of in map(tuple, wanted.tolist())]
        starts = self._started(everybody, due)
        if len(starts) < sum([len(operation.tasks) for operation in everybody]):
            return None
        self._pools_stand(pools)
        return Plain(starts, starts[-1][2] + 1, operations, wakes)

    def _asking_only(self, asks: Sequence[Ask]) -> list[Operation] | None:
        """Operations of which nothing runs; None: not all that asks is of such, or it can't be told."""
        everybody: list[Operation] = []
        for ask in asks:
            pool = self._config.tree.index.get(ask.queue)
            if pool is None or ask.id in self._held or not carries_nothing(ask):
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

    def _started(
        self, everybody: list[Operation], due: list[Due], take: "tuple[Flags, Take] | None" = None
    ) -> list[tuple[Ask, Task, int]]:
        """What each heartbeat starts, in the order of nodes. ``take``: which nodes may preempt, and what does so."""
        wanting = [op for op in everybody if op.tasks]
        fitting = [self._fitting(need) for need in dict.fromkeys([need for op in wanting for need in op.needs])]
        loud: Flags = np.logical_or.reduce(fitting if take is None else [take[0], *fitting])
        if not loud.any():
            return []
        if take is None and len(wanting) == 1 and len(wanting[0].tasks) == 1 and (ask := wanting[0].ask) is not None:
            return [(ask, wanting[0].tasks[0][0], int(loud.argmax()))]
        beats = Heartbeats(everybody, due, self._columns.left, self._cluster.total.tolist())
        for node in np.flatnonzero(loud).tolist():
            free: list[int] = self._free[:, node].tolist()
            while (started := beats.start(node, free)) is not None:
                free = list(map(sub, free, started[1]))
            if take is not None and take[0][node]:
                take[1](beats, node, free)
            if not beats.wanting:
                break
        return beats.starts

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
            carries_nothing(workload)
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
        if vector is None or task.state != "running":
            return None
        return vector if task.count == 1 else vector * task.count

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


def is_below(usage: Shares, demand: Shares, fair: Shares, given: float) -> bool:
    """``fair_shares.lacking`` of one element, ``given`` the part of its fair share that is enough."""
    closed = [f >= d - EPSILON for f, d in zip(fair, demand, strict=True)]
    larger = [min(f * given, d) > u + EPSILON for f, d, u in zip(fair, demand, usage, strict=True)]
    return any(larger) if all(closed) else all([more or c for more, c in zip(larger, closed, strict=True)])  # noqa: C419


def due_to(kind: Alike, part: float, tolerance: float) -> Due | None:
    """What is due to a kind that is suggested so much; None: the last bits may decide."""
    usage, demand, fair = kind.usage, kind.demand, value_at(kind.curve, part)
    lacks = [d - f - SATISFIABLE for d, f in zip(demand, fair, strict=True)]
    if (part < HARDLY and any(demand)) or any([abs(lack) < ROUNDING for lack in lacks]):  # noqa: C419
        return None
    given = 1.0 if all([f + SATISFIABLE >= d for f, d in zip(fair, demand, strict=True)]) else tolerance  # noqa: C419
    closed = tuple([f >= d - EPSILON for f, d in zip(fair, demand, strict=True)])
    return Due(usage, demand, fair, closed, is_below(usage, demand, fair, given))


def satisfaction(usage: Sequence[float], due: Due) -> float:
    """``fair_shares.local_satisfaction`` of one operation."""
    fair, closed = due.fair, due.closed
    if all([f <= EPSILON for f in fair]):  # noqa: C419
        return INFINITE
    if any([u > f + EPSILON for u, f in zip(usage, fair, strict=True)]):  # noqa: C419
        over = [u / f if f > 0 else INFINITE if u > EPSILON else 0.0 for u, f in zip(usage, fair, strict=True)]
        return min(max(over), INFINITE)
    if all(closed):
        return min([u / f if f > 0 else 1.0 for u, f in zip(usage, fair, strict=True)])
    return max([u / f if f > 0 and not c else 0.0 for u, f, c in zip(usage, fair, closed, strict=True)])


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
