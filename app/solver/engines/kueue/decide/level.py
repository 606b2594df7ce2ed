"""How far up the tree quota for a request comes from: Kueue's borrowing level.

Source: ``FindHeightOfLowestSubtreeThatFits``. The level is the height of a cohort (its longest way down to a
queue), not the number of steps taken upwards, and limits play no part in it.
"""

from typing import NamedTuple

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.usage import Usage


class Level(NamedTuple):
    """``height`` of the lowest subtree whose quota covers usage and request, the root's when none does;
    ``below_root``: whether that subtree is a part of the tree only, so that capacity can be reclaimed from the
    rest of the hierarchy."""

    height: int
    below_root: bool


def borrowing_level(configuration: CompiledConfiguration, usage: Usage, queue: int, fr: int, amount: int) -> Level:
    """Where ``amount`` more of ``fr`` for ``queue`` would come from."""
    quotas, used = usage.quotas, usage.used
    parent = configuration.tree.parent
    has_parent = parent[queue] != ROOTLESS
    cell = quotas.cells[queue][fr]
    if not has_parent or used[cell] + amount <= quotas.nominal[cell]:
        return Level(0, has_parent)
    rest = amount - max(0, quotas.local[cell] - used[cell])
    node = queue
    while parent[node] != ROOTLESS:
        node, cell = parent[node], quotas.above[cell]
        if used[cell] + rest <= quotas.subtree[cell]:
            break
        rest -= max(0, quotas.local[cell] - used[cell])
    return Level(configuration.height[node], parent[node] != ROOTLESS)
