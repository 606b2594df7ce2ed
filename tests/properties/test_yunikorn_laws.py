"""The laws hold on random clusters, and preemption always comes to rest; the released rules break what is known.

Clusters are of two kinds: trees of all sorts, and tenants, full clusters whose parents guarantee about the sum of
their children, where preemption stays inside a tenant.
"""

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.yunikorn.ask import Context, apply, look_for_victims, may_find, next_alike, place
from app.solver.engines.yunikorn.candidates import SILENT, Outcome
from app.solver.engines.yunikorn.guarantees import Bounds, has_headroom
from app.solver.engines.yunikorn.overlay import Overlay, requests_of
from app.solver.model.base import micros
from app.solver.model.state import Ask
from tests.properties.yunikorn_laws import Laws
from tests.support.profiles import Met, examples
from tests.support.yunikorn_laws import (
    QUICK,
    asks_of,
    tenants,
    worlds,
)
from tests.support.yunikorn_world import Json, World, app, ask, grouped, node, queue, task

ROUNDS = 40


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
def test_whoever_can_find_nobody_is_told_to_wait(met: Met, kind: Worlds) -> None:
    @examples(400, QUICK)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(kind)
        wanted = data.draw(asks_of(of, 1))[0]
        state = of.compiled()
        overlay, request = Overlay(state), requests_of(state, msgspec.convert(wanted, Ask))[0]
        if place(overlay, request) is None and request.required is None:
            outcome = of.one(wanted)["outcome"]
            told = met([] if may_find(overlay, request, micros(of.now)) else [outcome])
            assert told in ([], ["wait"]), of.body(wanted)

    check()


def test_the_next_victim_for_asks_that_are_alike_is_the_one_that_a_search_comes_to(met: Met) -> None:
    @examples(400, QUICK)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        of = data.draw(_many_nodes())
        wants = st.sampled_from(["root.a", "root.a", "root.a", "root.b"]), st.integers(1, 2), st.integers(0, 2)
        kinds = data.draw(st.lists(st.tuples(*wants), min_size=2, max_size=2))
        state, context, following = of.compiled(), Context(micros(of.now), scored=True), list[Outcome]()
        overlay, searched = Overlay(state), Overlay(state)
        for i, drawn in enumerate(data.draw(st.lists(st.sampled_from([0, 0, 1]), min_size=4, max_size=10))):
            leaf, amount, priority = kinds[drawn]
            wanted = ask(f"ask-{i}", leaf, {"vcore": amount}, 40, priority=priority)
            request = requests_of(state, msgspec.convert(wanted, Ask))[0]
            searched.victims = None
            searched.vain.clear()
            headroom = has_headroom(searched, request)
            outcome = look_for_victims(searched, request, context, SILENT, headroom=headroom, shared=True)
            told = follows = next_alike(overlay, request, Bounds(state, request))
            if told is None:
                told = look_for_victims(overlay, request, context, SILENT, headroom=headroom, shared=True)
            assert (told.kind, told.node, told.victims) == (outcome.kind, outcome.node, outcome.victims), of.body(
                wanted
            )
            following += [] if follows is None else [follows]
            for on in (overlay, searched):
                apply(on, request, told)
        met(following)

    check()


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


@st.composite
def _many_nodes(draw: st.DrawFn) -> World:
    """Nodes that are full of small tasks, of queues with something guaranteed."""
    leaves = ["root.a", "root.b", "root.c", "root.d"]
    promises = st.sampled_from([{}, {"vcore": 1}, {"vcore": 2}, {"vcore": 4}])
    wanted = st.one_of(st.tuples(st.integers(1, 8), st.none()), st.tuples(st.integers(1, 3), st.integers(3, 5)))
    queues = [queue("root"), queue("root.a", {"vcore": draw(wanted)})]
    queues += [queue(leaf, draw(promises)) for leaf in leaves[1:]]
    nodes = [node(f"n{i}", {"vcore": draw(st.sampled_from([1, 2, 2]))}) for i in range(draw(st.integers(3, 9)))]
    workloads = {leaf: app(f"app-{leaf}", leaf) for leaf in leaves[1:]}
    for i, there in enumerate(nodes):
        room = there["capacity"]["vcore"]
        for unit, amount in enumerate(draw(st.sampled_from([[room], [1] * room]))):
            leaf, priority = draw(st.sampled_from(leaves[1:])), draw(st.sampled_from([0, 0, 1]))
            one = task(f"{i}-{unit}", there["name"], {"vcore": amount}, draw(st.integers(100, 104)), priority=priority)
            workloads[leaf]["tasks"].append(one)
    return World(queues=queues, nodes=nodes, workloads=list(workloads.values()))
