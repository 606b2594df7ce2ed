"""The request that is being answered: what it may take, where its time goes, and what it leaves behind.

A ticket says its class and by when it is to be answered. What is tried on the event loop, where nothing may wait, goes
on elsewhere before it waits for anything outside.

What an answer leaves behind is freed after the answer has been sent, not before: freeing the few hundred thousand
objects of a large request takes a fifth of the time that decoding it took. Whoever serves opens ``released_at_the_end``
around answering and sending; whoever answers hands over what it no longer needs.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, Literal, Self, TypeVar, get_args

import msgspec

from app.base.errors import DeadlinePassed

T = TypeVar("T")
Class = Literal["small", "slow", "large", "snapshot"]
"""``slow``: small ones that turned out to take long. ``snapshot``: changes of kept snapshots, and questions on one."""
CLASSES: tuple[Class, ...] = get_args(Class)


_asked: ContextVar[float | None] = ContextVar("request_timeout", default=None)


def requested_timeout() -> float | None:
    """What the request that is being answered allows; None where it says nothing."""
    return _asked.get()


def timeout_within(most: float) -> float:
    """Seconds that the request may still take, ``most`` at most."""
    asked = _asked.get()
    return most if asked is None else min(asked, most)


def spend_timeout(seconds: float, of: float) -> None:
    """``seconds`` of the ``of`` that the request had are over: what is left is all that it may take from here on."""
    _asked.set(max(of - seconds, 0.001))


@contextmanager
def allowing(seconds: float | None) -> Generator[None]:
    """Answer a request that may take so long; None: it says nothing."""
    token = _asked.set(seconds)
    try:
        yield
    finally:
        _asked.reset(token)


_who: ContextVar[str] = ContextVar("who_asks", default="")


@contextmanager
def asked_by(who: str) -> Generator[None]:
    """Answer a request of ``who``: by name, or an address as long as nobody has said more."""
    token = _who.set(who)
    try:
        yield
    finally:
        _who.reset(token)


def who_asks() -> str:
    """Whose request is being answered; empty where nobody said."""
    return _who.get()


class TakingTurns(Generic[T]):
    """What waits, by who asks: each in the order of their own, and one of each in turn."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, who: str, what: T) -> None:
        """It waits behind all that ``who`` has here."""
        self._lines.setdefault(who, deque()).append(what)

    def pop(self) -> T:
        """What is next; whose it was has the next turn after all others. Raises StopIteration where nothing waits."""
        who = next(iter(self._lines))
        line = self._lines.pop(who)
        what = line.popleft()
        if line:
            self._lines[who] = line
        return what


class FairGate:
    """Lets ``most`` in at once; those who ask take turns. Used on one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._waiting: TakingTurns[asyncio.Future[None]] = TakingTurns()

    def enter(self, who: str) -> asyncio.Future[None] | None:
        """What to ``wait`` for; None: it is in already. Whoever is in has to ``leave``."""
        if self._inside < self._most:
            self._inside += 1
            return None
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add(who, turn)
        return turn

    async def wait(self, turn: asyncio.Future[None] | None) -> None:
        """Until it is in. Raises what somebody has set ``turn`` to instead."""
        try:
            if turn is not None:
                await turn
        except asyncio.CancelledError:
            if turn is not None and turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # it was in by then
            raise

    def leave(self) -> None:
        """Let the next one in."""
        self._inside -= 1
        while self._waiting and self._inside < self._most:
            turn = self._waiting.pop()
            if not turn.done():
                turn.set_result(None)
                self._inside += 1

    def close(self) -> None:
        """Nobody who waits is let in any more."""
        while self._waiting:
            self._waiting.pop().cancel()

    @asynccontextmanager
    async def passed(self) -> AsyncGenerator[None]:
        """Be inside, in the turn of whoever asks."""
        await self.wait(self.enter(who_asks()))
        try:
            yield
        finally:
            self.leave()


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """``end``: an instant of ``time.monotonic()``, which all processes of a machine share; ``seconds``: what the
    request was allowed in all, waiting included. ``at_once``: it is tried on the event loop, where nothing may wait.
    ``who``: asks."""

    of: Class
    end: float
    seconds: float
    at_once: bool = False
    who: str = ""

    @classmethod
    def now(cls, of: Class, seconds: float) -> Self:
        """One that begins now."""
        return cls(of, time.monotonic() + seconds, seconds, who=_who.get())

    @classmethod
    def within(cls, of: Class, most: float) -> Self:
        """One that begins now and ends when its caller waits no longer, after ``most`` seconds at the latest."""
        return cls.now(of, timeout_within(most))

    @property
    def left(self) -> float:
        """Seconds until it ends, at least 0."""
        return max(self.end - time.monotonic(), 0.0)

    def check(self) -> float:
        """When it ends. Raises DeadlinePassed."""
        if time.monotonic() >= self.end:
            raise DeadlinePassed(self.seconds)
        return self.end


_held: ContextVar[Ticket | None] = ContextVar("ticket", default=None)


def held() -> Ticket | None:
    """That of the request that is being answered; None where nobody gave one."""
    return _held.get()


@contextmanager
def holding(ticket: Ticket) -> Generator[None]:
    """Answer a request that has ``ticket``."""
    token = _held.set(ticket)
    try:
        yield
    finally:
        _held.reset(token)


class TooSlow(Exception):
    """What is being answered takes too long here, or must wait: go on elsewhere. Nothing was changed."""


def may_wait() -> None:
    """To be called before waiting for the database, or for anything else outside. Raises TooSlow."""
    ticket = _held.get()
    if ticket is not None and ticket.at_once:
        raise TooSlow


def may_take_long() -> None:
    """To be called before what takes the processor for long without a safe point. Raises TooSlow where a small request
    is being answered: everybody who asks this process would wait for it."""
    ticket = _held.get()
    if ticket is not None and ticket.of == "small":
        raise TooSlow


_left_behind: ContextVar[list[object] | None] = ContextVar("held", default=None)


@contextmanager
def released_at_the_end() -> Generator[None]:
    """Hold what is handed over inside until the end."""
    held: list[object] = []
    token = _left_behind.set(held)
    try:
        yield
    finally:
        _left_behind.reset(token)
        held.clear()


def release_later(*objects: object) -> None:
    """Free ``objects`` at the end of ``released_at_the_end``; outside of it they go at once."""
    held = _left_behind.get()
    if held is not None:
        held.extend(objects)


class Stage(msgspec.Struct, frozen=True):
    """``begin`` and ``end``: instants of ``time.perf_counter()``, which all processes of a machine share. ``failed``:
    the class of what it ended with, empty where all went well."""

    name: str
    begin: float
    end: float
    failed: str = ""
    process: int = 0


Listener = Callable[[Stage], None]
_listening: ContextVar[Listener | None] = ContextVar("listening", default=None)


def listener() -> Listener | None:
    """Who is told of the stages of what is done now; None: nobody wants to know."""
    return _listening.get()


@contextmanager
def heard_by(listening: Listener | None) -> Generator[None]:
    """Tell ``listening`` of what is done inside."""
    token = _listening.set(listening)
    try:
        yield
    finally:
        _listening.reset(token)


@contextmanager
def stage(name: str) -> Generator[None]:
    """Something that is worth telling."""
    listening = _listening.get()
    if listening is None:
        yield
        return
    begin, failed = perf_counter(), ""
    try:
        yield
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        since(name, begin, listening, failed)


def since(name: str, begin: float, listening: Listener, failed: str = "") -> None:
    """Tell of a stage that began at ``begin`` and ends now."""
    listening(Stage(name, begin, perf_counter(), failed, os.getpid()))
