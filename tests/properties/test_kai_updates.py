"""A compiled state that keeps up with deltas is the one that compiling again would give."""

import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.engines.kai.configuration import CompiledConfiguration
from app.solver.engines.kai.engine import ENGINE, followed
from app.solver.engines.kai.job_order import VictimTable
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.state import CompiledState, baseline
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Delta
from app.solver.question import Question
from tests.support.kai_world import NOW, Json, Shape, cluster
from tests.support.profiles import examples

LAWS = examples(50)


def _request(body: Json) -> DecisionRequest:
    return msgspec.convert(body, DecisionRequest)


def _configured(request: DecisionRequest) -> CompiledConfiguration:
    assert isinstance(request.configuration, Configuration)
    return ENGINE.configure(request.configuration)


def _delta(rng: random.Random, running: list[Json], spare: list[Json], step: int) -> Delta:
    """Some jobs go, some change (priority, preemptible, one pod fewer or released), some come."""
    rng.shuffle(running)
    gone = [running.pop()["id"] for _ in range(rng.randint(0, 2)) if running]
    changed: list[Json] = []
    for workload in running[: rng.randint(0, 3)]:
        workload["priority"] = rng.choice([40, 50, 75])
        workload["preemptible"] = rng.random() < 0.8
        tasks: list[Json] = workload["tasks"]
        if len(tasks) > 1 and rng.random() < 0.5:
            tasks.pop(rng.randrange(len(tasks)))
            workload["min_available"] = min(workload["min_available"], len(tasks))
        elif rng.random() < 0.5:
            tasks[0]["state"] = rng.choice(["running", "releasing"])
        changed.append(workload)
    added = [spare.pop() for _ in range(rng.randint(0, 2)) if spare]
    running += added
    return msgspec.convert(
        {"generation": step, "workloads": {"add": added, "change": changed, "remove": gone}}, Delta
    )  # fmt: skip


def _known(state: CompiledState) -> list[Any]:
    """Everything that decisions find out about a state."""
    overlay = Overlay(state, [], 0)
    table = VictimTable(overlay)
    jobs = range(len(state.jobs.id))
    victims = [table.of(j) for j in jobs]
    return [
        state.jobs, baseline(state), state.capacity, [overlay.in_order(j) for j in jobs],
        [(v.job, v.key, v.tasks, v.holds, v.others) for v in victims],
    ]  # fmt: skip


@LAWS
@given(seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), shares=st.booleans())
def test_updating_equals_loading(seed: int, rules: str, shares: bool) -> None:
    rng = random.Random(seed)
    shape = Shape(nodes=4 + seed % 3, workloads=14, rules=rules, shares_of_gpus=shares)
    body = cluster(seed, shape)
    workloads: list[Json] = body["state"]["workloads"]
    spare = [workloads.pop() for _ in range(len(workloads) // 3)]
    asks = [ask for ask in body["asks"] if "workload" not in ask]
    request = _request({**body, "asks": asks})
    configured = _configured(request)
    state = request.state
    assert isinstance(request.asks, list)
    question = Question(micros(NOW), request.asks, request.mode, request.options)
    index, kept = Index(state), ENGINE.load(configured, state)
    for step in range(5):
        ENGINE.plan(kept, question)  # what it finds out goes into the next state
        state, index, changes = apply_delta(state, index, _delta(rng, workloads, spare, step))
        earlier, kept = kept, followed(kept, configured, state, changes)
        assert kept is not None
        fresh = ENGINE.load(configured, state)
        assert ENGINE.plan(kept, question) == ENGINE.plan(fresh, question)
        assert _known(kept) == _known(fresh)
        assert kept is not earlier


def _simple(*workloads: Json) -> DecisionRequest:
    return _request(
        {
            "engine": "kai",
            "configuration": {"queues": [{"name": "q"}]},
            "state": {"nodes": [{"name": "n", "capacity": {"cpu": 8, "gpu": 4}}], "workloads": list(workloads)},
            "asks": [],
        }
    )


def _workload(identity: str, **more: Any) -> Json:
    task = {"name": "t", "node": "n", "requests": {"cpu": 1, "gpu": 1}, **more}
    return {"id": identity, "queue": "q", "tasks": [task]}


def _after(request: DecisionRequest, delta: Json) -> tuple[CompiledState | None, CompiledState]:
    """By updating, and by the engine, which may compile anew."""
    configured = _configured(request)
    loaded = ENGINE.load(configured, request.state)
    baseline(loaded)
    later, _, changes = apply_delta(
        request.state, Index(request.state), msgspec.convert({"generation": 1, **delta}, Delta)
    )
    return followed(loaded, configured, later, changes), ENGINE.update(loaded, configured, later, changes)


def test_what_an_update_cannot_tell_is_compiled_anew() -> None:
    plain = _simple(_workload("a"))
    rare = _workload("b", requests={"cpu": 1, "fpga": 1})
    node = {"name": "m", "capacity": {"cpu": 1}}
    cases: list[tuple[DecisionRequest, Json]] = [
        (plain, {"nodes": {"add": [node]}}),
        (plain, {"workloads": {"add": [rare]}}),
        (_simple(_workload("a"), rare), {"workloads": {"remove": ["b"]}}),
    ]
    for request, delta in cases:
        kept, engines = _after(request, delta)
        assert kept is None
        later, _, _ = apply_delta(
            request.state, Index(request.state), msgspec.convert({"generation": 1, **delta}, Delta)
        )
        anew = ENGINE.load(_configured(request), later)
        assert (engines.jobs, engines.capacity) == (anew.jobs, anew.capacity)
        assert engines.resources.names == anew.resources.names


def test_a_pod_without_a_node_is_found_by_the_next_decision() -> None:
    lost = _workload("b")
    del lost["tasks"][0]["node"]
    kept, _ = _after(_simple(_workload("a")), {"workloads": {"add": [lost]}})
    assert kept is not None
    assert baseline(kept).homeless == [(1, 0)]
    assert _known(kept)[1].free[2] == [3000]


def test_a_pod_without_a_node_is_not_forgotten() -> None:
    lost = _workload("b")
    del lost["tasks"][0]["node"]
    kept, _ = _after(_simple(_workload("a"), lost), {"workloads": {"remove": ["a"]}})
    assert kept is not None
    assert baseline(kept).homeless == [(0, 0)]


def test_jobs_are_renumbered_where_one_without_pods_goes() -> None:
    request = _simple({"id": "none", "queue": "q", "tasks": []}, _workload("a"))
    configured = _configured(request)
    loaded = ENGINE.load(configured, request.state)
    _known(loaded)
    delta = msgspec.convert({"generation": 1, "workloads": {"remove": ["none"]}}, Delta)
    later, _, changes = apply_delta(request.state, Index(request.state), delta)
    kept = followed(loaded, configured, later, changes)
    assert kept is not None
    assert kept.resident.victims
    assert _known(kept) == _known(ENGINE.load(configured, later))
