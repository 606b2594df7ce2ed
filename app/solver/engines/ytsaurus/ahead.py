"""Goes ahead of the compiled state in a run that nobody watches: what is free on nodes, what pools use and what both
carry, kept up change by change; and rounds that are plain from these, since everybody gets what they ask for.

Where limits leave room for all demand, it is everybody's fair share. Then nothing that runs is plainly preemptible, and
while nobody starves aggressively nobody has to go: each heartbeat starts what fits its node, the least satisfied
operation first. All else is asked.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add, gt, itemgetter, le, sub
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver import rounds
from app.solver.engines.ytsaurus.fair_shares import (
    leaves_room,
    limit_shares,
    plain_tree,
    pools_lacking,
    shares_of,
)
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, MOST_STARTS_IN_ALL, backoffs_over
from app.solver.engines.ytsaurus.kinds import Line, Need, Operation, satisfaction
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    NOWHERE,
    QUIET,
    UNLIMITED_STEPS,
    Due,
    Flags,
    Ints,
    Standing,
    charge,
    moved_on,
    pool_sums,
)
from app.solver.engines.ytsaurus.polyline import EPSILON
from app.solver.engines.ytsaurus.preparation import AGGRESSIVE
from app.solver.engines.ytsaurus.situation import SLACK, carries_only, in_plain_shares
from app.solver.engines.ytsaurus.state import CompiledState, carries_nothing, goes_anywhere, node_usage, pool_limits
from app.solver.model import ytsaurus as wire
from app.solver.model.base import Resources, micros, to_datetime
from app.solver.model.state import Ask, Node, QueueState, Task, Workload
from app.solver.rounds import Turn

_CALM = 0, NEVER
_LARGE = 2**50
"""Steps of one task that are counted exactly in doubles, with those of many others."""


class Plain(NamedTuple):
    """What a round comes to in which everything starts. ``starts``: ask, task and row of the node, in order; ``heard``:
    how many nodes; ``standings``: of the operations that asked; ``wakes``: when somebody would begin to starve."""

    starts: list[tuple[Ask, Task, int]]
    heard: int
    standings: dict[str, Standing]
    wakes: list[int]


class _Own:
    """What an operation that is not as the others of its line has of its own: ``tasks`` that wait, ``usage``: steps,
    None while that is as it was; ``satisfaction`` with these, once that is worked out."""

    __slots__ = ("satisfaction", "tasks", "usage")

    def __init__(self, tasks: Iterable[tuple[Task, Need]]) -> None:
        self.tasks = [*tasks]
        self.usage: Need | None = None
        self.satisfaction: float | None = None


class Heartbeats:
    """What heartbeats start, one after another: ``starts``: ask, task and row of the node; ``waiting``: how many tasks
    wait still; ``needs``: of all that waited. Those of whom something has started or gone are ``_apart``; of the others
    the first of each line is looked at (``_heads``)."""

    def __init__(
        self, lines: Sequence[Line], needs: Sequence[Need], waiting: int, left: Ints, total: list[float]
    ) -> None:
        """``left``: by pool, its place in a depth-first walk."""
        self._needs, self._left, self._total = needs, left, total
        self.waiting = waiting
        self.starts: list[tuple[Ask, Task, int]] = []
        self._apart: dict[Operation, _Own] = {}
        self._heads = {line: line.members[0][1] for line in lines}
        self._satisfactions: dict[Line, float] = {}

    def start(
        self,
        node: int,
        free: list[int],
        among: Sequence[Line] | None = None,
        own: Mapping[Operation, list[int]] | None = None,
    ) -> tuple[Operation, Need] | None:
        """The least satisfied operation (``among`` these) of which something fits ``free`` starts that: it, and what
        it needs. ``own``: what of ``free`` is nothing to an operation itself."""
        fits = [need for need in self._needs if all(map(le, need, free))]
        if not fits:
            return None
        for op in own or ():
            self._of(op)
        heads = self._heads
        able = [*heads.items()] if among is None else [(line, heads[line]) for line in among if line in heads]
        if len(fits) < len(self._needs):
            able = [(line, op) for line, op in able if not {*fits}.isdisjoint(line.needs)]
        for op, of in self._apart.items():
            line = op.line if of.tasks else None
            if line is not None and (among is None or line in among) and self._task(op, fits, free, own) is not None:
                able.append((line, op))
        if not able:
            return None
        op = able[0][1] if len(able) == 1 else self._least_satisfied(able)
        of = self._of(op)
        task, need = of.tasks.pop(self._task(op, fits, free, own) or 0)
        self.waiting -= 1
        self.charge(op, need)
        if op.ask is not None:
            self.starts.append((op.ask, task, node))
        return op, need

    def _of(self, op: Operation) -> _Own:
        own = self._apart.get(op)
        if own is None:
            own = self._apart[op] = _Own(op.tasks)
            if (line := op.line) is not None and self._heads.get(line) is op:
                del self._heads[line]
                for i in range(bisect_right(line.members, op.rank, key=itemgetter(0)), len(line.members)):
                    if (after := line.members[i][1]) not in self._apart:
                        self._heads[line] = after
                        break
        return own

    def _task(
        self, op: Operation, fits: list[Need], free: list[int], own: Mapping[Operation, list[int]] | None
    ) -> int | None:
        """The first task of an operation that is apart that fits."""
        for k, (_, need) in enumerate(self._apart[op].tasks):
            if need in fits and not (own and op in own and any(map(gt, need, map(sub, free, own[op])))):
                return k
        return None

    def charge(self, op: Operation, amounts: Iterable[int]) -> None:
        """It uses so much more."""
        own = self._of(op)
        own.usage = tuple(map(add, op.usage if own.usage is None else own.usage, amounts))
        own.satisfaction = None

    def _least_satisfied(self, able: list[tuple[Line, Operation]]) -> Operation:
        """Equal ones: first in a depth-first walk."""
        known, apart, left = self._satisfactions, self._apart, self._left
        now = [known[line] if line in known and op not in apart else self._satisfaction(op, line) for line, op in able]
        lowest = min(now) + EPSILON
        least = [op for (_, op), of in zip(able, now, strict=True) if of <= lowest]
        return least[0] if len(least) == 1 else min(least, key=lambda op: (left[op.pool], op.rank))

    def _satisfaction(self, op: Operation, line: Line) -> float:
        own = self._apart.get(op)
        if own is None or own.usage is None:
            level = self._satisfactions.get(line)
            if level is None:
                level = self._satisfactions[line] = line.kind.satisfaction
            return level
        if own.satisfaction is None:
            due = line.due
            own.satisfaction = satisfaction(in_plain_shares(own.usage, self._total), due.fair, due.closed)
        return own.satisfaction


Take = Callable[[Heartbeats, int, list[int]], None]
"""Takes on a node, by its row, of which so much is free."""


class Ahead(rounds.Ahead[CompiledState]):
    """See ``rounds.Ahead``. ``names``: of nodes; ``_free``: by resource and node; ``_pool_usage``: the root last;
    ``_last``: when each node tried preemption, ``_longest``, ``_latest`` of them; ``_pools``: starvation of each, 0 or
    1, and since when it is below its fair share."""

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
        self._pool_usage: list[list[int]] = pool_sums(
            cluster.usage if counted else np.zeros_like(cluster.usage),
            cluster.operations.pool,
            config.columns.parent,
            config.columns.depth,
        ).tolist()
        limits, _ = pool_limits(cluster)
        self._limits = limit_shares(cluster, limits, np.full_like(limits, UNLIMITED_STEPS))
        self._paths = [[*config.tree.path(pool), self._root] for pool in range(self._root)]
        enabled = config.columns.enable_aggressive_starvation.tolist()
        self._patience = [
            [float(timeout), float(config.settings.aggressive_timeout)][: 1 + aggressive]
            for timeout, aggressive in zip(config.columns.timeout.tolist(), enabled, strict=True)
        ]
        carried = zip(cluster.pool_starvation.tolist(), cluster.pool_since.tolist(), strict=True)
        self._pools: list[tuple[int, int]] = [*carried]
        self._last: Ints = cluster.last_preemptive.copy()
        self._longest, self._latest = int(self._last.min(initial=0)), int(self._last.max(initial=NEVER))
        self._stale_nodes: Flags = np.zeros(len(self.names), bool)
        self._stale_pools: set[int] = set()
        self._held: dict[str, Workload] = {w.id: w for w in cluster.state.workloads if counted}
        self._vectors: dict[tuple[object, ...], Ints | None] = {}
        self._asked: tuple[Resources | None, Ints | None] = None, None
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
        return self._count(after, 1)

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
        if not self._is_over(now):
            return
        if nodes == len(self.names) and now > self._latest + self._config.settings.backoff:
            self._last[:], self._stale_nodes[:] = now, True
            self._longest = self._latest = now
            return
        last = self._last[:nodes]
        over = backoffs_over(last, self._config.settings.backoff, now)
        last[over] = now
        self._stale_nodes[:nodes] |= over
        self._longest, self._latest = int(self._last.min()), int(self._last.max())

    def _is_over(self, now: int) -> bool:
        """Whether the backoff is of the node that has tried longest ago."""
        return self._longest == NEVER or now > self._longest + self._config.settings.backoff

    def preempted(self, names: Sequence[str], left: wire.Node) -> None:
        """A round that was asked has left this behind on these nodes, in the state too."""
        last = left.last_preemptive_scheduling_at
        self._last[[self._node_index[name] for name in names]] = NEVER if last is None else micros(last)
        self._longest, self._latest = int(self._last.min()), int(self._last.max())
        self._exceeded = self._exceeded or left.overcommit_since is not None

    def everybody_starts(self, asks: Sequence[Ask], standings: Mapping[str, Standing], now: int) -> Plain | None:
        """The round of ``now``, for which pools stand from now on as its update has them; None: it has to be asked.

        ``standings``: of operations that wait, as the last update left them."""
        everybody = None if self._exceeded else self._asking_only(asks)
        if everybody is None:
            return None
        steps = [[*used] for used in self._pool_usage]
        for operation in everybody:
            charge(steps, self._paths[operation.pool], operation.wanted, 1)
        demand = shares_of(self._cluster, np.array(steps, float))
        if not leaves_room(demand, self._limits):
            return None
        wakes: list[int] = []
        usage, wanted = shares_of(self._cluster, np.array(self._pool_usage, float))[: self._root], demand[: self._root]
        below: list[bool] = pools_lacking(usage, wanted, wanted, self._columns.tolerance).tolist()
        pools = self._pools_now(below, now, wakes)
        operations = self._operations_now(everybody, standings, now, wakes)
        if operations is None or any(level == AGGRESSIVE for level, _ in pools):
            return None
        due_to: list[list[float]] = shares_of(self._cluster, np.array([op.wanted for op in everybody], float)).tolist()
        nothing, closed = (0.0,) * self._width, (True,) * self._width
        lines: list[Line] = []
        for i, (operation, of) in enumerate(zip(everybody, map(tuple, due_to), strict=True)):
            due = Due(nothing, of, of, closed, below=True)
            due.satisfaction = satisfaction(nothing, of, closed)
            line = operation.line = Line(operation.pool, [*operation.needs], 0, due)
            operation.rank = i, ""
            line.members.append((operation.rank, operation))
            lines.append(line)
        waiting = sum([len(operation.tasks) for operation in everybody])
        starts = self._started(lines, dict.fromkeys([need for line in lines for need in line.needs]), waiting)
        if len(starts) < waiting:
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
        tasks: list[tuple[Task, Need]] = []
        needs: dict[Need, int] = {}
        requests, need = None, None
        for task in ask.tasks:
            if task.requests is not requests:
                requests, vector = task.requests, self._vector(task.requests)
                need = None if vector is None else tuple(vector.tolist())
            if need is None or task.required_node is not None or task.count != 1:
                return False
            tasks.append((task, need))
            needs[need] = needs.get(need, 0) + 1
        operation.tasks, operation.needs = tasks, needs
        for need, count in needs.items():
            operation.wanted = tuple([w + n * count for w, n in zip(operation.wanted, need, strict=True)])
        part = min(len(tasks) / self._config.settings.count_coefficient, 1.0)
        operation.timeouts = self._timeouts(operation.pool, part)
        operation.ask = ask
        return True

    def _pools_now(self, below: list[bool], now: int, later: list[int]) -> list[tuple[int, int]]:
        """How pools stand at ``now``; ``later``: instants at which time alone changes that."""
        if not self._config.settings.enable_pool_starvation:
            return self._pools
        each = zip(self._pools, below, self._patience, strict=True)
        return [moved_on(before, True, of, now, later) if is_below else _CALM for before, is_below, of in each]

    def _pools_stand(self, pools: list[tuple[int, int]]) -> bool:
        """So from now on; whether that is otherwise than before."""
        if pools == self._pools:
            return False
        self._stale_pools.update(pool for pool, after in enumerate(pools) if after != self._pools[pool])
        self._pools = pools
        return True

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
        self, lines: list[Line], among: Iterable[Need], waiting: int, take: "tuple[Flags, Take] | None" = None
    ) -> list[tuple[Ask, Task, int]]:
        """What each heartbeat starts, in the order of nodes. ``among``, ``waiting``: needs of the tasks that wait, and
        how many these are; ``take``: which nodes may preempt, and what does so."""
        needs = [*among]
        most: list[int] | None = None if len(needs) == 1 else self._free.max(axis=1).tolist()
        fits = [self._fitting(need) for need in needs if most is None or all(map(le, need, most))]
        loud = fits[0] if fits else np.zeros(len(self.names), bool)
        for more in (*fits[1:], *([] if take is None else [take[0]])):
            loud |= more
        nodes: list[int] = loud.nonzero()[0].tolist()
        if not nodes:
            return []
        first = lines[0].members[0][1]
        if take is None and len(lines) == len(lines[0].members) == len(first.tasks) == 1 and first.ask is not None:
            return [(first.ask, first.tasks[0][0], nodes[0])]
        beats = Heartbeats(lines, needs, waiting, self._columns.left, self._cluster.total.tolist())
        for node in nodes:
            free: list[int] = self._free[:, node].tolist()
            while (started := beats.start(node, free)) is not None:
                free = list(map(sub, free, started[1]))
            if take is not None and take[0][node]:
                take[1](beats, node, free)
            if not beats.waiting:
                break
        return beats.starts

    def _starts_few(self, needs: Iterable[Need], waiting: int) -> bool:
        """Whether heartbeats surely start no more than they may: whatever starts takes the least of something."""
        if waiting <= MOST_STARTS:
            return True
        least: list[int] = [min([n for n in amounts if n], default=0) for amounts in zip(*needs, strict=True)]
        free: list[int] = self._free.max(axis=1).tolist()
        most = sum([amount // of for amount, of in zip(free, least, strict=True) if of])
        return most <= MOST_STARTS and waiting <= MOST_STARTS_IN_ALL

    def _fitting(self, need: tuple[int, ...]) -> Flags:
        """By node: whether so much is free. Nothing is where nothing is asked for: no node is overcommitted."""
        fits = None if self._able is None else self._able.copy()
        for amount, free in zip(need, self._free, strict=True):
            if amount:
                fits = free >= amount if fits is None else fits & (free >= amount)
        return np.ones(len(self.names), bool) if fits is None else fits

    def _is_plain(self, workload: Workload) -> bool:
        """Whether it can be counted, and uses so much that its fair share protects all of it when that is what it
        wants."""
        return (
            carries_nothing(workload)
            and carries_only(workload)
            and not any(self._amounts(task) is None for task in workload.tasks)
        )

    def _count(self, workload: Workload, sign: int) -> bool:
        """Whether its nodes have as much."""
        path, room = self._paths[self._config.tree.index[workload.queue]], True
        for task in workload.tasks:
            amounts = self._amounts(task)
            if amounts is not None:
                charge(self._pool_usage, path, amounts.tolist(), sign)
                room &= self._use(NOWHERE if task.node is None else self._node_index[task.node], amounts, sign)
        return room

    def _use(self, node: int, amounts: Ints, sign: int) -> bool:
        """So much of a node, unless it is NOWHERE, is not free any more, or is again; whether it has as much."""
        if node == NOWHERE:
            return True
        free: Ints = self._free[:, node]
        if sign < 0:
            free += amounts
            return True
        free -= amounts
        return min(free.tolist(), default=0) >= 0

    def _amounts(self, task: Task) -> Ints | None:
        """What a running task uses; None: that can't be told here."""
        vector = self._vector(task.requests if task.usage is None else task.usage)
        if vector is None or task.state != "running":
            return None
        return vector if task.count == 1 else vector * task.count

    def _vector(self, amounts: Resources) -> Ints | None:
        """Steps by resource; None: they are no part of the cluster to speak of, or can't be told."""
        if amounts is self._asked[0]:  # tasks of a kind share theirs
            return self._asked[1]
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
        self._asked = amounts, self._vectors[key]
        return self._asked[1]
