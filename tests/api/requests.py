"""Requests that tests start from."""

import copy
from typing import Any

DECISION: dict[str, Any] = {
    "engine": "kueue",
    "now": "2026-03-02T09:30:00Z",
    "configuration": {
        "queues": [
            {"name": "all"},
            {
                "name": "a",
                "parent": "all",
                "quota": {"cpu": {"guaranteed": 4}},
                "kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}},
            },
            {"name": "b", "parent": "all", "quota": {"cpu": {"guaranteed": 4}}},
        ]
    },
    "state": {
        "workloads": [
            {"id": "w1", "queue": "a", "priority": 1, "tasks": [{"name": "t", "requests": {"cpu": 4}}]},
            {"id": "w2", "queue": "b", "priority": 1, "tasks": [{"name": "t", "requests": {"cpu": 4}}]},
        ]
    },
    "asks": [{"id": "x", "queue": "a", "priority": 9, "tasks": [{"name": "t", "requests": {"cpu": 2}}]}],
}


def decision() -> dict[str, Any]:
    """A decision request of its own, with one victim: w1."""
    return copy.deepcopy(DECISION)


def changed(pointer: str, value: Any) -> dict[str, Any]:
    """``decision()`` with ``value`` at ``pointer``."""
    request = decision()
    *path, last = pointer.lstrip("/").split("/")
    at: Any = request
    for part in path:
        at = at[int(part)] if isinstance(at, list) else at[part]
    if isinstance(at, list):
        at.insert(int(last), value)
    else:
        at[last] = value
    return request


def without(pointer: str) -> dict[str, Any]:
    """``decision()`` without what is at ``pointer``."""
    request = decision()
    *path, last = pointer.lstrip("/").split("/")
    at: Any = request
    for part in path:
        at = at[int(part)] if isinstance(at, list) else at[part]
    del at[last]
    return request
