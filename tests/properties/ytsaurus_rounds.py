"""Rounds of YTsaurus on loaded clusters: fair shares, starvation, heartbeats, and what they start and stop is done."""

import copy
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from app.solver.engines.ytsaurus.answer import after_shares
from tests.unit.solver.engines.ytsaurus.cluster import at, decide, shares

Json = dict[str, Any]
Place = tuple[str, str]
"""Operation and node."""
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_STEP = timedelta(seconds=200)
"""Longer than every timeout: whoever is below its fair share for two updates starves, aggressively where it may."""


def loaded(rng: random.Random, *, resources: tuple[str, ...] = ("cpu",), **settings: Any) -> Json:
    """A body: up to two levels of pools, nodes full of allocations, every operation wants more; one shape for each."""
    queues: list[Json] = []
    leaves: list[str] = []
    for i in range(rng.randint(1, 3)):
        queues.append({"name": f"p{i}", "weight": rng.choice((1, 1, 2))} | _guaranteed(rng))
        if rng.random() < 0.3:
            below = [f"p{i}-{j}" for j in range(2)]
            queues += [{"name": name, "parent": f"p{i}"} | _guaranteed(rng) for name in below]
            leaves += below
        else:
            leaves.append(f"p{i}")
    operations: list[Json] = [
        {"id": f"op{i}", "queue": rng.choice(leaves), "created_at": at(i), "weight": rng.choice((1, 1, 3)), "tasks": []}
        for i in range(rng.randint(2, 4))
    ]
    needs = {one["id"]: {"user_slots": 1} | {r: rng.randint(1, 3) for r in resources} for one in operations}
    nodes = [
        {"name": f"n{i}", "capacity": {"user_slots": 100} | {r: rng.randint(3, 10) for r in resources}}
        for i in range(rng.randint(1, 3))
    ]
    age = 0
    for node in nodes:
        free = dict(node["capacity"])
        for _ in range(20):
            one = rng.choice(operations[: rng.choice((1, 2, 4))])
            need = needs[one["id"]]
            if all(need[r] <= free[r] for r in need):
                free = {r: free[r] - need.get(r, 0) for r in free}
                task = {"name": f"{one['id']}-{age}", "node": node["name"], "requests": need, "started_at": at(age)}
                one["tasks"].append(task)
                age += 1
    asks = [
        {
            "id": f"{one['id']}-next", "workload": one["id"], "queue": one["queue"],
            "tasks": [{"name": "next", "count": rng.randint(0, 6), "requests": needs[one["id"]]}],
        }
        for one in operations
    ]  # fmt: skip
    return {
        "engine": "ytsaurus",
        "configuration": {"settings": {"ytsaurus": settings}, "queues": queues},
        "state": {"nodes": nodes, "workloads": operations},
        "asks": asks,
    }


def _guaranteed(rng: random.Random) -> Json:
    return {"quota": {"cpu": {"guaranteed": rng.randint(1, 6)}}} if rng.random() < 0.5 else {}


@dataclass
class Rounds:
    """A cluster in time. ``play`` lets rounds pass until nothing changes, or everything has been like this before."""

    body: Json
    now: datetime = _NOON
    history: list[list[tuple[Place, Place | None]]] = field(default_factory=list)
    """By round its evictions: victim, and for whom (None: nobody)."""

    def play(self, most: int = 60) -> list[list[tuple[Place, Place | None]]]:
        """The evictions of the rounds that come again and again; none where it comes to rest. Raises after ``most``."""
        seen: dict[str, int] = {}
        for number in range(most):
            looks = self._looks()
            if looks in seen:
                return [evictions for evictions in self.history[seen[looks] :] if evictions]
            seen[looks] = number
            self._round()
        raise AssertionError(f"neither at rest nor in a circle after {most} rounds")

    def _looks(self) -> str:
        """Everything that the next rounds depend on, without names of allocations and instants."""
        state = self.body["state"]
        operations = [
            [
                one.get("ytsaurus", {}).get("starvation"),
                "below_fair_share_since" in one.get("ytsaurus", {}),
            ]
            for one in [*state["workloads"], *state.get("queues", {}).values()]
        ]
        every = sorted(
            ((task["started_at"], one["id"], task["node"]) for one in state["workloads"] for task in one["tasks"]),
            key=lambda task: task[0],
        )
        waiting = [one["tasks"][0]["count"] for one in self.body["asks"]]
        return repr((operations, [task[1:] for task in every], waiting))

    def _round(self) -> None:
        for _ in range(2):
            self.now += _STEP
            self.body["now"] = self.now.isoformat()
            self.body["state"] = after_shares(self.body["state"], shares(self.body))
        answer = decide(self.body, None)
        asks = {one["id"]: one for one in self.body["asks"]}
        waiting = {one["workload"]: one["tasks"][0] for one in self.body["asks"]}
        state = copy.deepcopy(self.body["state"])
        for node in state["nodes"]:
            if left := answer["notes"]["nodes"].get(node["name"]):
                node["ytsaurus"] = {key: value for key, value in left.items() if value is not None}
        running = {one["id"]: one for one in state["workloads"]}
        gone: list[tuple[Place, Place | None]] = []
        placed = {p["ask"]: p["node"] for p in answer["plan"]["placements"]}
        for eviction in answer["plan"]["evictions"]:
            identity = eviction["workload"]
            running[identity]["tasks"] = [t for t in running[identity]["tasks"] if t["name"] != eviction["task"]]
            waiting[identity]["count"] += 1
            ask = eviction.get("for_ask")
            for_whom = None if ask is None else (asks[ask]["workload"], placed[ask])
            gone.append(((identity, eviction["node"]), for_whom))
        for number, placement in enumerate(answer["plan"]["placements"]):
            task = asks[placement["ask"]]["tasks"][0]
            task["count"] -= 1
            one = running[asks[placement["ask"]]["workload"]]
            started = self.now + timedelta(microseconds=number)
            name = f"{one['id']}-{started:%H%M%S%f}"
            one["tasks"].append(
                {
                    "name": name,
                    "node": placement["node"],
                    "requests": task["requests"],
                    "started_at": started.isoformat(),
                }
            )
        self.body["state"] = state
        self.history.append(gone)
