# pyright: reportPrivateUsage=false
"""How long a database may keep anybody waiting, without one: clocks and connections that only pretend."""

import threading
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from app.base.settings import Settings
from app.db import connecting
from app.db import connecting as reach
from app.db.connecting import Breaker, Late, PatientConnection, left, within
from tests.support.instead import Clock, Instead


@pytest.fixture
def clock(clock: Clock) -> Clock:
    """That of connections."""
    clock.drives(reach)
    clock.now = 100.0
    return clock


def test_what_is_left_counts_down_to_nothing(clock: Clock) -> None:
    assert left() == float("inf")
    with within(3.0):
        assert left() == 3.0
        clock.now += 1.0
        with within(0.5):
            assert left() == 0.5
        assert left() == 2.0
        clock.now += 5.0
        assert left() == 0.0
    assert left() == float("inf")


class Waits:
    """psycopg's own waiting: remembers for how long, and ends as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
        self.asked: list[Any] = []
        self.takes = 0.0
        self.error: Exception | None = None

        def wait(connection: Any, gen: Any, interval: float = 0.1, timeout: float | None = None) -> str:
            self.asked.append((interval, timeout))
            clock.now += self.takes
            if self.error is not None:
                raise self.error
            return "done"

        Instead(monkeypatch)(psycopg.Connection, wait=wait)
        Instead(monkeypatch)(PatientConnection, close=lambda connection: self.asked.append("closed"))
        self.connection: Any = object.__new__(PatientConnection)
        monkeypatch.setattr(PatientConnection, "__del__", lambda connection: None, raising=False)


def test_waiting_ends_with_the_time_of_the_work(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    waits = Waits(monkeypatch, clock)
    assert waits.connection.wait(None) == "done"
    with within(2.0):
        waits.connection.wait(None)
        waits.connection.wait(None, 0.3, 1.0)
        waits.connection.wait(None, 0.3, 2.0)
        waits.connection.wait(None, 0.3, 5.0)
        clock.now += 1.9
        waits.connection.wait(None)
    assert waits.asked == [(0.1, None), (0.1, 2.0), (0.3, 1.0), (0.3, 2.0), (0.3, 2.0), (0.1, 0.5)]


def test_what_comes_too_late_is_late_and_its_connection_gone(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    waits = Waits(monkeypatch, clock)
    waits.error = psycopg.OperationalError("no")
    for takes, error in ((1.9, psycopg.OperationalError), (2.0, Late)):
        waits.takes = takes
        with within(2.0), pytest.raises(psycopg.OperationalError) as raised:
            waits.connection.wait(None)
        assert type(raised.value) is error
    assert waits.asked == [(0.1, 2.0), (0.1, 2.0), "closed"]


def test_connecting_ends_with_the_time_of_the_work(instead: Instead) -> None:
    go, closed = threading.Event(), threading.Event()
    made: Any = SimpleNamespace(close=closed.set)

    def slow(*arguments: Any, **named: Any) -> Any:
        assert (arguments, named) == (("a",), {"b": 1})
        assert threading.current_thread().daemon, "nobody who leaves waits for it"
        go.wait(60)
        return made

    instead(PatientConnection, connect=slow)
    with within(0.01), pytest.raises(Late, match="no connection to the database in time"):
        PatientConnection.within_time(("a",), {"b": 1})
    assert not closed.is_set()
    go.set()
    assert closed.wait(60), "what comes after all is closed"
    assert PatientConnection.within_time(("a",), {"b": 1}) is made

    def refused(*arguments: Any, **named: Any) -> Any:
        raise psycopg.OperationalError("refused")

    instead(PatientConnection, connect=refused)
    with pytest.raises(psycopg.OperationalError, match="refused"):
        PatientConnection.within_time((), {})


class NoThread:
    """A thread of a machine that has no more of them."""

    def __init__(self, *, target: Any, args: Any = (), name: str = "", daemon: bool) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_where_no_thread_is_to_be_had_connecting_fails_and_the_database_is_asked_next_time(instead: Instead) -> None:
    instead(reach, threading=SimpleNamespace(Thread=NoThread, Lock=threading.Lock, Event=threading.Event))
    with pytest.raises(psycopg.OperationalError, match="no thread"):
        PatientConnection.within_time((), {})
    breaker = Breaker(lambda: None, lambda: None)
    breaker.trip()
    assert not breaker.is_open, "without a probe it would never close again"


class Probed:
    """A breaker whose probes run where they are begun, and whose pauses only tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock, *answers: Exception | None) -> None:
        self.told: list[Any] = []
        self._answers = list(answers)
        self._clock = clock

        class Thread:
            def __init__(self, *, target: Any, name: str, daemon: bool) -> None:
                assert daemon
                self.start = target

        fake = SimpleNamespace(Thread=Thread, Lock=threading.Lock, Event=lambda: self)
        Instead(monkeypatch)(reach, threading=fake)
        self.closing = False
        self.breaker = Breaker(self._asked, lambda: self.told.append("opened"))

    def is_set(self) -> bool:
        return self.closing

    def set(self) -> None:
        self.closing = True

    def wait(self, seconds: float) -> None:
        self.told.append(seconds)
        self._clock.now += seconds

    def _asked(self) -> None:
        assert self.breaker.is_open
        self.told.append(("asked", left()))
        answer = self._answers.pop(0) if self._answers else self.breaker.close()
        if answer is not None:
            raise answer


def test_a_silent_database_is_asked_until_it_answers(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    probed = Probed(monkeypatch, clock, Late("x" * 300), Late("y"), None)
    with capture_logs() as lines:
        probed.breaker.trip()
    asked = ("asked", 2.0)
    assert probed.told == ["opened", asked, 0.5, asked, 0.5, asked]
    assert not probed.breaker.is_open
    assert [line["event"] for line in lines] == [
        "the database does not answer; it is left alone until it does", "the database answers again",
    ]  # fmt: skip
    assert (lines[0]["why"], lines[1]["seconds"]) == ("x" * 200, 1.0)


def test_one_that_answers_at_once_is_not_worth_a_line(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    probed = Probed(monkeypatch, clock, None, None)
    with capture_logs() as lines:
        probed.breaker.trip()
        probed.breaker.trip()
    assert (probed.told, lines) == (["opened", ("asked", 2.0)] * 2, [])


def test_who_closes_asks_no_more(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    probed = Probed(monkeypatch, clock, Late("x"))
    probed.breaker.trip()
    assert (probed.closing, probed.told) == (True, ["opened", ("asked", 2.0), 0.5, ("asked", 2.0)])
    probed.breaker.trip()
    assert len(probed.told) == 4
    again = Probed(monkeypatch, clock, None)
    again.breaker.is_open = True
    again.breaker.trip()
    assert again.told == [], "it is open already"


def test_the_server_gives_up_before_us(clock: Clock) -> None:
    day = {"idle": "60000"}
    with within(3.0):
        assert connecting._bounds() == {"statement": "2750"} | day
        clock.now += 2.7
        assert connecting._bounds() == {"statement": "100"} | day
    with within(0.3505):
        assert connecting._bounds() == {"statement": "100"} | day
    with within(0.352):
        assert connecting._bounds() == {"statement": "102"} | day


def test_a_connection_out_of_the_pool_is_tried_for_half_of_the_time(clock: Clock) -> None:
    told: list[Any] = []

    class Connection:
        autocommit = False

        def execute(self, sql: str) -> None:
            told.append((sql, left(), self.autocommit))
            if len(told) == 3:
                raise psycopg.OperationalError("gone")

    connection: Any = Connection()
    record: Any = SimpleNamespace(info={})
    connecting._mark_fresh(connection, record)
    connecting._ping(connection, record, None)
    assert told == [], "a new one need not be tried"
    with within(1.5):
        connecting._ping(connection, record, None)
    assert (told, connection.autocommit) == ([("", 0.75, True)], False)
    with within(9.0):
        connecting._ping(connection, record, None)
        assert told[1] == ("", 1.0, True)
        with pytest.raises(connecting.DisconnectionError):
            connecting._ping(connection, record, None)
    untried = connecting._untried.set(True)
    connecting._ping(connection, record, None)
    connecting._untried.reset(untried)
    assert len(told) == 3


def test_what_the_network_is_told() -> None:
    assert connecting.connect_arguments(Settings(database_connect_timeout=7)) == {
        "connect_timeout": 7, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }  # fmt: skip
