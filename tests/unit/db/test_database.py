# pyright: reportPrivateUsage=false
"""What goes wrong with a database, in the words of the service, and who waits for a connection: without a server."""

from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.base.ticket import Ticket, TooSlow, holding
from app.db import database as module
from app.db.connecting import Late, left
from app.db.database import Database
from tests.support.instead import Instead

SETTINGS = Settings(database_pool_size=1, database_pool_timeout=0.01, database_timeout=7.0)


@pytest.fixture
def database(instead: Instead) -> Any:
    """One that nobody connects to; ``tripped`` counts how often it was found silent."""
    made: Any = Database("postgresql://nowhere.invalid/x", SETTINGS)
    made.tripped = 0

    def trip() -> None:
        made.tripped += 1

    instead(made._breaker, trip=trip)
    return made


def test_without_an_address_it_is_always_away() -> None:
    nobody = Database(None, SETTINGS)
    assert nobody.is_silent
    for use in (lambda: nobody.session().__enter__(), nobody.send, nobody.migration_state):
        with pytest.raises(Unavailable, match="no database is configured") as refused:
            use()
        assert refused.value.headers == {"Retry-After": "60"}
    nobody.close()


CANCELED = psycopg.errors.QueryCanceled("too slow")


@pytest.mark.parametrize(
    ("error", "detail", "tripped"),
    [
        (PoolTimeout(), "all connections to the database are in use", 0),
        (OperationalError("", {}, psycopg.OperationalError("gone")), "the database can't be reached", 0),
        (InterfaceError("", {}, psycopg.InterfaceError("gone")), "the database can't be reached", 0),
        (OperationalError("", {}, Late("late")), "the database does not answer", 1),
        (OperationalError("", {}, CANCELED), "the database takes too long", 0),
        (psycopg.OperationalError("gone"), "the database can't be reached", 0),
        (psycopg.InterfaceError("gone"), "the database can't be reached", 0),
        (Late("late"), "the database does not answer", 1), (CANCELED, "the database takes too long", 0),
        (DBAPIError("", {}, Exception(), connection_invalidated=True), "the database went away", 0),
    ],
)  # fmt: skip
def test_each_way_of_being_away_has_its_words(database: Any, error: Exception, detail: str, tripped: int) -> None:
    def fails() -> None:
        assert 0 < left() <= 3.0
        raise error

    with pytest.raises(Unavailable) as refused, database._reached(database._engine, 3.0):
        fails()
    assert (refused.value.detail, database.tripped) == (detail, tripped)


@pytest.mark.parametrize("error", [DBAPIError("", {}, Exception()), ValueError("x"), psycopg.DataError("x")])
def test_other_errors_stay_as_they_are(database: Any, error: Exception) -> None:
    with pytest.raises(type(error)) as raised, database._reached(database._engine, 3.0):
        raise error
    assert raised.value is error


def test_one_that_is_silent_is_not_asked(database: Any) -> None:
    assert not database.is_silent
    database._breaker.is_open = True
    assert database.is_silent
    for use in (lambda: database.session().__enter__(), database.send):
        with pytest.raises(Unavailable, match="the database does not answer"):
            use()


def test_nobody_waits_for_a_connection_longer_than_he_may(database: Any) -> None:
    full = pytest.raises(Unavailable, match="all connections to the database are in use")
    with database._place(), full, database._place():
        pass
    with database._place():
        pass
    with pytest.raises(ZeroDivisionError), database._place():
        raise ZeroDivisionError
    database._breaker.is_open = True
    for _ in range(2):
        with pytest.raises(Unavailable, match="the database does not answer"), database._place():
            pass
    database._breaker.is_open = False
    with database._place():
        pass


def test_what_is_tried_at_once_does_not_wait_for_it(database: Any) -> None:
    with holding(Ticket("small", 1.0, 1.0, at_once=True)):
        for use in (lambda: database.session().__enter__(), database.send):
            with pytest.raises(TooSlow):
                use()


def test_how_long_a_unit_of_work_has(database: Any, instead: Instead) -> None:
    found: list[float] = []
    instead(module, send=lambda engine, statements: found.append(round(left())))
    database.send(("select 1", {}))
    assert found == [7]

    instead(module, Session=lambda engine, **named: _Within(found))
    for seconds, allowed in ((None, 7), (2.0, 2)):
        found.clear()
        with database.session(seconds):
            pass
        assert found == [allowed]


class _Within:
    """A session that remembers what was left when it began."""

    def __init__(self, found: list[float]) -> None:
        self._found = found

    def __enter__(self) -> "_Within":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def begin(self) -> "_Within":
        self._found.append(round(left()))
        return _Within(self._found)


def test_closing_lets_go_of_connections_and_asks_no_more(database: Any, instead: Instead) -> None:
    told: list[str] = []
    instead(database._engine, dispose=lambda: told.append("disposed"))
    instead(database._breaker, close=lambda: told.append("closed"))
    database.close()
    database._forget()
    assert told == ["closed", "disposed", "disposed"]
