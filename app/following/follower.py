"""The loop of a follower: wait for changes, translate, keep, report; its own metrics, and its process.

``python -m app.following.follower``: one that a service runs beside itself, and that ends with it.
"""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from types import FrameType

import msgspec
import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.base.decoding import prepare_types
from app.clusters.schemas import USE_SECONDS, ClusterLease, ClusterReport, FollowedKind, Stage
from app.following.grouped import Translated, sayable
from app.following.history import KEPT_SECONDS, QUIET_SECONDS, History
from app.following.keeping import ApiError, ApiUnavailable, Arbiter, Keeper, NotYet, Reply
from app.following.mirror import Followed, Mirror, View, Watcher
from app.following.objects import Broken, followed
from app.following.reading import Reader, connect
from app.following.shadowing import Shadowing
from app.following.translator import Translator, use_of
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding

MODULE = "app.following.follower"
_LOOK_SECONDS = 3600.0
_NEW, _TIMES, _NEVER = 10_000, 20, 1_000_000_000
_TURN_SECONDS = 0.0005


class Tidy:
    """How Python runs a process that does nothing but follow: for all of it; to be called now and then.

    What was read stays, so that looking through all of it for garbage takes seconds, and finds nothing: nothing that is
    kept of a cluster goes round in circles, and what is replaced is freed without. So only what is new is looked
    through, a little at a time, and all of it once in an hour.

    While one thread translates, others hear of changes, and wait for a turn after each piece that they read: with
    Python's usual 5 ms they would hear of two hundred a second.
    """

    def __init__(self) -> None:
        gc.set_threshold(_NEW, _TIMES, _NEVER)
        sys.setswitchinterval(_TURN_SECONDS)
        self._looked = time.monotonic()

    def __call__(self) -> None:
        """Look through everything if it is time."""
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            gc.collect()
            self._looked = time.monotonic()


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a follower is. ``lag``, ``age``: in seconds; ``age`` None: nothing is kept yet; ``findings`` by severity;
    ``held``: for how long the configuration has stayed as it was because what the cluster says is refused."""

    lag: float
    age: float | None
    kinds: list[Followed]
    lists: Counter[str]
    findings: Counter[str]
    writer: bool
    held: float = 0.0


class Watch(Collector):
    """The Prometheus metrics of the follower of ``cluster``, as they are when they are asked for."""

    def __init__(self, cluster: str, pulse: Callable[[], Pulse]) -> None:
        self._cluster = cluster
        self._pulse = pulse

    def collect(self) -> Iterable[Metric]:
        """All of them, now."""
        pulse = self._pulse()
        lag = "How long the oldest change of the last batch waited to be kept; 0 once nothing has changed since."
        yield self._gauge("lag_seconds", lag, pulse.lag)
        if pulse.age is not None:
            yield self._gauge("age_seconds", "Since the snapshot was last known to be the cluster.", pulse.age)
        held = "Since the configuration stays as it was, because what the cluster says is refused; 0: it does not."
        yield self._gauge("configuration_held_seconds", held, pulse.held)
        yield self._gauge("writer", "1 for the follower that writes the configuration.", float(pulse.writer))
        yield self._counter("lists", "Lists read again and snapshots put again.", "reason", pulse.lists)
        changes = {of.kind.name: of.changes for of in pulse.kinds}
        yield self._counter("changes", "Changes of objects heard.", "kind", changes)
        breaks = {of.kind.name: of.breaks for of in pulse.kinds}
        yield self._counter("breaks", "Lists and watches that broke.", "kind", breaks)
        now = datetime.now(UTC)
        ages = {of.kind.name: (now - of.heard_at).total_seconds() for of in pulse.kinds if of.heard_at is not None}
        yield self._gauges("kind_age_seconds", "Since a kind was last known to be up to date.", "kind", ages)
        objects = {of.kind.name: float(len(of.items)) for of in pulse.kinds}
        yield self._gauges("objects", "Objects known.", "kind", objects)
        broken = {of.kind.name: float(of.error is not None) for of in pulse.kinds}
        yield self._gauges("broken", "1 while a kind can't be followed.", "kind", broken)
        findings = {severity: float(pulse.findings[severity]) for severity in ("error", "warning", "info")}
        yield self._gauges("findings", "What could not be carried over.", "severity", findings)

    def _gauge(self, name: str, what: str, value: float) -> Metric:
        metric = GaugeMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster"])
        metric.add_metric([self._cluster], value)
        return metric

    def _gauges(self, name: str, what: str, label: str, values: dict[str, float]) -> Metric:
        metric = GaugeMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster", label])
        for key, value in values.items():
            metric.add_metric([self._cluster, key], value)
        return metric

    def _counter(self, name: str, what: str, label: str, values: dict[str, int] | Counter[str]) -> Metric:
        metric = CounterMetricFamily(f"arbiter_follower_{name}", what, labels=["cluster", label])
        for key, value in sorted(values.items()):
            metric.add_metric([self._cluster, key], value)
        return metric


def serve(cluster: str, pulse: Callable[[], Pulse], port: int) -> int:
    """Serve them at ``port`` (0: any that is free) of all addresses until the process ends; the port. Raises
    OSError."""
    registry = CollectorRegistry()
    registry.register(Watch(cluster, pulse))
    everywhere = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    server, _ = start_http_server(port, everywhere, registry)
    return int(server.server_port)


_LAST_SECONDS = 1.0
"""For what is on its way when a follower is told to end: all that it has can be read again."""


def end_with_signals(follower: "Follower") -> None:
    """Let ``follower`` end when the process is told to, within two seconds also where a server does not answer."""

    def end(_: int, __: FrameType | None) -> None:
        end_soon(follower)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def end_soon(follower: "Follower") -> None:
    """Stop ``follower``; the process is gone soon after it, whatever it waits for."""
    follower.stop()
    timer = threading.Timer(_LAST_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()


BATCH_SECONDS = 0.2
"""The shortest time between two batches."""
REPORT_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_HOPELESS_SECONDS = 20.0
SILENT_SECONDS = 120.0
"""So long without one whole answer of the API server nothing more will come of it."""
MOST_FINDINGS = 1000
_MOST_SAID = 500

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Task:
    """What is followed, and where it is kept. ``shadow``: whether real preemptions are compared; ``quiet``: the seconds
    after which no further eviction of one is expected; ``namespace``: of the system, None: the usual one."""

    engine: EngineName
    cluster: str
    snapshot: str
    configuration: str
    shadow: bool = False
    namespace: str | None = None
    quiet: float = QUIET_SECONDS
    follower: str = f"{socket.gethostname()}-{os.getpid()}"


class Follower:
    """Follows one cluster until it is stopped."""

    def __init__(self, task: Task, reader: Reader, arbiter: Arbiter, tidy: Callable[[], object] | None = None) -> None:
        """``tidy``: called again and again, between batches."""
        prepare_types()
        self._task = task
        self._tidy = tidy
        self._reader = reader
        self._arbiter = arbiter
        self._kinds = followed(task.engine, shadow=task.shadow, namespace=task.namespace)
        self._mirror = Mirror(self._kinds, History(task.engine, task.quiet, window=KEPT_SECONDS if task.shadow else 0))
        self._keeper = Keeper(arbiter, task.configuration, task.snapshot)
        self._translator = Translator(task.engine)
        self._writer = False
        self._error: str | None = None
        self._translated: Translated | None = None
        self._synced_at: datetime | None = None
        self._lag = 0.0
        self._reported = 0.0
        self._used: float | None = None
        self._wrong_since: float | None = None
        self._answers, self._answered = 0, time.monotonic()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End soon."""
        self._stopping.set()
        self._mirror.wake()

    def pulse(self) -> Pulse:
        """How it is, for who watches it."""
        now, held_since = datetime.now(UTC), self._keeper.held_since
        age = None if self._synced_at is None else (now - self._synced_at).total_seconds()
        return Pulse(
            lag=self._lag, age=age, kinds=self._mirror.kinds(), lists=self._lists(),
            findings=Counter(finding.severity for finding in self._findings()),
            writer=self._writer, held=0.0 if held_since is None else (now - held_since).total_seconds(),
        )  # fmt: skip

    def run(self, *, once: bool = False) -> str | None:
        """Follow; ``once``: until everything has been written once, or why that is not to be had."""
        watchers: list[Watcher | Shadowing] = [Watcher(kind, self._reader, self._mirror) for kind in self._kinds]
        if not once:
            watchers.append(self._shadowing())
        for watcher in watchers:
            watcher.start()
        try:
            while not self._stopping.is_set():
                self._report()
                self._mirror.wait(REPORT_SECONDS / 2)
                self._step()
                self._use()
                if self._tidy is not None:
                    self._tidy()
                if once and self._synced_at is not None:
                    self._report(now=True)
                    return None
                if once and (why := self._hopeless()) is not None:
                    return why
            return None
        finally:
            for watcher in watchers:
                watcher.stop()

    def _hopeless(self) -> str | None:
        """What has been wrong for so long that it will not mend itself."""
        errors, now = self._errors(), time.monotonic()
        if self._answers != self._reader.answers or self._mirror.complete():
            self._answers, self._answered = self._reader.answers, now
        elif now - self._answered >= SILENT_SECONDS:
            return "; ".join(errors) or f"the API server has answered nothing whole for {SILENT_SECONDS:g} s"
        if not errors:
            self._wrong_since = None
            return None
        self._wrong_since = self._wrong_since or now
        return "; ".join(errors) if now - self._wrong_since >= _HOPELESS_SECONDS else None

    def _errors(self) -> list[str]:
        kinds = [kind.error for kind in self._mirror.kinds() if kind.error]
        return list(dict.fromkeys([*kinds, *([self._error] if self._error else [])]))

    def _shadowing(self) -> Shadowing:
        task = self._task
        return Shadowing(
            task.engine,
            task.cluster,
            task.configuration,
            self._mirror,
            self._arbiter,
            lambda: self._writer,
            shadow=task.shadow,
        )

    def _step(self) -> None:
        begun = time.monotonic()
        if (left := self._keeper.left()) is not None:
            self._unkept(left)
            return
        view = self._mirror.view()
        if view is None:
            self._stopping.wait(BATCH_SECONDS)
            return
        if view.since is None and self._error is None and not self._translator.due(view.now):
            self._synced_at, self._lag = self._mirror.known_at(), 0.0
            return
        try:
            self._keep(view)
        except (ApiUnavailable, ApiError, NotYet) as error:
            self._unkept(str(error))
            self._mirror.forget()
            return
        except Exception as error:  # an object like none before: the follower must not end with it
            log.exception("cluster.not_translated", cluster=self._task.cluster)
            self._unkept(f"{type(error).__name__}: {error}"[:_MOST_SAID])
            self._mirror.forget()
            return
        self._stopping.wait(max(0.0, BATCH_SECONDS - (time.monotonic() - begun)))

    def _unkept(self, error: str) -> None:
        """Say so once, and wait."""
        if error != self._error:
            log.warning("cluster.not_kept", cluster=self._task.cluster, error=error)
        self._error = error
        self._stopping.wait(_RETRY_SECONDS)

    def _keep(self, view: View) -> None:
        known = self._mirror.known_at()
        self._translated = translated = self._translator.translate(view)
        if not self._writer:
            self._report(now=True)
        self._keeper.keep(translated, view.versions, writer=self._writer)
        self._error = None
        self._synced_at = known
        self._lag = 0.0 if view.since is None else time.monotonic() - view.since

    def _use(self) -> None:
        """Say what queues use, once in each interval. A service that can't hear it hears of the next."""
        interval = time.time() // USE_SECONDS
        snapshot = self._keeper.content()
        if not self._writer or snapshot is None or self._synced_at is None or interval == self._used:
            return
        self._used = interval
        with suppress(ApiUnavailable, ApiError):
            self._arbiter.ask("POST", "clusters", self._task.cluster, "use", body=use_of(snapshot, datetime.now(UTC)))

    def _report(self, *, now: bool = False) -> None:
        """Say how it is, and hear whether to write. Looks too whether the snapshot is still there."""
        if not now and time.monotonic() - self._reported < REPORT_SECONDS:
            return
        self._reported = time.monotonic()
        try:
            reply = self._tell(self._said())
            self._writer = msgspec.json.decode(reply.body, type=ClusterLease).writer
            if not self._keeper.check():
                self._mirror.forget()
        except (ApiUnavailable, ApiError) as error:
            self._writer = False
            self._error = str(error)

    def _tell(self, report: ClusterReport) -> Reply:
        """What is refused of it keeps nobody from the lease: then it is told without what objects say. Raises
        ApiUnavailable, ApiError."""
        try:
            return self._arbiter.ask("PUT", "clusters", self._task.cluster, body=report)
        except ApiError as refused:
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            said = f"what objects say can not be told: {refused}"
        short = msgspec.structs.replace(
            report, findings=[sayable(Finding(rule="refused", severity="error", pointer="", detail=said))],
            local_queues={}, priority_classes={}, workload_priority_classes={}, held_since=None,
        )  # fmt: skip
        return self._arbiter.ask("PUT", "clusters", self._task.cluster, body=short)

    def _findings(self) -> list[Finding]:
        translated = self._translated.findings if self._translated else ()
        return [*self._keeper.refused, *self._keeper.left_out(), *translated]

    def _lists(self) -> Counter[str]:
        return self._mirror.lists + self._keeper.puts

    def _said(self) -> ClusterReport:
        kinds = self._mirror.kinds()
        errors = self._errors()
        whole = all(kind.whole for kind in kinds if kind.kind.state)
        stage: Stage = "broken" if errors else "following" if whole and self._synced_at else "listing"
        translated, status = self._translated, self._keeper.status
        return ClusterReport(
            follower=self._task.follower,
            engine=self._task.engine,
            snapshot=self._task.snapshot,
            configuration=self._task.configuration,
            stage=stage,
            kinds=[
                FollowedKind(
                    kind=of.kind.name, api_version=of.api_version or of.kind.api_version(of.kind.versions[0]),
                    objects=len(of.items), resource_version=of.version, heard_at=of.heard_at,
                )
                for of in kinds if not of.absent
            ],
            counts=None if status is None else status.counts,
            generation=None if status is None else status.generation,
            synced_at=self._synced_at,
            held_since=self._keeper.held_since,
            lag_seconds=round(self._lag, 3),
            lists=dict(self._lists()),
            findings=self._findings()[:MOST_FINDINGS],
            error="; ".join(errors)[:2000].replace("\0", "\ufffd") or None,
            local_queues=translated.local_queues if translated else {},
            priority_classes=translated.priority_classes if translated else {},
            workload_priority_classes=translated.workload_priority_classes if translated else {},
        )  # fmt: skip


class Beside(msgspec.Struct, frozen=True):
    """What the service writes to its standard input, as a line. ``context``: of the kubeconfig; None: the usual one."""

    engine: EngineName
    cluster: str
    url: str
    token: str | None = None
    context: str | None = None


def run(wanted: Beside) -> int:
    """Follow until told to stop, or until standard input ends."""
    try:
        reader = Reader(connect(wanted.context))
    except Broken as error:
        sys.stderr.write(f"{wanted.cluster}: {error}\n")
        return 1
    task = Task(wanted.engine, wanted.cluster, wanted.cluster, wanted.cluster)
    follower = Follower(task, reader, Arbiter(wanted.url, wanted.token), Tidy())

    end_with_signals(follower)
    threading.Thread(target=_end_with_input, args=(follower,), daemon=True).start()
    follower.run()
    return 0


def _end_with_input(follower: Follower) -> None:
    sys.stdin.buffer.read()
    end_soon(follower)


if __name__ == "__main__":
    sys.exit(run(msgspec.json.decode(sys.stdin.buffer.readline(), type=Beside)))
