"""The share of a queue or cohort: how much of what its cohort could lend it has borrowed, by its dominant resource.

Source: Kueue ``pkg/cache/scheduler/fair_sharing.go``. Comparisons use the exact double; the integer in a
ClusterQueue's status is that number rounded up.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.compile import Configured
from app.solver.engines.kueue.load import Loaded
from app.solver.engines.kueue.quota import Quotas, Usage
from app.solver.model.quantity import units

MOST = 2**63 - 1
"""What Kueue reports where a queue of weight 0 borrows: no number is large enough."""


@dataclass(frozen=True, slots=True)
class Share:
    """``ratio``: borrowed thousandths of the lendable, of the dominant ``resource``, before the weight; ``borrowed``:
    steps beyond subtree quota by flavor-resource, positive ones only. A root shares with nobody: all zero."""

    ratio: float
    weight: float
    resource: str | None
    borrowed: Mapping[int, int]

    def key(self) -> tuple[int, float]:
        """Ascending by share. Weight 0 while borrowing ranks above everything, and by ratio among its like."""
        if self.weight == 0:
            return (1, self.ratio) if self.ratio > 0 else (0, 0.0)
        return (0, self.ratio / self.weight)

    def borrows_any(self, frs: Iterable[int]) -> bool:
        """Whether one of ``frs`` is borrowed."""
        return any(fr in self.borrowed for fr in frs)


def lendable(quotas: Quotas, root: int, node: int) -> dict[str, int]:
    """Steps by resource that ``node`` could have at most, over all flavors of its tree."""
    out: dict[str, int] = {}
    for fr in quotas.own[root]:
        resource = quotas.frs[fr][1]
        out[resource] = out.get(resource, 0) + quotas.potential_available(node, fr)
    return out


def share(configured: Configured, usage: Usage, node: int, pools: dict[int, dict[str, int]] | None = None) -> Share:
    """The share of ``node`` now. ``pools`` remembers what each parent could lend: it depends on quotas alone."""
    quotas = usage.quotas
    parent = configured.tree.parent[node]
    if parent == ROOTLESS:
        return Share(0.0, configured.weight[node], None, {})
    cells = quotas.cells[node]
    borrowed = {fr: over for fr in quotas.own[node] if (over := usage.used[cells[fr]] - quotas.subtree[cells[fr]]) > 0}
    if not borrowed:
        return Share(0.0, configured.weight[node], None, borrowed)
    pool = None if pools is None else pools.get(parent)
    if pool is None:
        pool = lendable(quotas, configured.root[node], parent)
        if pools is not None:
            pools[parent] = pool
    ratio, dominant = 0.0, None
    for resource, amount in sorted(by_resource(quotas, borrowed).items()):
        most = pool.get(resource, 0)
        if most > 0 and amount * 1000.0 / most > ratio:
            ratio, dominant = amount * 1000.0 / most, resource
    return Share(ratio, configured.weight[node], dominant, borrowed)


def by_resource(quotas: Quotas, amounts: Mapping[int, int]) -> dict[str, int]:
    """Flavors of a resource added up."""
    out: dict[str, int] = {}
    for fr, amount in amounts.items():
        resource = quotas.frs[fr][1]
        out[resource] = out.get(resource, 0) + amount
    return out


def report(loaded: Loaded) -> dict[str, Any]:
    """``POST /v1/shares``: queues and cohorts by name, quantities in whole units.

    ``fair_share``: the nominal quota of the subtree; ``usage``; ``borrowed``: usage beyond it, flavor by flavor;
    ``lendable``: the most that the parent could give, what ``share`` is measured against; ``share``: the weighted
    share as Kueue's status shows it; ``precise_share``: the same before rounding, absent where it is infinite."""
    configured, usage = loaded.configured, loaded.usage()
    pools: dict[int, dict[str, int]] = {}
    return {"queues": {name: _line(configured, usage, node, pools) for node, name in enumerate(configured.tree.names)}}


def _line(configured: Configured, usage: Usage, node: int, pools: dict[int, dict[str, int]]) -> dict[str, Any]:
    quotas, cells = usage.quotas, usage.quotas.cells[node]
    found = share(configured, usage, node, pools)
    parent = configured.tree.parent[node]
    quota = by_resource(quotas, {fr: quotas.subtree[cell] for fr, cell in cells.items()})
    out: dict[str, Any] = {
        "fair_share": _units(quota),
        "usage": _units(by_resource(quotas, {fr: usage.used[cell] for fr, cell in cells.items()})),
        "borrowed": _units(dict.fromkeys(quota, 0) | by_resource(quotas, found.borrowed)),
        "lendable": {} if parent == ROOTLESS else _units(lendable(quotas, configured.root[node], parent)),
        "weight": configured.weight[node],
    }
    above, exact = found.key()
    out["share"] = MOST if above else math.ceil(exact)
    if not above:
        out["precise_share"] = exact
    if found.resource is not None:
        out["dominant_resource"] = found.resource
    return out


def _units(steps: Mapping[str, int]) -> dict[str, int | float]:
    return {resource: units(amount, resource) for resource, amount in sorted(steps.items())}
