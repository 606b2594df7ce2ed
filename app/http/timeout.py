"""``Request-Timeout``: how long the caller waits; solving stops then. In seconds, or a Go duration (``500ms``)."""

import re
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.problems import problem
from app.solver.model import duration

HEADER = "Request-Timeout"
_SECONDS = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_given: ContextVar[float | None] = ContextVar("request_timeout", default=None)


def seconds() -> float | None:
    """What the request that is being answered allows; None where it says nothing."""
    return _given.get()


def within(most: float) -> float:
    """Seconds that the request may still take, ``most`` at most."""
    given = _given.get()
    return most if given is None else min(given, most)


def spend(seconds: float, of: float) -> None:
    """``seconds`` of the ``of`` that the request had are over: what is left is all that it may take from here on."""
    _given.set(max(of - seconds, 0.001))


class TimeoutMiddleware:
    """Reads the header once; a value that is no positive duration is 400."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        value = Headers(scope=scope).get(HEADER) if scope["type"] == "http" else None
        allowed = None if value is None else _parsed(value)
        if value is not None and allowed is None:
            detail = f"{HEADER} is a positive number of seconds or a duration like 500ms"
            await problem(Request(scope), 400, "Bad request", detail)(scope, receive, send)
            return
        token = _given.set(allowed)
        try:
            await self.app(scope, receive, send)
        finally:
            _given.reset(token)


def _parsed(value: str) -> float | None:
    try:
        allowed = float(value) if _SECONDS.fullmatch(value) else duration.parse(value) / 1e6
    except duration.DurationError:
        return None
    return allowed if 0 < allowed < 1e9 else None
