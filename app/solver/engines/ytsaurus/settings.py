"""Settings of pool trees, pools and operations: read, checked, inherited; and the rule sets.

``documented`` takes the page on preemption literally, ``shipped`` does what the released code does. Everything else is
common to both; docs/engines/ytsaurus.md lists the same four differences with their sources.

They are those of the page on preemption, and those that fair shares follow, with the names and defaults of
``yt/yt/server/lib/scheduler/config.cpp`` and ``yt/yt/ytlib/scheduler/config.cpp``. Durations become microseconds,
resource maps integer steps by name. Every bad value is collected, none is guessed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeVar

from app.solver.engines.ytsaurus.reading import SECOND, Formula, FormulaError, Reader, Steps, Where, parse_formula
from app.solver.model.configuration import Queue
from app.solver.model.problems import Problem
from app.solver.model.ytsaurus import (
    GuaranteeType,
    IntegralGuarantees,
    Mode,
    PriorityScope,
    Release,
    Rules,
    Settings,
    TreeIntegralGuarantees,
)
from app.solver.model.ytsaurus import Queue as PoolBlock
from app.solver.model.ytsaurus import Workload as OperationOptions

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

    @property
    def other(self) -> "RuleSet":
        """The one to compare with."""
        return next(rules for rules in RULE_SETS.values() if rules.name != self.name)


RULE_SETS: Final[dict[Rules, RuleSet]] = {
    rules.name: rules for rules in (
        RuleSet(
            name="documented", bound_allocation_preemptible=True, stages=("preemptive_normal", "preemptive_aggressive"),
            normal_serves_aggressive=True, own_allocations_make_room=False,
        ),
        RuleSet(
            name="shipped", bound_allocation_preemptible=False, stages=("preemptive_aggressive", "preemptive_normal"),
            normal_serves_aggressive=False, own_allocations_make_room=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: a stable id, the field of ``RuleSet`` that holds it, and what either side does."""

    rule: str
    field: str
    documented: str
    shipped: str

    def of(self, rules: RuleSet) -> str:
        """What that rule set does."""
        return getattr(self, rules.name)

    def only(self, rules: RuleSet) -> RuleSet:
        """``rules``, with the other side's choice in this one point."""
        return replace(rules, **{self.field: getattr(rules.other, self.field)})


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


DAY = 86_400 * SECOND


class TreeShareSettings(NamedTuple):
    """What fair shares follow at the tree level. Durations in microseconds."""

    gang_steps: bool
    improved: bool
    distribution_gap: bool
    reorder_fifo: bool
    distribute_volume: bool
    smooth_period: int
    saturation_period: int
    multiplier_limit: float


class Integral(NamedTuple):
    """``queue.ytsaurus.integral_guarantees``; ``multiplier_limit``, ``distribute``: None as the tree says.

    ``flow``, ``burst``: integer steps by resource; both nothing without a type."""

    kind: GuaranteeType = "none"
    flow: Steps = {}
    burst: Steps = {}
    multiplier_limit: float | None = None
    accept: bool = True
    distribute: bool | None = None


class PoolShareSettings(NamedTuple):
    """What one pool says itself of what fair shares follow: gangs, FIFO pools, guarantees of volume, priority
    guarantees, tag filters. ``tags``: None any node."""

    gang_steps: bool = True
    reorder_fifo: bool = False
    truncate_fifo: bool = False
    promised: bool = False
    priority: bool = False
    donor: bool = False
    tags: Formula | None = None
    integral: Integral = Integral()


def tree_share_settings(given: Settings, read: Reader) -> TreeShareSettings:
    """The tree level of ``given``; problems go to ``read``."""
    volumes = given.integral_guarantees or TreeIntegralGuarantees()
    below = read.below("integral_guarantees")
    smooth = below.micros("smooth_period", volumes.smooth_period)
    if smooth == 0:
        below.refuse("smooth_period", "a period is longer than 0")
    saturation = below.micros("pool_capacity_saturation_period", volumes.pool_capacity_saturation_period)
    below.number("relaxed_share_multiplier_limit", volumes.relaxed_share_multiplier_limit, 0.0)
    limit = volumes.relaxed_share_multiplier_limit
    return TreeShareSettings(
        gang_steps=bool(given.enable_step_function_for_gang_operations),
        improved=bool(given.enable_improved_fair_share_by_fit_factor_computation),
        distribution_gap=bool(given.enable_improved_fair_share_by_fit_factor_computation_distribution_gap),
        reorder_fifo=bool(given.enable_fifo_children_reordering_for_guarantee_utilization),
        distribute_volume=bool(given.should_distribute_free_volume_among_children),
        smooth_period=60 * SECOND if smooth is None else smooth,
        saturation_period=DAY if saturation is None else saturation,
        multiplier_limit=3.0 if limit is None else limit,
    )


def pool_share_settings(given: PoolBlock, read: Reader) -> PoolShareSettings:
    """What one pool says; problems go to ``read``."""
    return PoolShareSettings(
        gang_steps=given.enable_step_function_for_gang_operations is not False,
        reorder_fifo=bool(given.enable_fifo_children_reordering_for_guarantee_utilization),
        truncate_fifo=bool(given.enable_fair_share_truncation_in_fifo_pool),
        promised=bool(given.compute_promised_guarantee_fair_share),
        priority=bool(given.enable_priority_strong_guarantee_adjustment),
        donor=bool(given.enable_priority_strong_guarantee_adjustment_donorship),
        tags=_tags(given.scheduling_tag_filter, read),
        integral=_integral(given.integral_guarantees, read.below("integral_guarantees")),
    )


def _tags(given: str | None, read: Reader) -> Formula | None:
    try:
        return None if given is None else parse_formula(given)
    except FormulaError as error:
        read.refuse("scheduling_tag_filter", str(error))
        return None


def _integral(given: IntegralGuarantees | None, read: Reader) -> Integral:
    if given is None:
        return Integral()
    flow = read.steps("resource_flow", given.resource_flow) or {}
    burst = read.steps("burst_guarantee_resources", given.burst_guarantee_resources) or {}
    read.number("relaxed_share_multiplier_limit", given.relaxed_share_multiplier_limit, 1.0, 10.0)
    counts = given.guarantee_type != "none"
    return Integral(
        kind=given.guarantee_type,
        flow=flow if counts else {},
        burst=burst if counts else {},
        multiplier_limit=given.relaxed_share_multiplier_limit,
        accept=given.can_accept_free_volume,
        distribute=given.should_distribute_free_volume_among_children,
    )


T = TypeVar("T")

_TREE: Where = ("configuration", "settings", "ytsaurus")


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The tree level with its defaults. Durations in microseconds, resource maps in integer steps."""

    rules: RuleSet
    release: Release
    tolerance: float
    timeout: int
    aggressive_timeout: int
    enable_aggressive_starvation: bool
    enable_pool_starvation: bool
    absolute_tolerance: bool
    threshold: float
    aggressive_threshold: float
    non_preemptible: Steps
    bound_given: bool | None
    backoff: int
    scope: PriorityScope
    allow_from_starving: bool
    allow_gang: bool
    count_coefficient: float
    preemption_timeout: int
    graceful_timeout: int
    overcommit_duration: int
    min_spare: Steps
    infer_weight: float | None
    best_allocation_share: bool
    shares: TreeShareSettings

    @property
    def bound_allocation_preemptible(self) -> bool:
        """consider_allocation_on_fair_share_bound_preemptible: as given, else as the rule set has it."""
        return _or(self.bound_given, self.rules.bound_allocation_preemptible)

    main_resource: str


class PoolSettings(NamedTuple):
    """What one pool says itself; None: inherited."""

    mode: Mode = "fair_share"
    tolerance: float | None = None
    timeout: int | None = None
    enable_aggressive_starvation: bool | None = None
    allow_aggressive: bool | None = None
    allow_normal: bool = True
    non_preemptible: Steps | None = None
    limits: Steps | None = None
    limits_tolerance: Steps | None = None
    forbid_operations: bool = False
    shares: PoolShareSettings = PoolShareSettings()


class OperationSettings(NamedTuple):
    """What one operation says itself; None: inherited."""

    tolerance: float | None = None
    timeout: int | None = None
    non_preemptible: Steps | None = None
    preemption_timeout: int | None = None
    graceful_timeout: int | None = None
    limits: Steps | None = None


def tree_settings(given: Settings | None) -> tuple[TreeSettings, list[Problem]]:
    """The tree level of ``given`` and every problem with it."""
    s = given or Settings()
    read = Reader(_TREE)
    _check_numbers(s, read)
    spare = read.steps("min_spare_allocation_resources", s.min_spare_allocation_resources)
    on_node = read.steps("min_spare_allocation_resources_on_node", s.min_spare_allocation_resources_on_node)
    rules = RULE_SETS[s.rules]
    tree = TreeSettings(
        rules=rules,
        release=s.release,
        tolerance=_or(s.fair_share_starvation_tolerance, 0.8),
        timeout=_or(read.micros("fair_share_starvation_timeout", s.fair_share_starvation_timeout), 30 * SECOND),
        aggressive_timeout=_or(
            read.micros("fair_share_aggressive_starvation_timeout", s.fair_share_aggressive_starvation_timeout),
            120 * SECOND,
        ),
        enable_aggressive_starvation=_or(s.enable_aggressive_starvation, False),
        enable_pool_starvation=_or(s.enable_pool_starvation, True),
        absolute_tolerance=_or(s.enable_absolute_fair_share_starvation_tolerance, False),
        threshold=_or(s.preemption_satisfaction_threshold, 1.0),
        aggressive_threshold=_or(s.aggressive_preemption_satisfaction_threshold, 0.2),
        non_preemptible=read.threshold(
            s.non_preemptible_resource_usage_threshold, s.max_unpreemptible_running_job_count
        ) or {},
        bound_given=s.consider_allocation_on_fair_share_bound_preemptible,
        backoff=_or(read.micros("preemptive_scheduling_backoff", s.preemptive_scheduling_backoff), 5 * SECOND),
        scope=s.scheduling_preemption_priority_scope or "operation_and_ancestors",
        allow_from_starving=_or(s.allow_preemption_from_starving_operations, False),
        allow_gang=_or(s.allow_aggressive_preemption_for_gang_operations, True),
        count_coefficient=_or(s.allocation_count_preemption_timeout_coefficient, 1.0),
        preemption_timeout=_or(
            read.preferred(
                "allocation_preemption_timeout", "job_interrupt_timeout",
                s.allocation_preemption_timeout, s.job_interrupt_timeout,
            ),
            30 * SECOND,
        ),
        graceful_timeout=_or(
            read.micros("allocation_graceful_preemption_timeout", s.allocation_graceful_preemption_timeout), 60 * SECOND
        ),
        overcommit_duration=_or(
            read.micros("allowed_node_resources_overcommit_duration", s.allowed_node_resources_overcommit_duration),
            15 * SECOND,
        ),
        min_spare=(spare if on_node is None else on_node) or {},
        infer_weight=s.infer_weight_from_guarantees_share_multiplier,
        best_allocation_share=_or(s.enable_best_allocation_share, False),
        main_resource=s.main_resource or "cpu",
        shares=tree_share_settings(s, read),
    )  # fmt: skip
    _check_order(s, tree, read)
    return tree, read.problems


def _check_numbers(s: Settings, read: Reader) -> None:
    read.number("fair_share_starvation_tolerance", s.fair_share_starvation_tolerance, 0.0, 1.0)
    read.number("preemption_satisfaction_threshold", s.preemption_satisfaction_threshold, 0.0, above=True)
    for name in ("aggressive_preemption_satisfaction_threshold", "infer_weight_from_guarantees_share_multiplier"):
        read.number(name, getattr(s, name), 0.0)
    coefficient = s.allocation_count_preemption_timeout_coefficient
    read.number("allocation_count_preemption_timeout_coefficient", coefficient, 1.0)


def _check_order(s: Settings, tree: TreeSettings, read: Reader) -> None:
    """What is the harder of two must not be the easier."""
    if tree.aggressive_threshold > tree.threshold:
        read.refuse(
            "aggressive_preemption_satisfaction_threshold",
            f"{tree.aggressive_threshold:g} exceeds preemption_satisfaction_threshold, {tree.threshold:g}",
        )
    if s.fair_share_aggressive_starvation_timeout is not None and tree.aggressive_timeout < tree.timeout:
        read.refuse(
            "fair_share_aggressive_starvation_timeout",
            f"{tree.aggressive_timeout / SECOND:g} s is shorter than fair_share_starvation_timeout, "
            f"{tree.timeout / SECOND:g} s",
        )


def pool_settings(queues: Iterable[Queue]) -> tuple[list[PoolSettings], list[Problem]]:
    """What each pool says itself, and every problem with it."""
    out: list[PoolSettings] = []
    problems: list[Problem] = []
    plain = PoolSettings()
    for i, queue in enumerate(queues):
        y = queue.ytsaurus
        if y is None:
            out.append(plain)
            continue
        read = Reader(("configuration", "queues", i, "ytsaurus"), problems)
        read.number("fair_share_starvation_tolerance", y.fair_share_starvation_tolerance, 0.0, 1.0)
        out.append(
            PoolSettings(
                mode=y.mode,
                tolerance=y.fair_share_starvation_tolerance,
                timeout=read.micros("fair_share_starvation_timeout", y.fair_share_starvation_timeout),
                enable_aggressive_starvation=y.enable_aggressive_starvation,
                allow_aggressive=y.allow_aggressive_preemption,
                allow_normal=_or(y.allow_normal_preemption, True),
                non_preemptible=read.threshold(
                    y.non_preemptible_resource_usage_threshold, y.max_unpreemptible_running_job_count
                ),
                limits=read.steps("resource_limits", y.resource_limits),
                limits_tolerance=read.steps(
                    "resource_limits_overcommit_tolerance", y.resource_limits_overcommit_tolerance
                ),
                forbid_operations=_or(y.forbid_immediate_operations, False),
                shares=pool_share_settings(y, read),
            )
        )
    return out, problems


def has_overrides(options: OperationOptions) -> bool:
    """Whether an operation says anything itself: most carry only their starvation."""
    return (
        options.fair_share_starvation_tolerance is not None
        or options.fair_share_starvation_timeout is not None
        or options.non_preemptible_resource_usage_threshold is not None
        or options.max_unpreemptible_running_job_count is not None
        or options.allocation_preemption_timeout is not None
        or options.job_interrupt_timeout is not None
        or options.allocation_graceful_preemption_timeout is not None
        or options.resource_limits is not None
    )


def operation_settings(options: OperationOptions, where: Where, problems: list[Problem]) -> OperationSettings:
    """What one operation says itself; problems are added to ``problems``."""
    read = Reader(where, problems)
    read.number("fair_share_starvation_tolerance", options.fair_share_starvation_tolerance, 0.0, 1.0)
    return OperationSettings(
        tolerance=options.fair_share_starvation_tolerance,
        timeout=read.micros("fair_share_starvation_timeout", options.fair_share_starvation_timeout),
        non_preemptible=read.threshold(
            options.non_preemptible_resource_usage_threshold, options.max_unpreemptible_running_job_count
        ),
        preemption_timeout=read.preferred(
            "allocation_preemption_timeout", "job_interrupt_timeout",
            options.allocation_preemption_timeout, options.job_interrupt_timeout,
        ),
        graceful_timeout=read.micros(
            "allocation_graceful_preemption_timeout", options.allocation_graceful_preemption_timeout
        ),
        limits=read.steps("resource_limits", options.resource_limits),
    )  # fmt: skip


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
