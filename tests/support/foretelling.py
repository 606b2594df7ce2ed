"""What tests of foretelling share with those beside them."""

from typing import Any


def asks(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in ("ask", "submitted_at", "duration")} for one in jobs]


def running(name: str, queue: str, cpu: int) -> dict[str, Any]:
    return {
        "id": name,
        "queue": queue,
        "tasks": [{"name": "m", "requests": {"cpu": cpu}, "flavors": {"cpu": "default"}}],
    }
