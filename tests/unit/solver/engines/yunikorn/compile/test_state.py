"""Columns of a compiled cluster: times, sums and resources at their bounds."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from app.solver.engines.yunikorn.state import OLDEST, CompiledState, sums
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

FAR = (
    "1969-12-31T23:59:59.999999Z",
    "2106-02-07T06:28:15.999999Z",
    "2106-02-07T06:28:16.000001Z",
    "2999-01-01T00:00:00.000001Z",
)


def compiled(nodes: list[Json], *workloads: Json, **queues: Any) -> CompiledState:
    return World([queue("root"), queue("root.a", **queues)], nodes, list(workloads)).compiled()


@pytest.mark.parametrize("far", range(len(FAR) + 1))
def test_times_are_exact_to_the_microsecond(far: int) -> None:
    """Up to ``far`` of the odd ones; a task without one has its application's, and without that it is the oldest."""
    times = ["2026-01-01T12:00:00.000001Z", "2026-01-01T12:00:00.000002Z", *FAR[:far]]
    tasks = [{"name": f"t{i}", "requests": {}, "created_at": at} for i, at in enumerate(times)]
    without = [{"name": "x", "requests": {}}]
    state = compiled(
        [], app("a", "root.a", *tasks), app("b", "root.a", *without),
        {"id": "c", "queue": "root.a", "tasks": without},
    )  # fmt: skip
    expected = [micros(datetime.fromisoformat(at)) for at in times]
    expected += [micros(datetime(2026, 1, 1, 10, tzinfo=UTC)), OLDEST]
    assert state.all_created().tolist() == expected == [state.created(i) for i in range(len(expected))]


BIG = 2**53


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([], [0, 0, 0]), ([1, 2, 3], [3, 3, 0]), ([BIG - 2, 1, 0], [BIG - 1, 0, 0]), ([BIG, 1, 1], [BIG + 1, 1, 0]),
        ([BIG + 1, 2, 2 * BIG + 1], [BIG + 3, 2 * BIG + 1, 0]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [np.int64, object])
def test_sums_by_group_are_exact(amounts: list[int], expected: list[int], kind: Any) -> None:
    """Of groups 0, 0, 1 of three."""
    groups = np.array([0, 0, 1][: len(amounts)], dtype=np.int64)
    found = sums(np.array(amounts, dtype=kind), groups, 3)
    assert found == expected
    assert all(type(one) is int for one in found)


@pytest.mark.parametrize(("names", "refused"), [(126, False), (127, True)])
def test_so_many_names_of_resources_are_too_many(names: int, refused: bool) -> None:
    """Beside what the queue and the node name: 128 in all."""
    requests = {f"r{i:03}": 1 for i in range(names)}
    nodes, workload = [node("n", {"memory": 1})], app("w", "root.a", task("t", "n", requests))
    if not refused:
        assert len(compiled(nodes, workload, quota={"vcore": 1}).resources) == 128
        return
    with pytest.raises(InvalidInput) as found:
        compiled(nodes, workload, quota={"vcore": 1})
    assert [(p.pointer, p.detail) for p in found.value.problems] == [
        ("/state/workloads/0", "more than 128 resource names")
    ]


@pytest.mark.parametrize("tainted", [(), (0,), (1,), (0, 1)])
def test_a_node_with_a_taint_is_closed_however_many_others_have_one(tainted: tuple[int, ...]) -> None:
    taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    nodes = [node(f"n{i}", {"vcore": 1}, **(taint if i in tainted else {})) for i in range(2)]
    of = World([queue("root"), queue("root.a")], nodes, [])
    found = of.one(ask("x", "root.a", {"vcore": 1})).get("node")
    assert found == next((f"n{i}" for i in range(2) if i not in tainted), None)


def test_applications_of_a_parent_queue_are_refused_in_the_order_of_the_request() -> None:
    wrong = [app("z", "root"), app("m", "root.a"), app("a", "root")]
    with pytest.raises(InvalidInput) as found:
        compiled([], *wrong)
    assert [p.pointer for p in found.value.problems] == ["/state/workloads/0/queue", "/state/workloads/2/queue"]
    assert found.value.problems[0].detail == "'root' is a parent queue: applications run in leaf queues"


@pytest.mark.parametrize("wrong", ["queue", "node", "name"])
def test_names_are_looked_at_before_anything_else(wrong: str) -> None:
    """Nobody does it before (``Engine.looks``), and of a parent queue is spoken only where all names are known."""
    tasks = [{"name": "t", "requests": {}, "node": "gone" if wrong == "node" else "n"}]
    tasks += [{"name": "t" if wrong == "name" else "u", "requests": {}}]
    with pytest.raises((KeyError, ValueError)):
        compiled([node("n", {})], app("a", "root"), app("b", "root.gone" if wrong == "queue" else "root.a", *tasks))


def test_what_runs_where_and_what_is_free() -> None:
    """Tasks in the order of their queue, application and name; counts, and what nodes are occupied by, added up."""
    state = compiled(
        [
            node("b", {"vcore": 9}, occupied={"vcore": 1, "disk": 2}),
            node("a", {"vcore": 5, "memory": 7}),
            node("c", {}),
        ],
        app("w2", "root.a", task("t", "a", {"vcore": 1})),
        app("w1", "root.a", task("u", "b", {"vcore": 2}, count=3), task("t", None, {"vcore": 4}), task("v", "b", {})),
    )
    assert [state.label(i) for i in range(4)] == [("w1", "t"), ("w1", "u"), ("w1", "v"), ("w2", "t")]
    assert [state.tasks_on(i).tolist() for i in range(3)] == [[1, 2], [3], []]
    names = state.resources.names
    free = [
        {names[r]: state.resources.units({r: n})[names[r]] for r, n in enumerate(row)} for row in state.free.tolist()
    ]
    assert free == [
        {"vcore": 2, "disk": -2, "memory": 0}, {"vcore": 4, "disk": 0, "memory": 7},
        {"vcore": 0, "disk": 0, "memory": 0},
    ]  # fmt: skip
    assert state.node_rank.tolist() == [1, 0, 2]
    assert state.application("w2") == 1
    assert state.application("w3") is None


@pytest.mark.parametrize("field", ["originator", "preemptible"])
@pytest.mark.parametrize("which", [(), (0,), (1,), (0, 1)])
def test_flags_hold_whoever_else_has_them(field: str, which: tuple[int, ...]) -> None:
    """Sets of tasks that are originators, or opted out; all of them too."""
    value, bit = (True, 1) if field == "originator" else (False, 2)
    tasks = [task(f"t{i}", None, {}, **({field: value} if i in which else {})) for i in range(2)]
    assert compiled([], app("a", "root.a", *tasks)).flags.tolist() == [bit * (i in which) for i in range(2)]


@pytest.mark.parametrize(
    ("room", "occupied", "asked", "narrow"),
    [
        (2**60, 2**60, 0, False), (2**60, 2**60 - 1, 0, True), (2**60, 2**59, 2**59, False),
        (2**60, 2**59, 2**59 - 1, True), (2**60 - 1, 1, 2**60, False),
    ],
)  # fmt: skip
def test_columns_are_of_64_bits_while_everything_together_fits(
    room: int, occupied: int, asked: int, narrow: bool
) -> None:
    """In thousandths of a core."""
    workload = app("w", "root.a", *[task("t", "n", {"vcore": f"{asked}m"})] * bool(asked))
    state = compiled([node("n", {"vcore": f"{room}m"}, occupied={"vcore": f"{occupied}m"})], workload)
    assert state.narrow is narrow
    assert (state.free.dtype == np.int64) is narrow
    assert state.free.tolist() == [[room - occupied - asked]]


def test_resources_that_no_quota_names_come_by_name() -> None:
    names = [f"r{i}" for i in range(9)]
    state = compiled(
        [node("n", dict.fromkeys(names[6:3:-1], 1), occupied=dict.fromkeys(names[8:6:-1], 1))],
        app("a", "root.a", *(task(name, "n", {name: 1}) for name in names[3::-1])),
    )
    assert state.resources.names == names
