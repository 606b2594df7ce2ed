"""Piecewise linear functions to the last bit, as ``yt/yt/library/numeric/piecewise_linear_function-inl.h`` has them.

A function is a polyline: ``x`` never falls, ``y`` has a row a vertex (one column a resource, or one in all). Two
vertices at one ``x`` are a jump; functions are left-continuous, so the value there is the first one's. No vertex is
superfluous: no two equal ones follow each other, and jumps and plateaus are one segment each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.arrays import Flags, Floats, Ints, any_of
from app.solver.engines.ytsaurus.doubles import largest

COMPRESSION = 1e-15
"""How far ``compressed`` may move a function."""


@dataclass(frozen=True, slots=True)
class Polyline:
    """``x``: n vertices; ``y``: n rows."""

    x: Floats
    y: Floats

    @property
    def end(self) -> float:
        """Where the function ends."""
        return float(self.x[-1])

    def at(self, x: float) -> Floats:
        """The value at ``x``: the smaller end of a jump."""
        return self.left(np.array([x]))[0]

    def left(self, x: Floats) -> Floats:
        """Left limits at each ``x``."""
        i = np.searchsorted(self.x[1:], x)
        return self._within(i, x)

    def right(self, x: Floats) -> Floats:
        """Right limits at each ``x``; at the end the last value."""
        i = np.minimum(np.searchsorted(self.x, x, side="right"), len(self.x) - 1) - 1
        jump = self.x[i] == self.x[i + 1]
        return np.where(jump[:, None], self.y[i + 1], self._within(i, x))

    def both(self, x: Floats) -> tuple[Floats, Floats]:
        """Left and right limits at each ``x``, ascending."""
        i = np.searchsorted(self.x[1:], x)
        left = self._within(i, x)
        after = np.minimum(i + 1, len(self.x) - 2)
        leaps = (self.x[after] == x) & (self.x[after + 1] == x)
        i = np.where(leaps, after, i)
        jump = self.x[i] == self.x[i + 1]
        return np.where(jump[:, None], self.y[i], left), np.where(jump[:, None], self.y[i + 1], left)

    def _within(self, i: Ints, x: Floats) -> Floats:
        """Values at ``x`` on the segments ``i``; the first end of a jump. Monotone: each end is met exactly."""
        low, high = self.x[i], self.x[i + 1]
        width = high - low
        jump = width == 0
        part = np.where(jump, 0.0, (x - low) / np.where(jump, 1.0, width))[:, None]
        below, above = self.y[i], self.y[i + 1]
        rise = above - below
        return np.where(part < 0.5, below + rise * part, above - rise * (1 - part))

    def scaled(self, scale: float) -> "Polyline":
        """The function of ``x * scale``."""
        return polyline(self.x / scale, self.y)

    def shifted(self, by: float) -> "Polyline":
        """The function of ``x - by``."""
        return polyline(self.x + by, self.y)

    def extended(self, end: float) -> "Polyline":
        """Going on with its last value up to ``end``."""
        if self.x[-1] >= end:
            return self
        return polyline(np.append(self.x, end), np.concatenate((self.y, self.y[-1:])))

    def trimmed_left(self) -> "Polyline":
        """Without a jump at its beginning: that is taken."""
        if self.x[0] != self.x[1] or (self.y[0] == self.y[1]).all():
            return self
        if len(self.x) > 2:
            return Polyline(self.x[1:], self.y[1:])
        return Polyline(self.x, np.repeat(self.y[1:], 2, axis=0))

    def trimmed(self) -> "Polyline":
        """Without a jump at its end: that is never taken."""
        if self.x[-1] != self.x[-2] or (self.y[-1] == self.y[-2]).all():
            return self
        if len(self.x) > 2:
            return Polyline(self.x[:-1], self.y[:-1])
        return Polyline(self.x, np.repeat(self.y[:1], 2, axis=0))

    def column(self, r: int) -> "Polyline":
        """One column of it."""
        return polyline(self.x, self.y[:, r : r + 1])

    def transposed(self) -> "Polyline":
        """The inverse of a function with one column that never falls."""
        return Polyline(self.y[:, 0].copy(), self.x[:, None].copy())

    def narrowed(self, low: float, high: float) -> "Polyline":
        """The function between ``low`` and ``high``, with the jumps at both."""
        inside = np.unique(self.x[(self.x > low) & (self.x < high)])
        ends = [low] if low == high else [low, high]
        return sampled(np.sort(np.concatenate((inside, ends))), [self])


def polyline(x: Floats, y: Floats) -> Polyline:
    """The function through these vertices, superfluous ones left out."""
    same_x, same_y = x[1:] == x[:-1], (y[1:] == y[:-1]).all(axis=1)
    keep = np.ones(len(x), bool)
    keep[1:] = ~(same_x & same_y)
    if keep.sum() < 2:
        return Polyline(x[:2], y[:2])
    x, y = x[keep], y[keep]
    same_x, same_y = x[1:] == x[:-1], (y[1:] == y[:-1]).all(axis=1)
    inner = np.ones(len(x), bool)
    inner[1:-1] = ~((same_x[1:] & same_x[:-1]) | (same_y[1:] & same_y[:-1]))
    return Polyline(x[inner], y[inner])


def sampled(x: Floats, functions: Sequence[Polyline]) -> Polyline:
    """The sum of ``functions`` at ``x``, added one after another: their order decides the last bits."""
    left = np.zeros((len(x), functions[0].y.shape[1]))
    right = left.copy()
    for function in functions:
        one, other = function.both(x)
        left += one
        right += other
    return polyline(np.repeat(x, 2), np.stack((left, right), axis=1).reshape(2 * len(x), -1))


def total(functions: Sequence[Polyline]) -> Polyline:
    """The sum of ``functions``, where all of them are defined."""
    begin, end = max(f.x[0] for f in functions), min(f.x[-1] for f in functions)
    x = np.unique(np.concatenate([f.x for f in functions]))
    return sampled(x[(x >= begin) & (x <= end)], functions)


def smallest(one: Polyline, other: Polyline) -> Polyline:
    """The smaller of two functions with one column, where both are defined."""
    begin, end = max(one.x[0], other.x[0]), min(one.x[-1], other.x[-1])
    x = np.unique(np.concatenate((one.x, other.x)))
    x = x[(x >= begin) & (x <= end)]
    crossings = [_crossing(one, other, *bounds) for bounds in _crossed(one, other, x)]
    if crossings:
        x = np.unique(np.concatenate((x, crossings)))
    (left, right), (other_left, other_right) = one.both(x), other.both(x)
    y = np.stack((np.minimum(left, other_left), np.minimum(right, other_right)), axis=1)
    return polyline(np.repeat(x, 2), y.reshape(-1, 1))


def _crossed(one: Polyline, other: Polyline, x: Floats) -> list[tuple[float, float]]:
    """Intervals of ``x`` in which the two change places."""
    low, high = x[:-1], x[1:]
    before, after = (_on_segment(one, low, at) - _on_segment(other, low, at) for at in (low, high))
    crossed = (before < 0) & (after > 0) | (before > 0) & (after < 0)
    return list(zip(low[crossed].tolist(), high[crossed].tolist(), strict=True))


def _on_segment(of: Polyline, begin: Floats, x: Floats) -> Floats:
    """Values at ``x`` on the segments that go on to the right of ``begin``."""
    i = np.minimum(np.searchsorted(of.x, begin, side="right"), len(of.x) - 1) - 1
    return of._within(i, x)[:, 0]  # pyright: ignore[reportPrivateUsage]


def _crossing(one: Polyline, other: Polyline, begin: float, end: float) -> float:
    """The last double in between at which the lower one is not the higher yet."""
    low, high = _segment(one, begin), _segment(other, begin)
    if low(begin) > high(begin):
        low, high = high, low
    return largest(lambda x: low(x) <= high(x), begin, end)


class _segment:  # noqa: N801  # a function with what it remembers
    def __init__(self, of: Polyline, begin: float) -> None:
        i = min(int(np.searchsorted(of.x, begin, side="right")), len(of.x) - 1) - 1
        self._x, self._width = float(of.x[i]), float(of.x[i + 1]) - float(of.x[i])
        self._low, self._high = float(of.y[i, 0]), float(of.y[i + 1, 0])

    def __call__(self, x: float) -> float:
        part = (x - self._x) / self._width
        rise = self._high - self._low
        return self._low + rise * part if part < 0.5 else self._high - rise * (1 - part)


def composed(outer: Polyline, inner: Polyline) -> Polyline:
    """``outer`` of ``inner``, which has one column and never falls."""
    x, y = inner.x, inner.y[:, 0]
    places = np.unique(outer.x)
    places = places[(places > y[0]) & (places < y[-1])]
    i = np.searchsorted(y[1:], places)
    tilted = (y[i] < places) & (y[i + 1] > places) & (x[i] < x[i + 1])
    places, i = places[tilted], i[tilted]
    if len(places):
        inverse = inner.transposed()
        x = np.concatenate((x, inverse.left(places)[:, 0]))
        y = np.concatenate((y, places))
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    first = np.ones(len(x), bool)
    first[1:] = x[1:] != x[:-1]
    last = np.ones(len(x), bool)
    last[:-1] = first[1:]
    rises = np.zeros(len(x), bool)
    rises[:-1] = y[1:] > y[:-1]
    begin, end = np.flatnonzero(first), np.flatnonzero(last)
    left = outer.left(y[begin])
    right = np.where(rises[end][:, None], outer.right(y[end]), outer.left(y[end]))
    values = np.stack((left, right), axis=1).reshape(2 * len(begin), -1)
    return polyline(np.repeat(x[begin], 2), values).trimmed()


def compressed(of: Polyline) -> Polyline:
    """With fewer vertices: neighbouring segments are one where it strays less than COMPRESSION from them."""
    segments = len(of.x) - 1
    if segments < 2 or not _mergeable(of).any():
        return of
    keep = [0]
    start = 0
    top, bottom = _bounds(of, 0, 1)
    for i in range(1, segments):
        higher, lower = _bounds(of, start, i + 1)
        whole = _span(of, start, i + 1)
        top = np.where(_orientation(higher, top) > 0, higher, top)
        bottom = np.where(_orientation(lower, bottom) < 0, lower, bottom)
        if ((_orientation(bottom, whole) > 0) & (_orientation(top, whole) < 0)).all():
            continue
        keep.append(i)
        start = i
        top, bottom = _bounds(of, i, i + 1)
    keep.append(segments)
    return polyline(of.x[keep], of.y[keep])


def _mergeable(of: Polyline) -> Flags:
    """Which segments go on into the next one nearly straight."""
    n = len(of.x) - 2
    width = np.broadcast_to((of.x[1:-1] - of.x[:-2])[:, None], (n, of.y.shape[1]))
    both = np.broadcast_to((of.x[2:] - of.x[:-2])[:, None], (n, of.y.shape[1]))
    whole = np.stack((both, of.y[2:] - of.y[:-2]))
    fine = np.ones(n, bool)
    for sign in (1, -1):
        near = np.stack((width, (of.y[1:-1] + sign * COMPRESSION) - of.y[:-2]))
        far = np.stack((both, (of.y[2:] + sign * COMPRESSION) - of.y[:-2]))
        bound = np.where(sign * _orientation(far, near) > 0, far, near)
        fine &= ~any_of(sign * _orientation(bound, whole) >= 0)
    return fine


def _span(of: Polyline, begin: int, end: int, by: float = 0.0) -> Floats:
    """Widths and rises from one vertex to another, that one moved up ``by``: two rows, one column a resource."""
    rise = (of.y[end] + by) - of.y[begin]
    return np.stack((np.full(len(rise), of.x[end] - of.x[begin]), rise))


def _bounds(of: Polyline, begin: int, end: int) -> tuple[Floats, Floats]:
    return _span(of, begin, end, COMPRESSION), _span(of, begin, end, -COMPRESSION)


def _orientation(one: Floats, other: Floats) -> Floats:
    """Above 0 where ``other`` is steeper than ``one``, by column (``CompareSegments``)."""
    return one[0] * other[1] - other[0] * one[1]
