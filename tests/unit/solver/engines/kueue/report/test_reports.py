"""Shares, preemptibility and effective settings."""

from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kueue.cluster import asks, configuration, preemptibility, queue, runs, shares

ANY = {"reclaim_within_cohort": "Any"}


def test_shares_of_a_flat_cohort() -> None:
    """10 in all, of which a has 4 and uses 7: it borrows 3 of the 10 that the cohort could lend, at weight 2."""
    of = configuration(queue("co", 4), queue("a", 4, "co", weight=2), queue("b", 2, "co"), fair=True)
    found = shares(of, [runs("w", "a", 7)])
    assert found["a"] == {
        "fair_share": {"cpu": 4}, "usage": {"cpu": 7}, "borrowed": {"cpu": 3}, "lendable": {"cpu": 10},
        "weight": 2.0, "share": 150, "precise_share": 150.0, "dominant_resource": "cpu",
    }  # fmt: skip
    assert (found["b"]["share"], found["b"]["borrowed"]) == (0, {"cpu": 0})
    assert (found["co"]["fair_share"], found["co"]["usage"], found["co"]["share"]) == ({"cpu": 10}, {"cpu": 7}, 0)


def test_a_share_is_shown_rounded_up_and_kept_exact() -> None:
    found = shares(configuration(queue("co", 3), queue("a", 0, "co")), [runs("w", "a", 1)])["a"]
    assert (found["share"], found["precise_share"]) == (334, 1000 / 3)


def test_a_borrower_of_weight_0_has_no_share_that_is_large_enough() -> None:
    of = configuration(queue("co", 4), queue("a", 0, "co", weight=0), queue("b", 0, "co", weight=0))
    found = shares(of, [runs("w", "a", 1)])
    assert (found["a"]["share"], "precise_share" in found["a"]) == (2**63 - 1, False)
    assert (found["b"]["share"], found["b"]["precise_share"]) == (0, 0.0)


def test_a_share_past_every_double_is_as_large_as_can_be() -> None:
    found = shares(configuration(queue("co", 4), queue("a", 0, "co", weight=1e-307)), [runs("w", "a", 4)])["a"]
    assert (found["share"], "precise_share" in found) == (2**63 - 1, False)


def test_flavors_below_quota_do_not_offset_others() -> None:
    group = {"resources": ["cpu"], "flavors": [{"name": f, "quota": {"cpu": {"guaranteed": 4}}} for f in "ab"]}
    of = configuration(
        queue("co"),
        {"name": "q", "parent": "co", "resource_groups": [group]},
        {"name": "r", "parent": "co", "resource_groups": [group]},
    )
    found = shares(of, [runs("w", "q", 5, flavor="a")])["q"]
    assert (found["usage"], found["borrowed"], found["lendable"], found["share"]) == (
        {"cpu": 5},
        {"cpu": 1},
        {"cpu": 16},
        63,
    )
    assert found["flavors"] == {
        "a": {"cpu": {"fair_share": 4, "usage": 5, "borrowed": 1, "lendable": 0}},
        "b": {"cpu": {"fair_share": 4, "usage": 0, "borrowed": 0, "lendable": 4}},
    }


def test_what_a_parent_may_give_to_others_of_a_flavor() -> None:
    def lends(name: str, limit: int | None) -> dict[str, Any]:
        quota = {"guaranteed": 4} | ({} if limit is None else {"lending_limit": limit})
        group = {"resources": ["cpu"], "flavors": [{"name": "a", "quota": {"cpu": quota}}]}
        return {"name": name, "parent": "co", "resource_groups": [group]}

    of = configuration(queue("co"), lends("all", None), lends("two", 2), lends("used", 2))
    found = shares(of, [runs("w", "used", 3, flavor="a")])
    assert [found[name]["flavors"]["a"]["cpu"]["lendable"] for name in ("all", "two", "used")] == [4, 2, 1]
    assert found["co"]["flavors"]["a"]["cpu"] == {"fair_share": 8, "usage": 1}, "a root borrows from nobody"


def reasons(of: dict, running: list, **more: object) -> dict[str, str]:
    return {name: line["reason"] for name, line in preemptibility(of, running, **more)["workloads"].items()}


CLUSTER = configuration(
    queue("co"),
    queue("q", 4, "co", preemption={"reclaim_within_cohort": "LowerPriority", "within_cluster_queue": "LowerPriority"}),
    queue("borrower", 0, "co"),
    queue("owner", 3, "co"),
    queue("island", 3),
)
RUNNING = [
    runs("own-low", "q", 1, 0),
    runs("own-high", "q", 1, 5),
    runs("borrows-low", "borrower", 1, 0),
    runs("borrows-high", "borrower", 1, 5),
    runs("at-home", "owner", 3, 0),
    runs("far", "island", 1, 0),
    runs("marked", "q", 0, 0, preemptible=False),
    runs("nothing", "borrower", 1, 0) | {"tasks": []},
]


def test_the_rule_that_protects_each_workload() -> None:
    assert reasons(CLUSTER, RUNNING, ask=asks("x", "q", 2, priority=1)) == {
        "own-low": "candidate",
        "own-high": "priority",
        "borrows-low": "candidate",
        "borrows-high": "priority",
        "at-home": "within-nominal",
        "far": "outside-cohort",
        "marked": "not-preemptible",
        "nothing": "uses-nothing-contested",
    }


def test_a_candidate_carries_the_reason_that_its_preemption_would_have() -> None:
    found = preemptibility(CLUSTER, RUNNING, ask=asks("x", "q", 2, priority=1))["workloads"]
    assert found["own-low"]["preemption_reason"] == "InClusterQueue"
    assert found["borrows-low"]["preemption_reason"] == "InCohortReclamation"
    fair = CLUSTER | {"settings": {"kueue": {"fair_sharing": True}}}
    wide = preemptibility(fair, RUNNING, ask=asks("x", "q", 4, priority=1))["workloads"]
    assert wide["borrows-low"]["preemption_reason"] == "InCohortFairSharing"


def test_what_protects_everybody() -> None:
    fits = asks("x", "q", 0, priority=1)
    never = asks("x", "q", 2, priority=1) | {"preemption_policy": "Never"}
    assert set(reasons(CLUSTER, RUNNING, ask=fits).values()) == {"ask-fits"}
    assert set(reasons(CLUSTER, RUNNING, ask=never).values()) == {"preemption-policy-never"}
    assert set(reasons(CLUSTER, RUNNING, ask=asks("x", "q", 99)).values()) == {"ask-cannot-preempt"}


def test_policies_that_are_never() -> None:
    of = configuration(queue("co"), queue("q", 2, "co"), queue("borrower", 0, "co"))
    running = [runs("own", "q", 1), runs("other", "borrower", 1)]
    # Reclaim being Never the whole ask has no candidates, but each rule is told.
    assert reasons(of, running, ask=asks("x", "q", 2, priority=1)) == {
        "own": "within-cluster-queue-never",
        "other": "reclaim-within-cohort-never",
    }


def test_the_workload_that_the_ask_belongs_to() -> None:
    ask = asks("x", "q", 2, priority=1) | {"workload": "own-low"}
    assert reasons(CLUSTER, RUNNING, ask=ask)["own-low"] == "own-workload"


def test_waiting_before_preempting_protects_everybody() -> None:
    block = {"within_cluster_queue": "LowerPriority", "trigger_after_workload_waiting_seconds": 1e6}
    of = configuration(queue("q", 1, preemption=block))
    assert reasons(of, [runs("w", "q", 1)], ask=asks("x", "q", 1, priority=1)) == {"w": "waits-before-preempting"}


def test_whether_an_eviction_passes() -> None:
    ask = asks("x", "q", 2, priority=1)
    for names, passes in ((["own-low", "borrows-low"], True), (["own-low", "at-home"], False)):
        found = preemptibility(CLUSTER, RUNNING, ask=ask, evict=[{"workload": name} for name in names])
        assert found["evict_allowed"] is passes
    with pytest.raises(InvalidInput) as refused:
        preemptibility(CLUSTER, RUNNING, ask=ask, evict=[{"workload": "own-low"}, {"workload": "who"}])
    assert [p.pointer for p in refused.value.problems] == ["/evict/1/workload"]


def test_without_an_ask_what_anybody_could_touch() -> None:
    of = configuration(
        queue("co"), queue("q", 2, "co", preemption=ANY), queue("borrower", 1, "co"), queue("owner", 4, "co"),
        queue("alone", 1), queue("inner", 1, preemption={"within_cluster_queue": "LowerPriority"}),
    )  # fmt: skip
    running = [runs(name, name, 2) for name in ("q", "borrower", "owner")] + [
        runs("alone", "alone", 1),
        runs("inner", "inner", 1),
    ]
    assert reasons(of, running) == {
        "q": "no-policy", "borrower": "candidate", "owner": "within-nominal",
        "alone": "no-policy", "inner": "candidate",
    }  # fmt: skip


def test_problems_of_the_ask_point_at_it() -> None:
    wrong = asks("x", "q", 2, node_affinity=[[{"key": "a", "operator": "In"}]])
    with pytest.raises(InvalidInput) as refused:
        preemptibility(CLUSTER, RUNNING, ask=wrong)
    assert [p.pointer for p in refused.value.problems] == ["/ask/tasks/0/node_affinity/0/0/values"]


def test_effective_settings_fill_in_the_defaults() -> None:
    block = {
        "within_cluster_queue": "LowerPriority",
        "waiting_boost": {"grace": "90m", "rate_per_hour": 1, "ceiling": 5},
    }
    of = configuration(queue("q", 1, "implicit", preemption=block, queueing_strategy="StrictFIFO", weight=3))
    decoded = msgspec.convert(of, Configuration)
    found = solve.effective_settings(solve.configure(decoded), None)["queues"]
    assert found["q"] == {
        "role": "cluster_queue", "weight": 3.0, "fair_sharing": False, "within_cluster_queue": "LowerPriority",
        "reclaim_within_cohort": "Never", "borrow_within_cohort": "Never", "max_priority_threshold": None,
        "when_can_borrow": "MayStopSearch", "when_can_preempt": "TryNextFlavor",
        "preference": "BorrowingOverPreemption", "queueing_strategy": "StrictFIFO",
        "waiting_boost": {"grace": 5400, "rate_per_hour": 1.0, "ceiling": 5},
    }  # fmt: skip
    assert found["implicit"] == {"role": "cohort", "weight": 1.0, "fair_sharing": False}
    fair = solve.effective_settings(
        solve.configure(msgspec.convert(of | {"settings": {"kueue": {"fair_sharing": True}}}, Configuration)), None
    )
    assert fair["queues"]["q"]["preemption_strategies"] == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


def test_effective_settings_of_a_knob_without_meaning_are_refused() -> None:
    boost = {"waiting_boost": {"grace": "soon", "rate_per_hour": 1, "ceiling": 5}}
    of = configuration(queue("a", 4, preemption=boost))
    with pytest.raises(InvalidInput) as refused:
        solve.effective_settings(solve.configure(msgspec.convert(of, Configuration)), None)
    assert [problem.pointer for problem in refused.value.problems] == [
        "/configuration/queues/0/kueue/preemption/waiting_boost/grace"
    ]


def test_of_two_dominant_resources_the_first_by_name_is_shown() -> None:
    """Half of the memory and half of the CPU that the cohort could lend."""
    quota = {"memory": {"guaranteed": 4}, "cpu": {"guaranteed": 4}}
    none = {name: {"guaranteed": 0} for name in quota}
    of = configuration({"name": "co", "quota": quota}, {"name": "a", "parent": "co", "quota": none})
    both = {"memory": 2, "cpu": 2}
    task = {"name": "main", "requests": both, "flavors": dict.fromkeys(both, "default")}
    found = shares(of, [runs("w", "a", 2) | {"tasks": [task]}])
    assert (found["a"]["dominant_resource"], found["a"]["share"]) == ("cpu", 500)


def test_what_nobody_can_lend_makes_no_share() -> None:
    """Nobody has quota of cpu: what is used is borrowed, and of nothing."""
    found = shares(configuration(queue("co"), queue("a", 0, "co")), [runs("w", "a", 2)])["a"]
    assert (found["borrowed"], found["lendable"], found["share"]) == ({"cpu": 2}, {"cpu": 0}, 0)
    assert "dominant_resource" not in found
