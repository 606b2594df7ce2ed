"""Processes that do one thing each and end: what takes the interpreter for seconds, which decisions would wait for."""

import gc
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Lock

from app.base.errors import DeadlinePassed, Unavailable
from app.base.installation import python
from app.base.ticket import Ticket, held
from app.workers.messages import Closed

_SECONDS = 3600.0
"""For whoever comes without a ticket."""
_NICE = 10
_MOST_BYTES = 8 << 30
"""Of such a process: what would take more is hostile, and ends it instead of the machine."""


class Processes:
    """Those that run at the moment. ``what``: what each does, for the message where one stops."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False
        self._guard = Lock()

    @contextmanager
    def started(self, entry: list[str]) -> Generator[socket.socket]:
        """The connection to a new one, whose interpreter is given ``entry`` and its end of it; it ends with the block,
        and waits no longer than the ticket of whoever asks. Raises DeadlinePassed, Unavailable."""
        ticket = held() or Ticket.now("large", _SECONDS)
        try:
            with self._process(entry) as connection:
                connection.settimeout(max(ticket.left, 0.001))
                yield connection
        except Closed:
            if time.monotonic() >= ticket.end:
                raise DeadlinePassed(ticket.seconds) from None
            raise Unavailable(f"the process that {self._what} stopped, for want of memory most likely") from None

    def close(self) -> None:
        """End them all: who waits for one gets Unavailable."""
        with self._guard:
            self._closed = True
            for process in self._running:
                process.kill()

    @contextmanager
    def _process(self, entry: list[str]) -> Generator[socket.socket]:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [*python(), *entry, str(theirs.fileno())]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
            with self._guard:
                self._running.add(process)
                if self._closed:
                    process.kill()
            try:
                yield ours
            finally:
                with self._guard:
                    self._running.discard(process)
                process.kill()
                process.wait()


def serve_once(answer: Callable[[socket.socket], None]) -> None:
    """The entry of such a process: at low priority, one answer, then the end."""
    gc.disable()
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError, ValueError):  # a hard limit below it stays
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    with socket.socket(fileno=int(sys.argv[1])) as connection, suppress(Closed):
        answer(connection)
