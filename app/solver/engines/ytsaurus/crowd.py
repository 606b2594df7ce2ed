"""Goes ahead of the compiled state where not all that is wanted is due: who starves, starts and has to go.

Operations that are alike have like shares: those of each kind are worked out once, by the functions that a state's are
worked out by. Then each heartbeat starts what fits its node, the least satisfied operation first, and takes what those
who starve may take. Where something runs or is asked for that makes rounds others, the round is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import add, attrgetter, neg, sub
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver.engines.ytsaurus.ahead import Ahead, Heartbeats, Take
from app.solver.engines.ytsaurus.fair_shares import plain_scales, plain_tree, shares_of
from app.solver.engines.ytsaurus.guarantees import Fitted, Specified
from app.solver.engines.ytsaurus.heartbeat import REASONS, backoffs_over, list_again, list_victims, taken_of
from app.solver.engines.ytsaurus.kinds import (
    UNKNOWN,
    Alike,
    Alikes,
    Counts,
    Line,
    Operation,
    PoolShares,
    Scaling,
    Victim,
    emptied_by,
)
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    NOWHERE,
    QUIET,
    UNLIMITED_STEPS,
    Allocation,
    Flags,
    Floats,
    Standing,
    all_of,
    charge,
    moved_on,
    standing,
)
from app.solver.engines.ytsaurus.polyline import Lines
from app.solver.engines.ytsaurus.pool_curves import Divided, Nearby
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    NORMAL,
    PREEMPTIBLE,
    Reason,
    handed_down,
)
from app.solver.engines.ytsaurus.situation import carries_only
from app.solver.engines.ytsaurus.state import CompiledState, pool_limits
from app.solver.model.base import micros
from app.solver.model.decision import PlannedEviction
from app.solver.model.state import Ask, Node, Task, Workload
from app.solver.rounds import Turn, Wakes

MOST_CROWDED = 5_000
"""Operations that run: what they may lose is looked at one by one where somebody starves."""
_MOST_DIFFERING = 1_000
"""Kinds of operations for which it is quicker to go through them one by one than all operations at once."""


class Foreseen(NamedTuple):
    """What a round comes to. ``starts``: ask, task and row of the node, in order; ``evictions``: in order; ``heard``:
    how many nodes; ``standings``: of all operations below their fair share, which follow the next round;
    ``differs``: whether somebody stands otherwise than before; ``changes_at``, ``starves``: as ``fair_shares.Updated``
    has them."""

    starts: list[tuple[Ask, Task, int]]
    evictions: list[PlannedEviction]
    heard: int
    standings: dict[str, Standing]
    differs: bool
    changes_at: int | None
    starves: bool


class _Stage(NamedTuple):
    """A preemptive stage: why who is stopped goes, whom it serves, the least level of what it takes, and from which
    pools."""

    reason: Reason
    who: list[Line]
    least: int
    pools: list[bool]


class Crowd(Ahead):
    """See ``rounds.Ahead``. ``_operations``: those that run, in the order of the state; ``_gone``: those of them that
    are no more once the next round begins; ``_carry``: those that stand otherwise than the state knows; ``_kinds``:
    those there have been; ``_occupied``: steps that are on their way out, by node and resource.

    ``_counts``: of those that are ``_present``; ``_dirty``: others than counted; ``_unclear``: whose asks can't be
    told; ``_below``: how those below their fair share stand; ``_pending``: who may stand otherwise; ``_wakes``: when
    time alone changes that; ``_stale``: of whom other allocations may be taken than ``_open``, who have some;
    ``_lacking``, ``_starts``: as of the last round, while nobody is dirty."""

    @staticmethod
    def of(cluster: CompiledState) -> "Crowd | None":
        """None: something runs, or is configured, that makes rounds other than those told here."""
        config, columns = cluster.config, cluster.config.columns
        if len(cluster.operations) > MOST_CROWDED or not cluster.node_index or not plain_tree(config):
            return None
        limits, tolerance = pool_limits(cluster)
        if (limits < UNLIMITED_STEPS).any() or tolerance.any() or columns.protects.any():
            return None
        if (cluster.overcommit_since != NEVER).any() or (cluster.operations.limits < UNLIMITED_STEPS).any():
            return None
        crowd = Crowd(cluster)
        key = (config, cluster.index, cluster.total, crowd._limits)
        granted: tuple[Specified, Fitted, Floats] | None = cluster.recent.get("promises", key)
        if granted is None:
            return None
        crowd._nearby = Nearby(config.tree, granted[1].strong.tolist(), crowd._caps)
        crowd._scaling = Scaling(granted[2], config.columns.parent)
        return crowd if all(crowd.moved(workload.id, workload) for workload in cluster.state.workloads) else None

    def __init__(self, cluster: CompiledState) -> None:
        super().__init__(cluster, counted=False)
        self._operations: dict[str, Operation] = {}
        self._gone: set[str] = set()
        self._carry: set[str] = set()
        self._occupied: dict[tuple[str, str], int] = {}
        self._counts = Counts(self._paths, self._width)
        self._unclear: set[str] = set()
        self._pending: dict[str, None] = {}
        self._wakes = Wakes()
        self._stale, self._open = dict[str, Operation](), dict[str, Operation]()
        self._lacking: list[bool] | None = None
        self._starts: list[tuple[Ask, Task, int]] | None = None
        self._present: dict[str, Operation] = {}
        self._dirty: dict[str, None] = {}
        self._below: dict[str, Standing] = {}
        self._next = 0
        self._kinds = Alikes(partial(shares_of, cluster), cluster.total)
        self._tolerance: list[float] = self._columns.tolerance.tolist()
        self._nearby: Nearby
        self._scaling = Scaling(np.ones(self._root + 1), self._columns.parent)
        self._normal: list[bool] = self._columns.allow_normal.tolist()
        self._any_pool = [True] * self._root
        self._caps: list[list[float]] = self._limits.tolist()
        self._cpu = [row for name, row in cluster.index.index.items() if name == "cpu"]
        self._divided: tuple[dict[int, list[Lines]], list[float], Divided | None] = {}, [], None
        whole = plain_scales(cluster)
        self._pool_shares = [PoolShares(limits, *whole) for limits in self._caps]
        self._rests = False

    def moved(self, name: str, after: Workload | None) -> bool:
        operation = None if name in self._gone else self._operations.get(name)
        if after is None:
            self._held.pop(name, None)
            if operation is not None:
                self._runs(operation, [])
                self._gone.add(name)
            return True
        if not (after.tasks and carries_only(after)):
            return False
        if operation is None:
            operation = Operation(name, self._config.tree.index[after.queue], after, self._width)
            before = self._operations.get(name)
            operation.rank = (self._next, "") if before is None else before.rank
            self._next += 1
            operation.level, operation.since = standing(after.ytsaurus)
            operation.timeouts = self._timeouts(operation.pool, 0.0)
        if not self._runs(operation, after.tasks):
            return False
        self._held[name] = after
        self._operations[name] = operation
        self._gone.discard(name)
        return True

    def _runs(self, operation: Operation, tasks: Sequence[Task]) -> bool:
        """Whether these run for ``operation`` from now on, as far as that can be told."""
        each = {id(of.task): of for of in operation.allocations}
        fresh = [task for task in tasks if id(task) not in each]
        gone: list[Allocation] = []
        if len(each) + len(fresh) > len(tasks):
            staying = set(map(id, tasks))
            gone = [of for of in operation.allocations if id(of.task) not in staying]
        change, room = (0,) * self._width, True
        for of in gone:
            change = tuple(map(sub, change, of.steps))
            self._use(of.node, of.usage, -1)
        for task in fresh:
            of = self._allocation(task)
            if of is None:
                return False
            each[id(task)] = of
            change = tuple(map(add, change, of.steps))
            room &= self._use(of.node, of.usage, 1)
        if fresh or gone:
            operation.usage = tuple(map(add, operation.usage, change))
            charge(self._pool_usage, self._paths[operation.pool], change, 1)
            operation.allocations = sorted([each[id(task)] for task in tasks], key=attrgetter("begun"))
            operation.taken = UNKNOWN
            self._dirty[operation.name] = None
        return room

    def _allocation(self, task: Task) -> Allocation | None:
        """None: it can't be told."""
        amounts = self._amounts(task)
        asked = amounts if task.usage is None else self._vector(task.requests)
        if amounts is None or asked is None:
            return None
        node = NOWHERE if task.node is None else self._node_index[task.node]
        begun = NEVER if task.started_at is None else micros(task.started_at)
        has_gap = task.usage is not None and bool((amounts < asked * task.count)[self._cpu].any())
        return Allocation(task, node, amounts, tuple(amounts.tolist()), begun, has_gap)

    def state(self, follow: Callable[[], CompiledState]) -> CompiledState | None:
        self._rests = True
        return super().state(follow)

    def goes_on(self, cluster: CompiledState) -> bool:
        """Whether it still keeps up, with ``cluster``, which has followed all that was told here and carries more."""
        own, rests = self._cluster, self._rests
        self._rests = False
        self._let_go()
        if (
            not rests or self._occupied or self._exceeded or len(cluster.operations) > MOST_CROWDED
            or cluster.config is not own.config or cluster.index.names != own.index.names
            or not np.array_equal(cluster.node_limits, own.node_limits)
            or list(cluster.node_index) != self.names or cluster.operations.ids != list(self._operations)
        ):  # fmt: skip
            return False
        self._pools = list(zip(cluster.pool_starvation.tolist(), cluster.pool_since.tolist(), strict=True))
        carried = zip(cluster.operations.starvation.tolist(), cluster.operations.since.tolist(), strict=True)
        for operation, (level, since) in zip(self._operations.values(), carried, strict=True):
            operation.level, operation.since = level, since
        self._below = {}  # all are looked at again
        return True

    def _let_go(self) -> None:
        for name in self._gone:
            self._operations.pop(name, None)
            if (counted := self._present.pop(name, None)) is not None:
                self._counts.remove(counted)
            self._dirty[name] = None
        self._gone.clear()

    def occupied(self, node: str, amounts: Mapping[str, int], sign: int) -> bool:
        """What holds a node until it is released makes the cluster smaller, and no round is told meanwhile."""
        for resource, amount in amounts.items():
            key = node, resource
            if held := self._occupied.pop(key, 0) + sign * amount:
                self._occupied[key] = held
        return True

    def left(self, node: Callable[[str], Node]) -> Turn:
        turn = super().left(node)
        for name in self._operations:
            if name in self._carry and name not in self._gone:
                workload, of = self._held[name], self._operations[name]
                block = Standing.of(of.level, of.since).carried_by(workload.ytsaurus)
                turn.workloads.append(replace(workload, ytsaurus=block))
        self._carry.clear()
        return turn

    def foreseen(
        self, waiting: Mapping[str, Ask], changed: dict[str, None], standings: dict[str, Standing], now: int
    ) -> Foreseen | None:
        """The round of ``now``, as which everybody stands from now on; None: it has to be asked.

        ``changed``: of which asks others may wait than in the last round, emptied here; ``standings``: as the last
        update left them, those of operations that wait."""
        self._let_go()
        self._dirty.update(changed)
        changed.clear()
        if self._occupied or self._exceeded:
            return None
        differs = standings is not self._below and self._begin_again(waiting, standings)
        if self._dirty:
            self._lacking = self._starts = None
            for name in self._dirty:
                self._counted(name, waiting.get(name))
            self._dirty.clear()
        if self._unclear or not self._counts.wanted or not self._starts_few(self._counts.needs, self._counts.wanted):
            return None
        self._lacking = self._shared() if self._lacking is None else self._lacking
        if self._lacking is None:
            return None
        later: list[int] = []
        pools = self._pools_now(self._lacking, now, later)
        for name in self._wakes.passed(now):
            self._pending[name] = None
        for name in self._pending:
            operation = self._present.get(name)
            differs |= self._ended(name) if operation is None else self._moved_on(operation, now)
        self._pending.clear()
        if (wake := self._wakes.first()) is not None:
            later.append(wake)
        starves = self._counts.starving > 0 or any([level for level, _ in pools])  # noqa: C419
        taking = self._taking(pools, now) if starves and self._is_over(now) else None
        if self._starts is None and taking is None:
            self._starts = self._started_of_counted()
        starts, evictions = (self._starts or [], []) if taking is None else self._preempted(*taking)
        differs |= self._pools_stand(pools)
        heard = starts[-1][2] + 1 if len(starts) == self._counts.wanted else len(self.names)
        return Foreseen(starts, evictions, heard, self._below, differs, min(later, default=None), starves)

    def tried(self, nodes: int) -> list[int]:
        """When each of the first ``nodes`` tried preemption last."""
        return self._last[:nodes].tolist()

    def _begin_again(self, waiting: Mapping[str, Ask], standings: Mapping[str, Standing]) -> bool:
        """An update elsewhere has left these standings; whether one of them is nobody's here."""
        if not self._present:
            self._dirty.update(dict.fromkeys([*self._operations, *waiting]))
        there = self._present.keys() | self._dirty
        self._below = {name: standing for name, standing in standings.items() if name in there}
        for name, operation in self._present.items():
            if name not in self._operations:
                operation.level, operation.since = self._below.get(name, QUIET).codes
            if operation.line is not None and operation.line.level != operation.level:
                self._counts.line_up_again(operation)
        self._pending.update(dict.fromkeys(self._present))
        self._starts = None
        return len(self._below) < len(standings)

    def _counted(self, name: str, ask: Ask | None) -> None:
        """Count who runs or waits by this name as it is now."""
        before = self._present.pop(name, None)
        if before is not None:
            self._counts.remove(before)
        operation = self._operations.get(name)
        if operation is None:
            self._open.pop(name, None)
            self._stale.pop(name, None)
            pool = None if ask is None else self._config.tree.index.get(ask.queue)
            if ask is None or pool is None:
                (self._unclear.discard if ask is None else self._unclear.add)(name)
                self._pending[name] = None
                return
            operation = before
            if operation is None or operation.ask is not ask:
                operation = Operation(name, pool, ask, self._width)
            operation.level, operation.since = self._below.get(name, QUIET).codes
        if operation.ask is not ask or name in self._unclear:
            (self._unclear.discard if self._asks_for(operation, ask) else self._unclear.add)(name)
        self._present[name] = operation
        self._counts.add(operation, self._kinds.of(operation))
        self._pending[name] = None
        if operation.allocations:
            self._stale[name] = operation

    def _ended(self, name: str) -> bool:
        """Whether who neither runs nor waits any more was below its fair share."""
        self._wakes.set(name, None)
        return self._below.pop(name, None) is not None

    def _moved_on(self, operation: Operation, now: int) -> bool:
        """Whether it stands otherwise than before from ``now`` on."""
        before, name = (operation.level, operation.since), operation.name
        later: list[int] = []
        if operation.kind is None or not operation.kind.span.below:
            after, differs = (0, NEVER), self._below.pop(name, None) is not None
        else:
            after = moved_on(before, True, operation.timeouts, now, later)
            standing = Standing.of(*after)
            differs = self._below.get(name) != standing
            self._below[name] = standing
        self._wakes.set(name, min(later, default=None))
        if after != before:
            operation.level, operation.since = after
            if operation.level != before[0]:
                self._counts.line_up_again(operation)
            if name in self._operations:
                self._carry.add(name)
                return True
        return differs

    def _shared(self) -> list[bool] | None:
        """By pool, whether it is below its fair share, as what is due to each kind is worked out; None: all demand is
        due, too many operations differ, or the last bits may decide."""
        parts, pools = self._counts.parts, self._pool_shares
        for pool, usage, wanted in zip(pools, self._pool_usage, self._counts.pool_wanted, strict=True):
            pool.follow(usage, wanted)
        if sum([len(part.counts) for part in parts.values()]) > _MOST_DIFFERING or (
            all([pool.has_room for pool in pools]) and not any([part.misfits for part in parts.values()])  # noqa: C419
        ):
            return None
        scale, pool_scale = self._scaling.of(frozenset([part.weights for part in parts.values()]))
        of = {pool: part.lines(scale) for pool, part in parts.items()}
        if self._divided[:2] != (of, pool_scale):
            self._divided = of, pool_scale, self._nearby.divided(of, pool_scale)
        if (divided := self._divided[2]) is None:
            return None
        for pool, part in parts.items():
            if not part.is_due(divided[0][pool], scale, self._tolerance[pool]):
                return None
        for part in parts.values():
            part.look(self._pending, self._stale)
        return list(map(PoolShares.is_below, pools, divided[1], self._tolerance))

    def _taking(self, pools: list[tuple[int, int]], now: int) -> "tuple[Flags, list[_Stage]] | None":
        """By node whether preemption may be tried there, and its stages; None: nobody who starves may take anything on
        any node."""
        settings = self._config.settings
        ready = backoffs_over(self._last, settings.backoff, now)
        ready &= True if self._able is None else self._able
        if not ready.any():
            return None
        above: list[int] = [level for level, _ in pools]
        above = handed_down(self._config, np.array(above, np.int8)).tolist() if any(above) else above
        starving: dict[int, list[Line]] = {NORMAL: [], AGGRESSIVE: []}
        for line in self._counts.lines.values():
            if priority := max(line.level, above[line.pool]):
                starving[priority].append(line)
        if settings.rules.normal_serves_aggressive:
            starving[NORMAL] = starving[NORMAL] + starving[AGGRESSIVE]
        if not any(starving.values()):
            return None
        self._follow_levels()
        stages: list[_Stage] = []
        may = False
        for name in settings.rules.stages:
            normal = name == "preemptive_normal"
            who, least = starving[NORMAL if normal else AGGRESSIVE], PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE
            stage = _Stage(REASONS[name], who, least, self._normal if normal else self._any_pool)
            stages.append(stage)
            taken = [
                a for op in self._open.values() if who and self._may_lose(op, stage)
                for a, level in op.taken[2] if level >= least
            ]  # fmt: skip
            if taken and not may:
                emptied = self._free.T.copy()
                np.add.at(emptied, [a.node for a in taken], np.array([a.steps for a in taken]))
                needs = {need for line in who for need in line.needs}
                may = any((ready & all_of(np.array(need, np.int64) <= emptied)).any() for need in needs)
        return (ready, stages) if may else None

    def _follow_levels(self) -> None:
        """Which allocations may be taken of whom, by what is due now."""
        for name, op in self._stale.items():
            kind, (graded, grade, taken) = op.kind, op.taken
            if kind is not None and not (graded is kind and grade.low <= kind.part <= grade.high):
                op.taken = taken_of(self._cluster, op, kind, op.allocations)
                taken = op.taken[2]
            if taken:
                self._open[name] = op
            else:
                self._open.pop(name, None)
        self._stale.clear()

    def _may_lose(self, op: Operation, stage: _Stage) -> bool:
        return stage.pools[op.pool] and (not op.level or self._config.settings.allow_from_starving)

    def _started_of_counted(self, take: "tuple[Flags, Take] | None" = None) -> list[tuple[Ask, Task, int]]:
        counts = self._counts
        return self._started([*counts.lines.values()], counts.needs, counts.wanted, take)

    def _preempted(
        self, ready: Flags, stages: "list[_Stage]"
    ) -> tuple[list[tuple[Ask, Task, int]], list[PlannedEviction]]:
        """What heartbeats start, and whom they stop for it."""
        trades = self._config.settings.rules.own_allocations_make_room
        evictions: list[PlannedEviction] = []
        left: dict[Operation, list[Allocation]] = {}
        stale: dict[Operation, Alike] = {}
        victims: dict[int, list[Victim]] = {}
        for op in self._open.values():
            list_victims(op, op.taken[2], victims)

        def take(beats: Heartbeats, node: int, free: list[int]) -> None:
            list_again(self._cluster, stale, left, victims)
            here = sorted(victims.get(node, ()), reverse=True)
            for stage in stages:
                order = [of for of in here if of[0] >= stage.least and self._may_lose(of[-1], stage)]
                if not (order and stage.who):
                    continue
                emptied, own = emptied_by(order, free, trades=trades)
                started = beats.start(node, emptied, stage.who, own)
                if started is None:
                    continue
                taker, need = started
                free = list(map(sub, free, need))
                for *_, a, op in order:
                    if min(free) >= 0:
                        return
                    if trades or op is not taker:
                        free = list(map(add, free, a.steps))
                        beats.charge(op, map(neg, a.steps))
                        left[op] = [other for other in left.get(op, op.allocations) if other is not a]
                        if op.kind is not None:
                            stale[op] = op.kind
                        evictions.append(
                            PlannedEviction(
                                workload=op.name, task=a.task.name, queue=self._held[op.name].queue,
                                node=self.names[node], reason=stage.reason, for_ask=taker.name,
                            )
                        )  # fmt: skip
                return

        return self._started_of_counted((ready, take)), evictions
