"""One fair share update: who starves now, and when time alone will change that."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats
from app.solver.engines.ytsaurus.compile.operations import NEVER, STARVATION
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import FairShares, fair_shares
from app.solver.engines.ytsaurus.decide.fair_share.volumes import Update
from app.solver.engines.ytsaurus.decide.situation import Situation, situate
from app.solver.engines.ytsaurus.decide.status import (
    Starvation,
    operation_below,
    operation_starvation,
    pool_below,
    pool_starvation,
)
from app.solver.model.state import Ask


class Standing(NamedTuple):
    """What an element carries to the next update: its starvation, and since when it is below its fair share, in
    microseconds; None: it is not."""

    starvation: str
    since: int | None


@dataclass(frozen=True, slots=True)
class Updated:
    """``pools``, ``operations``: by name; ``volumes``: of pools with an integral guarantee, resource-seconds by
    resource and the share that it gave; ``changes_at``: when somebody begins to starve, or does so worse, if nothing
    else happens; ``starves``: whether anybody does."""

    pools: dict[str, Standing]
    operations: dict[str, Standing]
    volumes: dict[str, tuple[dict[str, float], float]]
    changes_at: int | None
    starves: bool


def update(cluster: CompiledState, asks: Sequence[Ask], now: int, last: int | None) -> Updated:
    """The update at ``now``, after the one at ``last``. Raises InvalidInput."""
    situation = situate(cluster, asks)
    shares = fair_shares(situation, Update(now, last))
    operations = operation_starvation(situation, operation_below(situation, shares), now)
    pools = pool_starvation(situation, pool_below(situation, shares), now)
    later = [*_later(operations, *_operation_timeouts(situation), now)]
    if situation.config.settings.enable_pool_starvation:
        later += _later(pools, *_pool_timeouts(situation), now)
    return Updated(
        pools=_standings(situation.config.tree.names, pools),
        operations=_standings(situation.operations.ids, operations),
        volumes=_volumes(situation, shares),
        changes_at=min(later, default=None),
        starves=bool((operations.level > 0).any() or (pools.level > 0).any()),
    )


def _standings(names: Sequence[str], starvation: Starvation) -> dict[str, Standing]:
    rows = zip(names, starvation.level.tolist(), starvation.since.tolist(), strict=True)
    return {name: Standing(STARVATION[level], None if since == NEVER else since) for name, level, since in rows}


def _operation_timeouts(situation: Situation) -> tuple[Floats, Floats]:
    """Starving and aggressively, in microseconds; infinite where that never happens."""
    config, operations = situation.config, situation.operations
    part: Floats = np.minimum(situation.pending / config.settings.count_coefficient, 1.0)
    enabled = np.array([pool.enable_aggressive_starvation for pool in config.inherited], bool)[operations.pool]
    aggressive = np.where(enabled, config.settings.aggressive_timeout * part, np.inf)
    return operations.timeout.astype(float) * part, aggressive


def _pool_timeouts(situation: Situation) -> tuple[Floats, Floats]:
    inherited = situation.config.inherited
    timeout = np.array([pool.timeout for pool in inherited], float)
    enabled = np.array([pool.enable_aggressive_starvation for pool in inherited], bool)
    return timeout, np.where(enabled, float(situation.config.settings.aggressive_timeout), np.inf)


def _later(starvation: Starvation, timeout: Floats, aggressive: Floats, now: int) -> list[int]:
    """The first microsecond past each timeout that is still to come, of elements below their fair share."""
    found: list[int] = []
    rows = zip(starvation.since.tolist(), timeout.tolist(), aggressive.tolist(), strict=True)
    for since, *timeouts in rows:
        if since != NEVER:
            found += [at for one in timeouts if one != np.inf and (at := since + floor(one) + 1) > now]
    return found


def _volumes(situation: Situation, shares: FairShares) -> dict[str, tuple[dict[str, float], float]]:
    config = situation.config
    return {
        config.tree.names[i]: (shares.volumes.amounts(i), float(shares.ratios[i]))
        for i, own in enumerate(config.pools)
        if own.shares.integral.kind != "none"
    }
