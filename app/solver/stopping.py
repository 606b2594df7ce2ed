"""Where solving may be stopped: at safe points, at which nothing that outlives the request is half changed.

Whoever wants to stop it hands in what to ask there; the solver knows neither the time nor the reason. It is an input
like the others, but comes beside the arguments: every loop of every engine would otherwise have to hand it on. While
it does not raise, an answer is the same with it and without.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("stopping", default=None)


@contextmanager
def stoppable(check: Callable[[], None]) -> Generator[None]:
    """Call ``check`` at every safe point inside. What it raises ends the work; no engine may catch it."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def safe_point() -> None:
    """A place to stop at. Costs next to nothing beside a step of a search; raises what the check raises."""
    check = _check.get()
    if check is not None:
        check()
