"""Outermost where traces are wanted: a span a request, and whoever works on it tells of the stages."""

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base import tracing
from app.base.spans import TracedRequest, Tracing
from app.http.requests import FAULT, QUIET
from app.http.routing import names_of


class TracingMiddleware:
    """Questions about the service's health have no span: they come every few seconds and mean nothing to anybody."""

    def __init__(self, app: ASGIApp, traces: Tracing) -> None:
        self.app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in QUIET:
            await self.app(scope, receive, send)
            return
        traced = self._traces.begin(Headers(scope=scope), scope["method"], scope["path"])
        if traced is None:
            await self.app(scope, receive, send)
        else:
            await self._traced(traced, scope, receive, send)

    async def _traced(self, traced: TracedRequest, scope: Scope, receive: Receive, send: Send) -> None:
        status, request_id = 0, ""

        async def respond(message: Message) -> None:
            nonlocal status, request_id
            if message["type"] == "http.response.start":
                status = message["status"]
                request_id = Headers(raw=message["headers"]).get("x-request-id", "")
            await send(message)

        try:
            with tracing.told(traced.stage), structlog.contextvars.bound_contextvars(trace_id=traced.trace):
                await self.app(scope, receive, respond)
        finally:
            traced.answered(*names_of(scope), status, request_id, scope.get(FAULT))
