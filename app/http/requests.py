"""One middleware around every request: its id, its log line, its count, and an answer when the code breaks.

Plain ASGI, so that bodies pass through untouched.
"""

import re
import secrets
import time
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.answering.answers import released_at_the_end
from app.http.budget import release
from app.http.problems import problem
from app.http.routing import names_of

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds: not worth a line or a span."""
FAULT = "arbiter.fault"
"""Where a scope has what nobody foresaw."""

log = structlog.stdlib.get_logger("arbiter.request")


class RequestMiddleware:
    """``X-Request-ID`` is taken over when it is short and plain, made here otherwise, and always sent back."""

    def __init__(self, app: ASGIApp, answered: Callable[[str, str, int, float], None]) -> None:
        """``answered`` is told of each answer: method and path template of its operation, status, seconds."""
        self.app = app
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(Headers(scope=scope).get("x-request-id"))
        app = self.app if _is_text(scope) else _not_text
        status = 0

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        with released_at_the_end(), structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await app(scope, receive, respond)
            except Exception as error:
                scope[FAULT] = error
                log.exception("request failed", method=scope["method"], path=scope["path"])
                if status:
                    raise
                answer = problem(
                    Request(scope), 500, "Internal error", f"unexpected; request {request_id} is in the log"
                )
                await answer(scope, receive, respond)
            finally:
                seconds = time.perf_counter() - began
                release(scope)
                if status:
                    self._answered(*names_of(scope), status, seconds)
                _line(scope, status, seconds)


def _is_text(scope: Scope) -> bool:
    """Whether the path is UTF-8: what is not was made so for the application, and would name something else."""
    if "\ufffd" not in scope["path"]:
        return True
    try:
        unquote_to_bytes(scope["raw_path"]).decode()
    except (KeyError, UnicodeDecodeError):
        return False
    return True


async def _not_text(scope: Scope, receive: Receive, send: Send) -> None:
    answer = problem(Request(scope), 400, "Bad request", "the path is not UTF-8")
    await answer(scope, receive, send)


def _request_id(given: str | None) -> str:
    return given if given is not None and _ACCEPTABLE.fullmatch(given) else secrets.token_hex(8)


def _line(scope: Scope, status: int, seconds: float) -> None:
    write = log.debug if scope["path"] in QUIET else log.info
    write("request", method=scope["method"], path=scope["path"], status=status, milliseconds=round(seconds * 1000, 2))
