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
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

TOLERANCE = 1e-12
_STEEP = 1e6
_MOST_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Demands:
    """What operations use and could use: ``usage`` + ``gap`` is the demand; shares, one row an operation."""

    usage: Floats
    gap: Floats
    limits: Floats

    def take(self, rows: Ints) -> "Demands":
        """These rows only."""
        return Demands(self.usage[rows], self.gap[rows], self.limits[rows])


@dataclass(frozen=True, slots=True)
class Curves:
    """``owner``: ascending; ``position``: the suggestion at each vertex; ``value``: H there."""

    owner: Ints
    position: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class PoolCurves:
    """Curves of the pools 0..n-1 of one level, with the fit factor at each vertex.

    ``start``: first vertex of each pool, and the end."""

    start: Ints
    position: Floats
    fit: Floats
    value: Floats

    def curves(self) -> Curves:
        """As the level above reads them."""
        return Curves(np.repeat(np.arange(len(self.start) - 1), np.diff(self.start)), self.position, self.value)

    def at(self, suggestion: Floats) -> tuple[Floats, Floats]:
        """Fit factor and H of each pool at its suggestion: the smaller end of a jump."""
        first, last = self.start[:-1], self.start[1:] - 1
        counts = np.diff(self.start)
        below = self.position < np.repeat(suggestion - TOLERANCE, counts)
        at = first + np.add.reduceat(below.astype(np.int64), first)
        high = np.minimum(at, last)
        low = np.maximum(high - 1, first)
        between = (at <= last) & (self.position[high] > suggestion + TOLERANCE) & (high > first)
        width = np.where(between, self.position[high] - self.position[low], 1.0)
        part = np.where(between, (suggestion - self.position[low]) / width, 1.0)
        fit = self.fit[low] + part * (self.fit[high] - self.fit[low])
        value = self.value[low] + part[:, None] * (self.value[high] - self.value[low])
        exact = part == 1.0
        fit[exact] = self.fit[high[exact]]
        value[exact] = self.value[high[exact]]
        return fit, value


def _any(flags: Flags) -> Flags:
    """Whether any column of a row is set."""
    return np.logical_or.reduce(flags, axis=1)


# Operations: closed form.


def _phases(of: Demands) -> tuple[Floats, Floats, Floats]:
    """Largest usage share, the limit that stops usage (inf: none), how far towards the demand limits let go."""
    usage, gap, limits = of.usage, of.gap, of.limits
    most = usage.max(axis=1, initial=0.0)
    stopped = limits < usage - TOLERANCE
    stop = np.where(stopped, limits, np.inf).min(axis=1, initial=np.inf)
    wants = gap > 0
    reach = np.where(wants, (limits - usage) / np.where(wants, gap, 1.0), 1.0).min(axis=1, initial=1.0)
    return most, stop, np.clip(reach, 0.0, 1.0)


def operation_values(of: Demands, suggestion: Floats) -> Floats:
    """H of each operation at its suggestion.

    First up to the usage, equally in every resource; then towards the demand, in proportion, until some
    resource exhausts the suggestion or its limit.
    """
    most, stop, reach = _phases(of)
    wants = of.gap > 0
    ramp = np.where(wants, (suggestion[:, None] - of.usage) / np.where(wants, of.gap, 1.0), np.inf)
    part = np.clip(np.minimum(ramp.min(axis=1, initial=np.inf), reach), 0.0, 1.0)
    second = (suggestion > most + TOLERANCE) & np.isinf(stop)
    within = np.minimum(of.usage, np.minimum(suggestion, stop)[:, None])
    return np.where(second[:, None], of.usage + part[:, None] * of.gap, within)


def operation_curves(of: Demands) -> Curves:
    """H of every operation, all vertices."""
    n = len(of.usage)
    most, stop, reach = _phases(of)
    positions: list[Floats] = [np.zeros(n)]
    values: list[Floats] = [np.zeros_like(of.usage)]
    for column in np.sort(of.usage, axis=1).T:
        position = np.minimum(column, stop)
        positions.append(position)
        values.append(np.minimum(of.usage, position[:, None]))
    _second_phase(of, most, reach, np.isinf(stop) & _any(of.gap > 0), positions, values)
    position = np.stack(positions, axis=1)
    value = np.stack(values, axis=1)
    new = np.ones(position.shape, bool)
    new[:, 1:] = (np.diff(position, axis=1) > 0) | np.logical_or.reduce(np.diff(value, axis=1) != 0, axis=2)
    owner = np.broadcast_to(np.arange(n)[:, None], position.shape)
    return _without_start_jumps(Curves(owner[new], position[new], value[new]))


def _second_phase(
    of: Demands, most: Floats, reach: Floats, active: Flags, positions: list[Floats], values: list[Floats]
) -> None:
    """Append the vertices from usage to demand: the lower envelope of one ramp a resource, cut at ``reach``."""
    usage, gap = of.usage, of.gap
    everyone = np.arange(len(usage))
    wants = gap > 0
    safe = np.where(wants, gap, 1.0)
    ramp = np.where(wants, (most[:, None] - usage) / safe, np.inf)
    lowest = ramp.min(axis=1, initial=np.inf)
    # Of the ramps that are lowest together, the one that grows slowest stays lowest.
    line: Ints = np.argmax(np.where(ramp <= lowest[:, None] + TOLERANCE, gap, -1.0), axis=1)
    part = np.where(active, np.clip(np.minimum(lowest, reach), 0.0, 1.0), 0.0)
    here = most.copy()
    last_position, last_value = positions[-1], values[-1]
    alive = active.copy()
    for step in range(usage.shape[1] + 1):
        last_position = np.where(alive, here, last_position)
        last_value = np.where(alive[:, None], usage + part[:, None] * gap, last_value)
        positions.append(last_position)
        values.append(last_value)
        alive = alive & (part < reach)
        if not alive.any() or step == usage.shape[1]:
            return
        own_usage, own_gap = usage[everyone, line], safe[everyone, line]
        slower = wants & (gap > own_gap[:, None])
        cross = (own_usage[:, None] * gap - usage * own_gap[:, None]) / np.where(slower, gap - own_gap[:, None], 1.0)
        cross = np.where(slower, np.maximum(cross, here[:, None]), np.inf)
        end = own_usage + reach * own_gap
        nearest = cross.argmin(axis=1)
        crossing = cross[everyone, nearest]
        ends = crossing >= end
        part = np.where(ends, reach, np.clip((crossing - own_usage) / own_gap, 0.0, 1.0))
        here = np.maximum(np.where(ends, end, crossing), here)
        line = np.where(ends, line, nearest)


def _without_start_jumps(curves: Curves) -> Curves:
    """A jump at suggestion 0 is taken: of the vertices at 0 keep the last."""
    zero = curves.position <= TOLERANCE
    follows = np.zeros(len(zero), bool)
    follows[:-1] = (curves.owner[1:] == curves.owner[:-1]) & zero[1:]
    keep = ~follows
    return Curves(curves.owner[keep], curves.position[keep], curves.value[keep])


# Pools: sum of children, then limits.


@dataclass(frozen=True, slots=True)
class _Sum:
    """G of each pool: vertices in order, a jump's two ends one after the other."""

    pool: Ints
    fit: Floats
    value: Floats
    jumped: Flags  # the second end of a jump


def pool_curves(
    end: Floats, children: Curves, parent: Ints, scale: Floats, shift: Floats, guarantee: Floats, limits: Floats
) -> PoolCurves:
    """H of the pools whose fit factors go up to ``end``, given their children's curves.

    ``parent``, ``scale``, ``shift``: by owner of ``children``: which pool it is in, and how its suggestion follows
    the pool's fit factor: s = (f - shift) / scale, between 0 and 1. ``guarantee``, ``limits``: by pool.
    """
    count = len(end)
    start = np.zeros((count, guarantee.shape[1]))
    total = _sum(end, children, parent, scale, shift, start)
    floor = np.maximum(guarantee, start)
    total = _within(total, np.maximum(limits, start))
    total = _with_kinks(total, floor)
    return _inverted(count, total, floor)


def _sum(end: Floats, children: Curves, parent: Ints, scale: Floats, shift: Floats, start: Floats) -> _Sum:
    """G of each pool; ``start`` receives G(0)."""
    owner = children.owner
    count, resources = start.shape
    first = np.ones(len(owner), bool)
    first[1:] = owner[1:] != owner[:-1]
    for r in range(resources):
        start[:, r] = np.bincount(parent[owner[first]], children.value[first, r], minlength=count)
    seg = np.flatnonzero(~first)
    rise = children.value[seg] - children.value[seg - 1]
    moving = _any(rise > 0) & np.isfinite(scale[owner[seg]])
    seg, rise = seg[moving], rise[moving]
    who = owner[seg]
    pool = parent[who]
    low = shift[who] + children.position[seg - 1] * scale[who]
    high = shift[who] + children.position[seg] * scale[who]
    # One group of positions for each distinct fit factor of each pool; every pool has them at 0 and at its end.
    fits = np.concatenate((low, high, np.zeros(count), end))
    every: Ints = np.arange(count)
    pools = np.concatenate((pool, pool, every, every))
    order = np.lexsort((fits, pools))
    fits, pools = fits[order], pools[order]
    new = np.ones(len(fits), bool)
    new[1:] = (pools[1:] != pools[:-1]) | (fits[1:] - fits[:-1] > TOLERANCE)
    group = np.empty(len(fits), np.int64)
    group[order] = np.cumsum(new) - 1
    fit, of = fits[new], pools[new]
    jump, increment = _increments(group[: len(seg)], group[len(seg) : 2 * len(seg)], rise, fit)
    bounds: Ints = np.searchsorted(of, np.arange(count + 1))
    value = np.empty_like(increment)
    step = jump + increment
    for p in range(count):
        a, b = int(bounds[p]), int(bounds[p + 1])
        value[a] = start[p]
        if b - a > 1:
            np.cumsum(step[a : b - 1], axis=0, out=value[a + 1 : b])
            value[a + 1 : b] += start[p]
    jumps = _any(jump > 0)
    jumps[bounds[1:] - 1] = False  # nothing comes after the end, so a jump there is never taken
    twice = np.repeat(np.arange(len(fit)), 1 + jumps)
    second = np.zeros(len(twice), bool)
    second[1:] = twice[1:] == twice[:-1]
    values = value[twice]
    values[second] += jump[twice[second]]
    return _Sum(of[twice], fit[twice], values, second)


def _increments(begin: Ints, end: Ints, rise: Floats, fit: Floats) -> tuple[Floats, Floats]:
    """Jumps at each group, and growth from each group to the next.

    A segment within one interval is added exactly. A longer one is spread by its slope, through a prefix sum; where
    that would cost precision (steep ones) interval by interval.
    """
    groups, resources = len(fit), rise.shape[1]
    spans = end - begin
    width = fit[end] - fit[begin]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = rise / width[:, None]
    steep = (spans > 1) & _any(slope > _STEEP)
    if int(spans[steep].sum()) > _MOST_PAIRS:
        steep[:] = False
    at, one, long = spans == 0, spans == 1, (spans > 1) & ~steep
    length = np.zeros(groups)
    length[:-1] = np.diff(fit)
    length[length < 0] = 0.0  # from the last group of a pool to the next pool
    jump = np.empty((groups, resources))
    increment = np.empty((groups, resources))
    index, part = _spread(begin[steep], spans[steep], length, width[steep])
    which = np.repeat(np.flatnonzero(steep), spans[steep])
    for r in range(resources):
        jump[:, r] = np.bincount(begin[at], rise[at, r], minlength=groups)
        grows = np.bincount(begin[one], rise[one, r], minlength=groups).astype(float)
        slopes = np.bincount(begin[long], slope[long, r], minlength=groups).astype(float)
        slopes -= np.bincount(end[long], slope[long, r], minlength=groups)
        grows += np.maximum(np.cumsum(slopes), 0.0) * length
        grows += np.bincount(index, part * rise[which, r], minlength=groups)
        increment[:, r] = grows
    return jump, increment


def _spread(begin: Ints, spans: Ints, length: Floats, width: Floats) -> tuple[Ints, Floats]:
    """For each segment each of its intervals, and the part of the segment's rise that falls there."""
    first = np.cumsum(spans) - spans
    index = np.repeat(begin - first, spans) + np.arange(int(spans.sum()))
    return index, length[index] / np.repeat(width, spans)


def _within(total: _Sum, limits: Floats) -> _Sum:
    """Cut each curve where the first resource reaches its limit; before a jump that would pass it."""
    cap = limits[total.pool]
    over = total.value > cap + TOLERANCE
    bad = _any(over)
    if not bad.any():
        return total
    before = np.zeros(len(bad), bool)
    before[1:] = bad[:-1] & (total.pool[1:] == total.pool[:-1])
    first = bad & ~before
    crossing = np.flatnonzero(first & ~total.jumped)
    previous = crossing - 1
    low, high = total.value[previous], total.value[crossing]
    rise = np.where(high > low, high - low, 1.0)
    part = np.where(over[crossing], (cap[crossing] - low) / rise, 1.0).min(axis=1, initial=1.0)
    part = np.clip(part, 0.0, 1.0)
    fit, value = total.fit.copy(), total.value.copy()
    fit[crossing] = fit[previous] + part * (fit[crossing] - fit[previous])
    value[crossing] = low + part[:, None] * (high - low)
    keep = ~bad
    keep[crossing] = True
    # A jump that reaches the limit, with growth right behind it, is not taken: no fit factor lies beyond it.
    useless = crossing[total.jumped[previous] & (fit[crossing] <= fit[previous] + TOLERANCE)]
    keep[useless] = keep[useless - 1] = False
    return _Sum(total.pool[keep], fit[keep], value[keep], total.jumped[keep])


def _with_kinks(total: _Sum, floor: Floats) -> _Sum:
    """Add the vertices where another resource becomes the one that needs the largest suggestion."""
    resources = floor.shape[1]
    for _ in range(resources + 2):
        need = np.zeros((len(total.fit), resources + 1))
        need[:, :-1] = total.value - floor[total.pool]
        most = need.max(axis=1)
        top = need >= most[:, None] - 0.1 * TOLERANCE
        linear = (total.pool[1:] == total.pool[:-1]) & ~total.jumped[1:]
        bent = np.flatnonzero(linear & ~_any(top[:-1] & top[1:]))
        if not len(bent):
            break
        low, high = need[bent], need[bent + 1]
        rows = np.arange(len(bent))
        leaving = np.where(top[bent], high, -np.inf).argmax(axis=1)
        coming = np.where(top[bent + 1], low, -np.inf).argmax(axis=1)
        gap_low = low[rows, leaving] - low[rows, coming]
        gap_high = high[rows, coming] - high[rows, leaving]
        part = gap_low / (gap_low + gap_high)
        fit = total.fit[bent] + part * (total.fit[bent + 1] - total.fit[bent])
        value = total.value[bent] + part[:, None] * (total.value[bent + 1] - total.value[bent])
        total = _Sum(
            np.insert(total.pool, bent + 1, total.pool[bent]),
            np.insert(total.fit, bent + 1, fit),
            np.insert(total.value, bent + 1, value, axis=0),
            np.insert(total.jumped, bent + 1, False),
        )
    return total


def _inverted(count: int, total: _Sum, floor: Floats) -> PoolCurves:
    """The curve over the suggestion that each vertex needs; before a jump it waits for what the jump's end needs."""
    position = np.maximum((total.value - floor[total.pool]).max(axis=1, initial=0.0), 0.0)
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
    pool, where = pool[keep], where[keep].copy()
    where[where <= TOLERANCE] = 0.0
    return PoolCurves(np.searchsorted(pool, np.arange(count + 1)), where, fit[keep], value[keep])
