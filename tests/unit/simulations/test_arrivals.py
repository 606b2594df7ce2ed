"""Jobs on their way, by hand: who is read when, who is held back, who never comes."""

from collections.abc import Iterator
from typing import Any

from app.base.decoding import convert
from app.simulations.core.life import ARRIVE, CANCEL, Agenda, Arrivals
from app.simulations.core.sink import FIRST
from app.simulations.schemas import Job
from tests.unit.simulations.running import job

S = 10**6


class Bench:
    """``start`` is second 10 of 2000; instants here count from 2000, in seconds."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.read = 0
        self.alive: set[str] = set()
        self.agenda = Agenda()
        self.arrivals = Arrivals(self._jobs(jobs), self.agenda, FIRST + 10 * S, self.alive.__contains__)

    def _jobs(self, jobs: Any) -> Iterator[Job]:
        for one in jobs:
            self.read += 1
            yield convert(one, Job)

    def pull(self, at: float) -> None:
        self.arrivals.pull(FIRST + round(at * S))

    def due(self, at: float) -> list[tuple[float, int, str]]:
        """What is on the agenda up to ``at``, taken off."""
        items = iter(lambda: self.agenda.take(FIRST + round(at * S)), None)
        return [((item[0] - FIRST) / S, item[1], item[2]) for item in items]

    def took(self, name: str) -> str | None:
        found = self.arrivals.take(name)
        return None if found is None else found.ask.id


def test_no_further_is_read_than_one_job_past_the_instant_and_nobody_comes_before_the_start() -> None:
    early = job("early", "q", 1, "2000-01-01T00:00:04Z", 1, cancelled_at="2000-01-01T00:00:05Z")
    bench = Bench(early, job("b", "q", 1, 2, 1, cancelled_at=7), job("c", "q", 1, 2.5, 1), job("d", "q", 1, 9, 1))
    assert (bench.read, len(bench.arrivals), bench.arrivals.first()) == (1, 1, FIRST + 10 * S)
    bench.pull(3)
    assert bench.read == 1
    bench.pull(10)
    assert (bench.read, len(bench.arrivals), bench.arrivals.first()) == (2, 2, FIRST + 12 * S)
    assert bench.due(60) == [(10, CANCEL, "early"), (10, ARRIVE, "early")]
    bench.pull(12)
    assert bench.due(60) == [(12, ARRIVE, "b"), (17, CANCEL, "b")]
    bench.pull(19)
    assert (bench.read, bench.arrivals.first()) == (4, None)
    assert bench.due(60) == [(12.5, ARRIVE, "c"), (19, ARRIVE, "d")]
    assert [bench.took(name) for name in ("early", "b", "b", "nobody")] == ["early", "b", None, None]
    assert len(bench.arrivals) == 2


def test_who_comes_after_others_arrives_when_the_last_of_them_has_ended() -> None:
    bench = Bench(
        job("a", "q", 1, 0, 1), job("b", "q", 1, 0, 1), job("then", "q", 1, 1, 1, after=["a", "b", "over"]),
        job("also", "q", 1, 1, 1, after=["a"]), job("last", "q", 1, 1, 1, after=["then"]),
        job("free", "q", 1, 1, 1, after=["over"]),
    )  # fmt: skip
    bench.pull(11)
    assert bench.took("a") == "a"
    bench.alive.add("a")
    assert [bench.took(name) for name in ("then", "also", "last", "free")] == [None, None, None, "free"]
    bench.due(60)
    bench.alive.remove("a")
    bench.arrivals.ended("a", FIRST + 20 * S)
    assert bench.due(60) == [(20, ARRIVE, "also")]
    assert [bench.took(name) for name in ("also", "b")] == ["also", "b"]
    bench.arrivals.ended("b", FIRST + 30 * S)
    assert bench.due(60) == [(30, ARRIVE, "then")]
    assert bench.took("then") == "then"
    assert (len(bench.arrivals), bench.arrivals.given_up) == (1, 0)


def test_who_is_given_up_while_held_back_never_comes_and_holds_nobody_back_itself() -> None:
    bench = Bench(
        job("a", "q", 1, 0, 1), job("then", "q", 1, 1, 1, after=["a"]), job("last", "q", 1, 1, 1, after=["then"])
    )
    bench.pull(11)
    assert [bench.took(name) for name in ("a", "last")] == ["a", None]
    bench.alive.add("a")
    assert bench.took("then") is None
    bench.due(60)
    assert bench.arrivals.give_up("a", FIRST + 12 * S) is False, "it has come already"
    assert bench.arrivals.give_up("then", FIRST + 13 * S) is True
    assert (bench.due(60), bench.arrivals.given_up) == ([(13, ARRIVE, "last")], 1)
    assert bench.took("last") == "last"
    bench.arrivals.ended("a", FIRST + 14 * S)
    assert (bench.due(60), bench.took("then"), len(bench.arrivals)) == ([], None, 0)
