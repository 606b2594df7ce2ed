"""Fair shares of a pool tree: guarantees first, the rest additively by weight; limits, demand and FIFO pools.

Bottom-up every element gets the curve of what it takes of a suggestion; top-down the root is suggested the whole
cluster and each pool hands on what its fit factor says. The rules are those of ``yt/yt/library/vector_hdrf``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.configuration import promised_tops
from app.solver.engines.ytsaurus.exact import Exact, reordered, truncated
from app.solver.engines.ytsaurus.guarantees import Functions, IntegralShares, fitted, pool_weights, specified, to_shares
from app.solver.engines.ytsaurus.operations import UNLIMITED_STEPS, Flags, Floats, Ints, quotients
from app.solver.engines.ytsaurus.polyline import in_order
from app.solver.engines.ytsaurus.pool_curves import Children, Demands, Levels, children_of
from app.solver.engines.ytsaurus.situation import Situation, pool_sums
from app.solver.engines.ytsaurus.volumes import Update, Volumes

NO_UPDATE = Update()
MOST_EXACT = 1_000
"""Pools and operations of a tree whose shares are worked out again where the last bits decide: up to a second."""


@dataclass(frozen=True, slots=True)
class FairShares:
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
    demands = _demands(situation)
    if (due := _satisfied(situation, demands)) is not None:
        return due
    if any(pool.shares.integral.kind != "none" for pool in situation.config.pools):
        return _due(fair_shares(situation))
    config, cluster, own = situation.config, situation.cluster, situation.operations
    key = (
        config.settings.shares, config.pools, config.tree, cluster.total, np.array(cluster.index.names),
        demands.usage, demands.demand, demands.limits, situation.usage, situation.wanted, situation.pool_limits,
        situation.pool_tagged, own.pool, own.weight, own.created, own.gang,
    )  # fmt: skip
    found: Due | None = cluster.recent.get("due", key)
    if found is None:
        found = _due(fair_shares(situation))
        cluster.recent.put("due", key, found)
    return found


def _due(of: FairShares) -> Due:
    return Due(of.usage, of.demand, of.fair, of.pool_usage, of.pool_demand, of.pool_fair)


_SLACK = 1e-6
"""A part of the cluster, and a weight, that no sum of doubles is off by."""


def _satisfied(situation: Situation, demands: Demands) -> Due | None:
    """Where every operation surely gets its demand: limits leave room for all of it, in every pool and at the root, and
    none is served before another. Then every pool is suggested all that there is, and takes what is wanted below."""
    config, own = situation.config, situation.operations
    if config.settings.shares.gang_steps or config.settings.shares.improved:
        return None
    if any(pool.mode == "fifo" or pool.shares.integral.kind != "none" for pool in config.pools):
        return None
    if (
        any(given is not None and given < _SLACK for given in config.weights)
        or config.settings.infer_weight is not None
    ):
        return None
    if not (own.weight > _SLACK).all() or not (demands.demand <= demands.limits).all():
        return None
    steps = situation.pool_usage.astype(float)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    limits = _limits(situation, situation.pool_limits, situation.pool_tagged)
    pool_demand = _shares(situation, steps + wanted)
    if not ((pool_demand <= limits - _SLACK) | (pool_demand == 0)).all():
        return None
    return Due(demands.usage, demands.demand, demands.demand, _shares(situation, steps), pool_demand, pool_demand)


def fair_shares(situation: Situation, update: Update = NO_UPDATE) -> FairShares:
    """Compute them, as of ``update``; without one, volumes are as carried. Raises InvalidInput for a bad one."""
    demands = _demands(situation)
    usage_steps = situation.pool_usage.astype(float)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    pool_demand = _shares(situation, usage_steps + wanted)
    limits = _limits(situation, situation.pool_limits, situation.pool_tagged)
    promises = specified(situation)
    volumes = Volumes(situation, promises.flow, promises.total_flow, update)
    fit = fitted(situation, promises, limits)
    weight = pool_weights(situation.config, situation.parent, fit.strong, promises.total_flow)
    in_order_of = children_of(situation, weight)
    children = reordered(situation, in_order_of, demands, fit.strong)

    def divided(functions: Functions) -> _Division:
        integral = IntegralShares(situation, functions, fit.strong, limits, volumes)
        integral.propose(fit.burst, promises.flow, pool_demand)
        functions.prepare(situation.root, fit.strong + integral.proposed, limits)
        fair = functions.divided(np.array([situation.root]), 1.0)
        return _Division(integral, *fair, _promised(situation, functions))

    division = _divided(situation, demands, children, weight, divided)
    fair, pool_fair = truncated(situation, children, demands.demand, division.fair, division.pool_fair)
    pool_fair[situation.root] = in_order(pool_fair[np.flatnonzero(situation.depth == 0)])
    return FairShares(
        usage=demands.usage, demand=demands.demand, limits=demands.limits, fair=fair,
        pool_usage=_shares(situation, usage_steps),
        pool_demand=pool_demand, pool_limits=limits, pool_strong=fit.strong,
        pool_integral=division.integral.proposed, pool_fair=pool_fair, pool_weight=weight, promised=division.promised,
        fifo=children.fifo, place=in_order_of.shift.astype(np.int64), served=children.shift.astype(np.int64),
        burst=fit.burst, flow=promises.flow, volumes=volumes, ratios=division.integral.ratios, alerts=fit.alerts,
    )  # fmt: skip


def _demands(situation: Situation) -> Demands:
    usage = situation.usage.astype(float)
    limits = _limits(situation, situation.operations.limits, situation.tagged)
    return Demands(
        _shares(situation, usage),
        _shares(situation, usage + situation.wanted),
        np.minimum(limits, _best_allocation(situation)),
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
) -> _Division:
    """All pools of a level at once. Pool by pool, to the last bit, where gangs get all or nothing; and where
    something else hangs on the last bits, in a tree small enough for it."""
    settings = situation.config.settings.shares
    if not (settings.gang_steps or settings.improved):
        levels = Levels(situation, demands, children)
        found = divided(levels)
        if not levels.sensitive or len(situation.operations) + situation.root > MOST_EXACT:
            return found
    return divided(Exact(situation, demands, children, weight))


def _promised(situation: Situation, functions: Functions) -> tuple[Floats, Floats] | None:
    """What pools that ask for it, and all below, get of their guarantees alone."""
    tops = promised_tops(situation.config)
    return functions.divided(np.array(tops), 0.0) if tops else None


def _shares(situation: Situation, steps: Floats) -> Floats:
    """Steps as parts of the cluster. The origin divides whole units: so do we, for the last bits."""
    return to_shares(situation.units(steps), situation.total)


def _limits(situation: Situation, limits: Ints, tagged: Ints) -> Floats:
    total = situation.cluster.total
    given = np.minimum(limits, tagged)
    return _shares(situation, np.minimum(np.where(given < UNLIMITED_STEPS, given.astype(float), np.inf), total))


def _best_allocation(situation: Situation) -> Floats:
    """What an operation could use at best, where asked for: each node holds whole allocations of average memory.

    The recorded decisions leave this cut out, so it is off by default; see docs/engines/ytsaurus.md.
    """
    index, total = situation.cluster.index.index, situation.cluster.total
    out = np.full((len(situation.operations), len(total)), np.inf)
    memory, slots = index.get("memory"), index.get("user_slots")
    if not situation.config.settings.best_allocation_share or memory is None or slots is None or total[memory] <= 0:
        return out
    wanted = situation.usage.astype(float) + situation.wanted
    many = wanted[:, slots] > 0
    average = np.floor(quotients(wanted[:, memory], wanted[:, slots], many, 0.0))
    rows = np.flatnonzero(average > 0)
    sizes, kind = np.unique(average[rows], return_inverse=True)
    held, nodes = np.unique(np.maximum(situation.cluster.node_limits[:, memory], 0), return_counts=True)
    best = np.zeros(len(sizes))
    for memory_of_node, count in zip(held.astype(float), nodes, strict=True):
        best += np.floor(memory_of_node / sizes) * count
    out[rows, memory] = (best * sizes / total[memory])[kind]
    return out
