"""Small clusters for tests: requests as the wire has them, answered in process."""

import json
from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.request import DecisionRequest, PreemptibilityRequest, SharesRequest
from app.solver.question import ProtectionQuestion, Question

NOW = "2026-01-01T12:00:00Z"


def at(clock: str) -> str:
    """``HH:MM`` on the day of ``NOW``."""
    return f"2026-01-01T{clock}:00Z"


def queue(name: str, cpu: Any = None, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A ClusterQueue or cohort with ``cpu`` of flavor "default": a number, or a quota. ``preemption``,
    ``flavor_fungibility``, ``queueing_strategy``, ``role``, ``stop_policy``, ``inactive`` go into its Kueue block."""
    out: dict[str, Any] = {"name": name}
    if parent is not None:
        out["parent"] = parent
    if cpu is not None:
        out["quota"] = {"cpu": cpu if isinstance(cpu, dict) else {"guaranteed": cpu}}
    block = {k: more.pop(k) for k in list(more) if k in _BLOCK}
    if block:
        out["kueue"] = block
    return out | more


_BLOCK = ("preemption", "flavor_fungibility", "queueing_strategy", "role", "stop_policy", "inactive")


def flavors(**cpu: Any) -> dict[str, Any]:
    """``resource_groups`` of one group: cpu by these flavors, in this order."""
    group = {"resources": ["cpu"], "flavors": [{"name": f, "quota": {"cpu": _quota(q)}} for f, q in cpu.items()]}
    return {"resource_groups": [group]}


def _quota(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"guaranteed": value}


def runs(
    name: str, queue_name: str, cpu: float, priority: int = 0, flavor: str = "default", **more: Any
) -> dict[str, Any]:
    """A running workload of one pod set; started two hours before ``NOW`` unless said otherwise."""
    task = {"name": "main", "requests": {"cpu": cpu}, "flavors": {"cpu": flavor}}
    base = {"id": name, "uid": name, "queue": queue_name, "priority": priority, "started_at": at("10:00")}
    return base | {"created_at": at("10:00"), "tasks": [task]} | more


def asks(name: str, queue_name: str, cpu: float, priority: int = 0, **more: Any) -> dict[str, Any]:
    """An ask of one pod set, made an hour before ``NOW``; ``count``, ``min_count``, ``tolerations`` and the like go to
    the pod set."""
    task: dict[str, Any] = {"name": "main", "requests": {"cpu": cpu}}
    task |= {k: more.pop(k) for k in list(more) if k in _TASK}
    base = {"id": name, "uid": name, "queue": queue_name, "priority": priority, "created_at": at("11:00")}
    return base | {"tasks": [task]} | more


_TASK = ("count", "min_count", "tolerations", "node_selector", "node_affinity", "flavors")


def configuration(*queues: dict[str, Any], fair: bool = False, **more: Any) -> dict[str, Any]:
    """A configuration for Kueue."""
    settings = {"kueue": {"fair_sharing": fair}}
    return {"engine": "kueue", "settings": settings, "queues": list(queues)} | more


def decide(
    of: dict[str, Any], workloads: list[dict[str, Any]], pending: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """The answer to a decision request, as parsed JSON; ``decisions`` by ask. ``nodes``, ``queues`` go into the
    state."""
    state = {"workloads": workloads, "nodes": more.pop("nodes", []), "queues": more.pop("queues", {})}
    body = {"configuration": of, "state": state, "asks": pending, "now": NOW} | more
    request = msgspec.json.decode(json.dumps(body), type=DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert request.now is not None
    loaded = solve.load(solve.configure(request.configuration), request.state)
    question = Question(micros(request.now), request.asks, request.mode, request.options, request.explain)
    answer = json.loads(msgspec.json.encode(solve.decide(loaded, question)))
    answer["decisions"] = {d["ask"]: d for d in answer["decisions"]}
    return answer


def one(of: dict[str, Any], workloads: list[dict[str, Any]], ask: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The decision for a single ask."""
    return decide(of, workloads, [ask], **more)["decisions"][ask["id"]]


def victims(decision: dict[str, Any]) -> list[str]:
    """Ids, in order."""
    return [v["workload"] for v in decision["victims"]]


def findings(of: dict[str, Any]) -> list[Finding]:
    """What is found in a configuration."""
    return solve.findings(msgspec.json.decode(json.dumps(of), type=Configuration))


def shares(of: dict[str, Any], workloads: list[dict[str, Any]], part: str = "queues", **state: Any) -> dict[str, Any]:
    """The answer of ``POST /v1/shares``, by queue, or another ``part`` of it."""
    body = {"configuration": of, "state": {"workloads": workloads} | state, "now": NOW}
    request = msgspec.json.decode(json.dumps(body), type=SharesRequest)
    assert isinstance(request.configuration, Configuration)
    loaded = solve.load(solve.configure(request.configuration), request.state)
    return solve.shares(loaded, request.asks, 0)[part]


def preemptibility(of: dict[str, Any], workloads: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The answer of ``POST /v1/preemptibility``."""
    body = {"configuration": of, "state": {"workloads": workloads}, "now": NOW} | more
    request = msgspec.json.decode(json.dumps(body), type=PreemptibilityRequest)
    assert isinstance(request.configuration, Configuration)
    assert request.now is not None
    loaded = solve.load(solve.configure(request.configuration), request.state)
    question = ProtectionQuestion(micros(request.now), request.asks, request.ask, request.action, request.evict)
    return solve.preemptibility(loaded, question)
