"""What tests of native state share with those beside them."""

from typing import Any

EXEC = {"user_slots": 8, "cpu": 8.0, "user_memory": 32 << 30, "network": 100}


ORCHID: dict[str, Any] = {
    "nodes": {
        "exec-1:9012": {"resource_limits": EXEC, "tags": ["default"], "state": "online"},
        "exec-2:9012": {"resource_limits": EXEC, "state": "online"},
        "exec-3:9012": {"state": "offline"},
    },
    "operations": {
        "aa-1": {
            "start_time": "2026-03-02T08:00:00.000000Z",
            "running_jobs": {
                "j-1": {"address": "exec-1:9012", "start_time": "2026-03-02T08:00:05.000000Z", "state": "running"},
                "j-2": {"address": "exec-2:9012", "start_time": "2026-03-02T08:10:05.000000Z", "state": "running"},
            },
        },
        "bb-2": {"start_time": "2026-03-02T08:59:00.000000Z", "running_jobs": {}},
        "cc-3": {"start_time": "2026-03-02T08:59:30.000000Z"},
    },
    "pool_trees": {
        "physical": {
            "pools": {
                "<Root>": {},
                "prod": {"parent": "<Root>", "weight": 2.0, "strong_guarantee_resources": {"cpu": 12.0, "gpu": 0}},
                "lab": {"parent": "<Root>", "mode": "fifo"},
                "nlp": {"parent": "lab", "weight": 1.0, "mode": "fair_share"},
            },
            "operations": {
                "aa-1": {
                    "pool": "nlp",
                    "resource_usage": {"user_slots": 2, "cpu": 12.0, "user_memory": 20 << 30},
                    "resource_demand": {"user_slots": 3, "cpu": 18.0, "user_memory": 30 << 30},
                    "starvation_status": "non_starving",
                },
                "bb-2": {
                    "pool": "prod",
                    "resource_demand": {"user_slots": 3, "cpu": 12.0, "user_memory": 12 << 30},
                    "starvation_status": "starving",
                },
            },
        },
        "cloud": {},
    },
}  # fmt: skip
