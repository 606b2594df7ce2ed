"""Who asks: a caller with scopes, the actor of the request that is being answered, who looks at a page.

Which scope an operation needs is said where the operation is: ``needs`` in ``app.http.openapi.operation``.
``decide``: questions and kept states. ``read``: what changes nothing. ``follow``: what keeping a configuration and a
snapshot equal to a cluster writes. ``admin``: the rest, tokens and the audit log; it includes all others.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol

from starlette.responses import Response
from starlette.types import Scope as RequestScope

from app.base.errors import ArbiterError

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
        yield
    finally:
        _actor.reset(token)


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
    found = scope.get(_KEY)
    if isinstance(found, Caller):
        return found
    return _NOBODY if guarded else _EVERYBODY
