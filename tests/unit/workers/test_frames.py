"""Frames on a pair of sockets: whole ones in order, whatever the pieces, and the end of the other side."""

import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any

import msgspec
import pytest

from app.workers import messages as frames
from app.workers.messages import Closed, receive, send
from tests.support.bounds import Bounded


class Header(msgspec.Struct):
    name: str


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


@pytest.mark.parametrize("patience", [None, 60])
def test_frames_come_whole_and_in_order(pair: tuple[socket.socket, socket.socket], patience: int | None) -> None:
    here, there = pair
    there.settimeout(patience)
    bodies = [b"", b"x", bytes(range(256)) * 20_000]

    def write() -> None:
        for i, body in enumerate(bodies):
            send(here, Header(str(i)), body)

    writer = Thread(target=write)
    writer.start()
    found = [receive(there, Header) for _ in bodies]
    writer.join()
    assert found == [(Header(str(i)), body) for i, body in enumerate(bodies)]


class Pieces:
    """A socket that gives at most ``piece`` bytes at a time, and is interrupted before each; ``asked``: what for."""

    def __init__(self, data: bytes, piece: int, patience: float | None) -> None:
        self._data = data
        self._piece = piece
        self._patience = patience
        self._interrupted = False
        self.asked: list[tuple[int, int]] = []

    def gettimeout(self) -> float | None:
        return self._patience

    def recv(self, size: int, flags: int) -> bytes:
        self._interrupted = not self._interrupted
        if self._interrupted:
            raise InterruptedError
        self.asked.append((size, flags))
        given, self._data = self._data[: min(size, self._piece)], self._data[min(size, self._piece) :]
        return given


def sent(header: Header, body: bytes) -> bytes:
    here, there = socket.socketpair()
    with here, there:
        send(here, header, body)
        return there.recv(1 << 20)


@pytest.mark.parametrize("patience", [None, 60.0])
def test_a_large_body_is_read_at_one_go_where_nobody_looks_at_the_clock(
    patience: float | None, bounded: Bounded
) -> None:
    bounded(frames, PIECE=40)
    body = bytes(range(60))
    frame = sent(Header("a"), body)
    found: Any = Pieces(frame, 1 << 20, patience)
    assert receive(found, Header) == (Header("a"), body)
    flag = socket.MSG_WAITALL if patience is None else 0
    sizes = [60] if patience is None else [40, 20]
    assert found.asked == [(one, flag) for one in (12, len(frame) - 72, *sizes)]
    assert receive(Pieces(frame, 30, patience), Header)[1] == body  # pyright: ignore[reportArgumentType]


def test_a_frame_that_ends_early_is_no_frame(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    send(here, Header("a"), b"1234")
    whole = there.recv(100, socket.MSG_PEEK)
    there.recv(len(whole))
    here.sendall(whole[:-1])
    here.close()
    with pytest.raises(Closed):
        receive(there, Header)
    with pytest.raises(Closed):
        receive(there, Header)
    there.close()
    with pytest.raises(Closed):
        send(there, Header("b"))
    with pytest.raises(Closed):
        receive(there, Header)
