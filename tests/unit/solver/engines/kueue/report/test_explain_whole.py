"""Whole explanations, word for word and number for number: one classical, one of fair sharing."""

from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, one, queue, runs

PINNED = {"flavors": {"cpu": "default"}}


def test_a_classical_explanation() -> None:
    """q owns 4, borrows r's work back: late goes (1), then big (3); then late is not needed."""
    preemption = {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}
    of = configuration(queue("co"), queue("q", 4, "co", preemption=preemption), queue("r", 1, "co"))
    running = [runs("late", "r", 1, 2, started_at=at("11:00")), runs("big", "r", 4, 2), runs("mine", "q", 0, 9)]
    found = one(of, running, asks("x", "q", 3, 5, **PINNED), explain="full")
    told = found["explanation"]
    assert told["headline"] == "x runs in q once 1 workload(s) of r stop"
    assert told["steps"] == [
        {
            "rule": "needs-preemption", "detail": "default/cpu: more is requested than available",
            "numbers": {"requested": 3, "available": 0, "used": 0, "nominal": 4},
        },
        {
            "rule": "attempt", "detail": "take candidates in order, allowing borrowing", "numbers": {"borrowing": True},
        },
    ]  # fmt: skip
    assert told["candidates"] == [
        {
            "workload": "late", "queue": "r", "verdict": "put-back", "rule": "still-fits",
            "detail": "the ask fits with it back", "numbers": {"priority": 2},
        },
        {
            "workload": "big", "queue": "r", "verdict": "victim", "rule": "InCohortReclamation",
            "detail": "number 2 to go; now the ask fits",
            "numbers": {
                "priority": 2, "order": 2, "borrowing": True,
                "after": {"default/cpu": {"requested": 3, "available": 5}},
            },
        },
        {
            "workload": "mine", "queue": "q", "verdict": "protected", "rule": "priority",
            "detail": "priority 9 against the ask's 5: only a lower priority may go",
            "numbers": {"priority": 9, "policy": "LowerPriority", "ask_priority": 5},
        },
    ]  # fmt: skip


def test_an_explanation_of_fair_sharing() -> None:
    """b borrows all 8, a share of 1000, and 4 without most, or 500; the ask brings a to 3, or 375."""
    of = configuration(
        queue("co", 8), queue("a", 0, "co", preemption={"reclaim_within_cohort": "Any"}), queue("b", 0, "co"), fair=True
    )
    of["settings"]["kueue"]["preemption_strategies"] = ["LessThanOrEqualToFinalShare"]
    running = [runs("most", "b", 4, started_at=at("11:00")), runs("first", "b", 3), runs("second", "b", 1, 1)]
    found = one(of, running, asks("x", "a", 3, 5, **PINNED), explain="full")
    told = found["explanation"]
    assert told["steps"][1:] == [
        {
            "rule": "round", "detail": "queues by share; candidates of others by LessThanOrEqualToFinalShare",
            "numbers": {"strategy": "LessThanOrEqualToFinalShare"},
        }
    ]  # fmt: skip
    sides = {"common_ancestor": "co", "ask_side": "a", "queue_side": "b", "ask_share": 375.0}
    assert told["candidates"] == [
        {
            "workload": "most", "queue": "b", "verdict": "victim", "rule": "InCohortFairSharing",
            "detail": "number 1 to go; now the ask fits",
            "numbers": sides | {
                "priority": 0, "order": 1, "after": {"default/cpu": {"requested": 3, "available": 4}},
                "share_before": 1000.0, "share_after": 500.0,
            },
        },
        {
            "workload": "first", "queue": "b", "verdict": "not-needed", "rule": "candidate-not-reached",
            "detail": "it could go, but was not needed before the ask fitted", "numbers": {"priority": 0},
        },
        {
            "workload": "second", "queue": "b", "verdict": "not-needed", "rule": "candidate-not-reached",
            "detail": "it could go, but was not needed before the ask fitted", "numbers": {"priority": 1},
        },
    ]  # fmt: skip
    waits = one(of, [running[0], runs("half", "a", 4)], asks("x", "a", 1, 5, **PINNED), explain="full")
    assert waits["explanation"]["candidates"][0] == {
        "workload": "most", "queue": "b", "verdict": "protected", "rule": "share-too-low",
        "detail": "share of the ask's side 625.0 against 500.0 before and 0.0 after, below co: fails "
        "LessThanOrEqualToFinalShare",
        "numbers": sides | {
            "priority": 0, "ask_share": 625.0, "share_before": 500.0, "share_after": 0.0,
            "strategy": "LessThanOrEqualToFinalShare",
        },
    }  # fmt: skip


def test_a_share_of_weight_0_is_infinite() -> None:
    of = configuration(
        queue("co", 2), queue("a", 0, "co", preemption={"reclaim_within_cohort": "Any"}),
        queue("b", 0, "co", weight=0), fair=True,
    )  # fmt: skip
    found = one(of, [runs("w", "b", 2)], asks("x", "a", 2, **PINNED), explain="full")
    (candidate,) = found["explanation"]["candidates"]
    assert (candidate["numbers"]["share_before"], candidate["numbers"]["share_after"]) == ("infinite", 0.0)


def test_a_boosted_priority_is_told() -> None:
    boost = {"waiting_boost": {"grace": 0, "rate_per_hour": 2, "ceiling": 9}, "within_cluster_queue": "LowerPriority"}
    of = configuration(queue("q", 4, preemption=boost))
    found = one(of, [runs("w", "q", 4, 1)], asks("x", "q", 1, 0), explain="full")
    assert found["explanation"]["steps"][0] == {
        "rule": "waiting-boost", "detail": "priority 0 counts as 2 after waiting",
        "numbers": {"priority": 0, "counts_as": 2},
    }  # fmt: skip
    (last,) = [s for s in found["explanation"]["steps"] if s["rule"] == "beyond-kueue"]
    assert last["detail"] == "Kueue itself: wait; changed by waiting_boost"
    assert last["numbers"] == {"outcome": "wait", "victims": [], "victims_in_all": 0}


def test_flavors_considered_are_told_with_their_level() -> None:
    of = configuration(
        queue("co") | _two(0, 9), queue("q", parent="co") | _two(1, 0), flavors=[{"name": "a"}, {"name": "b"}]
    )
    found = one(of, [], asks("x", "q", 2), explain="full")
    assert found["explanation"]["steps"] == [
        {
            "rule": "flavor-considered", "detail": "a for main: does not fit and can't be preempted for",
            "numbers": {"task": "main", "flavor": "a", "suit": "NO_FIT", "level": None},
        },
        {
            "rule": "flavor-considered", "detail": "b for main: fits",
            "numbers": {"task": "main", "flavor": "b", "suit": "FIT", "level": 1},
        },
    ]  # fmt: skip


def _two(a: int, b: int) -> dict[str, object]:
    quota = [{"name": n, "quota": {"cpu": {"guaranteed": g}}} for n, g in (("a", a), ("b", b))]
    return {"resource_groups": [{"resources": ["cpu"], "flavors": quota}]}
