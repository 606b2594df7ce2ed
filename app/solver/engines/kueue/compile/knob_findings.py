"""What has no meaning that could be computed in the knobs that KEP-83 deferred: refused wherever one of them counts."""

from collections.abc import Iterator, Sequence

from app.solver.model import kueue as model
from app.solver.model.duration import DurationError, parse
from app.solver.model.problems import Finding, pointer
from app.solver.quotas import Place


def error(rule: str, at: Place, detail: str) -> Finding:
    """A finding that refuses a write; ``rule`` without the engine's name."""
    return Finding(rule=f"kueue.{rule}", severity="error", pointer=pointer(*at), detail=detail)


def knob_findings(preemption: model.Preemption, at: Place) -> Iterator[Finding]:
    """What is wrong with the knobs that KEP-83 deferred."""
    waiting = preemption.trigger_after_workload_waiting_seconds
    if waiting is not None and not 0 <= waiting < float("inf"):
        yield error(
            "waiting-negative", (*at, "trigger_after_workload_waiting_seconds"), "seconds are finite, 0 or more"
        )
    if preemption.workload_sorting is not None:
        yield from _sorting_findings(preemption.workload_sorting, (*at, "workload_sorting"))
    if preemption.disruption_cost_milestones is not None:
        yield from milestone_findings(preemption.disruption_cost_milestones, (*at, "disruption_cost_milestones"))
    for name in ("long_runner_penalty", "waiting_boost"):
        rate: model.LongRunnerPenalty | model.WaitingBoost | None = getattr(preemption, name)
        if rate is not None:
            yield from _rate_findings(rate, (*at, name))


def _sorting_findings(sorting: Sequence[model.Sorting], at: Place) -> Iterator[Finding]:
    """Each criterion once, and running time in one direction only."""
    for i, criterion in enumerate(sorting):
        if criterion in sorting[:i]:
            yield error("sorting-repeated", (*at, i), f"{criterion} is listed twice")
    if "ByLowestRuntime" in sorting and "ByLongestRuntime" in sorting:
        yield error("sorting-contradicts", at, "ByLowestRuntime and ByLongestRuntime contradict each other")


def milestone_findings(milestones: Sequence[model.Milestone], at: Place) -> Iterator[Finding]:
    """Times ascend strictly from 0 on; costs are finite, 0 or more."""
    for i, milestone in enumerate(milestones):
        if not 0 <= milestone.seconds <= 1e12:
            yield error("milestone-time", (*at, i, "seconds"), "seconds are from 0 to 1e12")
        elif i and not milestone.seconds > milestones[i - 1].seconds:
            yield error(
                "milestones-order", (*at, i, "seconds"), "milestones are listed by ascending time, each time once"
            )
        if not 0 <= milestone.cost <= 1e15:
            yield error("milestone-cost", (*at, i, "cost"), "a cost is from 0 to 1e15")


def _rate_findings(rate: model.LongRunnerPenalty | model.WaitingBoost, at: Place) -> Iterator[Finding]:
    if not 0 <= rate.rate_per_hour <= 1e9:
        yield error("rate-negative", (*at, "rate_per_hour"), "priority points an hour are from 0 to 1e9")
    try:
        if parse(rate.grace) < 0:
            yield error("grace-negative", (*at, "grace"), "a grace period is not negative")
    except DurationError as refusal:
        yield error("grace-negative", (*at, "grace"), str(refusal))
