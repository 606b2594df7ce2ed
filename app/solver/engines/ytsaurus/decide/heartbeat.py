"""One node's heartbeat, from the graceful pass to a long overcommit."""

from dataclasses import replace

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Ints
from app.solver.engines.ytsaurus.compile.operations import NEVER
from app.solver.engines.ytsaurus.compile.rule_sets import StageName
from app.solver.engines.ytsaurus.decide import overcommit, stage, victims
from app.solver.engines.ytsaurus.decide.overlay import NOBODY, Overlay, Reason, Room, Stage, StageRecord
from app.solver.engines.ytsaurus.decide.priority import AGGRESSIVE, NORMAL
from app.solver.engines.ytsaurus.decide.split import AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE

_REASONS: dict[StageName, Reason] = {
    "preemptive_normal": "preemption",
    "preemptive_aggressive": "aggressive_preemption",
}


def process(overlay: Overlay, node: int, now: int) -> None:
    """Process the heartbeat of ``node`` at ``now`` (microseconds)."""
    overlay.regroup()
    schedulable = bool(overlay.prepared.situation.cluster.schedulable[node])
    _ask_graceful(overlay, node)
    if schedulable:
        free = overlay.free(node)
        started = stage.run(overlay, node, "regular", None, stage.MOST_STARTS)
        if overlay.log is not None:
            overlay.log.append(_record(overlay, node, "regular", free, started))
    if backoff_is_over(overlay, node, now):
        overlay.last_preemptive[node] = now
        for name in overlay.prepared.situation.config.settings.rules.stages:
            if _preemptive(overlay, node, name, schedulable=schedulable):
                break
    overcommit.resolve(overlay, node, now)


def pass_over(overlay: Overlay, node: int, now: int) -> None:
    """What a heartbeat leaves behind on a node where it can't start or stop anything."""
    if backoff_is_over(overlay, node, now):
        overlay.last_preemptive[node] = now
    overlay.overcommit_since[node] = NEVER


def backoff_is_over(overlay: Overlay, node: int, now: int) -> bool:
    """Whether preemptive scheduling may be tried on ``node``: never tried, or longer ago than the backoff."""
    last = int(overlay.last_preemptive[node])
    return last == NEVER or now > last + overlay.prepared.situation.config.settings.backoff


def participants(overlay: Overlay, name: StageName) -> Flags:
    """Operations that a preemptive stage considers."""
    priority = overlay.prepared.priority
    if name == "preemptive_aggressive":
        return priority == AGGRESSIVE
    if overlay.prepared.situation.config.settings.rules.normal_serves_aggressive:
        return priority >= NORMAL
    return priority == NORMAL


def _ask_graceful(overlay: Overlay, node: int) -> None:
    """Tell plainly preemptible allocations of graceful operations to stop in their own time, in input order."""
    situation = overlay.prepared.situation
    cluster, operations = situation.cluster, situation.operations
    rows = cluster.allocations_on(node)
    operation = cluster.allocations.operation[rows]
    told = rows[operations.graceful[operation] & overlay.running[rows] & (overlay.group[rows] == PREEMPTIBLE)]
    for row in told[np.lexsort((cluster.allocations.task[told], cluster.allocations.operation[told]))].tolist():
        overlay.tell(row, int(operations.graceful_timeout[cluster.allocations.operation[row]]))


def _preemptive(overlay: Overlay, node: int, name: StageName, *, schedulable: bool) -> bool:
    """Run one preemptive stage; whether it started an allocation. Any but the normal one needs an operation."""
    normal = name == "preemptive_normal"
    who = participants(overlay, name)
    if not normal and not who.any():
        return False
    free, begun = overlay.free(node), len(overlay.stopped)
    running = overlay.running[overlay.prepared.situation.cluster.allocations_on(node)].copy()
    least = PREEMPTIBLE if normal else AGGRESSIVELY_PREEMPTIBLE
    order = victims.candidates(overlay, node, least, normal=normal)
    started = stage.run(overlay, node, name, who, 1, order) if schedulable and who.any() else []
    want = started[0] if started else NOBODY
    if started:
        taken = overlay.prepared.situation.cluster.allocations.usage[order]
        overlay.rooms.append(Room(node, name, free + np.add.reduce(taken, axis=0)))
    victims.preempt(overlay, node, victims.for_want(overlay, order, want).tolist(), _REASONS[name], want)
    if overlay.log is not None:
        stopped = {one.allocation: one.reason for one in overlay.stopped[begun:]}
        record = _record(overlay, node, name, free, started)
        overlay.log.append(
            replace(
                record, least=least, participants=int(who.sum()), running=running, order=order.tolist(), stopped=stopped
            )
        )
    return bool(started)


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
