"""What Prometheus scrapes."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app
from app.studies.forecasting import FORECAST
from tests.api.requests import decision
from tests.support.working import working


def scraped(service: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = service.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(service: TestClient, name: str, **labels: str) -> float:
    return scraped(service).get((name, frozenset(labels.items())), 0.0)


def test_decisions_are_counted_by_engine_outcome_and_reason(service: TestClient) -> None:
    request = decision()
    request["asks"] += [{**request["asks"][0], "id": "low", "priority": 0}]
    for _ in range(2):
        service.post("/v1/decisions", json=request)
    counted = {
        dict(labels)["outcome"]: (dict(labels)["engine"], number)
        for (name, labels), number in scraped(service).items()
        if name == "arbiter_decisions_total"
    }
    assert counted == {"preempt": ("kueue", 2.0), "wait": ("kueue", 2.0)}
    assert value(service, "arbiter_victims_total", engine="kueue", reason="InClusterQueue") == 2


def test_requests_are_counted_by_status(service: TestClient) -> None:
    before = {status: value(service, "arbiter_requests_total", status=status) for status in ("200", "404", "422")}
    service.get("/healthz")
    for _ in range(3):
        service.get("/v1/configurations/nobody")
    service.get("/v1/decisions?limit=0")
    counted = {status: value(service, "arbiter_requests_total", status=status) - before[status] for status in before}
    assert (counted["404"], counted["422"]) == (3, 1)
    assert counted["200"] >= 1


def test_every_stage_is_timed(service: TestClient) -> None:
    service.post("/v1/decisions", json=decision())
    for stage in ("decode", "compile", "solve", "encode"):
        assert value(service, f"arbiter_decision_{stage}_seconds_count", engine="kueue") == 1
        assert value(service, f"arbiter_decision_{stage}_seconds_sum", engine="kueue") > 0


def test_what_is_refused_is_no_decision(service: TestClient) -> None:
    service.post("/v1/decisions", json={})
    assert not [name for name, _ in scraped(service) if name == "arbiter_decisions_total"]


def test_the_log_counts_what_it_wrote(service: TestClient) -> None:
    service.post("/v1/decisions", json=decision())
    service.get("/v1/decisions")
    assert value(service, "arbiter_decision_log_written_total") == 1
    assert value(service, "arbiter_decision_log_waiting") == 0


def test_durations_are_by_route_and_names_that_nobody_gave_are_not_kept(service: TestClient) -> None:
    service.get("/v1/snapshots/one")
    service.get("/v1/snapshots/two")
    service.get("/v1/made-up")
    service.request("BREW", "/healthz")
    found = {
        (dict(labels)["method"], dict(labels)["route"]): number
        for (name, labels), number in scraped(service).items()
        if name == "arbiter_request_seconds_count"
    }
    assert found == {("GET", "/v1/snapshots/{name}"): 2, ("other", "other"): 1, ("other", "/healthz"): 1}


def test_kept_snapshots_and_what_runs_are_shown(service: TestClient) -> None:
    request = decision()
    kept = {"engine": "kueue", "configuration": request["configuration"], "state": request["state"]}
    assert service.put("/v1/snapshots/s", json=kept).status_code == 200
    assert value(service, "arbiter_snapshots") == 1
    assert value(service, "arbiter_snapshots_bytes") > 0
    assert value(service, "arbiter_requests_waiting", **{"class": "large"}) == 0
    assert value(service, "process_resident_memory_bytes") > 0
    assert [labels for name, labels in scraped(service) if name == "arbiter_build_info"]


@pytest.mark.slow
def test_workers_and_what_they_keep_are_counted(database_url: str, tmp_path: Path) -> None:
    settings = Settings(database_url=database_url, data_dir=tmp_path, workers=2)
    with TestClient(create_app(settings)) as service:
        request = decision()
        kept = {"engine": "kueue", "configuration": request["configuration"], "state": request["state"]}
        for name in "ab":
            assert service.put(f"/v1/snapshots/{name}", json=kept).status_code == 200
        assert value(service, "arbiter_snapshots") == 2
        assert value(service, "arbiter_workers") == 2
        assert value(service, "arbiter_workers_busy") == 0
        assert service.delete("/v1/snapshots/a").status_code == 204
        assert value(service, "arbiter_snapshots") == 1


def test_jobs_are_counted_by_kind_and_status(service: TestClient, settings: Settings) -> None:
    for _ in range(2):
        assert service.post("/v1/forecasts", json=FORECAST).status_code == 202
    with working(settings) as worker:
        assert worker.once()
    assert value(service, "arbiter_jobs", kind="forecast", status="queued") == 1
    assert value(service, "arbiter_jobs", kind="forecast", status="done") == 1
    assert value(service, "arbiter_jobs_seconds", kind="forecast", status="done") > 0
    assert value(service, "arbiter_jobs_oldest_seconds", kind="forecast") > 0
