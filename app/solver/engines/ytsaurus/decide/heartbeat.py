"""One node's heartbeat, from the graceful pass to a long overcommit."""

from dataclasses import replace

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Ints
from app.solver.engines.ytsaurus.compile.operations import NEVER
from app.solver.engines.ytsaurus.compile.rule_sets import StageName
from app.solver.engines.ytsaurus.decide import overcommit, stage, victims
from app.solver.engines.ytsaurus.decide.overlay import NOBODY, Board, Reason, Room, Stage, StageRecord
from app.solver.engines.ytsaurus.decide.priority import AGGRESSIVE, NORMAL
from app.solver.engines.ytsaurus.decide.split import AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE

_REASONS: dict[StageName, Reason] = {
    "preemptive_normal": "preemption",
    "preemptive_aggressive": "aggressive_preemption",
}


def process(board: Board, node: int, now: int) -> None:
    """Process the heartbeat of ``node`` at ``now`` (microseconds)."""
    board.regroup()
    schedulable = bool(board.prepared.situation.cluster.schedulable[node])
    _ask_graceful(board, node)
    if schedulable:
        free = board.free(node)
        started = stage.run(board, node, "regular", None, stage.MOST_STARTS)
        if board.log is not None:
            board.log.append(_record(board, node, "regular", free, started))
    if backoff_is_over(board, node, now):
        board.last_preemptive[node] = now
        for name in board.prepared.situation.config.settings.rules.stages:
            if _preemptive(board, node, name, schedulable=schedulable):
                break
    overcommit.resolve(board, node, now)


def pass_over(board: Board, node: int, now: int) -> None:
    """What a heartbeat leaves behind on a node where it can't start or stop anything."""
    if backoff_is_over(board, node, now):
        board.last_preemptive[node] = now
    board.overcommit_since[node] = NEVER


def backoff_is_over(board: Board, node: int, now: int) -> bool:
    """Whether preemptive scheduling may be tried on ``node``: never tried, or longer ago than the backoff."""
    last = int(board.last_preemptive[node])
    return last == NEVER or now > last + board.prepared.situation.config.settings.backoff


def participants(board: Board, name: StageName) -> Flags:
    """Operations that a preemptive stage considers."""
    priority = board.prepared.priority
    if name == "preemptive_aggressive":
        return priority == AGGRESSIVE
    if board.prepared.situation.config.settings.rules.normal_serves_aggressive:
        return priority >= NORMAL
    return priority == NORMAL


def _ask_graceful(board: Board, node: int) -> None:
    """Tell plainly preemptible allocations of graceful operations to stop in their own time, in input order."""
    situation = board.prepared.situation
    cluster, operations = situation.cluster, situation.operations
    rows = cluster.allocations_on(node)
    operation = cluster.allocations.operation[rows]
    told = rows[operations.graceful[operation] & board.running[rows] & (board.group[rows] == PREEMPTIBLE)]
    for row in told[np.lexsort((cluster.allocations.task[told], cluster.allocations.operation[told]))].tolist():
        board.tell(row, int(operations.graceful_timeout[cluster.allocations.operation[row]]))


def _preemptive(board: Board, node: int, name: StageName, *, schedulable: bool) -> bool:
    """Run one preemptive stage; whether it started an allocation. Any but the normal one needs an operation."""
    normal = name == "preemptive_normal"
    who = participants(board, name)
    if not normal and not who.any():
        return False
    free, begun = board.free(node), len(board.stopped)
    running = board.running[board.prepared.situation.cluster.allocations_on(node)].copy()
    least = PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE
    order = victims.candidates(board, node, least, normal=normal)
    started = stage.run(board, node, name, who, 1, order) if schedulable and who.any() else []
    want = started[0] if started else NOBODY
    if started:
        taken = board.prepared.situation.cluster.allocations.usage[order]
        board.rooms.append(Room(node, name, free + np.add.reduce(taken, axis=0)))
    victims.preempt(board, node, victims.for_want(board, order, want).tolist(), _REASONS[name], want)
    if board.log is not None:
        stopped = {one.allocation: one.reason for one in board.stopped[begun:]}
        record = _record(board, node, name, free, started)
        board.log.append(
            replace(
                record, least=least, participants=int(who.sum()), running=running, order=order.tolist(), stopped=stopped
            )
        )
    return bool(started)


def _record(board: Board, node: int, name: Stage, free: Ints, started: list[int]) -> StageRecord:
    """What a stage that takes nothing from anybody looked at."""
    rows = board.prepared.situation.cluster.allocations_on(node)
    return StageRecord(
        node=node,
        stage=name,
        least=0,
        participants=0,
        free=free,
        rows=rows,
        running=board.running[rows].copy(),
        group=board.group[rows].copy(),
        order=[],
        started=started,
        stopped={},
    )
