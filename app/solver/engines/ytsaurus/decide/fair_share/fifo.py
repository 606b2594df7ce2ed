"""What YTsaurus does beyond the order of a FIFO pool: packing gangs into its guarantee, and cutting those left short.

``ReorderFifoChildrenForGuaranteeUtilization`` (newest) and ``TruncateFairShareInFifoPools`` (older releases).
"""

from dataclasses import replace

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, add_upwards, all_of, any_of
from app.solver.engines.ytsaurus.decide.fair_share.children import Children
from app.solver.engines.ytsaurus.decide.fair_share.doubles import EPSILON
from app.solver.engines.ytsaurus.decide.fair_share.operation_curves import Demands
from app.solver.engines.ytsaurus.decide.situation import Situation


def reordered(situation: Situation, children: Children, demands: Demands, strong: Floats) -> Children:
    """``children`` in the order in which they are served: those first that fit into the guarantee of their pool.

    Only gangs that wait are put off, and none past another operation that does not fit."""
    settings = situation.config.settings.shares
    if not (settings.gang_steps and settings.reorder_fifo):
        return children
    shift = children.shift.copy()
    for pool, own in enumerate(situation.config.pools):
        guarded = bool((strong[pool] > EPSILON).any())
        if children.fifo[pool] and own.shares.gang_steps and own.shares.reorder_fifo and guarded:
            rows = np.flatnonzero(situation.operation_parent == pool)
            rows = rows[np.argsort(children.shift[rows])]
            shift[_packed(situation, rows.tolist(), demands, strong[pool])] = np.sort(children.shift[rows])
    return replace(children, shift=shift)


def _packed(situation: Situation, rows: list[int], demands: Demands, guarantee: Floats) -> list[int]:
    gang = situation.operations.gang
    running = any_of(situation.usage > 0)
    taken: list[int] = []
    put_off: list[int] = []
    accepted = np.zeros_like(guarantee)
    stopped = False
    for row in rows:
        demand, limits = demands.demand[row], demands.limits[row]
        never = gang[row] and not (limits >= demand).all()
        wanted = np.zeros_like(demand) if never else np.minimum(demand, limits)
        fits = bool((accepted + wanted <= guarantee + EPSILON).all())
        if stopped or (gang[row] and not running[row] and not fits):
            put_off.append(row)
            continue
        stopped = not fits and not gang[row]
        taken.append(row)
        accepted = accepted + wanted
    return taken + put_off


def truncated(
    situation: Situation, children: Children, demand: Floats, fair: Floats, pool_fair: Floats
) -> tuple[Floats, Floats]:
    """Fair shares without those of gangs in FIFO pools that would get less than their demand."""
    above = situation.operation_parent
    cut = np.array([pool.shares.truncate_fifo for pool in situation.config.pools], bool)
    short = ~all_of(fair + EPSILON >= demand) & any_of(fair != 0)
    rows = np.flatnonzero(children.fifo[above] & cut[above] & situation.operations.gang & short)
    if not len(rows):
        return fair, pool_fair
    lost = np.zeros_like(pool_fair)
    np.add.at(lost, above[rows], fair[rows])
    add_upwards(lost, situation.parent, situation.depth)
    fair = fair.copy()
    fair[rows] = 0.0
    return fair, np.where(any_of(lost != 0)[:, None], np.maximum(pool_fair - lost, 0.0), pool_fair)
