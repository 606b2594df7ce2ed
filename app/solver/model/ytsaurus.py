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

    rules: Rules = "shipped"
    """`documented`: as the preemption page says, and as released where it is silent; `shipped`: as the release does."""
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
    """``state.queues.*.ytsaurus``: a pool's starvation state, as the previous answer gave it."""

    starvation: Starvation | None = None
    """Whether it starves, as the previous answer said. Absent: it does not."""
    status: Status | None = None
    """Its status, as the previous answer said; shown, and worked out anew."""
    below_fair_share_since: Time | None = None
    """Since when it has been below its fair share, as the previous answer said. Absent: it has not."""


class Node(Wire, frozen=True, kw_only=True):
    """``node.ytsaurus``: what the previous heartbeat left behind."""

    last_preemptive_scheduling_at: Time | None = None
    """When a preemptive stage last ran here. Absent: never."""
    overcommit_since: Time | None = None
    """Since when more is used than it has. Absent: it is not, or was not before."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.ytsaurus``: the node whose heartbeat is processed; without it all nodes, in order."""

    heartbeat_node: str | None = None
    """The node whose heartbeat is processed. Absent: every node, in the order of the state."""
