"""The share value of a queue or cohort: how much it borrows of what its parent could lend, by weight.

Source: Kueue ``pkg/cache/scheduler/fair_sharing.go``. For each resource, what the node uses beyond its subtree quota,
flavor by flavor (a flavor below quota does not offset another), as thousandths of what is lendable; the largest
counts, divided by the node's weight. Doubles, compared exactly, as in Kueue.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.solver.engines.kueue.compile.amounts import Amounts
from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.quota import Quotas
from app.solver.engines.kueue.compile.usage import Usage


class Share(NamedTuple):
    """Ordered as Kueue compares: a node of weight 0 that borrows is above everything, two of them go by their bare
    ratio. ``value``: the weighted share, or the bare ratio at weight 0."""

    weightless: bool
    value: float

    @property
    def weighted(self) -> float:
        """As a number; infinite for a borrower of weight 0."""
        return math.inf if self.weightless else self.value


NOTHING = Share(False, 0.0)


class Rivals(NamedTuple):
    """Whose shares are compared, and below which cohort."""

    ancestor: int
    our_side: int
    their_side: int
    ours: Share
    theirs: Share


def lendable(quotas: Quotas, parent: int) -> dict[str, int]:
    """By resource: what ``parent`` could ever have of all flavors that its root knows, with nothing used."""
    known = quotas.lendable.get(parent)
    if known is None:
        known = quotas.lendable[parent] = _new_lendable(quotas, parent)
    return known


def _new_lendable(quotas: Quotas, parent: int) -> dict[str, int]:
    out: dict[str, int] = {}
    for fr in quotas.own[quotas.tree.root(parent)]:
        resource = quotas.frs[fr][1]
        out[resource] = out.get(resource, 0) + quotas.potential_available(parent, fr)
    return out


def _terms(quotas: Quotas, node: int) -> list[tuple[int, list[int]]]:
    """By resource: what is lendable, and the node's cells of its flavors."""
    known = quotas.share_terms.get(node)
    if known is None:
        known = quotas.share_terms[node] = _new_terms(quotas, node)
    return known


def _new_terms(quotas: Quotas, node: int) -> list[tuple[int, list[int]]]:
    parent = quotas.tree.parent[node]
    if parent < 0:
        return []
    by_resource: dict[str, list[int]] = {}
    for fr in quotas.own[node]:
        by_resource.setdefault(quotas.frs[fr][1], []).append(quotas.cells[node][fr])
    most = lendable(quotas, parent)
    return [(most.get(resource, 0), cells) for resource, cells in by_resource.items()]


class Standing(NamedTuple):
    """``borrows``: whether the node uses anything beyond its subtree quota; a root never does."""

    borrows: bool
    share: Share


def standing(configuration: CompiledConfiguration, usage: Usage, node: int, less: Mapping[int, int] = {}) -> Standing:
    """How the node stands at this moment, or would with ``less`` (steps by cell) taken off its own usage.

    A resource of which nothing is lendable adds no ratio, but still counts as borrowed."""
    used, subtree = usage.used, usage.quotas.subtree
    borrows, largest = False, 0.0
    for most, cells in _terms(usage.quotas, node):
        borrowed = 0
        for cell in cells:
            over = used[cell] - subtree[cell]
            if less and cell in less:
                over -= less[cell]
            if over > 0:
                borrowed += over
        if borrowed:
            borrows = True
            if most > 0:
                largest = max(largest, borrowed * 1000.0 / most)
    if largest == 0.0:
        return Standing(borrows, NOTHING)
    weight = configuration.weight[node]
    return Standing(borrows, Share(True, largest) if weight == 0 else Share(False, largest / weight))


def shares(configuration: CompiledConfiguration, usage: Usage, nodes: Sequence[int]) -> list[tuple[bool, float]]:
    """``share`` of each, as a bare pair: of a thousand queues that lend one flavor each in a tenth of the time."""
    used, quotas, weights = usage.used, usage.quotas, configuration.weight
    subtree, out = quotas.subtree, list[tuple[bool, float]]()
    for node in nodes:
        terms = _terms(quotas, node)
        if len(terms) != 1 or len(terms[0][1]) != 1:
            out.append(share(configuration, usage, node))
            continue
        most, (cell,) = terms[0]
        over, weight = used[cell] - subtree[cell], weights[node]
        if over <= 0 or most <= 0:
            out.append(NOTHING)
        else:
            ratio = over * 1000.0 / most
            out.append((True, ratio) if weight == 0 else (False, ratio / weight))
    return out


def share(configuration: CompiledConfiguration, usage: Usage, node: int) -> Share:
    """The node's share at this moment."""
    return standing(configuration, usage, node).share


def share_without(configuration: CompiledConfiguration, usage: Usage, node: int, queue: int, amounts: Amounts) -> Share:
    """The share of ``node``, which is ``queue`` or above it, were ``amounts`` gone from the queue."""
    if node == queue:
        cells = usage.quotas.cells[queue]
        return standing(configuration, usage, node, {cells[fr]: amount for fr, amount in amounts}).share
    usage.remove(queue, amounts)
    found = standing(configuration, usage, node).share
    usage.add(queue, amounts)
    return found
