"""The body and the answer of ``POST /v1/comparisons``."""

from typing import Annotated, Any

import msgspec

from app.solver.model.decision import Answer
from app.solver.model.problems import Finding, Problem
from app.solver.model.request import DecisionRequest, Variant


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

    ``field`` of an ask: outcome, node or victims; without ``ask``: evictions, those of the plan that are no ask's
    victims. Victims and evictions are labels, ``workload`` or ``workload/task``.
    """

    ask: str | None = None
    """The id of the ask. Absent: it is about the plan."""
    field: str
    """What differs: `outcome`, `node` or `victims` of an ask, or `evictions` of the plan. A variant that is refused
    has the outcome `refused`, and no say in the others."""
    values: dict[str, Any]
    """What each variant says, by its name."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One answer a variant in the order of the request, and where they differ."""

    variants: list[VariantAnswer]
    """One answer for each variant, in the order of the request."""
    differences: list[Difference]
    """Where they differ."""
    stats: dict[str, float]
    """Milliseconds by stage."""
