"""Too much work of one class leaves the others their places."""

import http.client
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.api.requests import DECISION
from tests.support.live import running

SMALL = json.dumps(DECISION).encode()


def _slow() -> bytes:
    """Some 36 KiB that take more than a second: YTsaurus divides anew, and hears every node, for each ask."""
    nodes = [{"name": f"n{i}", "capacity": {"cpu": 64}} for i in range(300)]
    asks = [
        {"id": f"a{i}", "queue": "a", "tasks": [{"name": "t", "count": 20, "requests": {"cpu": 1}}]} for i in range(300)
    ]
    document: dict[str, Any] = {"engine": "ytsaurus", "configuration": {"queues": [{"name": "a"}]}}
    return json.dumps(document | {"state": {"nodes": nodes}, "asks": asks}, separators=(",", ":")).encode()


def _large() -> bytes:
    workloads = [{"id": f"w{i}", "queue": "a", "uid": str(i)} for i in range(20_000)]
    return json.dumps(DECISION | {"state": {"workloads": workloads}}).encode()


class Load:
    """``clients`` that send ``body`` again and again until they are told to end."""

    def __init__(self, port: int, body: bytes, clients: int) -> None:
        self.answers: Counter[int] = Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, body)) for _ in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def until_full(self) -> None:
        """Until somebody has been refused."""
        while not self.answers[429]:
            time.sleep(0.05)

    def _run(self, port: int, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "Request-Timeout": "10s"}
        while not self._ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/v1/decisions", body, headers)
            self.answers[connection.getresponse().status] += 1
            connection.close()
            self._ended.wait(0.2)


def _answered(port: int, seconds: float) -> tuple[Counter[int], list[float]]:
    """Small decisions one after the other: their statuses and durations."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    statuses: Counter[int] = Counter()
    taken: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        connection.request("POST", "/v1/decisions", SMALL, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        taken.append(time.monotonic() - began)
        statuses[response.status] += 1
        time.sleep(0.01)
    connection.close()
    return statuses, sorted(taken)


def _asked_from_elsewhere(port: int, body: bytes) -> int:
    """The status of one that comes from another address than all others."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90, source_address=("127.0.0.2", 0))
    connection.request("POST", "/v1/decisions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


@pytest.mark.parametrize(("body", "clients"), [(_slow(), 80), (_large(), 80)], ids=["slow", "large"])
def test_small_decisions_go_on_while_another_class_is_full(
    body: bytes, clients: int, database_url: str, tmp_path: Path
) -> None:
    settings = {"WORKERS": "1", "ARBITER_WAITING_REQUESTS": "16", "ARBITER_LOG_LEVEL": "error"}
    with running(database_url, tmp_path, **settings) as live:
        with Load(live.port, body, clients) as load:
            load.until_full()
            statuses, taken = _answered(live.port, 4)
            elsewhere = [_asked_from_elsewhere(live.port, body) for _ in range(5)]
        assert statuses.keys() == {200}
        assert elsewhere == [200] * 5  # who asks one thing of that class is not refused for what another asks
        assert load.answers[429] > 0  # it was full
        assert load.answers.keys() <= {200, 429, 504}
        assert taken[len(taken) // 2] < 1.0  # 250 ms at the 99th percentile, where nobody else wants the processors
