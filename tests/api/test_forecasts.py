"""Forecasts over HTTP: accepted, made by a worker, stopped."""

import json

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.solver.engine import ENGINES
from app.studies.forecasting import FORECAST
from tests.support.foretelling import asks
from tests.support.placed_runs import NODES, configuration, mixed
from tests.support.working import working


def test_a_forecast_is_made_told_of_and_forgotten(service: TestClient, settings: Settings) -> None:
    accepted = service.post("/v1/forecasts", json=FORECAST)
    assert accepted.status_code == 202, accepted.text
    assert (accepted.json()["status"], accepted.json()["start"]) == ("queued", FORECAST["start"])
    where = accepted.headers["location"]
    with working(settings) as worker:
        assert worker.once()
    told = service.get(where).json()
    assert (told["status"], told["end"]) == ("done", "2026-03-02T10:15:01Z"), told
    (ask,) = told["asks"]
    assert (ask["wait"], ask["freed_by"], ask["what_if"][0]["later"]) == (2701, ["train-1"], -2701)
    (item,) = service.get("/v1/forecasts").json()["items"]
    assert (item["id"], "asks" in item) == (told["id"], False)
    assert service.get("/v1/simulations").json()["items"] == []
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


def test_the_state_of_a_snapshot_is_taken_as_it_is_now(service: TestClient, settings: Settings) -> None:
    configuration, state = FORECAST["configuration"], FORECAST["state"]
    put = service.put("/v1/snapshots/now", json={"configuration": configuration, "state": state})
    assert put.is_success, put.text
    named = {**FORECAST, "state": {"snapshot": "now"}}
    where = [service.post("/v1/forecasts", json=body).headers["location"] for body in (FORECAST, named)]
    assert service.delete("/v1/snapshots/now").is_success  # what was asked about is what it was then
    with working(settings) as worker:
        assert worker.once()
        assert worker.once()
    inline, told = (service.get(one).json() for one in where)
    assert (told["status"], told["asks"]) == ("done", inline["asks"])
    refused = service.post("/v1/forecasts", json=named)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (404, "/state/snapshot")


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_says_when_each_ask_starts_as_a_simulation_of_it_does(
    service: TestClient, settings: Settings, engine: str
) -> None:
    common = {"configuration": configuration(engine), "state": NODES, "start": "2000-01-01T00:00:00Z", "grace": "3s"}
    jobs = mixed(engine)
    alone = [{"name": "of one job"}]
    forecast = service.post("/v1/forecasts", json={**common, "asks": asks(jobs), "variants": alone})
    simulation = service.post("/v1/simulations", json={**common, "trace": {"jobs": jobs}})
    assert (forecast.status_code, simulation.status_code) == (202, 202), forecast.text + simulation.text
    with working(settings) as worker:
        assert worker.once()
        assert worker.once()
    told = service.get(forecast.headers["location"]).json()
    assert told["status"] == "done", told
    played = map(json.loads, service.get(f"{simulation.headers['location']}/jobs").text.splitlines())
    assert {one["ask"]: one["starts_at"] for one in told["asks"]} == {one["job"]: one["started_at"] for one in played}
    assert any(one["wait"] and one["waits_for"] for one in told["asks"])
    assert all(one["what_if"][0]["later"] == 0 for one in told["asks"])


def test_one_that_waits_is_stopped_and_bad_input_is_named(service: TestClient) -> None:
    where = service.post("/v1/forecasts", json={**FORECAST, "start": None}).headers["location"]
    assert service.delete(where).status_code == 204
    assert service.get(where).json()["status"] == "cancelled"
    refused = service.post("/v1/forecasts", json={**FORECAST, "remaining": {}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/state/workloads/0/id"]
    many = [{"name": str(i)} for i in range(21)]
    assert service.post("/v1/forecasts", json={**FORECAST, "variants": many}).status_code == 422
