"""Who uses a worker next: classes take turns, and within a class who came first goes first.

So a queue of large requests delays one about a snapshot by what runs now, not by all that waits.
"""

from collections import Counter
from itertools import count as counting
from threading import Event, Lock

from app.base.errors import DeadlinePassed, Unavailable
from app.workers.ticket import CLASSES, Class, Ticket

CLOSING = "the service is shutting down"


class _Waiter:
    """``worker``: the only one that will do, None for any. ``given``: the one that it may use now."""

    __slots__ = ("given", "of", "told", "worker")

    def __init__(self, of: Class, worker: int | None) -> None:
        self.of: Class = of
        self.worker = worker
        self.given: int | None = None
        self.told = Event()


class Turns:
    """Hands out ``count`` workers, each to one caller at a time. Thread-safe; its lock is held for moments only."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = set(range(count))
        self._waiting: list[_Waiter] = []
        self._latest = dict.fromkeys(CLASSES, -1)
        self._numbers = counting()
        self._closed = False
        self._guard = Lock()

    def take(self, ticket: Ticket, worker: int | None = None) -> int:
        """The worker to use until ``give``. ``worker``: no other will do. Raises DeadlinePassed, Unavailable."""
        waiter = _Waiter(ticket.of, worker)
        with self._guard:
            if self._closed:
                raise Unavailable(CLOSING, retry_after=1)
            # The last free one: snapshots are spread from the first one on, so that large requests keep away from them.
            free = max(self._free, default=None) if worker is None else worker if worker in self._free else None
            if free is not None:
                self._free.discard(free)
                self._serve(ticket.of)
                return free
            self._waiting.append(waiter)
        waiter.told.wait(ticket.left)
        with self._guard:
            if waiter.given is not None:
                return waiter.given
            if self._closed:
                raise Unavailable(CLOSING, retry_after=1)
            self._waiting.remove(waiter)
        raise DeadlinePassed(ticket.seconds)

    def give(self, worker: int) -> None:
        """``worker`` is free: whoever is next has it."""
        with self._guard:
            first: dict[Class, _Waiter] = {}
            for waiter in self._waiting:
                if waiter.worker in (None, worker):
                    first.setdefault(waiter.of, waiter)
            if not first:
                self._free.add(worker)
                return
            chosen = first[min(first, key=self._latest.__getitem__)]
            self._waiting.remove(chosen)
            self._serve(chosen.of)
            chosen.given = worker
            chosen.told.set()

    def close(self) -> None:
        """Nobody gets a worker any more; who waits is told."""
        with self._guard:
            self._closed = True
            for waiter in self._waiting:
                waiter.told.set()
            self._waiting.clear()

    def waiting(self) -> Counter[Class]:
        """How many wait, by class."""
        with self._guard:
            return Counter(waiter.of for waiter in self._waiting)

    def busy(self) -> int:
        """How many workers are in use."""
        with self._guard:
            return self._count - len(self._free)

    def _serve(self, of: Class) -> None:
        self._latest[of] = next(self._numbers)
