"""Real preemptions beside Arbiter's: each cycle of a preemptor alone, at the moment of its decision. Pure but for time.

A scheduler decides on what it has heard, and writes down what it did a moment later. So the cluster is taken back from
the first eviction of a cycle, change by change, to the youngest moment for which the answer is what was seen. What
Kueue knows in its memory alone is not written anywhere: ``memory`` says what it can have been, and each is asked.

Evictions for one ask may be those of several cycles: of those that have been seen, in their order, each cycle takes as
many as its answer has.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from app.clusters.schemas import (
    Assumed,
    Compared,
    ShadowOutcome,
    ShadowReport,
    ShadowVictim,
    Why,
    compared,
    expected_of,
    is_tied,
)
from app.following.grouped import Translated, key_of, settled
from app.following.history import Eviction, Preemption, Rewind
from app.following.memory import TOGETHER_SECONDS, Guess, Memory, Mode, ask_id
from app.following.mirror import View
from app.following.objects import NOT_NAMED, WORK
from app.following.translator import Translator
from app.formats.objects import id_of
from app.solver.engine import facts_of
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration, EngineName, Settings
from app.solver.model.decision import Decision
from app.solver.model.problems import InvalidInput, repeated
from app.solver.model.request import DecisionRequest, Options, StateOrReference
from app.solver.model.state import Ask
from app.solver.question import Question
from app.solver.solve import Configured, Loaded, configure, load, planned

_MOMENTS, _RARE_MOMENTS, _CYCLES = 100, 8, 200
_TOO_LONG_AGO = "what the cluster was before is not known: it was listed anew meanwhile, or changed too much"
_MISSED = "what the cluster was then is not known: nothing was heard of it, and everything listed again"
_NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A cycle of a preemptor. ``outcome``: by Arbiter's answer here; ``report``: what is told of it, its victims those
    of ``evictions``."""

    outcome: ShadowOutcome
    detail: str
    report: ShadowReport
    evictions: Sequence[Eviction]
    tied: bool = False
    """Whether it differs where the scheduler chooses by chance."""


@dataclass(slots=True)
class _Attempt:
    """One question about one moment. ``takes``: how many of the evictions are its answer; 0: they are not."""

    takes: int
    seconds: float
    changes: int
    assumed: list[Assumed]
    request: DecisionRequest
    names: dict[str, tuple[str, str]]
    compared: Compared


@dataclass(slots=True)
class _Moment:
    """A cluster as it was, compiled when first asked."""

    translated: Translated
    settings: Settings | None
    _loaded: Loaded | None = None

    def decide(self, asks: list[Ask], mode: Mode, now: datetime) -> tuple[list[Decision], list[str]]:
        """The decisions, and which asks counted. Raises InvalidInput."""
        if self._loaded is None:
            self._loaded = load(self.configured(), structs.replace(self.translated.state(), queues={}))
        result = planned(self._loaded, Question(micros(now), asks, mode, _NO_OPTIONS))
        return result.decisions, result.order or [ask.id for ask in asks]

    def configured(self) -> Configured:
        return configure(self.configuration)

    @property
    def configuration(self) -> Configuration:
        """That of the cluster, with the settings that count."""
        own = self.translated.configuration
        return own if self.settings is None else structs.replace(own, settings=settled(self.settings, self.translated))

    def gone(self) -> set[str]:
        """Who is evicted already."""
        return {workload.id for workload in self.translated.workloads.values() if workload.evicted}


@dataclass(slots=True)
class Judge:
    """Judges what was seen of one cluster. ``settings``: of the engine, as they are stored, None: as the cluster says
    them; ``seconds``: how long one preemption may take, None: as long as it needs."""

    engine: EngineName
    cluster: str
    settings: Settings | None
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    _until: float = field(default=0.0, init=False)

    def judge(self, preemption: Preemption, rewind: Rewind) -> list[Judgement]:
        """Every cycle of ``preemption``, in order. ``rewind``: from what the cluster is now."""
        self._until = self.clock() + (self.seconds or 0)
        if not preemption.by:
            return [self._unjudged(preemption, preemption.evictions, NOT_NAMED, "not_named")]
        ask = ask_id(self.engine, preemption.by, rewind)
        if ask is None:
            return [
                self._unjudged(
                    preemption, preemption.evictions, f"{preemption.by}, for whom it was, is not known", "not_known"
                )
            ]
        judged: list[Judgement] = []
        left = preemption.evictions
        while left:
            part_of = next((i for i in range(1, len(left)) if left[i].heard - left[i - 1].heard > TOGETHER_SECONDS),
                           len(left))  # fmt: skip
            cycles = _Cycles(self, preemption, ask, left[:part_of], rewind).judged()
            if (size := _evictions_of(cycles)) < part_of < len(left):
                whole = _Cycles(self, preemption, ask, left, rewind).judged()
                cycles, size = (whole, len(left)) if _evictions_of(whole) == len(left) else (cycles, size)
            if size < part_of:
                apart = left[size : size + _distinct(left[size:part_of])]
                cycles.append(cycles_of(self, preemption, ask, apart, rewind))
                size += len(apart)
            judged += cycles
            left = left[size:]
        return judged

    def late(self) -> bool:
        """Whether the time for this preemption is over."""
        return self.seconds is not None and self.clock() > self._until

    def _unjudged(self, preemption: Preemption, seen: Sequence[Eviction], detail: str, cause: Why) -> Judgement:
        return Judgement(
            "unjudged", detail, self.bare(preemption, seen, {}, preemption.by or "(nobody)", detail, cause), seen
        )

    def bare(
        self, preemption: Preemption, seen: Sequence[Eviction], names: Mapping[str, tuple[str, str]], ask: str,
        detail: str, cause: Why | None,
    ) -> ShadowReport:  # fmt: skip
        """What was seen, without a question."""
        return ShadowReport(
            cluster=self.cluster, engine=self.engine, ask=ask, seen_at=seen[0].seen.at or preemption.seen_at,
            victims=victims_of(seen, names), unjudged=detail[:2000], cause=cause,
        )  # fmt: skip


def cycles_of(judge: Judge, preemption: Preemption, ask: str, seen: list[Eviction], rewind: Rewind) -> Judgement:
    """What no cycle explains, as one that differs, or why it can't be judged."""
    first = next(_Cycles(judge, preemption, ask, seen, rewind).attempts(0), None)
    if any(eviction.listed for eviction in seen):
        first = _MISSED, "too_long_ago"
    if isinstance(first, _Attempt):
        report = judge.bare(preemption, seen, first.names, ask, "", None)
        report = structs.replace(report, requests=[first.request], unjudged=None, cause=None)
        return Judgement("differs", first.compared.detail, report, seen, _tied(ask, first))
    detail, cause = first or (f"{ask} did not wait at that moment", "not_waiting")
    return Judgement("unjudged", detail, judge.bare(preemption, seen, {}, ask, detail, cause), seen)


def _tied(ask: str, first: _Attempt) -> bool:
    request = first.request
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.asks, list)
    loaded = load(configure(request.configuration), request.state)
    assert request.now is not None
    question = Question(micros(request.now), request.asks, request.mode, _NO_OPTIONS, explain="summary")
    return is_tied(ask, planned(loaded, question).decisions, request, first.compared)


_Failure = tuple[str, Why]
_Chain = list[tuple[int, _Attempt]]


def _covered(chain: _Chain) -> int:
    """How many evictions the cycles explain."""
    return sum(attempt.takes for _, attempt in chain)


SETTLED_SECONDS = 10.0
"""So long after the last eviction what differs is looked at again: admissions made before may be written down late."""


def is_settled(judged: Sequence[Judgement], preemption: Preemption, now: float) -> bool:
    """Whether nothing that is written down later can make cycles agree that differ."""
    unsettled = (cycle.outcome == "differs" or cycle.detail == _MISSED for cycle in judged)
    return now - preemption.last >= SETTLED_SECONDS or not any(unsettled)


def _evictions_of(judged: Sequence[Judgement]) -> int:
    return sum(len(cycle.evictions) for cycle in judged)


def _distinct(seen: Sequence[Eviction]) -> int:
    """How many of the first are of different victims: nobody is evicted twice in one cycle."""
    return next(repeated(eviction.seen.victim for eviction in seen), len(seen))


class _Cycles:
    """Evictions for one ask, taken apart into cycles."""

    def __init__(self, judge: Judge, preemption: Preemption, ask: str, seen: list[Eviction], rewind: Rewind) -> None:
        self._judge = judge
        self._preemption = preemption
        self._ask = ask
        self._seen = seen
        self._rewind = rewind

    def judged(self) -> list[Judgement]:
        """Cycles whose answers are these evictions: all of them, or as many of the first as there are such."""
        return [self._judgement(start, attempt) for start, attempt in self._from(0, {}, 0)]

    def _from(self, start: int, known: dict[int, _Chain], before: int) -> _Chain:
        """``known``: the longest chains of cycles by where they begin; ``before``: how many cycles there are before."""
        left = len(self._seen) - start
        if start in known or not left or before == _CYCLES:
            return known.get(start, [])
        parts: dict[int, _Attempt] = {}
        best: _Chain = []
        for rare in (False, True):
            for attempt in self.attempts(start, rare=rare):
                if not isinstance(attempt, _Attempt):
                    break
                if attempt.takes == left:
                    return [(start, attempt)]
                if attempt.takes:
                    parts.setdefault(attempt.takes, attempt)
            for takes, attempt in parts.items():
                chain = [(start, attempt), *self._from(start + takes, known, before + 1)]
                best = max(best, chain, key=_covered)
            if _covered(best) == left:
                break
        known[start] = best
        return best

    def attempts(self, start: int, *, rare: bool = False) -> Iterator[_Attempt | _Failure]:
        """Questions about the moments before an eviction, the youngest first; or one reason why there are none.
        ``rare``: as if some of what was written down just after had been already, and some not."""
        first, rewind = self._seen[start], self._rewind.copy()
        if not rewind.to(first.position):
            yield _TOO_LONG_AGO, "too_long_ago"
            return
        engine = self._judge.engine
        memory = Memory(engine, self._ask, self._preemption.by, first, rewind) if facts_of(engine).remembers else None
        if not rare or memory is not None:
            yield from self._moments(start, rewind, memory, rare=rare)

    def _moments(
        self, start: int, rewind: Rewind, memory: Memory | None, *, rare: bool
    ) -> Iterator[_Attempt | _Failure]:
        judge, first = self._judge, self._seen[start]
        view = View(rewind.items, {}, None, None, first.seen.at or self._preemption.seen_at)
        translator = Translator(judge.engine)
        translated, changes = translator.translate(view), 0
        oldest = (-1, 0) if memory is None else memory.oldest()
        for _ in range(_RARE_MOMENTS if rare else _MOMENTS):
            seconds = 0.0 if not changes or rewind.since is None else max(0.0, first.heard - rewind.since)
            if self._ask in translated.asks:
                for of, guesses, assumed in self._situations(self._drawn(translated, start), view, memory, rare=rare):
                    yield from self._attempts(of, start, seconds, changes, guesses, assumed, memory)
            while True:
                if judge.late() or rewind.before(oldest) or (undone := rewind.back()) is None:
                    return
                before, changes = translated, changes + 1
                if memory is not None:
                    memory.passed(undone)
                translated = translator.translate(replace(view, changed={(undone.kind, undone.key)}))
                if not _alike(before, translated):
                    break

    def _situations(
        self, translated: Translated, view: View, memory: Memory | None, *, rare: bool
    ) -> Iterator[tuple[Translated, Iterator[Guess], tuple[Assumed, ...]]]:
        """What the cluster can have been for the scheduler, with what it can have been asked."""
        if memory is None:
            yield translated, self._plain(translated), ()
            return
        if not rare:
            yield translated, memory.guesses(translated, {}), ()
        for assumed in memory.assumed(view.items, translated, rare=rare):
            there = view.items.get("Workload", {})
            changed = {**view.items, "Workload": {**there, **assumed.items}}
            of = Translator(self._judge.engine).translate(View(changed, {}, None, None))
            if self._ask in of.asks:
                yield of, memory.guesses(of, assumed.next), ("admissions",)

    def _drawn(self, translated: Translated, start: int) -> Translated:
        """Where the scheduler draws lots among nodes that tie, and Arbiter takes the first, the node on which it
        evicted comes first."""
        if not facts_of(self._judge.engine).draws:
            return translated
        victims = (translated.workloads.get(id_of(eviction.seen.victim)) for eviction in self._seen[start:])
        first = {task.node: translated.nodes[task.node] for of in victims if of for task in of.tasks if task.node}
        return replace(translated, nodes={**first, **translated.nodes})

    def _plain(self, translated: Translated) -> Iterator[Guess]:
        """All that waits, where it decides on an ask too, in the scheduler's order; else one ask after the other."""
        if facts_of(self._judge.engine).asks_together:
            yield Guess(list(translated.asks.values()), "cycle")
        else:
            yield Guess([translated.asks[self._ask]], "independent")

    def _attempts(
        self, translated: Translated, start: int, seconds: float, changes: int, guesses: Iterator[Guess],
        assumed: tuple[Assumed, ...], memory: Memory | None,
    ) -> Iterator[_Attempt | _Failure]:  # fmt: skip
        judge, moment = self._judge, _Moment(translated, self._judge.settings)
        last = self._seen[start].seen.at or self._preemption.seen_at
        names = names_of(judge.engine, translated)
        observed = victims_of(self._seen[start:], names)
        gone = moment.gone()
        for guess in guesses:
            try:
                decisions, counted = moment.decide(guess.asks, guess.mode, last)
            except InvalidInput as refused:
                yield f"the question is refused: {refused}"[:2000], "refused"
                return
            decision = next(candidate for candidate in decisions if candidate.ask == self._ask)
            others = [other for other in decisions if other is not decision]
            denied = memory is not None and memory.denies(others, gone)
            takes = len(expected_of(decision, gone))
            relation = compared(observed[:takes] if 0 < takes <= len(observed) else observed, decision, gone)
            known = set(counted)
            yield _Attempt(
                takes=0 if denied or relation.detail or takes > len(observed) else takes,
                seconds=seconds, changes=changes, assumed=[*assumed, *guess.assumed], names=names, compared=relation,
                request=DecisionRequest(
                    engine=judge.engine, now=last, mode=guess.mode, configuration=moment.configuration,
                    state=StateOrReference(
                        nodes=list(translated.nodes.values()), workloads=list(translated.workloads.values()),
                        reservations=list(translated.reservations.values()), disruption_budgets=translated.budgets,
                    ),
                    asks=[ask for ask in guess.asks if ask.id in known],
                ),
            )  # fmt: skip

    def _judgement(self, start: int, attempt: _Attempt) -> Judgement:
        judge, seen = self._judge, self._seen[start : start + attempt.takes]
        report = structs.replace(
            judge.bare(self._preemption, seen, attempt.names, self._ask, "", None), requests=[attempt.request],
            seconds=round(attempt.seconds, 3), changes=attempt.changes, assumed=attempt.assumed, unjudged=None,
        )  # fmt: skip
        return Judgement("agreed_earlier" if attempt.changes else "agreed", "", report, seen)


def names_of(engine: EngineName, translated: Translated) -> dict[str, tuple[str, str]]:
    """Workload and task of each pod, by `namespace/name`, where pods are what is evicted."""
    if "Pod" not in WORK[engine]:
        return {}
    return {
        id_of(key_of(workload.id.rpartition("/")[0], task.name)): (workload.id, task.name)
        for workload in translated.workloads.values()
        for task in workload.tasks
    }


def victims_of(seen: Sequence[Eviction], names: Mapping[str, tuple[str, str]]) -> list[ShadowVictim]:
    """Who was evicted, as the state has them."""
    victims: list[ShadowVictim] = []
    for eviction in seen:
        workload, task = names.get(id_of(eviction.seen.victim), (id_of(eviction.seen.victim), None))
        victims.append(ShadowVictim(workload=workload, task=task, reason=eviction.seen.reason))
    return victims


def _alike(before: Translated, after: Translated) -> bool:
    """Whether nothing that is decided on is different."""
    return before is after or (
        before.workloads == after.workloads and before.asks == after.asks and before.nodes == after.nodes
        and before.configuration == after.configuration and before.reservations == after.reservations
        and before.budgets == after.budgets
    )  # fmt: skip
