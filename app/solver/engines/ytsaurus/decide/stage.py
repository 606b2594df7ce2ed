"""One scheduling stage on one node: which operation starts an allocation next.

The operation with the lowest current satisfaction goes first; one that can't start anything is out for the stage.
What makes an operation unable to start only grows while a stage runs, so those that can't are filtered out at once.
"""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Ints, all_of
from app.solver.engines.ytsaurus.decide.overlay import Overlay, Stage
from app.solver.engines.ytsaurus.decide.satisfaction import EPSILON
from app.solver.stopping import safe_point

MOST_STARTS = 4096
"""Allocations that one heartbeat may start; only needs of nothing at all ever come near."""
MOST_STARTS_IN_ALL = 200_000
"""Allocations that all heartbeats of a decision may start."""


def run(
    overlay: Overlay, node: int, stage: Stage, among: Flags | None, most: int, candidates: Ints | None = None
) -> list[int]:
    """Start up to ``most`` allocations on ``node``; the want rows, in order.

    ``among``: operations that take part (None: all); ``candidates``: allocation rows whose resources count as free.
    """
    preemptive = stage != "regular"
    started: list[int] = []
    discount = _discount(overlay, candidates)
    free = overlay.free(node) + discount
    rows = _candidates(overlay, node, among, _fitting(overlay, free))
    rows = rows[_without_its_own(overlay, rows, free, candidates)]
    rows = rows[_allowed(overlay, rows, preemptive=preemptive)]
    most = min(most, MOST_STARTS_IN_ALL - len(overlay.started))
    while len(started) < most and _goes_on(overlay, free):
        safe_point()
        rows = rows[_fitting(overlay, free)[rows] & (overlay.left[rows] > 0)]
        if not len(rows):
            break
        want = _least_satisfied(overlay, rows)
        if not overlay.has_room(want, preemptive=preemptive):
            overlay.forget_headroom()
            rows = rows[_allowed(overlay, rows, preemptive=preemptive)]
            continue
        overlay.start(want, node, stage)
        started.append(want)
        free = overlay.free(node) + discount
    return started


def _discount(overlay: Overlay, candidates: Ints | None) -> Ints:
    """What ``candidates`` use together."""
    cluster = overlay.prepared.situation.cluster
    if candidates is None:
        return np.zeros(len(cluster.total), np.int64)
    return np.add.reduce(cluster.allocations.usage[candidates], axis=0)


def _without_its_own(overlay: Overlay, rows: Ints, free: Ints, candidates: Ints | None) -> Flags:
    """Which wants fit ``free`` without what ``candidates`` of their own operation use, where the rules ask that."""
    situation = overlay.prepared.situation
    fits = np.ones(len(rows), bool)
    if candidates is None or situation.config.settings.rules.own_allocations_make_room:
        return fits
    owner, usage = situation.cluster.allocations.operation[candidates], situation.cluster.allocations.usage[candidates]
    own = np.zeros_like(overlay.usage)
    np.add.at(own, owner, usage)
    return all_of(situation.wants.need[rows] <= free - own[situation.wants.operation[rows]])


def _goes_on(overlay: Overlay, free: Ints) -> bool:
    """Whether the node has the minimum left that makes it worth looking."""
    return not (overlay.prepared.spare > free).any()


def _fitting(overlay: Overlay, free: Ints) -> Flags:
    """By want: whether one allocation of it fits ``free``."""
    prepared = overlay.prepared
    return all_of(prepared.shapes <= free)[prepared.shape_of]


def _candidates(overlay: Overlay, node: int, among: Flags | None, fitting: Flags) -> Ints:
    """Wants that fit, of operations that take part and may run on the node."""
    if not fitting.any():
        return np.zeros(0, np.int64)
    prepared = overlay.prepared
    takes_part = prepared.active if among is None else prepared.active & among
    on_node = prepared.feasible.anywhere
    restricted = prepared.feasible.on.get(node)
    if restricted is not None:
        on_node = on_node.copy()
        on_node[restricted] = True
    return np.flatnonzero(fitting & on_node & takes_part[prepared.situation.wants.operation])


def _allowed(overlay: Overlay, rows: Ints, *, preemptive: bool) -> Flags:
    """Which wants the limits of their operation and of all pools above let start."""
    situation = overlay.prepared.situation
    operation = situation.wants.operation[rows]
    room = np.minimum(
        situation.operations.limits[operation] - overlay.usage[operation],
        overlay.headroom(preemptive=preemptive)[situation.operations.pool[operation]],
    )
    return all_of(situation.wants.need[rows] <= room)


def _least_satisfied(overlay: Overlay, rows: Ints) -> int:
    """Lowest satisfaction; equal ones: first in a depth-first walk; of one operation its first want."""
    operation = overlay.prepared.situation.wants.operation[rows]
    satisfaction = overlay.satisfaction[operation]
    near = np.flatnonzero(satisfaction <= satisfaction.min() + EPSILON)
    rank = overlay.prepared.rank[operation[near]]
    return int(rows[near[np.argmin(rank)]])
