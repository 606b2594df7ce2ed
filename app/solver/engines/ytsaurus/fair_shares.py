"""Fair shares of a pool tree: guarantees first, the rest additively by weight; limits, demand and FIFO pools. And how
well usage fills them: status and starvation at an update, and when time alone will change that.

Bottom-up every element gets the curve of what it takes of a suggestion; top-down the root is suggested the whole
cluster and each pool hands on what its fit factor says. The rules are those of ``yt/yt/library/vector_hdrf``.
"""

from collections.abc import Callable, Iterable, Sequence
from math import floor
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, promised_tops
from app.solver.engines.ytsaurus.curves import EDGE
from app.solver.engines.ytsaurus.exact import Exact, reordered, truncated
from app.solver.engines.ytsaurus.guarantees import Functions, IntegralShares, Update, Volumes, granted, to_shares
from app.solver.engines.ytsaurus.operations import (
    NEVER,
    ROUNDING,
    SATISFIABLE,
    UNLIMITED_STEPS,
    Flags,
    Floats,
    Ints,
    Levels,
    Standing,
    all_of,
    any_of,
    least,
    most,
    pool_sums,
    quotients,
)
from app.solver.engines.ytsaurus.polyline import EPSILON, in_order
from app.solver.engines.ytsaurus.pool_curves import LevelCurves, divided_by_kinds
from app.solver.engines.ytsaurus.situation import (
    SLACK,
    Children,
    Demands,
    Situation,
    best_allocation,
    children_of,
    situate,
)
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.state import Ask

NO_UPDATE = Update()
MOST_EXACT = 1_000
"""Pools and operations of a tree whose shares are worked out again where the last bits decide: up to a second."""
FAR = 1e4
"""Demands of so many clusters are so steep that positions within 1e-12, which are one, differ by 1e-8 of it."""


class FairShares(Struct, frozen=True, eq=False):
    """Shares, by operation and by pool (the root last); one column a resource. ``weight``: of pools.

    ``pool_integral``: proposed integral shares; ``promised``: what is guaranteed to operations and to pools that ask
    for it to be worked out, else None; ``place``, ``served``: of operations in FIFO pools, by order and as they are
    served."""

    usage: Floats
    demand: Floats
    limits: Floats
    fair: Floats
    pool_usage: Floats
    pool_demand: Floats
    pool_limits: Floats
    pool_strong: Floats
    pool_integral: Floats
    pool_fair: Floats
    pool_weight: Floats
    promised: tuple[Floats, Floats] | None
    fifo: Flags
    place: Ints
    served: Ints
    burst: Floats
    flow: Floats
    volumes: Volumes
    ratios: Floats
    alerts: list[int]


class Due(NamedTuple):
    """What decisions read of fair shares, by operation and by pool (the root last); one column a resource."""

    usage: Floats
    demand: Floats
    fair: Floats
    pool_usage: Floats
    pool_demand: Floats
    pool_fair: Floats


def due_shares(situation: Situation) -> Due:
    """Those of ``fair_shares`` that decisions read, with volumes as carried; sooner where all demand fits, or where
    nothing that they depend on has changed since they were worked out last. Raises InvalidInput."""
    if any(pool.shares.integral.kind != "none" for pool in situation.config.pools):
        return _due(fair_shares(situation))  # volumes change with time
    if situation.due:
        return situation.due[0]
    config, cluster, own = situation.config, situation.cluster, situation.operations
    key = (
        situation.usage, situation.wanted, own.pool, own.weight, own.created, own.gang, own.limits, situation.tagged,
        situation.pool_limits, situation.pool_tagged, cluster.total, cluster.node_limits, np.array(cluster.index.names),
        config.settings, config.pools, config.tree,
    )  # fmt: skip
    due: Due | None = cluster.recent.get("due", key)
    if due is None:
        due = _sooner(situation, _demands(situation)) or _due(fair_shares(situation))
        cluster.recent.put("due", key, due)
    situation.due.append(due)
    return due


def _due(of: FairShares) -> Due:
    return Due(of.usage, of.demand, of.fair, of.pool_usage, of.pool_demand, of.pool_fair)


def is_additive(config: CompiledConfiguration) -> bool:
    """Whether what is left after guarantees goes by given weights everywhere, and to anybody bit by bit."""
    shares = config.settings.shares
    if shares.gang_steps or shares.improved or config.settings.infer_weight is not None:
        return False
    if any(pool.mode == "fifo" or pool.shares.integral.kind != "none" for pool in config.pools):
        return False
    return all(given is None or given >= SLACK for given in config.weights)


def plain_tree(config: CompiledConfiguration) -> bool:
    """Whether all that fits is everybody's share, and every node takes all that fits it."""
    settings = config.settings
    if not is_additive(config) or settings.best_allocation_share or settings.min_spare or settings.absolute_tolerance:
        return False
    return not any(pool.shares.tags is not None or pool.forbid_operations for pool in config.pools)


def leaves_room(demand: Floats, limits: Floats) -> bool:
    """Whether every pool may have all that is wanted in it."""
    return bool(((demand <= limits - SLACK) | (demand == 0)).all())


def _sooner(situation: Situation, demands: Demands) -> Due | None:
    """Where every operation surely gets its demand: limits leave room for all of it, in every pool and at the root, and
    none is served before another. Then every pool is suggested all that there is, and takes what is wanted below. And
    where nobody looks at more than what shares decide: but for rounding, which decides nothing then."""
    cluster = situation.cluster
    if not (is_additive(situation.config) and (situation.operations.weight > SLACK).all()):
        return None
    steps = situation.pool_usage.astype(float)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    limits, pool_demand = _pool_limits(situation), shares_of(cluster, steps + wanted)
    fair, pool_fair = demands.demand, pool_demand
    if not ((demands.demand <= demands.limits).all() and leaves_room(pool_demand, limits)):
        if not cluster.recent.rough:
            return None
        _, fit, weight = granted(situation, limits)
        divided = divided_by_kinds(situation, demands, children_of(situation, weight), fit.strong, limits)
        if divided is None or (np.abs(demands.demand - divided[0] - SATISFIABLE) < ROUNDING).any():
            return None
        fair, pool_fair = divided
    return Due(demands.usage, demands.demand, fair, shares_of(cluster, steps), pool_demand, pool_fair)


def fair_shares(situation: Situation, update: Update = NO_UPDATE) -> FairShares:
    """Compute them, as of ``update``; without one, volumes are as carried. Raises InvalidInput for a bad one."""
    demands = _demands(situation)
    usage_steps = situation.pool_usage.astype(float)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    pool_demand = shares_of(situation.cluster, usage_steps + wanted)
    limits = _pool_limits(situation)
    promises, fit, weight = granted(situation, limits)
    volumes = Volumes(situation, promises.flow, promises.total_flow, update)
    in_order_of = children_of(situation, weight)
    children = reordered(situation, in_order_of, demands, fit.strong)

    def divided(functions: Functions) -> _Division:
        integral = IntegralShares(situation, functions, fit.strong, limits, volumes)
        integral.propose(fit.burst, promises.flow, pool_demand)
        functions.prepare(situation.root, fit.strong + integral.proposed, limits)
        fair = functions.divided(np.array([situation.root]), 1.0)
        return _Division(integral, *fair, _promised(situation, functions))

    barred = bool(((limits <= EDGE) & (pool_demand > EDGE)).any())
    division = _divided(situation, demands, children, weight, divided, barred=barred)
    fair, pool_fair = truncated(situation, children, demands.demand, division.fair, division.pool_fair)
    promised = division.promised
    if promised is not None:
        promised = truncated(situation, children, demands.demand, *promised)
    pool_fair[situation.root] = in_order(pool_fair[np.flatnonzero(situation.depth == 0)])
    return FairShares(
        usage=demands.usage, demand=demands.demand, limits=demands.limits, fair=fair,
        pool_usage=shares_of(situation.cluster, usage_steps),
        pool_demand=pool_demand, pool_limits=limits, pool_strong=fit.strong,
        pool_integral=division.integral.proposed, pool_fair=pool_fair, pool_weight=weight, promised=promised,
        fifo=children.fifo, place=in_order_of.shift.astype(np.int64), served=children.shift.astype(np.int64),
        burst=fit.burst, flow=promises.flow, volumes=volumes, ratios=division.integral.ratios, alerts=fit.alerts,
    )  # fmt: skip


def _demands(situation: Situation) -> Demands:
    usage = situation.usage.astype(float)
    limits = limit_shares(situation.cluster, situation.operations.limits, situation.tagged)
    return Demands(
        shares_of(situation.cluster, usage),
        shares_of(situation.cluster, usage + situation.wanted),
        np.minimum(limits, best_allocation(situation)),
    )


class _Division(NamedTuple):
    integral: IntegralShares
    fair: Floats
    pool_fair: Floats
    promised: tuple[Floats, Floats] | None


def _divided(
    situation: Situation,
    demands: Demands,
    children: Children,
    weight: Floats,
    divided: Callable[[Functions], _Division],
    *,
    barred: bool,
) -> _Division:
    """All pools of a level at once. Pool by pool, to the last bit, where gangs get all or nothing, or a pool keeps the
    function it had before one below it got an integral share; and where something else hangs on the last bits, in a
    tree small enough for it. Where a pool is ``barred`` from a resource that operations want, any last bits of it in
    their functions stop the pool; demands of thousands of clusters are too steep."""
    settings = situation.config.settings.shares
    situation.cluster.recent.turn()
    if not (settings.gang_steps or settings.improved):
        levels = LevelCurves(situation, demands, children)
        division = divided(levels)
        far = bool((demands.demand > FAR).any())
        sensitive = levels.sensitive or division.integral.close or far or (barred and levels.has_edges())
        small = len(situation.operations) + situation.root <= MOST_EXACT
        if not (levels.stale or (sensitive and small)):
            return division
    return divided(Exact(situation, demands, children, weight))


def _promised(situation: Situation, functions: Functions) -> tuple[Floats, Floats] | None:
    """What pools that ask for it, and all below, get of their guarantees alone."""
    tops = promised_tops(situation.config)
    return functions.divided(np.array(tops), 0.0) if tops else None


def shares_of(cluster: CompiledState, steps: Floats) -> Floats:
    """Steps as parts of the cluster. The origin divides whole units: so do we, for the last bits."""
    scales, total, everything = _scales(cluster)
    return steps / scales / total if everything else to_shares(steps / scales, total)


def plain_scales(cluster: CompiledState) -> tuple[list[float], list[float]]:
    """Steps of a unit, by resource, and units of the cluster: ``shares_of`` divides by both."""
    scales, total, _ = _scales(cluster)
    return scales.tolist(), total.tolist()


def _scales(cluster: CompiledState) -> tuple[Floats, Floats, bool]:
    known: tuple[Floats, Floats, bool] | None = cluster.recent.get("scales", (cluster.index, cluster.total))
    if known is None:
        scales = np.array(cluster.index.scales, float)
        known = scales, cluster.total / scales, bool((cluster.total > 0).all())
        cluster.recent.put("scales", (cluster.index, cluster.total), known)
    return known


def _pool_limits(situation: Situation) -> Floats:
    key = (situation.pool_limits, situation.pool_tagged, situation.cluster.index, situation.cluster.total)
    limits: Floats | None = situation.cluster.recent.get("pool_limits", key)
    if limits is None:
        limits = limit_shares(situation.cluster, situation.pool_limits, situation.pool_tagged)
        situation.cluster.recent.put("pool_limits", key, limits)
    return limits


def limit_shares(cluster: CompiledState, limits: Ints, tagged: Ints) -> Floats:
    """Limits and what filters leave, in steps, as parts of the cluster: the whole of it where there is none."""
    total = cluster.total
    given = np.minimum(limits, tagged)
    return shares_of(cluster, np.minimum(np.where(given < UNLIMITED_STEPS, given.astype(float), np.inf), total))


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


class Starvation(Struct, frozen=True, eq=False):
    """``below``: status below_fair_share; ``level``: 0, 1 starving, 2 aggressively; ``since``: NEVER when normal."""

    below: Flags
    level: Levels
    since: Ints


def operation_below(situation: Situation, shares: Due | FairShares) -> Flags:
    """Which operations are below their fair share. Suspended operations are normal."""
    operations = situation.operations
    below = lacking(shares.usage, shares.demand, shares.fair, operations.tolerance) & ~operations.suspended
    is_blocked = blocked(shares.fair, shares.demand)
    if situation.config.settings.absolute_tolerance:
        lacks_one = strictly_dominates(shares.fair - shares.usage, _smallest_need(situation), is_blocked)
        below &= lacks_one | satisfiable(shares.demand, shares.fair) | (situation.pending == 0)
    return below


def satisfiable(demand: Floats, fair: Floats) -> Flags:
    """Whose whole demand is covered."""
    return all_of(fair + SATISFIABLE >= demand)


def lacking(usage: Floats, demand: Floats, fair: Floats, tolerance: Floats) -> Flags:
    """Which operations have less than their fair share, within ``tolerance``, which is 1 where the fair share covers
    the whole demand."""
    given = np.where(satisfiable(demand, fair), 1.0, tolerance)
    due = np.minimum(fair * given[:, None], demand)
    return strictly_dominates(due, usage, blocked(fair, demand))


def pools_lacking(usage: Floats, demand: Floats, fair: Floats, tolerance: Floats) -> Flags:
    """The same of pools, which keep their tolerance."""
    return strictly_dominates(np.minimum(fair * tolerance[:, None], demand), usage, blocked(fair, demand))


def pool_below(situation: Situation, shares: Due | FairShares) -> Flags:
    """The same for pools, the root left out."""
    root = situation.root
    usage, demand, fair = shares.pool_usage[:root], shares.pool_demand[:root], shares.pool_fair[:root]
    return pools_lacking(usage, demand, fair, situation.config.columns.tolerance)


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


class Updated(Struct, frozen=True, eq=False):
    """``pools``: by name; ``operations``: of those that starve or are below their fair share; ``moved``: of those that
    run and carry something else than before; ``volumes``: of pools with an integral guarantee, resource-seconds by
    resource and the share that it gave; ``changes_at``: when somebody begins to starve, or does so worse, if nothing
    else happens; ``starves``: whether anybody does; ``satisfied``: whether all demand is due, as it fits."""

    pools: dict[str, Standing]
    operations: dict[str, Standing]
    moved: dict[str, Standing]
    volumes: dict[str, tuple[dict[str, float], float]]
    changes_at: int | None
    starves: bool
    satisfied: bool


def fair_share_update(cluster: CompiledState, asks: Sequence[Ask], now: int, last: int | None) -> Updated:
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
        satisfied=shares.fair is shares.demand,
    )


def _standings(names: Sequence[str], starvation: Starvation, rows: Iterable[int]) -> dict[str, Standing]:
    """Of ``rows``, by name."""
    return {names[row]: Standing.of(int(starvation.level[row]), int(starvation.since[row])) for row in rows}


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
    instants: list[int] = []
    armed = np.flatnonzero(starvation.since != NEVER)
    columns = (starvation.since[armed].tolist(), timeout[armed].tolist(), aggressive[armed].tolist())
    for since, *timeouts in zip(*columns, strict=True):
        instants += [
            instant for duration in timeouts if duration != np.inf and (instant := since + floor(duration) + 1) > now
        ]
    return instants


def _volumes(situation: Situation, shares: FairShares) -> dict[str, tuple[dict[str, float], float]]:
    config = situation.config
    return {
        config.tree.names[i]: (shares.volumes.amounts(i), float(shares.ratios[i]))
        for i, own in enumerate(config.pools)
        if own.shares.integral.kind != "none"
    }
