"""Every setting of a queue as it counts, against documents that set all of them, or none."""

from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.configuration import Configuration
from tests.unit.solver.engines.kueue.cluster import configuration, queue


def effective(of: dict[str, Any]) -> dict[str, Any]:
    return solve.effective_settings(solve.configure(msgspec.convert(of, Configuration)), None)["queues"]


def test_everything_that_is_set_is_shown() -> None:
    milestones = [{"seconds": 0, "cost": 9}, {"seconds": 60, "cost": 1.5}]
    preemption = {
        "within_cluster_queue": "LowerOrNewerEqualPriority", "reclaim_within_cohort": "Any",
        "borrow_within_cohort": {"policy": "LowerPriority", "max_priority_threshold": 7},
        "trigger_after_workload_waiting_seconds": 30, "workload_sorting": ["ByLongestRuntime", "ByLowestPriority"],
        "disruption_cost_milestones": milestones,
        "long_runner_penalty": {"grace": "2h", "rate_per_hour": 3, "floor": -4},
        "waiting_boost": {"grace": "1m", "rate_per_hour": 0.5, "ceiling": 8},
    }  # fmt: skip
    fungibility = {
        "when_can_borrow": "TryNextFlavor", "when_can_preempt": "MayStopSearch",
        "preference": "PreemptionOverBorrowing",
    }  # fmt: skip
    of = configuration(
        queue("co", weight=2), queue("q", 1, "co", preemption=preemption, flavor_fungibility=fungibility, weight=0.5),
        fair=True,
    )  # fmt: skip
    of["settings"]["kueue"]["preemption_strategies"] = ["LessThanInitialShare"]
    shared = {"fair_sharing": True, "preemption_strategies": ["LessThanInitialShare"]}
    assert effective(of) == {
        "co": {"role": "cohort", "weight": 2.0} | shared,
        "q": shared | {
            "role": "cluster_queue", "weight": 0.5,
            "within_cluster_queue": "LowerOrNewerEqualPriority", "reclaim_within_cohort": "Any",
            "borrow_within_cohort": "LowerPriority", "max_priority_threshold": 7,
            "when_can_borrow": "TryNextFlavor", "when_can_preempt": "MayStopSearch",
            "preference": "PreemptionOverBorrowing", "queueing_strategy": "BestEffortFIFO",
            "trigger_after_workload_waiting_seconds": 30.0,
            "workload_sorting": ["ByLongestRuntime", "ByLowestPriority"],
            "disruption_cost_milestones": [{"seconds": 0.0, "cost": 9.0}, {"seconds": 60.0, "cost": 1.5}],
            "long_runner_penalty": {"grace": 7200, "rate_per_hour": 3.0, "floor": -4},
            "waiting_boost": {"grace": 60, "rate_per_hour": 0.5, "ceiling": 8},
        },
    }  # fmt: skip


def test_nothing_set_is_what_kueue_does_by_itself() -> None:
    assert effective(configuration(queue("q", 1))) == {
        "q": {
            "role": "cluster_queue", "weight": 1.0, "fair_sharing": False, "within_cluster_queue": "Never",
            "reclaim_within_cohort": "Never", "borrow_within_cohort": "Never", "max_priority_threshold": None,
            "when_can_borrow": "MayStopSearch", "when_can_preempt": "TryNextFlavor",
            "preference": "BorrowingOverPreemption", "queueing_strategy": "BestEffortFIFO",
        }
    }  # fmt: skip


def test_what_is_set_to_nothing_is_not_shown() -> None:
    """An empty list of criteria or milestones sets nothing; waiting no time is a setting."""
    preemption = {
        "workload_sorting": [], "disruption_cost_milestones": [], "trigger_after_workload_waiting_seconds": 0,
    }  # fmt: skip
    shown = effective(configuration(queue("q", 1, preemption=preemption)))["q"]
    assert "workload_sorting" not in shown
    assert "disruption_cost_milestones" not in shown
    assert shown["trigger_after_workload_waiting_seconds"] == 0
