"""What an ask would take: its flavors, whether they fit, and which of them need preemption."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from app.solver.engines.kueue.assign import Assigner, Assignment, Choice
from app.solver.engines.kueue.level import borrowing_level
from app.solver.engines.kueue.load import instant, pinned
from app.solver.engines.kueue.modes import Mode
from app.solver.engines.kueue.quota import FlavorResource
from app.solver.engines.kueue.snapshot import Preemptor, Snapshot, Target
from app.solver.engines.kueue.targets import get_targets
from app.solver.model.state import Ask
from app.solver.trace import Why

Search = Callable[[Snapshot, Preemptor, Collection[int], Why], list[Target]]


@dataclass(frozen=True, slots=True)
class Nomination:
    """``contested``: flavor-resources of the request that need preemption. ``pinned``: the ask named its flavors."""

    preemptor: Preemptor
    assignment: Assignment
    contested: list[int]
    pinned: bool


def nominate(snapshot: Snapshot, ask: Ask, why: Why) -> Nomination:
    """Flavors for ``ask`` against this snapshot. Raises QuantityError."""
    queue = snapshot.loaded.configured.tree.index[ask.queue]
    bare = Preemptor(ask.id, queue, ask.priority or 0, instant(ask.created_at), ())
    if is_pinned(ask):
        assignment = _as_pinned(snapshot, queue, ask)
    else:
        assignment = Assigner(snapshot, bare, ask.tasks, get_targets, why=why).assign()
    preemptor = Preemptor(bare.id, queue, bare.priority, bare.created, assignment.request())
    return Nomination(preemptor, assignment, contested(snapshot, queue, assignment), is_pinned(ask))


def is_pinned(ask: Ask) -> bool:
    """Whether the ask names a flavor for everything it requests."""
    tasks = [t for t in ask.tasks if t.requests or t.flavors]
    return bool(tasks) and all(t.flavors is not None and t.requests.keys() <= t.flavors.keys() for t in tasks)


def contested(snapshot: Snapshot, queue: int, assignment: Assignment) -> list[int]:
    """The flavor-resources that need preemption, ascending."""
    return sorted({
        snapshot.fr(queue, choice.flavor, resource)
        for of in assignment.choices.values()
        for resource, choice in of.items()
        if choice.mode is Mode.PREEMPT
    })  # fmt: skip


def _as_pinned(snapshot: Snapshot, queue: int, ask: Ask) -> Assignment:
    """The ask's own flavors: a flavor-resource needs preemption when the ask's total for it is not available."""
    configured = snapshot.loaded.configured
    out = Assignment(counts=[t.count for t in ask.tasks])
    by_task = [pinned(configured, queue, task) for task in ask.tasks]
    totals: dict[FlavorResource, int] = {}
    for of in by_task:
        for key, amount in of.items():
            totals[key] = totals.get(key, 0) + amount
    out.usage = dict(snapshot.request(queue, totals))
    usage, choice = snapshot.usage, dict[FlavorResource, Choice]()
    for key, amount in totals.items():
        fr = snapshot.fr(queue, *key)
        mode = Mode.PREEMPT if amount > usage.available(queue, fr) else Mode.FIT
        level = borrowing_level(configured, usage, queue, fr, amount).height
        choice[key] = Choice(key[0], mode, level)
        out.mode, out.level = min(out.mode, mode), max(out.level, level)
    for task, of in zip(ask.tasks, by_task, strict=True):
        out.choices[task.name] = {resource: choice[(flavor, resource)] for flavor, resource in of}
    return out
