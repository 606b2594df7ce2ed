"""``arbiter follow`` as a process where an API server, or Arbiter, takes connections and says nothing or never ends."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.mortal import mortal

PATIENCE = 120
"""Seconds that only a process takes that does not end by itself."""
_BEGUN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Server:
    """Takes connections. ``begun``: how an answer begins, which goes on with ``drop`` every tenth of a second for
    ever."""

    def __init__(self, begun: bytes, drop: bytes) -> None:
        self._begun, self._drop = begun, drop
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.is_told = threading.Event()
        """Set once a follower waits for Arbiter."""
        threading.Thread(target=self._accept, daemon=True).start()

    def kubeconfig(self, folder: Path) -> Path:
        made: dict[str, Any] = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        (folder / "kubeconfig").write_text(json.dumps(made))
        return folder / "kubeconfig"

    def close(self) -> None:
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                taken, _ = self._listening.accept()
                self._sockets.append(taken)
                threading.Thread(target=self._answer, args=(taken,), daemon=True).start()

    def _answer(self, taken: socket.socket) -> None:
        with suppress(OSError):
            if b" /v1/" in taken.recv(1 << 16):
                self.is_told.set()
            taken.sendall(self._begun)
            while self._drop:
                taken.sendall(self._drop)
                time.sleep(0.1)


WAYS: dict[str, tuple[bytes, bytes]] = {
    "silent": (b"", b""),
    "blanks": (_BEGUN + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a size": (_BEGUN + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    "a head": (b"HTTP/1.1 200 OK\r\n", b"x"),
    "a body": (_BEGUN + b"Content-Length: 1000000\r\n\r\n", b" "),
}


@pytest.fixture(params=["silent"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(*WAYS[request.param])
    yield made
    made.close()


@contextmanager
def following(server: Server, folder: Path, *more: str) -> Generator[subprocess.Popen[str]]:
    words = ["-m", "app.cli", "follow", "kueue", "--snapshot", "s", "--configuration", "c"]
    words += ["--kubeconfig", str(server.kubeconfig(folder)), *more]
    with mortal([sys.executable, *words], signal.SIGKILL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("server", ["silent", "blanks"], indirect=True)
def test_a_follower_that_is_told_to_end_does(server: Server, tmp_path: Path) -> None:
    with following(server, tmp_path, "--url", server.url) as process:
        assert server.is_told.wait(PATIENCE)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


REASONS = {
    "silent": "the API server does not answer",
    "blanks": "/api/v1 does not end within 10 s",
    "a size": "/api/v1 does not end within 10 s",
    "a head": "Read timed out. (read timeout=10",
    "a body": "/api/v1 does not end within 10 s",
}


def test_once_ends_with_the_reason(tmp_path: Path) -> None:
    """All ways beside one another: each takes ten seconds, in which nothing is done."""
    with ExitStack() as stack:
        processes: dict[str, subprocess.Popen[str]] = {}
        for number, (way, how) in enumerate(WAYS.items()):
            server = stack.enter_context(closing(Server(*how)))
            (folder := tmp_path / str(number)).mkdir()
            once = following(server, folder, "--once", "--url", "http://127.0.0.1:1")
            processes[way] = stack.enter_context(once)
        ends = {
            way: (process.communicate(timeout=PATIENCE)[1], process.returncode) for way, process in processes.items()
        }
    assert {way: code for way, (_, code) in ends.items()} == dict.fromkeys(REASONS, 4), ends
    assert [said for way, (said, _) in ends.items() if REASONS[way] not in said.splitlines()[-1]] == []
