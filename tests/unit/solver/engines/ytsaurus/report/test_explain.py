"""Explanations, whole: what each stage looked at, what became of every allocation, worked out by hand."""

from typing import Any

import pytest

from app.solver.engines.ytsaurus import engine, explain
from tests.support.bounds import Bounded
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, decide, node, operation, pool, request

Json = dict[str, Any]
TOO_RECENT = {"last_preemptive_scheduling_at": "2026-01-01T11:59:59Z"}


def crowded(
    level: str = "starving", *, need: Any = 3, x: Json | None = None, y: Json | None = None, **more: Any
) -> Json:
    """y fills a node of ten cpus and is due five of them, x has nothing. Half of what y is due is not preemptible: y0
    to y2; y3 and y4 are aggressively preemptible, the rest is plainly."""
    tasks = more.pop("tasks", [alloc(f"y{i}", i) for i in range(10)])
    pools = more.pop("pools", [pool("a"), pool("b")])
    operations = [
        operation("x", "a", ytsaurus={"starvation": level}) | (x or {}),
        operation("y", "b", tasks, **(y or {})),
    ]
    settings = {"aggressive_preemption_satisfaction_threshold": 0.5} | more.pop("settings", {})
    return request(
        pools, more.pop("nodes", [node()]), operations, [ask("x", "a", 2, need), ask("y", "b", 5)], settings, **more
    )


def explanation(body: Json, of: int = 0, on: str | None = "n", level: str = "full") -> Json:
    return decide(body, on, explain=level)["decisions"][of]["explanation"]


def told(body: Json, of: int = 0, on: str | None = "n") -> dict[str, tuple[str, str, int | None]]:
    """By allocation: verdict, rule, and its place in the order in which allocations may be taken."""
    found = explanation(body, of, on)["candidates"]
    return {c["task"]: (c["verdict"], c["rule"], c["numbers"]["place"]) for c in found}


def steps(of: Json, rule: str) -> list[tuple[str, Json]]:
    return [(step["detail"], step.get("numbers", {})) for step in of["steps"] if step["rule"] == rule]


PROTECTED = {f"y{i}": ("protected", "non_preemptible", None) for i in range(3)}
STAGE = {
    "node": "n", "free": {"user_slots": 90, "cpu": 0}, "started": 1, "operations": 1, "preemptible_allocations": 5,
    "preemptible": {"user_slots": 5, "cpu": 5}, "stopped": 3,
}  # fmt: skip


def test_who_preempts_is_told_its_standing_the_stage_and_everybody_there() -> None:
    found = explanation(crowded())
    assert found["headline"] == "x-next: 1 allocation on n (preemptive normal); 3 allocations must stop"
    assert "blocker" not in found
    assert [step["rule"] for step in found["steps"]] == ["fair-share", "preemptive_normal", "rules"]
    ((detail, standing),) = steps(found, "fair-share")
    assert detail == "operation x of pool a"
    assert standing == {
        "fair_share": pytest.approx({"user_slots": 5 / 300, "cpu": 0.5}), "usage_share": {"user_slots": 0, "cpu": 0},
        "demand_share": pytest.approx({"user_slots": 0.02, "cpu": 0.6}), "satisfaction": 0,
        "preemption_priority": "normal",
    }  # fmt: skip
    assert steps(found, "preemptive_normal") == [("n: 1 started, 1 of this ask", STAGE)]
    assert steps(found, "rules")[0][0] == "shipped rules"
    assert told(crowded()) == PROTECTED | {
        "y3": ("protected", "aggressively_preemptible", None), "y4": ("protected", "aggressively_preemptible", None),
        "y5": ("not-needed", "node-fits", 4), "y6": ("not-needed", "node-fits", 3),
        "y7": ("victim", "preemption", 2), "y8": ("victim", "preemption", 1), "y9": ("victim", "preemption", 0),
    }  # fmt: skip
    assert found["candidates"][7] == {
        "workload": "y", "task": "y7", "queue": "b", "node": "n", "verdict": "victim", "rule": "preemption",
        "detail": "next in order", "numbers": {"group": "preemptible", "place": 2, "share": 0.1},
    }  # fmt: skip


def test_a_summary_counts_what_a_full_explanation_lists() -> None:
    groups = explanation(crowded(), level="summary")["groups"]
    assert [(g["verdict"], g["rule"], g["count"], g["examples"]) for g in groups] == [
        ("protected", "non_preemptible", 3, ["y/y0", "y/y1", "y/y2"]),
        ("protected", "aggressively_preemptible", 2, ["y/y3", "y/y4"]),
        ("not-needed", "node-fits", 2, ["y/y5", "y/y6"]),
        ("victim", "preemption", 3, ["y/y7", "y/y8", "y/y9"]),
    ]


def test_who_waits_meanwhile_sees_the_same_stages_from_outside() -> None:
    found = explanation(crowded(), 1)
    assert found["blocker"] == "NotStarving"
    assert found["headline"] == (
        "y-next waits: n has no free resources for it, and as its operation is not starving nobody has to stop"
    )
    assert [step["rule"] for step in found["steps"]] == ["fair-share", "regular", "preemptive_normal", "rules"]
    assert steps(found, "regular") == [("n: 0 started", {"node": "n", "free": STAGE["free"], "started": 0})]
    assert steps(found, "preemptive_normal") == [("n: 1 started", STAGE)]
    assert told(crowded(), 1) == PROTECTED | {
        "y3": ("protected", "aggressively_preemptible", None), "y4": ("protected", "aggressively_preemptible", None),
        "y5": ("out-of-reach", "takes-no-part", 4), "y6": ("out-of-reach", "takes-no-part", 3),
        **{f"y{9 - i}": ("out-of-reach", "goes-for-another", i) for i in range(3)},
    }  # fmt: skip


def test_the_aggressive_stage_takes_those_first_that_leave_cpu_unused() -> None:
    """y3 asked for two cpus and uses one: of the two aggressively preemptible ones it would go first, although y4 is
    newer; nothing that is plainly preemptible goes after them."""
    tasks = [alloc(f"y{i}", i) for i in range(10)]
    tasks[3] = alloc("y3", 3, cpu=2, usage={"user_slots": 1, "cpu": 1})
    body = crowded("aggressively_starving", tasks=tasks)
    found = explanation(body)
    assert found["headline"] == "x-next: 1 allocation on n (preemptive aggressive); 3 allocations must stop"
    ((_, standing),) = steps(found, "fair-share")
    assert standing["preemption_priority"] == "aggressive"
    assert told(body) == PROTECTED | {
        "y3": ("not-needed", "node-fits", 5), "y4": ("not-needed", "node-fits", 6),
        "y5": ("not-needed", "node-fits", 4), "y6": ("not-needed", "node-fits", 3),
        **{f"y{9 - i}": ("victim", "aggressive_preemption", i) for i in range(3)},
    }  # fmt: skip


def test_all_that_could_go_is_too_little() -> None:
    """Five plainly preemptible cpus and none free: six are too many, and the stage stops nobody."""
    found = explanation(crowded(need=6))
    assert (found["blocker"], steps(found, "preemptive_normal")) == (
        "NotEnoughPreemptible", [("n: 0 started", STAGE | {"started": 0, "stopped": 0})],
    )  # fmt: skip
    assert told(crowded(need=6))["y9"] == ("not-needed", "not-enough", 0)
    assert explanation(crowded(need=11))["headline"].startswith("x-next can never run: no node")


@pytest.mark.parametrize(
    ("of_y", "of_b", "settings", "rule"),
    [
        ({"preemption_mode": "graceful"}, {}, {}, "graceful"),
        ({"starvation": "starving"}, {}, {}, "starving"),
        ({}, {"allow_normal_preemption": False}, {}, "normal-preemption-off"),
    ],
)
def test_what_protects_a_whole_operation(of_y: Json, of_b: Json, settings: Json, rule: str) -> None:
    body = crowded(y={"ytsaurus": of_y}, pools=[pool("a"), pool("b", ytsaurus=of_b)], settings=settings)
    assert {name: one[:2] for name, one in told(body).items()} == {f"y{i}": ("protected", rule) for i in range(10)}


def test_the_aggressive_stage_knows_what_forbids_it() -> None:
    body = crowded(
        "aggressively_starving", need=6, pools=[pool("a"), pool("b", ytsaurus={"allow_aggressive_preemption": False})]
    )
    assert told(body) == PROTECTED | {
        "y3": ("protected", "aggressive-preemption-off", None), "y4": ("protected", "aggressive-preemption-off", None),
        **{f"y{9 - i}": ("not-needed", "not-enough", i) for i in range(5)},
    }  # fmt: skip


def own(rules: str) -> Json:
    """x fills the node, is due half of it as y wants the other half, and starves."""
    tasks = [alloc(f"x{i}", i) for i in range(10)]
    operations = [operation("x", "a", tasks, ytsaurus={"starvation": "starving"}), operation("y", "b")]
    settings = {"rules": rules, "allow_preemption_from_starving_operations": True}
    asks = [ask("x", "a"), ask("y", "b", 9)]
    return request([pool("a"), pool("b")], [node()], operations, asks, settings)


def test_a_difference_between_the_rules_that_decided_is_a_step() -> None:
    found = explanation(own("documented"))
    assert found["blocker"] == "NotEnoughPreemptible"
    assert {c["rule"] for c in found["candidates"] if c["numbers"]["place"] is not None} == {"own-allocations"}
    evicts = "an operation may evict its own allocations to start another one"
    assert steps(found, "own-allocations") == [(f"under shipped rules, {evicts}, and the outcome is another", {})]
    assert (
        steps(found, "rules")[0][1]["own-allocations"]
        == "an operation makes no room for itself: that would start nothing more of it"
    )
    released = explanation(own("shipped"))
    assert released["headline"] == "x-next: 1 allocation on n (preemptive normal); 1 allocation must stop"
    assert steps(released, "own-allocations")[0][0].startswith("under documented rules, an operation makes no room")
    assert not steps(released, "differences-not-tried")


def test_a_difference_in_who_has_to_stop_is_one_too() -> None:
    """Due to each of three is a third of ten cpus. x and y use five, and the newest of either could go: as released x
    gives up the newest of its own, by the page it is y's."""
    tasks = {name: [alloc(f"{name}{i}", begin + i) for i in range(5)] for name, begin in (("x", 10), ("y", 0))}
    operations = [operation("x", "a", tasks["x"], ytsaurus={"starvation": "starving"}), operation("y", "b", tasks["y"])]
    asks = [
        ask("x", "a"),
        ask("y", "b", 5),
        {key: value for key, value in ask("z", "c", 9).items() if key != "workload"},
    ]
    pools = [pool(name) for name in "abc"]
    body = request(pools, [node()], operations, asks, {"allow_preemption_from_starving_operations": True})
    answer = decide(body, explain="full")
    assert [one["task"] for one in answer["decisions"][0]["victims"]] == ["x4"]
    told_of = {step["rule"] for step in answer["decisions"][0]["explanation"]["steps"]}
    assert told_of == {"fair-share", "preemptive_normal", "rules", "own-allocations"}


def many(count: int) -> Json:
    """As many nodes of one cpu, each with an allocation of y; two cpus fit none of them."""
    nodes = [node(f"n{i:02}", 1) for i in range(count)] + [node("big", 2, schedulable=True)]
    tasks = [alloc(f"y{i:02}", i, on=f"n{i:02}") for i in range(count)]
    tasks += [alloc(f"z{i}", 0, on="big") for i in range(2)]
    return crowded(need=2, nodes=nodes, tasks=tasks, settings={"preemption_satisfaction_threshold": 5})


@pytest.mark.parametrize(("count", "dropped"), [(23, 0), (24, 2), (30, 14)])
def test_of_very_many_stages_the_last_are_told_and_the_allocations_of_fewer(count: int, dropped: int) -> None:
    """A node makes two records; 48 are shown, and the allocations of the last eight preemptive stages."""
    found = explanation(many(count), on=None)
    assert len(found["steps"]) == 2 + min(48, 2 * count + 2) + bool(dropped)
    left_out: list[Any] = [(f"{dropped} stages before these are left out", {})] if dropped else []
    assert steps(found, "earlier-stages") == left_out
    assert [c["task"] for c in found["candidates"]] == [*(f"y{i:02}" for i in range(count - 7, count)), "z0", "z1"]


@pytest.mark.parametrize(
    ("count", "where"), [(1, "n0"), (5, "n0, n1, n2, n3, n4"), (7, "n0, n1, n2, n3, n4 and 2 more")]
)
def test_a_headline_names_five_nodes(count: int, where: str) -> None:
    nodes = [node(f"n{i}", 2) for i in range(7)]
    body = request([pool("a")], nodes, [operation("x", "a")], [ask("x", "a", 2 * count)])
    decision = decide(body, None, explain="full")["decisions"][0]
    assert (
        decision["explanation"]["headline"]
        == f"x-next: {2 * count} allocations on {where} (regular); nobody has to stop"
    )
    assert "counts" not in decision
    assert "candidates" not in decision["explanation"] or not decision["explanation"]["candidates"]
    first = steps(decision["explanation"], "regular")[0]
    assert first == (
        "n0: 2 started, 2 of this ask",
        {"node": "n0", "free": {"user_slots": 100, "cpu": 2}, "started": 2},
    )


def twice() -> Json:
    """y fills both of two nodes, and x starves and wants three cpus on each."""
    tasks = [alloc(f"{name}{i}", i, on=name) for name in "nm" for i in range(10)]
    return crowded(nodes=[node("n"), node("m")], tasks=tasks)


@pytest.mark.parametrize(("stages", "listed"), [(2, 10), (1, 3)])
def test_of_stages_before_the_last_ones_only_the_own_victims_are_listed(
    stages: int, listed: int, bounded: Bounded
) -> None:
    bounded(explain, MOST_CANDIDATE_STAGES=stages)
    found = explanation(twice(), on=None)["candidates"]
    first, last = ([one for one in found if one["node"] == name] for name in "nm")
    assert (len(first), len(last)) == (listed, 10)
    assert [one["task"] for one in first if one["verdict"] == "victim"] == ["n7", "n8", "n9"]
    assert [one["task"] for one in last if one["verdict"] == "victim"] == ["m7", "m8", "m9"]


@pytest.mark.parametrize(("most", "listed"), [(2, True), (1, False)])
def test_with_very_many_asks_those_that_wait_get_no_list(most: int, listed: bool, bounded: Bounded) -> None:
    bounded(explain, MOST_LISTED_WAITING=most)
    assert len(explanation(crowded())["candidates"]) == 10
    assert bool(explanation(crowded(), 1).get("candidates")) is listed


@pytest.mark.parametrize(("most", "tried"), [(2, True), (1, False)])
def test_on_very_many_nodes_the_other_rules_are_not_tried(most: int, tried: bool, bounded: Bounded) -> None:
    bounded(engine, MOST_NODES_COMPARED=most)
    found = explanation(twice(), on=None)
    said: list[Any] = [] if tried else [("documented rules were not tried on so many nodes", {})]
    assert steps(found, "differences-not-tried") == said
