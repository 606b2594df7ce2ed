"""Traces as a collector gets them from a running service: real bytes of OTLP over HTTP."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from app.base.settings import traces_wanted
from tests.support.collector import Collector, Span, collecting
from tests.support.live import ROOT, Live, running

pytestmark = pytest.mark.slow

EXAMPLE = (ROOT / "examples" / "kueue-classic.json").read_bytes()
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STAGES = {"decode", "compile", "solve", "encode"}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def service(
    collector: Collector, new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """A service that sends nothing by itself before it stops: what arrives was flushed."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=scheduling",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test", "OTEL_BSP_SCHEDULE_DELAY": "3600000",
        "OTEL_TRACES_SAMPLER": "parentbased_always_on", "WORKERS": "1", "ARBITER_SMALL_BODY_BYTES": str(len(EXAMPLE)),
    }  # fmt: skip
    with running(new_database(), tmp_path_factory.mktemp("traced"), **given) as live:
        yield live


@pytest.fixture(scope="module")
def spans(service: Live, collector: Collector) -> dict[str, list[Span]]:
    """Of each request that was made, by the trace that its caller began; the service has been stopped since."""
    large = json.dumps({**json.loads(EXAMPLE), "now": "2026-11-22T08:00:00Z"}, indent=4).encode()
    bodies = {"small": EXAMPLE, "large": large, "wrong": b'{"engine": "kueue", "asks": 3}', "unsampled": EXAMPLE}
    with httpx2.Client(base_url=service.address, timeout=60) as client:
        for number, (name, body) in enumerate(bodies.items()):
            sampled = "00" if name == "unsampled" else "01"
            headers = {"traceparent": f"00-{TRACE[:-1]}{number}-{CALLER}-{sampled}", "x-request-id": name}
            client.post("/v1/decisions", content=body, headers=headers | {"content-type": "application/json"})
        client.get("/healthz", headers={"traceparent": f"00-{TRACE[:-1]}9-{CALLER}-01"})
        client.get("/v1/decisions", headers={"x-request-id": "alone"})
    service.process.terminate()
    service.process.wait(60)
    found = collector.wait("POST /v1/decisions", "GET /v1/decisions", "log")
    return {
        name: [span for span in found if span.trace == f"{TRACE[:-1]}{number}"] for number, name in enumerate(bodies)
    } | {"others": [span for span in found if not span.trace.startswith(TRACE[:-1])],
         "health": [span for span in found if span.trace == TRACE[:-1] + "9"]}  # fmt: skip


def root(spans: list[Span]) -> Span:
    (found,) = (span for span in spans if span.name.startswith(("POST", "GET")))
    return found


@pytest.mark.parametrize("name", ["small", "large"])
def test_a_decision_is_a_span_under_the_callers_with_one_a_stage(spans: dict[str, list[Span]], name: str) -> None:
    found = root(spans[name])
    assert (found.name, found.parent, found.kind, found.is_error) == ("POST /v1/decisions", CALLER, 2, False)
    assert found.attributes["http.route"] == "/v1/decisions"
    assert found.attributes["http.response.status_code"] == 200
    assert found.attributes["arbiter.request_id"] == name
    stages = [span for span in spans[name] if span is not found]
    assert {span.name for span in stages} >= STAGES | {"log"}
    assert all(span.parent == found.id and not span.is_error for span in stages)
    # One that took longer than expected began again: the last four count.
    inside = [span for span in stages if span.name in STAGES]
    assert [span.name for span in sorted(inside, key=lambda span: span.begin)][-4:] == [
        "decode", "compile", "solve", "encode"]  # fmt: skip
    for span in inside:
        assert (
            found.begin - 1e6
            <= span.begin
            <= span.begin + span.seconds * 1e9
            <= found.begin + found.seconds * 1e9 + 1e6
        )


def test_a_worker_tells_of_its_stages(spans: dict[str, list[Span]], service: Live) -> None:
    where = {name: {span.attributes["process.pid"] for span in spans[name] if span.name in STAGES}
             for name in ("small", "large")}  # fmt: skip
    assert service.process.pid in where["small"]
    assert len(where["large"]) == 1
    assert service.process.pid not in where["large"]
    assert "waiting" in {span.name for span in spans["large"]}


def test_a_stage_that_fails_says_so(spans: dict[str, list[Span]]) -> None:
    found = root(spans["wrong"])
    assert found.attributes["http.response.status_code"] == 422
    assert not found.is_error  # the caller's mistake is not the service's
    (decode,) = (span for span in spans["wrong"] if span.name == "decode")
    assert decode.is_error
    assert decode.attributes["error.type"] in ("InvalidInput", "Malformed")
    assert "solve" not in {span.name for span in spans["wrong"]}


def test_what_a_caller_does_not_sample_and_health_leave_no_trace(spans: dict[str, list[Span]]) -> None:
    assert spans["unsampled"] == []
    assert spans["health"] == []


def test_without_a_caller_a_trace_begins_here(spans: dict[str, list[Span]], collector: Collector) -> None:
    found = root(spans["others"])
    assert (found.name, found.parent) == ("GET /v1/decisions", "")
    assert collector.resource["service.name"] == "arbiter"
    assert collector.resource["deployment.environment"] == "test"
    assert collector.resource["service.version"]
    assert "x-tenant: scheduling" in collector.headers


def test_a_collector_that_is_away_costs_no_answer_and_no_patience(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "WORKERS": "0"}
    with running(new_database(), tmp_path, **given) as live:
        headers = {"content-type": "application/json"}
        assert (
            httpx2.post(f"{live.address}/v1/decisions", content=EXAMPLE, headers=headers, timeout=60).status_code == 200
        )
        live.process.terminate()
        live.process.wait(60)
        assert live.process.returncode == 0


def test_nothing_of_it_is_imported_where_nobody_wants_traces() -> None:
    code = (
        "import sys; from app.base.settings import Settings; from app.service.main import create_app;"
        "create_app(Settings());"
        "loaded = ('opentelemetry.sdk', 'opentelemetry.exporter');"
        "sys.exit(any(name.startswith(loaded) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={}, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("given", "wanted", "why_not"),
    [
        ({}, False, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True, None),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, None),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False, None),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False, None),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, "zipkin"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False, "grpc"),
    ],
)
def test_traces_are_wanted_as_the_specification_says(
    given: dict[str, str], wanted: bool, why_not: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SDK_DISABLED", "TRACES_EXPORTER", "EXPORTER_OTLP_ENDPOINT", "EXPORTER_OTLP_TRACES_ENDPOINT",
                 "EXPORTER_OTLP_PROTOCOL", "EXPORTER_OTLP_TRACES_PROTOCOL"):  # fmt: skip
        monkeypatch.delenv(f"OTEL_{name}", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found, said = traces_wanted()
    assert found is wanted
    assert said is None if why_not is None else why_not in (said or "")
