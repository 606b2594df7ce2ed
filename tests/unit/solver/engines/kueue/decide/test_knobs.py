"""What KEP-83 deferred, worked out by hand: the arithmetic first, then decisions that it changes."""

from fractions import Fraction
from typing import Any

import pytest

from app.solver.engines.kueue.knobs import HOUR, SECOND, boosted, cost, curve, may_trigger, penalised, points
from app.solver.model.kueue import LongRunnerPenalty, Milestone, Preemption, WaitingBoost
from app.solver.model.problems import InvalidInput
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, decide, one, queue, runs, victims

LOWER = {"within_cluster_queue": "LowerPriority"}


def own(cpu: float = 4, **knobs: Any) -> dict[str, Any]:
    """One queue that preempts lower priority among its own."""
    return configuration(queue("q", cpu, preemption=LOWER | knobs))


# --- the arithmetic

KEP = curve([Milestone(seconds=60, cost=100), Milestone(seconds=600, cost=0)])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, 100),  # constant before the first
        (30, 100),
        (60, 100),
        (330, 50),  # half of the way from 60 to 600
        (195, 75),  # a quarter of the way
        (600, 0),
        (86_400, 0),  # constant after the last
    ],
)
def test_cost_between_milestones(seconds: int, expected: int) -> None:
    assert cost(KEP, seconds * SECOND) == expected


def test_cost_is_exact() -> None:
    assert cost(curve([Milestone(seconds=0, cost=0), Milestone(seconds=3, cost=1)]), SECOND) == Fraction(1, 3)
    assert cost(curve([]), 10 * SECOND) == 0
    assert cost(curve([Milestone(seconds=5, cost=7)]), 0) == 7


@pytest.mark.parametrize(("hours", "expected"), [(0, 0), (0.4, 0), (0.5, 1), (2.2, 4), (-3, 0)])
def test_points_count_once_their_time_has_passed(hours: float, expected: int) -> None:
    """Two an hour: one every half hour."""
    assert points(2, round(hours * HOUR)) == expected


@pytest.mark.parametrize(
    ("priority", "hours", "expected"),
    [(10, 1, 10), (10, 2, 8), (10, 3, 6), (10, 9, 4), (3, 9, 3), (4, 9, 4)],
)
def test_a_long_runner_falls_to_the_floor_and_no_further(priority: int, hours: int, expected: int) -> None:
    """Grace of an hour, two points an hour, floor 4: a priority below the floor stays where it is."""
    penalty = LongRunnerPenalty(grace="1h", rate_per_hour=2, floor=4)
    assert penalised(priority, penalty, hours * HOUR) == expected
    assert penalised(priority, None, hours * HOUR) == priority


@pytest.mark.parametrize(("priority", "minutes", "expected"), [(0, 30, 0), (0, 90, 3), (0, 600, 5), (7, 600, 7)])
def test_a_waiting_ask_rises_to_the_ceiling_and_no_further(priority: int, minutes: int, expected: int) -> None:
    """Grace of half an hour, three points an hour, ceiling 5: a priority above the ceiling stays where it is."""
    boost = WaitingBoost(grace=1800, rate_per_hour=3, ceiling=5)
    assert boosted(priority, boost, minutes * 60 * SECOND) == expected


def test_waiting_before_preempting() -> None:
    block = Preemption(trigger_after_workload_waiting_seconds=1.5)
    assert not may_trigger(block, 1_499_999)
    assert may_trigger(block, 1_500_000)
    assert may_trigger(Preemption(), 0)


# --- trigger_after_workload_waiting_seconds


def test_an_ask_waits_before_it_preempts() -> None:
    """Made at 11:00, now 12:00: an hour of waiting is enough for 3600 seconds, not for 3601."""
    ask = asks("x", "q", 3, priority=1)
    enough = one(own(trigger_after_workload_waiting_seconds=3600), [runs("w", "q", 4)], ask)
    assert (enough["outcome"], victims(enough), enough.get("beyond")) == ("preempt", ["w"], None)
    early = one(own(trigger_after_workload_waiting_seconds=3601), [runs("w", "q", 4)], ask)
    assert (early["outcome"], early["beyond"]) == ("wait", ["trigger_after_workload_waiting_seconds"])


def test_waiting_counts_from_the_first_attempt_where_it_is_known() -> None:
    of = own(trigger_after_workload_waiting_seconds=3600)
    ask = asks("x", "q", 3, priority=1) | {"kueue": {"first_attempt_at": at("11:59")}}
    assert one(of, [runs("w", "q", 4)], ask)["outcome"] == "wait"


def test_an_ask_of_unknown_age_has_waited_long_enough() -> None:
    ask = {k: v for k, v in asks("x", "q", 3, priority=1).items() if k != "created_at"}
    assert one(own(trigger_after_workload_waiting_seconds=9e9), [runs("w", "q", 4)], ask)["outcome"] == "preempt"


def test_waiting_concerns_preemption_only() -> None:
    decision = one(own(trigger_after_workload_waiting_seconds=9e9), [], asks("x", "q", 3))
    assert (decision["outcome"], decision.get("beyond")) == ("admit", None)


# --- workload_sorting

SORTED = [
    runs("old-low", "q", 2, 0, started_at=at("08:00")),
    runs("new-low", "q", 2, 0, started_at=at("11:00")),
    runs("old-mid", "q", 2, 1, started_at=at("07:00")),
]


@pytest.mark.parametrize(
    ("sorting", "victim", "beyond"),
    [
        (None, "new-low", None),
        (["ByLowestPriority", "ByLowestRuntime"], "new-low", None),
        (["ByLowestPriority", "ByLongestRuntime"], "old-low", ["workload_sorting"]),
        (["ByLongestRuntime"], "old-mid", ["workload_sorting"]),
        (["ByLowestRuntime"], "new-low", None),
    ],
)
def test_sorting_by_the_criteria_in_the_order_given(
    sorting: list[str] | None, victim: str, beyond: list[str] | None
) -> None:
    knobs = {} if sorting is None else {"workload_sorting": sorting}
    decision = one(own(6, **knobs), SORTED, asks("x", "q", 2, priority=5))
    assert victims(decision) == [victim]
    assert decision.get("beyond") == beyond


def test_sorting_in_fair_sharing_too() -> None:
    mine = queue("q", 0, "co", preemption={"reclaim_within_cohort": "Any", "workload_sorting": ["ByLongestRuntime"]})
    of = configuration(queue("co", 8), mine, queue("other", 0, "co"), fair=True)
    running = [runs("new", "other", 4, started_at=at("11:00")), runs("old", "other", 4, 9, started_at=at("09:00"))]
    decision = one(of, running, asks("x", "q", 4))
    assert (victims(decision), decision["beyond"]) == (["old"], ["workload_sorting"])


# --- disruption_cost_milestones


def test_the_cheaper_goes_first_among_equal_priority() -> None:
    """Cost 100 until a minute, then down to 0 at ten minutes: the one that has run for two hours costs nothing, the
    one that has run for five minutes 55.6, so the older goes although Kueue takes the newer."""
    of = own(disruption_cost_milestones=[{"seconds": 60, "cost": 100}, {"seconds": 600, "cost": 0}])
    running = [runs("new", "q", 2, started_at=at("11:55")), runs("old", "q", 2, started_at=at("10:00"))]
    decision = one(of, running, asks("x", "q", 2, priority=1))
    assert (victims(decision), decision["beyond"]) == (["old"], ["disruption_cost_milestones"])


def test_a_workload_overrides_its_queue_and_priority_still_goes_first() -> None:
    """The queue's default costs 5, "cheap" says 1, "low" is dear but of lower priority."""
    of = own(6, disruption_cost_milestones=[{"seconds": 0, "cost": 5}])
    running = [
        runs("default", "q", 2, 1, started_at=at("11:00")),
        runs("cheap", "q", 2, 1, disruption_cost_milestones=[{"seconds": 0, "cost": 1}]),
        runs("low", "q", 2, 0, disruption_cost_milestones=[{"seconds": 0, "cost": 99}]),
    ]
    assert victims(one(of, running, asks("x", "q", 2, priority=5))) == ["low"]
    decision = one(of, running, asks("x", "q", 4, priority=5))
    assert (victims(decision), decision["beyond"]) == (["low", "cheap"], ["disruption_cost_milestones"])


def test_the_cost_curve_is_that_of_the_queue_in_which_the_workload_runs() -> None:
    """Both other queues borrow 2; only "dear" says that stopping costs something."""
    dear = queue("dear", 0, "co", preemption={"disruption_cost_milestones": [{"seconds": 0, "cost": 1}]})
    of = configuration(
        queue("co"), queue("q", 4, "co", preemption={"reclaim_within_cohort": "Any"}), dear, queue("free", 0, "co")
    )
    running = [runs("a", "dear", 2, started_at=at("11:00")), runs("b", "free", 2, started_at=at("10:00"))]
    assert victims(one(of, running, asks("x", "q", 2))) == ["b"]


# --- long_runner_penalty


def test_a_long_runner_of_the_same_priority_becomes_preemptible() -> None:
    """Ten hours in, a grace of eight and a point an hour: 5 counts as 3, below the ask's 5."""
    of = own(long_runner_penalty={"grace": "8h", "rate_per_hour": 1, "floor": 0})
    running = [runs("w", "q", 4, 5, started_at=at("02:00"))]
    decision = one(of, running, asks("x", "q", 3, priority=5))
    assert (decision["outcome"], victims(decision), decision["beyond"]) == ("preempt", ["w"], ["long_runner_penalty"])
    rested = [runs("w", "q", 4, 5, started_at=at("04:00"))]
    assert one(of, rested, asks("x", "q", 3, priority=5))["outcome"] == "wait"


def test_the_floor_protects() -> None:
    of = own(long_runner_penalty={"grace": 0, "rate_per_hour": 100, "floor": 5})
    assert one(of, [runs("w", "q", 4, 9)], asks("x", "q", 3, priority=5))["outcome"] == "wait"
    assert one(of, [runs("w", "q", 4, 9)], asks("x", "q", 3, priority=6))["outcome"] == "preempt"


# --- waiting_boost


def test_a_waiting_ask_gains_priority() -> None:
    """An hour of waiting, half of it grace, two points an hour: 1 counts as 2."""
    of = own(waiting_boost={"grace": "30m", "rate_per_hour": 2, "ceiling": 10})
    decision = one(of, [runs("w", "q", 4, 1)], asks("x", "q", 3, priority=1))
    assert (decision["outcome"], decision["beyond"]) == ("preempt", ["waiting_boost"])
    assert one(of, [runs("w", "q", 4, 2)], asks("x", "q", 3, priority=1))["outcome"] == "wait"


@pytest.mark.parametrize("mode", ["independent", "cycle"])
def test_the_priority_that_counts_is_explained(mode: str) -> None:
    of = own(waiting_boost={"grace": "30m", "rate_per_hour": 2, "ceiling": 10})
    decision = one(of, [], asks("x", "q", 1, priority=1), mode=mode, explain="full")
    (step,) = [s for s in decision["explanation"]["steps"] if s["rule"] == "waiting-boost"]
    assert step["numbers"] == {"priority": 1, "counts_as": 2}


def test_a_boost_moves_a_head_up_in_the_cycle() -> None:
    boost = {"waiting_boost": {"grace": 0, "rate_per_hour": 5, "ceiling": 9}}
    of = configuration(queue("co", 4), queue("a", 0, "co"), queue("b", 0, "co", preemption=boost))
    pending = [asks("x", "a", 3, priority=4), asks("y", "b", 3, priority=0)]
    answer = decide(of, [], pending, mode="cycle")
    assert answer["order"] == ["y", "x"]
    assert {name: d["beyond"] for name, d in answer["decisions"].items()} == {
        "x": ["waiting_boost"],
        "y": ["waiting_boost"],
    }


# --- on_preemption


@pytest.mark.parametrize(
    ("wish", "requeued", "beyond"), [("Terminate", "False", ["on_preemption"]), ("Requeue", "True", None)]
)
def test_what_becomes_of_a_victim(wish: str, requeued: str, beyond: list[str] | None) -> None:
    decision = one(own(), [runs("w", "q", 4, on_preemption=wish)], asks("x", "q", 3, priority=1))
    (victim,) = decision["victims"]
    assert victim["on_preemption"] == wish
    (what_then,) = victim["conditions"][2:]
    assert (what_then["type"], what_then["status"]) == ("Requeued", requeued)
    assert (what_then["message"] == victim["message"]) is (wish == "Requeue")
    assert ("not queued again" in what_then["message"]) is (wish == "Terminate")
    assert decision.get("beyond") == beyond


def test_without_a_wish_the_conditions_are_kueues_own() -> None:
    (victim,) = one(own(), [runs("w", "q", 4)], asks("x", "q", 3, priority=1))["victims"]
    assert [c["type"] for c in victim["conditions"]] == ["Evicted", "Preempted"]
    assert "on_preemption" not in victim


# --- which knob changed a decision


def test_only_the_knob_that_matters_is_named() -> None:
    of = own(
        workload_sorting=["ByLowestPriority", "ByLowestRuntime"],
        waiting_boost={"grace": 0, "rate_per_hour": 1, "ceiling": 9},
    )
    decision = one(of, [runs("w", "q", 4, 1)], asks("x", "q", 3, priority=1))
    assert decision["beyond"] == ["waiting_boost"]


def test_two_knobs_that_lead_to_the_same_are_both_named() -> None:
    """The ask's rise and the workload's fall are each enough."""
    of = own(
        waiting_boost={"grace": 0, "rate_per_hour": 1, "ceiling": 9},
        long_runner_penalty={"grace": 0, "rate_per_hour": 1, "floor": 0},
    )
    decision = one(of, [runs("w", "q", 4, 1)], asks("x", "q", 3, priority=1))
    assert decision["beyond"] == ["long_runner_penalty", "waiting_boost"]


def test_what_kueue_itself_decides_stays_visible() -> None:
    of = own(6, workload_sorting=["ByLongestRuntime"])
    decision = one(of, SORTED, asks("x", "q", 2, priority=5), explain="full")
    (step,) = [s for s in decision["explanation"]["steps"] if s["rule"] == "beyond-kueue"]
    assert (step["numbers"]["outcome"], step["numbers"]["victims"]) == ("preempt", ["new-low"])


# --- what has no meaning

SAME = {"seconds": 9, "cost": 1}


@pytest.mark.parametrize(
    ("knobs", "place"),
    [
        ({"disruption_cost_milestones": [SAME, SAME]}, "disruption_cost_milestones/1/seconds"),
        ({"disruption_cost_milestones": [{"seconds": 9, "cost": -1}]}, "disruption_cost_milestones/0/cost"),
        ({"trigger_after_workload_waiting_seconds": -1}, "trigger_after_workload_waiting_seconds"),
        ({"workload_sorting": ["ByLowestRuntime", "ByLongestRuntime"]}, "workload_sorting"),
        ({"waiting_boost": {"grace": "-1h", "rate_per_hour": 1, "ceiling": 1}}, "waiting_boost/grace"),
        ({"waiting_boost": {"grace": "soon", "rate_per_hour": 1, "ceiling": 1}}, "waiting_boost/grace"),
        ({"long_runner_penalty": {"grace": 0, "rate_per_hour": -1, "floor": 1}}, "long_runner_penalty/rate_per_hour"),
    ],
)  # fmt: skip
def test_a_knob_without_meaning_is_refused_with_its_place(knobs: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        one(own(**knobs), [runs("w", "q", 4)], asks("x", "q", 3, priority=1))
    assert [p.pointer for p in refused.value.problems] == [f"/configuration/queues/0/kueue/preemption/{place}"]


def test_milestones_of_a_workload_are_refused_in_the_state() -> None:
    wrong = runs("w", "q", 4, disruption_cost_milestones=[{"seconds": 9, "cost": 1}, {"seconds": 3, "cost": 1}])
    with pytest.raises(InvalidInput) as refused:
        one(own(), [wrong], asks("x", "q", 3, priority=1))
    assert [p.pointer for p in refused.value.problems] == ["/state/workloads/0/disruption_cost_milestones/1/seconds"]
