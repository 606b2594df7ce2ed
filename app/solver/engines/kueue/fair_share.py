"""The share value of queues and cohorts, and the order of heads that follows from it in a fair-sharing cycle."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.nomination import Nomination
from app.solver.engines.kueue.overlay import Overlay
from app.solver.engines.kueue.quota import Quotas, Usage


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


Rank = tuple[bool, Share, int, int, bool, int]
"""Ascending: borrows what the head wants, share, negated priority, creation, whether it comes straight from its queue,
place in the request."""


def fair_order(overlay: Overlay, heads: list[Nomination]) -> Iterator[Nomination]:
    """``heads``: one a queue, in the order of the request. Each is drawn when asked for, so that shares see what was
    booked for the heads before it."""
    root = overlay.state.configuration.root
    trees: dict[int, _Tree] = {}
    for place, head in enumerate(heads):
        tree = trees.setdefault(root[head.preemptor.queue], _Tree(overlay))
        tree.enter(place, head)
    done: set[str] = set()
    for head in heads:
        tree = trees[root[head.preemptor.queue]]
        while head.ask.id not in done:
            winner = tree.winner()
            done.add(winner.ask.id)
            yield winner
            tree.leave(winner)


class _Tree:
    """The heads of one cohort tree. At each cohort the best of its children's winners goes up; they are compared by
    the standing of the child that each came through, with the head's own usage added to its path.

    Standings depend on the usage of the nodes below the root that a head's path goes through. So after a head only
    those in its own part of the tree, below the same child of the root, are worked out again."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._heads: dict[int, tuple[int, Nomination]] = {}
        self._children: dict[int, dict[int, None]] = {}
        self._standings: dict[int, dict[int, Rank]] = {}
        self._best: dict[int, int] = {}

    def enter(self, place: int, head: Nomination) -> None:
        """Take part; ``place`` in the request."""
        parent = self._overlay.state.configuration.tree.parent
        node = head.preemptor.queue
        self._heads[node] = (place, head)
        self._best[node] = node
        while (above := parent[node]) != ROOTLESS:
            self._children.setdefault(above, {})[node] = None
            node = above

    def winner(self) -> Nomination:
        """The head that goes next."""
        queue = next(iter(self._heads))
        return self._heads[self._winner_below(self._overlay.state.configuration.root[queue])][1]

    def leave(self, head: Nomination) -> None:
        """The head has gone, and may have booked something on its path."""
        tree = self._overlay.state.configuration.tree
        path = tree.path(head.preemptor.queue)
        del self._heads[path[0]]
        del self._best[path[0]]
        for node, above in pairwise(path):
            if node not in self._heads and not self._children.get(node):
                self._children[above].pop(node, None)
            self._best.pop(above, None)
        if len(path) > 2:
            self._forget(path[-2])

    def _forget(self, node: int) -> None:
        if node in self._heads:
            self._standings.pop(node, None)
            return
        for child in self._children.get(node, ()):
            self._forget(child)

    def _winner_below(self, node: int) -> int:
        """The queue whose head comes up to ``node``."""
        known = self._best.get(node)
        if known is None:
            rivals = [self._winner_below(child) for child in self._children[node]]
            known = self._best[node] = min(rivals, key=lambda queue: self._standing(queue)[node])
        return known

    def _standing(self, queue: int) -> dict[int, Rank]:
        """How the queue's head stands at each cohort above it."""
        known = self._standings.get(queue)
        if known is None:
            known = self._standings[queue] = _ranks(self._overlay, *self._heads[queue])
        return known


def _ranks(overlay: Overlay, place: int, head: Nomination) -> dict[int, Rank]:
    configuration, usage = overlay.state.configuration, overlay.usage
    queue, request = head.preemptor.queue, head.preemptor.request
    wanted = [fr for fr, amount in request if amount]
    priority, created = head.preemptor.priority, head.preemptor.created
    out: dict[int, Rank] = {}
    usage.add(queue, request)
    node = queue
    while (above := configuration.tree.parent[node]) != ROOTLESS:
        found = share(configuration, usage, node)
        out[above] = (usage.exceeds(node, wanted), found, -priority, created, node == queue, place)
        node = above
    usage.remove(queue, request)
    return out
