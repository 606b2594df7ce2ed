"""Doubles as the origin computes with them: its rounding, its search for the largest double."""

import struct
from collections.abc import Callable

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints

_DOUBLE, _INTEGER = struct.Struct("<d"), struct.Struct("<q")

EPSILON = 1e-9
"""Shares that are nearer to each other are equal, as in the origin (``resource_vector.h``)."""


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
