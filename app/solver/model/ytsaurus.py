"""YTsaurus' blocks, with the settings under YTsaurus' own names; docs/engines/ytsaurus.md explains each.

Values stay as sent. Ranges and orders are checked by the engine, which names every bad one at once.
"""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Duration, Resources, Time, Wire

Starvation = Literal["non_starving", "starving", "aggressively_starving"]
Status = Literal["normal", "below_fair_share"]
Rules = Literal["documented", "shipped"]
Release = Literal["2026"]
PriorityScope = Literal["operation_and_ancestors", "operation_only"]
Mode = Literal["fair_share", "fifo"]
PreemptionMode = Literal["normal", "graceful"]
GuaranteeType = Literal["none", "burst", "relaxed"]
Slots = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class TreeIntegralGuarantees(Wire, frozen=True, kw_only=True):
    """``settings.ytsaurus.integral_guarantees``: how volumes of all pools turn into shares."""

    smooth_period: Duration | None = None
    """The time over which a volume is spent. Absent: 60 seconds."""
    pool_capacity_saturation_period: Duration | None = None
    """A pool saves up at most what flows in within this time. Absent: one day."""
    relaxed_share_multiplier_limit: float | None = None
    """How many times its flow a relaxed pool gets at most. Absent: 3."""


class IntegralGuarantees(Wire, frozen=True, kw_only=True):
    """``queue.ytsaurus.integral_guarantees``: a guarantee of resources times time."""

    guarantee_type: GuaranteeType = "none"
    """`burst`: a share that is given before others; `relaxed`: of what guarantees leave over; `none`."""
    resource_flow: Resources | None = None
    """What flows into the volume, by resource."""
    burst_guarantee_resources: Resources | None = None
    """What a burst pool gets at most, by resource."""
    relaxed_share_multiplier_limit: float | None = None
    """As on the tree, for this pool; from 1 to 10."""
    can_accept_free_volume: bool = True
    """Whether it takes volume that flows over elsewhere."""
    should_distribute_free_volume_among_children: bool | None = None
    """Whether it hands on volume that flows over below it. Absent: as the tree says."""


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.ytsaurus``: the pool tree's level of every setting, and the scheduler's own few."""

    rules: Rules = "shipped"
    """`documented`: as the preemption page says, and as released where it is silent; `shipped`: as the release does."""
    release: Release = "2026"
    """Which release that is: the newest source as of that year."""
    fair_share_starvation_tolerance: float | None = None
    """How much of its fair share an element must use not to be below it; from 0 to 1. Absent: 0.8."""
    fair_share_starvation_timeout: Duration | None = None
    """How long an element stays below its fair share before it is starving. Absent: 30 seconds."""
    fair_share_aggressive_starvation_timeout: Duration | None = None
    """How long an element stays below its fair share before it is aggressively starving; at least the other timeout.
    Absent: 120 seconds."""
    enable_aggressive_starvation: bool | None = None
    """Whether there is aggressive starvation. Absent: no."""
    enable_pool_starvation: bool | None = None
    """Whether pools starve as well. Absent: yes."""
    enable_absolute_fair_share_starvation_tolerance: bool | None = None
    """Whether an operation that lacks less than one allocation is not below its fair share. Absent: no."""
    preemption_satisfaction_threshold: float | None = None
    """Allocations beyond this part of the fair share are preemptible; above 0. Absent: 1."""
    aggressive_preemption_satisfaction_threshold: float | None = None
    """Allocations beyond this part of the fair share are aggressively preemptible; at most the other threshold. Absent:
    0.2."""
    non_preemptible_resource_usage_threshold: Resources | None = None
    """Usage up to which allocations are not preemptible, by resource; all of them must be below. Absent: no such
    threshold."""
    max_unpreemptible_running_job_count: Slots | None = None
    """An older name of `non_preemptible_resource_usage_threshold.user_slots`; read where that is absent."""
    consider_allocation_on_fair_share_bound_preemptible: bool | None = None
    """Whether the allocation that crosses a bound belongs to the less protected group. Absent: as `rules` have it."""
    preemptive_scheduling_backoff: Duration | None = None
    """How long a node waits after a preemptive stage before the next. Absent: 5 seconds."""
    scheduling_preemption_priority_scope: PriorityScope | None = None
    """Whether an operation may preempt because a pool above it starves, or only because it starves itself. Absent:
    `operation_and_ancestors`."""
    allow_preemption_from_starving_operations: bool | None = None
    """Whether allocations of starving operations may be preempted. Absent: no."""
    allow_aggressive_preemption_for_gang_operations: bool | None = None
    """Whether allocations of gangs may be preempted aggressively. Absent: yes."""
    allocation_count_preemption_timeout_coefficient: float | None = None
    """Below this many pending allocations the starvation timeouts shrink in proportion; at least 1. Absent: 1."""
    allocation_preemption_timeout: Duration | None = None
    """How long an allocation has to finish when it is preempted. Absent: 30 seconds."""
    job_interrupt_timeout: Duration | None = None
    """An older name of `allocation_preemption_timeout`; read where that is absent."""
    allocation_graceful_preemption_timeout: Duration | None = None
    """How long an allocation has to finish when it is preempted gracefully. Absent: 60 seconds."""
    allowed_node_resources_overcommit_duration: Duration | None = None
    """How long a node may be overcommitted before allocations are preempted whatever their group. Absent: 15 seconds.
    """
    min_spare_allocation_resources: Resources | None = None
    """What must be free on a node for the regular stage to go on, by resource. Absent: nothing."""
    min_spare_allocation_resources_on_node: Resources | None = None
    """The same; where both are given, this one counts."""
    use_precommit_for_preemption: bool | None = None
    """Read and shown; it changes nothing where heartbeats are decided one after the other."""
    infer_weight_from_guarantees_share_multiplier: float | None = None
    """A pool without a weight gets this multiple of its part of the guarantees above it. Absent: weight 1."""
    enable_best_allocation_share: bool | None = None
    """Whether memory that no whole allocation fits into is taken off limits. Absent: no."""
    main_resource: str | None = None
    """The resource from which guarantees of others are inferred. Absent: cpu."""
    enable_step_function_for_gang_operations: bool | None = None
    """Whether a gang's fair share is all of its demand or nothing. Absent: no."""
    enable_improved_fair_share_by_fit_factor_computation: bool | None = None
    """Whether of children that would jump together those are fitted that can be. Absent: no."""
    enable_improved_fair_share_by_fit_factor_computation_distribution_gap: bool | None = None
    """Whether that fits with a tolerance where much would be left over. Absent: no."""
    enable_fifo_children_reordering_for_guarantee_utilization: bool | None = None
    """Whether FIFO pools that say so serve gangs first that fit into their guarantee. Absent: no."""
    enable_fair_share_truncation_in_fifo_pool: bool | None = None
    """Each pool says it for itself: not read here."""
    should_distribute_free_volume_among_children: bool | None = None
    """Whether pools hand on volume that flows over below them. Absent: no."""
    integral_guarantees: TreeIntegralGuarantees | None = None
    """How volumes of integral guarantees turn into shares."""


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.ytsaurus``: what a pool is and what it overrides."""

    mode: Mode = "fair_share"
    """How children share: by weight, or one after the other."""
    fair_share_starvation_tolerance: float | None = None
    """How much of its fair share an element must use not to be below it; from 0 to 1. Absent: its parent's."""
    fair_share_starvation_timeout: Duration | None = None
    """How long an element stays below its fair share before it is starving. Absent: its parent's."""
    enable_aggressive_starvation: bool | None = None
    """Whether it may starve aggressively. Absent: as its parent."""
    allow_aggressive_preemption: bool | None = None
    """Whether its allocations may be preempted aggressively. Absent: as its parent, at last yes."""
    allow_normal_preemption: bool | None = None
    """Whether its allocations may be preempted in the normal stage; a pool above that says no decides. Absent: yes."""
    non_preemptible_resource_usage_threshold: Resources | None = None
    """Usage up to which allocations are not preemptible, by resource; all of them must be below. Absent: no such
    threshold. It replaces its parent's whole."""
    max_unpreemptible_running_job_count: Slots | None = None
    """An older name of `non_preemptible_resource_usage_threshold.user_slots`; read where that is absent."""
    resource_limits: Resources | None = None
    """The most that it may use, by resource. Absent: no limit but that of its quota."""
    resource_limits_overcommit_tolerance: Resources | None = None
    """How much preemptive starts may exceed its limits, by resource. Absent: nothing."""
    forbid_immediate_operations: bool | None = None
    """Whether operations may only stand in pools below it. Absent: no."""
    scheduling_tag_filter: str | None = None
    """A formula over tags, as `a & !b`: operations run only on nodes for which it holds, what those have is a limit.
    A node has the tags `label` and `label=value`."""
    integral_guarantees: IntegralGuarantees | None = None
    """A guarantee of resources times time."""
    enable_step_function_for_gang_operations: bool | None = None
    """Whether the tree's setting counts for the operations right below. Absent: yes."""
    enable_fifo_children_reordering_for_guarantee_utilization: bool | None = None
    """Whether this FIFO pool serves gangs first that fit into its guarantee. Absent: no."""
    enable_fair_share_truncation_in_fifo_pool: bool | None = None
    """Whether gangs of this FIFO pool get nothing where they would get less than their demand. Absent: no."""
    compute_promised_guarantee_fair_share: bool | None = None
    """Whether to say what it and all below get of guarantees alone. Absent: no."""
    enable_priority_strong_guarantee_adjustment: bool | None = None
    """Whether its guarantee is cut after those of pools without priority, up to a donor above. Absent: no."""
    enable_priority_strong_guarantee_adjustment_donorship: bool | None = None
    """Whether it donates to priority pools below. Absent: no."""


class Workload(Wire, frozen=True, kw_only=True):
    """``workload.ytsaurus``: an operation's options, and the starvation state carried between requests."""

    starvation: Starvation | None = None
    """Whether it starves, as the previous answer said. Absent: it does not."""
    status: Status | None = None
    """Its status, as the previous answer said; shown, and worked out anew."""
    below_fair_share_since: Time | None = None
    """Since when it has been below its fair share, as the previous answer said. Absent: it has not."""
    is_gang: bool = False
    """Whether its allocations are of use only together."""
    suspended: bool = False
    """Whether it is suspended: it starts nothing and does not starve."""
    preemption_mode: PreemptionMode = "normal"
    """`graceful`: its allocations are only asked to stop."""
    fair_share_starvation_tolerance: float | None = None
    """How much of its fair share an element must use not to be below it; from 0 to 1. The lower of this and its pool's
    counts."""
    fair_share_starvation_timeout: Duration | None = None
    """How long an element stays below its fair share before it is starving. The longer of this and its pool's counts.
    """
    non_preemptible_resource_usage_threshold: Resources | None = None
    """Usage up to which allocations are not preemptible, by resource; all of them must be below. Absent: no such
    threshold. The lower of this and its pool's counts, by resource."""
    max_unpreemptible_running_job_count: Slots | None = None
    """An older name of `non_preemptible_resource_usage_threshold.user_slots`; read where that is absent."""
    allocation_preemption_timeout: Duration | None = None
    """How long an allocation has to finish when it is preempted. Absent: the tree's."""
    job_interrupt_timeout: Duration | None = None
    """An older name of `allocation_preemption_timeout`; read where that is absent."""
    allocation_graceful_preemption_timeout: Duration | None = None
    """How long an allocation has to finish when it is preempted gracefully. Absent: the tree's."""
    resource_limits: Resources | None = None
    """The most that it may use, by resource. Absent: no limit."""


class PoolState(Wire, frozen=True, kw_only=True):
    """``state.queues.*.ytsaurus``: a pool's starvation state and volume, as the previous answer gave them.

    ``accumulated_volume``: resource-seconds by resource."""

    starvation: Starvation | None = None
    """Whether it starves, as the previous answer said. Absent: it does not."""
    status: Status | None = None
    """Its status, as the previous answer said; shown, and worked out anew."""
    below_fair_share_since: Time | None = None
    """Since when it has been below its fair share, as the previous answer said. Absent: it has not."""
    accumulated_volume: dict[str, float] | None = None
    """Volume of an integral guarantee, in resource-seconds by resource."""
    last_share_ratio: float | None = None
    """The integral share that the previous update gave, as a part of the cluster."""


class Node(Wire, frozen=True, kw_only=True):
    """``node.ytsaurus``: what the previous heartbeat left behind."""

    last_preemptive_scheduling_at: Time | None = None
    """When a preemptive stage last ran here. Absent: never."""
    overcommit_since: Time | None = None
    """Since when more is used than it has. Absent: it is not, or was not before."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.ytsaurus``: the node whose heartbeat is processed (without it all nodes, in order), and when fair
    shares were last updated (without it volumes are as carried, neither spent nor refilled)."""

    heartbeat_node: str | None = None
    """The node whose heartbeat is processed. Absent: every node, in the order of the state."""
    last_update_at: Time | None = None
    """When fair shares were last updated. Absent: volumes are as carried, neither spent nor refilled. Read by
    `/v1/shares`."""
