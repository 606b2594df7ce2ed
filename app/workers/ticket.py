"""What a request may take: its class, and by when it is to be answered."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Self, get_args

from app.base.errors import DeadlinePassed

Class = Literal["small", "slow", "large", "snapshot"]
"""``slow``: small ones that turned out to take long. ``snapshot``: changes of kept snapshots, and questions on one."""
CLASSES: tuple[Class, ...] = get_args(Class)


@dataclass(frozen=True, slots=True)
class Ticket:
    """``end``: an instant of ``time.monotonic()``, which all processes of a machine share; ``seconds``: what the
    request was allowed in all, waiting included. ``at_once``: it is tried on the event loop, where nothing may wait."""

    of: Class
    end: float
    seconds: float
    at_once: bool = False

    @classmethod
    def now(cls, of: Class, seconds: float) -> Self:
        """One that begins now."""
        return cls(of, time.monotonic() + seconds, seconds)

    @property
    def left(self) -> float:
        """Seconds until it ends, at least 0."""
        return max(self.end - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raises DeadlinePassed."""
        if time.monotonic() >= self.end:
            raise DeadlinePassed(self.seconds)


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
