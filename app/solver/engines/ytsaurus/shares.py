"""The body of ``POST /v1/shares``: what every pool and operation is due, and why; what it uses; how it starves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.fair_shares import FairShares, fair_shares
from app.solver.engines.ytsaurus.findings import warnings
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import NEVER, STARVATION, Floats, Ints, any_of, most
from app.solver.engines.ytsaurus.situation import Situation, pool_sums, situate
from app.solver.engines.ytsaurus.starvation import (
    Starvation,
    blocked,
    local_satisfaction,
    operation_below,
    operation_starvation,
    pool_below,
    pool_satisfaction,
    pool_starvation,
)
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.engines.ytsaurus.volumes import Update, estimated_guarantees
from app.solver.model.instant import at, micros
from app.solver.model.request import Options
from app.solver.model.state import Ask

Elements = dict[str, dict[str, Any]]


def amounts(situation: Situation, steps: Floats) -> list[dict[str, float]]:
    """Rows of steps as answers show them: whole units by resource."""
    names, rows = situation.resources, (steps / np.array(situation.cluster.index.scales)).tolist()
    # There are 100,000 of them in a large answer; not comparing lengths takes a quarter off.
    return [dict(zip(names, row)) for row in rows]  # noqa: B905


def add_details(situation: Situation, shares: FairShares, queues: Elements, workloads: Elements) -> None:
    """Write them into the elements, which are those of the situation in its order."""
    root, total = situation.root, situation.cluster.total
    estimated, pool_estimated = estimated_guarantees(situation, shares.pool_strong, shares.pool_weight)
    nothing = dict.fromkeys(situation.resources, 0.0)
    for operation, guaranteed in zip(workloads.values(), amounts(situation, estimated * total), strict=True):
        operation["fair_share_parts"] = {"strong": nothing, "integral": nothing, "weight": operation["fair_share"]}
        operation["estimated_guarantee"] = guaranteed
    _pool_parts(situation, shares, queues)
    for pool, weight, guaranteed in zip(
        queues.values(), shares.pool_weight.tolist(), amounts(situation, pool_estimated * total), strict=False
    ):
        pool |= {
            "weight": weight,
            "fair_share_from_guarantee": pool["fair_share_parts"]["strong"],
            "estimated_guarantee": guaranteed,
        }
    if shares.promised is not None:
        own, pools = shares.promised
        for elements, promised in ((workloads, own), (queues, pools[:root])):
            for element, row in zip(elements.values(), amounts(situation, promised * total), strict=True):
                element["promised_guarantee_fair_share"] = row
    _fifo(situation, shares, workloads)
    _volumes(situation, shares, queues)


def _pool_parts(situation: Situation, shares: FairShares, queues: Elements) -> None:
    root, total = situation.root, situation.cluster.total
    fair, strong, integral = shares.pool_fair[:root], shares.pool_strong[:root], shares.pool_integral[:root]
    from_strong = np.minimum(fair, strong)
    from_integral = np.minimum(fair - from_strong, integral)
    parts = (strong, integral, from_strong, from_integral, fair - from_strong - from_integral)
    rows = zip(queues.values(), *(amounts(situation, part * total) for part in parts), strict=True)
    for pool, guaranteed, proposed, first, second, rest in rows:
        pool |= {
            "strong_guarantee": guaranteed,
            "proposed_integral": proposed,
            "fair_share_parts": {"strong": first, "integral": second, "weight": rest},
        }


def _fifo(situation: Situation, shares: FairShares, workloads: Elements) -> None:
    """Places of operations in FIFO pools; where a pool serves them in another order, that too."""
    above = situation.operation_parent
    other = np.zeros(situation.root + 1, bool)
    other[above[shares.place != shares.served]] = True
    for i in np.flatnonzero(shares.fifo[above]).tolist():
        operation = workloads[situation.operations.ids[i]]
        operation["fifo_index"] = int(shares.place[i])
        if other[above[i]]:
            operation["effective_fifo_index"] = int(shares.served[i])


def _volumes(situation: Situation, shares: FairShares, queues: Elements) -> None:
    for i, (pool, own) in enumerate(zip(queues.values(), situation.config.pools, strict=True)):
        if own.shares.integral.kind != "none":
            pool["integral_guarantees"] = {
                "accumulated_volume": shares.volumes.amounts(i),
                "last_share_ratio": float(shares.ratios[i]),
                "resource_flow_ratio": float(shares.flow[i]),
                "burst_ratio": float(shares.burst[i]),
            }


_STATUS = ("normal", "below_fair_share")


class _Figures(NamedTuple):
    """What is known of all pools, or of all operations."""

    fair: Floats
    usage: Ints
    usage_share: Floats
    wanted: Floats
    satisfaction: Floats
    starvation: Starvation


def shares(cluster: CompiledState, asks: Sequence[Ask], now: int, options: Options) -> dict[str, Any]:
    """Fair shares, statuses and starvation as of ``now``. Raises InvalidInput."""
    situation = situate(cluster, asks)
    before = None if options.ytsaurus is None else options.ytsaurus.last_update_at
    last = None if before is None else micros(before)
    shares = fair_shares(situation, Update(now, last))
    own = local_satisfaction(shares.usage, shares.fair, blocked(shares.fair, shares.demand))
    local = local_satisfaction(shares.pool_usage, shares.pool_fair, blocked(shares.pool_fair, shares.pool_demand))
    rows = np.flatnonzero(~situation.operations.suspended)
    pools = pool_satisfaction(local, own[rows], situation.operation_parent[rows], situation.parent, situation.depth)
    root = situation.root
    operations = operation_starvation(situation, operation_below(situation, shares), now)
    starving = pool_starvation(situation, pool_below(situation, shares), now)
    wanted = pool_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    of_pools = _Figures(
        shares.pool_fair[:root], situation.pool_usage[:root], shares.pool_usage[:root], wanted[:root], pools[:root],
        starving,
    )  # fmt: skip
    of_operations = _Figures(shares.fair, situation.usage, shares.usage, situation.wanted, own, operations)
    queues = _rows(situation, situation.config.tree.names, of_pools)
    workloads = _rows(situation, situation.operations.ids, of_operations)
    add_details(situation, shares, queues, workloads)
    return {
        "queues": queues,
        "workloads": workloads,
        "total": amounts(situation, situation.cluster.total[None, :])[0],
        "fair_share": amounts(situation, shares.pool_fair[root:] * situation.cluster.total)[0],
        "alerts": shares.alerts,
        "warnings": warnings(situation.cluster),
    }


def _rows(situation: Situation, names: list[str], figures: _Figures) -> dict[str, dict[str, Any]]:
    total, starvation = situation.cluster.total, figures.starvation
    usage, usage_share = figures.usage, figures.usage_share
    columns = situation.resources
    demand = usage.astype(float) + figures.wanted
    nothing = ~any_of(usage > 0)
    dominant = np.argmax(np.where(nothing[:, None], to_shares(demand, total), usage_share), axis=1).tolist()
    since = [None if value == NEVER else at(value) for value in starvation.since.tolist()]
    rows = zip(
        names, amounts(situation, figures.fair * total), amounts(situation, usage.astype(float)),
        amounts(situation, demand), dominant, most(figures.fair).tolist(),
        most(usage_share).tolist(), figures.satisfaction.tolist(), starvation.below.tolist(),
        starvation.level.tolist(), since, strict=True,
    )  # fmt: skip
    return {
        name: {
            "fair_share": due,
            "usage": used,
            "demand": asked,
            "dominant_resource": columns[resource],
            "dominant_fair_share": fair_part,
            "dominant_usage_share": usage_part,
            "satisfaction": satisfied,
            "status": _STATUS[below],
            "starvation": STARVATION[level],
            "below_fair_share_since": when,
        }
        for name, due, used, asked, resource, fair_part, usage_part, satisfied, below, level, when in rows
    }
