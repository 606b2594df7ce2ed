"""The share value of queues and cohorts, the order of heads that follows from it in a fair-sharing cycle; and what
waits in one ClusterQueue, by class: asks that Kueue does not tell apart step aside and come back together.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from app.solver.compiled import ROOTLESS
from app.solver.engines.kueue.admission_sharing import local_queue
from app.solver.engines.kueue.amounts import Amounts
from app.solver.engines.kueue.configuration import CompiledConfiguration, Quotas
from app.solver.engines.kueue.nomination import Nomination
from app.solver.engines.kueue.overlay import Overlay, Usage
from app.solver.engines.kueue.state import instant
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.state import Ask, Task


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
    left = standing(configuration, usage, node).share
    usage.add(queue, amounts)
    return left


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
        mine = share(configuration, usage, node)
        out[above] = (usage.exceeds(node, wanted), mine, -priority, created, node == queue, place)
        node = above
    usage.remove(queue, request)
    return out


Key = tuple[int, int, str, str, int]
"""Queue order: higher priority, older, lower UID, lower id; with a serial number, so that asks are never compared."""
_encode = msgspec.msgpack.Encoder(order="sorted").encode


def shape_of(ask: Ask) -> bytes:
    """Equal for asks of one class: priority, and of each pod set all but how its requests are written. Whether it may
    preempt at all is part of it too, which Kueue does not know. Raises QuantityError."""
    return _encode((ask.priority or 0, ask.preemption_policy == "Never", [_exact(task) for task in ask.tasks]))


def _exact(task: Task) -> Task:
    return replace(task, requests={r: parse_quantity(amount, scale_of(r)) for r, amount in task.requests.items()})


class _Class:
    """Asks of one shape, the first of them on top of a heap. ``entry``: by which key it stands in its line; None:
    it stands nowhere, for it is ``aside`` or has nobody left."""

    __slots__ = ("aside", "asks", "entry", "shape")

    def __init__(self, shape: bytes) -> None:
        self.shape = shape
        self.asks: list[tuple[Key, Ask]] = []
        self.entry: Key | None = None
        self.aside = False


class Line:
    """``waiting``: the asks of all lines that still wait, by id; what has left is dropped when its turn comes. An ask
    that comes again is given anew, once it has left. ``sticky``: the id of the one that goes first wherever it stands
    (Kueue: sticky workload); None: nobody. ``mark`` stands for who is aside: equal for equal."""

    __slots__ = ("_active", "_aside", "_classes", "_serial", "_shapes", "_waiting", "mark", "sticky")

    def __init__(self, waiting: Mapping[str, Ask]) -> None:
        self._waiting = waiting
        self._active: list[tuple[Key, _Class]] = []
        self._aside: list[_Class] = []
        self._classes: dict[bytes, _Class] = {}
        self._shapes: dict[str, bytes] = {}
        self._serial = 0
        self.sticky: str | None = None
        self.mark = 0

    def arrive(self, ask: Ask, shape: bytes) -> None:
        """``ask`` waits; it is aside at once where its class is."""
        of = self._classes.get(shape)
        if of is None:
            of = self._classes[shape] = _Class(shape)
        self._serial += 1
        key = -(ask.priority or 0), instant(ask.created_at), ask.uid or "", ask.id, self._serial
        heappush(of.asks, (key, ask))
        self._shapes[ask.id] = shape
        if not of.aside:
            self._enter(of)

    def leave(self, ask: str) -> None:
        """It waits no longer."""
        self._shapes.pop(ask, None)
        if self.sticky == ask:
            self.sticky = None

    def head(self) -> Ask | None:
        """The first that is not aside."""
        # One that may not be tried yet stands in no line, and is sticky once it does.
        sticky, active = self.sticky, self._active
        if sticky is not None and sticky in self._shapes and not self._classes[self._shapes[sticky]].aside:
            return self._waiting[sticky]
        while active:
            key, of = active[0]
            if key is of.entry:
                first = self._first(of)
                if first is not None and first[0] is key:
                    return first[1]
                of.entry = None
                heappop(active)
                self._enter(of)
            else:
                heappop(active)
        return None

    def shape(self, ask: str) -> bytes:
        """By which its class is known."""
        return self._shapes[ask]

    def step_aside(self, ask: str) -> None:
        """It does, and with it everybody of its class, now and later."""
        self.put_aside(self._shapes[ask])

    def put_aside(self, shape: bytes) -> None:
        """Everybody of that class, now and later."""
        of = self._classes.get(shape)
        if of is None:
            of = self._classes[shape] = _Class(shape)
        if of.aside:
            return
        of.entry, of.aside = None, True
        self._aside.append(of)
        self.mark ^= hash(of.shape)

    def come_back(self, shape: bytes | None = None) -> None:
        """Everybody who is aside comes back, or the class of one shape."""
        for of in self._aside:
            if shape is None or of.shape == shape:
                of.aside = False
                self.mark ^= hash(of.shape)
                self._enter(of)
        self._aside = [of for of in self._aside if of.aside]

    def _enter(self, of: _Class) -> None:
        """Its first ask stands in line for all; a class with nobody left is forgotten."""
        first = self._first(of)
        if first is None:
            del self._classes[of.shape]
        elif first[0] is not of.entry:
            of.entry = first[0]
            heappush(self._active, (first[0], of))

    def _first(self, of: _Class) -> tuple[Key, Ask] | None:
        asks, waiting = of.asks, self._waiting
        while asks:
            first = asks[0]
            if waiting.get(first[1].id) is first[1]:
                return first
            heappop(asks)
        return None


class SharedLine(Line):
    """A line by what LocalQueues have consumed: of the first of each, the one goes first whose LocalQueue has consumed
    least; then who is sticky, then queue order (Kueue: queueOrderingFunc). ``used``: what one has consumed."""

    __slots__ = ("_aside_shapes", "_of", "_parts", "_used")

    def __init__(self, waiting: Mapping[str, Ask], used: Callable[[str], float]) -> None:
        super().__init__(waiting)
        self._used = used
        self._parts: dict[str, Line] = {}
        self._of: dict[str, tuple[str, bytes]] = {}
        self._aside_shapes: dict[bytes, None] = {}

    def arrive(self, ask: Ask, shape: bytes) -> None:
        name = local_queue(ask)
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Line(self._waiting)
            for other in self._aside_shapes:
                part.put_aside(other)
        self._of[ask.id] = name, shape
        part.arrive(ask, shape)

    def leave(self, ask: str) -> None:
        super().leave(ask)
        if (entry := self._of.pop(ask, None)) is not None:
            self._parts[entry[0]].leave(ask)

    def head(self) -> Ask | None:
        firsts: list[Ask] = []
        for part in self._parts.values():
            part.sticky = self.sticky
            if (ask := part.head()) is not None:
                firsts.append(ask)
        return min(firsts, key=self._order, default=None)

    def firsts(self) -> list[str]:
        """The LocalQueues of which somebody is not aside."""
        return [name for name, part in self._parts.items() if part.head() is not None]

    def _order(self, ask: Ask) -> tuple[float, bool, int, int, str, str]:
        return (
            self._used(local_queue(ask)), ask.id != self.sticky, -(ask.priority or 0), instant(ask.created_at),
            ask.uid or "", ask.id,
        )  # fmt: skip

    def step_aside(self, ask: str) -> None:
        shape = self._of[ask][1]
        self._aside_shapes[shape] = None
        self.mark ^= hash(shape)
        for part in self._parts.values():
            part.put_aside(shape)

    def come_back(self, shape: bytes | None = None) -> None:
        for other in list(self._aside_shapes) if shape is None else [shape]:
            if other in self._aside_shapes:
                del self._aside_shapes[other]
                self.mark ^= hash(other)
        for part in self._parts.values():
            part.come_back(shape)
