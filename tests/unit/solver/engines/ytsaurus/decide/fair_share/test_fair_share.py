from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus.operations import running_sums
from tests.unit.solver.engines.ytsaurus.cluster import (
    alloc,
    ask,
    decide,
    node,
    operation,
    pool,
    refused,
    request,
    shares,
    started,
)


def cpu(body: dict[str, Any]) -> dict[str, float]:
    answer = shares(body)
    both = {**answer["queues"], **answer["workloads"]}
    return {name: pytest.approx(element["fair_share"]["cpu"]) for name, element in both.items()}


def wants(*of: tuple[str, str, int], **by: dict[str, Any]) -> dict[str, Any]:
    """Operations and asks: name, pool, how many allocations of one cpu; ``by``: more of an operation."""
    return {
        "operations": [operation(name, queue, **by.get(name, {})) for name, queue, _ in of],
        "asks": [ask(name, queue, count) for name, queue, count in of if count],
    }


def tree(pools: list[dict[str, Any]], of: dict[str, Any], total: int = 100, **settings: Any) -> dict[str, Any]:
    return request(pools, [node(cpu=total)], of["operations"], of["asks"], settings)


def test_weights_divide_what_nobody_is_guaranteed() -> None:
    body = tree([pool("a", weight=3), pool("b", weight=1)], wants(("x", "a", 100), ("y", "b", 100)))
    assert cpu(body) == {"a": 75, "x": 75, "b": 25, "y": 25}


def test_what_one_does_not_want_goes_to_the_others() -> None:
    body = tree([pool("a", weight=3), pool("b", weight=1)], wants(("x", "a", 10), ("y", "b", 100)))
    assert cpu(body) == {"a": 10, "x": 10, "b": 90, "y": 90}


def test_guarantees_come_first_and_the_rest_is_added_by_weight() -> None:
    """Not max(guarantee, weight * x): 30 + 20 and 10 + 20 and 20."""
    pools = [pool("a", quota={"cpu": {"guaranteed": 30}}), pool("b", quota={"cpu": {"guaranteed": 10}}), pool("c")]
    body = tree(pools, wants(("x", "a", 100), ("y", "b", 100), ("z", "c", 100)))
    assert cpu(body) == {"a": 50, "x": 50, "b": 30, "y": 30, "c": 20, "z": 20}


def test_a_limit_stops_its_pool_in_all_resources() -> None:
    pools = [pool("a", quota={"user_slots": {"limit": 10}}), pool("b")]
    body = tree(pools, wants(("x", "a", 100), ("y", "b", 100)))
    assert cpu(body) == {"a": 10, "x": 10, "b": 90, "y": 90}


def test_a_limit_of_an_operation() -> None:
    body = tree([pool("a")], wants(("x", "a", 100), ("y", "a", 100), x={"limit": {"cpu": 7}}))
    assert cpu(body) == {"a": 100, "x": 7, "y": 93}


def test_limits_in_the_block_and_in_the_quota_both_hold() -> None:
    pools = [pool("a", quota={"cpu": {"limit": 40}}, ytsaurus={"resource_limits": {"cpu": 20}}), pool("b")]
    assert cpu(tree(pools, wants(("x", "a", 100), ("y", "b", 100))))["a"] == 20


def test_fifo_heavier_first_then_older() -> None:
    pools = [pool("a", ytsaurus={"mode": "fifo"})]
    old, young = {"created_at": "2026-01-01T00:00:00Z"}, {"created_at": "2026-01-01T00:00:09Z"}
    of = wants(("x", "a", 60), ("y", "a", 60), ("z", "a", 30), x=young, y=old, z=young | {"weight": 2})
    assert cpu(tree(pools, of)) == {"a": 100, "z": 30, "y": 60, "x": 10}


def test_guarantees_over_the_cluster_shrink_together() -> None:
    pools = [pool("a", quota={"cpu": {"guaranteed": 30}}), pool("b", quota={"cpu": {"guaranteed": 120}})]
    assert cpu(tree(pools, wants(("x", "a", 100), ("y", "b", 100)))) == {"a": 20, "x": 20, "b": 80, "y": 80}


def test_children_share_their_parents_guarantee() -> None:
    def both(amount: int, **more: int) -> dict[str, Any]:
        return {name: {"guaranteed": amount} | more for name in ("cpu", "user_slots")}

    pools = [
        pool("a", quota=both(50, limit=50)),
        pool("b", parent="a", quota=both(80)),
        pool("c", parent="a", quota=both(20)),
        pool("d", quota=both(50)),
    ]
    body = tree(pools, wants(("x", "b", 100), ("y", "c", 100), ("z", "d", 100)))
    assert cpu(body) == {"a": 50, "b": 40, "x": 40, "c": 10, "y": 10, "d": 50, "z": 50}


def test_guarantees_left_out_follow_the_main_resource() -> None:
    """Half the cluster's cpu is half its memory too; without it, cpu alone would not keep b's memory from a."""
    big = {"capacity": {"user_slots": 100, "cpu": 100, "memory": 100}}
    pools = [pool("a", quota={"cpu": {"guaranteed": 50}}), pool("b", weight=99)]
    operations = [operation("x", "a"), operation("y", "b")]
    task = {"name": "next", "count": 100, "requests": {"user_slots": 1, "memory": 1}}
    asks = [{"id": f"{o['id']}-next", "workload": o["id"], "queue": o["queue"], "tasks": [task]} for o in operations]
    answer = shares(request(pools, [{"name": "n"} | big], operations, asks))
    assert answer["queues"]["a"]["fair_share"]["memory"] == pytest.approx(50.5)


def test_weights_inferred_from_guarantees() -> None:
    pools = [
        pool("a", quota={"cpu": {"guaranteed": 20}}),
        pool("b", quota={"cpu": {"guaranteed": 10}}),
        pool("c", weight=1),
    ]
    body = tree(
        pools, wants(("x", "a", 0), ("y", "b", 100), ("z", "c", 100)), infer_weight_from_guarantees_share_multiplier=9
    )
    # b: 10 guaranteed, weight 9 * 0.1 / 0.3 = 3; the 90 that are left are divided 3 : 1.
    assert cpu(body)["b"] == 10 + 67.5
    assert cpu(body)["c"] == 22.5


def test_a_given_weight_of_one_is_not_inferred() -> None:
    pools = [pool("a", weight=1, quota={"cpu": {"guaranteed": 20}}), pool("b", weight=1)]
    body = tree(pools, wants(("x", "a", 100), ("y", "b", 100)), infer_weight_from_guarantees_share_multiplier=9)
    assert cpu(body) == {"a": 60, "x": 60, "b": 40, "y": 40}


def test_a_weight_of_zero_is_refused() -> None:
    body = tree([pool("a"), pool("b", weight=0)], wants(("x", "a", 100), ("y", "b", 100), x={"weight": 0}))
    assert list(refused(body)) == ["/configuration/queues/1/weight"]
    body["configuration"]["queues"][1]["weight"] = 1
    assert list(refused(body)) == ["/state/workloads/0/weight"]


def test_inferred_guarantees_are_rounded() -> None:
    """9.6 of 48 cpu is a fifth of 20 slots less the last bit of a double: 3, not 4. What is inferred is truncated
    before its own children look at it: of 3 slots a half is 1."""
    pools = [
        pool("a", quota={"cpu": {"guaranteed": 9.6}}),
        pool("a-1", parent="a", quota={"cpu": {"guaranteed": 4.8}}),
        pool("b"),
    ]
    nodes = [{"name": "n", "capacity": {"user_slots": 20, "cpu": 48}}]
    answer = shares(request(pools, nodes, []))
    assert answer["queues"]["a"]["strong_guarantee"] == {"user_slots": 3, "cpu": 9.6}
    assert answer["queues"]["a-1"]["strong_guarantee"] == {"user_slots": 1, "cpu": 4.8}


def test_inferred_cpu_is_rounded_to_hundredths() -> None:
    nodes = [{"name": "n", "capacity": {"cpu": 10, "gpu": 3}}]
    body = request([pool("a", quota={"gpu": {"guaranteed": 2}})], nodes, [], settings={"main_resource": "gpu"})
    assert shares(body)["queues"]["a"]["strong_guarantee"] == {"cpu": 6.67, "gpu": 2}


def test_the_root_gets_what_its_pools_get() -> None:
    body = tree([pool("a"), pool("b")], wants(("x", "a", 30), ("y", "b", 10)))
    answer = shares(body)
    assert answer["fair_share"]["cpu"] == sum(p["fair_share"]["cpu"] for p in answer["queues"].values()) == 40


def test_a_tag_filter_is_a_limit() -> None:
    """60 of 100 cpu are in zone a, so an operation that may run there alone gets no more, and the rest goes on."""
    nodes = [
        {"name": "n", "capacity": {"user_slots": 100, "cpu": 60}, "labels": {"zone": "a"}},
        {"name": "m", "capacity": {"user_slots": 100, "cpu": 40}, "labels": {"zone": "b"}},
    ]
    here = {"tasks": [{"name": "t", "count": 100, "requests": {"cpu": 1}, "node_selector": {"zone": "a"}}]}
    body = request([pool("p")], nodes, [operation("x", "p"), operation("y", "p")], [ask("x", "p") | here])
    assert cpu(body)["x"] == 60
    either = here["tasks"][0] | {"name": "u", "node_selector": {"zone": "b"}}
    body["asks"].append(ask("x", "p") | {"id": "more", "tasks": [either]})
    assert cpu(body)["x"] == 100
    body["asks"][0]["tasks"][0]["node_selector"] = {"zone": "nowhere"}
    assert cpu(body)["x"] == 40


def test_a_pools_tag_filter_is_its_limit() -> None:
    nodes = [
        {"name": "n", "capacity": {"user_slots": 100, "cpu": 60}, "labels": {"zone": "a"}},
        {"name": "m", "capacity": {"user_slots": 100, "cpu": 40}, "labels": {"zone": "b"}},
    ]
    pools = [pool("p", ytsaurus={"scheduling_tag_filter": "zone=a & !slow"}), pool("q")]
    body = request(pools, nodes, [operation("x", "p"), operation("y", "q")], [ask("x", "p", 100), ask("y", "q", 10)])
    assert cpu(body) == {"p": 60, "x": 60, "q": 10, "y": 10}
    assert {place[1] for place in started(decide(body, None)) if place[0] == "x-next"} == {"n"}
    assert {place[1] for place in started(decide(body, "m"))} == {"m"}
    assert {place[0] for place in started(decide(body, "m"))} == {"y-next"}
    body["configuration"]["queues"][0]["ytsaurus"]["scheduling_tag_filter"] = "zone=a | |"
    assert refused(body) == {
        "/configuration/queues/0/ytsaurus/scheduling_tag_filter": "'|' at character 10 stands where a tag should"
    }


def test_a_pools_satisfaction_skips_operations_that_are_suspended() -> None:
    """x uses half of what it is due; y, suspended, all of it."""
    operations = [
        operation("x", "p", [alloc("a")]),
        operation("y", "p", [alloc("b")], ytsaurus={"suspended": True}),
    ]
    body = request([pool("p")], [node(cpu=100)], operations, [ask("x", "p", 1)])
    assert shares(body)["queues"]["p"]["satisfaction"] == 0.5
    body["state"]["workloads"][0]["ytsaurus"] = {"suspended": True}
    body["asks"] = []
    assert shares(body)["queues"]["p"]["satisfaction"] == 1.0


def test_no_nodes_and_a_warning() -> None:
    body = request([pool("a", quota={"cpu": {"guaranteed": 5}})], [], [operation("x", "a")], [ask("x", "a", 3)])
    answer = shares(body)
    assert answer["queues"]["a"]["fair_share"]["cpu"] == 0
    assert [w["pointer"] for w in answer["warnings"]] == ["/configuration/queues/0/quota/cpu/guaranteed"]


def test_a_suspended_operation_wants_nothing_more() -> None:
    body = tree([pool("a")], wants(("x", "a", 100), ("y", "a", 100), x={"ytsaurus": {"suspended": True}}))
    assert cpu(body) == {"a": 100, "x": 0, "y": 100}


def test_asks_without_a_workload_are_operations_of_their_own() -> None:
    own = {"id": "new", "queue": "a", "weight": 3, "tasks": [{"name": "t", "count": 100, "requests": {"cpu": 1}}]}
    body = request([pool("a")], [node(cpu=100)], [operation("x", "a")], [ask("x", "a", 100), own])
    assert cpu(body) == {"a": 100, "x": 25, "new": 75}


def test_two_asks_of_one_operation_and_a_wrong_pool() -> None:
    second = ask("x", "a", 5) | {"id": "x-more"}
    body = request([pool("a"), pool("b")], [node(cpu=100)], [operation("x", "a")], [ask("x", "a", 3), second])
    assert cpu(body)["x"] == 8
    from tests.unit.solver.engines.ytsaurus.cluster import refused

    assert list(refused(body | {"asks": [ask("x", "b")]})) == ["/asks/0/queue"]


def test_resources_that_only_an_ask_names() -> None:
    strange = ask("x", "a") | {"tasks": [{"name": "t", "requests": {"disk": 4, "cpu": 1}}]}
    answer = shares(request([pool("a")], [node(cpu=100)], [operation("x", "a", [])], [strange]))
    assert answer["workloads"]["x"]["demand"]["disk"] == 4
    assert answer["workloads"]["x"]["fair_share"] == {"user_slots": 0, "cpu": 1, "disk": 0}


def test_best_allocation_share_where_asked_for() -> None:
    """Nodes of 10 hold two allocations of 4: 16 of 20, and none of 16."""
    nodes = [{"name": f"n{i}", "capacity": {"user_slots": 9, "memory": 10}} for i in range(2)]

    def fair(memory: int, **settings: Any) -> float:
        task = {"name": "t", "count": 9, "requests": {"user_slots": 1, "memory": memory}}
        asked = {"id": "x-next", "workload": "x", "queue": "a", "tasks": [task]}
        body = request([pool("a")], nodes, [operation("x", "a")], [asked], settings)
        return shares(body)["workloads"]["x"]["fair_share"]["memory"]

    assert fair(4) == pytest.approx(20)
    assert fair(4, enable_best_allocation_share=True) == pytest.approx(16)
    assert fair(16, enable_best_allocation_share=True) == 0


def test_how_much_of_a_pools_share_its_guarantee_covers() -> None:
    pools = [pool("a", quota={"cpu": {"guaranteed": 30}}), pool("b", quota={"cpu": {"guaranteed": 30}}, weight=2)]
    answer = shares(tree(pools, wants(("x", "a", 5), ("y", "b", 100))))["queues"]
    found = {
        name: (q["fair_share_from_guarantee"]["cpu"], q["fair_share"]["cpu"], q["weight"]) for name, q in answer.items()
    }
    assert found == {"a": pytest.approx((5, 5, 1)), "b": pytest.approx((30, 95, 2))}


def test_satisfaction() -> None:
    tasks = [{"name": "t", "requests": {"user_slots": 25, "cpu": 25}}]
    body = request(
        [pool("a"), pool("b"), pool("c")], [node(cpu=100)],
        [operation("x", "a", tasks), operation("y", "b"), operation("z", "b")], [ask("x", "a", 75), ask("y", "b", 100)],
    )  # fmt: skip
    answer = shares(body)
    assert answer["workloads"]["x"]["satisfaction"] == pytest.approx(0.5)
    assert answer["workloads"]["y"]["satisfaction"] == 0
    assert answer["workloads"]["z"]["satisfaction"] == 1e9  # nothing is due to it
    assert answer["queues"]["b"]["satisfaction"] == 0  # its least satisfied operation
    assert answer["queues"]["c"]["satisfaction"] == 1e9


def test_running_sums_start_anew_in_each_block() -> None:
    steps = np.array([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]])
    sums = running_sums(steps, np.array([0, 3, 3, 4, 6]))
    assert sums[:, 0].tolist() == [0, 1, 3, 0, 0, 16]


@pytest.mark.parametrize("gang_steps", [False, True])
@pytest.mark.parametrize(("weight", "gets"), [(1e-10, 0), (1e-9, 0), (2e-9, 50), (0.5, 50)])
def test_a_negligible_weight_is_suggested_nothing(weight: float, gets: float, gang_steps: bool) -> None:
    """z gets what y leaves over only if it weighs something; both ways to compute shares agree."""
    of = wants(("y", "a", 50), ("z", "a", 80), z={"weight": weight})
    assert cpu(tree([pool("a")], of, enable_step_function_for_gang_operations=gang_steps)) == {
        "a": pytest.approx(50 + gets, abs=1e-5), "y": 50, "z": pytest.approx(gets, abs=1e-5),
    }  # fmt: skip
    of = wants(("y", "a", 50), ("z", "b", 80))
    pools = [pool("a"), pool("b", weight=weight)]
    assert cpu(tree(pools, of, enable_step_function_for_gang_operations=gang_steps)) == {
        "a": 50, "y": 50, "b": pytest.approx(gets, abs=1e-5), "z": pytest.approx(gets, abs=1e-5),
    }  # fmt: skip


def test_a_cluster_of_one_unit() -> None:
    """Shares and inferred guarantees are parts of what there is, however little that is."""
    nodes = [{"name": "n", "capacity": {"user_slots": 8, "cpu": 1, "gpu": 1}}]
    pools = [
        pool("a", quota={"cpu": {"guaranteed": 0.5}}),
        pool("b", parent="a", quota={"cpu": {"guaranteed": 0.25}}),
        pool("c", parent="b"),
    ]
    half = {"tasks": [{"name": "t", "requests": {"cpu": 0.5, "gpu": 0.5}}]}
    answer = shares(request(pools, nodes, [operation("x", "c", **half)]))
    assert answer["queues"]["a"]["strong_guarantee"] == {"user_slots": 4, "cpu": 0.5, "gpu": 0}
    assert answer["queues"]["b"]["strong_guarantee"] == {"user_slots": 2, "cpu": 0.25, "gpu": 0}
    assert answer["workloads"]["x"]["dominant_usage_share"] == 0.5
    assert answer["workloads"]["x"]["fair_share"]["gpu"] == 0.5


def test_inferred_guarantees_share_what_the_given_ones_leave_over() -> None:
    """b and c are half of a each, and so would have five slots each: of ten, of which d has five."""
    quotas = {"a": {"cpu": 50, "user_slots": 10}, "b": {"cpu": 25}, "c": {"cpu": 25}, "d": {"user_slots": 5, "cpu": 0}}
    pools = [
        pool(
            name,
            quota={r: {"guaranteed": amount} for r, amount in own.items()},
            **({} if name == "a" else {"parent": "a"}),
        )
        for name, own in quotas.items()
    ]
    found = shares(request(pools, [node(cpu=100)], []))["queues"]
    slots = {name: one["strong_guarantee"]["user_slots"] for name, one in found.items()}
    assert slots == {"a": 10, "b": 2, "c": 2, "d": 5}
    quotas["d"]["user_slots"] = 0
    pools[3]["quota"]["user_slots"]["guaranteed"] = 0
    found = shares(request(pools, [node(cpu=100)], []))["queues"]
    assert [found[name]["strong_guarantee"]["user_slots"] for name in "bcd"] == [5, 5, 0], "they just fit"
    del pools[2]
    pools[2]["quota"]["user_slots"]["guaranteed"] = 10
    found = shares(request(pools, [node(cpu=100)], []))["queues"]
    assert [found[name]["strong_guarantee"]["user_slots"] for name in "bd"] == [0, 10], "nothing is left over"


def test_what_a_pool_guarantees_its_own_is_inferred_only_from_a_main_resource_that_it_has() -> None:
    pools = [pool("a", quota={"gpu": {"guaranteed": 1}}), pool("b", parent="a", quota={"cpu": {"guaranteed": 1}})]
    nodes = [{"name": "n", "capacity": {"user_slots": 8, "cpu": 4, "gpu": 2}}]
    found = shares(request(pools, nodes, []))["queues"]
    assert found["a"]["strong_guarantee"] == {"user_slots": 0, "cpu": 0, "gpu": 1}
    assert found["b"]["strong_guarantee"] == {"user_slots": 0, "cpu": 0, "gpu": 0}
