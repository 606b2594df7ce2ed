"""Kueue's quota tree and tournament, told a second time: recursive definitions over dictionaries, nothing remembered.

Slow and plain on purpose; shares no code with the solver. Amounts are integers, a flavor-resource is a resource name
(one flavor).
"""

import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Amounts = dict[str, int]


@dataclass
class Node:
    """A queue or cohort; ``used`` of queues only."""

    name: str
    parent: str | None
    cohort: bool
    weight: int = 1
    nominal: Amounts = field(default_factory=dict[str, int])
    borrowing: Amounts = field(default_factory=dict[str, int])
    lending: Amounts = field(default_factory=dict[str, int])
    used: Amounts = field(default_factory=dict[str, int])


class Reference:
    """A tree of nodes by name, parents first."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}

    def children(self, name: str) -> list[Node]:
        return [node for node in self.nodes.values() if node.parent == name]

    def path(self, name: str) -> list[str]:
        above = self.nodes[name].parent
        return [name] if above is None else [name, *self.path(above)]

    def subtree(self, name: str, r: str) -> int:
        """Own quota and what every child lends."""
        lent = sum(self.subtree(c.name, r) - self.local(c.name, r) for c in self.children(name))
        return self.nodes[name].nominal.get(r, 0) + lent

    def local(self, name: str, r: str) -> int:
        limit = self.nodes[name].lending.get(r)
        return 0 if limit is None else max(0, self.subtree(name, r) - limit)

    def usage(self, name: str, r: str) -> int:
        if not self.nodes[name].cohort:
            return self.nodes[name].used.get(r, 0)
        return sum(max(0, self.usage(c.name, r) - self.local(c.name, r)) for c in self.children(name))

    def spare(self, name: str, r: str) -> int:
        """Of the local part, what is not used."""
        return max(0, self.local(name, r) - self.usage(name, r))

    def available(self, name: str, r: str) -> int:
        """May be negative where more is used than there is."""
        node, above = self.nodes[name], self.nodes[name].parent
        if above is None:
            return self.subtree(name, r) - self.usage(name, r)
        from_above = self.available(above, r)
        if r in node.borrowing:
            stored = self.subtree(name, r) - self.local(name, r)
            taken = max(0, self.usage(name, r) - self.local(name, r))
            from_above = min(from_above, stored - taken + node.borrowing[r])
        return self.spare(name, r) + from_above

    def potential(self, name: str, r: str) -> int:
        node, above = self.nodes[name], self.nodes[name].parent
        if above is None:
            return self.subtree(name, r)
        most = self.local(name, r) + self.potential(above, r)
        return min(most, self.subtree(name, r) + node.borrowing[r]) if r in node.borrowing else most

    def fits_by_level(self, queue: str, request: Amounts) -> list[bool]:
        """Of the queue and each ancestor: whether usage and what lower levels can't keep are within its quota."""
        rest, out = dict(request), list[bool]()
        for name in self.path(queue):
            out.append(all(self.usage(name, r) + n <= self.subtree(name, r) for r, n in rest.items()))
            rest = {r: max(0, n - self.spare(name, r)) for r, n in rest.items()}
        return out

    def height(self, name: str) -> int:
        below = [self.height(c.name) + 1 if c.cohort else 1 for c in self.children(name)]
        return max(below, default=0)

    def level(self, queue: str, r: str, amount: int) -> tuple[int, bool]:
        """Height of the lowest subtree that covers ``amount`` more, the root's where none does, and whether that
        subtree is only a part of the tree."""
        path = self.path(queue)
        if self.usage(queue, r) + amount <= self.nodes[queue].nominal.get(r, 0) or len(path) == 1:
            return 0, len(path) > 1
        rest = amount - self.spare(queue, r)
        for name in path[1:]:
            if self.usage(name, r) + rest <= self.subtree(name, r):
                return self.height(name), self.nodes[name].parent is not None
            rest -= self.spare(name, r)
        return self.height(path[-1]), False

    def resources(self) -> set[str]:
        return {r for node in self.nodes.values() for r in node.nominal}

    def borrowed(self, name: str, r: str) -> int:
        return 0 if self.nodes[name].parent is None else max(0, self.usage(name, r) - self.subtree(name, r))

    def share(self, name: str) -> tuple[bool, Fraction]:
        """(a borrower of weight 0, the share): compares as Kueue does. Exact, where Kueue rounds to doubles."""
        above, weight = self.nodes[name].parent, self.nodes[name].weight
        if above is None:
            return False, Fraction(0)
        ratios = [
            Fraction(1000 * self.borrowed(name, r), most)
            for r in self.resources()
            if (most := self.potential(above, r)) > 0
        ]
        largest = max(ratios, default=Fraction(0))
        if weight:
            return False, largest / weight
        return largest > 0, largest

    def tournament(self, cohort: str, heads: dict[str, "Head"]) -> "Head | None":
        """The head that comes up to ``cohort``: winners of child cohorts first, then its own queues in the order of
        the request; only a strictly better one replaces the best."""
        children = self.children(cohort)
        rivals = [found for c in children if c.cohort and (found := self.tournament(c.name, heads)) is not None]
        rivals.sort(key=lambda head: head.place)
        direct = sorted((heads[c.name] for c in children if c.name in heads), key=lambda head: head.place)
        best: Head | None = None
        for head in [*rivals, *direct]:
            if best is None or self.standing(cohort, head) < self.standing(cohort, best):
                best = head
        return best

    def standing(self, cohort: str, head: "Head") -> tuple[Any, ...]:
        """Of the child of ``cohort`` that the head came through, with what the head asks for."""
        path = self.path(head.queue)
        child = path[path.index(cohort) - 1]
        used = self.nodes[head.queue].used
        before = dict(used)
        for r, n in head.request.items():
            used[r] = used.get(r, 0) + n
        borrows = any(self.borrowed(child, r) > 0 for r, n in head.request.items() if n)
        share = self.share(child)
        used.clear()
        used.update(before)
        return borrows, share, -head.priority, head.age


@dataclass
class Head:
    """What goes into a tournament; ``age``: the lower, the older; ``place``: in the request."""

    queue: str
    request: Amounts
    priority: int
    age: int
    place: int


def grow(rng: random.Random, resources: tuple[str, ...]) -> Reference:
    """A root, up to four cohorts below one another, up to six queues, quotas and limits on any of them, and usage that
    need not be within them."""
    nodes = [Node("c0", None, True)]
    for i in range(1, rng.randint(1, 5)):
        nodes.append(Node(f"c{i}", rng.choice(nodes).name, True))
    cohorts = list(nodes)
    nodes += [Node(f"q{i}", rng.choice(cohorts).name, False) for i in range(rng.randint(1, 6))]
    for node in nodes:
        node.weight = rng.choice((0, 1, 1, 2))
        for r in resources:
            node.nominal[r] = rng.choice((0, 0, 1, 2, 4))
            if node.parent is not None and rng.random() < 0.25:
                node.borrowing[r] = rng.randint(0, 3)
            if node.parent is not None and rng.random() < 0.25:
                node.lending[r] = rng.randint(0, 3)
            if not node.cohort and rng.random() < 0.6:
                node.used[r] = rng.randint(0, 4)
    return Reference(nodes)


def configuration(tree: Reference, **settings: Any) -> dict[str, Any]:
    """The same tree on the wire."""
    queues: list[dict[str, Any]] = []
    for node in tree.nodes.values():
        quota: dict[str, Any] = {}
        for r, n in node.nominal.items():
            quota[r] = {"guaranteed": n}
            if r in node.borrowing:
                quota[r]["borrowing_limit"] = node.borrowing[r]
            if r in node.lending:
                quota[r]["lending_limit"] = node.lending[r]
        queue = {"name": node.name, "parent": node.parent, "weight": node.weight, "quota": quota}
        queues.append(queue | {"kueue": {"role": "cohort" if node.cohort else "cluster_queue"}})
    return {"engine": "kueue", "settings": {"kueue": settings}, "queues": queues}


def workloads(tree: Reference) -> list[dict[str, Any]]:
    """One running workload a queue, using what the queue uses."""
    return [
        {
            "id": f"w-{node.name}", "queue": node.name,
            "tasks": [{"name": "main", "requests": node.used, "flavors": dict.fromkeys(node.used, "default")}],
        }
        for node in tree.nodes.values()
        if node.used
    ]  # fmt: skip
