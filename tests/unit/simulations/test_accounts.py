"""What a queue comes to, which circles are seen and what happens next: each by hand, without a simulation."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.simulations.core.accounting import AllQueueStatistics, Loops, rank
from app.simulations.core.life import ARRIVE, FINISH, Agenda
from app.simulations.core.sink import time_of
from app.simulations.schemas import Evicted, Spread

S = 10**6
Json = dict[str, Any]


def test_the_areas_of_a_queue() -> None:
    """Seconds 0 to 2: 4 of the 6 wanted are due. 2 to 5: 3 beside the 1 that runs; to 6: 1. Then 3 run, of 2."""
    told: list[tuple[int, Json, Json, Json]] = []

    def level(name: str, at: int, *levels: Json) -> None:
        if name == "q":
            told.append((at, *map(dict, levels)))  # pyright: ignore

    before, after = {"pods": 4, "cpu": 1000}, {"pods": 2, "cpu": 1000}
    one, licences = {"pods": 1}, {"licences": 3}
    of = AllQueueStatistics(0, {"q": None}, {"q": before}, {}, level)
    of.count(0, "q", one, wanted=6)
    of.count(0, "q", licences, wanted=1)
    of.count(2 * S, "q", one, held=1, wanted=-1)
    of.count(3 * S, "q", one, held=1)
    of.count(3 * S, "q", one, held=-1)
    for sign in (-1, 1):
        of.count(5 * S, "q", one, held=sign, wanted=5 * sign)
        of.count(5 * S, "q", licences, wanted=sign)
        if sign < 0:
            of.entitle(5 * S, {"q": None}, {"q": after}, {})
    of.count(6 * S, "q", one, held=2)
    of.count(9 * S, "q", one, wanted=-5)
    of.count(9 * S, "q", licences, wanted=-1)
    of.jobs("q").jobs += 1
    of.close(12 * S)
    totals = of.totals()["q"]
    assert totals.used == of.total.totals().used == {"pods": 0 * 2 + 1 * 4 + 3 * 6}
    assert list(totals.utilisation.items()) == [("cpu", 0), ("pods", 22 / (4 * 5 + 2 * 7))]
    assert totals.shortfall == {"pods": 4 * 2 + 3 * 3 + 1}
    waiting = {"pods": 5, "licences": 3}
    assert told == [
        (0, {}, {"pods": 6, "licences": 3}, before),
        (2 * S, {"pods": 1}, waiting, before),
        (5 * S, {"pods": 1}, waiting, after),
        (6 * S, {"pods": 3}, waiting, after),
        (9 * S, {"pods": 3}, {"pods": 0, "licences": 0}, after),
    ]


@pytest.mark.parametrize("kinds", [1, 10_000])
def test_amounts_of_many_kinds_are_added_up_on_the_way(kinds: int) -> None:
    """Each holds one for ten seconds, five of them of use, however many are told apart by then."""
    of = AllQueueStatistics(0, {"a": None, "b": "a"}, {"a": {"pods": 2}}, {})
    amounts = [{"pods": 1} for _ in range(kinds)]
    for i, kind in enumerate(amounts):
        of.count(i * 20 * S, "b", kind, held=1)
        of.count((i * 20 + 10) * S, "b", dict(kind), held=-1, spent=(5 * S, 3 * S, 2 * S))
    of.jobs("b").jobs += 1
    of.close(kinds * 20 * S)
    for totals in (*of.totals().values(), of.total.totals()):
        assert totals.used == {"pods": 10 * kinds}
        assert (totals.work_done, totals.work_lost) == ({"pods": 5 * kinds}, {"pods": 3 * kinds})
        assert totals.work_overhead == {"pods": 2 * kinds}


def life(evictions: int = 0, submitted: int = 0, *durations: int, initial: bool = False) -> Any:
    clocks = {str(i): SimpleNamespace(duration=duration) for i, duration in enumerate(durations)}
    return SimpleNamespace(evictions=evictions, submitted=submitted, initial=initial, clocks=clocks)


def test_the_jobs_of_a_queue() -> None:
    """Of 1 to 200, in whatever order: percentiles are values, and a mean is whole where it can be."""
    of = AllQueueStatistics(0, {"q": None}, {}, {})
    jobs = of.jobs("q")
    assert jobs.spreads() == (None, None, None)
    for i in range(200):
        k = i * 77 % 200 + 1
        jobs.started(k * S)
        jobs.done(life(0, 3 * S, S, 2 * S), (3 + 2 * k) * S)
    jobs.done(life(0, 0, 1 * S, initial=True), 5000 * S)
    for evictions in (1, 3, 2):
        jobs.evicted(life(evictions))
    of.close(0)
    of.jobs("elsewhere").evicted(life(7))
    of.close(0)
    of.count(0, "q", {"pods": 1}, spent=(10 * S, 0, 0))
    of.count(0, "q", {"pods": 2, "cpu": 500}, spent=(S, 3 * S, S))
    of.close(0)
    totals = of.total.totals()
    assert (totals.evictions, totals.most_evictions) == (4, 7)
    of.jobs("q").jobs += 1
    of.close(0)
    totals = of.totals()["q"]
    assert totals.wait == totals.slowdown == Spread(mean=100.5, p50=100, p90=180, p99=198, max=200)
    assert totals.completion == Spread(mean=201, p50=200, p90=360, p99=396, max=400)
    assert str(totals.completion.mean) == "201"
    assert (totals.finished, totals.evictions, totals.most_evictions) == (201, 3, 3)
    assert list(totals.work_done.items()) == [("cpu", 0.5), ("pods", 12)]
    assert (totals.work_lost, totals.work_overhead) == ({"cpu": 1.5, "pods": 6}, {"cpu": 0.5, "pods": 2})


@pytest.mark.parametrize(
    ("count", "percent", "place"), [(1, 50, 0), (2, 50, 0), (3, 50, 1), (100, 99, 98), (101, 99, 99), (10, 0, 0)]
)
def test_a_percentile_is_a_value_that_occurred(count: int, percent: int, place: int) -> None:
    assert rank(count, percent) == place


def eviction(job: str) -> Evicted:
    return Evicted(job=job, queue="q", rule="reclaim")


def test_a_circle_is_closed_by_the_same_situation_after_an_eviction() -> None:
    of = Loops(most=1)
    assert [of.look(1, 77, 0), of.look(2, 77, 0)] == [None, None], "nobody was evicted in between"
    of.evicted([eviction("b")])
    assert of.look(3, 78, 0) is None
    of.evicted([eviction("a"), eviction("b")])
    found = of.look(4, 77, S)
    assert found is not None
    assert (found.at, found.first, found.second, found.jobs) == (time_of(S), 1, 4, ["a", "b"])
    assert [one.job for one in found.evictions] == ["b", "a", "b"]
    of.evicted([eviction("c")])
    assert of.look(5, 78, 0) is None, "a circle is begun anew where one was closed"
    again = of.look(6, 77, 2 * S)
    assert again is not None
    assert (again.first, [one.job for one in again.evictions]) == (4, ["c"])
    assert (of.count, of.first) == (2, [found])
    of.evicted([eviction("d")])
    of.outside()
    assert of.look(7, 77, 0) is None
    assert of.look(8, 77, 0) is None, "what was evicted before does not count"


def test_every_queue_is_entitled_to_what_is_in_force() -> None:
    """Ten seconds each: a guarantees 2, then 6, then nothing any more; b comes with 3, below a."""
    of = AllQueueStatistics(0, {"a": None}, {"a": {"cpu": 2}}, {"cpu": 8})
    of.jobs("a").jobs += 1
    of.entitle(10 * S, {"a": None, "b": "a"}, {"a": {"cpu": 6}, "b": {"cpu": 3}}, {"cpu": 16})
    of.count(10 * S, "b", {"cpu": 4}, held=1)
    of.jobs("b").jobs += 1
    of.count(20 * S, "b", {"cpu": 4}, held=-1)
    of.entitle(20 * S, {"b": None}, {"b": {"cpu": 3}}, {"cpu": 8})
    of.jobs("b").jobs += 1
    of.close(30 * S)
    assert {name: totals.jobs for name, totals in of.totals().items()} == {"a": 2, "b": 2}, "a is above it no longer"
    shares = {name: totals.utilisation for name, totals in of.totals().items()}
    assert shares == {"a": {"cpu": 40 / (20 + 60)}, "b": {"cpu": 40 / (30 + 30)}}
    assert of.total.totals().utilisation == {"cpu": 40 / (80 + 160 + 80)}


def test_what_is_wanted_no_longer_is_skipped_up_to_the_first_that_is() -> None:
    of = Agenda()
    for at, job in ((1, "x"), (2, "x"), (3, "a"), (4, "x")):
        of.add(at, FINISH, job)
    of.skip(lambda item: item[2] != "x")
    assert (of.first(), len(of)) == (3, 2)
    of.take(3)
    of.skip(lambda item: item[2] != "x")
    assert (of.first(), len(of)) == (None, 0)


def test_what_happens_next() -> None:
    of = Agenda()
    assert (of.first(), of.take(5), len(of)) == (None, None, 0)
    for at, kind, job in ((3, ARRIVE, "a"), (3, FINISH, "z"), (2, ARRIVE, "b"), (3, ARRIVE, "a"), (9, FINISH, "c")):
        of.add(at, kind, job, detail=cast(Any, object()))
    assert (of.first(), of.take(1), len(of)) == (2, None, 5)
    of.prune(lambda item: item[2] != "b")
    assert len(of) == 4
    taken = [of.take(3) for _ in range(4)]
    assert [item and item[:4] for item in taken] == [
        (3, FINISH, "z", 2), (3, ARRIVE, "a", 1), (3, ARRIVE, "a", 4), None,
    ]  # fmt: skip
    assert of.first() == 9
