"""How a worker's process is begun, what it reads of its command, and what it asks of malloc."""

import signal
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from app.workers import pool as pooling
from app.workers import worker as memory
from app.workers import worker as working
from app.workers.messages import Closed
from app.workers.pool import Limits, spawned
from tests.support.instead import Instead, Machine


def test_a_workers_process_is_told_its_share_of_the_memory_and_hashes_alike(
    monkeypatch: pytest.MonkeyPatch, instead: Instead
) -> None:
    begun: list[Any] = []

    class Begun:
        def __init__(self, command: list[str], **how: Any) -> None:
            begun.append((command, how))

        def __class_getitem__(cls, _: Any) -> type:
            return cls

    instead(pooling.subprocess, Popen=Begun)
    monkeypatch.setenv("KEPT", "as it is")
    _, ours = spawned(Limits(100, 7.5), 3)
    ((command, how),) = begun
    (descriptor,) = how["pass_fds"]
    assert command[1:] == ["-P", "-m", "app.workers.worker", str(descriptor), "33", "7.5"]
    assert (how["env"]["PYTHONHASHSEED"], how["env"]["KEPT"]) == ("0", "as it is")
    assert ours.recv(1) == b"", "the other end is the process's alone"
    ours.close()


@pytest.mark.parametrize("gone", [False, True])
def test_the_entry_of_a_worker_reads_its_arguments_and_ends_with_its_connection(
    gone: bool, machine: Machine, instead: Instead
) -> None:
    ours, theirs = socket.socketpair()
    told: list[Any] = []

    def serve(connection: socket.socket, budget: int, idle: float) -> None:
        connection.sendall(b"here")
        told.append((budget, idle))
        if gone:
            raise Closed

    instead(working, serve=serve)
    instead(working.signal, signal=lambda what, how: told.append((what, how)))  # pyright: ignore
    machine.calls("worker", str(theirs.detach()), "100", "7.5")
    working.main()
    assert told == [(signal.SIGINT, signal.SIG_IGN), (100, 7.5)]
    with ours:
        assert ours.recv(9) + ours.recv(9) == b"here"


def test_freed_blocks_are_kept_where_the_library_can(instead: Instead) -> None:
    told: list[tuple[int, int]] = []

    def mallopt(of: int, value: int) -> None:
        told.append((of, value))

    library = SimpleNamespace(mallopt=mallopt)
    instead(
        memory,
        ctypes=SimpleNamespace(CDLL=lambda _: library),  # pyright: ignore
        sys=SimpleNamespace(platform="linux"),
    )
    memory.keep_freed_blocks()
    assert told == [(-3, 32 << 20), (-1, 128 << 20)], "M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc.h"
    instead(memory, sys=SimpleNamespace(platform="darwin"))
    memory.keep_freed_blocks()
    instead(memory, sys=SimpleNamespace(platform="linux"))
    del library.mallopt
    memory.keep_freed_blocks()
    assert len(told) == 2
