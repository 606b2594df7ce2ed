"""Asks that must run on one node (DaemonSets), under both rule sets."""

from typing import Any

import pytest

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

TWO = {"vcore": 2}


def world(*tasks: Json, size: int = 6, rules: str = "documented", **more: Any) -> World:
    return World(
        queues=[queue("root"), queue("root.ds"), queue("root.test", {"vcore": 100})],
        nodes=[node("n1", {"vcore": size}), node("n2", {"vcore": 100})],
        workloads=[app("test", "root.test", *tasks)], rules=rules, **more,
    )  # fmt: skip


def daemon(requests: Json, **more: Any) -> Json:
    return ask("ds", "root.ds", requests, age=0, required_node="n1", **more)


def chosen(of: World, wanted: Json) -> list[str]:
    return [victim["task"] for victim in of.one(wanted)["victims"]]


def test_no_delay_no_guarantee_no_fence() -> None:
    of = world(task("old", "n1", TWO, 200), task("new", "n1", TWO, 100), task("x", "n1", TWO, 300))
    of.queues[1] = queue("root.ds", preemption_policy="fence")
    assert chosen(of, daemon(TWO)) == ["new"]
    assert of.one(daemon(TWO))["node"] == "n1"


def test_plain_then_opted_out_then_originators_by_priority_and_age() -> None:
    of = world(
        task("driver", "n1", TWO, 1, originator=True), task("out", "n1", TWO, 2, preemptible=False),
        task("high", "n1", TWO, 3, priority=4), task("low", "n1", TWO, 4), size=8, rules="shipped",
    )  # fmt: skip
    assert chosen(of, daemon({"vcore": 8}, priority=4)) == ["low", "high", "out", "driver"]
    assert chosen(of, daemon({"vcore": 6}, priority=3)) == ["low", "out", "driver"]


def test_shipped_collects_until_the_victims_alone_cover_the_ask() -> None:
    tasks = [task("a", "n1", TWO, 30), task("b", "n1", TWO, 20)]
    assert chosen(world(*tasks, size=5, rules="shipped"), daemon({"vcore": 3})) == ["b", "a"]
    assert chosen(world(*tasks, size=5), daemon({"vcore": 3})) == ["b"]


@pytest.mark.parametrize(("occupied", "expected"), [(5, ["b", "a"]), (6, [])])
def test_shipped_takes_nobody_where_any_resource_stays_overcommitted(occupied: int, expected: list[str]) -> None:
    tasks = [task("a", "n1", {"vcore": 2, "disk": 3}, 30), task("b", "n1", TWO, 20)]
    of = world(*tasks, size=5, rules="shipped")
    of.nodes[0] |= {"capacity": {"vcore": 5, "disk": 5}, "occupied": {"disk": occupied}}
    assert chosen(of, daemon({"vcore": 3})) == expected


def test_shipped_turns_equals_round_and_takes_the_smaller_first() -> None:
    same = [task(name, "n1", TWO, 50) for name in ("a", "b", "c")]
    assert chosen(world(*same, rules="shipped"), daemon({"vcore": 6})) == ["c", "b", "a"]
    mixed = [task("a", "n1", {"vcore": 3}, 50), task("b", "n1", {"vcore": 1}, 50), task("c", "n1", TWO, 50)]
    assert chosen(world(*mixed, rules="shipped"), daemon({"vcore": 6})) == ["b", "c", "a"]
    crowd = [task(f"t{i:02}", "n1", {"vcore": 1}, 50) for i in range(30)]
    assert chosen(world(*crowd, size=30, rules="shipped"), daemon({"vcore": 2})) == ["t29", "t28"]


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ({"vcore": 2}, {"vcore": 2}, "ba"),
        ({"vcore": 2}, {"vcore": 2, "disk": 1}, "ab"),
        ({"vcore": 2, "disk": 1}, {"vcore": 2}, "ba"),
        ({"vcore": 1}, {"vcore": 2}, "ab"),
        ({"vcore": 1, "disk": 2}, {"vcore": 2, "disk": 1}, "ba"),
        ({"vcore": 1, "disk": 2}, {"vcore": 2}, "ba"),
        ({"vcore": 2}, {"vcore": 2, "disk": 0}, "ba"),
    ],
    ids=["equal", "b has more types", "a has more types", "b has more", "neither", "neither by types", "nothing more"],
)
def test_a_task_goes_before_everybody_that_it_is_not_strictly_larger_than(a: Json, b: Json, order: str) -> None:
    """Of one age, in the order of their names, by insertion."""
    of = world(task("a", "n1", a, 50), task("b", "n1", b, 50), rules="shipped")
    of.nodes[0] = node("n1", {"vcore": 4, "disk": 4})
    assert "".join(chosen(of, daemon({"vcore": 4, "disk": 1}))) == order


@pytest.mark.parametrize(
    ("count", "expected"), [(21, "t20 t18 t17 t15 t14"), (23, "t21 t18 t22 t20 t17"), (45, "t44 t42 t39 t38 t36")]
)
def test_more_than_twenty_are_sorted_in_blocks_and_merged(count: int, expected: str) -> None:
    """Two of the three sizes can be compared, so that the order depends on how it is sorted: by insertion alone
    23 would begin with t21, t20 and 45 go on with t41 after t42."""
    sizes = [{"vcore": 1, "memory": 2}, {"vcore": 2, "memory": 2}, {"vcore": 3, "memory": 1}]
    of = world(*(task(f"t{i:02}", "n1", sizes[i % 3], 50) for i in range(count)), rules="shipped")
    of.nodes[0] = node("n1", {"vcore": 2 * count, "memory": 999})
    assert " ".join(chosen(of, daemon({"vcore": 9}))) == expected


def test_more_than_twenty_of_sizes_that_all_compare_go_smaller_first_and_last_first() -> None:
    tasks = [task(f"t{i:02}", "n1", {"vcore": 1 + i % 2}, 50) for i in range(24)]
    of = world(*tasks, size=36, rules="shipped")
    assert chosen(of, daemon({"vcore": 14}))[-3:] == ["t02", "t00", "t23"]
    assert chosen(of, daemon({"vcore": 3})) == ["t22", "t20", "t18"]


def test_documented_takes_an_opted_out_task_only_when_no_driver_would_do() -> None:
    driver = task("driver", "n1", TWO, 1, originator=True)
    out = task("out", "n1", TWO, 2, preemptible=False)
    assert chosen(world(driver, out, size=4), daemon(TWO)) == ["driver"]
    assert chosen(world(driver, out, size=4), daemon({"vcore": 4})) == ["out", "driver"]
    assert chosen(world(driver, out, size=4, rules="shipped"), daemon(TWO)) == ["out"]


def test_who_is_never_taken() -> None:
    for kept in (
        {"required_node": "n1"}, {"priority": 1}, {"state": "preempted"}, {"state": "released"}, {"node": "n2"},
    ):  # fmt: skip
        decision = world(task("t", "n1", {"vcore": 6}) | kept, task("u", "n1", {"disk": 1}), size=6)
        if kept == {"node": "n2"}:
            decision.workloads[0]["tasks"].append(task("v", "n1", {"vcore": 5}, required_node="n1"))
        found = decision.one(daemon(TWO))
        assert (found["outcome"], found["victims"]) == ("wait", [])
        assert found["conditions"][0]["reason"] == "NoVictimForRequiredNode"
        assert found["conditions"][0]["message"].endswith("n1")


def test_never_and_repeats() -> None:
    of = world(task("t", "n1", {"vcore": 6}))
    assert chosen(of, daemon(TWO, preemption_policy="Never")) == ["t"]
    assert chosen(of, daemon(TWO, yunikorn={"triggered_preemption": True})) == []


def test_it_takes_the_node_from_asks_that_may_run_elsewhere() -> None:
    held: Json = {"node": "n1", "ask": ask("other", "root.test", TWO, workload="test")}
    of = world(task("t", "n1", {"vcore": 4}), reservations=[held])
    answer = of.decide(daemon(TWO))
    assert answer["decisions"][0]["outcome"] == "admit"
    assert answer["notes"]["cancelled_reservations"] == [{"node": "n1", "ask": "other"}]
    held["ask"]["required_node"] = "n1"
    assert of.one(daemon(TWO))["outcome"] != "admit"


@pytest.mark.parametrize(
    ("holders", "taken"),
    [
        ([], True), (["ds"], True), (["plain"], True), (["bound"], False), (["plain", "bound"], False),
        (["ds", "bound"], False), (["bound", "plain"], False),
    ],
)  # fmt: skip
def test_where_there_is_room_only_another_daemon_keeps_the_node(holders: list[str], taken: bool) -> None:
    """And not from asks of the released code: all daemons hold the node, and whichever fits runs."""
    asks = {"ds": daemon(TWO), "plain": ask("plain", "root.test", TWO), "bound": daemon(TWO) | {"id": "bound"}}
    of = world(task("t", "n1", TWO), reservations=[{"node": "n1", "ask": asks[name]} for name in holders])
    assert (of.one(daemon(TWO))["outcome"] == "admit") is taken
    of.rules = "shipped"
    assert of.one(daemon(TWO))["outcome"] == "admit"


def test_daemons_of_the_released_code_share_what_is_free_and_evict_for_what_is_not() -> None:
    held = [{"node": "n1", "ask": daemon(TWO) | {"id": "bound"}}]
    for size, expected in ((4, []), (3, ["t"])):
        of = world(task("t", "n1", TWO), size=size, rules="shipped", reservations=held)
        assert chosen(of, daemon(TWO)) == expected


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_reservations_of_its_own_and_of_other_daemons_stay(rules: str) -> None:
    """Where it preempts on the node, too."""
    other = ask("other", "root.test", TWO, workload="test")
    held = [other, daemon(TWO), other | {"id": "bound", "required_node": "n1"}, other | {"id": "more"}]
    of = world(task("t", "n1", {"vcore": 6}), rules=rules, reservations=[{"node": "n1", "ask": one} for one in held])
    answer = of.decide(daemon(TWO))
    assert [one["task"] for one in answer["decisions"][0]["victims"]] == ["t"]
    assert [one["ask"] for one in answer["notes"]["cancelled_reservations"]] == ["other", "more"]


def test_the_node_is_named_by_who_waits_for_it() -> None:
    of = world(task("t", "n1", {"vcore": 6}), task("u", "n2", {"vcore": 100}, priority=9))
    (found,) = of.one(daemon(TWO) | {"required_node": "n2"})["conditions"]
    assert (found["reason"], found["message"]) == (
        "NoVictimForRequiredNode", "nothing that may be preempted makes room on the required node: n2",
    )  # fmt: skip
    of.workloads[0]["tasks"][1] |= {"state": "preempted"}
    of.queues[1] = queue("root.ds", {"vcore": (None, 1)})
    (found,) = of.one(daemon(TWO) | {"required_node": "n2"})["conditions"]
    assert found["reason"] == "NoVictimForRequiredNode", "it is above a limit, too"


def test_what_no_node_has_is_not_made_room_for() -> None:
    for rules in ("documented", "shipped"):
        of = world(task("t", "n1", {"vcore": 6}), rules=rules)
        assert chosen(of, daemon({"vcore": 2, "disk": 1})) == []
        assert chosen(of, daemon({"vcore": 2, "disk": 0})) == ["t"]


def units(*sizes: Json) -> list[Json]:
    """Tasks t0, t1, ... of these amounts, the newest first."""
    return [task(f"t{i}", "n1", size, 10 + i) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("free", "wanted", "shipped", "documented"),
    [
        ({}, {"memory": 1}, ["t0"], ["t0"]), ({}, {"memory": 2}, ["t0", "t1"], ["t0", "t1"]),
        ({}, {"memory": 3}, ["t0", "t1", "t2"], ["t0", "t1", "t2"]), ({}, {"memory": 4}, [], []),
        # What is free makes up for what is short in the end; the released code collects everybody first.
        ({"memory": 1}, {"memory": 4}, ["t0", "t1", "t2"], ["t0", "t1", "t2"]), ({"memory": 1}, {"memory": 5}, [], []),
        ({"memory": 1}, {"memory": 2}, ["t0", "t1"], ["t0"]),
        # Every type must be there.
        ({"disk": 1}, {"memory": 1, "disk": 1}, ["t0", "t1", "t2"], ["t0"]), ({}, {"memory": 1, "disk": 1}, [], []),
    ],
)  # fmt: skip
def test_every_unit_counts(free: Json, wanted: Json, shipped: list[str], documented: list[str]) -> None:
    """Memory is counted in whole units."""
    for rules, expected in (("shipped", shipped), ("documented", documented)):
        of = world(*units(*[{"memory": 1}] * 3), rules=rules)
        of.nodes[0] = node("n1", {"memory": 3 + free.get("memory", 0), **({"disk": 1} if "disk" in free else {})})
        assert chosen(of, daemon(wanted)) == expected, rules


def test_collecting_ends_once_every_type_is_covered() -> None:
    """By who has both; the documented choice puts back whoever is not needed then."""
    tasks = units({"memory": 1}, {"memory": 1, "disk": 1}, {"disk": 1})
    for rules, expected in (("shipped", ["t0", "t1"]), ("documented", ["t1"])):
        of = world(*tasks, rules=rules)
        of.nodes[0] = node("n1", {"memory": 2, "disk": 2})
        assert chosen(of, daemon({"memory": 1, "disk": 1})) == expected, rules


def test_an_explanation_tells_whom_the_search_took_and_whom_it_did_not_reach() -> None:
    of = world(*units(*[{"memory": 1}] * 3), rules="shipped")
    of.nodes[0] = node("n1", {"memory": 3})

    def fates(amount: int) -> dict[str, str]:
        told = of.one(daemon({"memory": amount}), explain="full")["explanation"]["candidates"]
        return {one["task"]: one["rule"] for one in told}

    assert fates(2) == {"t0": "makes-room", "t1": "makes-room", "t2": "not-reached"}
    assert fates(4) == dict.fromkeys(("t0", "t1", "t2"), "makes-no-room")
    steps = of.one(daemon({"memory": 2}), explain="full")["explanation"]["steps"]
    (told,) = (step for step in steps if step["rule"] == "node")
    assert (told["detail"], told["numbers"]["victims"]) == ("n1: 2 victims", ["test/t0", "test/t1"])
    steps = of.one(daemon({"memory": 4}), explain="full")["explanation"]["steps"]
    assert [step["detail"] for step in steps if step["rule"] == "node-out"] == [
        "n1: what may be preempted there does not make room"
    ]


def test_an_explanation_tells_who_is_put_back() -> None:
    of = world(*units({"memory": 1}, {"memory": 1}, {"memory": 3}, {"memory": 1}))
    of.nodes[0] = node("n1", {"memory": 6})
    told = of.one(daemon({"memory": 4}), explain="full")["explanation"]["candidates"]
    assert {one["task"]: (one["verdict"], one["rule"]) for one in told} == {
        "t0": ("put-back", "fits-without"), "t1": ("victim", "makes-room"), "t2": ("victim", "makes-room"),
        "t3": ("not-needed", "not-reached"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("requests", "more", "kept"),
    [
        ({"vcore": 5}, {}, True), ({"vcore": 7}, {}, False),
        ({"vcore": 5}, {"yunikorn": {"triggered_preemption": True}}, True),
    ],
    ids=["large enough", "too small a node", "has evicted"],
)  # fmt: skip
def test_shipped_an_ask_that_waits_keeps_its_node_from_those_that_come_after(
    requests: Json, more: Json, kept: bool
) -> None:
    """Nobody may go for it; a node that is too small it can't hold. Another that requires the node is not kept away."""
    anywhere = ask("plain", "root.test", TWO, workload="test", feasible_nodes=["n1"])
    asks = [daemon(requests, priority=1, **more), anywhere, daemon(TWO) | {"id": "small"}]
    of = world(task("t", "n1", TWO, priority=9), rules="shipped")
    outcomes = [one["outcome"] for one in of.decide(*asks, mode="cycle")["decisions"]]
    assert outcomes == ["wait", "wait" if kept else "admit", "admit"]
    of.rules = "documented"
    assert [one["outcome"] for one in of.decide(*asks, mode="cycle")["decisions"]] == ["wait", "admit", "admit"]


def test_shipped_it_takes_the_node_from_others_though_it_has_to_wait() -> None:
    held = {"node": "n1", "ask": ask("other", "root.test", TWO, workload="test")}
    of = world(task("t", "n1", TWO, priority=9), rules="shipped", reservations=[held])
    wanted = daemon({"vcore": 5})
    answer = of.decide(wanted)
    assert answer["decisions"][0]["outcome"] == "wait"
    assert answer["notes"]["cancelled_reservations"] == [{"node": "n1", "ask": "other"}]
    of.queues[1] = queue("root.ds", {"vcore": (None, 4)})
    assert of.decide(wanted)["notes"]["cancelled_reservations"] == [], "its queue has no room for it"
    of.rules = "documented"
    assert of.decide(wanted)["notes"]["cancelled_reservations"] == []
