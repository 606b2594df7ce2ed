"""The settings that fair shares follow: gangs, FIFO pools, guarantees of volume, priority guarantees, tag filters.

Names and defaults are those of ``yt/yt/server/lib/scheduler/config.cpp`` and ``yt/yt/ytlib/scheduler/config.cpp``.
"""

from typing import NamedTuple

from app.solver.engines.ytsaurus.compile.reading import SECOND, Reader, Steps
from app.solver.engines.ytsaurus.compile.tags import Formula, FormulaError, parse_formula
from app.solver.model.ytsaurus import GuaranteeType, IntegralGuarantees, Queue, Settings, TreeIntegralGuarantees

DAY = 86_400 * SECOND


class TreeShareSettings(NamedTuple):
    """The tree level. Durations in microseconds."""

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
    """What one pool says itself; ``tags``: None any node."""

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


def pool_share_settings(given: Queue, read: Reader) -> PoolShareSettings:
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
