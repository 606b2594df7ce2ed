"""Background work: a process of its own that does the jobs of the database, so that decisions stay fast.

``arbiter worker`` and ``arbiter serve`` each start one beside themselves, which ends when they do, and another when it
has ended over a job that did not stop.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from types import FrameType
from typing import NoReturn

import msgspec

from app.answering.sources import Compiled
from app.base import logs
from app.base.decoding import prepare_types
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.configurations.service import Configurations
from app.db.database import Database, is_newer
from app.decisions.kept import Resolver
from app.following.replaying import judgements
from app.jobs import repository
from app.jobs.worker import Limits, Worker
from app.simulations import service
from app.simulations.service import KIND
from app.studies import backtesting, study_jobs, sweep_jobs
from app.studies.backtesting import Backtesting
from app.studies.exposing import Exposing
from app.studies.forecasting import Forecasting
from app.traces import repository as traces_repository
from app.traces.ingest import Limits as TraceLimits
from app.traces.router import Traces

_NICE = 10
"""Decisions go first where both want the processor."""
_PRUNE_SECONDS = 60.0
_STUCK = 75
"""The exit status of a process that ends because a job does not."""


def run(settings: Settings, parent: int) -> int:
    """Do jobs until told to stop; the exit status. ``parent``: a file descriptor that is closed when whoever started
    this process is gone."""
    logs.configure(settings)
    prepare_types()
    with suppress(OSError):
        os.nice(_NICE)
    database = Database(settings.database_url, settings)
    worker = worker_of(database, settings, lambda: os._exit(_STUCK))

    def stop(_: int, __: FrameType | None) -> None:
        worker.stop()

    for signalled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signalled, stop)
    end_with(parent, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        worker.run(_Pruning(database, settings))
    finally:
        database.close()
    return 0


def worker_of(database: Database, settings: Settings, abandon: Callable[[], None]) -> Worker:
    """Whoever does the jobs of ``database``, put together; ``abandon`` is called where one does not stop."""
    traces = Traces(database, TraceLimits(settings.trace_jobs, settings.trace_bytes))
    stored = Configurations(database, settings.configuration_cache_bytes)
    configurations = Compiled(stored)
    kinds = {
        KIND: service.Simulating(configurations, traces.opened, service.Limits(settings.simulation_days)),
        study_jobs.FORECASTS: Forecasting(configurations, settings.simulation_days),
        study_jobs.EXPOSURES: Exposing(configurations),
        backtesting.KIND: Backtesting(database, configurations, Resolver(database, stored), judgements),
        sweep_jobs.KIND: sweep_jobs.Sweeping(traces, settings.simulation_days),
    }
    return Worker(database, kinds, Limits(settings.simulation_seconds, settings.simulation_bytes), abandon)


class _Pruning:
    """Waits for a database that has our tables; then, now and then, forgets what is past retention."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._age = timedelta(days=settings.simulation_retention_days)
        self._keep = settings.simulation_retention_entries
        self._next = 0.0
        self._ready = False

    def __call__(self) -> None:
        """Raises Unavailable."""
        if not self._ready:
            current, needed = self._database.migration_state()
            self._ready = current == needed or is_newer(current)
            if not self._ready:
                raise Unavailable("the database is not migrated yet")
        if monotonic() < self._next:
            return
        self._next = monotonic() + _PRUNE_SECONDS
        with self._database.session() as session:
            if repository.prune(session, datetime.now(UTC) - self._age, self._keep):
                traces_repository.sweep(session)


def end_with(stream: int, stop: Callable[[], None]) -> None:
    """Call ``stop`` once the other end of ``stream`` is closed: whoever started this process is gone."""

    def watch() -> None:
        with suppress(OSError):
            while os.read(stream, 4096):
                pass
        stop()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def main() -> NoReturn:
    """Beside a service: settings come as a line on standard input, whose end is the end of the service."""
    given = msgspec.json.decode(sys.stdin.buffer.readline())
    sys.exit(run(Settings(**given), sys.stdin.fileno()))


if __name__ == "__main__":
    main()
