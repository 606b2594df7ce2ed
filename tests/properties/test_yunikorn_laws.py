"""The laws hold on random clusters, and preemption always comes to rest; the released rules break what is known.

Clusters are of two kinds: trees of all sorts, and tenants, full clusters whose parents guarantee about the sum of
their children, where preemption stays inside a tenant.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from tests.properties.yunikorn_laws import Laws
from tests.support.profiles import examples
from tests.support.yunikorn_world import Json, World, app, ask, grouped, node, queue, task

RESOURCES = ("vcore", "memory")
LEAVES = ("root.a", "root.b.c", "root.b.d", "root.b.cc", "root.e.f")
ROUNDS = 40
QUICK = examples(
    150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def _amounts(draw: Any, most: int) -> Json:
    names = draw(st.sampled_from([("vcore",), ("vcore",), RESOURCES, ("memory",)]))
    return {r: draw(st.integers(1, most)) for r in names}


def _quota(draw: Any, ceiling: dict[str, int]) -> dict[str, tuple[int | None, int | None]]:
    """Guarantees and limits below those of the parents, which ``ceiling`` keeps and this tightens."""
    out: dict[str, tuple[int | None, int | None]] = {}
    for r in RESOURCES:
        limit = draw(st.one_of(st.none(), st.none(), st.integers(2, 14)))
        if limit is not None:
            limit = ceiling[r] = min(limit, ceiling.get(r, limit))
        guaranteed = draw(st.one_of(st.none(), st.integers(0, 8)))
        if guaranteed is not None:
            guaranteed = min(guaranteed, ceiling.get(r, guaranteed))
        if guaranteed is not None or limit is not None:
            out[r] = (guaranteed, limit)
    return out


@st.composite
def worlds(draw: Any) -> World:
    """A tree of at most five leaves, nodes that are nearly full, running tasks of all kinds."""
    leaves = draw(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True))
    names = sorted({".".join(leaf.split(".")[: i + 1]) for leaf in leaves for i in range(leaf.count(".") + 1)})
    ceilings: dict[str, dict[str, int]] = {"root": {}}
    queues = [queue("root")]
    for name in names[1:]:
        ceiling = ceilings[name] = dict(ceilings[name.rpartition(".")[0]])
        policy = draw(st.sampled_from(["default", "default", "default", "fence"]))
        queues.append(queue(name, _quota(draw, ceiling), preemption_policy=policy))
    hungry = leaves[0]
    if draw(st.booleans()):
        queues = [queue(hungry, {"vcore": 8}) if q["name"] == hungry else q for q in queues]
        for q in queues:
            if hungry.startswith(q["name"]) and q["name"] != hungry:
                q.pop("quota", None)
    nodes = [
        node(f"n{i}", {r: draw(st.integers(3, 7)) for r in RESOURCES}) for i in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    workloads = {leaf: app(f"app-{leaf}", leaf) for leaf in leaves}
    for at in nodes:
        free = dict(at["capacity"])
        for i in range(7):
            wanted = {r: min(n, free[r]) for r, n in _amounts(draw, 3).items() if free[r]}
            if wanted:
                for r, n in wanted.items():
                    free[r] -= n
                leaf = draw(st.sampled_from(leaves[1:]))
                workloads[leaf]["tasks"].append(_task(draw, f"{at['name']}-{i}", at["name"], wanted))
    return World(queues=queues, nodes=nodes, workloads=list(workloads.values()))


def _task(draw: Any, name: str, on: str, wanted: Json) -> Json:
    return task(
        name, on, wanted, draw(st.integers(100, 104)), priority=draw(st.integers(0, 2)),
        preemptible=draw(st.sampled_from([True, True, False])), originator=draw(st.sampled_from([False, False, True])),
    )  # fmt: skip


@st.composite
def tenants(draw: Any) -> World:
    """Two tenants on full nodes, of a few teams each; one team may be split once more. A parent guarantees the sum of
    its children, or a little more or less, or nothing."""
    split = draw(st.booleans())
    teams = ["root.p.a", "root.p.b", "root.q.c", "root.q.d"]
    leaves = [*teams[1:], "root.p.a.x", "root.p.a.y"] if split else teams
    guaranteed: dict[str, Json] = {leaf: _promise(draw) for leaf in leaves}
    parents = [*(["root.p.a"] if split else []), "root.p", "root.q"]
    for parent in parents:
        below = [of for name, of in guaranteed.items() if name.rpartition(".")[0] == parent]
        total = {r: sum(of.get(r, 0) for of in below) for r in RESOURCES if any(r in of for of in below)}
        off = draw(st.sampled_from([0, 0, 0, -1, 2]))
        keep = draw(st.sampled_from([True, True, True, False]))
        guaranteed[parent] = {r: max(0, n + off) for r, n in total.items()} if keep else {}
    queues = [queue("root"), *(queue(name, guaranteed[name]) for name in sorted(guaranteed))]
    capacity = {"vcore": draw(st.integers(3, 6)), "memory": draw(st.sampled_from([6, 60]))}
    nodes = [node(f"n{i}", capacity) for i in range(draw(st.integers(1, 3)))]
    workloads = {leaf: app(f"app-{leaf}", leaf) for leaf in leaves}
    for at in nodes:
        free = dict(capacity)
        for i in range(6):
            wanted = {r: min(n, free[r]) for r, n in _amounts(draw, 3).items() if free[r]}
            for r, n in wanted.items():
                free[r] -= n
            if wanted:
                leaf = draw(st.sampled_from(leaves))
                workloads[leaf]["tasks"].append(_task(draw, f"{at['name']}-{i}", at["name"], wanted))
    return World(queues=queues, nodes=nodes, workloads=list(workloads.values()))


def _promise(draw: Any) -> Json:
    names = draw(st.sampled_from([(), ("vcore",), ("vcore",), ("vcore",), RESOURCES, ("memory",)]))
    return {r: draw(st.integers(0, 6)) for r in names}


@st.composite
def asks_of(draw: Any, of: World, most: int) -> list[Json]:
    leaves = [w["queue"] for w in of.workloads]
    leaves += leaves[:1] * 3
    out: list[Json] = []
    for i in range(draw(st.integers(1, most))):
        leaf = draw(st.sampled_from(leaves))
        more: Json = {"workload": f"app-{leaf}", "priority": draw(st.integers(0, 2))}
        out.append(ask(f"ask-{i}", leaf, _amounts(draw, 4), draw(st.integers(31, 100)), **more))
    return out


Worlds = st.SearchStrategy[World]


def one_decision(rules: str, kind: Worlds) -> Callable[[], None]:
    """The laws, on every answer to a single ask."""

    @QUICK
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(kind)
        of.rules = rules
        wanted = data.draw(asks_of(of, 1))[0]
        decision = of.one(wanted)
        broken = Laws(of.body(), wanted).broken(decision)
        assert not broken, (broken, of.body(wanted), decision)

    return check


def coming_to_rest(rules: str, kind: Worlds) -> Callable[[], None]:
    """Rounds in which every victim asks again end, each preemption raises what is guaranteed and used, and whoever was
    evicted for an ask made room for it."""

    @QUICK
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(kind)
        of.rules = rules
        asks = wanted = data.draw(asks_of(of, 3))
        for _ in range(ROUNDS):
            before = _standing(of, asks)
            answer = of.decide(*asks, mode="cycle")
            falls = list(_falls(of, asks, answer))
            assert not falls, (falls, of.body(*asks), answer["plan"])
            asks = of.advance(asks, answer)
            if _standing(of, asks) == before:
                break
        else:
            raise AssertionError(f"still changing after {ROUNDS} rounds: {of.body(*wanted)}")
        waiting = {one["id"] for one in asks}
        vain = [held["ask"]["id"] for held in of.reservations if held["ask"]["id"] in waiting]
        assert not vain, (vain, of.body(*wanted))

    return check


def _standing(of: World, asks: list[Json]) -> str:
    return json.dumps([of.workloads, sorted(one["id"] for one in asks)], sort_keys=True)


def _falls(of: World, asks: list[Json], answer: Json) -> Iterator[str]:
    """Preemptions of a cycle that did not raise the sum over queues and resources of min(used, guaranteed), each
    judged with its victims gone and its ask placed, and those before it as well."""
    running = {
        (w["id"], t["name"]): (w["queue"], t["requests"]) for w in of.workloads for t in w["tasks"]
    }  # fmt: skip
    for held in of.reservations:
        one = held["ask"]
        if one["yunikorn"]["triggered_preemption"]:
            running["ask", one["id"]] = (one["queue"], one["tasks"][0]["requests"])
    wanted = {one["id"]: one for one in asks}
    decisions = {decision["ask"]: decision for decision in answer["decisions"]}
    for name in answer["order"]:
        one, decision = wanted[name], decisions[name]
        before = _met(of, running)
        for victim in decision["victims"]:
            del running[victim["workload"], victim["task"]]
        if decision["outcome"] != "wait":
            running["ask", name] = (one["queue"], one["tasks"][0]["requests"])
        if decision["outcome"] == "preempt" and _met(of, running) <= before:
            yield f"{name}: {before} before, {_met(of, running)} after"


def _met(of: World, running: dict[tuple[str, str], tuple[str, Json]]) -> int:
    """The sum over queues and resources of min(used, guaranteed)."""
    total = 0
    for one in of.queues:
        inside = [use for at, use in running.values() if f"{at}.".startswith(f"{one['name']}.")]
        for r, promised in one.get("quota", {}).items():
            total += min(promised.get("guaranteed", 0), sum(use.get(r, 0) for use in inside))
    return total


@pytest.mark.parametrize("kind", [worlds(), tenants()], ids=["worlds", "tenants"])
def test_every_law_holds_on_every_answer(kind: Worlds) -> None:
    one_decision("documented", kind)()


@pytest.mark.parametrize("kind", [worlds(), tenants()], ids=["worlds", "tenants"])
def test_preemption_comes_to_rest_and_nobody_is_evicted_in_vain(kind: Worlds) -> None:
    coming_to_rest("documented", kind)()


@pytest.mark.parametrize("kind", [worlds(), tenants()], ids=["worlds", "tenants"])
def test_the_released_rules_break_laws(kind: Worlds) -> None:
    with pytest.raises(AssertionError):
        one_decision("shipped", kind)()


@examples(40, QUICK)
@given(st.data())
def test_quotas_decide_the_same_as_resource_groups(data: st.DataObject) -> None:
    of = data.draw(tenants())
    wanted = data.draw(asks_of(of, 2))
    before = of.decide(*wanted, mode="cycle", explain="full")
    of.queues = [grouped(one) for one in of.queues]
    after = of.decide(*wanted, mode="cycle", explain="full")
    assert {**before, "configuration": None} == {**after, "configuration": None}


def test_the_released_rules_evict_in_vain_or_never_rest() -> None:
    with pytest.raises(AssertionError):
        coming_to_rest("shipped", worlds())()
