"""The service and its workers over a pair of sockets, no process between: who gets which call, what is asked back,
and what becomes of errors."""

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.answering.answers import Facts
from app.answering.operations import Inquiry, Logged, Operation, Reply
from app.answering.sources import LogDocument
from app.base import errors, ticket
from app.base.decoding import Malformed
from app.base.errors import BadInput, DeadlinePassed, NotFound, TooManyRequests, Unavailable
from app.base.ticket import Ticket
from app.solver.model.decision import ConfigurationUsed
from app.solver.model.problems import InvalidInput, Problem, Unsupported
from app.workers import pool as pooling
from app.workers.messages import (
    Call,
    Closed,
    Document,
    Done,
    Failed,
    Head,
    ToWorker,
    WantDocument,
    WantHead,
    WorkerFault,
    failed,
    raised,
    receive,
    send,
)
from app.workers.pool import Limits, Pool
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FACTS = Facts(
    now=0, engine="kueue", configuration=ConfigurationUsed(digest="c"), state_digest="s", asks=[], outcomes=[],
    reasons=[], evicted=[], victims={},
)  # fmt: skip
Answering = Callable[["Thread", Call, bytes], None]


def done(of: "Thread", call: Call, body: bytes) -> None:
    of.send(Done((1, 10)), body)


class Thread:
    """Stands for a worker's process: a thread that answers calls as it is told."""

    def __init__(self, connection: socket.socket, answering: Answering) -> None:
        self.connection = connection
        self.calls: list[tuple[Call, bytes]] = []
        self.killed = self.waited = False
        self._answering = answering
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, header: msgspec.Struct, body: bytes = b"") -> None:
        send(self.connection, header, body)

    def receive(self) -> Any:
        return receive(self.connection, ToWorker)

    def _run(self) -> None:
        try:
            while True:
                call, body = self.receive()
                self.calls.append((call, body))
                self._answering(self, call, body)
        except Closed:
            self.connection.close()

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> None:
        self.waited = True
        self._thread.join(60)

    def poll(self) -> int | None:
        return 0 if self.killed else None


class Shelf:
    """Configurations: one there, one that can't be reached."""

    def head(self, reference: str) -> tuple[str, int]:
        if reference == "away":
            raise Unavailable("away")
        if reference != "prod":
            raise NotFound(f"no {reference}")
        return "prod", 3

    def document(self, name: str, revision: int) -> bytes:
        if revision != 3:
            raise ZeroDivisionError("a surprise")
        return f"{name}@{revision}".encode()


class Workers:
    """A pool of threads."""

    def __init__(self, count: int, answering: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started: list[Thread] = []
        self.ours: list[socket.socket] = []

        def spawned(limits: Limits, of: int) -> tuple[Any, socket.socket]:
            assert (limits, of) == (Limits(1000, 5.0), count)
            ours, theirs = socket.socketpair()
            self.started.append(Thread(theirs, answering))
            self.ours.append(ours)
            return self.started[-1], ours

        Instead(monkeypatch)(pooling, spawned=spawned)
        self.pool = Pool(count, Shelf(), Limits(1000, 5.0))
        self.pool.start()

    def call(
        self, operation: Operation = Operation.DECISION, snapshot: str = "", seconds: float = 60.0, **where: Any
    ) -> Reply:
        return self.pool.call(Inquiry(operation, NOW, snapshot), b"body", Ticket.now("large", seconds), **where)


Made = Callable[..., Workers]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    made: list[Workers] = []

    def make(count: int = 1, answering: Answering = done) -> Workers:
        made.append(Workers(count, answering, monkeypatch))
        return made[-1]

    yield make
    for one in made:
        one.pool.close()


def test_a_call_carries_its_ticket_and_brings_back_all_that_was_said(workers: Made) -> None:
    kept, logged = LogDocument("d", b"{}"), Logged(b"request", b"answer")

    def answering(of: Thread, call: Call, body: bytes) -> None:
        of.send(Done((2, 30), FACTS, {"solve": 0.5}, [kept], logged), body[::-1])

    one = workers(2, answering)
    ticket = Ticket.now("large", 60)
    asked = Inquiry(Operation.DECISION, NOW)
    assert one.pool.call(asked, b"body", ticket) == Reply(b"ydob", FACTS, {"solve": 0.5}, [kept], logged)
    (call, body) = one.started[1].calls[0]
    assert (call.asked, call.end, call.seconds, call.heads, call.traced, body) == (
        asked, ticket.end, 60, {}, False, b"body",
    )  # fmt: skip
    assert (len(one.pool), one.pool.alive(), one.pool.busy(), one.pool.snapshot_totals()) == (2, 2, 0, (2, 30))
    one.call(worker=0)
    assert one.pool.snapshot_totals() == (4, 60)


def test_what_a_name_means_is_sent_along_where_it_is_known(workers: Made) -> None:
    one = workers()
    for reference, heads in (("prod", {"prod": Head("prod", 3)}), ("ghost", {}), ("away", {})):
        one.call(reference=reference)
        assert one.started[0].calls[-1][0].heads == heads


def test_what_a_worker_asks_back(workers: Made) -> None:
    found: list[Any] = []

    def answering(of: Thread, call: Call, body: bytes) -> None:
        for want in (WantHead("prod"), WantDocument("prod", 3), WantHead("ghost"), WantDocument("prod", 4)):
            of.send(want)
            found.append(of.receive())
        of.send(Done((0, 0)))

    workers(1, answering).call()
    head, document, (missing, _), (surprise, _) = found
    assert (head, document) == ((Head("prod", 3), b""), (Document(), b"prod@3"))
    assert isinstance(raised(missing), NotFound)
    assert (surprise.error, surprise.detail) == ("WorkerFault", "a surprise")


def test_an_error_of_a_worker_is_raised_here_and_the_next_call_is_answered(workers: Made) -> None:
    def answering(of: Thread, call: Call, body: bytes) -> None:
        if len(of.calls) == 1:
            of.send(failed(BadInput([Problem(pointer="/x", detail="no")])))
        else:
            done(of, call, body)

    one = workers(1, answering)
    with pytest.raises(BadInput) as refused:
        one.call()
    assert refused.value.problems == [Problem(pointer="/x", detail="no")]
    assert one.call().body == b"body"
    assert len(one.started) == 1


def lost(of: Thread, call: Call, body: bytes) -> None:
    of.connection.close()
    raise Closed


def test_a_worker_that_is_lost_is_replaced(workers: Made) -> None:
    one = workers(1, lambda of, call, body: done(of, call, body) if body == b"body" else lost(of, call, body))
    assert one.pool.snapshot_totals() == (0, 0)
    one.call(Operation.SNAPSHOT_PUT, "s")
    one.call(Operation.SNAPSHOT_PUT, "t")
    assert one.pool.snapshot_totals() == (1, 10)
    with pytest.raises(Unavailable, match=r"^the solver process stopped; its snapshots must be sent again$"):
        one.pool.call(Inquiry(Operation.DECISION, NOW), b"die", Ticket.now("large", 0))
    assert (one.pool.snapshot_totals(), len(one.started), one.started[0].killed) == ((0, 0), 2, True)
    assert (one.started[0].waited, one.ours[0].fileno()) == (True, -1), "nothing of it is left"
    with pytest.raises(DeadlinePassed, match=r"^no answer within 0 s"):
        one.pool.call(Inquiry(Operation.DECISION, NOW), b"die", Ticket.now("large", 0))
    with pytest.raises(Unavailable) as told:
        one.pool.call(Inquiry(Operation.DECISION, NOW), b"die", Ticket.now("large", 60))
    assert told.value.headers == {"Retry-After": "1"}
    assert (one.call().body, len(one.started)) == (b"body", 4)
    one.pool.close()
    assert [(started.waited, ours.fileno()) for started, ours in zip(one.started, one.ours, strict=True)] == [
        (True, -1)
    ] * 4


def test_a_deadline_has_passed_at_its_very_instant(workers: Made, clock: Clock) -> None:
    clock.drives(pooling)
    clock.now = 50.0
    one = workers(1, lost)
    for end, error in ((50.0, DeadlinePassed), (50.1, Unavailable)):
        with pytest.raises(error):
            one.pool.call(Inquiry(Operation.DECISION, NOW), b"", Ticket("large", end, 5.0))


def test_snapshots_go_where_the_fewest_are_and_stay_there(workers: Made) -> None:
    one = workers(3)
    names = "abcdef"
    for name in names:
        one.call(Operation.SNAPSHOT_PUT, name)
    assert [one.pool.owner(name) for name in names] == [0, 1, 2, 0, 1, 2]
    one.call(Operation.SNAPSHOT_PUT, "b")
    assert one.pool.owner("b") == 1
    one.call(Operation.SNAPSHOT_DELETE, "c")
    assert one.pool.owner("c") == 0, "nobody's is anybody's"
    one.call(Operation.SNAPSHOT_PUT, "g")
    assert one.pool.owner("g") == 2, "where c was"
    before = len(one.started[1].calls)
    one.call(Operation.SNAPSHOT_DELTA, "e")
    one.call(Operation.DECISION, "e")
    assert len(one.started[1].calls) == before + 2


def test_a_name_stays_where_it_is_being_put(workers: Made) -> None:
    """The worker is lost under a put: what it kept is forgotten, but not the name that others may be putting, too."""
    one = workers(
        2, lambda of, call, body: lost(of, call, body) if call.asked.snapshot == "b" else done(of, call, body)
    )
    one.call(Operation.SNAPSHOT_PUT, "x")
    one.call(Operation.SNAPSHOT_PUT, "a")
    with pytest.raises(Unavailable):
        one.call(Operation.SNAPSHOT_PUT, "b")
    assert [one.pool.owner(name) for name in ("x", "a", "b")] == [0, 1, 0]
    owners = one.pool._owners  # pyright: ignore[reportPrivateUsage]
    assert list(owners) == ["a", "b"], "x is gone with its worker"
    assert not one.pool._putting  # pyright: ignore[reportPrivateUsage]


def test_a_name_that_two_are_putting_stays_until_both_are_done(workers: Made) -> None:
    pool, put = workers().pool, Inquiry(Operation.SNAPSHOT_PUT, NOW, "s")
    with pool._routed(put):  # pyright: ignore[reportPrivateUsage]
        with pool._routed(put):  # pyright: ignore[reportPrivateUsage]
            pass
        pool._forget(["s"])  # pyright: ignore[reportPrivateUsage]
        assert "s" in pool._owners  # pyright: ignore[reportPrivateUsage]
    pool._forget(["s"])  # pyright: ignore[reportPrivateUsage]
    assert not pool._owners  # pyright: ignore[reportPrivateUsage]


def test_of_many_names_the_one_put_longest_ago_is_forgotten(workers: Made, bounded: Bounded) -> None:
    bounded(pooling, MOST_NAMES=2)
    one = workers(2)
    for name in ("a", "b", "a", "c"):
        one.call(Operation.SNAPSHOT_PUT, name)
    assert list(one.pool._owners) == ["a", "c"]  # pyright: ignore[reportPrivateUsage]


def test_a_worker_has_time_for_a_safe_point(workers: Made) -> None:
    one = workers()
    for seconds, least, most in ((60.0, 65.0, 70.0), (-100.0, 9.9, 10.0)):
        one.call(seconds=seconds)
        allowed = one.pool._workers[0].connection.gettimeout()  # pyright: ignore[reportPrivateUsage]
        assert allowed is not None
        assert least < allowed <= most


def test_stages_of_a_worker_are_told(workers: Made) -> None:
    stage = ticket.Stage("solve", 1.0, 2.0)

    def answering(of: Thread, call: Call, body: bytes) -> None:
        assert call.traced
        of.send(Done((0, 0), stages=[stage]) if len(of.calls) == 1 else Failed("NotFound", stages=[stage]))

    one, told = workers(1, answering), list[ticket.Stage]()
    with ticket.heard_by(told.append):
        one.call()
        with pytest.raises(NotFound):
            one.call()
    assert [one.name for one in told] == ["waiting", "solve"] * 2


def test_stages_are_told_to_nobody_and_what_is_asked_back_has_none(workers: Made) -> None:
    def answering(of: Thread, call: Call, body: bytes) -> None:
        if call.traced:
            of.send(WantHead("prod"))
            of.receive()
        of.send(Done((0, 0), stages=[ticket.Stage("solve", 1.0, 2.0)]), body)

    one, told = workers(1, answering), list[ticket.Stage]()
    assert one.call().body == b"body"
    with ticket.heard_by(told.append):
        assert one.call().body == b"body"
    assert [one.name for one in told] == ["waiting", "solve"]


def test_what_is_closed_answers_nobody(workers: Made) -> None:
    begun = threading.Event()

    def answering(of: Thread, call: Call, body: bytes) -> None:
        begun.set()
        of.receive()

    one, told = workers(1, answering), list[Unavailable]()

    def ask() -> None:
        try:
            one.call()
        except Unavailable as error:
            told.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(60)
    one.pool.close()
    asking.join(60)
    with pytest.raises(Unavailable) as later:
        one.call()
    for error in (*told, later.value):
        assert (error.detail, error.headers) == ("the service is shutting down", {"Retry-After": "1"})
    assert (len(told), len(one.started), one.pool.alive()) == (1, 1, 0)


@pytest.mark.parametrize(
    "error",
    [
        BadInput([Problem(pointer="/a", detail="b")], detail="c", extra={"code": "d"}), DeadlinePassed(2.5),
        Unavailable("away", retry_after=9), TooManyRequests("full"), InvalidInput([Problem(pointer="/a", detail="b")]),
        Malformed([Problem(pointer="", detail="b")]), Unsupported([Problem(pointer="", detail="b")]),
    ],
)  # fmt: skip
def test_errors_cross_as_they_are(error: Any) -> None:
    there = raised(msgspec.msgpack.decode(msgspec.msgpack.encode(failed(error)), type=Failed))
    assert type(there) is type(error)
    for name in ("detail", "problems", "headers", "extra"):
        assert getattr(there, name, None) == getattr(error, name, None)
    assert str(there) == str(error)


class Special(InvalidInput):
    """One that the other side does not know."""


def test_what_nobody_foresaw_crosses_with_its_trace() -> None:
    assert type(raised(failed(Special([Problem(pointer="", detail="x")])))) is InvalidInput
    fault = raised(failed(ZeroDivisionError("x"), "the trace"))
    assert (type(fault), str(fault)) == (WorkerFault, "the trace")
    assert str(raised(failed(ZeroDivisionError("x")))) == "x"
    for name in ("ArbiterError", "counted", "Iterable", "nothing"):
        found = raised(Failed(name, "y"))
        assert type(found) is (errors.ArbiterError if name == "ArbiterError" else WorkerFault)


def test_a_worker_that_is_replaced_while_all_close_ends_too(workers: Made) -> None:
    one = workers()
    one.pool._closing = True  # pyright: ignore[reportPrivateUsage]
    assert not one.pool._replace(0)  # pyright: ignore[reportPrivateUsage]
    assert [thread.killed for thread in one.started] == [True, True]
