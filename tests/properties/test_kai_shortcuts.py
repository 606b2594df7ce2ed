"""What spares simulations changes no decision: each shortcut against the search without it."""

import json
from collections.abc import Callable
from datetime import timedelta
from math import ceil
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.engines.kai import chance, search, solver
from app.solver.engines.kai.actions import Cycle
from app.solver.engines.kai.chance import Chance
from app.solver.engines.kai.job_order import Clocks, VictimTable
from app.solver.engines.kai.jobs import PENDING, RELEASING, Share, total
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.queue_order import NOTHING, QueueOrder, Standing
from app.solver.engines.kai.scenario import Headroom, Scenario
from app.solver.engines.kai.solver import Reach, Solver
from app.solver.engines.kai.state import Victim
from app.solver.engines.kai.validators import Protection
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.question import Question
from tests.support.kai_world import ALL_ACTIONS, NOW, Json, Shape, cluster, crowded, decide
from tests.support.profiles import Met, examples

FAST = examples(120)


def _none(*_: object) -> None:
    return None


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


def _step_by_step(standing: Standing, a: int, b: int, taken_a: Share, taken_b: Share) -> bool:
    order: QueueOrder = standing._order  # pyright: ignore[reportPrivateUsage]
    return order.first(a, b, NOTHING, NOTHING, taken_a, taken_b)


def _unknown(clocks: Clocks, overlay: Overlay, _job: int, queue: int, _passes: object) -> tuple[list[int], list[int]]:
    return [], clocks.preemptible(overlay)[queue]


def _look_again(_cycle: Cycle, _key: object, look: Callable[[], object]) -> object:
    return look()


def _everybody(overlay: Overlay, _mark: int) -> set[int]:
    return set(range(len(overlay.jobs.id)))


def _looked_at_anew(table: VictimTable, job: int) -> Victim:
    overlay: Overlay = table._overlay  # pyright: ignore[reportPrivateUsage]
    return table._look(job, overlay.in_order(job), len(overlay.jobs.tasks[job]))  # pyright: ignore[reportPrivateUsage]


def _wanted_of_all(overlay: Overlay, job: int) -> tuple[list[int], Share]:
    status, virtual, gang = overlay.status, overlay.virtual, overlay.jobs.gang[job]
    able = [t for t in overlay.in_order(job) if status[t] == PENDING or (status[t] == RELEASING and virtual[t])]
    if gang is None:
        tasks = able[: overlay.lacks(job)]
    else:
        tasks = gang.next_pods(overlay.active_pods(job), overlay.jobs.by_pod_set(able))
    return tasks, total(overlay.wants, tasks)


SHORTCUTS: list[tuple[Any, str, Callable[..., object]]] = [
    (Protection, "foregone", _none),
    (Headroom, "enough", _yes),
    (Scenario, "go_on", _no),
    (Solver, "_room_left", _yes),
    (Standing, "first", _step_by_step),
    (Clocks, "of", _unknown),
    (Cycle, "still", _look_again),
    (Overlay, "settled_since", _everybody),
    (Overlay, "wanted", _wanted_of_all),
    (VictimTable, "of", _looked_at_anew),
    (solver, "leaves_out", _no),
    (search, "leaves_out", _no),
]
"""Class or module, what it calls, and what stands for it where nothing is spared."""


@FAST
@example(seed=22602, rules="shipped", constraints=True, actions=["reclaim"], shares=True)  # traces in the books of 0.13
@example(seed=2609703, rules="shipped", constraints=True, actions=ALL_ACTIONS, shares=False)  # steps of draws
@given(
    seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), constraints=st.booleans(),
    actions=st.sampled_from([ALL_ACTIONS, ["reclaim"], ["preempt", "reclaim"], ["reclaim", "allocate", "reclaim"]]),
    shares=st.booleans(),
)  # fmt: skip
def test_a_shortcut_changes_no_decision(
    seed: int, rules: str, constraints: bool, actions: list[str], shares: bool
) -> None:
    shape = Shape(
        queues=4 + seed % 6, nodes=1 + seed % 5, workloads=6 + seed % 9, rules=rules, constraints=constraints,
        actions=actions, shares_of_gpus=shares,
    )  # fmt: skip
    body = cluster(seed, shape)
    plain = _decided(decide(body))
    for shortcut in SHORTCUTS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*shortcut)
            assert plain == _decided(decide(body)), shortcut[1]


@examples(30)
@given(seed=st.integers(0, 2**32), large=st.booleans(), first=st.sampled_from(["allocate", "stalegangeviction"]))
def test_draws_that_begin_where_the_first_choice_is_come_to_the_same(
    met: Met, seed: int, large: bool, first: str
) -> None:
    """Each draw against a cycle of its own, in which every move is simulated. ``large``: jobs of large clusters enter
    heaps in one order, so that nothing is drawn before the cap on consolidation."""
    body = crowded(seed)
    body["configuration"]["settings"]["kai"] |= {
        "release": "0.17", "rules": "shipped", "actions": [first, "consolidation", "reclaim"],
        "max_consolidation_preemptees": 1,
    }  # fmt: skip
    for ask in body["asks"]:
        ask |= {"tasks": ask["tasks"][: 1 + seed % 2], "min_available": 1}
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(chance, "_TABLE", 0)
        shared = decide(body)
        patch.setattr(Chance, "untouched", property(_no))
        patch.setattr(search, "all_fit", _yes)
        alone = decide(body)
    met([shared["plan"]["chance"]] if "chance" in shared["plan"] else [])
    assert {key: shared[key] for key in ("plan", "decisions")} == {key: alone[key] for key in ("plan", "decisions")}


def _full(random: Random) -> Json:
    """A request body: full nodes, many of whose GPUs are shared, and asks of many shapes, some of them smaller than
    what is left in all. Some jobs have pods on several nodes."""
    nodes: list[Json] = []
    for i in range(random.randint(2, 5)):
        capacity = {"cpu": random.choice([8, 16]), "memory": "64Gi", "gpu": random.choice([0, 1, 2, 4])}
        nodes.append({"name": f"n{i}", "capacity": capacity, "gpu_memory": random.choice([None, None, 1000, 2000])})
    free = {node["name"]: [float(node["capacity"]["cpu"]), float(node["capacity"]["gpu"]), 64.0] for node in nodes}
    workloads: list[Json] = []
    for i in range(random.randint(4, 14)):
        pod, pods = _pod(random), random.choice([1, 1, 1, 1, 2, 3])
        requests = pod["requests"]
        need = [float(requests["cpu"]), ceil(requests.get("gpu", 0)), float(requests["memory"].removesuffix("Gi"))]
        tasks: list[Json] = []
        for t in range(pods):
            fitting = [n for n, have in free.items() if all(a <= b for a, b in zip(need, have, strict=True))]
            if fitting:
                node = random.choice(fitting)
                free[node] = [b - a for a, b in zip(need, free[node], strict=True)]
                if 0 < requests.get("gpu", 0) < 1:
                    free[node][1] += random.choice([0, 0.5])
                state = "running" if random.random() < 0.95 else "releasing"
                tasks.append(pod | {"name": f"w{i}-{t}", "node": node, "state": state})
        if tasks:
            least = random.choice([1, len(tasks)])
            workloads.append(_job(random, f"w{i}") | {"min_available": least, "tasks": tasks})
    asks: list[Json] = []
    for i in range(random.randint(1, 5)):
        pods = random.choice([1, 1, 1, 2])
        tasks = [_pod(random) | {"name": f"p{i}-{t}"} for t in range(pods)]
        asks.append(_job(random, f"p{i}") | {"min_available": pods, "tasks": tasks})
    queues: list[Json] = [{"name": "root"}]
    for name in "abc":
        quota = {r: {"guaranteed": random.choice(["unlimited", 0, 1, 3])} for r in ("cpu", "gpu")}
        queues.append({"name": name, "parent": "root", "quota": {**quota, "memory": {"guaranteed": "unlimited"}}})
    kai: Json = {"release": "0.13", "rules": "documented", "allow_consolidating_reclaim": random.random() < 0.8}
    return {
        "engine": "kai", "mode": "cycle", "now": NOW.isoformat(),
        "configuration": {"settings": {"kai": kai}, "queues": queues},
        "state": {"nodes": nodes, "workloads": workloads}, "asks": asks,
    }  # fmt: skip


def _pod(random: Random) -> Json:
    requests: Json = {"cpu": random.choice([0, 1, 2, 4, 7]), "memory": random.choice(["1Gi", "8Gi", "30Gi"])}
    if random.random() < 0.7:
        requests["gpu"] = random.choice([1, 1, 2, 0.5, 0.3, 0.7, 0.2])
    if requests.get("gpu", 0) == 0.2 and random.random() < 0.3:
        return {"requests": requests, "gpu_devices": 2}
    if "gpu" not in requests and random.random() < 0.1:
        return {"requests": requests, "gpu_memory": random.choice([50, 300])}
    return {"requests": requests}


def _job(random: Random, identity: str) -> Json:
    return {
        "id": identity, "queue": random.choice("abc"), "priority": random.choice([40, 50, 60]),
        "created_at": (NOW - timedelta(seconds=random.randint(0, 50))).isoformat(),
        "preemptible": random.random() < 0.9,
    }  # fmt: skip


def _unheard(body: Json) -> object:
    """What a round comes to that nobody watches."""
    request = msgspec.json.decode(json.dumps(body), type=DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    loaded = solve.load(solve.configure(request.configuration, request.engine), request.state)
    question = Question(micros(NOW), request.asks, "cycle", draws=False, brief=True, ordered=False)
    return solve.planned(loaded, question).plan


@examples(600)
@given(seed=st.integers(0, 2**32))
def test_what_is_plain_without_a_simulation_changes_no_round(seed: int) -> None:
    body = _full(Random(seed))
    plain = _unheard(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reach, "of_any", _yes)
        patch.setattr(Reach, "tells", _no)
        assert plain == _unheard(body)


def _decided(answer: Json) -> Json:
    """Everything but the sentences about those that wait, which may name another of several failures."""
    return {
        "plan": answer["plan"], "order": answer["order"],
        "decisions": [{k: v for k, v in d.items() if k != "conditions"} for d in answer["decisions"]],
    }  # fmt: skip
