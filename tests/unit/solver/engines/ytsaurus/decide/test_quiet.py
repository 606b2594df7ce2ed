"""Nodes that are passed over, and each thing that keeps a node from that: an explanation has every one of them
processed, and says the same."""

from typing import Any

import pytest

from app.solver.engines.ytsaurus import engine, heartbeat
from app.solver.engines.ytsaurus.preparation import Overlay
from tests.support.bounds import Bounded
from tests.support.instead import Instead
from tests.unit.solver.engines.ytsaurus.cluster import (
    NOW,
    alloc,
    ask,
    decide,
    evicted,
    node,
    operation,
    pool,
    request,
    started,
)

Json = dict[str, Any]
NODES = ("l", "m", "n")


def body(x: Json | None = None, *, tasks: int = 4, need: Any = 11, level: str = "non_starving", top: Json | None = None,
         a: Json | None = None, m: Json | None = None, **settings: Any) -> Json:  # fmt: skip
    """Three nodes of ten cpus; x of pool a below pool top runs on m, y of pool b wants what no node has."""
    nodes = [node(name) | ((m or {}) if name == "m" else {}) for name in NODES]
    pools = [pool("top", **(top or {})), pool("a", parent="top", **(a or {})), pool("b")]
    running = [alloc(f"x{i}", i, on="m") for i in range(tasks)]
    operations = [operation("x", "a", running, **(x or {})), operation("y", "b", ytsaurus={"starvation": level})]
    return request(pools, nodes, operations, [ask("y", "b", 1, need)], settings)


def answered(asked: Json, monkeypatch: pytest.MonkeyPatch) -> tuple[Json, list[str]]:
    """The answer to the heartbeats of all nodes, which explaining does not change, and which of them were processed."""
    seen: list[str] = []
    process = engine.heartbeat.process

    def watched(overlay: Overlay, at: int, now: int) -> None:
        seen.append(NODES[at])
        process(overlay, at, now)

    with monkeypatch.context() as patched:
        Instead(patched)(engine.heartbeat, process=watched)
        found = decide(asked, None)
    full = decide(asked, None, explain="full")
    assert (found["plan"], found["notes"], found["order"]) == (full["plan"], full["notes"], full["order"])
    return found, seen


def test_where_nothing_can_happen_the_heartbeat_only_leaves_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = {
        "ytsaurus": {
            "last_preemptive_scheduling_at": "2026-01-01T11:59:55Z",
            "overcommit_since": "2026-01-01T11:59:00Z",
        }
    }
    found, seen = answered(body(m=recent), monkeypatch)
    assert seen == []
    assert (evicted(found), started(found)) == ([], [])
    notes = {name: {"last_preemptive_scheduling_at": NOW, "overcommit_since": None} for name in "ln"}
    kept = {"last_preemptive_scheduling_at": "2026-01-01T11:59:55Z", "overcommit_since": None}
    assert found["notes"]["nodes"] == notes | {"m": kept}, "five seconds ago is not longer ago than the backoff"
    recent["ytsaurus"]["last_preemptive_scheduling_at"] = "2026-01-01T11:59:54Z"
    found, _ = answered(body(m=recent), monkeypatch)
    assert found["notes"]["nodes"]["m"]["last_preemptive_scheduling_at"] == NOW


@pytest.mark.parametrize("whose", ["x", "a", "top"])
@pytest.mark.parametrize(("limit", "goes"), [(3, ["x3"]), (2, ["x3", "x2"]), (4, [])])
def test_who_exceeds_a_limit_is_not_passed_over(
    whose: str, limit: int, goes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = {"quota": {"cpu": {"limit": limit}}}
    asked = body(**{whose: {"limit": {"cpu": limit}} if whose == "x" else quota})
    found, seen = answered(asked, monkeypatch)
    assert evicted(found) == [(task, "resource_limits_violated") for task in goes]
    assert seen == (["m"] if goes else [])
    asked["state"]["nodes"][1]["ytsaurus"] = {"last_preemptive_scheduling_at": "2026-01-01T11:59:55Z"}
    found, seen = answered(asked, monkeypatch)
    assert (evicted(found), seen) == ([], []), "before the backoff is over nobody goes for that"


@pytest.mark.parametrize("spared", [{"starvation": "starving"}, {"preemption_mode": "graceful"}])
def test_who_exceeds_a_limit_and_can_not_be_taken_makes_no_noise(spared: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    found, seen = answered(body({"limit": {"cpu": 3}, "ytsaurus": spared}), monkeypatch)
    graceful = "preemption_mode" in spared
    assert evicted(found) == ([("x3", "graceful_preemption")] if graceful else [])
    assert seen == (["m"] if graceful else []), "but who is asked to stop in its own time does"


def test_a_node_that_is_overcommitted_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found, seen = answered(body(tasks=11, m={"capacity": {"user_slots": 100, "cpu": 10}}), monkeypatch)
    assert seen == ["m"]
    assert found["notes"]["nodes"]["m"]["overcommit_since"] == NOW


@pytest.mark.parametrize(("need", "level", "ends"), [
    (6, "non_starving", ["l"]), (10, "non_starving", ["l"]), (10.001, "non_starving", []), (10.001, "starving", []),
])  # fmt: skip
def test_what_fits_what_is_free_is_tried(
    need: float, level: str, ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, seen = answered(body(need=need, level=level), monkeypatch)
    assert [at for _, at, _ in started(found)] == seen == ends


@pytest.mark.parametrize(
    ("need", "level", "goes"),
    [
        (7, "aggressively_starving", ["x3", "x2", "x1"]),
        (7.001, "aggressively_starving", []),
        (7, "starving", []),
        (7, "non_starving", []),
    ],
)
def test_what_would_fit_with_others_gone_is_tried_for_those_whose_stage_may_take_them(
    need: float, level: str, goes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """m has eight cpus, of which x holds four; the first of x is not preemptible, the others are, if aggressively."""
    asked = body(tasks=4, need=need, level=level)
    for i, at in enumerate(asked["state"]["nodes"]):
        at["capacity"]["cpu"] = 8 if i == 1 else 6
    found, seen = answered(asked, monkeypatch)
    assert [task for task, _ in evicted(found)] == goes
    assert seen == (["m"] if goes else [])


def test_a_start_that_takes_a_pool_over_its_limit_makes_the_next_nodes_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    """y preempts on l for three cpus: b then has seven of four. Those of z on m go for that, though y fits nowhere."""
    pools = [
        pool("a"),
        pool("b", quota={"cpu": {"limit": 4}}, ytsaurus={"resource_limits_overcommit_tolerance": {"cpu": 3}}),
        pool("c", weight=9),
    ]
    operations = [
        operation("x", "a", [alloc(f"x{i}", i, on="l") for i in range(10)]),
        operation("y", "b", ytsaurus={"starvation": "starving"}, weight=3),
        operation("z", "b", [alloc(f"z{i}", i, on="m") for i in range(4)]),
        operation("w", "c"),
    ]
    nodes = [node("l"), node("m", 4), node("n", 1)]
    asks = [ask("y", "b", 2, 3), ask("x", "a", 9, 50), ask("w", "c", 9, 50)]
    asked = request(pools, nodes, operations, asks, {"preemption_satisfaction_threshold": 1})
    found, seen = answered(asked, monkeypatch)
    assert started(found) == [("y-next", "l", "preemptive_normal")]
    assert evicted(found) == [
        *((name, "preemption") for name in ("x9", "x8", "x7")),
        *((name, "resource_limits_violated") for name in ("z3", "z2", "z1")),
    ]
    assert seen == ["l", "m"]
    del pools[1]["ytsaurus"]
    found, seen = answered(asked, monkeypatch)
    assert (started(found), evicted(found)) == ([], [])


@pytest.mark.parametrize(("count", "heard"), [(0, "lmn"), (1, "l"), (10, "l"), (11, "lm"), (21, "lmn"), (40, "lmn")])
def test_nodes_are_heard_until_nothing_waits_any_more(count: int, heard: str) -> None:
    asks = [ask("y", "b", count)] if count else []
    asked = request([pool("b")], [node(name) for name in NODES], [operation("y", "b")], asks)
    for explain in ("none", "full"):
        assert sorted(decide(asked, None, explain=explain)["notes"]["nodes"]) == list(heard)
    two = asked["state"]["nodes"][:2]
    asked["state"]["nodes"] = two
    assert sorted(decide(asked, None)["notes"]["nodes"]) == list(heard[:2])


def test_starts_have_a_bound_for_each_heartbeat_and_for_all(bounded: Bounded) -> None:
    asked = request([pool("b")], [node(name) for name in NODES], [operation("y", "b")], [ask("y", "b", 40)])
    for one, every, expected in ((4, 99, "llllmmmmnnnn"), (4, 7, "llllmmm"), (99, 7, "lllllll")):
        bounded(heartbeat, MOST_STARTS=one, MOST_STARTS_IN_ALL=every)
        assert "".join(at for _, at, _ in started(decide(asked, None))) == expected


@pytest.mark.parametrize(("most", "processed"), [(2, []), (1, ["l", "m", "n"])])
def test_the_least_of_very_many_shapes_stands_for_all(
    most: int, processed: list[str], monkeypatch: pytest.MonkeyPatch, bounded: Bounded
) -> None:
    """Neither of two fits any node, but the slots of one and the cpus of the other would."""
    asked = body(tasks=0)
    asked["asks"][0]["tasks"].append({"name": "wide", "count": 1, "requests": {"user_slots": 101, "cpu": 1}})
    bounded(heartbeat, MOST_SHAPES=most)
    assert answered(asked, monkeypatch)[1] == processed
