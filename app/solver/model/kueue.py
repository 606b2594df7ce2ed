"""Kueue's blocks: settings, queue policies, and the knobs that KEP-83 deferred."""

from typing import Literal

from app.solver.model.base import Duration, Priority, Time, Wire

Strategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
Sorting = Literal["ByLowestPriority", "ByLowestRuntime", "ByLongestRuntime"]
Fungibility = Literal["MayStopSearch", "TryNextFlavor"]


class Settings(Wire, frozen=True, kw_only=True):
    """``settings.kueue``. Strategies default to Kueue's own: final share first, then initial share."""

    fair_sharing: bool = False
    preemption_strategies: list[Strategy] | None = None


class BorrowWithinCohort(Wire, frozen=True, kw_only=True):
    """Preempting in the cohort while borrowing: only at or below the threshold, and below the ask's priority."""

    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: Priority | None = None


class Milestone(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): the cost of stopping a workload that has run for ``seconds``; linear in between."""

    seconds: float
    cost: float


class LongRunnerPenalty(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): after ``grace``, effective priority falls ``rate_per_hour`` down to ``floor``."""

    grace: Duration
    rate_per_hour: float
    floor: Priority


class WaitingBoost(Wire, frozen=True, kw_only=True):
    """KEP-83 (deferred): after ``grace`` of waiting, priority rises ``rate_per_hour`` up to ``ceiling``."""

    grace: Duration
    rate_per_hour: float
    ceiling: Priority


class Preemption(Wire, frozen=True, kw_only=True):
    """``queue.kueue.preemption``."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None
    trigger_after_workload_waiting_seconds: float | None = None
    workload_sorting: list[Sorting] | None = None
    disruption_cost_milestones: list[Milestone] | None = None
    long_runner_penalty: LongRunnerPenalty | None = None
    waiting_boost: WaitingBoost | None = None


class FlavorFungibility(Wire, frozen=True, kw_only=True):
    """When a flavor search stops, and what it prefers when it does not."""

    when_can_borrow: Fungibility = "MayStopSearch"
    when_can_preempt: Fungibility = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None


class Queue(Wire, frozen=True, kw_only=True):
    """``queue.kueue``."""

    preemption: Preemption | None = None
    flavor_fungibility: FlavorFungibility | None = None
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    role: Literal["cohort", "cluster_queue"] | None = None


class Ask(Wire, frozen=True, kw_only=True):
    """``ask.kueue``: when the ask was first tried, for waiting times."""

    first_attempt_at: Time | None = None


class Options(Wire, frozen=True, kw_only=True):
    """``options.kueue``: nothing yet."""
