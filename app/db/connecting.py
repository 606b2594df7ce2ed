"""Connections to PostgreSQL: how they are made, tried before they are used again, and bounded in time.

A server that is frozen, or behind a network that drops packets, refuses nothing: it just never answers, and no setting
of a connection covers all of that (names to resolve, several hosts, a Unix socket). So every wait for it ends here by
the clock of ``within``; statements are bounded on the server's side too.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, LiteralString, Self, TypeVar

import psycopg
import structlog
from psycopg.abc import PQGen
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app.base.settings import Settings

T = TypeVar("T")

KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""Parameters of libpq: the system notices within seconds that nobody is there any more, where nobody else looks."""
_LEAST_SECONDS = 0.5
"""A statement that is begun gets this much, though the work before it has used up all of the time."""
_INTERVAL = 0.1
_PROBE_EVERY, _PROBE_SECONDS = 0.5, 2.0

_until: ContextVar[float | None] = ContextVar("until", default=None)

log = structlog.stdlib.get_logger("arbiter.database")


class Late(psycopg.OperationalError):
    """The database did not answer in time."""


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Inside, in this thread, waiting for the database ends after ``seconds``, all waits together: Late."""
    token = _until.set(monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def left() -> float:
    """Seconds until the end of ``within``; infinite outside of it."""
    until = _until.get()
    return float("inf") if until is None else max(0.0, until - monotonic())


class PatientConnection(psycopg.Connection[Any]):
    """A connection whose waits end with ``within``.

    One that was late is closed: nobody knows what it has carried out.
    """

    @classmethod
    def within_time(cls, arguments: Sequence[Any], named: Mapping[str, Any]) -> Self:
        """Connect as ``connect`` does. In a thread of its own, for a name server can be silent as well.

        Raises psycopg.OperationalError, Late among them.
        """
        connecting: Future[Self] = Future()
        connects = threading.Thread(
            target=_keep, args=(connecting, lambda: cls.connect(*arguments, **named)), daemon=True
        )
        try:
            connects.start()
        except RuntimeError as error:
            raise psycopg.OperationalError("no thread to be had that connects") from error
        limit = left()
        try:
            return connecting.result(None if limit == float("inf") else limit)
        except TimeoutError:
            connecting.add_done_callback(lambda late: None if late.exception() else late.result().close())
            raise Late("no connection to the database in time") from None

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL, timeout: float | None = None) -> T:
        """As psycopg's, which every statement goes through. Raises Late."""
        limit = max(left(), _LEAST_SECONDS)
        if timeout is not None and timeout <= limit:
            return super().wait(gen, interval, timeout)
        if limit == float("inf"):
            return super().wait(gen, interval)
        began = monotonic()
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as error:
            if monotonic() < began + limit:
                raise
            self.close()
            raise Late("no answer from the database in time") from error


def _keep(future: "Future[T]", make: Callable[[], T]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:
        future.set_exception(error)


class Breaker:
    """Open while the database is known not to answer: whom it keeps waiting too long opens it, and from then on it
    is not asked for anything, until it has answered a probe. ``answers`` asks it once, and may raise; ``opened`` is
    told."""

    def __init__(self, answers: Callable[[], object], opened: Callable[[], None]) -> None:
        self._answers = answers
        self._opened = opened
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.is_open = False

    def trip(self) -> None:
        """The database was late: leave it alone until it answers. The first probe follows at once."""
        with self._lock:
            if self.is_open or self._closing.is_set():
                return
            self.is_open = True
        self._opened()
        try:
            threading.Thread(target=self._probe, name="database-probe", daemon=True).start()
        except RuntimeError:  # no thread to be had now: without a probe nothing would close it again
            self.is_open = False

    def close(self) -> None:
        """No more probes."""
        self._closing.set()

    def _probe(self) -> None:
        began, said = monotonic(), False
        while not self._closing.is_set():
            try:
                with within(_PROBE_SECONDS):
                    self._answers()
            except Exception as error:  # whatever it is, the database is of no use yet
                if not said:
                    log.warning("the database does not answer; it is left alone until it does", why=str(error)[:200])
                said = True
            else:
                self.is_open = False
                if said:
                    log.info("the database answers again", seconds=round(monotonic() - began, 1))
                return
            self._closing.wait(_PROBE_EVERY)


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
