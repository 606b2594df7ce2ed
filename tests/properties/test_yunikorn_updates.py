"""A cluster that keeps up with deltas is the one that compiling again would give, and leaves the old one as it was."""

import copy
import random
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.engines.yunikorn import state as yunikorn_state
from app.solver.engines.yunikorn import update
from app.solver.engines.yunikorn.configuration import CompiledConfiguration
from app.solver.engines.yunikorn.state import CompiledState
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import Options
from app.solver.model.state import Ask, Delta, State
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import Loaded
from tests.support.bounds import Bounded
from tests.support.deltas import task_changes
from tests.support.instead import Instead
from tests.support.profiles import examples
from tests.support.yunikorn_world import START, Json, ago, app, ask, node, queue, task

LAWS = examples(45, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])  # fmt: skip
LEAVES = ("root.a", "root.b.c", "root.b.d", "root.e")
NOW = micros(START)
STEPS = 5


@pytest.fixture(autouse=True)
def small_states_are_followed_too(bounded: Bounded) -> None:
    """However much of them changes."""
    bounded(update, LARGE=0, MANY=0)
    bounded(yunikorn_state, SPARE_SHAPES=4)


def configuration(rules: str) -> Configuration:
    queues = [
        queue("root"), queue("root.a", {"vcore": 4, "memory": 6}), queue("root.b", {"vcore": (6, 20)}),
        queue("root.b.c"), queue("root.b.d", {"vcore": 2}, preemption_policy="fence"), queue("root.e"),
    ]  # fmt: skip
    document = {"engine": "yunikorn", "settings": {"yunikorn": {"rules": rules}}, "queues": queues}
    return msgspec.convert(document, Configuration)


class Draws:
    """Parts of states and deltas as the wire has them. ``wide``: amounts may pass 64 bits in sum."""

    def __init__(self, seed: int, *, wide: bool = False) -> None:
        self.rng = random.Random(seed)
        self.wide = wide

    def some(self, of: list[Any], most: int) -> list[Any]:
        return self.rng.sample(of, min(len(of), self.rng.randint(0, most)))

    def amounts(self) -> Json:
        rng = self.rng
        found = {"vcore": rng.choice((1, 2, "500m")), "memory": rng.randint(1, 3)}
        if rng.random() < 0.05:
            found["odd"] = 1
        if self.wide and rng.random() < 0.1:
            found["vcore"] = 2**50
        return dict(rng.sample(list(found.items()), rng.randint(1, len(found))))

    def node(self, name: str) -> Json:
        rng = self.rng
        more: Json = {"schedulable": False} if rng.random() < 0.1 else {}
        if rng.random() < 0.2:
            more["occupied"] = {rng.choice(("vcore", "memory", "disk")): 1}
        capacity = {"vcore": rng.randint(6, 9), "memory": rng.randint(8, 12)}
        if self.wide and rng.random() < 0.1:
            capacity["vcore"] = 2**53
        more["labels"] = {"zone": rng.choice("ab")}
        if rng.random() < 0.1:
            more["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        return node(name, capacity, **more)

    def task(self, name: str, nodes: list[str]) -> Json:
        rng = self.rng
        of = task(name, rng.choice([*nodes, *nodes, None]) if nodes else None, self.amounts(), rng.randint(1, 9) * 900)
        for field, values in (("priority", (0, 1, 2)), ("preemptible", (True, False)), ("originator", (True,))):
            if rng.random() < 0.3:
                of[field] = rng.choice(values)
        if rng.random() < 0.3:
            del of["created_at"]
        if rng.random() < 0.1:
            of["state"] = rng.choice(("releasing", "preempted"))
        if rng.random() < 0.1:
            of["count"] = rng.randint(0, 3)
        if rng.random() < 0.05 and nodes:
            of["required_node"] = nodes[0]
        return of

    def app(self, name: str, nodes: list[str]) -> Json:
        rng = self.rng
        names = [f"t{i}" for i in range(rng.randint(0, 4))]
        rng.shuffle(names)
        of = app(name, rng.choice(LEAVES), *(self.task(n, nodes) for n in names), priority=rng.randint(0, 2))
        of["preemptible"] = rng.random() < 0.8
        of["created_at"] = ago(rng.randint(1, 9) * 1000)
        return of

    def state(self) -> State:
        nodes = [f"n{i}" for i in range(4)]
        apps = [f"w{i}" for i in range(14)]
        idle = ["i0", *nodes[:2], "i1", *nodes[2:]]
        body = {"nodes": [self.node(n) for n in idle], "workloads": [self.app(name, nodes) for name in apps]}
        return msgspec.convert(body, State)

    def delta(self, state: State, step: int) -> Delta:
        """Sound: what it names is there, and no node goes that is in use."""
        rng = self.rng
        nodes = [n.name for n in state.nodes]
        used = {t.node for w in state.workloads for t in w.tasks} | {r.node for r in state.reservations}
        body: Json = {"generation": step}
        if rng.random() < 0.3:
            gone = self.some([n for n in nodes if n not in used], 1)
            body["nodes"] = {
                "add": [self.node(f"a{step}")] if rng.random() < 0.3 else [], "remove": gone,
                "change": [self.node(n) for n in self.some([n for n in nodes if n not in gone], 1)],
            }  # fmt: skip
            nodes = [n for n in nodes if n not in gone]
        names = [w.id for w in state.workloads]
        rng.shuffle(names)
        changed = [self._like(w, nodes) for w in state.workloads if w.id in names[:3]]
        body["workloads"] = {
            "remove": names[3 : 3 + rng.randint(0, 2)], "change": changed,
            "add": [self.app(f"{rng.choice('avx')}{step}-{i}", nodes) for i in range(rng.randint(0, 2))],
        }  # fmt: skip
        changing = set(names[5:8])
        body["tasks"] = task_changes(
            rng,
            [w for w in state.workloads if w.id in changing],
            lambda name: self.task(name, nodes),
            lambda: [f"s{i}-{rng.random()}" for i in range(rng.randint(0, 1))],
        )
        held = {(r.node, r.ask.id) for r in state.reservations}
        leave: Json = {"remove": [{"node": n, "ask": a} for n, a in sorted(held) if rng.random() < 0.4]}
        body["reservations"] = leave
        if (nodes[0], f"r{step}") not in held and rng.random() < 0.5:
            holder = ask(f"r{step}", rng.choice(LEAVES), {"vcore": 1}, priority=rng.randint(0, 2))
            leave["add"] = [{"node": nodes[0], "ask": holder}]
        return msgspec.convert(body, Delta)

    def _like(self, workload: Any, nodes: list[str]) -> Json:
        """Another one, or the same but for little."""
        if self.rng.random() < 0.4:
            return self.app(workload.id, nodes)
        of = msgspec.to_builtins(workload)
        if of.get("tasks") and self.rng.random() < 0.5:
            of["tasks"][0] = self.task(of["tasks"][0]["name"], nodes)
        field, values = self.rng.choice((("priority", (0, 1, 2)), ("preemptible", (True, False)), ("queue", LEAVES)))
        return of | {field: self.rng.choice(values)}


def answers(loaded: Loaded, seed: int) -> list[bytes]:
    """Of every kind, byte for byte."""
    draws = Draws(seed)
    names = [w.id for w in loaded.state.workloads]
    wanted = [
        ask(f"a{i}", leaf, draws.amounts() | {"vcore": 3}, priority=2, workload=draws.rng.choice(names))
        for i, leaf in enumerate(LEAVES)
    ]
    wanted[3]["required_node"] = loaded.state.nodes[0].name
    wanted[0]["tasks"][0]["node_selector"] = {"zone": draws.rng.choice("ab")}
    wanted[1]["tasks"][0]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    asks = msgspec.convert(wanted, list[Ask])
    quota = msgspec.convert({"yunikorn": {"enforce_quota": "root.b"}}, Options)
    found: list[Any] = [
        solve.decide(loaded, Question(NOW, asks, explain="full")),
        solve.decide(loaded, Question(NOW, asks, "cycle")),
        solve.decide(loaded, Question(NOW, [], options=quota)),
        solve.shares(loaded, asks, NOW),
        solve.preemptibility(loaded, ProtectionQuestion(NOW, [])),
        solve.preemptibility(loaded, ProtectionQuestion(NOW, [], asks[0])),
    ]
    return [msgspec.json.encode(one) for one in found]


def columns(of: CompiledState) -> Json:
    """Everything that a cluster holds, but for the numbers that shapes have."""
    of.all_created()
    for at in range(len(of.node_names)):
        of.tasks_on(at)
    skipped = {"lazy", "configuration", "shape", "shape_of", "shapes", "uses", "resources"}
    found = {name: getattr(of, name) for name in CompiledState.__slots__ if name not in skipped}
    found["resources"] = of.resources.names
    found["requests"] = [list(of.amounts(i).items()) for i in range(of.task_count)]
    found["created"], found["by_node"] = of.lazy.created, [of.tasks_on(i) for i in range(len(of.node_names))]
    assert of.lazy.by_node is not None
    found["order"], found["offsets"] = of.lazy.by_node
    found["kinds"] = [values.dtype for values in (of.free, of.capacity, of.flags, of.eligible, of.priority)]
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(one) for one in cast(list[Any], value)] if isinstance(value, list) else value


def follow(draws: Draws, rules: str) -> None:
    """Deltas, one after the other, and every version beside the one that compiling anew gives."""
    configured = solve.configure(configuration(rules))
    kept = first = solve.load(configured, draws.state())
    said = answers(first, STEPS)
    for step in range(STEPS):
        if draws.rng.random() < 0.7:
            columns(kept.compiled)
        before = copy.deepcopy(columns(kept.compiled))
        state, index, changes = apply_delta(kept.state, kept.index, draws.delta(kept.state, step))
        later = solve.update(kept, state, index, changes, generation=step)
        fresh = solve.load(configured, state, generation=step)
        assert columns(kept.compiled) == before
        assert columns(later.compiled) == columns(fresh.compiled)
        assert answers(later, step) == answers(fresh, step)
        kept = later
    assert answers(first, STEPS) == said


@pytest.mark.parametrize("seed", range(30))
def test_columns_follow(seed: int) -> None:
    """As above, without asking for answers."""
    draws = Draws(seed)
    configured = solve.configure(configuration("documented"))
    kept = solve.load(configured, draws.state())
    for step in range(STEPS):
        columns(kept.compiled)
        state, index, changes = apply_delta(kept.state, kept.index, draws.delta(kept.state, step))
        kept = solve.update(kept, state, index, changes, generation=step)
        assert columns(kept.compiled) == columns(solve.load(configured, state).compiled)


@pytest.mark.parametrize("seed", range(30))
def test_columns_that_nobody_looked_at_catch_up(seed: int, bounded: Bounded) -> None:
    """Over several deltas at once, in every version; by itself once they are far behind."""
    bounded(update, FAR=(4, 64)[seed % 2])
    draws = Draws(seed)
    configured = solve.configure(configuration("documented"))
    versions = [solve.load(configured, draws.state())]
    if seed % 3:
        columns(versions[0].compiled)
    for step in range(STEPS):
        kept = versions[-1]
        state, index, changes = apply_delta(kept.state, kept.index, draws.delta(kept.state, step))
        versions.append(solve.update(kept, state, index, changes, generation=step))
    if seed % 2:
        assert any(kept.compiled.behind is not None for kept in versions)
    for kept in draws.some(versions, len(versions)):
        assert columns(kept.compiled) == columns(solve.load(configured, kept.state).compiled)


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each state that is compiled whole from now on."""
    made: list[None] = []
    compile_whole = CompiledState.__init__

    def counted(self: CompiledState, queues: CompiledConfiguration, state: State) -> None:
        made.append(None)
        compile_whole(self, queues, state)

    monkeypatch.setattr(CompiledState, "__init__", counted)
    return made


@pytest.mark.parametrize("rules", ["documented", "shipped"])
def test_updating_equals_loading(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most deltas are followed, beside the one compilation of each step that they are compared with."""
    whole, steps = compilations(monkeypatch), [0]

    @LAWS
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        follow(Draws(seed, wide=seed % 4 == 0), rules)
        steps[0] += STEPS

    check()
    assert len(whole) - steps[0] < steps[0] / 2


def changed(kept: Loaded, **body: Any) -> Loaded:
    """After one delta."""
    delta = msgspec.convert({"generation": 1} | body, Delta)
    state, index, changes = apply_delta(kept.state, kept.index, delta)
    return solve.update(kept, state, index, changes, generation=2)


def small() -> Loaded:
    body = {
        "nodes": [node("n0", {"vcore": 9}), node("n1", {"vcore": 9})],
        "workloads": [app("w0", "root.a", task("t0", "n0", {"vcore": 1})), app("w1", "root.e")],
    }
    return solve.load(solve.configure(configuration("documented")), msgspec.convert(body, State))


@pytest.mark.parametrize(
    "wrong",
    [
        app("w", "root.b", task("t", "n0", {"vcore": 1})), app("w", "root.x"),
        app("w", "root.a", task("t", "nowhere", {"vcore": 1})), app("w", "root.a", task("t", None, {"vcore": "much"})),
        app("w", "root.a", task("t", None, {"vcore": -1})), app("w", "root.a", task("t", None, {"odd": "1.5m"})),
        app("w", "root.a", task("t", "n0", {"vcore": 1}), task("t", "n1", {"vcore": 1})),
        app("w", "root.a", task("t", None, {f"r{i}": 1 for i in range(200)})),
        app("w", "root.b", task("t", "nowhere", {"odd": "1.5m"})),
    ],
    ids=["parent", "queue", "node", "quantity", "negative", "new-resource", "twice", "resources", "several"],
)  # fmt: skip
def test_a_bad_delta_has_the_problems_of_the_whole_state(wrong: Json) -> None:
    kept = small()
    right = app("v", "root.e")
    for body in ({"add": [wrong]}, {"change": [wrong | {"id": "w0"}]}, {"add": [right, wrong]}):
        delta = msgspec.convert({"generation": 1, "workloads": body}, Delta)
        state, _, _ = apply_delta(kept.state, kept.index, delta)
        with pytest.raises(InvalidInput) as whole:
            solve.load(kept.configured, state)
        with pytest.raises(InvalidInput) as followed:
            changed(kept, workloads=body)
        assert followed.value.problems == whole.value.problems
        assert followed.value.problems


@pytest.mark.parametrize(
    "nodes", [{"remove": ["n0"]}, {"change": [node("n1", {"vcore": "much"})]}, {"add": [node("n2", {"odd": -1})]}]
)
def test_bad_nodes_have_the_problems_of_the_whole_state(nodes: Json) -> None:
    kept = small()
    state, _, _ = apply_delta(kept.state, kept.index, msgspec.convert({"generation": 1, "nodes": nodes}, Delta))
    with pytest.raises(InvalidInput) as whole:
        solve.load(kept.configured, state)
    with pytest.raises(InvalidInput) as followed:
        changed(kept, nodes=nodes)
    assert followed.value.problems == whole.value.problems


def test_a_node_goes_together_with_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    for more in ({"tasks": {"remove": [{"workload": "w0", "task": "t0"}]}}, {"workloads": {"remove": ["w0"]}}):
        later = changed(kept, nodes={"remove": ["n0"]}, **more)
        assert not whole
        assert columns(later.compiled) == columns(solve.load(kept.configured, later.state).compiled)
        whole.clear()


def test_shapes_that_nobody_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    for i in range(100):
        kept = changed(kept, workloads={"change": [app("w0", "root.a", task("t0", "n0", {"vcore": f"{i}m"}))]})
        assert len(kept.compiled.shapes) <= yunikorn_state.SPARE_SHAPES
    assert not whole


def test_resources_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    odd = {"change": [app("w0", "root.a", task("t0", "n0", {"odd": 1}))]}
    later = changed(kept, workloads=odd)
    assert later.compiled.resources.names == [*kept.compiled.resources.names, "odd"]
    again = changed(later, workloads={"remove": ["w0"]})
    assert again.compiled.resources.names == kept.compiled.resources.names
    assert len(whole) == 2


def test_what_decisions_have_worked_out_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = small()
    columns(kept.compiled)
    Instead(monkeypatch)(np, argsort=None)
    for body in ({"change": [app("w1", "root.e", priority=2)]}, {"add": [app("w2", "root.a", task("t", "n1", {}))]}):
        kept = changed(kept, workloads=body)
        assert len(kept.compiled.tasks) == kept.compiled.task_count
        assert kept.compiled.lazy.by_node is not None
        assert kept.compiled.lazy.created is not None


def test_large_deltas_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, whole = small(), compilations(monkeypatch)
    for i, bound in enumerate(("LARGE", "MANY")):
        with monkeypatch.context() as strict:
            Bounded(strict)(update, **{bound: 6})
            changed(kept, workloads={"remove": ["w0"]})
        assert len(whole) == i + 1
    changed(kept, workloads={"remove": ["w0"]})
    assert len(whole) == 2


def test_one_change_at_a_time_equals_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the smallest states: a lone task on the last node, one that only begins to leave, one that only moves."""
    kept, whole = small(), compilations(monkeypatch)

    def lone(at: str, **more: Any) -> Json:
        return app("w0", "root.a", task("t0", at, {"vcore": 1}, **more))

    bodies: list[Json] = [
        {"remove": ["w0"]}, {"add": [lone("n1")]}, {"change": [lone("n1", state="preempted")]},
        {"change": [lone("n1", state="releasing")]}, {"change": [lone("n1", priority=3)]}, {"change": [lone("n0")]},
        {"change": [lone("n0", preemptible=False)]}, {"change": [lone("n0", required_node="n0")]},
        {"change": [lone("n0") | {"tasks": []}]}, {"change": [lone("n1")]},
        {"add": [app("a", "root.e", task("t", "n0", {"memory": 2}), task("u", "n1", {"vcore": 2}))]},
        {"change": [app("a", "root.e", task("u", "n1", {}, state="preempted"), task("v", "n1", {"vcore": 1}))]},
        {"change": [lone("n1") | {"queue": "root.b.d"}]}, {"remove": ["w0", "a"]},
    ]  # fmt: skip
    for body in bodies:
        columns(kept.compiled)
        kept = changed(kept, workloads=body)
        assert columns(kept.compiled) == columns(solve.load(kept.configured, kept.state).compiled), body
    assert len(whole) <= len(bodies) + 2, "all but those that bring a resource or take one away are followed"
