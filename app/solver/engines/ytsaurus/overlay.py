"""What heartbeats change: usage, pending work, which allocations still run. One overlay a decision."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import UNLIMITED_STEPS, Flags, Floats, Ints, Levels, by_level
from app.solver.engines.ytsaurus.preparation import Prepared, groups, levels
from app.solver.engines.ytsaurus.rule_sets import StageName
from app.solver.engines.ytsaurus.starvation import local_satisfaction

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
        "_headroom",
        "_loose_headroom",
        "_stale",
        "group",
        "last_preemptive",
        "left",
        "level",
        "log",
        "node_usage",
        "overcommit_since",
        "pool_usage",
        "prepared",
        "rooms",
        "running",
        "satisfaction",
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
        self.satisfaction: Floats = prepared.satisfaction.copy()
        self.running: Flags = np.ones(len(cluster.allocations), bool)
        self.group: Levels = prepared.group.copy()
        self.level: Levels = prepared.level.copy()
        self.last_preemptive: Ints = cluster.last_preemptive.copy()
        self.overcommit_since: Ints = cluster.overcommit_since.copy()
        self.started: list[Started] = []
        self.stopped: list[Stopped] = []
        self.told: set[int] = set()
        self.rooms: list[Room] = []
        self.log: list[StageRecord] | None = None
        self._stale: set[int] = set()
        self._headroom: Ints | None = None
        self._loose_headroom: Ints | None = None

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
        situation, shares = self.prepared.situation, self.prepared.shares
        self.usage[operation] += amount
        pool = int(situation.operation_parent[operation])
        while pool != situation.root:
            self.pool_usage[pool] += amount
            pool = int(situation.parent[pool])
        self.pool_usage[pool] += amount
        row = slice(operation, operation + 1)
        usage = to_shares(self.usage[row].astype(float), situation.cluster.total)
        self.satisfaction[row] = local_satisfaction(usage, shares.fair[row], self.prepared.is_blocked[row])
