# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""The process beside the service: what it does, when it cleans up, and when it ends."""

import os
import signal
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.jobs.worker import Limits
from app.service import background
from tests.support.instead import Clock, Instead, Machine

NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Tables:
    """A database, and what is forgotten of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current, self.needed = "0007", "0007"
        self.pruned: list[Any] = []
        self.swept = 0
        self.gone = 0
        self.clock = Clock(monkeypatch)
        self.clock.drives(background)
        self.closed = 0
        Instead(monkeypatch)(background, datetime=SimpleNamespace(now=NOW.astimezone))
        Instead(monkeypatch)(background.repository, prune=self._prune)
        Instead(monkeypatch)(background.traces_repository, sweep=self._sweep)

    def migration_state(self) -> tuple[str, str]:
        return self.current, self.needed

    @contextmanager
    def session(self) -> Any:
        yield self

    def close(self) -> None:
        self.closed += 1

    def _prune(self, session: object, before: datetime, keep: int) -> int:
        assert session is self
        self.pruned.append((before, keep))
        return self.gone

    def _sweep(self, session: object) -> None:
        assert session is self
        self.swept += 1


SETTINGS = Settings(simulation_retention_days=2, simulation_retention_entries=7)


def test_once_a_minute_what_is_past_its_time_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: Any = Tables(monkeypatch)
    tables.clock.now = 100.0
    prune = background._Pruning(tables, SETTINGS)
    prune()
    assert tables.pruned == [(NOW - timedelta(days=2), 7)]
    tables.clock.now = 159.9
    prune()
    assert len(tables.pruned) == 1
    tables.clock.now = 160.0
    prune()
    assert (len(tables.pruned), tables.swept) == (2, 0), "traces are swept where jobs are gone"
    tables.clock.now, tables.gone = 220.0, 1
    prune()
    assert (len(tables.pruned), tables.swept) == (3, 1)


def test_nothing_is_done_before_the_tables_are_ours(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    tables: Any = Tables(monkeypatch)
    tables.current = "0001"
    instead(background, is_newer=lambda one: one == "9999")
    prune = background._Pruning(tables, SETTINGS)
    for _ in range(2):
        with pytest.raises(Unavailable, match="the database is not migrated yet"):
            prune()
    tables.current = "9999"
    prune()
    tables.current = "0001"
    tables.clock.now = 60.0
    prune()
    assert len(tables.pruned) == 2, "once they were there they stay"


def test_it_ends_with_whoever_started_it() -> None:
    told = threading.Event()
    reading, writing = os.pipe()
    background.end_with(reading, told.set)
    os.write(writing, b"a line" * 2000)
    assert not told.wait(0.05)
    os.close(writing)
    assert told.wait(60)
    os.close(reading)
    gone = threading.Event()
    background.end_with(reading, gone.set)
    assert gone.wait(60), "a stream that can't be read has nobody at its end either"


def test_it_works_until_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    tables, told = Tables(monkeypatch), list[Any]()
    handlers: dict[int, Any] = {}

    class Worker:
        def stop(self) -> None:
            told.append("stopped")

        def run(self, pruning: Any) -> None:
            assert isinstance(pruning, background._Pruning)
            assert set(handlers) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
            for handler in handlers.values():
                handler(0, None)
            ending()
            abandon()
            raise ZeroDivisionError

    def nice(by: int) -> None:
        told.append(by)
        raise PermissionError

    fake = SimpleNamespace(nice=nice, kill=lambda *what: told.append(what), getpid=lambda: 7, _exit=told.append)
    ends: list[Any] = []
    instead(background, os=fake)
    instead(background.signal, signal=handlers.__setitem__)
    instead(background.logs, configure=told.append)
    instead(
        background,
        Database=lambda url, settings: tables,
        end_with=lambda stream, stop: ends.append((stream, stop)),
    )
    made: list[Any] = []
    instead(background, worker_of=lambda *given: made.append(given) or Worker())

    def ending() -> None:
        ((stream, stop),) = ends
        assert stream == 3
        stop()

    def abandon() -> None:
        ((database, settings, end),) = made
        assert (database, settings) == (tables, SETTINGS)
        end()

    with pytest.raises(ZeroDivisionError):
        background.run(SETTINGS, 3)
    assert told == [SETTINGS, 10, "stopped", "stopped", "stopped", (7, signal.SIGTERM), 75]
    assert tables.closed == 1
    instead(Worker, run=lambda self, pruning: None)
    assert background.run(SETTINGS, 3) == 0


def test_its_settings_come_on_standard_input(machine: Machine, instead: Instead) -> None:
    ran: list[Any] = []
    line = SETTINGS.model_dump_json().encode() + b"\n"
    stdin = SimpleNamespace(buffer=SimpleNamespace(readline=lambda: line), fileno=lambda: 5)
    machine.reads(stdin)
    instead(background, run=lambda *given: ran.append(given) or 4)
    with pytest.raises(SystemExit) as ended:
        background.main()
    assert (ended.value.code, ran) == (4, [(Settings(**msgspec.json.decode(line)), 5)])
    assert ran[0][0].simulation_retention_days == 2


def test_a_worker_does_every_kind_of_job_within_the_settings(instead: Instead) -> None:
    made: list[Any] = []
    database: Any = object()
    instead(background, Worker=lambda *given: made.append(given))
    settings = Settings(simulation_seconds=5, simulation_bytes=6, simulation_days=3)
    background.worker_of(database, settings, print)
    ((given, kinds, limits, abandon),) = made
    assert (given, abandon, limits) == (database, print, Limits(5, 6))
    assert set(kinds) == {
        background.KIND,
        background.study_jobs.FORECASTS,
        background.study_jobs.EXPOSURES,
        background.backtesting.KIND,
        background.sweep_jobs.KIND,
    }
