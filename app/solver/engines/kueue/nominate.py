"""Nomination: the flavors an ask would take, at full or reduced size, and who would have to stop for it.

Source: Kueue ``pkg/scheduler/scheduler.go`` (getInitialAssignments). Nothing is booked here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.solver.engines.kueue.assign import Assigner, Assignment, Choice, Pins, Search
from app.solver.engines.kueue.level import borrowing_level
from app.solver.engines.kueue.load import pinned
from app.solver.engines.kueue.modes import Mode
from app.solver.engines.kueue.partial import largest, may_shrink
from app.solver.engines.kueue.snapshot import Preemptor, Snapshot, Target
from app.solver.model.state import Ask, Task
from app.solver.trace import SILENT, Why


@dataclass(slots=True)
class Nomination:
    """``preemptor.request`` is the assignment's usage. Mode PREEMPT without targets: nobody may be preempted."""

    ask: Ask
    preemptor: Preemptor
    assignment: Assignment
    targets: list[Target]

    @property
    def reduced(self) -> bool:
        """Whether fewer units than asked for would start."""
        return self.assignment.counts != [t.count for t in self.ask.tasks]

    def pins(self) -> Pins:
        """The flavors nominated, for an assignment that must keep them."""
        return self.assignment.flavors()


def nominate(
    snapshot: Snapshot, ask: Ask, preemptor: Preemptor, search: Search, pins: Pins | None = None, why: Why = SILENT
) -> Nomination:
    """The full size where it fits or somebody can be preempted for it; else the largest partial size that either
    fits or finds victims; else the full size without victims. The snapshot is left as it was."""
    if named(ask.tasks):
        return _placed(snapshot, ask, preemptor, _as_named(snapshot, ask.tasks, preemptor.queue), search)
    assigner = Assigner(snapshot, preemptor, ask.tasks, search, pins, why)
    full = assigner.assign()
    whole = _placed(snapshot, ask, preemptor, full, search)
    if full.mode is Mode.FIT or whole.targets or not may_shrink(ask.tasks):
        return whole
    quiet = replace(assigner, why=SILENT)

    def attempt(counts: list[int]) -> Nomination | None:
        reduced = quiet.assign(counts)
        if reduced.mode is Mode.NO_FIT:
            return None
        found = _placed(snapshot, ask, preemptor, reduced, search)
        return found if reduced.mode is Mode.FIT or found.targets else None

    found = largest(ask.tasks, attempt)
    if found is None:
        return whole
    if why.on:
        sizes = {task.name: count for task, count in zip(ask.tasks, found[0], strict=True)}
        why.step("partial-admission", "starts smaller than asked: the full size can't be had", counts=sizes)
    return found[1]


def _placed(snapshot: Snapshot, ask: Ask, preemptor: Preemptor, assignment: Assignment, search: Search) -> Nomination:
    asking = replace(preemptor, request=assignment.request())
    targets: list[Target] = []
    if assignment.mode is Mode.PREEMPT:
        targets = search(snapshot, asking, contested(snapshot, preemptor.queue, assignment))
    return Nomination(ask, asking, assignment, targets)


def contested(snapshot: Snapshot, queue: int, assignment: Assignment) -> list[int]:
    """The flavor-resources that need preemption, ascending."""
    found = {
        snapshot.fr(queue, choice.flavor, resource)
        for of in assignment.choices.values()
        for resource, choice in of.items()
        if choice.mode is Mode.PREEMPT
    }
    return sorted(found)


def named(tasks: Sequence[Task]) -> bool:
    """Whether the ask comes with its flavors chosen: every pod set names one for each resource it requests."""
    return bool(tasks) and all(t.flavors is not None and t.flavors.keys() >= t.requests.keys() for t in tasks)


def _as_named(snapshot: Snapshot, tasks: Sequence[Task], queue: int) -> Assignment:
    """The assignment that the ask brings. A flavor-resource needs preemption when the total over all pod sets is
    more than what is available; no flavor is judged by taints, labels, or what preemption could free."""
    configured, usage = snapshot.loaded.configured, snapshot.usage
    out = Assignment(counts=[t.count for t in tasks])
    wanted = {t.name: pinned(configured, queue, t) for t in tasks}
    for amounts in wanted.values():
        for (flavor, resource), amount in amounts.items():
            fr = snapshot.fr(queue, flavor, resource)
            out.usage[fr] = out.usage.get(fr, 0) + amount
    for task, amounts in wanted.items():
        out.choices[task] = {}
        for flavor, resource in sorted(amounts, key=lambda fr: fr[1]):
            fr = snapshot.fr(queue, flavor, resource)
            mode = Mode.FIT if out.usage[fr] <= usage.available(queue, fr) else Mode.PREEMPT
            level = borrowing_level(configured, usage, queue, fr, out.usage[fr]).height
            out.choices[task][resource] = Choice(flavor, mode, level)
            out.mode, out.level = min(out.mode, mode), max(out.level, level)
    return out
