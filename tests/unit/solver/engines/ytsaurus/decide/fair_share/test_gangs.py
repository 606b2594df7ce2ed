"""Gangs that get all or nothing, and FIFO pools that make room for them; 100 cpu and 100 slots."""

from typing import Any

import pytest

from tests.unit.solver.engines.ytsaurus.cluster import ask, effective, node, operation, pool, request, shares

Json = dict[str, Any]
STEPS = {"enable_step_function_for_gang_operations": True}
IMPROVED = STEPS | {"enable_improved_fair_share_by_fit_factor_computation": True}
REORDER = IMPROVED | {"enable_fifo_children_reordering_for_guarantee_utilization": True}
GANG = {"ytsaurus": {"is_gang": True}}


def cpu(body: Json) -> dict[str, Any]:
    answer = shares(body)
    both = {**answer["queues"], **answer["workloads"]}
    return {name: pytest.approx(element["fair_share"]["cpu"]) for name, element in both.items()}


def tree(pools: list[Json], *of: tuple[str, str, int, Json], **settings: Any) -> Json:
    """Operations: name, pool, how many cpu they want, what else they are."""
    operations = [operation(name, queue, **more) for name, queue, _, more in of]
    return request(
        pools, [node(cpu=100)], operations, [ask(name, queue, count) for name, queue, count, _ in of], settings=settings
    )


def test_a_gang_gets_all_of_its_demand_or_nothing() -> None:
    body = tree([pool("p")], ("g", "p", 60, GANG), ("x", "p", 80, {}), **STEPS)
    assert cpu(body) == {"p": 60, "g": 0, "x": 60}, "they would meet at 50; at 60 the gang would step past the cluster"
    body["asks"][0]["tasks"][0]["count"] = 40
    assert cpu(body) == {"p": 100, "g": 40, "x": 60}
    body["configuration"]["queues"][0]["ytsaurus"] = {"enable_step_function_for_gang_operations": False}
    body["asks"][0]["tasks"][0]["count"] = 60
    assert cpu(body) == {"p": 100, "g": 50, "x": 50}


def test_a_gang_that_wants_the_whole_cluster_gets_nothing() -> None:
    assert cpu(tree([pool("p")], ("g", "p", 100, GANG), **STEPS)) == {"p": 0, "g": 0}
    assert cpu(tree([pool("p")], ("g", "p", 99, GANG), **STEPS)) == {"p": 99, "g": 99}


def test_a_gang_beyond_its_limit_gets_nothing() -> None:
    limited = GANG | {"limit": {"cpu": 39}}
    assert cpu(tree([pool("p")], ("g", "p", 40, limited), **STEPS))["g"] == 0
    assert cpu(tree([pool("p")], ("g", "p", 39, limited), **STEPS))["g"] == 39


def test_gangs_alike_step_together_or_the_improved_way_one_by_one() -> None:
    gangs = [(name, "p", 40, GANG) for name in ("g", "h", "i")]
    assert cpu(tree([pool("p")], *gangs, **STEPS)) == {"p": 0, "g": 0, "h": 0, "i": 0}
    assert cpu(tree([pool("p")], *gangs, **IMPROVED)) == {"p": 80, "g": 40, "h": 40, "i": 0}


def fifo(guarantee: int, *of: tuple[str, int, Json], competitor: int = 100, **settings: Any) -> Json:
    """A FIFO pool whose operations come in this order, and another pool that wants the rest."""
    pools = [
        pool("p", quota={"cpu": {"guaranteed": guarantee}}, ytsaurus={"mode": "fifo"}),
        pool("q", quota={"cpu": {"guaranteed": 100 - guarantee}}),
    ]
    pools[0]["ytsaurus"]["enable_fifo_children_reordering_for_guarantee_utilization"] = True
    first = [(name, "p", count, {"weight": 9 - i} | more) for i, (name, count, more) in enumerate(of)]
    return tree(pools, *first, ("c", "q", competitor, {}), **settings)


def test_a_fifo_pool_serves_first_what_fits_into_its_guarantee() -> None:
    body = fifo(60, ("g", 70, GANG), ("h", 30, GANG), ("i", 30, GANG), **REORDER)
    answer = shares(body)
    assert cpu(body) == {"p": 60, "g": 0, "h": 30, "i": 30, "q": 40, "c": 40}
    places = [(w["fifo_index"], w["effective_fifo_index"]) for w in (answer["workloads"][name] for name in "ghi")]
    assert places == [(0, 2), (1, 0), (2, 1)]
    assert "fifo_index" not in answer["workloads"]["c"]
    del body["configuration"]["settings"]["ytsaurus"]["enable_fifo_children_reordering_for_guarantee_utilization"]
    answer = shares(body)
    assert [answer["workloads"][name]["fair_share"]["cpu"] for name in "ghi"] == [0, 0, 0]
    assert answer["workloads"]["g"]["fifo_index"] == 0
    assert "effective_fifo_index" not in answer["workloads"]["g"]


def test_a_gang_that_runs_is_not_put_off() -> None:
    running = GANG | {"tasks": [{"name": "t", "count": 10, "requests": {"user_slots": 1, "cpu": 1}}]}
    body = fifo(30, ("g", 40, GANG), ("h", 40, GANG), ("i", 30, running), competitor=0, **REORDER)
    body["configuration"]["queues"][1]["quota"] = {}
    assert cpu(body) == {"p": 80, "g": 40, "h": 0, "i": 40, "q": 0, "c": 0}


def test_nobody_is_put_off_past_an_operation_that_is_no_gang() -> None:
    """x does not fit and ends the packing; then the order is as it was: the gang before x comes before those behind."""
    body = fifo(30, ("g", 35, GANG), ("x", 40, {}), ("h", 20, GANG), ("i", 20, GANG), competitor=0, **REORDER)
    body["configuration"]["queues"][1]["quota"] = {}
    assert cpu(body) == {"p": 95, "g": 35, "x": 40, "h": 20, "i": 0, "q": 0, "c": 0}


def test_a_gang_that_its_limit_keeps_from_running_takes_no_room() -> None:
    body = fifo(60, ("g", 70, GANG | {"limit": {"cpu": 30}}), ("h", 60, GANG), **REORDER)
    assert cpu(body)["h"] == 60


def test_an_older_fifo_pool_leaves_gangs_nothing_that_would_get_less_than_they_want() -> None:
    pools = [pool(name, ytsaurus={"mode": "fifo", "enable_fair_share_truncation_in_fifo_pool": True}) for name in "ab"]
    of = [("x", "a", 30, {"weight": 2}), ("g", "a", 30, GANG), ("y", "b", 30, {"weight": 2}), ("z", "b", 30, {})]
    body = tree(pools, *of)
    assert cpu(body) == {"a": 30, "x": 30, "g": 0, "b": 50, "y": 30, "z": 20}
    assert shares(body)["fair_share"]["cpu"] == pytest.approx(80)
    del pools[0]["ytsaurus"]["enable_fair_share_truncation_in_fifo_pool"]
    assert cpu(body)["g"] == 20


def test_effective_settings_say_what_counts() -> None:
    body = fifo(60, ("g", 70, GANG), **STEPS)
    own = effective(body)["queues"]["p"]
    assert own["enable_step_function_for_gang_operations"] is True
    assert own["enable_fifo_children_reordering_for_guarantee_utilization"] is False
    body["configuration"]["settings"]["ytsaurus"] |= REORDER
    assert effective(body)["queues"]["p"]["enable_fifo_children_reordering_for_guarantee_utilization"] is True


def test_what_is_promised_is_cut_too_in_a_pool_that_truncates() -> None:
    """The guarantee of 30 is less than the gang's 40; what is no gang may count on it."""
    block = {"mode": "fifo", "compute_promised_guarantee_fair_share": True}

    def promised(more: Json, **of: Any) -> list[Any]:
        body = tree([pool("p", quota={"cpu": {"guaranteed": 30}}, ytsaurus=block | of)], ("g", "p", 40, more))
        answer = shares(body)
        both = answer["queues"]["p"], answer["workloads"]["g"]
        return [pytest.approx(element["promised_guarantee_fair_share"]["cpu"]) for element in both]

    assert promised(GANG) == [30, 30]
    assert promised(GANG, enable_fair_share_truncation_in_fifo_pool=True) == [0, 0]
    assert promised({}, enable_fair_share_truncation_in_fifo_pool=True) == [30, 30]
