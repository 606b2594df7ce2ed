"""A trace as the OpenAPI document shows it."""

from typing import Any

TRACE: list[dict[str, Any]] = [
    {
        "ask": {
            "id": "train-1",
            "queue": "team-a",
            "priority": 10,
            "tasks": [{"name": "main", "requests": {"cpu": 6}}],
        },
        "submitted_at": 0,
        "duration": 3600,
    },
    {
        "ask": {
            "id": "serve-1",
            "queue": "team-b",
            "priority": 50,
            "tasks": [{"name": "main", "requests": {"cpu": 8}}],
        },
        "submitted_at": 600,
        "duration": "30m",
        "checkpoint": {"every": "10m"},
    },
]
"""Two jobs, for the queues of the example configuration."""
