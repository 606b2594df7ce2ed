"""What is settled before the first heartbeat: shares, groups of allocations, who may preempt whom, who may run where.

Every heartbeat reads it and none changes it; what heartbeats do change is an ``Overlay``, one a decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct

from app.solver.compiled import ROOTLESS
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.fair_shares import (
    EPSILON,
    Due,
    blocked,
    due_shares,
    local_satisfaction,
    operation_below,
    strictly_dominates,
)
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import (
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Ints,
    Levels,
    all_of,
    any_of,
    by_level,
)
from app.solver.engines.ytsaurus.settings import StageName, TreeSettings
from app.solver.engines.ytsaurus.situation import Situation, feasible, situate
from app.solver.engines.ytsaurus.state import CompiledState, node_usage
from app.solver.model.state import Ask

NON_PREEMPTIBLE, AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE = 0, 1, 2
GROUPS = ("non_preemptible", "aggressively_preemptible", "preemptible")


class Bounds(Struct, frozen=True, eq=False):
    """By operation: up to which share its allocations are protected. ``upper`` is infinite where the fair share
    equals the demand: then nothing is plainly preemptible."""

    lower: Floats
    upper: Floats
    is_blocked: Flags


def bounds(situation: Situation, shares: Due) -> Bounds:
    """Bounds from the published fair shares."""
    return bounds_of(situation.config.settings, shares.fair, shares.demand)


def bounds_of(settings: TreeSettings, fair: Floats, demand: Floats) -> Bounds:
    """The same, where nothing else is known of operations."""
    satisfied = all_of(np.abs(fair - demand) <= EPSILON) & any_of(demand > EPSILON)
    return Bounds(
        lower=fair * settings.aggressive_threshold,
        upper=np.where(satisfied[:, None], np.inf, fair * settings.threshold),
        is_blocked=blocked(fair, demand),
    )


def groups(situation: Situation, limits: Bounds, rows: Ints) -> Levels:
    """Groups of the allocation ``rows``: all that run of some operations, by operation and then oldest first."""
    cluster, operations = situation.cluster, situation.operations
    operation, usage = cluster.allocations.operation[rows], cluster.allocations.usage[rows]
    protected = operations.protects, operations.non_preemptible
    return groups_of(situation.config.settings, cluster.total, limits, (operation, usage), protected)


def groups_of(
    settings: TreeSettings, total: Floats, limits: Bounds, of: tuple[Ints, Ints], protects: tuple[Flags, Ints] | None
) -> Levels:
    """The same of allocations by their operation and usage (``of``). ``protects``: by operation, whether some amount of
    it is protected, and which.

    Each stays in the current group while what the earlier ones use (with
    consider_allocation_on_fair_share_bound_preemptible: the earlier ones and itself) is below the operation's protected
    amount, or its share below the group's part of the fair share; groups only go up."""
    operation, usage = of
    if not len(operation):
        return np.zeros(0, np.int8)
    first = np.ones(len(operation), bool)
    first[1:] = operation[1:] != operation[:-1]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(operation)), 0))
    until = np.cumsum(usage, axis=0)
    before = until - usage
    before -= before[begin]
    on_bound = settings.bound_allocation_preemptible
    amount = before + usage if on_bound else before
    counted = to_shares(amount.astype(float), total)
    closed = limits.is_blocked[operation]
    spared = _stays(limits.lower[operation], counted, closed, on_bound)
    if protects is not None:
        spared |= protects[0][operation] & all_of(amount < protects[1][operation])
    own = np.where(
        spared, NON_PREEMPTIBLE,
        np.where(_stays(limits.upper[operation], counted, closed, on_bound), AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE),
    )  # fmt: skip
    # A running maximum within each operation: once left, a group is not entered again.
    rank = np.cumsum(first) * (PREEMPTIBLE + 1)
    return (np.maximum.accumulate(rank + own) - rank).astype(np.int8)


def _stays(bound: Floats, counted: Floats, closed: Flags, on_bound: bool) -> Flags:
    below = strictly_dominates(bound, counted, closed)
    if not on_bound:
        return below
    return below | all_of(np.abs(bound - counted) <= EPSILON)


NO_PRIORITY, NORMAL, AGGRESSIVE = 0, 1, 2


def priorities(situation: Situation) -> Levels:
    """Preemption priority of each operation: its own starvation and, unless the scope forbids, its pools'."""
    above = handed_down(situation.config, situation.cluster.pool_starvation)
    return np.maximum(situation.operations.starvation, above[situation.operations.pool])


def handed_down(config: CompiledConfiguration, starvation: Levels) -> Levels:
    """By pool, what its operations have of it: ``starvation`` of it and of those above it, unless the scope forbids."""
    if config.settings.scope == "operation_only":
        return np.zeros_like(starvation)
    above = starvation.copy()
    for pool in config.tree.top_down:
        parent = config.tree.parent[pool]
        if parent != ROOTLESS:
            above[pool] = max(above[pool], above[parent])
    return above


def aggressive_allowed(situation: Situation) -> Flags:
    """Whose aggressively preemptible allocations may be taken: by pool, and for gangs by the tree's setting."""
    allowed = situation.config.columns.allow_aggressive
    gangs = situation.operations.gang & (not situation.config.settings.allow_gang)
    return allowed[situation.operations.pool] & ~gangs


def levels(group: Levels, allowed: Flags) -> Levels:
    """Preemption level of allocations: the group, but protected where aggressive preemption is not allowed."""
    spared = (group == AGGRESSIVELY_PREEMPTIBLE) & ~allowed
    return np.where(spared, NON_PREEMPTIBLE, group).astype(np.int8)


def takeable(situation: Situation) -> Flags:
    """Operations whose allocations may be victims at all: neither graceful nor, by default, starving themselves."""
    operations = situation.operations
    starving = (operations.starvation > 0) & (not situation.config.settings.allow_from_starving)
    return ~operations.graceful & ~starving


def normally_takeable(situation: Situation) -> Flags:
    """Operations below no pool that switches normal preemption off."""
    allowed = situation.config.columns.allow_normal
    return allowed[situation.operations.pool]


class Prepared:
    """``shares``: due ones; ``active``: which operations may start anything; ``shapes``: distinct needs, ``shape_of``
    each want; ``node_usage``: by node; ``participants``: by stage, once it looked; ``spare``: what a node must
    have left for scheduling to go on. What only a decision with several takers or with victims reads is worked out when
    first asked for."""

    def __init__(self, situation: Situation, asks: Sequence[Ask]) -> None:
        cluster, operations = situation.cluster, situation.operations
        self.situation = situation
        self.shares = due_shares(situation)
        self.takeable = takeable(situation)
        self.normally_takeable = normally_takeable(situation)
        content = operations.graceful
        if content.any():
            content = content & ~operation_below(situation, self.shares)
        self.active: Flags = ~operations.suspended & ~content
        self.shapes, self.shape_of = situation.wants.shapes, situation.wants.shape
        self.feasible = feasible(situation, asks)
        self.node_usage = node_usage(cluster)
        self.participants: dict[StageName, Flags] = {}
        names = cluster.index.index
        self.spare: Ints = np.zeros(len(names), np.int64)
        for name, value in situation.config.settings.min_spare.items():
            self.spare[names[name]] = value

    @cached_property
    def bounds(self) -> Bounds:
        """Of the fair shares of operations."""
        return bounds(self.situation, self.shares)

    @property
    def is_blocked(self) -> Flags:
        """Resources of operations in which the fair share covers the demand."""
        return self.bounds.is_blocked

    @cached_property
    def satisfaction(self) -> Floats:
        """Of operations."""
        return local_satisfaction(self.shares.usage, self.shares.fair, self.is_blocked)

    @cached_property
    def group(self) -> Levels:
        """Of allocations."""
        return groups(self.situation, self.bounds, np.arange(len(self.situation.cluster.allocations)))

    @cached_property
    def gentle(self) -> Flags:
        """Operations whose aggressively preemptible allocations may be taken."""
        return aggressive_allowed(self.situation)

    @cached_property
    def level(self) -> Levels:
        """Of allocations."""
        return levels(self.group, self.gentle[self.situation.cluster.allocations.operation])

    @cached_property
    def priority(self) -> Levels:
        """Of operations."""
        return priorities(self.situation)

    @cached_property
    def somebody_preempts(self) -> bool:
        """Whether some operation has a priority."""
        return bool((self.priority > NO_PRIORITY).any())

    @cached_property
    def rank(self) -> Ints:
        """Place of each operation in a depth-first walk: below a pool first its child pools, then its operations."""
        operations = self.situation.operations
        rank = np.empty(len(operations), np.int64)
        rank[np.argsort(self.situation.config.columns.left[operations.pool], kind="stable")] = np.arange(len(rank))
        return rank


def prepare(cluster: CompiledState, asks: Sequence[Ask]) -> Prepared:
    """Prepare heartbeats on ``cluster`` with pending ``asks``. Raises InvalidInput."""
    return Prepared(situate(cluster, asks), asks)


Stage = Literal["regular", "preemptive_normal", "preemptive_aggressive"]
Reason = Literal[
    "preemption", "aggressive_preemption", "resource_limits_violated", "resource_overcommit", "graceful_preemption"
]
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Started:
    """An allocation that starts: ``want`` row, node, and the stage that started it."""

    want: int
    node: int
    stage: Stage


@dataclass(frozen=True, slots=True)
class Stopped:
    """An allocation row that is told to stop, and for which want (NOBODY: nobody's). ``timeout`` in microseconds."""

    allocation: int
    reason: Reason
    timeout: int
    want: int = NOBODY


@dataclass(frozen=True, slots=True)
class Room:
    """What the preemptive stage that started an allocation had to give: free and preemptible resources, in steps."""

    node: int
    stage: StageName
    resources: Ints


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What one stage on one node looked at, for an explanation; amounts in steps.

    ``rows``: allocations there; ``running``, ``group``: of each when the stage began; ``order``: those that could be
    taken, in order; ``stopped``: those that were.
    """

    node: int
    stage: Stage
    least: int
    participants: int
    free: Ints
    rows: Ints
    running: Flags
    group: Levels
    order: list[int]
    started: list[int]
    stopped: dict[int, Reason]


class Overlay:
    """Mutable copies of a ``Prepared``'s few tables, and the record of what was done."""

    __slots__ = (
        "_group",
        "_headroom",
        "_level",
        "_loose_headroom",
        "_satisfaction",
        "_stale",
        "_unsettled",
        "last_preemptive",
        "left",
        "log",
        "node_usage",
        "overcommit_since",
        "pool_usage",
        "prepared",
        "rooms",
        "running",
        "started",
        "stopped",
        "told",
        "usage",
    )

    def __init__(self, prepared: Prepared) -> None:
        situation = prepared.situation
        cluster = situation.cluster
        self.prepared = prepared
        self.usage: Ints = situation.usage.copy()
        self.pool_usage: Ints = situation.pool_usage.copy()
        self.node_usage: Ints = prepared.node_usage.copy()
        self.left: Ints = situation.wants.count.copy()
        self.running: Flags = np.ones(len(cluster.allocations), bool)
        self.last_preemptive: Ints = cluster.last_preemptive.copy()
        self.overcommit_since: Ints = cluster.overcommit_since.copy()
        self.started: list[Started] = []
        self.stopped: list[Stopped] = []
        self.told: set[int] = set()
        self.rooms: list[Room] = []
        self.log: list[StageRecord] | None = None
        self._stale: set[int] = set()
        self._group: Levels | None = None
        self._level: Levels | None = None
        self._satisfaction: Floats | None = None
        self._unsettled: set[int] = set()
        self._headroom: Ints | None = None
        self._loose_headroom: Ints | None = None

    @property
    def group(self) -> Levels:
        """By allocation."""
        if self._group is None:
            self._group = self.prepared.group.copy()
        return self._group

    @property
    def level(self) -> Levels:
        """By allocation."""
        if self._level is None:
            self._level = self.prepared.level.copy()
        return self._level

    @property
    def satisfaction(self) -> Floats:
        """By operation, with what it uses now: worked out for those that were charged since somebody last asked."""
        if self._satisfaction is None:
            self._satisfaction = self.prepared.satisfaction.copy()
        if self._unsettled:
            situation, fair = self.prepared.situation, self.prepared.shares.fair
            rows = np.array(sorted(self._unsettled), np.int64)
            usage = to_shares(self.usage[rows].astype(float), situation.cluster.total)
            self._satisfaction[rows] = local_satisfaction(usage, fair[rows], self.prepared.is_blocked[rows])
            self._unsettled.clear()
        return self._satisfaction

    def free(self, node: int) -> Ints:
        """What ``node`` has left, below zero where it is overcommitted."""
        return self.prepared.situation.cluster.node_limits[node] - self.node_usage[node]

    def is_overcommitted(self, node: int) -> bool:
        """Whether the allocations on ``node`` use more than it has, in any resource."""
        return bool((self.free(node) < 0).any())

    def headroom(self, *, preemptive: bool) -> Ints:
        """By pool: what it and all pools above it had left below their limits when this was last worked out.

        Starts since then make it an upper bound (``has_room`` is exact), stops have it worked out again.
        ``preemptive``: with resource_limits_overcommit_tolerance, which only preemptive starts may use.
        """
        if self._headroom is None or self._loose_headroom is None:
            situation = self.prepared.situation
            tight = situation.pool_limits - self.pool_usage
            loose = (
                np.minimum(situation.pool_limits + situation.pool_limits_tolerance, UNLIMITED_STEPS) - self.pool_usage
            )
            for rows in by_level(situation.depth)[1:]:
                parent = situation.parent[rows]
                tight[rows] = np.minimum(tight[rows], tight[parent])
                loose[rows] = np.minimum(loose[rows], loose[parent])
            self._headroom, self._loose_headroom = tight, loose
        return self._loose_headroom if preemptive else self._headroom

    def has_room(self, want: int, *, preemptive: bool) -> bool:
        """Whether the limits of a want's operation and of every pool above allow one more allocation now."""
        situation = self.prepared.situation
        operation = int(situation.wants.operation[want])
        need = situation.wants.need[want]
        if (self.usage[operation] + need > situation.operations.limits[operation]).any():
            return False
        pool = int(situation.operation_parent[operation])
        while pool != situation.root:
            allowed = situation.pool_limits[pool]
            if preemptive:
                allowed = allowed + situation.pool_limits_tolerance[pool]
            if (self.pool_usage[pool] + need > allowed).any():
                return False
            pool = int(situation.parent[pool])
        return True

    def forget_headroom(self) -> None:
        """Have the headroom worked out again: it was found to be out of date."""
        self._headroom = self._loose_headroom = None

    def start(self, want: int, node: int, stage: Stage) -> None:
        """Start one allocation of ``want`` on ``node``."""
        wants = self.prepared.situation.wants
        need = wants.need[want]
        self.left[want] -= 1
        self.node_usage[node] += need
        self._charge(int(wants.operation[want]), need)
        self.started.append(Started(want, node, stage))

    def stop(self, allocation: int, node: int, reason: Reason, timeout: int, want: int = NOBODY) -> None:
        """Preempt ``allocation``: its resources count as free at once."""
        allocations = self.prepared.situation.cluster.allocations
        usage = allocations.usage[allocation]
        operation = int(allocations.operation[allocation])
        self.running[allocation] = False
        self.node_usage[node] -= usage
        self._charge(operation, -usage)
        self.forget_headroom()
        self._stale.add(operation)
        if allocation not in self.told:
            self.stopped.append(Stopped(allocation, reason, timeout, want))

    def tell(self, allocation: int, timeout: int) -> None:
        """Ask a graceful operation's ``allocation`` to stop; what it uses stays in use."""
        if allocation not in self.told:
            self.told.add(allocation)
            self.stopped.append(Stopped(allocation, "graceful_preemption", timeout))

    def regroup(self) -> None:
        """Bring the groups of operations that lost allocations up to date: those that stay move up."""
        if not self._stale:
            return
        situation = self.prepared.situation
        of = situation.cluster.allocations.of
        spans: list[Ints] = [np.arange(of[operation], of[operation + 1]) for operation in sorted(self._stale)]
        every: Ints = np.concatenate(spans)
        rows: Ints = every[self.running[every]]
        self.group[rows] = groups(situation, self.prepared.bounds, rows)
        gentle = self.prepared.gentle[situation.cluster.allocations.operation[rows]]
        self.level[rows] = levels(self.group[rows], gentle)
        self._stale.clear()

    def over_limit(self, operation: int) -> str | None:
        """Whose resource_limits are exceeded: the operation's own, else the nearest pool's above; None: nobody's."""
        situation = self.prepared.situation
        if (self.usage[operation] > situation.operations.limits[operation]).any():
            return situation.operations.ids[operation]
        pool = int(situation.operation_parent[operation])
        while pool != situation.root:
            if (self.pool_usage[pool] > situation.pool_limits[pool]).any():
                return situation.config.tree.names[pool]
            pool = int(situation.parent[pool])
        return None

    def _charge(self, operation: int, amount: Ints) -> None:
        situation = self.prepared.situation
        self.usage[operation] += amount
        pool = int(situation.operation_parent[operation])
        while pool != situation.root:
            self.pool_usage[pool] += amount
            pool = int(situation.parent[pool])
        self.pool_usage[pool] += amount
        self._unsettled.add(operation)
