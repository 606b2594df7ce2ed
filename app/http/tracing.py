"""Requests and their stages as spans of OpenTelemetry, whose SDK is imported where traces are wanted, only then.

What is exported where is said by the variables of the OpenTelemetry specification (``OTEL_*``), which its SDK reads.
Spans are all made in the service's process, also those of stages in a worker: a worker may be killed at any time.
"""

import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import TYPE_CHECKING

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base import installed_version, ticket
from app.base.settings import traces_wanted
from app.base.ticket import Stage, TooSlow
from app.http.middleware import FAULT, QUIET
from app.http.routing import names_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span


FLUSH_SECONDS = 2.0
"""For spans that wait when the service stops: the rest is lost."""

log = structlog.stdlib.get_logger("arbiter.tracing")


class TracedRequest:
    """A request's span, under that of the caller where one was named. ``trace``: its id, as 32 hexadecimal digits."""

    def __init__(self, tracing: "Tracing", span: "Span") -> None:
        from opentelemetry.trace import format_trace_id, set_span_in_context

        self._tracer = tracing.tracer
        self._span = span
        self._context = set_span_in_context(span)
        self._epoch = time.time_ns() - time.perf_counter_ns()
        self.trace = format_trace_id(span.get_span_context().trace_id)

    def stage(self, stage: Stage) -> None:
        """A stage as a span below the request's, from any thread; also after the request has ended."""
        from opentelemetry.trace import Status, StatusCode

        span = self._tracer.start_span(stage.name, self._context, start_time=self._nanoseconds(stage.begin))
        span.set_attribute("process.pid", stage.process)
        if stage.failed == TooSlow.__name__:
            span.set_attribute("arbiter.begun_again", True)
        elif stage.failed:
            span.set_attribute("error.type", stage.failed)
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._nanoseconds(stage.end))

    def answered(self, method: str, route: str, status: int, request_id: str, error: Exception | None) -> None:
        """The end of the request. ``route``: the template of its path; ``status``: 0 where the caller was gone."""
        from opentelemetry.trace import Status, StatusCode

        self._span.update_name(f"{method} {route}")
        self._span.set_attribute("http.route", route)
        self._span.set_attribute("arbiter.request_id", request_id)
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if error is not None:
            self._span.record_exception(error)
        if status >= 500:
            self._span.set_attribute("error.type", str(status) if error is None else type(error).__name__)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()

    def _nanoseconds(self, instant: float) -> int:
        return self._epoch + round(instant * 1e9)


class Tracing:
    """Traces of one service; nothing where ``provider``, which makes what exports them, is None."""

    def __init__(self, provider: "Callable[[], TracerProvider] | None" = None) -> None:
        self._make = provider
        self._provider: TracerProvider | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is exported."""
        return self._make is not None

    def start(self) -> None:
        """Begin to export."""
        if self._make is not None:
            self._provider = self._make()
            self.tracer = self._provider.get_tracer("arbiter", installed_version())

    def begin(self, headers: Mapping[str, str], method: str, path: str) -> TracedRequest | None:
        """A request, part of the trace that its ``traceparent`` names; None where it is not sampled."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        attributes = {"http.request.method": method, "url.path": path}
        span = self.tracer.start_span(method, extract(headers), SpanKind.SERVER, attributes)
        return TracedRequest(self, span) if span.is_recording() else None

    def close(self) -> None:
        """Send what waits, for a short while: a collector that is away holds nobody up."""
        if self._provider is not None:
            ending = Thread(target=self._provider.shutdown, name="traces", daemon=True)
            ending.start()
            ending.join(FLUSH_SECONDS)


def configured() -> Tracing:
    """As the environment says; what can't be done of it is said in the log, and there are no traces then."""
    wanted, why_not = traces_wanted()
    if why_not is not None:
        log.warning("no traces", reason=why_not)
    if not wanted:
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as missing:
        log.warning("no traces", reason=f"they need the extra arbiter-preemption[otel]: no module {missing.name}")
        return Tracing()

    def provider() -> TracerProvider:
        resource = Resource.create()
        own = {SERVICE_VERSION: installed_version()}
        if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
            own[SERVICE_NAME] = "arbiter"
        provided = TracerProvider(resource=resource.merge(Resource(own)), shutdown_on_exit=False)
        provided.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return provided

    return Tracing(provider)


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
            with ticket.heard_by(traced.stage), structlog.contextvars.bound_contextvars(trace_id=traced.trace):
                await self.app(scope, receive, respond)
        finally:
            traced.answered(*names_of(scope), status, request_id, scope.get(FAULT))
