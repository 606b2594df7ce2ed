"""Who is connected, whom we wait for, and for how long. None of it needs the cooperation of the other side.

A connection is either waited for (idle, sending a head, sending a body) or being answered. Each way of waiting has its
limit, and one look a second finds who is past it. At the limit of connections a new one takes the place of the one
that has been waited for longest: sockets that do nothing shut nobody out.
"""

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Phase = Literal["idle", "head", "body", "stream", "rest", "answer"]
"""``stream``: a body that is being answered already; ``rest``: one that nobody will read any more."""

_SWEEP_SECONDS = 1.0
_LATER_SECONDS = 5.0
_OTHER_FILES = 256
"""Files that are not connections: the database, workers, logs, and sockets accepted or closed within one turn."""
_FEWEST = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, and how many connections at once. ``answer``: for a client that does not take what it was sent."""

    connections: int = 1000
    head: float = 10.0
    body: float = 30.0
    idle: float = 75.0
    stream: float = 300.0
    answer: float = 30.0

    def of(self, phase: Phase) -> float | None:
        """How long a connection may be in that phase without any progress."""
        # A body's own limit answers 408; this one is for bodies that nobody reads.
        seconds = {"idle": self.idle, "head": self.head, "body": self.body + _LATER_SECONDS, "stream": self.stream}
        return _LATER_SECONDS if phase == "rest" else seconds.get(phase)


def within_files(connections: int) -> int:
    """At most ``connections``, and no more than the files that this process may open leave room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if files == resource.RLIM_INFINITY else max(_FEWEST, min(connections, files - _OTHER_FILES))


class Connection(Protocol):
    """What is known of one connection."""

    phase: Phase
    since: float

    def overdue(self) -> None:
        """Its time is up."""
        ...

    def unsent(self) -> int:
        """Bytes that the other side has not taken yet."""
        ...

    def reading_is_paused(self) -> bool:
        """Whether it is us who keep it waiting."""
        ...

    def drop(self) -> None:
        """Close it at once, whatever is under way."""
        ...


class Connections:
    """All connections of one server. Used on its event loop only."""

    def __init__(self, limits: Limits, clock: Callable[[], float] | None = None) -> None:
        self.limits = limits
        self._clock = clock
        self._all: dict[Connection, tuple[int, float]] = {}  # bytes unsent, and since when none of them goes
        self._waited_for: dict[Connection, None] = {}  # the longest first
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    def now(self) -> float:
        """Seconds that never go back."""
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def joined(self, connection: Connection) -> bool:
        """Whether there is room for it. The one waited for longest makes room, where any is waited for."""
        if len(self._all) >= self.limits.connections:
            oldest = next(iter(self._waited_for), None)
            if oldest is None:
                return False
            self.left(oldest)
            oldest.drop()
        self._all[connection] = (0, self.now())
        self.enter(connection, "head")
        if self._sweeping is None and self._clock is None:
            self._sweep_later()
        return True

    def left(self, connection: Connection) -> None:
        """It is closed."""
        self._all.pop(connection, None)
        self._waited_for.pop(connection, None)

    def enter(self, connection: Connection, phase: Phase) -> None:
        """It is in ``phase`` from now on, or made progress in it."""
        connection.phase, connection.since = phase, self.now()
        self._waited_for.pop(connection, None)
        if phase != "answer" and connection in self._all:
            self._waited_for[connection] = None

    def sweep(self) -> None:
        """Tell everyone whose time is up."""
        now = self.now()
        for connection, (before, stuck_since) in list(self._all.items()):
            unsent = connection.unsent()
            since = stuck_since if before and unsent >= before else now
            self._all[connection] = (unsent, since)
            if now - since > self.limits.answer:
                connection.drop()
            elif connection.phase == "body" and connection.reading_is_paused():
                connection.since = now
            elif (allowed := self.limits.of(connection.phase)) is not None and now - connection.since > allowed:
                connection.overdue()

    def _sweep_later(self) -> None:
        def run() -> None:
            self._sweeping = None
            self.sweep()
            if self._all:
                self._sweep_later()

        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, run)
