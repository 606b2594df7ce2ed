"""Small clusters for kube-scheduler, and what is decided in them."""

from datetime import datetime
from typing import Any

import msgspec

from app.solver import solve
from app.solver.engine import engine_of
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Answer
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import Loaded

Json = dict[str, Any]
NOW = "2026-01-01T12:00:00Z"
engine_of("kube-scheduler")  # loaded now, and not in the time that the first example of a law has


def node(name: str, cpu: float = 4, **more: Any) -> Json:
    return {"name": name, "capacity": {"cpu": cpu, "memory": "8Gi"}, **more}


def pod(name: str, on: str, cpu: float = 1, priority: int = 0, **more: Any) -> Json:
    """A workload of one pod, named as it."""
    task = {"name": name, "requests": {"cpu": cpu}, "node": on, "started_at": "2026-01-01T00:00:00Z", **more}
    return {"id": name, "queue": "default", "priority": priority, "tasks": [task]}


def ask(name: str = "ask", cpu: float = 1, priority: int = 10, **more: Any) -> Json:
    of_ask = {key: more.pop(key) for key in ("min_available", "preemption_policy", "nominated_node") if key in more}
    task = {"name": name, "requests": {"cpu": cpu}, **more}
    return {"id": name, "queue": "default", "priority": priority, "created_at": NOW, "tasks": [task], **of_ask}


def request(nodes: list[Json], workloads: list[Json], asks: list[Json], **more: Any) -> Json:
    settings = more.pop("settings", {})
    state = {"nodes": nodes, "workloads": workloads}
    state |= {key: more.pop(key) for key in ("disruption_budgets", "reservations") if key in more}
    configuration = {
        "engine": "kube-scheduler", "queues": [{"name": "default"}, {"name": "other"}],
        "settings": {"kube_scheduler": settings},
    }  # fmt: skip
    return {"now": NOW, "configuration": configuration, "state": state, "asks": asks, **more}


def loaded_of(body: Json) -> Loaded:
    wanted = msgspec.convert(body, DecisionRequest)
    assert not isinstance(wanted.configuration, str | None)
    return solve.load(solve.configure(wanted.configuration), wanted.state)


def decided(body: Json, loaded: Loaded | None = None) -> Answer:
    """``loaded``: the state that is meant, where it is not that of the request."""
    wanted = msgspec.convert(body, DecisionRequest)
    assert wanted.now is not None
    assert wanted.asks != "pending"
    if loaded is None:
        loaded = loaded_of(body)
    asked = Question(micros(wanted.now), list(wanted.asks), wanted.mode, wanted.options, wanted.explain)
    return solve.decide(loaded, asked)


def told(answer: Answer, at: int = 0) -> tuple[str, str | None, list[str]]:
    """Outcome, node and victims."""
    of = answer.decisions[at]
    return of.outcome, of.node, [victim.task or "" for victim in of.victims]


def protected(body: Json, asked: Json) -> Json:
    """What preemptibility says of each workload, for an ask."""
    wanted = msgspec.convert(body, DecisionRequest)
    assert isinstance(wanted.configuration, Configuration)
    loaded = solve.load(solve.configure(wanted.configuration), wanted.state)
    question = ProtectionQuestion(micros(datetime.fromisoformat(NOW)), [], ask=msgspec.convert(asked, Ask))
    return solve.preemptibility(loaded, question)["workloads"]
