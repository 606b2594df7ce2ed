"""Random YTsaurus pool trees for the laws."""

import random
from typing import Any

from tests.unit.solver.engines.ytsaurus.cluster import at

Json = dict[str, Any]
RESOURCES = ("user_slots", "cpu", "memory")


def tree(rng: random.Random, *, depth: int = 2, allocations: bool = False) -> Json:
    """A request body: pools up to ``depth`` levels deep, operations in the lowest, pending work, some limits."""
    queues: list[Json] = []
    leaves: list[str] = []
    for i in range(rng.randint(1, 3)):
        _pool(rng, f"p{i}", None, depth, queues, leaves)
    nodes = [
        {"name": f"n{i}", "capacity": {"user_slots": 40, "cpu": rng.randint(4, 40), "memory": rng.randint(8, 200)}}
        for i in range(rng.randint(1, 3))
    ]
    operations: list[Json] = []
    asks: list[Json] = []
    for i in range(rng.randint(1, 5)):
        queue = rng.choice(leaves)
        operation = {
            "id": f"op{i}",
            "queue": queue,
            "created_at": at(i),
            "weight": rng.choice((0.5, 1, 1.7, 3)),
            "tasks": [],
        }
        if rng.random() < 0.25:
            operation["limit"] = {rng.choice(RESOURCES): rng.randint(1, 30)}
        if rng.random() < 0.8:
            operation["tasks"] = _tasks(rng, i, [n["name"] for n in nodes], allocations=allocations)
        operations.append(operation)
        if rng.random() < 0.8:
            task = {"name": "next", "count": rng.randint(1, 30), "requests": _need(rng)}
            asks.append({"id": f"op{i}-next", "workload": f"op{i}", "queue": queue, "tasks": [task]})
    return {
        "engine": "ytsaurus",
        "now": "2026-01-01T12:00:00Z",
        "configuration": {"settings": {"ytsaurus": {"rules": rng.choice(("documented", "shipped"))}}, "queues": queues},
        "state": {"nodes": nodes, "workloads": operations},
        "asks": asks,
    }


def heartbeat(seed: int) -> Json:
    """A body for one heartbeat: starving operations, a crowded node, sometimes pools that starve."""
    rng = random.Random(seed)
    body = tree(rng, depth=2, allocations=True)
    for one in body["state"]["workloads"]:
        level = rng.choice(("non_starving", "non_starving", "starving", "aggressively_starving"))
        one["ytsaurus"] = {"starvation": level}
        if rng.random() < 0.1:
            one["ytsaurus"]["preemption_mode"] = "graceful"
    if rng.random() < 0.3:
        name = rng.choice(body["configuration"]["queues"])["name"]
        body["state"]["queues"] = {name: {"ytsaurus": {"starvation": "starving"}}}
    for one in body["state"]["nodes"]:
        used = [a for w in body["state"]["workloads"] for a in w["tasks"] if a["node"] == one["name"]]
        one["capacity"] = {
            r: int(sum(a["requests"][r] for a in used)) + rng.randint(0, 3) for r in ("user_slots", "cpu", "memory")
        }
    body["configuration"]["settings"]["ytsaurus"]["preemptive_scheduling_backoff"] = 0
    return body


def _pool(rng: random.Random, name: str, parent: str | None, depth: int, queues: list[Json], leaves: list[str]) -> None:
    pool: Json = {"name": name, "weight": rng.choice((0.5, 1, 2, 3.3))} | ({} if parent is None else {"parent": parent})
    quota: Json = {}
    if rng.random() < 0.35:
        quota.setdefault("cpu", {})["guaranteed"] = rng.randint(1, 12)
    if rng.random() < 0.3:
        quota.setdefault(rng.choice(RESOURCES), {})["limit"] = rng.randint(1, 40)
    if quota:
        pool["quota"] = quota
    queues.append(pool)
    if depth > 1 and rng.random() < 0.5:
        for i in range(rng.randint(1, 2)):
            _pool(rng, f"{name}-{i}", name, depth - 1, queues, leaves)
    else:
        if rng.random() < 0.25:
            pool["ytsaurus"] = {"mode": "fifo"}
        leaves.append(name)


def _need(rng: random.Random) -> Json:
    return {"user_slots": 1, "cpu": rng.choice((0.5, 1, 1.25, 2, 4)), "memory": rng.randint(0, 17)}


def _tasks(rng: random.Random, i: int, nodes: list[str], *, allocations: bool) -> list[Json]:
    if not allocations:
        need = _need(rng)
        times = rng.randint(1, 9)
        return [{"name": "usage", "requests": {name: value * times for name, value in need.items()}}]
    return [
        {"name": f"a{i}-{j}", "node": rng.choice(nodes), "requests": _need(rng), "started_at": at(rng.randint(0, 900))}
        for j in range(rng.randint(1, 9))
    ]
