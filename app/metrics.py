"""Prometheus metrics, what Arbiter counts about its own decisions, and ``GET /metrics``."""

from collections.abc import Callable, Mapping
from typing import Protocol

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from app.base import installed_version
from app.base.ticket import CLASSES, Class
from app.http.openapi import VERSION, operation
from app.http.routing import service

_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Heads(Protocol):
    """What is known of the stored configurations."""

    def is_stale(self, seconds: float) -> bool:
        """Whether the database could not be followed for so long."""
        ...

    @property
    def age(self) -> float:
        """Seconds since names were last known to mean what the database says."""
        ...

    def __len__(self) -> int: ...


class Workers(Protocol):
    """Who answers."""

    def workers(self) -> tuple[int, int]:
        """Processes that run, and how many of them are at work."""
        ...

    def waiting(self) -> Mapping[Class, int]:
        """How many wait, by class."""
        ...

    def snapshot_totals(self) -> tuple[int, int]:
        """Snapshots in memory, and their estimated bytes."""
        ...


class Metrics:
    """One set of metrics with a registry of its own, so that two services in one process don't share counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build = Gauge("arbiter_build_info", "1; what runs.", ["version", "interface"], registry=self.registry)
        build.labels(installed_version(), VERSION).set(1)
        self._counters: dict[tuple[Counter | str, ...], Counter] = {}
        self._histograms: dict[tuple[Histogram | str, ...], Histogram] = {}
        self.requests = Counter("arbiter_requests", "Requests answered.", ["status"], registry=self.registry)
        self.durations = Histogram(
            "arbiter_request_seconds", "From a request's head to the end of its answer.", ["method", "route"],
            buckets=_LATENCY, registry=self.registry,
        )  # fmt: skip
        self.refusals = Counter(
            "arbiter_refusals", "Requests refused: unauthenticated, or forbidden to their token.",
            ["kind"], registry=self.registry,
        )  # fmt: skip
        self.decisions = Counter(
            "arbiter_decisions", "Asks answered; reason is that of the ask's first condition.",
            ["engine", "outcome", "reason"], registry=self.registry,
        )  # fmt: skip
        self.victims = Counter(
            "arbiter_victims", "Evictions that answers planned.", ["engine", "reason"], registry=self.registry
        )
        self.extender = Counter(
            "arbiter_extender_requests", "Preemptions that kube-scheduler asked about: answered, or what came instead.",
            ["outcome"], registry=self.registry,
        )  # fmt: skip
        self.effects = Counter(
            "arbiter_extender_effects", "What the guard made of what kube-scheduler would have done without it.",
            ["effect"], registry=self.registry,
        )  # fmt: skip
        self.shadow = Counter(
            "arbiter_shadow", "Real preemptions compared with Arbiter's, by outcome and cause.",
            ["engine", "outcome", "cause"], registry=self.registry,
        )  # fmt: skip
        self.stages = {
            "decode": self._latency("decode", "Reading and validating a decision's body."),
            "compile": self._latency("compile", "Compiling its configuration and state."),
            "solve": self._latency("solve", "Deciding, and verifying the answer."),
            "encode": self._latency("encode", "Writing the answer."),
        }
        self.log_written = Counter("arbiter_decision_log_written", "Log entries stored.", registry=self.registry)
        self.log_dropped = Counter(
            "arbiter_decision_log_dropped", "Log entries lost: queue_full, refused by the database, or shutdown.",
            ["cause"], registry=self.registry,
        )  # fmt: skip
        self.log_waiting = Gauge(
            "arbiter_decision_log_waiting", "Log entries that wait to be stored.", registry=self.registry
        )

    def follow(self, heads: Heads, stale_seconds: float) -> None:
        """Show how well the database's configurations are followed."""
        stale = Gauge(
            "arbiter_configurations_stale", "1 while names mean what they last meant: the database can't be followed.",
            registry=self.registry,
        )  # fmt: skip
        stale.set_function(lambda: float(heads.is_stale(stale_seconds)))
        age = Gauge(
            "arbiter_configurations_age_seconds", "Since names were last known to mean what the database says.",
            registry=self.registry,
        )  # fmt: skip
        age.set_function(lambda: heads.age)
        known = Gauge("arbiter_configurations_known", "Configurations known by name.", registry=self.registry)
        known.set_function(lambda: float(len(heads)))

    def work(self, dispatcher: Workers) -> None:
        """Show who waits, by class, who works, and what is kept."""
        gauge = Gauge(
            "arbiter_requests_waiting", "Requests that wait for a thread or a worker, by class.", ["class"],
            registry=self.registry,
        )  # fmt: skip
        for of in CLASSES:
            gauge.labels(of).set_function(lambda of=of: dispatcher.waiting()[of])
        self._gauge("arbiter_workers", "Worker processes that run.", lambda: dispatcher.workers()[0])
        self._gauge("arbiter_workers_busy", "Worker processes that answer a request.", lambda: dispatcher.workers()[1])
        self._gauge("arbiter_snapshots", "Snapshots in memory.", lambda: dispatcher.snapshot_totals()[0])
        self._gauge("arbiter_snapshots_bytes", "Their estimated memory.", lambda: dispatcher.snapshot_totals()[1])

    def _gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        Gauge(name, what, registry=self.registry).set_function(value)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route``: the template of its path."""
        self._counter(self.requests, str(status)).inc()
        self._histogram(self.durations, method, route).observe(seconds)

    def _latency(self, stage: str, what: str) -> Histogram:
        return Histogram(
            f"arbiter_decision_{stage}_seconds", what, ["engine"], buckets=_LATENCY, registry=self.registry
        )

    def decided(
        self, engine: str, outcomes: list[str], reasons: list[str], victims: dict[str, int], seconds: dict[str, float]
    ) -> None:
        """Count one answered decision request. ``victims``: evictions by reason; ``seconds``: by stage."""
        for outcome, reason in zip(outcomes, reasons, strict=True):
            self._counter(self.decisions, engine, outcome, reason).inc()
        for reason, count in victims.items():
            self._counter(self.victims, engine, reason).inc(count)
        for stage, spent in seconds.items():
            self._histogram(self.stages[stage], engine).observe(spent)

    def _counter(self, metric: Counter, *labels: str) -> Counter:
        """That of these labels; asking the metric itself each time takes longer than counting does."""
        key = (metric, *labels)
        if (known := self._counters.get(key)) is None:
            known = self._counters[key] = metric.labels(*labels)
        return known

    def _histogram(self, metric: Histogram, *labels: str) -> Histogram:
        key = (metric, *labels)
        if (known := self._histograms.get(key)) is None:
            known = self._histograms[key] = metric.labels(*labels)
        return known

    def shadowed(self, engine: str, outcome: str, cause: str) -> None:
        """Count one real preemption that was compared."""
        self._counter(self.shadow, engine, outcome, cause).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


router = APIRouter(tags=["operations"])


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Prometheus metrics",
    response_class=PlainTextResponse,
    **operation(needs="read", responses={200: {"text/plain": {"schema": {"type": "string"}}}}),
)
def metrics(request: Request) -> Response:
    """Counters and latency histograms in Prometheus' text format."""
    return Response(service(request, Metrics).text(), media_type=CONTENT_TYPE_LATEST)
