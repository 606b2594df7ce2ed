"""Stopped and inactive queues, asks that are not tried, and pod sets for which nothing is counted."""

from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import (
    asks,
    at,
    configuration,
    decide,
    one,
    preemptibility,
    queue,
    runs,
    victims,
)

Json = dict[str, Any]
RECLAIMS = {"reclaim_within_cohort": "Any", "within_cluster_queue": "LowerPriority"}


def cohort(**of_b: Any) -> Json:
    """``a`` may take back what ``b`` borrows."""
    return configuration(queue("co"), queue("a", 4, "co", preemption=RECLAIMS), queue("b", 4, "co", **of_b))


def why(decision: Json) -> str:
    assert decision["outcome"] == "wait"
    return decision["conditions"][0]["message"]


@pytest.mark.parametrize("stop", [{"stop_policy": "Hold"}, {"stop_policy": "HoldAndDrain"}, {"inactive": "no flavor"}])
def test_what_is_stopped_admits_nothing_and_lends_nobody_as_a_victim(stop: Json) -> None:
    lent = runs("w", "b", 6)
    assert victims(one(cohort(), [lent], asks("x", "a", 4))) == ["w"]
    of = cohort(**stop)
    assert one(of, [lent], asks("x", "a", 4))["outcome"] == "wait"
    assert "ClusterQueue b is" in why(one(of, [], asks("x", "b", 1)))


@pytest.mark.parametrize("fair", [False, True])
def test_quota_of_what_is_stopped_may_be_borrowed(fair: bool) -> None:
    of = configuration(queue("co"), queue("a", 4, "co"), queue("b", 4, "co", stop_policy="Hold"), fair=fair)
    assert one(of, [], asks("x", "a", 8))["outcome"] == "admit"
    assert one(of, [runs("w", "b", 1)], asks("x", "a", 8))["outcome"] == "wait"


def test_what_is_stopped_holds_no_head_back() -> None:
    of = cohort(stop_policy="Hold")
    answer = decide(of, [], [asks("x", "b", 8, 9), asks("y", "a", 8)], mode="cycle")
    assert answer["decisions"]["x"]["outcome"] == "wait"
    assert answer["decisions"]["y"]["outcome"] == "admit"
    assert answer["order"] == ["y"]


@pytest.mark.parametrize("mode", ["independent", "cycle"])
def test_draining_evicts_whatever_is_asked(mode: str) -> None:
    of = cohort(stop_policy="HoldAndDrain")
    running = [runs("w", "b", 2), runs("gone", "b", 1, evicted=True), runs("v", "a", 2, kueue={"drained": True})]
    for pending in ([], [asks("x", "a", 1), asks("y", "b", 1)]):
        evictions = decide(of, running, pending, mode=mode)["plan"]["evictions"]
        assert [(e["workload"], e["reason"]) for e in evictions] == [
            ("w", "ClusterQueueStopped"), ("v", "LocalQueueStopped"),
        ]  # fmt: skip


def test_what_is_drained_goes_first_and_once() -> None:
    of = configuration(queue("q", 4, preemption=RECLAIMS))
    running = [runs("low", "q", 2), runs("drained", "q", 2, 5, kueue={"drained": True})]
    answer = decide(of, running, [asks("x", "q", 2, 9)])
    assert victims(answer["decisions"]["x"]) == ["drained"]
    assert [e["workload"] for e in answer["plan"]["evictions"]] == ["drained"]


def test_what_forbids_an_ask_is_the_reason_that_it_waits() -> None:
    of = configuration(queue("q", 4, preemption=RECLAIMS))
    stopped = asks("x", "q", 1, kueue={"inadmissible": "LocalQueue ns/lq is stopped"})
    found = one(of, [], stopped, explain="full")
    assert why(found) == "LocalQueue ns/lq is stopped"
    assert found["explanation"]["steps"][0]["rule"] == "inadmissible"
    told = preemptibility(of, [runs("w", "q", 4)], ask=stopped | {"priority": 9})
    assert told["workloads"]["w"]["reason"] == "inadmissible"


def test_an_ask_steps_back_until_its_time() -> None:
    of = configuration(queue("q", 4))
    assert "steps back" in why(one(of, [], asks("x", "q", 1, kueue={"requeue_at": at("12:01")})))
    assert one(of, [], asks("x", "q", 1, kueue={"requeue_at": at("12:00")}))["outcome"] == "admit"


def test_resources_without_quota_count_where_they_are_said_to() -> None:
    of = configuration(queue("q", 4))
    ask = asks("x", "q", 1)
    ask["tasks"][0]["requests"]["memory"] = 1
    assert one(of, [], ask)["outcome"] == "infeasible"
    of["settings"]["kueue"]["quota_check_strategy"] = "IgnoreUndeclared"
    assert one(of, [], ask)["assignment"] == {"main": {"cpu": "default"}}


@pytest.mark.parametrize("ignored", [False, True])
def test_a_pod_set_of_which_nothing_counts_ends_the_assignment(ignored: bool) -> None:
    of = configuration(queue("q", 4))
    if ignored:
        of["settings"]["kueue"]["quota_check_strategy"] = "IgnoreUndeclared"
    sets = [
        {"name": "first", "requests": {"cpu": 1}}, {"name": "nothing", "requests": {"gpu": 1 if ignored else 0}},
        {"name": "last", "requests": {"cpu": 99}},
    ]  # fmt: skip
    found = one(of, [], asks("x", "q", 1) | {"tasks": sets})
    assert found["outcome"] == "admit"
    assert found["assignment"] == {"first": {"cpu": "default"}, "nothing": {}}
    sets[1]["requests"] = {}
    assert one(of, [], asks("x", "q", 1) | {"tasks": sets})["outcome"] == "infeasible"
