"""Messages, shortages and explanations: what a person is told, and that it is true."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kueue.cluster import (
    NOW,
    asks,
    at,
    configuration,
    flavors,
    one,
    queue,
    runs,
    victims,
)  # fmt: skip

LOWER = {"within_cluster_queue": "LowerPriority"}
RECLAIM = {"reclaim_within_cohort": "Any"}
PINNED = {"flavors": {"cpu": "default"}}


def ask(queue_name: str, cpu: float, priority: int = 0, **more: Any) -> dict[str, Any]:
    return asks("ask", queue_name, cpu, priority, **PINNED, **more)


def rules(decision: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["workload"]: (c["verdict"], c["rule"]) for c in decision["explanation"]["candidates"]}


def changes(decision: dict[str, Any]) -> list[tuple[str, str, float, float]]:
    return [(c["queue"], c["field"], c["current"], c["needed"]) for c in decision["explanation"]["smallest_change"]]


def test_conditions_of_a_victim_say_for_whom_and_why() -> None:
    of = configuration(
        queue("root"), queue("team", parent="root"), queue("q", 4, "team", preemption=RECLAIM), queue("r", 0, "root")
    )  # fmt: skip
    found = one(of, [runs("w", "r", 4)], ask("q", 4) | {"uid": "5515f7da"})
    message = (
        "Preempted to accommodate a workload (UID: 5515f7da) due to reclamation within the cohort; "
        "preemptor path: /root/team/q; preemptee path: /root/r"
    )
    assert found["victims"] == [
        {
            "workload": "w", "queue": "r", "reason": "InCohortReclamation", "message": message, "freed": {"cpu": 4},
            "conditions": [
                {"type": "Evicted", "status": "True", "reason": "Preempted", "message": message,
                 "last_transition_time": NOW},
                {"type": "Preempted", "status": "True", "reason": "InCohortReclamation", "message": message,
                 "last_transition_time": NOW},
            ],
        }
    ]  # fmt: skip


def test_in_the_own_queue_the_message_says_so_and_an_ask_without_uid_is_unknown() -> None:
    pending = ask("q", 4, 1)
    del pending["uid"]
    found = one(configuration(queue("q", 4, preemption=LOWER)), [runs("w", "q", 4)], pending)
    assert found["victims"][0]["message"].startswith(
        "Preempted to accommodate a workload (UID: UNKNOWN) in the ClusterQueue; preemptor path: /q"
    )


def test_the_ask_s_condition_names_what_is_short() -> None:
    of = configuration(queue("q", 4))
    found = one(of, [runs("w", "q", 3)], ask("q", 1.5))
    assert found["shortages"] == [
        {"resource": "cpu", "flavor": "default", "queue": "q", "requested": 1.5, "available": 1, "short": 0.5}
    ]
    condition = found["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("QuotaReserved", "False", "Pending")
    assert condition["message"] == "insufficient unused quota for cpu in flavor default, 0.5 more needed"


def test_an_ask_with_free_flavors_is_told_what_is_short_in_each() -> None:
    of = configuration(queue("q") | flavors(a=1, b=1), flavors=[{"name": "a"}, {"name": "b"}])
    found = one(of, [runs("w", "q", 1, flavor="a")], asks("ask", "q", 2))
    assert [(s["flavor"], s["short"]) for s in found["shortages"]] == [("a", 2), ("b", 1)]


def test_past_every_quota_a_pinned_ask_waits_and_is_told() -> None:
    """Whether another flavor could have it is not for a pinned ask to say: infeasible is kept for free flavors."""
    of = configuration(queue("c", 2), queue("q", 4, "c"))
    found = one(of, [], ask("q", 7), explain="summary")
    assert found["outcome"] == "wait"
    assert "can never have more than 6" in found["conditions"][0]["message"]
    assert "could have 6 at most" in found["explanation"]["blocker"]
    assert one(of, [], asks("ask", "q", 7))["outcome"] == "infeasible"


def test_every_workload_has_a_verdict_with_its_rule() -> None:
    of = configuration(
        queue("c"), queue("q", 4, "c", preemption=LOWER | RECLAIM), queue("borrower", 1, "c"), queue("meek", 3, "c"),
        queue("elsewhere", 9),
    )  # fmt: skip
    running = [
        runs("equal", "q", 1, 5), runs("low", "q", 1, 0), runs("big", "borrower", 3, 9, started_at=at("10:10")),
        runs("small", "borrower", 1, 9), runs("quiet", "meek", 2, 0), runs("far", "elsewhere", 1),
        runs("fixed", "q", 0, 0, preemptible=False),
    ]  # fmt: skip
    found = one(of, running, ask("q", 2, 5), explain="full")
    assert victims(found) == ["big"]
    assert rules(found) == {
        "equal": ("protected", "priority"),
        "low": ("not-needed", "candidate-not-reached"),
        "big": ("victim", "InCohortReclamation"),
        "small": ("not-needed", "candidate-not-reached"),
        "quiet": ("protected", "within-nominal"),
        "far": ("out-of-reach", "outside-cohort"),
        "fixed": ("protected", "not-preemptible"),
    }
    by_id = {c["workload"]: c["numbers"] for c in found["explanation"]["candidates"]}
    assert by_id["equal"] == {"priority": 5, "policy": "LowerPriority", "ask_priority": 5}
    assert by_id["quiet"]["usage"] == {"default/cpu": {"used": 2, "quota": 3}}
    assert by_id["big"]["after"] == {"default/cpu": {"requested": 2, "available": 3}}


def test_a_summary_groups_the_same_verdicts() -> None:
    of = configuration(queue("q", 9, preemption=LOWER))
    running = [runs(f"w{i}", "q", 1, 9) for i in range(8)] + [runs("low", "q", 1)]
    found = one(of, running, ask("q", 1, 5), explain="summary")
    groups = {(g["verdict"], g["rule"]): (g["count"], g["examples"]) for g in found["explanation"]["groups"]}
    assert groups == {
        ("protected", "priority"): (8, ["w0", "w1", "w2", "w3", "w4"]),
        ("victim", "InClusterQueue"): (1, ["low"]),
    }
    assert found["explanation"]["headline"] == "ask runs in q once 1 workload(s) of q stop"


def test_spared_and_failed_candidates_are_told_apart() -> None:
    of = configuration(queue("q", 10, preemption=LOWER))
    running = [runs("a", "q", 1, 0), runs("b", "q", 3, 1), runs("c", "q", 4, 2), runs("high", "q", 2, 9)]
    spared = rules(one(of, running, ask("q", 6, 5), explain="full"))
    assert spared == {
        "a": ("put-back", "still-fits"), "b": ("victim", "InClusterQueue"), "c": ("victim", "InClusterQueue"),
        "high": ("protected", "priority"),
    }  # fmt: skip
    failed = rules(one(of, running, ask("q", 9, 5), explain="full"))
    assert {failed[name] for name in "abc"} == {("not-needed", "not-enough")}


def test_a_second_attempt_forgets_what_the_first_said() -> None:
    """Without borrowing not even all three are enough. With it loan may not go, and low does; mid is not needed."""
    of = configuration(queue("c", 3), queue("q", 3, "c", preemption=LOWER | RECLAIM), queue("r", 0, "c"))
    running = [runs("low", "q", 1, 0), runs("mid", "q", 1, 1), runs("loan", "r", 1, 9)]
    found = one(of, running, ask("q", 4, 5), explain="full")
    assert [s["numbers"]["borrowing"] for s in found["explanation"]["steps"] if s["rule"] == "attempt"] == [False, True]
    assert rules(found) == {
        "low": ("victim", "InClusterQueue"), "mid": ("not-needed", "candidate-not-reached"),
        "loan": ("protected", "ask-would-borrow"),
    }  # fmt: skip


def test_whom_a_full_size_would_have_stopped_is_no_matter_for_a_smaller_one() -> None:
    """4 do not fit, and high may not be stopped for them; 2 fit as it is."""
    of = configuration(queue("q", 4, preemption=LOWER))
    found = one(of, [runs("high", "q", 2, 9)], asks("ask", "q", 1, 5, count=4, min_count=1), explain="full")
    assert (found["outcome"], found["counts"]) == ("admit", {"main": 2})
    assert rules(found) == {}
    running = [runs("high", "q", 2, 9), runs("low", "q", 1)]
    smaller = one(of, running, asks("ask", "q", 1, 5, count=4, min_count=2), explain="full")
    assert (smaller["outcome"], smaller["counts"]) == ("preempt", {"main": 2})
    assert rules(smaller) == {"high": ("protected", "priority"), "low": ("victim", "InClusterQueue")}


def test_an_ask_that_never_preempts_protects_everybody() -> None:
    of = configuration(queue("q", 4, preemption=LOWER))
    never = one(of, [runs("w", "q", 4)], ask("q", 1, 5, preemption_policy="Never"), explain="full")
    assert rules(never) == {"w": ("protected", "preemption-policy-never")}
    assert never["explanation"]["blocker"].endswith("(4 in 1 workload(s)) could only go for an ask that preempts")


def test_a_fair_search_that_fails_says_of_everybody_why() -> None:
    """w's queue r is at nominal quota once v is gone; that w was not looked at any more is no lack of need."""
    of = configuration(queue("c"), queue("q", 3, "c", preemption=RECLAIM), queue("r", 2, "c"), fair=True)
    running = [runs("v", "r", 1, started_at=at("11:00")), runs("w", "r", 2)]
    found = one(of, running, ask("q", 4), explain="full")
    assert found["outcome"] == "wait"
    assert "candidate-not-reached" not in {rule for _, rule in rules(found).values()}


def test_nobody_low_enough_is_said_without_looking_for_candidates() -> None:
    both = LOWER | {"reclaim_within_cohort": "LowerPriority"}
    of = configuration(queue("c"), queue("q", 4, "c", preemption=both), queue("r", 0, "c"))
    found = one(of, [runs("w", "q", 1, 7), runs("x", "r", 3, 8)], ask("q", 1, 7), explain="full")
    (step,) = [s for s in found["explanation"]["steps"] if s["rule"] == "nobody-low-enough"]
    assert step["numbers"] == {"ask_priority": 7, "lowest_priority_in_queue": 7, "lowest_priority_in_cohort": 8}
    assert not [s for s in found["explanation"]["steps"] if s["rule"] == "attempt"]
    lower = one(of, [runs("w", "q", 1, 7), runs("x", "r", 3, 6)], ask("q", 1, 7), explain="full")
    assert not [s for s in lower["explanation"]["steps"] if s["rule"] == "nobody-low-enough"]


def test_a_wait_names_who_holds_what_is_short() -> None:
    of = configuration(queue("c"), queue("q", 2, "c", preemption=LOWER), queue("r", 6, "c"))
    found = one(of, [runs("own", "q", 1, 9), runs("other", "r", 7, 0)], ask("q", 2, 5), explain="summary")
    assert found["explanation"]["blocker"] == (
        "default/cpu: 2 more needed; what cohort c has in all is used up; most of it (7 in 1 workload(s)) "
        "runs in other queues, and reclaimWithinCohort is Never"
    )


def test_the_smallest_change_may_be_a_borrowing_limit() -> None:
    of = configuration(queue("c", 9), queue("q", {"guaranteed": 2, "borrowing_limit": 1}, "c"))
    found = one(of, [], ask("q", 5), explain="summary")
    assert changes(found) == [("q", "borrowing_limit", 1, 3), ("q", "guaranteed", 2, 4)]
    assert "even with nothing running" in found["explanation"]["blocker"]


def test_the_smallest_change_may_be_a_lending_limit() -> None:
    of = configuration(queue("c"), queue("q", 1, "c"), queue("rich", {"guaranteed": 9, "lending_limit": 2}, "c"))
    assert ("rich", "lending_limit", 2, 4) in changes(one(of, [], ask("q", 5), explain="summary"))


def test_the_smallest_change_may_open_the_way_to_preemption() -> None:
    """q lacks 3, but one more of nominal quota already makes the ask a reclaim: r runs 4 on a quota of 1."""
    of = configuration(queue("c"), queue("q", 2, "c", preemption=RECLAIM), queue("r", 1, "c"))
    found = one(of, [runs("w", "r", 3)], ask("q", 3), explain="summary")
    assert found["outcome"] == "wait"
    assert changes(found)[0] == ("q", "guaranteed", 2, 3)


def test_two_resources_short_need_two_changes_together() -> None:
    group = {
        "resource_groups": [
            {
                "resources": ["cpu", "memory"],
                "flavors": [{"name": "f", "quota": {"cpu": {"guaranteed": 1}, "memory": {"guaranteed": 10}}}],
            }
        ]
    }
    task = {"name": "main", "requests": {"cpu": 3, "memory": 40}, "flavors": {"cpu": "f", "memory": "f"}}
    of = configuration(queue("q") | group, flavors=[{"name": "f"}])
    found = one(of, [], ask("q", 0) | {"tasks": [task]}, explain="summary")
    assert changes(found) == [("q", "guaranteed", 1, 3), ("q", "guaranteed", 10, 40)]
    assert all("together" in c["detail"] for c in found["explanation"]["smallest_change"])


def test_without_explain_there_is_no_explanation() -> None:
    assert "explanation" not in one(configuration(queue("q", 1)), [], ask("q", 2))


def test_cohorts_hold_no_workloads_and_flavors_must_be_known() -> None:
    of = configuration(queue("c"), queue("q", 1, "c"))
    with pytest.raises(InvalidInput) as found:
        one(of, [runs("w", "q", 1, flavor="nowhere"), runs("v", "q", 1, flavor="never")], ask("q", 1))
    assert [p.pointer for p in found.value.problems] == [
        "/state/workloads/0/tasks/0/flavors/cpu", "/state/workloads/1/tasks/0/flavors/cpu",
    ]  # fmt: skip
    with pytest.raises(InvalidInput) as cohort:
        one(of, [runs("w", "c", 1)], ask("q", 1))
    assert [p.pointer for p in cohort.value.problems] == ["/state/workloads/0/queue"]
    with pytest.raises(InvalidInput) as asked:
        one(of, [], ask("c", 1))
    assert [p.pointer for p in asked.value.problems] == ["/asks/0/queue"]


@pytest.mark.parametrize(
    ("created", "verdict", "rule"),
    [("10:59", "protected", "not-newer"), ("11:00", "protected", "not-newer"), ("11:01", "victim", "InClusterQueue")],
)
def test_only_what_was_made_after_the_ask_is_newer(created: str, verdict: str, rule: str) -> None:
    """The ask was made at 11:00 (LowerOrNewerEqualPriority)."""
    of = configuration(queue("q", 4, preemption={"within_cluster_queue": "LowerOrNewerEqualPriority"}))
    found = one(of, [runs("w", "q", 4, created_at=at(created))], ask("q", 4), explain="full")
    assert rules(found) == {"w": (verdict, rule)}


def test_a_workload_whose_going_would_be_too_much_stays_for_a_smaller_one() -> None:
    """b borrows all 8 (1000), 2 of them without "big" (250), 6 without "small" (750). The ask brings a, of half the
    weight, to 500: by final share "big" may not go, "small" may, and that is enough."""
    of = configuration(
        queue("co", 8), queue("a", 0, "co", weight=0.5, preemption=RECLAIM), queue("b", 0, "co"), fair=True
    )
    running = [runs("big", "b", 6, 0), runs("small", "b", 2, 1)]
    found = one(of, running, ask("a", 2, 5), explain="full")
    assert victims(found) == ["small"]
    assert rules(found) == {"big": ("protected", "share-too-low"), "small": ("victim", "InCohortFairSharing")}


def test_most_of_what_is_short_is_counted_by_those_who_use_it() -> None:
    """ "none" uses nothing of what is short: 3 are held, by one workload."""
    two = {"cpu": {"guaranteed": 4}, "memory": {"guaranteed": 4}}
    of = configuration({"name": "q", "quota": two, "kueue": {"preemption": LOWER}})
    none = runs("none", "q", 0, 9) | {
        "tasks": [{"name": "m", "requests": {"memory": 1}, "flavors": {"memory": "default"}}]
    }
    found = one(of, [runs("w", "q", 3, 9), none], ask("q", 2, 5), explain="full")
    assert "most of it (3 in 1 workload(s))" in found["explanation"]["blocker"]


@pytest.mark.parametrize(("weight", "ties"), [(1, ["left", "right"]), (2, None)])
def test_cohorts_of_equal_share_are_named(weight: int, ties: list[str] | None) -> None:
    """Kueue goes into either by chance, and somebody else would be the victim."""
    of = configuration(
        queue("root", role="cohort"), queue("left", parent="root"),
        queue("right", parent="root", weight=weight), queue("l", 0, "left"), queue("r", 0, "right"),
        queue("own", 4, "root", preemption=RECLAIM), fair=True,
    )  # fmt: skip
    found = one(of, [runs("in-l", "l", 2), runs("in-r", "r", 2)], ask("own", 2), explain="summary")
    assert (victims(found), found["explanation"].get("ties")) == (["in-l"], ties)
    told = [step["detail"] for step in found["explanation"]["steps"] if step["rule"] == "cohorts-tie"]
    assert bool(told) is bool(ties)
    assert all("left, right have the same share" in one for one in told)
