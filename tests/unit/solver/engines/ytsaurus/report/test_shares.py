"""The answer of ``/v1/shares``, whole, where there is enough for everybody; worked out by hand."""

from typing import Any

import pytest

from app.solver.engines.ytsaurus.answer import after_shares
from tests.unit.solver.engines.ytsaurus.cluster import NOW, alloc, ask, at, operation, pool, request, shares

Json = dict[str, Any]


def near(**of: float) -> Any:
    return pytest.approx({"user_slots": 0, "cpu": 0, "memory": 0} | of, abs=1e-9)


def plenty() -> Json:
    """A hundred slots, ten cpus and a thousand bytes. x of pool a below top uses two cpus and 600 bytes, y of b wants
    three cpus, z of b starves and uses nothing of the one that it wants."""
    x = [alloc(f"x{i}", i, requests={"user_slots": 1, "cpu": 1, "memory": 300}) for i in range(2)]
    z = {"starvation": "starving", "below_fair_share_since": at(3)}
    operations = [operation("x", "a", x), operation("y", "b"), operation("z", "b", ytsaurus=z)]
    pools = [pool("top", quota={"cpu": {"guaranteed": 4}}), pool("a", parent="top"), pool("b", weight=3)]
    nodes = [{"name": name, "capacity": {"user_slots": 50, "cpu": 5, "memory": 500}} for name in ("n", "m")]
    wants = [ask("y", "b", 3), ask("z", "b", 1)]
    wants[0]["tasks"][0]["requests"]["memory"] = 10
    return request(pools, nodes, operations, wants)


def test_operations() -> None:
    of = shares(plenty())["workloads"]
    assert list(of) == ["x", "y", "z"]
    nothing = near()
    assert of["x"] == {
        "fair_share": near(user_slots=2, cpu=2, memory=600), "usage": {"user_slots": 2, "cpu": 2, "memory": 600},
        "demand": {"user_slots": 2, "cpu": 2, "memory": 600}, "dominant_resource": "memory",
        "dominant_fair_share": pytest.approx(0.6), "dominant_usage_share": pytest.approx(0.6),
        "satisfaction": pytest.approx(1), "status": "normal", "starvation": "non_starving",
        "below_fair_share_since": None, "estimated_guarantee": near(user_slots=40, cpu=4, memory=400),
        "fair_share_parts": {
            "strong": nothing, "integral": nothing, "weight": near(user_slots=2, cpu=2, memory=600),
        },
    }  # fmt: skip
    assert of["y"] == {
        "fair_share": near(user_slots=3, cpu=3, memory=30), "usage": {"user_slots": 0, "cpu": 0, "memory": 0},
        "demand": {"user_slots": 3, "cpu": 3, "memory": 30}, "dominant_resource": "cpu",
        "dominant_fair_share": pytest.approx(0.3), "dominant_usage_share": 0, "satisfaction": 0,
        "status": "below_fair_share", "starvation": "non_starving", "below_fair_share_since": NOW,
        "estimated_guarantee": nothing,
        "fair_share_parts": {"strong": nothing, "integral": nothing, "weight": near(user_slots=3, cpu=3, memory=30)},
    }  # fmt: skip
    assert of["z"]["below_fair_share_since"] == at(3)
    assert (of["z"]["status"], of["z"]["starvation"]) == ("below_fair_share", "starving")
    assert (of["z"]["dominant_resource"], of["z"]["usage"]) == ("cpu", {"user_slots": 0, "cpu": 0, "memory": 0})


def test_pools_and_the_cluster() -> None:
    answer = shares(plenty())
    of = answer["queues"]
    assert list(of) == ["top", "a", "b"]
    strong = near(user_slots=40, cpu=4, memory=400)
    assert of["top"] == {
        "fair_share": near(user_slots=2, cpu=2, memory=600), "usage": {"user_slots": 2, "cpu": 2, "memory": 600},
        "demand": {"user_slots": 2, "cpu": 2, "memory": 600}, "dominant_resource": "memory",
        "dominant_fair_share": pytest.approx(0.6), "dominant_usage_share": pytest.approx(0.6),
        "satisfaction": pytest.approx(1), "status": "normal", "starvation": "non_starving",
        "below_fair_share_since": None, "weight": 1, "strong_guarantee": strong, "estimated_guarantee": strong,
        "proposed_integral": near(), "fair_share_from_guarantee": near(user_slots=2, cpu=2, memory=400),
        "fair_share_parts": {
            "strong": near(user_slots=2, cpu=2, memory=400), "integral": near(), "weight": near(memory=200),
        },
    }  # fmt: skip
    assert of["a"]["strong_guarantee"] == near()
    assert of["a"]["estimated_guarantee"] == strong, "alone it may count on all that its pool has"
    b = {key: of["b"][key] for key in ("demand", "usage", "satisfaction", "status", "weight", "dominant_usage_share")}
    assert b == {
        "demand": near(user_slots=4, cpu=4, memory=30), "usage": {"user_slots": 0, "cpu": 0, "memory": 0},
        "satisfaction": 0, "status": "below_fair_share", "weight": 3, "dominant_usage_share": 0,
    }  # fmt: skip
    rest = {key: value for key, value in answer.items() if key not in ("queues", "workloads")}
    assert {key: rest[key] for key in ("total", "fair_share", "alerts", "warnings")} == {
        "total": {"user_slots": 100, "cpu": 10, "memory": 1000},
        "fair_share": near(user_slots=6, cpu=6, memory=630), "alerts": [], "warnings": [],
    }  # fmt: skip


def test_a_guarantee_of_what_no_node_has_is_warned_of() -> None:
    body = plenty()
    body["configuration"]["queues"][2]["quota"] = {"gpu": {"guaranteed": 1}, "disk": {"guaranteed": 0}}
    assert shares(body)["warnings"] == [
        {
            "rule": "ytsaurus-guarantee-without-nodes",
            "pointer": "/configuration/queues/2/quota/gpu/guaranteed",
            "detail": "no node has any gpu, so this guarantee comes to nothing",
        }
    ]


def test_who_is_suspended_does_not_count_for_the_satisfaction_of_its_pool() -> None:
    body = plenty()
    for i in (1, 2):
        body["state"]["workloads"][i]["ytsaurus"] = {"suspended": True}
    of = shares(body)
    assert of["queues"]["b"]["satisfaction"] == 1e9, "nothing is due to it"
    assert of["workloads"]["y"]["status"] == "normal"


def test_places_in_fifo_pools() -> None:
    """The older first, the newer for its weight."""
    body = plenty()
    body["configuration"]["queues"][2]["ytsaurus"] = {"mode": "fifo"}
    body["state"]["workloads"][1]["created_at"] = at(9)
    of = shares(body)["workloads"]
    assert [of[name].get("fifo_index") for name in "xyz"] == [None, 1, 0]
    assert all("effective_fifo_index" not in one for one in of.values())
    body["state"]["workloads"][1]["weight"] = 2
    assert [shares(body)["workloads"][name].get("fifo_index") for name in "xyz"] == [None, 0, 1]


def test_what_is_carried_from_an_answer_into_the_next_state() -> None:
    state: Json = {
        "workloads": [
            {"id": "x", "ytsaurus": {"below_fair_share_since": "old", "starvation": "starving", "is_gang": True}},
            {"id": "y"}, {"id": "z", "ytsaurus": {"suspended": True}},
        ],
        "queues": {"p": {"ytsaurus": {"accumulated_volume": {"cpu": 1}, "last_share_ratio": 0.5}, "more": 1}},
        "nodes": [{"name": "n", "ytsaurus": {"overcommit_since": "old"}}, {"name": "m"}, {"name": "o", "labels": {}}],
        "other": 1,
    }  # fmt: skip
    saved = {"accumulated_volume": {"cpu": 2}, "last_share_ratio": 0, "burst_ratio": 3}
    said = {
        "workloads": {
            "x": {"starvation": "non_starving", "below_fair_share_since": None, "status": "normal"},
            "y": {"starvation": "starving", "below_fair_share_since": "now"},
        },
        "queues": {"p": {"integral_guarantees": saved, "starvation": "starving"}, "q": {"starvation": "starving"}},
    }
    assert after_shares(state, said) == state | {
        "workloads": [
            {"id": "x", "ytsaurus": {"is_gang": True, "starvation": "non_starving"}},
            {"id": "y", "ytsaurus": {"starvation": "starving", "below_fair_share_since": "now"}},
            {"id": "z", "ytsaurus": {"suspended": True}},
        ],
        "queues": {
            "p": {
                "ytsaurus": {"accumulated_volume": {"cpu": 2}, "last_share_ratio": 0, "starvation": "starving"},
                "more": 1,
            },
            "q": {"ytsaurus": {"starvation": "starving"}},
        },
    }  # fmt: skip
    empty: Json = {}
    assert after_shares(empty, empty) == {"workloads": [], "queues": {}}
