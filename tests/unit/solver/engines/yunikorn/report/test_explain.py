"""What an explanation says, on clusters small enough to see that it is true."""

from typing import Any

import pytest

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

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
    mine = task("mine", "n1", {"vcore": 0}), task("also", "n1", {"vcore": 0, "disk": 1})
    of.workloads.append(app("want", "root.prod", *mine))
    told = why(of, {**wanting(TWO, required_node="n1"), "workload": "want"})
    assert fates(told) == {
        "a": ("victim", "makes-room"), "b": ("not-needed", "not-reached"), "c": ("out-of-reach", "on-another-node"),
        "high": ("protected", "higher-priority"), "own": ("out-of-reach", "no-common-resource"),
        "mine": ("protected", "same-application"), "also": ("protected", "same-application"),
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


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_every_rule_that_keeps_a_task(rules: str) -> None:
    """Of an ask inside the fence p, which both rule sets keep alike but for its own application."""
    quotas = {"root.p.own": 20, "root.p.within": 9, "root.p.over": None, "root.p.off": None, "root.p.high": None}
    of = World(
        queues=[
            queue("root"), queue("root.p", preemption_policy="fence"),
            *(queue(name, {"vcore": n} if n else None) for name, n in quotas.items()), queue("root.q"),
        ],
        nodes=[node("n1", {"vcore": 99}), node("n2", {"vcore": 3})], workloads=[], rules=rules,
    )  # fmt: skip
    of.queues[5] = queue("root.p.off", preemption_policy="disabled")
    of.queues[6] = queue("root.p.high", priority_policy="fence", priority_offset="3")
    one = {"vcore": 1}
    of.workloads = [
        app("own", "root.p.own", task("own", "n1", one)), app("within", "root.p.within", task("within", "n1", one)),
        app("off", "root.p.off", task("off", "n1", one)), app("high", "root.p.high", task("high", "n1", one)),
        app("out", "root.q", task("out", "n1", one)),
        app("want", "root.p.over", task("mine", "n1", one)),
        app(
            "over", "root.p.over", task("bound", "n1", one, required_node="n1"),
            task("gone", "n1", one, state="preempted"), task("released", "n1", one, state="released"),
            task("nowhere", None, one), task("disk", "n1", {"disk": 1}),
            task("prior", "n1", one, priority=2), task("equal", "n1", {"vcore": 3}, priority=1),
            task("full", "n1", {"vcore": 86}, 1, priority=2), task("wall", "n2", {"vcore": 3}, 1, priority=2),
        ),
    ]  # fmt: skip
    wanted = ask("want", "root.p.own", THREE, workload="want", priority=1)
    told = fates(of.one(wanted, explain="full")["explanation"])
    assert told.pop("mine") == (
        ("protected", "same-application") if rules == "documented" else ("not-needed", "not-reached")
    )  # fmt: skip
    assert told == {
        "own": ("out-of-reach", "asking-queue"), "within": ("protected", "within-guarantee"),
        "off": ("protected", "preemption-disabled"), "high": ("protected", "priority-fence"),
        "out": ("out-of-reach", "outside-the-fence"), "bound": ("protected", "bound-to-its-node"),
        "gone": ("protected", "already-leaving"), "released": ("protected", "already-leaving"),
        "nowhere": ("out-of-reach", "on-no-node"), "disk": ("out-of-reach", "no-common-resource"),
        "prior": ("protected", "higher-priority"), "equal": ("victim", "makes-room"),
        "full": ("protected", "higher-priority"), "wall": ("protected", "higher-priority"),
    }  # fmt: skip


def test_candidates_and_those_that_are_kept_are_told_in_one_order() -> None:
    tasks = (task(f"t{i}", "n1", {"vcore": 1}, 10 - i, priority=9 * (i % 2)) for i in range(3))
    of = world(*tasks, nodes=[node("n1", THREE)])
    told = why(of, wanting(THREE))["candidates"]
    assert [(one["task"], one["verdict"]) for one in told] == [
        ("t0", "not-needed"), ("t1", "protected"), ("t2", "not-needed")
    ]  # fmt: skip


def test_the_numbers_of_a_candidate() -> None:
    of = world(
        task("a", "n1", {"vcore": 1, "memory": 2}, 10, priority=-3), task("b", "n1", TWO, 20, originator=True),
        task("c", "n2", TWO, 20, preemptible=False),
    )  # fmt: skip
    told = {one["task"]: one for one in why(of, wanting(THREE))["candidates"]}
    common = {"queue": "root.test", "workload": "test"}
    assert told["a"].items() >= (common | {"node": "n1"}).items()
    assert told["c"].items() >= (common | {"node": "n2"}).items()
    numbers = {name: one["numbers"] for name, one in told.items()}
    assert numbers == {
        "a": {
            "priority": -3, "opted_out": False, "originator": False, "requests": {"vcore": 1, "memory": 2}, "place": 0
        },
        "b": {"priority": 0, "opted_out": False, "originator": True, "requests": TWO, "place": 1},
        "c": {"priority": 0, "opted_out": True, "originator": False, "requests": TWO},
    }  # fmt: skip


def test_steps_and_headline_count_tasks_only_where_there_are_several() -> None:
    of = world(task("a", "n1", THREE, priority=9))
    single = why(of, wanting(THREE, name="one", feasible_nodes=["n1"]))
    assert single["headline"] == "one waits: nobody inside the fence may be preempted for this ask: searched below root"
    assert "task" not in {step["rule"] for step in single["steps"]}
    two = why(of, wanting(THREE, 2))
    assert [(step["detail"], step["numbers"]) for step in two["steps"] if step["rule"] == "task"] == [
        ("x: admit", {"place": 0}), ("x: wait", {"place": 1})
    ]  # fmt: skip
    assert two["headline"].startswith("want waits: task 2 of 2: ")


def test_queues_are_named_in_order() -> None:
    names = ["root.z", "root.m", "root.a", "root.k", "root.c"]
    of = world(nodes=[node("n1", {"vcore": 5})])
    of.queues += [queue(name) for name in names]
    of.workloads += [app(name[5:], name, task(name[5:], "n1", {"vcore": 1}, i)) for i, name in enumerate(names)]
    told = why(of, wanting({"vcore": 5}))["headline"]
    assert told == "5 tasks of root.a, root.c, root.k, root.m, root.z must go; n1 is reserved for want"


def test_a_node_that_made_room_in_the_end_is_not_told_as_one_that_did_not() -> None:
    """Opted-out tasks come into question in a second round."""
    of = world(task("out", "n1", THREE, preemptible=False), task("a", "n1", {"vcore": 1}))
    of.nodes = [node("n1", {"vcore": 4}), node("n2", {"vcore": 1})]
    for more in ({}, {"required_node": "n1"}):
        steps = [(step["rule"], step["detail"]) for step in why(of, wanting({"vcore": 3}, **more))["steps"]]
        assert [step for step in steps if step[0].startswith("node")] == [("node", "n1: 1 victim")]


def test_nodes_that_lack_too_much_are_not_searched() -> None:
    """What their tasks give in sum is short of it."""
    of = world(task("a", "n1", THREE), task("b", "n2", {"vcore": 1}))
    of.nodes.append(node("n3", THREE))
    of.workloads[1]["tasks"].append(task("rest", "n2", TWO, priority=9))
    of.workloads[1]["tasks"].append(task("all", "n3", THREE, priority=9))
    for rules in ("documented", "shipped"):
        of.rules = rules
        told = why(of, wanting(THREE))
        assert [step["detail"] for step in told["steps"] if step["rule"].startswith("node")] == ["n1: 1 victim"]
        assert fates(told)["b"] == ("not-needed", "not-reached")


def test_the_guarantee_left_is_that_of_who_has_the_claim() -> None:
    """Documented: of the lowest queue on the path that is under its guarantee. As shipped: what is left to the asking
    queue, to which those above it pass on theirs where it has none."""
    of = World(
        queues=[
            queue("root"), queue("root.p", {"vcore": 9, "memory": 7}), queue("root.p.a", {"vcore": 2}), queue("root.q"),
        ],
        nodes=[node("n1", {"vcore": 8, "memory": 9})],
        workloads=[
            app("a", "root.p.a", task("own", "n1", {"vcore": 2, "memory": 1})),
            app("q", "root.q", task("t", "n1", {"vcore": 6})),
        ],
    )  # fmt: skip
    wanted = ask("want", "root.p.a", {"vcore": 2, "memory": 1}, workload="a")

    def left() -> tuple[str, Json]:
        steps = why(of, wanted)["steps"]
        (step,) = (step for step in steps if step["rule"] == "guarantee-left")
        return step["detail"], step["numbers"]["left"]

    assert left() == ("what is left of the guarantee of root.p", {"vcore": 7, "memory": 6})
    of.rules = "shipped"
    asking = "what is left of the guarantee of root.p.a"
    assert left() == (asking, {"vcore": 0})
    del of.queues[2]["quota"]
    assert left() == (asking, {"vcore": 7, "memory": 6})
    del of.queues[1]["quota"]
    assert left() == (asking, {})


def two_tasks(first: Json, second: Json) -> Json:
    tasks = [{"name": "x", "requests": first}, {"name": "y", "requests": second}]
    return ask("want", "root.prod", {}, workload="prod") | {"tasks": tasks}


def test_of_several_verdicts_the_nearest_to_evicting_holds() -> None:
    """The second task names memory alone, so that those that only have vcore are out of its reach."""
    of = world(
        task("taken", "n1", {"vcore": 3}, 10), task("late", "n1", {"vcore": 1}, 20),
        task("prior", "n1", {"vcore": 1}, 5, priority=9), task("memory", "n2", {"memory": 2}, 30),
        nodes=[node("n1", {"vcore": 5}), node("n2", {"memory": 2})],
    )  # fmt: skip
    of.queues[1] = queue("root.prod", {"vcore": 20, "memory": 20})
    told = fates(why(of, two_tasks({"vcore": 3}, {"memory": 2})))
    assert told == {
        "taken": ("victim", "makes-room"), "late": ("not-needed", "not-reached"),
        "prior": ("protected", "higher-priority"), "memory": ("victim", "makes-room"),
    }  # fmt: skip
    again = fates(why(of, two_tasks({"memory": 2}, {"vcore": 3})))
    assert again == told


def test_whoever_was_not_needed_stays_so_when_it_is_protected_then() -> None:
    """Once the first task has taken what Test has above its guarantee, law 2 keeps the other; and of two verdicts that
    are as near the later one holds."""
    of = world(task("a", "n1", THREE, 10), task("b", "n2", THREE, 20))
    of.queues[2] = queue("root.test", {"vcore": 3})
    of.nodes.append(node("n3", {"vcore": 9}, schedulable=False))
    told = why(of, two_tasks(THREE, {"vcore": 0}))
    assert fates(told)["b"] == ("not-needed", "not-reached")
