"""A decision's answer, whole: who starts where, who stops for whom, what the next heartbeat needs to know."""

from typing import Any

import pytest

from tests.unit.solver.engines.ytsaurus.cluster import NOW, alloc, ask, decide, node, operation, pool, request

Json = dict[str, Any]


def crowded(**of_x: Any) -> Json:
    """y fills a node of ten cpus and is due five of them; x starves, has nothing and wants two times three. y asks
    first, for two more."""
    tasks = [alloc(f"y{i}", i) for i in range(10)]
    operations = [operation("y", "b", tasks), operation("x", "a", ytsaurus={"starvation": "starving"})]
    return request([pool("a"), pool("b")], [node()], operations, [ask("y", "b", 2), ask("x", "a", 2, 3) | of_x])


def victim(task: str) -> Json:
    said = "preempted on node n to start an allocation of x-next"
    return {
        "workload": "y", "task": task, "queue": "b", "node": "n", "reason": "preemption", "message": said,
        "conditions": [
            {
                "type": "Preempted", "status": "True", "reason": "preemption", "message": said,
                "last_transition_time": NOW,
            }
        ],
        "freed": {"user_slots": 1, "cpu": 1}, "timeout_seconds": 30,
    }  # fmt: skip


def eviction(task: str, reason: str = "preemption", **more: Any) -> Json:
    return {"workload": "y", "task": task, "queue": "b", "node": "n", "reason": reason} | more


def test_who_starts_and_who_stops_for_it() -> None:
    answer = decide(crowded())
    waits, starts = answer["decisions"]
    said = "n has no free resources for it, and as its operation is not starving nobody has to stop"
    assert waits == {
        "ask": "y-next", "outcome": "wait", "victims": [],
        "conditions": [
            {
                "type": "Scheduled", "status": "False", "reason": "NotStarving", "message": said,
                "last_transition_time": NOW,
            }
        ],
        "shortages": [{"resource": "cpu", "node": "n", "requested": 1, "available": 0, "short": 1}],
    }  # fmt: skip
    assert starts == {
        "ask": "x-next", "outcome": "preempt", "node": "n", "placements": {"next": "n"}, "counts": {"next": 1},
        "victims": [victim("y9"), victim("y8"), victim("y7")], "conditions": [],
    }  # fmt: skip
    assert answer["order"] == ["x-next", "y-next"]
    assert answer["plan"] == {
        "evictions": [eviction(f"y{i}", for_ask="x-next") for i in (9, 8, 7)],
        "placements": [
            {"ask": "x-next", "task": "next", "node": "n", "pipelined": False, "stage": "preemptive_normal"}
        ],
    }
    assert answer["notes"] == {"nodes": {"n": {"last_preemptive_scheduling_at": NOW, "overcommit_since": None}}}


def test_what_is_freed_and_how_long_a_victim_has_is_its_own() -> None:
    body = crowded()
    body["state"]["workloads"][0]["ytsaurus"] = {"allocation_preemption_timeout": 7.5}
    body["state"]["workloads"][0]["tasks"][9]["usage"] = {"cpu": 2.5, "gpu": 0}
    starts = decide(body)["decisions"][1]
    assert starts["victims"][0]["freed"] == {"cpu": 2.5}
    assert [one["timeout_seconds"] for one in starts["victims"]] == [7.5] * len(starts["victims"])


def test_who_stops_for_nobody() -> None:
    """y uses two cpus more than there are."""
    body = crowded()
    body["state"]["nodes"] = [node(cpu=8)]
    body["asks"] = []
    answer = decide(body)
    assert (answer["decisions"], answer["plan"]["placements"]) == ([], [])
    assert answer["plan"]["evictions"] == [eviction("y9"), eviction("y8")]


@pytest.mark.parametrize("count", [3, 5])
def test_several_tasks_on_several_nodes(count: int) -> None:
    """Two cpus on each of two nodes: small tasks first, one after the other, until nothing is left."""
    nodes = [node("n", 2), node("m", 2)]
    wanted = ask("x", "a", count)
    wanted["tasks"].append({"name": "large", "count": 1, "requests": {"user_slots": 1, "cpu": 3}})
    body = request([pool("a")], nodes, [operation("x", "a")], [wanted])
    starts = decide(body, None)["decisions"][0]
    most = min(count, 4)
    assert (starts["outcome"], starts["node"], starts["placements"]) == ("admit", "n", {"next": "n"})
    assert starts["counts"] == {"next": most}
    stages = [(one["task"], one["node"], one["stage"]) for one in decide(body, None)["plan"]["placements"]]
    assert stages == [("next", name, "regular") for name in ["n", "n", "m", "m"][:most]]
    wanted["tasks"].pop()
    assert ("counts" in decide(body, None)["decisions"][0]) is (count > 4)


def test_a_guarantee_of_nothing_is_noted() -> None:
    body = crowded()
    assert "warnings" not in decide(body)["notes"]
    body["configuration"]["queues"][0]["quota"] = {"gpu": {"guaranteed": 1}}
    assert [one["pointer"] for one in decide(body)["notes"]["warnings"]] == [
        "/configuration/queues/0/quota/gpu/guaranteed"
    ]


def test_one_by_one_each_ask_stands_alone_and_nothing_is_carried() -> None:
    """Each would preempt alone, for one cpu; together one of them waits."""
    body = crowded()
    body["asks"] = [ask("x", "a", 1), ask("z", "a", 1)]
    body["state"]["workloads"].append(operation("z", "a", ytsaurus={"starvation": "starving"}))
    alone = decide(body, mode="independent")
    assert [one["outcome"] for one in alone["decisions"]] == ["preempt", "preempt"]
    assert [one["victims"][0]["task"] for one in alone["decisions"]] == ["y9", "y9"]
    assert "order" not in alone
    assert "notes" not in alone
    assert sorted(one["outcome"] for one in decide(body)["decisions"]) == ["preempt", "wait"]
    body["asks"] = []
    empty = decide(body, mode="independent")
    assert (empty["decisions"], "order" in empty, "notes" in empty) == ([], False, False)
