"""What became of each allocation of a node, as one ask sees it: its final verdict in one preemptive stage."""

from dataclasses import dataclass

from app.solver.engines.ytsaurus.decide.heartbeat import participants
from app.solver.engines.ytsaurus.decide.overlay import Overlay, StageRecord
from app.solver.engines.ytsaurus.decide.split import GROUPS, PREEMPTIBLE
from app.solver.model.trace import Verdict

Found = tuple[Verdict, str, str]
"""Verdict, rule, and the rule in a few words."""


@dataclass(frozen=True, slots=True)
class View:
    """Who looks at a stage: ``operation`` of the ask, whether it takes part, and whether it started something there."""

    operation: int
    takes_part: bool
    started: bool


def view(overlay: Overlay, record: StageRecord, operation: int, wants: range) -> View:
    """The view of an ask whose rows of wants are ``wants``."""
    takes_part = record.stage != "regular" and bool(participants(overlay, record.stage)[operation])
    return View(operation, takes_part, any(want in wants for want in record.started))


def verdict(overlay: Overlay, record: StageRecord, place: int, seen_by: View) -> Found:
    """The verdict on the allocation at ``place`` of the record's rows."""
    row = int(record.rows[place])
    if row in record.stopped:
        return _of_stopped(overlay, record, row, seen_by)
    if not record.running[place]:
        return "out-of-reach", "stopped-before", "stopped by another stage"
    spared = _protected(overlay, record, place, seen_by.operation)
    if spared is not None:
        return "protected", *spared
    if not seen_by.takes_part:
        return "out-of-reach", "takes-no-part", "the stage does not serve the operation of this ask"
    if seen_by.started:
        return "not-needed", "node-fits", "those before it were enough"
    if record.started:
        return "not-needed", "another-started", "the stage starts one allocation, and that was another ask's"
    return "not-needed", "not-enough", "with all that could go there was no room either"


def _of_stopped(overlay: Overlay, record: StageRecord, row: int, seen_by: View) -> Found:
    reason = record.stopped[row]
    if reason == "resource_limits_violated":
        operation = int(overlay.prepared.situation.cluster.allocations.operation[row])
        who = overlay.prepared.situation.operations.ids[operation]
        return "out-of-reach", reason, f"{who} or a pool above exceeded its limits: it goes for nobody's ask"
    if seen_by.started:
        return "victim", reason, "next in order"
    if record.started:
        return "out-of-reach", "goes-for-another", "stopped to start an allocation of another ask"
    return "out-of-reach", "overcommitted", "stopped as the allocations on the node used more than it has"


def _protected(overlay: Overlay, record: StageRecord, place: int, taker: int) -> tuple[str, str] | None:
    """Rule and detail of what protects an allocation from this stage; None: nothing does."""
    prepared = overlay.prepared
    row, group = int(record.rows[place]), int(record.group[place])
    operation = int(prepared.situation.cluster.allocations.operation[row])
    if prepared.situation.operations.graceful[operation]:
        return "graceful", "graceful operations are only asked to stop"
    if not prepared.takeable[operation]:
        return "starving", "its operation is starving itself"
    if record.least == PREEMPTIBLE and not prepared.normally_takeable[operation]:
        return "normal-preemption-off", "a pool above sets allow_normal_preemption to false"
    if group < record.least:
        return GROUPS[group], f"the stage takes {GROUPS[record.least]} ones"
    if group != PREEMPTIBLE and not prepared.gentle[operation]:
        return "aggressive-preemption-off", "aggressive preemption is not allowed for its operation"
    if operation == taker and not prepared.situation.config.settings.rules.own_allocations_make_room:
        return "own-allocations", "an operation makes no room for itself"
    return None
