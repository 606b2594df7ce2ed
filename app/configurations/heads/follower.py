"""Follows the database: told of every change, and looking by itself where nobody tells."""

import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import structlog
from sqlalchemy.orm import Session

from app.base.lru import Lru
from app.configurations import repository as configurations
from app.configurations.heads import repository
from app.configurations.heads.repository import HeadRow
from app.configurations.heads.table import Heads
from app.configurations.repository import Revision
from app.db import Database

Sessions = Callable[[], AbstractContextManager[Session]]

_AGAIN_SECONDS = 1.0
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
            self._stop.wait(_AGAIN_SECONDS)

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
                found = configurations.at(reading, row.name, row.revision)
            if found is None:
                continue
            if len(rows) > 1 and not self._documents.has_room(len(found.document)):
                return
            self._documents.put((row.name, row.revision), found, len(found.document))
