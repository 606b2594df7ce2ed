"""What becomes of one job, call by call, for each unit that engines run and evict; instants in microseconds."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.base.decoding import convert
from app.simulations.core.accounting import Accounting, AllQueueStatistics
from app.simulations.core.life import FINISH, RELEASE, Agenda, Clock, LiveJob, Phase
from app.simulations.core.lifecycle import JobLifecycle
from app.simulations.schemas import Evicted
from app.solver.model.decision import PlannedEviction
from app.solver.model.state import Ask, Task, Workload
from app.solver.rounds import Move, Start, Unit
from tests.unit.simulations.running import START, Told

UNITS: tuple[Unit, ...] = ("job", "gang", "task")
GRACE, LASTS = 5, 100


def tasks(*names: str, **more: Any) -> list[Task]:
    return [convert({"name": name, "requests": {"cpu": 1}, **more}, Task) for name in names]


class Bench:
    """A job ``j`` of queue ``q``; ``asked``: what an engine was told, ``occupied``: nodes by whom somebody leaves."""

    def __init__(self, unit: Unit, *, occupies: bool = False, requeue: str = "created") -> None:
        self.asked = list[Any]()
        self.workloads = dict[str, Workload]()
        self.occupied = list[tuple[str, int]]()
        self.told, self.agenda, self.lives = Told(), Agenda(), dict[str, LiveJob]()
        self.released: list[tuple[str, int]] = []
        rounds: Any = SimpleNamespace(
            unit=unit, occupies=occupies, arrive=lambda ask: self.asked.append([t.name for t in ask.tasks]),  # pyright: ignore
            freed=self.asked.append, stopping=self.asked.append, leave=self.asked.append,
            released=lambda job, now: self.released.append((job, now)),  # pyright: ignore
            evicting=lambda workload, task: workload,  # pyright: ignore
        )  # fmt: skip
        kept: Any = SimpleNamespace(
            workload=self.workloads.get, set=lambda w: self.workloads.update({w.id: w}),  # pyright: ignore
            remove=self.workloads.pop, occupy=lambda node, amounts, sign: self.occupied.append((node, sign)),  # pyright: ignore
        )  # fmt: skip
        scenario: Any = SimpleNamespace(start=START, grace=GRACE, request=SimpleNamespace(requeue=requeue))
        self.accounting = Accounting(self.told, AllQueueStatistics(START, {"q": None}, {}, {"cpu": 8}, None))
        self.lifecycle = JobLifecycle(scenario, kept, rounds, self.accounting, self.agenda, self.lives)
        self.unit: Unit = unit

    def life(self, *names: str, least: int | None = None) -> LiveJob:
        ask = Ask(id="j", queue="q", tasks=tasks(*names), min_available=least)
        return LiveJob(ask, START, Clock(START, LASTS), self.unit)

    def running(self, *names: str, least: int | None = None) -> LiveJob:
        life = self.lives["j"] = self.life(*names, least=least)
        self.lifecycle.start(Start("j", tasks(*names, node="n", state="running")), 1, START)
        return life

    def evict(self, task: str | None, at: int, *others: str) -> None:
        evictions = [Evicted(job="j", task=name, queue="q", rule="R") for name in (task, *others)]
        self.lifecycle.evict(evictions, 1, START + at)

    def due(self) -> list[tuple[int, int, Any]]:
        """What is still to happen: when, what, to whom of it."""
        found = list[tuple[int, int, Any]]()
        while (item := self.agenda.take(START + 10**9)) is not None:
            found.append((item[0] - START, item[1], item[4]))
        return found


@pytest.mark.parametrize("unit", UNITS)
def test_who_is_on_its_way_out_is_told_by_task_unless_jobs_go_as_a_whole(unit: Unit) -> None:
    bench = Bench(unit)
    life = bench.running("x", "y")

    def leaving(task: str | None) -> bool:
        return bench.lifecycle.leaving(PlannedEviction(workload="j", task=task, queue="q", reason="R"))

    assert [leaving(task) for task in (None, "x", "y")] == [False] * 3
    life.leaving["x"] = life.running.pop("x")
    assert [leaving(task) for task in (None, "x", "y")] == [False, unit != "job", False], "the rest of it runs"
    life.leaving["y"] = life.running.pop("y")
    assert [leaving(task) for task in (None, "x", "y")] == [True] * 3


@pytest.mark.parametrize(("unit", "phases"), [
    ("gang", ["releasing", "releasing", "waiting"]), ("task", ["releasing", "waiting", "waiting"]),
])  # fmt: skip
def test_a_gang_waits_again_once_nothing_of_it_is_leaving_a_task_once_it_is_gone(
    unit: Unit, phases: list[Phase]
) -> None:
    bench = Bench(unit, requeue="evicted")
    life = bench.running("x", "y", "z", least=3)
    bench.evict("y", 10)
    bench.evict("x", 12)
    found = [life.clock("y").phase]
    for task, at in (("y", 15), ("x", 17)):
        bench.lifecycle.release("j", [task], START + at)
        found.append(life.clock("y").phase)
    assert found == phases
    assert life.clock("y").since == START + (17 if unit == "gang" else 15)
    assert list(life.waiting) == ["x", "y"], "in the order in which they were asked for"
    assert bench.asked == ["q", "q", ["y"], "q", ["x", "y"], "q"]
    assert life.ask.created_at is not None
    assert life.ask.created_at.microsecond == 12
    finish = LASTS, FINISH, [(name, 1) for name in (("x", "y", "z") if unit == "task" else ("",))]
    assert bench.due() == [(15, RELEASE, ["y"]), (17, RELEASE, ["x"]), finish]


@pytest.mark.parametrize("unit", ["gang", "task"])
def test_what_happens_to_tasks_of_a_job_at_an_instant_happens_at_once(unit: Unit) -> None:
    """Whoever listens hears of each; an engine hears of the job once."""
    bench = Bench(unit)
    life = bench.running("x", "y", "z", least=1)
    bench.evict("x", 30, "y")
    assert (list(life.running), list(life.leaving)) == (["z"], ["x", "y"])
    when, kind, names = bench.due()[0]
    assert (when, kind, names) == (30 + GRACE, RELEASE, ["x", "y"])
    bench.lifecycle.release("j", names, START + when)
    assert (list(life.waiting), [task.name for task in bench.workloads["j"].tasks]) == (["x", "y"], ["z"])
    assert bench.asked == ["q", ["x", "y"], "q"]
    bench.lifecycle.start(Start("j", tasks("x", "y", node="n", state="running")), 2, START + when)
    ends = [of for _, kind, of in bench.due() if kind == FINISH]
    assert ends == ([[("x", 2), ("y", 2)]] if unit == "task" else [])
    if unit == "task":
        assert not bench.lifecycle.finish("j", [("x", 1), ("y", 1)], START + LASTS), "those runs were cut short"
        assert bench.lifecycle.finish("j", [("x", 1), ("z", 1)], START + LASTS)
        assert bench.lifecycle.finish("j", ends[0], START + when + LASTS)
    else:
        assert bench.lifecycle.finish("j", [("", 1)], START + LASTS)
    assert (bench.lives, bench.workloads, life.running) == ({}, {}, {})
    of_tasks = [(event.kind, event.task) for event in bench.told.events[3:]]
    again = [(kind, name) for kind in ("evicted", "released", "started") for name in ("x", "y")]
    assert of_tasks == [*again, *([("finished", "z"), ("finished", "x")] if unit == "task" else []), ("finished", None)]


def test_a_gang_that_runs_on_without_a_task_keeps_its_clock() -> None:
    bench = Bench("gang")
    life = bench.running("x", "y", least=1)
    bench.evict("y", 10)
    bench.lifecycle.release("j", ["y"], START + 15)
    clock = life.clock("")
    assert (clock.phase, clock.since, clock.run, list(life.waiting)) == ("running", START, 1, ["y"])
    assert life.ask.created_at is None


def test_a_job_goes_and_waits_as_a_whole() -> None:
    bench = Bench("job")
    life = bench.running("x", "y")
    bench.evict("x", 10)
    assert (list(life.leaving), life.clock("").phase, life.clock("").lost) == (["x", "y"], "releasing", 10)
    bench.lifecycle.release("j", None, START + 15)
    bench.lifecycle.release("j", None, START + 16)
    assert (list(life.waiting), life.clock("").since, bench.workloads) == (["x", "y"], START + 15, {})
    assert bench.told.said() == ["0 started j", "1e-05 evicted j", "1.5e-05 released j"]
    assert bench.due() == [(15, RELEASE, None), (LASTS, FINISH, [("", 1)])]


@pytest.mark.parametrize("unit", UNITS)
def test_what_runs_at_the_start_and_its_job_does_not_know_is_asked_for_again_as_it_would_be_asked_for(
    unit: Unit,
) -> None:
    bench = Bench(unit)
    life = bench.life("x")
    found = tasks("x", "more", node="n", state="running", started_at="2000-01-01T00:00:00Z")
    workload = Workload(id="j", queue="q", tasks=found)
    bench.workloads["j"] = workload
    bench.lifecycle.adopt(workload, life, whole=False)
    assert (list(life.tasks), list(life.running), list(life.waiting)) == (["x", "more"], ["x", "more"], [])
    own, more = tasks("x")[0], tasks("more", state="running")[0]
    assert life.tasks == {"x": own, "more": more}, "its own ask stands; without node and start"
    for task in ("more", "x"):
        if unit != "job" or task == "x":
            bench.evict(task, 10)
            bench.lifecycle.release("j", None if unit == "job" else [task], START + 15)
    assert life.pending().tasks == [own, more]
    assert bench.asked[-2:] == [["x", "more"], "q"]


@pytest.mark.parametrize("occupies", [False, True])
def test_who_leaves_when_the_run_begins_goes_after_the_grace_and_holds_its_node_until_then(*, occupies: bool) -> None:
    bench = Bench("task", occupies=occupies)
    life = bench.life("x", "y", "z")
    found = [*tasks("x", node="n", state="running"), *tasks("y", node="m", state="releasing")]
    workload = Workload(id="j", queue="q", tasks=found)
    bench.workloads["j"] = workload
    bench.lifecycle.adopt(workload, life, whole=False)
    assert (life.initial, list(life.running), list(life.leaving), list(life.waiting)) == (True, ["x"], ["y"], ["z"])
    assert life.clock("y").phase == "releasing"
    assert bench.asked == [["z"]], "what of it waits is told"
    bench.lifecycle.release("j", ["y"], START + GRACE)
    assert bench.occupied == ([("m", 1), ("m", -1)] if occupies else [])
    assert [task.name for task in bench.workloads["j"].tasks] == ["x"]
    assert bench.asked[1:] == [["y", "z"], "q"]


def test_a_grace_that_was_cut_short_cuts_no_later_one_short() -> None:
    """Its node goes before the grace is over; started again, the task is evicted again."""
    bench = Bench("task")
    life = bench.running("x", "y")
    bench.evict("x", 10)
    bench.lifecycle.lose({"n"}, START + 11)
    assert (list(life.waiting), list(life.leaving)) == (["x", "y"], [])
    bench.lifecycle.start(Start("j", tasks("x", node="m", state="running")), 2, START + 12)
    bench.evict("x", 13)
    bench.lifecycle.release("j", ["x"], START + 10 + GRACE)
    assert list(life.leaving) == ["x"]
    bench.lifecycle.release("j", ["x"], START + 13 + GRACE)
    assert (list(life.waiting), list(life.leaving)) == (["x", "y"], [])


@pytest.mark.parametrize("unit", ["gang", "task"])
@pytest.mark.parametrize("names", [("x",), ("x", "y")])
def test_events_name_a_task_where_a_job_has_several(unit: Unit, names: tuple[str, ...]) -> None:
    bench = Bench(unit)
    bench.running(*names, least=1)
    bench.evict("x", 10)
    bench.lifecycle.release("j", ["x"], START + 15)
    bench.lifecycle.start(Start("j", tasks("x", node="n", state="running")), 2, START + 20)
    told = [(event.kind, event.task) for event in bench.told.events if event.task != "y"]
    named = None if len(names) == 1 else "x"
    assert told == [(kind, named) for kind in ("started", "evicted", "released", "started")]


def test_who_leaves_occupies_nodes_in_the_order_of_names() -> None:
    names = ("v", "z", "w", "y", "x", "u")
    bench = Bench("task", occupies=True)
    found = [task for name in names for task in tasks(name, node=f"on-{name}", state="releasing")]
    workload = Workload(id="j", queue="q", tasks=found)
    bench.workloads["j"] = workload
    bench.lifecycle.adopt(workload, bench.life(*names), whole=False)
    assert bench.occupied == [(f"on-{name}", 1) for name in sorted(names)]
    assert [item[2] for item in bench.due() if item[1] == RELEASE] == [sorted(names)]


def test_what_is_cancelled_is_held_no_longer() -> None:
    for unit in UNITS:
        bench = Bench(unit)
        life = bench.running("x", "y", least=2)
        bench.lifecycle.cancel(life, START + 10)
        assert bench.released == [("j", START + 10)], "engines are told whose amounts are free, and since when"
        bench.accounting.ledger.close(START + 10**6)
        assert bench.accounting.ledger.total.totals().used == {"cpu": 2e-05}, unit


@pytest.mark.parametrize("names", [("x",), ("x", "y")])
def test_a_task_that_moves_goes_on_where_it_is_moved_to(names: tuple[str, ...]) -> None:
    bench = Bench("gang")
    life = bench.running(*names)
    marked = bench.accounting.mark
    bench.lifecycle.move(Move("j", "x", "m"), 2, START + 10)
    places = {task.name: task.node for task in bench.workloads["j"].tasks}
    assert places == dict.fromkeys(names, "n") | {"x": "m"} == {n: task.node for n, task in life.running.items()}
    told = bench.told.events[-1]
    named = "x" if len(names) > 1 else None
    assert (told.kind, told.task, told.node, told.round) == ("moved", named, "m", 2)
    assert bench.accounting.mark != marked
    bench.workloads.clear()
    bench.lifecycle.move(Move("j", "x", "o"), 3, START + 11)
    assert (life.running["x"].node, bench.workloads) == ("o", {}), "nothing is put into the state"
