"""Drawing in another process: what it is given, for how long, and what is told when it fails."""

import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.base.errors import DeadlinePassed, NotInstalled
from app.base.ticket import Ticket, holding
from app.simulations import drawing as main
from app.simulations import plots as elsewhere
from app.simulations.plots import Drawing, Waits
from tests.support.instead import Instead

ASKED = Drawing("title", [Waits({"all": [1.0]})])


class Process:
    """Stands for the other process: remembers what it was given."""

    def __init__(self, code: int = 0, errors: bytes = b"", *, late: bool = False) -> None:
        self.given: list[tuple[Any, ...]] = []
        self._done = SimpleNamespace(returncode=code, stdout=b"<svg/>", stderr=errors)
        self._late = late

    def __call__(self, command: list[str], *, input: bytes, capture_output: bool, timeout: float, check: bool) -> Any:  # noqa: A002
        assert (capture_output, check) == (True, False)
        self.given.append((command, msgspec.json.decode(input, type=Drawing), timeout))
        if self._late:
            raise subprocess.TimeoutExpired(command, timeout)
        return self._done


def test_it_has_what_is_left_of_the_request_else_a_minute(instead: Instead) -> None:
    process = Process()
    instead(subprocess, run=process)
    with holding(Ticket.now("small", 1000.0)):
        assert elsewhere.drawn(ASKED) == b"<svg/>"
    assert elsewhere.drawn(ASKED) == b"<svg/>"
    assert [given[:2] for given in process.given] == [
        ([sys.executable, "-P", "-m", "app.simulations.drawing"], ASKED)
    ] * 2
    asked, alone = (given[2] for given in process.given)
    assert 900 < asked <= 1000
    assert 50 < alone <= 60


def test_one_that_takes_too_long_is_told_with_the_time_it_had(instead: Instead) -> None:
    instead(subprocess, run=Process(late=True))
    with holding(Ticket.now("small", 7.0)), pytest.raises(DeadlinePassed) as late:
        elsewhere.drawn(ASKED)
    assert str(late.value) == str(DeadlinePassed(7.0))


def test_one_that_fails_is_told_with_the_end_of_what_it_said(instead: Instead) -> None:
    instead(subprocess, run=Process(1, b"a" * 10 + b"\xff" + b"b" * 1999))
    with pytest.raises(RuntimeError) as failed:
        elsewhere.drawn(ASKED)
    assert str(failed.value) == "drawing failed: �" + "b" * 1999


@pytest.mark.parametrize("error", [None, ValueError("sys.modules has None")])
def test_without_the_library_nothing_is_begun(error: Exception | None, instead: Instead) -> None:
    def find(name: str) -> None:
        assert name == "matplotlib"
        if error is not None:
            raise error

    process = Process()
    instead(subprocess, run=process)
    instead(elsewhere, find_spec=find)
    with pytest.raises(NotInstalled, match=r"uv tool install 'arbiter-preemption\[plot\]'"):
        elsewhere.drawn(ASKED)
    assert process.given == []
    instead(elsewhere, find_spec=find_spec)
    elsewhere.require()


@pytest.mark.parametrize("refused", [False, True])
def test_the_process_steps_back_where_it_may(refused: bool, instead: Instead) -> None:
    steps: list[int] = []

    def nice(by: int) -> None:
        steps.append(by)
        if refused:
            raise PermissionError

    written: list[bytes] = []
    instead(main, os=SimpleNamespace(nice=nice))
    streams = SimpleNamespace(
        stdin=SimpleNamespace(buffer=SimpleNamespace(read=lambda: msgspec.json.encode(ASKED))),
        stdout=SimpleNamespace(buffer=SimpleNamespace(write=written.append)),
    )
    instead(main, sys=streams)
    instead("app.simulations.drawing", svg=lambda drawing: repr(drawing).encode())
    main.main()
    assert (steps, written) == ([10], [repr(ASKED).encode()])
