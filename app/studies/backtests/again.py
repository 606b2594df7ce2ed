"""One logged request under other configurations. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from app.answering.answers import Stopwatch
from app.answering.comparison import ComparisonRequest, Difference, VariantAnswer, answers_of, differences_of
from app.answering.sources import Sources
from app.base.decoding import decode
from app.solver.model.decision import Answer, planned
from app.solver.model.instant import micros
from app.solver.model.problems import Problem
from app.solver.model.request import DecisionRequest, Variant
from app.studies.backtests.schemas import BacktestVariant, Decided


class Tally:
    """What one variant has come to so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._same = self._differ = self._refused = 0
        self._asks: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._evictions = [0, 0]

    def add(self, logged: Answer, made: VariantAnswer) -> tuple[list[Difference], list[Problem]]:
        """The variant's answer to a request; where it differs, and why it is refused."""
        if made.answer is None:
            self._refused += 1
            return [], made.problems
        for i, answer in enumerate((logged, made.answer)):
            self._asks[i].update(decision.outcome for decision in answer.decisions)
            self._evictions[i] += len(planned(answer))
        both = [VariantAnswer(name="logged", answer=logged), msgspec.structs.replace(made, name="variant")]
        differences = list(differences_of(both))
        if differences:
            self._differ += 1
        else:
            self._same += 1
        return differences, []

    def told(self) -> BacktestVariant:
        """As the wire has it."""
        logged, here = (
            Decided(asks=dict(sorted(asks.items())), evictions=evictions)
            for asks, evictions in zip(self._asks, self._evictions, strict=True)
        )
        return BacktestVariant(
            name=self.name, same=self._same, differ=self._differ, refused=self._refused, logged=logged, here=here
        )


def again(request: bytes, variants: Sequence[Variant], sources: Sources) -> list[VariantAnswer]:
    """What each variant answers to a resolved request, unexplained. Raises InvalidInput where the request itself is no
    good any more, NotFound, Unavailable."""
    asked = decode(request, DecisionRequest)
    assert asked.now is not None
    fields: dict[str, Any] = {**msgspec.structs.asdict(asked), "explain": "none"}
    compared = ComparisonRequest(**fields, variants=list(variants))
    return answers_of(compared, micros(asked.now), sources, Stopwatch())
