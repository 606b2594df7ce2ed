"""``POST /v1/comparisons``, one situation under several rule books: its bodies, the one to the other, and of two
releases the rules that decided.

Pure like ``answers``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Annotated, Any

import msgspec

from app.answering.answers import Stopwatch, asks_of, configure, encode, stats_of
from app.answering.overrides import with_fields
from app.answering.snapshots import FollowedAge
from app.answering.sources import Sources
from app.answering.translation import translate
from app.base.decoding import MAX_PROBLEMS, decode
from app.solver import solve
from app.solver.model.base import Time, micros
from app.solver.model.configuration import Configuration, Settings
from app.solver.model.decision import Answer, Decision, label, planned
from app.solver.model.problems import Finding, InvalidInput, Problem, carried, pointer, repeated
from app.solver.model.request import DecisionRequest, Variant
from app.solver.model.state import Ask
from app.solver.question import Question, safe_point
from app.solver.solve import Configured, Loaded

Said = Callable[[Answer], Any]
"""What an answer says of the one thing on which two differ."""
Asked = tuple[Loaded, Question]


@dataclass(slots=True)
class Releases:
    """Two variants of one engine, ``older`` and ``newer`` in their places of the request."""

    older: int
    newer: int
    loaded: Loaded
    question: Question
    rules: tuple[str, ...]
    _known: dict[frozenset[str], Answer] = field(default_factory=dict[frozenset[str], Answer])
    _asked: list[str] | None = None

    def decided(self, said: Said, before: Any) -> list[str]:
        """The rules each of which alone makes the difference: with it undone the newer release says what the older
        says. Where none does, a smallest set of those that do together. Empty: no rule does, it is chance."""
        alone = [rule for rule in self._asked_for() if said(self._without({rule})) == before]
        if alone or said(self._without(self.rules)) != before:
            return alone
        needed = set(self.rules)
        for rule in self.rules:
            if said(self._without(needed - {rule})) == before:
                needed.remove(rule)
        return [rule for rule in self.rules if rule in needed]

    def _asked_for(self) -> list[str]:
        """The rules that the newer release asked for in deciding: each of the others alone makes no difference."""
        if self._asked is None:
            note = self.loaded.configured.engine.noted
            assert note is not None
            compiled, asked = note(self.loaded.configured.compiled)
            self._decided(compiled)
            self._asked = [rule for rule in self.rules if rule in asked()]
        return self._asked

    def _without(self, rules: Iterable[str]) -> Answer:
        """The newer release's answer with these rules as they were in the older one."""
        undone = frozenset(rules)
        if undone not in self._known:
            undo = self.loaded.configured.engine.undone
            assert undo is not None
            self._known[undone] = self._decided(undo(self.loaded.configured.compiled, undone))
        return self._known[undone]

    def _decided(self, compiled: Any) -> Answer:
        """The answer under the newer release's configuration, compiled so."""
        loaded = solve.load(replace(self.loaded.configured, compiled=compiled), self.loaded.state)
        return solve.decide(loaded, self.question)


def releases_of(variants: list[tuple[int, Loaded, Question]]) -> Iterator[Releases]:
    """Pairs of variants that differ in their release alone."""
    for (i, first, asked), (j, other, asked_other) in combinations(variants, 2):
        engine = first.configured.engine
        if engine is not other.configured.engine or engine.changed is None:
            continue
        if rules := engine.changed(first.configured.compiled, other.configured.compiled):
            yield Releases(i, j, other, asked_other, rules)
        elif rules := engine.changed(other.configured.compiled, first.configured.compiled):
            yield Releases(j, i, first, asked, rules)


class ComparisonRequest(DecisionRequest, frozen=True, kw_only=True):
    """A decision request and the variants of it to answer."""

    variants: Annotated[list[Variant], msgspec.Meta(min_length=1, max_length=16)]
    """What each variant changes; names are unique."""


class VariantAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a decision request would have got under this variant, without ``id`` and ``stats``."""

    name: str
    """The name of the variant."""
    answer: Answer | None = None
    """What the request would have got, without `id` and `stats`. Absent: its engine refuses the variant."""
    problems: list[Problem] = []
    """Why the engine refuses the variant. A request that all variants refuse is refused as a whole."""
    findings: list[Finding] = []
    """What the words of another engine could not say; pointers lead into the request."""


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing on which the variants disagree, and what each says.

    ``field`` of an ask: outcome, node, placements or victims; without ``ask``: evictions, those of the plan that are no
    ask's victims, or moves of running work to other nodes. Victims and evictions are labels, ``workload`` or
    ``workload/task``.
    """

    ask: str | None = None
    """The id of the ask. Absent: it is about the plan."""
    field: str
    """What differs: `outcome`, `node`, `victims` or, of several tasks, `placements` of an ask, or `evictions` or
    `moves` of the plan. A variant that is refused has the outcome `refused`, and no say in the others."""
    values: dict[str, Any]
    """What each variant says, by its name."""
    rules: list[str] | None = None
    """Where two variants differ in their release alone: the rules each of which makes this difference by itself; where
    none does, those that make it together; `GET /v1/rules` says what they mean. Empty: it is none of them, but what the
    origin leaves to chance. Absent: the variants differ in more, or their engine can't tell."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer a variant in the order of the request, and where they differ."""

    variants: list[VariantAnswer]
    """One answer for each variant, in the order of the request."""
    differences: list[Difference]
    """Where they differ."""
    findings: list[Finding] | None = None
    """Those of the variants' answers together, each once. Absent: nothing."""
    stats: dict[str, float]
    """Milliseconds by stage."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was decided on. Absent: no follower keeps it."""


def compare(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/comparisons``. Raises InvalidInput, with pointers to the variant where it is at fault."""
    watch = Stopwatch()
    with watch.stage("decode"):
        request = decode(body, ComparisonRequest)
        refuse_duplicates(request.variants)
    answered = list(made_of(request, micros(request.now or now), sources, watch))
    answers = [answer for answer, _ in answered]
    if all(answer.answer is None for answer in answers):
        raise InvalidInput(problem for answer in answers for problem in answer.problems)
    with watch.stage("solve"):
        differences = ruled(differences_of(answers), answers, [asked for _, asked in answered])
    findings = carried(*(answer.answer.findings or () for answer in answers if answer.answer is not None))
    stats = stats_of(watch.seconds)
    return encode(Comparison(variants=answers, differences=differences, findings=findings, stats=stats))


def made_of(
    request: ComparisonRequest, moment: int, sources: Sources, watch: Stopwatch
) -> Iterator[tuple[VariantAnswer, Asked | None]]:
    """What each variant answers at ``moment``, in microseconds, and what it was asked; None for one that is refused:
    its problems point into it. Raises NotFound, Unavailable."""
    for i, variant in enumerate(request.variants):
        asked: Asked | None = None
        try:
            with watch.stage("compile"):
                loaded, asks, findings = _loaded(request, variant, sources)
            with watch.stage("solve"):
                question = Question(moment, asks, request.mode, request.options, request.explain)
                answer = VariantAnswer(name=variant.name, answer=solve.decide(loaded, question), findings=findings)
            asked = loaded, question
        except InvalidInput as invalid:
            problems = [_at_variant(problem, i, variant) for problem in invalid.problems]
            answer = VariantAnswer(name=variant.name, problems=problems)
        yield answer, asked


def unvaried(request: ComparisonRequest, moment: int, sources: Sources) -> Asked:
    """What the request asks by itself. Raises InvalidInput, NotFound, Unavailable."""
    loaded, asks, _ = _loaded(request, Variant(name=""), sources)
    return loaded, Question(moment, asks, request.mode, request.options, request.explain)


def parted(first: tuple[str, Asked], other: tuple[str, Asked]) -> list[Difference]:
    """Where two that are asked of one situation, each with its name, differ, and by which rules."""
    answers = [VariantAnswer(name=name, answer=solve.decide(*asked)) for name, asked in (first, other)]
    return ruled(differences_of(answers), answers, [first[1], other[1]])


def refuse_duplicates(variants: list[Variant]) -> None:
    """Raises InvalidInput where two have one name."""
    problems = [
        Problem(pointer=pointer("variants", i, "name"), detail=f"a second variant {variants[i].name!r}")
        for i in islice(repeated(variant.name for variant in variants), MAX_PROBLEMS)
    ]
    if problems:
        raise InvalidInput(problems)


def too_many(variants: list[Variant], most: int) -> list[Problem]:
    """What is wrong where there are more than ``most``."""
    if len(variants) <= most:
        return []
    return [Problem(pointer="/variants", detail=f"{len(variants)} variants; at most {most} are allowed")]


def _loaded(
    request: ComparisonRequest, variant: Variant, sources: Sources
) -> tuple[Loaded, list[Ask], list[Finding]]:  # fmt: skip
    """The situation of a variant, its asks, and what was lost on the way to its engine."""
    configured = _configured(request, variant, sources)
    state, asks, findings = request.state, _asks(request, configured, sources), list[Finding]()
    origin = request.engine or configured.configuration.engine
    if variant.engine is not None and origin is not None and variant.engine != origin and _native(variant):
        translated = translate(configured.configuration, state, asks, origin, variant.engine)
        state, asks, findings = translated.state, translated.asks, translated.findings
        configured = solve.configure(translated.configuration, variant.engine)
    elif variant.engine is not None and configured.engine.name != variant.engine:
        configured = solve.configure(configured.configuration, variant.engine)
    if state.snapshot is not None:
        return sources.loaded(configured, state.snapshot), asks, findings
    return solve.load(configured, state), asks, findings


def _asks(request: ComparisonRequest, configured: Configured, sources: Sources) -> list[Ask]:
    if isinstance(request.asks, list):
        return request.asks
    if request.state.snapshot is None:
        return asks_of(request.asks, solve.load(configured, request.state))
    return sources.loaded(configured, request.state.snapshot).beside.asks


def _native(variant: Variant) -> bool:
    """Whether the variant speaks of the request's own configuration: one of its own is in its engine's words
    already."""
    return variant.configuration is None


def _configured(request: ComparisonRequest, variant: Variant, sources: Sources) -> Configured:
    """The configuration of the variant before it is told in other words."""
    own = variant.configuration is not None
    document = variant.configuration if own else request.configuration
    engine = (variant.engine if own else None) or request.engine
    configured = configure(document, engine, sources, request.state)
    if variant.settings is None and not variant.set:
        return configured
    changed = configured.configuration
    if variant.settings is not None:
        changed = with_settings(changed, variant.settings)
    return solve.configure(with_fields(changed, variant.set), configured.engine.name)


def with_settings(document: Configuration, settings: Settings) -> Configuration:
    """``document`` with the engine blocks that ``settings`` has instead of its own; its other blocks stay."""
    given = {name: block for name, block in msgspec.structs.asdict(settings).items() if block is not None}
    return msgspec.structs.replace(document, settings=msgspec.structs.replace(document.settings, **given))


def _at_variant(problem: Problem, i: int, variant: Variant) -> Problem:
    """The same problem, pointing into the variant where the variant brought the part at fault."""
    where = problem.pointer
    ours = (
        (variant.settings is not None and where.startswith("/configuration/settings"))
        or (variant.configuration is not None and where.startswith("/configuration"))
        or (variant.engine is not None and where == "/engine")
        or (bool(variant.set) and where.startswith("/set"))
    )
    if not ours:
        return Problem(pointer=where, detail=f"variant {variant.name!r}: {problem.detail}")
    if variant.settings is not None and where.startswith("/configuration/settings"):
        where = where.removeprefix("/configuration")
    return Problem(pointer=pointer("variants", i) + where, detail=problem.detail)


def differences_of(answers: list[VariantAnswer]) -> Iterator[Difference]:
    """Where the answers to one request disagree; one at least is no refusal."""
    answered = {answer.name: answer.answer for answer in answers if answer.answer is not None}
    refused = dict.fromkeys((answer.name for answer in answers if answer.answer is None), "refused")
    for position, first in enumerate(next(iter(answered.values())).decisions):
        said = {name: answer.decisions[position] for name, answer in answered.items()}
        outcomes = {name: decision.outcome for name, decision in said.items()} | refused
        if len(set(outcomes.values())) > 1:
            yield _difference(first.ask, "outcome", {answer.name: outcomes[answer.name] for answer in answers})
        if len({decision.node for decision in said.values()}) > 1:
            yield _difference(first.ask, "node", {name: decision.node for name, decision in said.items()})
        if len({frozenset(_placed(decision)) for decision in said.values()}) > 1 and any(
            len(decision.placements or ()) > 1 for decision in said.values()
        ):
            yield _difference(first.ask, "placements", {name: _placed(decision) for name, decision in said.items()})
        if len({frozenset(_victims(decision)) for decision in said.values()}) > 1:
            yield _difference(first.ask, "victims", {name: _victims(decision) for name, decision in said.items()})
    if len({frozenset(_evictions(answer)) for answer in answered.values()}) > 1:
        yield _difference(None, "evictions", {name: _evictions(answer) for name, answer in answered.items()})
    if len({frozenset(_moves(answer)) for answer in answered.values()}) > 1:
        yield _difference(None, "moves", {name: _moves(answer) for name, answer in answered.items()})


def ruled(
    differences: Iterable[Difference], answers: list[VariantAnswer], asked: Iterable[Asked | None]
) -> list[Difference]:
    """``differences`` of ``answers`` with the rules that made them, where two differ in their release alone."""
    differences = list(differences)
    pairs = (
        list(releases_of([(i, *asked_of) for i, asked_of in enumerate(asked) if asked_of is not None]))
        if differences
        else []
    )
    if not pairs:
        return differences
    places = {ask.id: place for place, ask in enumerate(pairs[0].question.asks)}
    return [_ruled(difference, places, answers, pairs) for difference in differences]


def _ruled(
    difference: Difference, places: Mapping[str, int], answers: list[VariantAnswer], pairs: list[Releases]
) -> Difference:
    """The difference with the rules that made it, by the first pair of releases that differs in it. ``places``: of
    decisions in every answer, by ask."""
    safe_point()
    place = None if difference.ask is None else places[difference.ask]
    for pair in pairs:
        older, newer = answers[pair.older], answers[pair.newer]

        def said(answer: Answer) -> Any:
            return _says(answer, difference.field, None if place is None else answer.decisions[place])

        if older.answer is not None and newer.answer is not None and said(older.answer) != said(newer.answer):
            return msgspec.structs.replace(difference, rules=pair.decided(said, said(older.answer)))
    return difference


def _says(answer: Answer, field: str, decision: Decision | None) -> Any:
    """What an answer says of what a difference is about: of a decision of it, or of its plan."""
    if decision is None:
        return frozenset((_moves if field == "moves" else _evictions)(answer))
    if field in ("victims", "placements"):
        return frozenset((_victims if field == "victims" else _placed)(decision))
    return decision.outcome if field == "outcome" else decision.node


def _difference(ask: str | None, field: str, values: dict[str, str | None] | dict[str, list[str]]) -> Difference:
    return Difference(ask=ask, field=field, values=dict(values))


def _victims(decision: Decision) -> list[str]:
    return [label(victim.workload, victim.task) for victim in decision.victims]


def _placed(decision: Decision) -> list[str]:
    """Its tasks, and where they go."""
    return [f"{task} to {node}" for task, node in (decision.placements or {}).items()]


def _evictions(answer: Answer) -> list[str]:
    """Those of the plan that no ask's victims have: an overcommitted node, work that only moves."""
    by_asks = {victim for decision in answer.decisions for victim in _victims(decision)}
    evicted = (label(eviction.workload, eviction.task) for eviction in planned(answer))
    return [victim for victim in evicted if victim not in by_asks]


def _moves(answer: Answer) -> list[str]:
    """Running work that goes elsewhere, and where to."""
    placements = answer.plan.placements
    return [
        f"{placement.workload}/{placement.task} to {placement.node}"
        for placement in placements
        if placement.workload is not None
    ]


class Again:
    """A request asked again. ``answers``: of each variant, with what it was asked. Pure."""

    def __init__(self, logged: DecisionRequest, variants: Sequence[Variant], sources: Sources) -> None:
        """``logged``: resolved. Raises InvalidInput where it is no good any more, NotFound, Unavailable."""
        assert logged.now is not None
        fields: dict[str, Any] = {**msgspec.structs.asdict(logged), "explain": "none"}
        self._compared = ComparisonRequest(**fields, variants=list(variants))
        self._now, self._sources = micros(logged.now), sources
        self.answers = list(made_of(self._compared, self._now, sources, Stopwatch()))

    def logged(self, asked: Asked | None) -> list[Asked | None]:
        """What was asked when it was logged, beside what a variant of it is asked."""
        ruled = asked is not None and asked[0].configured.engine.changed is not None
        return [unvaried(self._compared, self._now, self._sources), asked] if ruled else []
