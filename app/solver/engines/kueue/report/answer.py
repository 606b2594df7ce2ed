"""The answer for one ask, as the wire has it."""

from app.solver.engines.kueue.decide.booking import Books
from app.solver.engines.kueue.decide.flavors.assign import never_fits
from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.nominate import demands
from app.solver.engines.kueue.decide.nomination import Nomination
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.decide.recorder import Recorder
from app.solver.engines.kueue.report import conditions
from app.solver.engines.kueue.topology.pod_sets import shown
from app.solver.model.decision import Decision
from app.solver.model.kueue import TopologyAssignment
from app.solver.model.state import Ask


def answer(
    overlay: Overlay, nomination: Nomination, record: Recorder, waiting: str | None = None, books: Books | None = None
) -> Decision:
    """What becomes of a nominated ask. ``waiting``: why it waits although its nomination alone would let it go on;
    ``books``: of the cycle that it is part of."""
    goes = waiting is None and nomination.assignment.mode is not Mode.NO_FIT
    if goes and nomination.assignment.mode is Mode.FIT:
        return _admitted(overlay, nomination, record)
    if goes and nomination.targets:
        return _preempting(overlay, nomination, record)
    if waiting is None:
        record.blocked(overlay, nomination, books)
    return _waiting(overlay, nomination, record, waiting)


def _admitted(overlay: Overlay, nomination: Nomination, record: Recorder) -> Decision:
    ask, assignment = nomination.ask, nomination.assignment
    record.fits(ask)
    return Decision(
        ask=ask.id, outcome="admit", assignment=assignment.flavors(), borrowing=assignment.level > 0, victims=[],
        topology_assignment=_places(overlay, nomination),
        counts=_counts(nomination), conditions=[conditions.reserved(overlay, nomination.preemptor.queue)],
        explanation=record.explanation(),
    )  # fmt: skip


def _preempting(overlay: Overlay, nomination: Nomination, record: Recorder) -> Decision:
    ask, assignment, queue = nomination.ask, nomination.assignment, nomination.preemptor.queue
    wanted = _wanted(overlay, nomination)
    victims = conditions.victims(overlay, ask, queue, nomination.targets)
    record.preempts(ask, victims)
    pending = conditions.shortage_text(overlay, queue, wanted)
    pending += f". Pending the preemption of {len(nomination.targets)} workload(s)"
    return Decision(
        ask=ask.id, outcome="preempt", assignment=assignment.flavors(), borrowing=assignment.level > 0,
        topology_assignment=_places(overlay, nomination),
        counts=_counts(nomination), victims=victims, shortages=conditions.shortages(overlay, queue, wanted) or None,
        beyond=conditions.beyond(victims), conditions=[conditions.pending(overlay, pending)],
        explanation=record.explanation(),
    )  # fmt: skip


def _waiting(overlay: Overlay, nomination: Nomination, record: Recorder, waiting: str | None) -> Decision:
    ask, assignment, queue = nomination.ask, nomination.assignment, nomination.preemptor.queue
    wanted = _wanted(overlay, nomination)
    never = None if nomination.pinned else never_fits(overlay.state.configuration, queue, ask.tasks)
    hopeless = never is not None or (nomination.pinned and assignment.mode is Mode.NO_FIT)
    text = conditions.shortage_text(overlay, queue, wanted)
    reasons = "; ".join(filter(None, [waiting, never, *assignment.lacking, text])) or "no workload may be preempted"
    record.waits(ask, reasons, hopeless=hopeless)
    return Decision(
        ask=ask.id, outcome="infeasible" if hopeless else "wait", victims=[],
        shortages=conditions.shortages(overlay, queue, wanted) or None,
        conditions=[conditions.pending(overlay, reasons)], explanation=record.explanation(),
    )  # fmt: skip


def waits_behind(overlay: Overlay, ask: Ask, head: Ask, record: Recorder) -> Decision:
    """Another ask of its queue is the head of a cycle."""
    configuration = overlay.state.configuration
    strict = configuration.policy[configuration.tree.index[ask.queue]].strict_fifo
    rest = (
        "nothing of a StrictFIFO queue goes before its head is admitted"
        if strict
        else "one ask of a queue is tried in a cycle; a head that can't be admitted steps aside in the next"
    )
    record.behind(ask, head, rest)
    message = f"Waits behind {head.id}, the head of ClusterQueue {ask.queue}: {rest}"
    return Decision(
        ask=ask.id, outcome="wait", victims=[], conditions=[conditions.pending(overlay, message)],
        explanation=record.explanation(),
    )  # fmt: skip


def _places(overlay: Overlay, nomination: Nomination) -> dict[str, TopologyAssignment] | None:
    if overlay.room is None or not nomination.places:
        return None
    forests = overlay.room.rooms.forests
    return {task: shown(forests[place.flavor], place.pods) for task, place in nomination.places.items()}


def _wanted(overlay: Overlay, nomination: Nomination) -> list[tuple[int, int]]:
    return [pair for demand in demands(overlay, nomination) for pair in demand.items()]


def _counts(nomination: Nomination) -> dict[str, int] | None:
    """Sizes by pod set, where they are reduced."""
    if not nomination.reduced:
        return None
    return {task.name: count for task, count in zip(nomination.ask.tasks, nomination.assignment.counts, strict=True)}
