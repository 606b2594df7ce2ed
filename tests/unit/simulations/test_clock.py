"""How far a job has come, held against the same counted step by step; and what a job is at each moment of its life."""

from dataclasses import dataclass
from itertools import product
from typing import Any

from app.base.decoding import convert
from app.simulations.core.life import Clock, LiveJob, one_by_one
from app.simulations.core.sink import FIRST
from app.solver.model.state import Ask

S = 10**6


@dataclass
class Steps:
    """A job that is counted: after each ``every`` of progress it stands still for ``cost``, and then that is kept."""

    duration: int
    every: int
    cost: int
    kept: int
    """Progress that no eviction takes away."""
    loose: int
    """Progress since."""
    ran: int = 0
    overhead: int = 0
    taking: int = 0
    """What of a checkpoint that is being taken has passed."""

    @property
    def done(self) -> bool:
        return self.kept + self.loose == self.duration

    def step(self) -> None:
        self.ran += 1
        if self.loose == self.every > 0:
            self.taking += 1
        else:
            self.loose += 1
        if self.loose == self.every > 0 and self.taking == self.cost and not self.done:
            self.overhead += self.cost
            self.kept, self.loose, self.taking = self.kept + self.loose, 0, 0


def started(duration: int, every: int, cost: int, before: int) -> tuple[Clock, Steps]:
    """Both at the start, at 100, of a run of which ``before`` had passed by then; it waited since 90."""
    clock = Clock(90, duration, every, cost)
    clock.had_run(before)
    loose = before % every if every else before
    return clock, Steps(duration, every, cost, before - loose, loose)


def test_a_clock_comes_as_far_as_one_who_counts() -> None:
    """Every moment of every small run: stopped, looked at, or run to its end after it was stopped."""
    moments = 0
    for duration, every, cost in product(range(1, 9), range(5), range(3)):
        for before in range(duration + 1):
            clock, steps = started(duration, every, cost, before)
            ends, at = clock.start(100), 100
            while not steps.done:
                _stopped(started(duration, every, cost, before)[0], steps, before)
                steps.step()
                at, moments = at + 1, moments + 1
            assert (ends, clock.finish(at)) == (at, (duration - before, 0, steps.overhead))
            assert (clock.progress, clock.ran, clock.phase) == (duration, at - 100, "ended")
    assert moments > 2000


def _stopped(clock: Clock, steps: Steps, before: int) -> None:
    """``clock``, which has not started, after as long as ``steps`` has run: looked at, then evicted, then run again."""
    now = 100 + steps.ran
    looked, _ = started(steps.duration, steps.every, steps.cost, before)
    looked.start(100)
    overhead = steps.overhead + steps.taking
    assert looked.halt(now, "running") == (steps.ran - overhead, 0, overhead)
    assert looked.progress == steps.kept + steps.loose
    clock.start(100)
    made = max(0, steps.kept - before)
    assert clock.stop(now) == (made, steps.ran - made - steps.overhead, steps.overhead)
    assert (clock.progress, clock.phase, clock.since) == (steps.kept, "releasing", now)
    again = Steps(steps.duration, steps.every, steps.cost, steps.kept, 0)
    while not again.done:
        again.step()
    clock.wait(now + 5)
    ends = clock.start(now + 7)
    assert ends == now + 7 + again.ran
    assert clock.finish(ends) == (steps.duration - steps.kept, 0, again.overhead)
    assert (clock.waited, clock.ran, clock.run) == (10 + 2, steps.ran + again.ran, 2)
    assert (clock.lost, clock.overhead) == (steps.ran - made - steps.overhead, steps.overhead + again.overhead)


def test_a_gang_has_come_as_far_as_the_oldest_of_its_tasks_and_no_further_than_its_end() -> None:
    for spans, progress in (((3, 5, 2), 5), ((-4,), 0), ((30,), 10)):
        clock = Clock(0, 10)
        for span in spans:
            clock.had_run(span)
        assert clock.progress == progress


def test_a_wait_counts_up_to_the_end_and_what_ran_does_not() -> None:
    waits, runs = Clock(3, 10), Clock(3, 10)
    waits.end(8)
    runs.start(5)
    runs.halt(7, "ended")
    runs.end(9)
    assert (waits.waited, waits.phase, waits.since) == (5, "ended", 8)
    assert (runs.waited, runs.ran) == (2, 2)


def asked(tasks: list[Any], **more: Any) -> Ask:
    return convert({"id": "j", "queue": "q", "tasks": tasks, **more}, Ask)


PAIR = [{"name": "x", "count": 2, "requests": {"cpu": 1}}, {"name": "y", "requests": {"cpu": 4}}]


def test_a_task_for_each_unit_has_its_number_where_there_are_several() -> None:
    several = one_by_one(asked(PAIR))
    assert [(task.name, task.count) for task in several.tasks] == [("x-0", 1), ("x-1", 1), ("y", 1)]
    assert one_by_one(several) is several


def test_who_needs_how_many_to_make_progress() -> None:
    def least(unit: Any, **more: Any) -> int:
        return LiveJob(one_by_one(asked(PAIR, **more)), 0, Clock(0, 5), unit).least

    assert [least("gang"), least("gang", min_available=2), least("gang", min_available=0)] == [3, 2, 1]
    assert [least("job", min_available=1), least("gang", min_available=9)] == [3, 3]


def test_a_life_as_the_wire_has_it() -> None:
    life = LiveJob(one_by_one(asked(PAIR)), FIRST, Clock(FIRST, 5 * S, 3 * S, 1), "task")
    assert {(name, c.duration, c.every, c.cost, c.since) for name, c in life.clocks.items()} == {
        (name, 5 * S, 3 * S, 1, FIRST) for name in ("x-0", "x-1", "y")
    }
    assert (life.status, life.pending() is life.ask, life.line().wait) == ("waiting", True, None)
    life.running["x-0"] = life.waiting.pop("x-0")
    life.first_started = FIRST + S // 2
    assert (life.status, life.holds()) == ("running", {"cpu": 1000})
    assert [task.name for task in life.pending().tasks] == ["x-1", "y"]
    life.leaving["x-0"] = life.running.pop("x-0")
    assert life.status == "releasing"
    for i, clock in enumerate(life.clocks.values()):
        clock.waited, clock.ran, clock.lost, clock.overhead = 10**i * S, 2 * 10**i * S, 3 * 10**i * S, 4 * 10**i * S
    life.ended_at = FIRST + 9 * S
    line = life.line()
    assert (line.wait, line.waited, line.ran, line.lost, line.overhead) == (0.5, 111, 222, 333, 444)
    assert (line.submitted_at.second, line.started_at and line.started_at.microsecond) == (0, 500_000)
    assert (line.ended_at and line.ended_at.second, line.status) == (9, "finished")
    life.cancelled = True
    assert life.status == "cancelled"
