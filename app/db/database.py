"""The database: one engine, short sessions, one transaction for each unit of work; its tables and migrations.

SQL lives in the ``repository.py`` of each package; its tables hang on ``metadata``. A database that is away becomes
``Unavailable`` here, once, so that no caller has to know how SQLAlchemy says it.
"""

import selectors
import socket
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TypeVar
from uuid import UUID

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, event, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from app.base import shipped
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.base.ticket import may_wait
from app.db.connecting import Breaker, Late, Statement, left, pooled, send, single, with_driver, within

T = TypeVar("T")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def past_retention(
    entry: sa.Column[UUID], size: sa.ColumnElement[int], *, before: UUID | None, keep: int | None,
    keep_bytes: int | None,
) -> sa.ColumnElement[bool] | None:  # fmt: skip
    """Whether an entry, by its id, is older than ``before``, beyond the newest ``keep``, or beyond the newest whose
    ``size`` adds up to ``keep_bytes``; None: no such bound, and of all of them nothing is past it."""
    past: list[sa.ColumnElement[bool]] = []
    if before is not None:
        past.append(entry < before)
    if keep is not None:
        first_out = sa.select(entry).order_by(entry.desc()).offset(keep).limit(1)
        past.append(entry <= first_out.scalar_subquery())
    if keep_bytes is not None:
        total = sa.func.sum(size).over(order_by=entry.desc()).label("total")
        running = sa.select(entry.label("id"), total).subquery()
        too_much = sa.select(running.c.id).where(running.c.total > sa.literal(keep_bytes, sa.BigInteger))
        past.append(entry.in_(too_much))
    return sa.or_(*past) if past else None


_INTERVALS = 60


@dataclass(frozen=True, slots=True)
class Intervals:
    """The time between two moments in 60 parts of equal length, at least a second each."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """How long each is."""
        return max((self.end - self.begin).total_seconds() / _INTERVALS, 1.0)

    def number(self, moment: sa.Column[datetime]) -> sa.ColumnElement[int]:
        """Which one a row's ``moment`` is in, from 0."""
        return sa.cast(sa.func.floor(sa.extract("epoch", moment - self.begin) / self.seconds), sa.Integer)

    def counted(self, counts: Iterable[tuple[int, T, int]]) -> list[tuple[datetime, dict[T, int]]]:
        """Where each begins, and how often each thing was in it, of (number, thing, times)."""
        each = [(self.begin + timedelta(seconds=i * self.seconds), dict[T, int]()) for i in range(_INTERVALS)]
        for number, what, times in counts:
            here = each[min(max(number, 0), _INTERVALS - 1)][1]
            here[what] = here.get(what, 0) + times
        return each


MIGRATIONS = str(shipped("migrations"))


def head_revision() -> str:
    """The newest migration that this code has."""
    head = ScriptDirectory(MIGRATIONS).get_current_head()
    assert head is not None, "migrations is empty"
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


class Database:
    """A pool of connections to one PostgreSQL, opened when needed. Without a URL it is always away."""

    def __init__(self, url: str | None, settings: Settings) -> None:
        self._seconds = settings.database_timeout
        self._queue_seconds = settings.database_pool_timeout
        self._places = threading.BoundedSemaphore(settings.database_pool_size)
        self._engine = None if url is None else pooled(with_driver(url), settings)
        self._single = None if url is None else single(with_driver(url), settings)
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
            Session(engine) as session,
            session.begin(),
        ):
            yield session

    def send(self, *statements: Statement) -> None:
        """One transaction of statements that need nothing of one another, in one round trip: a tenth of what a session
        costs this process. They may be carried out twice, where a connection turns out to be dead.

        Raises Unavailable, and as psycopg's errors what the database refuses.
        """
        may_wait()
        with self._reached(self._engine, self._seconds) as engine, self._place():
            send(engine, statements)

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
            raise self._away(error.orig) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise self._away(error) from error
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            raise Unavailable("the database went away") from error

    def _away(self, error: BaseException | None) -> Unavailable:
        if isinstance(error, (Late, psycopg.errors.ConnectionTimeout)):  # whichever of the two clocks ends first
            self._breaker.trip()
            return Unavailable("the database does not answer")
        if isinstance(error, psycopg.errors.QueryCanceled):
            return Unavailable("the database takes too long")
        return Unavailable("the database can't be reached")

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
        with self._reached(), Session(self._connection) as session:
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
