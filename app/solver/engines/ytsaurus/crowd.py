"""Goes ahead of the compiled state where not all that is wanted is due: rounds in which nobody has to go.

Operations that are alike have like shares: those of each kind are worked out once, by the functions that a state's are
worked out by. Then each heartbeat starts what fits its node, the least satisfied operation first. Where somebody who
starves may take what runs, or something runs or is asked for that makes rounds others, the round is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from app.solver.engines.ytsaurus.ahead import (
    NOWHERE,
    Ahead,
    Allocation,
    Operation,
    carries_only,
    goes_anywhere,
    moved_on,
    plain_tree,
)
from app.solver.engines.ytsaurus.fair_shares import (
    EPSILON,
    ROUNDING,
    SATISFIABLE,
    SLACK,
    blocked,
    lacking,
    leaves_room,
    local_satisfaction,
    shares_of,
)
from app.solver.engines.ytsaurus.guarantees import Fitted, Specified, to_shares
from app.solver.engines.ytsaurus.heartbeat import MOST_STARTS, backoffs_over
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    QUIET,
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Ints,
    Levels,
    Standing,
    all_of,
    standing,
)
from app.solver.engines.ytsaurus.pool_curves import MOST_KINDS, Demands, by_kinds, scales, suggested_values
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    NORMAL,
    PREEMPTIBLE,
    bounds_of,
    groups_of,
    handed_down,
    levels,
)
from app.solver.engines.ytsaurus.situation import pool_limits
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import micros
from app.solver.model.state import Ask, Node, Task, Workload
from app.solver.rounds import Turn

MOST_CROWDED = 500
"""Operations that are looked at one by one in every round."""


class Calm(NamedTuple):
    """What a round comes to in which nobody has to go. ``starts``: ask, task and row of the node, in order; ``heard``:
    how many nodes; ``standings``: of all operations below their fair share, ``differs``: whether something in the state
    stands otherwise; ``changes_at``, ``starves``: as ``fair_shares.Updated`` has them."""

    starts: list[tuple[Ask, Task, int]]
    heard: int
    standings: dict[str, Standing]
    differs: bool
    changes_at: int | None
    starves: bool


class _Shares(NamedTuple):
    """By kind; ``pool_demand``, ``pool_fair``: by pool, the root last. ``of``: the kind of each operation."""

    usage: Floats
    demand: Floats
    fair: Floats
    closed: Flags
    below: list[bool]
    pool_demand: Floats
    pool_fair: Floats
    of: list[int]


class Crowd(Ahead):
    """See ``rounds.Ahead``. ``_operations``: those that run, in the order of the state; ``_gone``: those of them that
    are no more once the next round begins; ``_carry``: those that stand otherwise than the state knows;
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
        self._width = len(cluster.index)
        self._operations: dict[str, Operation] = {}
        self._gone: set[str] = set()
        self._carry: set[str] = set()
        self._asking: set[str] = set()
        self._occupied: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[tuple[int, ...], tuple[int, ...]], bytes] = {}
        self._floors: list[list[float]] = []
        self._weights: Floats = np.zeros(0)
        self._caps: list[list[float]] = self._limits.tolist()
        self._rests = False

    def moved(self, name: str, after: Workload | None) -> bool:
        before = None if name in self._gone else self._operations.get(name)
        if after is None:
            self._held.pop(name, None)
            if before is not None:
                for allocation in before.allocations:
                    self._charge(allocation, before.pool, -1)
                self._gone.add(name)
            return True
        operation = self._compiled(after, before)
        if operation is None or (self._free < 0).any():
            return False
        self._held[name] = after
        self._operations[name] = operation
        self._gone.discard(name)
        return True

    def _charge(self, allocation: Allocation, pool: int, sign: int) -> None:
        self._pool_usage[self._paths[pool]] += sign * allocation.usage
        if allocation.node != NOWHERE:
            self._free[:, allocation.node] -= sign * allocation.usage

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
            self._occupied[key] = self._occupied.get(key, 0) + sign * amount
            if not self._occupied[key]:
                del self._occupied[key]
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

    def calm(self, asks: Sequence[Ask], standings: Mapping[str, Standing], now: int) -> Calm | None:
        """The round of ``now``, as which everybody stands from now on; None: it has to be asked.

        ``standings``: of operations that wait, as the last update left them."""
        self._let_go()
        if self._occupied or self._exceeded:
            return None
        everybody = self._everybody(asks, standings)
        if everybody is None:
            return None
        shares = self._shares(everybody)
        if shares is None:
            return None
        later: list[int] = []
        pools = self._pools_now(shares.pool_demand, shares.pool_fair, now, later)
        stands = [self._now(op, shares.below[kind], now, later) for op, kind in zip(everybody, shares.of, strict=True)]
        if self._preempts(everybody, stands, pools, shares, now):
            return None
        starts = self._started(everybody, shares)
        running = len(self._operations)
        moved = [
            (op, after) for op, after in zip(everybody[:running], stands[:running], strict=True)
            if after != (op.level, op.since)
        ]  # fmt: skip
        for op, after in moved:
            op.level, op.since = after
            self._carry.add(op.name)
        changed = self._pools_stand(pools)
        waiting = {
            op.name: Standing.of(level, since)
            for op, (level, since) in zip(everybody, stands, strict=True) if level or since != NEVER
        }  # fmt: skip
        everything = len(starts) == sum([len(op.tasks) for op in everybody])
        return Calm(
            starts, starts[-1][2] + 1 if everything else len(self.names), waiting, bool(moved) or changed,
            min(later, default=None), any(level for level, _ in (*stands, *pools)),
        )  # fmt: skip

    def tried(self, nodes: int) -> list[int]:
        """When each of the first ``nodes`` tried preemption last."""
        return self._last[:nodes].tolist()

    def _compiled(self, workload: Workload, before: Operation | None) -> Operation | None:
        """``workload``, which was ``before``; what starts or ends is counted. None: it makes rounds others."""
        if not (workload.tasks and carries_only(workload)):
            return None
        operation = Operation(workload.id, self._config.tree.index[workload.queue], workload, self._width)
        operation.level, operation.since = standing(workload.ytsaurus)
        known: dict[int, Allocation] = {}
        if before is not None:
            operation.level, operation.since = before.level, before.since
            known = {id(allocation.task): allocation for allocation in before.allocations}
        for task in workload.tasks:
            allocation = known.pop(id(task), None)
            if allocation is None:
                usage = self._amounts(task)
                if usage is None:
                    return None
                node = NOWHERE if task.node is None else self._node_index[task.node]
                begun = NEVER if task.started_at is None else micros(task.started_at)
                allocation = Allocation(task, node, usage, begun)
                self._charge(allocation, operation.pool, 1)
            operation.allocations.append(allocation)
        for allocation in known.values():
            self._charge(allocation, operation.pool, -1)
        operation.allocations.sort(key=attrgetter("begun"))
        operation.usages = np.array([allocation.usage for allocation in operation.allocations], np.int64)
        operation.nodes = [allocation.node for allocation in operation.allocations]
        operation.usage = tuple(np.add.reduce(operation.usages).tolist())
        return operation

    def _everybody(self, asks: Sequence[Ask], standings: Mapping[str, Standing]) -> list[Operation] | None:
        """Who runs, in the order of the state, and who else asks; None: something asked for makes rounds others."""
        asking, count = {ask.id for ask in asks}, 0
        for name in self._asking - asking:
            if (operation := self._operations.get(name)) is not None and operation.ask is not None:
                self._asks_for(operation, None)
        self._asking = asking
        everybody = list(self._operations.values())
        for ask in asks:
            operation = self._operations.get(ask.id)
            if operation is None:
                pool = self._config.tree.index.get(ask.queue)
                if pool is None:
                    return None
                operation = Operation(ask.id, pool, ask, self._width)
                operation.level, operation.since = standings.get(ask.id, QUIET).codes
                everybody.append(operation)
            if operation.ask is not ask and not self._asks_for(operation, ask):
                return None
            count += len(operation.tasks)
        return everybody if 0 < count <= MOST_STARTS else None

    def _asks_for(self, operation: Operation, ask: Ask | None) -> bool:
        """Whether what ``ask``, or nobody, wants of ``operation`` from now on can be told."""
        operation.row = operation.ask = None
        operation.tasks = []
        operation.wanted = (0,) * self._width
        if ask is None:
            return True
        if not (carries_only(ask) and goes_anywhere(ask)) or self._config.tree.names[operation.pool] != ask.queue:
            return False
        wanted = np.zeros(self._width, np.int64)
        for task in ask.tasks:
            need = self._vector(task.requests)
            if need is None or task.required_node is not None or task.count != 1:
                return False
            wanted += need
            operation.tasks.append((task, tuple(need.tolist())))
        operation.wanted, operation.ask = tuple(wanted.tolist()), ask
        return True

    def _row(self, operation: Operation) -> bytes:
        if operation.row is None:
            key = operation.usage, operation.wanted
            row = self._rows.get(key)
            if row is None:
                usage, wanted = np.array(operation.usage, float), np.array(operation.wanted, float)
                limits = shares_of(self._cluster, self._cluster.total)
                parts = (shares_of(self._cluster, usage), shares_of(self._cluster, usage + wanted), limits)
                row = self._rows[key] = np.concatenate(parts).tobytes()
            operation.row = row
        return operation.row

    def _shares(self, everybody: list[Operation]) -> _Shares | None:
        """None: all demand is due, too many operations differ, or the last bits may decide."""
        kinds: dict[tuple[int, float, bytes], int] = {}
        counts: list[int] = []
        of: list[int] = []
        for operation in everybody:
            key = operation.pool, operation.weight, operation.row or self._row(operation)
            kind = kinds.setdefault(key, len(counts))
            if kind == len(counts):
                counts.append(0)
            counts[kind] += 1
            of.append(kind)
        return self._divided(list(kinds), counts, self._pool_demand(everybody), of)

    def _divided(
        self, kinds: list[tuple[int, float, bytes]], counts: list[int], pool_demand: Floats, of: list[int]
    ) -> _Shares | None:
        if len(kinds) > MOST_KINDS or any(weight <= SLACK for _, weight, _ in kinds):
            return None
        pools = np.array([pool for pool, _, _ in kinds], np.int64)
        weights = np.array([weight for _, weight, _ in kinds], float)
        scale, pool_scale = scales(weights, pools, self._weights, self._columns.parent)
        grouped: dict[int, list[tuple[tuple[float, bytes], int]]] = {}
        for (pool, _, row), of_kind, count in zip(kinds, scale.tolist(), counts, strict=True):
            grouped.setdefault(pool, []).append(((of_kind, row), count))
        together = {pool: tuple(sorted(rows)) for pool, rows in grouped.items()}
        numbers = np.frombuffer(b"".join([row for _, _, row in kinds])).reshape(len(kinds), 3, -1)
        demands = Demands(numbers[:, 0], numbers[:, 1], numbers[:, 2])
        if (demands.demand <= demands.limits).all() and leaves_room(pool_demand, self._limits):
            return None
        divided = by_kinds(self._config.tree, together, pool_scale.tolist(), self._floors, self._caps)
        if divided is None:
            return None
        fit, pool_fair = divided
        fair = suggested_values(demands, np.array(fit)[pools], scale)
        if fair is None or (np.abs(demands.demand - fair - SATISFIABLE) < ROUNDING).any():
            return None
        below = lacking(demands.usage, demands.demand, fair, self._columns.tolerance[pools])
        closed = blocked(fair, demands.demand)
        return _Shares(
            demands.usage, demands.demand, fair, closed, below.tolist(), pool_demand, np.array(pool_fair), of
        )

    def _pool_demand(self, everybody: list[Operation]) -> Floats:
        wanted = np.zeros(self._pool_usage.shape, np.int64)
        for operation in everybody:
            if operation.tasks:
                wanted[self._paths[operation.pool]] += operation.wanted
        return shares_of(self._cluster, (self._pool_usage + wanted).astype(float))

    def _now(self, operation: Operation, is_below: bool, now: int, later: list[int]) -> tuple[int, int]:
        """How an operation stands at ``now``."""
        if not is_below:
            return 0, NEVER
        part = min(len(operation.tasks) / self._config.settings.count_coefficient, 1.0)
        return moved_on((operation.level, operation.since), True, self._timeouts(operation.pool, part), now, later)

    def _preempts(
        self, everybody: list[Operation], stands: list[tuple[int, int]], pools: list[tuple[int, int]],
        shares: _Shares, now: int,
    ) -> bool:  # fmt: skip
        """Whether somebody who starves may take something on some node."""
        settings = self._config.settings
        above: list[int] = handed_down(self._config, np.array([level for level, _ in pools], np.int8)).tolist()
        starving: dict[int, set[tuple[int, ...]]] = {}
        for op, (level, _) in zip(everybody, stands, strict=True):
            if op.tasks and (priority := max(level, above[op.pool])):
                starving.setdefault(priority, set()).update([need for _, need in op.tasks])
        if not starving:
            return False
        ready = backoffs_over(self._last, settings.backoff, now)
        if not ready.any():
            return False
        normal = starving.get(NORMAL, set[tuple[int, ...]]())
        aggressive = starving.get(AGGRESSIVE, set[tuple[int, ...]]())
        if settings.rules.normal_serves_aggressive:
            normal = normal | aggressive
        running = everybody[: len(self._operations)]
        owner, node, usage, level = self._levels(running, shares)
        open_rows = np.array([settings.allow_from_starving or not own for own, _ in stands[: len(running)]], bool)[
            owner
        ]
        open_rows &= node != NOWHERE
        allowed = self._columns.allow_normal[[op.pool for op in running]][owner]
        for takers, taken in (
            (normal, open_rows & allowed & (level >= PREEMPTIBLE)),
            (aggressive, open_rows & (level >= AGGRESSIVELY_PREEMPTIBLE)),
        ):
            if takers and taken.any():
                emptied = self._free.T.copy()
                np.add.at(emptied, node[taken], usage[taken])
                if any((ready & all_of(np.array(need, np.int64) <= emptied)).any() for need in takers):
                    return True
        return False

    def _levels(self, running: list[Operation], shares: _Shares) -> tuple[Ints, Ints, Ints, Levels]:
        """Of all allocations: whose they are, node, usage and level."""
        settings, of = self._config.settings, shares.of[: len(running)]
        node = np.array([node for op in running for node in op.nodes], np.int64)
        owner = np.repeat(np.arange(len(running)), [len(op.nodes) for op in running])
        usage = np.concatenate([op.usages for op in running]) if running else np.zeros((0, self._width), np.int64)
        limits = bounds_of(settings, shares.fair[of], shares.demand[of])
        group = groups_of(settings, self._cluster.total, limits, (owner, usage), None)
        gentle = self._columns.allow_aggressive[[op.pool for op in running]]
        gentle &= np.array([settings.allow_gang or not op.is_gang for op in running], bool)
        return owner, node, usage, levels(group, gentle[owner])

    def _started(self, everybody: list[Operation], shares: _Shares) -> list[tuple[Ask, Task, int]]:
        """What each heartbeat starts, in the order of nodes."""
        starts: list[tuple[Ask, Task, int]] = []
        wanting = {i: list(op.tasks) for i, op in enumerate(everybody) if op.tasks}
        needs = dict.fromkeys(need for tasks in wanting.values() for _, need in tasks)
        fitting = [self._fitting(need) for need in needs]
        nodes = np.flatnonzero(np.logical_or.reduce(fitting)).tolist()
        if not nodes:
            return starts
        satisfaction = local_satisfaction(shares.usage, shares.fair, shares.closed).tolist()
        now = {i: satisfaction[shares.of[i]] for i in wanting}
        given: dict[int, Ints] = {}
        left = self._columns.left
        for node in nodes:
            free: list[int] = self._free[:, node].tolist()
            while True:
                fits = {need for need in needs if all(n <= f for n, f in zip(need, free, strict=True))}
                able = [i for i, tasks in wanting.items() if any(need in fits for _, need in tasks)] if fits else []
                if not able:
                    break
                lowest = min([now[i] for i in able]) + EPSILON
                i = min([i for i in able if now[i] <= lowest], key=lambda i: (left[everybody[i].pool], i))
                op, tasks = everybody[i], wanting[i]
                task, need = tasks.pop(next(k for k, (_, need) in enumerate(tasks) if need in fits))
                if not tasks:
                    del wanting[i]
                free = [f - n for f, n in zip(free, need, strict=True)]
                given[i] = given.get(i, np.array(op.usage, np.int64)) + need
                kind = [shares.of[i]]
                usage = to_shares(given[i].astype(float)[None, :], self._cluster.total)
                now[i] = float(local_satisfaction(usage, shares.fair[kind], shares.closed[kind])[0])
                if op.ask is not None:
                    starts.append((op.ask, task, node))
        return starts
