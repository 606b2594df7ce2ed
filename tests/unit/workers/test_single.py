"""Processes that do one thing each: their connection, their end, and what is said where they stop or take too long."""

import errno
import gc
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.base.errors import DeadlinePassed, Unavailable
from app.base.ticket import Ticket, holding
from app.workers import messages
from app.workers.messages import Closed, Processes, serve_once
from tests.support.instead import Clock, Instead, Machine

ECHO = [
    "-S",
    "-c",
    "import socket, sys\nc = socket.socket(fileno=int(sys.argv[1]))\nc.sendall(c.recv(9) * 2)\nc.recv(1)",
]
SILENT = ["-S", "-c", "import socket, sys\nsocket.socket(fileno=int(sys.argv[1])).recv(1)"]


@pytest.fixture
def started(instead: Instead) -> Iterator[list[Any]]:
    """Every process that was started; none outlives the test."""
    found: list[Any] = []
    start = subprocess.Popen

    def kept(*args: Any, **how: Any) -> Any:
        found.append(start(*args, **how))
        return found[-1]

    instead(messages.subprocess, Popen=kept)
    yield found
    for process in found:
        process.kill()
        process.wait()


def test_one_answers_over_its_connection_and_ends_with_the_block(started: list[Any]) -> None:
    of = Processes("read it")
    with of.started(ECHO) as connection, of.started(ECHO) as other:
        for one, said in ((connection, b"ab"), (other, b"c")):
            one.sendall(said)
            assert one.recv(9) == said * 2
        assert 0 < (connection.gettimeout() or 0) <= 3600
    assert [process.returncode is not None for process in started] == [True, True]
    assert connection.fileno() == other.fileno() == -1
    assert vars(of)["_running"] == set()


def lost(of: Processes, act: Callable[[socket.socket], object] = lambda _: None) -> None:
    """``act`` with the connection to one, which is gone then."""
    with of.started(SILENT) as connection:
        act(connection)
        raise Closed


def test_who_waits_is_told_that_it_stopped_or_that_time_is_up(started: list[Any], clock: Clock) -> None:
    of, waits = Processes("read it"), list[float | None]()
    with pytest.raises(Unavailable, match=r"^the process that read it stopped, for want of memory most likely$"):
        lost(of)
    with holding(Ticket("large", 0.0, 7.5)), pytest.raises(DeadlinePassed, match=r"7\.5 s"):
        lost(of, lambda connection: waits.append(connection.gettimeout()))
    assert waits == [0.001]
    clock.drives(messages)
    clock.now = 7.0
    with holding(Ticket("large", 7.0, 7.5)), pytest.raises(DeadlinePassed):
        lost(of)
    with holding(Ticket.now("large", 50)), of.started(SILENT) as connection:
        assert 40 < (connection.gettimeout() or 0) <= 50
    assert all(process.returncode is not None for process in started)


def test_where_none_can_be_started_whoever_asks_is_told_so(instead: Instead) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    instead(messages.subprocess, Popen=full)
    with pytest.raises(Unavailable, match=r"^no process can be started: Resource temporarily unavailable$"):
        lost(Processes("read it"))


def test_closing_ends_those_that_run_and_those_that_come_later(started: list[Any]) -> None:
    of, heard = Processes("read it"), list[bytes]()

    def closed(connection: socket.socket) -> None:
        of.close()
        connection.settimeout(60)
        heard.append(connection.recv(1))

    for _ in range(2):
        with pytest.raises(Unavailable):
            lost(of, closed)
    assert (len(started), heard) == (2, [b"", b""])


def test_the_entry_answers_once_at_low_priority_and_an_end_is_no_error(machine: Machine, instead: Instead) -> None:
    lowered: list[int] = []
    instead(os, nice=lowered.append)

    def answered(error: Exception | None) -> bytes:
        ours, theirs = socket.socketpair()
        machine.calls("entry", str(theirs.detach()))

        def answer(connection: socket.socket) -> None:
            assert not gc.isenabled()
            connection.sendall(b"here")
            if error is not None:
                raise error

        with ours:
            serve_once(answer)
            return ours.recv(9) + ours.recv(9)

    try:
        assert [answered(None), answered(Closed())] == [b"here", b"here"]
        with pytest.raises(ValueError, match="wrong"):
            answered(ValueError("wrong"))
        instead(os, nice=lambda _: (_ for _ in ()).throw(PermissionError))
        assert answered(None) == b"here"
    finally:
        gc.enable()
    assert lowered == [10, 10, 10]
