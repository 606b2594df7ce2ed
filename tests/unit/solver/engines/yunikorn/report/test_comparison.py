"""Which difference between the rule sets decided, and which single change of a quota would let an ask in."""

from typing import Any

import pytest

from app.solver.engines.yunikorn import configuration
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

ONE, TWO, FOUR = {"vcore": 1}, {"vcore": 2}, {"vcore": 4}


def world(*tasks: Json, prod: Json | None = None, test: Json | None = None, size: int = 2, **root: str) -> World:
    """Prod, which asks, and Test, which runs ``tasks``, on n1; n2 is closed."""
    return World(
        queues=[queue("root", **root), queue("root.prod", prod or {"vcore": 10}), queue("root.test", test)],
        nodes=[node("n1", {"vcore": size}), node("n2", {"vcore": 9}, schedulable=False)],
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks)],
    )


def wanting(requests: Json, **more: Any) -> Json:
    return ask("want", "root.prod", requests, **{"workload": "prod"} | more)


def told(of: World, wanted: Json, **more: Any) -> tuple[set[str], list[str], list[str]]:
    """Differences, which both rule sets name alike, and the victims as documented and as shipped."""
    victims: list[list[str]] = []
    named: list[set[str]] = []
    for rules in ("documented", "shipped"):
        of.rules = rules
        decision = of.one(wanted, explain="summary", **more)
        steps = [step for step in decision["explanation"]["steps"] if step["rule"].startswith("difference-")]
        assert all(step["detail"].startswith(f"{rules} rules: ") for step in steps)
        victims.append([victim["task"] for victim in decision["victims"]])
        named.append({step["rule"].removeprefix("difference-") for step in steps})
    assert named[0] == named[1]
    return named[0], victims[0], victims[1]


def test_nothing_is_named_where_both_decide_alike() -> None:
    assert told(world(task("t", "n1", TWO)), wanting(TWO)) == (set(), ["t"], ["t"])
    assert told(world(task("t", "n1", ONE, priority=9)), wanting(TWO)) == (set(), [], [])
    pair = world(task("a", "n1", ONE, 20), task("b", "n1", ONE, 10))
    assert told(pair, wanting(TWO)) == (set(), ["b", "a"], ["b", "a"])


@pytest.mark.parametrize(
    ("of", "wanted", "named", "documented", "shipped"),
    [
        (world(task("t", "n1", TWO), preemption_policy="disabled"), wanting(TWO), "root-policy", ["t"], []),
        (world(task("t", "n1", TWO), preemption_delay="10m"), wanting(TWO), "parent-delay", ["t"], []),
        (world(task("t", "n1", TWO), prod=ONE), wanting(TWO), "ask-guarantee", ["t"], []),
        (world(task("t", "n1", TWO), test=ONE), wanting(TWO), "victim-guarantee", [], ["t"]),
        (world(task("t", "n1", TWO)), wanting(TWO, workload="test"), "same-application", [], ["t"]),
        (world(task("t", "n1", ONE)), wanting(TWO), "free-space", ["t"], []),
        (
            world(task("t", "n1", {"vcore": 3}, 10), task("u", "n1", ONE, 5), size=5), wanting(FOUR), "free-space",
            ["t"], ["u", "t"],
        ),
        (
            world(task("t", "n1", TWO, 9), task("u", "n1", ONE, 5), size=4), wanting(TWO, required_node="n1"),
            "required-node", ["u"], ["u", "t"],
        ),
    ],
)  # fmt: skip
def test_the_difference_that_decided_is_named_alone(
    of: World, wanted: Json, named: str, documented: list[str], shipped: list[str]
) -> None:
    assert told(of, wanted) == ({named}, documented, shipped)


def test_a_difference_is_told_as_the_rules_asked_by_have_it_and_with_what_the_others_would_do() -> None:
    of = world(task("t", "n1", ONE))
    assert configuration.FREE_SPACE.documented != configuration.FREE_SPACE.shipped
    for rules, text, other in (
        ("documented", configuration.FREE_SPACE.documented, "shipped rules: want waits: preemption would help"),
        ("shipped", configuration.FREE_SPACE.shipped, "documented rules: 1 task of root.test must go"),
    ):
        of.rules = rules
        steps = of.one(wanting(TWO), explain="summary")["explanation"]["steps"]
        (detail,) = (step["detail"] for step in steps if step["rule"] == "difference-free-space")
        assert detail.startswith(f"{rules} rules: {text}; {other}")


def test_one_task_of_the_asks_own_application_among_the_victims_is_named() -> None:
    of = world(task("t", "n1", ONE, 10))
    of.workloads.append(app("other", "root.test", task("u", "n1", ONE, 20)))
    assert told(of, wanting(TWO, workload="test")) == ({"same-application"}, [], ["t", "u"])


def test_a_prefix_that_looks_like_an_ancestor() -> None:
    of = world(task("t", "n1", TWO), test={"vcore": 2})
    of.queues[1], of.queues[2] = queue("root.testing", {"vcore": 10}), queue("root.test", {"vcore": 2})
    of.workloads[0] = app("prod", "root.testing")
    named = told(of, ask("want", "root.testing", TWO, workload="prod"))
    assert named == ({"ancestry", "victim-guarantee"}, [], ["t"])


def test_opted_out_tasks_on_the_first_node_and_what_a_node_is_chosen_by() -> None:
    of = world(task("out", "n1", TWO, preemptible=False), task("a", "n2", ONE), task("b", "n2", ONE))
    of.nodes[1] = node("n2", TWO)
    first = {"options": {"yunikorn": {"node_choice": "first"}}}
    assert told(of, wanting(TWO), **first) == ({"opted-out"}, ["a", "b"], ["out"])
    of.workloads[1]["tasks"][0] = task("driver", "n1", TWO, originator=True)
    assert told(of, wanting(TWO), **first) == ({"node-choice"}, ["a", "b"], ["driver"])


def test_opted_out_tasks_that_both_take_are_no_difference() -> None:
    """With what is free two do, and the released rules want three, the newest plain one and both others."""
    of = world(
        task("plain", "n1", ONE, 10), task("out", "n1", ONE, 20, preemptible=False),
        task("last", "n1", ONE, 30, preemptible=False), size=4,
    )  # fmt: skip
    assert told(of, wanting({"vcore": 3})) == ({"free-space"}, ["plain", "out"], ["plain", "out", "last"])


def changes(of: World, wanted: Json) -> list[tuple[str, str, str, Any, Any]]:
    why = of.one(wanted, explain="summary")["explanation"]
    return [
        (c["queue"], c["resource"], c["field"], c.get("current"), c["needed"]) for c in why.get("smallest_change", ())
    ]  # fmt: skip


def test_a_guarantee_may_be_raised_up_to_the_limits_on_the_path() -> None:
    of = world(task("t", "n1", TWO), size=4)
    of.workloads[0]["tasks"] = [task("mine", "n1", TWO)]
    of.queues[1] = queue("root.prod", {"vcore": (2, 4)})
    assert changes(of, wanting(TWO)) == [("root.prod", "vcore", "guaranteed", 2, 2.001)]
    of.rules = "shipped"
    assert changes(of, wanting(TWO)) == [("root.prod", "vcore", "guaranteed", 2, 4)]
    of.queues[1] = queue("root.prod", {"vcore": (2, "3999m")})
    assert changes(of, wanting(TWO)) == []


def test_changes_are_told_by_the_names_of_their_resources() -> None:
    both = {"vcore": 2, "memory": 2}
    of = world(task("t", "n1", both))
    of.nodes[0] = node("n1", both)
    of.queues[1] = queue("root.prod")
    expected = [("root.prod", r, "guaranteed", None, n) for r, n in (("memory", 1), ("vcore", 0.001))]
    assert changes(of, wanting(both)) == expected
    assert changes(of, wanting({"memory": 2, "vcore": 2})) == expected


def test_a_limit_in_the_way_is_raised_just_so_far() -> None:
    of = world(size=9)
    of.workloads[0]["tasks"] = [task("mine", "n1", TWO)]
    of.queues[1] = queue("root.prod", {"vcore": (9, 9), "memory": (None, 9)})
    assert of.one(wanting(TWO))["outcome"] == "admit"
    of.queues[1] = queue("root.prod", {"vcore": (None, 3)})
    assert changes(of, wanting(TWO)) == [("root.prod", "vcore", "limit", 3, 4)]
    of.queues[0] = queue("root")
    of.queues.insert(1, queue("root.p", {"vcore": (None, 3)}))
    of.queues[2] = queue("root.p.prod", {"vcore": (None, 3)})
    of.workloads[0]["queue"] = "root.p.prod"
    assert changes(of, ask("want", "root.p.prod", TWO, workload="prod")) == []
    of.queues[2] = queue("root.p.prod")
    assert changes(of, ask("want", "root.p.prod", ONE, workload="prod")) == []
    assert changes(of, ask("want", "root.p.prod", TWO, workload="prod")) == [("root.p", "vcore", "limit", 3, 4)]
