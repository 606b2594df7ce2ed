"""Usage over time: worked out by hand, and equal to the summary whatever the number of points."""

import pytest

from app.simulations.results import Series, areas, edges, levels_of, series_of
from app.simulations.schemas import Summary
from app.solver.model.base import micros
from tests.support.kueue_run import two_queues
from tests.support.levels import run
from tests.support.placed_runs import NODES, configuration, mixed
from tests.unit.simulations.running import job, request_for


def series(summary: Summary, lines: list[bytes], queue: str = "", points: int = 1) -> Series:
    at = edges(micros(summary.start), micros(summary.end), points)
    return series_of(queue, at, areas(levels_of(lines, queue), at))


def test_usage_guarantee_and_demand_by_hand() -> None:
    summary, lines = run(request_for(two_queues(), [job("one", "a", 3, 0, 10), job("two", "a", 2, 4, 5)]))
    found = series(summary, lines, "a", 3)  # of 5 s each
    cpu = found.resources["cpu"]
    assert [micros(at) - micros(summary.start) for at in found.at] == [0, 5_000_000, 10_000_000, 15_000_000]
    assert (cpu.usage, cpu.guarantee, cpu.demand) == ([15, 15, 10], [10, 10, 10], [17, 25, 10])
    assert series(summary, lines, "").resources["cpu"].guarantee == [60]
    assert series(summary, lines, "b").resources["cpu"].usage == [0]


@pytest.mark.parametrize("engine", ["kueue", "yunikorn", "kai", "ytsaurus"])
@pytest.mark.parametrize("points", [1, 7, 1000])
def test_areas_add_up_to_the_summary(engine: str, points: int) -> None:
    if engine == "kueue":
        jobs = [job(f"j{i}", "ab"[i % 2], 1 + i % 4, i * 1.5, 7 + i % 3, priority=i % 3) for i in range(12)]
        summary, lines = run(request_for(two_queues(), jobs, grace=2))
    else:
        summary, lines = run(request_for(configuration(engine), mixed(engine), state=NODES, grace=3))
    for queue, totals in {"": summary.total, **summary.queues}.items():
        found = series(summary, lines, queue, points)
        for resource, used in totals.used.items():
            assert sum(found.resources[resource].usage) == pytest.approx(used, rel=1e-12)
            held, guaranteed = sum(found.resources[resource].usage), sum(found.resources[resource].guarantee)
            if guaranteed:
                assert held / guaranteed == pytest.approx(totals.utilisation.get(resource, 0), rel=1e-12)
            demand = found.resources[resource].demand
            assert all(d >= u for d, u in zip(demand, found.resources[resource].usage, strict=True))
    assert series(summary, [], "nobody").resources == {}


def test_a_run_without_time_has_no_intervals() -> None:
    summary, lines = run(request_for(two_queues(), []))
    assert series(summary, lines).at == []


def test_resources_are_in_order_of_name_and_one_alone_where_it_is_asked_for() -> None:
    levels = [(0, {"b": (1, 2, 3), "a": (4, 5, 6)}), (10, {"c": (7, 8, 9), "b": (1, 0, 0)})]
    found = areas(levels, [0, 5, 20])
    assert list(found) == ["a", "b", "c"]
    assert (found["a"].usage, found["a"].waiting, found["a"].guarantee) == ([20, 20], [25, 25], [30, 30])
    assert (found["b"].usage, found["b"].waiting, found["c"].guarantee) == ([5, 5 + 10], [10, 10], [0, 90])
    assert areas(levels, [0, 5, 20], "c") == {"c": found["c"]}
    assert areas(levels, []) == {}
