"""Whose allocations a preemptive stage may take on a node, and in which order they go."""

from collections.abc import Sequence

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Ints
from app.solver.engines.ytsaurus.decide.overlay import NOBODY, Overlay, Reason
from app.solver.engines.ytsaurus.decide.split import PREEMPTIBLE


def candidates(overlay: Overlay, node: int, least: int, *, normal: bool) -> Ints:
    """Allocations on ``node`` of level ``least`` or more that may be taken, in the order in which they are taken."""
    prepared = overlay.prepared
    cluster = prepared.situation.cluster
    rows = cluster.allocations_on(node)
    operation = cluster.allocations.operation[rows]
    open_rows = overlay.running[rows] & (overlay.level[rows] >= least) & prepared.takeable[operation]
    if normal:
        open_rows &= prepared.normally_takeable[operation]
    return least_protected_first(overlay, rows[open_rows])


def least_protected_first(overlay: Overlay, rows: Ints) -> Ints:
    """Preemptible ones newest first; then those that leave part of their cpu unused, and those that don't."""
    allocations = overlay.prepared.situation.cluster.allocations
    group = overlay.group[rows]
    gap = allocations.has_gap[rows] & (group != PREEMPTIBLE)
    order = np.lexsort((allocations.task[rows], allocations.operation[rows], allocations.started[rows], gap, group))
    return rows[order[::-1]]


def for_want(overlay: Overlay, order: Ints, want: int) -> Ints:
    """``order`` as it serves ``want``: without allocations of its own operation, where the rules ask that."""
    situation = overlay.prepared.situation
    if want == NOBODY or situation.config.settings.rules.own_allocations_make_room:
        return order
    return order[situation.cluster.allocations.operation[order] != situation.wants.operation[want]]


def preempt(overlay: Overlay, node: int, order: Sequence[int], reason: Reason, want: int) -> None:
    """Take victims until the node's allocations fit it; then those whose operation or pool exceeds its limits.

    Nothing is skipped or given back in the first part: the victims are the shortest prefix of ``order``.
    """
    situation = overlay.prepared.situation
    allocations, timeouts = situation.cluster.allocations, situation.operations.preemption_timeout
    for row in order:
        operation = int(allocations.operation[row])
        timeout = int(timeouts[operation])
        if overlay.is_overcommitted(node):
            overlay.stop(row, node, reason, timeout, want)
        elif overlay.over_limit(operation) is not None:
            overlay.stop(row, node, "resource_limits_violated", timeout, NOBODY)
