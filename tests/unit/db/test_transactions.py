# pyright: reportPrivateUsage=false
"""Transactions on a real PostgreSQL: what a session and what statements sent at once are to it, and what connections
that are dead do to either."""

from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.base.settings import Settings
from app.db import connecting as module
from app.db.connecting import Late, Statement, with_driver, within
from app.db.database import Database, after_commit, head_revision
from tests.support.instead import Instead
from tests.unit.db.nobody import Nobody

LONG = 300.0
SETTINGS = Settings(database_pool_size=1, database_timeout=LONG)
WHOSE = (
    "select current_setting('application_name') name, current_setting('TimeZone') zone,"
    " current_setting('idle_in_transaction_session_timeout') idle, current_setting('statement_timeout') longest"
)
INSERT: Statement = ("insert into kept values (%(n)s)", {"n": 1})


@pytest.fixture(scope="module")
def url(new_database: Callable[[], str]) -> str:
    """A database with an empty table ``kept``, of this module's own."""
    made = new_database()
    with closing(Database(made, SETTINGS)) as database:
        database.send(("create table kept (n int)", {}))
    return made


@pytest.fixture
def database(url: str) -> Iterator[Any]:
    with closing(Database(url, SETTINGS)) as made:
        made.send(("truncate kept", {}))
        yield made


def asked(database: Database, statement: str) -> Any:
    with database.session() as session:
        return session.execute(sa.text(statement)).one()


def backend(database: Database) -> int:
    return int(asked(database, "select pg_backend_pid()")[0])


def cut(url: str, pid: int) -> None:
    """The server ends a connection."""
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 60000)", (pid,))


def rolled_back(database: Database, act: Callable[[Session], None]) -> None:
    """A session that does something and fails."""

    def fails() -> None:
        with database.session() as session:
            act(session)
            session.execute(sa.text("insert into kept values (1)"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()


def test_a_session_is_a_transaction_with_its_bounds(database: Database) -> None:
    name, zone, idle, longest = asked(database, WHOSE)
    assert (name, zone, idle) == ("arbiter", "UTC", "1min")
    assert 200_000 < int(longest.removesuffix("ms")) < 299_750
    first = backend(database)
    rolled_back(database, lambda session: None)
    assert tuple(asked(database, "select count(*), pg_backend_pid() from kept")) == (0, first)
    assert database._engine.pool.size() == 1  # pyright: ignore
    assert database._engine.pool._max_overflow == 0, "no more than there are places"  # pyright: ignore


def test_a_connection_that_died_in_the_pool_is_replaced(database: Database, url: str) -> None:
    first = backend(database)
    cut(url, first)
    assert backend(database) != first


def test_what_is_sent_at_once_is_one_transaction_with_the_same_bounds(database: Database) -> None:
    first = backend(database)
    copy = f"create temp table whose as {WHOSE.replace('%', '%%')}"
    database.send(INSERT, INSERT, ("set constraints all deferred", {}), (copy, {}))
    assert tuple(asked(database, "select count(*), pg_backend_pid() from kept")) == (2, first)
    assert tuple(asked(database, "select * from whose"))[:3] == ("arbiter", "UTC", "1min")
    with database.session() as session:
        session.execute(sa.text("insert into kept values (3)"))
        session.rollback()
    assert asked(database, "select count(*) from kept")[0] == 2, "a session is a transaction still"


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (("select 1 / %(n)s", {"n": 0}), psycopg.errors.DivisionByZero),
        (("select %(t)s", {"t": "\ud800"}), UnicodeError),
    ],
)
def test_one_that_is_refused_leaves_nothing_behind(database: Database, statement: Statement, error: Any) -> None:
    first = backend(database)
    with pytest.raises(error):
        database.send(INSERT, statement, INSERT)
    rows, pid = asked(database, "select count(*), pg_backend_pid() from kept")
    assert rows == 0
    assert pid != first, "nobody gets a connection of which it isn't known what it is in"


def test_statements_that_meet_a_dead_connection_are_sent_once_more(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch, instead: Instead
) -> None:
    tried: list[bool] = []
    sent = module._sent

    def counted(*given: Any, **how: Any) -> bool:
        tried.append(how.get("last", False))
        return sent(*given, **how)

    monkeypatch.setattr(module, "_sent", counted)
    pings: list[float] = []

    def pinging(seconds: float) -> Any:
        pings.append(seconds)
        return within(seconds)

    instead(module, within=pinging)
    pid = backend(database)
    pings.clear()
    cut(url, pid)
    database.send(INSERT)
    assert (tried, pings) == ([False, True], []), "the first is not tried before"
    database.send(INSERT)
    assert (tried, pings) == ([False, True, False], [])
    assert asked(database, "select count(*) from kept")[0] == 2
    assert pings == [1.0], "that of a session is"


class Driver(Nobody):
    """A connection on which every statement fails."""

    error: Exception = psycopg.OperationalError("gone")
    gone = True

    def __init__(self) -> None:
        self.said: list[Any] = []

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value) if name != "autocommit" else self.said.append(value)

    def pipeline(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "gone", "last", "again"),
    [
        (psycopg.OperationalError("gone"), True, False, True), (psycopg.OperationalError("gone"), True, True, False),
        (psycopg.OperationalError("full"), False, False, False), (Late("late"), True, False, False),
        (psycopg.DataError("what"), True, False, False), (KeyboardInterrupt(), True, False, False),
    ],
)  # fmt: skip
def test_only_what_a_dead_connection_could_not_be_told_is_sent_again(
    error: Any, gone: bool, last: bool, again: bool
) -> None:
    driver, told = Driver(), list[str]()
    driver.error, driver.gone = error, gone
    connection: Any = SimpleNamespace(
        connection=SimpleNamespace(driver_connection=driver), invalidate=lambda: told.append("invalidated")
    )
    if again:
        assert module._sent(connection, [INSERT], last=last) is False
    else:
        with pytest.raises(type(error)):
            module._sent(connection, [INSERT], last=last)
    assert (told, driver.said) == (["invalidated"], [True])


def test_what_is_to_follow_a_commit_follows_it_once(database: Database) -> None:
    done: list[int] = []
    with database.session() as session:
        after_commit(session, lambda: done.append(1))
        session.execute(sa.text("insert into kept values (1)"))
        assert done == []
    assert done == [1]
    rolled_back(database, lambda session: after_commit(session, lambda: done.append(2)))
    assert done == [1]
    with within(LONG), Session(database._engine) as session:  # pyright: ignore
        after_commit(session, lambda: done.append(3))
        for _ in range(2):
            session.execute(sa.text("insert into kept values (1)"))
            session.commit()
    assert done == [1, 3]


def test_where_a_database_is(database: Database, instead: Instead) -> None:
    asked_for: list[float | None] = []
    session = database.session

    def recorded(seconds: float | None = None) -> Any:
        asked_for.append(seconds)
        return session(seconds)

    instead(database, session=recorded)
    assert database.migration_state() == (None, head_revision())
    database.migration_state(9.0)
    assert asked_for == [None, 9.0]


def test_one_that_can_be_connected_to_must_answer_as_well() -> None:
    """A pooler between accepts connections to a database that is away."""
    said: list[str] = []

    class Connection:
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def execute(self, statement: Any) -> None:
            said.append(str(statement))

    nobody: Any = Database("postgresql://nowhere.invalid/x", SETTINGS)
    nobody._single = SimpleNamespace(connect=Connection)
    nobody._answers()
    assert said == ["select 1"]


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgres://u:p%40ss@h/d", "postgresql+psycopg://u:p%40ss@h/d"), ("postgresql://h/d", "postgresql+psycopg://h/d"),
        ("postgresql+psycopg2://h:1/d?a=b", "postgresql+psycopg://h:1/d?a=b"),
        ("postgresql+psycopg://h/d", "postgresql+psycopg://h/d"), ("sqlite:///x", "sqlite:///x"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_url_is_for_one_driver(given: str, used: str) -> None:
    assert with_driver(given) == used
