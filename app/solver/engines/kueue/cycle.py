"""Mode ``cycle``: one scheduling cycle of Kueue over all asks.

Source: Kueue ``pkg/scheduler/scheduler.go``. The head of every queue is nominated against the same snapshot; then
the heads go one by one, each booking what it takes, so that later heads see it. Victims stay in the snapshot: they
are only subtracted where a head's fit is tested.
"""

from collections.abc import Iterable, Iterator

from app.solver.engine import Question
from app.solver.engines.kueue import answer
from app.solver.engines.kueue.assign import Pins
from app.solver.engines.kueue.booking import Books
from app.solver.engines.kueue.fair_order import fair_order
from app.solver.engines.kueue.modes import Mode
from app.solver.engines.kueue.nominate import Nomination, nominate
from app.solver.engines.kueue.plan import decision
from app.solver.engines.kueue.rules import Rules
from app.solver.engines.kueue.snapshot import Snapshot
from app.solver.model.decision import Decision, Result, plan_of
from app.solver.model.state import Ask
from app.solver.trace import Why

OUTRUN = "Workload no longer fits after processing another workload"
OVERLAP = "Workload has overlapping preemption targets with another workload"
OTHERS = "Workload fits once the preemptions of other workloads are done"


def cycle(rules: Rules, question: Question) -> Result:
    """Decide all asks together. They must have passed ``check_asks``."""
    heads, behind = queues(rules, question.asks)
    turn = _Cycle(rules, question)
    order = [head.ask.id for head in turn.run(heads)]
    found = turn.decisions
    for ask, head in behind:
        found[ask.id] = _waits_behind(turn.snapshot, ask, head, question.why())
    decisions = [found[ask.id] for ask in question.asks]
    return Result(decisions=decisions, order=order, plan=plan_of([found[name] for name in order]))


def queues(rules: Rules, asks: Iterable[Ask]) -> tuple[list[Ask], list[tuple[Ask, Ask]]]:
    """The head of every queue in the order of the request, and every other ask with the head it waits behind. A queue
    goes by priority, then age, then UID (Kueue's queue order); what is left goes by the order of the request."""
    by_queue: dict[str, list[Ask]] = {}
    for ask in asks:
        by_queue.setdefault(ask.queue, []).append(ask)
    heads: list[Ask] = []
    behind: list[tuple[Ask, Ask]] = []
    for waiting in by_queue.values():
        head = min(waiting, key=lambda ask: _queue_order(rules, ask))
        heads.append(head)
        behind += [(ask, head) for ask in waiting if ask is not head]
    place = {ask.id: at for at, ask in enumerate(asks)}
    return sorted(heads, key=lambda ask: place[ask.id]), behind


def _queue_order(rules: Rules, ask: Ask) -> tuple[int, int, str]:
    of = rules.preemptor(ask)
    return -of.priority, of.created, ask.uid or ""


class _Cycle:
    """One cycle under way. ``decisions`` by ask."""

    def __init__(self, rules: Rules, question: Question) -> None:
        self.decisions: dict[str, Decision] = {}
        self.snapshot = Snapshot(rules.loaded, rules.now)
        self._rules = rules
        self._question = question

    def run(self, heads: list[Ask]) -> Iterator[Nomination]:
        """Nominate all, then decide each in the engine's order and yield it."""
        whys = {ask.id: self._question.why() for ask in heads}
        for ask in heads:
            self._rules.say(ask, whys[ask.id])
        nominations = [self._nominate(ask, whys[ask.id]) for ask in heads]
        fair = self._rules.loaded.configured.fair_sharing
        books = Books(self.snapshot)
        ordered = fair_order(self.snapshot, nominations) if fair else classical_order(nominations)
        for place, head in enumerate(ordered):
            why = whys[head.ask.id]
            if why.on:
                why.step("cycle-order", f"number {place + 1} of {len(heads)} heads", level=head.assignment.level)
            self.decisions[head.ask.id] = self._process(books, head, why)
            yield head

    def _nominate(self, ask: Ask, why: Why, pins: Pins | None = None) -> Nomination:
        rules = self._rules
        rules.prepare(self.snapshot, ask)
        return nominate(self.snapshot, ask, rules.preemptor(ask), rules.search(ask), why, pins)

    def _process(self, books: Books, head: Nomination, why: Why) -> Decision:
        deferred = False
        if books.overlaps(head.targets):
            head = self._again(books, head, why)
            deferred = head.assignment.mode is Mode.FIT
        if head.assignment.mode is Mode.NO_FIT:
            return decision(self.snapshot, head, why)
        if head.assignment.mode is Mode.PREEMPT and not head.targets:
            reserves = self._rules.block(head.ask).reclaim_within_cohort != "Any"
            if reserves and why.on:
                why.step("reserves", "it can't be sure to reclaim its capacity later: kept from later heads")
            decided = decision(self.snapshot, head, why)
            if reserves:
                books.reserve(head)
            return decided
        if books.overlaps(head.targets) or not books.fits(head):
            message = OVERLAP if books.overlaps(head.targets) else OUTRUN
            if why.on:
                why.step("skipped", message)
            return decision(self.snapshot, head, why, waiting=message)
        decided = decision(self.snapshot, head, why, waiting=OTHERS if deferred else None)
        books.book(head)
        return decided

    def _again(self, books: Books, head: Nomination, why: Why) -> Nomination:
        """Nominated anew with the flavors kept and every earlier victim out of the snapshot: somebody else already
        stops for another head, and may make room for both or leave the way to other victims."""
        if why.on:
            why.step("targets-overlap", "some targets already stop for another head: assigned again without them")
        return books.without_victims(lambda: self._nominate(head.ask, why, head.assignment.flavors()))


def classical_order(heads: Iterable[Nomination]) -> Iterator[Nomination]:
    """Lower borrowing level, higher priority, older; equal heads in the order of the request."""
    return iter(sorted(heads, key=lambda h: (h.assignment.level, -h.preemptor.priority, h.preemptor.created)))


def _waits_behind(snapshot: Snapshot, ask: Ask, head: Ask, why: Why) -> Decision:
    configured = snapshot.loaded.configured
    strict = configured.policy[configured.tree.index[ask.queue]].strict_fifo
    rest = (
        "nothing of a StrictFIFO queue goes before its head is admitted"
        if strict
        else "one ask of a queue is tried in a cycle; a head that can't be admitted steps aside in the next"
    )
    if why.on:
        why.step("behind-head", rest, head=head.id)
    message = f"Waits behind {head.id}, the head of ClusterQueue {ask.queue}: {rest}"
    return Decision(
        ask=ask.id, outcome="wait", victims=[], conditions=[answer.pending(snapshot, message)],
        explanation=why.explanation(),
    )  # fmt: skip
