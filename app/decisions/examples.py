"""Small requests and answers for the OpenAPI document."""

from typing import Any

_QUEUE = {"kueue": {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}}

SITUATION: dict[str, Any] = {
    "now": "2026-03-02T09:30:00Z",
    "configuration": {
        "engine": "kueue",
        "queues": [
            {"name": "all", "kueue": {"role": "cohort"}},
            {"name": "research", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}, **_QUEUE},
            {"name": "serving", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}, **_QUEUE},
        ],
    },
    "state": {
        "workloads": [
            {
                "id": "sweep-17",
                "queue": "research",
                "started_at": "2026-03-02T07:10:05Z",
                "tasks": [{"name": "trial", "requests": {"cpu": 10}, "flavors": {"cpu": "default"}}],
            }
        ]
    },
}

ASK: dict[str, Any] = {
    "id": "chat-api",
    "queue": "serving",
    "priority": 100,
    "tasks": [{"name": "replica", "count": 2, "requests": {"cpu": "3500m"}, "flavors": {"cpu": "default"}}],
}

CARRIED: dict[str, Any] = {
    "asks": [ASK],
    "decisions": [
        {
            "ask": "chat-api",
            "outcome": "preempt",
            "victims": [
                {
                    "workload": "sweep-17",
                    "queue": "research",
                    "reason": "InCohortReclamation",
                    "message": "Preempted to accommodate a workload due to reclamation within the cohort",
                    "conditions": [],
                    "freed": {"cpu": 10},
                }
            ],
            "conditions": [],
        }
    ],
    "plan": {
        "evictions": [
            {"workload": "sweep-17", "queue": "research", "reason": "InCohortReclamation", "for_ask": "chat-api"}
        ],
        "placements": [],
    },
}

DECISION: dict[str, Any] = {**SITUATION, "asks": [ASK], "explain": "summary"}
