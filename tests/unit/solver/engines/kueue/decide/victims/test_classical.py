"""Classical preemption, rule by rule, on clusters small enough to work out by hand."""

from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, decide, one, queue, runs, victims

LOWER = {"within_cluster_queue": "LowerPriority"}
NEWER = {"within_cluster_queue": "LowerOrNewerEqualPriority"}
RECLAIM = {"reclaim_within_cohort": "Any"}
RECLAIM_LOWER = {"reclaim_within_cohort": "LowerPriority"}
PINNED = {"flavors": {"cpu": "default"}}


def reasons(decision: dict[str, Any]) -> list[str]:
    return [v["reason"] for v in decision["victims"]]


def ask(queue_name: str, cpu: float, priority: int = 0, **more: Any) -> dict[str, Any]:
    return asks("ask", queue_name, cpu, priority, **PINNED, **more)


def test_what_fits_stops_nobody() -> None:
    found = one(configuration(queue("q", 4, preemption=LOWER)), [runs("w", "q", 3)], ask("q", 1, 9))
    assert found["outcome"] == "admit"
    assert found["victims"] == []
    assert found["conditions"][0] | {"last_transition_time": ""} == {
        "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved",
        "message": "Quota reserved in ClusterQueue q", "last_transition_time": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "priority", "created", "goes"),
    [
        ("Never", 1, "11:30", False),
        ("LowerPriority", 1, "11:30", True),
        ("LowerPriority", 2, "11:30", False),
        ("LowerOrNewerEqualPriority", 2, "11:30", True),
        ("LowerOrNewerEqualPriority", 2, "11:00", False),
        ("LowerOrNewerEqualPriority", 2, "10:30", False),
        ("LowerOrNewerEqualPriority", 3, "11:30", False),
    ],
)
def test_policy_in_the_own_queue(policy: str, priority: int, created: str, goes: bool) -> None:
    of = configuration(queue("q", 4, preemption={"within_cluster_queue": policy}))
    found = one(of, [runs("w", "q", 4, priority, created_at=at(created))], ask("q", 1, 2))
    assert victims(found) == (["w"] if goes else [])
    assert found["outcome"] == ("preempt" if goes else "wait")


def test_a_workload_of_unknown_age_is_older_than_any() -> None:
    of = configuration(queue("q", 4, preemption=NEWER))
    ageless = runs("w", "q", 4)
    del ageless["created_at"]
    assert one(of, [ageless], ask("q", 1))["outcome"] == "wait"
    pending = ask("q", 1)
    del pending["created_at"]
    assert victims(one(of, [runs("w", "q", 4)], pending)) == ["w"]


def test_order_is_evicted_then_priority_then_latest_start_then_uid() -> None:
    of = configuration(queue("q", 6, preemption=LOWER))
    running = [
        runs("c", "q", 1, 0, started_at=at("10:05")),
        runs("b", "q", 1, 0, started_at=at("10:30")),
        runs("a", "q", 1, 0, started_at=at("10:05")),
        runs("high", "q", 1, 4, evicted=True),
        runs("low", "q", 1, -1),
        runs("mid", "q", 1, 1),
    ]
    # One unit at a time, so that nobody is put back: each is needed.
    assert [victims(one(of, running, ask("q", n, 9))) for n in (1, 2, 6)] == [
        ["high"],
        ["high", "low"],
        ["high", "low", "b", "a", "c", "mid"],
    ]


def test_unknown_start_counts_as_now() -> None:
    of = configuration(queue("q", 2, preemption=LOWER))
    unknown = runs("unknown", "q", 1)
    del unknown["started_at"]
    assert victims(one(of, [runs("w", "q", 1, started_at=at("11:59")), unknown], ask("q", 1, 1))) == ["unknown"]


def test_whoever_is_not_needed_is_put_back_and_the_last_takes_the_place() -> None:
    """1, 3 and 4 go for 6; without the 1 there is still room for it, and the list closes over it from the end."""
    of = configuration(queue("q", 10, preemption=LOWER))
    running = [runs("a", "q", 1, 0), runs("b", "q", 3, 1), runs("c", "q", 4, 2), runs("high", "q", 2, 9)]
    assert victims(one(of, running, ask("q", 6, 5))) == ["c", "b"]
    assert victims(one(of, running, ask("q", 5, 5))) == ["a", "c"]
    assert victims(one(of, running, ask("q", 4, 5))) == ["a", "b"]


def test_borrowers_go_before_the_own_queue_even_at_higher_priority() -> None:
    of = configuration(queue("c"), queue("q", 6, "c", preemption=LOWER | RECLAIM), queue("other", 2, "c"))
    running = [runs("own", "q", 4, 0), runs("borrower", "other", 4, 9)]
    found = one(of, running, ask("q", 2, 5))
    assert (victims(found), reasons(found)) == (["borrower"], ["InCohortReclamation"])


def test_reclaiming_from_lower_priority_only() -> None:
    of = configuration(queue("c"), queue("q", 6, "c", preemption=RECLAIM_LOWER), queue("other", 2, "c"))
    running = [runs("high", "other", 4, 5), runs("low", "other", 4, 4)]
    assert victims(one(of, running, ask("q", 2, 5))) == ["low"]


def test_a_queue_within_its_nominal_quota_loses_nothing() -> None:
    of = configuration(queue("c", 2), queue("q", 6, "c", preemption=RECLAIM), queue("other", 4, "c"))
    found = one(of, [runs("own", "q", 6), runs("w", "other", 4), runs("w2", "q", 2)], ask("q", 1, 9))
    assert (found["outcome"], found["victims"]) == ("wait", [])


def test_a_queue_that_is_back_within_quota_is_left_alone() -> None:
    """x uses 3 of 2: after one of its workloads it is back within quota, so y has to give the rest."""
    of = configuration(
        queue("c"), queue("q", 4, "c", preemption=RECLAIM), queue("x", 2, "c"), queue("y", 2, "c")
    )  # fmt: skip
    running = [
        runs("x1", "x", 1, 0), runs("x2", "x", 2, 0, started_at=at("10:01")), runs("y1", "y", 2, 5),
        runs("y2", "y", 3, 5),
    ]  # fmt: skip
    assert victims(one(of, running, ask("q", 4, 0))) == ["x2", "y1"]


def test_without_quota_of_its_own_only_own_workloads_may_go_while_borrowing() -> None:
    of = configuration(queue("c"), queue("q", 2, "c", preemption=LOWER | RECLAIM), queue("other", 4, "c"))
    running = [runs("own", "q", 2, 0), runs("own2", "q", 1, 0), runs("w", "other", 3, 0)]
    found = one(of, running, ask("q", 1, 5))
    assert (victims(found), reasons(found)) == (["own"], ["InClusterQueue"])
    assert found["borrowing"] is True


@pytest.mark.parametrize(("threshold", "goes"), [(None, True), (3, True), (2, False)])
def test_borrow_within_cohort_takes_low_priorities_while_borrowing(threshold: int | None, goes: bool) -> None:
    """q has no quota at all; other runs 3 at priority 3 on a quota of 2."""
    borrow: dict[str, Any] = {"policy": "LowerPriority"}
    if threshold is not None:
        borrow["max_priority_threshold"] = threshold
    preemption = RECLAIM | {"borrow_within_cohort": borrow}
    of = configuration(queue("c", 1), queue("q", 0, "c", preemption=preemption), queue("other", 2, "c"))
    found = one(of, [runs("w", "other", 3, 3)], ask("q", 1, 5))
    assert reasons(found) == (["InCohortReclaimWhileBorrowing"] if goes else [])


def test_borrow_within_cohort_does_not_take_the_same_priority() -> None:
    preemption = RECLAIM | {"borrow_within_cohort": {"policy": "LowerPriority"}}
    of = configuration(queue("c", 1), queue("q", 0, "c", preemption=preemption), queue("other", 2, "c"))
    assert one(of, [runs("w", "other", 3, 5)], ask("q", 1, 5))["outcome"] == "wait"


def test_a_higher_priority_is_reclaimed_where_the_ask_ends_within_nominal() -> None:
    """borrowWithinCohort is on and its workload too high: the second attempt, without borrowing, may take it."""
    preemption = RECLAIM | {"borrow_within_cohort": {"policy": "LowerPriority"}}
    of = configuration(queue("c"), queue("q", 2, "c", preemption=preemption), queue("other", 2, "c"))
    found = one(of, [runs("own", "q", 1, 9), runs("w", "other", 3, 9)], ask("q", 1, 5))
    assert reasons(found) == ["InCohortReclamation"]


def test_hierarchical_advantage_reclaims_while_the_queue_itself_borrows() -> None:
    """q has nothing, but its team has 4 which nobody of the team uses: outsiders who took it must go."""
    of = configuration(
        queue("root"), queue("team", 4, "root"), queue("q", 0, "team", preemption=RECLAIM), queue("other", 2, "root"),
    )  # fmt: skip
    found = one(of, [runs("w", "other", 6, 9)], ask("q", 3, 0))
    assert (victims(found), reasons(found)) == (["w"], ["InCohortReclamation"])
    flat = configuration(queue("root", 4), queue("q", 0, "root", preemption=RECLAIM), queue("other", 2, "root"))
    assert one(flat, [runs("w", "other", 6, 9)], ask("q", 3, 0))["outcome"] == "wait"


def test_a_subtree_within_its_quota_is_left_alone_as_a_whole() -> None:
    """inner borrows from its sibling inside team; team as a whole does not borrow."""
    of = configuration(
        queue("root"), queue("team", 0, "root"), queue("inner", 1, "team"), queue("sibling", 3, "team"),
        queue("q", 4, "root", preemption=RECLAIM), queue("other", 0, "root"),
    )  # fmt: skip
    running = [runs("inner-w", "inner", 4, 0), runs("other-w", "other", 3, 9)]
    assert victims(one(of, running, ask("q", 3, 0))) == ["other-w"]


def test_only_users_of_the_contested_flavor_are_candidates() -> None:
    groups = {
        "resource_groups": [
            {"resources": ["cpu"], "flavors": [{"name": "default", "quota": {"cpu": {"guaranteed": 4}}}]},
            {"resources": ["memory"], "flavors": [{"name": "default", "quota": {"memory": {"guaranteed": 9}}}]},
        ]
    }
    of = configuration(queue("q", preemption=LOWER) | groups, flavors=[{"name": "default"}])
    memory = {"tasks": [{"name": "main", "requests": {"memory": 4}, "flavors": {"memory": "default"}}]}
    found = one(of, [runs("idle", "q", 0, -5) | memory, runs("busy", "q", 4, 0)], ask("q", 1, 5))
    assert victims(found) == ["busy"]
    assert found["victims"][0]["freed"] == {"cpu": 4}


def test_a_zero_amount_of_the_contested_flavor_still_makes_a_candidate() -> None:
    of = configuration(queue("q", 4, preemption=LOWER))
    found = one(of, [runs("nothing", "q", 0, -5), runs("busy", "q", 4, 0)], ask("q", 1, 5), explain="full")
    assert victims(found) == ["busy"]
    verdicts = {c["workload"]: c["verdict"] for c in found["explanation"]["candidates"]}
    assert verdicts == {"nothing": "put-back", "busy": "victim"}


def test_equal_uids_go_by_nearness_then_id() -> None:
    of = configuration(
        queue("root"), queue("team", 0, "root"), queue("q", 4, "team", preemption=RECLAIM),
        queue("near", 0, "team"), queue("far", 0, "root"),
    )  # fmt: skip
    running = [runs("b", "far", 1), runs("a", "far", 1), runs("z", "near", 2)]
    for workload in running:
        del workload["uid"]
    for order in (running, running[::-1]):
        assert victims(one(of, order, ask("q", 4))) == ["z", "a", "b"]


def test_marked_workloads_and_the_ask_s_own_are_not_touched() -> None:
    of = configuration(queue("q", 4, preemption=LOWER))
    running = [runs("fixed", "q", 2, preemptible=False), runs("self", "q", 2)]
    assert one(of, running, ask("q", 1, 9, workload="self"))["outcome"] == "wait"
    assert victims(one(of, running, ask("q", 1, 9))) == ["self"]
    assert one(of, running, ask("q", 1, 9, preemption_policy="Never"))["outcome"] == "wait"


def test_the_limit_field_bounds_borrowing() -> None:
    of = configuration(queue("c", 9), queue("q", {"guaranteed": 2, "limit": 5}, "c"))
    assert one(of, [], ask("q", 5))["outcome"] == "admit"
    assert one(of, [], ask("q", 6))["outcome"] == "wait"


def test_a_request_of_0_takes_no_advantage_away() -> None:
    """q borrows gpu. Its ask wants 1 cpu of the 2 that q owns, which makes it a reclaim of its own (a resource asked
    for 0 times doesn't count); were the 0 gpu wanted, q would not be within quota, and it would be a loan."""
    preemption = {"reclaim_within_cohort": "LowerPriority", "borrow_within_cohort": {"policy": "LowerPriority"}}
    of = configuration(
        {"name": "co", "quota": {"cpu": {"guaranteed": 0}, "gpu": {"guaranteed": 1}}},
        {
            "name": "q", "parent": "co", "kueue": {"preemption": preemption},
            "quota": {"cpu": {"guaranteed": 2}, "gpu": {"guaranteed": 0}},
        },
        {"name": "other", "parent": "co", "quota": {"cpu": {"guaranteed": 0}, "gpu": {"guaranteed": 0}}},
    )  # fmt: skip
    gpu = {"name": "main", "requests": {"gpu": 1}, "flavors": {"gpu": "default"}}
    running = [runs("mine", "q", 0, priority=5) | {"tasks": [gpu]}, runs("low", "other", 2)]
    ask = asks("x", "q", 1, priority=1)
    ask["tasks"][0]["requests"]["gpu"] = 0
    for flavors in (None, {"cpu": "default", "gpu": "default"}):
        ask["tasks"][0]["flavors"] = flavors
        (victim,) = one(of, running, ask)["victims"]
        assert (victim["workload"], victim["reason"]) == ("low", "InCohortReclamation")


def test_local_quota_to_spare_does_not_hide_that_the_cohort_borrows() -> None:
    """The ask fits cpu into what q keeps for itself and gpu into what ``mid`` owns. But ``mid`` borrows cpu, for
    ``other``: it has no room for the ask, so nothing outside is its own to reclaim, and borrowing takes nobody away.

    Kueue: what q could keep beyond the request does not go up (QuantitiesFitInQuota)."""
    of = configuration(
        {"name": "root", "quota": {"cpu": {"guaranteed": 1}}},
        {"name": "mid", "parent": "root", "quota": {"gpu": {"guaranteed": 1}}},
        {
            "name": "q", "parent": "mid", "kueue": {"preemption": {"reclaim_within_cohort": "Any"}},
            "quota": {"cpu": {"guaranteed": 4, "lending_limit": 0}, "gpu": {"guaranteed": 0}},
        },
        {"name": "other", "parent": "mid", "quota": {"cpu": {"guaranteed": 0}}},
        {"name": "outside", "parent": "root", "quota": {"gpu": {"guaranteed": 0}}},
    )  # fmt: skip
    gpu = {"name": "main", "requests": {"gpu": 1}, "flavors": {"gpu": "default"}}
    loan = runs("loan", "outside", 0) | {"tasks": [gpu]}
    ask = asks("x", "q", 1, priority=1)
    ask["tasks"][0]["requests"]["gpu"] = 1
    assert victims(one(of, [loan], ask)) == ["loan"]
    assert one(of, [loan, runs("w", "other", 1)], ask)["outcome"] == "wait"


@pytest.mark.parametrize("mode", ["independent", "cycle"])
def test_whom_one_ask_spares_as_its_own_no_other_spares(mode: str) -> None:
    """``low`` belongs to what runs, and is asked before; ``high`` takes its place."""
    preempts = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
    of = configuration(
        queue("root"), queue("a", 2, "root", preemption=preempts), queue("b", 2, "root", preemption=preempts)
    )
    running = [runs("own", "a", 4)]
    pending = [asks("low", "a", 4, 1, workload="own"), asks("high", "b", 2, 2)]
    for order in (pending, pending[::-1]):
        found = decide(of, running, order, mode=mode)["decisions"]
        assert victims(found["low"]) == []
        assert victims(found["high"]) == ["own"]
