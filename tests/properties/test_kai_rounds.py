"""A run through KAI comes to the same whether or not anybody hears of its rounds, although much is spared then."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.simulations.schemas import SimulationRequest
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import Told, play, request_for, unheard, without_hopeless

Json = dict[str, Any]
NAMES = ("cpu", "gpu")


def _quota(random: Random) -> Json:
    cells: Json = {}
    for resource in NAMES:
        cell: Json = {"guaranteed": random.choice([0, 2, 4, 8]), "weight": random.choice([0, 1, 1, 3])}
        if random.random() < 0.2:
            cell["limit"] = cell["guaranteed"] + random.randint(1, 8)
        cells[resource] = cell
    return cells


def _queues(random: Random) -> list[Json]:
    """A root, and queues below it and below some of those."""
    queues: list[Json] = [{"name": "root", "quota": {name: {"guaranteed": 16} for name in NAMES}}]
    parents = {"a": "root", "b": "root", "c": "root", "d": random.choice(["root", "a"]), "e": random.choice("ab")}
    for name, parent in parents.items():
        runtimes = {"reclaim_min_runtime": "40s", "preempt_min_runtime": "15s"}
        kai = {field: length for field, length in runtimes.items() if random.random() < 0.2}
        queue: Json = {"name": name, "parent": parent, "priority": random.choice([0, 0, 1]), "kai": kai}
        queues.append(queue | {"quota": _quota(random)})
    return queues


def _job(random: Random, i: int, leaves: list[str], *, shares: bool, constraints: bool) -> Json:
    count = random.choice([1, 1, 1, 2, 3, 4])
    gpu = random.choice([0, 0.5, 0.3, 1, 2] if shares else [0, 1, 1, 2])
    task: Json = {"name": "t", "count": count, "requests": {"cpu": random.randint(0 if gpu else 1, 2), "gpu": gpu}}
    if constraints and random.random() < 0.4:
        task["node_selector"] = {"zone": random.choice("xy")}
    ask: Json = {
        "id": f"j{i}", "queue": random.choice(leaves), "priority": random.randint(0, 2),
        "preemptible": random.random() < 0.7, "tasks": [task],
    }  # fmt: skip
    if random.random() < 0.6:
        ask["min_available"] = random.choice([1, count])
    if random.random() < 0.2:
        ask["preemption_delay"] = random.choice(["3s", "30s"])
    job: Json = {"ask": ask, "submitted_at": random.randint(0, 60), "duration": random.randint(1, 90)}
    return job | ({"checkpoint": {"every": 10}} if random.random() < 0.5 else {})


def run_of(seed: int) -> SimulationRequest:
    """Jobs of all sizes in each other's way, under both releases and sets of rules."""
    random = Random(seed)
    queues = _queues(random)
    leaves = sorted({queue["name"] for queue in queues} - {queue.get("parent") for queue in queues})
    settings: Json = {
        "release": random.choice(["0.13", "0.17"]), "rules": random.choice(["shipped", "documented"]),
        "use_scheduling_signatures": random.random() < 0.5,
    }  # fmt: skip
    if random.random() < 0.3:
        settings["max_consolidation_preemptees"] = random.randint(0, 2)
    if random.random() < 0.2:
        settings["actions"] = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
    shares, constraints = random.random() < 0.3, random.random() < 0.4
    nodes = [
        {"name": f"n{i}", "labels": {"zone": "xy"[i % 2]}, "capacity": {"cpu": 6, "gpu": random.choice([0, 2, 4, 4])}}
        for i in range(random.randint(2, 4))
    ]
    number = random.randint(6, 24)
    jobs = [_job(random, i, leaves, shares=shares, constraints=constraints) for i in range(number)]
    return request_for(
        {"engine": "kai", "queues": queues, "settings": {"kai": settings}}, jobs, state={"nodes": nodes},
        grace=random.choice([0, 1, 7]), round_every=random.choice([1, 3]), until=300,
    )  # fmt: skip


@given(seed=st.integers(0, 2**32))
@examples(60)
def test_a_round_that_nobody_hears_of_comes_to_the_same(met: Met, seed: int) -> None:
    run = without_hopeless(run_of(seed))
    heard = play(run)
    assert _told(unheard(run)) == _told(heard)
    met(event for event in heard.events if event.kind == "evicted")


def _told(told: Told) -> bytes:
    return msgspec.json.encode([told.events, told.jobs, told.summary])
