"""Small KAI clusters for tests, and what was decided about them."""

from typing import Any

from tests.support.kai_world import NOW, Json, decide

ALL = ["allocate", "consolidation", "reclaim", "preempt"]


def queue(name: str, parent: str | None = None, *, gpu: Any = 0, weight: float = 1, **more: Any) -> Json:
    """A queue that deserves ``gpu`` GPUs and all the CPU and memory there is."""
    quota: Json = {
        "cpu": {"guaranteed": "unlimited"}, "memory": {"guaranteed": "unlimited"},
        "gpu": {"guaranteed": gpu, "weight": weight, **more.pop("gpus", {})},
    }  # fmt: skip
    quota |= more.pop("quota", {})
    return {"name": name, **({"parent": parent} if parent else {}), "quota": quota, **more}


def node(name: str, gpu: int = 4, cpu: float = 16, **more: Any) -> Json:
    """A node."""
    return {"name": name, "capacity": {"cpu": cpu, "memory": "64Gi", "gpu": gpu, **more.pop("capacity", {})}, **more}


def workload(name: str, queue: str, *nodes: str, gpu: Any = 1, cpu: Any = 1, **more: Any) -> Json:
    """A running workload with one pod on each of ``nodes``; all of them are its gang."""
    tasks = [_task(f"{name}-{i}", gpu, cpu) | {"node": where} for i, where in enumerate(nodes)]
    return {
        "id": name, "queue": queue, "priority": 50, "min_available": len(nodes), "tasks": tasks,
        "started_at": "2027-01-01T00:00:00Z", **more,
    }  # fmt: skip


def ask(name: str, queue: str, pods: int = 1, *, gpu: Any = 1, cpu: Any = 1, **more: Any) -> Json:
    """A pending gang."""
    task = more.pop("task", {})
    tasks = [_task(f"{name}-{i}", gpu, cpu) | task for i in range(pods)]
    return {"id": name, "queue": queue, "priority": 50, "min_available": pods, "tasks": tasks, **more}


def _task(name: str, gpu: Any, cpu: Any) -> Json:
    return {"name": name, "requests": {"cpu": cpu, "memory": "1Gi", **({"gpu": gpu} if gpu else {})}}


class Case:
    """One question and its answer."""

    def __init__(
        self, queues: list[Json], nodes: list[Json], workloads: list[Json], *asks: Json,
        actions: list[str] | None = None, mode: str = "cycle", explain: str = "none", **settings: Any,
    ) -> None:  # fmt: skip
        self.answer = decide(
            {
                "engine": "kai", "mode": mode, "now": NOW.isoformat(), "explain": explain,
                "configuration": {"settings": {"kai": {"actions": actions or ALL, **settings}}, "queues": queues},
                "state": {"nodes": nodes, "workloads": workloads}, "asks": list(asks),
            }
        )  # fmt: skip
        self.decisions: dict[str, Json] = {d["ask"]: d for d in self.answer["decisions"]}
        self.evicted = [e["task"] for e in self.answer["plan"]["evictions"]]
        self.placed = {p["task"]: p["node"] for p in self.answer["plan"]["placements"]}
        self.waiting = {p["task"] for p in self.answer["plan"]["placements"] if p["pipelined"]}

    def outcome(self, ask: str) -> str:
        """What was decided about an ask."""
        return self.decisions[ask]["outcome"]

    def reason(self, ask: str) -> str:
        """The reason of its condition."""
        return self.decisions[ask]["conditions"][0]["reason"]
