"""How long PostgreSQL may keep anybody waiting.

A server that is frozen, or behind a network that drops packets, refuses nothing: it just never answers, and no setting
of a connection covers all of that (names to resolve, several hosts, a Unix socket). So every wait for it ends here by
the clock of ``within``. Whom it keeps waiting so long opens the ``Breaker``: from then on it is not asked for anything,
until it has answered a probe.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Self, TypeVar

import psycopg
import structlog
from psycopg.abc import PQGen

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
        made: Future[Self] = Future()
        threading.Thread(target=_keep, args=(made, lambda: cls.connect(*arguments, **named)), daemon=True).start()
        limit = left()
        try:
            return made.result(None if limit == float("inf") else limit)
        except TimeoutError:
            made.add_done_callback(lambda late: None if late.exception() else late.result().close())
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


def _keep(made: "Future[T]", make: Callable[[], T]) -> None:
    try:
        made.set_result(make())
    except BaseException as error:
        made.set_exception(error)


class Breaker:
    """Open while the database is known not to answer. ``answers`` asks it once, and may raise; ``opened`` is told."""

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
        threading.Thread(target=self._probe, name="database-probe", daemon=True).start()

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
