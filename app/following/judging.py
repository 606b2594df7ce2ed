"""Real preemptions beside Arbiter's: each cycle of a preemptor alone, at the moment of its decision. Pure but for time.

A scheduler decides on what it has heard, and writes down what it did a moment later. So the cluster is taken back from
the first eviction of a cycle, change by change, to the youngest moment for which the answer is what was seen. What it
knows in its memory alone is not written anywhere, and both ways are asked:

- Work that it admitted and that was not written down yet counts as admitted (Kueue assumes it in its cache).
- A scan of flavors that stopped before the last one goes on from there (Kueue: LastAssignment), in whichever of the
  places where it can have stopped; not for an ask that it has not looked at before.
- Kueue takes one head of every queue. Which it had is not written either: the one that preempts, with those seen to
  act within the same second and those that wait for their victims, which are heads in every cycle; or without these; or
  with all that stand first in their queues; or it alone.

Evictions for one ask may be those of several cycles: of those that have been seen, in their order, each cycle takes as
many as its answer has.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import Literal

from msgspec import structs

from app.clusters.shadow.comparing import Compared, compared, expected_of
from app.clusters.shadow.schemas import Assumed, ShadowOutcome, ShadowReport, ShadowVictim, Why
from app.following.evidence import NOT_NAMED, admissions, nominated
from app.following.history import Eviction, Preemption, Rewind
from app.following.mirror import View
from app.following.objects import Key, key_of, part
from app.following.translating import Translated, says_settings
from app.following.translator import Translator
from app.solver.model.configuration import Configuration, EngineName, Queue, Settings
from app.solver.model.decision import Decision
from app.solver.model.instant import micros
from app.solver.model.kueue import Ask as KueueAsk
from app.solver.model.kueue import FlavorScan
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest, Options, StateOrReference
from app.solver.model.state import Ask, State
from app.solver.question import Question
from app.solver.solve import Configured, Loaded, configure, load, planned

_TOGETHER_SECONDS = 1.0
"""Evictions and admissions so close may be of one cycle, and an admission may be that late in being written down."""
_MOMENTS, _SCANS = 100, 16
_TOO_LONG_AGO = "what the cluster was before is not known: it was listed anew meanwhile, or changed too much"
_NO_OPTIONS = Options()

Mode = Literal["cycle", "independent"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A cycle of a preemptor. ``outcome``: by Arbiter's answer here; ``report``: what is told of it, its victims those
    of ``evictions``."""

    outcome: ShadowOutcome
    detail: str
    report: ShadowReport
    evictions: Sequence[Eviction]


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

    found: Translated
    settings: Settings | None
    _loaded: Loaded | None = None

    def decide(self, asks: list[Ask], mode: Mode, now: datetime, ask: str) -> tuple[Decision, list[str]]:
        """The decision on ``ask``, and which asks counted. Raises InvalidInput."""
        if self._loaded is None:
            state = State(nodes=list(self.found.nodes.values()), workloads=list(self.found.workloads.values()))
            self._loaded = load(self.configured(), state)
        result = planned(self._loaded, Question(micros(now), asks, mode, _NO_OPTIONS))
        decision = next(one for one in result.decisions if one.ask == ask)
        return decision, result.order or [one.id for one in asks]

    def configured(self) -> Configured:
        return configure(self.configuration)

    @property
    def configuration(self) -> Configuration:
        """That of the cluster, with the settings that count."""
        if self.settings is None or says_settings(self.found.configuration):
            return self.found.configuration
        return structs.replace(self.found.configuration, settings=self.settings)

    def gone(self) -> set[str]:
        """Who is evicted already."""
        return {workload.id for workload in self.found.workloads.values() if workload.evicted}


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

    def judge(self, one: Preemption, rewind: Rewind) -> list[Judgement]:
        """Every cycle of ``one``, in order. ``rewind``: from what the cluster is now."""
        self._until = self.clock() + (self.seconds or 0)
        if not one.by:
            return [self._unjudged(one, one.evictions, NOT_NAMED, "not_named")]
        ask = ask_id(self.engine, one.by, rewind)
        if ask is None:
            return [self._unjudged(one, one.evictions, f"{one.by}, for whom it was, is not known", "not_known")]
        judged: list[Judgement] = []
        left = one.evictions
        while left:
            part_of = next((i for i in range(1, len(left)) if left[i].heard - left[i - 1].heard > _TOGETHER_SECONDS),
                           len(left))  # fmt: skip
            for size in dict.fromkeys((part_of, len(left))):
                cycles = _Cycles(self, one, ask, left[:size], rewind)
                if (found := cycles.agreeing()) is not None:
                    break
            else:
                size = part_of
                found = [cycles_of(self, one, ask, left[:size], rewind)]
            judged += found
            left = left[size:]
        return judged

    def late(self) -> bool:
        """Whether the time for this preemption is over."""
        return self.seconds is not None and self.clock() > self._until

    def _unjudged(self, one: Preemption, seen: Sequence[Eviction], detail: str, cause: Why) -> Judgement:
        return Judgement("unjudged", detail, self.bare(one, seen, {}, one.by or "(nobody)", detail, cause), seen)

    def bare(
        self, one: Preemption, seen: Sequence[Eviction], names: Mapping[str, tuple[str, str]], ask: str, detail: str,
        cause: Why | None,
    ) -> ShadowReport:  # fmt: skip
        """What was seen, without a question."""
        return ShadowReport(
            cluster=self.cluster, engine=self.engine, ask=ask, seen_at=seen[0].seen.at or one.seen_at,
            victims=victims_of(seen, names), unjudged=detail[:2000], cause=cause,
        )  # fmt: skip


def cycles_of(judge: Judge, one: Preemption, ask: str, seen: list[Eviction], rewind: Rewind) -> Judgement:
    """What no cycle explains, as one that differs, or why it can't be judged."""
    first = next(_Cycles(judge, one, ask, seen, rewind).attempts(0), None)
    if isinstance(first, _Attempt):
        report = judge.bare(one, seen, first.names, ask, "", None)
        detail = first.compared.detail
        return Judgement(
            "differs", detail, structs.replace(report, requests=[first.request], unjudged=None, cause=None), seen
        )
    detail, cause = first or (f"{ask} did not wait at that moment", "not_waiting")
    return Judgement("unjudged", detail, judge.bare(one, seen, {}, ask, detail, cause), seen)


_Failure = tuple[str, Why]


class _Cycles:
    """Evictions for one ask, taken apart into cycles."""

    def __init__(self, judge: Judge, one: Preemption, ask: str, seen: list[Eviction], rewind: Rewind) -> None:
        self._judge = judge
        self._one = one
        self._ask = ask
        self._seen = seen
        self._rewind = rewind

    def agreeing(self) -> list[Judgement] | None:
        """Cycles whose answers are these evictions, all of them; None where there are none such."""
        found = self._from(0, set())
        return None if found is None else [self._judgement(start, attempt) for start, attempt in found]

    def _from(self, start: int, dead: set[int]) -> list[tuple[int, _Attempt]] | None:
        """``dead``: places from which no cycles lead to the end."""
        if start == len(self._seen):
            return []
        if start in dead:
            return None
        parts: dict[int, _Attempt] = {}
        for attempt in self.attempts(start):
            if not isinstance(attempt, _Attempt):
                break
            if attempt.takes == len(self._seen) - start:
                return [(start, attempt)]
            if attempt.takes:
                parts.setdefault(attempt.takes, attempt)
        for takes, attempt in parts.items():
            if (rest := self._from(start + takes, dead)) is not None:
                return [(start, attempt), *rest]
        dead.add(start)
        return None

    def attempts(self, start: int) -> Iterator[_Attempt | _Failure]:
        """Questions about the moments before an eviction, the youngest first; or one reason why there are none."""
        judge, first = self._judge, self._seen[start]
        rewind = self._rewind.copy()
        if not rewind.to(first.at):
            yield _TOO_LONG_AGO, "too_long_ago"
            return
        near = self._near(first, rewind)
        ahead = {key_of(item): item for item in admissions((c.old, c.new) for c in rewind.undone(_TOGETHER_SECONDS))}
        view, translator = View(rewind.items, {}, None, None), Translator(judge.engine)
        found, changes = translator.translate(view), 0
        for _ in range(_MOMENTS):
            seconds = 0.0 if not changes or rewind.since is None else max(0.0, first.heard - rewind.since)
            if self._ask in found.asks:
                yield from self._at(found, start, seconds, changes, near, rewind, ())
                if judge.engine == "kueue" and ahead:
                    yield from self._with_admissions(ahead, view, start, seconds, changes, near, rewind)
            while True:
                if judge.late() or (undone := rewind.back()) is None:
                    return
                before, changes = found, changes + 1
                found = translator.translate(replace(view, changed={undone}))
                if not _alike(before, found):
                    break

    def _with_admissions(
        self, ahead: dict[Key, dict[str, object]], view: View, start: int, seconds: float, changes: int,
        near: list[str], rewind: Rewind,
    ) -> Iterator[_Attempt | _Failure]:  # fmt: skip
        """As if what was written down just after had been already."""
        there = view.items.get("Workload", {})
        own = {key: item for key, item in ahead.items() if key in there and _id(key) != self._ask}
        if own:
            changed = {**view.items, "Workload": {**there, **own}}
            found = Translator(self._judge.engine).translate(View(changed, {}, None, None))
            if self._ask in found.asks:
                yield from self._at(found, start, seconds, changes, near, rewind, ("admissions",))

    def _near(self, first: Eviction, rewind: Rewind) -> list[str]:
        """Asks that others were evicted for, or that were admitted, in what may be the same cycle."""
        if self._judge.engine != "kueue":
            return []
        by = dict.fromkeys(
            one.seen.by for one in rewind.evictions
            if one.seen.by not in ("", self._one.by) and abs(one.heard - first.heard) <= _TOGETHER_SECONDS
        )  # fmt: skip
        ids = [ask_id(self._judge.engine, uid, rewind) for uid in by]
        admitted = admissions((change.old, change.new) for change in rewind.undone(_TOGETHER_SECONDS))
        return [one for one in (*ids, *(_id(key_of(item)) for item in admitted)) if one is not None]

    def _at(
        self, found: Translated, start: int, seconds: float, changes: int, near: list[str], rewind: Rewind,
        assumed: tuple[Assumed, ...],
    ) -> Iterator[_Attempt | _Failure]:  # fmt: skip
        judge, moment = self._judge, _Moment(found, self._judge.settings)
        last = self._seen[start].seen.at or self._one.seen_at
        names = names_of(judge.engine, found)
        observed = victims_of(self._seen[start:], names)
        gone = moment.gone()
        for asks, mode, more in self._questions(found, near, rewind):
            try:
                decision, counted = moment.decide(asks, mode, last, self._ask)
            except InvalidInput as refused:
                yield f"the question is refused: {refused}"[:2000], "refused"
                return
            takes = len(expected_of(decision, gone))
            relation = compared(observed[:takes] if 0 < takes <= len(observed) else observed, decision, gone)
            kept = set(counted)
            yield _Attempt(
                takes=0 if relation.detail or takes > len(observed) else takes,
                seconds=seconds, changes=changes, assumed=[*assumed, *more], names=names, compared=relation,
                request=DecisionRequest(
                    engine=judge.engine, now=last, mode=mode, configuration=moment.configuration,
                    state=StateOrReference(nodes=list(found.nodes.values()), workloads=list(found.workloads.values())),
                    asks=[one for one in asks if one.id in kept],
                ),
            )  # fmt: skip

    def _questions(
        self, found: Translated, near: list[str], rewind: Rewind
    ) -> Iterator[tuple[list[Ask], Mode, tuple[Assumed, ...]]]:
        """KAI takes all that waits into account, in its own order; YuniKorn one ask after the other."""
        own = found.asks[self._ask]
        if self._judge.engine == "kai":
            yield list(found.asks.values()), "cycle", ()
            return
        if self._judge.engine != "kueue":
            yield [own], "independent", ()
            return
        others = [one for one in found.asks.values() if one.queue != own.queue and _considered(one)]
        acting = {one.queue: one for one in others if one.id in near}
        pending = {one.queue: one for one in others if one.kueue is not None and one.kueue.preemption_pending}
        guesses = [list((pending | acting).values()), list(acting.values()), others, list[Ask]()]
        heads = {tuple(one.id for one in of): of for of in guesses}
        yield from self._with_scans(found, own, list(heads.values()), rewind)

    def _with_scans(
        self, found: Translated, own: Ask, heads: list[list[Ask]], rewind: Rewind
    ) -> Iterator[tuple[list[Ask], Mode, tuple[Assumed, ...]]]:
        """From the first flavor, and from where the ask's scan can have stopped, or that of another head."""
        for of in heads:
            yield [own, *of], "cycle", ()
        goes_on = _goes_on(self._ask, rewind)
        for scan in _scans(found, own) if goes_on else ():
            for of in heads:
                yield [_from(own, scan), *of], "cycle", ("flavor_scan",)
        for other in heads[0]:
            for scan in _scans(found, other) if _goes_on(other.id, rewind) else ():
                rest = [_from(one, scan) if one is other else one for one in heads[0]]
                yield [own, *rest], "cycle", ("flavor_scan",)

    def _judgement(self, start: int, attempt: _Attempt) -> Judgement:
        judge, seen = self._judge, self._seen[start : start + attempt.takes]
        report = structs.replace(
            judge.bare(self._one, seen, attempt.names, self._ask, "", None), requests=[attempt.request],
            seconds=round(attempt.seconds, 3), changes=attempt.changes, assumed=attempt.assumed, unjudged=None,
        )  # fmt: skip
        return Judgement("agreed_earlier" if attempt.changes else "agreed", "", report, seen)


def ask_id(engine: EngineName, by: str, rewind: Rewind) -> str | None:
    """What the ask is called that was evicted for, which may be gone since."""
    if engine == "kai":
        return by
    kind = "Workload" if engine == "kueue" else "Pod"
    for key, item in rewind.items.get(kind, {}).items():
        if part(item, "metadata").get("uid") == by:
            return _id(key)
    return next((_id(key) for key, uid in rewind.uids(kind) if uid == by), None)


def names_of(engine: EngineName, found: Translated) -> dict[str, tuple[str, str]]:
    """Workload and task of each pod, by `namespace/name`. Kueue knows no pods."""
    if engine == "kueue":
        return {}
    if engine == "yunikorn":
        return {task.name: (one.id, task.name) for one in found.workloads.values() for task in one.tasks}
    return {
        f"{one.id.rpartition('/')[0]}/{task.name}": (one.id, task.name)
        for one in found.workloads.values()
        for task in one.tasks
    }


def victims_of(seen: Sequence[Eviction], names: Mapping[str, tuple[str, str]]) -> list[ShadowVictim]:
    """Who was evicted, as the state has them."""
    victims: list[ShadowVictim] = []
    for one in seen:
        workload, task = names.get(_id(one.seen.victim), (_id(one.seen.victim), None))
        victims.append(ShadowVictim(workload=workload, task=task, reason=one.seen.reason))
    return victims


def _from(ask: Ask, scan: FlavorScan) -> Ask:
    return structs.replace(ask, kueue=structs.replace(ask.kueue or KueueAsk(), flavor_scan=scan))


def _goes_on(ask: str, rewind: Rewind) -> bool:
    """Whether the scan of an ask's flavors can have stopped somewhere: Kueue has looked at it before."""
    space, _, name = ask.rpartition("/")
    item = rewind.items.get("Workload", {}).get((space, name))
    return item is not None and nominated(item)


def _considered(ask: Ask) -> bool:
    return ask.kueue is None or ask.kueue.inadmissible is None


def _scans(found: Translated, ask: Ask) -> list[FlavorScan]:
    """Where the scan of its flavors can have stopped before the last one, in every group of its queue."""
    queue = next((one for one in found.configuration.queues if one.name == ask.queue), None)
    groups = _groups(queue)
    places: list[list[tuple[str, list[str], int]]] = []
    for task in ask.tasks:
        for resources, flavors in groups:
            asked = [resource for resource in task.requests if resource in resources]
            if asked and flavors > 1:
                places.append([(task.name, asked, place) for place in (*range(flavors - 1), -1)])
    scans: list[FlavorScan] = []
    for chosen in product(*places):
        if all(place == -1 for _, _, place in chosen):
            continue
        if len(scans) == _SCANS:
            break
        stopped: dict[str, dict[str, int]] = {}
        for task, resources, place in chosen:
            stopped.setdefault(task, {}).update(dict.fromkeys(resources, place))
        scans.append(FlavorScan(flavors=stopped))
    return scans


def _groups(queue: Queue | None) -> list[tuple[list[str], int]]:
    """The resources of each group, and how many flavors it has."""
    listed = (queue.resource_groups or ()) if queue is not None else ()
    return [(group.resources, len(group.flavors)) for group in listed]


def _alike(before: Translated, after: Translated) -> bool:
    """Whether nothing that is decided on is different."""
    return before is after or (
        before.workloads == after.workloads and before.asks == after.asks and before.nodes == after.nodes
        and before.configuration == after.configuration
    )  # fmt: skip


def _id(key: Key) -> str:
    space, name = key
    return f"{space}/{name}" if space else name
