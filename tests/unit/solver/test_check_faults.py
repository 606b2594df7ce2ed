"""One fault at a time in what is sound otherwise: both speeds of looking see it, and it has one pointer."""

from copy import deepcopy
from functools import reduce
from typing import Any

import msgspec
import pytest

from app.solver import check
from app.solver.apply import Index
from app.solver.delta import Changes, apply_delta
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Delta, State

Json = dict[str, Any]
ASK = {"id": "r", "queue": "q", "tasks": [{"name": "t"}]}
STATE: Json = {
    "nodes": [{"name": "n", "capacity": {"cpu": 1}, "occupied": {"cpu": 1}}, {"name": "m", "capacity": {}}],
    "workloads": [
        {"id": "w", "queue": "q", "limit": {"cpu": 1}, "tasks": [{"name": "t", "node": "n", "requests": {"cpu": 1}}]},
        {"id": "v", "queue": "q", "tasks": [{"name": "t"}, {"name": "u", "node": "m"}]},
        {"id": "bare", "queue": "q"},
    ],
    "reservations": [{"node": "n", "ask": ASK}],
    "queues": {"q": {}},
}
SEEN, LEFT, QUANTITY = "seen", "left to the engine", "quantity"
STATE_FAULTS: list[tuple[str, Any, str, str]] = [
    ("nodes", [{"name": name, "capacity": {}} for name in "nmn"], "/state/nodes/2/name", SEEN),
    ("workloads/1/id", "w", "/state/workloads/1/id", SEEN),
    ("queues", {"q": {}, "ghost": {}}, "/state/queues/ghost", SEEN),
    ("reservations/0/node", "ghost", "/state/reservations/0/node", SEEN),
    ("reservations/0/ask/queue", "ghost", "/state/reservations/0/ask/queue", SEEN),
    ("reservations/0/ask/workload", "ghost", "/state/reservations/0/ask/workload", SEEN),
    ("reservations/0/ask/limit", {"cpu": "x"}, "/state/reservations/0/ask/limit/cpu", SEEN),
    ("reservations/0/ask/tasks/0/usage", {"cpu": -1}, "/state/reservations/0/ask/tasks/0/usage/cpu", SEEN),
    ("workloads/2/queue", "ghost", "/state/workloads/2/queue", LEFT),
    ("workloads/0/tasks/0/node", "ghost", "/state/workloads/0/tasks/0/node", LEFT),
    ("workloads/1/tasks/1/node", "ghost", "/state/workloads/1/tasks/1/node", LEFT),
    ("workloads/1/tasks/1/name", "t", "/state/workloads/1/tasks/1/name", LEFT),
    ("workloads/0/tasks/0/required_node", "ghost", "/state/workloads/0/tasks/0/required_node", QUANTITY),
    ("workloads/0/limit/cpu", "x", "/state/workloads/0/limit/cpu", QUANTITY),
    ("workloads/0/tasks/0/requests/cpu", "x", "/state/workloads/0/tasks/0/requests/cpu", QUANTITY),
    ("nodes/0/capacity/cpu", "x", "/state/nodes/0/capacity/cpu", QUANTITY),
    ("nodes/0/occupied/cpu", "x", "/state/nodes/0/occupied/cpu", QUANTITY),
]


def with_fault(of: Json, path: str, value: Any) -> Json:
    out = deepcopy(of)
    *steps, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    reduce(lambda at, step: at[step], steps, out)[last] = value  # pyright: ignore[reportArgumentType, reportCallIssue]
    return out


def state(of: Json) -> State:
    return msgspec.convert(of, State)


def test_what_is_sound_has_no_problem() -> None:
    sound = state(STATE)
    assert check.state_problems({"q"}, sound) == []
    assert check.quick_state({"q"}, sound, Index(sound))
    assert check.quick_state({"q"}, sound, Index(sound), engine_looks=True)


@pytest.mark.parametrize(("path", "value", "where", "by"), STATE_FAULTS, ids=[where for *_, where, _ in STATE_FAULTS])
def test_one_fault_of_a_state(path: str, value: Any, where: str, by: str) -> None:
    broken = state(with_fault(STATE, path, value))
    assert [p.pointer for p in check.state_problems({"q"}, broken)] == [where]
    assert check.quick_state({"q"}, broken, Index(broken)) is (by == QUANTITY)
    assert check.quick_state({"q"}, broken, Index(broken), engine_looks=True) is (by != SEEN)


@pytest.mark.parametrize(
    ("changes", "sound"),
    [
        ({}, True),
        ({"workloads": {"remove": ["w", "v"]}, "reservations": {"remove": [{"node": "n", "ask": "r"}]}}, True),
        ({"workloads": {"add": [{"id": "x", "queue": "q", "tasks": [{"name": "t", "node": "m"}]}]}}, True),
        ({"workloads": {"add": [{"id": "x", "queue": "ghost"}]}}, False),
        ({"workloads": {"change": [{"id": "w", "queue": "ghost"}]}}, False),
        ({"workloads": {"change": [{"id": "w", "queue": "q", "tasks": [{"name": "t", "node": "x"}]}]}}, False),
        ({"workloads": {"change": [{"id": "w", "queue": "q", "tasks": [{"name": "t"}, {"name": "t"}]}]}}, False),
        ({"nodes": {"add": [{"name": "k", "capacity": {}}]}}, True),
        ({"nodes": {"change": [{"name": "n", "capacity": {}}]}}, True),
        ({"nodes": {"remove": ["m"]}}, False),
        ({"nodes": {"remove": ["m"]}, "workloads": {"remove": ["v"]}}, True),
        ({"nodes": {"remove": ["n"]}, "workloads": {"remove": ["w"]}}, False),
        ({"queues": {"q": {}}}, True),
        ({"queues": {"ghost": {}}}, False),
        ({"reservations": {"add": [{"node": "m", "ask": ASK}]}}, True),
        ({"reservations": {"add": [{"node": "ghost", "ask": ASK}]}}, False),
        ({"reservations": {"add": [{"node": "m", "ask": ASK | {"workload": "ghost"}}]}}, False),
    ],
)
def test_after_a_delta_the_quick_look_sees_what_the_long_one_sees(changes: Json, sound: bool) -> None:
    old = state(STATE)
    delta = msgspec.convert({"generation": 1} | changes, Delta)
    new, index, changed = apply_delta(old, Index(old), delta)
    assert (check.state_problems({"q"}, new) == []) is sound
    assert check.quick_changes({"q"}, old, new, index, changed) is sound


def test_nodes_that_a_change_doubled_are_seen() -> None:
    old = state(STATE)
    new = msgspec.structs.replace(old, nodes=[*old.nodes, old.nodes[0]])
    assert not check.quick_changes({"q"}, old, new, Index(new), Changes([], moved=False, nodes=True, rest=False))


def configuration_problems(of: Json, **more: Any) -> list[tuple[str, str]]:
    found = check.configuration_problems(msgspec.convert(of, Configuration), **more)
    return [(p.pointer.removeprefix("/configuration"), p.detail) for p in found]


QUOTA = {"cpu": {"guaranteed": 1, "borrowing_limit": 1, "lending_limit": 1}}
QUEUE: Json = {
    "name": "q",
    "resource_groups": [{"resources": ["cpu"], "flavors": [{"name": "f", "quota": QUOTA}]}],
}
SHORT: Json = {"name": "q", "quota": {"cpu": {"guaranteed": "unlimited", "limit": "unlimited", "weight": 0}}}
AT = "/queues/0/resource_groups/0/flavors"


@pytest.mark.parametrize(
    ("queue", "path", "value", "where"),
    [
        (QUEUE, "weight", 0, None),
        (QUEUE, "weight", -0.5, "/queues/0/weight"),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/guaranteed", "x", f"{AT}/0/quota/cpu/guaranteed"),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/guaranteed", "unlimited", None),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/borrowing_limit", -1, f"{AT}/0/quota/cpu/borrowing_limit"),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/lending_limit", "x", f"{AT}/0/quota/cpu/lending_limit"),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/limit", "x", f"{AT}/0/quota/cpu/limit"),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/limit", "unlimited", None),
        (QUEUE, "resource_groups/0/flavors/0/quota/cpu/weight", -1, f"{AT}/0/quota/cpu/weight"),
        (QUEUE, "resource_groups/0/resources", ["gpu"], f"{AT}/0/quota/cpu"),
        (QUEUE, "resource_groups/0/flavors", [{"name": "f", "quota": {}}] * 2, f"{AT}/1/name"),
        (QUEUE, "quota", {"cpu": {"guaranteed": 1}}, "/queues/0/quota"),
        (QUEUE, "quota", {}, None),
        (SHORT, "quota/cpu/weight", -1, "/queues/0/quota/cpu/weight"),
        (SHORT, "quota/cpu/borrowing_limit", "unlimited", "/queues/0/quota/cpu/borrowing_limit"),
        (SHORT, "quota/cpu/lending_limit", "unlimited", "/queues/0/quota/cpu/lending_limit"),
        (SHORT, "parent", "ghost", "/queues/0/parent"),
        (SHORT, "parent", "q", "/queues/0/parent"),
    ],
)
def test_one_fault_of_a_queue(queue: Json, path: str, value: Any, where: str | None) -> None:
    found = configuration_problems({"queues": [with_fault(queue, path, value)]})
    assert [place for place, _ in found] == ([] if where is None else [where])


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0])
def test_weights_are_finite(weight: float) -> None:
    sound = msgspec.convert({"queues": [SHORT]}, Configuration)
    (queue,) = sound.queues
    assert queue.quota is not None
    heavy = msgspec.structs.replace(
        queue, weight=weight, quota={"cpu": msgspec.structs.replace(queue.quota["cpu"], weight=weight)}
    )
    found = check.configuration_problems(msgspec.structs.replace(sound, queues=[heavy]))
    assert [p.pointer for p in found] == ["/configuration/queues/0/weight", "/configuration/queues/0/quota/cpu/weight"]


def test_flavors_are_declared_once() -> None:
    assert configuration_problems({"flavors": [{"name": "f"}, {"name": "g"}, {"name": "f"}]}) == [
        ("/flavors/2/name", "a second flavor 'f'")
    ]


def test_a_parent_may_be_implied() -> None:
    of = {"queues": [{"name": "q", "parent": "ghost"}]}
    assert configuration_problems(of) == [("/queues/0/parent", "no queue 'ghost'")]
    assert configuration_problems(of, implicit_parents=True) == []


def test_a_tree_is_so_deep_and_no_deeper() -> None:
    chain = [{"name": "q0"}] + [{"name": f"q{i}", "parent": f"q{i - 1}"} for i in range(1, 258)]
    assert configuration_problems({"queues": chain[:257]}) == []
    deeper = "'q257' is deeper than 256 levels, or under a cycle"
    assert configuration_problems({"queues": chain}) == [("/queues/257/parent", deeper)]


def test_who_is_on_a_cycle_and_who_is_under_one() -> None:
    queues = [{"name": n, "parent": p} for n, p in (("a", "b"), ("b", "c"), ("c", "b"))] + [{"name": "fine"}]
    assert configuration_problems({"queues": queues}) == [
        ("/queues/0/parent", "'a' is deeper than 256 levels, or under a cycle"),
        ("/queues/1/parent", "'b' is its own ancestor"),
        ("/queues/2/parent", "'c' is its own ancestor"),
    ]


def test_asks_of_another_field_point_there() -> None:
    index = Index(state(STATE))
    asks = msgspec.convert([ASK, ASK, {"id": "own", "workload": "own", "queue": "q", "tasks": []}], list[Ask])
    assert [p.pointer for p in check.ask_problems({"q"}, index, asks, "pending")] == ["/pending/1/id"]
    assert check.one_ask_problems({"q"}, index, asks[2]) == []
    assert [p.pointer for p in check.one_ask_problems(set(), index, asks[2])] == ["/ask/queue"]


def test_plain_asks_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All queues and workloads that there are may be named, and two asks may name the same."""

    def closer(*anything: object) -> None:
        raise AssertionError(anything)

    monkeypatch.setattr(check, "_ask_problems", closer)
    index = Index(state({"workloads": [{"id": "w", "queue": "q"}], "nodes": [{"name": "n", "capacity": {}}]}))
    plain: Json = {"queue": "q", "tasks": [{"name": "t", "requests": {"cpu": 1}}]}
    more: list[Json] = [{}, {"workload": "w"}, {"workload": "x2"}, {"feasible_nodes": ["n"]}, {"limit": {}}]
    asks = msgspec.convert([plain | {"id": f"x{i}"} | one for i, one in enumerate(more)], list[Ask])
    assert check.ask_problems({"q"}, index, asks) == []
    twice = msgspec.convert([plain | {"id": "x"}] * 2, list[Ask])
    with pytest.raises(AssertionError):
        check.ask_problems({"q"}, index, twice)


def test_a_task_starts_with_as_many_as_it_has_or_fewer() -> None:
    index = Index(State())
    least, whole = "/ask/tasks/0/min_count", "/ask/tasks/0/full_count"
    for more, problems in (
        ({"min_count": 3}, []), ({"min_count": 4}, [least]), ({"min_count": 4, "full_count": 4}, []),
        ({"full_count": 2}, [whole]), ({"min_count": 5, "full_count": 4}, [least]),
    ):  # fmt: skip
        of = {"id": "a", "queue": "q", "tasks": [{"name": "t", "count": 3} | more]}
        assert [p.pointer for p in check.one_ask_problems({"q"}, index, msgspec.convert(of, Ask))] == problems


@pytest.mark.parametrize(
    ("tasks", "sound"),
    [([], True), ([("t", "n")], True), ([("t", "x")], False), ([("t", None), ("u", "n")], True),
     ([("t", None), ("t", None)], False), ([("t", None), ("u", "x")], False)],
)  # fmt: skip
def test_sound_tasks(tasks: list[tuple[str, str | None]], sound: bool) -> None:
    of = {"id": "a", "queue": "q", "tasks": [{"name": name, "node": node} for name, node in tasks]}
    assert check.sound_tasks(msgspec.convert(of, Ask).tasks, {None, "n"}) is sound
