"""How well an element's usage fills its fair share, and the comparison that statuses and groups rest on.

Shares have one row an element and one column a resource. Numbers within ``EPSILON`` of each other are equal.
"""

import numpy as np

from app.solver.engines.ytsaurus.state import Flags, Floats, Ints

EPSILON = 1e-9
INFINITE = 1e9


def blocked(fair: Floats, demand: Floats) -> Flags:
    """Resources in which the fair share already covers the demand."""
    return fair >= demand - EPSILON


def strictly_dominates(left: Floats, right: Floats, is_blocked: Flags) -> Flags:
    """YTsaurus' "strictly dominates in non-blocked resources", by row.

    ``left`` is larger in every resource that is not blocked; where all are, in some resource.
    """
    larger = left > right + EPSILON
    every: Flags = np.logical_and.reduce(larger | is_blocked, axis=-1)
    some: Flags = np.logical_or.reduce(larger, axis=-1)
    closed: Flags = np.logical_and.reduce(is_blocked, axis=-1)
    return np.where(closed, some, every)


def local_satisfaction(usage: Floats, fair: Floats, is_blocked: Flags) -> Floats:
    """Satisfaction of each element by its own numbers; INFINITE where nothing is due."""
    due = fair > 0
    ratio = np.where(due, usage / np.where(due, fair, 1.0), 0.0)
    over = np.where(due, ratio, np.where(usage > EPSILON, INFINITE, 0.0))
    exceeded = np.minimum(over.max(axis=-1, initial=0.0), INFINITE)
    least = np.where(due, ratio, 1.0).min(axis=-1, initial=np.inf)
    open_ratio = np.where(due & ~is_blocked, ratio, 0.0).max(axis=-1, initial=0.0)
    closed: Flags = np.logical_and.reduce(is_blocked, axis=-1)
    passed: Flags = np.logical_or.reduce(usage > fair + EPSILON, axis=-1)
    nothing: Flags = np.logical_and.reduce(fair <= EPSILON, axis=-1)
    return np.where(nothing, INFINITE, np.where(passed, exceeded, np.where(closed, least, open_ratio)))


def pool_satisfaction(local: Floats, operations: Floats, pool: Ints, parent: Ints, depth: Ints) -> Floats:
    """The lowest satisfaction of an operation below each pool; the pool's own where there is none. Root last."""
    lowest = np.full(len(local), np.inf)
    np.minimum.at(lowest, pool, operations)
    for level in range(int(depth.max(initial=-1)), -1, -1):
        rows = np.flatnonzero(depth == level)
        np.minimum.at(lowest, parent[rows], lowest[rows])
    return np.where(np.isinf(lowest), local, lowest)
