"""The database: one engine, short sessions, one transaction for each unit of work.

SQL lives in the ``repository.py`` of each package; tables hang on ``metadata``. A database that is away
becomes ``Unavailable`` here, once, so that no caller has to know how SQLAlchemy says it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

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

    @contextmanager
    def session(self) -> Generator[Session]:
        """One transaction: committed at the end, rolled back on any error. Raises Unavailable."""
        if self._engine is None:
            raise Unavailable("no database is configured", retry_after=60)
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                yield session
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise Unavailable("the database can't be reached") from error
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            raise Unavailable("the database went away") from error

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


def migrate(url: str, target: str = "head") -> None:
    """Bring the database to ``target``. Several processes at once take turns. Raises Unavailable."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = with_driver(url)
    move = command.downgrade if target == "base" or target.startswith("-") else command.upgrade
    try:
        move(config, target)
    except OperationalError as error:
        raise Unavailable("the database can't be reached") from error
