"""Nodes whose heartbeat can't change anything: found for all nodes at once, so that only the others are processed.

The test is generous: a node is quiet only where nothing could start or stop even with every limit forgotten. What
happens on other nodes meanwhile makes no quiet node loud: allocations that stop free resources on their own node
only, and those that stay are better protected. Only a preemptive start may push a pool over its limit; then ask again.
"""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Ints, all_of, any_of, by_level
from app.solver.engines.ytsaurus.compile.operations import NEVER
from app.solver.engines.ytsaurus.decide.overlay import Overlay
from app.solver.engines.ytsaurus.decide.split import AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE

_MOST_SHAPES = 32


def quiet_nodes(overlay: Overlay, now: int) -> Flags:
    """By node: whether a heartbeat at ``now`` would neither start nor stop anything."""
    prepared = overlay.prepared
    situation = prepared.situation
    cluster = situation.cluster
    free = cluster.node_limits - overlay.node_usage
    wants = np.flatnonzero((overlay.left > 0) & prepared.active[situation.wants.operation])
    starving = wants[prepared.priority[situation.wants.operation[wants]] > 0]
    rows, nodes = _takeable(overlay)
    discount = np.zeros_like(overlay.node_usage)
    np.add.at(discount, nodes, cluster.allocations.usage[rows])
    over = np.zeros(len(free), bool)
    over[nodes[_over_limits(overlay)[cluster.allocations.operation[rows]]]] = True
    ready = (overlay.last_preemptive == NEVER) | (now > overlay.last_preemptive + situation.config.settings.backoff)
    loud = any_of(free < 0) | _asked_gracefully(overlay) | _fits(overlay, wants, free)
    return ~(loud | (ready & (over | _fits(overlay, starving, free + discount))))


def _takeable(overlay: Overlay) -> tuple[Ints, Ints]:
    """Allocations that some stage could take, and their nodes."""
    allocations = overlay.prepared.situation.cluster.allocations
    taken = overlay.running & (overlay.level >= AGGRESSIVELY_PREEMPTIBLE) & (allocations.node >= 0)
    rows = np.flatnonzero(taken & overlay.prepared.takeable[allocations.operation])
    return rows, allocations.node[rows]


def _over_limits(overlay: Overlay) -> Flags:
    """By operation: whether it or a pool above it exceeds its limits."""
    situation = overlay.prepared.situation
    pools = any_of(overlay.pool_usage > situation.pool_limits)
    for rows in by_level(situation.depth)[1:]:
        pools[rows] |= pools[situation.parent[rows]]
    return any_of(overlay.usage > situation.operations.limits) | pools[situation.operations.pool]


def _asked_gracefully(overlay: Overlay) -> Flags:
    situation = overlay.prepared.situation
    allocations = situation.cluster.allocations
    told = situation.operations.graceful[allocations.operation] & (overlay.group == PREEMPTIBLE) & overlay.running
    out = np.zeros(len(overlay.node_usage), bool)
    out[allocations.node[told & (allocations.node >= 0)]] = True
    return out


def _fits(overlay: Overlay, wants: Ints, free: Ints) -> Flags:
    """By node: whether one of ``wants`` fits ``free``; the smallest amounts of very many shapes stand for all."""
    out = np.zeros(len(free), bool)
    if not len(wants):
        return out
    shapes = overlay.prepared.shapes[np.unique(overlay.prepared.shape_of[wants])]
    if len(shapes) > _MOST_SHAPES:
        shapes = shapes.min(axis=0, keepdims=True)
    for shape in shapes:
        out |= all_of(shape <= free)
    return out
