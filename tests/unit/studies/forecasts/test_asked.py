"""What a forecast is asked: how far it looks, what runs how long, and what its answer says of a start."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import zstandard

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.base.errors import BadInput
from app.jobs.service import New
from app.simulations.core.sink import FIRST
from app.solver.model.problems import InvalidInput
from app.studies.forecasting import (
    FORECAST,
    Forecast,
    Forecasting,
    ForecastOutcome,
    ForecastRequest,
    foretell,
    scenarios,
)
from app.studies.study_jobs import Forecasts, SnapshotReads
from tests.support.foretelling import asks, running
from tests.support.kueue_run import two_queues
from tests.unit.simulations.running import AT_ONCE, job

S = 10**6
DAY = 86_400
ID = UUID(int=1)


def request(*jobs: dict[str, Any], **more: Any) -> ForecastRequest:
    given = asks(list(jobs) or [job("two", "a", 1, 0, 5)])
    return convert(
        {"configuration": two_queues(), "start": "2000-01-01T00:00:00Z", "asks": given, "options": AT_ONCE, **more},
        ForecastRequest,
    )


@pytest.mark.parametrize(
    ("until", "days", "last"), [(None, 2, 2 * DAY), (50, 2, 50), ("72h", 2, 2 * DAY), (None, 0.5, DAY // 2)]
)
def test_none_looks_further_ahead_than_the_days_of_the_service(until: Any, days: float, last: int) -> None:
    more = {} if until is None else {"until": until}
    found = list(scenarios(request(variants=[{"name": "same"}], **more), Compiled(None), days))
    assert [(name, one.until) for name, one in found] == [("", FIRST + last * S), ("same", FIRST + last * S)]


def test_what_runs_takes_what_is_said_of_it_else_what_is_said_of_all() -> None:
    state = {"workloads": [running("one", "a", 1), running("two", "b", 1)]}
    ((_, scenario),) = scenarios(
        request(job("x", "a", 1, 0, 5), state=state, remaining={"two": 7}, remaining_otherwise="1h"), Compiled(None), 9
    )
    assert scenario.remaining == {"one": 3600 * S, "two": 7 * S}
    assert [one.ask.id for one in scenario.jobs] == ["x"]


def told(*jobs: dict[str, Any], **more: Any) -> ForecastOutcome:
    return foretell(request(*jobs, **more), Compiled(None), 1000, lambda: False)


def test_a_start_is_told_with_and_without_a_variant_and_neither_where_there_is_none() -> None:
    less = {"name": "less", "set": {"queues.a.quota.cpu.guaranteed": 0, "queues.b.quota.cpu.guaranteed": 1}}
    more = {"name": "more", "set": {"queues.a.quota.cpu.guaranteed": 9}}
    found = told(job("wide", "a", 3, 2, 5), job("huge", "a", 9, 3, 5), variants=[less, more], until=100)
    wide, huge = found.asks
    assert (wide.queue, wide.wait, wide.starts_at) == ("a", 0, datetime(2000, 1, 1, 0, 0, 2, tzinfo=UTC))
    assert [(one.variant, one.starts_at, one.wait, one.later) for one in wide.what_if] == [
        ("less", None, None, None), ("more", wide.starts_at, 0, 0),
    ]  # fmt: skip
    assert (huge.wait, huge.starts_at) == (None, None)
    assert [(one.wait, one.later) for one in huge.what_if] == [(None, None), (4, None)], "when the other is over"
    assert huge.what_if[0].waits_for
    assert found.end == datetime(2000, 1, 1, 0, 1, 40, tzinfo=UTC)


def test_it_ends_when_everybody_has_started_and_counts_the_rounds_up_to_then() -> None:
    found = told(job("one", "a", 3, 0, 50), job("two", "a", 3, 1, 50))
    assert (found.end.second, found.rounds) == (50, 3)
    assert told(job("one", "a", 3, 0, 50)).rounds == 1


def test_a_fault_of_a_change_is_named_where_the_request_has_it() -> None:
    changes = [{"at": 3, "queues": {"x": {}}}]
    with pytest.raises(InvalidInput) as refused:
        told(changes=changes)
    assert [problem.pointer for problem in refused.value.problems] == ["/changes/0/queues/x"]


class Kept:
    """A service of forecasts that keeps what it accepts, on one snapshot."""

    def __init__(self, variants: int = 2) -> None:
        self.states: list[str] = []
        self.accepted: list[New] = []
        self.outcome: bytes | None = None
        reads = SnapshotReads(lambda _: b"", self._state, lambda _: b"", lambda _: None)
        self._service = Forecasts(self, None, reads, variants, 7)  # pyright: ignore[reportArgumentType]

    def _state(self, name: str) -> tuple[int, bytes]:
        self.states.append(name)
        return 4, msgspec.json.encode({"workloads": [running("one", "a", 1)]})

    def add(self, kind: str, made: Any) -> UUID:
        assert kind == "forecast"
        self.accepted.append(made(None))
        return ID

    def get(self) -> Forecast:
        return self._service.get(ID)

    def row(self, job: UUID, kind: str) -> dict[str, Any]:
        return {
            "id": ID, "status": "done" if self.outcome else "queued", "created_at": datetime.now(UTC),
            "started_at": None, "ended_at": None, "attempt": 0, "error": None, "outcome": self.outcome,
            "about": self.accepted[-1].about,
        }  # fmt: skip

    def start(self, **body: Any) -> tuple[Any, Any]:
        """What is shown at once, and what is kept for the worker."""
        given = {"configuration": two_queues(), "asks": asks([job("two", "a", 1, 0, 5)]), **body}
        shown = self._service.start(msgspec.json.encode(given))
        return shown, msgspec.json.decode(self.accepted[-1].request)


def test_a_snapshot_is_written_out_as_it_is_when_the_forecast_is_asked_for() -> None:
    of = Kept()
    shown, request = of.start(state={"snapshot": "prod"}, remaining={"one": 5}, start="2000-01-01T00:00:00Z")
    assert (of.states, request["state"]["workloads"][0]["id"], shown.start.year) == (["prod"], "one", 2000)
    assert (shown.end, shown.rounds, shown.asks) == (None, None, [])
    before = datetime.now(UTC)
    shown, request = of.start()
    assert of.states == ["prod"]
    assert before <= shown.start <= datetime.now(UTC)
    assert datetime.fromisoformat(request["start"]) == shown.start


def test_what_is_wrong_is_told_when_it_is_asked_for_and_nothing_is_kept() -> None:
    of = Kept()
    variants = [{"name": name} for name in "xy"]
    assert len(of.start(variants=variants)[1]["variants"]) == 2
    with pytest.raises(BadInput):
        of.start(variants=[*variants, {"name": "z"}])
    for wrong in ({"until": "never"}, {"variants": [{"name": "x", "set": {"queues.q.weight": 1}}]}):
        with pytest.raises(InvalidInput):
            of.start(**wrong)
    assert len(of.accepted) == 1


def test_a_forecast_that_is_done_tells_how_far_it_looked_and_every_ask() -> None:
    of = Kept()
    of.start(start="2000-01-01T00:00:00Z")
    asked: list[bool] = []
    work: Any = SimpleNamespace(check=lambda: asked.append(True))
    doing = Forecasting(Compiled(None), 1)
    made = doing.do(cast(Any, None), of.accepted[0].request, work)
    of.outcome = zstandard.ZstdCompressor().compress(made)
    shown = of.get()
    assert asked
    assert (shown.status, shown.rounds, shown.end, shown.start.year) == ("done", 1, shown.start, 2000)
    assert [(one.ask, one.wait) for one in shown.asks] == [("two", 0)]
    of.outcome = None
    assert (of.get().end, of.get().rounds, of.get().asks) == (None, None, [])


def test_the_example_waits_for_what_runs_and_one_more_cpu_lets_it_start_at_once() -> None:
    found = foretell(convert(FORECAST, ForecastRequest), Compiled(None), 1, lambda: False)
    (one,) = found.asks
    assert (one.wait, one.freed_by) == (2701, ["train-1"])
    assert [(what.wait, what.later) for what in one.what_if] == [(0, -2701)]
    less = {**FORECAST, "variants": [{"name": "none", "set": {"queues.team-b.quota.cpu.guaranteed": 4}}]}
    (same,) = foretell(convert(less, ForecastRequest), Compiled(None), 1, lambda: False).asks
    assert same.what_if[0].later == 0
