"""The body of ``POST /v1/shares``: what every pool and operation is due, uses, and how it starves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.solver.engines.ytsaurus.arrays import Floats, Ints, any_of, most
from app.solver.engines.ytsaurus.fair_share import fair_shares
from app.solver.engines.ytsaurus.findings import warnings
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import NEVER, STARVATION
from app.solver.engines.ytsaurus.satisfaction import blocked, local_satisfaction, pool_satisfaction
from app.solver.engines.ytsaurus.situation import Situation, pool_float_sums, situate
from app.solver.engines.ytsaurus.state import Cluster
from app.solver.engines.ytsaurus.status import (
    Starvation,
    operation_below,
    operation_starvation,
    pool_below,
    pool_starvation,
)
from app.solver.model.instant import at
from app.solver.model.state import Ask

_STATUS = ("normal", "below_fair_share")


def answer(cluster: Cluster, asks: Sequence[Ask], now: int) -> dict[str, Any]:
    """Fair shares, statuses and starvation as of ``now``. Raises InvalidInput."""
    situation = situate(cluster, asks)
    shares = fair_shares(situation)
    own = local_satisfaction(shares.usage, shares.fair, blocked(shares.fair, shares.demand))
    local = local_satisfaction(shares.pool_usage, shares.pool_fair, blocked(shares.pool_fair, shares.pool_demand))
    pools = pool_satisfaction(local, own, situation.operation_parent, situation.parent, situation.depth)
    root = situation.root
    operations = operation_starvation(situation, operation_below(situation, shares), now)
    starving = pool_starvation(situation, pool_below(situation, shares), now)
    wanted = pool_float_sums(situation.wanted, situation.operation_parent, situation.parent, situation.depth)
    total = situation.cluster.total
    queues = _rows(
        situation, situation.config.tree.names, shares.pool_fair[:root], situation.pool_usage[:root],
        shares.pool_usage[:root], wanted[:root], pools[:root], starving,
    )  # fmt: skip
    covered = np.minimum(shares.pool_fair, shares.pool_strong)[:root] * total
    for pool, weight, part in zip(
        queues.values(), shares.pool_weight.tolist(), _amounts(situation, covered), strict=False
    ):
        pool |= {"weight": weight, "fair_share_from_guarantee": part}
    return {
        "queues": queues,
        "workloads": _rows(
            situation, situation.operations.ids, shares.fair, situation.usage, shares.usage, situation.wanted, own,
            operations,
        ),
        "total": _amounts(situation, total[None, :])[0],
        "fair_share": _amounts(situation, shares.pool_fair[root:] * total)[0],
        "warnings": warnings(situation.cluster),
    }  # fmt: skip


def _rows(
    situation: Situation, names: list[str], fair: Floats, usage: Ints, usage_share: Floats, wanted: Floats,
    satisfaction: Floats, starvation: Starvation,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    total = situation.cluster.total
    columns = situation.resources
    demand = usage.astype(float) + wanted
    nothing = ~any_of(usage > 0)
    dominant = np.argmax(np.where(nothing[:, None], to_shares(demand, total), usage_share), axis=1).tolist()
    since = [None if value == NEVER else at(value) for value in starvation.since.tolist()]
    rows = zip(
        names, _amounts(situation, fair * total), _amounts(situation, usage.astype(float)),
        _amounts(situation, demand), dominant, most(fair).tolist(),
        most(usage_share).tolist(), satisfaction.tolist(), starvation.below.tolist(),
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


def _amounts(situation: Situation, steps: Floats) -> list[dict[str, float]]:
    """Rows of steps as answers show them: whole units by resource."""
    names = situation.resources
    return [dict(zip(names, row, strict=True)) for row in (steps / np.array(situation.cluster.index.scales)).tolist()]
