"""Queues and nodes before and after a decision, by plain addition: worked out by hand."""

from collections.abc import Callable
from typing import Any

from app.console.situation import (
    Cell,
    above,
    asks_of,
    carry_out,
    charge,
    decide,
    freed,
    held,
    load,
    nodes_of,
    ordered,
    queues_of,
    requested,
    steps,
    units,
)

Json = dict[str, Any]
CPU, GPU = Cell("cpu"), Cell("gpu")
CONFIGURATION: Json = {"engine": "kai", "queues": [
    {"name": "late", "parent": "top", "quota": {"cpu": {"guaranteed": "500m", "limit": "unlimited"}}},
    {"name": "top"}, {"name": "first", "parent": "late"},
    {"name": "flavored", "parent": "ghost", "resource_groups": [{"flavors": [
        {"quota": {"gpu": {"guaranteed": 1, "limit": 2}}}, {"quota": {"gpu": {"guaranteed": 3, "limit": "unlimited"}}},
        {"name": "without"}, {"quota": {"gpu": {"limit": 5}}},
    ]}]},
    {"name": "one", "parent": "other"}, {"name": "other", "parent": "one"},
]}  # fmt: skip


def task(cpu: Any = 1, **more: Any) -> Json:
    return {"name": "m", "requests": {"cpu": cpu}, **more}


def test_steps_and_units() -> None:
    assert [steps(value, "cpu") for value in (2, "500m", "much", None)] == [2000, 500, 0, 0]
    assert [units(value, "cpu") for value in (2000, 500, None)] == [2, 0.5, None]
    assert units(7, "gpu") in (7, 0.007)


def test_a_tree_has_parents_first_and_circles_left_out() -> None:
    found = queues_of(CONFIGURATION)
    assert [(one.name, one.depth, one.children) for one in found.values()] == [
        ("top", 0, ["late"]), ("late", 1, ["first"]), ("first", 2, []), ("flavored", 0, []),
    ]  # fmt: skip
    assert (found["late"].guaranteed, found["late"].limit) == ({CPU: 500}, {CPU: None})
    gpu = steps(1, "gpu")
    assert (found["flavored"].guaranteed, found["flavored"].limit) == ({GPU: 4 * gpu}, {GPU: None})
    assert queues_of({}) == {}


SPOT, OWN = Cell("cpu", "spot"), Cell("cpu", "own")


def flavored(name: str, spot: Json, own: Json) -> Json:
    quotas = [{"name": "spot", "quota": {"cpu": spot}}, {"name": "own", "quota": {"cpu": own}}]
    return {"name": name, "resource_groups": [{"resources": ["cpu"], "flavors": quotas}]}


def test_flavors_are_never_added_up() -> None:
    bounded = {"guaranteed": 2, "borrowing_limit": 4, "lending_limit": 1}
    queues = queues_of({"queues": [flavored("q", bounded, {"guaranteed": 3, "borrowing_limit": "unlimited"})]})
    one = queues["q"]
    assert (queues.flavored, one.guaranteed) == (True, {SPOT: 2000, OWN: 3000})
    assert (one.borrowing, one.lending, one.stated()) == ({SPOT: 4000, OWN: None}, {SPOT: 1000}, [SPOT, OWN])
    assert queues_of({"queues": [flavored("q", {}, {})]}, "yunikorn").flavored is False, "which has none"
    short = queues_of({"engine": "kueue", "queues": [{"name": "q", "quota": {"cpu": {"guaranteed": 1}}}]})
    assert (short.flavored, short["q"].guaranteed) == (False, {CPU: 1000})
    runs = [{"id": "a", "queue": "q", "tasks": [task(2, flavors={"cpu": "spot"}), task(1, flavors={"cpu": "own"})]},
            {"id": "b", "queue": "q", "tasks": [task(4)]}]  # fmt: skip
    load(queues, {"workloads": runs})
    assert uses(queues) == {"q": ({SPOT: 2000, OWN: 1000, CPU: 4000}, {SPOT: 2000, OWN: 1000, CPU: 4000})}
    victim = {"workload": "a", "queue": "q", "freed": {"cpu": 3}}
    ask = {"queue": "q", "tasks": [task(5, count=9)]}
    decide(queues, {"outcome": "preempt", "victims": [victim], "counts": {"m": 1}, "assignment": {"m": {"cpu": "own"}}},
           ask, {one["id"]: one for one in runs})  # fmt: skip
    assert dict(one.after) == {SPOT: 0, OWN: 5000, CPU: 4000}
    assert one.lines([Cell("gpu"), OWN]) == [OWN]
    assert (one.lines([GPU]), str(OWN), str(CPU)) == ([GPU], "cpu in own", "cpu")


def test_what_is_freed_is_of_the_flavors_that_the_victim_holds() -> None:
    tasks = [task(2, flavors={"cpu": "spot"}), {**task(1, flavors={"cpu": "own"}), "name": "n"}]
    running = {"w": {"tasks": tasks}}
    assert held(tasks, flavored=False) == {CPU: 3000}

    def given(cpu: int, **more: str) -> dict[Cell, int]:
        return freed({"workload": "w", "freed": {"cpu": cpu}, **more}, running, flavored=True)

    assert (given(3), given(2)) == ({SPOT: 2000, OWN: 1000}, {SPOT: 2000})
    assert (given(1, task="n"), given(4)) == ({OWN: 1000}, {SPOT: 2000, OWN: 1000, CPU: 1000})
    assert freed({"workload": "x", "freed": {"cpu": 1}}, running, flavored=True) == {CPU: 1000}
    assert freed({"workload": "w", "freed": {"cpu": 1}}, running, flavored=False) == {CPU: 1000}


def test_rows_in_an_order() -> None:
    rows: list[Json] = [{"a": 2}, {}, {"a": 3}, {"a": 1}, {"b": 1}]
    keys: dict[str, Callable[[Json], Any]] = {"a": lambda one: one.get("a")}
    assert ordered(rows, "a", keys) == [{"a": 1}, {"a": 2}, {"a": 3}, {}, {"b": 1}]
    assert ordered(rows, "-a", keys) == [{"a": 3}, {"a": 2}, {"a": 1}, {}, {"b": 1}], "what has none goes last"
    assert ordered(rows, "", keys) == ordered(rows, "b", keys) == rows


def test_what_tasks_ask_for() -> None:
    over = [task(9, state=state) for state in ("released", "succeeded", "failed")]
    assert requested([task(count=3), task("500m"), *over, {"name": "x"}]) == {"cpu": 3500}
    assert requested([task(9, state="preempted"), task(9, state="releasing")]) == {"cpu": 18000}, "until it is gone"
    assert (asks_of({"asks": "pending"}), asks_of({}), asks_of({"asks": [1]})) == ([], [], [1])


def uses(queues: Any) -> Json:
    return {name: (dict(one.before), dict(one.after)) for name, one in queues.items() if one.before or one.after}


def test_what_runs_stops_and_starts_is_charged_all_the_way_up() -> None:
    queues = queues_of(CONFIGURATION)
    running = [
        {"id": "w", "queue": "first", "tasks": [task(2)]}, {"id": "gone", "queue": "first", "evicted": {}, "tasks": []},
        {"id": "out", "queue": "first", "evicted": {"at": 1}, "tasks": [task(9)]}, {"id": "lost", "queue": "nobody"},
    ]  # fmt: skip
    load(queues, {"workloads": running})
    both = ({CPU: 2000}, {CPU: 2000})
    assert uses(queues) == {"top": both, "late": both, "first": both}
    assert (queues["first"].running, queues["late"].running, any(one.changed for one in queues.values())) == (
        2,
        0,
        False,
    )
    ask = {"queue": "late", "tasks": [task(1, count=4), {**task(5), "name": "n"}, {**task(7), "name": "o"}]}
    victims = [
        {"workload": "w", "queue": "first", "freed": {"cpu": 2}},
        {"workload": "x", "queue": "nobody", "freed": {"cpu": 1}},
    ]
    decided = {"victims": victims, "outcome": "preempt", "counts": {"m": 2}, "starts": ["m", "n"]}
    decide(queues, decided, ask, {})
    assert uses(queues) == {
        "top": ({CPU: 2000}, {CPU: 7000}), "late": ({CPU: 2000}, {CPU: 7000}),
        "first": ({CPU: 2000}, {CPU: 0}),
    }  # fmt: skip
    assert (queues["first"].stopped, queues["late"].waiting) == (1, 0)
    assert [one.name for one in queues.values() if one.changed] == ["top", "late", "first"]
    decide(queues, {"outcome": "wait"}, ask, {})
    decide(queues, {"outcome": "admit"}, {"queue": "nobody", "tasks": [task(9)]}, {})
    decide(queues, {"outcome": "admit"}, None, {})
    assert (queues["late"].waiting, queues["late"].after[CPU]) == (1, 7000)
    decide(queues, {"outcome": "admit"}, {"queue": "flavored", "tasks": [task(1, count=2)]}, {})
    assert (queues["flavored"].after, queues["flavored"].changed) == ({CPU: 2000}, True)


def test_a_circle_is_gone_round_once() -> None:
    queues = queues_of({"queues": [{"name": "a"}, {"name": "b", "parent": "a"}]})
    queues["a"].parent = "b"
    charge(queues, "b", {CPU: 5}, before=True, after=False)
    assert uses(queues) == {"a": ({CPU: 5}, {}), "b": ({CPU: 5}, {})}
    assert [one.name for one in above(queues, "b")] == ["b", "a"]
    assert (above(queues, None), above(queues, "ghost")) == ([], [])


def test_nodes_before_and_after() -> None:
    state = {
        "nodes": [{"name": "n", "capacity": {"cpu": 8}, "occupied": {"cpu": 1}}, {"name": "o"}, {"name": "idle"}],
        "workloads": [{"tasks": [task(2, node="n"), task(3, node="ghost"), task(1), task(1, node="o", count=2)]}],
    }
    nodes = nodes_of(state)
    assert {name: (one.capacity, dict(one.before)) for name, one in nodes.items()} == {
        "n": ({"cpu": 8000}, {"cpu": 3000}), "o": ({}, {"cpu": 2000}), "idle": ({}, {}),
    }  # fmt: skip
    placements = [
        {"node": "o", "ask": "a", "task": "m"}, {"node": "o", "ask": "b", "task": "m"},
        {"node": "ghost", "ask": "a", "task": "m"}, {"node": "o", "ask": "a", "task": "another"},
    ]  # fmt: skip
    victims = [{"node": "n", "freed": {"cpu": 2}}, {"freed": {"cpu": 1}}, {"node": "ghost", "freed": {"cpu": 1}}]
    carry_out(nodes, {"placements": placements}, [{"victims": victims}], {"a": {"tasks": [task(4)]}})
    assert {name: (dict(one.after), one.changed) for name, one in nodes.items()} == {
        "n": ({"cpu": 1000}, True), "o": ({"cpu": 6000}, True), "idle": ({}, False),
    }  # fmt: skip


def test_pods_count_where_a_node_takes_no_more_than_so_many() -> None:
    running = [
        task(1, node="n"),
        task(1, node="n", count=2) | {"name": "several"},
        task(1, node="n", state="released"),
    ]
    nodes = nodes_of({
        "nodes": [{"name": "n", "capacity": {"cpu": 8, "pods": 10}, "occupied": {"pods": 3}}],
        "workloads": [{"id": "w", "tasks": running}],
    })  # fmt: skip
    assert nodes["n"].before["pods"] == 6
    victims = [{"node": "n", "workload": "w", "task": "several", "freed": {"cpu": 2}}]
    placements = [{"node": "n", "ask": "a", "task": "m"}]
    carry_out(nodes, {"placements": placements}, [{"victims": victims}], {"a": {"tasks": [task(4)]}})
    assert (nodes["n"].after["pods"], nodes["n"].after["cpu"]) == (5, 5000)
