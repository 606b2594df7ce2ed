"""Where nothing may wait: what is tried on the event loop goes on elsewhere before it waits for anything outside."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_at_once: ContextVar[bool] = ContextVar("at_once", default=False)


class TooSlow(Exception):
    """What is being answered takes too long here, or must wait: go on elsewhere. Nothing was changed."""


@contextmanager
def at_once() -> Generator[None]:
    """Nothing inside may wait."""
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


def may_wait() -> None:
    """To be called before waiting for the database, or for anything else outside. Raises TooSlow."""
    if _at_once.get():
        raise TooSlow
