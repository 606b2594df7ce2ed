"""Who looks at pages: what the middleware asks of whoever serves them, and what those know of the caller."""

from typing import Protocol

from starlette.responses import Response
from starlette.types import Scope

from app.auth import actor
from app.auth.service import Caller
from app.base.errors import ArbiterError

_KEY = "arbiter.caller"
_NOBODY = Caller(actor.ANONYMOUS, frozenset())
_EVERYBODY = Caller(actor.ANONYMOUS, frozenset({"admin"}))
"""On an open service: whoever reaches it may do anything, as with the API."""


class Visitors(Protocol):
    """What pages know of people that the API does not."""

    def caller(self, scope: Scope) -> Caller | None:
        """Who has a session; None where nobody has. Raises Unavailable."""
        ...

    def ask_in(self, scope: Scope) -> Response:
        """What somebody without a session is shown."""
        ...

    def refusal(self, scope: Scope, refusal: ArbiterError) -> Response:
        """What somebody is shown who may not see the page."""
        ...


def welcome(scope: Scope, caller: Caller) -> None:
    """Remember who asks."""
    scope[_KEY] = caller


def caller_of(scope: Scope, *, guarded: bool) -> Caller:
    """Who asks, as the middleware found out; before that nobody, who may do nothing.

    ``guarded``: False on an open service, where everybody may do anything.
    """
    found = scope.get(_KEY)
    if isinstance(found, Caller):
        return found
    return _NOBODY if guarded else _EVERYBODY
