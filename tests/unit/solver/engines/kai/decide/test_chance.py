"""Orders of Go's maps, and answers that hang on them."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai import engine
from app.solver.engines.kai.chance import DRAWS, MOST_DRAWS, Chance
from tests.support.bounds import Bounded
from tests.support.kai_world import decide
from tests.unit.solver.engines.kai.case import Case, ask, node, queue, workload

Json = dict[str, Any]


@given(st.integers(0, 60), st.integers(0, 1000))
def test_a_map_yields_every_entry_once(number: int, seed: int) -> None:
    entries = list(range(number))
    found = Chance(seed).order(entries)
    assert sorted(found) == entries
    if number <= 8:
        start = found[0] if found else 0
        assert found == entries[start:] + entries[:start]


def test_the_order_in_which_a_small_map_was_filled_is_the_likeliest() -> None:
    orders = Counter(tuple(Chance(seed).order("abc")) for seed in range(4000))
    assert set(orders) == {tuple("abc"), tuple("bca"), tuple("cab")}
    assert orders["a", "b", "c"] / 4000 == pytest.approx(6 / 8, abs=0.03)
    assert orders["b", "c", "a"] / 4000 == pytest.approx(1 / 8, abs=0.03)


def test_a_large_map_keeps_entries_of_a_group_in_order_and_begins_anywhere() -> None:
    assert len({Chance(seed).order(range(20))[0] for seed in range(400)}) == 20


def test_a_map_that_is_walked_again_begins_elsewhere_and_goes_round_the_same_groups() -> None:
    walked = [Chance(5).map(range(30)) for _ in range(2)]
    assert walked[0].walk() == walked[1].walk(), "a seed says it all"
    walks = [walked[0].walk() for _ in range(20)]
    after = [set(zip(walk, [*walk[1:], walk[0]], strict=True)) for walk in walks]
    assert len({walk[0] for walk in walks}) > 5
    assert all(follows == after[0] for follows in after)


def test_without_a_seed_maps_yield_what_came_in() -> None:
    assert Chance().order(range(30)) == list(range(30))


def _cluster(rules: str, cap: int | None, movable: int) -> Json:
    """A pod of 2 GPUs, and ``movable`` nodes of 2 with a pod of 1 each, any of which could move to another."""
    settings: Json = {"release": "0.17", "rules": rules, "actions": ["consolidation"]}
    if cap is not None:
        settings["max_consolidation_preemptees"] = cap
    small = {"cpu": 1, "memory": 1000}
    configuration = {"flavors": [], "queues": [queue("a", gpu=64)], "settings": {"kai": settings}}
    capacity = {"cpu": 64, "memory": 10**12, "gpu": 2}
    running = [
        {
            "id": f"w{i}", "queue": "a", "priority": 50, "preemptible": True, "min_available": 1,
            "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:00Z",
            "tasks": [{"name": f"w{i}-0", "requests": {**small, "gpu": 1}, "node": f"n{i}", "state": "running"}],
        }
        for i in range(movable)
    ]  # fmt: skip
    ask = {
        "id": "x", "queue": "a", "priority": 50, "preemptible": True, "min_available": 1,
        "created_at": "2026-01-02T00:00:00Z",
        "tasks": [{"name": "x-0", "requests": {**small, "gpu": 2}}],
    }  # fmt: skip
    return {
        "engine": "kai", "now": "2026-01-02T00:00:00Z", "mode": "cycle", "asks": [ask],
        "configuration": {"engine": "kai", **configuration},
        "state": {"nodes": [{"name": f"n{i}", "capacity": capacity} for i in range(movable)], "workloads": running},
    }  # fmt: skip


def test_who_passes_the_cap_is_drawn_and_every_outcome_is_named() -> None:
    plan = decide(_cluster("shipped", 1, 4))["plan"]
    chance = plan["chance"]
    assert DRAWS <= chance["draws"] <= MOST_DRAWS
    assert chance["share"] + sum(other["share"] for other in chance["others"]) == pytest.approx(1)
    assert all(chance["share"] >= other["share"] for other in chance["others"])
    moved = [one["plan"]["evictions"][0]["workload"] for one in chance["others"]]
    assert {plan["evictions"][0]["workload"], *moved} == {"w1", "w2", "w3"}


def test_draws_go_on_until_the_likeliest_outcome_is_told_from_the_next() -> None:
    """The first of a small map is the likeliest by far; of a large one any is."""
    draws = [decide(_cluster("shipped", 1, movable))["plan"]["chance"]["draws"] for movable in (4, 6, 9)]
    assert draws[0] == DRAWS < draws[1] < draws[2] == MOST_DRAWS


def test_a_large_cluster_is_drawn_on_only_while_one_outcome_has_the_majority(bounded: Bounded) -> None:
    bounded(engine, MOST_PODS=30)
    draws = [decide(_cluster("shipped", 1, movable))["plan"]["chance"] for movable in (4, 9, 20)]
    assert draws[0]["draws"] == DRAWS
    assert draws[0]["share"] > 1 / 2 >= draws[1]["share"]
    assert 3 <= draws[1]["draws"] < DRAWS
    assert draws[2] == {"draws": 0, "others": []}, "two draws are too many"


def test_a_plan_without_draws_is_that_of_orders_as_they_come_in(bounded: Bounded) -> None:
    bounded(engine, MOST_PODS=1)
    assert decide(_cluster("shipped", 1, 9))["plan"]["evictions"][0]["workload"] == "w1"


def test_few_steps_are_enough_for_few_draws(bounded: Bounded) -> None:
    bounded(engine, MOST_STEPS=100)
    chance = decide(_cluster("shipped", 1, 4))["plan"]["chance"]
    assert 0 < chance["draws"] < DRAWS
    assert chance["share"] + sum(other["share"] for other in chance["others"]) == pytest.approx(1)


@pytest.mark.parametrize(("rules", "cap"), [("documented", 1), ("shipped", None), ("shipped", 4)])
def test_without_a_draw_nothing_is_said_of_chance(rules: str, cap: int | None) -> None:
    plan = decide(_cluster(rules, cap, 4))["plan"]
    assert len(plan["evictions"]) == 1
    assert plan.get("chance") is None


def _of_two_departments(leaf: str) -> Json:
    """A small department wants some of what a large one has; its third ask is in the queue ``leaf``."""
    queues = [
        queue("large", gpu=10, weight=10, created_at="2026-01-02T00:00:00Z"),
        queue("small", gpu=2, created_at="2026-01-05T00:00:00Z"),
        queue("r", "large", gpu=10, weight=10, created_at="2026-01-03T00:00:00Z"),
        queue("s", "small", gpu=1, created_at="2026-01-04T00:00:00Z"),
        queue("t", "small", gpu=1, weight=2, created_at="2026-01-01T00:00:00Z"),
    ]
    running = [
        workload("four", "r", "n0", "n0", gpu=2, priority=75, created_at="2026-12-01T00:06:00Z"),
        workload("eight", "r", "n1", gpu=8, created_at="2026-12-01T00:05:00Z"),
        workload("one", "r", "n2", gpu=1, priority=60, created_at="2026-12-01T00:04:00Z"),
    ]
    asks = [
        ask("b-sixteen", "t", 2, gpu=8, created_at="2026-12-01T00:03:00Z"),
        ask("c-single", "t", 1, gpu=1, created_at="2026-12-01T00:01:00Z"),
        ask("a-pair", leaf, 2, gpu=4, created_at="2026-12-01T00:02:00Z"),
    ]
    nodes = [node("n0", 4), node("n1", 8), node("n2", 1)]
    return Case(queues, nodes, running, *asks, actions=["reclaim"], release="0.17", rules="shipped").answer["plan"]


def test_the_order_in_which_jobs_come_into_the_tree_of_queues_is_drawn_where_it_decides(bounded: Bounded) -> None:
    chance = _of_two_departments("s")["chance"]
    assert chance["share"] + sum(other["share"] for other in chance["others"]) == pytest.approx(1)
    assert len(chance["others"]) > 1
    assert "chance" not in _of_two_departments("t"), "a queue alone is on top whatever came first"
    bounded(engine, MOST_PODS_PROBED=1)
    assert "chance" not in _of_two_departments("s"), "nobody looks in a large cluster"
