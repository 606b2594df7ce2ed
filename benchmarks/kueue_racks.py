"""A cluster of racks for Kueue: 5,000 nodes in three levels, 50,000 workloads of a pod each, and one ask for GPUs in
one rack, for which some of them must stop."""

import random
from typing import Any

BLOCK, RACK, HOST = "block", "rack", "kubernetes.io/hostname"
NODES, WORKLOADS, QUEUES = 5_000, 50_000, 20
_AT = "2026-01-01T00:00:00Z"
Item = dict[str, Any]


def racks() -> Item:
    """The request."""
    draw = random.Random(1)
    return {
        "engine": "kueue", "now": "2026-01-02T00:00:00Z", "mode": "cycle", "configuration": _configuration(),
        "state": {"nodes": [_node(i) for i in range(NODES)], "workloads": [_runs(i, draw) for i in range(WORKLOADS)]},
        "asks": [_ask()],
    }  # fmt: skip


def _configuration() -> Item:
    quota = {"cpu": {"guaranteed": 64 * NODES // QUEUES}, "gpu": {"guaranteed": 8 * NODES // QUEUES}}
    group = {"resources": ["cpu", "gpu"], "flavors": [{"name": "f", "quota": quota}]}
    block = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
    queues = [{"name": f"q{i}", "parent": "cohort", "resource_groups": [group], "kueue": block} for i in range(QUEUES)]
    return {
        "flavors": [{"name": "f", "topology": "racks"}],
        "topologies": [{"name": "racks", "levels": [BLOCK, RACK, HOST]}],
        "queues": [{"name": "cohort"}, *queues],
    }


def _node(i: int) -> Item:
    labels = {BLOCK: f"b{i // 500}", RACK: f"r{i // 25}", HOST: f"n{i}"}
    return {"name": f"n{i}", "labels": labels, "capacity": {"cpu": 64, "gpu": 8, "pods": 110}}


def _runs(i: int, draw: random.Random) -> Item:
    """Eight of ten on a node have a GPU each."""
    assigned = {"levels": [HOST], "domains": [{"values": [f"n{i % NODES}"], "count": 1}]}
    task = {
        "name": "main", "requests": {"cpu": 6, "gpu": int(i < 40_000)}, "flavors": {"cpu": "f", "gpu": "f"},
        "topology_assignment": assigned,
    }  # fmt: skip
    return {
        "id": f"w{i}", "uid": f"w{i}", "queue": f"q{i % QUEUES}", "priority": draw.randrange(4), "created_at": _AT,
        "started_at": _AT, "tasks": [task],
    }  # fmt: skip


def _ask() -> Item:
    task = {
        "name": "main", "count": 4, "requests": {"cpu": 8, "gpu": 1}, "topology_request": {"required": RACK},
    }  # fmt: skip
    return {"id": "ask", "queue": "q0", "priority": 9, "created_at": _AT, "tasks": [task]}
