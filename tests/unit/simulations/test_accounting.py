"""What the accounting says of jobs: the mark of a situation, and how areas are written."""

from typing import Any

import pytest

from app.simulations.core.accounting import Accounting, AllQueueStatistics
from app.simulations.core.life import Clock, LiveJob
from app.simulations.core.sink import amounts_of, work
from app.solver.model.state import Ask, Task
from tests.unit.simulations.running import Told


def task(name: str, **more: Any) -> Task:
    return Task(name=name, requests={"cpu": 1}, **more)


def mark(*lives: dict[str, Any], name: str = "j") -> int:
    """Of jobs ``j0``, ``j1``, ... by what each has ``waiting``, ``running`` and ``leaving``."""
    accounting = Accounting(Told(), AllQueueStatistics(0, {"q": None}, {}, {}))
    for i, phases in enumerate(lives):
        life = LiveJob(Ask(id=f"{name}{i}", queue="q", tasks=[task("x"), task("y")]), 0, Clock(0, 1), "task")
        life.waiting, life.running, life.leaving = (
            {one.name: one for one in phases.get(phase, ())} for phase in ("waiting", "running", "leaving")
        )
        accounting.remark(life)
        accounting.remark(life)
    return accounting.mark


X, Y = task("x", node="n"), task("y", node="n")


def test_a_situation_has_one_mark_however_it_came_about() -> None:
    for phase in ("waiting", "running", "leaving"):
        assert mark({phase: [X, Y]}) == mark({phase: [Y, X]}), phase
    flavored = [task(name, flavors={"cpu": "spot"}) for name in "xy"]
    assert mark({"running": flavored}) == mark({"running": flavored[::-1]})
    assert mark({}) == mark() == 0, "who has ended has no part in it"


def test_every_other_situation_has_another_mark() -> None:
    found = [
        mark({"waiting": [X]}), mark({"waiting": [Y]}), mark({"waiting": [X, Y]}), mark({"running": [X]}),
        mark({"leaving": [X]}), mark({"running": [X], "leaving": [Y]}), mark({"running": [Y], "leaving": [X]}),
        mark({"running": [X], "waiting": [Y]}), mark({"running": [task("x", node="m")]}),
        mark({"running": [task("x", flavors={"cpu": "spot"})]}), mark({"running": [task("x", flavors={"cpu": "on"})]}),
        mark({"running": [X]}, name="k"), mark({"running": [X]}, {"running": [X]}), mark({}, {"running": [X]}),
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert 0 not in found


@pytest.mark.parametrize(
    ("area", "resource", "expected"),
    [
        (0, "memory", 0), (3 * 10**6, "memory", 3), (3 * 10**6 + 1, "memory", 3.000001), (1, "memory", 1e-06),
        (3 * 10**9, "cpu", 3), (1_500_000_000, "cpu", 1.5), (1, "cpu", 1e-09),
        ((2**60 + 1) * 10**6, "memory", 2**60 + 1),
    ],
)  # fmt: skip
def test_whole_areas_are_whole_numbers_however_large(area: int, resource: str, expected: float) -> None:
    found = work(area, resource)
    assert (found, type(found)) == (expected, type(expected))


def test_amounts_are_of_all_units_of_all_tasks() -> None:
    tasks = [
        Task(name="a", count=3, requests={"cpu": "500m", "memory": 2}), Task(name="b", requests={"cpu": 1}),
        Task(name="c", count=0, requests={"gpu": 1}),
    ]  # fmt: skip
    assert amounts_of(tasks) == {"cpu": 2500, "memory": 6, "gpu": 0}
