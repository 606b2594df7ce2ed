"""Nodes that a pod may use by labels and taints, under both rule sets."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

RULES = pytest.mark.parametrize("rules", ["documented", "shipped"])
TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
IN_B = [[{"key": "zone", "operator": "In", "values": ["b"]}]]


def world(rules: str, free: int = 0, **second: Any) -> World:
    """Two nodes alike, each with one that could go; the first is chosen where both will do."""
    return World(
        queues=[queue("root"), queue("root.asks", {"vcore": 4}), queue("root.over", {"vcore": 1})],
        nodes=[node("n1", {"vcore": 2 + free}, labels={"zone": "a"}),
               node("n2", {"vcore": 2 + free}, **{"labels": {"zone": "b"}, **second})],
        workloads=[app("over", "root.over", task("one", "n1", {"vcore": 2}), task("two", "n2", {"vcore": 2}))],
        rules=rules,
    )  # fmt: skip


def wanted(**predicates: Any) -> Json:
    of = ask("p", "root.asks", {"vcore": 2})
    of["tasks"][0] |= predicates
    return of


@RULES
@pytest.mark.parametrize("predicates", [{"node_selector": {"zone": "b"}}, {"node_affinity": IN_B}])
def test_victims_and_places_are_looked_for_where_the_pod_may_run(rules: str, predicates: Json) -> None:
    assert world(rules).one(wanted())["node"] == "n1"
    found = world(rules).one(wanted(**predicates))
    assert (found["node"], [one["task"] for one in found["victims"]]) == ("n2", ["two"])
    assert world(rules, free=2).one(wanted(**predicates))["node"] == "n2"
    assert world(rules).one(wanted(node_selector={"zone": "c"}))["outcome"] == "wait"
    both = wanted(**predicates) | {"feasible_nodes": ["n1"]}
    assert world(rules).one(both)["outcome"] == "wait"


@RULES
def test_a_taint_that_is_not_borne_keeps_the_pod_away(rules: str) -> None:
    of = world(rules, taints=[TAINT])
    only_second = {"node_selector": {"zone": "b"}}
    assert of.one(wanted())["node"] == "n1"
    assert of.one(wanted(**only_second))["outcome"] == "wait"
    borne = {"key": "gpu", "operator": "Exists"}
    assert of.one(wanted(**only_second, tolerations=[borne]))["node"] == "n2"
    mild = world(rules, taints=[{**TAINT, "effect": "PreferNoSchedule"}])
    assert mild.one(wanted(**only_second))["node"] == "n2"


@RULES
def test_more_kinds_of_demands_than_are_kept_are_answered_alike(rules: str) -> None:
    of = world(rules, free=2)
    asks = [wanted(node_selector={"zone": "b" if i % 2 else f"z{i}"}) | {"id": f"p{i}"} for i in range(600)]
    found = of.decide(*asks, mode="independent")["decisions"]
    assert [one["outcome"] for one in found] == ["wait", "admit"] * 300


@pytest.mark.parametrize(
    ("rules", "free", "victims"),
    [("shipped", 0, ["two"]), ("shipped", 2, []), ("documented", 0, []), ("documented", 2, [])],
)  # fmt: skip
def test_a_pod_that_requires_a_node_does_not_run_there_against_its_predicates(
    rules: str, free: int, victims: list[str]
) -> None:
    """Released, they are asked when there is room, and not before somebody is evicted for it; documented, nobody is
    evicted in vain."""
    of = world(rules, free=free, taints=[TAINT])
    found = of.one(wanted() | {"required_node": "n2"})
    assert found["outcome"] == ("preempt" if victims else "wait")
    assert [one["task"] for one in found["victims"]] == victims
    if not victims:
        assert found["conditions"][0]["reason"] == "NoRoomOnRequiredNode"
    borne = wanted(tolerations=[{"key": "gpu", "operator": "Exists"}]) | {"required_node": "n2"}
    assert of.one(borne)["outcome"] == ("admit" if free else "preempt")


def test_what_kubernetes_refuses_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        world("documented").one(wanted(node_affinity=[[{"key": "zone", "operator": "In"}]]))
    assert [one.pointer for one in refused.value.problems] == ["/asks/0/tasks/0/node_affinity/0/0/values"]
