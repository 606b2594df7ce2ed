from typing import Any

from tests.unit.solver.engines.ytsaurus.cluster import (
    alloc,
    ask,
    groups,
    node,
    operation,
    pool,
    preemptibility,
    request,
)


def of_ten(*, x: dict[str, Any] | None = None, a: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """x runs ten allocations on ten cpus and is due five."""
    tasks = [alloc(f"t{i}", i) for i in range(10)]
    thresholds = {"aggressive_preemption_satisfaction_threshold": 0.2, "preemption_satisfaction_threshold": 0.8}
    return request(
        [pool("a", **(a or {})), pool("b")], [node()], [operation("x", "a", tasks, **(x or {})), operation("y", "b")],
        [ask("x", "a", 9), ask("y", "b", 10)], thresholds | settings,
    )  # fmt: skip


def letters(body: dict[str, Any]) -> str:
    found = groups(body, "x")
    return "".join(found[f"t{i}"][0] for i in range(len(found)))


def test_three_groups_oldest_first() -> None:
    assert letters(of_ten()) == "n" + "aaa" + "pppppp"  # bounds at 1 and 4 of the fair share's 5


def test_order_is_by_start_and_then_by_input() -> None:
    body = of_ten()
    tasks = body["state"]["workloads"][0]["tasks"]
    body["state"]["workloads"][0]["tasks"] = tasks[::-1]
    assert letters(body) == "n" + "aaa" + "pppppp"
    for task in tasks:
        task["started_at"] = tasks[0]["started_at"]
    found = groups(body, "x")
    assert (found["t9"], found["t0"]) == ("non_preemptible", "preemptible")


def test_an_allocation_that_never_said_when_it_started_is_the_oldest() -> None:
    body = of_ten()
    del body["state"]["workloads"][0]["tasks"][7]["started_at"]
    assert groups(body, "x")["t7"] == "non_preemptible"


def test_protected_usage() -> None:
    block = {"ytsaurus": {"non_preemptible_resource_usage_threshold": {"cpu": 6}}}
    assert letters(of_ten(x=block)) == "nnnnnn" + "pppp"


def test_protected_usage_must_hold_in_every_resource() -> None:
    block = {"ytsaurus": {"non_preemptible_resource_usage_threshold": {"cpu": 6, "user_slots": 2}}}
    assert letters(of_ten(x=block)) == "nn" + "aa" + "pppppp"


def test_a_group_is_never_entered_again() -> None:
    """A large allocation in the middle: smaller ones behind it don't come back under the bound."""
    tasks = [alloc("t0", 0, cpu=6), alloc("t1", 1, cpu=1), alloc("t2", 2, cpu=1), alloc("t3", 3, cpu=2)]
    body = of_ten()
    body["state"]["workloads"][0]["tasks"] = tasks
    assert letters(body) == "n" + "ppp"


def test_a_demand_that_is_covered_leaves_nothing_plainly_preemptible() -> None:
    tasks = [alloc(f"t{i}", i) for i in range(5)]
    body = request([pool("a")], [node()], [operation("x", "a", tasks)])
    assert letters(body) == "n" + "aaaa"


def test_nothing_due_leaves_everything_preemptible() -> None:
    body = of_ten(a={"quota": {"cpu": {"limit": 0}}})
    assert letters(body) == "p" * 10


def test_real_usage_counts_where_it_is_less() -> None:
    body = of_ten()
    for task in body["state"]["workloads"][0]["tasks"]:
        task["usage"] = {"user_slots": 1, "cpu": "500m"}
    assert letters(body) == "nn" + "aaaaaa" + "pp"


def test_levels_and_reasons() -> None:
    def told(**more: Any) -> dict[str, Any]:
        return preemptibility(of_ten(**more))["workloads"]["x"]

    assert told()["preemptible"] is True
    spared = told(a={"ytsaurus": {"allow_aggressive_preemption": False}})
    assert (spared["tasks"]["t1"]["preemptibility"], spared["tasks"]["t1"]["level"]) == (
        "aggressively_preemptible", "non_preemptible",
    )  # fmt: skip
    gang = {"ytsaurus": {"is_gang": True}}
    assert told(x=gang)["tasks"]["t1"]["level"] == "aggressively_preemptible"
    assert (
        told(x=gang, allow_aggressive_preemption_for_gang_operations=False)["tasks"]["t1"]["level"] == "non_preemptible"
    )
    starving = {"ytsaurus": {"starvation": "starving"}}
    assert "starving itself" in told(x=starving)["reason"]
    assert told(x=starving)["preemptible"] is False
    assert told(x=starving, allow_preemption_from_starving_operations=True)["preemptible"] is True
    assert "graceful" in told(x={"ytsaurus": {"preemption_mode": "graceful"}})["reason"]
    assert told(x={"ytsaurus": {"preemption_mode": "graceful"}})["preemptible"] is False
    protected = told(x={"ytsaurus": {"non_preemptible_resource_usage_threshold": {"cpu": 99}}})
    assert (protected["preemptible"], protected["reason"]) == (False, "within its protected share")
    neither = told(a={"ytsaurus": {"allow_aggressive_preemption": False, "allow_normal_preemption": False}})
    assert (neither["preemptible"], neither["reason"]) == (
        False, "a pool above allows neither normal nor aggressive preemption",
    )  # fmt: skip
    assert told(a={"ytsaurus": {"allow_normal_preemption": False}})["preemptible"] is True


def test_whether_a_set_of_evictions_would_be_allowed() -> None:
    body = of_ten()

    def allowed(task: str, level: str | None = None) -> bool:
        body["state"]["workloads"][1]["ytsaurus"] = {"starvation": level or "non_starving"}
        from_ask = {"ask": body["asks"][1]} if level else {}
        return preemptibility(body, evict=[{"workload": "x", "task": task}], **from_ask)["evict_allowed"]

    assert [allowed(t) for t in ("t0", "t1", "t9")] == [False, True, True]
    assert [allowed(t, "starving") for t in ("t0", "t1", "t9")] == [False, False, True]
    assert [allowed(t, "aggressively_starving") for t in ("t0", "t1", "t9")] == [False, True, True]
    assert preemptibility(body, evict=[{"workload": "x"}])["evict_allowed"] is False
    assert "evict_allowed" not in preemptibility(body)
