"""What the children of each pool take together, over the pool's fit factor: all pools of a level at once."""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, any_of, most, running_sums, scattered

TOLERANCE = 1e-12
"""Positions that are nearer to each other are one."""
_STEEP = 1e4
_MOST_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Curves:
    """``owner``: ascending; ``position``: the suggestion at each vertex; ``value``: H there."""

    owner: Ints
    position: Floats
    value: Floats


@dataclass(frozen=True, slots=True)
class Sum:
    """G of each pool: vertices in order, a jump's two ends one after the other."""

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
    if int(spans[long[steep]].sum()) > _MOST_PAIRS:
        steep[:] = False
    gentle, sharp = long[~steep], long[steep]
    length = np.zeros(count)
    length[:-1] = np.maximum(np.diff(fit), 0.0)  # below 0 from the last group of a pool to the next pool
    at, one = np.flatnonzero(spans == 0), np.flatnonzero(spans == 1)
    jump = scattered(begin[at], rise[at], count)
    increment = scattered(begin[one], rise[one], count)
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
