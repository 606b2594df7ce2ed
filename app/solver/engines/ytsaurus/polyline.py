"""Piecewise linear functions to the last bit, as ``yt/yt/library/numeric/piecewise_linear_function-inl.h`` has them.

A function is a polyline: ``x`` never falls, ``y`` has a row a vertex (one column a resource, or one in all). Two
vertices at one ``x`` are a jump; functions are left-continuous, so the value there is the first one's. No vertex is
superfluous: no two equal ones follow each other, and jumps and plateaus are one segment each. Doubles are the origin's
too: its rounding, its search for the largest one.
"""

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from msgspec import Struct

from app.solver.engines.ytsaurus.operations import Flags, Floats, Ints, any_of, quotients

_DOUBLE, _INTEGER = struct.Struct("<d"), struct.Struct("<q")

EPSILON = 1e-9
"""Shares that are nearer to each other are equal, as in the origin (``resource_vector.h``)."""
GENTLE = 1e3
"""What rises faster is as good as a jump."""


def rounded(values: Floats) -> Floats:
    """To the nearest integer, halves away from zero, as C does it."""
    whole = np.trunc(values)
    return whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0)


def in_order(rows: Floats) -> Floats:
    """The sum of ``rows``, one after another: the order decides the last bits."""
    return np.cumsum(rows, axis=0)[-1] if len(rows) else np.zeros(rows.shape[1:])


def sums_of(rows: Floats, owner: Ints, count: int) -> Floats:
    """Sums of ``rows`` by owner, each in the order of its rows: a matrix of ``count`` rows."""
    out = np.zeros((count, rows.shape[1]))
    for r, column in enumerate(rows.T):
        out[:, r] = np.bincount(owner, column, minlength=count)
    return out


def largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest double between ``low`` and ``high``, neither negative, for which ``holds`` is true.

    ``holds`` is true up to some double and false from there on; it is taken to hold at ``low``
    (``FloatingPointInverseLowerBound``: doubles of one sign are ordered as their bits are).
    """
    if low >= high or holds(high):
        return max(low, high)
    below, above = _bits(low), _bits(high)
    while below + 1 < above:
        middle = (below + above) // 2
        if holds(_double(middle)):
            below = middle
        else:
            above = middle
    return _double(below)


def _bits(value: float) -> int:
    return _INTEGER.unpack(_DOUBLE.pack(value + 0.0))[0]  # -0.0 has bits of its own


def _double(bits: int) -> float:
    return _DOUBLE.unpack(_INTEGER.pack(bits))[0]


COMPRESSION = 1e-15
"""How far ``compressed`` may move a function."""


_FEW = 8
"""Vertices of a function of which it is quicker to go from segment to segment."""


class Polyline(Struct, frozen=True, eq=False):
    """``x``: n vertices; ``y``: n rows."""

    x: Floats
    y: Floats

    @property
    def end(self) -> float:
        """Where the function ends."""
        return float(self.x[-1])

    def at(self, x: float) -> Floats:
        """The value at ``x``: the smaller end of a jump."""
        i = int(np.searchsorted(self.x[1:], x))
        begin, end = self.x[i : i + 2].tolist()
        return _between(self.y[i], self.y[i + 1], (x - begin) / (end - begin) if end > begin else 0.0)

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
        if len(self.x) <= _FEW and not (self.x[2:] == self.x[:-2]).any():
            return self._both(x)
        i = np.searchsorted(self.x[1:], x)
        left = self._within(i, x)
        after = np.minimum(i + 1, len(self.x) - 2)
        leaps = (self.x[after] == x) & (self.x[after + 1] == x)
        i = np.where(leaps, after, i)
        jump = self.x[i] == self.x[i + 1]
        return np.where(jump[:, None], self.y[i], left), np.where(jump[:, None], self.y[i + 1], left)

    def _both(self, x: Floats) -> tuple[Floats, Floats]:
        """The same segment by segment, for many ``x`` on few of them."""
        left, done = np.empty((len(x), self.y.shape[1])), 0
        places: list[float] = self.x.tolist()
        last: list[int] = np.searchsorted(x, self.x[1:], side="right").tolist()
        level: list[bool] = (self.y[1:] == self.y[:-1]).all(axis=1).tolist()
        jumps: list[int] = []
        for k, end in enumerate(last):
            width = places[k + 1] - places[k]
            if width <= 0.0:
                jumps.append(k)
            part = ((x[done:end] - places[k]) / width)[:, None] if width > 0.0 and not level[k] else None
            if part is None:
                left[done:end] = self.y[k]
            else:
                low, high = self.y[k], self.y[k + 1]
                rise = high - low
                left[done:end] = np.where(part < 0.5, low + rise * part, high - rise * (1 - part))
            done = end
        right = left.copy()
        for k in jumps:
            begin, end = np.searchsorted(x, places[k]), last[k]
            left[begin:end], right[begin:end] = self.y[k], self.y[k + 1]
        return left, right

    def _within(self, i: Ints, x: Floats) -> Floats:
        """Values at ``x`` on the segments ``i``; the first end of a jump. Monotone: each end is met exactly."""
        low, high = self.x[i], self.x[i + 1]
        width = high - low
        part = quotients(x - low, width, width > 0, 0.0)[:, None]
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


def _between(low: Floats, high: Floats, part: float) -> Floats:
    rise = high - low
    return low + rise * part if part < 0.5 else high - rise * (1 - part)


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
    limits: dict[int, tuple[Floats, Floats]] = {}
    for function in functions:
        if id(function) not in limits:
            limits[id(function)] = function.both(x)
        before, after = limits[id(function)]
        left += before
        right += after
    return polyline(np.repeat(x, 2), np.stack((left, right), axis=1).reshape(2 * len(x), -1))


def values_at(functions: Sequence[Polyline], x: Sequence[float]) -> list[Floats]:
    """The value of each function at its own ``x``; of one that comes again there too it is worked out once."""
    known: dict[tuple[int, float], Floats] = {}
    out: list[Floats] = []
    for function, place in zip(functions, x, strict=True):
        key = id(function), place
        if key not in known:
            known[key] = function.at(place)
        out.append(known[key])
    return out


def total(functions: Sequence[Polyline]) -> Polyline:
    """The sum of ``functions``, where all of them are defined."""
    begin, end = max(f.x[0] for f in functions), min(f.x[-1] for f in functions)
    x = np.unique(np.concatenate(list({id(f): f.x for f in functions}.values())))
    return sampled(x[(x >= begin) & (x <= end)], functions)


def smallest(own: Polyline, other: Polyline) -> Polyline:
    """The smaller of two functions with one column, where both are defined."""
    begin, end = max(own.x[0], other.x[0]), min(own.x[-1], other.x[-1])
    x = np.unique(np.concatenate((own.x, other.x)))
    x = x[(x >= begin) & (x <= end)]
    crossings = [_crossing(own, other, *bounds) for bounds in _crossed(own, other, x)]
    if crossings:
        x = np.unique(np.concatenate((x, crossings)))
    (left, right), (other_left, other_right) = own.both(x), other.both(x)
    y = np.stack((np.minimum(left, other_left), np.minimum(right, other_right)), axis=1)
    return polyline(np.repeat(x, 2), y.reshape(-1, 1))


def _crossed(own: Polyline, other: Polyline, x: Floats) -> list[tuple[float, float]]:
    """Intervals of ``x`` in which the two change places."""
    low, high = x[:-1], x[1:]
    before, after = (_on_segment(own, low, place) - _on_segment(other, low, place) for place in (low, high))
    crossed = np.sign(before) * np.sign(after) < 0
    return list(zip(low[crossed].tolist(), high[crossed].tolist(), strict=True))


def _on_segment(of: Polyline, begin: Floats, x: Floats) -> Floats:
    """Values at ``x`` on the segments that go on to the right of ``begin``, which is not the end."""
    i = np.searchsorted(of.x, begin, side="right") - 1
    return of._within(i, x)[:, 0]  # pyright: ignore[reportPrivateUsage]


def _crossing(own: Polyline, other: Polyline, begin: float, end: float) -> float:
    """The last double in between at which the lower one is not the higher yet."""
    low, high = sorted((_segment(own, begin), _segment(other, begin)), key=lambda segment: segment(begin))
    return largest(lambda x: low(x) <= high(x), begin, end)


class _segment:  # noqa: N801  # a function with what it remembers
    def __init__(self, of: Polyline, begin: float) -> None:
        i = int(np.searchsorted(of.x, begin, side="right")) - 1
        self._x, self._width = float(of.x[i]), float(of.x[i + 1]) - float(of.x[i])
        self._low, self._high = float(of.y[i, 0]), float(of.y[i + 1, 0])

    def __call__(self, x: float) -> float:
        part = (x - self._x) / self._width
        rise = self._high - self._low
        return self._low + rise * part if part < 0.5 else self._high - rise * (1 - part)


class Column:
    """A function with one column on plain numbers: a few vertices are quicker so."""

    def __init__(self, x: list[float], y: list[float]) -> None:
        """Through these vertices, superfluous ones left out."""
        self.x, self.y = x[:1], y[:1]
        for here, value in zip(x[1:], y[1:], strict=True):
            level, upright = value == self.y[-1], here == self.x[-1]
            if level and upright:
                continue
            if len(self.x) > 1 and ((level and value == self.y[-2]) or (upright and here == self.x[-2])):
                self.x[-1], self.y[-1] = here, value
            else:
                self.x.append(here)
                self.y.append(value)
        if len(self.x) < 2:
            self.x.append(x[-1])
            self.y.append(y[-1])

    def both(self, x: float) -> tuple[float, float]:
        """Left and right limits at ``x``."""
        i = bisect_left(self.x, x, 1) - 1
        left = self._within(i, x)
        after = min(i + 1, len(self.x) - 2)
        if self.x[after] == x and self.x[after + 1] == x:
            i = after
        return (self.y[i], self.y[i + 1]) if self.x[i] == self.x[i + 1] else (left, left)

    def on_the_right(self, begin: float) -> int:
        """The segment that goes on to the right of ``begin``."""
        return bisect_right(self.x, begin) - 1

    def _within(self, i: int, x: float) -> float:
        width = self.x[i + 1] - self.x[i]
        return self.on(i, x) if width > 0 else self.y[i]

    def on(self, i: int, x: float) -> float:
        """The value at ``x`` on segment ``i``, which is not upright."""
        part = (x - self.x[i]) / (self.x[i + 1] - self.x[i])
        rise = self.y[i + 1] - self.y[i]
        return self.y[i] + rise * part if part < 0.5 else self.y[i + 1] - rise * (1 - part)

    def up_to(self, limit: float) -> "Column":
        """From 0 to ``limit``, without a jump at 0, then level to 1."""
        x = sorted({0.0, limit, *(here for here in self.x if 0 < here < limit)})
        limits = [self.both(here) for here in x]
        xs = [here for here in x for _ in range(2)]
        cut = Column(xs, [value for pair in limits for value in pair])
        x, y = cut.x, cut.y
        if x[0] == x[1] and y[0] != y[1]:
            x, y = (x[1:], y[1:]) if len(x) > 2 else (x, y[1:] * 2)
        return Column([*x, 1.0], [*y, y[-1]]) if x[-1] < 1.0 else Column(x, y).trimmed()

    def trimmed(self) -> "Column":
        """Without a jump at its end."""
        if self.x[-1] == self.x[-2] and self.y[-1] != self.y[-2]:
            return Column(self.x[:-1], self.y[:-1]) if len(self.x) > 2 else Column(self.x, self.y[:1] * 2)
        return self

    def or_less(self, other: "Column") -> "Column":
        """The smaller of the two, which begin and end together."""
        x = sorted({*self.x, *other.x})
        for begin, end in pairwise(tuple(x)):
            i, j = self.on_the_right(begin), other.on_the_right(begin)
            before, after = self.on(i, begin) - other.on(j, begin), self.on(i, end) - other.on(j, end)
            if before < 0 < after or after < 0 < before:
                low, high = (partial(self.on, i), partial(other.on, j))[:: 1 if before < 0 else -1]
                x.append(largest(lambda here, low=low, high=high: low(here) <= high(here), begin, end))
        y: list[float] = []
        x = sorted(set(x))
        for here in x:
            (left, right), (other_left, other_right) = self.both(here), other.both(here)
            y += [min(left, other_left), min(right, other_right)]
        return Column([here for here in x for _ in range(2)], y)


def composed(outer: Polyline, inner: Polyline) -> Polyline:
    """``outer`` of ``inner``, which has one column and never falls."""
    x, y = inner.x, inner.y[:, 0]
    places = np.unique(outer.x)
    places = places[(places > y[0]) & (places < y[-1])]
    i = np.searchsorted(y[1:], places)
    tilted = (y[i + 1] > places) & (x[i] < x[i + 1])  # elsewhere there is a vertex already
    places, i = places[tilted], i[tilted]
    if len(places):
        inverse = inner.transposed()
        x = np.concatenate((x, inverse.left(places)[:, 0]))
        y = np.concatenate((y, places))
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    rises = np.append(y[1:], np.inf) > y  # a jump at the end is left out below
    left = outer.left(y)
    right = np.where(rises[:, None], outer.right(y), left)
    values = np.stack((left, right), axis=1).reshape(2 * len(x), -1)
    return polyline(np.repeat(x, 2), values).trimmed()


def compressed(of: Polyline) -> Polyline:
    """With fewer vertices: neighbouring segments are one where it strays less than COMPRESSION from them."""
    segments = len(of.x) - 1
    straight: list[bool] = _mergeable(of).tolist() if segments > 1 else []
    if not any(straight):
        return of
    x: list[float] = of.x.tolist()
    y: list[list[float]] = of.y.tolist()
    keep = [0]
    while keep[-1] < segments:
        start = keep[-1]
        goes_on = start < segments - 1 and straight[start]
        keep.append(_as_far_as_straight(x, y, start) if goes_on else start + 1)
    return polyline(of.x[keep], of.y[keep])


def _as_far_as_straight(x: list[float], y: list[list[float]], start: int) -> int:
    """The last vertex that one segment from ``start`` can reach: on plain numbers, a vertex takes a few of them.

    By column the steepest and the flattest segment that are near enough to all vertices so far, as width and rise;
    a segment is steeper than another where the cross product is above 0 (``CompareSegments``)."""
    begin, width = y[start], x[start + 1] - x[start]
    tops = [(width, (value + COMPRESSION) - low) for value, low in zip(y[start + 1], begin, strict=True)]
    bottoms = [(width, (value - COMPRESSION) - low) for value, low in zip(y[start + 1], begin, strict=True)]
    for end in range(start + 2, len(x)):
        width = x[end] - x[start]
        for c, (value, low) in enumerate(zip(y[end], begin, strict=True)):
            rise = value - low
            (top_width, top), (bottom_width, bottom) = tops[c], bottoms[c]
            higher, lower = (value + COMPRESSION) - low, (value - COMPRESSION) - low
            if width * top - top_width * higher > 0:
                top_width, top = tops[c] = (width, higher)
            if width * bottom - bottom_width * lower < 0:
                bottom_width, bottom = bottoms[c] = (width, lower)
            if bottom_width * rise - width * bottom <= 0 or top_width * rise - width * top >= 0:
                return end - 1
    return len(x) - 1


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


def _orientation(own: Floats, other: Floats) -> Floats:
    """Above 0 where ``other`` is steeper than ``one``, by column (``CompareSegments``)."""
    return own[0] * other[1] - other[0] * own[1]


Vertex = tuple[float, tuple[float, ...]]
"""Position and value."""
Vertices = tuple[Vertex, ...]
"""A curve that never jumps, from position 0 on."""
LEAST_RISE = 1e-14
"""What rises less is level."""


def is_straight(first: Vertex, middle: Vertex, last: Vertex) -> bool:
    """Whether ``middle`` lies between the others, but for rounding."""
    if last[0] <= first[0]:
        return False
    part = (middle[0] - first[0]) / (last[0] - first[0])
    values = zip(first[1], middle[1], last[1], strict=True)
    return all(abs(v + part * (w - v) - m) <= LEAST_RISE for v, m, w in values)


class Lines:
    """What ``number`` operations take together of a fit factor, a suggestion times ``scale``, as straight lines: where
    each begins and ends, and by resource its value at 0, then its slope; None: it all but jumps."""

    __slots__ = ("begins", "ends", "of", "rows")

    def __init__(self, curve: Vertices, scale: float, number: int) -> None:
        self.of = curve, scale, number
        self.ends: list[float] = []
        self.rows: list[list[float] | None] = []
        for (place, low), (end, high) in pairwise(curve):
            if (length := (end - place) * scale) > 0:
                slopes = [(h - v) * number / length for h, v in zip(high, low, strict=True)]
                values = [v * number - s * place * scale for v, s in zip(low, slopes, strict=True)]
                self.ends.append(end * scale)
                self.rows.append(None if max(slopes) > GENTLE * number else values + slopes)
        self.begins = [0.0, *self.ends]
        self.ends.append(math.inf)
        self.rows.append([v * number for v in curve[-1][1]] + [0.0] * len(curve[-1][1]))


def value_at(curve: Vertices, suggestion: float) -> tuple[float, ...]:
    """Of an operation at its suggestion."""
    (begin, low), *rest = curve
    for end, high in rest:
        if suggestion < end:
            part = (suggestion - begin) / (end - begin)
            return tuple([v + part * (w - v) for v, w in zip(low, high, strict=True)])
        begin, low = end, high
    return low
