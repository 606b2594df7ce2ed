# pyright: reportPrivateUsage=false
"""Stages and spans, told to a provider that only remembers."""

import os
import threading
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.base import ticket
from app.base.ticket import Stage, TooSlow, heard_by, stage
from app.http import tracing as spans
from app.http.tracing import Tracing, configured
from tests.support.bounds import Bounded
from tests.support.instead import Instead

pytest.importorskip("opentelemetry.sdk", reason="the extra arbiter-preemption[otel] is not installed")


def test_who_listens_is_told_of_stages() -> None:
    found: list[Stage] = []
    with stage("nobody hears this"):
        pass
    assert ticket.listener() is None
    with heard_by(found.append):
        assert ticket.listener() == found.append
        with stage("solve"):
            time.sleep(0)
        with pytest.raises(ZeroDivisionError), stage("fails"):
            raise ZeroDivisionError
        with heard_by(None), stage("nor this"):
            pass
        assert ticket.listener() == found.append
    assert ticket.listener() is None
    first, second = found
    assert (first.name, first.failed, first.process, first.begin <= first.end) == ("solve", "", os.getpid(), True)
    assert (second.name, second.failed) == ("fails", "ZeroDivisionError")
    assert Stage("x", 1.0, 2.0) == Stage("x", 1.0, 2.0, "", 0)


class Exported:
    """A service's traces, and the spans that have ended."""

    def __init__(self, ratio: float = 1.0) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

        self._to = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=TraceIdRatioBased(ratio), shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._to))
        self.traces = Tracing(lambda: self.provider)
        self.traces.start()

    @property
    def spans(self) -> Any:
        return self._to.get_finished_spans()


CALLER = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.mark.parametrize(
    ("status", "error", "kind", "failed"),
    [(200, None, None, False), (499, None, None, False), (500, None, "500", True),
     (503, ValueError("why"), "ValueError", True), (0, None, None, False), (404, KeyError("x"), None, False)],
)  # fmt: skip
def test_a_request_is_a_span_below_its_callers(status: int, error: Any, kind: Any, failed: bool) -> None:
    exported = Exported()
    traced = exported.traces.begin(CALLER, "POST", "/v1/x/y")
    assert traced is not None
    assert traced.trace == "0af7651916cd43dd8448eb211c80319c"
    traced.answered("POST", "/v1/x/{name}", status, "r1", error)
    (span,) = exported.spans
    assert (span.name, span.kind.name, span.parent.span_id) == ("POST /v1/x/{name}", "SERVER", 0xB7AD6B7169203331)
    said = {"http.request.method": "POST", "url.path": "/v1/x/y", "http.route": "/v1/x/{name}",
            "arbiter.request_id": "r1"}  # fmt: skip
    said |= {"http.response.status_code": status} if status else {}
    assert dict(span.attributes) == said | ({"error.type": kind} if kind else {})
    assert span.status.status_code.name == ("ERROR" if failed else "UNSET")
    assert [event.name for event in span.events] == (["exception"] if error is not None else [])


def test_stages_are_spans_below_the_request_in_its_time() -> None:
    exported = Exported()
    traced = exported.traces.begin({}, "GET", "/")
    assert traced is not None
    now, instant = time.time_ns(), time.perf_counter()
    traced.answered("GET", "/", 200, "r", None)
    traced.stage(Stage("solve", instant, instant + 1000.0, process=7))
    traced.stage(Stage("wait", instant, instant, failed=TooSlow.__name__))
    traced.stage(Stage("encode", instant, instant, failed="ValueError"))
    request, solve, wait, encode = exported.spans
    assert {one.parent.span_id for one in (solve, wait, encode)} == {request.context.span_id}
    assert [one.name for one in (solve, wait, encode)] == ["solve", "wait", "encode"]
    assert abs(solve.end_time - solve.start_time - 1000 * 10**9) <= 500
    assert abs(solve.start_time - now) < 60_000_000_000
    assert dict(solve.attributes) == {"process.pid": 7}
    assert dict(wait.attributes) == {"process.pid": 0, "arbiter.begun_again": True}
    assert dict(encode.attributes) == {"process.pid": 0, "error.type": "ValueError"}
    assert [one.status.status_code.name for one in (solve, wait, encode)] == ["UNSET", "UNSET", "ERROR"]


def test_what_is_not_sampled_is_not_followed() -> None:
    assert Exported(0.0).traces.begin({}, "GET", "/") is None


def test_nothing_is_exported_where_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    with capture_logs() as lines:
        off = configured()
    assert (off.is_on, lines) == (False, [])
    off.start()
    off.close()
    assert not hasattr(off, "tracer")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with capture_logs() as lines:
        assert configured().is_on
    assert lines == []
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with capture_logs() as lines:
        assert not configured().is_on
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("no traces", "OTEL_TRACES_EXPORTER=zipkin: only otlp is there"),
    ]


@pytest.mark.parametrize(("given", "name"), [(None, "arbiter"), ("mine", "mine")])
def test_the_service_has_its_own_name_unless_it_is_given_one(
    given: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import version

    for one in [one for one in os.environ if one.startswith("OTEL_")]:
        monkeypatch.delenv(one)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    if given is not None:
        monkeypatch.setenv("OTEL_SERVICE_NAME", given)
    make = configured()._make
    assert make is not None
    provider = make()
    attributes = provider.resource.attributes
    assert (attributes["service.name"], attributes["service.version"]) == (name, version("arbiter-preemption"))
    assert provider._atexit_handler is None  # pyright: ignore[reportAttributeAccessIssue]
    processors: Any = provider._active_span_processor
    assert [type(one).__name__ for one in processors._span_processors] == ["BatchSpanProcessor"]
    provider.shutdown()


def test_closing_waits_for_spans_for_a_short_while(instead: Instead, bounded: Bounded) -> None:
    exported, done, gate = Exported(), list[str](), threading.Event()

    def slowly() -> None:
        time.sleep(0.05)
        done.append("sent")
        assert gate.wait(60)

    instead(exported.provider, shutdown=slowly)
    bounded(spans, FLUSH_SECONDS=1.0)
    exported.traces.close()
    (ending,) = [thread for thread in threading.enumerate() if thread.name == "traces"]
    assert (done, ending.daemon) == (["sent"], True), "a collector that is away keeps no process alive"
    gate.set()
    ending.join()
