"""Quota tables by cell, usage of a quota tree, and the arithmetic of Kueue's hierarchical resource tree on them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from app.solver.compiled import ROOTLESS, Tree
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
        column = [of[fr] for member in new.tree.top_down if fr in (of := new.cells[member])]
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


class Usage:
    """Usage by cell of one decision, over shared quotas; what Kueue's overlay keeps per resource node."""

    __slots__ = ("quotas", "used")

    def __init__(self, quotas: Quotas, used: list[int]) -> None:
        self.quotas = quotas
        self.used = used

    def copy(self) -> "Usage":
        """An independent copy."""
        return Usage(self.quotas, self.used.copy())

    def under(self, quotas: Quotas, fr: int) -> "Usage":
        """The same queues' usage under quotas that differ in ``fr``: what cohorts hold follows from it."""
        new = Usage(quotas, self.used + [0] * (len(quotas.node) - len(self.used)))
        used, above, local = new.used, quotas.above, quotas.local
        column = [of[fr] for node in quotas.tree.top_down if fr in (of := quotas.cells[node])]
        for cell in column:
            if quotas.tree.children[quotas.node[cell]]:
                used[cell] = 0
        for cell in reversed(column):
            if above[cell] != NOWHERE:
                used[above[cell]] += max(0, used[cell] - local[cell])
        return new

    def grow(self, quotas: Quotas) -> None:
        """Go on with an extension of the same quotas."""
        self.used += [0] * (len(quotas.node) - len(self.used))
        self.quotas = quotas

    def add(self, node: int, amounts: Iterable[tuple[int, int]]) -> None:
        """Book (flavor-resource, amount) pairs on ``node``; the parent sees only what exceeds the local part."""
        quotas, used = self.quotas, self.used
        cells, local, above = quotas.cells[node], quotas.local, quotas.above
        for fr, amount in amounts:
            cell, value = cells[fr], amount
            while True:
                before = used[cell]
                used[cell] = before + value
                free = local[cell] - before
                if free > 0:
                    value -= free
                    if value <= 0:
                        break
                cell = above[cell]
                if cell == NOWHERE:
                    break

    def remove(self, node: int, amounts: Iterable[tuple[int, int]]) -> None:
        """The inverse of ``add``: usage of a cohort is a function of its children's, so any order will do."""
        quotas, used = self.quotas, self.used
        cells, local, above = quotas.cells[node], quotas.local, quotas.above
        for fr, amount in amounts:
            cell, value = cells[fr], amount
            while True:
                before = used[cell]
                used[cell] = before - value
                stored = before - local[cell]
                if stored < value:
                    value = stored
                    if value <= 0:
                        break
                cell = above[cell]
                if cell == NOWHERE:
                    break

    def available_cell(self, cell: int) -> int:
        """What the cell's node could still take; may be negative."""
        quotas, used = self.quotas, self.used
        above, local, subtree, borrowing = quotas.above, quotas.local, quotas.subtree, quotas.borrowing
        best: int | None = None
        gathered = 0
        while True:
            up, use = above[cell], used[cell]
            if up == NOWHERE:
                total = gathered + subtree[cell] - use
                return total if best is None or total < best else best
            own = local[cell]
            free = own - use
            if free > 0:
                gathered += free
                free = 0
            limit = borrowing[cell]
            if limit is not None:
                # free is now minus the part of this node's usage that its parent stores.
                cap = gathered + subtree[cell] - own + free + limit
                if best is None or cap < best:
                    best = cap
            cell = up

    def available(self, node: int, fr: int) -> int:
        """What a ClusterQueue can still take of ``fr``: never negative."""
        return max(0, self.available_cell(self.quotas.cells[node][fr]))

    def fits(self, node: int, request: Iterable[tuple[int, int]], *, borrow: bool = True) -> bool:
        """Whether every non-zero amount is available; without ``borrow`` also within the node's nominal quota."""
        cells = self.quotas.cells[node]
        for fr, value in request:
            if value:
                cell = cells[fr]
                if not borrow and self.used[cell] + value > self.quotas.nominal[cell]:
                    return False
                if value > self.available_cell(cell):
                    return False
        return True

    def exceeds(self, node: int, frs: Collection[int]) -> bool:
        """Whether the node borrows in one of ``frs``: usage beyond its own nominal quota (ClusterQueue, which has
        nothing below) or beyond the quota of its subtree (cohort). No quota counts as 0."""
        return bool(self.exceeding((node,), frs))

    def exceeding(self, nodes: Iterable[int], frs: Collection[int]) -> list[int]:
        """Those of ``nodes`` that do: a thousand at a time costs less than a thousand calls."""
        cells, used, subtree = self.quotas.cells, self.used, self.quotas.subtree
        if len(frs) == 1:
            (fr,) = frs
            return [
                member for member in nodes if (cell := cells[member].get(fr)) is not None and used[cell] > subtree[cell]
            ]
        out: list[int] = []
        for node in nodes:
            of = cells[node]
            for fr in frs:
                cell = of.get(fr)
                if cell is not None and used[cell] > subtree[cell]:
                    out.append(node)
                    break
        return out

    def alike(self, fr: int, other: int) -> bool:
        """Whether limits and usage of both are the same on every node."""
        quotas, used = self.quotas, self.used
        columns = used, quotas.nominal, quotas.borrowing, quotas.lending
        for cells in quotas.cells:
            a, b = cells.get(fr), cells.get(other)
            if a is None or b is None:
                if a is not b:
                    return False
            elif any(column[a] != column[b] for column in columns):
                return False
        return True

    def fits_by_level(self, node: int, request: Mapping[int, int]) -> list[bool]:
        """For ``node`` and each ancestor: whether the request, less what lower levels can keep for themselves, is
        within the quota of that subtree (Kueue: QuantitiesFitInQuota)."""
        quotas, used, rest = self.quotas, self.used, dict(request)
        out: list[bool] = []
        for level in quotas.tree.path(node):
            cells, fits = quotas.cells[level], True
            for fr, value in rest.items():
                cell = cells[fr]
                if used[cell] + value > quotas.subtree[cell]:
                    fits = False
                # Local quota to spare takes nothing off what other levels lend: the rest is never negative.
                rest[fr] = max(0, value - max(0, quotas.local[cell] - used[cell]))
            out.append(fits)
        return out
