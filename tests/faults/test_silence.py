"""A database that refuses nothing and answers nothing: frozen, or behind a network that drops every packet."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from httpx2 import Response
from sqlalchemy import make_url
from starlette.testclient import TestClient

from app.auth.tokens import Tokens
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.connecting import Statement
from app.db.database import Database
from app.db.embedded import EmbeddedPostgres
from app.service.main import create_app
from tests.api.requests import DECISION, changed, decision
from tests.faults.blackhole import BlackHole

STORED = {"engine": "kueue", **DECISION["configuration"]}
SOON = 2.0
LATEST = 5.0


class Fault(Protocol):
    url: str

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Frozen:
    """Every process of a server is stopped, as by SIGSTOP or a hypervisor that lost interest."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder

    def _send(self, what: signal.Signals) -> None:
        parent = int((self._folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(parent, what)
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with suppress(ProcessLookupError):  # it was about to end
                os.kill(int(child), what)

    def begin(self) -> None:
        self._send(signal.SIGSTOP)

    def end(self) -> None:
        self._send(signal.SIGCONT)


class Lost(BlackHole):
    """Nothing gets through to a server, nor back."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(str(folder / "postgres" / ".s.PGSQL.5432"))
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{make_url(url).database}"


@pytest.fixture(params=["frozen", "lost"])
def fault(request: pytest.FixtureRequest, data_folder: Path) -> Iterator[Fault]:
    server = EmbeddedPostgres(data_folder, settings=("fsync=off",))
    url = server.start()
    made = Frozen(url, data_folder) if request.param == "frozen" else Lost(url, data_folder)
    yield made
    made.end()
    if isinstance(made, Lost):
        made.close()
    server.stop()


@contextmanager
def serve(url: str, **changes: Any) -> Iterator[TestClient]:
    settings = Settings(database_url=url, workers=0, **changes)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def timed(ask: Callable[[], Response]) -> tuple[Response, float]:
    began = time.monotonic()
    return ask(), time.monotonic() - began


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def test_what_needs_it_is_refused_in_time_and_goes_on_when_it_is_back(fault: Fault) -> None:
    with serve(fault.url) as client:
        assert client.put("/v1/configurations/prod", json=STORED).status_code == 201
        until(lambda: client.get("/readyz").status_code == 200)
        fault.begin()
        ready, took = timed(lambda: client.get("/readyz"))
        assert (ready.status_code, ready.json()["database"]) == (503, "unreachable")
        assert took < SOON
        for ask in (
            lambda: client.get("/v1/configurations"),
            lambda: client.put("/v1/configurations/other", json=STORED),
            lambda: client.get("/v1/decisions"),
        ):
            refused, took = timed(ask)
            assert refused.status_code == 503, refused.text
            assert int(refused.headers["Retry-After"]) > 0
            assert took < LATEST
        assert client.post("/v1/decisions", json=changed("/configuration", "prod")).status_code == 200
        fault.end()
        until(lambda: client.get("/readyz").status_code == 200, 10)
        assert client.get("/v1/configurations/prod").status_code == 200
        until(lambda: len(client.get("/v1/decisions").json()["items"]) == 1)


def test_many_at_once_are_refused_in_time_too_and_readiness_does_not_wait_for_them(fault: Fault) -> None:
    with serve(fault.url) as client, ThreadPoolExecutor(60) as callers:
        until(lambda: client.get("/readyz").status_code == 200)
        fault.begin()
        asked = [callers.submit(timed, lambda: client.get("/v1/configurations")) for _ in range(60)]
        ready, took = timed(lambda: client.get("/readyz"))
        assert ready.status_code == 503
        assert took < SOON
        for one in asked:
            refused, took = one.result()
            assert refused.status_code == 503
            assert took < LATEST


def test_known_tokens_do_not_wait(fault: Fault) -> None:
    settings = Settings(database_url=fault.url)
    database = Database(fault.url, settings)
    secret, _ = Tokens(database).create("scheduler", ["decide"], None)
    database.close()
    with serve(fault.url, authentication="required") as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        assert client.post("/v1/decisions", json=decision()).status_code == 200
        fault.begin()
        time.sleep(2.5)  # past the time for which a token needs no second look
        took = [timed(lambda: client.post("/v1/decisions", json=decision())) for _ in range(5)]
        assert [answer.status_code for answer, _ in took] == [200] * 5
        assert max(seconds for _, seconds in took) < SOON
        assert sorted(seconds for _, seconds in took)[2] < SOON / 2


@pytest.mark.parametrize("connect", [1, 30], ids=["the driver's clock", "our clock"])
def test_a_start_against_silence_takes_seconds(fault: Fault, connect: int) -> None:
    fault.begin()
    database = Database(fault.url, Settings(database_connect_timeout=connect))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        database.migration_state()
    assert time.monotonic() - began < LATEST
    assert database.is_silent, "it is not asked again until it answers"
    with pytest.raises(Unavailable, match="does not answer"):
        database.migration_state()
    fault.end()
    until(lambda: not database.is_silent, 10)
    assert database.migration_state()[0]
    database.close()


def test_a_slow_statement_is_not_taken_for_silence(migrated_url: str) -> None:
    database = Database(migrated_url, Settings(database_timeout=1))
    with pytest.raises(Unavailable, match="too long"), database.session() as session:
        session.connection().exec_driver_sql("select pg_sleep(5)")
    assert not database.is_silent
    with database.session(seconds=5) as session:
        session.connection().exec_driver_sql("select pg_sleep(1.2)")
    database.close()


def test_what_is_sent_at_once_is_one_transaction_within_time_on_a_living_connection(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    database = Database(url, Settings(database_timeout=1))
    database.send(("create table kept (n int)", {}))
    insert: Statement = ("insert into kept values (%(n)s)", {"n": 1})
    with pytest.raises(psycopg.errors.DivisionByZero):
        database.send(insert, ("select 1 / %(n)s", {"n": 0}))
    with pytest.raises(Unavailable, match="too long"):
        database.send(insert, ("select pg_sleep(%(seconds)s)", {"seconds": 5}))
    assert not database.is_silent
    with pytest.raises(UnicodeEncodeError):
        database.send(insert, ("select %(text)s", {"text": "\ud800"}))
    with database.session() as session:  # which is a transaction still
        session.connection().exec_driver_sql("insert into kept values (3)")
        session.rollback()
    database.send(insert)
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    database.send(insert)
    with database.session() as session:
        assert session.connection().exec_driver_sql("select count(*) from kept").scalar_one() == 2
    database.close()


def test_no_free_connection_is_said_in_time(migrated_url: str) -> None:
    database = Database(migrated_url, Settings(database_pool_size=1, database_timeout=0.5))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with database.session():
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    with pytest.raises(Unavailable, match="in use"), database.session():
        pass
    done.set()
    holder.join()
    assert not database.is_silent
    with database.session():
        pass
    database.close()
