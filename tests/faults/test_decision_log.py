"""The database goes away under a running service: decisions are still answered, and what is lost is counted."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.metrics import Metrics
from app.service.main import create_app
from tests.api.requests import decision
from tests.faults.outage import Outage


@pytest.fixture
def url(migrated_database: Callable[[], str]) -> str:
    return migrated_database()


@pytest.fixture
def outage(url: str) -> Iterator[Outage]:
    made = Outage(url)
    yield made
    made.end()


def serve(url: str, folder: Path, **changes: Any) -> TestClient:
    settings = Settings(
        database_url=url, data_dir=folder, workers=0, database_connect_timeout=1, database_pool_timeout=1, **changes
    )
    return TestClient(create_app(settings), raise_server_exceptions=False)


def metric(service: TestClient, name: str, **labels: str) -> float:
    return service.app.state.services.of(Metrics).registry.get_sample_value(name, labels) or 0.0  # pyright: ignore


def decide(service: TestClient) -> str:
    answer = service.post("/v1/decisions", json=decision())
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def eventually(holds: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_decisions_go_on_and_are_stored_when_it_is_back(url: str, outage: Outage, tmp_path: Path) -> None:
    with serve(url, tmp_path) as service:
        made = [decide(service)]
        outage.begin()
        begun = time.monotonic()
        made += [decide(service) for _ in range(20)]
        assert time.monotonic() - begun < 5
        answer = service.get("/v1/decisions")
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.headers["Content-Type"] == "application/problem+json"
        outage.end()
        assert eventually(lambda: metric(service, "arbiter_decision_log_written_total") == 21)
        listed = service.get("/v1/decisions").json()["items"]
        assert [item["id"] for item in listed] == made[::-1]
        assert metric(service, "arbiter_decision_log_dropped_total", cause="queue_full") == 0


def test_what_no_longer_fits_is_dropped_and_counted(url: str, outage: Outage, tmp_path: Path) -> None:
    with serve(url, tmp_path, decision_log_queue_entries=5) as service:
        outage.begin()
        made = [decide(service) for _ in range(12)]
        assert metric(service, "arbiter_decision_log_dropped_total", cause="queue_full") == 7
        assert "arbiter_decision_log_dropped_total" in service.get("/metrics").text
        outage.end()
        assert eventually(lambda: metric(service, "arbiter_decision_log_written_total") == 5)
        listed = service.get("/v1/decisions").json()["items"]
        assert [item["id"] for item in listed] == made[4::-1]


def test_stored_configurations_that_are_known_go_on_and_others_are_unavailable(
    url: str, outage: Outage, tmp_path: Path
) -> None:
    with serve(url, tmp_path) as service:
        document = decision()["configuration"] | {"engine": "kueue"}
        assert service.put("/v1/configurations/main", json=document).status_code == 201
        pinned = decision() | {"configuration": "main@1"}
        assert service.post("/v1/decisions", json=pinned).status_code == 200
        outage.begin()
        by_name = decision() | {"configuration": "main"}
        assert service.post("/v1/decisions", json=by_name).json()["configuration"]["revision"] == 1
        answer = service.post("/v1/decisions", json=by_name | {"configuration": "other"})
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
        assert service.post("/v1/decisions", json=pinned).status_code == 200


def test_stopping_during_an_outage_takes_seconds_and_counts_what_is_lost(
    url: str, outage: Outage, tmp_path: Path
) -> None:
    with serve(url, tmp_path) as service:
        outage.begin()
        for _ in range(3):
            decide(service)
        begun = time.monotonic()
    assert time.monotonic() - begun < 15
    assert metric(service, "arbiter_decision_log_dropped_total", cause="shutdown") == 3


def test_without_any_database(homeless: TestClient) -> None:
    decide(homeless)
    assert homeless.get("/v1/decisions").status_code == 503


def test_in_sync_mode_what_is_acknowledged_is_stored_and_nothing_else_is_acknowledged(
    url: str, outage: Outage, tmp_path: Path
) -> None:
    def stored() -> set[str]:
        with psycopg.connect(url.replace("+psycopg", "", 1)) as connection:
            return {str(found) for (found,) in connection.execute("select id from decisions")}

    with serve(url, tmp_path, decision_log="sync") as service:
        for _ in range(3):
            assert decide(service) in stored()
        lines = b"\n".join([json.dumps(decision()).encode()] * 3)
        answers = service.post(
            "/v1/decisions:batch", content=lines, headers={"Content-Type": "application/x-ndjson"}
        ).text.splitlines()
        assert {json.loads(line)["answer"]["id"] for line in answers} <= stored()
        outage.begin()
        refused = service.post("/v1/decisions", json=decision())
        assert refused.status_code == 503, refused.text
        assert int(refused.headers["Retry-After"]) > 0
        outage.end()
        assert eventually(lambda: service.post("/v1/decisions", json=decision()).status_code == 200)


def test_a_table_that_is_missing_costs_the_entry_only(new_database: Callable[[], str], tmp_path: Path) -> None:
    with serve(new_database(), tmp_path) as service:
        decide(service)
        assert eventually(lambda: metric(service, "arbiter_decision_log_dropped_total", cause="refused") == 1)
        decide(service)
