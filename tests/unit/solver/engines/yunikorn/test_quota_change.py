"""Bringing a queue back under a limit that was lowered."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.yunikorn_world import Json, World, app, ask, node, queue, task

ONE = {"vcore": 1}


def evicted(of: World, name: str) -> list[str]:
    answer = of.decide(mode="cycle", options={"yunikorn": {"enforce_quota": name}})
    assert answer["decisions"] == []
    return [eviction["task"] for eviction in answer["plan"]["evictions"]]


def world(queues: list[Json], **tasks: list[Json]) -> World:
    """Applications by leaf: ``p_a`` runs in root.p.a."""
    apps = [app(leaf, "root." + leaf.replace("_", "."), *of) for leaf, of in tasks.items()]
    return World(queues=[queue("root"), *queues], nodes=[node("n1", {"vcore": 50, "memory": 50})], workloads=apps)


def several(name: str, count: int, **more: Any) -> list[Json]:
    return [task(f"{name}{i}", "n1", ONE, 60 + 3600 * i, **more) for i in range(count)]


def test_newest_hours_first_never_more_than_the_amount() -> None:
    of = world([queue("root.a", {"vcore": (None, 3)})], a=several("t", 5))
    assert evicted(of, "root.a") == ["t0", "t1"]
    of.workloads[0]["tasks"] = [task("big", "n1", {"vcore": 4}, 1), task("small", "n1", ONE, 9000)]
    assert evicted(of, "root.a") == ["small"]


def test_nothing_within_the_limit_or_without_one() -> None:
    of = world([queue("root.a", {"vcore": (None, 5)}), queue("root.b")], a=several("t", 5), b=several("u", 3))
    assert evicted(of, "root.a") == []
    assert evicted(of, "root.b") == []
    of.workloads[0]["tasks"] = [*several("t", 5), task("gone", "n1", ONE, state="preempted")]
    assert evicted(of, "root.a") == []


def test_opted_out_tasks_and_originators_go_first_as_shipped_and_last_as_documented() -> None:
    tasks = [
        task("plain", "n1", ONE, 60), task("driver", "n1", ONE, 60, originator=True),
        task("out", "n1", ONE, 60, preemptible=False),
    ]  # fmt: skip
    of = world([queue("root.a", {"vcore": (None, 2)})], a=tasks)
    assert evicted(of, "root.a") == ["plain"]
    of.rules = "shipped"
    assert evicted(of, "root.a") == ["out"]
    of.queues[1] = queue("root.a", {"vcore": (None, 1)})
    assert evicted(of, "root.a") == ["out", "driver"]


def test_a_parent_spreads_by_overuse() -> None:
    queues = [queue("root.p", {"vcore": (None, 6)}), queue("root.p.a", {"vcore": 2}), queue("root.p.b")]
    of = world(queues, p_a=several("a", 4), p_b=several("b", 6))
    assert evicted(of, "root.p") == ["a0", "b0", "b1", "b2"]


def test_no_more_than_the_overuse_of_a_guarantee_on_the_path() -> None:
    of = world([queue("root.p", {"vcore": 4}), queue("root.p.a", {"vcore": (None, 1)})], p_a=several("a", 6))
    assert evicted(of, "root.p.a") == ["a0", "a1"]


def test_documented_leaves_no_queue_below_its_guarantee() -> None:
    queues = [queue("root.p", {"vcore": (None, 4), "memory": 6}), queue("root.p.a")]
    of = world(queues, p_a=[task(f"a{i}", "n1", {"vcore": 1, "memory": 1}, 3600 * i + 1) for i in range(6)])
    assert evicted(of, "root.p") == []
    of.rules = "shipped"
    assert evicted(of, "root.p") == ["a0", "a1"]


def test_bad_requests() -> None:
    of = world([queue("root.a")], a=several("t", 1))
    with pytest.raises(InvalidInput) as refused:
        of.decide(
            ask("x", "root.a", ONE), mode="cycle", options={"yunikorn": {"enforce_quota": "root.nowhere"}}
        )  # fmt: skip
    assert [p.pointer for p in refused.value.problems] == ["/options/yunikorn/enforce_quota", "/asks"]
