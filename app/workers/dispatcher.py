"""Who answers: this process for what is small, a worker for what is large, slow or asks about a kept snapshot.

Work that takes the processor for long is done off the event loop, each class in places of its own, with the garbage
collector out of the way. Decoding allocates hundreds of thousands of containers that live until the answer is written;
a collector that looks at them over and over doubles the time and frees nothing. While any solve runs the collector is
paused; between solves, and at the latest after a few seconds of unbroken load, it gets its turn.
"""

import asyncio
import gc
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from app.answering.operations import Answerer, Inquiry, Operation, Reply
from app.base import ticket
from app.base.decoding import occurs
from app.base.errors import DeadlinePassed, TooManyRequests, Unavailable
from app.base.ticket import CLASSES, Class, FairGate, Ticket, TooSlow, held, holding
from app.solver.engine import ENGINES, engine_of
from app.solver.question import Check, stoppable
from app.workers.pool import CLOSING, Pool

T = TypeVar("T")
Named = tuple[str | None, str | None]
"""A snapshot and a configuration; None: not by name."""

_NO_NAMES: Named = (None, None)
_NAMED = b'"snapshot"'
_AT_ONCE = 0.002
"""Seconds of the processor that a request may take on the event loop; then a thread begins it again."""
_PATIENCE = 0.1
"""The same for a small request in this process; then it is slow, and a worker begins it again."""
_PATIENCE_IN_A_CROWD = 0.005
"""The same while other small ones wait for the processor."""
_HEARS = 0.02
"""Seconds after which work in this process hears that the service closes."""
LONGEST_PAUSE = 5.0
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
            overdue = time.monotonic() - _pause.since > LONGEST_PAUSE
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
    """Those of one class of requests. Whoever waits has the next turn after one of everybody else who does, and where
    no place is left the last of whoever has most gives way. ``drop``: see `Offload`. Used on one event loop."""

    def __init__(self, of: Class, room: Room, drop: Callable[[Ticket], bool]) -> None:
        self.threads = ThreadPoolExecutor(room.threads, thread_name_prefix=f"solve-{of}")
        self.room = room
        self._drop = drop
        self._inside: dict[Ticket, asyncio.Future[None] | None] = {}
        """With the turn that it waits for; None: it has begun."""
        self._gate = FairGate(room.threads)

    @property
    def inside(self) -> int:
        """How many are being answered or wait."""
        return len(self._inside)

    async def run(self, ticket: Ticket, function: Callable[..., T], *args: Any) -> T:
        """Raises what ``function`` raises, TooManyRequests, and DeadlinePassed where it did not begin in time."""
        if self.inside >= self.room.threads + self.room.waiting and not self._make_room(ticket.who):
            raise TooManyRequests(f"{self.inside} requests like this one are being answered or wait already")
        called = _after_waiting(function)
        self._inside[ticket] = None
        try:
            await self._turn(ticket)
            try:
                # Cancelling does nothing once it has begun: then it stops by itself, at a safe point.
                future = self.threads.submit(copy_context().run, _paused, ticket, called, *args)
                return await asyncio.wrap_future(future)
            finally:
                self._gate.leave()
        finally:
            del self._inside[ticket]

    def close(self) -> None:
        """Drop what waits."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        self._gate.close()

    async def _turn(self, ticket: Ticket) -> None:
        """Wait for a thread. Raises DeadlinePassed, TooManyRequests."""
        if (turn := self._gate.enter(ticket.who)) is None:
            return
        self._inside[ticket] = turn
        late = DeadlinePassed(ticket.seconds)
        overdue = asyncio.get_running_loop().call_later(ticket.left, _refuse, turn, late)
        try:
            await self._gate.wait(turn)
        finally:
            overdue.cancel()
        self._inside[ticket] = None

    def _make_room(self, who: str) -> bool:
        """Whether one that waits gives way to ``who``: of those who have at least two more here."""
        has = Counter(inside.who for inside in self._inside)
        most, count = max(has.items(), key=itemgetter(1))
        if count < has[who] + 2:
            return False
        refusal = TooManyRequests(f"{count} of your requests are being answered or wait, and others ask as well")
        return any(
            self._drop(last) if turn is None else _refuse(turn, refusal)
            for last, turn in reversed(self._inside.items()) if last.who == most
        )  # fmt: skip


def _refuse(turn: asyncio.Future[None], refusal: Exception) -> bool:
    """Whether it waited."""
    if turn.done():
        return False
    turn.set_exception(refusal)
    return True


class Offload:
    """Threads by class, so that waiting for the database never takes the place of solving, nor one class another's.

    ``seconds``: the longest a request may take from here on, waiting included. ``drop``: has one that waits in a thread
    give way, and says whether it did wait.
    """

    def __init__(
        self, rooms: Mapping[Class, Room], seconds: float, drop: Callable[[Ticket], bool] = lambda _: False
    ) -> None:  # fmt: skip
        self._places = {of: _Places(of, room, drop) for of, room in rooms.items()}
        small = rooms["small"]
        self._brief = _Places("small", Room(min(_BRIEF_THREADS, small.threads), small.waiting), drop)
        self._seconds = seconds

    async def run(self, of: Class, function: Callable[..., T], *args: Any, brief: bool = False) -> T:
        """``function(*args)`` in a thread of that class, within ``Request-Timeout``. A small one that turns out to take
        long begins again among the slow ones. Raises what it raises, TooManyRequests and DeadlinePassed.

        ``brief``: a small one that most likely takes less than handing it to a thread does is tried here first, and
        then in threads that only such ones have: it does not stand behind small ones that turn out to be slow."""
        ticket = Ticket.within(of, self._seconds)
        places = self._places[of]
        if brief and of == "small":
            with suppress(TooSlow):
                return _paused(replaced(ticket, at_once=True), function, *args)
            places = self._brief
        try:
            return await places.run(ticket, function, *args)
        except TooSlow:
            return await self._places["slow"].run(replaced(ticket, of="slow"), function, *args)

    def inside(self, of: Class) -> int:
        """Requests of the class that are being answered or wait."""
        return sum(places.inside for places in self._of(of))

    def waiting(self, of: Class) -> int:
        """Those that wait for a thread."""
        return sum(max(0, places.inside - places.room.threads) for places in self._of(of))

    def close(self) -> None:
        """Drop what waits. What runs ends at its next safe point; nobody waits for it here."""
        for places in (*self._places.values(), self._brief):
            places.close()

    def _of(self, of: Class) -> tuple[_Places, ...]:
        return (self._places[of], self._brief) if of == "small" else (self._places[of],)


def _paused(ticket: Ticket, function: Callable[..., T], *args: Any) -> T:
    with collector_paused(), holding(ticket):
        return function(*args)


def _after_waiting(function: Callable[..., T]) -> Callable[..., T]:
    """``function``; whoever wants to know is told how long it waited to be called."""
    if (listening := ticket.listener()) is None:
        return function
    begin = time.perf_counter()

    def begun(*args: Any) -> T:
        ticket.since("waiting", begin, listening)
        return function(*args)

    return begun


class _StateName(msgspec.Struct, frozen=True):
    snapshot: str | None = None


class _Peek(msgspec.Struct, frozen=True):
    state: _StateName = _StateName()
    configuration: msgspec.Raw = msgspec.Raw(b"null")


_PEEK = msgspec.json.Decoder(_Peek)


class Dispatcher:
    """The operations of ``Answerer``, wherever they run. Without a pool everything runs here.

    ``offload``: threads of this process; ``small``: bodies up to this many bytes are answered here; ``seconds``: the
    longest anything may take that comes without a ticket.
    """

    def __init__(
        self, answerer: Answerer, pool: Pool | None, offload: Offload, *, small: int, seconds: float
    ) -> None:  # fmt: skip
        self._answerer = answerer
        self._pool = pool
        self._small = small
        self._seconds = seconds
        self._closing = False
        self.offload = offload

    def class_of(self, operation: Operation, body: bytes, snapshot: str = "") -> Class:
        """The class of a request. ``snapshot``: that the operation is about. A large body is not looked into: that
        would take long."""
        return "snapshot" if snapshot else self.looked_into(operation, body)[0]

    def looked_into(self, operation: Operation, body: bytes) -> tuple[Class, Named | None]:
        """The class of a request, and what its body names; None where that was not looked for."""
        if len(body) > self._small:
            return "large", None
        if operation.way.slow:
            return "slow", None
        named = named_in(body) if operation.way.names else _NO_NAMES
        return "small" if named[0] is None else "snapshot", named

    def run(self, asked: Inquiry, body: bytes, named: Named | None = None) -> Reply:
        """``named``: what ``named_in`` says of the body, where somebody has asked already: looking through a large one
        takes milliseconds. Raises what the operation does, and DeadlinePassed, TooSlow, Unavailable; then nothing has
        changed."""
        ticket = held()
        of = self.class_of(asked.operation, body, asked.snapshot) if ticket is None else ticket.of
        if self._pool is None or of == "small":
            return self._within(ticket, lambda: self._answerer.run(asked, body))
        reference = asked.configuration or None
        if asked.operation.way.names:
            snapshot, reference = named or named_in(body)
            asked = replace(asked, snapshot=snapshot or "")
        return self._pool.call(asked, body, ticket or Ticket.now(of, self._seconds), reference=reference)

    def here(self, work: Callable[[], T]) -> T:
        """Do ``work`` in this process, as long as the request may take. Raises what it does, DeadlinePassed,
        Unavailable."""
        return self._within(held(), work)

    def _within(self, ticket: Ticket | None, work: Callable[[], T]) -> T:
        check = self._here(ticket or Ticket.now("slow", self._seconds))
        with stoppable(check, time.monotonic, check()):
            return work()

    def everywhere(self, asked: Inquiry, body: bytes = b"") -> list[Reply]:
        """Run an operation in every process that keeps snapshots. Raises DeadlinePassed, Unavailable."""
        if self._pool is None:
            return [self._answerer.run(asked, body)]
        ticket = held() or Ticket.now("large", self._seconds)
        return [self._pool.call(asked, body, ticket, worker=worker) for worker in range(len(self._pool))]

    def waiting(self) -> dict[Class, int]:
        """How many wait for a thread or for a worker, by class."""
        of_pool = Counter[Class]() if self._pool is None else self._pool.waiting()
        return {of: self.offload.waiting(of) + of_pool[of] for of in CLASSES}

    def workers(self) -> tuple[int, int]:
        """How many run, and how many of them are at work."""
        return (0, 0) if self._pool is None else (self._pool.alive(), self._pool.busy())

    def failing(self) -> dict[int, datetime]:
        """Workers that don't answer, and since when."""
        return {} if self._pool is None else self._pool.failing()

    def snapshot_totals(self) -> tuple[int, int]:
        """Snapshots in memory, and their estimated bytes."""
        return self._answerer.store.totals if self._pool is None else self._pool.snapshot_totals()

    def start(self) -> None:
        """Start the workers, and import every engine: within a request that takes as long as a hundred decisions, and
        everybody waits for it."""
        if self._pool is not None:
            self._pool.start()
        for name in ENGINES:
            engine_of(name)

    def close(self) -> None:
        """Stop the workers, and at its next safe point whatever runs here: who waits for it gets Unavailable."""
        self._closing = True
        if self._pool is not None:
            self._pool.close()

    def _patience(self, ticket: Ticket) -> tuple[float, float]:
        """Seconds of the processor that a request may take here, alone and in a crowd."""
        if ticket.at_once:
            return _AT_ONCE, _AT_ONCE
        if self._pool is not None and ticket.of == "small":
            return _PATIENCE, _PATIENCE_IN_A_CROWD
        return math.inf, math.inf

    def _here(self, ticket: Ticket) -> Check:
        """What is asked at safe points of work in this process. How much of the processor the work took is a question
        for the system that costs more than a step of a search: it is put rarely, and never for what is quick."""
        alone, in_a_crowd = self._patience(ticket)
        look_at = time.monotonic() + in_a_crowd
        at_first: float | None = None

        def check() -> float:
            nonlocal look_at, at_first
            now = time.monotonic()
            if now >= ticket.end:
                ticket.check()
            if self._closing:
                raise Unavailable(CLOSING, retry_after=1)
            if now < look_at:
                return min(ticket.end, look_at, now + _HEARS)
            look_at = now + in_a_crowd
            spent = time.thread_time()
            if at_first is None:
                at_first = spent
            if spent - at_first > alone or (spent - at_first > in_a_crowd and self.offload.inside("small") > 1):
                raise TooSlow
            return min(ticket.end, look_at, now + _HEARS)

        return check


def named_in(body: bytes) -> Named:
    """The snapshot that a body names, and with one also its configuration, unless that is written out. What can't be
    read names none: whoever decodes it will say so."""
    if not occurs(_NAMED, body):
        return _NO_NAMES
    try:
        peeked = _PEEK.decode(body)
        raw = bytes(peeked.configuration)
        reference = msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else None
        return peeked.state.snapshot, reference
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _NO_NAMES
