"""Where the preemption page and the released scheduler differ, in one place.

``documented`` takes the page literally, ``shipped`` does what the released code does. Everything else is common to
both; docs/engines/ytsaurus.md lists the same four differences with their sources.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from app.solver.model.ytsaurus import Rules

RELEASES: Final[dict[str, str]] = {"2026": "the newest source as of that year"}
"""Those that ``shipped`` can be."""
StageName = Literal["preemptive_normal", "preemptive_aggressive"]


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The choices of one rule set.

    ``bound_allocation_preemptible``: default of consider_allocation_on_fair_share_bound_preemptible, i.e. an
    allocation whose cumulative usage crosses a bound is in the less protected group ("exceeds", literally).
    ``stages``: the preemptive stages in the order in which they run.
    ``normal_serves_aggressive``: aggressively starving operations take part in the normal preemptive stage too.
    ``own_allocations_make_room``: an operation may evict allocations of its own to start another.
    """

    name: Rules
    bound_allocation_preemptible: bool
    stages: tuple[StageName, StageName]
    normal_serves_aggressive: bool
    own_allocations_make_room: bool


DOCUMENTED = RuleSet(
    name="documented",
    bound_allocation_preemptible=True,
    stages=("preemptive_normal", "preemptive_aggressive"),
    normal_serves_aggressive=True,
    own_allocations_make_room=False,
)
SHIPPED = RuleSet(
    name="shipped",
    bound_allocation_preemptible=False,
    stages=("preemptive_aggressive", "preemptive_normal"),
    normal_serves_aggressive=False,
    own_allocations_make_room=True,
)
RULE_SETS: dict[Rules, RuleSet] = {"documented": DOCUMENTED, "shipped": SHIPPED}


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: a stable id, the field of ``RuleSet`` that holds it, and what either side does."""

    rule: str
    field: str
    documented: str
    shipped: str

    def only(self, rules: RuleSet) -> RuleSet:
        """``rules``, with the other side's choice in this one point."""
        other = SHIPPED if rules.name == "documented" else DOCUMENTED
        return replace(rules, **{self.field: getattr(other, self.field)})


DIFFERENCES = (
    Difference(
        rule="allocation-on-bound",
        field="bound_allocation_preemptible",
        documented="an allocation whose cumulative usage exceeds a bound is in the less protected group",
        shipped="the allocation that crosses a bound still belongs to the better protected group",
    ),
    Difference(
        rule="stage-order",
        field="stages",
        documented="the preemptive stage comes before the aggressive one",
        shipped="the aggressive stage comes before the preemptive one",
    ),
    Difference(
        rule="stage-members",
        field="normal_serves_aggressive",
        documented="aggressively starving operations take part in the preemptive stage too",
        shipped="the preemptive stage serves exactly the starving operations",
    ),
    Difference(
        rule="own-allocations",
        field="own_allocations_make_room",
        documented="an operation makes no room for itself: that would start nothing more of it",
        shipped="an operation may evict its own allocations to start another one",
    ),
)
