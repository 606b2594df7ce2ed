"""Nomination: the flavors an ask would take, at full or reduced size, and who would have to stop for it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from app.solver.engines.kueue.amounts import PODS, pinned
from app.solver.engines.kueue.flavors import (
    Assigner,
    Pins,
    Scan,
    Search,
    borrowing_level,
    flavor_called,
    place,
    refusal,
    requests,
)
from app.solver.engines.kueue.nomination import Assignment, Choice, Mode, Nomination
from app.solver.engines.kueue.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.quota import FlavorResource
from app.solver.engines.kueue.recorder import SILENT, Recorder
from app.solver.engines.kueue.topology.room import Place
from app.solver.model.state import Ask, Task
from app.solver.stopping import safe_point

R = TypeVar("R")


def may_shrink(tasks: Sequence[Task]) -> bool:
    """Whether some pod set may start with fewer than its count."""
    return any(t.min_count is not None and t.min_count < t.count for t in tasks)


def scaled(tasks: Sequence[Task], given_up: int, at_most: int) -> list[int]:
    """Counts when ``given_up`` of the ``at_most`` units that all may lose together are given up; rounded down per
    pod set, so that the pod sets keep their proportions and never lose more than they may."""
    return [t.count - _slack(t) * given_up // at_most for t in tasks]


def largest(tasks: Sequence[Task], attempt: Callable[[list[int]], R | None]) -> tuple[list[int], R] | None:
    """The counts that give up least among those the bisection meets, with what ``attempt`` made of them.

    Bisection presumes that fewer units are never harder to place. Preemption can break that; then this finds what
    Kueue finds, which need not be the largest. At most 1 + log2(all slack) attempts.
    """
    slack = sum(map(_slack, tasks))
    if slack == 0:
        return None
    low, high = 0, slack + 1
    best: tuple[int, list[int], R] | None = None
    while low < high:
        middle = (low + high) // 2
        counts = scaled(tasks, middle, slack)
        found = attempt(counts)
        if found is None:
            low = middle + 1
        else:
            high = middle
            best = (middle, counts, found)
    return (best[1], best[2]) if best is not None and best[0] == low else None


def _slack(task: Task) -> int:
    return max(0, task.count - (task.count if task.min_count is None else task.min_count))


_MOST_FLAVORS = 16


def nominate(
    overlay: Overlay, ask: Ask, preemptor: Preemptor, search: Search, record: Recorder = SILENT,
    pins: Pins | None = None,
) -> Nomination:  # fmt: skip
    """The full size where it fits or somebody can be preempted for it; else the largest partial size that either
    fits or finds victims; else the full size without victims. The overlay is left as it was.

    ``preemptor.request`` is not read; ``pins``: flavors to keep, with which every scan starts at the first flavor.
    Raises QuantityError."""
    safe_point()
    if is_pinned(ask):
        return _targeted(overlay, ask, preemptor, _as_pinned(overlay, preemptor.queue, ask, record), search, record)
    search = _remembering(search, overlay)
    scanned = None if pins is not None else scan_of(ask)
    if scanned is not None:
        record.resumes(scanned)
    assigner = Assigner(overlay, preemptor, ask.tasks, search, pins, record, scanned)
    whole = _targeted(overlay, ask, preemptor, assigner.assign(), search, record)
    if whole.assignment.mode is Mode.FIT or whole.targets or not may_shrink(ask.tasks):
        return whole
    quiet = replace(assigner, record=SILENT)

    def attempt(counts: list[int]) -> Nomination | None:
        reduced = _targeted(overlay, ask, preemptor, quiet.assign(counts), search, SILENT)
        return reduced if reduced.assignment.mode is Mode.FIT or reduced.targets else None

    found = largest(ask.tasks, attempt)
    if found is None:
        return whole
    counts, reduced = found
    record.reduced(ask.tasks, counts)
    if record is not SILENT and reduced.targets:
        search(overlay, reduced.seeker, reduced.contested, record)
    if record is not SILENT and reduced.places:
        _after(overlay, reduced.targets, reduced.assignment, record)
    return reduced


def scan_of(ask: Ask) -> Scan | None:
    """Where the scan of the ask's flavors goes on; None: at the first. What is older than one cycle holds only while
    nothing has come into its queue or left it (Kueue: lastAssignmentOutdated)."""
    of = ask.kueue.flavor_scan if ask.kueue is not None else None
    return None if of is None or (of.cycles > 1 and of.changed) else of.flavors


def _remembering(search: Search, home: Overlay) -> Search:
    """One nomination looks at one overlay, ``home``: what is asked twice of it is searched once. An ask for a single
    flavor-resource wants the same victims as the simulation that found its flavor; one whose pods must be placed does
    not."""
    known: dict[tuple[tuple[tuple[int, int], ...], tuple[int, ...]], list[Target]] = {}

    def ask(overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder) -> list[Target]:
        if overlay is not home or preemptor.pod_sets:
            return search(overlay, preemptor, contested, record)
        key = (preemptor.request, tuple(contested))
        if record is not SILENT or key not in known:
            known[key] = search(overlay, preemptor, contested, record)
        return known[key]

    return ask


def demands(overlay: Overlay, nomination: Nomination) -> list[dict[int, int]]:
    """The ways in which the ask could be had, each as steps by flavor-resource: with the flavors it has, or, where it
    got none, with each flavor of every resource group that it needs, group by group."""
    if nomination.assignment.mode is not Mode.NO_FIT:
        return [dict(nomination.preemptor.request)]
    configuration, queue = overlay.state.configuration, nomination.preemptor.queue
    covering, out = configuration.covering[queue], list[dict[int, int]]()
    for at, group in enumerate(configuration.groups[queue]):
        for name in group.flavors[:_MOST_FLAVORS]:
            flavor, totals = flavor_called(configuration, name), dict[str, int]()
            for task in nomination.ask.tasks:
                if flavor is not None and refusal(flavor, task) is None:
                    for resource, amount in requests(configuration, queue, task, task.count).items():
                        if covering.get(resource) == at and amount:
                            totals[resource] = totals.get(resource, 0) + amount
            if totals:
                out.append({overlay.fr(queue, name, resource): totals[resource] for resource in sorted(totals)})
    return out


def _targeted(
    overlay: Overlay, ask: Ask, preemptor: Preemptor, assignment: Assignment, search: Search, record: Recorder
) -> Nomination:
    asking = replace(preemptor, request=assignment.request(), pod_sets=assignment.pod_sets)
    disputed = contested(overlay, preemptor.queue, assignment)
    seeker = _seeker(overlay, asking)
    targets: list[Target] = []
    if disputed and assignment.mode is Mode.PREEMPT:
        targets = search(overlay, seeker, disputed, record)

    places = assignment.places
    if targets and assignment.pod_sets:
        places = _after(overlay, targets, assignment, record)
    elif places and assignment.mode is Mode.FIT:
        record.placed(overlay, assignment.pod_sets, places)

    def elsewhere(other: Overlay) -> Nomination:
        return nominate(other, ask, asking, search)

    return Nomination(ask, asking, seeker, assignment, disputed, targets, places, is_pinned(ask), elsewhere)


def _after(overlay: Overlay, targets: list[Target], assignment: Assignment, record: Recorder) -> dict[str, Place]:
    """Where the pods go once the targets have stopped."""
    for workload, _ in targets:
        overlay.remove(workload)
    places, _ = overlay.place(assignment.pod_sets)
    record.placed(overlay, assignment.pod_sets, places)
    for workload, _ in targets:
        overlay.restore(workload)
    return places


def _seeker(overlay: Overlay, preemptor: Preemptor) -> Preemptor:
    """The ask as the search for victims sees it: Kueue puts "pods" on a copy of the request that flavors are assigned
    by, so that they select candidates and count in the fit of the cycle, and never in the search itself."""
    if PODS not in overlay.state.configuration.covering[preemptor.queue]:
        return preemptor
    frs = overlay.usage.quotas.frs
    return replace(preemptor, request=tuple(pair for pair in preemptor.request if frs[pair[0]][1] != PODS))


def is_pinned(ask: Ask) -> bool:
    """Whether the ask names a flavor for everything it requests."""
    tasks = [t for t in ask.tasks if t.requests or t.flavors]
    return bool(tasks) and all(t.flavors is not None and t.requests.keys() <= t.flavors.keys() for t in tasks)


def contested(overlay: Overlay, queue: int, assignment: Assignment) -> list[int]:
    """The flavor-resources that need preemption, ascending."""
    return sorted({
        overlay.fr(queue, choice.flavor, resource)
        for of in assignment.choices.values()
        for resource, choice in of.items()
        if choice.mode is Mode.PREEMPT
    })  # fmt: skip


def _as_pinned(overlay: Overlay, queue: int, ask: Ask, record: Recorder) -> Assignment:
    """The ask's own flavors: a flavor-resource needs preemption when the ask's total for it is not available, or its
    nodes have no room. No flavor is judged by taints, labels, or by what preemption could free. One that its queue does
    not list has no quota of the queue's own, and what the cohort lends of it (Kueue: a missing quota counts as 0)."""
    configuration = overlay.state.configuration
    out = Assignment(counts=[t.count for t in ask.tasks])
    by_task = [pinned(configuration, queue, task) for task in ask.tasks]
    totals: dict[FlavorResource, int] = {}
    for of in by_task:
        for key, amount in of.items():
            totals[key] = totals.get(key, 0) + amount
    out.usage = dict(overlay.request(queue, totals))
    usage, choice = overlay.usage, dict[FlavorResource, Choice]()
    for key, amount in totals.items():
        fr = overlay.fr(queue, *key)
        mode = Mode.PREEMPT if amount > usage.available(queue, fr) else Mode.FIT
        level = borrowing_level(configuration, usage, queue, fr, amount).height
        choice[key] = Choice(key[0], mode, level)
        out.mode, out.level = min(out.mode, mode), max(out.level, level)
    for task, of in zip(ask.tasks, by_task, strict=True):
        out.choices[task.name] = {resource: choice[(flavor, resource)] for flavor, resource in of}
    place(overlay, queue, ask.tasks, out, record)
    return out
