"""Random pool trees of round numbers: full clusters, limits and gangs that are met exactly."""

import random
from typing import Any

Json = dict[str, Any]
RESOURCES = ("user_slots", "cpu", "memory", "gpu")


def round_tree(rng: random.Random, *, gangs: bool = False, integral: bool = False) -> Json:
    """A request body for ``POST /v1/shares``."""
    resources = RESOURCES[: rng.choice((2, 3, 4))]
    capacity = {r: rng.choice((8, 10, 12, 16, 20, 40, 48, 100)) for r in resources}
    nodes = [
        {"name": f"n{i}", "capacity": {r: amount * rng.choice((1, 1, 2)) for r, amount in capacity.items()}}
        for i in range(rng.choice((1, 2, 3)))
    ]
    total = {r: sum(node["capacity"][r] for node in nodes) for r in resources}
    queues: list[Json] = []
    leaves: list[str] = []
    for i in range(rng.randint(1, 4)):
        _pool(rng, f"p{i}", None, rng.choice((1, 2, 3)), total, queues, leaves)
    state: Json = {"nodes": nodes, "workloads": []}
    if integral:
        state["queues"] = _integral(rng, queues, total)
    asks: list[Json] = []
    for i in range(rng.randint(1, 7)):
        operation, pending = _operation(rng, f"o{i}", rng.choice(leaves), total, gangs=gangs)
        state["workloads"].append(operation)
        asks += pending
    settings: Json = {}
    if rng.random() < 0.2:
        settings["infer_weight_from_guarantees_share_multiplier"] = rng.choice((1, 3, 10))
    if gangs:
        settings["enable_step_function_for_gang_operations"] = True
        settings["enable_improved_fair_share_by_fit_factor_computation"] = rng.random() < 0.5
    return {
        "engine": "ytsaurus", "now": "2026-01-01T12:00:00Z", "state": state, "asks": asks,
        "configuration": {"settings": {"ytsaurus": settings}, "queues": queues},
    }  # fmt: skip


def _pool(
    rng: random.Random, name: str, parent: str | None, depth: int, total: Json, queues: list[Json], leaves: list[str]
) -> None:
    pool: Json = {"name": name} | ({} if parent is None else {"parent": parent})
    if rng.random() < 0.5:
        pool["weight"] = rng.choice((1, 1, 2, 3, 4, 0.5, 10))
    quota: Json = {}
    if rng.random() < 0.4:
        quota["cpu"] = {"guaranteed": round(total["cpu"] * rng.choice((0.1, 0.2, 0.25, 0.5)) / (4 if parent else 1), 2)}
    if rng.random() < 0.3:
        resource = rng.choice(list(total))
        part = rng.choice((0.1, 0.2, 0.25, 0.3, 0.5, 0.6))
        quota.setdefault(resource, {})["limit"] = max(1, int(total[resource] * part))
    queues.append(pool | ({"quota": quota} if quota else {}))
    if depth > 1 and rng.random() < 0.5:
        for i in range(rng.randint(1, 3)):
            _pool(rng, f"{name}-{i}", name, depth - 1, total, queues, leaves)
    else:
        if rng.random() < 0.3:
            queues[-1]["ytsaurus"] = {"mode": "fifo"}
        leaves.append(name)


def _integral(rng: random.Random, queues: list[Json], total: Json) -> Json:
    """Makes some pools of the first level integral; what is carried of them."""
    carried: Json = {}
    for pool in queues:
        if "parent" not in pool and rng.random() < 0.6:
            kind = rng.choice(("burst", "relaxed"))
            block = {"guarantee_type": kind, "resource_flow": {"cpu": round(total["cpu"] * rng.choice((0.1, 0.25)), 2)}}
            if kind == "burst":
                block["burst_guarantee_resources"] = {"cpu": round(total["cpu"] * rng.choice((0.25, 0.5)), 2)}
            pool["ytsaurus"] = pool.get("ytsaurus", {}) | {"integral_guarantees": block}
            volume = {r: amount * rng.choice((0, 6, 60)) for r, amount in total.items()}
            carried[pool["name"]] = {
                "ytsaurus": {"accumulated_volume": volume, "last_share_ratio": rng.choice((0, 0.05, 0.5))}
            }
    return carried


def _operation(rng: random.Random, name: str, queue: str, total: Json, *, gangs: bool) -> tuple[Json, list[Json]]:
    need = {r: 1 if r == "user_slots" else rng.choice((0, 1, 1, 2, 4)) for r in total}
    operation: Json = {"id": name, "queue": queue, "tasks": []}
    if rng.random() < 0.4:
        operation["weight"] = rng.choice((1, 2, 3, 0.5))
    if rng.random() < 0.2:
        resource = rng.choice(list(total))
        operation["limit"] = {resource: max(1, int(total[resource] * rng.choice((0.1, 0.2, 0.25, 0.5))))}
    if rng.random() < 0.5:
        times = rng.choice((1, 2, 4, 5, 10))
        usage = {r: min(amount * times, total[r]) for r, amount in need.items()}
        operation["tasks"] = [{"name": "usage", "requests": usage}]
    if gangs and rng.random() < 0.6:
        operation["ytsaurus"] = {"is_gang": True}
    if rng.random() < 0.15:
        return operation, []
    task = {"name": "next", "count": rng.choice((1, 2, 5, 10, 20, 40, 100)), "requests": need}
    return operation, [{"id": f"{name}-next", "workload": name, "queue": queue, "tasks": [task]}]
