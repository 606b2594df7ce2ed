"""The body of ``POST /v1/shares``: what every pool and operation is due, uses, and how it starves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints, any_of, most
from app.solver.engines.ytsaurus.compile.operations import NEVER, STARVATION
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import fair_shares
from app.solver.engines.ytsaurus.decide.fair_share.guarantees import to_shares
from app.solver.engines.ytsaurus.decide.fair_share.volumes import Update
from app.solver.engines.ytsaurus.decide.satisfaction import blocked, local_satisfaction, pool_satisfaction
from app.solver.engines.ytsaurus.decide.situation import Situation, pool_sums, situate
from app.solver.engines.ytsaurus.decide.status import (
    Starvation,
    operation_below,
    operation_starvation,
    pool_below,
    pool_starvation,
)
from app.solver.engines.ytsaurus.report.findings import warnings
from app.solver.engines.ytsaurus.report.share_details import add_details, amounts
from app.solver.model.instant import at, micros
from app.solver.model.request import Options
from app.solver.model.state import Ask

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
