"""One situation, several rule books: the body of a comparison to its answer, pure like ``answers``."""

from collections.abc import Iterable, Iterator

import msgspec

from app.answering.answers import Stopwatch, configure, encode, stats_of
from app.answering.comparison_bodies import Comparison, ComparisonRequest, Difference, VariantAnswer
from app.answering.sources import Sources
from app.decoding import decode
from app.solver import solve
from app.solver.engine import Question
from app.solver.model.base import Time
from app.solver.model.configuration import Configuration, Settings
from app.solver.model.decision import Answer, Decision, PlannedEviction, Victim, planned
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import Variant
from app.solver.solve import Configured, Loaded


def compare(body: bytes, now: Time, sources: Sources) -> bytes:
    """``POST /v1/comparisons``. Raises InvalidInput, with pointers to the variant where it is at fault."""
    watch = Stopwatch()
    with watch.stage("decode"):
        request = decode(body, ComparisonRequest)
        _refuse_duplicates(request.variants)
    question = Question(micros(request.now or now), request.asks, request.mode, request.options, request.explain)
    answers: list[VariantAnswer] = []
    for i, variant in enumerate(request.variants):
        try:
            with watch.stage("compile"):
                loaded = _loaded(request, variant, sources)
            with watch.stage("solve"):
                answers.append(VariantAnswer(name=variant.name, answer=solve.decide(loaded, question)))
        except InvalidInput as invalid:
            raise InvalidInput(_at_variant(problem, i, variant) for problem in invalid.problems) from None
    differences = list(_differences(answers))
    return encode(Comparison(variants=answers, differences=differences, stats=stats_of(watch.seconds)))


def _refuse_duplicates(variants: list[Variant]) -> None:
    names = [variant.name for variant in variants]
    found = [
        Problem(pointer=pointer("variants", i, "name"), detail=f"a second variant {name!r}")
        for i, name in enumerate(names)
        if name in names[:i]
    ]
    if found:
        raise InvalidInput(found)


def _loaded(request: ComparisonRequest, variant: Variant, sources: Sources) -> Loaded:
    configured = _configured(request, variant, sources)
    if request.state.snapshot is not None:
        return sources.loaded(configured, request.state.snapshot)
    return solve.load(configured, request.state)


def _configured(request: ComparisonRequest, variant: Variant, sources: Sources) -> Configured:
    document = request.configuration if variant.configuration is None else variant.configuration
    engine = variant.engine or request.engine
    if variant.settings is None:
        return configure(document, engine, sources, request.state)
    if not isinstance(document, Configuration):
        document = configure(document, engine, sources, request.state).configuration
    return solve.configure(with_settings(document, variant.settings), engine)


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
    )
    if not ours:
        return Problem(pointer=where, detail=f"variant {variant.name!r}: {problem.detail}")
    if variant.settings is not None and where.startswith("/configuration/settings"):
        where = where.removeprefix("/configuration")
    return Problem(pointer=pointer("variants", i) + where, detail=problem.detail)


def _differences(answers: list[VariantAnswer]) -> Iterator[Difference]:
    for position, first in enumerate(answers[0].answer.decisions):
        said = {one.name: one.answer.decisions[position] for one in answers}
        if len({decision.outcome for decision in said.values()}) > 1:
            yield _difference(first.ask, "outcome", {name: decision.outcome for name, decision in said.items()})
        if len({decision.node for decision in said.values()}) > 1:
            yield _difference(first.ask, "node", {name: decision.node for name, decision in said.items()})
        if len({frozenset(_victims(decision)) for decision in said.values()}) > 1:
            yield _difference(first.ask, "victims", {name: _victims(decision) for name, decision in said.items()})
    if len({frozenset(_evictions(one.answer)) for one in answers}) > 1:
        yield _difference(None, "evictions", {one.name: _evictions(one.answer) for one in answers})


def _difference(ask: str | None, field: str, values: dict[str, str | None] | dict[str, list[str]]) -> Difference:
    return Difference(ask=ask, field=field, values=dict(values))


def _victims(decision: Decision) -> list[str]:
    return _labels(decision.victims)


def _evictions(answer: Answer) -> list[str]:
    """Those of the plan that no ask's victims have: an overcommitted node, work that only moves."""
    told = {label for decision in answer.decisions for label in _victims(decision)}
    return [label for label in _labels(planned(answer)) if label not in told]


def _labels(evicted: Iterable[Victim | PlannedEviction]) -> list[str]:
    """``workload`` or ``workload/task``, in the order of the answer."""
    return [one.workload if one.task is None else f"{one.workload}/{one.task}" for one in evicted]
