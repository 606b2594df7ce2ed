"""Who may preempt, and whose allocations may be taken."""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags
from app.solver.engines.ytsaurus.compile.operations import Levels
from app.solver.engines.ytsaurus.decide.situation import Situation
from app.solver.engines.ytsaurus.decide.split import AGGRESSIVELY_PREEMPTIBLE, NON_PREEMPTIBLE

NO_PRIORITY, NORMAL, AGGRESSIVE = 0, 1, 2


def priorities(situation: Situation) -> Levels:
    """Preemption priority of each operation: its own starvation and, unless the scope forbids, its pools'."""
    own = situation.operations.starvation
    if situation.config.settings.scope == "operation_only":
        return own
    above = situation.cluster.pool_starvation.copy()
    for pool in situation.config.tree.top_down:
        parent = situation.parent[pool]
        if parent != situation.root:
            above[pool] = max(above[pool], above[parent])
    return np.maximum(own, above[situation.operations.pool])


def aggressive_allowed(situation: Situation) -> Flags:
    """Whose aggressively preemptible allocations may be taken: by pool, and for gangs by the tree's setting."""
    allowed = np.array([pool.allow_aggressive for pool in situation.config.inherited], bool)
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
    allowed = np.array([pool.allow_normal for pool in situation.config.inherited], bool)
    return allowed[situation.operations.pool]
