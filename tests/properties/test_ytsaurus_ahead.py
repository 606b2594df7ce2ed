"""Runs of YTsaurus that nobody watches come to what each of their rounds, asked and answered, comes to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulations.schemas import SimulationRequest
from app.solver.engines.ytsaurus import ahead
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import play, request_for, unseen, without_digests, without_hopeless

Json = dict[str, Any]
POOLS = ("a", "b", "b-x", "b-y")
LEAVES = ("a", "b-x", "b-y")
CELLS = ("cpu", "gpu", "memory")


def rarely(draw: st.DrawFn, often: Any, seldom: st.SearchStrategy[Any], of: int = 8) -> Any:
    return draw(seldom) if draw(st.integers(1, of)) == 1 else often


@st.composite
def pools(draw: st.DrawFn) -> list[Json]:
    found: list[Json] = []
    for name in POOLS:
        block: Json = {}
        if draw(st.booleans()):
            block["enable_aggressive_starvation"] = draw(st.booleans())
        if draw(st.booleans()):
            block["fair_share_starvation_timeout"] = draw(st.sampled_from([0, 1, 20, 60]))
        mode = rarely(draw, None, st.just("fifo"))
        block |= {} if mode is None else {"mode": mode}
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
    for name in (
        "enable_step_function_for_gang_operations", "enable_absolute_fair_share_starvation_tolerance",
        "min_spare_allocation_resources",
    ):  # fmt: skip
        settings |= rarely(draw, {}, st.just({name: {"cpu": 1} if name.startswith("min") else True}), 10)
    size = draw(st.sampled_from([4, 30, 30]))
    nodes = [
        {"name": f"n{i}", "capacity": dict.fromkeys(CELLS, draw(st.integers(3, size)))}
        | rarely(draw, {}, st.just({"schedulable": False}))
        for i in range(draw(st.integers(3, 5)))
    ]
    changes: list[Json] = rarely(draw, [], st.just([{"at": 50, "nodes": {"remove": ["n1"]}}]), 4)
    changes += rarely(draw, [], st.just([{"at": 60, "queues": {"a": {"weight": 2}}}]), 4)
    return request_for(
        {"engine": "ytsaurus", "settings": {"ytsaurus": settings}, "queues": draw(pools())}, draw(work(9)), changes,
        state={"nodes": nodes}, until=300, grace=draw(st.sampled_from([0, 3])),
        round_every=draw(st.sampled_from([1, 4])), on_loop=draw(st.sampled_from(["stop", "continue"])),
    )  # fmt: skip


@given(runs())
@examples(40)
def test_a_round_that_is_plain_before_it_is_asked_comes_to_what_its_answer_says(
    met: Met, request_: SimulationRequest
) -> None:
    foreseen: list[ahead.Plain] = []
    possible = without_hopeless(request_)
    told = play(possible)
    with pytest.MonkeyPatch.context() as patch:
        everybody_starts = ahead.Ahead.everybody_starts

        def noted(*args: Any) -> ahead.Plain | None:
            plain = everybody_starts(*args)
            if plain is not None:
                foreseen.append(plain)
            return plain

        patch.setattr(ahead.Ahead, "everybody_starts", noted)
        unwatched = unseen(possible)
    assert unwatched.bytes() == without_digests(told)
    assert sum(len(plain.starts) > 0 for plain in met(foreseen)) == len(foreseen)
