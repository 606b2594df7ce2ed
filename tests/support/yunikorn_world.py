"""Small YuniKorn clusters for tests: requests as the wire has them, answered in process, over several rounds."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.solver import solve
from app.solver.engines.yunikorn.state import CompiledState, compile_state
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding
from app.solver.model.request import DecisionRequest, PreemptibilityRequest, SharesRequest
from app.solver.model.state import State
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import Configured

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
Json = dict[str, Any]


def ago(seconds: float, now: datetime = START) -> str:
    """The instant ``seconds`` before ``now``, as the wire has it."""
    return (now - timedelta(seconds=seconds)).isoformat()


def queue(name: str, quota: Json | None = None, **block: Any) -> Json:
    """A queue by its path. ``quota``: resource -> guaranteed, or (guaranteed, limit); ``block``: properties (with _
    for .), and ``parent``, ``dynamic``, ``child_template``, ``max_applications``, ``limits``."""
    out: Json = {"name": name}
    if "." in name:
        out["parent"] = name.rpartition(".")[0]
    if quota:
        out["quota"] = {r: _quota(value) for r, value in quota.items()}
    own = {k: block.pop(k) for k in _OWN if k in block}
    if block:
        own["properties"] = {name.replace("_", "."): value for name, value in block.items()}
    if own:
        out["yunikorn"] = own
    return out


_OWN = ("parent", "dynamic", "child_template", "max_applications", "limits")


def grouped(of: Json) -> Json:
    """The queue with its quota written as resource groups."""
    if "quota" not in of:
        return of
    group = {"resources": list(of["quota"]), "flavors": [{"name": "only", "quota": of["quota"]}]}
    return {k: v for k, v in of.items() if k != "quota"} | {"resource_groups": [group]}


def _quota(value: Any) -> Json:
    guaranteed, limit = value if isinstance(value, tuple) else (value, None)
    return {k: v for k, v in (("guaranteed", guaranteed), ("limit", limit)) if v is not None}


def task(name: str, node: str | None, requests: Json, age: float = 3600, **more: Any) -> Json:
    """A running task that is ``age`` seconds old."""
    return {"name": name, "node": node, "requests": requests, "created_at": ago(age), **more}


def app(name: str, queue_name: str, *tasks: Json, **more: Any) -> Json:
    """An application with its running tasks."""
    return {"id": name, "queue": queue_name, "created_at": ago(7200), "tasks": list(tasks), **more}


def ask(name: str, queue_name: str, requests: Json, age: float = 60, **more: Any) -> Json:
    """One pending pod, ``age`` seconds old."""
    return {
        "id": name, "queue": queue_name, "created_at": ago(age), "tasks": [{"name": name, "requests": requests}], **more
    }  # fmt: skip


def node(name: str, capacity: Json, **more: Any) -> Json:
    """A node."""
    return {"name": name, "capacity": capacity, **more}


@dataclass
class World:
    """A cluster between requests. ``decide`` asks one question; ``advance`` carries the answer out."""

    queues: list[Json]
    nodes: list[Json]
    workloads: list[Json]
    rules: str = "documented"
    reservations: list[Json] = field(default_factory=list)
    now: datetime = START
    settings: Json = field(default_factory=dict)

    @property
    def configuration(self) -> Json:
        settings = {"yunikorn": {"rules": self.rules, **self.settings}}
        return {"engine": "yunikorn", "settings": settings, "queues": self.queues}

    @property
    def state(self) -> Json:
        return {"nodes": self.nodes, "workloads": self.workloads, "reservations": self.reservations}

    def body(self, *asks: Json, **more: Any) -> Json:
        return {
            "now": self.now.isoformat(), "configuration": self.configuration, "state": self.state, "asks": list(asks)
        } | more  # fmt: skip

    def decide(self, *asks: Json, **more: Any) -> Json:
        """The answer of ``POST /v1/decisions``."""
        request = msgspec.json.decode(json.dumps(self.body(*asks, **more)), type=DecisionRequest)
        assert request.now is not None
        assert isinstance(request.configuration, Configuration)
        loaded = solve.load(solve.configure(request.configuration), request.state)
        question = Question(micros(request.now), request.asks, request.mode, request.options, request.explain)
        return json.loads(msgspec.json.encode(solve.decide(loaded, question)))

    def one(self, wanted: Json, **more: Any) -> Json:
        """The decision of a single ask."""
        return self.decide(wanted, **more)["decisions"][0]

    def shares(self, *asks: Json) -> Json:
        """The answer of ``POST /v1/shares``."""
        request = msgspec.json.decode(json.dumps(self.body(*asks)), type=SharesRequest)
        assert isinstance(request.configuration, Configuration)
        loaded = solve.load(solve.configure(request.configuration), request.state)
        return json.loads(msgspec.json.encode(solve.shares(loaded, request.asks, micros(self.now))))

    def preemptibility(self, wanted: Json | None = None, evict: list[Json] | None = None) -> Json:
        """The answer of ``POST /v1/preemptibility``."""
        more = {k: v for k, v in (("ask", wanted), ("evict", evict)) if v is not None}
        request = msgspec.json.decode(json.dumps(self.body() | more), type=PreemptibilityRequest)
        assert isinstance(request.configuration, Configuration)
        loaded = solve.load(solve.configure(request.configuration), request.state)
        question = ProtectionQuestion(micros(self.now), request.asks, request.ask, request.action, request.evict)
        return json.loads(msgspec.json.encode(solve.preemptibility(loaded, question)))

    def configured(self) -> Configured:
        """Its configuration, compiled."""
        return solve.configure(msgspec.convert(self.configuration, Configuration))

    def compiled(self) -> CompiledState:
        """Its state, compiled."""
        return compile_state(self.configured().compiled, msgspec.convert(self.state, State))

    def findings(self) -> list[Finding]:
        """What an administrator is told."""
        return solve.findings(msgspec.convert(self.configuration, Configuration))

    def effective(self) -> Json:
        """The answer of ``POST /v1/effective-settings``, by queue."""
        return json.loads(msgspec.json.encode(solve.effective_settings(self.configured(), None)))["queues"]

    def advance(self, asks: list[Json], answer: Json) -> list[Json]:
        """Carry the answer out and let a minute pass: evicted pods are gone and come back as pending asks of their
        application, admitted ones run, the others wait on. Returns the asks of the next round."""
        notes = answer["notes"]["asks"]
        self.now += timedelta(minutes=1)
        back = [self._evict(eviction) for eviction in answer["plan"]["evictions"]]
        waiting: list[Json] = []
        for decision, wanted in zip(answer["decisions"], asks, strict=True):
            carried = wanted | {"yunikorn": notes[wanted["id"]]}
            if decision["outcome"] == "admit":
                self._start(wanted, decision["node"])
            else:
                waiting.append(carried)
            if decision["outcome"] != "wait":
                self.reservations = [held for held in self.reservations if held["ask"]["id"] != wanted["id"]]
            if decision["outcome"] == "preempt":
                self.reservations.append({"node": decision["node"], "ask": carried})
        return waiting + back

    def settle(self, asks: list[Json], rounds: int) -> tuple[list[Json], list[list[tuple[str, str]]]]:
        """Rounds until nothing changes: the asks left, and who was evicted in each round. Raises after ``rounds``."""
        history: list[list[tuple[str, str]]] = []
        for _ in range(rounds):
            before = json.dumps([self.workloads, sorted(one["id"] for one in asks)], sort_keys=True)
            answer = self.decide(*asks, mode="cycle")
            history.append([(e["workload"], e["task"]) for e in answer["plan"]["evictions"]])
            asks = self.advance(asks, answer)
            if before == json.dumps([self.workloads, sorted(one["id"] for one in asks)], sort_keys=True):
                return asks, history
        raise AssertionError(f"still changing after {rounds} rounds: {history}")

    def _evict(self, eviction: Json) -> Json:
        workload = next(w for w in self.workloads if w["id"] == eviction["workload"])
        gone = next(t for t in workload["tasks"] if t["name"] == eviction["task"])
        workload["tasks"] = [t for t in workload["tasks"] if t is not gone]
        again = f"{gone['name']}'" if len(gone["name"]) < 40 else gone["name"]
        kept = {k: gone[k] for k in ("priority", "preemptible", "originator") if k in gone}
        return {
            "id": again, "queue": workload["queue"], "workload": workload["id"], "created_at": self.now.isoformat(),
            "tasks": [{"name": again, "requests": gone["requests"]}], **kept,
        }  # fmt: skip

    def _start(self, wanted: Json, at: str) -> None:
        name = wanted.get("workload", wanted["id"])
        running = {
            "name": wanted["tasks"][0]["name"], "node": at, "requests": wanted["tasks"][0]["requests"],
            "created_at": self.now.isoformat(),
        } | {k: wanted[k] for k in ("priority", "preemptible", "originator") if k in wanted}  # fmt: skip
        for workload in self.workloads:
            if workload["id"] == name:
                workload["tasks"] = [*workload["tasks"], running]
                return
        self.workloads.append({"id": name, "queue": wanted["queue"], "tasks": [running]})
