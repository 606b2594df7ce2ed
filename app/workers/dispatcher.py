"""Who answers: this process for what is small, a worker for what is large, slow or asks about a kept snapshot."""

import math
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from app.answering.answerer import Answerer, Reply
from app.answering.operations import Inquiry, Operation
from app.base.decoding import occurs
from app.base.errors import Unavailable
from app.base.ticket import Class, Ticket, TooSlow, held
from app.solver.registry import ENGINES, engine_of
from app.solver.stopping import stoppable
from app.workers.offload import CLOSING
from app.workers.pool import Pool

T = TypeVar("T")
Named = tuple[str | None, str | None]
"""A snapshot and a configuration; None: not by name."""

_NAMED = b'"snapshot"'
_AT_ONCE = 0.002
"""Seconds of the processor that a request may take on the event loop; then a thread begins it again."""
_PATIENCE = 0.1
"""The same for a small request in this process; then it is slow, and a worker begins it again."""
_PATIENCE_IN_A_CROWD = 0.005
"""The same while other small ones wait for the processor."""


class _StateName(msgspec.Struct, frozen=True):
    snapshot: str | None = None


class _Peek(msgspec.Struct, frozen=True):
    state: _StateName = _StateName()
    configuration: msgspec.Raw = msgspec.Raw(b"null")


_PEEK = msgspec.json.Decoder(_Peek)


class Dispatcher:
    """The operations of ``Answerer``, wherever they run. Without a pool everything runs here.

    ``small``: bodies up to this many bytes are answered here; ``seconds``: the longest anything may take that comes
    without a ticket.
    """

    def __init__(self, answerer: Answerer, pool: Pool | None, *, small: int, seconds: float) -> None:
        self._answerer = answerer
        self._pool = pool
        self._small = small
        self._seconds = seconds
        self._closing = False
        self.crowded: Callable[[], bool] = lambda: False

    @property
    def answerer(self) -> Answerer:
        """What runs here."""
        return self._answerer

    def class_of(self, body: bytes, name: str = "") -> Class:
        """The class of a request. ``name``: of the snapshot, for the snapshot operations. A large body is not looked
        into: that would take long."""
        if name:
            return "snapshot"
        if len(body) > self._small:
            return "large"
        return "small" if named_in(body)[0] is None else "snapshot"

    def class_of_import(self, body: bytes) -> Class:
        """The class of a manifest: reading text takes a hundred times as long as reading a decision of that size."""
        return "large" if len(body) > self._small else "slow"

    def run(self, asked: Inquiry, body: bytes, named: Named | None = None) -> Reply:
        """``named``: what ``named_in`` says of the body, where somebody has asked already: looking through a large one
        takes milliseconds. Raises what the operation does, and DeadlinePassed, TooSlow, Unavailable; then nothing has
        changed."""
        ticket = held() or Ticket.now(self.class_of(body, asked.snapshot), self._seconds)
        if self._pool is None or ticket.of == "small":
            return self.here(lambda: self._answerer.run(asked, body))
        reference = asked.configuration or None
        if not asked.snapshot and asked.operation is not Operation.IMPORT:
            snapshot, reference = named or named_in(body)
            asked = replace(asked, snapshot=snapshot or "")
        return self._pool.call(asked, body, ticket, reference=reference)

    def here(self, work: Callable[[], T]) -> T:
        """Do ``work`` in this process, as long as the request may take. Raises what it does, DeadlinePassed,
        Unavailable."""
        check = self._here(held() or Ticket.now("slow", self._seconds))
        with stoppable(check):
            check()
            return work()

    def everywhere(self, asked: Inquiry) -> list[Reply]:
        """Run an operation in every process that keeps snapshots. Raises DeadlinePassed, Unavailable."""
        if self._pool is None:
            return [self._answerer.run(asked, b"")]
        ticket = held() or Ticket.now("large", self._seconds)
        return [self._pool.call(asked, b"", ticket, worker=at) for at in range(len(self._pool))]

    def waiting(self) -> Counter[Class]:
        """How many wait for a worker, by class."""
        return Counter() if self._pool is None else self._pool.waiting()

    def workers(self) -> tuple[int, int]:
        """How many run, and how many of them are at work."""
        return (0, 0) if self._pool is None else (self._pool.alive(), self._pool.busy())

    def failing(self) -> dict[int, datetime]:
        """Workers that don't answer, and since when."""
        return {} if self._pool is None else self._pool.failing()

    def kept(self) -> tuple[int, int]:
        """Snapshots in memory, and their estimated bytes."""
        return self._answerer.store.kept if self._pool is None else self._pool.kept()

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

    def _here(self, ticket: Ticket) -> Callable[[], None]:
        """What is asked at safe points of work in this process. How much of the processor the work took is a question
        for the system that costs more than a step of a search: it is put rarely, and never for what is quick."""
        alone, in_a_crowd = self._patience(ticket)
        look_at = time.monotonic() + in_a_crowd
        at_first: float | None = None

        def check() -> None:
            nonlocal look_at, at_first
            now = time.monotonic()
            if now >= ticket.end:
                ticket.check()
            if self._closing:
                raise Unavailable(CLOSING, retry_after=1)
            if now < look_at:
                return
            look_at = now + in_a_crowd
            spent = time.thread_time()
            if at_first is None:
                at_first = spent
            if spent - at_first > alone or (spent - at_first > in_a_crowd and self.crowded()):
                raise TooSlow

        return check


def named_in(body: bytes) -> Named:
    """The snapshot that a body names, and with one also its configuration, unless that is written out. What can't be
    read names none: whoever decodes it will say so."""
    if not occurs(_NAMED, body):
        return None, None
    try:
        found = _PEEK.decode(body)
        raw = bytes(found.configuration)
        reference = msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else None
        return found.state.snapshot, reference
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, None
