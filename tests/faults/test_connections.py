"""Connections that do nothing, or next to nothing: they end, and meanwhile everybody else is served."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from select import select
from urllib.parse import urlsplit

import pytest

from tests.api.requests import decision
from tests.support.live import serving

SHORT = {"ARBITER_HEAD_TIMEOUT": "1", "ARBITER_BODY_TIMEOUT": "1", "ARBITER_IDLE_TIMEOUT": "2", "WORKERS": "0"}
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FORM = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


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


def healthy(address: tuple[str, int]) -> None:
    with closing(HTTPConnection(*address, timeout=60)) as connection:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200


UNFINISHED: dict[str, tuple[bytes, int]] = {
    "silent": (b"", 0),
    "a letter": (b"G", 408),
    "half a head": (GET, 408),
    "half a body": (POST + b"Content-Length: 10\r\n\r\n123456789", 408),
    "half a form": (FORM + b"Content-Length: 10\r\n\r\n123456789", 408),
    "half a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n1234", 408),
    "a chunk's extension": (POST + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 1000, 408),
    "unread": (GET + b"Content-Length: 10\r\n\r\n1", 200),
}


def test_what_stays_unfinished_ends(address: tuple[str, int]) -> None:
    """All beside one another: each waits for seconds."""
    with ExitStack() as stack:
        connections: dict[str, socket.socket] = {}
        for name, (sent, _) in UNFINISHED.items():
            connections[name] = connection = stack.enter_context(connect(address))
            connection.settimeout(60)  # the service's own limits are a second or two
            connection.sendall(sent)
        for name, (_, expected) in UNFINISHED.items():
            answer = rest(connections[name])
            assert status(answer) == expected, name
            assert expected in (0, 200) or b"application/problem+json" in answer or name == "half a form", name


def test_a_stream_may_pause(address: tuple[str, int]) -> None:
    """It is being answered, so whoever sends it may wait for that, wherever its first line came: with its head, before
    the answer begins, or while it is answered. Both beside one another, for they wait as long as any limit lasts."""
    with ThreadPoolExecutor(2) as clients:
        for streamed in [clients.submit(stream_that_pauses, address, first) for first in (0.0, 0.5)]:
            streamed.result()


def stream_that_pauses(address: tuple[str, int], first: float) -> None:
    line = json.dumps(decision()).encode() + b"\n"
    chunk = b"%x\r\n%b\r\n" % (len(line), line)
    head = POST.replace(b"decisions", b"decisions:batch") + b"Transfer-Encoding: chunked\r\n\r\n"
    with connect(address) as connection, connection.makefile("rb") as answers:
        connection.settimeout(60)
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
    heads = [GET + b"X-Slow: ", *(post + b"Content-Length: 100000\r\n\r\n" for post in (POST, FORM))]
    with ThreadPoolExecutor(len(heads)) as clients:
        assert all(clients.map(lambda head: cut_off(address, head), heads))


def cut_off(address: tuple[str, int], head: bytes) -> bool:
    """Whether somebody who sends a byte now and then is told to go, long before all is sent."""
    with connect(address) as connection:
        connection.sendall(head)
        for _ in range(300):
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            time.sleep(0.2)
    return False


def test_an_idle_connection_is_kept_for_a_while(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        for pause in (0.0, 1.0, 0.0):
            time.sleep(pause)
            connection.sendall(GET + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1 << 16)
            assert status(answer) == 200
        connection.settimeout(60)
        began = time.monotonic()
        assert rest(connection) == b""
        assert time.monotonic() - began > 1


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
    # None of their own limits is near: whoever were shut out would wait longer than a client here does.
    patient = {f"ARBITER_{name}_TIMEOUT": "600" for name in ("HEAD", "BODY", "IDLE")}
    with ExitStack() as stack:
        with files(1024):
            url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0", **patient))
        for i in range(1100):
            connection = stack.enter_context(connect(at(url)))
            if i % 3:
                connection.sendall(GET if i % 3 == 1 else POST + b"Content-Length: 10\r\n\r\n1")
        for _ in range(20):
            healthy(at(url))


LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
AHEAD = 16
"""Of these answers together no system takes all for somebody who reads nothing."""


def unread(address: tuple[str, int]) -> socket.socket:
    """Somebody who asks for a lot and has taken the first byte of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.settimeout(60)
    connection.connect(address)
    connection.sendall(LARGE * AHEAD)
    assert connection.recv(1) == b"H"
    return connection


def taken(connection: socket.socket) -> int:
    """How many answers came whole."""
    with suppress(ConnectionResetError), connection.makefile("rb") as answers:
        for whole in range(AHEAD):
            length = 0
            while (line := answers.readline()) not in (b"\r\n", b""):
                name, _, value = line.lower().partition(b":")
                length = int(value) if name == b"content-length" else length
            if not length or len(answers.read(length)) < length:
                return whole
        return AHEAD
    return 0


def test_who_does_not_take_his_answer_shuts_nobody_out(migrated_url: str, tmp_path: Path) -> None:
    patient = {"ARBITER_ANSWER_TIMEOUT": "600", "ARBITER_MAX_CONNECTIONS": "20"}
    with ExitStack() as stack:
        url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0", **patient))
        for _ in range(20):
            stack.enter_context(unread(at(url)))
        for _ in range(20):
            healthy(at(url))


def test_answers_that_nobody_takes_have_a_bound(migrated_url: str, tmp_path: Path) -> None:
    """The oldest are cut off, the newest, and whoever takes his at once, get theirs."""
    patient = {"ARBITER_ANSWER_TIMEOUT": "600", "ARBITER_ANSWERS_MEMORY_BYTES": str(2 << 20)}
    with ExitStack() as stack:
        url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0", **patient))
        stuck = [stack.enter_context(unread(at(url))) for _ in range(40)]
        healthy(at(url))
        whole = [taken(connection) for connection in (stuck[0], stuck[-1])]
        assert whole[0] < AHEAD
        assert whole[1] == AHEAD


def test_taking_a_byte_now_and_then_is_not_progress(migrated_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0", ARBITER_ANSWER_TIMEOUT="1"))
        connection = stack.enter_context(unread(at(url)))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            take_slowly(connection)


def take_slowly(connection: socket.socket) -> None:
    for _ in range(300):
        time.sleep(0.2)
        assert connection.recv(1)
        connection.sendall(b"G")  # which tells whether anybody is there


CROWD = 200


def test_who_asks_one_thing_waits_for_a_few_of_a_flood(migrated_url: str, tmp_path: Path) -> None:
    body = json.dumps(decision()).encode()
    asked = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with ExitStack() as stack:
        url, _ = stack.enter_context(serving(migrated_url, tmp_path, WORKERS="0"))
        flood = [stack.enter_context(connect(at(url))) for _ in range(CROWD)]
        for connection in flood:
            connection.sendall(asked * AHEAD)
        assert answers(flood, least=20) < CROWD
        for path in ("/healthz", "/v1/rules"):
            with closing(HTTPConnection(*at(url), timeout=60, source_address=("127.0.0.2", 0))) as other:
                other.request("GET", path)
                assert other.getresponse().status == 200
            assert answers(flood, least=0) < CROWD
        assert answers(flood, least=100) >= 100  # the flood is answered too, in its turn


def answers(connections: list[socket.socket], least: int) -> int:
    """How many have come since it was last asked, ``least`` at least."""
    count = 0
    while True:
        for connection in select(connections, [], [], 0.01)[0]:
            count += connection.recv(1 << 20).count(b"HTTP/1.1 200")
        if count >= least:
            return count
