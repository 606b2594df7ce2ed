"""A pool tree's state that keeps up with deltas is the one that compiling again would give; the old one stays."""

import copy
import random
from typing import Any, Literal, cast

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.engines.ytsaurus import update
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, Delta, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import Loaded
from tests.properties.ytsaurus_trees import tree
from tests.support.bounds import Bounded
from tests.support.deltas import task_changes
from tests.support.instead import Instead
from tests.support.profiles import examples
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, at, node, operation, pool

Json = dict[str, Any]
LAWS = examples(60, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])  # fmt: skip
STEPS = 5


@pytest.fixture(autouse=True)
def small_states_are_followed_too(bounded: Bounded) -> None:
    """However much of them changes."""
    bounded(update, LARGE=0, MANY=0)


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each state that an update compiles whole from now on."""
    made: list[None] = []
    whole = update.compile_state

    def counted(config: CompiledConfiguration, state: State) -> CompiledState:
        made.append(None)
        return whole(config, state)

    Instead(monkeypatch)(update, compile_state=counted)
    return made


class Draws:
    """A request, and deltas for its state, as the wire has them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        body = tree(rng, allocations=True)
        leaves = sorted({w["queue"] for w in body["state"]["workloads"]})
        self.leaves: list[str] = leaves
        nodes = [n["name"] for n in body["state"]["nodes"]]
        body["state"]["nodes"] = [self.node("u0"), *body["state"]["nodes"], self.node("u1")]
        body["state"]["workloads"] += [self.operation(f"x{i}", nodes) for i in range(4)]
        if rng.random() < 0.5:
            block: Json = {"guarantee_type": rng.choice(("burst", "relaxed")), "resource_flow": {"cpu": 4}}
            block["burst_guarantee_resources"] = {"cpu": 8}
            pool = next(q for q in body["configuration"]["queues"] if q["name"] == leaves[0])
            pool["ytsaurus"] = pool.get("ytsaurus", {}) | {"integral_guarantees": block}
        if rng.random() < 0.3:
            body["configuration"]["settings"]["ytsaurus"]["enable_step_function_for_gang_operations"] = True
        self.request = msgspec.convert(body, DecisionRequest)

    def operation(self, name: str, nodes: list[str]) -> Json:
        rng = self.rng
        tasks = [self.task(f"{name}-{i}", nodes) for i in range(rng.randint(0, 5))]
        of = operation(name, rng.choice(self.leaves), tasks, weight=rng.choice((0.5, 1, 2)))
        if rng.random() < 0.2:
            of["limit"] = {rng.choice(("cpu", "memory", "rare")): rng.randint(1, 30)}
        options: Json = {}
        if rng.random() < 0.3:
            options |= {"starvation": "starving", "below_fair_share_since": at(rng.randint(0, 900))}
        if rng.random() < 0.2:
            options[rng.choice(("suspended", "is_gang"))] = True
        if rng.random() < 0.2:
            options["non_preemptible_resource_usage_threshold"] = {"cpu": rng.randint(0, 3)}
        if rng.random() < 0.1:
            options["fair_share_starvation_timeout"] = rng.randint(0, 99)
        return of | ({"ytsaurus": options} if options else {})

    def task(self, name: str, nodes: list[str]) -> Json:
        rng = self.rng
        of = alloc(name, rng.randint(0, 9) * 100, rng.choice((1, 2, "1500m")), rng.choice([*nodes, *nodes, None]))
        of["requests"]["memory"] = rng.randint(0, 9)
        if rng.random() < 0.03:
            of["requests"]["rare"] = rng.randint(0, 1)
        if rng.random() < 0.2:
            of["usage"] = {"user_slots": 1, "cpu": rng.choice((0, 1))}
        if rng.random() < 0.1:
            of["count"] = rng.randint(0, 3)
        if rng.random() < 0.1:
            of["state"] = rng.choice(("releasing", "preempted", "released"))
        if rng.random() < 0.1:
            del of["started_at"]
        if rng.random() < 0.1:
            of["node_selector"] = {"zone": rng.choice("ab")}
        return of

    def node(self, name: str) -> Json:
        rng = self.rng
        of: Json = {"name": name, "schedulable": rng.random() < 0.9}
        of["capacity"] = {"user_slots": 40, "cpu": rng.randint(4, 40), "memory": rng.randint(8, 200)}
        if rng.random() < 0.2:
            of["occupied"] = {"cpu": 1}
        if rng.random() < 0.3:
            of["labels"] = {"zone": rng.choice("ab")}
        if rng.random() < 0.5:
            of["ytsaurus"] = {"last_preemptive_scheduling_at": at(rng.randint(0, 900)), "overcommit_since": at(5)}
        return of

    def delta(self, state: State, step: int) -> Delta:
        """Sound: what it names is there, and no node goes that is in use."""
        rng = self.rng
        nodes = [n.name for n in state.nodes]
        used = {t.node for w in state.workloads for t in w.tasks}
        body: Json = {"generation": step}
        if rng.random() < 0.4:
            gone = [n for n in nodes if n not in used and len(nodes) > 1][:1]
            body["nodes"] = {
                "add": [self.node(f"a{step}")] if rng.random() < 0.4 else [], "remove": gone,
                "change": [self.node(n) for n in nodes if n not in gone and rng.random() < 0.5],
            }  # fmt: skip
            nodes = [n for n in nodes if n not in gone]
        if rng.random() < 0.2:
            body["queues"] = {rng.choice(self.leaves): {"ytsaurus": {"starvation": "starving"}}}
        if rng.random() < 0.3:
            volume = {"accumulated_volume": {"cpu": rng.randint(0, 999)}, "last_share_ratio": rng.random()}
            body["queues"] = {self.leaves[0]: {"ytsaurus": volume}}
        names = [w.id for w in state.workloads]
        rng.shuffle(names)
        kept = rng.randint(0, 2)
        changes: Json = {
            "change": [self.operation(name, nodes) for name in names[:kept]],
            "remove": names[3:][: rng.randint(0, 1)],
            "add": [self.operation(f"n{step}-{i}", nodes) for i in range(rng.randint(0, 2))],
        }
        body["workloads"] = changes
        changing = set(names[2:3] if rng.random() < 0.7 else [])
        body["tasks"] = task_changes(
            rng,
            [w for w in state.workloads if w.id in changing],
            lambda name: self.task(name, nodes),
            lambda: [f"s{rng.random()}"],
        )
        return msgspec.convert(body, Delta)


def answers(loaded: Loaded, request: DecisionRequest, explain: Literal["none", "full"] = "full") -> list[bytes]:
    """Of every kind, byte for byte. Explaining takes as long as all the rest."""
    assert request.now is not None
    now = micros(request.now)
    queues = {w.id: w.queue for w in loaded.state.workloads}
    asks = [a for a in request.asks if isinstance(a, Ask)]
    asks = [a for a in asks if queues.get(a.workload or a.id, a.queue) == a.queue]
    asks = [a for a in asks if a.workload in queues]
    found: list[Any] = [
        solve.decide(loaded, Question(now, asks, "cycle", explain=explain)),
        solve.shares(loaded, asks, now),
        solve.preemptibility(loaded, ProtectionQuestion(now, asks)),
    ]
    return [msgspec.json.encode(one) for one in found]


def columns(of: CompiledState) -> Json:
    """Everything that a cluster holds."""
    beside = ("config", "state", "index", "recent")
    found = {name: getattr(of, name) for name in CompiledState.__slots__ if name not in beside}
    for part in ("operations", "allocations"):
        columns = found.pop(part)
        found |= {f"{part}.{name}": getattr(columns, name) for name in columns.__slots__}
    found["index"] = of.index.names
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    found = cast(NDArray[Any], value)
    return str(found.dtype), found.tolist()


def names_a_loose_resource(before: State, after: State) -> bool:
    """Whether a workload that came, went or changed names the one resource that no node has and no pool names."""
    old, new = ({w.id: w for w in state.workloads} for state in (before, after))
    touched = [one for name in old.keys() | new.keys() if old.get(name) != new.get(name)
               for one in (old.get(name), new.get(name))]  # fmt: skip
    return any("'rare'" in repr(one) for one in touched)


def follow(draws: Draws, whole: list[None]) -> None:
    """Deltas, one after the other, and every version beside the one that compiling anew gives. ``whole``: see
    ``compilations``."""
    request = draws.request
    assert isinstance(request.configuration, Configuration)
    configured = solve.configure(request.configuration, "ytsaurus")
    kept = first = solve.load(configured, request.state)
    said = answers(first, request)
    for step in range(STEPS):
        before = copy.deepcopy(columns(kept.compiled))
        state, index, changes = apply_delta(kept.state, kept.index, draws.delta(kept.state, step))
        compiled = len(whole)
        later = solve.update(kept, state, index, changes, generation=step)
        assert len(whole) == compiled or names_a_loose_resource(kept.state, state)
        fresh = solve.load(configured, state, generation=step)
        assert columns(kept.compiled) == before
        assert columns(later.compiled) == columns(fresh.compiled)
        if step in (STEPS // 2, STEPS - 1):  # everything that answers are made of is the same at every step
            explain = "full" if step == STEPS - 1 else "none"
            assert answers(later, request, explain) == answers(fresh, request, explain)
        assert [later.compiled.task_of(i) for i in range(len(later.compiled.allocations))] == [
            fresh.compiled.task_of(i) for i in range(len(fresh.compiled.allocations))
        ]
        kept = later
    assert answers(first, request) == said


def test_updating_equals_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """And most deltas are followed."""
    whole, steps = compilations(monkeypatch), [0]

    @LAWS
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        follow(Draws(seed), whole)
        steps[0] += STEPS

    check()
    assert len(whole) < steps[0] / 2


def small() -> Loaded:
    body = {
        "nodes": [node("n0"), node("n1", occupied={"memory": 0})],
        "workloads": [operation("w0", "p", [alloc("t0", on="n0")]), operation("w1", "p", [alloc("t1", on="n1")])],
        "queues": {"p": {"ytsaurus": {"starvation": "starving"}}},
    }
    document = {"engine": "ytsaurus", "queues": [pool("p"), pool("q")]}
    return solve.load(solve.configure(msgspec.convert(document, Configuration)), msgspec.convert(body, State))


def changed(kept: Loaded, **body: Any) -> Loaded:
    """After one delta."""
    delta = msgspec.convert({"generation": 1} | body, Delta)
    state, index, changes = apply_delta(kept.state, kept.index, delta)
    return solve.update(kept, state, index, changes, generation=2)


def _half(name: str) -> Json:
    """An allocation that takes half of what one resource may add up to."""
    return alloc(name, on="n0", requests={"cpu": 1, "memory": 2**53}, count=2**8)


WRONG: dict[str, Json] = {
    "pool": operation("w", "x"),
    "node": operation("w", "p", [alloc("t", on="nowhere")]),
    "quantity": operation("w", "p", [alloc("t", cpu="much")]),
    "negative": operation("w", "p", [alloc("t", cpu=-1, on="n0")]),
    "weight": operation("w", "p", weight=-1),
    "tolerance": operation("w", "p", ytsaurus={"fair_share_starvation_tolerance": 7}),
    "twice": operation("w", "p", [alloc("t", on=None), alloc("t", on=None)]),
    "limit": operation("w", "p", limit={"new": "1.5m"}),
    "sum": operation("w", "p", [alloc("t", on="n0", cpu=2**53, count=2**20)]),
    "wraps": operation("w", "p", [_half(f"t{i}") for i in range(8)]),
    "several": operation("w", "p", [alloc("t", cpu="much")], weight=-1),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("kind", ["add", "change"])
def test_a_bad_delta_has_the_problems_of_the_whole_state(wrong: Json, kind: str) -> None:
    kept = small()
    body = {kind: [wrong | ({"id": "w0"} if kind == "change" else {})]}
    state, _, _ = apply_delta(kept.state, kept.index, msgspec.convert({"generation": 1, "workloads": body}, Delta))
    with pytest.raises(InvalidInput) as whole:
        solve.load(kept.configured, state)
    with pytest.raises(InvalidInput) as followed:
        changed(kept, workloads=body)
    assert followed.value.problems == whole.value.problems
    assert followed.value.problems


@pytest.mark.parametrize(
    "body", [{"nodes": {"remove": ["n0"]}}, {"nodes": {"change": [node("n1", "much")]}}, {"queues": {"x": {}}}]
)
def test_what_else_is_bad_has_the_problems_of_the_whole_state(body: Json) -> None:
    kept = small()
    state, _, _ = apply_delta(kept.state, kept.index, msgspec.convert({"generation": 1} | body, Delta))
    with pytest.raises(InvalidInput) as whole:
        solve.load(kept.configured, state)
    with pytest.raises(InvalidInput) as followed:
        changed(kept, **body)
    assert followed.value.problems == whole.value.problems


def test_a_node_goes_together_with_its_allocations(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    for more in ({"tasks": {"remove": [{"workload": "w0", "task": "t0"}]}}, {"workloads": {"remove": ["w0"]}}):
        later = changed(kept, nodes={"remove": ["n0"]}, **more)
        assert columns(later.compiled) == columns(solve.load(kept.configured, later.state).compiled)
    assert not whole


def test_resources_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    rare = {"change": [operation("w0", "p", [alloc("t0", requests={"rare": 1})])]}
    rare["change"][0]["tasks"][0]["node"] = "n0"
    later = changed(kept, workloads=rare)
    assert later.compiled.index.names == [*kept.compiled.index.names, "rare"]
    other = changed(later, workloads={"change": [operation("w1", "q")]})
    assert (len(whole), other.compiled.index.names) == (1, later.compiled.index.names)
    assert changed(other, workloads={"remove": ["w0"]}).compiled.index.names == kept.compiled.index.names
    assert len(whole) == 2
    for body in ({"add": [node("n2", capacity={"gpu": 1})]}, {"change": [node("n1", occupied={"disk": 1})]}):
        later = changed(kept, nodes=body)
        assert columns(later.compiled) == columns(solve.load(kept.configured, later.state).compiled)
    assert len(whole) == 4
    gpu = changed(kept, nodes={"add": [node("n2", capacity={"gpu": 1})]})
    assert changed(gpu, nodes={"remove": ["n2"]}).compiled.index.names == kept.compiled.index.names


@pytest.mark.parametrize(
    ("bound", "value", "anew"), [("LARGE", 4, False), ("LARGE", 5, True), ("MANY", 6, False), ("MANY", 7, True)]
)
def test_large_deltas_are_compiled_anew(
    bound: str, value: int, anew: bool, monkeypatch: pytest.MonkeyPatch, bounded: Bounded
) -> None:
    """One of two operations with an allocation each, on two nodes: that is no more than one in ``value``, or it is."""
    kept, whole = small(), compilations(monkeypatch)
    bounded(update, **{bound: value})
    changed(kept, workloads={"change": [operation("w0", "p", [alloc("t0", on="n1")])]})
    assert len(whole) == anew


def test_a_situation_where_only_starvation_moved_shares_the_rest_with_the_last_one() -> None:
    def asks(level: str, count: int = 1) -> list[Ask]:
        carried = {"starvation": level, "below_fair_share_since": at(5)}
        new = ask("w2", "q", count) | {"workload": "w2", "ytsaurus": carried}
        return msgspec.convert([ask("w1", "p"), new], list[Ask])

    def all_of_it(of: Situation) -> Json:
        found = {name: _plain(getattr(of, name)) for name in Situation.__slots__ if name not in ("cluster", "wants")}
        found["operations"] = {name: _plain(getattr(of.operations, name)) for name in of.operations.__slots__}
        return found | {name: _plain(getattr(of.wants, name)) for name in of.wants.__slots__} | columns(of.cluster)

    kept = small()
    first = situate(kept.compiled, asks("non_starving"))
    starves = operation("w0", "p", [alloc("t0", on="n0")], ytsaurus={"starvation": "starving"})
    later = changed(kept, workloads={"change": [starves]}, queues={"q": {"ytsaurus": {"starvation": "starving"}}})
    second = situate(later.compiled, asks("starving"))
    fresh = solve.load(kept.configured, later.state).compiled
    assert second.wanted is first.wanted
    assert all_of_it(second) == all_of_it(situate(fresh, asks("starving")))
    assert second.operations.starvation.tolist() == [1, 0, 1]
    third = situate(later.compiled, asks("starving", 2))
    assert all_of_it(third) == all_of_it(situate(fresh, asks("starving", 2)))
    moved = changed(later, workloads={"change": [starves | {"tasks": [alloc("t0", on="n0", cpu=2)]}]})
    fresh = solve.load(kept.configured, moved.state).compiled
    assert all_of_it(situate(moved.compiled, asks("starving", 2))) == all_of_it(situate(fresh, asks("starving", 2)))


def test_another_configuration_is_compiled_with() -> None:
    kept = small()
    document = {"engine": "ytsaurus", "queues": [pool("p"), pool("q"), pool("r", quota={"cpu": {"limit": 1}})]}
    other = solve.configure(msgspec.convert(document, Configuration)).compiled
    state, _, changes = apply_delta(kept.state, kept.index, Delta(generation=1))
    found = update.update(kept.compiled, other, state, changes)
    assert found.config is other
    assert found.pool_ratios.shape == (4,)


@pytest.mark.parametrize("on", ["n0", "n1", None])
def test_all_but_one_allocation_go(on: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    body = {"remove": ["w0"], "change": [operation("w1", "p", [alloc("t1", on=on)])]}
    later = changed(kept, workloads=body)
    assert columns(later.compiled) == columns(solve.load(kept.configured, later.state).compiled)
    later = changed(later, workloads={"remove": ["w1"]})
    assert columns(later.compiled) == columns(solve.load(kept.configured, later.state).compiled)
    assert not whole
