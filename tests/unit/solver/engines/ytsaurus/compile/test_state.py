"""A state as columns, whole: nodes, operations and allocations of a small one, worked out by hand."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.ytsaurus.operations import NEVER, UNLIMITED_STEPS, instants
from app.solver.engines.ytsaurus.situation import Situation, situate
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, State
from tests.unit.solver.engines.ytsaurus.cluster import alloc, ask, at, node, operation, pool

Json = dict[str, Any]
FREE = UNLIMITED_STEPS
DAY = micros(datetime(2026, 1, 1, tzinfo=UTC))


def compiled(body: Json, pools: list[Json] | None = None, **settings: Any) -> CompiledState:
    document = {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": pools or [pool("p"), pool("q")]}
    return solve.load(solve.configure(msgspec.convert(document, Configuration)), msgspec.convert(body, State)).compiled


def second(number: int) -> int:
    return DAY + number * 1_000_000


def test_nodes() -> None:
    nodes = [
        node("a", 2.5, occupied={"cpu": 1, "memory": 7}, ytsaurus={"last_preemptive_scheduling_at": at(5)}),
        node("b", 0, schedulable=False, ytsaurus={"overcommit_since": at(7)}),
        node("c", 1, occupied={"cpu": 3}),
    ]
    found = compiled({"nodes": nodes})
    assert found.index.names == ["user_slots", "cpu", "memory"]
    assert found.named == {"user_slots", "cpu", "memory"}
    assert found.node_index == {"a": 0, "b": 1, "c": 2}
    assert found.node_limits.tolist() == [[100, 1500, -7], [100, 0, 0], [100, -2000, 0]]
    assert found.total.tolist() == [300, 1500, 0], "what is occupied beyond a node's own is no other's loss"
    assert found.schedulable.tolist() == [True, False, True]
    assert found.last_preemptive.tolist() == [second(5), NEVER, NEVER]
    assert found.overcommit_since.tolist() == [NEVER, second(7), NEVER]


@pytest.mark.parametrize("where", ["/configuration/queues", "/state", "/asks"])
@pytest.mark.parametrize("count", [61, 65])
def test_so_many_names_of_resources_are_too_many(where: str, count: int) -> None:
    """Beside three that the node names: 64 in all."""
    many = {f"r{i}": 1 for i in range(count)}
    here = {of: many if of == where else {} for of in ("/configuration/queues", "/state", "/asks")}
    pools = [pool("p", quota={name: {"limit": 1} for name in here["/configuration/queues"]})]
    nodes = [node("a", capacity={"user_slots": 100, "cpu": 1, "memory": 9} | here["/state"])]
    asked = ask("o", "p", tasks=[{"name": "t", "requests": {"cpu": 1} | here["/asks"]}])
    found: list[tuple[str, str]] = []
    try:
        situate(compiled({"nodes": nodes}, pools), [msgspec.convert(asked, Ask)])
    except InvalidInput as invalid:
        found = [(problem.pointer, problem.detail) for problem in invalid.problems]
    assert found == ([] if count == 61 else [(where, "more than 64 resource names")])


def test_allocations_by_operation_oldest_first_and_by_node() -> None:
    tasks = [
        alloc("t0", 9, 2, on="b"),
        alloc("t1", 3, 1, on="a", count=3),
        alloc("t2", 1, on="a", state="releasing"),
        alloc("t3", 3, 4, on=None, usage={"cpu": 3.5, "user_slots": 1}),
        {"name": "t4", "node": "a", "requests": {"cpu": 1, "gpu": 0.5}, "usage": {"cpu": 1}, "count": 2},
    ]
    more = [alloc("u0", 2, on="a"), alloc("u1", 2, on="a", usage={"cpu": 1.5})]
    body = {
        "nodes": [node("a"), node("b")],
        "workloads": [operation("w", "p", tasks), operation("x", "p"), operation("y", "q", more)],
    }
    found = compiled(body)
    rows = found.allocations
    assert found.index.names == ["user_slots", "cpu", "gpu"]
    assert rows.of.tolist() == [0, 4, 4, 6]
    assert rows.operation.tolist() == [0, 0, 0, 0, 2, 2]
    assert rows.task.tolist() == [4, 1, 3, 0, 0, 1]
    assert rows.node.tolist() == [0, 0, -1, 1, 0, 0]
    assert rows.started.tolist() == [NEVER, *(second(one) for one in (3, 3, 9, 2, 2))]
    assert rows.usage.tolist() == [[0, 2000, 0], [3, 3000, 0], [1, 3500, 0], [1, 2000, 0], [1, 1000, 0], [0, 1500, 0]]
    assert rows.has_gap.tolist() == [False, False, True, False, False, False]
    assert found.on_node.tolist() == [2, 0, 1, 4, 5, 3]
    assert found.node_start.tolist() == [1, 5, 6]
    assert [found.allocations_on(one).tolist() for one in (0, 1)] == [[0, 1, 4, 5], [3]]
    assert found.usage.tolist() == [[5, 10500, 0], [0, 0, 0], [1, 2500, 0]]
    assert [found.task_of(row).name for row in range(6)] == ["t4", "t1", "t3", "t0", "u0", "u1"]


def test_operations() -> None:
    of_w = {
        "resource_limits": {"cpu": 3, "gpu": 1}, "preemption_mode": "graceful", "is_gang": True,
        "starvation": "aggressively_starving", "below_fair_share_since": at(4), "fair_share_starvation_tolerance": 0.25,
        "fair_share_starvation_timeout": 45, "allocation_preemption_timeout": 7,
        "allocation_graceful_preemption_timeout": 8,
        "non_preemptible_resource_usage_threshold": {"cpu": 2, "memory": 5},
    }  # fmt: skip
    workloads = [
        operation("w", "q", weight=2.5, limit={"cpu": 4, "user_slots": 6}, ytsaurus=of_w),
        operation("x", "p", created_at=at(3), ytsaurus={"suspended": True, "starvation": "starving"}),
        operation("y", "q", created_at=at(2), limit={"cpu": 2**53}),
    ]
    pools = [pool("p"), pool("q", ytsaurus={"non_preemptible_resource_usage_threshold": {"cpu": 1, "user_slots": 9}})]
    found = compiled({"nodes": [node()], "workloads": workloads}, pools, fair_share_starvation_tolerance=0.5)
    of = found.operations
    assert found.index.names == ["user_slots", "cpu", "gpu", "memory"]
    assert (of.ids, found.operation_index) == (["w", "x", "y"], {"w": 0, "x": 1, "y": 2})
    assert of.pool.tolist() == [1, 0, 1]
    assert of.weight.tolist() == [2.5, 1, 1]
    assert of.limits.tolist() == [[6, 3000, 1000, FREE], [FREE] * 4, [FREE, FREE, FREE, FREE]]
    assert of.created.tolist() == [second(0), second(3), second(2)]
    assert (of.graceful.tolist(), of.gang.tolist()) == ([True, False, False], [True, False, False])
    assert of.suspended.tolist() == [False, True, False]
    assert of.tolerance.tolist() == [0.25, 0.5, 0.5]
    assert of.timeout.tolist() == [45_000_000, 30_000_000, 30_000_000]
    assert of.non_preemptible.tolist() == [[9, 1000, FREE, 5], [FREE] * 4, [9, 1000, FREE, FREE]]
    assert of.protects.tolist() == [True, False, True]
    assert of.preemption_timeout.tolist() == [7_000_000, 30_000_000, 30_000_000]
    assert of.graceful_timeout.tolist() == [8_000_000, 60_000_000, 60_000_000]
    assert (of.starvation.tolist(), of.since.tolist()) == ([2, 1, 0], [second(4), NEVER, NEVER])


def test_pools() -> None:
    own = {"starvation": "starving", "below_fair_share_since": at(6)}
    saved = {"accumulated_volume": {"cpu": 5.5}, "last_share_ratio": 0.25, "starvation": "aggressively_starving"}
    pools = [pool("p"), pool("q"), pool("r"), pool("s")]
    found = compiled({"nodes": [node()], "queues": {"s": {}, "q": {"ytsaurus": own}, "r": {"ytsaurus": saved}}}, pools)
    assert found.pool_starvation.tolist() == [0, 1, 2, 0]
    assert found.pool_since.tolist() == [NEVER, second(6), NEVER, NEVER]
    assert found.pool_volumes == [{}, {}, {"cpu": 5.5}, {}]
    assert found.pool_ratios.tolist() == [0, 0, 0.25, 0, 0]


@pytest.mark.parametrize("year", [1, 1822, 1969, 1970, 2026, 2105, 2108, 2243, 2254, 9999])
def test_instants_to_the_microsecond(year: int) -> None:
    given = [datetime(year, 12, 31, 23, 59, 59, 999_999 - i, tzinfo=UTC) for i in range(0, 999_999, 4567)]
    assert instants(list(given)).tolist() == [micros(one) for one in given]
    assert instants([None, given[0], None]).tolist() == [NEVER, micros(given[0]), NEVER]


@pytest.mark.parametrize(("count", "fits"), [(511, True), (512, False)])
def test_amounts_of_one_resource_add_up_to_less_than_2_to_the_62nd(count: int, fits: bool) -> None:
    """2^53 bytes each."""
    of = {"cpu": 1, "memory": 2**53}
    for body, where in (
        ({"workloads": [operation("w", "p", [alloc("t", requests=of, count=count)])]}, "/state/workloads"),
        ({"workloads": [operation("w", "p", [alloc(f"t{i}", requests=of) for i in range(count)])]}, "/state/workloads"),
        ({"nodes": [node(f"n{i}", capacity=of) for i in range(count)]}, "/state/nodes"),
    ):
        if fits:
            compiled({"nodes": [node()]} | body)
        else:
            with pytest.raises(InvalidInput) as invalid:
                compiled({"nodes": [node()]} | body)
            assert [one.pointer for one in invalid.value.problems] == [where]


def situation(asks: list[Json]) -> Situation:
    """x of pool p uses 2 cpus, y of pool q nothing."""
    body = {"nodes": [node()], "workloads": [operation("x", "p", [alloc("t", cpu=2)]), operation("y", "q")]}
    pools = [pool("top"), pool("p", parent="top", quota={"cpu": {"limit": 3}}), pool("q")]
    pools[1]["ytsaurus"] = {"resource_limits_overcommit_tolerance": {"cpu": 0.5}}
    return situate(compiled(body, pools), msgspec.convert(asks, list[Ask]))


def test_pending_work_of_operations_that_run_and_of_new_ones() -> None:
    two = {"name": "more", "count": 2, "requests": {"cpu": 1.5, "disk": 4}}
    asks: list[Json] = [
        ask("y", "q", 3, 2),
        ask("x", "p", 1),
        {"id": "z", "queue": "p", "tasks": [two, two | {"name": "last"}]},
    ]
    asks[0]["tasks"].append({"name": "other", "count": 1, "requests": {"cpu": 0.25}})
    asks.append({"id": "also", "workload": "z", "queue": "p", "tasks": [two]})
    of = situation(asks)
    assert of.resources == ["user_slots", "cpu", "disk"]
    assert of.operations.ids == ["x", "y", "z"]
    assert of.wants.operation.tolist() == [1, 1, 0, 2, 2, 2]
    assert of.wants.ask.tolist() == [0, 0, 1, 2, 2, 3]
    assert of.wants.task.tolist() == [0, 1, 0, 0, 1, 0]
    assert of.wants.count.tolist() == [3, 1, 1, 2, 2, 2]
    assert of.wants.need.tolist() == [
        [1, 2000, 0], [0, 250, 0], [1, 1000, 0], [0, 1500, 4], [0, 1500, 4], [0, 1500, 4],
    ]  # fmt: skip
    assert len(of.wants) == 6
    assert of.pending.tolist() == [1, 4, 6]
    assert of.wanted.tolist() == [[1, 1000, 0], [3, 6250, 0], [0, 9000, 24]]
    assert of.usage.tolist() == [[1, 2000, 0], [0, 0, 0], [0, 0, 0]]
    assert of.pool_usage.tolist() == [[1, 2000, 0], [1, 2000, 0], [0, 0, 0], [1, 2000, 0]]
    assert of.pool_limits.tolist() == [[FREE] * 3, [FREE, 3000, FREE], [FREE] * 3, [FREE] * 3]
    assert of.pool_limits_tolerance.tolist() == [[0] * 3, [0, 500, 0], [0] * 3, [0] * 3]
    assert (of.parent.tolist(), of.depth.tolist()) == ([3, 0, 3, 3], [0, 1, 0, -1])
    assert of.total.tolist() == [100, 10, 0]
    cluster = of.cluster
    assert (cluster.node_limits.tolist(), cluster.total.tolist()) == ([[100, 10_000, 0]], [100, 10_000, 0])
    assert cluster.allocations.usage.tolist() == [[1, 2000, 0]]
    assert of.operations.limits.tolist() == [[FREE] * 3] * 3


def test_an_operation_is_in_one_pool() -> None:
    for asks, where in (
        ([ask("x", "q")], 0), ([ask("x", "p"), ask("z", "p"), ask("z", "q") | {"id": "again"}], 2),
    ):  # fmt: skip
        with pytest.raises(InvalidInput) as invalid:
            situation(asks)
        assert [(one.pointer, one.detail) for one in invalid.value.problems] == [
            (f"/asks/{where}/queue", f"operation {'xz'[where // 2]!r} is in pool 'p'")
        ]


def test_suspended_operations_want_nothing() -> None:
    body = {"nodes": [node()], "workloads": [operation("x", "p", ytsaurus={"suspended": True})]}
    of = situate(compiled(body), msgspec.convert([ask("x", "p", 3)], list[Ask]))
    assert (of.pending.tolist(), of.wanted.tolist(), of.wants.count.tolist()) == ([0], [[0, 0]], [3])
