"""A cluster of 5,000 nodes and 50,000 pods for kube-scheduler, one ask for which some must stop, and what the released
code needs for its preemption on the same request."""

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.cluster.build import missing_oracle
from tests.support.kube_scheduler_oracle import running

NODES, PODS, NAMESPACES = 5_000, 50_000, 20
_EACH = 5
_REPEATED = 5
Item = dict[str, Any]


def cluster() -> Item:
    """The request."""
    draw = random.Random(1)
    budget = {"name": "b", "queue": "team-0", "selector": {"match_labels": {"app": "a0"}}, "disruptions_allowed": 1}
    wanted = {"name": "ask", "requests": {"cpu": 8, "memory": "8Gi"}, "labels": {"app": "web"}}
    return {
        "engine": "kube-scheduler", "now": "2026-06-01T00:00:00Z", "mode": "independent",
        "configuration": {"queues": [{"name": f"team-{i}"} for i in range(NAMESPACES)]},
        "state": {
            "nodes": [_node(i) for i in range(NODES)],
            "workloads": [_runs(i, draw) for i in range(PODS // _EACH)],
            "disruption_budgets": [budget],
        },
        "asks": [{"id": "ask", "queue": "team-1", "priority": 5000, "tasks": [wanted]}],
    }  # fmt: skip


def never_asked(body: bytes) -> Iterator[bytes]:
    """Decisions on the same snapshot, each for a pod of a size and a priority that nobody has asked for before."""
    request = json.loads(body)
    ask = request["asks"][0]
    task = ask["tasks"][0]
    for i in itertools.count(1):
        requests = {**task["requests"], "cpu": f"{8000 + i}m"}
        yield json.dumps(
            {**request, "asks": [{**ask, "priority": 5000 + i, "tasks": [{**task, "requests": requests}]}]}
        ).encode()


def released(request: Item) -> float | None:
    """Seconds that the released preemption takes, its plugins alone and without reading; None where it is not built."""
    if missing_oracle() is not None:
        return None
    body = {**request, "repeat": _REPEATED, "options": {"kube_scheduler": {"offset": 0}}}
    with running() as oracle:
        return min(oracle.decisions(json.loads(json.dumps(body)))[0]["seconds"] for _ in range(_REPEATED))


def _node(at: int) -> Item:
    labels = {"kubernetes.io/hostname": f"n{at}", "zone": f"z{at % 3}"}
    return {"name": f"n{at}", "capacity": {"cpu": 16, "memory": "64Gi", "pods": 110}, "labels": labels}


def _runs(at: int, draw: random.Random) -> Item:
    tasks = [
        {
            "name": f"p{pod}", "node": f"n{pod % NODES}", "labels": {"app": f"a{at % 50}"},
            "requests": {"cpu": draw.choice((1, 1.5, 2)), "memory": "2Gi"},
            "started_at": f"2026-01-01T00:{draw.randrange(60):02d}:{draw.randrange(60):02d}Z",
        }
        for pod in range(at * _EACH, (at + 1) * _EACH)
    ]  # fmt: skip
    priority = draw.choice((0, 100, 1000))
    return {"id": f"w{at}", "queue": f"team-{at % NAMESPACES}", "priority": priority, "tasks": tasks}
