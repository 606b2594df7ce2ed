"""The measurements: cold, resident, deltas, throughput, growth. Every figure is a ratio to J of the same run."""

import itertools
import json
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks import inputs
from benchmarks.inputs import Input
from benchmarks.service import Client

_COLD_RUNS = 40
_COLD_LEAST = 5
_COLD_SECONDS = 8.0
_OF_A_TURN = 5
_J_OF_A_TURN = 2
_WARM_UP = 20
_RESIDENT_RUNS = 200
_SMALL_TURNS = 30
_SMALL_OF_A_TURN = 25
_RESIDENT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Figure:
    """``ratio`` = ``seconds`` / ``j``; ``stages``: milliseconds by stage as the service counts them."""

    name: str
    seconds: float
    j: float
    stages: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def ratio(self) -> float:
        return self.seconds / self.j


def cold(client: Client, item: Input) -> Figure:
    """The whole request with its state in the body, over loopback HTTP: the best of a few, none sent before."""
    return _in_turns(client, item, item.never_seen())


def again(client: Client, item: Input) -> Figure:
    """The same by a plain client that sends the same configuration each time: the best of a few."""
    return _in_turns(client, item, itertools.repeat(item.body))


def _in_turns(client: Client, item: Input, bodies: Iterable[bytes]) -> Figure:
    """The best request and the best J, a few of each in turns: a machine changes its pace within seconds, and with J
    measured before and after, one of both would meet the better pace alone."""
    best = j = float("inf")
    stages: dict[str, float] = {}
    end = time.monotonic() + _COLD_SECONDS
    for i, body in zip(range(_COLD_RUNS), bodies, strict=False):
        if i >= _COLD_LEAST and time.monotonic() > end:
            break
        if i % _OF_A_TURN == 0:
            j = min(j, item.j(_J_OF_A_TURN))
        answer, seconds = client.ask("/v1/decisions", body)
        if seconds < best:
            best, stages = seconds, answer["stats"]
    return Figure(item.name, best, j, stages)


def resident(client: Client, item: Input, asked: Callable[[bytes], Iterable[bytes]] = itertools.repeat) -> Figure:
    """The same decision on a kept snapshot, or what ``asked`` makes of it: the median after warming up."""
    j = item.j()
    bodies = iter(asked(keep(client, item, item.name)))
    taken: list[float] = []
    end = time.monotonic() + _RESIDENT_SECONDS
    stages: dict[str, float] = {}
    for i, body in zip(range(_WARM_UP + _RESIDENT_RUNS), bodies, strict=False):
        answer, seconds = client.ask("/v1/decisions", body)
        stages = answer["stats"]
        if i >= _WARM_UP or time.monotonic() > end:
            taken.append(seconds)
        if time.monotonic() > end and len(taken) > 2:
            break
    client.ask(f"/v1/snapshots/{item.name}", b"", "DELETE")
    return Figure(item.name, statistics.median(taken), min(j, item.j()), stages)


def keep(client: Client, item: Input, name: str) -> bytes:
    """Store the configuration and put the state as snapshot ``name``; the body of a decision that uses both."""
    configuration = item.request["configuration"]
    engine = item.request.get("engine") or configuration.get("engine")
    status, data, _ = client.send(
        "PUT", f"/v1/configurations/{name}", json.dumps({**configuration, "engine": engine}).encode()
    )
    if status not in (200, 201, 428):
        raise RuntimeError(f"configuration {name}: {status} {data[:300]!r}")
    put = {"configuration": name, "engine": engine, "state": item.request["state"]}
    client.ask(f"/v1/snapshots/{name}", json.dumps(put).encode(), "PUT")
    return json.dumps({**item.request, "configuration": name, "state": {"snapshot": name}}).encode()


def delta(client: Client, item: Input, changed: int = 100) -> Figure:
    """A delta that changes ``changed`` workloads: the median of a few."""
    j = item.j()
    keep(client, item, item.name)
    generation = client.ask(f"/v1/snapshots/{item.name}", b"", "GET")[0]["generation"]
    workloads: list[dict[str, Any]] = item.request["state"]["workloads"]
    taken: list[float] = []
    for i in range(20):
        some = [{**w, "priority": i} for w in workloads[i * changed : (i + 1) * changed]]
        body = json.dumps({"generation": generation + i, "workloads": {"change": some}}).encode()
        taken.append(client.ask(f"/v1/snapshots/{item.name}/deltas", body)[1])
    client.ask(f"/v1/snapshots/{item.name}", b"", "DELETE")
    return Figure(f"delta of {changed} on {item.name}", statistics.median(taken), min(j, item.j()))


def throughput(port: int, item: Input, connections: int, seconds: float = 4.0, snapshots: int = 4) -> float:
    """Decisions a second over ``connections`` kept-alive connections, on ``snapshots`` resident copies."""
    bodies = [keep(Client(port), item, f"throughput-{i}") for i in range(snapshots)]
    counts = [0] * connections
    end = time.monotonic() + seconds

    def run(number: int) -> None:
        client = Client(port)
        while time.monotonic() < end:
            client.send("POST", "/v1/decisions", bodies[number % snapshots])
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(i,)) for i in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def growth(client: Client, sizes: tuple[int, ...]) -> tuple[list[Figure], float]:
    """Cold figures by number of workloads, and the exponent of cost: seconds ~ size ** exponent."""
    figures = [cold(client, inputs.kueue(size, max(10, size // 50))) for size in sizes]
    xs = [math.log(size) for size in sizes]
    ys = [math.log(figure.seconds) for figure in figures]
    slope = statistics.linear_regression(xs, ys).slope
    return figures, slope


@dataclass(frozen=True, slots=True)
class Small:
    """Seconds over loopback, in one run: of ``/healthz``, which does nothing else, and of a small, logged decision."""

    health: float
    median: float
    tail: float


def small(client: Client, body: bytes) -> Small:
    """Medians, and the 99th percentile of the decision. In turns, so that whatever slows the machine slows both."""
    health: list[float] = []
    decisions: list[float] = []
    for turn in range(_SMALL_TURNS):
        for _ in range(_SMALL_OF_A_TURN):
            client.send("GET", "/healthz")
        health += [client.send("GET", "/healthz")[2] for _ in range(_SMALL_OF_A_TURN)]
        for _ in range(_SMALL_OF_A_TURN):
            client.send("POST", "/v1/decisions", body)
        taken = [client.send("POST", "/v1/decisions", body)[2] for _ in range(4 * _SMALL_OF_A_TURN)]
        if turn:
            decisions += taken
    decisions.sort()
    return Small(statistics.median(health), statistics.median(decisions), decisions[len(decisions) * 99 // 100])
