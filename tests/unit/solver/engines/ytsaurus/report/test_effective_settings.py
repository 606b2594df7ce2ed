"""Effective settings, whole: what each pool and operation inherits, overrides and is cut to."""

from typing import Any

from tests.unit.solver.engines.ytsaurus.cluster import effective, node, operation, pool, refused, request

DEFAULTS = {
    "allow_aggressive_preemption": True,
    "enable_aggressive_starvation": False,
    "fair_share_starvation_timeout": 30,
    "fair_share_starvation_tolerance": 0.8,
    "non_preemptible_resource_usage_threshold": {},
}
TREE = {
    "allow_normal_preemption": True,
    "mode": "fair_share",
    "preemption_satisfaction_threshold": 1.0,
    "aggressive_preemption_satisfaction_threshold": 0.2,
    "fair_share_aggressive_starvation_timeout": 120,
}
OPERATION = {
    "allocation_preemption_timeout": 30,
    "allocation_graceful_preemption_timeout": 60,
    "preemption_mode": "normal",
}


def taken(answer: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """The part of an answer that ``expected`` speaks of."""
    return {name: answer[name] for name in expected}


def test_defaults() -> None:
    found = effective(request([pool("a")], [node()], [operation("x", "a")]))
    assert taken(found["queues"]["a"], DEFAULTS | TREE) == DEFAULTS | TREE
    assert taken(found["workloads"]["x"], DEFAULTS | OPERATION) == DEFAULTS | OPERATION


def test_everything_of_the_tree() -> None:
    settings = {
        "fair_share_starvation_tolerance": 0.7, "fair_share_starvation_timeout": "20s",
        "fair_share_aggressive_starvation_timeout": "1m30s", "enable_aggressive_starvation": True,
        "preemption_satisfaction_threshold": 0.9, "aggressive_preemption_satisfaction_threshold": 0.4,
        "non_preemptible_resource_usage_threshold": {"cpu": 1.5, "user_slots": 2},
        "allocation_preemption_timeout": 7.5, "allocation_graceful_preemption_timeout": 8,
    }  # fmt: skip
    found = effective(request([pool("a")], [node()], [operation("x", "a")], settings=settings))
    common = {
        "allow_aggressive_preemption": True, "enable_aggressive_starvation": True, "fair_share_starvation_timeout": 20,
        "fair_share_starvation_tolerance": 0.7,
        "non_preemptible_resource_usage_threshold": {"cpu": 1.5, "user_slots": 2},
    }  # fmt: skip
    tree = {
        "preemption_satisfaction_threshold": 0.9, "aggressive_preemption_satisfaction_threshold": 0.4,
        "fair_share_aggressive_starvation_timeout": 90,
    }  # fmt: skip
    assert taken(found["queues"]["a"], common | tree) == common | tree
    own = {"allocation_preemption_timeout": 7.5, "allocation_graceful_preemption_timeout": 8}
    assert taken(found["workloads"]["x"], common | own) == common | own


def test_everything_of_an_operation() -> None:
    options = {
        "allocation_preemption_timeout": 3, "allocation_graceful_preemption_timeout": "4s",
        "preemption_mode": "graceful", "fair_share_starvation_timeout": 31, "fair_share_starvation_tolerance": 0.79,
        "non_preemptible_resource_usage_threshold": {"memory": 5},
    }  # fmt: skip
    found = effective(request([pool("a")], [node()], [operation("x", "a", ytsaurus=options)]))["workloads"]["x"]
    assert taken(found, options) == options | {"allocation_graceful_preemption_timeout": 4}


def test_pools_hand_down_what_they_say_and_normal_preemption_stays_off() -> None:
    pools = [
        pool("a", ytsaurus={"allow_normal_preemption": False, "mode": "fifo"}),
        pool("b", parent="a", ytsaurus={"allow_normal_preemption": True}),
        pool("c", ytsaurus={"allow_normal_preemption": True, "mode": "fifo"}),
    ]
    found = effective(request(pools, [node()], []))["queues"]
    assert [found[name]["allow_normal_preemption"] for name in "abc"] == [False, False, True]
    assert [found[name]["mode"] for name in "abc"] == ["fifo", "fair_share", "fifo"]


def test_gangs_where_the_tree_forbids_to_take_from_others_within_their_share() -> None:
    operations = [operation("gang", "a", ytsaurus={"is_gang": True}), operation("single", "a")]

    def allowed(**settings: Any) -> list[bool]:
        found = effective(request([pool("a")], [node()], operations, settings=settings))["workloads"]
        return [found[name]["allow_aggressive_preemption"] for name in ("gang", "single")]

    assert allowed() == [True, True]
    assert allowed(allow_aggressive_preemption_for_gang_operations=False) == [False, True]


def test_without_a_state_there_are_pools_only_and_bad_options_are_refused() -> None:
    body = request([pool("a")], [node()], [operation("x", "a", ytsaurus={"fair_share_starvation_timeout": -1})])
    assert list(refused(body, effective)) == ["/state/workloads/0/ytsaurus/fair_share_starvation_timeout"]
    assert "workloads" not in effective(body | {"state": None})
    assert list(effective(body | {"state": None})["queues"]) == ["a"]
