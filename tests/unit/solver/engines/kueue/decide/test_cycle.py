"""One scheduling cycle: heads, their order, what they book, and whom they may still stop."""

from typing import Any

from app.solver.engines.kueue.cycle import OUTRUN
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, decide, queue, runs, victims

ANY = {"reclaim_within_cohort": "Any"}
LOWER = {"within_cluster_queue": "LowerPriority"}


def cycle(of: dict[str, Any], running: list[dict[str, Any]], *pending: dict[str, Any], **more: Any) -> dict[str, Any]:
    return decide(of, running, list(pending), mode="cycle", **more)


def outcomes(answer: dict[str, Any]) -> dict[str, str]:
    return {name: d["outcome"] for name, d in answer["decisions"].items()}


def test_one_head_a_queue_and_the_others_wait_behind_it() -> None:
    of = configuration(queue("q", 10))
    young = asks("young", "q", 1, priority=1) | {"created_at": at("11:30")}
    answer = cycle(of, [], asks("low", "q", 1), young, asks("old", "q", 1, priority=1))
    assert answer["order"] == ["old"]
    assert outcomes(answer) == {"low": "wait", "young": "wait", "old": "admit"}
    assert "Waits behind old" in answer["decisions"]["low"]["conditions"][0]["message"]


def test_a_strict_queue_says_that_its_head_blocks_it() -> None:
    for strategy, said in (("StrictFIFO", "before its head is admitted"), ("BestEffortFIFO", "steps aside")):
        of = configuration(queue("q", 1, queueing_strategy=strategy))
        answer = cycle(of, [], asks("head", "q", 5, priority=1), asks("next", "q", 1))
        assert outcomes(answer) == {"head": "infeasible", "next": "wait"}
        assert said in answer["decisions"]["next"]["conditions"][0]["message"]


def test_classical_order_is_level_then_priority_then_age() -> None:
    of = configuration(
        queue("c"), queue("borrower", 1, "c"), queue("low", 5, "c"), queue("high", 5, "c"), queue("young", 5, "c")
    )
    young = asks("young", "young", 1, priority=1) | {"created_at": at("11:30")}
    answer = cycle(
        of, [], asks("borrows", "borrower", 3, priority=9), young, asks("low", "low", 1),
        asks("high", "high", 1, priority=1),
    )  # fmt: skip
    assert answer["order"] == ["high", "young", "low", "borrows"]


def test_equal_heads_go_in_the_order_of_the_request() -> None:
    of = configuration(queue("c"), queue("a", 5, "c"), queue("b", 5, "c"))
    assert cycle(of, [], asks("x", "b", 1), asks("y", "a", 1))["order"] == ["x", "y"]
    assert cycle(of, [], asks("y", "a", 1), asks("x", "b", 1))["order"] == ["y", "x"]


def test_an_earlier_head_takes_what_a_later_one_counted_on() -> None:
    """6 are free in the cohort; each alone fits by borrowing, both do not."""
    of = configuration(queue("c", 6), queue("a", 0, "c"), queue("b", 0, "c"))
    answer = cycle(of, [], asks("x", "a", 4), asks("y", "b", 4, priority=1))
    assert answer["order"] == ["y", "x"]
    assert outcomes(answer) == {"x": "wait", "y": "admit"}
    assert "no longer fits" in answer["decisions"]["x"]["conditions"][0]["message"]


def test_victims_of_different_heads_add_up() -> None:
    """a and b reclaim their own 2 from what c borrows; each stops one workload."""
    of = configuration(
        queue("co"), queue("a", 2, "co", preemption=ANY), queue("b", 2, "co", preemption=ANY), queue("c", 0, "co")
    )
    running = [runs("w1", "c", 2, started_at=at("10:00")), runs("w2", "c", 2, started_at=at("11:00"))]
    answer = cycle(of, running, asks("x", "a", 2), asks("y", "b", 2))
    assert answer["order"] == ["x", "y"]
    assert [victims(answer["decisions"][name]) for name in ("x", "y")] == [["w2"], ["w1"]]
    assert [e["workload"] for e in answer["plan"]["evictions"]] == ["w2", "w1"]


def test_a_head_for_which_earlier_victims_make_room_too_waits_for_them() -> None:
    """One big victim frees enough for both: the second head fits once it is gone, and evicts nobody itself."""
    of = configuration(
        queue("co"), queue("a", 2, "co", preemption=ANY), queue("b", 2, "co", preemption=ANY), queue("c", 0, "co")
    )
    answer = cycle(of, [runs("big", "c", 4)], asks("x", "a", 2), asks("y", "b", 2))
    assert outcomes(answer) == {"x": "preempt", "y": "wait"}
    assert victims(answer["decisions"]["x"]) == ["big"]
    assert "preemptions of other workloads" in answer["decisions"]["y"]["conditions"][0]["message"]


def test_a_head_without_victims_keeps_its_capacity_from_later_heads() -> None:
    """x needs all 4 of a but may stop nobody: the 1 that is left of its quota is not lent to y."""

    def outcome(preemption: dict[str, Any]) -> str:
        of = configuration(queue("co"), queue("a", 4, "co", preemption=preemption), queue("b", 0, "co"))
        running = [runs("w", "a", 3, priority=5)]
        return outcomes(cycle(of, running, asks("x", "a", 4), asks("y", "b", 1)))["y"]

    assert outcome({}) == "wait"
    assert outcome({"reclaim_within_cohort": "LowerPriority"}) == "wait"
    assert outcome(ANY) == "admit", "a queue that can always reclaim reserves nothing"


def test_fair_order_is_by_share_with_the_head() -> None:
    """a borrows 1 of 8 with its head, b borrows 4: a first, whatever the priority."""
    of = configuration(queue("co", 8), queue("a", 0, "co"), queue("b", 0, "co"), fair=True)
    running = [runs("w", "b", 3)]
    assert cycle(of, running, asks("y", "b", 1, priority=9), asks("x", "a", 1))["order"] == ["x", "y"]


def test_fair_order_puts_a_head_within_its_quota_first() -> None:
    """Both borrow gpu, so that shares alone would put b first; a asks for cpu of its own."""
    quota = {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 0}}
    a = {"name": "a", "parent": "co", "quota": quota}
    b = {"name": "b", "parent": "co", "quota": quota | {"cpu": {"guaranteed": 0}}}
    co = {"name": "co", "quota": {"cpu": {"guaranteed": 8}, "gpu": {"guaranteed": 8}}}
    task = {"name": "main", "requests": {"gpu": 6}, "flavors": {"gpu": "default"}}
    running = [runs("w", "a", 0) | {"tasks": [task]}]
    answer = cycle(configuration(co, a, b, fair=True), running, asks("y", "b", 1), asks("x", "a", 1))
    assert answer["order"] == ["x", "y"]


def test_on_a_full_tie_a_child_cohort_goes_before_a_queue() -> None:
    """Each would borrow 1 of the same 8 at the same age and priority. Kueue asks the winner of ``mid`` first, and only
    a strictly better head replaces it; between two queues the order of the request decides."""
    of = configuration(
        queue("root", 8), queue("mid", parent="root"), queue("a", 0, "mid"), queue("b", 0, "root"),
        queue("c", 0, "root"), fair=True,
    )  # fmt: skip
    answer = cycle(of, [], asks("direct", "b", 1), asks("other", "c", 1), asks("below", "a", 1))
    assert answer["order"] == ["below", "direct", "other"]


def test_fair_order_does_not_count_what_is_requested_0_times() -> None:
    """a borrows gpu. Its head wants cpu of its own, and 0 gpu: it borrows nothing that it wants, and goes before b's
    head, which borrows cpu at the lower share."""
    quota = {"cpu": {"guaranteed": 4}, "gpu": {"guaranteed": 0}}
    a = {"name": "a", "parent": "co", "quota": quota}
    b = {"name": "b", "parent": "co", "quota": quota | {"cpu": {"guaranteed": 0}}}
    co = {"name": "co", "quota": {"cpu": {"guaranteed": 8}, "gpu": {"guaranteed": 8}}}
    task = {"name": "main", "requests": {"gpu": 6}, "flavors": {"gpu": "default"}}
    running = [runs("w", "a", 0) | {"tasks": [task]}]
    head = asks("x", "a", 1)
    head["tasks"][0]["requests"]["gpu"] = 0
    assert cycle(configuration(co, a, b, fair=True), running, asks("y", "b", 1), head)["order"] == ["x", "y"]


def test_fair_order_sees_what_earlier_heads_booked() -> None:
    """Siblings below one cohort: once x is booked their cohort borrows, and z of the other cohort goes before y."""
    of = configuration(
        queue("root", 8), queue("left", parent="root"), queue("right", parent="root"),
        queue("a", 0, "left"), queue("b", 0, "left"), queue("c", 0, "right"), fair=True,
    )  # fmt: skip
    answer = cycle(of, [], asks("x", "a", 1, priority=1), asks("y", "b", 1, priority=1), asks("z", "c", 1))
    assert answer["order"] == ["x", "z", "y"]


def test_a_partial_size_in_a_cycle() -> None:
    of = configuration(queue("q", 10))
    answer = cycle(of, [runs("w", "q", 6)], asks("x", "q", 1, count=8, min_count=1))
    assert answer["decisions"]["x"]["counts"] == {"main": 4}


def test_the_place_in_the_order_is_explained() -> None:
    of = configuration(queue("c"), queue("a", 5, "c"), queue("b", 5, "c"))
    answer = cycle(of, [], asks("x", "b", 1), asks("y", "a", 1), explain="full")
    steps = answer["decisions"]["y"]["explanation"]["steps"]
    assert next(s["detail"] for s in steps if s["rule"] == "cycle-order") == "number 2 of 2 heads"


def test_a_queue_past_its_limit_gives_back_less_than_its_victims_hold() -> None:
    """q holds 5 of 6 and may have 3. x finds nobody and keeps 1, up to the limit: 2 less than q uses, which never reach
    the cohort. y, whose cohort borrows, comes second and reclaims w; but of w's 5 only the 3 that q still shows there
    come back, and y wants 4."""
    of = configuration(
        queue("root"), queue("q", {"guaranteed": 2, "borrowing_limit": 1}, "root", weight=1000, preemption=LOWER),
        queue("mid", parent="root"), queue("b", 4, "mid", preemption=ANY), queue("c", 0, "mid"), fair=True,
    )  # fmt: skip
    running = [runs("w", "q", 5, 9), runs("z", "c", 1)]
    pending = [asks("y", "b", 4), asks("x", "q", 1)]
    alone = decide(of, running, pending[:1], mode="cycle")
    assert victims(alone["decisions"]["y"]) == ["w"]
    answer = decide(of, running, pending, mode="cycle")
    assert answer["order"] == ["x", "y"]
    assert {name: d["outcome"] for name, d in answer["decisions"].items()} == {"x": "wait", "y": "wait"}
    assert answer["decisions"]["y"]["conditions"][0]["message"].startswith(OUTRUN)
