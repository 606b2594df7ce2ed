"""What applications, users and groups may have, and a partition in which nobody is preempted."""

from typing import Any

import pytest

from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

ONE = {"vcore": 1}


def world(*apps: Json, root: Json | None = None, leaf: Json | None = None, **more: Any) -> World:
    queues = [queue("root", **(root or {})), queue("root.a", **(leaf or {})), queue("root.b")]
    return World(queues=queues, nodes=[node("n", {"vcore": 10})], workloads=list(apps), **more)


def running(name: str, queue_name: str = "root.a", cores: int = 1, **owner: Any) -> Json:
    whose = {"yunikorn": owner} if owner else {}
    return app(name, queue_name, task(f"{name}-0", "n", {"vcore": cores}), **whose)


def new(name: str = "x", queue_name: str = "root.a", cores: int = 1, **owner: Any) -> Json:
    return ask(name, queue_name, {"vcore": cores}) | ({"yunikorn": owner} if owner else {})


def outcome(of: World, wanted: Json) -> str:
    decision = of.one(wanted)
    return decision["outcome"] if decision["outcome"] != "wait" else decision["conditions"][0]["reason"]


@pytest.mark.parametrize("where", ["leaf", "root"])
def test_as_many_applications_run_as_their_queue_and_those_above_it_let(where: str) -> None:
    limit: Json = {where: {"max_applications": 2}}
    assert outcome(world(running("one"), **limit), new()) == "admit"
    full = world(running("one"), running("two"), **limit)
    assert outcome(full, new()) == "ApplicationLimit"
    assert outcome(full, new("one-1") | {"workload": "one"}) == "admit", "it runs already"
    elsewhere = world(running("one"), running("two", "root.b"), **limit)
    assert outcome(elsewhere, new()) == ("ApplicationLimit" if where == "root" else "admit")


def test_in_a_cycle_those_that_start_count_and_pods_of_one_application_are_one() -> None:
    of = world(leaf={"max_applications": 2})
    asks = [new("p0", application="p"), new("p1", application="p"), new("q"), new("r")]
    found = of.decide(*asks, mode="cycle")["decisions"]
    assert [d["outcome"] for d in found] == ["admit", "admit", "admit", "wait"]


def test_a_placeholder_that_is_released_counts_until_it_has_left() -> None:
    leaving = running("p", cores=2, user="ann")
    leaving["tasks"][0] |= {"state": "released", "placeholder": True}
    of = limits({"users": ["ann"], "max_resources": {"vcore": 2}, "max_applications": 1})
    assert outcome(world(leaving, **of), new(user="ann")) == "ApplicationLimit"
    assert outcome(world(leaving, **of), new() | {"workload": "p"}) == "NotEnoughUserQuota"


def limits(*of: Json) -> Json:
    return {"leaf": {"limits": list(of)}}


NAMED = limits({"users": ["ann"], "max_resources": {"vcore": 3}}, {"users": ["*"], "max_resources": {"vcore": 1}})


@pytest.mark.parametrize(
    ("user", "used", "cores", "expected"),
    [
        ("ann", 2, 1, "admit"), ("ann", 2, 2, "NotEnoughUserQuota"), ("ann", 0, 3, "admit"), ("bob", 0, 1, "admit"),
        ("bob", 0, 2, "NotEnoughUserQuota"), ("bob", 1, 1, "NotEnoughUserQuota"), ("bob", 9, 1, "NotEnoughUserQuota"),
    ],
)  # fmt: skip
def test_each_user_has_what_names_it_else_what_holds_for_all(user: str, used: int, cores: int, expected: str) -> None:
    of = world(running("old", cores=used, user=user), running("other", cores=1, user="someone"), **NAMED)
    assert outcome(of, new(cores=cores, user=user)) == expected


def test_a_limit_of_users_holds_below_its_queue_and_for_what_it_names() -> None:
    above = {"root": {"limits": [{"users": ["ann"], "max_resources": {"vcore": 2}}]}}
    assert (
        outcome(world(running("old", "root.b", user="ann"), **above), new(cores=2, user="ann")) == "NotEnoughUserQuota"
    )
    memory = limits({"users": ["ann"], "max_resources": {"memory": 1}})
    assert outcome(world(**memory), new(cores=9, user="ann")) == "admit"
    nothing = limits({"users": ["ann"], "max_resources": {"vcore": 0}})
    assert outcome(world(**nothing), new(cores=9, user="ann")) == "admit", "all 0 is no limit"


def test_a_user_runs_as_many_applications_as_may() -> None:
    of = world(
        running("one", user="ann"), running("two", user="bob"), **limits({"users": ["ann"], "max_applications": 1})
    )
    assert outcome(of, new(user="ann")) == "ApplicationLimit"
    assert outcome(of, new(user="bob")) == "admit"
    assert outcome(of, new("one-1") | {"workload": "one"}) == "admit"


GROUPS = limits(
    {"groups": ["dev"], "max_resources": {"vcore": 2}}, {"groups": ["ops"], "max_resources": {"vcore": 4}},
    {"groups": ["*"], "max_resources": {"vcore": 1}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "cores", "expected"),
    [
        (["dev"], 1, "admit"), (["dev"], 2, "NotEnoughUserQuota"), (["ops", "dev"], 2, "NotEnoughUserQuota"),
        (["ops"], 4, "admit"), (["none"], 1, "admit"), (["none"], 2, "NotEnoughUserQuota"), ([], 5, "admit"),
    ],
)  # fmt: skip
def test_the_first_group_that_a_queue_names_counts_for_all_of_its_users(
    groups: list[str], cores: int, expected: str
) -> None:
    of = world(running("old", user="ann", groups=["dev"]), **GROUPS)
    assert outcome(of, new(cores=cores, user="bob", groups=groups)) == expected


def test_a_limit_lets_nobody_be_preempted() -> None:
    queues = [queue("root"), queue("root.a", {"vcore": 5}), queue("root.b")]
    of = World(queues=queues, nodes=[node("n", {"vcore": 4})], workloads=[running("big", "root.b", 4)])
    assert outcome(of, new(user="ann")) == "preempt"
    queues[1]["yunikorn"] = {"limits": [{"users": ["ann"], "max_resources": {"vcore": 1}}]}
    assert outcome(of, new(cores=2, user="ann")) == "NotEnoughUserQuota"


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_with_preemption_off_only_a_required_node_is_emptied(rules: str) -> None:
    queues = [queue("root"), queue("root.a", {"vcore": 5}), queue("root.b")]
    of = World(queues=queues, nodes=[node("n", {"vcore": 4})], workloads=[running("big", "root.b", 4)], rules=rules)
    of.settings = {"preemption": False}
    assert outcome(of, new()) == "PreemptionDisabled"
    assert outcome(of, new() | {"required_node": "n"}) == "preempt"
