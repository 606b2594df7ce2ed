"""One scheduling stage on one node: which operation starts an allocation next.

The operation with the lowest current satisfaction goes first; one that can't start anything is out for the stage.
What makes an operation unable to start only grows while a stage runs, so those that can't are filtered out at once.
"""

import numpy as np

from app.solver.engines.ytsaurus.arrays import Flags, Ints, all_of
from app.solver.engines.ytsaurus.board import Board, Stage
from app.solver.engines.ytsaurus.satisfaction import EPSILON

MOST_STARTS = 4096
"""Allocations that one heartbeat may start; only needs of nothing at all ever come near."""


def run(board: Board, node: int, stage: Stage, among: Flags | None, discount: Ints | None, most: int) -> list[int]:
    """Start up to ``most`` allocations on ``node``; the want rows, in order.

    ``among``: operations that take part (None: all); ``discount``: resources of victims, free for this stage.
    """
    started: list[int] = []
    rows: Ints | None = None
    while len(started) < most:
        free = board.free(node)
        if discount is not None:
            free = free + discount
        if (board.prepared.spare > free).any():
            break
        rows = _able(board, node, free, among, rows, preemptive=stage != "regular")
        if not len(rows):
            break
        want = _least_satisfied(board, rows)
        board.start(want, node, stage)
        started.append(want)
    return started


def _able(board: Board, node: int, free: Ints, among: Flags | None, rows: Ints | None, *, preemptive: bool) -> Ints:
    """Wants that could start now: they fit the node, and the limits of their operation and of all pools above."""
    prepared = board.prepared
    situation = prepared.situation
    fitting = all_of(prepared.shapes <= free)
    if not fitting.any():
        return np.zeros(0, np.int64)
    wants, operations = situation.wants, situation.operations
    if rows is None:
        open_rows = prepared.feasible.anywhere & fitting[prepared.shape_of]
        restricted = prepared.feasible.on.get(node)
        if restricted is not None:
            open_rows[restricted] = fitting[prepared.shape_of[restricted]]
        rows = np.flatnonzero(open_rows & (board.left > 0))
        operation = wants.operation[rows]
        takes_part = prepared.active[operation] if among is None else (prepared.active & among)[operation]
        rows = rows[takes_part]
    else:
        rows = rows[fitting[prepared.shape_of[rows]] & (board.left[rows] > 0)]
    if not len(rows):
        return rows
    operation = wants.operation[rows]
    need = wants.need[rows]
    room = np.minimum(
        operations.limits[operation] - board.usage[operation],
        board.headroom(preemptive=preemptive)[operations.pool[operation]],
    )
    return rows[all_of(need <= room)]


def _least_satisfied(board: Board, rows: Ints) -> int:
    """Lowest satisfaction; equal ones: first in a depth-first walk; of one operation its first want."""
    operation = board.prepared.situation.wants.operation[rows]
    satisfaction = board.satisfaction[operation]
    near = np.flatnonzero(satisfaction <= satisfaction.min() + EPSILON)
    rank = board.prepared.rank[operation[near]]
    return int(rows[near[np.argmin(rank)]])
