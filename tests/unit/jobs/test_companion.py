"""A worker beside a process: replaced when it dies, ended when the process is told to."""

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.jobs import service as companion
from app.jobs.service import Companion
from tests.support.bounds import Bounded
from tests.support.instead import Instead

GENEROUS = 60.0


@pytest.fixture
def handlers() -> Iterator[None]:
    kept = {told: signal.getsignal(told) for told in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for told, handler in kept.items():
        signal.signal(told, handler)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("handlers")
def test_one_that_dies_is_replaced_and_the_last_ends_with_whoever_started_it(tmp_path: Path, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=0.05)
    began = tmp_path / "began"
    began.touch()

    def tell() -> None:
        end = time.monotonic() + GENEROUS
        while len(began.read_text().splitlines()) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=tell, daemon=True).start()
    Companion("tests.unit.jobs.dying", json.dumps(str(began))).run()
    first, second = map(int, began.read_text().splitlines())
    assert first != second
    assert not alive(first)
    assert not alive(second)


class Process:
    """Stands for the worker's process. ``stubborn``: it does not end when it is asked to."""

    def __init__(self, command: list[str], *, stubborn: bool = False, deaf: bool = False) -> None:
        self.command, self.stdin = command, self
        self.how: dict[str, Any] = {}
        self.told: list[Any] = []
        self.closed = False
        self._stubborn, self._deaf = stubborn, deaf
        self.ended = threading.Event()

    def write(self, said: bytes) -> None:
        if self._deaf:
            raise BrokenPipeError
        self.told.append(said)

    def flush(self) -> None:
        self.told.append("flush")

    def close(self) -> None:
        time.sleep(0.01)  # whoever does not wait for the thread that does this goes on before it
        self.closed = True

    def terminate(self) -> None:
        self.told.append("terminate")
        if not self._stubborn:
            self.ended.set()

    def kill(self) -> None:
        self.told.append("kill")
        self.ended.set()

    def poll(self) -> int | None:
        return 75 if self.ended.is_set() else None

    def wait(self, seconds: float | None = None) -> int:
        if seconds is None:
            assert self.ended.wait(GENEROUS)
            return 75
        self.told.append(seconds)
        if not self.ended.is_set():
            raise companion.subprocess.TimeoutExpired("worker", seconds)
        return 75


class Started:
    """Every process that was started."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.processes: list[Process] = []
        self.next: dict[str, bool] = {}
        self.before: Any = None
        self.refused = 0
        Instead(patch)(companion.subprocess, Popen=self._start)

    def _start(self, command: list[str], **how: Any) -> Process:
        self.processes.append(Process(command, **self.next))
        self.processes[-1].how = how
        if self.before is not None:
            self.before()
        if self.refused > 0:
            self.refused -= 1
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return self.processes[-1]

    def until(self, count: int) -> Process:
        end = time.monotonic() + GENEROUS
        while len(self.processes) < count or "flush" not in self.processes[-1].told:
            assert time.monotonic() < end
            time.sleep(0.001)
        return self.processes[count - 1]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def test_a_worker_is_told_its_settings_and_asked_to_end_before_it_is_ended(started: Started, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=GENEROUS)
    for count, stubborn in ((1, False), (2, True)):
        started.next = {"stubborn": stubborn}
        made = Companion("some.module", '{"a":1}')
        with capture_logs() as lines:
            made.start()
            process = started.until(count)
            assert vars(made)["_thread"].daemon, "a process that is to end doesn't wait for it"
            made.close()
        assert process.command == [sys.executable, "-P", "-m", "some.module"]
        assert process.how == {"stdin": companion.subprocess.PIPE, "start_new_session": True}, "a session of its own"
        assert process.told == [b'{"a":1}\n', "flush", "terminate", 3.0, "kill"]
        assert process.closed
        assert not vars(made)["_thread"].is_alive()
        assert lines == [], "it was to end"


def test_one_that_ends_by_itself_is_said_to_and_replaced(started: Started, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=0.01)
    started.next = {"deaf": True}
    made = Companion("some.module", "{}")
    with capture_logs() as lines:
        made.start()
        while not started.processes:
            time.sleep(0.001)
        started.next = {}
        started.processes[0].ended.set()
        started.until(2)
        made.close()
    assert [(line["event"], line["code"], line["log_level"]) for line in lines] == [
        ("worker ended, another is started", 75, "warning")
    ]
    assert (started.processes[0].told, started.processes[0].closed) == ([], True)


def test_one_that_cannot_be_started_is_tried_again(started: Started, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=0.01)
    started.refused = 2
    made = Companion("some.module", "{}")
    with capture_logs() as lines:
        made.start()
        assert "flush" in started.until(3).told
        assert made.failing() is not None
        made.close()
    said = ("no worker can be started", "[Errno 11] Resource temporarily unavailable", "error")
    assert [(line["event"], line["why"], line["log_level"]) for line in lines] == [said] * 2


def test_one_that_is_started_while_all_ends_is_told_to_end_too(started: Started) -> None:
    made = Companion("some.module", "{}")
    started.before = vars(made)["_closing"].set
    made.start()
    vars(made)["_thread"].join(GENEROUS)
    assert started.processes[0].told == [b"{}\n", "flush", "terminate"]


def test_what_never_began_is_closed_at_once(started: Started) -> None:
    made = Companion("some.module", "{}")
    made.close()
    assert started.processes == []


def test_one_whose_processes_end_at_once_is_failing_and_one_that_stays_is_not(tmp_path: Path, bounded: Bounded) -> None:
    bounded(companion, PAUSE_SECONDS=0.05, STEADY_SECONDS=0.5)
    began = tmp_path / "began"
    began.touch()
    made = Companion("tests.unit.jobs.dying", json.dumps(str(began)), "background")
    assert made.failing() is None, "not begun is not failing"
    before = datetime.now(UTC)
    made.start()
    try:
        end = time.monotonic() + GENEROUS
        while (since := made.failing()) is None and time.monotonic() < end:
            time.sleep(0.01)
        assert since is not None
        assert before <= since <= datetime.now(UTC)
        while (now := made.failing()) is not None and time.monotonic() < end:
            assert now == since
            time.sleep(0.01)
        assert made.failing() is None, "the second one stays"
    finally:
        made.close()
