"""``POST /v1/shares`` for Kueue: what every queue and cohort is entitled to, uses, borrows, and its weighted share."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.quota import Quotas
from app.solver.engines.kueue.compile.state import CompiledState
from app.solver.engines.kueue.compile.usage import Usage
from app.solver.engines.kueue.decide.share import lendable, share
from app.solver.model.quantity import units
from app.solver.model.request import Options
from app.solver.model.state import Ask

MOST = 2**63 - 1
"""What Kueue reports where a queue of weight 0 borrows: no number is large enough."""


def shares(state: CompiledState, asks: list[Ask], now: int, options: Options) -> dict[str, Any]:
    """Queues and cohorts by name, quantities in whole units, flavors of a resource added up.

    ``fair_share``: the nominal quota of the subtree; ``usage``; ``borrowed``: usage beyond it, flavor by flavor;
    ``lendable``: the most that the parent could give, what ``share`` is measured against; ``share``: the weighted
    share as Kueue's status shows it, rounded up; ``precise_share``: the same as it is compared, absent where it is
    infinite; ``dominant_resource``: the resource that makes the share."""
    del asks, now  # what waits has no share here, and shares do not move with time
    configuration, usage = state.configuration, state.usage()
    return {"queues": {name: _line(configuration, usage, node) for node, name in enumerate(configuration.tree.names)}}


def _line(configuration: CompiledConfiguration, usage: Usage, node: int) -> dict[str, Any]:
    quotas, cells = usage.quotas, usage.quotas.cells[node]
    parent = configuration.tree.parent[node]
    over = {fr: max(0, usage.used[cells[fr]] - quotas.subtree[cells[fr]]) for fr in quotas.own[node]}
    borrowed = {} if parent == ROOTLESS else _by_resource(quotas, over.items())
    pool = {} if parent == ROOTLESS else lendable(quotas, parent)
    found = share(configuration, usage, node)
    out: dict[str, Any] = {
        "fair_share": _units(_by_resource(quotas, ((fr, quotas.subtree[cell]) for fr, cell in cells.items()))),
        "usage": _units(_by_resource(quotas, ((fr, usage.used[cell]) for fr, cell in cells.items()))),
        "borrowed": _units(borrowed),
        "lendable": _units(pool),
        "weight": configuration.weight[node],
        "share": MOST if found.weighted >= MOST else math.ceil(found.value),
    }
    if not math.isinf(found.weighted):
        out["precise_share"] = found.value
    ratios = {r: amount * 1000.0 / pool[r] for r, amount in borrowed.items() if amount and pool[r] > 0}
    if ratios:
        out["dominant_resource"] = max(sorted(ratios), key=ratios.__getitem__)
    return out


def _by_resource(quotas: Quotas, amounts: Iterable[tuple[int, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for fr, amount in amounts:
        resource = quotas.frs[fr][1]
        out[resource] = out.get(resource, 0) + amount
    return out


def _units(steps: Mapping[str, int]) -> dict[str, int | float]:
    return {resource: units(amount, resource) for resource, amount in sorted(steps.items())}
