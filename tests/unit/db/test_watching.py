# pyright: reportPrivateUsage=false
"""A connection that waits to be told: by whom, for how long, and what becomes of it when nobody can tell."""

import socket
from collections.abc import Iterator
from contextlib import closing, nullcontext
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.database import Database, Watch
from tests.support.instead import Instead
from tests.unit.db.nobody import Nobody

LONG = 600.0
"""Seconds: whoever waits so long was not woken."""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """What is written to one can be read from the other."""
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_it_sees_what_is_committed_and_wakes_when_it_is_told(
    database_url: str, ends: tuple[socket.socket, socket.socket]
) -> None:
    with closing(Database(database_url, Settings())) as database:
        with database.watching("news") as watch:
            for _ in range(2):
                with database.session() as session:
                    session.execute(sa.text("notify news"))
                watch.wait(LONG, ends[0])
            ends[1].send(b"x")
            watch.wait(LONG, ends[0])
            with watch.session() as session:
                found = session.execute(sa.text("select current_setting('application_name')")).scalar_one()
            assert found == "arbiter-follower"
            driver = watch._driver
            cut = sa.text("select pg_terminate_backend(:pid, 60000)").bindparams(pid=driver.info.backend_pid)
            with database.session() as session:
                session.execute(cut)
            ends[0].recv(1)
            watch.wait(LONG, ends[0])
            with pytest.raises(Unavailable, match="the database can't be reached"), watch.session() as session:
                session.execute(sa.text("select 1"))
        assert driver.closed


def test_it_is_closed_where_listening_fails(database_url: str, instead: Instead) -> None:
    with closing(Database(database_url, Settings())) as database:
        kept: list[Any] = []
        connect = database._single.connect  # pyright: ignore

        def connected() -> Any:
            kept.append(connect())
            return kept[-1]

        instead(database._single, connect=connected)
        with pytest.raises(ZeroDivisionError), database.watching("news"):
            raise ZeroDivisionError
        assert kept[0].closed


class Driver(Nobody):
    """A connection that can be waited for."""

    def __init__(self, told: socket.socket) -> None:
        self.told, self.gone = told, False
        self.drained: list[float | None] = []

    def fileno(self) -> int:
        """Of what can be read when something was said."""
        return self.told.fileno()

    def notifies(self, *, timeout: float | None = None, stop_after: int | None = None) -> Any:
        """Remembers for how long it would wait for more."""
        self.drained.append(timeout)
        if not (said := self.told.recv(1)):
            raise psycopg.OperationalError("the connection is lost")
        yield said


def watched(driver: Driver, error: Exception | None = None) -> Watch:
    """A watch on ``driver``, where listening raises ``error``."""

    def execute(statement: Any) -> None:
        assert str(statement) == "listen news"
        if error is not None:
            raise error

    connection: Any = SimpleNamespace(connection=SimpleNamespace(driver_connection=driver), execute=execute)
    return Watch(connection, "news", lambda: nullcontext(connection))


def test_it_waits_for_both_and_takes_only_what_is_there(ends: tuple[socket.socket, socket.socket]) -> None:
    interrupt, interrupts = socket.socketpair()
    with interrupt, interrupts:
        driver = Driver(ends[0])
        watch = watched(driver)
        watch.wait(0.001, interrupt)
        interrupts.send(b"x")
        watch.wait(LONG, interrupt)
        assert driver.drained == []
        ends[1].send(b"x")
        watch.wait(LONG, interrupt)
        assert driver.drained == [0]
        interrupt.recv(1)
        ends[1].close()
        with pytest.raises(Unavailable, match="the database went away"):
            watch.wait(LONG, interrupt)


@pytest.mark.parametrize(
    ("error", "gone", "raises"),
    [
        (OperationalError("", {}, psycopg.OperationalError("read only")), False, False),
        (DBAPIError("", {}, psycopg.Error("no such command")), False, False),
        (OperationalError("", {}, psycopg.OperationalError("gone")), True, True),
        (DBAPIError("", {}, psycopg.Error("gone"), connection_invalidated=True), False, True),
    ],
)  # fmt: skip
def test_where_nobody_can_tell_it_only_waits(
    ends: tuple[socket.socket, socket.socket], error: DBAPIError, gone: bool, raises: bool
) -> None:
    driver = Driver(ends[0])
    driver.gone = gone
    if raises:
        with pytest.raises(DBAPIError):
            watched(driver, error)
    else:
        watched(driver, error).wait(0.0, ends[1])
