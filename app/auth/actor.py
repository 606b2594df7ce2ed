"""The actor of the request that is being answered."""

from contextvars import ContextVar, Token

ANONYMOUS = "anonymous"

_actor: ContextVar[str] = ContextVar("actor", default=ANONYMOUS)


def current() -> str:
    """Who asks: ``token:<name>``, ``oidc:<subject>``, ``cli:<user>``, or ``anonymous`` on an open service."""
    return _actor.get()


def become(name: str) -> Token[str]:
    """From here on in this context, ``name`` acts; undone with ``leave``."""
    return _actor.set(name)


def leave(token: Token[str]) -> None:
    """Undo ``become``."""
    _actor.reset(token)
