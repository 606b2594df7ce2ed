# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
"""Serving, without a service: addresses as people are told them, the port, the order in which things begin and end."""

import asyncio
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.http.protocol import Limits
from app.http.routing import provide
from app.service import serve
from tests.support.instead import Instead
from tests.support.services import services


@pytest.fixture(autouse=True)
def process(instead: Instead) -> Iterator[None]:
    """What serving changes of the process is afterwards what it was before."""
    instead(serve.logs, configure=lambda _: None)
    told = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before, interval = [signal.getsignal(one) for one in told], sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    for one, handler in zip(told, before, strict=True):
        signal.signal(one, handler)


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"),
     ("[::1]", "[::1]"), ("arbiter.example", "arbiter.example")],
)  # fmt: skip
def test_an_address_is_one_that_a_browser_here_reaches(host: str, shown: str) -> None:
    assert serve._address(host, 80) == f"http://{shown}:80"


@pytest.mark.parametrize("console", ["on", "off"])
def test_people_are_told_where_to_look_and_what_to_try(
    console: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.chdir(tmp_path)
    serve._welcome(Settings(host="::1", console=console), 81, said.append)
    shown = ["Console:           http://[::1]:81/"] if console == "on" else []
    curl = "curl -s http://[::1]:81/v1/decisions -H 'Content-Type: application/json' -d @"
    assert said == [
        "Arbiter listens on http://[::1]:81", *shown, "Documentation:     http://[::1]:81/docs", "Try a decision:",
        f"  {curl}{serve.EXAMPLE}",
    ]  # fmt: skip
    monkeypatch.chdir(serve.EXAMPLE.parent)
    said.clear()
    serve._welcome(Settings(host="::1", console=console), 81, said.append)
    assert said[-1] == f"  {curl}kueue-classic.json"


def test_a_port_that_is_taken_is_said() -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve.run(Settings(port=port), said.append) == 1
    (line,) = said
    assert line.startswith(f"can't listen on 127.0.0.1:{port}: ")
    assert line.endswith("; set HOST or PORT")


def test_an_open_service_that_others_can_reach_does_not_begin() -> None:
    said: list[str] = []
    assert serve.run(Settings(host="0.0.0.0"), said.append) == 1
    assert said == ["0.0.0.0 can be reached from elsewhere: set ARBITER_AUTHENTICATION=required, or HOST=127.0.0.1"]


def test_limits_of_connections_are_those_of_the_settings(instead: Instead) -> None:
    settings = Settings(
        max_connections=20, head_timeout=1, body_timeout=2, idle_timeout=3, answer_timeout=4, answers_memory_bytes=5
    )
    limits = serve._limits
    with capture_logs() as lines:
        assert limits(settings) == Limits(connections=20, head=1, body=2, idle=3, answer=4, untaken=5)
    assert lines == []
    instead(serve, within_files=lambda wanted: wanted - 1)
    with capture_logs() as lines:
        assert limits(settings).connections == 19
    assert [(line["connections"], line["wanted"]) for line in lines] == [(19, 20)]


def _open_files(soft: int) -> Callable[[int], tuple[int, int]]:
    return lambda _: (soft, 10**9)


@pytest.mark.parametrize(
    ("files", "asked", "most"),
    [(1024, 1000, 768), (1024, 700, 700), (4096, 1000, 1000), (256, 1000, 16), (272, 1000, 16), (273, 1000, 17),
     (100, 5, 16), (resource.RLIM_INFINITY, 10**6, 10**6)],
)  # fmt: skip
def test_as_many_as_the_files_that_may_be_open(files: int, asked: int, most: int, instead: Instead) -> None:
    """256 are for other things than connections; 16 there are in any case."""
    instead(serve.resource, getrlimit=_open_files(files))
    assert serve.within_files(asked) == most


class Staged:
    """What ``run`` puts together, replaced by what remembers that it was begun and ended."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, prepared: bool = True, failing: type[BaseException] | None = None
    ):
        self.told: list[Any] = []
        self._prepared, self._failing = prepared, failing
        Instead(monkeypatch)(
            serve,
            EmbeddedPostgres=self._embeddedpostgres,
            Companion=self._companion,
            Server=self._server,
            prepare=self._prepare,
        )
        Instead(monkeypatch)(serve, create_app=lambda settings, beside: (settings.database_url, len(beside)))
        Instead(monkeypatch)(serve.logs, configure=lambda _: None)

    def _embeddedpostgres(self, folder: Path, *, say: Any) -> Any:
        def start() -> str:
            self.told.append("database")
            return "postgresql://own"

        return SimpleNamespace(
            start=start, watch=lambda: self.told.append("watched"), stop=lambda: self.told.append("no database")
        )

    def _companion(self, module: str, line: str) -> Any:
        return self.beside(module)

    def beside(self, name: str) -> Any:
        return SimpleNamespace(start=lambda: self.told.append(f"+{name}"), close=lambda: self.told.append(f"-{name}"))

    def _prepare(self, settings: Settings, say: Any) -> bool:
        self.told.append(("prepared", settings.database_url))
        return self._prepared

    def _server(self, app: Any, *, fill: bool) -> Any:
        def run(sockets: list[socket.socket]) -> None:
            assert len(sockets) == 1
            self.told.append(("served", app, fill))
            if self._failing is not None:
                raise self._failing("why")

        return SimpleNamespace(run=run)

    def run(self, **settings: Any) -> tuple[int, list[str]]:
        said: list[str] = []
        given = Settings(port=0, **settings)
        return serve.run(given, said.append, lambda address: [self.beside(address.rpartition(":")[0])]), said


BESIDE = ["+app.service.background", "+http://127.0.0.1"]
ENDED = ["-app.service.background", "-http://127.0.0.1"]


def test_what_was_begun_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    staged = Staged(monkeypatch)
    code, said = staged.run()
    assert (code, said[0].startswith("Arbiter listens on http://127.0.0.1:")) == (0, True)
    own = "postgresql://own"
    assert staged.told == [
        "database", "watched", ("prepared", own), *BESIDE, ("served", (own, 2), True), *ENDED, "no database",
    ]  # fmt: skip


def test_a_database_of_ones_own_is_left_alone_and_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    staged = Staged(monkeypatch)
    assert staged.run(database_url="postgresql://x", simulation_worker="elsewhere")[0] == 0
    assert staged.told == [
        ("prepared", "postgresql://x"), BESIDE[1], ("served", ("postgresql://x", 1), False), ENDED[1],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prepared", "settings"),
    [(False, {}), (True, {"examples": "off"}), (True, {"authentication": "required"})],
)
def test_only_a_new_open_service_begins_with_examples(
    prepared: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = Staged(monkeypatch, prepared)
    assert staged.run(**settings)[0] == 0
    assert ("served", ("postgresql://own", 2), False) in staged.told


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 0), (serve.EmbeddedError, 1)])
def test_whatever_ends_it_all_is_ended(error: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = Staged(monkeypatch, failing=error)
    ended, said = staged.run()
    assert ended == code
    assert staged.told[-3:] == [*ENDED, "no database"]
    assert ("why" in said) is (code == 1)


def test_being_told_to_stop_is_an_interruption(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    configured: list[Any] = []
    staged = Staged(monkeypatch)
    instead(serve.logs, configure=configured.append)
    staged.run()
    assert ([one.port for one in configured], sys.getswitchinterval()) == ([0], pytest.approx(0.0002))
    for told in (signal.SIGTERM, signal.SIGHUP):
        assert signal.getsignal(told) is signal.default_int_handler


def test_a_database_that_is_away_is_said_and_waited_for(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    answers: list[Any] = [Unavailable("the database is away"), Unavailable("still"), True]
    pauses: list[float] = []
    later: list[Any] = []

    def migrated(settings: Settings) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    class Thread:
        def __init__(self, *, target: Any, args: Any, daemon: bool) -> None:
            assert daemon
            self._work = (target, args)

        def start(self) -> None:
            later.append(self._work)

    instead(serve, migrated=migrated, threading=SimpleNamespace(Thread=Thread))
    instead(serve, time=SimpleNamespace(sleep=pauses.append))
    said: list[str] = []
    prepare = serve.prepare
    assert not prepare(Settings(), said.append)
    assert said == ["the database is away: serving what needs no database until it is back (/readyz)"]
    ((target, arguments),) = later
    target(*arguments)
    assert (answers, pauses) == ([], [5.0, 5.0])
    answers.append(True)
    assert prepare(Settings(), said.append)
    assert len(said) == len(later) == 1


class Answers:
    """A service that answers examples with one status, and remembers what it was sent."""

    def __init__(self, status: int = 200, error: Exception | None = None) -> None:
        self.sent: list[Any] = []
        self.closed = 0
        self._status, self._error = status, error

    def __call__(self, host: str, port: int, *, timeout: float) -> Any:
        self.sent.append((host, port))
        return self

    def request(self, *sent: Any) -> None:
        self.sent.append(sent)
        if self._error is not None:
            raise self._error

    def getresponse(self) -> Any:
        return SimpleNamespace(status=self._status, read=lambda most: b"said")

    def close(self) -> None:
        self.closed += 1


def test_examples_are_sent_as_anybody_could(instead: Instead) -> None:
    def fill(send: Any) -> None:
        send("PUT", "/a", b"x", "text/plain")
        send("POST", "/b", b"y", "text/css")

    instead(serve, fill=fill)
    for answers, complete in (
        (Answers(), True), (Answers(399), True), (Answers(400), False), (Answers(error=OSError("gone")), False),
        (Answers(error=serve.HTTPException("what?")), False),
    ):  # fmt: skip
        instead(serve, HTTPConnection=answers)
        serve._filled(("h", 7))
        first = [("h", 7), ("PUT", "/a", b"x", {"Content-Type": "text/plain"})]
        second = [("h", 7), ("POST", "/b", b"y", {"Content-Type": "text/css"})]
        assert answers.sent == (first + second if complete else first)
        assert answers.closed == (2 if complete else 1)


def test_the_server_ends_in_the_time_that_is_promised(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    """Requests have four seconds of the ten; then solving is given up; half a second before the end it is ended."""
    app, given_up, dumps = FastAPI(), Queue[bool](), list[Any]()
    dispatcher = object.__new__(serve.Dispatcher)
    instead(serve.Dispatcher, close=lambda _: given_up.put(threading.current_thread().daemon))
    instead(serve.faulthandler, dump_traceback_later=lambda *a, **k: dumps.append((a, k)))
    provide(app.state, services(Settings(idle_timeout=7.4, max_connections=3), dispatcher))
    server = serve.Server(app)
    config = server.config
    assert (config.timeout_graceful_shutdown, config.timeout_keep_alive, config.backlog) == (5, 7, 64)
    assert (config.access_log, config.server_header, config.date_header) == (False, False, True)
    assert signal.getsignal(signal.SIGHUP) == server.handle_exit
    server.handle_exit(signal.SIGTERM, None)
    assert (server.should_exit, dumps) == (True, [((9.5,), {"exit": True})])

    later: list[Any] = []

    class Timer:
        def cancel(self) -> None:
            later.append("cancelled")

    async def shutdown(self: Any, sockets: Any = None) -> None:
        seconds, begin = later[0]
        assert seconds == 4
        begin()
        raise ZeroDivisionError

    instead(serve.uvicorn.Server, shutdown=shutdown)

    async def ended() -> None:
        loop = asyncio.get_running_loop()
        Instead(monkeypatch)(loop, call_later=lambda seconds, call: later.append((seconds, call)) or Timer())
        with pytest.raises(ZeroDivisionError):
            await server.shutdown()
        monkeypatch.undo()

    asyncio.run(ended())
    assert later[-1] == "cancelled"
    assert given_up.get(timeout=60), "what solves on holds nobody up"


def test_more_may_wait_than_are_accepted_at_once(instead: Instead) -> None:
    app, filled, listening = FastAPI(), list[Any](), list[int]()
    provide(app.state, services(Settings()))

    class Socket:
        def listen(self, backlog: int) -> None:
            listening.append(backlog)

        def getsockname(self) -> Any:
            return ("::1", 7, 0, 0)

    class Thread:
        def __init__(self, *, target: Any, args: Any, name: str, daemon: bool) -> None:
            assert daemon
            filled.append((target, args, name))

        def start(self) -> None:
            filled.append("begun")

    async def startup(self: Any, sockets: Any = None) -> None:
        return

    instead(serve.uvicorn.Server, startup=startup)
    instead(serve, threading=SimpleNamespace(Thread=Thread))
    sockets: Any = [Socket(), Socket()]
    asyncio.run(serve.Server(app).startup(sockets))
    assert (listening, filled) == ([2048, 2048], [])
    asyncio.run(serve.Server(app, fill=True).startup(None))
    assert filled == []
    asyncio.run(serve.Server(app, fill=True).startup(sockets))
    assert filled == [(serve._filled, (("::1", 7),), "examples"), "begun"]
