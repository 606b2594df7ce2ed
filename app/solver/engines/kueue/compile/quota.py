"""Quota tables by cell, and the arithmetic of Kueue's hierarchical resource tree on them.

A *cell* is one (queue or cohort, flavor-resource) pair that matters: it has a quota, lies above one that has,
or is used. Cells make the tables dense lists that are walked upwards with one index, and keep memory in
proportion to the configuration instead of to nodes times flavor-resources. All amounts are integer steps.

Rules: Kueue ``pkg/cache/scheduler/resource_node.go`` (subtree and local quota, available, usage that bubbles
up beyond the local part only).
"""

from collections.abc import Iterable
from typing import Literal

from app.solver.compiled.tree import ROOTLESS, Tree
from app.solver.model.problems import InvalidInput, Problem

FlavorResource = tuple[str, str]
"""(flavor, resource)."""

Field = Literal["nominal", "borrowing", "lending"]

NOWHERE = -1
MAX_INT64 = 2**63 - 1
"""Kueue's quantities are int64; as many steps or more are no limit."""
MAX_CELLS = 4_000_000


class Limits:
    """What one node says of one flavor-resource, in steps; ``None``: no such limit."""

    __slots__ = ("borrowing", "lending", "nominal")

    def __init__(self, nominal: int, borrowing: int | None, lending: int | None) -> None:
        self.nominal = nominal
        self.borrowing = borrowing
        self.lending = lending


class Quotas:
    """The quota side of the tree; immutable once built. Indexed by cell:

    ``nominal``  own quota; ``subtree``  own plus what children lend; ``local``  the part of ``subtree`` that is
    never lent; ``borrowing``  own borrowing limit or None; ``lending`` likewise; ``potential``  available with
    nothing used; ``above``  the parent's cell, NOWHERE at a root; ``node`` and ``fr``  what the cell is of.

    ``frs``: flavor-resources by index; ``cells[node]``: its cells by flavor-resource; ``own[node]``: the
    flavor-resources with quota in its subtree, in a fixed order (Kueue's SubtreeQuota keys). ``lendable`` and
    ``share_terms`` remember what ``share`` has worked out from the quotas alone.
    """

    __slots__ = (
        "above", "borrowing", "cells", "fr", "fr_index", "frs", "lendable", "lending", "local", "node", "nominal",
        "own", "potential", "share_terms", "subtree", "tree",
    )  # fmt: skip

    def __init__(self, tree: Tree, frs: list[FlavorResource], limits: list[dict[int, Limits]]) -> None:
        self.tree = tree
        self.frs = frs
        self.fr_index: dict[FlavorResource, int] = {fr: i for i, fr in enumerate(frs)}
        self.cells: list[dict[int, int]] = [{} for _ in tree.names]
        self.nominal: list[int] = []
        self.subtree: list[int] = []
        self.local: list[int] = []
        self.borrowing: list[int | None] = []
        self.lending: list[int | None] = []
        self.potential: list[int] = []
        self.above: list[int] = []
        self.node: list[int] = []
        self.fr: list[int] = []
        self.lendable: dict[int, dict[str, int]] = {}
        self.share_terms: dict[int, list[tuple[int, list[int]]]] = {}
        self._build(limits)
        self.own: list[tuple[int, ...]] = [tuple(of) for of in self.cells]

    def _build(self, limits: list[dict[int, Limits]]) -> None:
        tree = self.tree
        present: list[set[int]] = [set(of) for of in limits]
        for node in reversed(tree.top_down):
            if tree.parent[node] != ROOTLESS:
                present[tree.parent[node]] |= present[node]
        if sum(map(len, present)) > MAX_CELLS:
            detail = f"more than {MAX_CELLS} pairs of queue and flavor-resource"
            raise InvalidInput([Problem(pointer="/configuration/queues", detail=detail)])
        for node in tree.top_down:
            for fr in sorted(present[node]):
                self._new_cell(node, fr, limits[node].get(fr))
        for cell in reversed(range(len(self.node))):  # every cell after those of its children
            self._close(cell)
        for cell in range(len(self.node)):
            self.potential[cell] = self._potential(cell)

    def _new_cell(self, node: int, fr: int, of: Limits | None) -> int:
        cell = len(self.node)
        parent = self.tree.parent[node]
        self.cells[node][fr] = cell
        self.node.append(node)
        self.fr.append(fr)
        self.above.append(NOWHERE if parent == ROOTLESS else self.cells[parent][fr])
        nominal = of.nominal if of else 0
        self.nominal.append(nominal)
        self.subtree.append(nominal)
        self.local.append(0)
        self.borrowing.append(of.borrowing if of else None)
        self.lending.append(of.lending if of else None)
        self.potential.append(0)
        return cell

    def _close(self, cell: int) -> None:
        """Children are done: settle what is never lent, and give the rest to the parent."""
        lending = self.lending[cell]
        self.local[cell] = 0 if lending is None else max(0, self.subtree[cell] - lending)
        if self.above[cell] != NOWHERE:
            self.subtree[self.above[cell]] += self.subtree[cell] - self.local[cell]

    def _potential(self, cell: int) -> int:
        above = self.above[cell]
        if above == NOWHERE:
            return self.subtree[cell]
        most = self.local[cell] + self.potential[above]
        limit = self.borrowing[cell]
        return most if limit is None else min(most, self.subtree[cell] + limit)

    def missing(self, pairs: Iterable[tuple[int, int]]) -> bool:
        """Whether some (node, flavor-resource) pair has no cell yet."""
        return any(fr not in self.cells[node] for node, fr in pairs)

    def extended(self, frs: list[FlavorResource], pairs: Iterable[tuple[int, int]]) -> "Quotas":
        """A copy with a cell for each pair and every ancestor, without quota. Existing cells keep their index.

        ``frs`` must start with the present ones."""
        new = object.__new__(Quotas)
        new.tree, new.own = self.tree, self.own
        new.lendable, new.share_terms = self.lendable, self.share_terms
        new.frs, new.fr_index = frs, {fr: i for i, fr in enumerate(frs)}
        new.cells = [dict(of) for of in self.cells]
        for name in ("nominal", "subtree", "local", "borrowing", "lending", "potential", "above", "node", "fr"):
            setattr(new, name, list(getattr(self, name)))
        for node, fr in pairs:
            for above in reversed(self.tree.path(node)):
                if fr not in new.cells[above]:
                    cell = new._new_cell(above, fr, None)
                    new.potential[cell] = new._potential(cell)
        return new

    def changed(self, node: int, fr: int, field: Field, value: int) -> "Quotas":
        """A copy with one limit of one cell set to ``value``: another configuration, thought through to the end."""
        new = self.extended(self.frs, [(node, fr)])
        new.lendable, new.share_terms = {}, {}
        getattr(new, field)[new.cells[node][fr]] = value
        new.own = list(self.own)
        for above in self.tree.path(node):
            new.own[above] = tuple(sorted({*new.own[above], fr}))
        column = [of[fr] for at in new.tree.top_down if fr in (of := new.cells[at])]
        for cell in column:
            new.subtree[cell] = new.nominal[cell]
        for cell in reversed(column):
            new._close(cell)
        for cell in column:
            new.potential[cell] = new._potential(cell)
        return new

    def potential_available(self, node: int, fr: int) -> int:
        """The most that ``node`` could ever have of ``fr``, quotas and limits alone."""
        while node != ROOTLESS:
            cell = self.cells[node].get(fr)
            if cell is not None:
                return self.potential[cell]
            node = self.tree.parent[node]
        return 0
