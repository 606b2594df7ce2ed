"""Order of arrival changes nothing that is said in the end.

A snapshot that followed a cluster by deltas decides what one decides that was put as a fresh list gives it.

The first has what came last at the end, the other everything by name: no tie may hang on that. What an explanation
lists comes in the order of the state."""

import copy
import gzip
import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.answering.snapshot_store import SnapshotStore
from app.following.replaying import Replay
from app.solver import solve
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration, EngineName, Settings
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, AskChanges, Delta, Node, NodeChanges, State, Workload, WorkloadChanges
from app.solver.question import Question
from app.solver.solve import Beside, Configured
from tests.support.courses import Course
from tests.support.kai_world import Json, Shape, cluster
from tests.support.recordings import course
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


COURSES = Path(__file__).parents[1] / "unit" / "following" / "courses.jsonl.gz"
LATE_SECONDS = 1.5


def streams(engine: EngineName) -> list[tuple[list[Json], Settings | None]]:
    """What API servers said of clusters in which somebody is evicted, as it was written."""
    if engine != "kueue":
        return [(course(engine).lines, None)]
    vectors = [json.loads(line) for line in gzip.decompress(COURSES.read_bytes()).splitlines()[::12]]
    settings = [msgspec.convert(one["request"]["configuration"], Configuration).settings for one in vectors]
    return [(Course(one).stream.lines, of) for one, of in zip(vectors, settings, strict=True)]


def arrived(lines: list[Json], draw: random.Random) -> list[Json]:
    """Each kind is heard by itself, now at once and now late: an Event before its pod or long after that is gone."""
    lag: dict[str, datetime] = {}
    found: list[tuple[datetime, int, Json]] = []
    for number, line in enumerate(copy.deepcopy(lines)):
        kind, listed = line["kind"], line["type"] in ("ITEM", "LISTED")
        late = 0.0 if listed else draw.choice((0.0, draw.random() * LATE_SECONDS))
        at = datetime.fromisoformat(line["at"]) + timedelta(seconds=late)
        lag[kind] = at = max(at, lag.get(kind, at))
        found.append((at, number, {**line, "at": at.isoformat()}))
    return [line for *_, line in sorted(found, key=lambda one: one[:2])]


def said(engine: EngineName, lines: list[Json], settings: Settings | None) -> list[Any]:
    """Of each cycle for whom it was, whom it evicted and why, and whether Arbiter agrees."""
    judged = Replay(engine).judge(lambda: iter(copy.deepcopy(lines)), settings)
    told = ((one.report.ask, one.outcome.removesuffix("_earlier"), one.report.victims) for one in judged)
    return sorted((ask, outcome, sorted(map(repr, victims))) for ask, outcome, victims in told)


@pytest.mark.parametrize("engine", ["kueue", "kai", "yunikorn", "kube-scheduler"])
def test_in_whatever_order_kinds_are_heard_the_same_is_said_of_evictions(engine: EngineName) -> None:
    draw, others = random.Random(3), 0
    for lines, settings in streams(engine):
        wanted = said(engine, lines, settings)
        assert wanted, "nobody was evicted"
        for _ in range(2 if engine == "kueue" else 30):
            heard = arrived(lines, draw)
            others += [one["object"] for one in heard if "object" in one] != [
                one["object"] for one in lines if "object" in one
            ]
            assert said(engine, heard, settings) == wanted
    assert others > 3, "the order was never another"
