"""Mode ``cycle``: one scheduling cycle of Kueue over all asks.

Source: Kueue ``pkg/scheduler/scheduler.go``. The head of every queue is nominated against the same snapshot; then
the heads go one by one, each booking what it takes, so that later heads see it. Victims stay in the snapshot: they
are only subtracted where a head's fit is tested.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from app.solver.engine import Question
from app.solver.engines.kueue import answer
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


@dataclass(slots=True)
class _Cycle:
    """``snapshot``: usage with everything booked so far. ``victims``: of all heads so far."""

    rules: Rules
    question: Question
    snapshot: Snapshot = field(init=False)
    victims: set[int] = field(default_factory=set[int])
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])

    def __post_init__(self) -> None:
        self.snapshot = Snapshot(self.rules.loaded, self.rules.now)

    def run(self, heads: list[Ask]) -> Iterator[Nomination]:
        """Nominate all, then decide each in the engine's order and yield it."""
        whys = {ask.id: self.question.why() for ask in heads}
        nominations = [self._nominate(ask, whys[ask.id]) for ask in heads]
        fair = self.rules.loaded.configured.fair_sharing
        ordered = fair_order(self.snapshot, nominations) if fair else classical_order(nominations)
        for place, head in enumerate(ordered):
            why = whys[head.ask.id]
            if why.on:
                why.step("cycle-order", f"number {place + 1} of {len(heads)} heads", level=head.assignment.level)
            self.decisions[head.ask.id] = self._process(head, why)
            yield head

    def _nominate(self, ask: Ask, why: Why, pins: dict[str, dict[str, str]] | None = None) -> Nomination:
        rules = self.rules
        rules.prepare(self.snapshot, ask)
        return nominate(self.snapshot, ask, rules.preemptor(ask), rules.search(ask), why, pins)

    def _process(self, head: Nomination, why: Why) -> Decision:
        deferred = False
        if self.victims.intersection(map(itemgetter(0), head.targets)):
            head = self._again(head, why)
            deferred = head.assignment.mode is Mode.FIT
        if head.assignment.mode is Mode.NO_FIT:
            return decision(self.snapshot, head, why)
        if head.assignment.mode is Mode.PREEMPT and not head.targets:
            return self._reserve(head, why)
        if self.victims.intersection(map(itemgetter(0), head.targets)):
            return decision(self.snapshot, head, why, waiting=OVERLAP)
        if not self._fits(head):
            if why.on:
                why.step("outrun", OUTRUN)
            return decision(self.snapshot, head, why, waiting=OUTRUN)
        decided = decision(self.snapshot, head, why, waiting=OTHERS if deferred else None)
        self.snapshot.usage.add(head.preemptor.queue, head.preemptor.request)
        self.victims.update(map(itemgetter(0), head.targets))
        return decided

    def _again(self, head: Nomination, why: Why) -> Nomination:
        """Nominated anew with the flavors kept and every earlier victim out of the snapshot: somebody else already
        stops for another head, and may make room for both or leave the way to other victims."""
        if why.on:
            why.step("targets-overlap", "some targets already stop for another head: assigned again without them")
        self.snapshot.evict(self.victims)
        again = self._nominate(head.ask, why, head.assignment.flavors())
        self.snapshot.revive(self.victims)
        return again

    def _fits(self, head: Nomination) -> bool:
        """Whether the head fits once all victims so far, and its own, have stopped."""
        leaving = [*self.victims, *(workload for workload, _ in head.targets)]
        for workload in leaving:
            self.snapshot.remove(workload)
        fits = self.snapshot.usage.fits(head.preemptor.queue, head.preemptor.request)
        for workload in leaving:
            self.snapshot.restore(workload)
        return fits

    def _reserve(self, head: Nomination, why: Why) -> Decision:
        """A head that nobody stops for keeps its capacity from later heads, unless it can always reclaim it."""
        decided = decision(self.snapshot, head, why)
        policy = self.rules.loaded.configured.policy[head.preemptor.queue]
        if policy.reclaim_within_cohort == "Any":
            return decided
        booked = reservation(self.snapshot, head)
        usage = self.snapshot.usage
        usage.add(head.preemptor.queue, [(fr, amount) for fr, amount in booked if amount >= 0])
        for fr, amount in booked:
            if amount < 0:  # Past its borrowing limit: the parent's usage stays (Kueue: addUsage of a negative).
                usage.used[usage.quotas.cells[head.preemptor.queue][fr]] += amount
        return decided


def reservation(snapshot: Snapshot, head: Nomination) -> list[tuple[int, int]]:
    """What a head without victims books, by flavor-resource: within nominal quota what is left of it, beyond it all
    up to the borrowing limit. The latter can be negative where usage is past the limit already."""
    usage = snapshot.usage
    quotas, cells = usage.quotas, usage.quotas.cells[head.preemptor.queue]
    out: list[tuple[int, int]] = []
    for fr, amount in head.preemptor.request:
        cell = cells[fr]
        left, limit = quotas.nominal[cell] - usage.used[cell], quotas.borrowing[cell]
        if head.assignment.level == 0:
            out.append((fr, max(0, min(amount, left))))
        else:
            out.append((fr, amount if limit is None else min(amount, left + limit)))
    return out


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
