"""Fair shares of a whole tree in fractions, given what is guaranteed: bottom-up functions, top-down offers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from app.solver.engines.ytsaurus.fair_shares import FairShares
from app.solver.engines.ytsaurus.operations import Floats
from app.solver.engines.ytsaurus.situation import Situation
from tests.properties.ytsaurus_functions import (
    ONE,
    ZERO,
    Child,
    Function,
    Row,
    gang,
    largest_fit,
    operation,
    taken,
    together,
)

LARGEST = 10**7
"""Of denominators: amounts are parts of a cluster that has fewer steps."""


def exactly(row: Sequence[float] | Floats) -> Row:
    """What these doubles stand for."""
    return tuple(Fraction(float(value)).limit_denominator(LARGEST) for value in row)


class ExactTree:
    """``hair``: by how much limits and guarantees are moved, to see whether a hair's breadth decides."""

    def __init__(self, of: Situation, found: FairShares, hair: Fraction = ZERO) -> None:
        self._of, self._found = of, found
        self._hair = ONE + hair
        self.width = len(of.resources)
        self._totals: dict[int, Function] = {}
        self._children: dict[int, list[tuple[Child, int, bool]]] = {}
        self.root = of.root

    def divided(self, top: int, suggestion: Fraction) -> tuple[Floats, Floats]:
        """Fair shares of operations and pools when ``top`` is offered that; 0 outside of it."""
        self.function(top)
        fair = np.zeros_like(self._found.fair)
        pool_fair = np.zeros_like(self._found.pool_fair)
        given = [(top, suggestion)]
        while given:
            pool, offered = given.pop()
            fit = largest_fit(self._totals[pool], *self._bounds(pool), offered)
            pool_fair[pool] = [float(x) for x in self._totals[pool].at(fit)]
            for child, row, is_pool in self._children[pool]:
                if is_pool:
                    given.append((row, child.offered(fit)))
                else:
                    fair[row] = [float(x) for x in child.function.at(child.offered(fit))]
        return fair, pool_fair

    def function(self, pool: int) -> Function:
        """What it takes of a suggestion."""
        self._children[pool] = self._in_order(pool)
        children = [child for child, _, _ in self._children[pool]]
        fifo = pool != self.root and self._of.config.pools[pool].mode == "fifo"
        end = Fraction(len(children)) if fifo and children else ONE
        self._totals[pool] = together(children, end, self.width)
        return taken(self._totals[pool], *self._bounds(pool))

    def _bounds(self, pool: int) -> tuple[Row, Row]:
        of = self._found
        guarantee = exactly(of.pool_strong[pool] + of.pool_integral[pool])
        return tuple(x * self._hair for x in guarantee), tuple(x * self._hair for x in exactly(of.pool_limits[pool]))

    def _in_order(self, pool: int) -> list[tuple[Child, int, bool]]:
        """Pools, then operations; in a FIFO pool the heavier ones first, then the older."""
        own, found = self._of.operations, self._found
        pools = [row for row in range(self.root) if self._of.parent[row] == pool]
        operations = [row for row in range(len(own)) if own.pool[row] == pool]
        rows = [(self.function(row), row, True, found.pool_weight[row], -1) for row in pools]
        rows += [(self._operation(row), row, False, own.weight[row], own.created[row]) for row in operations]
        if pool != self.root and self._of.config.pools[pool].mode == "fifo":
            rows.sort(key=lambda one: (-one[3], one[4], not one[2], one[1]))
            return [(Child(one[0], ONE, Fraction(i)), one[1], one[2]) for i, one in enumerate(rows)]
        weights = [exactly([one[3]])[0] for one in rows]
        least = min(weights, default=ONE)
        return [(Child(one[0], least / w), one[1], one[2]) for one, w in zip(rows, weights, strict=True)]

    def _operation(self, row: int) -> Function:
        of, settings = self._found, self._of.config.settings.shares
        usage, demand, limits = (exactly(one[row]) for one in (of.usage, of.demand, of.limits))
        limits = tuple(x * self._hair for x in limits)
        steps = settings.gang_steps and self._of.config.pools[self._of.operations.pool[row]].shares.gang_steps
        if steps and self._of.operations.gang[row]:
            return gang(demand, limits)
        return operation(usage, demand, limits)
