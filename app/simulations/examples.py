"""A simulation as the OpenAPI document shows it."""

from typing import Any

_CPU = {"cpu": {"guaranteed": "8"}}
_PREEMPTION = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
SIMULATION: dict[str, Any] = {
    "configuration": {
        "engine": "kueue",
        "queues": [
            {"name": "all", "kueue": {"role": "cohort"}},
            {"name": "team-a", "parent": "all", "quota": _CPU, "kueue": _PREEMPTION},
            {"name": "team-b", "parent": "all", "quota": _CPU, "kueue": _PREEMPTION},
        ],
    },
    "variants": [{"name": "classical"}, {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}],
    "trace": {
        "jobs": [
            {
                "ask": {"id": "train-1", "queue": "team-a", "tasks": [{"name": "main", "requests": {"cpu": 12}}]},
                "submitted_at": 0,
                "duration": 3600,
                "checkpoint": {"every": "10m"},
            },
            {
                "ask": {"id": "serve-1", "queue": "team-b", "tasks": [{"name": "main", "requests": {"cpu": 8}}]},
                "submitted_at": 600,
                "duration": "30m",
            },
        ]
    },
    "grace": "30s",
}
