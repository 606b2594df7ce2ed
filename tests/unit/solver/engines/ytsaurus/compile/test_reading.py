"""Settings of trees, pools and operations, whole: what each is when absent, and what counts of one that is given."""

import math
from typing import Any

import msgspec
import pytest

from app.solver.engines.ytsaurus.reading import SECOND, Formula, Reader
from app.solver.engines.ytsaurus.settings import (
    RULE_SETS,
    Integral,
    OperationSettings,
    PoolSettings,
    PoolShareSettings,
    TreeSettings,
    TreeShareSettings,
    operation_settings,
    pool_settings,
    tree_settings,
)
from app.solver.model.configuration import Queue
from app.solver.model.problems import Problem
from app.solver.model.ytsaurus import Settings
from app.solver.model.ytsaurus import Workload as OperationOptions


def test_every_setting_of_a_tree_and_what_it_is_when_absent() -> None:
    absent: dict[str, Any] = {
        "rules": RULE_SETS["shipped"], "release": "2026", "tolerance": 0.8, "timeout": 30 * SECOND,
        "aggressive_timeout": 120 * SECOND,
        "enable_aggressive_starvation": False, "enable_pool_starvation": True, "absolute_tolerance": False,
        "threshold": 1.0, "aggressive_threshold": 0.2, "non_preemptible": {}, "bound_given": None,
        "backoff": 5 * SECOND, "scope": "operation_and_ancestors", "allow_from_starving": False, "allow_gang": True,
        "count_coefficient": 1.0, "preemption_timeout": 30 * SECOND, "graceful_timeout": 60 * SECOND,
        "overcommit_duration": 15 * SECOND, "min_spare": {}, "infer_weight": None, "best_allocation_share": False,
        "main_resource": "cpu",
        "shares": TreeShareSettings(
            gang_steps=False, improved=False, distribution_gap=False, reorder_fifo=False, distribute_volume=False,
            smooth_period=60 * SECOND, saturation_period=86_400 * SECOND, multiplier_limit=3.0,
        ),
    }  # fmt: skip
    for given in (None, Settings()):
        found, problems = tree_settings(given)
        assert (problems, {name: getattr(found, name) for name in TreeSettings.__slots__}) == ([], absent)
    volumes = {"smooth_period": 7, "pool_capacity_saturation_period": "8s", "relaxed_share_multiplier_limit": 0.0}
    given = {
        "rules": "documented", "fair_share_starvation_tolerance": 0.0, "fair_share_starvation_timeout": 0,
        "fair_share_aggressive_starvation_timeout": 1, "enable_aggressive_starvation": True,
        "enable_pool_starvation": False, "enable_absolute_fair_share_starvation_tolerance": True,
        "preemption_satisfaction_threshold": 0.5, "aggressive_preemption_satisfaction_threshold": 0.0,
        "non_preemptible_resource_usage_threshold": {"cpu": 1.5},
        "consider_allocation_on_fair_share_bound_preemptible": False, "preemptive_scheduling_backoff": 0,
        "scheduling_preemption_priority_scope": "operation_only", "allow_preemption_from_starving_operations": True,
        "allow_aggressive_preemption_for_gang_operations": False, "allocation_count_preemption_timeout_coefficient": 4,
        "allocation_preemption_timeout": 0, "allocation_graceful_preemption_timeout": 2,
        "allowed_node_resources_overcommit_duration": 3, "min_spare_allocation_resources": {"cpu": 1},
        "infer_weight_from_guarantees_share_multiplier": 0.0, "enable_best_allocation_share": True,
        "main_resource": "gpu", "enable_step_function_for_gang_operations": True,
        "enable_improved_fair_share_by_fit_factor_computation": True,
        "enable_improved_fair_share_by_fit_factor_computation_distribution_gap": True,
        "enable_fifo_children_reordering_for_guarantee_utilization": True,
        "should_distribute_free_volume_among_children": True, "integral_guarantees": volumes,
    }  # fmt: skip
    found, problems = tree_settings(msgspec.convert(given, Settings))
    assert (problems, {name: getattr(found, name) for name in TreeSettings.__slots__}) == ([], {
        "rules": RULE_SETS["documented"], "release": "2026", "tolerance": 0.0, "timeout": 0,
        "aggressive_timeout": SECOND,
        "enable_aggressive_starvation": True, "enable_pool_starvation": False, "absolute_tolerance": True,
        "threshold": 0.5, "aggressive_threshold": 0.0, "non_preemptible": {"cpu": 1500}, "bound_given": False,
        "backoff": 0, "scope": "operation_only", "allow_from_starving": True, "allow_gang": False,
        "count_coefficient": 4, "preemption_timeout": 0, "graceful_timeout": 2 * SECOND,
        "overcommit_duration": 3 * SECOND, "min_spare": {"cpu": 1000}, "infer_weight": 0.0,
        "best_allocation_share": True, "main_resource": "gpu",
        "shares": TreeShareSettings(
            gang_steps=True, improved=True, distribution_gap=True, reorder_fifo=True, distribute_volume=True,
            smooth_period=7 * SECOND, saturation_period=8 * SECOND, multiplier_limit=0.0,
        ),
    })  # fmt: skip
    assert not found.bound_allocation_preemptible, "as given, whatever the rule set has"
    on_node = {"min_spare_allocation_resources": {"cpu": 1}, "min_spare_allocation_resources_on_node": {"gpu": 2}}
    assert tree_settings(msgspec.convert(on_node, Settings))[0].min_spare == {"gpu": 2000}


def test_every_setting_of_a_pool_and_of_an_operation() -> None:
    whole = {
        "mode": "fifo", "fair_share_starvation_tolerance": 1.0, "fair_share_starvation_timeout": 0,
        "enable_aggressive_starvation": False, "allow_aggressive_preemption": False, "allow_normal_preemption": False,
        "non_preemptible_resource_usage_threshold": {"user_slots": 3}, "max_unpreemptible_running_job_count": 4,
        "resource_limits": {"cpu": 2}, "resource_limits_overcommit_tolerance": {"cpu": 1},
        "forbid_immediate_operations": True, "enable_step_function_for_gang_operations": False,
        "enable_fifo_children_reordering_for_guarantee_utilization": True,
        "enable_fair_share_truncation_in_fifo_pool": True, "compute_promised_guarantee_fair_share": True,
        "enable_priority_strong_guarantee_adjustment": True,
        "enable_priority_strong_guarantee_adjustment_donorship": True, "scheduling_tag_filter": "a & b",
        "integral_guarantees": {
            "guarantee_type": "burst", "resource_flow": {"cpu": 1}, "burst_guarantee_resources": {"cpu": 2},
            "relaxed_share_multiplier_limit": 10, "can_accept_free_volume": False,
            "should_distribute_free_volume_among_children": False,
        },
    }  # fmt: skip
    unused = {"integral_guarantees": {"resource_flow": {"cpu": 1}, "burst_guarantee_resources": {"cpu": 2}}}
    blocks = [None, {}, whole, unused]
    queues = [msgspec.convert({"name": f"p{i}", "ytsaurus": one}, Queue) for i, one in enumerate(blocks)]
    (nothing, empty, full, without_type), of_pools = pool_settings(queues)
    assert of_pools == []
    assert nothing == empty == without_type == PoolSettings()
    assert full == PoolSettings(
        mode="fifo", tolerance=1.0, timeout=0, enable_aggressive_starvation=False, allow_aggressive=False,
        allow_normal=False, non_preemptible={"user_slots": 3}, limits={"cpu": 2000}, limits_tolerance={"cpu": 1000},
        forbid_operations=True,
        shares=PoolShareSettings(
            gang_steps=False, reorder_fifo=True, truncate_fifo=True, promised=True, priority=True, donor=True,
            tags=Formula(("a", "b", "&")),
            integral=Integral("burst", {"cpu": 1000}, {"cpu": 2000}, 10, accept=False, distribute=False),
        ),
    )  # fmt: skip
    of_operation = {
        "fair_share_starvation_tolerance": 0.0, "fair_share_starvation_timeout": 1,
        "max_unpreemptible_running_job_count": 4, "allocation_preemption_timeout": 0, "job_interrupt_timeout": 9,
        "allocation_graceful_preemption_timeout": 0, "resource_limits": {"cpu": 2},
    }  # fmt: skip
    problems: list[Problem] = []
    found = operation_settings(msgspec.convert(of_operation, OperationOptions), ("w",), problems)
    assert found == OperationSettings(0.0, SECOND, {"user_slots": 4}, 0, 0, {"cpu": 2000})
    assert operation_settings(OperationOptions(), ("w",), problems) == OperationSettings()
    assert problems == []


INF = math.inf


@pytest.mark.parametrize(
    ("value", "low", "high", "above", "detail"),
    [
        (None, 0, INF, False, None), (0, 0, INF, False, None), (0, 0, INF, True, "0 is out of range: above 0"),
        (0.5, 0, INF, True, None), (-0.5, 0, INF, False, "-0.5 is out of range: at least 0"),
        (math.nan, 0, INF, False, "nan is out of range: at least 0"),
        (INF, 0, INF, False, "inf is out of range: at least 0"), (1, 0, 1, False, None), (1, 1, 10, False, None),
        (0.25, 0.5, 1, False, "0.25 is out of range: at least 0.5 and at most 1"), (10, 1, 10, True, None),
        (1.5, 0, 1, True, "1.5 is out of range: above 0 and at most 1"),
    ],
)  # fmt: skip
def test_numbers_in_and_out_of_range(
    value: float | None, low: float, high: float, above: bool, detail: str | None
) -> None:
    read = Reader(("here", 3))
    read.below("block").number("name", value, low, high, above=above)
    assert [(one.pointer, one.detail) for one in read.problems] == ([("/here/3/block/name", detail)] if detail else [])


def test_durations_and_amounts_that_are_none() -> None:
    read = Reader(("here",))
    assert (read.micros("a", None), read.micros("b", "1m30s"), read.micros("c", 0)) == (None, 90 * SECOND, 0)
    assert (read.steps("d", None), read.steps("e", {"cpu": "500m", "user_slots": 2})) == (
        None, {"cpu": 500, "user_slots": 2},
    )  # fmt: skip
    assert read.threshold(None, None) is None
    assert read.threshold({"cpu": 1}, None) == {"cpu": 1000}
    assert read.threshold({"cpu": 1}, 3) == {"user_slots": 3, "cpu": 1000}
    assert read.threshold({"user_slots": 2}, 3) == {"user_slots": 2}
    assert read.threshold(None, 0) == {"user_slots": 0}
    assert [read.preferred("new", "old", *of) for of in ((None, None), (0, 2), (None, 0), (1, None))] == [
        None, 0, 0, SECOND,
    ]  # fmt: skip
    assert read.problems == []
    assert read.micros("f", "soon") == 0
    read.micros("g", -1)
    read.steps("h", {"cpu": "much", "user_slots": -1, "gpu": 1})
    read.preferred("new", "old", "x", "y")
    assert [one.pointer for one in read.problems] == [
        "/here/f", "/here/g", "/here/h/cpu", "/here/h/user_slots", "/here/new", "/here/old",
    ]  # fmt: skip
