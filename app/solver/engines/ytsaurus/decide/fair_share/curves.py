"""Fair share as a function of a suggestion, exactly: piecewise-linear curves of many elements at once.

An element (operation or pool) that is offered a *suggestion* s in [0, 1] on top of its guarantee takes the vector
H(s). H is non-decreasing, piecewise linear and left-continuous, with jumps. A pool's H follows from the sum G(f) of
its children's curves over a *fit factor* f: f may grow while G stays within the pool's limits and within
guarantee + s. So with S(f) = max over resources of G(f) - guarantee, H is the curve of the points (S(f), G(f)):
no search, no iteration, all pools of one level in a handful of array operations.

Rows of ``position``/``value`` arrays are vertices, grouped by owner and in order; a jump is two vertices at one
position. Values are shares: dimensionless, one column a resource. Positions closer than ``TOLERANCE`` are one.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, any_of, most, quotients
from app.solver.engines.ytsaurus.decide.fair_share.curve_cuts import EDGE, edges, with_kinks, within
from app.solver.engines.ytsaurus.decide.fair_share.curve_sums import TOLERANCE, Curves, Sum, summed


@dataclass(frozen=True, slots=True)
class PoolCurves:
    """Curves of the pools 0..n-1 of one level, with the fit factor at each vertex.

    ``start``: first vertex of each pool, and the end. ``edge``: by pool, the fit factor from which it depends on the
    last bits whether a limit is passed; ``at_zero``: whether there is a jump at suggestion 0."""

    start: Ints
    position: Floats
    fit: Floats
    value: Floats
    edge: Floats
    at_zero: Flags

    def curves(self) -> Curves:
        """As the level above reads them."""
        return Curves(np.repeat(np.arange(len(self.start) - 1), np.diff(self.start)), self.position, self.value)

    def take(self, pools: Ints) -> "PoolCurves":
        """The curves of these pools only, in their order."""
        counts = np.diff(self.start)[pools]
        start = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        rows: Ints = np.repeat(self.start[pools] - start[:-1], counts) + np.arange(int(start[-1]))
        return PoolCurves(
            start, self.position[rows], self.fit[rows], self.value[rows], self.edge[pools], self.at_zero[pools]
        )

    @staticmethod
    def joined(parts: "list[PoolCurves]") -> "PoolCurves":
        """All of ``parts``, one after another."""
        sizes = np.concatenate([np.diff(part.start) for part in parts])
        return PoolCurves(
            np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
            np.concatenate([part.position for part in parts]),
            np.concatenate([part.fit for part in parts]),
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.edge for part in parts]),
            np.concatenate([part.at_zero for part in parts]),
        )

    def sensitive(self, suggestion: Floats, fit: Floats) -> bool:
        """Whether the last bits may decide what some pool takes of its suggestion, at its fit factor."""
        if ((fit >= self.edge - EDGE) | (self.at_zero & (suggestion <= EDGE))).any():
            return True
        jump = np.flatnonzero((np.diff(self.position) <= EDGE) & any_of(np.diff(self.value, axis=0) > EDGE))
        pool = np.searchsorted(self.start, jump, side="right") - 1
        inside = jump + 1 < self.start[pool + 1]
        return bool((inside & (np.abs(self.position[jump] - suggestion[pool]) <= EDGE)).any())

    def at(self, suggestion: Floats) -> tuple[Floats, Floats]:
        """Fit factor and H of each pool at its suggestion: the smaller end of a jump."""
        first, last = self.start[:-1], self.start[1:] - 1
        counts = np.diff(self.start)
        below = self.position < np.repeat(suggestion - TOLERANCE, counts)
        at = first + np.add.reduceat(below.astype(np.int64), first)
        high = np.minimum(at, last)
        low = np.maximum(high - 1, first)
        between = (at <= last) & (self.position[high] > suggestion + TOLERANCE) & (high > first)
        part = quotients(suggestion - self.position[low], self.position[high] - self.position[low], between, 1.0)
        fit = self.fit[low] + part * (self.fit[high] - self.fit[low])
        value = self.value[low] + part[:, None] * (self.value[high] - self.value[low])
        exact = part == 1.0
        fit[exact] = self.fit[high[exact]]
        value[exact] = self.value[high[exact]]
        return fit, value


def pool_curves(
    end: Floats, children: Curves, parent: Ints, scale: Floats, shift: Floats, guarantee: Floats, limits: Floats
) -> PoolCurves:
    """H of the pools whose fit factors go up to ``end``, given their children's curves.

    ``parent``, ``scale``, ``shift``: by owner of ``children``: which pool it is in, and how its suggestion follows
    the pool's fit factor: s = (f - shift) / scale, between 0 and 1. ``guarantee``, ``limits``: by pool.
    """
    count = len(end)
    start = np.zeros((count, guarantee.shape[1]))
    total = summed(end, children, parent, scale, shift, start)
    floor = np.maximum(guarantee, start)
    cap = np.maximum(limits, start)
    edge = edges(total, cap)
    total = with_kinks(within(total, cap), floor)
    return _inverted(edge, total, floor)


def _inverted(edge: Floats, total: Sum, floor: Floats) -> PoolCurves:
    """The curve over the suggestion that each vertex needs; before a jump it waits for what the jump's end needs."""
    position = np.maximum(most(total.value - floor[total.pool]), 0.0)
    waits = total.jumped & (position > np.concatenate(([0.0], position[:-1])))
    rows = np.repeat(np.arange(len(position)), 1 + waits)
    source = rows.copy()
    second = np.zeros(len(rows), bool)
    second[1:] = rows[1:] == rows[:-1]
    inserted = np.zeros(len(rows), bool)
    inserted[:-1] = second[1:]
    source[inserted] -= 1
    pool, where = total.pool[rows], position[rows]
    fit, value = total.fit[source], total.value[source]
    follows = np.zeros(len(pool), bool)
    follows[:-1] = (pool[1:] == pool[:-1]) & (where[1:] <= TOLERANCE)
    keep = ~follows
    leaps = np.zeros(len(edge), bool)
    leaps[pool[np.flatnonzero(follows[:-1] & any_of(np.diff(value, axis=0) > EDGE))]] = True
    pool, where = pool[keep], where[keep].copy()
    where[where <= TOLERANCE] = 0.0
    start: Ints = np.searchsorted(pool, np.arange(len(edge) + 1))
    return PoolCurves(start, where, fit[keep], value[keep], edge, leaps)
