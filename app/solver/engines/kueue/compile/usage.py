"""Usage of a quota tree, and the arithmetic of Kueue's hierarchical resource tree on it.

Rules: Kueue ``pkg/cache/scheduler/resource_node.go`` (available, usage that bubbles up beyond the local part only).
"""

from collections.abc import Collection, Iterable, Mapping

from app.solver.engines.kueue.compile.quota import NOWHERE, Quotas


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
        column = [of[fr] for at in quotas.tree.top_down if fr in (of := quotas.cells[at])]
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
            kept = local[cell]
            free = kept - use
            if free > 0:
                gathered += free
                free = 0
            limit = borrowing[cell]
            if limit is not None:
                # free is now minus the part of this node's usage that its parent stores.
                cap = gathered + subtree[cell] - kept + free + limit
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
            return [at for at in nodes if (cell := cells[at].get(fr)) is not None and used[cell] > subtree[cell]]
        out: list[int] = []
        for node in nodes:
            of = cells[node]
            for fr in frs:
                cell = of.get(fr)
                if cell is not None and used[cell] > subtree[cell]:
                    out.append(node)
                    break
        return out

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
