"""Connections to PostgreSQL: how they are made, tried before they are used again, and bounded on the server's side."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, LiteralString

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app.base.settings import Settings
from app.db.reach import KEEPALIVES, Late, PatientConnection, left, within

Statement = tuple[LiteralString, Mapping[str, Any]]
"""SQL with ``%(name)s``, and what the names stand for."""

_FRESH = "fresh"
_PING_SECONDS = 1.0
_EARLIER_SECONDS = 0.25
_IDLE_MILLISECONDS = 60_000
"""Of a transaction that this process keeps open and does nothing in: frozen, most likely, and holding locks."""


_BOUND: LiteralString = (
    "select set_config('statement_timeout', %(statement)s, true),"
    " set_config('idle_in_transaction_session_timeout', %(idle)s, true), set_config('TimeZone', 'UTC', true)"
)
_untried: ContextVar[bool] = ContextVar("untried", default=False)


def pooled(url: str, settings: Settings) -> Engine:
    """Connections that transactions share, each tried before it is used again."""
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


def single(url: str, settings: Settings) -> Engine:
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
    if record.info.pop(_FRESH, False) or _untried.get():
        return
    try:
        with within(min(_PING_SECONDS, left() / 2)):
            connection.autocommit = True  # else it would begin a transaction, which is a round trip more
            connection.execute("")
            connection.autocommit = False
    except psycopg.Error as error:
        raise DisconnectionError from error


def _bound(connection: Connection) -> None:
    """The server gives up before we do, so that a slow statement is told from a server that is silent. Instants come in
    UTC, whatever the server's zone: in others the last day of the calendar ends in the year 10000."""
    connection.exec_driver_sql(_BOUND, _bounds())


def _bounds() -> dict[str, str]:
    milliseconds = max(100, int(1000 * (left() - _EARLIER_SECONDS)))
    return {"statement": str(milliseconds), "idle": str(_IDLE_MILLISECONDS)}


def send(engine: Engine, statements: Sequence[Statement]) -> None:
    """One transaction, sent and answered in one go. By a connection that was not tried; where that one is dead, all of
    it once more by one that was. Raises psycopg.Error, and what connecting raises."""
    untried = _untried.set(True)
    try:
        connection = engine.connect()
    finally:
        _untried.reset(untried)
    with connection:
        if _sent(connection, statements):
            return
    with engine.connect() as connection:
        _sent(connection, statements, last=True)


def _sent(connection: Connection, statements: Sequence[Statement], *, last: bool = False) -> bool:
    """False where the connection was dead, unless it was the ``last`` try."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, PatientConnection)
    try:
        driver.autocommit = True  # the driver's own begin would take a round trip
        with driver.pipeline():
            driver.execute("begin")
            driver.execute(_BOUND, _bounds())
            for sql, parameters in statements:
                driver.execute(sql, parameters)
            driver.execute("commit")  # not where one could not even be sent: leaving a pipeline commits what was
        driver.autocommit = False
    except BaseException as error:  # whatever it is, nobody may get a connection that commits each statement
        connection.invalidate()
        if last or isinstance(error, Late) or not isinstance(error, psycopg.OperationalError) or not driver.closed:
            raise
        return False
    return True


def with_driver(url: str) -> str:
    """``url`` for psycopg 3, whatever spelling of PostgreSQL's scheme it came with."""
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg2"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)
