"""Which requests have a span, and what it is told of them."""

import asyncio
from typing import Any

import pytest
import structlog

from app.base import ticket
from app.http.middleware import FAULT
from app.http.tracing import TracingMiddleware

Json = dict[str, Any]


class Traces:
    """What was begun, and what became of it."""

    trace = "0af7651916cd43dd8448eb211c80319c"

    def __init__(self, sampled: bool = True) -> None:
        self.begun: list[Any] = []
        self.ended: list[Any] = []
        self.stages: list[str] = []
        self._sampled = sampled

    def begin(self, headers: Any, method: str, path: str) -> Any:
        self.begun.append((headers["traceparent"], method, path))
        return self if self._sampled else None

    def stage(self, stage: ticket.Stage) -> None:
        self.stages.append(stage.name)

    def answered(self, *told: Any) -> None:
        self.ended.append(told)


class Application:
    """Answers, and remembers who was told of what it does."""

    def __init__(self, error: Exception | None = None) -> None:
        self.traces: list[str | None] = []
        self._error = error

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.traces.append(structlog.contextvars.get_contextvars().get("trace_id"))
        with ticket.stage("solve"):
            pass
        if self._error is not None:
            scope[FAULT] = self._error
            raise self._error
        await send({"type": "http.response.start", "status": 204, "headers": [(b"x-request-id", b"r1")]})
        await send({"type": "http.response.body", "body": b""})


def answered(traces: Any, application: Any, kind: str = "http", path: str = "/v1/x") -> list[Any]:
    """Messages that were sent."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    scope = {"type": kind, "method": "GET", "path": path, "headers": [(b"traceparent", b"t")]}
    asyncio.run(TracingMiddleware(application, traces)(scope, receive, send))
    return sent


def test_a_request_has_a_span_that_is_told_its_end() -> None:
    traces, application = Traces(), Application()
    assert [message["type"] for message in answered(traces, application)] == [
        "http.response.start", "http.response.body",
    ]  # fmt: skip
    assert traces.begun == [("t", "GET", "/v1/x")]
    assert traces.ended == [("other", "other", 204, "r1", None)]
    assert (traces.stages, application.traces) == (["solve"], [traces.trace])


def test_one_that_fails_ends_too() -> None:
    traces, error = Traces(), ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        answered(traces, Application(error))
    assert traces.ended == [("other", "other", 0, "", error)]


@pytest.mark.parametrize(("kind", "path"), [("lifespan", "/v1/x"), ("http", "/healthz"), ("http", "/metrics")])
def test_what_means_nothing_to_anybody_has_none(kind: str, path: str) -> None:
    traces, application = Traces(), Application()
    assert len(answered(traces, application, kind, path)) == 2
    assert (traces.begun, traces.stages, application.traces) == ([], [], [None])


def test_one_that_is_not_sampled_is_answered_all_the_same() -> None:
    traces, application = Traces(sampled=False), Application()
    assert len(answered(traces, application)) == 2
    assert (len(traces.begun), traces.ended, traces.stages, application.traces) == (1, [], [], [None])
