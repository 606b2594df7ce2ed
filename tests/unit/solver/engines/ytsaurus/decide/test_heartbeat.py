from typing import Any

import pytest

from tests.support.bounds import Bounded
from tests.unit.solver.engines.ytsaurus.cluster import (
    alloc,
    ask,
    decide,
    evicted,
    node,
    operation,
    pool,
    refused,
    request,
    started,
)

STARVING = {"ytsaurus": {"starvation": "starving"}}
AGGRESSIVE = {"ytsaurus": {"starvation": "aggressively_starving"}}
HALF = {"aggressive_preemption_satisfaction_threshold": 0.5}


def crowded(
    level: str = "starving", need: Any = 1, count: int = 10, *, on: dict[str, Any] | None = None,
    greedy: dict[str, Any] | None = None, a: dict[str, Any] | None = None, settings: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """y fills a node of ten cpus and is due five; x has nothing and wants ``count`` times ``need``."""
    tasks = [alloc(f"y{i}", i) for i in range(10)]
    return request(
        [pool("a", **(a or {})), pool("b")], [node() | (on or {})],
        [operation("x", "a", ytsaurus={"starvation": level}), operation("y", "b", tasks, **(greedy or {}))],
        [ask("x", "a", count, need), ask("y", "b", 5)], HALF | (settings or {}), **more,
    )  # fmt: skip


def test_free_resources_first() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 12}})
    answer = decide(body)
    assert started(answer) == [("x-next", "n", "regular")] * 2
    assert evicted(answer) == []
    decision = answer["decisions"][0]
    assert (decision["outcome"], decision["counts"], decision["node"]) == ("admit", {"next": 2}, "n")


def test_the_least_satisfied_goes_first_and_satisfaction_moves_on() -> None:
    body = request(
        [pool("a"), pool("b")], [node(cpu=4)], [operation("x", "a"), operation("y", "b", [alloc("y0")])],
        [ask("x", "a", 9), ask("y", "b", 9)],
    )  # fmt: skip
    assert [who for who, _, _ in started(decide(body))] == ["x-next", "x-next", "y-next"]  # equal: first in the walk


def test_ties_go_to_the_first_in_a_depth_first_walk() -> None:
    pools = [pool("a"), pool("b", parent="a"), pool("c", parent="a"), pool("d")]
    operations = [operation(name, queue) for name, queue in (("w", "d"), ("x", "a"), ("y", "c"), ("z", "b"))]
    asks = [ask(o["id"], o["queue"]) for o in operations]
    found = started(decide(request(pools, [node()], operations, asks)))
    assert [who for who, _, _ in found] == ["z-next", "y-next", "x-next", "w-next"]


def test_nobody_stops_for_an_operation_that_does_not_starve() -> None:
    answer = decide(crowded("non_starving"))
    assert (started(answer), evicted(answer)) == ([], [])
    decision = answer["decisions"][0]
    assert (decision["outcome"], decision["conditions"][0]["reason"]) == ("wait", "NotStarving")
    assert [(s["resource"], s["short"]) for s in decision["shortages"]] == [("cpu", 1)]


def test_one_allocation_by_preemption_newest_victims_first() -> None:
    answer = decide(crowded(need=3))
    assert started(answer) == [("x-next", "n", "preemptive_normal")]
    assert evicted(answer) == [("y9", "preemption"), ("y8", "preemption"), ("y7", "preemption")]
    assert [v["timeout_seconds"] for v in answer["decisions"][0]["victims"]] == [30, 30, 30]
    assert answer["decisions"][0]["victims"][0]["freed"] == {"user_slots": 1, "cpu": 1}
    assert {e["for_ask"] for e in answer["plan"]["evictions"]} == {"x-next"}
    assert answer["decisions"][1]["conditions"][0]["reason"] == "NotStarving"


def test_free_and_preemptible_resources_together() -> None:
    body = crowded(need=3)
    body["state"]["workloads"][1]["tasks"].pop()
    body["asks"].pop()
    assert evicted(decide(body)) == [("y8", "preemption"), ("y7", "preemption")]


def test_what_is_not_preemptible_does_not_make_room() -> None:
    answer = decide(crowded(need=6))  # five are plainly preemptible
    assert (started(answer), evicted(answer)) == ([], [])
    assert answer["decisions"][0]["conditions"][0]["reason"] == "NotEnoughPreemptible"


def test_aggressive_starvation_takes_more() -> None:
    answer = decide(crowded("aggressively_starving", need=7))
    assert started(answer) == [("x-next", "n", "preemptive_aggressive")]
    assert [task for task, _ in evicted(answer)] == ["y9", "y8", "y7", "y6", "y5", "y4", "y3"]
    assert {reason for _, reason in evicted(answer)} == {"aggressive_preemption"}


@pytest.mark.parametrize(("rules", "stage"), [("documented", "normal"), ("shipped", "aggressive")])
def test_the_order_of_stages_by_rule_set(rules: str, stage: str) -> None:
    answer = decide(crowded("aggressively_starving", settings={"rules": rules}))
    assert started(answer) == [("x-next", "n", f"preemptive_{stage}")]


def test_starving_pools_make_preemptors_unless_the_scope_says_otherwise() -> None:
    starving = {"queues": {"a": STARVING}}
    assert started(decide(crowded("non_starving", state=starving)))
    own = {"scheduling_preemption_priority_scope": "operation_only"}
    assert not started(decide(crowded("non_starving", state=starving, settings=own)))


def test_starving_operations_are_no_victims_unless_allowed() -> None:
    assert not started(decide(crowded(greedy=STARVING)))
    allowed = {"allow_preemption_from_starving_operations": True}
    assert started(decide(crowded(greedy=STARVING, settings=allowed)))


def test_a_pool_may_switch_normal_preemption_off() -> None:
    body = crowded()
    body["configuration"]["queues"][1]["ytsaurus"] = {"allow_normal_preemption": False}
    assert not started(decide(body))
    body["state"]["workloads"][0]["ytsaurus"] = {"starvation": "aggressively_starving"}
    assert started(decide(body))


def test_backoff_is_strict_and_per_node() -> None:
    def at(instant: str) -> dict[str, Any]:
        return decide(crowded(on={"ytsaurus": {"last_preemptive_scheduling_at": instant}}))

    answer = at("2026-01-01T11:59:55Z")
    assert started(answer) == []
    assert answer["decisions"][0]["conditions"][0]["reason"] == "PreemptiveSchedulingBackoff"
    assert answer["notes"]["nodes"]["n"]["last_preemptive_scheduling_at"] == "2026-01-01T11:59:55Z"
    answer = at("2026-01-01T11:59:54.999999Z")
    assert started(answer)
    assert answer["notes"]["nodes"]["n"]["last_preemptive_scheduling_at"] == "2026-01-01T12:00:00Z"


def test_a_fruitless_attempt_counts_for_the_backoff() -> None:
    answer = decide(crowded(need=9))
    assert answer["notes"]["nodes"]["n"]["last_preemptive_scheduling_at"] == "2026-01-01T12:00:00Z"


def test_allocations_that_leave_cpu_unused_go_first_among_the_aggressively_preemptible() -> None:
    body = crowded("aggressively_starving", need=7)
    tasks = body["state"]["workloads"][1]["tasks"]
    tasks[3] |= {"requests": {"user_slots": 1, "cpu": 2}, "usage": {"user_slots": 1, "cpu": 1}}
    assert [task for task, _ in evicted(decide(body))] == ["y9", "y8", "y7", "y6", "y5", "y3", "y4"]


def test_timeouts_of_tree_and_operation() -> None:
    body = crowded(settings={"allocation_preemption_timeout": "45s"})
    assert decide(body)["decisions"][0]["victims"][0]["timeout_seconds"] == 45
    body = crowded(greedy={"ytsaurus": {"allocation_preemption_timeout": "90s"}})
    assert decide(body)["decisions"][0]["victims"][0]["timeout_seconds"] == 90


def test_exceeded_limits_of_an_operation() -> None:
    body = crowded("non_starving", greedy={"limit": {"cpu": 7}})
    answer = decide(body)
    assert evicted(answer) == [(t, "resource_limits_violated") for t in ("y9", "y8", "y7")]
    assert started(answer) == []
    assert all("for_ask" not in e for e in answer["plan"]["evictions"])


def test_exceeded_limits_of_a_pool_obey_the_backoff() -> None:
    body = crowded("non_starving")
    body["configuration"]["queues"][1]["quota"] = {"cpu": {"limit": 8}}
    assert evicted(decide(body)) == [(t, "resource_limits_violated") for t in ("y9", "y8")]
    body["state"]["nodes"][0]["ytsaurus"] = {"last_preemptive_scheduling_at": "2026-01-01T11:59:59Z"}
    assert evicted(decide(body)) == []


def test_limits_are_repaid_after_victims_for_an_allocation() -> None:
    body = crowded(greedy={"limit": {"cpu": 7}})
    assert evicted(decide(body)) == [
        ("y9", "preemption"), ("y8", "resource_limits_violated"), ("y7", "resource_limits_violated"),
    ]  # fmt: skip


def test_limits_stop_starts() -> None:
    body = crowded(a={"quota": {"cpu": {"limit": "500m"}}})
    decision = decide(body)["decisions"][0]
    assert (decision["outcome"], decision["conditions"][0]["reason"]) == ("infeasible", "NeverWithinLimits")
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 19}}, a={"quota": {"cpu": {"limit": 2}}})
    assert [who for who, _, _ in started(decide(body))].count("x-next") == 2


def test_an_operation_fills_its_limit_and_no_more() -> None:
    for limit, starts in ((3, 2), ("2999m", 1)):
        body = request([pool("a")], [node()], [operation("x", "a", [alloc("x0")])], [ask("x", "a", 4)])
        body["state"]["workloads"][0]["ytsaurus"] = {"resource_limits": {"cpu": limit}}
        assert [who for who, _, _ in started(decide(body))] == ["x-next"] * starts


def test_a_pool_at_its_limit_says_so() -> None:
    body = crowded(a={"quota": {"cpu": {"limit": 2}}}, explain="full")
    body["state"]["workloads"][0]["tasks"] = [alloc("x0"), alloc("x1")]
    body["state"]["nodes"][0]["capacity"]["cpu"] = 20
    decision = decide(body)["decisions"][0]
    assert decision["conditions"][0]["reason"] == "ResourceLimitsReached"
    assert [(s["queue"], s["short"]) for s in decision["shortages"]] == [("a", 1)]
    change = decision["explanation"]["smallest_change"][0]
    assert (change["queue"], change["field"], change["current"], change["needed"]) == ("a", "limit", 2, 3)


def test_preemptive_starts_may_exceed_a_pools_limit_by_its_tolerance() -> None:
    full = {"quota": {"cpu": {"limit": "500m"}}}
    assert not started(decide(crowded("aggressively_starving", a=full)))
    tolerant = full | {"ytsaurus": {"resource_limits_overcommit_tolerance": {"cpu": 1}}}
    found = started(decide(crowded("aggressively_starving", a=tolerant)))
    assert found == [("x-next", "n", "preemptive_aggressive")]


def test_an_overcommitted_node_sheds_what_is_plainly_preemptible() -> None:
    answer = decide(crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 8}}))
    assert evicted(answer) == [("y9", "preemption"), ("y8", "preemption")]


def test_for_a_suspended_operation_no_stage_runs() -> None:
    """y may have all six that it uses on a node of four: three are within half its due, three are aggressively
    preemptible. The stage that may take these runs where x, of a pool that starves aggressively, could start."""

    def gone(**x: Any) -> list[tuple[str, str]]:
        body = request(
            [pool("a"), pool("b")], [node(cpu=4), node("m", 16)],
            [operation("x", "a", **x), operation("y", "b", [alloc(f"y{i}", i) for i in range(6)])],
            [ask("x", "a", 1, 99)], HALF, state={"queues": {"a": AGGRESSIVE}},
        )  # fmt: skip
        return evicted(decide(body))

    assert gone() == [("y5", "aggressive_preemption"), ("y4", "aggressive_preemption")]
    assert gone(ytsaurus={"suspended": True}) == []


def test_a_long_overcommit_keeps_the_best_protected() -> None:
    def at(since: str) -> list[tuple[str, str]]:
        body = crowded(
            "non_starving", on={"capacity": {"user_slots": 100, "cpu": 3}, "ytsaurus": {"overcommit_since": since}}
        )
        body["state"]["nodes"][0]["ytsaurus"]["last_preemptive_scheduling_at"] = "2026-01-01T11:59:59Z"
        body["state"]["nodes"].append(node("m", 7))
        return evicted(decide(body))

    assert at("2026-01-01T11:59:45Z") == []
    assert at("2026-01-01T11:59:44.9Z") == [(f"y{i}", "resource_overcommit") for i in range(3, 10)]


def test_the_clock_of_an_overcommit_stops_with_it() -> None:
    """Resolved by force, shed by a stage, or simply gone: the next overcommit starts its own clock."""

    def since(cpu: int, level: str = "starving", **greedy: Any) -> str | None:
        long_ago = {"overcommit_since": "2026-01-01T11:00:00Z"}
        on = {"capacity": {"user_slots": 100, "cpu": cpu}, "ytsaurus": long_ago}
        return decide(crowded("non_starving", on=on, greedy=greedy))["notes"]["nodes"]["n"].get("overcommit_since")

    assert since(3, **STARVING) is None
    assert since(8) is None
    assert since(10) is None


def test_an_overcommit_that_goes_on_keeps_its_clock() -> None:
    on = {"capacity": {"user_slots": 100, "cpu": 3}, "ytsaurus": {"overcommit_since": "2026-01-01T11:59:50Z"}}
    answer = decide(crowded("non_starving", on=on, greedy=STARVING))
    assert evicted(answer) == []
    assert answer["notes"]["nodes"]["n"]["overcommit_since"] == "2026-01-01T11:59:50Z"


def test_a_long_overcommit_spares_a_smaller_one_that_still_fits() -> None:
    """Kept in the order of protection, oldest first: 2 and 2 of 5, not the third 2, but the last 1."""
    tasks = [alloc("y0", 0, 2), alloc("y1", 1, 2), alloc("y2", 2, 2), alloc("y3", 3, 1)]
    small = node(cpu=5, ytsaurus={"overcommit_since": "2026-01-01T11:00:00Z"})
    body = request([pool("b")], [small, node("m", 9)], [operation("y", "b", tasks, **STARVING)], [ask("y", "b", 5)])
    assert evicted(decide(body)) == [("y2", "resource_overcommit")]


def test_an_overcommit_is_noted_from_its_first_heartbeat() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 3}}, greedy=STARVING)
    answer = decide(body)
    assert evicted(answer) == []
    assert answer["notes"]["nodes"]["n"]["overcommit_since"] == "2026-01-01T12:00:00Z"


def test_graceful_operations_are_asked_and_keep_their_place() -> None:
    body = crowded(greedy={"ytsaurus": {"preemption_mode": "graceful"}})
    answer = decide(body)
    assert evicted(answer) == [(f"y{i}", "graceful_preemption") for i in range(5, 10)]
    assert started(answer) == []


def test_a_graceful_operation_with_its_share_starts_nothing() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 12}}, count=1)
    body["state"]["workloads"][1]["ytsaurus"] = {"preemption_mode": "graceful"}
    answer = decide(body)
    assert [who for who, _, _ in started(answer)] == ["x-next"]
    assert answer["decisions"][1]["conditions"][0]["reason"] == "GracefulAndSatisfied"


def test_nodes_that_an_ask_may_use() -> None:
    body = crowded(on={"labels": {"disk": "hdd"}})
    ask_x = body["asks"][0]
    for restriction in ({"feasible_nodes": []}, {"feasible_nodes": ["m"]}, {"required_node": "m"}):
        one = body | {"asks": [ask_x | restriction]}
        one["state"] = body["state"] | {"nodes": [*body["state"]["nodes"], node("m", 0)]}
        assert decide(one)["decisions"][0]["outcome"] == "infeasible", restriction
    picky = ask_x | {"tasks": [ask_x["tasks"][0] | {"node_selector": {"disk": "ssd"}}]}
    assert decide(body | {"asks": [picky]})["decisions"][0]["outcome"] == "infeasible"
    picky["tasks"][0]["node_selector"] = {"disk": "hdd"}
    assert started(decide(body | {"asks": [picky]}))


def test_a_node_that_takes_nothing_new() -> None:
    answer = decide(crowded(on={"schedulable": False, "capacity": {"user_slots": 100, "cpu": 8}}))
    assert started(answer) == []
    assert evicted(answer) == [("y9", "preemption"), ("y8", "preemption")]


def test_minimum_spare_resources() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 12}})
    body["configuration"]["settings"]["ytsaurus"]["min_spare_allocation_resources"] = {"cpu": 2}
    assert len(started(decide(body))) == 1


def test_what_others_occupy_is_not_there() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 12}, "occupied": {"cpu": 1}})
    assert len(started(decide(body))) == 1


def test_what_stops_already_takes_no_room() -> None:
    body = crowded("non_starving")
    body["state"]["workloads"][1]["tasks"][0]["state"] = "preempted"
    assert len(started(decide(body))) == 1


def test_nodes_in_order_until_the_ask_is_placed() -> None:
    body = crowded("non_starving", count=3)
    body["asks"] = body["asks"][:1]
    body["state"]["nodes"] += [node("m1", 1), node("m2", 5), node("m3", 5)]
    answer = decide(body, None)
    assert started(answer) == [("x-next", "m1", "regular"), ("x-next", "m2", "regular"), ("x-next", "m2", "regular")]
    assert sorted(answer["notes"]["nodes"]) == ["m1", "m2", "n"]
    assert "counts" not in answer["decisions"][0]


@pytest.mark.parametrize("explain", ["none", "summary", "full"])
def test_nothing_is_heard_after_the_last_start_however_quiet_the_next_node(explain: str) -> None:
    """The first node takes all that waits; the second could do nothing; the third has been too small for long."""
    body = crowded("non_starving", count=1)
    del body["asks"][1]
    small = node("small", 1, ytsaurus={"overcommit_since": "2026-01-01T11:00:00Z"})
    body["state"]["nodes"] = [node("n", 11), node("quiet", 0), small]
    body["state"]["workloads"][1]["tasks"][0]["node"] = "small"
    body["state"]["workloads"][1]["tasks"][1]["node"] = "small"
    answer = decide(body, None, explain=explain)
    assert started(answer) == [("x-next", "n", "regular")]
    assert evicted(answer) == []
    assert list(answer["notes"]["nodes"]) == ["n"]


def swap(**settings: Any) -> dict[str, Any]:
    """Pool a starves; its only operation has more than its fair share, does not starve, and wants one more."""
    tasks = [alloc(f"x{i}", 10 + i) for i in range(3)]
    pools = [pool("a"), pool("b", quota={"cpu": {"guaranteed": 8}})]
    workloads = [operation("x", "a", tasks), operation("y", "b", [alloc(f"y{i}", i) for i in range(7)])]
    state = {"queues": {"a": {"ytsaurus": {"starvation": "starving"}}}}
    asks = [ask("x", "a", 1), ask("y", "b", 1)]
    return request(pools, [node()], workloads, asks, settings, state=state)


def test_an_operation_of_a_starving_pool_trades_an_allocation_for_the_same_as_released() -> None:
    answer = decide(swap())
    assert evicted(answer) == [("x2", "preemption")]
    assert started(answer) == [("x-next", "n", "preemptive_normal")]


def test_by_the_page_an_operation_makes_no_room_for_itself() -> None:
    assert evicted(decide(swap(rules="documented"))) == []
    why = decide(swap(), explain="summary")["decisions"][0]["explanation"]
    assert "own-allocations" in [step["rule"] for step in why["steps"]]


def test_others_make_room_as_before_where_nobody_makes_room_for_himself() -> None:
    """The newest victim would be an allocation of the one that starts; the next one goes instead."""
    body = swap(rules="documented", preemption_satisfaction_threshold=0.5)
    body["asks"][1]["tasks"][0]["count"] = 5
    answer = decide(body)
    assert evicted(answer) == [("y6", "preemption")]
    assert started(answer) == [("x-next", "n", "preemptive_normal")]


def test_later_heartbeats_see_earlier_ones() -> None:
    """What y loses on the first node makes the rest of it better protected on the second."""
    body = crowded(count=9)
    tasks = body["state"]["workloads"][1]["tasks"]
    for i in (8, 9):
        tasks[i]["node"] = "m"
    body["state"]["nodes"] = [node("n", 8), node("m", 2)]
    answer = decide(body, None)
    assert evicted(answer) == [("y7", "preemption"), ("y9", "preemption")]


def test_independent_asks_do_not_see_one_another() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 11}})
    answer = decide(body, mode="independent")
    assert [d["outcome"] for d in answer["decisions"]] == ["admit", "admit"]
    assert "order" not in answer


@pytest.mark.parametrize(("asks", "most", "refuses"), [(2, 32, False), (2, 31, True), (1, 0, False)])
def test_independent_asks_have_a_bound(asks: int, most: int, refuses: bool, bounded: Bounded) -> None:
    """Two operations, two pools, eleven allocations and a node: 16 elements for each ask."""
    from app.solver.engines.ytsaurus import engine as module

    bounded(module, MOST_WORK=most)
    body = crowded()
    body["state"]["workloads"][1]["tasks"].append(alloc("more", 99, cpu=0))
    body["asks"] = [ask("x", "a", 1), ask("y", "b", 1)][:asks]
    if refuses:
        assert refused(body, lambda body: decide(body, mode="independent")) == {
            "/asks": "2 asks are too many to decide one by one on 16 elements: use mode cycle, or fewer at once"
        }
    else:
        assert decide(body, mode="independent")["decisions"][0]["outcome"] == "preempt"
    assert started(decide(body))


def test_the_order_of_a_cycle() -> None:
    body = crowded("non_starving", on={"capacity": {"user_slots": 100, "cpu": 11}})
    assert decide(body)["order"] == ["x-next", "y-next"]


def test_allocations_of_nothing_end() -> None:
    body = crowded("non_starving", count=2**31)
    body["asks"][0]["tasks"][0]["requests"] = {}
    answer = decide(body)
    assert answer["decisions"][0]["counts"] == {"next": 4096}


def test_an_unknown_node() -> None:
    assert list(refused(crowded(), lambda body: decide(body, "nowhere"))) == ["/options/ytsaurus/heartbeat_node"]


def test_too_large_for_every_node() -> None:
    decision = decide(crowded(need=11))["decisions"][0]
    assert (decision["outcome"], decision["conditions"][0]["reason"]) == ("infeasible", "NoFeasibleNode")


def test_the_explanation_names_candidates_stages_and_the_difference_that_decided() -> None:
    body = crowded("aggressively_starving", need=7, settings={"rules": "documented"})
    body["state"]["workloads"].append(operation("z", "a", ytsaurus={"starvation": "starving"}))
    body["asks"].append(ask("z", "a", 1, 1))
    why = decide(body, explain="full")["decisions"][2]["explanation"]
    rules = [step["rule"] for step in why["steps"]]
    assert rules[:2] == ["fair-share", "preemptive_normal"]
    assert "stage-order" in rules
    verdicts = {c["task"]: (c["verdict"], c["rule"]) for c in why["candidates"]}
    assert verdicts["y9"] == ("victim", "preemption")
    assert verdicts["y8"] == ("not-needed", "node-fits")
    assert verdicts["y0"] == ("protected", "non_preemptible")
    assert "1 allocation must stop" in why["headline"]


def test_the_blocker_is_another_s_start_only_where_there_was_room_for_the_ask_too() -> None:
    """Five cpus are preemptible. x takes one of them; z would have fitted with 5, and never with 6."""

    def blocker(need: int) -> str:
        body = crowded(count=1)
        body["state"]["workloads"].append(operation("z", "a", created_at="2026-01-01T01:00:00Z", **STARVING))
        body["asks"].append(ask("z", "a", 1, need))
        answer = decide(body, explain="summary")
        assert started(answer) == [("x-next", "n", "preemptive_normal")]
        return answer["decisions"][2]["explanation"]["blocker"]

    assert (blocker(5), blocker(6)) == ("AnotherTookThePreemption", "NotEnoughPreemptible")


def test_the_explanation_of_each_ask_is_its_own() -> None:
    """What goes for x is no victim of z, which waits, nor of y, which does not starve."""
    body = crowded(count=1)
    body["state"]["workloads"].append(operation("z", "a", created_at="2026-01-01T01:00:00Z", **STARVING))
    body["asks"].append(ask("z", "a", 1, 1))

    def told(decision: dict[str, Any]) -> dict[str, tuple[str, str]]:
        return {c["task"]: (c["verdict"], c["rule"]) for c in decision["explanation"]["candidates"]}

    x, y, z = (told(decision) for decision in decide(body, explain="full")["decisions"])
    assert (x["y9"], x["y8"]) == (("victim", "preemption"), ("not-needed", "node-fits"))
    assert (z["y9"], z["y8"]) == (("out-of-reach", "goes-for-another"), ("not-needed", "another-started"))
    assert (y["y9"], y["y8"]) == (("out-of-reach", "goes-for-another"), ("out-of-reach", "takes-no-part"))
    assert x["y0"] == y["y0"] == z["y0"] == ("protected", "non_preemptible")


def test_the_explanation_changes_no_decision() -> None:
    body = crowded(need=3)
    plain, told = decide(body), decide(body, explain="full")
    for decision in told["decisions"]:
        del decision["explanation"]
    assert plain == told
