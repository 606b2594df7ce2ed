"""The laws hold on random clusters, and preemption always comes to rest; the released rules break what is known."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties.yunikorn_laws import Laws
from tests.yunikorn_world import Json, World, app, ask, node, queue, task

RESOURCES = ("vcore", "memory")
LEAVES = ("root.a", "root.b.c", "root.b.d", "root.b.cc", "root.e.f")
ROUNDS = 40
QUICK = settings(
    max_examples=150, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=[Phase.generate], report_multiple_bugs=False,
)  # fmt: skip


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
def asks_of(draw: Any, of: World, most: int) -> list[Json]:
    leaves = [w["queue"] for w in of.workloads]
    leaves += leaves[:1] * 3
    out: list[Json] = []
    for i in range(draw(st.integers(1, most))):
        leaf = draw(st.sampled_from(leaves))
        more: Json = {"workload": f"app-{leaf}", "priority": draw(st.integers(0, 2))}
        out.append(ask(f"ask-{i}", leaf, _amounts(draw, 4), draw(st.integers(31, 100)), **more))
    return out


def one_decision(rules: str) -> Callable[[], None]:
    """The laws, on every answer to a single ask."""

    @QUICK
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(worlds())
        of.rules = rules
        wanted = data.draw(asks_of(of, 1))[0]
        decision = of.one(wanted)
        broken = Laws(of.body(), wanted).broken(decision)
        assert not broken, (broken, of.body(wanted), decision)

    return check


def coming_to_rest(rules: str) -> Callable[[], None]:
    """Rounds in which every victim is made again end, and whoever was evicted for an ask made room for it."""

    @QUICK
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(worlds())
        of.rules = rules
        wanted = data.draw(asks_of(of, 3))
        left, _ = of.settle(wanted, ROUNDS)
        waiting = {one["id"] for one in left}
        vain = [held["ask"]["id"] for held in of.reservations if held["ask"]["id"] in waiting]
        assert not vain, (vain, of.body(*wanted))

    return check


def test_every_law_holds_on_every_answer() -> None:
    one_decision("documented")()


def test_preemption_comes_to_rest_and_nobody_is_evicted_in_vain() -> None:
    coming_to_rest("documented")()


def test_the_released_rules_break_laws() -> None:
    with pytest.raises(AssertionError):
        one_decision("shipped")()


def test_the_released_rules_evict_in_vain_or_never_rest() -> None:
    with pytest.raises(AssertionError):
        coming_to_rest("shipped")()
