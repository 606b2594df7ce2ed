"""What each name and label of configurations means, as far as this process knows.

Follows the database: told of every change, and looking by itself where nobody tells.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

import structlog
from sqlalchemy.orm import Session

from app.base import Lru
from app.configurations import repository
from app.configurations import repository as configurations
from app.configurations.repository import HeadRow, Revision
from app.db.database import Database


class _Known(NamedTuple):
    revision: int | None
    change: int


class Heads:
    """Names and labels with the revisions that they mean. Thread-safe.

    The follower reports what it reads, writers of this process what they have committed; the later change wins. Where
    nobody follows the database nothing is kept: it would never be corrected. ``clock``: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: dict[tuple[str, str | None], _Known] = {}
        self._followed = False
        self._meanwhile: list[HeadRow] | None = None
        self._seen = 0
        self._looked_at: float | None = None
        self._looked: datetime | None = None
        self._connected = False

    @property
    def seen(self) -> int:
        """The last change that the follower has read."""
        return self._seen

    @property
    def is_known(self) -> bool:
        """Whether the table was ever read."""
        return self._looked_at is not None

    @property
    def as_of(self) -> datetime | None:
        """When it was last known to be what the database says."""
        return self._looked

    @property
    def age(self) -> float:
        """Seconds since then; infinite where it was never read."""
        looked = self._looked_at
        return float("inf") if looked is None else self._clock() - looked

    def is_stale(self, seconds: float) -> bool:
        """Whether the database could not be followed for ``seconds``, or is known to be away."""
        return not self._connected or self.age > seconds

    def __len__(self) -> int:
        with self._lock:
            entries = self._known.items()
            return sum(label is None and known.revision is not None for (_, label), known in entries)

    def find(self, name: str, label: str | None = None) -> int | None:
        """The revision that a name or one of its labels means; None where nothing of that name is known here."""
        head = self._known.get((name, label))
        return None if head is None else head.revision

    def expect(self) -> None:
        """From now on somebody follows the database."""
        self._followed = True

    def learn(self, rows: Iterable[HeadRow]) -> None:
        """What a writer of this process has just committed."""
        with self._lock:
            for row in rows:
                if self._meanwhile is not None:
                    self._meanwhile.append(row)
                if self._followed:
                    _newer(self._known, row)

    def start_over(self) -> None:
        """The follower is about to read everything; what writers report until then is kept for it."""
        with self._lock:
            self._meanwhile = []

    def replace(self, rows: Iterable[HeadRow]) -> None:
        """Everything, as the follower has read it since ``start_over``."""
        table: dict[tuple[str, str | None], _Known] = {}
        with self._lock:
            self._seen = 0
            for row in rows:
                self._seen = max(self._seen, row.change)
                _newer(table, row)
            for row in self._meanwhile or ():
                _newer(table, row)
            self._known, self._meanwhile = table, None
            self._look()

    def follow(self, rows: Iterable[HeadRow]) -> None:
        """Every change past ``seen``."""
        with self._lock:
            for row in rows:
                self._seen = max(self._seen, row.change)
                _newer(self._known, row)
            self._look()

    def lost(self) -> bool:
        """The database is away: what is known stays, and is stale. Whether that is news."""
        was, self._connected = self._connected, False
        return was

    def _look(self) -> None:
        self._looked_at, self._looked, self._connected = self._clock(), datetime.now(UTC), True


def _newer(table: dict[tuple[str, str | None], _Known], row: HeadRow) -> None:
    before = table.get((row.name, row.label))
    if before is None or row.change >= before.change:
        table[row.name, row.label] = _Known(row.revision, row.change)


Sessions = Callable[[], AbstractContextManager[Session]]

AGAIN_SECONDS = 1.0
_LONGEST_STOP_SECONDS = 10.0

log = structlog.stdlib.get_logger("arbiter.follower")


class Follower:
    """A thread that keeps ``heads`` as the database has them.

    A document is fetched into ``documents`` before its revision becomes a head: so what a name means can be decided
    with, even when the database goes away right after. ``poll``: seconds after which it looks unasked.
    """

    def __init__(
        self, database: Database, heads: Heads, documents: Lru[tuple[str, int], Revision], poll: float
    ) -> None:
        self._database = database
        self._heads = heads
        self._documents = documents
        self._poll = poll
        self._stop = threading.Event()
        self._running: tuple[threading.Thread, socket.socket] | None = None

    def start(self) -> None:
        """Begin to follow; returns at once."""
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._run, args=(theirs,), name="follower", daemon=True)
        self._running = thread, ours
        self._heads.expect()
        thread.start()

    def close(self) -> None:
        """Stop, and wait until it has stopped."""
        self._stop.set()
        if self._running is not None:
            thread, ours = self._running
            ours.close()  # which the other end can read
            thread.join(_LONGEST_STOP_SECONDS)

    def _run(self, told_to_stop: socket.socket) -> None:
        with told_to_stop:
            self._follow(told_to_stop)

    def _follow(self, told_to_stop: socket.socket) -> None:
        while not self._stop.is_set():
            try:
                with self._database.watching(configurations.CHANNEL) as watch:
                    self._read_all(watch.session)
                    while not self._stop.is_set():
                        watch.wait(self._poll, told_to_stop)
                        self._read_changes(watch.session)
            except Exception as error:  # whatever it is (tables not there yet), the next attempt may do better
                self._do_without(error)
            self._stop.wait(AGAIN_SECONDS)

    def _do_without(self, error: Exception) -> None:
        """No connection to wait on: look through one of the pool; without one either, what is known is stale."""
        try:
            self._read_all(self._database.session)
        except Exception:
            if self._heads.lost() and not self._stop.is_set():
                why = str(error).partition("\n")[0]
                log.warning("configurations can't be followed; deciding with those known", why=why)

    def _read_all(self, session: Sessions) -> None:
        """What is written from here on is told, or reported by its writer."""
        self._heads.start_over()
        with session() as reading:
            rows = repository.changed(reading, after=-1)
        self._fetch(session, rows)
        self._heads.replace(rows)

    def _read_changes(self, session: Sessions) -> None:
        with session() as reading:
            set_back = repository.horizon(reading) < self._heads.seen
            rows = repository.changed(reading, self._heads.seen)
        if set_back:
            self._read_all(session)
            return
        self._fetch(session, rows)
        self._heads.follow(rows)

    def _fetch(self, session: Sessions, rows: list[HeadRow]) -> None:
        """Documents of new heads, the latest first, as long as they fit beside those kept."""
        for row in reversed(rows):
            if self._stop.is_set() or row.revision is None or (row.name, row.revision) in self._documents:
                continue
            with session() as reading:
                revision = configurations.numbered(reading, row.name, row.revision)
            if revision is None:
                continue
            if len(rows) > 1 and not self._documents.has_room(len(revision.document)):
                return
            self._documents.put((row.name, row.revision), revision, len(revision.document))
