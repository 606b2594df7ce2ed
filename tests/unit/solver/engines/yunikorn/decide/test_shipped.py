"""What the released code does, where it leaves the design: one small cluster a difference, both rule sets on each."""

from typing import Any

import pytest

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

TWO = {"vcore": 2}


def world(*tasks: Json, guaranteed: int = 10, nodes: list[Json] | None = None, **more: Any) -> World:
    return World(
        queues=[queue("root"), queue("root.prod", {"vcore": guaranteed}), queue("root.test")],
        nodes=nodes or [node("n1", {"vcore": 4})],
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks)],
        rules="shipped", **more,
    )  # fmt: skip


def chosen(of: World, wanted: Json, **more: Any) -> list[str]:
    return [victim["task"] for victim in of.one(wanted, **more)["victims"]]


def both(of: World, wanted: Json) -> tuple[list[str], list[str]]:
    """Victims under the documented rules, and as shipped; the explanation names a difference when they differ."""
    found: list[list[str]] = []
    named: list[set[str]] = []
    for rules in ("documented", "shipped"):
        of.rules = rules
        decision = of.one(wanted, explain="summary")
        found.append([victim["task"] for victim in decision["victims"]])
        steps = {step["rule"] for step in decision["explanation"]["steps"]}
        named.append({rule for rule in steps if rule.startswith("difference-")})
    assert named[0] == named[1]
    assert bool(named[0]) == (found[0] != found[1])
    return found[0], found[1]


def wanting(requests: Json, **more: Any) -> Json:
    return ask("want", "root.prod", requests, workload="prod", **more)


def test_the_ask_must_fit_its_guarantee() -> None:
    assert both(world(task("t", "n1", {"vcore": 4}), guaranteed=1), wanting(TWO)) == (["t"], [])


def test_a_queue_may_be_taken_below_its_guarantee() -> None:
    of = world(task("t", "n1", {"vcore": 4}))
    of.queues[2] = queue("root.test", {"vcore": 3})
    assert both(of, wanting(TWO)) == ([], ["t"])


def test_free_space_does_not_count_in_the_end() -> None:
    of = world(task("t", "n1", TWO), nodes=[node("n1", {"vcore": 3})])
    assert both(of, wanting({"vcore": 3})) == (["t"], [])
    of.rules = "shipped"
    assert of.one(wanting({"vcore": 3}))["conditions"][0]["reason"] == "PreemptionShortfall"


def test_one_resource_exceeded_ends_the_collecting_although_the_ask_has_no_room() -> None:
    of = world(
        task("new", "n1", {"vcore": 3, "memory": 1}, 10), task("old", "n1", {"vcore": 1, "memory": 3}, 20),
        nodes=[node("n1", {"vcore": 4, "memory": 4})],
    )  # fmt: skip
    documented, shipped = both(of, wanting({"vcore": 2, "memory": 2}))
    assert (sorted(documented), shipped) == (["new", "old"], ["new"])


def test_a_sibling_whose_path_is_a_prefix_loses_tasks_within_its_guarantee() -> None:
    of = World(
        queues=[queue("root"), queue("root.prod", {"vcore": 6}), queue("root.prod1", {"vcore": 6})],
        nodes=[node("n1", {"vcore": 4})],
        workloads=[app("prod", "root.prod", task("t", "n1", {"vcore": 4})), app("prod1", "root.prod1")],
    )
    assert both(of, ask("want", "root.prod1", TWO, workload="prod1")) == ([], ["t"])


def test_without_predicates_the_node_is_chosen_by_number_and_name_only() -> None:
    of = world(
        task("out", "n1", TWO, preemptible=False), task("t", "n2", TWO),
        nodes=[node("n1", {"vcore": 2}), node("n2", {"vcore": 2})],
    )  # fmt: skip
    assert chosen(of, wanting(TWO), options={"yunikorn": {"node_choice": "first"}}) == ["out"]
    assert chosen(of, wanting(TWO)) == ["t"]


def test_predicates_are_asked_ten_nodes_at_a_time() -> None:
    """The first ten nodes hold opted-out tasks, so a second batch is asked; an eleventh without is then best."""
    nodes = [node(f"n{i:02}", TWO) for i in range(12)]
    tasks = [task(f"t{i:02}", f"n{i:02}", TWO, preemptible=i > 10) for i in range(12)]
    of = world(*tasks, nodes=nodes)
    assert chosen(of, wanting(TWO)) == ["t11"]
    assert chosen(of, wanting(TWO, feasible_nodes=["n05", "n07"])) == ["t05"]
    tasks[3] = task("t03", "n03", TWO)
    of = world(*tasks, nodes=nodes)
    assert chosen(of, wanting(TWO)) == ["t03"]


def test_with_room_on_the_node_victims_come_from_anywhere() -> None:
    of = World(
        queues=[
            queue("root"), queue("root.p", {"vcore": (None, 4)}), queue("root.p.prod", {"vcore": 4}),
            queue("root.p.test"),
        ],
        nodes=[node("n1", {"vcore": 4}), node("n2", {"vcore": 8})],
        workloads=[
            app("prod", "root.p.prod"),
            app("test", "root.p.test", task("t1", "n1", TWO, 50), task("t2", "n1", TWO, 10)),
        ],
        rules="shipped",
    )  # fmt: skip
    wanted = ask("want", "root.p.prod", TWO, workload="prod")
    decision = of.one(wanted, options={"yunikorn": {"node_choice": "first"}})
    assert (decision["node"], [v["task"] for v in decision["victims"]]) == ("n2", ["t2"])
    assert of.one(wanted)["node"] == "n1"


@pytest.mark.parametrize(("age", "outcome"), [(29, "wait"), (30, "preempt")])
def test_a_bad_delay_on_the_leaf_hides_a_good_one_above(age: float, outcome: str) -> None:
    of = world(task("t", "n1", {"vcore": 4}))
    of.queues[0] = queue("root", preemption_delay="5s")
    assert of.one(wanting(TWO, age=6))["outcome"] == "preempt"
    of.queues[1] = queue("root.prod", {"vcore": 10}, preemption_delay="soon")
    assert of.one(wanting(TWO, age=age))["outcome"] == outcome


def test_an_ask_that_just_fits_its_guarantee_lacks_candidates_not_a_guarantee() -> None:
    of = world(task("t", "n1", {"vcore": 4}, priority=9), guaranteed=2)
    assert of.one(ask("want", "root.prod", TWO, workload="prod"))["conditions"][0]["reason"] == "NoPreemptionVictims"
    of = world(task("t", "n1", {"vcore": 4}, priority=9), guaranteed=1)
    reason = of.one(ask("want", "root.prod", TWO, workload="prod"))["conditions"][0]["reason"]
    assert reason == "QueueGuaranteesCheckFailed"


@pytest.mark.parametrize(("on_n2", "expected"), [([2], ["b0"]), ([1, 1], [])])
def test_a_node_is_searched_as_if_none_was_before(on_n2: list[int], expected: list[str]) -> None:
    """The queue is 1 over its guarantee of 3: it gives one task, whatever its size, of the node that is looked at."""
    of = world(
        task("a0", "n1", {"vcore": 1}), task("a1", "n1", {"vcore": 1}),
        *(task(f"b{i}", "n2", {"vcore": size}) for i, size in enumerate(on_n2)),
        nodes=[node("n1", TWO), node("n2", TWO)],
    )  # fmt: skip
    of.queues[2] = queue("root.test", {"vcore": 3})
    assert chosen(of, wanting(TWO)) == expected
    if not expected:
        assert of.one(wanting(TWO))["conditions"][0]["reason"] == "PreemptionDoesNotHelp", "both nodes are out"


@pytest.mark.parametrize(("guaranteed", "expected"), [(1, ["b", "c"]), (2, [])])
def test_whom_the_asking_queue_gains_nothing_from_stays_where_it_is(guaranteed: int, expected: list[str]) -> None:
    """Additional victims, newest first: ``a`` is passed over, and counts as used when ``b`` and ``c`` are asked."""
    both_types = {"vcore": 1, "memory": 1}
    of = World(
        queues=[
            queue("root"), queue("root.p", {"memory": (None, 2)}), queue("root.p.prod", {"memory": 2}),
            queue("root.p.test", {"vcore": guaranteed}),
        ],
        nodes=[node("n1", {"vcore": 9, "memory": 9})],
        workloads=[
            app("prod", "root.p.prod"),
            app(
                "test", "root.p.test",
                task("a", "n1", {"vcore": 1}, 10), task("b", "n1", both_types, 20), task("c", "n1", both_types, 30),
            ),
        ],
        rules="shipped",
    )  # fmt: skip
    wanted = ask("want", "root.p.prod", {"vcore": 2, "memory": 2}, workload="prod")
    assert chosen(of, wanted) == expected


def test_every_type_that_the_ask_names_must_fit_what_is_left_of_the_guarantee() -> None:
    both_types = {"vcore": 2, "memory": 2}
    of = world(task("t", "n1", both_types), nodes=[node("n1", both_types)])
    for memory, reason in ((1, "QueueGuaranteesCheckFailed"), (2, "NodeReserved")):
        of.queues[1] = queue("root.prod", {"vcore": 10, "memory": memory})
        assert of.one(wanting(both_types))["conditions"][0]["reason"] == reason


def test_an_ask_that_names_a_type_with_nothing_is_above_no_victims_at_all() -> None:
    """The released comparison wants every type of the ask above 0 while nobody is taken: the first victim is passed
    over, and counts."""
    of = world(task("a", "n1", TWO, 10), task("b", "n1", TWO, 20))
    assert (chosen(of, wanting(TWO)), chosen(of, wanting(TWO | {"memory": 0}))) == (["a"], [])
    assert chosen(of, wanting({"vcore": 4, "memory": 0})) == ["b"]
    of.rules = "documented"
    assert chosen(of, wanting(TWO | {"memory": 0})) == ["a"]


@pytest.mark.parametrize(("guaranteed", "expected"), [(3, []), (2, ["a", "b"]), (0, ["a", "b"])])
def test_whoever_was_chosen_counts_once_where_more_are_looked_for(guaranteed: int, expected: list[str]) -> None:
    """Test uses 4. With ``a`` gone the ask has room beside the free core, and ``a`` alone is short of it: ``b`` is
    taken as well, if Test is over its guarantee without ``a``."""
    of = world(
        task("a", "n1", {"vcore": 1}, 10), task("b", "n1", {"vcore": 1}, 20), task("c", "n2", TWO, 30),
        nodes=[node("n1", {"vcore": 3}), node("n2", TWO)],
    )  # fmt: skip
    of.queues[2] = queue("root.test", {"vcore": guaranteed})
    assert chosen(of, wanting(TWO), options={"yunikorn": {"node_choice": "first"}}) == expected


def test_who_is_on_another_node_is_passed_over_and_ends_nothing() -> None:
    """Of the additional victims ``c`` is newer than ``b``; the node had no room, and needs one more of its own."""
    of = world(
        task("a", "n1", {"vcore": 1}, 10), task("c", "n2", TWO, 15), task("b", "n1", {"vcore": 1}, 20),
        nodes=[node("n1", {"vcore": 3}), node("n2", TWO)],
    )  # fmt: skip
    assert chosen(of, wanting(TWO), options={"yunikorn": {"node_choice": "first"}}) == ["a", "b"]


@pytest.mark.parametrize(("memory", "reason"), [(3, "PreemptionDoesNotHelp"), (4, "QueueGuaranteesCheckFailed")])
def test_what_everybody_together_would_leave_of_a_guarantee_above_is_just_enough(memory: int, reason: str) -> None:
    """Of the three that p is guaranteed, and Test uses four. (No victim fits what is left, one after the other.)"""
    running = [task(f"t{i}", "n1", {"memory": 1}) for i in range(4)]
    of = World(
        queues=[queue("root"), queue("root.p", {"memory": 3}), queue("root.p.prod"), queue("root.p.test")],
        nodes=[node("n1", {"memory": 4})],
        workloads=[app("prod", "root.p.prod"), app("test", "root.p.test", *running)],
        rules="shipped",
    )  # fmt: skip
    decision = of.one(ask("want", "root.p.prod", {"memory": memory}, workload="prod"))
    assert decision["conditions"][0]["reason"] == reason


def test_whoever_does_not_reduce_what_a_node_lacks_is_asked_last_and_as_if_it_stayed() -> None:
    """Test is one above its guarantee of memory. ``new`` gives none of the vcore that the node lacks: it comes last,
    and counts no longer when ``old`` is asked."""
    of = world(task("new", "n1", {"memory": 1}, 10), task("old", "n1", {"vcore": 2, "memory": 3}, 20))
    of.nodes = [node("n1", {"vcore": 2, "memory": 9})]
    of.queues[1:] = [queue("root.prod", {"vcore": 9, "memory": 9}), queue("root.test", {"memory": 3, "vcore": 2})]
    assert chosen(of, wanting({"vcore": 2, "memory": 1})) == ["old"]


def test_of_nodes_that_make_room_with_as_many_the_first_by_name() -> None:
    """With room for the ask comes before any other; then who needs fewer."""
    of = world(
        task("a", "n3", {"vcore": 1}), task("b", "n3", {"vcore": 1}), task("c", "n2", TWO), task("d", "n1", TWO),
        nodes=[node(name, TWO) for name in ("n3", "n2", "n1")],
    )  # fmt: skip
    for choice in ("first", "scored"):
        options = {"options": {"yunikorn": {"node_choice": choice}}}
        assert chosen(of, wanting(TWO), **options) == ["d"]
        assert chosen(of, wanting(TWO, feasible_nodes=["n3", "n2"]), **options) == (
            ["c"] if choice == "scored" else ["d"]
        )


def over_its_limit(rules: str, **used: int) -> World:
    """Prod holds GPUs, of which it may have one."""
    of = world(nodes=[node("n1", {"vcore": 9, "gpu": 9, "disk": 9})])
    of.queues[1] = queue("root.prod", {"vcore": 9, "gpu": (None, 1)})
    of.workloads[0]["tasks"] = [task("held", "n1", used)]
    of.rules = rules
    return of


@pytest.mark.parametrize("more", [{}, {"required_node": "n1"}], ids=["anywhere", "on its node"])
@pytest.mark.parametrize(
    ("used", "requests", "outcome"),
    [
        ({"gpu": 2}, {"vcore": 1, "gpu": 0}, "wait"), ({"gpu": 1}, {"vcore": 1, "gpu": 0}, "admit"),
        ({"gpu": 2}, {"vcore": 1}, "admit"), ({"gpu": 2}, {"vcore": 1, "disk": 0}, "admit"),
    ],
    ids=["names it", "not over", "does not name it", "names another"],
)  # fmt: skip
def test_even_0_of_a_resource_that_is_over_its_limit_is_too_much(
    more: Json, used: Json, requests: Json, outcome: str
) -> None:
    assert over_its_limit("documented", **used).one(wanting(requests, **more))["outcome"] == "admit"
    found = over_its_limit("shipped", **used).one(wanting(requests, **more), explain="summary")
    assert (found["outcome"], found["victims"]) == (outcome, [])
    named = {step["rule"] for step in found["explanation"]["steps"]}
    assert ("difference-nothing-asked" in named) == (outcome == "wait")


@pytest.mark.parametrize(("extra", "expected"), [(True, []), (False, ["v1"])])
def test_additional_victims_are_in_vain_while_an_inherited_guarantee_is_overdrawn(
    extra: bool, expected: list[str]
) -> None:
    """v1 makes room on n1. Then v2 comes along, and m, too large for what is left of the memory, ends the search."""
    tasks = [
        task("v1", "n1", {"vcore": 1}, 200), task("m", "n2", {"memory": 2}, 900),
        task("large", "n2", {"memory": 3}, 950),
    ]  # fmt: skip
    of = World(
        queues=[queue("root"), queue("root.p", {"vcore": 4, "memory": 4}), queue("root.p.a"), queue("root.p.b")],
        nodes=[node("n1", {"vcore": 1, "memory": 3}), node("n2", {"vcore": 1, "memory": 5})],
        workloads=[app("b", "root.p.b", *tasks, *[task("v2", "n2", {"vcore": 1}, 100)] * extra)],
        rules="shipped",
    )
    assert chosen(of, ask("want", "root.p.a", {"vcore": 1, "memory": 1})) == expected
