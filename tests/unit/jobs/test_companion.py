"""A worker beside a process: replaced when it dies, ended when the process is told to."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jobs import companion
from app.jobs.companion import Companion

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
def test_one_that_dies_is_replaced_and_the_last_ends_with_whoever_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion, "_PAUSE", 0.05)
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
