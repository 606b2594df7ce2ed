"""Frames on a pair of sockets: whole ones in order, whatever the pieces, and the end of the other side."""

import socket
from collections.abc import Iterator
from threading import Thread

import msgspec
import pytest

from app.workers.frames import Closed, receive, send


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
