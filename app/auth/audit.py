"""Who asks, and the audit log: every write, in its transaction, and a sample of the refusals; never edited.

Refusals are all counted, and some are written down. Who knocks without a key decides how often he is refused, and must
not decide how much the audit log holds: of each caller and kind the first ten are written, then one a minute, which
says how many were not.
"""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, Protocol

from sqlalchemy.orm import Session
from starlette.responses import Response
from starlette.types import Scope as RequestScope

from app.auth import repository
from app.base.errors import ArbiterError, TooManyRequests
from app.base.ticket import asked_by

ANONYMOUS = "anonymous"

_actor: ContextVar[str] = ContextVar("actor", default=ANONYMOUS)


def current_actor() -> str:
    """Who asks: ``token:<name>``, ``oidc:<subject>``, ``cli:<user>``, or ``anonymous`` on an open service."""
    return _actor.get()


@contextmanager
def acting(name: str) -> Generator[None]:
    """Inside, ``name`` acts."""
    token = _actor.set(name)
    try:
        with asked_by(name):
            yield
    finally:
        _actor.reset(token)


def require_place(
    held: Mapping[str, int], most: int, *, full: str, own: str, setting: str, retry_after: int
) -> None:  # fmt: skip
    """One of ``most`` places must be left, and for one caller no more than are left for others; where nobody says who
    asks, callers can't be told apart, and all are for all. ``held``: by actor; ``full``, ``own``: what is said of all
    and of the caller's, ``{}`` of them. Raises TooManyRequests, which names the ``setting``."""
    who, left = current_actor(), most - sum(held.values())
    if left <= 0:
        raise TooManyRequests(f"{full.format(most)} ({setting})", retry_after=retry_after)
    if who != ANONYMOUS and (mine := held.get(who, 0)) >= left:
        said = f"{own.format(mine)} already, and only {left} of {most} places are left for others ({setting})"
        raise TooManyRequests(said, retry_after=retry_after)


class Seats:
    """Places for answers that stay open, at most ``most``, and for one caller no more than are left for others. Used on
    one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """How many are taken."""
        return self._held.total()

    def join(self) -> str:
        """Take one; who has it, to ``leave`` with. Raises TooManyRequests."""
        require_place(
            self._held, self._most, full="{} listen already", own="you listen {} times",
            setting="ARBITER_CONSOLE_LISTENERS", retry_after=60,
        )  # fmt: skip
        who = current_actor()
        self._held[who] += 1
        return who

    def leave(self, who: str) -> None:
        """Give one back."""
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]


Scope = Literal["decide", "read", "admin", "follow"]
SCOPES: tuple[Scope, ...] = ("decide", "read", "admin", "follow")


def allows(held: frozenset[str], *needed: str) -> bool:
    """Whether ``held`` scopes are enough where one of ``needed`` is."""
    return "admin" in held or not held.isdisjoint(needed)


_KEY = "arbiter.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may do."""

    name: str
    scopes: frozenset[str]


_NOBODY = Caller(ANONYMOUS, frozenset())
_EVERYBODY = Caller(ANONYMOUS, frozenset({"admin"}))
"""On an open service: whoever reaches it may do anything, as with the API."""


class Visitors(Protocol):
    """What pages know of people that the API does not."""

    def caller(self, scope: RequestScope) -> Caller | None:
        """Who has a session; None where nobody has. Raises Unavailable."""
        ...

    def ask_in(self, scope: RequestScope) -> Response:
        """What somebody without a session is shown."""
        ...

    def refusal(self, scope: RequestScope, refusal: ArbiterError) -> Response:
        """What somebody is shown who may not see the page."""
        ...


def welcome(scope: RequestScope, caller: Caller) -> None:
    """Remember who asks."""
    scope[_KEY] = caller


def caller_of(scope: RequestScope, *, guarded: bool) -> Caller:
    """Who asks, as the middleware found out; before that nobody, who may do nothing.

    ``guarded``: False on an open service, where everybody may do anything.
    """
    caller = scope.get(_KEY)
    if isinstance(caller, Caller):
        return caller
    return _NOBODY if guarded else _EVERYBODY


def record(session: Session, action: str, target: str, detail: dict[str, Any] | None = None) -> None:
    """Say what the current actor does, in the transaction that does it: both happen or neither."""
    repository.record(session, current_actor(), action, target, detail)


Kind = Literal["unauthenticated", "forbidden"]

_AT_ONCE = 10
_EVERY_SECONDS = 60.0
MOST_KEPT = 1024
_MOST_COUNTED = 10_000


@dataclass(slots=True)
class _Account:
    """Of one caller: lines that may be written now, as of ``at``; and refusals since the last line."""

    lines: float
    since: float
    unwritten: int = 0


class Refusals:
    """``count`` is told of every refusal; ``clock``: seconds that never go back."""

    def __init__(self, count: Callable[[Kind], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._clock = clock
        self._accounts: OrderedDict[tuple[str, Kind], _Account] = OrderedDict()
        self._lock = Lock()

    def add(self, who: str, kind: Kind) -> int | None:
        """How many were not written since the last line, where this one is to be written; None where it is not."""
        self._count(kind)
        now = self._clock()
        with self._lock:
            account = self._accounts.setdefault((who, kind), _Account(_AT_ONCE, now))
            self._accounts.move_to_end((who, kind))
            if len(self._accounts) > MOST_KEPT:
                self._accounts.popitem(last=False)
            account.lines = min(_AT_ONCE, account.lines + (now - account.since) / _EVERY_SECONDS)
            account.since = now
            if account.lines < 1:
                account.unwritten += 1
                return None
            account.lines -= 1
            missed, account.unwritten = account.unwritten, 0
            return missed


class Frequent:
    """Writes that come a thousand a second, as deltas and followers' reports do: of each actor, action and target a
    line a minute, which says how many others there were. Thread-safe."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._lock = Lock()

    def add(self, action: str, target: str) -> dict[str, int] | None:
        """The detail of the line that is to be written now, empty where nothing was left out; None: none is."""
        key, now = (current_actor(), action, target), time.monotonic()
        with self._lock:
            began, count = self._counted.pop(key, (-math.inf, 0))
            due = now - began >= _EVERY_SECONDS
            self._counted[key] = (now, 0) if due else (began, count + 1)
            while len(self._counted) > _MOST_COUNTED:
                del self._counted[next(iter(self._counted))]
        if not due:
            return None
        return {"unwritten": count} if count else {}

    def record(self, session: Session, action: str, target: str) -> None:
        """Write the line in the transaction that writes, where it is time for one."""
        if (detail := self.add(action, target)) is not None:
            record(session, action, target, detail or None)
