"""``POST /v1/effective-settings`` for Kueue: every queue's settings with the defaults filled in."""

from typing import Any

from app.solver.engines.kueue.compile.configuration import CompiledConfiguration
from app.solver.engines.kueue.compile.settings import Policy
from app.solver.engines.kueue.decide.run import knob_problems
from app.solver.model.duration import parse, seconds
from app.solver.model.kueue import LongRunnerPenalty, WaitingBoost
from app.solver.model.problems import InvalidInput
from app.solver.model.state import State


def effective_settings(configuration: CompiledConfiguration, state: State | None) -> dict[str, Any]:
    """Queues and cohorts by name, those that are only referenced among them; durations in seconds. The knobs that
    KEP-83 deferred show only where they are set. Raises InvalidInput where one has no meaning."""
    del state  # nothing that runs changes a setting
    if problems := knob_problems(configuration):
        raise InvalidInput(problems)
    return {
        "settings": {"release": configuration.release},
        "queues": {name: _queue(configuration, node) for node, name in enumerate(configuration.tree.names)},
    }


def _queue(configuration: CompiledConfiguration, node: int) -> dict[str, Any]:
    cohort = configuration.is_cohort[node]
    out: dict[str, Any] = {"role": "cohort" if cohort else "cluster_queue", "weight": configuration.weight[node]}
    out["fair_sharing"] = configuration.fair_sharing
    if configuration.fair_sharing:
        out["preemption_strategies"] = list(configuration.strategies)
    return out if cohort else out | _policy(configuration.policy[node])


def _policy(policy: Policy) -> dict[str, Any]:
    block = policy.preemption
    out: dict[str, Any] = {
        "within_cluster_queue": policy.within_cluster_queue,
        "reclaim_within_cohort": policy.reclaim_within_cohort,
        "borrow_within_cohort": "LowerPriority" if policy.borrow_within_cohort else "Never",
        "max_priority_threshold": policy.threshold,
        "when_can_borrow": policy.fungibility.when_can_borrow,
        "when_can_preempt": policy.fungibility.when_can_preempt,
        "preference": policy.fungibility.preference or "BorrowingOverPreemption",
        "queueing_strategy": "StrictFIFO" if policy.strict_fifo else "BestEffortFIFO",
    }
    if block.trigger_after_workload_waiting_seconds is not None:
        out["trigger_after_workload_waiting_seconds"] = block.trigger_after_workload_waiting_seconds
    if block.workload_sorting:
        out["workload_sorting"] = list(block.workload_sorting)
    if block.disruption_cost_milestones:
        out["disruption_cost_milestones"] = [
            {"seconds": m.seconds, "cost": m.cost} for m in block.disruption_cost_milestones
        ]
    if block.long_runner_penalty is not None:
        out["long_runner_penalty"] = _rate(block.long_runner_penalty, floor=block.long_runner_penalty.floor)
    if block.waiting_boost is not None:
        out["waiting_boost"] = _rate(block.waiting_boost, ceiling=block.waiting_boost.ceiling)
    return out


def _rate(rate: LongRunnerPenalty | WaitingBoost, **bound: int) -> dict[str, Any]:
    return {"grace": seconds(parse(rate.grace)), "rate_per_hour": rate.rate_per_hour, **bound}
