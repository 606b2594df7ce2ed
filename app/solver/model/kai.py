"""KAI Scheduler's blocks."""

from typing import Annotated, Literal

import msgspec

from app.solver.model.base import Count, Duration, Name, Wire

Action = Literal["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
Rules = Literal["documented", "shipped"]
Release = Literal["0.13", "0.17"]
Factor = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class SearchBudgets(Wire, frozen=True, kw_only=True):
    """``settings.kai.search_budgets``: how long the released scheduler searches (0.17); 0: without an end."""

    max_action_search_duration: dict[Literal["default", "consolidation", "reclaim", "preempt"], Duration] = {}
    """For all jobs of an action, by its name; `default`: of the others. Absent: 5 minutes."""
    max_job_search_duration: Duration | None = None
    """For one job. Absent: 4 minutes."""
    min_job_search_duration: Duration | None = None
    """What a job has whatever the others took. Absent: 0."""
    max_generator_search_duration: dict[Literal["default", "NodeLocalGreedy", "MultiNodeGang"], Duration] = {}
    """For one way to find victims, by its name. Absent: 30 seconds for `NodeLocalGreedy`, 2 minutes for others."""


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.kai``: rule set, node-pool defaults of the minimum runtimes, actions of a cycle."""

    rules: Rules = "documented"
    """`documented`: as KAI's design says, and as released where it is silent; `shipped`: as the release does, known
    defects included."""
    release: Release = "0.13"
    """Which release decides: KAI-Scheduler 72de64f (0.13) or d5bc503a (0.17)."""
    default_reclaim_min_runtime: Duration | None = None
    """How long work runs undisturbed by reclaim, where no queue says. Absent: 0."""
    default_preempt_min_runtime: Duration | None = None
    """How long work runs undisturbed by preempt, where no queue says. Absent: 0."""
    reclaim_resolve_method: str = "lca"
    """Whose reclaim minimum runtime protects a victim: `lca`, that of its ancestor below the lowest common one with the
    reclaimer; `queue`, its own queue's."""
    actions: list[Action] | None = None
    """The actions of a cycle, in order. Absent: allocate, consolidation, reclaim, preempt."""
    use_scheduling_signatures: bool = True
    """Whether a job like one that has failed is passed over in the same action."""
    k_value: Factor = 1.0
    """How much what queues have used over time weighs against their over-quota weights; without such use it changes
    nothing."""
    max_consolidation_preemptees: Count | None = None
    """The most pods that one consolidation may move. Absent: no cap."""
    allow_consolidating_reclaim: bool = True
    """Whether reclaim may move pods that it evicts to other nodes."""
    staleness_grace_period: Duration = 60
    """How long a gang with too few pods may go on before `stalegangeviction` evicts it. Negative: for ever."""
    search_budgets: SearchBudgets | None = None
    """How long the released scheduler searches. None ends a search here; an explanation says where one might have ended
    it. Absent: nobody asks."""


class SubGroup(Wire, frozen=True, kw_only=True):
    """A part of a gang: pods of its own, or other sub groups below it."""

    name: Name
    """Unique within the job."""
    parent: Name | None = None
    """The sub group that it is below. Absent: none."""
    min_available: Count | None = None
    """Of one with pods: how many of them it needs. Absent: 1."""
    min_sub_group: Count | None = None
    """Of one with sub groups: how many of them it needs. Absent: all."""


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.kai``."""

    reclaim_min_runtime: Duration | None = None
    """How long its work runs undisturbed by reclaim. Absent: its parent's, else the default."""
    preempt_min_runtime: Duration | None = None
    """How long its work runs undisturbed by preempt. Absent: its parent's, else the default."""


class QueueState(Wire, frozen=True, kw_only=True):
    """``state.queues.*.kai``: time-based fair share."""

    usage: dict[Literal["cpu", "memory", "gpu"], Factor] = {}
    """What the queue and those below it have used over time, by resource, as a part of what the cluster had (KAI's
    usage database). Absent: nothing."""


class Options(Wire, frozen=True, kw_only=True):
    """``options.kai``: nothing yet."""
