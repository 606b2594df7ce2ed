"""What the endpoints of jobs do with what they are asked, of every kind alike: pages, streams, stopping."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from app.simulations import router as simulations
from app.simulations.results import SimulationPage
from app.studies import backtesting, study_jobs, sweep_jobs
from app.studies.backtesting import BacktestPage
from app.studies.exposure_schemas import ExposuresPage
from app.studies.forecasting import ForecastPage

ID = UUID(int=3)


class Calls:
    """Stands for a service: what it was asked, as (name, arguments)."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.asked.append((name, *args))
            return self.answer

        return call


def asked_of(calls: Calls) -> Any:
    """A request to an application that has ``calls`` for every service."""
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(services=SimpleNamespace(of=lambda _: calls))))


KINDS = [
    (simulations.router, "simulation", SimulationPage), (study_jobs.forecasts, "forecast", ForecastPage),
    (backtesting.router, "backtest", BacktestPage), (study_jobs.exposures, "exposure", ExposuresPage),
    (sweep_jobs.router, "sweep", sweep_jobs.SweepPage),
]  # fmt: skip


@pytest.mark.parametrize(("router", "kind", "page"), KINDS)
def test_fifty_are_listed_unless_more_are_asked_for_and_a_deletion_says_nothing(
    router: Any, kind: str, page: Any
) -> None:
    endpoints = {route.operation_id: route.endpoint for route in router.routes}
    listed, deleted = endpoints[f"list_{kind}s"], endpoints[f"delete_{kind}"]
    calls = Calls(page(items=[], next_cursor="n"))
    request = asked_of(calls)
    assert listed(request).body == b'{"items":[],"next_cursor":"n"}'
    listed(request, 7, "c")
    gone = deleted(request, ID)
    assert (gone.status_code, gone.body) == (204, b"")
    assert calls.asked == [("page", None, 50), ("page", "c", 7), ("stop", ID)]


def test_lines_of_a_simulation_are_all_of_its_first_variant_unless_others_are_asked_for() -> None:
    calls = Calls(iter(()))
    wanted: Any = simulations._Wanted  # pyright: ignore[reportPrivateUsage]
    for listed, kind in ((simulations.events, "events"), (simulations.rounds, "rounds"), (simulations.jobs, "jobs")):
        assert listed(wanted(ID), calls).media_type == "application/x-ndjson"  # pyright: ignore[reportArgumentType]
        listed(wanted(ID, "v", 3, 4), calls)  # pyright: ignore[reportArgumentType]
        assert calls.asked[-2:] == [("lines", ID, None, kind, 0, None), ("lines", ID, "v", kind, 3, 4)]
    calls.answer = b"{}"
    assert simulations.get_round(ID, 5, calls).body == b"{}"  # pyright: ignore[reportArgumentType]
    assert calls.asked[-1] == ("line", ID, None, "rounds", 4)
