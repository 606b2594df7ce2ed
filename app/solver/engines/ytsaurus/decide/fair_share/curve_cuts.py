"""Sums of curves cut to limits, and bent where another resource needs the largest suggestion."""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints, any_of, least, most, quotients
from app.solver.engines.ytsaurus.decide.fair_share.curve_sums import TOLERANCE, Sum

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
    at = bent[rows]
    fit = total.fit[at] + parts * (total.fit[at + 1] - total.fit[at])
    value = total.value[at] + parts[:, None] * (total.value[at + 1] - total.value[at])
    return Sum(
        np.insert(total.pool, at + 1, total.pool[at]),
        np.insert(total.fit, at + 1, fit),
        np.insert(total.value, at + 1, value, axis=0),
        np.insert(total.jumped, at + 1, False),
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
    """By pool, the smallest fit factor at which a share just reaches its limit while another goes on; else infinite."""
    limit = limits[total.pool]
    near = any_of((np.abs(total.value - limit) <= EDGE) & (limit > EDGE))
    goes_on = np.zeros(len(near), bool)
    goes_on[:-1] = (total.pool[1:] == total.pool[:-1]) & any_of(total.value[1:] > total.value[:-1])
    out = np.full(len(limits), np.inf)
    rows = np.flatnonzero(near & goes_on)
    np.minimum.at(out, total.pool[rows], total.fit[rows])
    return out
