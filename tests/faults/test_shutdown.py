"""Told to stop, the service ends in the promised time, whatever runs, and what it answered is in the log."""

import http.client
import json
import os
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest

from app.service.serve import PROMISED_SECONDS
from tests.api.requests import DECISION
from tests.support.live import Live, running


def _send(live: Live, body: bytes, answers: list[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30)
    connection.request("POST", "/v1/decisions", body, {"Content-Type": "application/json"})
    answers.append(connection.getresponse().status)
    connection.close()


def _endless() -> bytes:
    """A request whose solving takes a minute: many asks, each of which YTsaurus decides after the one before it."""
    nodes = [{"name": f"n{i}", "capacity": {"cpu": 64}} for i in range(1500)]
    tasks = [{"name": "t", "count": 20, "requests": {"cpu": 1}}]
    asks = [{"id": f"a{i}", "queue": "a", "tasks": tasks} for i in range(30_000)]
    configuration = {"queues": [{"name": "a"}]}
    return json.dumps(
        {"engine": "ytsaurus", "configuration": configuration, "state": {"nodes": nodes}, "asks": asks}
    ).encode()


def _worker_of(live: Live) -> int:
    """The worker's process.

    Until a child runs its own program its parent waits for it (vfork): who stops it before stops the service.
    """
    children = Path(f"/proc/{live.process.pid}/task/{live.process.pid}/children")
    while True:
        for child in children.read_text().split():
            if b"app.workers.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.05)


def _stop(live: Live) -> float:
    began = time.monotonic()
    live.process.send_signal(signal.SIGTERM)
    assert live.process.wait(PROMISED_SECONDS + 5) == 0
    return time.monotonic() - began


@pytest.mark.parametrize("workers", [0, 1])
def test_a_running_solve_does_not_hold_it_and_is_told(workers: int, database_url: str, tmp_path: Path) -> None:
    answers: list[int] = []
    with running(database_url, tmp_path, WORKERS=str(workers)) as live:
        solving = threading.Thread(target=_send, args=(live, _endless(), answers))
        solving.start()
        time.sleep(2)
        assert solving.is_alive()
        assert _stop(live) < PROMISED_SECONDS
        solving.join()
    assert answers == [503]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for the worker in /proc")
def test_a_worker_that_does_not_listen_does_not_hold_it_and_what_was_answered_is_logged(
    database_url: str, tmp_path: Path
) -> None:
    answers: list[int] = []
    small = json.dumps(DECISION).encode()
    large = json.dumps(
        DECISION | {"state": {"workloads": [{"id": f"w{i}", "queue": "a"} for i in range(3000)]}}
    ).encode()
    with running(database_url, tmp_path, WORKERS="1") as live:
        worker = _worker_of(live)
        os.kill(worker, signal.SIGSTOP)
        stuck = threading.Thread(target=_send, args=(live, large, answers))
        stuck.start()
        logged: list[int] = []
        for _ in range(150):
            _send(live, small, logged)
        assert _stop(live) < PROMISED_SECONDS
        stuck.join()
    assert answers == [503]
    with psycopg.connect(database_url.replace("+psycopg", "", 1)) as connection:
        row = connection.execute("select count(*) from decisions").fetchone()
    assert (logged.count(200), row) == (150, (150,))
