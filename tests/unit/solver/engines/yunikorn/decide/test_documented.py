"""The documented choice, rule by rule, on clusters small enough to follow."""

from typing import Any

import pytest

from tests.support.yunikorn_world import Json, World, ago, app, ask, node, queue, task

ONE, TWO, THREE = {"vcore": 1}, {"vcore": 2}, {"vcore": 3}


def world(*tasks: Json, nodes: list[Json] | None = None, queues: list[Json] | None = None, **more: Any) -> World:
    """Prod is guaranteed 10 and runs nothing; Test is guaranteed nothing and runs ``tasks``."""
    return World(
        queues=queues or [queue("root"), queue("root.prod", {"vcore": 10}), queue("root.test")],
        nodes=nodes or [node("n1", {"vcore": 6})],
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks)],
        **more,
    )


def victims(decision: Json) -> list[str]:
    return [victim["task"] for victim in decision["victims"]]


def wanting(requests: Json, **more: Any) -> Json:
    return ask("want", "root.prod", requests, workload="prod", **more)


def test_newest_first_and_only_as_many_as_it_takes() -> None:
    of = world(task("old", "n1", TWO, 300), task("new", "n1", TWO, 100), task("mid", "n1", TWO, 200))
    assert victims(of.one(wanting(TWO))) == ["new"]
    assert victims(of.one(wanting(THREE))) == ["new", "mid"]


def test_free_space_counts_and_whoever_is_not_needed_is_put_back() -> None:
    of = world(task("big", "n1", THREE, 100), task("new", "n1", ONE, 50), nodes=[node("n1", {"vcore": 5})])
    decision = of.one(wanting({"vcore": 4}))
    assert (victims(decision), decision["node"], decision["placements"]) == (["big"], "n1", {"want": "n1"})


def test_opted_out_tasks_go_only_when_nothing_else_makes_room_on_any_node() -> None:
    of = world(
        task("out", "n1", TWO, preemptible=False), task("a", "n2", ONE), task("b", "n2", ONE),
        nodes=[node("n1", {"vcore": 2}), node("n2", {"vcore": 2})],
    )  # fmt: skip
    assert sorted(victims(of.one(wanting(TWO)))) == ["a", "b"]
    of.workloads[1]["tasks"] = of.workloads[1]["tasks"][:2]
    of.nodes[1]["capacity"] = {"vcore": 1}
    assert victims(of.one(wanting(TWO))) == ["out"]


def test_originators_are_kept_while_others_make_room() -> None:
    of = world(
        task("driver", "n1", TWO, 10, originator=True), task("x", "n2", ONE), task("y", "n2", ONE),
        nodes=[node("n1", {"vcore": 2}), node("n2", {"vcore": 2})],
    )  # fmt: skip
    assert sorted(victims(of.one(wanting(TWO)))) == ["x", "y"]


def test_fewest_victims_then_the_name_of_the_node() -> None:
    of = world(
        task("a1", "n1", ONE), task("a2", "n1", ONE), task("c", "n3", TWO), task("b", "n2", TWO),
        nodes=[node(f"n{i}", {"vcore": 2}) for i in (1, 3, 2)],
    )  # fmt: skip
    assert victims(of.one(wanting(TWO))) == ["b"]


def test_an_exact_search_finds_what_taking_in_order_misses() -> None:
    """Taking the newest uses up what Test has above its guarantee of memory, so that the only pair that makes
    room, the two others, is lost to whoever takes in order."""
    of = World(
        queues=[queue("root"), queue("root.prod", {"vcore": 10}), queue("root.test", {"memory": 4, "vcore": 1})],
        nodes=[node("n1", {"vcore": 5, "memory": 20})],
        workloads=[
            app("prod", "root.prod"),
            app(
                "test", "root.test", task("new", "n1", {"vcore": 1, "memory": 4}, 10),
                task("left", "n1", {"vcore": 2, "memory": 2}, 20), task("right", "n1", {"vcore": 2, "memory": 2}, 30),
            ),
        ],
    )  # fmt: skip
    assert victims(of.one(wanting({"vcore": 4}))) == ["left", "right"]


def test_the_exact_search_looks_at_nodes_of_up_to_sixteen_candidates() -> None:
    two = {"vcore": 2, "memory": 2}
    helpless = [task(f"h{i:02}", "n1", {"vcore": 0}, 40 + i) for i in range(14)]
    of = World(
        queues=[queue("root"), queue("root.prod", {"vcore": 10}), queue("root.test", {"memory": 4, "vcore": 1})],
        nodes=[node("n1", {"vcore": 5, "memory": 20})],
        workloads=[
            app("prod", "root.prod"),
            app(
                "test", "root.test", task("new", "n1", {"vcore": 1, "memory": 4}, 10), task("left", "n1", two, 20),
                task("right", "n1", two, 30), *helpless[:13],
            ),
        ],
    )  # fmt: skip
    assert victims(of.one(wanting({"vcore": 4}))) == ["left", "right"]
    of.workloads[1]["tasks"].append(helpless[13])
    assert victims(of.one(wanting({"vcore": 4}))) == []


def crowd(guaranteed: Json, capacity: Json, *tasks: Json) -> World:
    """Seventeen tasks on one node, one too many for the exact search: those given, then tasks of one unit of memory."""
    rest = [task(f"t{i:02}", "n1", {"memory": 1}, 100 + i) for i in range(17 - len(tasks))]
    return World(
        queues=[queue("root"), queue("root.prod", {"memory": 99, "vcore": 99}), queue("root.test", guaranteed)],
        nodes=[node("n1", capacity)],
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks, *rest)],
    )


def test_taking_in_order_ends_where_the_ask_fits_and_not_before() -> None:
    """Test may lose all but one of its seventeen units."""
    of = crowd({"memory": 1}, {"memory": 17})
    for amount in (1, 5, 16):
        assert victims(of.one(wanting({"memory": amount}))) == [f"t{i:02}" for i in range(amount)]
    assert of.one(wanting({"memory": 17}))["outcome"] == "wait"
    told = of.one(wanting({"memory": 5}), explain="full")["explanation"]["candidates"]
    assert {c["task"]: c["rule"] for c in told if c["verdict"] != "victim"} == {
        f"t{i:02}": "not-reached" for i in range(5, 17)
    }  # fmt: skip


def test_taking_in_order_ends_once_everything_that_is_missing_is_there() -> None:
    """What gives the core comes last; of the memory that was taken by then, the newest is put back."""
    old = task("core", "n1", ONE, 900)
    of = crowd({"memory": 1}, {"memory": 16, "vcore": 1}, old)
    assert victims(of.one(wanting({"memory": 3, "vcore": 1}))) == ["t12", "t13", "t14", "core"]
    of = crowd({"vcore": 1}, {"memory": 15, "vcore": 2}, old, task("other", "n1", ONE, 901))
    assert of.one(wanting({"memory": 3, "vcore": 2}))["outcome"] == "wait", "Test keeps one of its two cores"
    assert victims(of.one(wanting({"memory": 1, "vcore": 1}))) == ["t14", "core"]


def test_one_step_that_is_missing_counts() -> None:
    """Memory is counted in whole units, so that one is the least that can be missing."""
    of = world(task("t", "n1", {"memory": 3}), task("stays", "n1", {"memory": 3}, priority=9))
    of.queues[1], of.nodes = queue("root.prod", {"memory": 10}), [node("n1", {"memory": 6})]
    assert victims(of.one(wanting({"memory": 3}))) == ["t"]
    assert of.one(wanting({"memory": 4}))["outcome"] == "wait"
    of.nodes = [node("n1", {"memory": 7})]
    assert victims(of.one(wanting({"memory": 2}))) == ["t"]
    assert of.one(wanting({"memory": 1}))["outcome"] == "admit"


def test_law_2_looks_at_every_queue_on_the_path() -> None:
    queues = [
        queue("root"), queue("root.prod", {"vcore": 10}), queue("root.p", {"vcore": 5}), queue("root.p.test"),
    ]  # fmt: skip
    of = world(queues=queues)
    of.workloads[1] = app("test", "root.p.test", *(task(f"t{i}", "n1", TWO, i) for i in range(3)))
    decision = of.one(wanting(TWO))
    assert decision["outcome"] == "wait"
    assert decision["conditions"][0]["reason"] == "NoPreemptionVictims"
    queues[2] = queue("root.p", {"vcore": 4})
    assert victims(of.one(wanting(TWO))) == ["t0"]


def test_what_a_guarantee_does_not_name_may_go() -> None:
    queues = [queue("root"), queue("root.prod", {"vcore": 10}), queue("root.test", {"memory": 1, "vcore": 2})]
    of = world(task("t", "n1", {"vcore": 4, "disk": 1}), queues=queues, nodes=[node("n1", {"vcore": 4, "disk": 1})])
    assert victims(of.one(wanting(TWO))) == []
    of.workloads[1]["tasks"].append(task("small", "n1", {"vcore": 0, "disk": 0}, 5))
    assert of.one(wanting(TWO))["outcome"] == "wait"


def test_the_asking_queue_must_be_under_its_guarantee_in_what_the_ask_needs() -> None:
    queues = [queue("root"), queue("root.prod", {"vcore": 0, "memory": 5}), queue("root.test")]
    of = world(task("t", "n1", {"vcore": 6}), queues=queues)
    assert of.one(wanting(TWO))["conditions"][0]["reason"] == "QueueGuaranteesCheckFailed"
    queues[1] = queue("root.prod", {"vcore": 1})
    assert victims(of.one(wanting(TWO))) == ["t"]


def test_limits_on_the_path_make_victims_even_where_nodes_are_free() -> None:
    queues = [
        queue("root"), queue("root.p", {"vcore": (None, 6)}), queue("root.p.prod", {"vcore": 5}), queue("root.p.test"),
        queue("root.other"),
    ]  # fmt: skip
    of = World(
        queues=queues, nodes=[node("n1", {"vcore": 20}), node("n2", {"vcore": 20})],
        workloads=[
            app("prod", "root.p.prod"), app("test", "root.p.test", *(task(f"t{i}", "n2", TWO, i) for i in range(3))),
            app("other", "root.other", task("o", "n2", TWO, 1)),
        ],
    )  # fmt: skip
    decision = of.one(ask("want", "root.p.prod", TWO, workload="prod"))
    assert (victims(decision), decision["node"]) == (["t0"], "n2")


def test_priorities_and_fences_of_priority() -> None:
    of = world(task("high", "n1", TWO, 10, priority=5), task("low", "n1", TWO, 99), nodes=[node("n1", {"vcore": 4})])
    assert victims(of.one(wanting(TWO))) == ["low"]
    assert victims(of.one(wanting(TWO, priority=5))) == ["high"]
    of.queues[2] = queue("root.test", priority_offset="-5")
    assert victims(of.one(wanting(TWO))) == ["high"]
    of.queues[2] = queue("root.test", priority_policy="fence", priority_offset="1")
    assert victims(of.one(wanting(TWO))) == []
    of.queues[1] = queue("root.prod", {"vcore": 10}, priority_policy="fence", priority_offset="1")
    assert victims(of.one(wanting(TWO, priority=-9))) == ["high"]


def test_a_fence_keeps_its_asks_in_and_lets_others_down() -> None:
    queues = [
        queue("root"), queue("root.t1", preemption_policy="fence"), queue("root.t1.a", {"vcore": 6}),
        queue("root.t1.b"), queue("root.t2", {"vcore": 6}),
    ]  # fmt: skip
    of = World(
        queues=queues, nodes=[node("n1", {"vcore": 2}), node("n2", {"vcore": 2})],
        workloads=[
            app("a", "root.t1.a"), app("b", "root.t1.b", task("inside", "n1", TWO)),
            app("t2", "root.t2"), app("out", "root.t3", task("outside", "n2", TWO, 10)),
        ],
    )  # fmt: skip
    of.queues.append(queue("root.t3"))
    assert victims(of.one(ask("x", "root.t1.a", TWO, workload="a"))) == ["inside"]
    assert victims(of.one(ask("x", "root.t2", TWO, workload="t2"))) == ["inside"]
    of.workloads[1]["tasks"] = []
    of.nodes = of.nodes[1:]
    assert victims(of.one(ask("x", "root.t1.a", TWO, workload="a"))) == []


def test_a_disabled_queue_gives_nobody_and_may_still_ask() -> None:
    of = world(task("t", "n1", {"vcore": 6}))
    of.queues[2] = queue("root.test", preemption_policy="disabled")
    assert of.one(wanting(TWO))["conditions"][0]["reason"] == "NoPreemptionVictims"
    of.queues[2], of.queues[1] = queue("root.test"), queue("root.prod", {"vcore": 10}, preemption_policy="disabled")
    assert victims(of.one(wanting(TWO))) == ["t"]


def test_preconditions() -> None:
    of = world(task("t", "n1", {"vcore": 6}))

    def why(**more: Any) -> str:
        decision = of.one(wanting(TWO, **more))
        assert decision["victims"] == []
        return decision["conditions"][0]["message"]

    assert "younger" in why(age=29.999999)
    assert of.one(wanting(TWO, age=30))["outcome"] == "preempt"
    assert "Never" in why(preemption_policy="Never")
    assert "triggered" in why(yunikorn={"triggered_preemption": True})
    assert "15 s" in why(yunikorn={"last_preemption_check_at": ago(14.999999)})
    assert of.one(wanting(TWO, yunikorn={"last_preemption_check_at": ago(15)}))["outcome"] == "preempt"
    of.queues[1] = queue("root.prod", {"vcore": 10}, preemption_delay="2m")
    assert "younger" in why()


def test_what_the_next_request_should_carry() -> None:
    of = world(task("t", "n1", {"vcore": 6}))
    notes = of.decide(wanting(TWO))["notes"]["asks"]["want"]
    assert notes == {"triggered_preemption": True, "last_preemption_check_at": "2026-01-01T12:00:00Z"}
    assert of.decide(wanting(TWO, age=5))["notes"]["asks"]["want"] == {"triggered_preemption": False}
    of.workloads[1]["tasks"][0]["priority"] = 9
    searched = of.decide(wanting(TWO))["notes"]["asks"]["want"]
    assert searched == {"triggered_preemption": False, "last_preemption_check_at": "2026-01-01T12:00:00Z"}


def test_where_there_is_room_the_least_used_node_is_taken() -> None:
    of = world(
        task("t", "n1", TWO), nodes=[node("n1", {"vcore": 6}), node("n3", {"vcore": 6}), node("n2", {"vcore": 6})]
    )  # fmt: skip
    decision = of.one(wanting(TWO))
    assert (decision["outcome"], decision["node"], decision["conditions"][0]["status"]) == ("admit", "n2", "True")
    of.nodes[2]["schedulable"] = False
    assert of.one(wanting(TWO))["node"] == "n3"
    assert of.one(wanting(TWO, feasible_nodes=["n1"]))["node"] == "n1"
    assert of.one(wanting(TWO, feasible_nodes=[]))["outcome"] == "wait"


def test_a_reservation_of_another_ask_closes_the_node_until_it_gives_way() -> None:
    other = ask("other", "root.prod", TWO, age=8000, workload="prod", priority=-1)
    of = world(task("t", "n1", {"vcore": 6}), reservations=[{"node": "n1", "ask": other}])
    assert of.decide(wanting(TWO))["notes"]["cancelled_reservations"] == [{"node": "n1", "ask": "other"}]
    assert victims(of.one(wanting(TWO))) == ["t"]
    for kept in (
        {"priority": 0}, {"created_at": ago(7000)}, {"required_node": "n1"},
        {"yunikorn": {"triggered_preemption": True}},
    ):  # fmt: skip
        of.reservations = [{"node": "n1", "ask": other | kept}]
        assert of.one(wanting(TWO))["outcome"] == "wait", kept
    of.workloads[1]["tasks"] = []
    assert of.one(wanting(TWO))["outcome"] == "wait"
    of.reservations = [{"node": "n1", "ask": other}]
    assert of.one(wanting(TWO))["outcome"] == "admit"


def test_what_is_being_preempted_is_waited_for_and_nobody_goes_twice() -> None:
    queues = [queue("root"), queue("root.prod", {"vcore": 10}), queue("root.test", {"vcore": (None, 6)})]
    of = world(
        task("leaving", "n1", THREE, state="preempted"), task("t", "n1", THREE), queues=queues,
        nodes=[node("n1", {"vcore": 6}), node("n2", {"vcore": 3})],
    )  # fmt: skip
    of.workloads[0]["tasks"] = [task("p", "n2", THREE)]
    decision = of.one(wanting(THREE))
    assert victims(decision) == ["t"]
    of.workloads[1]["tasks"] = of.workloads[1]["tasks"][:1]
    assert of.one(wanting(THREE))["outcome"] == "admit"


def test_a_whole_ask_of_several_pods_or_nobody() -> None:
    of = world(task("a", "n1", THREE, 10), task("b", "n2", THREE, 20), nodes=[node(n, THREE) for n in ("n1", "n2")])
    pair = wanting({}) | {"tasks": [{"name": "x", "count": 2, "requests": THREE}]}
    answer = of.decide(pair)
    assert victims(answer["decisions"][0]) == ["a", "b"]
    assert [(p["node"], p["pipelined"]) for p in answer["plan"]["placements"]] == [("n1", True), ("n2", True)]
    three = wanting({}) | {"tasks": [{"name": "x", "count": 3, "requests": THREE}]}
    answer = of.decide(three)
    assert (answer["decisions"][0]["outcome"], answer["plan"]) == ("wait", {"evictions": [], "placements": []})


def test_an_ask_that_waits_leaves_no_trace_of_the_tasks_that_had_room() -> None:
    for count in (2, 3):
        of = world(nodes=[node(f"n{i}", THREE) for i in range(count - 1)])
        many = wanting({}, priority=1) | {"tasks": [{"name": "x", "count": count, "requests": THREE}]}
        rest = [ask(f"a{i}", "root.prod", THREE, workload="prod") for i in range(count - 1)]
        answer = of.decide(many, *rest, mode="cycle")["decisions"]
        assert [one["outcome"] for one in answer] == ["wait"] + ["admit"] * (count - 1)


def test_a_node_that_is_held_stays_so_whoever_holds_the_others() -> None:
    """The first is closed for another reason, or held for the ask itself."""
    of = world(task("a", "n1", TWO), task("b", "n2", TWO), nodes=[node("n1", TWO), node("n2", TWO)])
    other = {"node": "n2", "ask": ask("other", "root.prod", TWO, workload="prod")}
    of.reservations = [{"node": "n1", "ask": wanting(TWO)}, other]
    assert victims(of.one(wanting(TWO))) == ["a"]
    of.nodes[0]["schedulable"] = False
    assert victims(of.one(wanting(TWO))) == []
    of.reservations[0] = other | {"node": "n1"}
    assert victims(of.one(wanting(TWO))) == []


def test_a_node_is_held_for_one_task_of_an_ask() -> None:
    """Each task would fit after one victim; together they need more than the node has."""
    of = world(task("a", "n1", TWO, 10), task("b", "n1", TWO, 20), nodes=[node("n1", {"vcore": 5})])
    pair = wanting({}) | {"tasks": [{"name": "x", "count": 2, "requests": THREE}]}
    assert of.decide(pair)["plan"] == {"evictions": [], "placements": []}
    of.nodes.append(node("n2", {"vcore": 3}))
    of.workloads[1]["tasks"].append(task("c", "n2", THREE, 30))
    assert victims(of.one(pair)) == ["a", "c"]


def test_tasks_of_one_ask_count_together_in_limits_and_guarantees() -> None:
    of = world(task("a", "n1", TWO, 10), task("b", "n2", TWO, 20), nodes=[node("n1", TWO), node("n2", TWO)])
    pair = wanting({}) | {"tasks": [{"name": "x", "count": 2, "requests": TWO}]}
    assert victims(of.one(pair)) == ["a", "b"]
    of.queues[1] = queue("root.prod", {"vcore": 2})
    assert of.one(pair)["conditions"][0]["reason"] == "QueueGuaranteesCheckFailed"
    of.queues[1] = queue("root.prod", {"vcore": (3, 3)})
    assert of.one(pair)["outcome"] == "wait"


def test_each_task_of_an_ask_takes_a_node_that_the_ask_holds() -> None:
    of = world(nodes=[node(name, {"vcore": 6}) for name in ("n1", "n2", "n3")])
    pair = wanting({}) | {"tasks": [{"name": name, "requests": TWO} for name in ("x", "y")]}
    other = ask("other", "root.test", TWO)
    of.reservations = [{"node": name, "ask": pair} for name in ("n2", "n3")]
    assert of.one(pair)["placements"] == {"x": "n2", "y": "n3"}
    of.nodes = of.nodes[1:]
    assert of.one(other)["outcome"] == "wait"
    single = pair | {"tasks": pair["tasks"][:1], "priority": 1}
    of.reservations = [{"node": name, "ask": single} for name in ("n2", "n3")]
    after = of.decide(single, other | {"tasks": [{"name": "other", "requests": {"vcore": 6}}]}, mode="cycle")
    assert [d["node"] for d in after["decisions"]] == ["n2", "n3"]


def test_a_cycle_sees_what_earlier_asks_took_and_stops_at_ten_attempts() -> None:
    of = world(*(task(f"t{i}", "n1", ONE, i) for i in range(6)))
    first, second = wanting(TWO, priority=1), ask("next", "root.prod", TWO, workload="prod")
    answer = of.decide(second, first, mode="cycle")
    assert answer["order"] == ["want", "next"]
    assert [d["outcome"] for d in answer["decisions"]] == ["wait", "preempt"]
    assert [d["outcome"] for d in of.decide(second, first)["decisions"]] == ["preempt", "preempt"]
    many = [ask(f"a{i:02}", "root.prod", {"vcore": 7}, workload="prod") for i in range(12)]
    messages = [d["conditions"][0]["reason"] for d in of.decide(*many, mode="cycle")["decisions"]]
    assert messages.count("PreemptionAttemptsExhausted") == 2


def test_who_has_come_is_waited_for_no_longer() -> None:
    """Limits count what has evicted somebody and waits, until it runs: then it is used, and once."""
    queues = [queue("root"), queue("root.prod", {"vcore": (4, 4)}), queue("root.test")]
    of = world(queues=queues, nodes=[node("n1", TWO), node("n2", {"vcore": 6})])
    first = wanting(TWO, priority=1)
    of.reservations = [{"node": "n1", "ask": first | {"yunikorn": {"triggered_preemption": True}}}]
    for wanted, outcome in ((TWO, "admit"), (THREE, "wait")):
        second = ask("next", "root.prod", wanted, workload="prod")
        both = of.decide(first, second, mode="cycle")["decisions"]
        assert [one["outcome"] for one in both] == ["admit", outcome]
        assert of.one(second)["outcome"] == outcome, "2 of the 4 are kept for the first"


def test_what_no_node_has_and_an_ask_names_with_nothing_is_no_matter() -> None:
    """To the ask itself, to those that follow it, and to who evicts for it."""
    of = world(task("t", "n1", TWO), nodes=[node("n1", {"vcore": 4})])
    asks = [ask(name, "root.prod", requests) for name, requests in (("a", TWO | {"disk": 0}), ("b", TWO | {"disk": 0}))]
    answer = of.decide(*asks, mode="cycle")
    assert [(one["outcome"], victims(one)) for one in answer["decisions"]] == [("admit", []), ("preempt", ["t"])]
    assert of.one(ask("c", "root.prod", TWO | {"disk": 1}))["outcome"] == "wait"


def test_the_order_of_the_request_never_matters() -> None:
    of = world(
        *(task(f"t{i}", f"n{i % 2}", ONE, 100, originator=i % 3 == 0) for i in range(6)),
        nodes=[node("n0", {"vcore": 3}), node("n1", {"vcore": 3})],
    )
    first = of.decide(wanting(TWO), explain="full")
    of.workloads[1]["tasks"].reverse()
    of.workloads.reverse()
    of.nodes.reverse()
    of.queues.reverse()
    again = of.decide(wanting(TWO), explain="full")
    assert [first["decisions"], first["plan"]] == [again["decisions"], again["plan"]]


def test_amounts_past_64_bits_stay_exact() -> None:
    huge = 2**53
    size = {"memory": huge, "vcore": huge}
    queues = [queue("root"), queue("root.prod", {"memory": huge}), queue("root.test")]
    of = World(
        queues=queues, nodes=[node(f"n{i}", size) for i in range(2000)],
        workloads=[
            app("prod", "root.prod"),
            app("test", "root.test", *(task(f"t{i}", f"n{i}", size, i) for i in range(2000))),
        ],
    )  # fmt: skip
    decision = of.one(wanting({"memory": huge}))
    assert decision["victims"][0]["freed"] == size


def test_a_node_without_a_resource_is_not_used_in_it() -> None:
    of = world(
        task("t", "n1", {"vcore": 3, "memory": 9}), task("u", "n2", TWO),
        nodes=[node("n1", {"vcore": 6, "memory": 90}), node("n2", {"vcore": 6}), node("n3", {"memory": 9})],
    )  # fmt: skip
    assert of.one(wanting(TWO))["node"] == "n1", "30 % in the mean, and a third of all that n2 has"
    of.workloads[1]["tasks"][0]["requests"] = {"vcore": 3, "memory": 27}
    assert of.one(wanting(TWO))["node"] == "n2"


def test_a_full_limit_is_named_by_the_first_of_its_resources() -> None:
    of = world(nodes=[node("n1", {"vcore": 6, "memory": 6})])
    of.queues[1] = queue("root.prod", {"vcore": (1, 1), "memory": (1, 1)})
    message = of.one(wanting({"vcore": 2, "memory": 2}))["conditions"][0]["message"]
    assert message.endswith("root.prod is at its limit of memory")


@pytest.mark.parametrize("rules", ["documented", "shipped"])
@pytest.mark.parametrize(("amount", "outcome"), [(2, "admit"), (3, "wait")])
def test_a_limit_may_be_used_up(rules: str, amount: int, outcome: str) -> None:
    of = world(nodes=[node("n1", {"memory": 9})], rules=rules)
    of.queues[1] = queue("root.prod", {"memory": (2, 4)})
    of.workloads[0]["tasks"] = [task("p", "n1", {"memory": 2})]
    assert of.one(wanting({"memory": amount}))["outcome"] == outcome


def test_who_preempts_on_one_node_holds_no_other_any_longer() -> None:
    """The ask is too large for the node that it held."""
    closed = node("n3", {"vcore": 9}, schedulable=False)
    of = world(task("t", "n2", TWO), nodes=[node("n1", ONE), node("n2", TWO), closed])
    first, second = wanting(TWO, priority=1), ask("next", "root.prod", ONE, workload="prod")
    of.reservations = [{"node": "n1", "ask": first}]
    found = of.decide(first, second, mode="cycle")["decisions"]
    assert [(one["outcome"], one["node"]) for one in found] == [("preempt", "n2"), ("admit", "n1")]
    assert of.one(second)["outcome"] == "preempt", "by itself it finds the node held"


@pytest.mark.parametrize("fitting", [0, 1, 2])
def test_of_several_tasks_only_the_one_that_waits_is_told_of(fitting: int) -> None:
    of = world(*(task(f"t{i}", f"n{i}", THREE, i) for i in range(fitting)))
    of.nodes = [node(f"n{i}", THREE) for i in range(fitting)] + [node("small", ONE)]
    three = wanting({}) | {"tasks": [{"name": "x", "count": 3, "requests": THREE}]}
    decision = of.decide(three)["decisions"][0]
    assert (decision["outcome"], decision["victims"]) == ("wait", [])
    (condition,) = decision["conditions"]
    assert (condition["type"], condition["status"]) == ("Allocated", "False")
    assert condition["reason"] != "NodeReserved"


DRIVER: Json = {"originator": True}
OUT: Json = {"preemptible": False}


PLAIN: Json = {}
RATHER: list[tuple[Json, list[Json]]] = [
    (PLAIN, []), (DRIVER, [PLAIN]), (OUT, [PLAIN, DRIVER]), (DRIVER | OUT, [PLAIN, DRIVER])
]  # fmt: skip


@pytest.mark.parametrize(("more", "rather"), RATHER)
def test_whatever_a_task_is_it_goes_where_nobody_else_makes_room(more: Json, rather: list[Json]) -> None:
    """``rather``: who goes instead, whatever the age and the node."""
    of = world(task("only", "n1", {"vcore": 6}, **more))
    assert victims(of.one(wanting(TWO))) == ["only"]
    for other in rather:
        both = task("only", "n1", TWO, 1, **more), task("other", "n2", TWO, **other)
        of = world(*both, nodes=[node("n1", TWO), node("n2", TWO)])
        assert victims(of.one(wanting(TWO))) == ["other"], other
