"""The body and the answer of ``POST /v1/comparisons``."""

from typing import Annotated, Any

import msgspec

from app.solver.model.decision import Answer
from app.solver.model.request import DecisionRequest, Variant


class ComparisonRequest(DecisionRequest, frozen=True, kw_only=True):
    """A decision request and the variants of it to answer."""

    variants: Annotated[list[Variant], msgspec.Meta(min_length=1, max_length=16)]


class VariantAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision request would have got under this variant, without ``id`` and ``stats``."""

    name: str
    answer: Answer


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing on which the variants disagree, and what each says.

    ``field`` of an ask: outcome, node or victims; without ``ask``: evictions, those of the plan that are no ask's
    victims. Victims and evictions are labels, ``workload`` or ``workload/task``.
    """

    ask: str | None = None
    field: str
    values: dict[str, Any]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One answer a variant in the order of the request, and where they differ."""

    variants: list[VariantAnswer]
    differences: list[Difference]
    stats: dict[str, float]
