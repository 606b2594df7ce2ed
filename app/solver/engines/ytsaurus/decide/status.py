"""Status and starvation as of ``now``, given the state that the last answer left.

Both are re-evaluated at each fair share update; a request to /v1/shares is one. Instants in microseconds.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, all_of
from app.solver.engines.ytsaurus.compile.operations import NEVER, Levels
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import FairShares
from app.solver.engines.ytsaurus.decide.fair_share.guarantees import to_shares
from app.solver.engines.ytsaurus.decide.satisfaction import blocked, strictly_dominates
from app.solver.engines.ytsaurus.decide.situation import Situation

SATISFIABLE = 1e-4


@dataclass(frozen=True, slots=True)
class Starvation:
    """``below``: status below_fair_share; ``level``: 0, 1 starving, 2 aggressively; ``since``: NEVER when normal."""

    below: Flags
    level: Levels
    since: Ints


def operation_below(situation: Situation, shares: FairShares) -> Flags:
    """Which operations have less than their fair share, within their tolerance.

    Where the fair share covers the whole demand the tolerance is 1. Suspended operations are normal.
    """
    operations = situation.operations
    covered = all_of(shares.fair + SATISFIABLE >= shares.demand)
    tolerance = np.where(covered, 1.0, operations.tolerance)
    is_blocked = blocked(shares.fair, shares.demand)
    due = np.minimum(shares.fair * tolerance[:, None], shares.demand)
    below = strictly_dominates(due, shares.usage, is_blocked) & ~operations.suspended
    if situation.config.settings.absolute_tolerance:
        lacks_one = strictly_dominates(shares.fair - shares.usage, _smallest_need(situation), is_blocked)
        below &= lacks_one | (situation.pending == 0)
    return below


def pool_below(situation: Situation, shares: FairShares) -> Flags:
    """The same for pools, the root left out; a pool keeps its tolerance."""
    tolerance = np.array([pool.tolerance for pool in situation.config.inherited], float)
    root = situation.root
    fair, demand = shares.pool_fair[:root], shares.pool_demand[:root]
    due = np.minimum(fair * tolerance[:, None], demand)
    return strictly_dominates(due, shares.pool_usage[:root], blocked(fair, demand))


def operation_starvation(situation: Situation, below: Flags, now: int) -> Starvation:
    """How starvation of each operation moves on. With few allocations pending both timeouts are shorter."""
    config, operations = situation.config, situation.operations
    enabled = np.array([pool.enable_aggressive_starvation for pool in config.inherited], bool)
    part: Floats = np.minimum(situation.pending / config.settings.count_coefficient, 1.0)
    aggressive = np.full(len(operations), config.settings.aggressive_timeout, float)
    return _moved(
        below, operations.starvation, operations.since, now,
        operations.timeout.astype(float) * part, aggressive * part, enabled[operations.pool],
    )  # fmt: skip


def pool_starvation(situation: Situation, below: Flags, now: int) -> Starvation:
    """How starvation of each pool moves on; it stays as it was where pools can't starve."""
    config, cluster = situation.config, situation.cluster
    if not config.settings.enable_pool_starvation:
        return Starvation(below, cluster.pool_starvation, cluster.pool_since)
    timeout = np.array([pool.timeout for pool in config.inherited], float)
    aggressive = np.full(len(below), config.settings.aggressive_timeout, float)
    enabled = np.array([pool.enable_aggressive_starvation for pool in config.inherited], bool)
    return _moved(below, cluster.pool_starvation, cluster.pool_since, now, timeout, aggressive, enabled)


def _moved(
    below: Flags, level: Levels, since: Ints, now: int, timeout: Floats, aggressive_timeout: Floats, enabled: Flags
) -> Starvation:
    """Normal: not starving at once. Newly below: only the clock starts. Later: by how long it has been below."""
    armed = since != NEVER
    waited = np.where(armed, now - np.where(armed, since, now), 0)
    starving = armed & (waited > timeout)
    aggressively = armed & enabled & (waited > aggressive_timeout)
    moved = np.where(aggressively, 2, np.where(starving, 1, level))
    return Starvation(
        below=below,
        level=np.where(below, moved, 0).astype(np.int8),
        since=np.where(below, np.where(armed, since, now), NEVER),
    )


def _smallest_need(situation: Situation) -> Floats:
    """The smallest allocation that each operation still wants, resource by resource, as shares."""
    out = np.full(situation.usage.shape, np.inf)
    np.minimum.at(out, situation.wants.operation, situation.wants.need.astype(float))
    return to_shares(np.where(np.isinf(out), 0.0, out), situation.cluster.total)
