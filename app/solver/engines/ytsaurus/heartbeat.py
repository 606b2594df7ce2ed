"""One node's heartbeat: its stages, what starts next, whose allocations go in which order; which nodes need none."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from math import inf
from operator import add

import numpy as np

from app.solver.engines.ytsaurus.kinds import Alike, Allocation, Due, Grade, Operation, Taken, Victim
from app.solver.engines.ytsaurus.operations import NEVER, NOWHERE, Flags, Ints, all_of, any_of, by_level
from app.solver.engines.ytsaurus.polyline import EPSILON
from app.solver.engines.ytsaurus.preparation import (
    AGGRESSIVE,
    AGGRESSIVELY_PREEMPTIBLE,
    NOBODY,
    NON_PREEMPTIBLE,
    NORMAL,
    PREEMPTIBLE,
    Overlay,
    Reason,
    Room,
    Stage,
    StageRecord,
)
from app.solver.engines.ytsaurus.settings import StageName, TreeSettings
from app.solver.engines.ytsaurus.situation import in_plain_shares
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.question import safe_point


def candidates(overlay: Overlay, node: int, least: int, *, normal: bool) -> Ints:
    """Allocations on ``node`` of level ``least`` or more that may be taken, in the order in which they are taken."""
    rows = overlay.prepared.situation.cluster.allocations_on(node)
    return least_protected_first(overlay, _takeable(overlay, rows, least, normal=normal))


def _takeable(overlay: Overlay, rows: Ints, least: int, *, normal: bool) -> Ints:
    prepared = overlay.prepared
    operation = prepared.situation.cluster.allocations.operation[rows]
    open_rows = overlay.running[rows] & (overlay.level[rows] >= least) & prepared.takeable[operation]
    if normal:
        open_rows &= prepared.normally_takeable[operation]
    return rows[open_rows]


def least_protected_first(overlay: Overlay, rows: Ints) -> Ints:
    """Preemptible ones newest first; then those that leave part of their cpu unused, and those that don't."""
    allocations = overlay.prepared.situation.cluster.allocations
    group = overlay.group[rows]
    gap = allocations.has_gap[rows] & (group != PREEMPTIBLE)
    order = np.lexsort((allocations.task[rows], allocations.operation[rows], allocations.started[rows], gap, group))
    return rows[order[::-1]]


def taken_of(cluster: CompiledState, op: Operation, kind: Alike, allocations: list[Allocation]) -> Taken:
    """Of an operation of this kind that runs these, oldest first: which of them, and at what level, may be taken: as
    ``groups_of`` and ``levels`` have all of a state."""
    grade = _grade_of(cluster, kind, op.is_gang, tuple([a.steps for a in allocations]))
    newest = zip(allocations[len(allocations) - len(grade.levels) :], grade.levels, strict=True)
    return kind, grade, [(a, level) for a, level in newest if level > NON_PREEMPTIBLE and a.node != NOWHERE]


def _grade_of(cluster: CompiledState, kind: Alike, is_gang: bool, steps: tuple[tuple[int, ...], ...]) -> Grade:
    """The more is due the fewer may be taken: what two suggestions come to those between do, but for what lies right
    on its bound."""
    grades, part = kind.grades_of(is_gang, steps), kind.part
    for grade in grades:
        if grade.low <= part <= grade.high:
            return grade
    settings, due = cluster.config.settings, kind.now
    levels = _newest(settings, cluster.total.tolist(), due, steps)
    if not cluster.config.columns.allow_aggressive[kind.pool] or (is_gang and not settings.allow_gang):
        levels = [level if level == PREEMPTIBLE else NON_PREEMPTIBLE for level in levels]
    bounds = *due.closed, all(map(_near, due.fair, due.demand))
    steady = kind.even and not settings.bound_allocation_preemptible
    for grade in grades if steady else ():
        if grade.bounds == bounds and grade.levels == levels:
            grade.low, grade.high = min(grade.low, part), max(grade.high, part)
            return grade
    grade = Grade(part, bounds, levels)
    if steady:
        grades.append(grade)
    return grade


def _newest(settings: TreeSettings, total: list[float], due: Due, steps: Sequence[tuple[int, ...]]) -> list[int]:
    """Groups of the newest of some allocations; those before are protected."""
    on_bound, satisfied = settings.bound_allocation_preemptible, all(map(_near, due.fair, due.demand))
    lower = [share * settings.aggressive_threshold for share in due.fair]
    upper = [share * settings.threshold for share in due.fair]
    if satisfied and max(due.demand) > EPSILON:
        upper = [inf] * len(upper)

    def stays(bound: list[float], counted: list[float]) -> bool:
        larger = [b > c + EPSILON for b, c in zip(bound, counted, strict=True)]
        below = any(larger) if all(due.closed) else all(map(max, larger, due.closed))
        return below or (on_bound and all(map(_near, bound, counted)))

    def group(amount: tuple[int, ...]) -> int:
        counted = in_plain_shares(amount, total)
        if stays(lower, counted):
            return NON_PREEMPTIBLE
        return AGGRESSIVELY_PREEMPTIBLE if stays(upper, counted) else PREEMPTIBLE

    used: list[tuple[int, ...]] = [(0,) * len(total)]
    for own in steps:
        used.append(tuple(map(add, used[-1], own)))
    if on_bound:
        return list(accumulate(map(group, used[1:]), max))
    # The more the earlier ones use the higher the group: those before one that is protected are protected, too.
    return list(takewhile(bool, map(group, reversed(used[:-1]))))[::-1]


def list_victims(op: Operation, taken: list[tuple[Allocation, int]], victims: dict[int, list[Victim]]) -> None:
    """By node, what may be taken of an operation."""
    for k, (a, level) in enumerate(taken):
        victims.setdefault(a.node, []).append((level, level != PREEMPTIBLE and a.has_gap, a.begun, op.rank, k, a, op))


def list_again(
    cluster: CompiledState, stale: dict[Operation, Alike], left: dict[Operation, list[Allocation]],
    victims: dict[int, list[Victim]],
) -> None:  # fmt: skip
    """Where some of an operation's allocations have gone, those that are ``left`` move up; then nobody is stale."""
    if stale:
        for of in victims.values():
            of[:] = [victim for victim in of if victim[-1] not in stale]
        for op, kind in stale.items():
            list_victims(op, taken_of(cluster, op, kind, left[op])[2], victims)
        stale.clear()


def _near(left: float, right: float) -> bool:
    return abs(left - right) <= EPSILON


def for_want(overlay: Overlay, order: Ints, want: int) -> Ints:
    """``order`` as it serves ``want``: without allocations of its own operation, where the rules ask that."""
    situation = overlay.prepared.situation
    if want == NOBODY or situation.config.settings.rules.own_allocations_make_room:
        return order
    return order[situation.cluster.allocations.operation[order] != situation.wants.operation[want]]


def preempt(overlay: Overlay, node: int, order: Sequence[int], reason: Reason, want: int) -> None:
    """Take victims until the node's allocations fit it; then those whose operation or pool exceeds its limits.

    Nothing is skipped or given back in the first part: the victims are the shortest prefix of ``order``.
    """
    situation = overlay.prepared.situation
    allocations, timeouts = situation.cluster.allocations, situation.operations.preemption_timeout
    for row in order:
        safe_point()
        operation = int(allocations.operation[row])
        timeout = int(timeouts[operation])
        if overlay.is_overcommitted(node):
            overlay.stop(row, node, reason, timeout, want)
        elif overlay.over_limit(operation) is not None:
            overlay.stop(row, node, "resource_limits_violated", timeout, NOBODY)


def resolve(overlay: Overlay, node: int, now: int) -> None:
    """Keep what still fits, best protected first, and stop the rest, once the overcommit has lasted too long: no
    protection holds any more then.

    ``now`` in microseconds. A heartbeat that started something leaves no overcommit, so all that runs here was there.
    """
    if not overlay.is_overcommitted(node):
        overlay.overcommit_since[node] = NEVER
        return
    since = int(overlay.overcommit_since[node])
    if since == NEVER:
        overlay.overcommit_since[node] = since = now
    situation = overlay.prepared.situation
    if now <= since + situation.config.settings.overcommit_duration:
        return
    cluster = situation.cluster
    rows = cluster.allocations_on(node)
    rows = rows[overlay.running[rows]]
    in_use = np.zeros(len(cluster.total), np.int64)
    for row in least_protected_first(overlay, rows)[::-1].tolist():
        usage = cluster.allocations.usage[row]
        if (in_use + usage <= cluster.node_limits[node]).all():
            in_use += usage
        else:
            timeout = int(situation.operations.preemption_timeout[cluster.allocations.operation[row]])
            overlay.stop(row, node, "resource_overcommit", timeout)
    overlay.overcommit_since[node] = NEVER


MOST_SHAPES = 32


def quiet_nodes(overlay: Overlay, now: int) -> Flags:
    """By node: whether a heartbeat at ``now`` would neither start nor stop anything; for all nodes at once, so that
    only the others are processed.

    The test is generous: a node is quiet only where nothing could start or stop even with every limit forgotten. What
    happens on other nodes meanwhile makes no quiet node loud: allocations that stop free resources on their own node
    only, and those that stay are better protected. Only a preemptive start may push a pool over its limit; then ask
    again."""
    prepared = overlay.prepared
    situation = prepared.situation
    cluster = situation.cluster
    free = cluster.node_limits - overlay.node_usage
    wants = np.flatnonzero((overlay.left > 0) & prepared.active[situation.wants.operation])
    loud = any_of(free < 0) | _fits(overlay, wants, free)
    if situation.operations.graceful.any():
        loud |= _asked_gracefully(overlay)
    over = _over_limits(overlay)
    able = np.zeros(len(free), bool)
    for name in situation.config.settings.rules.stages:
        who = participants(overlay, name)
        able |= _could_preempt(overlay, name, wants[who[situation.wants.operation[wants]]], free, over)
    if not able.any():  # nobody goes for anybody
        return ~loud
    return ~(loud | (_backoffs_over(overlay, slice(None), now) & able))


def _could_preempt(overlay: Overlay, name: StageName, wants: Ints, free: Ints, over: Flags) -> Flags:
    """By node: whether a stage, which ``wants`` take part in, might stop anything there. ``over``: operations that
    exceed limits, whose allocations go for nobody."""
    allocations = overlay.prepared.situation.cluster.allocations
    able = np.zeros(len(free), bool)
    normal = name == "preemptive_normal"
    if not (len(wants) or (normal and over.any())):
        return able
    rows = np.flatnonzero(overlay.running & (allocations.node >= 0))
    rows = _takeable(overlay, rows, PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE, normal=normal)
    nodes = allocations.node[rows]
    able[nodes[over[allocations.operation[rows]]]] = True
    if len(wants):
        emptied = free.copy()
        np.add.at(emptied, nodes, allocations.usage[rows])
        able |= _fits(overlay, wants, emptied)
    return able


def _over_limits(overlay: Overlay) -> Flags:
    """By operation: whether it or a pool above it exceeds its limits."""
    situation = overlay.prepared.situation
    pools = any_of(overlay.pool_usage > situation.pool_limits)
    for rows in by_level(situation.depth)[1:]:
        pools[rows] |= pools[situation.parent[rows]]
    return any_of(overlay.usage > situation.operations.limits) | pools[situation.operations.pool]


def _asked_gracefully(overlay: Overlay) -> Flags:
    situation = overlay.prepared.situation
    allocations = situation.cluster.allocations
    asked = situation.operations.graceful[allocations.operation] & (overlay.group == PREEMPTIBLE) & overlay.running
    out = np.zeros(len(overlay.node_usage), bool)
    out[allocations.node[asked & (allocations.node >= 0)]] = True
    return out


def _fits(overlay: Overlay, wants: Ints, free: Ints) -> Flags:
    """By node: whether one of ``wants`` fits ``free``; the smallest amounts of very many shapes stand for all."""
    out = np.zeros(len(free), bool)
    if not len(wants):
        return out
    shapes = overlay.prepared.shapes
    if len(shapes) > 1:
        shapes = shapes[np.unique(overlay.prepared.shape_of[wants])]
    if len(shapes) > MOST_SHAPES:
        shapes = shapes.min(axis=0, keepdims=True)
    for shape in shapes:
        out |= all_of(shape <= free)
    return out


MOST_STARTS = 4096
"""Allocations that one heartbeat may start; only needs of nothing at all ever come near."""
MOST_STARTS_IN_ALL = 200_000
"""Allocations that all heartbeats of a decision may start."""


def run(
    overlay: Overlay, node: int, stage: Stage, among: Flags | None, most: int, candidates: Ints | None = None
) -> list[int]:
    """Start up to ``most`` allocations on ``node``; the want rows, in order.

    The operation with the lowest current satisfaction goes first; one that can't start anything is out for the stage.
    What makes an operation unable to start only grows while a stage runs, so those that can't are filtered out at once.

    ``among``: operations that take part (None: all); ``candidates``: allocation rows whose resources count as free."""
    preemptive = stage != "regular"
    started: list[int] = []
    discount = _discount(overlay, candidates)
    free = overlay.free(node) + discount
    rows = _candidates(overlay, node, among, _fitting(overlay, free))
    if not len(rows):
        return started
    if candidates is not None:
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


def _discount(overlay: Overlay, candidates: Ints | None) -> Ints | int:
    """What ``candidates`` use together."""
    if candidates is None:
        return 0
    return np.add.reduce(overlay.prepared.situation.cluster.allocations.usage[candidates], axis=0)


def _without_its_own(overlay: Overlay, rows: Ints, free: Ints, candidates: Ints) -> Flags:
    """Which wants fit ``free`` without what ``candidates`` of their own operation use, where the rules ask that."""
    situation = overlay.prepared.situation
    if situation.config.settings.rules.own_allocations_make_room:
        return np.ones(len(rows), bool)
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
    if len(rows) == 1:
        return int(rows[0])
    operation = overlay.prepared.situation.wants.operation[rows]
    satisfaction = overlay.satisfaction[operation]
    near = np.flatnonzero(satisfaction <= satisfaction.min() + EPSILON)
    rank = overlay.prepared.rank[operation[near]]
    return int(rows[near[np.argmin(rank)]])


REASONS: dict[StageName, Reason] = {
    "preemptive_normal": "preemption",
    "preemptive_aggressive": "aggressive_preemption",
}


def process(overlay: Overlay, node: int, now: int) -> None:
    """Process the heartbeat of ``node`` at ``now`` (microseconds), from the graceful pass to a long overcommit."""
    overlay.regroup()
    schedulable = bool(overlay.prepared.situation.cluster.schedulable[node])
    _ask_graceful(overlay, node)
    if schedulable:
        free = overlay.free(node)
        started = run(overlay, node, "regular", None, MOST_STARTS)
        if overlay.log is not None:
            overlay.log.append(_record(overlay, node, "regular", free, started))
    if _backoffs_over(overlay, slice(node, node + 1), now).any():
        overlay.last_preemptive[node] = now
        for name in overlay.prepared.situation.config.settings.rules.stages:
            if _preemptive(overlay, node, name, schedulable=schedulable):
                break
    resolve(overlay, node, now)


def pass_over(overlay: Overlay, nodes: Ints, now: int) -> None:
    """What heartbeats leave behind on nodes where they can't start or stop anything."""
    overlay.last_preemptive[nodes[_backoffs_over(overlay, nodes, now)]] = now
    overlay.overcommit_since[nodes] = NEVER


def backoffs_over(last: Ints, backoff: int, now: int) -> Flags:
    """By node: whether preemptive scheduling, which was ``last`` tried there, may be tried: never, or longer ago than
    the backoff."""
    return (last == NEVER) | (now > last + backoff)


def _backoffs_over(overlay: Overlay, nodes: Ints | slice, now: int) -> Flags:
    return backoffs_over(overlay.last_preemptive[nodes], overlay.prepared.situation.config.settings.backoff, now)


def participants(overlay: Overlay, name: StageName) -> Flags:
    """Operations that a preemptive stage considers."""
    prepared = overlay.prepared
    who = prepared.participants.get(name)
    if who is None:
        if name == "preemptive_aggressive":
            who = prepared.priority == AGGRESSIVE
        elif prepared.situation.config.settings.rules.normal_serves_aggressive:
            who = prepared.priority >= NORMAL
        else:
            who = prepared.priority == NORMAL
        who = who & ~prepared.situation.operations.suspended
        prepared.participants[name] = who
    return who


def _ask_graceful(overlay: Overlay, node: int) -> None:
    """Tell plainly preemptible allocations of graceful operations to stop in their own time, in input order."""
    situation = overlay.prepared.situation
    cluster, operations = situation.cluster, situation.operations
    if not operations.graceful.any():
        return
    rows = cluster.allocations_on(node)
    operation = cluster.allocations.operation[rows]
    asked = rows[operations.graceful[operation] & overlay.running[rows] & (overlay.group[rows] == PREEMPTIBLE)]
    for row in asked[np.lexsort((cluster.allocations.task[asked], cluster.allocations.operation[asked]))].tolist():
        overlay.tell(row, int(operations.graceful_timeout[cluster.allocations.operation[row]]))


def _preemptive(overlay: Overlay, node: int, name: StageName, *, schedulable: bool) -> bool:
    """Run one preemptive stage; whether it started an allocation. Any but the normal one needs an operation."""
    normal = name == "preemptive_normal"
    if not (normal or overlay.prepared.somebody_preempts):
        return False
    who = participants(overlay, name)
    if not who.any() and not (normal and _must_go(overlay, node)):
        return False
    free, begun = overlay.free(node), len(overlay.stopped)
    running = overlay.running[overlay.prepared.situation.cluster.allocations_on(node)].copy()
    least = PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE
    order = candidates(overlay, node, least, normal=normal)
    started = run(overlay, node, name, who, 1, order) if schedulable and who.any() else []
    want = started[0] if started else NOBODY
    if started:
        taken = overlay.prepared.situation.cluster.allocations.usage[order]
        overlay.rooms.append(Room(node, name, free + np.add.reduce(taken, axis=0)))
    preempt(overlay, node, for_want(overlay, order, want).tolist(), REASONS[name], want)
    if overlay.log is not None:
        stopped = {stop.allocation: stop.reason for stop in overlay.stopped[begun:]}
        record = _record(overlay, node, name, free, started)
        overlay.log.append(
            replace(
                record, least=least, participants=int(who.sum()), running=running, order=order.tolist(), stopped=stopped
            )
        )
    return bool(started)


def _must_go(overlay: Overlay, node: int) -> bool:
    """Whether somebody may have to go although nobody starts, or an explanation wants to be told that none did."""
    return overlay.log is not None or overlay.is_overcommitted(node) or bool(_over_limits(overlay).any())


def _record(overlay: Overlay, node: int, name: Stage, free: Ints, started: list[int]) -> StageRecord:
    """What a stage that takes nothing from anybody looked at."""
    rows = overlay.prepared.situation.cluster.allocations_on(node)
    return StageRecord(
        node=node,
        stage=name,
        least=0,
        participants=0,
        free=free,
        rows=rows,
        running=overlay.running[rows].copy(),
        group=overlay.group[rows].copy(),
        order=[],
        started=started,
        stopped={},
    )
