"""Fair share as a function of a suggestion, exactly: piecewise-linear curves of many elements at once.

An element (operation or pool) that is offered a *suggestion* s in [0, 1] on top of its guarantee takes the vector
H(s). H is non-decreasing, piecewise linear and left-continuous, with jumps. A pool's H follows from the sum G(f) of
its children's curves over a *fit factor* f: f may grow while G stays within the pool's limits and within
guarantee + s. So with S(f) = max over resources of G(f) - guarantee, H is the curve of the points (S(f), G(f)):
no search, no iteration, all pools of one level in a handful of array operations.

Rows of ``position``/``value`` arrays are vertices, grouped by owner and in order; a jump is two vertices at one
position. Values are shares: dimensionless, one column a resource. Positions closer than ``TOLERANCE`` are one.

The same of a few kinds of children, in plain numbers (``Together``): nothing where the last bits may decide.
"""

from collections.abc import Sequence
from functools import lru_cache
from operator import add, lt, neg, sub
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from app.solver.engines.ytsaurus.operations import (
    Flags,
    Floats,
    Ints,
    any_of,
    least,
    most,
    quotients,
    running_sums,
    scattered,
)
from app.solver.engines.ytsaurus.polyline import GENTLE, LEAST_RISE, Vertices

TOLERANCE = 1e-12
"""Positions that are nearer to each other are one."""
_STEEP = 1e4
MOST_PAIRS = 4_000_000


class Curves(Struct, frozen=True, eq=False):
    """``owner``: ascending; ``position``: the suggestion at each vertex; ``value``: H there."""

    owner: Ints
    position: Floats
    value: Floats


class Sum(Struct, frozen=True, eq=False):
    """G of each pool, what its children take together over its fit factor: vertices in order, a jump's two ends one
    after the other."""

    pool: Ints
    fit: Floats
    value: Floats
    jumped: Flags  # the second end of a jump


def summed(end: Floats, children: Curves, parent: Ints, scale: Floats, shift: Floats, start: Floats) -> Sum:
    """G of each pool; ``start`` receives G(0)."""
    owner = children.owner
    count = len(end)
    first = np.ones(len(owner), bool)
    first[1:] = owner[1:] != owner[:-1]
    pool = parent[owner]
    for r in range(start.shape[1]):
        start[:, r] = np.bincount(pool[first], children.value[first, r], minlength=count)
    factor = scale[owner]
    heard = np.isfinite(factor)
    places = shift[owner] + children.position * np.where(heard, factor, 0.0)
    # One group of places for each distinct fit factor of each pool; every pool has them at 0 and at its end.
    every: Ints = np.arange(count)
    fit, of, group = _grouped(np.concatenate((places, np.zeros(count), end)), np.concatenate((pool, every, every)))
    seg = np.flatnonzero(~first & heard)
    rise = children.value[seg] - children.value[seg - 1]
    bounds: Ints = np.searchsorted(of, np.arange(count + 1))
    jump, increment = _increments(group[seg - 1], group[seg], rise, fit, bounds)
    value = running_sums(jump + increment, bounds) + start[of]
    jumps = any_of(jump > 0)
    jumps[bounds[1:] - 1] = False  # nothing comes after the end, so a jump there is never taken
    twice = np.repeat(np.arange(len(fit)), 1 + jumps)
    second = np.zeros(len(twice), bool)
    second[1:] = twice[1:] == twice[:-1]
    values = value[twice]
    values[second] += jump[twice[second]]
    return Sum(of[twice], fit[twice], values, second)


def _grouped(places: Floats, pools: Ints) -> tuple[Floats, Ints, Ints]:
    """Distinct places of each pool in order, the pool of each, and the index of the one that each place is."""
    order = np.argsort(places, kind="stable")
    small = pools.astype(np.int16 if int(pools.max(initial=0)) < 2**15 else np.int64)
    order = order[np.argsort(small[order], kind="stable")]
    places, pools = places[order], pools[order]
    new = np.ones(len(places), bool)
    new[1:] = (pools[1:] != pools[:-1]) | (places[1:] - places[:-1] > TOLERANCE)
    group = np.empty(len(places), np.int64)
    group[order] = np.cumsum(new) - 1
    return places[new], pools[new], group


def _increments(begin: Ints, end: Ints, rise: Floats, fit: Floats, bounds: Ints) -> tuple[Floats, Floats]:
    """Jumps at each group, and growth from each group to the next.

    A segment within one interval is added exactly. A longer one is spread by its slope, through a prefix sum; where
    that would cost precision (steep ones) interval by interval.
    """
    count = len(fit)
    spans = end - begin
    width = fit[end] - fit[begin]
    long = np.flatnonzero(spans > 1)
    slope = rise[long] / width[long][:, None]
    steep = most(slope) > _STEEP
    if int(spans[long[steep]].sum()) > MOST_PAIRS:
        steep[:] = False
    gentle, sharp = long[~steep], long[steep]
    length = np.zeros(count)
    length[:-1] = np.maximum(np.diff(fit), 0.0)  # below 0 from the last group of a pool to the next pool
    upright, adjacent = np.flatnonzero(spans == 0), np.flatnonzero(spans == 1)
    jump = scattered(begin[upright], rise[upright], count)
    increment = scattered(begin[adjacent], rise[adjacent], count)
    if len(sharp):
        index, part = _spread(begin[sharp], spans[sharp], length, width[sharp])
        increment += scattered(index, part[:, None] * np.repeat(rise[sharp], spans[sharp], axis=0), count)
    if len(gentle):
        slope = slope[~steep]
        slopes = scattered(begin[gentle], slope, count) - scattered(end[gentle], slope, count)
        increment += np.maximum(running_sums(slopes, bounds) + slopes, 0.0) * length[:, None]
    return jump, increment


def _spread(begin: Ints, spans: Ints, length: Floats, width: Floats) -> tuple[Ints, Floats]:
    """For each segment each of its intervals, and the part of the segment's rise that falls there."""
    first = np.cumsum(spans) - spans
    index = np.repeat(begin - first, spans) + np.arange(int(spans.sum()))
    return index, length[index] / np.repeat(width, spans)


EDGE = 1e-11
"""What is nearer than that to a limit or a jump may be on its other side in the origin's doubles."""


def within(total: Sum, limits: Floats) -> Sum:
    """Cut each curve where the first resource reaches its limit; before a jump that would pass it."""
    cap = limits[total.pool]
    over = total.value > cap + TOLERANCE
    bad = any_of(over)
    if not bad.any():
        return total
    before = np.zeros(len(bad), bool)
    before[1:] = bad[:-1] & (total.pool[1:] == total.pool[:-1])
    first = bad & ~before
    crossing = np.flatnonzero(first & ~total.jumped)
    previous = crossing - 1
    low, high = total.value[previous], total.value[crossing]
    part = np.maximum(least(quotients(cap[crossing] - low, high - low, over[crossing], 1.0)), 0.0)
    fit, value = total.fit.copy(), total.value.copy()
    fit[crossing] = fit[previous] + part * (fit[crossing] - fit[previous])
    value[crossing] = low + part[:, None] * (high - low)
    keep = ~bad
    keep[crossing] = True
    # A jump that reaches the limit, with growth right behind it, is not taken: no fit factor lies beyond it.
    useless = crossing[total.jumped[previous] & (fit[crossing] <= fit[previous] + TOLERANCE)]
    keep[useless] = keep[useless - 1] = False
    return Sum(total.pool[keep], fit[keep], value[keep], total.jumped[keep])


def with_kinks(total: Sum, floor: Floats) -> Sum:
    """Add the vertices where another resource becomes the one that needs the largest suggestion.

    Between two vertices every resource's need is linear, so the largest bends at most once a resource. Where one
    resource is the largest at both ends, nothing bends.
    """
    need = np.concatenate((total.value - floor[total.pool], np.zeros((len(total.fit), 1))), axis=1)
    top = need >= most(need)[:, None] - 0.1 * TOLERANCE
    linear = (total.pool[1:] == total.pool[:-1]) & ~total.jumped[1:]
    bent = np.flatnonzero(linear & ~any_of(top[:-1] & top[1:]))
    if not len(bent):
        return total
    rows, parts = _bends(need[bent], need[bent + 1])
    before = bent[rows]
    fit = total.fit[before] + parts * (total.fit[before + 1] - total.fit[before])
    value = total.value[before] + parts[:, None] * (total.value[before + 1] - total.value[before])
    return Sum(
        np.insert(total.pool, before + 1, total.pool[before]),
        np.insert(total.fit, before + 1, fit),
        np.insert(total.value, before + 1, value, axis=0),
        np.insert(total.jumped, before + 1, False),
    )


def _bends(low: Floats, high: Floats) -> tuple[Ints, Floats]:
    """Where between ``low`` and ``high`` the largest of several linear functions bends: rows, and parts of the way.

    The largest at either end cross somewhere; if neither is the largest there, look on both sides.
    """
    rows: Ints = np.arange(len(low))
    left, right = np.zeros(len(low)), np.ones(len(low))
    found_rows: list[Ints] = []
    found_parts: list[Floats] = []
    for _ in range(low.shape[1]):
        if not len(rows):
            break
        here = low[rows] + left[:, None] * (high[rows] - low[rows])
        there = low[rows] + right[:, None] * (high[rows] - low[rows])
        top_here = here >= most(here)[:, None] - 0.1 * TOLERANCE
        top_there = there >= most(there)[:, None] - 0.1 * TOLERANCE
        bent = ~any_of(top_here & top_there)
        rows, left, right, here, there = rows[bent], left[bent], right[bent], here[bent], there[bent]
        each = np.arange(len(rows))
        leaving = np.where(top_here[bent], there, -np.inf).argmax(axis=1)
        coming = np.where(top_there[bent], here, -np.inf).argmax(axis=1)
        gap_here = here[each, leaving] - here[each, coming]
        gap_there = there[each, coming] - there[each, leaving]
        middle = left + gap_here / (gap_here + gap_there) * (right - left)
        found_rows.append(rows)
        found_parts.append(middle)
        rows, left, right = (
            np.concatenate((rows, rows)), np.concatenate((left, middle)), np.concatenate((middle, right)),
        )  # fmt: skip
    all_rows, parts = np.concatenate(found_rows), np.concatenate(found_parts)
    order = np.lexsort((parts, all_rows))
    return all_rows[order], parts[order]


def edges(total: Sum, limits: Floats) -> Floats:
    """By pool, the smallest fit factor at which a share just reaches its limit, at the end of a jump or while another
    share goes on; else infinite."""
    limit = limits[total.pool]
    near = any_of((np.abs(total.value - limit) <= EDGE) & (limit > EDGE))
    goes_on = np.zeros(len(near), bool)
    goes_on[:-1] = (total.pool[1:] == total.pool[:-1]) & any_of(total.value[1:] > total.value[:-1])
    out = np.full(len(limits), np.inf)
    rows = np.flatnonzero(near & (goes_on | total.jumped))
    np.minimum.at(out, total.pool[rows], total.fit[rows])
    return out


class PoolCurves(Struct, frozen=True, eq=False):
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
        upper = first + np.add.reduceat(below.astype(np.int64), first)
        high = np.minimum(upper, last)
        low = np.maximum(high - 1, first)
        between = (upper <= last) & (self.position[high] > suggestion + TOLERANCE) & (high > first)
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


BESIDE = 1e-10
"""Values that are nearer to a bound may meet it at another vertex in other doubles."""
MUCH = 1e-3
"""The part of the steepest rise beside which a bound is met at a place that hangs on no last bits."""


class Kind:
    """Children of a pool that are alike: the curve of each, its ``scale`` as ``summed`` has it, and how many.

    ``start``: what they take of nothing; ``bends``: where over the fit factor it rises faster, and by how much; None:
    each all but jumps."""

    __slots__ = ("bends", "curve", "number", "scale", "start")

    def __init__(self, curve: Vertices, scale: float, number: int) -> None:
        self.curve, self.scale, self.number = curve, scale, number
        self.bends: dict[float, list[float]] | None
        (before, low), *rest = curve
        self.start = [part * number for part in low]
        turns: dict[float, list[float]] = {}
        for place, high in rest:
            length = (place - before) * scale
            rises = [(h - v) * number for h, v in zip(high, low, strict=True)]
            if (steepest := max(rises)) > LEAST_RISE:
                if length * GENTLE * number < steepest:
                    self.bends = None
                    return
                slopes = [rise / length for rise in rises]
                bend(turns, before * scale, slopes)
                bend(turns, place * scale, list(map(neg, slopes)))
            before, low = place, high
        self.bends = turns


def bend(turns: dict[float, list[float]], place: float, turn: list[float]) -> None:
    """What is taken rises so much faster from ``place`` on."""
    before = turns.get(place)
    turns[place] = turn if before is None else list(map(add, before, turn))


kind_of = lru_cache(maxsize=1024)(Kind)
"""Most are as they were a round ago."""


class Together(NamedTuple):
    """What the children of a pool take together, by vertex: the fit factor from 0 to 1, and shares by resource."""

    fits: list[float]
    values: list[list[float]]

    @staticmethod
    def of(kinds: Sequence[Kind], width: int) -> "Together | None":
        """None: some child all but jumps. ``width``: how many resources."""
        value = slope = [0.0] * width
        turns: dict[float, list[float]] = {1.0: value}
        for kind in kinds:
            if kind.bends is None:
                return None
            value = list(map(add, value, kind.start))
            for place, turn in kind.bends.items():
                bend(turns, place, turn)
        fits, values, last = [0.0], [value], 0.0
        slope = turns.pop(0.0, slope)
        for place in sorted(turns):
            gap, last = place - last, place
            value = [v + s * gap for v, s in zip(value, slope, strict=True)]
            slope = list(map(add, slope, turns[place]))
            if place - fits[-1] <= TOLERANCE:
                values[-1] = value
            else:
                fits.append(place)
                values.append(value)
        return Together(fits, values)

    def within(self, bound: list[float]) -> tuple[float, list[float]] | None:
        """The largest fit factor at which no value passes its bound, and the values there; None: the last bits may
        decide. At fit factor 0 none does."""
        fits, values = self
        close = [b - BESIDE for b in bound]
        beside = nothing = set[int]()
        for i, value in enumerate(values):
            if all(map(lt, value, close)):
                beside = nothing
                continue
            near = {r for r, (v, c) in enumerate(zip(value, close, strict=True)) if v >= c}
            over = [r for r, (v, b) in enumerate(zip(value, bound, strict=True)) if v > b + LEAST_RISE]
            if i and over:
                low = values[i - 1]
                rises = [v - w for v, w in zip(value, low, strict=True)]
                part, first = min((max(bound[r] - low[r], 0.0) / rises[r], r) for r in over if rises[r] > 0)
                if rises[first] < MUCH * max(rises):
                    return None
                if max(value[r] - bound[r] for r in over) <= BESIDE and not self._settled(i, near, beside):
                    return None
                return fits[i - 1] + part * (fits[i] - fits[i - 1]), [
                    v + part * rise for v, rise in zip(low, rises, strict=True)
                ]
            if near and not self._settled(i, near, beside):
                return None
            beside = near
        return fits[-1], values[-1]

    def _settled(self, i: int, near: set[int], before: set[int]) -> bool:
        """Whether vertex ``i`` is where some value meets its bound, whatever the last bits. ``near``, ``before``: those
        that are beside theirs there, and at the vertex before."""
        value = self.values[i]
        if i:
            rises = [v - w for v, w in zip(value, self.values[i - 1], strict=True)]
            steep = max(rises)
            if steep > BESIDE and any(rises[r] < MUCH * steep for r in near - before):
                return False
        if i + 1 < len(self.values):
            rises = [v - w for v, w in zip(self.values[i + 1], value, strict=True)]
            steep = max(rises)
            return steep <= BESIDE or any(rises[r] >= MUCH * steep for r in near)
        return True

    def over_suggestion(self, floor: list[float], cap: list[float]) -> Vertices | None:
        """What the pool takes of a suggestion on top of ``floor``, up to ``cap``; None: the last bits may decide."""
        last = self.within(cap)
        if last is None:
            return None
        ends = [value for fit, value in zip(*self, strict=True) if fit < last[0]] + [last[1]]
        out: list[tuple[float, tuple[float, ...]]] = []
        for i, value in enumerate(ends):
            for point in [*(_bends_between(ends[i - 1], value, floor) if i else ()), value]:
                need = max(0.0, *map(sub, point, floor))
                if len(out) == 1 and need <= TOLERANCE:
                    out.clear()
                out.append((need if out else 0.0, tuple(point)))
        return tuple(out)


def _bends_between(low: list[float], high: list[float], floor: list[float]) -> list[list[float]]:
    """Values between two ends where another resource becomes the one that needs most on top of ``floor``."""
    lines = [(v - f, w - v) for v, w, f in zip(low, high, floor, strict=True)] + [(0.0, 0.0)]
    part, (begin, rise) = 0.0, max(lines)
    out: list[list[float]] = []
    while True:
        steeper = [((begin - b) / (r - rise), r, b) for b, r in lines if r > rise]
        if not steeper:
            return out
        crossing = min([(p, -r, b) for p, r, b in steeper])
        if crossing[0] >= 1.0:
            return out
        part, rise, begin = max(crossing[0], part), -crossing[1], crossing[2]
        if part > TOLERANCE:
            out.append([v + part * (w - v) for v, w in zip(low, high, strict=True)])
