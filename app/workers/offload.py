"""Who uses a worker next: classes take turns, and within a class who came first goes first.

So a queue of large requests delays one about a snapshot by what runs now, not by all that waits.

Work that takes the processor for long: off the event loop, each class in places of its own, with the garbage
collector out of the way.

Decoding allocates hundreds of thousands of containers that live until the answer is written; a collector that
looks at them over and over doubles the time and frees nothing. While any solve runs the collector is paused;
between solves, and at the latest after a few seconds of unbroken load, it gets its turn.
"""

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import count as counting
from threading import Event, Lock
from typing import Any, TypeVar

from app.base import tracing
from app.base.errors import DeadlinePassed, TooManyRequests, Unavailable
from app.base.ticket import CLASSES, Class, Ticket, TooSlow, holding
from app.http.middleware import requested_timeout

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


T = TypeVar("T")

_LONGEST_PAUSE = 5.0
_BRIEF_THREADS = 4
"""For brief requests that could not be answered at once: most of them wait for the database."""


@dataclass
class _Pause:
    """Who is inside, and since when the collector is off."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    since: float = 0.0


_pause = _Pause()


@contextmanager
def collector_paused() -> Generator[None]:
    """No garbage collection inside, also when several threads are inside at once."""
    with _pause.lock:
        _pause.inside += 1
        if gc.isenabled():
            _pause.since = time.monotonic()
            gc.disable()
    try:
        yield
    finally:
        with _pause.lock:
            _pause.inside -= 1
            overdue = time.monotonic() - _pause.since > _LONGEST_PAUSE
            if overdue:
                _pause.since = time.monotonic()
            if _pause.inside == 0:
                gc.enable()
        if overdue:
            gc.collect(1)


@dataclass(frozen=True, slots=True)
class Room:
    """``threads``: requests of a class that are answered at once; ``waiting``: those that may wait for a thread."""

    threads: int
    waiting: int


class _Places:
    """The places of one class."""

    def __init__(self, of: Class, room: Room) -> None:
        self.threads = ThreadPoolExecutor(room.threads, thread_name_prefix=f"solve-{of}")
        self.room = room
        self.inside = 0

    async def run(self, ticket: Ticket, function: Callable[..., T], *args: Any) -> T:
        """Raises what ``function`` raises, TooManyRequests, and DeadlinePassed where it did not begin in time."""
        if self.inside >= self.room.threads + self.room.waiting:
            raise TooManyRequests(f"{self.inside} requests like this one are being answered or wait already")
        self.inside += 1
        try:
            # Cancelling does nothing once it has begun: then it stops by itself, at a safe point.
            future = self.threads.submit(copy_context().run, _paused, ticket, _after_waiting(function), *args)
            overdue = asyncio.get_running_loop().call_later(ticket.left, future.cancel)
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                if future.cancelled() and not ticket.left:
                    raise DeadlinePassed(ticket.seconds) from None
                raise
            finally:
                overdue.cancel()
        finally:
            self.inside -= 1


class Offload:
    """Threads by class, so that waiting for the database never takes the place of solving, nor one class another's.

    ``seconds``: the longest a request may take from here on, waiting included.
    """

    def __init__(self, rooms: Mapping[Class, Room], seconds: float) -> None:
        self._places = {of: _Places(of, room) for of, room in rooms.items()}
        small = rooms["small"]
        self._brief = _Places("small", Room(min(_BRIEF_THREADS, small.threads), small.waiting))
        self._seconds = seconds

    async def run(self, of: Class, function: Callable[..., T], *args: Any, brief: bool = False) -> T:
        """``function(*args)`` in a thread of that class, within ``Request-Timeout``. A small one that turns out to take
        long begins again among the slow ones. Raises what it raises, TooManyRequests and DeadlinePassed.

        ``brief``: a small one that most likely takes less than handing it to a thread does is tried here first, and
        then in threads that only such ones have: it does not stand behind small ones that turn out to be slow."""
        asked = requested_timeout()
        ticket = Ticket.now(of, self._seconds if asked is None else min(asked, self._seconds))
        places = self._places[of]
        if brief and of == "small":
            with suppress(TooSlow):
                return _paused(replace(ticket, at_once=True), function, *args)
            places = self._brief
        try:
            return await places.run(ticket, function, *args)
        except TooSlow:
            return await self._places["slow"].run(replace(ticket, of="slow"), function, *args)

    def inside(self, of: Class) -> int:
        """Requests of the class that are being answered or wait."""
        return sum(places.inside for places in self._of(of))

    def waiting(self, of: Class) -> int:
        """Those that wait for a thread."""
        return sum(max(0, places.inside - places.room.threads) for places in self._of(of))

    def close(self) -> None:
        """Drop what waits. What runs ends at its next safe point; nobody waits for it here."""
        for places in (*self._places.values(), self._brief):
            places.threads.shutdown(wait=False, cancel_futures=True)

    def _of(self, of: Class) -> tuple[_Places, ...]:
        return (self._places[of], self._brief) if of == "small" else (self._places[of],)


def _paused(ticket: Ticket, function: Callable[..., T], *args: Any) -> T:
    with collector_paused(), holding(ticket):
        return function(*args)


def _after_waiting(function: Callable[..., T]) -> Callable[..., T]:
    """``function``; whoever wants to know is told how long it waited to be called."""
    if (listening := tracing.listener()) is None:
        return function
    begin = time.perf_counter()

    def begun(*args: Any) -> T:
        tracing.since("waiting", begin, listening)
        return function(*args)

    return begun
