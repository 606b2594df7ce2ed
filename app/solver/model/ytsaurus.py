"""YTsaurus' blocks, with the settings under YTsaurus' own names; docs/engines/ytsaurus.md explains each.

Values stay as sent. Ranges and orders are checked by the engine, which names every bad one at once.
"""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Duration, Resources, Time, Wire

Starvation = Literal["non_starving", "starving", "aggressively_starving"]
Status = Literal["normal", "below_fair_share"]
Rules = Literal["documented", "shipped"]
PriorityScope = Literal["operation_and_ancestors", "operation_only"]
Mode = Literal["fair_share", "fifo"]
PreemptionMode = Literal["normal", "graceful"]
Slots = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.ytsaurus``: the pool tree's level of every setting, and the scheduler's own few."""

    rules: Rules = "documented"
    fair_share_starvation_tolerance: float | None = None
    fair_share_starvation_timeout: Duration | None = None
    fair_share_aggressive_starvation_timeout: Duration | None = None
    enable_aggressive_starvation: bool | None = None
    enable_pool_starvation: bool | None = None
    enable_absolute_fair_share_starvation_tolerance: bool | None = None
    preemption_satisfaction_threshold: float | None = None
    aggressive_preemption_satisfaction_threshold: float | None = None
    non_preemptible_resource_usage_threshold: Resources | None = None
    max_unpreemptible_running_job_count: Slots | None = None
    consider_allocation_on_fair_share_bound_preemptible: bool | None = None
    preemptive_scheduling_backoff: Duration | None = None
    scheduling_preemption_priority_scope: PriorityScope | None = None
    allow_preemption_from_starving_operations: bool | None = None
    allow_aggressive_preemption_for_gang_operations: bool | None = None
    allocation_count_preemption_timeout_coefficient: float | None = None
    allocation_preemption_timeout: Duration | None = None
    job_interrupt_timeout: Duration | None = None
    allocation_graceful_preemption_timeout: Duration | None = None
    allowed_node_resources_overcommit_duration: Duration | None = None
    min_spare_allocation_resources: Resources | None = None
    min_spare_allocation_resources_on_node: Resources | None = None
    use_precommit_for_preemption: bool | None = None
    infer_weight_from_guarantees_share_multiplier: float | None = None
    enable_best_allocation_share: bool | None = None
    main_resource: str | None = None


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.ytsaurus``: what a pool is and what it overrides."""

    mode: Mode = "fair_share"
    fair_share_starvation_tolerance: float | None = None
    fair_share_starvation_timeout: Duration | None = None
    enable_aggressive_starvation: bool | None = None
    allow_aggressive_preemption: bool | None = None
    allow_normal_preemption: bool | None = None
    non_preemptible_resource_usage_threshold: Resources | None = None
    max_unpreemptible_running_job_count: Slots | None = None
    resource_limits: Resources | None = None
    resource_limits_overcommit_tolerance: Resources | None = None
    forbid_immediate_operations: bool | None = None


class Workload(Wire, frozen=True, kw_only=True):
    """``workload.ytsaurus``: an operation's options, and the starvation state carried between requests."""

    starvation: Starvation | None = None
    status: Status | None = None
    below_fair_share_since: Time | None = None
    is_gang: bool = False
    suspended: bool = False
    preemption_mode: PreemptionMode = "normal"
    fair_share_starvation_tolerance: float | None = None
    fair_share_starvation_timeout: Duration | None = None
    non_preemptible_resource_usage_threshold: Resources | None = None
    max_unpreemptible_running_job_count: Slots | None = None
    allocation_preemption_timeout: Duration | None = None
    job_interrupt_timeout: Duration | None = None
    allocation_graceful_preemption_timeout: Duration | None = None
    resource_limits: Resources | None = None


class PoolState(Wire, frozen=True, kw_only=True):
    """``state.queues.*.ytsaurus``: a pool's starvation state, as the previous answer gave it."""

    starvation: Starvation | None = None
    status: Status | None = None
    below_fair_share_since: Time | None = None


class Node(Wire, frozen=True, kw_only=True):
    """``node.ytsaurus``: what the previous heartbeat left behind."""

    last_preemptive_scheduling_at: Time | None = None
    overcommit_since: Time | None = None


class Options(Wire, frozen=True, kw_only=True):
    """``options.ytsaurus``: the node whose heartbeat is processed; without it all nodes, in order."""

    heartbeat_node: str | None = None
