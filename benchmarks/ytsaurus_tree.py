"""A large YTsaurus pool tree, and what its fair share, statuses and heartbeats cost.

``python -m benchmarks.ytsaurus_tree`` times the stages in process, in J: the time of json.loads of the same body in
the same run. ``--url http://host:port`` sends the bodies to a running service as well, ``--write PATH`` saves the
decision request. Budgets: fair share, statuses and one heartbeat at most 3 J; each further heartbeat 0.02 J.
"""

import argparse
import http.client
import json
import random
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.request import DecisionRequest, SharesRequest
from app.solver.question import Question

GIB = 2**30
_NODES = 5_000
_TOP = 20
_MIDDLE = 10
_POOLS = 2_000
_OPERATIONS = 20_000
_ALLOCATIONS = 100_000
_SHAPES = (
    {"user_slots": 1, "cpu": 1, "memory": 2 * GIB},
    {"user_slots": 1, "cpu": 2, "memory": 4 * GIB},
    {"user_slots": 1, "cpu": "500m", "memory": 8 * GIB},
    {"user_slots": 1, "cpu": 4, "memory": 16 * GIB},
    {"user_slots": 1, "cpu": 8, "memory": 64 * GIB},
    {"user_slots": 1, "cpu": 4, "gpu": 1, "memory": 32 * GIB},
)


def tree(seed: int = 1, scale: float = 1.0) -> dict[str, Any]:
    """A decision request: three levels of pools, operations in the lowest, most nodes full. The same seed gives the
    same request; ``scale`` shrinks everything but the shape."""
    chance = random.Random(seed)
    nodes = max(2, int(_NODES * scale))
    queues, leaves = _pools(chance, max(_TOP + _TOP * _MIDDLE + 1, int(_POOLS * scale)), nodes)
    operations = max(2, int(_OPERATIONS * scale))
    workloads = [_operation(chance, i, chance.choice(leaves)) for i in range(operations)]
    room = [[96_000, 512 * GIB, 8 if n % 2 == 0 else 0] for n in range(nodes)]
    asks: list[dict[str, Any]] = []
    for i in range(max(2, int(_ALLOCATIONS * scale))):
        _allocate(chance, i, workloads, room)
    for i, workload in enumerate(workloads):
        if chance.random() < 0.25:
            task = {"name": "next", "count": chance.randint(1, 40), "requests": _SHAPES[i % len(_SHAPES)]}
            asks.append(
                {
                    "id": f"{workload['id']}-next",
                    "workload": workload["id"],
                    "queue": workload["queue"],
                    "tasks": [task],
                }
            )
    return {
        "engine": "ytsaurus",
        "now": "2026-01-01T12:00:00Z",
        "mode": "cycle",
        "configuration": {
            "engine": "ytsaurus",
            "settings": {"ytsaurus": {"rules": "shipped", "enable_aggressive_starvation": True}},
            "queues": queues,
        },
        "state": {
            "nodes": [
                {
                    "name": f"n{n}",
                    "capacity": {"user_slots": 100, "cpu": 96, "memory": 512 * GIB, "gpu": 8 if n % 2 == 0 else 0},
                }
                for n in range(nodes)
            ],
            "workloads": workloads,
            "queues": {q["name"]: {"ytsaurus": {"starvation": "non_starving"}} for q in queues},
        },
        "asks": asks,
        "options": {"ytsaurus": {"heartbeat_node": "n0"}},
    }


def _pools(chance: random.Random, count: int, nodes: int) -> tuple[list[dict[str, Any]], list[str]]:
    queues: list[dict[str, Any]] = [
        {"name": f"t{t}", "weight": chance.choice((1, 1, 2, 5)), "quota": {"cpu": {"guaranteed": 3 * nodes}}}
        for t in range(_TOP)
    ]
    for m in range(_TOP * _MIDDLE):
        parent = f"t{m % _TOP}"
        guaranteed = {"cpu": {"guaranteed": nodes // 8 + 1}} if m % 3 == 0 else None
        queues.append(
            {"name": f"m{m}", "parent": parent, "weight": 1 + m % 4} | ({"quota": guaranteed} if guaranteed else {})
        )
    leaves: list[str] = []
    for p in range(count - len(queues)):
        pool: dict[str, Any] = {
            "name": f"p{p}",
            "parent": f"m{p % (_TOP * _MIDDLE)}",
            "weight": chance.choice((1, 2, 3, 10)),
        }
        if p % 11 == 0:
            pool["ytsaurus"] = {"mode": "fifo"}
        if p % 13 == 0:
            pool["quota"] = {"cpu": {"limit": 40 + p}}
        queues.append(pool)
        leaves.append(pool["name"])
    return queues, leaves


def _operation(chance: random.Random, i: int, pool: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "starvation": chance.choices(("non_starving", "starving", "aggressively_starving"), (80, 15, 5))[0]
    }
    if options["starvation"] != "non_starving":
        options["below_fair_share_since"] = "2026-01-01T11:50:00Z"
    if i % 50 == 0:
        options["preemption_mode"] = "graceful"
    second = chance.randrange(40_000)
    return {
        "id": f"op{i}", "queue": pool, "weight": chance.choice((1, 1, 2, 5)), "created_at": _instant(second),
        "ytsaurus": options, "tasks": [],
    }  # fmt: skip


def _allocate(chance: random.Random, i: int, workloads: list[dict[str, Any]], room: list[list[int]]) -> None:
    """One allocation for some operation (a few have many), on the next node with room for it."""
    operation = int(len(workloads) * chance.random() ** 2)
    shape = _SHAPES[operation % len(_SHAPES)]
    need = (500 if shape["cpu"] == "500m" else 1000 * int(shape["cpu"]), int(shape["memory"]), int(shape.get("gpu", 0)))
    for attempt in range(64):
        node = (i * 7 + attempt * 131) % len(room)
        if all(n <= r for n, r in zip(need, room[node], strict=True)):
            for r, n in enumerate(need):
                room[node][r] -= n
            workloads[operation]["tasks"].append(
                {
                    "name": f"a{i}",
                    "node": f"n{node}",
                    "requests": shape,
                    "started_at": _instant(chance.randrange(40_000)),
                }
            )
            return


def _instant(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def best(times: int, run: Callable[[], object]) -> float:
    """Seconds of the fastest of ``times`` runs."""
    out = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        run()
        out = min(out, time.perf_counter() - begun)
    return out


def in_process(request: dict[str, Any], times: int) -> None:
    """Print what each stage costs."""
    body = json.dumps(request).encode()
    unit = best(times, lambda: json.loads(body))
    decoded = msgspec.json.decode(body, type=DecisionRequest)
    configured = solve.configure(decoded.configuration, decoded.engine)  # pyright: ignore[reportArgumentType]
    loaded = solve.load(configured, decoded.state)
    now = micros(decoded.now) if decoded.now else 0
    assert decoded.asks != "pending"
    asks = decoded.asks
    question = Question(now, asks, decoded.mode, decoded.options)
    everywhere = Question(now, asks, decoded.mode)
    nodes = len(decoded.state.nodes)
    seconds = {
        "decode": best(times, lambda: msgspec.json.decode(body, type=DecisionRequest)),
        "configure": best(times, lambda: solve.configure(decoded.configuration, decoded.engine)),  # pyright: ignore[reportArgumentType]
        "load": best(times, lambda: solve.load(configured, decoded.state)),
        "shares": best(times, lambda: msgspec.json.encode(solve.shares(loaded, asks, now))),
        "one heartbeat": best(times, lambda: msgspec.json.encode(solve.decide(loaded, question))),
        "all heartbeats": best(1, lambda: solve.decide(loaded, everywhere)),
    }
    print(f"body {len(body) / 1e6:.1f} MB, 1 J = {unit * 1e3:.0f} ms")
    for name, value in seconds.items():
        print(f"{name:>15}: {value * 1e3:8.1f} ms {value / unit:7.3f} J")
    further = (seconds["all heartbeats"] - seconds["one heartbeat"]) / (nodes - 1)
    print(f"a further heartbeat: {further * 1e3:.2f} ms {further / unit:.4f} J")


def over_http(request: dict[str, Any], url: str, times: int) -> None:
    """Print what the service takes for shares and for one heartbeat, cold."""
    target = urllib.parse.urlsplit(url)
    decision = json.dumps(request).encode()
    fields = SharesRequest.__struct_fields__
    shares = json.dumps({key: value for key, value in request.items() if key in fields}).encode()
    unit = best(times, lambda: json.loads(decision))
    for path, body in (("/v1/shares", shares), ("/v1/decisions", decision)):
        spent = best(times, lambda path=path, body=body: _post(target.netloc, path, body))
        print(f"{path:>15}: {spent * 1e3:8.1f} ms {spent / unit:7.3f} J")


def _post(host: str, path: str, body: bytes) -> None:
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {text[:300]!r}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--url")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    request = tree(options.seed, options.scale)
    if options.write:
        options.write.write_text(json.dumps(request))
    in_process(request, options.times)
    if options.url:
        over_http(request, options.url, options.times)


if __name__ == "__main__":
    main()
