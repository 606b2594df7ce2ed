"""One scheduling cycle of Kueue over all asks, or every ask alone against the same state."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.solver import kubernetes
from app.solver.engines.kueue.admission_sharing import local_queue
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.fair_share import fair_order
from app.solver.engines.kueue.flavors import Pins
from app.solver.engines.kueue.knobs import Run
from app.solver.engines.kueue.nominate import nominate
from app.solver.engines.kueue.nomination import Books, Mode, Nomination
from app.solver.engines.kueue.overlay import Overlay
from app.solver.engines.kueue.recorder import Recorder
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.instant import micros
from app.solver.model.kueue import Ask as AskBlock
from app.solver.model.kueue import FlavorScan
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask


def alone(run: Run, ask: Ask, record: Recorder) -> tuple[Overlay, Nomination]:
    """One ask nominated on an overlay of its own. It must have passed ``check_asks``."""
    overlay = Overlay(run.state, run.now)
    run.prepare(overlay, ask)
    preemptor = run.preemptor(ask)
    record.boosted(ask.priority or 0, preemptor.priority)
    run.tell_consumed(ask, record)
    return overlay, nominate(overlay, ask, preemptor, run.search(ask), record)


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
            problems += kubernetes.problems(task, ("asks", a, "tasks", t))
            problems += [
                Problem(pointer=pointer("asks", a, "tasks", t, "flavors", resource), detail=f"no flavor {flavor!r}")
                for resource, flavor in (task.flavors or {}).items()
                if flavor not in configuration.flavor_names
            ]
    if problems:
        raise InvalidInput(problems)


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
    ``books``: where what earlier heads took may be to blame. It is to be read before the next one is asked for: the
    cycle goes on by booking what this head takes."""

    head: Nomination
    record: Recorder
    waiting: str | None = None
    books: Books | None = None


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
    place = {ask.id: at for at, ask in enumerate(asks)}
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
        books = Books(self.overlay)
        ordered = fair_order(self.overlay, nominations) if fair else classical_order(nominations)
        root = self._run.state.configuration.root
        trees = len({root[head.preemptor.queue] for head in nominations}) if fair else 1
        for place, head in enumerate(ordered):
            record = records[head.ask.id]
            if trees > 1:
                record.trees_by_chance(trees)
            record.in_order(place, len(heads), head.assignment.level)
            yield from self._process(books, head, record)

    def _nominate(self, ask: Ask, record: Recorder, pins: Pins | None = None) -> Nomination:
        run = self._run
        run.prepare(self.overlay, ask)
        preemptor = run.preemptor(ask)
        if pins is None:
            record.boosted(ask.priority or 0, preemptor.priority)
            run.tell_consumed(ask, record)
        return nominate(self.overlay, ask, preemptor, run.search(ask), record, pins)

    def _process(self, books: Books, head: Nomination, record: Recorder) -> Iterator[Outcome]:
        deferred = False
        fits = books.fits(head)
        if books.overlaps(head.targets):
            record.again()
            head = self._again(books, head, record)
            deferred = head.assignment.mode is Mode.FIT
            fits = books.fits(head)
        elif fits == "nodes":
            record.places_taken()
            head = self._nominate(head.ask, record, head.assignment.flavors())
            fits = books.fits(head)
        if head.assignment.mode is Mode.NO_FIT:
            yield Outcome(head, record, books=books)
        elif head.assignment.mode is Mode.PREEMPT and not head.targets:
            yield from self._unhelped(books, head, record)
        elif books.overlaps(head.targets):
            record.overlaps(books, head, OVERLAP)
            yield Outcome(head, record, OVERLAP)
        elif fits != "yes":
            record.outrun(books, head, OUTRUN)
            yield Outcome(head, record, OUTRUN)
        else:
            if deferred:
                record.deferred(books, head)
            yield Outcome(head, record, OTHERS if deferred else None)
            books.book(head)

    def _unhelped(self, books: Books, head: Nomination, record: Recorder) -> Iterator[Outcome]:
        """Nobody may stop for it. Unless it can always reclaim what is its own, it keeps its capacity."""
        reserves = self._run.block(head.ask).reclaim_within_cohort != "Any"
        if reserves:
            record.reserves()
        yield Outcome(head, record, books=books)
        if reserves:
            books.reserve(head)

    def _again(self, books: Books, head: Nomination, record: Recorder) -> Nomination:
        """Nominated anew with the flavors kept and every earlier victim out of the overlay: somebody else already
        stops for another head, and may make room for both or leave the way to other victims."""
        return books.without_victims(lambda: self._nominate(head.ask, record, head.assignment.flavors()))


def classical_order(heads: Iterable[Nomination]) -> Iterator[Nomination]:
    """Lower borrowing level, higher priority, older; equal heads in the order of the request."""
    return iter(sorted(heads, key=lambda h: (h.assignment.level, -h.preemptor.priority, h.preemptor.created)))
