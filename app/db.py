"""The database: one engine, short sessions, one transaction for each unit of work.

SQL lives in the ``repository.py`` of each package; tables hang on ``metadata``. A database that is away
becomes ``Unavailable`` here, once, so that no caller has to know how SQLAlchemy says it.
"""

import selectors
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from app.errors import Unavailable
from app.settings import Settings

MIGRATIONS = Path(__file__).parent.parent / "migrations"

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
        self._engine = None if url is None else self._pool(with_driver(url), settings)
        self._single = None if url is None else self._watched(with_driver(url), settings)

    @staticmethod
    def _pool(url: str, settings: Settings) -> Engine:
        return create_engine(
            url,
            pool_size=settings.database_pool_size,
            max_overflow=0,
            pool_timeout=settings.database_pool_timeout,
            pool_pre_ping=True,
            connect_args={"connect_timeout": settings.database_connect_timeout, "application_name": "arbiter"},
        )

    @staticmethod
    def _watched(url: str, settings: Settings) -> Engine:
        """Connections that wait for long; the system notices within seconds when nobody is there any more."""
        arguments = {
            "connect_timeout": settings.database_connect_timeout,
            "application_name": "arbiter-follower",
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        }
        return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments)

    @contextmanager
    def session(self) -> Generator[Session]:
        """One transaction: committed at the end, rolled back on any error. Raises Unavailable."""
        if self._engine is None:
            raise Unavailable("no database is configured", retry_after=60)
        with _translated(), Session(self._engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def watching(self, channel: str) -> Generator["Watch"]:
        """A connection of its own, outside of the pool, that listens on ``channel``. Raises Unavailable."""
        if self._single is None:
            raise Unavailable("no database is configured", retry_after=60)
        with _translated(), self._single.connect() as connection:
            yield Watch(connection, channel)

    def migration_state(self) -> tuple[str | None, str]:
        """The revision that the database is at, and the one that this code needs. Raises Unavailable."""
        with self.session() as session:
            session.execute(text("select 1"))
            current = MigrationContext.configure(session.connection()).get_current_revision()
        return current, head_revision()

    def close(self) -> None:
        """Close the connections that are not in use."""
        if self._engine is not None:
            self._engine.dispose()


class Watch:
    """A connection that waits to be told.

    Where nobody can tell (a standby, or a pooler between), it only wakes when its time is up.
    """

    def __init__(self, connection: Connection, channel: str) -> None:
        self._connection = connection
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
        """A session on this connection; every statement sees what is committed by then."""
        with Session(self._connection, expire_on_commit=False) as session:
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


@contextmanager
def _translated() -> Generator[None]:
    """Raises Unavailable for what says that the database is away; other errors as they are."""
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise Unavailable("the database can't be reached") from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise Unavailable("the database went away") from error


def with_driver(url: str) -> str:
    """``url`` for psycopg 3, whatever spelling of PostgreSQL's scheme it came with."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg2"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)


def head_revision() -> str:
    """The newest migration that this code has."""
    head = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert head is not None, "migrations/ is empty"
    return head


@cache
def _own_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())


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
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = with_driver(url)
    move = command.downgrade if target == "base" or target.startswith("-") else command.upgrade
    try:
        move(config, target)
    except OperationalError as error:
        raise Unavailable("the database can't be reached") from error
