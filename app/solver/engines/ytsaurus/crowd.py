"""Goes ahead of the compiled state where not all that is wanted is due: who starves, starts and has to go.

Operations that are alike have like shares: those of each kind are worked out once, by the functions that a state's are
worked out by. Then each heartbeat starts what fits its node, the least satisfied operation first, and takes what those
who starve may take. Where something runs or is asked for that makes rounds others, the round is asked.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import add, attrgetter, is_, neg, sub
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver.engines.ytsaurus.ahead import Ahead, Heartbeats, Part, Scales, is_below, moved_on
from app.solver.engines.ytsaurus.fair_shares import (
    leaves_room,
    plain_tree,
    shares_of,
)
from app.solver.engines.ytsaurus.guarantees import Fitted, Specified
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, REASONS, backoffs_over, taken_of
from app.solver.engines.ytsaurus.kinds import (
    MOST_KINDS,
    NOWHERE,
    UNKNOWN,
    Alike,
    Allocation,
    Due,
    Known,
    Operation,
    by_kinds,
)
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    QUIET,
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Standing,
    all_of,
    standing,
)
from app.solver.engines.ytsaurus.pool_curves import scales
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    NORMAL,
    PREEMPTIBLE,
    Reason,
    handed_down,
)
from app.solver.engines.ytsaurus.situation import carries_only, pool_limits
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import micros
from app.solver.model.decision import PlannedEviction
from app.solver.model.state import Ask, Node, Task, Workload
from app.solver.rounds import Turn

MOST_CROWDED = 500
"""Operations that are looked at one by one in every round."""
_MOST_ALIKE, _MOST_SCALES = 1024, 64
"""Kinds that are remembered, and sets of weights."""


class Foreseen(NamedTuple):
    """What a round comes to. ``starts``: ask, task and row of the node, in order; ``evictions``: in order; ``heard``:
    how many nodes; ``standings``: of all operations below their fair share, ``differs``: whether something in the state
    stands otherwise; ``changes_at``, ``starves``: as ``fair_shares.Updated`` has them."""

    starts: list[tuple[Ask, Task, int]]
    evictions: list[PlannedEviction]
    heard: int
    standings: dict[str, Standing]
    differs: bool
    changes_at: int | None
    starves: bool


class _Stage(NamedTuple):
    """A preemptive stage: why who is stopped goes, places of those whom it serves and of those it may take from, and
    the least level of what it takes."""

    reason: Reason
    who: list[int]
    of: list[int]
    least: int


class _Scene:
    """What a round looks at, until something runs, ends or is asked for: ``everybody``: who runs, in the order of the
    state, and who else asks; ``due``: to each; ``pools_below``: by pool, whether it is below its fair share;
    ``wanted``: how many tasks wait; ``starts``: what nodes start, once that is worked out."""

    __slots__ = ("asks", "due", "everybody", "pools_below", "starts", "wanted")

    def __init__(
        self, asks: Sequence[Ask], everybody: list[Operation], due: list[Due], pools_below: list[bool]
    ) -> None:
        self.asks, self.everybody, self.due, self.pools_below = asks, everybody, due, pools_below
        self.wanted = sum([len(operation.tasks) for operation in everybody])
        self.starts: list[tuple[Ask, Task, int]] | None = None

    def is_of(self, asks: Sequence[Ask]) -> bool:
        """Whether these are the asks."""
        return len(asks) == len(self.asks) and all(map(is_, asks, self.asks))


class Crowd(Ahead):
    """See ``rounds.Ahead``. ``_operations``: those that run, in the order of the state; ``_gone``: those of them that
    are no more once the next round begins; ``_waiting``: those of which nothing runs, as of the last round;
    ``_carry``: those that stand otherwise than the state knows; ``_kinds``, ``_scaled``: what is known of kinds;
    ``_occupied``: steps that are on their way out, by node and resource."""

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
        crowd._floors = granted[1].strong.tolist()
        crowd._weights = granted[2]
        return crowd if all(crowd.moved(workload.id, workload) for workload in cluster.state.workloads) else None

    def __init__(self, cluster: CompiledState) -> None:
        super().__init__(cluster, counted=False)
        self._operations: dict[str, Operation] = {}
        self._gone: set[str] = set()
        self._carry: set[str] = set()
        self._asking: set[str] = set()
        self._occupied: dict[tuple[str, str], int] = {}
        self._waiting: dict[str, Operation] = {}
        self._kinds: dict[tuple[int, float, tuple[int, ...], tuple[int, ...]], Alike] = {}
        self._parts: dict[int, Part] = {}
        self._scaled: dict[frozenset[frozenset[tuple[int, float]]], tuple[Scales, list[float]]] = {}
        self._tolerance: list[float] = self._columns.tolerance.tolist()
        self._floors: list[list[float]] = []
        self._weights: Floats = np.zeros(0)
        self._caps: list[list[float]] = self._limits.tolist()
        self._cpu = [row for name, row in cluster.index.index.items() if name == "cpu"]
        self._known: dict[int, Known] = {}
        self._rests = False
        self._scene: _Scene | None = None

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
        known = {id(allocation.task): allocation for allocation in operation.allocations}
        allocations: list[Allocation] = []
        fresh: list[Allocation] = []
        for task in tasks:
            allocation = known.pop(id(task), None)
            if allocation is None:
                amounts = self._amounts(task)
                asked = amounts if task.usage is None else self._vector(task.requests)
                if amounts is None or asked is None:
                    return False
                node = NOWHERE if task.node is None else self._node_index[task.node]
                begun = NEVER if task.started_at is None else micros(task.started_at)
                has_gap = task.usage is not None and bool((amounts < asked * task.count)[self._cpu].any())
                allocation = Allocation(task, node, amounts, tuple(amounts.tolist()), begun, has_gap)
                fresh.append(allocation)
            allocations.append(allocation)
        if fresh or known:
            for changed, sign in ((known.values(), -1), (fresh, 1)):
                for of in changed:
                    operation.usage = tuple([u + sign * s for u, s in zip(operation.usage, of.steps, strict=True)])
                    self._pool_usage[self._paths[operation.pool]] += sign * of.usage
                    if of.node != NOWHERE:
                        self._free[:, of.node] -= sign * of.usage
            allocations.sort(key=attrgetter("begun"))
            operation.allocations, operation.kind, operation.taken = allocations, None, UNKNOWN
            self._scene = None
        return all(min(self._free[:, of.node].tolist(), default=0) >= 0 for of in fresh if of.node != NOWHERE)

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
        return True

    def _let_go(self) -> None:
        for name in self._gone:
            self._operations.pop(name, None)
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
                turn.workloads.append(self._standing_as(name))
        self._carry.clear()
        return turn

    def _standing_as(self, name: str) -> Workload:
        workload, operation = self._held[name], self._operations[name]
        return replace(workload, ytsaurus=Standing.of(operation.level, operation.since).carried_by(workload.ytsaurus))

    def foreseen(self, asks: Sequence[Ask], standings: Mapping[str, Standing], now: int) -> Foreseen | None:
        """The round of ``now``, as which everybody stands from now on; None: it has to be asked.

        ``standings``: of operations that wait, as the last update left them."""
        self._let_go()
        if self._occupied or self._exceeded:
            return None
        scene = self._scene
        if scene is None or not scene.is_of(asks):
            everybody = self._everybody(asks)
            scene = self._scene = None if everybody is None else self._shared(asks, everybody)
            if scene is None:
                return None
        running = len(self._operations)
        for op in scene.everybody[running:]:
            op.level, op.since = standings.get(op.name, QUIET).codes
        later: list[int] = []
        pools = self._pools_now(scene.pools_below, now, later)
        below, differs = dict[str, Standing](), False
        for i, (op, due) in enumerate(zip(scene.everybody, scene.due, strict=True)):
            before = op.level, op.since
            after = moved_on(before, True, op.timeouts, now, later) if due.below else (0, NEVER)
            if due.below:
                below[op.name] = Standing.of(*after)
            if after != before:
                op.level, op.since = after
                if i < running:
                    self._carry.add(op.name)
                    differs = True
        starves = any([op.level for op in scene.everybody]) or any([level for level, _ in pools])  # noqa: C419
        taking = self._taking(scene, pools, now) if starves else None
        if scene.starts is None and taking is None:
            scene.starts = self._started(scene.everybody, scene.due)
        starts, evictions = (scene.starts or [], []) if taking is None else self._preempted(scene, *taking)
        changed = self._pools_stand(pools)
        heard = starts[-1][2] + 1 if len(starts) == scene.wanted else len(self.names)
        return Foreseen(starts, evictions, heard, below, differs or changed, min(later, default=None), starves)

    def tried(self, nodes: int) -> list[int]:
        """When each of the first ``nodes`` tried preemption last."""
        return self._last[:nodes].tolist()

    def _everybody(self, asks: Sequence[Ask]) -> list[Operation] | None:
        """As a scene has them; None: something asked for makes rounds others."""
        asking, count = {ask.id for ask in asks}, 0
        for name in self._asking - asking:
            if (operation := self._operations.get(name)) is not None and operation.ask is not None:
                self._asks_for(operation, None)
        self._asking = asking
        everybody = list(self._operations.values())
        waiting: dict[str, Operation] = {}
        for ask in asks:
            operation = self._operations.get(ask.id)
            if operation is None:
                operation = self._waiting.get(ask.id)
                if operation is None or operation.ask is not ask:
                    pool = self._config.tree.index.get(ask.queue)
                    if pool is None:
                        return None
                    operation = Operation(ask.id, pool, ask, self._width)
                waiting[ask.id] = operation
                everybody.append(operation)
            if operation.ask is not ask and not self._asks_for(operation, ask):
                return None
            count += len(operation.tasks)
        self._waiting = waiting
        return everybody if 0 < count <= MOST_STARTS else None

    def _kind(self, operation: Operation) -> Alike:
        if operation.kind is None:
            key = operation.pool, operation.weight, operation.usage, operation.wanted
            operation.kind = self._kinds.get(key)
            if operation.kind is None:
                usage, wanted = np.array(operation.usage, float), np.array(operation.wanted, float)
                steps = np.stack((usage, usage + wanted, self._cluster.total))
                shares = shares_of(self._cluster, steps)
                operation.kind = self._kinds[key] = Alike(operation.pool, operation.weight, operation.wanted, shares)
        return operation.kind

    def _shared(self, asks: Sequence[Ask], everybody: list[Operation]) -> _Scene | None:
        """None: all demand is due, too many operations differ, or the last bits may decide."""
        if len(self._kinds) > _MOST_ALIKE:
            self._kinds.clear()
            for operation in everybody:
                operation.kind = None
        kinds = [operation.kind or self._kind(operation) for operation in everybody]
        by_pool: dict[int, dict[Alike, int]] = {}
        for kind, count in Counter(kinds).items():
            by_pool.setdefault(kind.pool, {})[kind] = count
        before = self._parts
        self._parts = parts = {
            pool: part if (part := before.get(pool)) is not None and part.counts == counts else Part(pool, counts)
            for pool, counts in by_pool.items()
        }
        usage = self._pool_usage
        wanted = np.zeros_like(usage)
        for pool, part in parts.items():
            wanted[self._paths[pool]] += part.wanted
        shares = shares_of(self._cluster, np.array((usage, usage + wanted), float))
        if sum(map(len, by_pool.values())) > MOST_KINDS or (
            all([part.fits for part in parts.values()]) and leaves_room(shares[1], self._limits)  # noqa: C419
        ):
            return None
        scale, pool_scale = self._scales(frozenset([part.weights for part in parts.values()]))
        of = {pool: part.grouped(scale) for pool, part in parts.items()}
        divided = by_kinds(self._config.tree, of, pool_scale, self._floors, self._caps, self._known)
        if divided is None or not all(
            part.is_due(divided[0][pool], scale, self._tolerance[pool]) for pool, part in parts.items()
        ):
            return None
        pools_below = list(map(is_below, *shares.tolist(), divided[1], self._tolerance))
        return _Scene(asks, everybody, [kind.now for kind in kinds], pools_below)

    def _scales(self, weights: frozenset[frozenset[tuple[int, float]]]) -> tuple[Scales, list[float]]:
        """As ``pool_curves.scales`` has them: by pool and weight of operations, and by pool."""
        known = self._scaled.get(weights)
        if known is None:
            each = sorted(frozenset[tuple[int, float]]().union(*weights))
            pools, own = np.array([pool for pool, _ in each], np.int64), np.array([weight for _, weight in each])
            scale, pool_scale = scales(own, pools, self._weights, self._columns.parent)
            if len(self._scaled) >= _MOST_SCALES:
                self._scaled.clear()
            known = self._scaled[weights] = dict(zip(each, scale.tolist(), strict=True)), pool_scale.tolist()
        return known

    def _taking(self, scene: _Scene, pools: list[tuple[int, int]], now: int) -> "tuple[Flags, list[_Stage]] | None":
        """By node whether preemption may be tried there, and its stages; None: nobody who starves may take anything on
        any node."""
        settings = self._config.settings
        ready = backoffs_over(self._last, settings.backoff, now)
        ready &= True if self._able is None else self._able
        if not ready.any():
            return None
        above: list[int] = handed_down(self._config, np.array([level for level, _ in pools], np.int8)).tolist()
        starving: dict[int, list[int]] = {NORMAL: [], AGGRESSIVE: []}
        for i, op in enumerate(scene.everybody):
            if op.tasks and (priority := max(op.level, above[op.pool])):
                starving[priority].append(i)
        if settings.rules.normal_serves_aggressive:
            starving[NORMAL] = starving[NORMAL] + starving[AGGRESSIVE]
        if not any(starving.values()):
            return None
        everybody, anybody = scene.everybody, settings.allow_from_starving
        open_ = [i for i in range(len(self._operations)) if anybody or not everybody[i].level]
        stale = [
            (op, due, op.allocations)
            for i in open_ if (op := everybody[i]).taken[0] is not (due := scene.due[i])
        ]  # fmt: skip
        for (op, due, _), of in zip(stale, taken_of(self._cluster, stale), strict=True):
            op.taken = due, of
        allowed, stages, may = self._columns.allow_normal, list[_Stage](), False
        for name in settings.rules.stages:
            normal = name == "preemptive_normal"
            who, least = starving[NORMAL if normal else AGGRESSIVE], PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE
            of = [i for i in open_ if not normal or allowed[scene.everybody[i].pool]] if who else []
            stages.append(_Stage(REASONS[name], who, of, least))
            taken = [a for i in of for a, level in scene.everybody[i].taken[1] if level >= least]
            if taken and not may:
                emptied = self._free.T.copy()
                np.add.at(emptied, [a.node for a in taken], np.array([a.steps for a in taken]))
                needs = {need for i in who for need in scene.everybody[i].needs}
                may = any((ready & all_of(np.array(need, np.int64) <= emptied)).any() for need in needs)
        return (ready, stages) if may else None

    def _preempted(
        self, scene: _Scene, ready: Flags, stages: "list[_Stage]"
    ) -> tuple[list[tuple[Ask, Task, int]], list[PlannedEviction]]:
        """What heartbeats start, and whom they stop for it."""
        everybody, trades = scene.everybody, self._config.settings.rules.own_allocations_make_room
        evictions: list[PlannedEviction] = []
        left: dict[int, list[Allocation]] = {}
        taken: dict[int, list[tuple[Allocation, int]]] = {}

        def take(beats: Heartbeats, node: int, free: list[int]) -> None:
            if stale := left.keys() - taken.keys():  # those that stay of these move up
                of = taken_of(self._cluster, [(everybody[i], scene.due[i], left[i]) for i in stale])
                taken.update(zip(stale, of, strict=True))
            for stage in stages:
                order = sorted(
                    [
                        (level, level != PREEMPTIBLE and a.has_gap, a.begun, i, k, a)
                        for i in stage.of for k, (a, level) in enumerate(taken.get(i, everybody[i].taken[1]))
                        if a.node == node and level >= stage.least
                    ],
                    reverse=True,
                )  # fmt: skip
                own, emptied = dict[int, list[int]](), free
                for *_, i, _, a in order:
                    emptied = list(map(add, emptied, a.steps))
                    if not trades:
                        own[i] = list(map(add, own[i], a.steps)) if i in own else [*a.steps]
                started = beats.start(node, emptied, stage.who, own) if order else None
                if started is None:
                    continue
                taker, need = started
                free = list(map(sub, free, need))
                for *_, i, _, a in order:
                    if min(free) >= 0:
                        return
                    if trades or i != taker:
                        free = list(map(add, free, a.steps))
                        beats.charge(i, map(neg, a.steps))
                        left[i] = [other for other in left.get(i, everybody[i].allocations) if other is not a]
                        taken.pop(i, None)
                        evictions.append(
                            PlannedEviction(
                                workload=everybody[i].name, task=a.task.name, queue=self._held[everybody[i].name].queue,
                                node=self.names[node], reason=stage.reason, for_ask=everybody[taker].name,
                            )
                        )  # fmt: skip
                return

        return self._started(everybody, scene.due, (ready, take)), evictions
