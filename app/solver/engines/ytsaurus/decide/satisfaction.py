"""How well an element's usage fills its fair share, and the comparison that statuses and groups rest on.

Shares have one row an element and one column a resource. Numbers within ``EPSILON`` of each other are equal.
"""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import (
    Flags,
    Floats,
    Ints,
    all_of,
    any_of,
    by_level,
    least,
    most,
    quotients,
)

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
    return np.where(all_of(is_blocked), any_of(larger), all_of(larger | is_blocked))


def local_satisfaction(usage: Floats, fair: Floats, is_blocked: Flags) -> Floats:
    """Satisfaction of each element by its own numbers; INFINITE where nothing is due."""
    due = fair > 0
    ratio = quotients(usage, fair, due, 0.0)
    over = np.where(due, ratio, np.where(usage > EPSILON, INFINITE, 0.0))
    exceeded = np.minimum(most(over), INFINITE)
    filled = np.where(
        all_of(is_blocked), least(np.where(due, ratio, 1.0)), most(np.where(due & ~is_blocked, ratio, 0.0))
    )
    passed = any_of(usage > fair + EPSILON)
    return np.where(all_of(fair <= EPSILON), INFINITE, np.where(passed, exceeded, filled))


def pool_satisfaction(local: Floats, operations: Floats, pool: Ints, parent: Ints, depth: Ints) -> Floats:
    """The lowest satisfaction of a schedulable operation below each pool; its own where there is none. Root last.

    ``operations``, ``pool``: of the schedulable ones (``TPoolTreeCompositeElement::ComputeSatisfactionRatioAtUpdate``).
    """
    lowest = np.full(len(local), np.inf)
    np.minimum.at(lowest, pool, operations)
    for rows in reversed(by_level(depth)):
        np.minimum.at(lowest, parent[rows], lowest[rows])
    return np.where(np.isinf(lowest), local, lowest)
