"""How well usage fills a fair share; status and starvation as of ``now``; when time alone will change that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.fair_shares import Due, FairShares, due_shares, fair_shares
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    STARVATION,
    Flags,
    Floats,
    Ints,
    Levels,
    all_of,
    any_of,
    by_level,
    least,
    most,
    quotients,
)
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.engines.ytsaurus.volumes import Update
from app.solver.model.state import Ask

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


SATISFIABLE = 1e-4


@dataclass(frozen=True, slots=True)
class Starvation:
    """``below``: status below_fair_share; ``level``: 0, 1 starving, 2 aggressively; ``since``: NEVER when normal."""

    below: Flags
    level: Levels
    since: Ints


def operation_below(situation: Situation, shares: Due | FairShares) -> Flags:
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


def pool_below(situation: Situation, shares: Due | FairShares) -> Flags:
    """The same for pools, the root left out; a pool keeps its tolerance."""
    tolerance = situation.config.columns.tolerance
    root = situation.root
    fair, demand = shares.pool_fair[:root], shares.pool_demand[:root]
    due = np.minimum(fair * tolerance[:, None], demand)
    return strictly_dominates(due, shares.pool_usage[:root], blocked(fair, demand))


def operation_starvation(situation: Situation, below: Flags, now: int) -> Starvation:
    """How starvation of each operation moves on. With few allocations pending both timeouts are shorter."""
    config, operations = situation.config, situation.operations
    enabled = config.columns.enable_aggressive_starvation
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
    timeout = config.columns.timeout.astype(float)
    aggressive = np.full(len(below), config.settings.aggressive_timeout, float)
    enabled = config.columns.enable_aggressive_starvation
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


class Standing(NamedTuple):
    """What an element carries to the next update: its starvation, and since when it is below its fair share, in
    microseconds; None: it is not."""

    starvation: str
    since: int | None


@dataclass(frozen=True, slots=True)
class Updated:
    """``pools``: by name; ``operations``: of those that starve or are below their fair share; ``moved``: of those that
    run and carry something else than before; ``volumes``: of pools with an integral guarantee, resource-seconds by
    resource and the share that it gave; ``changes_at``: when somebody begins to starve, or does so worse, if nothing
    else happens; ``starves``: whether anybody does."""

    pools: dict[str, Standing]
    operations: dict[str, Standing]
    moved: dict[str, Standing]
    volumes: dict[str, tuple[dict[str, float], float]]
    changes_at: int | None
    starves: bool


def update(cluster: CompiledState, asks: Sequence[Ask], now: int, last: int | None) -> Updated:
    """The update at ``now``, after the one at ``last``. Raises InvalidInput."""
    situation = situate(cluster, asks)
    config = situation.config
    volumes: dict[str, tuple[dict[str, float], float]] = {}
    if any(pool.shares.integral.kind != "none" for pool in config.pools):
        shares = fair_shares(situation, Update(now, last))
        volumes = _volumes(situation, shares)
    else:
        shares = due_shares(situation)
    pools = pool_starvation(situation, pool_below(situation, shares), now)
    operations = operation_starvation(situation, operation_below(situation, shares), now)
    later = [*_later(operations, *_operation_timeouts(situation), now)]
    if config.settings.enable_pool_starvation:
        later += _later(pools, *_pool_timeouts(situation), now)
    own = situation.operations
    running = len(cluster.operations)
    moved = (operations.level[:running] != own.starvation[:running]) | (
        operations.since[:running] != own.since[:running]
    )
    return Updated(
        pools=_standings(config.tree.names, pools, range(situation.root)),
        operations=_standings(
            own.ids, operations, np.flatnonzero((operations.level > 0) | (operations.since != NEVER))
        ),
        moved=_standings(own.ids, operations, np.flatnonzero(moved)),
        volumes=volumes,
        changes_at=min(later, default=None),
        starves=bool((operations.level > 0).any() or (pools.level > 0).any()),
    )


def _standings(names: Sequence[str], starvation: Starvation, rows: Iterable[int]) -> dict[str, Standing]:
    """Of ``rows``, by name."""
    out: dict[str, Standing] = {}
    for row in rows:
        since = int(starvation.since[row])
        out[names[row]] = Standing(STARVATION[int(starvation.level[row])], None if since == NEVER else since)
    return out


def _operation_timeouts(situation: Situation) -> tuple[Floats, Floats]:
    """Starving and aggressively, in microseconds; infinite where that never happens."""
    config, operations = situation.config, situation.operations
    part: Floats = np.minimum(situation.pending / config.settings.count_coefficient, 1.0)
    enabled = config.columns.enable_aggressive_starvation[operations.pool]
    aggressive = np.where(enabled, config.settings.aggressive_timeout * part, np.inf)
    return operations.timeout.astype(float) * part, aggressive


def _pool_timeouts(situation: Situation) -> tuple[Floats, Floats]:
    columns = situation.config.columns
    enabled = columns.enable_aggressive_starvation
    return columns.timeout.astype(float), np.where(enabled, float(situation.config.settings.aggressive_timeout), np.inf)


def _later(starvation: Starvation, timeout: Floats, aggressive: Floats, now: int) -> list[int]:
    """The first microsecond past each timeout that is still to come, of elements below their fair share."""
    found: list[int] = []
    armed = np.flatnonzero(starvation.since != NEVER)
    columns = (starvation.since[armed].tolist(), timeout[armed].tolist(), aggressive[armed].tolist())
    for since, *timeouts in zip(*columns, strict=True):
        found += [at for one in timeouts if one != np.inf and (at := since + floor(one) + 1) > now]
    return found


def _volumes(situation: Situation, shares: FairShares) -> dict[str, tuple[dict[str, float], float]]:
    config = situation.config
    return {
        config.tree.names[i]: (shares.volumes.amounts(i), float(shares.ratios[i]))
        for i, own in enumerate(config.pools)
        if own.shares.integral.kind != "none"
    }
