"""A simulation as a job: what is stored of each variant, how far it tells that it is, and where it stops."""

import pytest

from app.jobs.worker import LimitPassed, Unwanted
from app.simulations import service
from app.simulations.core.sink import FIRST
from app.simulations.service import STREAMS
from app.solver.model.problems import InvalidInput
from tests.support.bounds import Bounded
from tests.support.storing import JOBS, TWICE, Bench, Stored
from tests.unit.simulations.running import job


def test_every_stream_of_every_variant_is_stored_and_differences_are_told() -> None:
    of = Bench()
    outcome = of.do(variants=TWICE)
    assert set(of.lines) == {f"{number}/{kind}" for number in (0, 1) for kind in STREAMS}
    evictions = [one.summary.total.evictions for one in outcome.variants]
    assert ([one.name for one in outcome.variants], evictions) == (["x", "y"], [1, 0])
    for number, one in enumerate(outcome.variants):
        kinds = [line["kind"] for line in of.lines[f"{number}/events"]]
        assert (kinds.count("evicted"), kinds.count("finished")) == (evictions[number], 3)
        assert [line["n"] for line in of.lines[f"{number}/rounds"]] == list(range(1, one.summary.rounds + 1))
        assert all(line["state"] for line in of.lines[f"{number}/rounds"])
        assert len(of.lines[f"{number}/records"]) == one.summary.rounds
        assert {line["job"] for line in of.lines[f"{number}/jobs"]} == {"one", "two", "own"}
        assert {line[0] for line in of.lines[f"{number}/levels"]} >= {"", "a", "b"}
    assert {one.variant for one in outcome.differences} == {"y"}
    assert Bench().do().differences == []


def test_how_far_it_is_tells_the_variant_the_virtual_time_and_how_many_have_ended() -> None:
    of = Bench()
    of.do(variants=TWICE)
    told = [one for one in of.progress if one is not None]
    assert of.progress[0] is None
    assert told[0] == {"variants_done": 0, "variant": 0, "at": FIRST, "ended": 0, "total": 3, "rounds": 1}
    last = of.work.progress
    assert last is not None
    assert {name: last[name] for name in ("variants_done", "variant", "ended", "total")} == {
        "variants_done": 1, "variant": 1, "ended": 3, "total": 3,
    }  # fmt: skip
    assert last["at"] > FIRST
    assert sorted({one["variant"] for one in told}) == [0, 1]


def test_it_stops_where_it_is_told_to() -> None:
    of = Bench()
    of.do()
    whole = of.asked
    stopped = Bench()
    stopped.stop_at = whole - 1
    with pytest.raises(Unwanted):
        stopped.do()


def test_past_so_many_days_of_virtual_time_from_its_first_event_it_fails_and_names_the_setting() -> None:
    late = [job("a", "a", 1, "2003-01-01T00:00:00Z", 86_400)]
    assert Bench().do(trace=Stored(late), days=1, start="2000-01-01T00:00:00Z").variants[0].summary.makespan == 86_400
    with pytest.raises(LimitPassed, match=r"^it is past 0\.5 days of virtual time \(ARBITER_SIMULATION_DAYS\)$"):
        Bench().do(trace=Stored(late), days=0.5)
    with pytest.raises(LimitPassed):
        Bench().do(trace=Stored([job("a", "a", 1, 0, 86_400.000001)]), days=1)


def test_a_stored_trace_is_read_once_for_all_variants_where_it_is_small(bounded: Bounded) -> None:
    inline = Bench().do(variants=TWICE)
    for most, read in ((3, 1), (2, 2)):
        bounded(service, MOST_SHARED=most)
        trace = Stored()
        assert Bench().do(trace=trace, variants=TWICE) == inline
        assert (trace.read, trace.checked) == (read, 2)
    alone = Stored()
    of = Bench()
    of.do(trace=alone)
    assert (alone.read, alone.checked, of.work.progress and of.work.progress["total"]) == (1, 1, 3)


def test_what_is_wrong_with_a_stored_trace_is_named_by_line_under_each_variant() -> None:
    large = [*JOBS[:2], job("large", "a", 6, 7, 1)]
    variants = [{"name": "roomy", "set": {"queues.a.quota.cpu.guaranteed": 6}}, {"name": "as it is"}]
    Bench().do(trace=Stored(large), variants=variants[:1])
    with pytest.raises(InvalidInput) as refused:
        Bench().do(trace=Stored(large), variants=variants)
    assert [problem.pointer for problem in refused.value.problems] == ["/trace/lines/9/ask"]
