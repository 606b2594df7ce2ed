"""Laws of every run, on small random clusters and traces, under each engine."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.answering.answers import answer
from app.answering.sources import nothing_stored
from app.simulations.core import records
from app.simulations.core.asked import Asked
from app.simulations.schemas import SimulationRequest, Spread, Trace
from app.solver.model.instant import micros
from tests.properties.recount import Recount, S
from tests.properties.runs import ENGINES, requests
from tests.unit.simulations.running import Told, play, told_again, watched

LATER = datetime(2030, 1, 1, tzinfo=UTC)
CELLS = ("cpu", "gpu")


@pytest.fixture(scope="module", autouse=True)
def _whole_states_now_and_then() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_LEAST", 1000)
        yield


@pytest.mark.parametrize("engine", ENGINES)
def test_the_laws_of_a_run(engine: str) -> None:
    examples = 12 if engine == "ytsaurus" else 40  # it has a round every second while anybody waits

    @given(requests([engine]))
    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    def check(request: SimulationRequest) -> None:
        told, rounds = watched(request)
        _every_round_can_be_posted(told, rounds)
        assert told_again(request, told) == [asked.request() for asked in rounds]
        _events_counted_give_the_summary(told, request)
        assert play(request).bytes() == told.bytes()

    check()


def _every_round_can_be_posted(told: Told, rounds: list[Asked]) -> None:
    assert len(rounds) == len(told.rounds)
    for line, asked in zip(told.rounds, rounds, strict=True):
        answered = answer(asked.request(), LATER, nothing_stored())
        assert answered.body == asked.answer()
        assert answered.facts.state_digest == line.state
        assert line.loop or answered.facts.outcomes.count("admit") <= len(line.asks)


def _events_counted_give_the_summary(told: Told, request: SimulationRequest) -> None:
    """Each job is in one state at every moment and runs as long as it must; nobody starts where there is no room."""
    assert told.summary is not None
    engine = told.summary.engine
    recount = Recount(request, engine)
    times = [event.at for event in told.events]
    assert times == sorted(times)
    nodes = {"n0", "n1"}
    for event in recount.count(told.events, micros(told.summary.end)):
        if event.kind == "node":
            nodes ^= {event.node or ""}
        if event.kind == "started":
            _there_is_room(recount, engine, event.queue or "", nodes)
    _jobs_are_as_counted(told, recount, request)
    _queues_are_as_counted(told, recount)


def _there_is_room(recount: Recount, engine: str, queue: str, nodes: set[str]) -> None:
    """Now that something of ``queue`` has started. YTsaurus starts at once beside who is on the way out."""
    on_nodes, in_queues = recount.held(leaving=engine != "ytsaurus")
    assert set(on_nodes) <= nodes
    assert max(on_nodes.values(), default=0) <= 4
    bound = recount.bound(queue)
    assert bound is None or in_queues[queue] <= bound, (queue, in_queues)
    if engine == "kueue":
        assert in_queues[""] <= sum(recount.guaranteed(name) for name in recount.quotas)


def _jobs_are_as_counted(told: Told, recount: Recount, request: SimulationRequest) -> None:
    assert isinstance(request.trace, Trace)
    lasts = {job.ask.id: job.duration for job in request.trace.jobs}
    assert told.summary is not None
    assert told.summary.rounds == len(told.rounds)
    kinds = Counter((event.job, event.kind) for event in told.events)
    for line in told.jobs:
        counted, parts = recount.by_job[line.job], recount.parts[line.job]
        assert (line.starts, line.evictions) == (kinds[line.job, "started"], kinds[line.job, "evicted"])
        alone = told.summary.engine in ("yunikorn", "ytsaurus") or len(parts) == 1
        if alone:
            assert line.ran == pytest.approx(counted["running"] / S)
            assert line.waited == pytest.approx(counted["waiting"] / S)
        if line.status == "finished":
            length = lasts[line.job]
            assert isinstance(length, int)
            assert line.ran == pytest.approx((len(parts) if alone else 1) * length + line.lost + line.overhead)


def _queues_are_as_counted(told: Told, recount: Recount) -> None:
    assert told.summary is not None
    for queue, totals in {"": told.summary.total, **told.summary.queues}.items():
        if queue == "root":
            continue
        counted = recount.counted[queue]
        assert (totals.jobs, totals.finished, totals.cancelled, totals.evictions) == (
            counted.jobs, counted.finished, counted.cancelled, counted.evictions,
        )  # fmt: skip
        _spread_is_as_counted(totals.wait, counted.waits)
        _spread_is_as_counted(totals.completion, counted.completions)
        done, lost, overhead = ({**dict.fromkeys(CELLS, 0), **found} for found in (
            totals.work_done, totals.work_lost, totals.work_overhead,
        ))  # fmt: skip
        for cell in CELLS:
            assert totals.used.get(cell, 0) == pytest.approx(counted.held / S)
            assert lost[cell] == pytest.approx(counted.lost / S)
            ran = done[cell] + lost[cell] + overhead[cell]
            if told.summary.engine == "kai":  # where too few tasks of a gang may run to make progress
                assert ran <= counted.running / S + 1e-6
            else:
                assert ran == pytest.approx(counted.running / S)
            if queue:
                assert totals.shortfall.get(cell, 0) == pytest.approx(counted.short / S)


def _spread_is_as_counted(told: Spread | None, values: Sequence[int]) -> None:
    assert (told is None) == (not values)
    if told is not None:
        found = sorted(values)
        assert told.max == found[-1] / S
        assert told.mean == pytest.approx(sum(found) / len(found) / S)
        for share, value in ((50, told.p50), (90, told.p90), (99, told.p99)):
            assert sum(one / S <= value for one in found) * 100 >= share * len(found)
            assert sum(one / S < value for one in found) * 100 < share * len(found)


@given(requests(), st.randoms(use_true_random=False))
@settings(max_examples=10, derandomize=True, deadline=None, database=None)
def test_the_order_of_the_request_makes_no_difference(request: SimulationRequest, random: Any) -> None:
    trace = request.trace
    assert not isinstance(trace, str)
    jobs = list(trace.jobs)
    random.shuffle(jobs)
    nodes = list(reversed(request.state.nodes))
    other = replace(request, trace=replace(trace, jobs=jobs), state=replace(request.state, nodes=nodes))
    assert play(other).bytes() == play(request).bytes()
