"""Connections that do nothing, or next to nothing: they end, and meanwhile everybody else is served."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.api.requests import decision
from tests.live import serving

SHORT = {"ARBITER_HEAD_TIMEOUT": "1", "ARBITER_BODY_TIMEOUT": "1", "ARBITER_IDLE_TIMEOUT": "2", "WORKERS": "0"}
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
FORM = b"POST /sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def address(migrated_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with serving(migrated_url, tmp_path_factory.mktemp("data"), **SHORT) as (url, _):
        yield at(url)


def at(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=15)


def rest(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    pieces = list[bytes]()
    try:
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def healthy(address: tuple[str, int], seconds: float = 2.0) -> None:
    with closing(HTTPConnection(*address, timeout=seconds)) as connection:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", 0),
        (b"G", 408),
        (GET, 408),
        (POST + b"Content-Length: 10\r\n\r\n123456789", 408),
        (FORM + b"Content-Length: 10\r\n\r\n123456789", 408),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n1234", 408),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 1000, 408),
        (GET + b"Content-Length: 10\r\n\r\n1", 200),
    ],
    ids=[
        "silent",
        "a letter",
        "half a head",
        "half a body",
        "half a form",
        "half a chunk",
        "a chunk's extension",
        "unread",
    ],
)
def test_what_stays_unfinished_ends(address: tuple[str, int], sent: bytes, expected: int) -> None:
    with connect(address) as connection:
        connection.sendall(sent)
        began = time.monotonic()
        answer = rest(connection)
        assert time.monotonic() - began < 10
        assert status(answer) == expected
        assert expected in (0, 200) or b"application/problem+json" in answer or sent.startswith(FORM)


@pytest.mark.parametrize("first", [0.0, 0.5], ids=["before the answer begins", "while it is answered"])
def test_a_stream_may_pause(address: tuple[str, int], first: float) -> None:
    """It is being answered, so whoever sends it may wait for that, wherever its first line came."""
    line = json.dumps(decision()).encode() + b"\n"
    chunk = b"%x\r\n%b\r\n" % (len(line), line)
    head = POST.replace(b"decisions", b"decisions:batch") + b"Transfer-Encoding: chunked\r\n\r\n"
    with connect(address) as connection, connection.makefile("rb") as answers:
        if first:
            connection.sendall(head)
            time.sleep(first)
        for sent, pause in ((chunk if first else head + chunk, 0.0), (chunk, 8.0)):
            time.sleep(pause)
            connection.sendall(sent)
            while b'"status":200' not in (said := answers.readline()):
                assert said
        connection.sendall(b"0\r\n\r\n")


def test_trickling_is_not_progress(address: tuple[str, int]) -> None:
    for head in (GET + b"X-Slow: ", *(post + b"Content-Length: 100000\r\n\r\n" for post in (POST, FORM))):
        with connect(address) as connection, suppress(OSError):
            connection.sendall(head)
            began = time.monotonic()
            while time.monotonic() - began < 12:
                connection.sendall(b"x")
                time.sleep(0.2)
        assert time.monotonic() - began < 10


def test_an_idle_connection_is_kept_for_a_while(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        for pause in (0.0, 1.0, 0.0):
            time.sleep(pause)
            connection.sendall(GET + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1 << 16)
            assert status(answer) == 200
        began = time.monotonic()
        assert rest(connection) == b""
        assert 1 < time.monotonic() - began < 6


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"X-%d: x\r\n" % i for i in range(101)),
        b"X-Long: " + b"x" * 40_000 + b"\r\n",
        b"X" * 40_000 + b": x\r\n",
        b"".join(b"X-%d: %s\r\n" % (i, b"x" * 1000) for i in range(40)),
    ],
    ids=["many", "a long value", "a long name", "large together"],
)
def test_heads_are_limited(address: tuple[str, int], head: bytes) -> None:
    for sent in (GET + head + b"\r\n", GET + head):
        with connect(address) as connection:
            connection.sendall(sent)
            assert status(rest(connection)) == 431
    with connect(address) as connection:
        connection.sendall(b"GET /" + b"x" * 40_000)
        assert status(rest(connection)) == 431


def test_a_head_without_end_is_cut_off(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        sent = 0
        with suppress(OSError):
            connection.sendall(GET + b"X-Endless: ")
            for _ in range(4096):
                sent += connection.send(b"x" * 4096)
        assert sent < 8 << 20


def test_what_one_connection_asks_ahead_is_limited(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        with suppress(OSError):
            connection.sendall((GET + b"\r\n") * 20_000)
        assert rest(connection).count(b"HTTP/1.1 200") < 20_000
    with connect(address) as connection:
        connection.sendall((GET + b"\r\n") * 8 + GET + b"Connection: close\r\n\r\n")
        assert rest(connection).count(b"HTTP/1.1 200") == 9


def test_garbage_is_a_problem(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00 TLS?\r\n\r\n")
        answer = rest(connection)
    assert status(answer) == 400
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 400


@contextmanager
def files(most: int) -> Iterator[None]:
    """No more than ``most`` open files in processes that are started meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))


def test_idle_sockets_shut_nobody_out(migrated_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        with files(1024):
            url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0"))
        for i in range(1100):
            connection = stack.enter_context(connect(at(url)))
            if i % 3:
                connection.sendall(GET if i % 3 == 1 else POST + b"Content-Length: 10\r\n\r\n1")
        began = time.monotonic()
        for _ in range(20):
            healthy(at(url))
        assert time.monotonic() - began < 5
