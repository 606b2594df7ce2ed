"""What each element could count on if everybody wanted all: its guarantee, and by weight what its pool has left.

``ComputeEstimatedGuaranteeShare`` (``fair_share_update.cpp``); output only.
"""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, by_level, running_sums
from app.solver.engines.ytsaurus.decide.fair_share.doubles import sums_of
from app.solver.engines.ytsaurus.decide.situation import Situation


def estimated_guarantees(situation: Situation, strong: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Shares of operations and of pools (the root last), given guarantees and weights of pools."""
    root, parent, above = situation.root, situation.parent, situation.operation_parent
    own = situation.operations.weight
    weights = np.bincount(np.concatenate((parent[:root], above)), np.concatenate((weight[:root], own)), root + 1)
    out = np.zeros_like(strong)
    out[root] = strong[root]
    left = strong.copy()
    for level in by_level(situation.depth):
        rows = level[np.argsort(parent[level], kind="stable")]
        bounds = np.append(np.flatnonzero(np.diff(parent[rows], prepend=-1)), len(rows))
        before = running_sums(strong[rows], bounds)
        given = np.clip(out[parent[rows]] - before, 0.0, strong[rows])
        left = out - sums_of(given, parent[rows], root + 1)
        out[rows] = given + left[parent[rows]] * (weight[rows] / weights[parent[rows]])[:, None]
    left = out - sums_of_children(situation, strong, out)
    return left[above] * (own / weights[above])[:, None], out


def sums_of_children(situation: Situation, strong: Floats, estimated: Floats) -> Floats:
    """By pool, how much of its estimate its pools' guarantees take."""
    rows = np.arange(situation.root)
    guaranteed = sums_of(strong[rows], situation.parent[rows], situation.root + 1)
    return np.minimum(guaranteed, estimated)
