"""Small pool trees for tests: requests as JSON, and the four questions asked in process."""

import json
from typing import Any

import msgspec

from app.solver import solve
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import (
    DecisionRequest,
    EffectiveSettingsRequest,
    PreemptibilityRequest,
    SharesRequest,
)
from app.solver.question import ProtectionQuestion, Question

Json = dict[str, Any]
NOW = "2026-01-01T12:00:00Z"


def at(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def node(name: str = "n", cpu: Any = 10, **more: Any) -> Json:
    return {"name": name, "capacity": {"user_slots": 100, "cpu": cpu}} | more


def pool(name: str, **more: Any) -> Json:
    return {"name": name} | more


def alloc(name: str, second: int = 0, cpu: Any = 1, on: str | None = "n", **more: Any) -> Json:
    task = {"name": name, "requests": {"user_slots": 1, "cpu": cpu}, "started_at": at(second)}
    return task | ({"node": on} if on else {}) | more


def operation(name: str, queue: str, tasks: list[Json] | None = None, **more: Any) -> Json:
    return {"id": name, "queue": queue, "created_at": at(0), "tasks": tasks or []} | more


def ask(of: str, queue: str, count: int = 1, cpu: Any = 1, **more: Any) -> Json:
    task = {"name": "next", "count": count, "requests": {"user_slots": 1, "cpu": cpu}}
    return {"id": f"{of}-next", "workload": of, "queue": queue, "tasks": [task]} | more


def request(
    pools: list[Json], nodes: list[Json], operations: list[Json], asks: list[Json] | None = None,
    settings: Json | None = None, **more: Any,
) -> Json:  # fmt: skip
    return {
        "engine": "ytsaurus",
        "now": NOW,
        "configuration": {"settings": {"ytsaurus": {"rules": "shipped"} | (settings or {})}, "queues": pools},
        "state": {"nodes": nodes, "workloads": operations} | more.pop("state", {}),
        "asks": asks or [],
    } | more


def _loaded(asked: Any) -> solve.Loaded:
    assert isinstance(asked.configuration, Configuration)
    return solve.load(solve.configure(asked.configuration, asked.engine), asked.state)


def situated(body: Json) -> Situation:
    """Its elements with all that waits."""
    asked = msgspec.convert(_without_options(body), SharesRequest)
    assert not isinstance(asked.asks, str)
    return situate(_loaded(asked).compiled, asked.asks)


def _plain(answer: Any) -> Any:
    return json.loads(msgspec.json.encode(answer))


def decide(body: Json, node: str | None = "n", **more: Any) -> Json:
    """The answer in mode cycle, to the heartbeat of ``node`` (None: all)."""
    options = {} if node is None else {"options": {"ytsaurus": {"heartbeat_node": node}}}
    asked = msgspec.convert({"mode": "cycle"} | body | options | more, DecisionRequest)
    now = micros(asked.now) if asked.now else 0
    return _plain(solve.decide(_loaded(asked), Question(now, asked.asks, asked.mode, asked.options, asked.explain)))


def _without_options(body: Json) -> Json:
    return {key: value for key, value in body.items() if key not in ("mode", "options")}


def shares(body: Json, **more: Any) -> Json:
    asked = msgspec.convert(_without_options(body) | more, SharesRequest)
    return _plain(solve.shares(_loaded(asked), asked.asks, micros(asked.now) if asked.now else 0, asked.options))


def preemptibility(body: Json, **more: Any) -> Json:
    asked = msgspec.convert(
        {k: v for k, v in (body | more).items() if k not in ("mode", "options")}, PreemptibilityRequest
    )
    question = ProtectionQuestion(0, asked.asks, asked.ask, asked.action, asked.evict)
    return _plain(solve.preemptibility(_loaded(asked), question))


def effective(body: Json) -> Json:
    kept = {k: body[k] for k in ("engine", "configuration", "state")}
    asked = msgspec.convert(kept, EffectiveSettingsRequest)
    assert isinstance(asked.configuration, Configuration)
    return _plain(solve.effective_settings(solve.configure(asked.configuration, asked.engine), asked.state))


def groups(body: Json, of: str) -> dict[str, str]:
    """Preemptibility by allocation of one operation."""
    return {name: task["preemptibility"] for name, task in preemptibility(body)["workloads"][of]["tasks"].items()}


def evicted(answer: Json) -> list[tuple[str, str]]:
    return [(e["task"], e["reason"]) for e in answer["plan"]["evictions"]]


def started(answer: Json) -> list[tuple[str, str, str]]:
    return [(p["ask"], p["node"], p["stage"]) for p in answer["plan"]["placements"]]


def refused(body: Json, ask_it: Any = shares) -> dict[str, str]:
    """Details by pointer of a request that must be refused."""
    try:
        ask_it(body)
    except InvalidInput as invalid:
        return {problem.pointer: problem.detail for problem in invalid.problems}
    raise AssertionError("not refused")
