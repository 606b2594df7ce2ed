"""What Kueue's webhooks would refuse, each as a finding with its rule and place; decisions take it all the same."""

from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import asks, configuration, findings, flavors, one, queue

FLAVORS = [{"name": "a"}, {"name": "b"}]


def found(*queues: dict[str, Any], **more: Any) -> list[tuple[str, str, str]]:
    return [(f.rule, f.severity, f.pointer) for f in findings(configuration(*queues, **more))]


def test_a_sound_configuration_has_no_findings() -> None:
    limits = {"guaranteed": 4, "borrowing_limit": 2, "lending_limit": 3}
    preemption = {"reclaim_within_cohort": "Any", "borrow_within_cohort": {"policy": "LowerPriority"}}
    assert found(queue("co", 4), queue("q", limits, "co", preemption=preemption), queue("alone", 1)) == []


@pytest.mark.parametrize("field", ["borrowing_limit", "lending_limit"])
def test_a_limit_needs_a_parent(field: str) -> None:
    place = f"/queues/0/quota/cpu/{field}"
    assert found(queue("q", {"guaranteed": 4, field: 1})) == [("kueue.limit-without-parent", "error", place)]
    assert found(queue("co", {"guaranteed": 4, field: 1}), queue("q", 1, "co")) == [
        ("kueue.limit-without-parent", "error", place)
    ]


def test_a_cluster_queue_lends_no_more_than_it_owns() -> None:
    over = {"guaranteed": 4, "lending_limit": 5}
    place = "/queues/1/quota/cpu/lending_limit"
    assert found(queue("co"), queue("q", over, "co")) == [("kueue.lending-over-nominal", "error", place)]
    assert found(queue("root"), queue("co", over, "root"), queue("q", 1, "co")) == [], "a cohort lends its subtree's"


@pytest.mark.parametrize(
    ("strategies", "wrong"),
    [
        (["LessThanOrEqualToFinalShare"], False),
        (["LessThanInitialShare"], False),
        (["LessThanOrEqualToFinalShare", "LessThanInitialShare"], False),
        (["LessThanInitialShare", "LessThanOrEqualToFinalShare"], True),
        (["LessThanInitialShare", "LessThanInitialShare"], True),
    ],
)
def test_strategies_in_an_order_that_kueue_takes(strategies: list[str], wrong: bool) -> None:
    of = configuration(queue("q", 1), fair=True)
    of["settings"]["kueue"]["preemption_strategies"] = strategies
    expected = [("kueue.strategies-order", "/settings/kueue/preemption_strategies")] if wrong else []
    assert [(f.rule, f.pointer) for f in findings(of)] == expected
    assert one(of, [], asks("x", "q", 1))["outcome"] == "admit"


def test_borrowing_in_the_cohort_needs_reclaiming() -> None:
    block = {"borrow_within_cohort": {"policy": "LowerPriority"}}
    co, mine = queue("co", 4), queue("q", 1, "co", preemption=block)
    place = "/queues/1/kueue/preemption/borrow_within_cohort"
    assert found(co, mine) == [("kueue.borrow-without-reclaim", "error", place)]
    assert one(configuration(co, mine), [], asks("x", "q", 1))["outcome"] == "admit"


@pytest.mark.parametrize(
    ("borrow", "preempt"), [("MayStopSearch", "TryNextFlavor"), ("TryNextFlavor", "MayStopSearch")]
)
def test_a_preference_needs_both_to_try_the_next_flavor(borrow: str, preempt: str) -> None:
    rules = {"when_can_borrow": borrow, "when_can_preempt": preempt, "preference": "PreemptionOverBorrowing"}
    place = "/queues/0/kueue/flavor_fungibility/preference"
    mine = queue("q", 1, flavor_fungibility=rules)
    assert found(mine) == [("kueue.preference-without-try-next", "error", place)]
    assert one(configuration(mine), [], asks("x", "q", 1))["outcome"] == "admit"


def test_weights() -> None:
    assert found(queue("q", 1, weight=0)) == []
    assert found(queue("q", 1, weight=1e-10)) == [("kueue.weight-too-small", "error", "/queues/0/weight")]
    (negative,) = findings(configuration(queue("q", 1, weight=-1)))
    assert (negative.severity, negative.pointer) == ("error", "/queues/0/weight")


def test_resource_groups() -> None:
    groups = flavors(a=1, b=1)["resource_groups"]
    twice = [*groups, {"resources": ["gpu"], "flavors": [{"name": "a", "quota": {}}]}]
    assert found({"name": "q", "resource_groups": twice}, flavors=FLAVORS) == [
        ("kueue.flavor-in-two-groups", "error", "/queues/0/resource_groups/1/flavors/0/name"),
        ("kueue.resource-without-quota", "error", "/queues/0/resource_groups/1/flavors/0/quota"),
    ]
    assert found({"name": "q", "resource_groups": groups}, flavors=FLAVORS[:1]) == [
        ("kueue.flavor-not-found", "warning", "/queues/0/resource_groups/0/flavors/1/name")
    ]
    assert found({"name": "q", "resource_groups": [{"resources": [], "flavors": []}]}) == [
        ("kueue.empty-resource-group", "error", "/queues/0/resource_groups/0")
    ]


def test_what_kueue_would_never_read() -> None:
    co = queue("co", preemption={"reclaim_within_cohort": "Any"}, queueing_strategy="StrictFIFO")
    assert found(co, queue("q", 1, "co")) == [
        ("kueue.cohort-policy-unused", "warning", "/queues/0/kueue/preemption"),
        ("kueue.cohort-policy-unused", "warning", "/queues/0/kueue/queueing_strategy"),
    ]
    threshold = {"policy": "Never", "max_priority_threshold": 3}
    assert [rule for rule, _, _ in found(queue("q", 1, preemption={"borrow_within_cohort": threshold}))] == [
        "kueue.threshold-unused"
    ]


def test_knobs_are_found_too() -> None:
    block = {"disruption_cost_milestones": [{"seconds": 60, "cost": 1}, {"seconds": 30, "cost": 0}]}
    block["workload_sorting"] = ["ByLowestPriority", "ByLowestPriority"]
    at = "/queues/0/kueue/preemption"
    assert found(queue("q", 1, preemption=block)) == [
        ("kueue.sorting-repeated", "error", f"{at}/workload_sorting/1"),
        ("kueue.milestones-order", "error", f"{at}/disruption_cost_milestones/1/seconds"),
    ]
