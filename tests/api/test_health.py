import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.cli import run
from app.db.database import migrate
from app.jobs import service as companion
from app.jobs.service import Companion
from app.service.main import create_app
from app.workers import pool
from tests.api.requests import decision
from tests.support.bounds import Bounded
from tests.support.instead import Instead


def test_lives_and_is_ready(service: TestClient) -> None:
    assert service.get("/healthz").json() == {"status": "ok"}
    for purpose in ({}, {"for": "decisions"}, {"for": "everything"}):
        ready = service.get("/readyz", params=purpose)
        assert (ready.status_code, "Retry-After" in ready.headers) == (200, False)
        body = ready.json()
        assert body["migration"] == body["needed"]
        assert (body["status"], body["database"]) == ("ready", "ok")
        assert body["configurations"] in ("unknown", "current"), "until names have been read"
        assert body["detail"] == ""
    assert service.get("/readyz", params={"for": "nothing"}).status_code == 422


def test_a_database_of_newer_code_is_served_and_left_alone(
    settings: Settings, new_database: Callable[[], str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    url = new_database()
    migrate(url)
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    migrate(url)
    monkeypatch.setenv("DATABASE_URL", url)
    assert run(["database", "upgrade"]) == 0
    assert "newer" in capsys.readouterr().out
    with TestClient(create_app(settings.model_copy(update={"database_url": url}))) as client:
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["migration"]) == (200, "9999")


def test_a_database_of_older_code_is_not(settings: Settings, new_database: Callable[[], str]) -> None:
    url = new_database()
    migrate(url)
    migrate(url, "-1")
    with TestClient(create_app(settings.model_copy(update={"database_url": url}))) as client:
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "unready")
        assert "migrate" in ready.json()["detail"]


def test_without_database_lives_but_is_not_ready(homeless: TestClient) -> None:
    assert homeless.get("/healthz").status_code == 200
    for purpose in ({}, {"for": "decisions"}):
        ready = homeless.get("/readyz", params=purpose)
        assert ready.status_code == 503
        body = ready.json()
        assert (body["status"], body["database"], body["configurations"]) == ("unready", "unreachable", "unknown")
        assert body["detail"]
        assert ready.headers["Retry-After"] == "5"
    (unable,) = body["unable"]
    assert (unable["part"], unable["detail"]) == ("database", body["detail"])
    again = homeless.get("/readyz").json()["unable"][0]
    assert again["since"] == unable["since"], "since when it was first seen"


def test_what_runs_beside_it_and_ends_is_named(settings: Settings, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=0.05)
    ending = Companion("tests.unit.jobs.no_such_module", "{}", "background")
    with TestClient(create_app(settings, [ending])) as client:
        assert client.get("/readyz").json()["unable"] == []
        ending.start()
        try:
            end = time.monotonic() + 60
            while (ready := client.get("/readyz")).status_code == 200 and time.monotonic() < end:
                time.sleep(0.02)
            (unable,) = ready.json()["unable"]
            assert (ready.status_code, unable["part"]) == (503, "background")
            assert datetime.fromisoformat(unable["since"]) <= datetime.now(UTC)
            client.post("/v1/decisions", json=decision())
            assert client.get("/readyz", params={"for": "decisions"}).json()["unable"] == [unable]
        finally:
            ending.close()


def test_without_solver_processes_it_is_not_ready(settings: Settings, instead: Instead) -> None:
    instead(pool, python=lambda: [sys.executable, "-c", "raise SystemExit(1)"])
    with TestClient(create_app(settings.model_copy(update={"workers": 1}))) as client:
        end = time.monotonic() + 60
        while (ready := client.get("/readyz")).status_code == 200 and time.monotonic() < end:
            time.sleep(0.02)
        (unable,) = ready.json()["unable"]
        assert (ready.status_code, unable["part"]) == (503, "workers")
        assert unable["detail"].startswith("1 of 1 solver processes")
        assert client.get("/readyz", params={"for": "decisions"}).status_code == 503
