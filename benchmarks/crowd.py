"""Small decisions while eighty small requests that take long arrive at once: ``python -m benchmarks.crowd PORT`` sends
those, from a process of its own, so that whoever measures waits for the service only."""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from benchmarks.service import Client

CLIENTS = 80
_SECONDS = 8.0
_PAUSE = 0.005
_REQUEST_TIMEOUT = "10s"


def slow() -> bytes:
    """Some 36 KiB that take more than a second: YTsaurus divides anew, and hears every node, for each ask."""
    nodes = [{"name": f"n{i}", "capacity": {"cpu": 64}} for i in range(300)]
    tasks = [{"name": "t", "count": 20, "requests": {"cpu": 1}}]
    asks = [{"id": f"a{i}", "queue": "a", "tasks": tasks} for i in range(300)]
    document: dict[str, Any] = {"engine": "ytsaurus", "configuration": {"queues": [{"name": "a"}]}}
    return json.dumps(document | {"state": {"nodes": nodes}, "asks": asks}, separators=(",", ":")).encode()


@contextmanager
def busy(processes: int) -> Generator[None]:
    """Beside so many that would run all the time."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def crowded(port: int, small: bytes) -> list[float]:
    """Seconds of small decisions, one after the other, from just before the crowd comes. Raises RuntimeError where one
    of them is refused."""
    client = Client(port)
    for _ in range(50):
        client.ask("/v1/decisions", small)
    crowd = subprocess.Popen([sys.executable, "-m", "benchmarks.crowd", str(port)])
    taken: list[float] = []
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        taken.append(client.ask("/v1/decisions", small)[1])
        time.sleep(_PAUSE)
    crowd.kill()
    crowd.wait()
    return sorted(taken)


def _one(port: int, body: bytes, begin: threading.Barrier) -> None:
    headers = {"Content-Type": "application/json", "Request-Timeout": _REQUEST_TIMEOUT}
    begin.wait()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v1/decisions", body, headers)
    connection.getresponse().read()


def main() -> None:
    """All of them at once, one request each."""
    begin = threading.Barrier(CLIENTS)
    body = slow()
    for _ in range(CLIENTS):
        threading.Thread(target=_one, args=(int(sys.argv[1]), body, begin)).start()


if __name__ == "__main__":
    main()
