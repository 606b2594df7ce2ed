"""Requests that offer to go on in another protocol are answered in this one."""

import json
import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from tests.api.requests import decision
from tests.support.live import serving

BODY = json.dumps(decision()).encode()
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
TYPE = b"Host: localhost\r\nContent-Type: application/json\r\n"
HEAD = b"POST /v1/decisions HTTP/1.1\r\n" + TYPE + OFFER
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY)
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"

Talk = Callable[..., list[bytes]]


@pytest.fixture(scope="module")
def address(
    migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, int]]:
    with serving(migrated_database(), tmp_path_factory.mktemp("data"), WORKERS="0", ARBITER_LOG_LEVEL="error") as (
        url,
        _,
    ):
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        yield parts.hostname, parts.port


@pytest.fixture
def talk(address: tuple[str, int]) -> Talk:
    """Send pieces on one connection, each read apart from the next; the status lines once ``answers`` are there."""

    def send(*pieces: bytes, answers: int = 1) -> list[bytes]:
        with socket.create_connection(address, timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                connection.sendall(piece)
                pause(connection)
            received = b""
            while received.count(b"HTTP/1.1 ") < answers:
                piece = connection.recv(1 << 16)
                assert piece, received
                received += piece
        return [part.partition(b"\r\n")[0] for part in received.split(b"HTTP/1.1 ")[1:]]

    return send


def pause(connection: socket.socket) -> None:
    """Long enough for the service to read what was sent as a piece of its own."""
    connection.settimeout(0.05)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        pass
    finally:
        connection.settimeout(30)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces",
    [
        (SIZED + BODY,),
        (SIZED, BODY),
        (SIZED[:60], SIZED[60:], BODY[:40], BODY[40:]),
        (CHUNKED + CHUNKS,),
        (CHUNKED, CHUNKS),
    ],
    ids=["at once", "body apart", "torn", "chunked", "chunks apart"],
)
def test_the_body_is_read_however_it_arrives(talk: Talk, pieces: tuple[bytes, ...]) -> None:
    assert talk(*pieces) == [b"200 OK"]


def test_the_connection_stays(talk: Talk) -> None:
    health = HEALTH + b"\r\n"
    offered = HEALTH + OFFER + b"\r\n"
    assert talk(SIZED + BODY + health + offered + SIZED, BODY + health, answers=5) == [b"200 OK"] * 5


def test_a_websocket_is_only_a_request(talk: Talk) -> None:
    offer = b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    assert talk(HEALTH + offer + HEALTH + b"\r\n", answers=2) == [b"200 OK"] * 2


@pytest.mark.parametrize("request_", [b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n", b"nonsense\r\n\r\n"])
def test_what_is_no_request_is_refused(talk: Talk, request_: bytes) -> None:
    assert talk(request_) == [b"400 Bad Request"]
