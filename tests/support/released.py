"""A situation of KAI that two releases decide otherwise: a queue below its share, and one that is not above its own.

One GPU of four is free. 0.13 reclaims: it finds the free one. 0.17 looks only for a victim, and there is none.
"""

from typing import Any

Json = dict[str, Any]
RULE = "reclaim-victim-filter"
"""The rule that makes the difference."""
_UNBOUNDED = {"cpu": {"guaranteed": "unlimited"}, "memory": {"guaranteed": "unlimited"}}
WAITS: Json = {"id": "x", "queue": "a", "tasks": [{"name": "x", "requests": {"gpu": 1}}]}
STATE: Json = {
    "nodes": [{"name": "n", "capacity": {"gpu": 4, "cpu": 8, "memory": "8Gi", "pods": 100}}],
    "workloads": [{"id": "r", "queue": "b", "started_at": "1999-12-31T00:00:00Z", "tasks": [
        {"name": f"r{i}", "node": "n", "requests": {"gpu": 1}} for i in range(3)
    ]}],
}  # fmt: skip


def configuration(release: str) -> Json:
    """Of that release, with the one action that tells them apart."""
    gpus = (("d", None, 8), ("a", "d", 2), ("b", "d", 4))
    queues = [
        {"name": name, "parent": parent, "quota": {**_UNBOUNDED, "gpu": {"guaranteed": gpu}}}
        for name, parent, gpu in gpus
    ]
    return {"engine": "kai", "queues": queues, "settings": {"kai": settings(release)}}


def settings(release: str) -> Json:
    return {"rules": "shipped", "release": release, "actions": ["reclaim"]}
