"""Why an ask that started nothing waits, or can never run: worked out for all asks at once, after the heartbeats."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.arrays import Flags, Ints, all_of
from app.solver.engines.ytsaurus.board import Board
from app.solver.engines.ytsaurus.heartbeat import backoff_is_over
from app.solver.engines.ytsaurus.operations import UNLIMITED
from app.solver.model.decision import Outcome, Shortage
from app.solver.model.quantity import units
from app.solver.model.state import Ask
from app.solver.model.trace import Change

_MESSAGES = {
    "NothingAsked": "the ask wants no allocation",
    "NoFeasibleNode": "no node that it may use is large enough for one of its allocations",
    "NeverWithinLimits": "one of its allocations alone exceeds the resource_limits of {limit}",
    "Suspended": "the operation is suspended",
    "GracefulAndSatisfied": "a graceful operation that has its fair share starts nothing more",
    "ResourceLimitsReached": "one more allocation would exceed the resource_limits of {limit}",
    "NodeNotAllowed": "the node of this heartbeat is not one that it may use",
    "TooLittleSpare": "the node of this heartbeat has less than min_spare_allocation_resources left",
    "NotStarving": "{nodes} no free resources for it, and as its operation is not starving nobody has to stop",
    "PreemptiveSchedulingBackoff": "{nodes} no free resources for it, and preemption was tried there too recently",
    "AnotherTookThePreemption": "{nodes} no free resources for it, and a heartbeat preempts for one allocation at most",
    "NotEnoughPreemptible": "{nodes} no room for it even without all allocations that it may preempt",
}
_NEVER = frozenset({"NothingAsked", "NoFeasibleNode", "NeverWithinLimits"})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why nothing started. ``limit``: the element whose limit stands in the way."""

    outcome: Outcome
    code: str
    message: str
    shortages: list[Shortage] | None = None
    changes: tuple[Change, ...] = ()


class Waiting:
    """Reasons by ask. ``heard``: the nodes whose heartbeats were processed."""

    def __init__(self, board: Board, asks: Sequence[Ask], heard: Sequence[int], tried: Flags) -> None:
        situation = board.prepared.situation
        self._board, self._asks, self._heard = board, asks, heard
        self._nowhere = ~_fits_some_node(board)
        self._never_allowed = ~_within(board, np.zeros_like(board.usage), np.zeros_like(board.pool_usage))
        self._not_allowed = ~_within(board, board.usage, board.pool_usage)
        self._first = np.searchsorted(situation.wants.ask, np.arange(len(asks) + 1))
        self._tried = bool(tried[list(heard)].any()) if len(heard) else False
        self._preempted = any(one.stage != "regular" for one in board.started)

    def reason(self, ask: int) -> Reason:
        """Why ``ask`` (its position) started nothing."""
        situation = self._board.prepared.situation
        rows = slice(int(self._first[ask]), int(self._first[ask + 1]))
        if rows.start == rows.stop or not situation.wants.count[rows].any():
            return self._named("NothingAsked")
        operation = int(situation.wants.operation[rows.start])
        if self._nowhere[rows].all():
            return self._named("NoFeasibleNode")
        if (self._nowhere | self._never_allowed)[rows].all():
            return self._at_limit("NeverWithinLimits", rows.start, operation)
        if situation.operations.suspended[operation]:
            return self._named("Suspended")
        if not self._board.prepared.active[operation]:
            return self._named("GracefulAndSatisfied")
        if (self._nowhere | self._not_allowed)[rows].all():
            return self._at_limit("ResourceLimitsReached", rows.start, operation)
        return self._named(self._code(operation, rows), self._shortages(rows.start))

    def _code(self, operation: int, rows: slice) -> str:
        if len(self._heard) == 1:
            if not self._may_use(self._heard[0], rows):
                return "NodeNotAllowed"
            if self._shortages(rows.start) is None and not self._board.prepared.priority[operation]:
                return "TooLittleSpare"
        if not self._board.prepared.priority[operation]:
            return "NotStarving"
        if not self._tried:
            return "PreemptiveSchedulingBackoff"
        return "AnotherTookThePreemption" if self._preempted else "NotEnoughPreemptible"

    def _may_use(self, node: int, rows: slice) -> bool:
        feasible = self._board.prepared.feasible
        allowed = feasible.on.get(node)
        some = bool(feasible.anywhere[rows].any())
        if allowed is not None:
            some = some or not set(allowed.tolist()).isdisjoint(range(rows.start, rows.stop))
        return some and bool(self._board.prepared.situation.cluster.schedulable[node])

    def _named(self, code: str, shortages: list[Shortage] | None = None) -> Reason:
        nodes = "the nodes have" if len(self._heard) != 1 else f"{self._node_name()} has"
        outcome = "infeasible" if code in _NEVER else "wait"
        return Reason(outcome, code, _MESSAGES[code].format(nodes=nodes), shortages)

    def _node_name(self) -> str:
        return self._board.prepared.situation.cluster.state.nodes[self._heard[0]].name

    def _at_limit(self, code: str, want: int, operation: int) -> Reason:
        """Names whose limit it is, by how much it is short, and which limit would let the ask in."""
        situation = self._board.prepared.situation
        need = situation.wants.need[want]
        names = situation.config.tree.names
        pool = int(situation.operation_parent[operation])
        found = self._over(need, self._board.usage[operation], situation.operations.limits[operation], None)
        label = f"operation {situation.operations.ids[operation]}"
        while not found[0] and pool != situation.root:
            found = self._over(need, self._board.pool_usage[pool], situation.pool_limits[pool], names[pool])
            label = f"pool {names[pool]}"
            pool = int(situation.parent[pool])
        outcome = "infeasible" if code in _NEVER else "wait"
        return Reason(outcome, code, _MESSAGES[code].format(limit=label), found[0] or None, tuple(found[1]))

    def _over(self, need: Ints, used: Ints, limit: Ints, queue: str | None) -> tuple[list[Shortage], list[Change]]:
        names = self._board.prepared.situation.resources
        shortages: list[Shortage] = []
        changes: list[Change] = []
        for r in np.flatnonzero(used + need > limit).tolist():
            name, free = names[r], max(int(limit[r] - used[r]), 0)
            shortages.append(_shortage(name, int(need[r]), free, queue=queue))
            if queue is not None:
                total = int(used[r] + need[r])
                changes.append(
                    Change(
                        queue=queue, resource=name, field="limit", current=units(int(limit[r]), name),
                        needed=units(total, name), detail=f"{queue} would then have room for one more allocation",
                    )
                )  # fmt: skip
        return shortages, changes

    def _shortages(self, want: int) -> list[Shortage] | None:
        """What the node of the only heartbeat lacks."""
        if len(self._heard) != 1:
            return None
        situation = self._board.prepared.situation
        need = situation.wants.need[want]
        free = np.maximum(self._board.free(self._heard[0]), 0)
        return [
            _shortage(situation.resources[r], int(need[r]), int(free[r]), node=self._node_name())
            for r in np.flatnonzero(need > free).tolist()
        ] or None


def _shortage(name: str, need: int, free: int, *, queue: str | None = None, node: str | None = None) -> Shortage:
    return Shortage(
        resource=name, queue=queue, node=node, requested=units(need, name), available=units(free, name),
        short=units(max(need - free, 0), name),
    )  # fmt: skip


def tried_preemption(board: Board, now: int) -> Flags:
    """By node: whether preemption may be tried there now. To be asked before the heartbeats."""
    return np.array([backoff_is_over(board, node, now) for node in range(len(board.node_usage))], bool)


def _fits_some_node(board: Board) -> Flags:
    """By want: whether a node that it may use is large enough, were it empty."""
    prepared = board.prepared
    cluster = prepared.situation.cluster
    sizes = np.unique(cluster.node_limits[cluster.schedulable], axis=0)
    some = np.array([bool(all_of(shape <= sizes).any()) for shape in prepared.shapes], bool)
    out = some[prepared.shape_of] if len(some) else np.zeros(0, bool)
    out &= prepared.feasible.anywhere
    for node, rows in prepared.feasible.on.items():
        if cluster.schedulable[node]:
            out[rows] |= all_of(prepared.situation.wants.need[rows] <= cluster.node_limits[node])
    return out


def _within(board: Board, usage: Ints, pool_usage: Ints) -> Flags:
    """By want: whether the limits of its operation and of all pools above allow one more allocation."""
    situation = board.prepared.situation
    room = np.minimum(situation.pool_limits, UNLIMITED) - pool_usage
    for level in range(1, int(situation.depth.max(initial=-1)) + 1):
        rows = np.flatnonzero(situation.depth == level)
        room[rows] = np.minimum(room[rows], room[situation.parent[rows]])
    operation = situation.wants.operation
    left = np.minimum(
        situation.operations.limits[operation] - usage[operation], room[situation.operations.pool[operation]]
    )
    return all_of(situation.wants.need <= left)
