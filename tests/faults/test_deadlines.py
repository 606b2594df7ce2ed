"""Deadlines of microseconds on a busy machine: nobody hangs, nothing breaks or is lost, and the end comes in time."""

import contextlib
import http.client
import json
import multiprocessing
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.service.serve import PROMISED_SECONDS
from tests.api.requests import DECISION
from tests.support.live import running

CLIENTS = 12
BUSY = 6
_HANG_SECONDS = 30.0
_EXPECTED = {200, 429, 504}


def _spin() -> None:
    while True:
        sum(range(10_000))


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """Processes that want all of the processors."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_spin, daemon=True) for _ in range(BUSY)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


class Hurried:
    """A client whose patience is 100 us to 2 ms, with a snapshot of its own whose generation it follows."""

    def __init__(self, port: int, number: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_HANG_SECONDS)
        self.draw = random.Random(number)
        self.name = f"hurried-{number}"
        self.generation = 1
        self.answers: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.put(None)

    def send(self, method: str, path: str, body: Any = None, timeout: str | None = None) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} | ({"Request-Timeout": timeout} if timeout else {})
        self.connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def put(self, timeout: str | None) -> tuple[int, Any]:
        workloads = [{"id": f"w{i}", "queue": "a", "uid": str(i)} for i in range(2000)]
        body = {"engine": "kueue", "configuration": "fleet", "state": {"workloads": workloads}}
        return self.send("PUT", f"/v1/snapshots/{self.name}", body, timeout)

    def change(self, timeout: str) -> tuple[int, Any]:
        add = {"id": f"new-{self.generation}", "queue": "a"}
        body = {"generation": self.generation, "workloads": {"add": [add]}}
        return self.send("POST", f"/v1/snapshots/{self.name}/deltas", body, timeout)

    def decide(self, timeout: str, state: Any) -> tuple[int, Any]:
        body = DECISION | {"configuration": "fleet", "state": state}
        return self.send("POST", "/v1/decisions", body, timeout)

    def step(self) -> None:
        """One request. What is not answered 200 must not have changed anything."""
        timeout = f"{self.draw.randrange(100, 2000)}us"
        large = {"workloads": [{"id": f"l{i}", "queue": "a"} for i in range(3000)]}
        kind: Callable[[], tuple[int, Any]] = self.draw.choice(
            [
                lambda: self.decide(timeout, DECISION["state"]),
                lambda: self.decide(timeout, {"snapshot": self.name}),
                lambda: self.decide(timeout, large),
                lambda: self.change(timeout),
                lambda: self.put(timeout),
            ]
        )
        status, answer = kind()
        self.answers[status] += 1
        if status == 200 and "generation" in answer:
            self.generation += 1
        kept = self.send("GET", f"/v1/snapshots/{self.name}")
        if status not in _EXPECTED or kept[0] != 200 or kept[1]["generation"] != self.generation:
            self.wrong.append(
                f"{status} {str(answer)[:300]}; then {kept[0]} {str(kept[1])[:200]} for {self.generation}"
            )

    def run(self, end: float) -> None:
        try:
            while time.monotonic() < end and not self.wrong:
                self.step()
        except OSError as error:
            self.wrong.append(f"no answer within {_HANG_SECONDS} s: {error!r}")


def campaign(port: int, seconds: float) -> tuple[Counter[int], list[str]]:
    """Answers by status, and what went wrong."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_HANG_SECONDS)) as connection:
        document = json.dumps({"engine": "kueue", **DECISION["configuration"]})
        connection.request(
            "PUT", "/v1/configurations/fleet", document, {"Content-Type": "application/json", "If-None-Match": "*"}
        )
        assert connection.getresponse().status == 201
    clients = [Hurried(port, number) for number in range(CLIENTS)]
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=client.run, args=(end,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers: Counter[int] = Counter()
    for client in clients:
        answers += client.answers
        client.connection.close()
    return answers, [line for client in clients for line in client.wrong]


def test_hurried_clients_on_a_busy_machine(database_url: str, tmp_path: Path) -> None:
    with running(database_url, tmp_path, WORKERS="1") as live, busy_machine():
        answers, wrong = campaign(live.port, 12)
        assert wrong == []
        assert answers[504] > 0
        began = time.monotonic()
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(PROMISED_SECONDS) == 0
        assert time.monotonic() - began < PROMISED_SECONDS
