"""The database: one engine, short sessions, one transaction for each unit of work.

SQL lives in the ``repository.py`` of each package; tables hang on ``metadata``. A database that is away
becomes ``Unavailable`` here, once, so that no caller has to know how SQLAlchemy says it.
"""

import selectors
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app.errors import Unavailable
from app.reach import KEEPALIVES, Breaker, Late, PatientConnection, left, within
from app.settings import Settings
from app.waiting import may_wait

MIGRATIONS = str(files("app") / "migrations")

_FRESH = "fresh"
_PING_SECONDS = 1.0
_EARLIER_SECONDS = 0.25
_IDLE_MILLISECONDS = 60_000
"""Of a transaction that this process keeps open and does nothing in: frozen, most likely, and holding locks."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Database:
    """A pool of connections to one PostgreSQL, opened when needed. Without a URL it is always away."""

    def __init__(self, url: str | None, settings: Settings) -> None:
        self._seconds = settings.database_timeout
        self._queue_seconds = settings.database_pool_timeout
        self._places = threading.BoundedSemaphore(settings.database_pool_size)
        self._engine = None if url is None else _pool(with_driver(url), settings)
        self._single = None if url is None else _single(with_driver(url), settings)
        self._breaker = Breaker(self._answers, self._forget)

    @property
    def is_silent(self) -> bool:
        """Whether it is known not to answer: everything that needs it raises Unavailable at once."""
        return self._engine is None or self._breaker.is_open

    @contextmanager
    def session(self, seconds: float | None = None) -> Generator[Session]:
        """One transaction: committed at the end, rolled back on any error.

        ``seconds`` bound all waiting for the database, the time for a free connection included; None: those of the
        settings. Raises Unavailable.
        """
        may_wait()
        with (
            self._reached(self._engine, self._seconds if seconds is None else seconds) as engine,
            self._place(),
            Session(engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def watching(self, channel: str) -> Generator["Watch"]:
        """A connection of its own, outside of the pool, that listens on ``channel``. Raises Unavailable."""
        with self._reached(self._single, self._seconds) as engine:
            connection = engine.connect()
        try:
            with self._reached(engine, self._seconds):
                watch = Watch(connection, channel, lambda: self._reached(engine, self._seconds))
            yield watch
        finally:
            connection.close()

    @contextmanager
    def _reached(self, engine: Engine | None, seconds: float) -> Generator[Engine]:
        """``engine``, for so long.

        Raises Unavailable for what says that the database is away; other errors as they are.
        """
        if engine is None:
            raise Unavailable("no database is configured", retry_after=60)
        self._refuse_when_silent()
        try:
            with within(seconds):
                yield engine
        except PoolTimeout as error:
            raise Unavailable("all connections to the database are in use") from error
        except (OperationalError, InterfaceError) as error:
            if isinstance(error.orig, Late):
                self._breaker.trip()
                raise Unavailable("the database does not answer") from error
            if isinstance(error.orig, psycopg.errors.QueryCanceled):
                raise Unavailable("the database takes too long") from error
            raise Unavailable("the database can't be reached") from error
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            raise Unavailable("the database went away") from error

    def _refuse_when_silent(self) -> None:
        if self._breaker.is_open:
            raise Unavailable("the database does not answer")

    @contextmanager
    def _place(self) -> Generator[None]:
        """One of as many as the pool has connections: the pool's own queue does not know how long we may wait."""
        if not self._places.acquire(timeout=min(self._queue_seconds, left())):
            raise Unavailable("all connections to the database are in use")
        try:
            self._refuse_when_silent()
            yield
        finally:
            self._places.release()

    def _answers(self) -> None:
        assert self._single is not None
        with self._single.connect() as connection:
            connection.execute(text("select 1"))

    def _forget(self) -> None:
        """Give up the connections that are not in use: they lead to where nobody answers."""
        assert self._engine is not None
        self._engine.dispose()

    def migration_state(self, seconds: float | None = None) -> tuple[str | None, str]:
        """The revision that the database is at, and the one that this code needs. Raises Unavailable."""
        with self.session(seconds) as session:
            session.execute(text("select 1"))
            current = MigrationContext.configure(session.connection()).get_current_revision()
        return current, head_revision()

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._breaker.close()
        if self._engine is not None:
            self._engine.dispose()


class Watch:
    """A connection that waits to be told.

    Where nobody can tell (a standby, or a pooler between), it only wakes when its time is up.
    """

    def __init__(
        self, connection: Connection, channel: str, reached: Callable[[], AbstractContextManager[Engine]]
    ) -> None:
        self._connection = connection
        self._reached = reached
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        self._driver: psycopg.Connection = driver
        try:
            connection.execute(text(f"listen {channel}"))
        except (OperationalError, DBAPIError) as error:
            if error.connection_invalidated or driver.closed:
                raise

    @contextmanager
    def session(self) -> Generator[Session]:
        """A session on this connection; every statement sees what is committed by then. Raises Unavailable."""
        with self._reached(), Session(self._connection, expire_on_commit=False) as session:
            yield session

    def wait(self, seconds: float, interrupt: socket.socket) -> None:
        """Until something was said on the channel, ``interrupt`` can be read, or ``seconds`` have passed.

        Raises Unavailable.
        """
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._driver, selectors.EVENT_READ)
                selector.register(interrupt, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select(seconds)]
            if self._driver in ready:
                for _ in self._driver.notifies(timeout=0):
                    pass
        except psycopg.OperationalError as error:
            raise Unavailable("the database went away") from error


def after_commit(session: Session, act: Callable[[], None]) -> None:
    """Do ``act`` once the transaction of ``session`` has been committed; not at all when it is not."""

    def committed(_: Session) -> None:
        act()

    event.listen(session, "after_commit", committed, once=True)


def _pool(url: str, settings: Settings) -> Engine:
    engine = create_engine(
        url,
        pool_size=settings.database_pool_size,
        max_overflow=0,
        pool_timeout=settings.database_pool_timeout,
        connect_args=connect_arguments(settings) | {"application_name": "arbiter"},
    )
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "connect", _mark_fresh)
    event.listen(engine, "checkout", _ping)
    event.listen(engine, "begin", _bound)
    return engine


def _single(url: str, settings: Settings) -> Engine:
    """Connections that nobody else uses, and that may wait for long."""
    arguments = connect_arguments(settings) | {"application_name": "arbiter-follower"}
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments)
    event.listen(engine, "do_connect", _connect)
    return engine


def connect_arguments(settings: Settings) -> dict[str, Any]:
    """What libpq is told about a network that loses packets."""
    return {"connect_timeout": settings.database_connect_timeout, **KEEPALIVES}


def _connect(_: object, __: object, arguments: Sequence[Any], named: dict[str, Any]) -> PatientConnection:
    return PatientConnection.within_time(arguments, named)


def _mark_fresh(_: PatientConnection, record: ConnectionPoolEntry) -> None:
    record.info[_FRESH] = True


def _ping(connection: PatientConnection, record: ConnectionPoolEntry, _: object) -> None:
    """A connection out of the pool answers, or the pool makes another one. Which takes time as well: half is for it."""
    if record.info.pop(_FRESH, False):
        return
    try:
        with within(min(_PING_SECONDS, left() / 2)):
            connection.autocommit = True  # else it would begin a transaction, which is a round trip more
            connection.execute("")
            connection.autocommit = False
    except psycopg.Error as error:
        raise DisconnectionError from error


def _bound(connection: Connection) -> None:
    """The server gives up before we do, so that a slow statement is told from a server that is silent."""
    milliseconds = max(100, int(1000 * (left() - _EARLIER_SECONDS)))
    connection.exec_driver_sql(
        "select set_config('statement_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)",
        (str(milliseconds), str(_IDLE_MILLISECONDS)),
    )


def with_driver(url: str) -> str:
    """``url`` for psycopg 3, whatever spelling of PostgreSQL's scheme it came with."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg2"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)


def head_revision() -> str:
    """The newest migration that this code has."""
    head = ScriptDirectory(MIGRATIONS).get_current_head()
    assert head is not None, "app/migrations is empty"
    return head


@cache
def _own_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in ScriptDirectory(MIGRATIONS).walk_revisions())


def is_newer(migration: str | None) -> bool:
    """Whether only newer code than this knows the migration that a database is at.

    Migrations only add, so that instances of two versions can share a database: this code works on it all the same.
    """
    return migration is not None and migration not in _own_revisions()


def migrate(url: str, target: str = "head") -> None:
    """Bring the database to ``target``; one that newer code has migrated stays as it is.

    Several processes at once take turns. Raises Unavailable.
    """
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["url"] = with_driver(url)
    move = command.downgrade if target == "base" or target.startswith("-") else command.upgrade
    try:
        move(config, target)
    except OperationalError as error:
        raise Unavailable("the database can't be reached") from error
