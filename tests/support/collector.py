"""A collector of traces for tests: OTLP over HTTP, the bytes that any collector would get."""

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """A span as it arrived; ids in hexadecimal, ``parent`` empty for a root."""

    name: str
    trace: str
    id: str
    parent: str
    seconds: float
    begin: int
    is_error: bool
    kind: int
    attributes: dict[str, Any]
    events: list[str]


@dataclass
class Collector:
    """``address``: for ``OTEL_EXPORTER_OTLP_ENDPOINT``."""

    address: str = ""
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: list[str] = field(default_factory=list[str])
    _spans: list[Span] = field(default_factory=list[Span])
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, body: bytes, headers: list[str]) -> None:
        """Keep what a request brought."""
        found: Any = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.headers = headers
            for of in found.resource_spans:
                self.resource = _attributes(of.resource.attributes)
                self._spans += [_span(one) for scope in of.scope_spans for one in scope.spans]
            self._changed.notify_all()

    def wait(self, *names: str, seconds: float = 120.0) -> list[Span]:
        """All spans, once there is one of each name. Raises AssertionError."""
        with self._changed:
            done = self._changed.wait_for(lambda: set(names) <= {span.name for span in self._spans}, seconds)
            assert done, f"only {sorted(span.name for span in self._spans)}"
            return list(self._spans)


def _span(one: Any) -> Span:
    return Span(
        name=one.name, trace=one.trace_id.hex(), id=one.span_id.hex(), parent=one.parent_span_id.hex(),
        seconds=(one.end_time_unix_nano - one.start_time_unix_nano) / 1e9, begin=one.start_time_unix_nano,
        is_error=one.status.code == 2, kind=one.kind, attributes=_attributes(one.attributes),
        events=[event.name for event in one.events],
    )  # fmt: skip


def _attributes(found: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found}


@contextmanager
def collecting() -> Generator[Collector]:
    """A collector that listens."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collector.take(body, [f"{name.lower()}: {value}" for name, value in self.headers.items()])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
