"""One scheduling cycle of Kueue over all asks, or every ask alone against the same state; the flavors that an ask would
take, at full or reduced size.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.solver import kubernetes
from app.solver.engines.kueue.admission_sharing import local_queue
from app.solver.engines.kueue.candidates import SILENT, Recorder
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.fair_share import fair_order
from app.solver.engines.kueue.flavors import (
    Assigner,
    Pins,
    Scan,
    Search,
    as_pinned,
    refusals,
    requests,
)
from app.solver.engines.kueue.knobs import Run
from app.solver.engines.kueue.nomination import Assignment, CycleUsage, Mode, Nomination, Target
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.state import CompiledState
from app.solver.engines.kueue.topology.room import Place
from app.solver.kubernetes import PODS
from app.solver.model.base import micros
from app.solver.model.kueue import Ask as AskBlock
from app.solver.model.kueue import FlavorScan
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Task
from app.solver.question import safe_point

R = TypeVar("R")


def may_shrink(tasks: Sequence[Task]) -> bool:
    """Whether some pod set may start with fewer than its count."""
    return any(map(_slack, tasks))


def scaled(tasks: Sequence[Task], given_up: int, at_most: int) -> list[int]:
    """Counts when ``given_up`` of the ``at_most`` units that all may lose together are given up; rounded down per
    pod set, so that the pod sets keep their proportions and never lose more than they may. They are counted down from
    the whole workload, pods that are done and all: that may ask for more than is left (Kueue: NewPodSetReducer takes
    the counts of the spec), but for a pod set of which nothing is left (PodSetResources.ScaledTo)."""
    return [_whole(t) - _slack(t) * given_up // at_most if t.count else 0 for t in tasks]


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
        result = attempt(counts)
        if result is None:
            low = middle + 1
        else:
            high = middle
            best = (middle, counts, result)
    return (best[1], best[2]) if best is not None and best[0] == low else None


def _whole(task: Task) -> int:
    return task.count if task.full_count is None else task.full_count


def _slack(task: Task) -> int:
    return 0 if task.min_count is None else max(0, _whole(task) - task.min_count)


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
        assignment = as_pinned(overlay, preemptor.queue, ask, record)
        return _targeted(overlay, ask, preemptor, assignment, search, record, pinned=True)
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

    best = largest(ask.tasks, attempt)
    if best is None:
        return whole
    counts, reduced = best
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
    not. Of flavor-resources that are alike in all that counts one is enough."""
    known: dict[tuple[frozenset[tuple[int, int]], frozenset[int]], list[Target]] = {}
    kinds: dict[int, int] = {}

    def kind(fr: int) -> int:
        if fr not in kinds:
            kinds[fr] = next((other for other in {*kinds.values()} if home.alike(other, fr)), fr)
        return kinds[fr]

    def ask(overlay: Overlay, preemptor: Preemptor, contested: Collection[int], record: Recorder) -> list[Target]:
        if overlay is not home or preemptor.pod_sets:
            return search(overlay, preemptor, contested, record)
        key = frozenset([(kind(fr), amount) for fr, amount in preemptor.request]), frozenset(map(kind, contested))
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
    judged = [refusals(configuration, task) for task in nomination.ask.tasks]
    for g, group in enumerate(configuration.groups[queue]):
        for name in group.flavors[:_MOST_FLAVORS]:
            totals = dict[str, int]()
            for task, of in zip(nomination.ask.tasks, judged, strict=True):
                if of[name] is None:
                    for resource, amount in requests(configuration, queue, task, task.count).items():
                        if covering.get(resource) == g and amount:
                            totals[resource] = totals.get(resource, 0) + amount
            if totals:
                out.append({overlay.fr(queue, name, resource): totals[resource] for resource in sorted(totals)})
    return out


def _targeted(
    overlay: Overlay, ask: Ask, preemptor: Preemptor, assignment: Assignment, search: Search, record: Recorder,
    *, pinned: bool = False,
) -> Nomination:  # fmt: skip
    asking = preemptor._replace(request=assignment.request(), pod_sets=assignment.pod_sets)
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

    return Nomination(ask, asking, seeker, assignment, disputed, targets, places, pinned, elsewhere)


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
    return preemptor._replace(request=tuple(pair for pair in preemptor.request if frs[pair[0]][1] != PODS))


def is_pinned(ask: Ask) -> bool:
    """Whether the ask names a flavor for everything it requests."""
    pinned = False
    for task in ask.tasks:
        if task.flavors is None:
            if task.requests:
                return False
        elif task.requests.keys() <= task.flavors.keys():
            pinned = pinned or bool(task.flavors)
        else:
            return False
    return pinned


def contested(overlay: Overlay, queue: int, assignment: Assignment) -> list[int]:
    """The flavor-resources that need preemption, ascending."""
    return sorted({
        overlay.fr(queue, choice.flavor, resource)
        for of in assignment.choices.values()
        for resource, choice in of.items()
        if choice.mode is Mode.PREEMPT
    })  # fmt: skip


def alone(run: Run, ask: Ask, record: Recorder) -> tuple[Overlay, Nomination]:
    """One ask nominated on an overlay of its own. It must have passed ``check_asks``."""
    overlay = Overlay(run.state, run.now)
    return overlay, nominate(overlay, ask, *run.begin(overlay, ask, record), record)


def check_asks(state: CompiledState, asks: list[Ask]) -> None:
    """Raises InvalidInput: only a ClusterQueue takes asks, a Workload has a pod set, a flavor must be known to the
    configuration, and tolerations and affinity must be such as Kubernetes takes."""
    configuration = state.configuration
    problems: list[Problem] = []
    for a, ask in enumerate(asks):
        if configuration.is_cohort[configuration.tree.index[ask.queue]]:
            problems.append(Problem(pointer=pointer("asks", a, "queue"), detail="a cohort takes no workloads"))
        if not ask.tasks:
            problems.append(Problem(pointer=pointer("asks", a, "tasks"), detail="a Workload has at least one pod set"))
        for t, task in enumerate(ask.tasks):
            if task.tolerations or task.node_affinity:
                problems += kubernetes.problems(task, ("asks", a, "tasks", t))
            problems += [
                Problem(pointer=pointer("asks", a, "tasks", t, "flavors", resource), detail=f"no flavor {flavor!r}")
                for resource, flavor in (task.flavors or {}).items()
                if flavor not in configuration.flavor_names
            ]
    if problems:
        raise InvalidInput(problems)


INADMISSIBLE = "Inadmissible"


def inadmissible(configuration: CompiledConfiguration, ask: Ask, now: int) -> str | None:
    """Why ``ask`` is not nominated at ``now``; None: it is."""
    inactive = configuration.inactive[configuration.tree.index[ask.queue]]
    if inactive is not None or ask.kueue is None:
        return inactive
    if ask.kueue.inadmissible is not None:
        return ask.kueue.inadmissible
    back = ask.kueue.requeue_at
    if back is not None and micros(back) > now:
        return f"It steps back until {back.isoformat()} after an eviction"
    return None


OUTRUN = "Workload no longer fits after processing another workload"
OVERLAP = "Workload has overlapping preemption targets with another workload"
OTHERS = "Workload fits once the preemptions of other workloads are done"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cycle comes to for one head. ``waiting``: why it waits although its nomination alone would let it go on;
    ``cycle_usage``: where what earlier heads took may be to blame. It is to be read before the next one is asked for:
    the cycle goes on by booking what this head takes."""

    head: Nomination
    record: Recorder
    waiting: str | None = None
    cycle_usage: CycleUsage | None = None


def queues(run: Run, asks: Iterable[Ask]) -> tuple[list[Ask], list[tuple[Ask, Ask]]]:
    """The head of every queue in the order of the request, and every other ask with the head it waits behind. A queue
    goes by priority, then age, then UID (Kueue's queue order); what is left goes by the order of the request. Before
    that, whose preemption is pending (Kueue: sticky workload), but in a StrictFIFO queue; before all of it, what
    LocalQueues have consumed, where the queue goes by it."""
    by_queue: dict[str, list[Ask]] = {}
    for ask in asks:
        by_queue.setdefault(ask.queue, []).append(ask)
    heads: list[Ask] = []
    behind: list[tuple[Ask, Ask]] = []
    for waiting in by_queue.values():
        head = min(waiting, key=lambda ask: _queue_order(run, ask))
        heads.append(head)
        behind += [(ask, head) for ask in waiting if ask is not head]
    place = {ask.id: i for i, ask in enumerate(asks)}
    return sorted(heads, key=lambda ask: place[ask.id]), behind


def _queue_order(run: Run, ask: Ask) -> tuple[float, bool, int, int, str]:
    consumed = run.consumed
    usage = consumed.usage(local_queue(ask)) if consumed is not None and consumed.counts(ask.queue) else 0.0
    of = run.preemptor(ask)
    pending = ask.kueue is not None and ask.kueue.preemption_pending
    sticky = pending and not run.state.configuration.policy[of.queue].strict_fifo
    return usage, not sticky, -of.priority, of.created, ask.uid or ""


def carried(outcome: Outcome, decided: str) -> AskBlock | None:
    """What the head's ask carries to the next cycle, given what was ``decided``; None: nothing.

    Kueue: a head that preempts, or fits once others have stopped, becomes its queue's preemptor and forgets where its
    scan of flavors stopped; one that was skipped, or for which nobody may stop, goes on from there."""
    if decided == "admit":
        return None
    head = outcome.head
    pending = decided == "preempt" or outcome.waiting == OTHERS
    scan = None
    if not pending and head.assignment.unfinished:
        scan = FlavorScan(flavors=head.assignment.scan)
    pending = pending or (head.ask.kueue is not None and head.ask.kueue.preemption_pending)
    return AskBlock(preemption_pending=pending, flavor_scan=scan) if pending or scan is not None else None


class Cycle:
    """One cycle. ``recorder`` makes what hears about one ask."""

    def __init__(self, run: Run, recorder: Callable[[], Recorder]) -> None:
        self.overlay = Overlay(run.state, run.now)
        self._run = run
        self._recorder = recorder

    def outcomes(self, heads: list[Ask]) -> Iterator[Outcome]:
        """Nominate all heads, then decide each in the engine's order. They must have passed ``check_asks``."""
        records = {ask.id: self._recorder() for ask in heads}
        nominations = [self._nominate(ask, records[ask.id]) for ask in heads]
        fair = self._run.state.configuration.fair_sharing
        cycle_usage = CycleUsage(self.overlay)
        ordered = fair_order(self.overlay, nominations) if fair else classical_order(nominations)
        root = self._run.state.configuration.root
        trees = len({root[head.preemptor.queue] for head in nominations}) if fair else 1
        for position, head in enumerate(ordered):
            record = records[head.ask.id]
            if trees > 1:
                record.trees_by_chance(trees)
            record.in_order(position, len(heads), head.assignment.level)
            yield from self._process(cycle_usage, head, record)

    def _nominate(self, ask: Ask, record: Recorder, pins: Pins | None = None) -> Nomination:
        begun = self._run.begin(self.overlay, ask, record if pins is None else SILENT)
        return nominate(self.overlay, ask, *begun, record, pins)

    def _process(self, cycle_usage: CycleUsage, head: Nomination, record: Recorder) -> Iterator[Outcome]:
        deferred = False
        fits = cycle_usage.fits(head)
        if cycle_usage.overlaps(head.targets):
            record.again()
            head = self._again(cycle_usage, head, record)
            deferred = head.assignment.mode is Mode.FIT
            fits = cycle_usage.fits(head)
        elif fits == "nodes":
            record.places_taken()
            head = self._nominate(head.ask, record, head.assignment.flavors())
            fits = cycle_usage.fits(head)
        if head.assignment.mode is Mode.NO_FIT:
            yield Outcome(head, record, cycle_usage=cycle_usage)
        elif head.assignment.mode is Mode.PREEMPT and not head.targets:
            yield from self._unhelped(cycle_usage, head, record)
        elif cycle_usage.overlaps(head.targets):
            record.overlaps(cycle_usage, head, OVERLAP)
            yield Outcome(head, record, OVERLAP)
        elif fits != "yes":
            record.outrun(cycle_usage, head, OUTRUN)
            yield Outcome(head, record, OUTRUN)
        else:
            if deferred:
                record.deferred(cycle_usage, head)
            yield Outcome(head, record, OTHERS if deferred else None)
            cycle_usage.book(head)

    def _unhelped(self, cycle_usage: CycleUsage, head: Nomination, record: Recorder) -> Iterator[Outcome]:
        """Nobody may stop for it. Unless it can always reclaim what is its own, it keeps its capacity."""
        reserves = self._run.block(head.ask).reclaim_within_cohort != "Any"
        if reserves:
            record.reserves()
        yield Outcome(head, record, cycle_usage=cycle_usage)
        if reserves:
            cycle_usage.reserve(head)

    def _again(self, cycle_usage: CycleUsage, head: Nomination, record: Recorder) -> Nomination:
        """Nominated anew with the flavors kept and every earlier victim out of the overlay: somebody else already
        stops for another head, and may make room for both or leave the way to other victims."""
        return cycle_usage.without_victims(lambda: self._nominate(head.ask, record, head.assignment.flavors()))


def classical_order(heads: Iterable[Nomination]) -> Iterator[Nomination]:
    """Lower borrowing level, higher priority, older; equal heads in the order of the request."""
    return iter(sorted(heads, key=lambda h: (h.assignment.level, -h.preemptor.priority, h.preemptor.created)))
