"""Following the database where it doesn't tell, has no connection left, or is set back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.database import Database, migrate
from app.service.main import create_app
from tests.api.requests import decision
from tests.faults.outage import Outage
from tests.support.instead import Instead

QUIET = """
create or replace function configuration_changed() returns trigger language plpgsql as $$
begin
    new.change := nextval('configuration_change');
    return new;
end $$
"""


@pytest.fixture
def url(migrated_database: Callable[[], str]) -> str:
    return migrated_database()


@contextmanager
def service(url: str, folder: Path, **changes: Any) -> Iterator[TestClient]:
    settings = Settings(
        database_url=url, data_dir=folder, workers=0, database_connect_timeout=1, database_pool_timeout=1, **changes
    )
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        until(lambda: client.get("/readyz").json()["configurations"] == "current")
        yield client


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def put(client: TestClient, cpu: int, name: str = "prod") -> int:
    document = {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": cpu}}}]}
    path = f"/v1/configurations/{name}"
    done = client.put(path, json=document, headers={"If-Match": "*"})
    if done.status_code == 412:
        done = client.put(path, json=document)
    assert done.status_code in (200, 201), done.text
    return done.json()["revision"]


def decides_with(client: TestClient, reference: str = "prod") -> int:
    answer = client.post("/v1/decisions", json={**decision(), "configuration": reference, "state": {}})
    assert answer.status_code == 200, answer.text
    return answer.json()["configuration"]["revision"]


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_where_nobody_tells_it_looks_by_itself(url: str, tmp_path: Path) -> None:
    run(url, QUIET)
    with service(url, tmp_path) as writer, service(url, tmp_path, configuration_poll_seconds=0.2) as reader:
        for cpu in (1, 2, 3):
            written = put(writer, cpu)
            until(lambda written=written: decides_with(reader) == written)


def test_being_told_does_not_wait_for_its_next_look(url: str, tmp_path: Path) -> None:
    with service(url, tmp_path) as writer, service(url, tmp_path, configuration_poll_seconds=60) as reader:
        for cpu in (1, 2, 3):
            written = put(writer, cpu)
            until(lambda written=written: decides_with(reader) == written)


def test_without_a_connection_of_its_own_it_looks_through_the_pool(url: str, tmp_path: Path, instead: Instead) -> None:
    @contextmanager
    def refused(self: Database, channel: str) -> Iterator[None]:
        raise Unavailable("too many connections")
        yield

    instead(Database, watching=refused)
    with service(url, tmp_path) as writer, service(url, tmp_path) as reader:
        assert decides_with(reader, f"prod@{put(writer, 1)}") == 1
        until(lambda: decides_with(reader) == 1)
        written = put(writer, 2)
        until(lambda: decides_with(reader) == written)


def test_a_database_that_was_set_back_is_believed(url: str, tmp_path: Path) -> None:
    with service(url, tmp_path) as client:
        for cpu in (1, 2, 3):
            put(client, cpu)
        put(client, 1, "later")
        assert decides_with(client) == 3
        run(
            url,
            "set session_replication_role = replica",
            "delete from configuration_revisions where revision > 2 or name = 'later'",
            "delete from configurations where name = 'later'",
            "update configurations set revision = 2, change = 2",
            "select setval('configuration_change', 2)",
        )
        until(lambda: decides_with(client) == 2)
        assert client.get("/v1/configurations/later").status_code == 404


def test_nothing_is_asked_of_the_database_for_a_decision_by_name(url: str, tmp_path: Path) -> None:
    with service(url, tmp_path) as writer, service(url, tmp_path) as reader:
        written = put(writer, 1)
        until(lambda: reader.get("/metrics").text.count("arbiter_configurations_known 1.0") == 1)
        outage = Outage(url)
        outage.begin()
        try:
            assert decides_with(reader) == written
        finally:
            outage.end()


def test_documents_past_the_budget_are_fetched_when_needed(url: str, tmp_path: Path) -> None:
    with service(url, tmp_path) as writer:
        for number in range(20):
            put(writer, 1 + number, f"c{number}")
    with service(url, tmp_path, configuration_cache_bytes=200) as reader:
        for number in (*range(20), *range(20)):
            assert decides_with(reader, f"c{number}") == 1


def test_tables_that_come_later_are_followed_then(new_database: Callable[[], str], tmp_path: Path) -> None:
    url = new_database()
    settings = Settings(database_url=url, data_dir=tmp_path, workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        assert client.get("/readyz").json()["configurations"] == "unknown"
        migrate(url)
        until(lambda: client.get("/readyz").json()["configurations"] == "current")
        assert put(client, 1) == decides_with(client) == 1
