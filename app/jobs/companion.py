"""How many jobs wait, run and have ended, for Prometheus: counted in the database when it is asked.

The worker that a process starts beside itself: it ends with that process, and is replaced when it dies.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.base.errors import Unavailable
from app.base.installation import python
from app.db.database import Database
from app.jobs import repository

_SECONDS = 1.0
"""For the database; a scrape without these says more than one that comes too late."""


class Census(Collector):
    """The jobs of ``database``; nothing while it is away or not migrated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[GaugeMetricFamily]:
        """The families without samples, so that registering asks nothing of the database."""
        labels = ["kind", "status"]
        return [
            GaugeMetricFamily("arbiter_jobs", "Jobs that the database keeps.", labels=labels),
            GaugeMetricFamily("arbiter_jobs_seconds", "What those that ended took, summed.", labels=labels),
            GaugeMetricFamily(
                "arbiter_jobs_oldest_seconds", "How long the oldest that waits has waited.", labels=["kind"]
            ),
        ]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Those of now."""
        try:
            with self._database.session(_SECONDS) as session:
                rows = repository.census(session)
        except Unavailable:
            return
        count, seconds, oldest = self.describe()
        for row in rows:
            count.add_metric([row.kind, row.status], row.jobs)
            if row.status == "queued":
                oldest.add_metric([row.kind], row.oldest)
            elif row.seconds is not None:
                seconds.add_metric([row.kind, row.status], row.seconds)
        yield from (count, seconds, oldest)


_PATIENCE = 3.0
"""Seconds that it has to give back its job."""
_PAUSE = 1.0
"""Before the next one is started."""
_STEADY_SECONDS = 5.0
"""After which one that was started in place of another counts as able."""

log = structlog.stdlib.get_logger("arbiter.worker")


class Companion:
    """Runs ``python -m module``. It reads ``settings``, a line of JSON, from its standard input, and ends when that
    is closed: no worker outlives a service that was killed."""

    def __init__(self, module: str, settings: str, name: str = "background") -> None:
        self.name = name
        self._failing: datetime | None = None
        self._began = 0.0
        self._command = [*python(), "-m", module]
        self._settings = settings.encode() + b"\n"
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, name="companion", daemon=True)

    def failing(self) -> datetime | None:
        """Since when no process of it has lived for some seconds; None: it is able, or has only begun."""
        process = self._process
        lives = process is not None and process.poll() is None
        if lives and time.monotonic() - self._began >= _STEADY_SECONDS:
            self._failing = None
        return self._failing

    def start(self) -> None:
        """Start it, and whenever it has ended start another."""
        self._thread.start()

    def run(self) -> None:
        """Start it, and close it once this process is told to end."""
        told = threading.Event()

        def end(_: int, __: FrameType | None) -> None:
            told.set()

        for signalled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signalled, end)
        self.start()
        told.wait()
        self.close()

    def close(self) -> None:
        """Let it give back its job and end."""
        self._closing.set()
        process = self._process
        if process is not None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
        if self._thread.ident is not None:
            self._thread.join(_PAUSE)

    def _started(self) -> subprocess.Popen[bytes]:
        """In a session of its own: what a terminal tells the service is for the service to pass on."""
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)

    def _watch(self) -> None:
        while not self._closing.is_set():
            self._began = time.monotonic()
            process = self._process = self._started()
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.write(self._settings)
                process.stdin.flush()
            if self._closing.is_set():
                process.terminate()
            code = process.wait()
            process.stdin.close()
            self._failing = self.failing() or datetime.now(UTC)
            if not self._closing.wait(_PAUSE):
                log.warning("worker ended, another is started", code=code)
