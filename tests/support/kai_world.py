"""Random KAI clusters, and what an answer makes of them, worked out again from the documents alone."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.question import Question

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
ALL_ACTIONS = ["allocate", "consolidation", "reclaim", "preempt"]
Json = dict[str, Any]


@dataclass
class Shape:
    """How large and how odd a cluster is."""

    queues: int = 6
    nodes: int = 5
    workloads: int = 10
    asks: int = 6
    shares_of_gpus: bool = False
    constraints: bool = False
    actions: list[str] = field(default_factory=lambda: list(ALL_ACTIONS))
    rules: str = "documented"
    release: str | None = None
    """Absent: drawn by the seed."""
    mode: str = "cycle"
    gangs: tuple[int, ...] = (1, 1, 2, 3)


def cluster(seed: int, shape: Shape) -> Json:
    """A request body. Running pods fit their nodes."""
    random = Random(seed)
    queues = _queues(random, shape)
    leaves = sorted({q["name"] for q in queues} - {q.get("parent") for q in queues})
    nodes: list[Json] = [
        {"name": f"node{n}", "capacity": {"cpu": 32, "memory": "256Gi", "gpu": random.choice([0, 2, 4, 4, 8])}}
        for n in range(shape.nodes)
    ]
    if shape.constraints:
        for node in nodes:
            node["labels"] = {"zone": random.choice("ab")}
            if random.random() < 0.2:
                node["taints"] = [{"key": "reserved", "effect": "NoSchedule"}]
    free = {node["name"]: {"cpu": 32.0, "gpu": float(node["capacity"]["gpu"])} for node in nodes}
    workloads = [w for i in range(shape.workloads) if (w := _workload(random, shape, f"w{i}", leaves, free))]
    asks = [_ask(random, shape, f"p{i}", leaves) for i in range(shape.asks)]
    asks += [_growth(random, shape, workload) for workload in workloads if random.random() < 0.15]
    kai: Json = {
        "rules": shape.rules,
        "release": shape.release or release_of(seed),
        "actions": shape.actions,
        "default_reclaim_min_runtime": random.choice([0, 0, 600]),
        "default_preempt_min_runtime": random.choice([0, 0, 600]),
        "use_scheduling_signatures": random.random() < 0.5,
        "allow_consolidating_reclaim": random.random() < 0.8,
    }
    if random.random() < 0.3:
        kai["max_consolidation_preemptees"] = random.randint(0, 3)
    return {
        "engine": "kai",
        "mode": shape.mode,
        "now": _at(0),
        "configuration": {"settings": {"kai": kai}, "queues": queues},
        "state": {"nodes": nodes, "workloads": workloads},
        "asks": asks,
    }


def release_of(seed: int) -> str:
    """One of them, half of the seeds each."""
    return "0.17" if seed % 2 else "0.13"


def in_groups(body: Json) -> Json:
    """The same request with every quota written as a resource group."""
    queues: list[Json] = []
    for queue in body["configuration"]["queues"]:
        rest = {k: v for k, v in queue.items() if k != "quota"}
        quota: Json = queue.get("quota", {})
        groups = [
            {"resources": [name], "flavors": [{"name": "default", "quota": {name: of}}]} for name, of in quota.items()
        ]
        queues.append(rest | ({"resource_groups": groups} if groups else {}))
    return body | {"configuration": body["configuration"] | {"queues": queues}}


def crowded(seed: int) -> Json:
    """A request body: few nodes, gangs of pods that differ in size and zone, one action that makes room for them.
    What an earlier part of a gang took is often put back for a later one."""
    random = Random(seed)
    action = random.choice(["preempt", "preempt", "reclaim", "consolidation"])
    nodes: list[Json] = [
        {
            "name": f"n{i}", "labels": {"zone": random.choice("ab")},
            "capacity": {"cpu": 64, "memory": "256Gi", "gpu": random.choice([2, 3, 4, 6])},
        }
        for i in range(random.randint(2, 4))
    ]  # fmt: skip
    own = "b" if action == "reclaim" else "a"
    workloads = _crowd(random, nodes, (own, "b") if action == "consolidation" else (own,))
    asks: list[Json] = []
    for i in range(random.randint(1, 2)):
        pods = random.randint(2, 5)
        tasks = [
            {"name": f"p{i}-{t}", "priority": -t, "requests": _gpus(random), "node_selector": zone}
            for t in range(pods)
            for zone in ({"zone": random.choice("ab")} if random.random() < 0.4 else {},)
        ]
        asks.append({"id": f"p{i}", "queue": "a", "priority": 50, "min_available": pods, "tasks": tasks})
    deserved = {"root": "unlimited", "a": 20 if action == "reclaim" else 99, "b": 0}
    queues = [
        {
            "name": name,
            **({"parent": "root"} if name != "root" else {}),
            "quota": {
                "cpu": {"guaranteed": "unlimited"},
                "memory": {"guaranteed": "unlimited"},
                "gpu": {"guaranteed": g},
            },
        }
        for name, g in deserved.items()
    ]
    kai = {"rules": random.choice(["documented", "shipped"]), "release": release_of(seed), "actions": [action]}
    return {
        "engine": "kai", "mode": "cycle", "now": _at(0),
        "configuration": {"settings": {"kai": kai}, "queues": queues},
        "state": {"nodes": nodes, "workloads": workloads}, "asks": asks,
    }  # fmt: skip


def _gpus(random: Random) -> Json:
    return {"cpu": 1, "memory": "1Gi", "gpu": random.choice([1, 1, 2, 3])}


def _crowd(random: Random, nodes: list[Json], queues: tuple[str, ...]) -> list[Json]:
    free = {node["name"]: node["capacity"]["gpu"] for node in nodes}
    workloads: list[Json] = []
    for i in range(random.randint(3, 9)):
        requests = _gpus(random)
        tasks: list[Json] = []
        for t in range(random.choice([1, 1, 2, 3])):
            fitting = [n for n, have in free.items() if have >= requests["gpu"]]
            if fitting:
                node = random.choice(fitting)
                free[node] -= requests["gpu"]
                tasks.append({"name": f"w{i}-{t}", "node": node, "requests": requests})
        if tasks:
            workloads.append(
                {
                    "id": f"w{i}", "queue": random.choice(queues), "priority": random.choice([40, 45]),
                    "created_at": _at(random.randint(0, 30)), "min_available": random.choice([1, len(tasks)]),
                    "tasks": tasks,
                }
            )  # fmt: skip
    return workloads


def _at(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def _queues(random: Random, shape: Shape) -> list[Json]:
    queues: list[Json] = []
    for i in range(shape.queues):
        queue: Json = {"name": f"q{i}", "priority": random.choice([100, 100, 200]), "created_at": _at(1000 + i % 3)}
        above = [q["name"] for q in queues[: max(1, shape.queues // 2)]]
        if above and random.random() < 0.8:
            queue["parent"] = random.choice(above)
        quota: Json = {}
        for resource, most in (("cpu", 60), ("memory", 10**12), ("gpu", 8)):
            quota[resource] = {
                "guaranteed": "unlimited" if random.random() < 0.4 else random.randint(0, most),
                "weight": random.choice([0, 1, 1, 3]),
            }
            if random.random() < 0.1:
                quota[resource]["limit"] = random.randint(most // 2, 2 * most)
        queue["quota"] = quota
        if random.random() < 0.4:
            queue["kai"] = {random.choice(["reclaim_min_runtime", "preempt_min_runtime"]): random.choice([0, 60, 900])}
        queues.append(queue)
    return queues


def _requests(random: Random, shape: Shape) -> Json:
    requests: Json = {"cpu": random.choice([1, 2, 4]), "memory": "1Gi"}
    if random.random() < 0.8:
        requests["gpu"] = random.choice([1, 1, 2, 4])
        if shape.shares_of_gpus and random.random() < 0.5:
            requests["gpu"] = random.choice(["500m", "250m", "700m", 1])
    return requests


def _common(random: Random, identity: str, leaves: list[str], pods: int) -> Json:
    return {
        "id": identity,
        "queue": random.choice(leaves),
        "priority": random.choice([40, 50, 50, 75]),
        "created_at": _at(random.randint(0, 50)),
        "preemptible": random.random() < 0.85,
        "min_available": random.choice([1, pods, pods, max(1, pods - 1)]),
    }


def _workload(
    random: Random, shape: Shape, identity: str, leaves: list[str], free: dict[str, dict[str, float]]
) -> Json | None:
    pods = random.choice([1, 1, 2, 3, 4])
    workload = _common(random, identity, leaves, pods)
    requests = _requests(random, shape)
    need = {"cpu": requests["cpu"], "gpu": _number(requests.get("gpu", 0))}
    tasks: list[Json] = []
    for t in range(pods):
        # A share is counted as a device of its own here, which is more than it may take: nothing overfills.
        taken = {"cpu": need["cpu"], "gpu": 1.0 if 0 < need["gpu"] < 1 else need["gpu"]}
        fitting = [n for n, have in free.items() if have["cpu"] >= taken["cpu"] and have["gpu"] >= taken["gpu"]]
        if not fitting:
            break
        node = random.choice(fitting)
        for resource, amount in taken.items():
            free[node][resource] -= amount
        state = "releasing" if random.random() < 0.05 else "running"
        tasks.append({"name": f"{identity}-{t}", "requests": requests, "node": node, "state": state})
    if not tasks:
        return None
    workload["tasks"] = tasks
    workload["min_available"] = min(workload["min_available"], len(tasks))
    if random.random() < 0.9:
        workload["started_at"] = _at(random.choice([5, 100, 800, 5000]))
    return workload


def _ask(random: Random, shape: Shape, identity: str, leaves: list[str]) -> Json:
    pods = random.choice(shape.gangs)
    ask = _common(random, identity, leaves, pods)
    requests = _requests(random, shape)
    tasks: list[Json] = [{"name": f"{identity}-{t}", "requests": requests} for t in range(pods)]
    ask["tasks"] = tasks
    if shape.constraints:
        for task in tasks:
            if random.random() < 0.5:
                task["node_selector"] = {"zone": random.choice("ab")}
            if random.random() < 0.3:
                task["tolerations"] = [{"key": "reserved", "operator": "Exists"}]
    return ask


def _growth(random: Random, shape: Shape, workload: Json) -> Json:
    ask = {k: workload[k] for k in ("id", "queue", "priority", "created_at", "preemptible", "min_available")}
    requests = workload["tasks"][0]["requests"]
    more = random.choice([1, 2])
    return {
        **ask,
        "workload": workload["id"],
        "tasks": [{"name": f"{workload['id']}-more{t}", "requests": requests} for t in range(more)],
    }


def _number(quantity: Any) -> float:
    if isinstance(quantity, str):
        return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity.removesuffix("Gi"))
    return float(quantity)


def decide(body: Json) -> Json:
    """The answer to a request body, over the whole path."""
    request = msgspec.json.decode(json.dumps(body), type=DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert request.now is not None
    loaded = solve.load(solve.configure(request.configuration, request.engine), request.state)
    question = Question(micros(request.now), request.asks, request.mode, request.options, request.explain)
    return json.loads(msgspec.json.encode(solve.decide(loaded, question)))


class Outcome:
    """A request and its answer side by side."""

    def __init__(self, body: Json, answer: Json | None = None) -> None:
        self.body = body
        self.answer = decide(body) if answer is None else answer
        self.plan: Json = self.answer["plan"]
        self.workloads: dict[str, Json] = {w["id"]: w for w in body["state"]["workloads"]}
        self.asks: dict[str, Json] = {a["id"]: a for a in body["asks"]}
        self.queues: dict[str, Json] = {q["name"]: q for q in body["configuration"]["queues"]}
        stops: dict[tuple[str, str], Json] = {(e["workload"], e["task"]): e for e in self.plan["evictions"]}
        self.evicted = {key: e for key, e in stops.items() if "just_placed" not in e}
        self.taken_back = stops.keys() - self.evicted.keys()
        self.moved = {(p["workload"], p["task"]): p for p in self.plan["placements"] if p.get("workload")}
        self.placed = {(p["ask"], p["task"]): p for p in self.plan["placements"] if p.get("ask")}

    def may_have_asked(self, eviction: Json) -> list[Json]:
        """The ask that the eviction is for, and those that lost their place: it may have been made for one of them."""
        lost = [d["ask"] for d in self.answer["decisions"] if d["conditions"][0]["reason"] == "PlaceTaken"]
        return [self.asks[name] for name in (eviction["for_ask"], *lost)]

    def path(self, queue: str | None) -> list[str]:
        """From a queue up to its root."""
        path: list[str] = []
        while queue is not None:
            path.append(queue)
            queue = self.queues[queue].get("parent")
        return path

    def min_runtime(self, kind: str, asking: str, victim: str) -> float:
        """The minimum runtime that protects a queue from another, by the design's words."""
        ours, theirs = self.path(asking)[::-1], self.path(victim)[::-1]
        settings = self.body["configuration"]["settings"]["kai"]
        default = settings.get(f"default_{kind}_min_runtime", 0)
        if kind == "reclaim":
            if ours[0] != theirs[0]:
                theirs = theirs[:1]
            else:
                common = sum(a == b for a, b in zip(ours, theirs, strict=False))
                theirs = theirs[: common + 1]
        for queue in reversed(theirs):
            own: Json = self.queues[queue].get("kai") or {}
            if f"{kind}_min_runtime" in own:
                return own[f"{kind}_min_runtime"]
        return default

    def protected(self, workload: Json, kind: str, asking: str) -> bool:
        """Whether the workload has run for no longer than its minimum, by the design's words."""
        if "started_at" not in workload:
            return False
        minimum = self.min_runtime(kind, asking, workload["queue"])
        ran = (NOW - datetime.fromisoformat(workload["started_at"])).total_seconds()
        return minimum > 0 and ran <= minimum

    def elastic(self, workload: Json) -> bool:
        """Whether it has more pods than its gang, pending ones included."""
        return (
            len(workload["tasks"]) + len(self.asks.get(workload["id"], {"tasks": []})["tasks"])
            > workload["min_available"]
        )

    def asked(self, ask: Json) -> dict[str, float]:
        """What the placed pods of an ask hold: CPU and GPUs."""
        total = {"cpu": 0.0, "gpu": 0.0}
        for task in ask["tasks"]:
            if (ask["id"], task["name"]) in self.placed:
                _add(total, task["requests"])
        return total

    def running(self, workload: Json) -> list[Json]:
        """Its pods that run and stay."""
        return [
            t
            for t in workload["tasks"]
            if t.get("state", "running") == "running" and (workload["id"], t["name"]) not in self.evicted
        ]

    def node_use(self, *, later: bool) -> dict[str, dict[str, float]]:
        """CPU and whole GPUs by node: now, with pods being released and evicted but only what starts now; or later,
        once they are gone and everything has its place."""
        use = {node["name"]: {"cpu": 0.0, "gpu": 0.0} for node in self.body["state"]["nodes"]}
        for workload in self.workloads.values():
            for task in workload["tasks"]:
                goes = task.get("state") == "releasing" or (workload["id"], task["name"]) in self.evicted
                if not (later and goes):
                    _add(use[task["node"]], task["requests"])
        for placement in self.plan["placements"]:
            if later or not placement["pipelined"]:
                _add(use[placement["node"]], self._requests(placement))
        return use

    def _requests(self, placement: Json) -> Json:
        owner = self.asks[placement["ask"]] if placement.get("ask") else self.workloads[placement["workload"]]
        return next(t["requests"] for t in owner["tasks"] if t["name"] == placement["task"])


def _add(use: dict[str, float], requests: Json) -> None:
    for resource in use:
        use[resource] += _number(requests.get(resource, 0))
