"""A snapshot that followed a cluster by deltas decides what one decides that was put as a fresh list gives it.

The first has what came last at the end, the other everything by name: no tie may hang on that. What an explanation
lists comes in the order of the state."""

import random
from typing import Any

import msgspec
import pytest

from app.answering.snapshot_store import SnapshotStore
from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, AskChanges, Delta, Node, NodeChanges, State, Workload, WorkloadChanges
from app.solver.question import Question
from app.solver.solve import Beside, Configured
from tests.support.kai_world import Json, Shape, cluster
from tests.vectors.files import HERE, read

RECORDED = {"kueue": ["cycle", "fair", "classic"], "yunikorn": ["preempt", "fresh-preempt"], "kai": ["decision"]}
EVERY = 4


def bodies(engine: str) -> list[Json]:
    """Questions with ties: recorded ones, and for KAI, which leaves most to chance, crowded clusters."""
    found = [one["request"] for name in RECORDED[engine] for one in read(HERE / engine / f"{name}.jsonl.gz")[::EVERY]]
    if engine == "kai":
        found += [cluster(seed, Shape(rules="shipped", workloads=20)) for seed in (14, 32, 70, 109, *range(200, 240))]
    return [one for one in found if one["asks"]]


def put(of: Configured, nodes: list[Node], workloads: list[Workload], asks: list[Ask], whole: State) -> SnapshotStore:
    store = SnapshotStore(budget=2**40, idle=1e9, clock=lambda: 0.0)
    state = msgspec.structs.replace(whole, nodes=nodes, workloads=workloads)
    store.put("s", of, state, 1, beside=Beside(asks))
    return store


def followed(of: Configured, state: State, asks: list[Ask], draw: random.Random) -> SnapshotStore:
    """Some is there, and the rest comes by deltas, in any order."""
    nodes, workloads, waiting = list(state.nodes), list(state.workloads), list(asks)
    for some in (nodes, workloads, waiting):
        draw.shuffle(some)
    needed = {ask.workload for ask in asks} | {held.ask.workload for held in state.reservations}
    half = 0 if state.reservations else len(nodes) // 2
    there = {None, *(node.name for node in nodes[half:])}
    if any(task.node not in there for one in workloads if one.id in needed for task in one.tasks):
        half, there = 0, {None, *(node.name for node in nodes)}
    late = [
        one for one in workloads
        if one.id not in needed and (draw.random() < 0.5 or any(task.node not in there for task in one.tasks))
    ]  # fmt: skip
    store = put(of, nodes[half:], [one for one in workloads if one not in late], [], state)
    if half:
        store.apply("s", Delta(generation=store.get("s").generation, nodes=NodeChanges(add=nodes[:half])))
    for i in range(0, len(late), 3):
        generation = store.get("s").generation
        store.apply("s", Delta(generation=generation, workloads=WorkloadChanges(add=late[i : i + 3])))
    store.apply("s", Delta(generation=store.get("s").generation, asks=AskChanges(add=waiting)))
    return store


def decided(store: SnapshotStore, request: DecisionRequest) -> bytes:
    loaded, now = store.get("s").loaded, request.now
    assert now is not None
    question = Question(micros(now), loaded.beside.asks, request.mode, request.options)
    return msgspec.json.encode(solve.planned(loaded, question))


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn"])
def test_what_followed_decides_as_a_fresh_list(engine: str) -> None:
    draw, evicted, moved = random.Random(7), 0, 0
    for body in bodies(engine):
        request = msgspec.convert(body, DecisionRequest)
        configuration: Any = request.configuration
        of = solve.configure(configuration, request.engine)
        state, asks = solve.load(of, request.state).state, request.asks
        assert isinstance(asks, list)
        by_name = sorted(state.nodes, key=lambda one: one.name), sorted(state.workloads, key=lambda one: one.id)
        fresh = put(of, *by_name, sorted(asks, key=lambda one: one.id), state)
        store = followed(of, state, asks, draw)
        moved += store.get("s").loaded.state.workloads != by_name[1]
        answer = decided(fresh, request)
        assert decided(store, request) == answer
        evicted += b'"victims":[{' in answer
    assert moved > 20, "the order was never another"
    assert evicted > 20, "nobody was ever evicted"
