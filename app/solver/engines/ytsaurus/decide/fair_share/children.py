"""How children follow their pool: by weight, or one after another where the pool is FIFO.

Elements are operations, then pools (the root last), each in rows as a situation has them.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, quotients
from app.solver.engines.ytsaurus.decide.fair_share.doubles import EPSILON
from app.solver.engines.ytsaurus.decide.situation import Situation


@dataclass(frozen=True, slots=True)
class Children:
    """How children follow their pool's fit factor f: suggestion = (f - shift) / scale, between 0 and 1.

    ``end``: the largest f of each pool, 1, or the number of children where they come one after another; ``fifo``:
    by pool. In a FIFO pool the shift of a child is its place."""

    scale: Floats
    shift: Floats
    pool_scale: Floats
    pool_shift: Floats
    end: Floats
    fifo: Flags

    def place(self, row: int, is_pool: bool) -> float:
        """The place of a child of a FIFO pool."""
        return float(self.pool_shift[row] if is_pool else self.shift[row])


def children_of(situation: Situation, weight: Floats) -> Children:
    """``weight``: of pools."""
    own = situation.operations.weight
    root = situation.root
    above, pool_above = situation.operation_parent, situation.parent[:root]
    smallest = np.full(root + 1, np.inf)
    np.minimum.at(smallest, above, np.where(own > EPSILON, own, np.inf))
    np.minimum.at(smallest, pool_above, np.where(weight[:root] > EPSILON, weight[:root], np.inf))
    scale = _ratio(smallest[above], own)
    pool_scale = np.append(_ratio(smallest[pool_above], weight[:root]), 1.0)
    shift, pool_shift = np.zeros(len(own)), np.zeros(root + 1)
    fifo = np.array([pool.mode == "fifo" for pool in situation.config.pools] + [False], bool)
    end = np.ones(root + 1)
    if fifo.any():
        rank, pool_rank = _ranks(situation, fifo, weight)
        inside, pool_inside = fifo[above], np.append(fifo[pool_above], False)
        scale[inside], shift[inside] = 1.0, rank[inside]
        pool_scale[pool_inside], pool_shift[pool_inside] = 1.0, pool_rank[pool_inside]
        count = np.bincount(np.concatenate((above, pool_above)))  # the root has some child
        end = np.where(fifo, np.maximum(count, 1.0), 1.0)
    return Children(scale, shift, pool_scale, pool_shift, end, fifo)


def _ratio(smallest: Floats, weight: Floats) -> Floats:
    """Smallest weight over own: infinite for a negligible one, which is never suggested anything."""
    return quotients(smallest, weight, weight > EPSILON, np.inf)


def _ranks(situation: Situation, fifo: Flags, weight: Floats) -> tuple[Ints, Ints]:
    """Places in FIFO pools, of operations and of pools: heavier first, then older, then as in the input (pools
    first)."""
    root, own = situation.root, situation.operations
    pools = np.flatnonzero(fifo[situation.parent[:root]])
    operations = np.flatnonzero(fifo[situation.operation_parent])
    above = np.concatenate((situation.parent[pools], situation.operation_parent[operations]))
    weights = np.concatenate((weight[pools], own.weight[operations]))
    created = np.concatenate((np.full(len(pools), np.iinfo(np.int64).min), own.created[operations]))
    order = np.lexsort((created, -weights, above))
    sorted_above = above[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(sorted_above, sorted_above)
    rank, pool_rank = np.zeros(len(own), np.int64), np.zeros(root + 1, np.int64)
    rank[operations], pool_rank[pools] = place[len(pools) :], place[: len(pools)]
    return rank, pool_rank
