"""A follower that a service runs beside itself."""

import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from app.following import follower
from app.following.follower import Beside, Task, run
from app.following.objects import Broken
from tests.support.instead import Instead, Machine

WANTED = Beside(engine="kai", cluster="prod", url="http://127.0.0.1:1", token="t", context="own")


def test_it_follows_what_it_is_told_and_ends_with_signals_and_with_its_input(
    machine: Machine, instead: Instead
) -> None:
    made: list[Any] = []
    signals: dict[int, Any] = {}
    timers: list[Any] = []
    threads: list[Any] = []

    class Follower:
        stops = 0

        def __init__(self, *of: Any) -> None:
            made.append(of)

        def stop(self) -> None:
            Follower.stops += 1

        def run(self) -> None:
            signals[signal.SIGTERM](signal.SIGTERM, None)
            signals[signal.SIGINT](signal.SIGINT, None)
            assert Follower.stops == 2

    class Thread:
        def __init__(self, target: Any, args: Any, daemon: bool) -> None:
            threads.append((target, args, daemon))

        def start(self) -> None:
            threads.append("started")

    instead(
        follower,
        connect=lambda context: ("client of", context),
        Reader=lambda client: client,
        Arbiter=lambda *of: of,
        Tidy=lambda: "tidy",
        Follower=Follower,
    )
    instead(follower.signal, signal=signals.__setitem__)
    instead(
        follower.threading, Timer=lambda *of: timers.append(of) or SimpleNamespace(daemon=False, start=lambda: None)
    )
    instead(follower.threading, Thread=Thread)
    assert run(WANTED) == 0
    ((task, reader, arbiter, tidy),) = made
    assert (task, reader) == (Task("kai", "prod", "prod", "prod"), ("client of", "own"))
    assert (arbiter, tidy) == (("http://127.0.0.1:1", "t"), "tidy")
    (target, args, daemon), started = threads
    assert (daemon, started) == (True, "started")
    machine.reads(b"more")
    target(*args)
    assert sys.stdin.buffer.read() == b"", "it waits for the end"
    assert Follower.stops == 3
    assert timers == [(1.0, os._exit, (0,))] * 3, "whatever it waits for, the process ends soon"


def test_without_a_cluster_it_says_why(instead: Instead, capsys: pytest.CaptureFixture[str]) -> None:
    def connect(context: str | None) -> None:
        raise Broken("no cluster to follow: none")

    instead(follower, connect=connect)
    assert run(WANTED) == 1
    assert capsys.readouterr().err == "prod: no cluster to follow: none\n"
