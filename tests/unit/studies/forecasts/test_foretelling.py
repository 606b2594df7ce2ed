"""Forecasts that are worked out by hand, and the law that they are a simulation's own first starts."""

from typing import Any

import pytest

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput
from app.studies.forecasting import ForecastOutcome, ForecastRequest, foretell
from tests.support.foretelling import asks, running
from tests.support.kueue_run import two_queues
from tests.support.placed_runs import NODES, configuration, mixed
from tests.unit.simulations.running import START, job, played


def forecast(**request: Any) -> ForecastOutcome:
    body = {"start": "2000-01-01T00:00:00Z", **request}
    return foretell(convert(body, ForecastRequest), Compiled(None), 1000, lambda: False)


def test_the_first_start_what_it_waits_for_and_how_a_quota_moves_it() -> None:
    jobs = [job("two", "a", 2, 0, 5), job("three", "a", 2, 1, 5)]
    found = forecast(
        configuration=two_queues(queueing_strategy="StrictFIFO"),
        state={"workloads": [running("one", "a", 4)]},
        remaining={"one": 60},
        asks=asks(jobs),
        variants=[
            {"name": "more", "set": {"queues.a.quota.cpu.guaranteed": 4}},
            {"name": "less", "set": {"queues.a.quota.cpu.guaranteed": 1, "queues.b.quota.cpu.guaranteed": 1}},
        ],
    )
    two, three = found.asks
    assert (two.ask, two.wait, three.wait) == ("two", 60, 59)
    assert (two.freed_by, three.freed_by) == (["one"], ["one"])
    assert [waiting.outcome for waiting in two.waits_for] == ["wait"]
    assert three.waits_for[0].reason == "Queued"
    assert "'two' is before it" in three.waits_for[0].message
    more, less = two.what_if
    assert (more.variant, more.wait, more.later, more.waits_for) == ("more", 0, -60, [])
    assert (less.wait, less.later) == (60, 0)


def test_what_can_never_run_says_why_and_keeps_nobody_from_an_answer() -> None:
    found = forecast(configuration=two_queues(), asks=asks([job("huge", "a", 9, 0, 5), job("small", "a", 1, 0, 5)]))
    huge, small = found.asks
    assert (huge.starts_at, small.wait) == (None, 0)
    assert [waiting.outcome for waiting in huge.waits_for] == ["infeasible"]


def test_whom_it_evicts_is_told() -> None:
    state = {"workloads": [running("big", "a", 4)]}
    (own,) = forecast(
        configuration=two_queues(),
        state=state,
        remaining_otherwise="1h",
        asks=asks([job("own", "b", 2, 6, 5)]),
        grace=2,
    ).asks
    assert (own.wait, own.evicts, own.freed_by) == (2, ["big"], ["big"])
    assert [waiting.outcome for waiting in own.waits_for] == ["preempt"]


@pytest.mark.parametrize("engine", ["yunikorn", "kai", "ytsaurus", "kube-scheduler"])
def test_first_starts_are_those_of_the_simulation(engine: str) -> None:
    jobs = mixed(engine)
    told = played(configuration(engine), jobs, state=NODES, grace=3, start="2000-01-01T00:00:00Z")
    found = forecast(configuration=configuration(engine), state=NODES, asks=asks(jobs), grace=3)
    for one in found.asks:
        started = told.of(one.ask).started_at
        assert one.starts_at == started is not None
        assert not one.wait or one.waits_for
    assert micros(found.end) == max(micros(one.starts_at) for one in found.asks if one.starts_at) > START


def test_problems_are_named_where_the_request_has_them() -> None:
    with pytest.raises(InvalidInput) as refused:
        forecast(
            configuration=two_queues(), state={"workloads": [running("one", "a", 4)]},
            asks=asks([job("two", "nobody", 2, 0, 0)]),
        )  # fmt: skip
    assert {problem.pointer for problem in refused.value.problems} == {
        "/asks/0/duration", "/asks/0/ask/queue", "/state/workloads/0/id",
    }  # fmt: skip
    with pytest.raises(InvalidInput) as refused:
        forecast(
            configuration=two_queues(), asks=asks([job("two", "a", 2, 0, 1)]),
            variants=[{"name": "more", "set": {"queues.c.weight": 4}}],
        )  # fmt: skip
    assert [problem.pointer for problem in refused.value.problems] == ["/variants/0/set/queues.c.weight"]
