"""The order of heads in a fair-sharing cycle: a tournament up each cohort tree, run again after every head.

Source: Kueue ``pkg/scheduler/fair_sharing_iterator.go``. At each cohort the winners of its child cohorts come first,
then its own ClusterQueues, and only a strictly better one replaces the best: on a full tie a child cohort goes before
a ClusterQueue. Kueue leaves two things to chance: which cohort tree is served next, and heads equal in everything that
both come through cohorts or both through queues. Arbiter takes both in the order of the request.
"""

from collections.abc import Iterator
from itertools import pairwise

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.decide.share import Share, share

Standing = tuple[bool, Share, int, int, bool, int]
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
        self._standings: dict[int, dict[int, Standing]] = {}
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

    def _standing(self, queue: int) -> dict[int, Standing]:
        """How the queue's head stands at each cohort above it."""
        known = self._standings.get(queue)
        if known is None:
            known = self._standings[queue] = _standings(self._overlay, *self._heads[queue])
        return known


def _standings(overlay: Overlay, place: int, head: Nomination) -> dict[int, Standing]:
    configuration, usage = overlay.state.configuration, overlay.usage
    queue, request = head.preemptor.queue, head.preemptor.request
    wanted = [fr for fr, amount in request if amount]
    priority, created = head.preemptor.priority, head.preemptor.created
    out: dict[int, Standing] = {}
    usage.add(queue, request)
    node = queue
    while (above := configuration.tree.parent[node]) != ROOTLESS:
        found = share(configuration, usage, node)
        out[above] = (usage.exceeds(node, wanted), found, -priority, created, node == queue, place)
        node = above
    usage.remove(queue, request)
    return out
