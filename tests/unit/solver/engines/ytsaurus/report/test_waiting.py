"""Why an ask that starts nothing waits, or can never run: outcome, code, message, shortages, what would let it in."""

from typing import Any

import pytest

from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, decide, node, operation, pool, request

Json = dict[str, Any]
TOO_RECENT = {"last_preemptive_scheduling_at": "2026-01-01T11:59:59Z"}


def body(need: Any = 1, count: int = 1, level: str = "starving", settings: Json | None = None, **more: Any) -> Json:
    """y fills n's ten cpus and is due five of them; x of pool a below pool top wants ``count`` times ``need``."""
    tasks = [alloc(f"y{i}", i) for i in range(10)]
    pools = [pool("top"), pool("a", parent="top"), pool("b")]
    operations = [operation("x", "a", ytsaurus={"starvation": level}), operation("y", "b", tasks)]
    return request(pools, [node()], operations, [ask("x", "a", count, need, **more), ask("y", "b", 5)], settings)


def first(asked: Json, on: str | None = "n") -> tuple[str, str, str, list[tuple[Any, ...]]]:
    """Outcome, code, message and shortages of the first ask."""
    decision = decide(asked, on, explain="summary")["decisions"][0]
    (condition,) = decision["conditions"]
    assert (condition["type"], condition["status"]) == ("Scheduled", "False")
    assert decision["explanation"]["blocker"] == condition["reason"]
    wanting = "waits" if decision["outcome"] == "wait" else "can never run"
    assert decision["explanation"]["headline"] == f"x-next {wanting}: {condition['message']}"
    short = [
        (s["resource"], s.get("node"), s.get("queue"), s["requested"], s["available"], s["short"])
        for s in decision.get("shortages") or []
    ]
    return decision["outcome"], condition["reason"], condition["message"], short


def limited(asked: Json, pool_at: int | None, limit: Json, running: int) -> Json:
    """``limit`` on a pool (its place), or on x itself, of which ``running`` allocations run."""
    asked["state"]["workloads"][0]["tasks"] = [alloc(f"x{i}", i) for i in range(running)]
    if pool_at is None:
        asked["state"]["workloads"][0]["limit"] = limit
    else:
        quota = {name: {"limit": amount} for name, amount in limit.items()}
        asked["configuration"]["queues"][pool_at]["quota"] = quota
    return asked


def test_on_one_node_the_shortage_is_that_node_s() -> None:
    short = [("cpu", "n", None, 1, 0, 1)]
    said = "n has no free resources for it, and as its operation is not starving nobody has to stop"
    assert first(body(level="non_starving")) == ("wait", "NotStarving", said, short)
    asked = body()
    asked["state"]["nodes"][0]["ytsaurus"] = TOO_RECENT
    said = "n has no free resources for it, and preemption was tried there too recently"
    assert first(asked) == ("wait", "PreemptiveSchedulingBackoff", said, short)
    said = "n has no room for it even without all allocations that it may preempt"
    assert first(body(6)) == ("wait", "NotEnoughPreemptible", said, [("cpu", "n", None, 6, 0, 6)])
    asked = body(6)
    asked["state"]["nodes"][0] = node(cpu=10.5)
    assert first(asked)[3] == [("cpu", "n", None, 6, 0.5, 5.5)]


def test_on_several_nodes_no_single_shortage_is_named() -> None:
    asked = body(6)
    asked["state"]["nodes"].append(node("m", 1))
    said = "the nodes have no room for it even without all allocations that it may preempt"
    assert first(asked, None) == ("wait", "NotEnoughPreemptible", said, [])
    asked["state"]["nodes"][0]["ytsaurus"] = TOO_RECENT
    assert first(asked, None)[1] == "NotEnoughPreemptible"  # it was tried on m
    asked["state"]["nodes"][1]["ytsaurus"] = TOO_RECENT
    assert first(asked, None)[1] == "PreemptiveSchedulingBackoff"


def test_what_can_never_run() -> None:
    assert first(body(count=0)) == ("infeasible", "NothingAsked", "the ask wants no allocation", [])
    large = "no node that it may use is large enough for one of its allocations"
    assert first(body(10))[0] == "wait"
    assert first(body(10.001)) == ("infeasible", "NoFeasibleNode", large, [])
    assert first(body(feasible_nodes=[])) == ("infeasible", "NoFeasibleNode", large, [])
    asked = body(10)
    asked["state"]["nodes"][0]["schedulable"] = False
    assert first(asked)[1] == "NoFeasibleNode"


@pytest.mark.parametrize("need", [9, 10])
def test_a_node_that_the_ask_may_use_counts_alone(need: int) -> None:
    asked = body(need, feasible_nodes=["m"])
    asked["state"]["nodes"].append(node("m", 9))
    assert first(asked)[1] == ("NodeNotAllowed" if need == 9 else "NoFeasibleNode")


def test_the_operation_s_own_standing() -> None:
    asked = body()
    asked["state"]["workloads"][0]["ytsaurus"]["suspended"] = True
    assert first(asked) == ("wait", "Suspended", "the operation is suspended", [])
    asked = body(level="non_starving", count=5)
    asked["state"]["workloads"][0]["ytsaurus"]["preemption_mode"] = "graceful"
    asked["state"]["workloads"][0]["tasks"] = [alloc(f"x{i}", i) for i in range(7)]
    asked["state"]["nodes"][0] = node(cpu=17)
    said = "a graceful operation that has its fair share starts nothing more"
    assert first(asked) == ("wait", "GracefulAndSatisfied", said, [])


@pytest.mark.parametrize(("at", "name"), [(None, "operation x"), (1, "pool a"), (0, "pool top")])
def test_limits_that_are_reached(at: int | None, name: str) -> None:
    queue = None if at is None else name.removeprefix("pool ")
    said = f"one more allocation would exceed the resource_limits of {name}"
    asked = limited(body(2), at, {"cpu": 3, "memory": 0}, 2)
    assert first(asked) == ("wait", "ResourceLimitsReached", said, [("cpu", None, queue, 2, 1, 1)])
    changes = decide(asked, explain="summary")["decisions"][0]["explanation"].get("smallest_change")
    if queue is None:
        assert changes is None
    else:
        (change,) = changes
        assert (change["queue"], change["resource"], change["field"]) == (queue, "cpu", "limit")
        assert (change["current"], change["needed"]) == (3, 4)
    asked = limited(body(2), at, {"cpu": 1}, 0)
    said = f"one of its allocations alone exceeds the resource_limits of {name}"
    assert first(asked) == ("infeasible", "NeverWithinLimits", said, [("cpu", None, queue, 2, 1, 1)])


def test_the_nearest_limit_is_the_one_that_is_named() -> None:
    asked = limited(limited(body(2), 0, {"cpu": 3}, 2), 1, {"cpu": 3}, 2)
    assert first(asked)[2].endswith("of pool a")
    assert first(limited(asked, None, {"cpu": 3}, 2))[2].endswith("of operation x")


def test_too_little_spare_is_said_only_where_the_allocation_itself_would_fit() -> None:
    spare = {"min_spare_allocation_resources": {"cpu": 2}}
    asked = body(level="non_starving", settings=spare)
    asked["state"]["nodes"][0] = node(cpu=11)
    said = "the node of this heartbeat has less than min_spare_allocation_resources left"
    assert first(asked) == ("wait", "TooLittleSpare", said, [])
    asked["asks"][0]["tasks"][0]["requests"]["cpu"] = 1.5
    assert first(asked)[1] == "NotStarving"


def test_an_ask_of_several_tasks_waits_for_what_holds_for_all_of_them() -> None:
    asked = body(11)
    asked["asks"][0]["tasks"].append({"name": "small", "requests": {"user_slots": 1, "cpu": 6}})
    assert first(asked)[1] == "NotEnoughPreemptible"
    asked["asks"][0]["tasks"][1]["requests"]["cpu"] = 12
    assert first(asked)[1] == "NoFeasibleNode"


@pytest.mark.parametrize(
    ("need", "level", "of_z", "code"),
    [
        (3, "starving", {}, "AnotherTookThePreemption"),
        (5, "starving", {}, "AnotherTookThePreemption"),
        (6, "starving", {}, "NotEnoughPreemptible"),
        (5, "starving", {"feasible_nodes": ["n"]}, "AnotherTookThePreemption"),
        (6, "starving", {"feasible_nodes": ["n"]}, "NotEnoughPreemptible"),
        (3, "starving", {"required_node": "n"}, "AnotherTookThePreemption"),
        (3, "aggressively_starving", {}, "NotEnoughPreemptible"),  # x has a stage of its own then
    ],
)
def test_another_took_the_preemption_only_where_there_was_room_for_this_one_too(
    need: int, level: str, of_z: Json, code: str
) -> None:
    """Of y's ten cpus five can be taken; x takes three, or all nine that are not protected are its to take."""
    asked = body(3, level=level)
    asked["state"]["workloads"].append(operation("z", "a", ytsaurus={"starvation": "starving"}))
    asked["asks"] = [ask("z", "a", 1, need) | of_z, asked["asks"][0], asked["asks"][1]]
    answer = decide(asked)
    assert [one["outcome"] for one in answer["decisions"]] == ["wait", "preempt", "wait"]
    assert answer["decisions"][0]["conditions"][0]["reason"] == code


def test_two_asks_of_one_shape_that_wait_alike_are_told_the_same() -> None:
    asked = body(6)
    asked["state"]["workloads"].append(operation("z", "a", ytsaurus={"starvation": "starving"}))
    asked["asks"].append(ask("z", "a", 1, 6))
    asked["asks"].append(ask("z", "a", 1, 7) | {"id": "larger"})
    waits = [decide(asked)["decisions"][i] for i in (0, 2, 3)]
    assert [one["shortages"][0]["requested"] for one in waits] == [6, 6, 7]
    assert len({one["conditions"][0]["message"] for one in waits}) == 1


def test_what_another_occupies_beyond_a_node_is_no_less_than_nothing() -> None:
    asked = body(6)
    asked["state"]["nodes"][0] = node(cpu=10, occupied={"cpu": 3})
    assert first(asked)[3] == [("cpu", "n", None, 6, 0, 6)]
