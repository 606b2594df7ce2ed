"""A forecast as the OpenAPI document shows it."""

from typing import Any

_FOUR = {"cpu": {"guaranteed": "4"}}
_QUEUES = [
    {"name": "all", "kueue": {"role": "cohort"}},
    {"name": "team-a", "parent": "all", "quota": _FOUR},
    {"name": "team-b", "parent": "all", "quota": _FOUR},
]
FORECAST: dict[str, Any] = {
    "configuration": {"engine": "kueue", "queues": _QUEUES},
    "state": {
        "workloads": [
            {
                "id": "train-1",
                "queue": "team-a",
                "tasks": [{"name": "main", "requests": {"cpu": 6}, "flavors": {"cpu": "default"}}],
            }
        ]
    },
    "remaining": {"train-1": "45m"},
    "asks": [
        {
            "ask": {"id": "train-2", "queue": "team-b", "tasks": [{"name": "main", "requests": {"cpu": 3}}]},
            "duration": 600,
        }
    ],
    "variants": [{"name": "one more", "set": {"queues.team-b.quota.cpu.guaranteed": 5}}],
    "start": "2026-03-02T09:30:00Z",
}
