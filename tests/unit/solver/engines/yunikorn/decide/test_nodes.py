"""Which nodes an ask may have, the least used one, and bounds that spare searches."""

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from app.solver.engines.yunikorn.candidates import IMPOSSIBLE, at_least, in_order
from app.solver.engines.yunikorn.state import CompiledState
from tests.support.yunikorn_world import Json, World, ago, app, ask, node, queue, task

ONE, TWO = {"vcore": 1}, {"vcore": 2}
RULES = pytest.mark.parametrize("rules", ["documented", "shipped"])


def world(nodes: list[Json], *tasks: Json, rules: str = "documented", **more: Any) -> World:
    """Prod is guaranteed a lot and runs nothing; Test is guaranteed nothing and runs ``tasks``."""
    return World(
        queues=[queue("root"), queue("root.prod", {"vcore": 99}), queue("root.test")], nodes=nodes,
        workloads=[app("prod", "root.prod"), app("test", "root.test", *tasks)], rules=rules, **more,
    )  # fmt: skip


@RULES
@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        # (capacity, used) of each.
        (({"vcore": 20}, {"vcore": 6}), ({"vcore": 9}, {"vcore": 3}), "a"),
        (({"vcore": 20}, {"vcore": 7}), ({"vcore": 9}, {"vcore": 3}), "b"),
        (({"vcore": 20}, {"vcore": 6}), ({"vcore": 10}, {"vcore": 3}), "a"),
        (({"vcore": 10, "memory": 10}, {"vcore": 2, "memory": 6}), ({"vcore": 10}, {"vcore": 3}), "b"),
        (({"vcore": 10, "memory": 10}, {"vcore": 2, "memory": 6}), ({"vcore": 10}, {"vcore": 5}), "a"),
        (({"vcore": 10, "disk": 10}, {"vcore": 2, "disk": 9}), ({"vcore": 10}, {"vcore": 3}), "a"),
        (({"vcore": 10, "memory": 0}, {"vcore": 3, "memory": 5}), ({"vcore": 10}, {"vcore": 4}), "a"),
        (({"vcore": 10, "memory": 1}, {"vcore": 3, "memory": 1}), ({"vcore": 10}, {"vcore": 6}), "b"),
    ],
    ids=["30 or 33 %", "35 or 33 %", "a tie", "40 or 30 %", "40 or 50 %", "other resources", "none of it", "full"],
)  # fmt: skip
def test_the_least_used_in_the_mean_of_the_two_resources_that_a_node_has(
    rules: str, a: tuple[Json, Json], b: tuple[Json, Json], least: str
) -> None:
    of = world([node("b", b[0]), node("a", a[0])], task("on-a", "a", a[1]), task("on-b", "b", b[1]), rules=rules)
    assert of.one(ask("want", "root.prod", ONE, workload="prod"))["node"] == least


def holder(**more: Any) -> Json:
    """An ask whose reservation gives way: of a lower priority, and older than 2 h and 2 s."""
    return ask("other", "root.prod", TWO, age=7202.000001, workload="prod", priority=-1, **more)


@pytest.mark.parametrize(
    ("change", "gives"),
    [
        ({}, True), ({"created_at": ago(7202)}, False), ({"priority": 0}, False), ({"required_node": "n1"}, False),
        ({"yunikorn": {"triggered_preemption": True}}, False),
    ],
    ids=["weak", "young", "equal", "bound", "triggered"],
)  # fmt: skip
@RULES
def test_which_reservations_give_way(rules: str, change: Json, gives: bool) -> None:
    """A second node that is closed leaves room below the limit of the root, and none for the ask."""
    nodes = [node("n1", TWO), node("n2", TWO, schedulable=False)]
    of = world(nodes, task("t", "n1", TWO), rules=rules, reservations=[{"node": "n1", "ask": holder() | change}])
    answer = of.decide(ask("want", "root.prod", TWO, workload="prod"))
    assert [one["task"] for one in answer["decisions"][0]["victims"]] == ["t"] * gives
    assert answer["notes"]["cancelled_reservations"] == [{"node": "n1", "ask": "other"}] * gives


@pytest.mark.parametrize("closed", [{"schedulable": False}, {"capacity": ONE}], ids=["cordoned", "too small"])
def test_reservations_give_way_on_nodes_that_are_no_use_to_the_ask(closed: Json) -> None:
    """As released, whatever becomes of the ask; all of them that are weak, and nobody can be preempted there."""
    held = [{"node": "n1", "ask": holder() | {"id": name}} for name in ("one", "two")]
    of = world([node("n1", TWO) | closed, node("n2", ONE)], task("t", "n1", ONE), rules="shipped", reservations=held)
    answer = of.decide(ask("want", "root.prod", TWO, workload="prod"))
    assert answer["decisions"][0]["outcome"] == "wait"
    assert answer["notes"]["cancelled_reservations"] == [{"node": "n1", "ask": name} for name in ("one", "two")]


def test_a_node_whose_reservation_gives_way_is_taken_where_it_has_room_now() -> None:
    """n1 is full, n3 fits and is used the least; n2 is kept for another."""
    nodes = [node("n1", TWO), node("n2", TWO), node("n3", {"vcore": 4}), node("n4", {"vcore": 3})]
    held = [{"node": name, "ask": holder() | {"id": f"for-{name}"}} for name in ("n1", "n3", "n4")]
    held.append({"node": "n2", "ask": holder(yunikorn={"triggered_preemption": True}) | {"id": "for-n2"}})
    of = world(nodes, task("t", "n1", TWO), task("u", "n3", ONE), task("v", "n4", ONE), reservations=held)
    answer = of.decide(ask("want", "root.prod", TWO, workload="prod"))
    (decision,) = answer["decisions"]
    assert (decision["outcome"], decision["node"]) == ("admit", "n3")
    assert answer["notes"]["cancelled_reservations"] == [{"node": "n3", "ask": "for-n3"}]
    only = of.decide(ask("want", "root.prod", TWO, workload="prod", feasible_nodes=["n1", "n4"]))
    assert (only["decisions"][0]["outcome"], only["decisions"][0]["node"]) == ("admit", "n4")


def compiled(nodes: int, *tasks: Json) -> CompiledState:
    return world([node(f"n{i}", TWO) for i in range(nodes)], *tasks).compiled()


def test_a_bound_is_never_above_the_fewest_that_do() -> None:
    """Against trying every set on every node, of two resources, one of which only some of the tasks give."""
    rng = random.Random(2)
    seen: set[bool] = set()
    for _ in range(60):
        sizes = [{"disk": rng.randint(0, 4), "memory": rng.randint(0, 3)} for _ in range(7)]
        state = compiled(2, *(task(f"t{i}", f"n{rng.randint(0, 1)}", of) for i, of in enumerate(sizes)))
        disk, memory = state.resources.index["disk"], state.resources.index["memory"]
        among = np.array(sorted(rng.sample(range(7), 6)))
        helps = np.array([rng.random() < 0.7 for _ in among])
        lack = [[rng.randint(-1, 7) for _ in range(2)] for _ in range(2)]
        bound = at_least(state, among, [(disk, np.array(lack[0]), None), (memory, np.array(lack[1]), helps)])
        for at in range(2):
            there = [(int(t), bool(h)) for t, h in zip(among, helps, strict=True) if state.node[t] == at]
            fewest = next(
                (
                    size
                    for size in range(len(there) + 1)
                    for chosen in combinations(there, size)
                    if sum(state.amounts(t)[disk] for t, _ in chosen) >= lack[0][at]
                    and sum(state.amounts(t)[memory] for t, h in chosen if h) >= lack[1][at]
                ),
                IMPOSSIBLE,
            )
            assert 0 <= bound[at] <= fewest
            assert bound[at] > 0 or max(lack[0][at], lack[1][at]) <= 0, "who lacks something needs somebody"
            seen |= {bound[at] == IMPOSSIBLE, fewest == IMPOSSIBLE}
    assert seen == {False, True}


def test_a_bound_tells_how_many_of_the_largest_it_takes() -> None:
    state = compiled(3, *(task(f"t{i}", f"n{i % 2}", {"disk": 2}) for i in range(6)))
    disk = state.resources.index["disk"]
    everybody = np.arange(6)
    for missing, expected in ((0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (6, 3), (7, IMPOSSIBLE)):
        bound = at_least(state, everybody, [(disk, np.array([missing, missing, 0]), None)])
        assert bound.tolist() == [expected, expected, 0], missing
    assert at_least(state, everybody[:0], [(disk, np.array([1, 0, 0]), None)]).tolist() == [IMPOSSIBLE, 0, 0]
    assert at_least(state, everybody, []).tolist() == [0, 0, 0]


def test_nodes_come_by_what_was_found_then_by_name_and_are_searched_late() -> None:
    """n0 turns out worse than its bound; n3 is out; n4 is never searched, as nobody asks so far."""
    state = compiled(5)
    values = {0: 3, 1: 2, 2: 2, 4: 9}
    searched: list[int] = []

    def search(at: int) -> tuple[int, str] | None:
        searched.append(at)
        return (values[at], f"of {at}") if at in values else None

    bound = np.array([1, 2, 2, 1, 9])
    found = in_order(state, np.array([4, 2, 1, 0, 3]), bound, search)
    assert [next(found) for _ in range(3)] == [(2, 1, "of 1"), (2, 2, "of 2"), (3, 0, "of 0")]
    assert searched == [0, 3, 1, 2]
    assert list(found) == [(9, 4, "of 4")]
    assert searched == [0, 3, 1, 2, 4]
