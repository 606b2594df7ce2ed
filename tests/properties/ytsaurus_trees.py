"""Random YTsaurus pool trees for the laws, and fair shares worked out the slow way."""

import random
from dataclasses import dataclass
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


@dataclass
class Element:
    """A pool or operation for the slow way: shares as lists, by resource."""

    name: str
    weight: float
    limits: list[float]
    strong: list[float]
    usage: list[float]
    gap: list[float]
    children: list["Element"]
    fifo: bool = False

    @property
    def is_operation(self) -> bool:
        return not self.children and bool(self.usage)

    @property
    def tolerance(self) -> float:
        """Grows with the height, so that no element is refused for the rounding of those below it."""
        return max((child.tolerance for child in self.children), default=1e-14) * 30


def taken(element: Element, suggestion: float) -> list[float]:
    """What ``element`` takes of a suggestion: G at the largest fit factor that limits and suggestion let through."""
    return _inner(element, _fit(element, suggestion))


def divided(root: Element) -> dict[str, list[float]]:
    """Fair shares by name, top-down from the whole cluster."""
    out: dict[str, list[float]] = {}

    def walk(element: Element, suggestion: float) -> None:
        fit = _fit(element, suggestion)
        out[element.name] = _inner(element, fit)
        for child, handed in zip(element.children, _handed(element, fit), strict=True):
            walk(child, handed)

    walk(root, 1.0)
    return out


def _fit(element: Element, suggestion: float) -> float:
    start = _inner(element, 0.0)
    bound = [max(low, most) for low, most in zip(start, _bound(element, suggestion), strict=True)]
    if element.is_operation:
        return _operation_fit(element, bound)
    low, high = 0.0, float(len(element.children) if element.fifo else 1)
    if _fits(element, high, bound):
        return high
    for _ in range(42):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(element, middle, bound) else (low, middle)
    return low


def _bound(element: Element, suggestion: float) -> list[float]:
    """At a plateau that the suggestion just reaches the smaller end counts; at one that a limit sets, the larger."""
    near = element.tolerance
    if suggestion == 0:
        return [min(limit, strong) + near for limit, strong in zip(element.limits, element.strong, strict=True)]
    return [
        limit + near if strong + suggestion > limit + near else strong + suggestion - near
        for limit, strong in zip(element.limits, element.strong, strict=True)
    ]


def _fits(element: Element, fit: float, bound: list[float]) -> bool:
    return all(value <= most for value, most in zip(_inner(element, fit), bound, strict=True))


def _operation_fit(element: Element, bound: list[float]) -> float:
    over = [most for used, most in zip(element.usage, bound, strict=True) if used > most]
    if over:
        return min(over) / max(element.usage)
    rest = [(most - used) / gap for used, gap, most in zip(element.usage, element.gap, bound, strict=True) if gap > 0]
    return min([2.0, *(1 + part for part in rest)])


def _inner(element: Element, fit: float) -> list[float]:
    if element.is_operation:
        most = max(element.usage)
        if fit <= 1:
            return [min(used, fit * most) for used in element.usage]
        return [used + gap * (fit - 1) for used, gap in zip(element.usage, element.gap, strict=True)]
    parts = [taken(child, handed) for child, handed in zip(element.children, _handed(element, fit), strict=True)]
    return [sum(part[r] for part in parts) for r in range(len(element.limits))]


def _handed(element: Element, fit: float) -> list[float]:
    if element.fifo:
        return [min(max(fit - i, 0.0), 1.0) for i in range(len(element.children))]
    smallest = min((child.weight for child in element.children), default=1.0)
    return [min(1.0, fit * child.weight / smallest) for child in element.children]
