"""A service of its own for a run: a fresh data folder, one port, its processes' memory."""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_START_SECONDS = 120
_IDLE_SECONDS = 2.0
_REST_SECONDS, _AT_REST = 1.0, 0.05


class Client:
    """One kept-alive connection. ``post`` gives the answer's bytes and how long it took."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._connect()

    def _connect(self) -> None:
        self._connection.close()
        self._connection.connect()
        sock: socket.socket = self._connection.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.monotonic()

    def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes, float]:
        """Status, body, seconds."""
        if self._connection.sock is None or time.monotonic() - self._used > _IDLE_SECONDS:
            self._connect()
        begun = time.perf_counter()
        self._connection.request(method, path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        data = response.read()
        self._used = time.monotonic()
        return response.status, data, time.perf_counter() - begun

    def ask(self, path: str, body: bytes, method: str = "POST") -> tuple[Any, float]:
        """The parsed answer and the seconds of the call. Raises RuntimeError unless it succeeded."""
        status, data, seconds = self.send(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {data[:300]!r}")
        return json.loads(data) if data else None, seconds


@contextmanager
def service(
    workers: int = 1, program: tuple[str, ...] = ("app.cli",), **environment: str
) -> Generator[tuple[int, subprocess.Popen[bytes]]]:
    """A running service: its port and process; ``program``: the module that it is, and words before ``serve``.
    It has no examples of its own, whose simulations would run beside what is measured for the first minute."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="arbiter-bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", *program, "serve"],
            env={
                **os.environ,
                "PORT": str(port),
                "DATA_DIR": folder,
                "WORKERS": str(workers),
                "ARBITER_EXAMPLES": "off",
                **environment,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _until_ready(port, process)
            yield port, process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
                process.wait()


def _until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the service stopped with {process.returncode}")
        with suppress(OSError, http.client.HTTPException):
            if Client(port).send("GET", "/readyz")[0] == 200:
                return
        time.sleep(0.2)
    raise RuntimeError("the service did not get ready")


def wait_for_rest(process: subprocess.Popen[bytes]) -> None:
    """Until the service and its processes have started: some import for seconds after it is ready. Linux only."""
    end = time.monotonic() + _START_SECONDS
    used = cpu_seconds(process.pid)
    while time.monotonic() < end:
        time.sleep(_REST_SECONDS)
        before, used = used, cpu_seconds(process.pid)
        if used - before <= _AT_REST * _REST_SECONDS:
            return


def cpu_seconds(pid: int) -> float:
    """Seconds of the processor that a process and those that it has started have used. Linux only."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            child for of in Path(f"/proc/{pid}/task").iterdir() for child in (of / "children").read_text().split()
        ]
        own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return own + sum(cpu_seconds(int(child)) for child in children)
    return 0.0


def peak_memory_mb(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Peak resident memory of the service and of each worker, database excluded. Linux only; else empty."""
    found: dict[str, float] = {}
    for pid, name in [(process.pid, "service"), *_workers_of(process.pid)]:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    found[name] = round(int(line.split()[1]) / 1024, 1)
    return found


def memory_mb(process: subprocess.Popen[bytes]) -> float:
    """Resident memory of the service and of each worker now, database excluded. Linux only; else 0."""
    return round(sum(memory_of(process).values()), 1)


def memory_of(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """The same by process. Linux only; else empty."""
    found: dict[str, float] = {}
    for pid, name in ((process.pid, "service"), *_workers_of(process.pid)):
        with suppress(OSError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            found[name] = round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1)
    return found


def _workers_of(pid: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"app.workers.worker" in command:
                found.append((int(child), f"worker {len(found) + 1}"))
    return found
