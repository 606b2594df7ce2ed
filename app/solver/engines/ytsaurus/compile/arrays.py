"""Reductions over the few columns of a tall matrix.

NumPy reduces along a short last axis row by row; taking the columns one after another is several times faster.
Resources are the columns, so there are between one and a dozen of them.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.float64)


def any_of(flags: Flags) -> Flags:
    """Whether some column of each row is set."""
    out = flags[..., 0].copy()
    for r in range(1, flags.shape[-1]):
        out |= flags[..., r]
    return out


def all_of(flags: Flags) -> Flags:
    """Whether every column of each row is set."""
    out = flags[..., 0].copy()
    for r in range(1, flags.shape[-1]):
        out &= flags[..., r]
    return out


def most(values: Floats) -> Floats:
    """The largest value of each row."""
    out = values[..., 0].copy()
    for r in range(1, values.shape[-1]):
        np.maximum(out, values[..., r], out=out)
    return out


def least(values: Floats) -> Floats:
    """The smallest value of each row."""
    out = values[..., 0].copy()
    for r in range(1, values.shape[-1]):
        np.minimum(out, values[..., r], out=out)
    return out


def by_level(depth: Ints) -> list[Ints]:
    """The rows of each depth, those of depth 0 first; the root's, -1, is none."""
    return [np.flatnonzero(depth == level) for level in range(int(depth.max()) + 1)]


def add_upwards(values: npt.NDArray[Number], parent: Ints, depth: Ints) -> None:
    """Add to each pool, and to the root, what is below it: one row a pool, the root last. In place."""
    for rows in reversed(by_level(depth)):
        np.add.at(values, parent[rows], values[rows])


def quotients(above: Floats, below: Floats, where: Flags, otherwise: float) -> Floats:
    """``above`` by ``below`` where that is asked for, and ``otherwise`` elsewhere."""
    out = np.full(np.broadcast_shapes(above.shape, below.shape), otherwise)
    return np.divide(above, below, out=out, where=where)


def running_sums(steps: Floats, bounds: Ints) -> Floats:
    """Sums of the rows before each row within its block; blocks are the spans between ``bounds``.

    Each block is summed on its own, so that rounding does not carry over from block to block. Blocks of like size
    share one array operation.
    """
    out = np.zeros_like(steps)
    first, sizes = bounds[:-1], np.diff(bounds)
    magnitude = np.zeros(len(sizes), np.int64)
    np.log2(np.maximum(sizes, 1), out=magnitude, casting="unsafe")
    for power in np.unique(magnitude).tolist():
        blocks = np.flatnonzero(magnitude == power)
        width = int(sizes[blocks].max())
        if width < 2:
            continue
        at = first[blocks][:, None] + np.arange(width - 1)
        inside = np.arange(1, width) < sizes[blocks][:, None]
        sums = np.cumsum(steps[np.where(inside, at, 0)], axis=1)
        out[at[inside] + 1] = sums[inside]
    return out


def scattered(rows: Ints, values: Floats, count: int) -> Floats:
    """Sums of ``values`` by row: a matrix of ``count`` rows."""
    out = np.zeros((count, values.shape[1]))
    if len(rows):
        for r in range(values.shape[1]):
            out[:, r] = np.bincount(rows, values[:, r], minlength=count)
    return out
