"""Bodies that never end, or become a thousand times themselves: the memory is bounded and nobody else waits."""

import gzip
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zstandard

from tests.support.bodies import MIB, live, watched
from tests.support.live import Live

__all__ = ["live"]

HEAD = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FORM = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def resident(live: Live) -> int:
    """Bytes of memory that the service's own process has."""
    for line in Path(f"/proc/{live.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def connect(live: Live) -> socket.socket:
    parts = urlsplit(live.address)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def post(live: Live, body: bytes, source: str = "127.0.0.1", **headers: str) -> int:
    connection = HTTPConnection(urlsplit(live.address).netloc, timeout=60, source_address=(source, 0))
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/v1/decisions", body, named)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize("head", [HEAD, FORM], ids=["decision", "form"])
def test_bodies_without_their_last_byte_cost_what_is_stated(live: Live, head: bytes) -> None:
    assert post(live, b"{}") == 422
    before, size = resident(live), 4 * MIB
    with ExitStack() as stack:
        opened = [stack.enter_context(connect(live)) for _ in range(150)]
        for connection in opened:
            with suppress(OSError):  # refused before it is sent
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % size + b" " * (size - 1))
        refused = 0
        for connection in opened:
            connection.settimeout(0.05)
            with suppress(OSError):
                refused += connection.recv(64).startswith(b"HTTP/1.1 429")
        assert refused >= 120
        assert resident(live) - before < 64 * MIB + 150 * (64 << 10) + 64 * MIB
        assert post(live, b"{}") == 422
        assert post(live, b" " * size + b"{}", source="127.0.0.2") == 422  # what one holds keeps nobody else's out
    end = time.monotonic() + 60  # until it has noticed that they are gone
    while (answered := post(live, b" " * size + b"{}")) == 429 and time.monotonic() < end:
        time.sleep(0.05)
    assert answered == 422


BOMBS: dict[str, Callable[[], tuple[bytes, str]]] = {
    "zstd of 2 KB": lambda: (zstandard.compress(b" " * (63 * MIB)), "zstd"),
    "gzip of 62 KB": lambda: (gzip.compress(b" " * (63 * MIB)), "gzip"),
    "empty members": lambda: (gzip.compress(b"") * 9_999 + gzip.compress(b"{}"), "gzip"),
    "empty frames": lambda: (zstandard.compress(b"") * 9_999 + zstandard.compress(b"{}"), "zstd"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_compressed_keeps_nobody_else_waiting(live: Live, bomb: str) -> None:
    body, coding = BOMBS[bomb]()
    assert post(live, b"{}") == 422
    before = resident(live)
    with watched(live) as taken, ThreadPoolExecutor(8) as clients:
        answers = set(clients.map(lambda _: post(live, body, Content_Encoding=coding), range(16)))
    assert answers <= {400, 422, 429, 504}
    assert max(taken) < 5  # 30 s where the event loop inflates; the machine may be busy with other tests
    assert resident(live) - before < 64 * MIB * 3
    assert post(live, b"{}") == 422


def test_inflating_is_under_the_deadline(live: Live) -> None:
    body, coding = BOMBS["gzip of 62 KB"]()
    began = time.monotonic()
    assert post(live, body, Content_Encoding=coding, Request_Timeout="2ms") == 504
    assert time.monotonic() - began < 5
