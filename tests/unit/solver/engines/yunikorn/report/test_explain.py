"""What an explanation says, on clusters small enough to see that it is true."""

from typing import Any

from tests.yunikorn_world import Json, World, app, ask, node, queue, task

TWO, THREE = {"vcore": 2}, {"vcore": 3}


def world(*tasks: Json, nodes: list[Json] | None = None, guaranteed: int = 20) -> World:
    """Prod is guaranteed a lot and runs nothing; Test is guaranteed nothing and runs ``tasks``."""
    return World(
        queues=[queue("root"), queue("root.prod", {"vcore": guaranteed}), queue("root.test")],
        nodes=nodes or [node("n1", THREE), node("n2", THREE)],
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks)],
    )


def wanting(requests: Json, count: int = 1, name: str = "want", **more: Any) -> Json:
    one = ask(name, "root.prod", requests, workload="prod", **more)
    return one | {"tasks": [{"name": "x", "count": count, "requests": requests}]}


def why(of: World, *asks: Json, mode: str = "independent") -> Json:
    """The explanation of the last ask."""
    return of.decide(*asks, mode=mode, explain="full")["decisions"][-1]["explanation"]


def fates(explanation: Json) -> dict[str, tuple[str, str]]:
    return {one["task"]: (one["verdict"], one["rule"]) for one in explanation["candidates"]}


def test_an_ask_whose_last_task_waits_takes_nobody() -> None:
    of = world(task("a", "n1", THREE, 10), task("b", "n2", THREE, 20))
    both = why(of, wanting(THREE, 2))
    assert fates(both) == {"a": ("victim", "makes-room"), "b": ("victim", "makes-room")}
    assert [one["numbers"]["place"] for one in both["candidates"]] == [0, 1]
    assert both["headline"] == "2 tasks of root.test must go; n1 and n2 are reserved for want"
    three = why(of, wanting(THREE, 3))
    assert fates(three) == {"a": ("not-needed", "part-waits"), "b": ("not-needed", "part-waits")}
    assert three["blocker"] == (
        "every node that could make room for the ask is held for another: "
        "n1 and n2 are held for tasks 1 and 2 of the same ask"
    )
    assert three["headline"] == f"want waits: task 3 of 3: {three['blocker']}"


def test_candidates_are_told_in_order_of_workload_and_task() -> None:
    """Whatever the order in which they are thought of, here the newest first."""
    of = world(*(task(name, "n1", {"vcore": 1}, age) for name, age in (("c", 5), ("a", 30), ("b", 10))))
    of.workloads += [app("older", "root.test", task("z", "n2", THREE, 99)), app("also", "root.test")]
    told = why(of, wanting(TWO))["candidates"]
    assert [(one["workload"], one["task"]) for one in told] == [
        ("older", "z"), ("test", "a"), ("test", "b"), ("test", "c")
    ]  # fmt: skip


def test_only_nodes_where_somebody_goes_are_reserved() -> None:
    """One task of the ask has room on n1 now, the other one preempts on n2."""
    told = why(world(task("b", "n2", THREE, 20)), wanting(THREE, 2))
    assert told["headline"] == "1 task of root.test must go; n2 is reserved for want"


def test_nodes_held_for_other_asks_are_what_is_in_the_way() -> None:
    of = world(task("a", "n1", THREE, 10), task("b", "n2", THREE, 20), task("c", "n3", TWO, 30))
    of.nodes.append(node("n3", TWO))
    asks = [wanting(THREE, name=str(i)) for i in range(3)]
    told = why(of, *asks, mode="cycle")
    assert told["blocker"].endswith("n1 and n2 are held for asks 0 and 1")
    assert fates(told) == {
        "a": ("protected", "already-leaving"), "b": ("protected", "already-leaving"),
        "c": ("out-of-reach", "node-closed"),
    }  # fmt: skip
    decision = of.decide(*asks, mode="cycle")["decisions"][2]
    assert decision["conditions"][0]["reason"] == "PreemptionDoesNotHelp"


def test_held_nodes_are_told_in_the_order_of_the_nodes() -> None:
    of = world(task("a", "n1", THREE), task("b", "n2", THREE), nodes=[node("n1", THREE), node("n2", THREE)])
    of.reservations = [{"node": n, "ask": wanting(THREE, name=f"for-{n}", age=70)} for n in ("n2", "n1")]
    assert why(of, wanting(THREE))["blocker"].endswith("n1 and n2 are held for asks for-n1 and for-n2")


def test_one_node_held_for_one_ask() -> None:
    of = world(task("a", "n1", THREE), nodes=[node("n1", THREE)])
    of.reservations = [{"node": "n1", "ask": wanting(THREE, name="other", age=70)}]
    told = why(of, wanting(THREE))
    assert told["blocker"].endswith("n1 is held for ask other")
    assert fates(told) == {"a": ("out-of-reach", "node-held")}
    of.nodes.append(node("n2", THREE))
    of.workloads[1]["tasks"].append(task("b", "n2", THREE, priority=9))
    told = why(of, wanting(THREE))
    assert told["blocker"] == "no node can make room for the ask: searched below root"
    assert fates(told) == {"a": ("out-of-reach", "node-held"), "b": ("protected", "higher-priority")}
    held = why(of, wanting(THREE, feasible_nodes=["n1"]))
    assert held["blocker"].endswith("n1 is held for ask other")


def test_a_held_node_that_fails_the_predicates_is_not_in_the_way() -> None:
    of = world(task("a", "n1", THREE), nodes=[node("n1", THREE), node("n2", TWO)])
    of.reservations = [{"node": "n1", "ask": wanting(THREE, name="other", age=70)}]
    assert "held" not in why(of, wanting(THREE, feasible_nodes=["n2"]))["blocker"]


def test_who_is_put_back_who_was_not_reached_and_where_nothing_helps() -> None:
    of = world(
        task("small", "n1", {"vcore": 1}, 10), task("big", "n1", TWO, 20), task("late", "n1", TWO, 30),
        task("elsewhere", "n2", TWO, 10), task("tiny", "n3", {"vcore": 1}, 10), task("free", None, TWO),
        nodes=[node("n1", {"vcore": 5}), node("n2", TWO), node("n3", TWO), node("n4", {"vcore": 9}, schedulable=False)],
    )  # fmt: skip
    of.workloads[1]["tasks"].append(task("bound", "n3", {"vcore": 1}, 10, required_node="n3"))
    of.workloads.append(app("disk", "root.test", task("disk", "n1", {"disk": 0})))
    of.nodes[1]["schedulable"] = False
    told = why(of, wanting(TWO))
    assert fates(told) == {
        "small": ("put-back", "fits-without"), "big": ("victim", "makes-room"), "late": ("not-needed", "not-reached"),
        "elsewhere": ("out-of-reach", "node-closed"), "tiny": ("not-needed", "not-reached"),
        "free": ("out-of-reach", "on-no-node"), "bound": ("protected", "bound-to-its-node"),
        "disk": ("out-of-reach", "no-common-resource"),
    }  # fmt: skip
    of.nodes = of.nodes[1:]
    of.workloads[1]["tasks"] = of.workloads[1]["tasks"][3:5]
    of.workloads.pop()
    of.workloads[1]["tasks"].append(task("rest", "n3", {"vcore": 1}, 5, preemptible=True, priority=5))
    assert fates(why(of, wanting(TWO)))["tiny"] == ("not-needed", "makes-no-room")


def test_a_required_node_tells_of_everybody() -> None:
    of = world(
        task("a", "n1", TWO, 10), task("b", "n1", {"vcore": 1}, 20), task("c", "n2", THREE),
        task("high", "n1", {"disk": 1}, priority=9), task("own", "n1", {"memory": 0}),
    )  # fmt: skip
    of.workloads.append(app("want", "root.prod", task("mine", "n1", {"vcore": 0})))
    told = why(of, {**wanting(TWO, required_node="n1"), "workload": "want"})
    assert fates(told) == {
        "a": ("victim", "makes-room"), "b": ("not-needed", "not-reached"), "c": ("out-of-reach", "on-another-node"),
        "high": ("protected", "higher-priority"), "own": ("out-of-reach", "no-common-resource"),
        "mine": ("protected", "same-application"),
    }  # fmt: skip
    assert fates(why(of, wanting({"vcore": 9}, required_node="n1")))["a"] == ("not-needed", "makes-no-room")


def test_the_released_rules_put_back_whom_trimming_spares() -> None:
    of = world(task("a", "n1", TWO, 10), task("b", "n1", {"vcore": 1, "memory": 1}, 20), task("c", "n1", TWO, 30))
    of.nodes = [node("n1", {"vcore": 5, "memory": 1})]
    of.rules = "shipped"
    told = why(of, wanting({"vcore": 2, "memory": 1}))
    taken = {name for name, (verdict, _) in fates(told).items() if verdict == "victim"}
    victims = of.one(wanting({"vcore": 2, "memory": 1}))["victims"]
    assert taken == {victim["task"] for victim in victims}


def test_who_would_leave_a_queue_below_its_guarantee_is_protected_by_that_law() -> None:
    of = world(task("big", "n1", THREE, 10), task("small", "n2", {"vcore": 1}, 20))
    of.queues[2] = queue("root.test", {"vcore": 2})
    found = why(of, wanting(THREE))
    assert fates(found) == {"big": ("protected", "law-2"), "small": ("victim", "makes-room")}
