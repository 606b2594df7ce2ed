"""A follower's own Prometheus metrics, as they are when they are asked for."""

import socket
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.following.mirror import Followed


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a follower is. ``lag``, ``age``: in seconds; ``age`` None: nothing is kept yet; ``findings`` by severity."""

    lag: float
    age: float | None
    kinds: list[Followed]
    lists: Counter[str]
    findings: Counter[str]
    writer: bool


class Watch(Collector):
    """The metrics of the follower of ``cluster``."""

    def __init__(self, cluster: str, pulse: Callable[[], Pulse]) -> None:
        self._cluster = cluster
        self._pulse = pulse

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""
        pulse = self._pulse()
        lag = "How long the oldest change of the last batch waited to be kept; 0 once nothing has changed since."
        yield self._gauge("lag_seconds", lag, pulse.lag)
        if pulse.age is not None:
            yield self._gauge("age_seconds", "Since the snapshot was all that had been heard.", pulse.age)
        yield self._gauge("writer", "1 for the follower that writes the configuration.", float(pulse.writer))
        yield self._counter("lists", "Lists read again and snapshots put again.", "reason", pulse.lists)
        changes = {of.kind.name: of.changes for of in pulse.kinds}
        yield self._counter("changes", "Changes of objects heard.", "kind", changes)
        breaks = {of.kind.name: of.breaks for of in pulse.kinds}
        yield self._counter("breaks", "Lists and watches that broke.", "kind", breaks)
        objects = {of.kind.name: float(len(of.items)) for of in pulse.kinds}
        yield self._gauges("objects", "Objects known.", "kind", objects)
        broken = {of.kind.name: float(of.error is not None) for of in pulse.kinds}
        yield self._gauges("broken", "1 while a kind can't be followed.", "kind", broken)
        findings = {severity: float(pulse.findings[severity]) for severity in ("error", "warning", "info")}
        yield self._gauges("findings", "What could not be carried over.", "severity", findings)

    def _gauge(self, name: str, what: str, value: float) -> Metric:
        made = GaugeMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster"])
        made.add_metric([self._cluster], value)
        return made

    def _gauges(self, name: str, what: str, label: str, values: dict[str, float]) -> Metric:
        made = GaugeMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster", label])
        for key, value in values.items():
            made.add_metric([self._cluster, key], value)
        return made

    def _counter(self, name: str, what: str, label: str, values: dict[str, int] | Counter[str]) -> Metric:
        made = CounterMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster", label])
        for key, value in sorted(values.items()):
            made.add_metric([self._cluster, key], value)
        return made


def serve(cluster: str, pulse: Callable[[], Pulse], port: int) -> int:
    """Serve them at ``port`` (0: any that is free) of all addresses until the process ends; the port. Raises
    OSError."""
    registry = CollectorRegistry()
    registry.register(Watch(cluster, pulse))
    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    server, _ = start_http_server(port, everywhere, registry)
    return int(server.server_port)
