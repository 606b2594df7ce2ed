"""Runs of YTsaurus that nobody watches come to what each of their rounds, asked and answered, comes to."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulations.schemas import SimulationRequest
from app.solver.engines.ytsaurus import ahead, crowd, fair_shares, heartbeat, kinds
from app.solver.model.state import Task, Workload
from tests.properties.runs import ASKED, noting, told_after_asked
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import as_asked, request_for, without_hopeless
from tests.unit.solver.engines.ytsaurus.cluster import alloc, node, operation, pool, request, situated

Json = dict[str, Any]
POOLS = ("a", "b", "b-x", "b-y")
LEAVES = ("a", "b-x", "b-y")
CELLS = ("cpu", "gpu", "memory")


def rarely(draw: st.DrawFn, often: Any, seldom: st.SearchStrategy[Any], of: int = 8) -> Any:
    return draw(seldom) if draw(st.integers(1, of)) == 1 else often


@st.composite
def pools(draw: st.DrawFn, *, odd: bool) -> list[Json]:
    """``odd``: with what no round is told of, now and then."""
    found: list[Json] = []
    for name in POOLS:
        block: Json = {}
        if draw(st.booleans()):
            block["enable_aggressive_starvation"] = draw(st.booleans())
        if draw(st.booleans()):
            block["fair_share_starvation_timeout"] = draw(st.sampled_from([0, 1, 20, 60]))
        if odd:
            block |= rarely(draw, {}, st.just({"mode": "fifo"}))
            integral = {"guarantee_type": "relaxed", "resource_flow": {"cpu": 2}}
            block |= rarely(draw, {}, st.just({"integral_guarantees": integral}), 12)
        cell: Json = {"guaranteed": draw(st.integers(0, 6))} | rarely(draw, {}, st.just({"limit": 9}), 6)
        one: Json = {"name": name, "quota": {"cpu": cell, "gpu": {"guaranteed": draw(st.integers(0, 3))}}}
        if "-" in name:
            one["parent"] = name.partition("-")[0]
        one |= rarely(draw, {}, st.just({"weight": draw(st.sampled_from([0.5, 3]))}), 3)
        found.append(one | ({"ytsaurus": block} if block else {}))
    return found


@st.composite
def work(draw: st.DrawFn, most: int) -> list[Json]:
    """Jobs of tasks that are alike or not, now and then several at one instant."""
    found: list[Json] = []
    now = 0
    for i in range(draw(st.integers(1, most))):
        now += draw(st.sampled_from([0, 7, 40]))
        tasks = [
            {
                "name": f"t{k}", "count": draw(st.integers(1, 3)),
                "requests": {cell: draw(st.sampled_from([0, 1, 2, 0.5])) for cell in CELLS},
            }
            for k in range(draw(st.integers(1, 2)))
        ]  # fmt: skip
        ask: Json = {"id": f"j{i}", "queue": draw(st.sampled_from(LEAVES)), "tasks": tasks}
        ask |= rarely(draw, {}, st.just({"weight": 3}), 3) | rarely(draw, {}, st.just({"limit": {"cpu": 2}}))
        ask |= rarely(draw, {}, st.just({"feasible_nodes": ["n2"]}), 12)
        options: Json = rarely(draw, {}, st.just({"is_gang": True}), 4) | rarely(
            draw, {}, st.just({"preemption_mode": "graceful"}), 12
        )
        options |= rarely(draw, {}, st.just({"fair_share_starvation_timeout": 300}), 12)
        ask |= {"ytsaurus": options} if options else {}
        one: Json = {"ask": ask, "submitted_at": now, "duration": draw(st.sampled_from([1, 10, 45, 100]))}
        found.append(one | rarely(draw, {}, st.just({"cancelled_at": now + 5})))
    return found


@st.composite
def runs(draw: st.DrawFn) -> SimulationRequest:
    """Clusters with room for everybody, and with too little; nodes come and go, quotas change."""
    settings: Json = {}
    for name, values in (
        ("fair_share_starvation_timeout", [0, 5, 30]), ("enable_aggressive_starvation", [True, False]),
        ("enable_pool_starvation", [True, False]), ("preemptive_scheduling_backoff", [0, 5, 50]),
        ("rules", ["shipped", "documented"]), ("consider_allocation_on_fair_share_bound_preemptible", [True, False]),
        ("allocation_count_preemption_timeout_coefficient", [1, 4]), ("fair_share_starvation_tolerance", [0.5, 1]),
    ):  # fmt: skip
        if draw(st.booleans()):
            settings[name] = draw(st.sampled_from(values))
    if settings.get("fair_share_starvation_timeout") == 30:
        settings["fair_share_aggressive_starvation_timeout"] = draw(st.sampled_from([30, 40]))
    odd = draw(st.integers(1, 4)) == 1
    for name in (
        "enable_step_function_for_gang_operations", "enable_absolute_fair_share_starvation_tolerance",
        "min_spare_allocation_resources",
    ) if odd else ():  # fmt: skip
        settings |= rarely(draw, {}, st.just({name: {"cpu": 1} if name.startswith("min") else True}), 10)
    size = draw(st.sampled_from([4, 30, 30]))
    nodes = [
        {"name": f"n{i}", "capacity": dict.fromkeys(CELLS, draw(st.integers(3, size)))}
        | rarely(draw, {}, st.just({"schedulable": False}))
        for i in range(draw(st.integers(3, 5)))
    ]
    changes: list[Json] = rarely(draw, [], st.just([{"at": 50, "nodes": {"remove": ["n1"]}}]), 4)
    changes += rarely(draw, [], st.just([{"at": 60, "queues": {"a": {"weight": 2}}}]), 4)
    queues = draw(pools(odd=odd))
    return request_for(
        {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": queues}, draw(work(9)), changes,
        state={"nodes": nodes}, until=300, grace=draw(st.sampled_from([0, 3])),
        round_every=draw(st.sampled_from([1, 4])), on_loop=draw(st.sampled_from(["stop", "continue"])),
    )  # fmt: skip


@st.composite
def crowds(draw: st.DrawFn) -> SimulationRequest:
    """Few nodes for long jobs of many tasks, which starve soon; bursts of others come and go."""
    settings: Json = {
        "fair_share_starvation_timeout": draw(st.sampled_from([1, 10, 30])),
        "preemptive_scheduling_backoff": draw(st.sampled_from([0, 5, 50])),
        "rules": draw(st.sampled_from(["shipped", "documented"])),
    }
    for name, values in (
        ("enable_pool_starvation", [True, False]), ("fair_share_starvation_tolerance", [0.5, 1]),
        ("consider_allocation_on_fair_share_bound_preemptible", [True, False]),
        ("preemption_satisfaction_threshold", [0.5, 1]), ("allow_preemption_from_starving_operations", [True, False]),
        ("scheduling_preemption_priority_scope", ["operation_only", "operation_and_ancestors"]),
        ("allocation_count_preemption_timeout_coefficient", [1, 4]),
    ):  # fmt: skip
        if draw(st.booleans()):
            settings[name] = draw(st.sampled_from(values))
    if draw(st.booleans()):
        settings |= {"enable_aggressive_starvation": True, "fair_share_aggressive_starvation_timeout": 30}
    queues: list[Json] = []
    for name in POOLS:
        own: Json = {"name": name, "quota": {"cpu": {"guaranteed": draw(st.integers(0, 3))}}}
        own |= {"parent": name.partition("-")[0]} if "-" in name else {}
        queues.append(own | rarely(draw, {}, st.just({"weight": 3}), 3))
    jobs: list[Json] = []
    now = 0
    for i in range(draw(st.integers(6, 14))):
        now += draw(st.sampled_from([0, 3, 11, 25]))
        burst = draw(st.booleans())
        need = {"cpu": draw(st.sampled_from([1, 1, 2])), "gpu": draw(st.sampled_from([0, 1]))}
        tasks = [
            {
                "name": f"t{k}", "count": draw(st.integers(1, 4)),
                "requests": need | rarely(draw, {}, st.just({"cpu": 3})),
            }
            | rarely(draw, {}, st.just({"usage": need | {"cpu": 0.5}}))
            for k in range(draw(st.integers(1, 2)))
        ]  # fmt: skip
        asked: Json = {"id": f"j{i}", "queue": draw(st.sampled_from(LEAVES)), "tasks": tasks}
        asked |= {"weight": 10} if burst else rarely(draw, {}, st.just({"ytsaurus": {"is_gang": True}}), 4)
        lasts = draw(st.sampled_from([5, 20])) if burst else draw(st.sampled_from([60, 150]))
        jobs.append({"ask": asked, "submitted_at": now, "duration": lasts})
    nodes = [
        {"name": f"n{i}", "capacity": {"cpu": draw(st.integers(3, 5)), "gpu": draw(st.integers(2, 6))}}
        | rarely(draw, {}, st.just({"schedulable": False}))
        for i in range(draw(st.integers(2, 3)))
    ]
    return request_for(
        {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": queues}, jobs, [],
        state={"nodes": nodes}, until=400, grace=draw(st.sampled_from([0, 0, 3])),
        round_every=draw(st.sampled_from([1, 4])), on_loop=draw(st.sampled_from(["stop", "continue"])),
    )  # fmt: skip


@given(runs())
@examples(60)
def test_a_round_that_is_told_before_it_is_asked_comes_to_what_its_answer_says(
    met: Met, request_: SimulationRequest
) -> None:
    """Where everybody starts, and in crowds."""
    plain: list[ahead.Plain] = []
    crowded: list[crowd.Foreseen] = []
    possible = without_hopeless(request_)
    with pytest.MonkeyPatch.context() as patch:
        noting(patch, ahead.Ahead, "everybody_starts", plain)
        noting(patch, crowd.Crowd, "foreseen", crowded)
        as_asked(possible)
    assert sum(len(of.starts) > 0 for of in met(plain)) == len(plain)
    met(crowded)


PARTS = st.one_of(st.floats(1e-6, 2), st.sampled_from([0.0, 1e-10, 1e-9, 2e-9, 0.25, 0.25 + 1e-9, 0.5, 0.5 - 1e-4]))
ROWS = st.lists(st.tuples(*[st.tuples(PARTS, PARTS)] * 3, st.sampled_from([0.5, 0.8, 1.0])), min_size=1, max_size=8)


@given(ROWS)
@examples(300)
def test_an_element_alone_stands_as_all_at_once_do(rows: list[Any]) -> None:
    usage, demand, fair = (np.array([row[k] for row in rows]) for k in range(3))
    tolerance = np.array([row[3] for row in rows])
    closed = fair_shares.blocked(fair, demand)
    below = [kinds.is_below(*row) for row in rows]
    assert below == fair_shares.pools_lacking(usage, demand, fair, tolerance).tolist()
    dues = [kinds.Due(u, d, f, tuple(c), below=False) for (u, d, f, _), c in zip(rows, closed.tolist(), strict=True)]
    assert [ahead.satisfaction(due.usage, due.fair, due.closed) for due in dues] == fair_shares.local_satisfaction(
        usage, fair, closed
    ).tolist()
    found: dict[int, kinds.Due] = {}
    for i, (u, d, f, given_) in enumerate(rows):
        alike = kinds.Alike(0, 1.0, (0, 0), np.array((u, d, (9.0, 9.0))))
        alike.takes(((0.0, f),))
        if (due := kinds.due_to(alike, 1.0, given_)) is not None:
            found[i] = due
    known = [*found]
    lacks = fair_shares.lacking(usage[known], demand[known], fair[known], tolerance[known]).tolist()
    assert [due.below for due in found.values()] == lacks
    assert [list(due.closed) for due in found.values()] == closed[known].tolist()


SHARE = st.integers(0, 24).map(lambda steps: steps / 24)
VALUES = st.tuples(SHARE, SHARE)


@st.composite
def suggestions(draw: st.DrawFn) -> tuple[Any, list[tuple[int, ...]], list[float]]:
    """Rows of a kind, steps of what it runs, and what is suggested to it one after another."""
    usage, more, limits = draw(VALUES), draw(VALUES), draw(st.one_of(st.just((1.0, 1.0)), VALUES))
    rows = np.array((usage, np.add(usage, more), limits))
    steps = draw(st.lists(st.sampled_from([(4, 400), (4, 0), (8, 400)]), min_size=1, max_size=8))  # of 100 and 10,000
    near = [float(x) + by for x in (*rows[0], *rows[1]) for by in (0.0, 1e-9, -1e-9, 1e-4, -1e-4, 1e-4 + 3e-10)]
    parts = st.one_of(st.floats(0, 1), SHARE, st.sampled_from(near))
    return rows, steps, draw(st.lists(parts, min_size=2, max_size=30))


GRADED = {
    rules: situated(
        request([pool("a", quota={"cpu": {"guaranteed": 2}})], [node()], [operation("x", "a", [alloc("x0")])], [], more)
    ).cluster
    for rules, more in (("shipped", {}), ("documented", {"rules": "documented"}))
}


@given(suggestions(), st.sampled_from([0.5, 0.8, 1.0]), st.booleans(), st.sampled_from(sorted(GRADED)))
@examples(300)
def test_a_kind_of_which_something_is_remembered_stands_as_one_of_which_nothing_is(
    met: Met, of: tuple[Any, list[tuple[int, ...]], list[float]], tolerance: float, is_gang: bool, rules: str
) -> None:
    """What is due to it, and what of it may be taken, with one suggestion after another: bit by bit."""
    rows, steps, parts = of
    cluster = GRADED[rules]
    known = kinds.Alike(0, 1.0, (0, 0), rows)
    op = kinds.Operation("x", 0, Workload(id="x", queue="a"), 2)
    op.is_gang = is_gang
    task = Task(name="t", requests={})
    allocations = [kinds.Allocation(task, 0, np.array(of), of, i, has_gap=False) for i, of in enumerate(steps)]
    sure: list[float] = []
    for part in [min(max(part, 0.0), known.most) for part in parts]:
        fresh = kinds.Alike(0, 1.0, (0, 0), rows)
        told = known.is_suggested(part, tolerance)
        assert told == fresh.is_suggested(part, tolerance)
        if told:
            sure.append(part)
            assert (known.now.fair, known.now.closed, known.now.below) == (
                fresh.now.fair, fresh.now.closed, fresh.now.below
            )  # fmt: skip
            taken = heartbeat.taken_of(cluster, op, known, allocations)[2]
            assert taken == heartbeat.taken_of(cluster, op, fresh, allocations)[2]
    met(sure)


@given(crowds())
@examples(60)
def test_a_crowd_comes_to_the_same_whether_somebody_looks_or_not(met: Met, request_: SimulationRequest) -> None:
    """Who starts, starves, is evicted and comes again, where there is never room for all."""
    rounds: list[crowd.Foreseen] = []
    possible = without_hopeless(request_)
    with pytest.MonkeyPatch.context() as patch:
        noting(patch, crowd.Crowd, "foreseen", rounds)
        as_asked(possible)
    met(of for of in rounds if of.evictions)


@st.composite
def backlogs(draw: st.DrawFn) -> SimulationRequest:
    """Many small jobs of a few sorts, more than there is room for; all that starve do so one after another."""
    settings: Json = {
        "fair_share_starvation_timeout": draw(st.sampled_from([1, 15, 40])),
        "preemptive_scheduling_backoff": draw(st.sampled_from([0, 5])),
        "enable_pool_starvation": draw(st.booleans()),
        "scheduling_preemption_priority_scope": draw(st.sampled_from(["operation_only", "operation_and_ancestors"])),
        "rules": draw(st.sampled_from(["shipped", "documented"])),
        "allow_preemption_from_starving_operations": draw(st.booleans()),
    }
    if draw(st.booleans()):
        settings |= {"enable_aggressive_starvation": True, "fair_share_aggressive_starvation_timeout": 50}
    queues: list[Json] = []
    for name in POOLS:
        own: Json = {"name": name, "quota": {"cpu": {"guaranteed": draw(st.integers(0, 3))}}}
        queues.append(own | ({"parent": name.partition("-")[0]} if "-" in name else {}))
    sort = st.tuples(st.sampled_from(LEAVES), st.integers(1, 2), st.integers(1, 3))
    sorts = draw(st.lists(sort, min_size=1, max_size=4))
    jobs: list[Json] = []
    now = 0
    for i in range(draw(st.integers(15, 40))):
        now += draw(st.sampled_from([0, 1, 4]))
        queue, cpu, count = draw(st.sampled_from(sorts))
        tasks = [{"name": "t", "count": count, "requests": {"cpu": cpu}}]
        ask = {"id": f"j{draw(st.integers(0, 9))}-{i}", "queue": queue, "tasks": tasks}
        one: Json = {"ask": ask, "submitted_at": now}
        one |= {"duration": draw(st.sampled_from([15, 60]))} | rarely(draw, {}, st.just({"cancelled_at": now + 20}))
        jobs.append(one)
    nodes = [{"name": f"n{i}", "capacity": {"cpu": draw(st.integers(2, 5))}} for i in range(draw(st.integers(1, 3)))]
    return request_for(
        {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": queues}, jobs, [],
        state={"nodes": nodes}, until=400, grace=draw(st.sampled_from([0, 0, 3])),
        round_every=draw(st.sampled_from([1, 4])), on_loop=draw(st.sampled_from(["stop", "continue"])),
    )  # fmt: skip


@given(backlogs(), st.sampled_from([2, heartbeat.MOST_STARTS]))
@examples(40)
def test_a_backlog_comes_to_the_same_whether_somebody_looks_or_not(
    met: Met, request_: SimulationRequest, most: int
) -> None:
    """Of those who are alike the first is looked at, who may be another in the next round; a heartbeat may start no
    more than ``most``."""
    rounds: list[crowd.Foreseen] = []
    possible = without_hopeless(request_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat, "MOST_STARTS", most)
        patch.setattr(ahead, "MOST_STARTS", most)
        noting(patch, crowd.Crowd, "foreseen", rounds)
        as_asked(possible)
    met(of for of in rounds if of.starts)


@given(st.one_of(runs(), crowds(), backlogs()), st.integers(0, 2**32), ASKED)
@examples(60)
def test_a_round_that_is_asked_in_between_changes_nothing(
    met: Met, request_: SimulationRequest, seed: int, part: float
) -> None:
    met(told_after_asked(request_, seed, part))
