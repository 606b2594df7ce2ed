"""Fair shares of a pool tree: guarantees first, the rest additively by weight; limits, demand and FIFO pools.

Bottom-up every element gets the curve of what it takes of a suggestion (``curves``); top-down the root is
suggested the whole cluster and each pool hands on what its fit factor says.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.arrays import Floats, Ints
from app.solver.engines.ytsaurus.curves import Curves, PoolCurves, pool_curves
from app.solver.engines.ytsaurus.guarantees import (
    NEGLIGIBLE,
    guaranteed_amounts,
    pool_weights,
    strong_shares,
    to_shares,
)
from app.solver.engines.ytsaurus.operation_curves import Demands, operation_curves, operation_values
from app.solver.engines.ytsaurus.operations import UNLIMITED
from app.solver.engines.ytsaurus.situation import Situation, pool_float_sums
from app.solver.stopping import safe_point


@dataclass(frozen=True, slots=True)
class FairShares:
    """Shares, by operation and by pool (the root last); one column a resource. ``weight``: of pools."""

    usage: Floats
    demand: Floats
    limits: Floats
    fair: Floats
    pool_usage: Floats
    pool_demand: Floats
    pool_limits: Floats
    pool_strong: Floats
    pool_fair: Floats
    pool_weight: Floats


@dataclass(frozen=True, slots=True)
class _Children:
    """How children follow their pool's fit factor f: suggestion = (f - shift) / scale, between 0 and 1.

    ``end``: the largest f of each pool, 1, or the number of children where they come one after another."""

    scale: Floats
    shift: Floats
    pool_scale: Floats
    pool_shift: Floats
    end: Floats


def fair_shares(situation: Situation) -> FairShares:
    """Compute them, exactly but for rounding of doubles."""
    total = situation.cluster.total
    usage = to_shares(situation.usage.astype(float), total)
    gap = to_shares(situation.wanted, total)
    limits = np.minimum(_limits(situation.operations.limits, total), _best_allocation(situation))
    pool_limits = _limits(situation.pool_limits, total)
    strong = strong_shares(situation, guaranteed_amounts(situation), pool_limits)
    weight = pool_weights(situation.config, situation.parent, strong)
    fair, pool_fair = _divide(situation, Demands(usage, gap, limits), strong, pool_limits, weight)
    pool_usage = to_shares(situation.pool_usage.astype(float), total)
    wanted = pool_float_sums(gap, situation.operation_parent, situation.parent, situation.depth)
    return FairShares(
        usage=usage,
        demand=usage + gap,
        limits=limits,
        fair=fair,
        pool_usage=pool_usage,
        pool_demand=pool_usage + wanted,
        pool_limits=pool_limits,
        pool_strong=strong,
        pool_fair=pool_fair,
        pool_weight=weight,
    )


def _limits(limits: Ints, total: Floats) -> Floats:
    given = np.where(limits < UNLIMITED, limits.astype(float), np.inf)
    return to_shares(np.minimum(given, total), total)


def _best_allocation(situation: Situation) -> Floats:
    """What an operation could use at best, where asked for: each node holds whole allocations of average memory.

    The recorded decisions leave this cut out, so it is off by default; see docs/engines/ytsaurus.md.
    """
    index, total = situation.cluster.index.index, situation.cluster.total
    out = np.full((len(situation.operations), len(total)), np.inf)
    memory, slots = index.get("memory"), index.get("user_slots")
    if not situation.config.settings.best_allocation_share or memory is None or slots is None or total[memory] <= 0:
        return out
    wanted = situation.usage.astype(float) + situation.wanted
    many = wanted[:, slots] > 0
    average = np.floor(wanted[:, memory] / np.where(many, wanted[:, slots], 1.0))
    rows = np.flatnonzero(many & (average > 0))
    sizes, kind = np.unique(average[rows], return_inverse=True)
    held, nodes = np.unique(np.maximum(situation.cluster.node_limits[:, memory], 0), return_counts=True)
    best = np.zeros(len(sizes))
    for memory_of_node, count in zip(held.astype(float), nodes, strict=True):
        best += np.floor(memory_of_node / sizes) * count
    out[rows, memory] = (best * sizes / total[memory])[kind]
    return out


def _divide(
    situation: Situation, demands: Demands, strong: Floats, limits: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """Fair shares of operations and pools."""
    depth, parent = situation.depth, situation.parent
    children = _children(situation, weight)
    below = depth[situation.operation_parent]
    levels: list[tuple[Ints, Ints, Ints, PoolCurves]] = []
    pools_below = np.zeros(0, np.int64)
    curves_below: PoolCurves | None = None
    local = np.zeros(len(parent), np.int64)
    for level in range(int(depth.max()), -2, -1):
        safe_point()
        pools = np.flatnonzero(depth == level)
        local[pools] = np.arange(len(pools))
        operations = np.flatnonzero(below == level)
        curves = operation_curves(demands.take(operations))
        if curves_below is not None:
            curves = _joined(curves, curves_below.curves(), len(operations))
        curves_below = pool_curves(
            children.end[pools],
            curves,
            local[np.concatenate((situation.operation_parent[operations], parent[pools_below]))],
            np.concatenate((children.scale[operations], children.pool_scale[pools_below])),
            np.concatenate((children.shift[operations], children.pool_shift[pools_below])),
            strong[pools],
            limits[pools],
        )
        levels.append((pools, operations, pools_below, curves_below))
        pools_below = pools
    fair = np.zeros_like(demands.usage)
    pool_fair = np.zeros_like(strong)
    suggested = np.zeros(len(parent))
    suggested[situation.root] = 1.0
    for pools, operations, inner, curves in reversed(levels):
        fit = np.zeros(len(parent))
        fit[pools], pool_fair[pools] = curves.at(suggested[pools])
        handed = (fit[situation.operation_parent[operations]] - children.shift[operations]) / children.scale[operations]
        fair[operations] = operation_values(demands.take(operations), np.clip(handed, 0.0, 1.0))
        handed = (fit[parent[inner]] - children.pool_shift[inner]) / children.pool_scale[inner]
        suggested[inner] = np.clip(handed, 0.0, 1.0)
    return fair, pool_fair


def _joined(operations: Curves, pools: Curves, first: int) -> Curves:
    return Curves(
        np.concatenate((operations.owner, pools.owner + first)),
        np.concatenate((operations.position, pools.position)),
        np.concatenate((operations.value, pools.value)),
    )


def _children(situation: Situation, weight: Floats) -> _Children:
    own = situation.operations.weight
    root = situation.root
    above, pool_above = situation.operation_parent, situation.parent[:root]
    smallest = np.full(root + 1, np.inf)
    np.minimum.at(smallest, above, np.where(own > NEGLIGIBLE, own, np.inf))
    np.minimum.at(smallest, pool_above, np.where(weight[:root] > NEGLIGIBLE, weight[:root], np.inf))
    scale = _ratio(smallest[above], own)
    pool_scale = np.append(_ratio(smallest[pool_above], weight[:root]), 1.0)
    shift, pool_shift = np.zeros(len(own)), np.zeros(root + 1)
    fifo = np.array([pool.mode == "fifo" for pool in situation.config.pools] + [False], bool)
    end = np.ones(root + 1)
    if fifo.any():
        _fifo_order(situation, fifo, weight, scale, shift, pool_scale, pool_shift)
        children = np.bincount(np.concatenate((above, pool_above)), minlength=root + 1)
        end = np.where(fifo, np.maximum(children, 1.0), 1.0)
    return _Children(scale, shift, pool_scale, pool_shift, end)


def _ratio(smallest: Floats, weight: Floats) -> Floats:
    """Smallest weight over own: infinite for a negligible one, which is never suggested anything."""
    heavy = weight > NEGLIGIBLE
    return np.where(heavy, smallest / np.where(heavy, weight, 1.0), np.inf)


def _fifo_order(
    situation: Situation, fifo: np.ndarray, weight: Floats, scale: Floats, shift: Floats, pool_scale: Floats,
    pool_shift: Floats,
) -> None:  # fmt: skip
    """In a FIFO pool one child after another: heavier first, then older, then as in the input (pools first)."""
    root = situation.root
    pools = np.flatnonzero(fifo[situation.parent[:root]])
    operations = np.flatnonzero(fifo[situation.operation_parent])
    above = np.concatenate((situation.parent[pools], situation.operation_parent[operations]))
    weights = np.concatenate((weight[pools], situation.operations.weight[operations]))
    created = np.concatenate((np.full(len(pools), np.iinfo(np.int64).min), situation.operations.created[operations]))
    order = np.lexsort((created, -weights, above))
    sorted_above = above[order]
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order)) - np.searchsorted(sorted_above, sorted_above)
    pool_scale[pools], scale[operations] = 1.0, 1.0
    pool_shift[pools], shift[operations] = rank[: len(pools)], rank[len(pools) :]
