"""Findings at their bounds: the last value that is sound and the first that is not."""

from typing import Any

import msgspec
import pytest

from app.solver.engines.kueue.findings import findings as kueue_findings
from app.solver.model.configuration import Configuration, Queue
from tests.unit.solver.engines.kueue.cluster import configuration, findings, queue

AT = "/queues/0/kueue/preemption"


def of_knobs(**preemption: Any) -> list[tuple[str, str]]:
    return [
        (f.rule.removeprefix("kueue."), f.pointer)
        for f in findings(configuration(queue("q", 1, preemption=preemption)))
    ]


def of_quota(parent: bool = True, **quota: Any) -> list[str]:
    queues = [queue("co"), queue("q", quota, "co")] if parent else [queue("q", quota)]
    return [f.rule.removeprefix("kueue.") for f in findings(configuration(*queues))]


@pytest.mark.parametrize(
    ("weight", "rules"),
    [
        (0, []), (-0.5, ["weight-negative"]), (1e-9, ["weight-too-small"]), (1.1e-9, []), (1e300, []),
        (float("inf"), ["weight-negative"]), (float("nan"), ["weight-negative"]),
    ],
)  # fmt: skip
def test_weight(weight: float, rules: list[str]) -> None:
    sound = msgspec.convert(configuration(queue("q", 1)), Configuration)
    changed = msgspec.structs.replace(sound, queues=[Queue(name="q", weight=weight)])
    assert [(f.rule, f.pointer) for f in kueue_findings(changed)] == [
        (f"kueue.{rule}", "/queues/0/weight") for rule in rules
    ]


def test_quotas() -> None:
    assert of_quota(guaranteed=4, lending_limit=4, limit=4) == []
    assert of_quota(guaranteed=4, lending_limit=5) == ["lending-over-nominal"]
    assert of_quota(lending_limit=1) == [], "without a nominal quota there is nothing to compare with"
    assert of_quota(guaranteed=4, limit=3) == ["limit-below-nominal"]
    assert of_quota(guaranteed=4, limit="unlimited", lending_limit="3900m") == []
    assert of_quota(parent=False, guaranteed=4, borrowing_limit=0, lending_limit=0) == ["limit-without-parent"] * 2
    assert of_quota(parent=False, guaranteed=4, limit=4) == []


def test_waiting() -> None:
    at = f"{AT}/trigger_after_workload_waiting_seconds"
    assert of_knobs(trigger_after_workload_waiting_seconds=0) == []
    assert of_knobs(trigger_after_workload_waiting_seconds=-1) == [("waiting-negative", at)]


def test_sorting() -> None:
    at = f"{AT}/workload_sorting"
    assert of_knobs(workload_sorting=["ByLowestPriority", "ByLongestRuntime"]) == []
    assert of_knobs(workload_sorting=["ByLowestRuntime", "ByLongestRuntime"]) == [("sorting-contradicts", at)]
    assert of_knobs(workload_sorting=["ByLowestRuntime"] * 3) == [
        ("sorting-repeated", f"{at}/1"),
        ("sorting-repeated", f"{at}/2"),
    ]


def test_milestones() -> None:
    def found(*pairs: tuple[float, float]) -> list[tuple[str, str]]:
        milestones = [{"seconds": seconds, "cost": cost} for seconds, cost in pairs]
        return of_knobs(disruption_cost_milestones=milestones)

    at = f"{AT}/disruption_cost_milestones"
    assert found((0, 0), (1e12, 1e15)) == []
    assert found((-1, 0)) == [("milestone-time", f"{at}/0/seconds")]
    assert found((5, 1e15 + 1)) == [("milestone-cost", f"{at}/0/cost")]
    assert found((1e12 + 1, 0)) == [("milestone-time", f"{at}/0/seconds")]
    assert found((1.1e12, 0)) == [("milestone-time", f"{at}/0/seconds")]
    assert found((5, -1)) == [("milestone-cost", f"{at}/0/cost")]
    assert found((5, 1.1e15)) == [("milestone-cost", f"{at}/0/cost")]
    assert found((5, 0), (5, 1), (6, 2)) == [("milestones-order", f"{at}/1/seconds")]


@pytest.mark.parametrize(("name", "bound"), [("long_runner_penalty", "floor"), ("waiting_boost", "ceiling")])
def test_rates(name: str, bound: str) -> None:
    def found(grace: str | int, rate: float) -> list[tuple[str, str]]:
        return of_knobs(**{name: {"grace": grace, "rate_per_hour": rate, bound: 0}})

    assert found(0, 0) == []
    assert found("1h", 1e9) == []
    assert found(-1, 1) == [("grace-negative", f"{AT}/{name}/grace")]
    assert found("soon", 1) == [("grace-negative", f"{AT}/{name}/grace")]
    assert found(0, -1) == [("rate-negative", f"{AT}/{name}/rate_per_hour")]
    assert found(0, 1e9 + 1) == [("rate-negative", f"{AT}/{name}/rate_per_hour")]
    assert found(0, 1.1e9) == [("rate-negative", f"{AT}/{name}/rate_per_hour")]


def test_roles() -> None:
    def found(**more: Any) -> list[tuple[str, str]]:
        of = configuration(queue("co", 1, **more), queue("q", 1, "co"))
        return [(f.rule.removeprefix("kueue."), f.pointer) for f in findings(of)]

    assert found(role="cohort") == []
    assert found(role="cluster_queue") == [("cluster-queue-with-children", "/queues/0/kueue/role")]
    rules = {"when_can_borrow": "TryNextFlavor"}
    unused = [("cohort-policy-unused", "/queues/0/kueue/flavor_fungibility")]
    assert found(flavor_fungibility=rules) == found(flavor_fungibility=rules, role="cohort") == unused
    alone = configuration(queue("co", 1, role="cohort", queueing_strategy="StrictFIFO"))
    assert [f.pointer for f in findings(alone)] == ["/queues/0/kueue/queueing_strategy"]


def test_strategies_of_an_algorithm_that_is_off() -> None:
    of = configuration(queue("q", 1))
    of["settings"]["kueue"]["preemption_strategies"] = ["LessThanInitialShare"]
    assert [(f.rule, f.severity) for f in findings(of)] == [("kueue.strategies-unused", "warning")]
    of["settings"]["kueue"]["preemption_strategies"] = []
    assert findings(of) == []


def test_thresholds() -> None:
    borrow = {"policy": "LowerPriority", "max_priority_threshold": 3}
    assert of_knobs(borrow_within_cohort=borrow, reclaim_within_cohort="LowerPriority") == []
    assert of_knobs(borrow_within_cohort={"policy": "Never"}) == []


@pytest.mark.parametrize("borrow", ["MayStopSearch", "TryNextFlavor"])
@pytest.mark.parametrize("preempt", ["MayStopSearch", "TryNextFlavor"])
@pytest.mark.parametrize("preference", [None, "PreemptionOverBorrowing"])
def test_a_preference_needs_a_search_that_goes_on(borrow: str, preempt: str, preference: str | None) -> None:
    rules = {"when_can_borrow": borrow, "when_can_preempt": preempt, "preference": preference}
    found = findings(configuration(queue("q", 1, flavor_fungibility=rules)))
    sound = preference is None or (borrow, preempt) == ("TryNextFlavor", "TryNextFlavor")
    at = "/queues/0/kueue/flavor_fungibility/preference"
    assert [(f.rule, f.pointer) for f in found] == ([] if sound else [("kueue.preference-without-try-next", at)])
