"""What an answer of ``POST /v1/shares`` says beside a fair share: what it is made of, and what is carried on."""

from typing import Any

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats
from app.solver.engines.ytsaurus.decide.fair_share.estimates import estimated_guarantees
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import FairShares
from app.solver.engines.ytsaurus.decide.situation import Situation

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
