"""What every queue inherits and overrides in the end, to the last field."""

from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.configuration import Configuration


def effective(settings: dict[str, Any], *queues: dict[str, Any]) -> dict[str, Any]:
    document = {"engine": "kai", "settings": {"kai": settings}, "queues": list(queues)}
    return solve.effective_settings(solve.configure(msgspec.convert(document, Configuration)), None)


def test_every_field_of_the_answer() -> None:
    settings = {
        "rules": "shipped", "release": "0.17", "default_reclaim_min_runtime": "90s",
        "default_preempt_min_runtime": "1500ms",
        "reclaim_resolve_method": "queue", "actions": ["preempt", "allocate"], "use_scheduling_signatures": False,
        "max_consolidation_preemptees": 3, "allow_consolidating_reclaim": False, "staleness_grace_period": "5m",
        "k_value": 2.5,
    }  # fmt: skip
    root = {"name": "root", "priority": 7, "kai": {"preempt_min_runtime": 30}}
    leaf = {
        "name": "leaf", "parent": "root", "weight": 2, "kai": {"reclaim_min_runtime": 0},
        "quota": {
            "cpu": {"guaranteed": "1500m", "limit": 3},
            "memory": {"guaranteed": "unlimited", "limit": "1Gi", "weight": 4},
            "nvidia.com/gpu": {"guaranteed": "250m", "limit": "unlimited"},
        },
    }  # fmt: skip
    assert effective(settings, root, leaf) == {
        "settings": {
            "rules": "shipped", "release": "0.17", "default_reclaim_min_runtime": 90,
            "default_preempt_min_runtime": 1.5,
            "reclaim_resolve_method": "queue", "actions": ["preempt", "allocate"], "use_scheduling_signatures": False,
            "max_consolidation_preemptees": 3, "allow_consolidating_reclaim": False, "staleness_grace_period": 300,
            "k_value": 2.5,
        },
        "queues": {
            "root": {
                "reclaim_min_runtime": 90, "reclaim_min_runtime_set_by": None,
                "preempt_min_runtime": 30, "preempt_min_runtime_set_by": "root", "priority": 7,
                "deserved": {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0},
                "limit": {"cpu": "unlimited", "memory": "unlimited", "nvidia.com/gpu": "unlimited"},
                "over_quota_weight": {"cpu": 1.0, "memory": 1.0, "nvidia.com/gpu": 1.0},
            },
            "leaf": {
                "reclaim_min_runtime": 0, "reclaim_min_runtime_set_by": "leaf",
                "preempt_min_runtime": 30, "preempt_min_runtime_set_by": "root", "priority": 0,
                "deserved": {"cpu": 1.5, "memory": "unlimited", "nvidia.com/gpu": 0.25},
                "limit": {"cpu": 3, "memory": 2**30, "nvidia.com/gpu": "unlimited"},
                "over_quota_weight": {"cpu": 2.0, "memory": 4.0, "nvidia.com/gpu": 2.0},
            },
        },
    }  # fmt: skip


def test_what_nobody_says_is_what_the_scheduler_assumes() -> None:
    answer = effective(
        {}, {"name": "root"}, {"name": "two", "quota": {"gpu": {}, "cpu": {}}}, {"name": "x", "quota": {"a/gpu": {}}}
    )
    assert answer["settings"] == {
        "rules": "documented", "release": "0.13", "default_reclaim_min_runtime": 0, "default_preempt_min_runtime": 0,
        "reclaim_resolve_method": "lca", "actions": ["allocate", "consolidation", "reclaim", "preempt"],
        "use_scheduling_signatures": True, "max_consolidation_preemptees": None, "allow_consolidating_reclaim": True,
        "staleness_grace_period": 60, "k_value": 1.0,
    }  # fmt: skip
    assert answer["queues"]["root"]["deserved"].keys() == {"cpu", "memory", "gpu"}, (
        "several names for GPUs: gpu stands for all"
    )
