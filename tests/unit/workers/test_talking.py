"""The service and its workers over a pair of sockets, no process between: who gets which call, what is asked back,
what becomes of errors, and what a worker does for each call."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app import errors, tracing
from app.answering.answerer import Answerer, Logged, Reply
from app.answering.answers import Facts
from app.answering.operations import Asked, Operation
from app.answering.recording import Kept
from app.decoding import Malformed
from app.errors import BadInput, DeadlinePassed, NotFound, TooManyRequests, Unavailable
from app.solver.model.decision import ConfigurationUsed
from app.solver.model.problems import InvalidInput, Problem, Unsupported
from app.solver.stopping import safe_point
from app.waiting import TooSlow
from app.workers import pool as pooling
from app.workers import worker as working
from app.workers.dispatcher import Dispatcher
from app.workers.frames import Closed, receive, send
from app.workers.memory import Reserve
from app.workers.messages import (
    Call,
    Document,
    Done,
    Failed,
    FromWorker,
    Head,
    ToWorker,
    WantDocument,
    WantHead,
    WorkerFault,
    failed,
    raised,
)
from app.workers.pool import Limits, Pool
from app.workers.ticket import Ticket, held, holding

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
        self.killed = False
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

        def spawn(limits: Limits, of: int) -> Callable[[], tuple[Any, socket.socket]]:
            assert (limits.seconds, of) == (5.0, count)

            def start() -> tuple[Any, socket.socket]:
                ours, theirs = socket.socketpair()
                self.started.append(Thread(theirs, answering))
                return self.started[-1], ours

            return start

        monkeypatch.setattr(Pool, "_spawn", staticmethod(spawn))
        self.pool = Pool(count, Shelf(), Limits(seconds=5.0))
        self.pool.start()

    def call(
        self, operation: Operation = Operation.DECISION, snapshot: str = "", seconds: float = 60.0, **where: Any
    ) -> Reply:
        return self.pool.call(Asked(operation, NOW, snapshot), b"body", Ticket.now("large", seconds), **where)


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
    kept, logged = Kept("d", b"{}"), Logged(b"request", b"answer")

    def answering(of: Thread, call: Call, body: bytes) -> None:
        of.send(Done((2, 30), FACTS, {"solve": 0.5}, [kept], logged), body[::-1])

    one = workers(2, answering)
    ticket = Ticket.now("large", 60)
    asked = Asked(Operation.DECISION, NOW)
    assert one.pool.call(asked, b"body", ticket) == Reply(b"ydob", FACTS, {"solve": 0.5}, [kept], logged)
    (call, body) = one.started[1].calls[0]
    assert (call.asked, call.end, call.seconds, call.heads, call.traced, body) == (
        asked, ticket.end, 60, {}, False, b"body",
    )  # fmt: skip
    assert (len(one.pool), one.pool.alive(), one.pool.busy(), one.pool.kept()) == (2, 2, 0, (2, 30))
    one.call(worker=0)
    assert one.pool.kept() == (4, 60)


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
    one.call(Operation.SNAPSHOT_PUT, "s")
    one.call(Operation.SNAPSHOT_PUT, "t")
    assert one.pool.kept() == (1, 10)
    with pytest.raises(Unavailable, match=r"^the solver process stopped; its snapshots must be sent again$"):
        one.pool.call(Asked(Operation.DECISION, NOW), b"die", Ticket.now("large", 0))
    assert (one.pool.kept(), len(one.started), one.started[0].killed) == ((0, 0), 2, True)
    with pytest.raises(DeadlinePassed, match=r"^no answer within 0 s"):
        one.pool.call(Asked(Operation.DECISION, NOW), b"die", Ticket.now("large", 0))
    with pytest.raises(Unavailable) as told:
        one.pool.call(Asked(Operation.DECISION, NOW), b"die", Ticket.now("large", 60))
    assert told.value.headers == {"Retry-After": "1"}
    assert (one.call().body, len(one.started)) == (b"body", 4)


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


def test_of_many_names_the_one_put_longest_ago_is_forgotten(workers: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "_MOST_NAMES", 2)
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
    stage = tracing.Stage("solve", 1.0, 2.0)

    def answering(of: Thread, call: Call, body: bytes) -> None:
        assert call.traced
        of.send(Done((0, 0), stages=[stage]) if len(of.calls) == 1 else Failed("NotFound", stages=[stage]))

    one, told = workers(1, answering), list[tracing.Stage]()
    with tracing.told(told.append):
        one.call()
        with pytest.raises(NotFound):
            one.call()
    assert [one.name for one in told] == ["waiting", "solve"] * 2


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


class Collector:
    """Stands for the garbage collector."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def freeze(self) -> None:
        self.told.append("freeze")

    def disable(self) -> None:
        self.told.append("disable")

    def collect(self, generation: int) -> None:
        self.told.append(generation)


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, answerer: Any) -> Iterator[tuple[socket.socket, Collector, list[Any]]]:
    """A worker in a thread, with ``answerer`` in place of its own; what it told the collector and its reserve."""
    collector, reserved = Collector(), list[Any]()
    monkeypatch.setattr(working, "gc", collector)
    monkeypatch.setattr(working, "keep_freed_blocks", lambda: reserved.append("blocks"))
    monkeypatch.setattr(working, "Reserve", lambda most: reserved.append(most) or SimpleNamespace(grow=reserved.append))
    monkeypatch.setattr(working, "Answerer", answerer)
    ours, theirs = socket.socketpair()

    def run() -> None:
        with theirs, pytest.raises(Closed):
            working.serve(theirs, 1000, 60.0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ours, collector, reserved
    finally:
        ours.close()
        thread.join(60)


def call(body: bytes = b"", snapshot: str = "", seconds: float = 60.0, **more: Any) -> Call:
    return Call(Asked(Operation.DECISION, NOW, snapshot), time.monotonic() + seconds, seconds, **more)


class Echo:
    """An answerer that does what the body says."""

    def __init__(self, compiled: Any, store: Any) -> None:
        self._compiled = compiled

    def run(self, asked: Asked, body: bytes) -> Reply:
        if body == b"named":
            return Reply(self._compiled.named("prod", None).used.name.encode())
        if body == b"fault":
            raise ZeroDivisionError("x")
        if body == b"slow":
            time.sleep(0.002)
            safe_point()
        with tracing.stage("solve"):
            return Reply(body, FACTS, {"solve": 1.0}, [Kept("d", b"")], Logged(b"r", b"a"))


def test_a_worker_answers_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Echo) as (connection, collector, reserved):

        def ask(made: Call, body: bytes) -> tuple[Any, bytes]:
            send(connection, made, body)
            return receive(connection, FromWorker)

        assert ask(call(), b"one") == (
            Done((0, 0), FACTS, {"solve": 1.0}, [Kept("d", b"")], Logged(b"r", b"a")),
            b"one",
        )
        traced, _ = ask(call(traced=True), b"two")
        assert [stage.name for stage in traced.stages] == ["solve"]
        fault, _ = ask(call(traced=True), b"fault")
        assert (fault.error, fault.detail, fault.stages) == ("WorkerFault", "x", [])
        assert "ZeroDivisionError" in (fault.trace or "")
        for late in (call(seconds=-1.0), call(seconds=0.001)):
            refused, _ = ask(late, b"slow")
            assert refused.error == "DeadlinePassed"
        ask(call(snapshot="s"), b"about a snapshot")
        for _ in range(58):
            ask(call(), b"")
    assert collector.told[:2] == ["freeze", "disable"]
    assert collector.told[2:66] == [0] * 63 + [2]
    assert reserved[:2] == ["blocks", 256 << 20]
    assert reserved[2:8] == [3, 3, 5, 4, 4, 0], "what is about a snapshot is kept anyway"


def test_a_worker_asks_for_what_it_has_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    document = b'{"engine":"kueue"}'
    with served(monkeypatch, Echo) as (connection, _, _):

        def ask(made: Call, *answers: tuple[Any, bytes]) -> list[Any]:
            send(connection, made, b"named")
            asked = []
            for header, body in answers:
                asked.append(receive(connection, FromWorker)[0])
                send(connection, header, body)
            return [*asked, receive(connection, FromWorker)]

        want, fetch, (_, name) = ask(call(), (Head("prod", 3), b""), (Document(), document))
        assert (want, fetch, name) == (WantHead("prod"), WantDocument("prod", 3), b"prod")
        assert ask(call(heads={"prod": Head("prod", 3)}))[0][1] == b"prod", "both are known"
        fetch, (_, name) = ask(call(heads={"prod": Head("prod", 4)}), (Document(), document))
        assert (fetch, name) == (WantDocument("prod", 4), b"prod")
        _, (refused, _) = ask(call(), (failed(NotFound("gone")), b""))
        assert (refused.error, refused.detail) == ("NotFound", "gone")


class Calls:
    """Stands for a pool, or for an answerer: what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def run(self, asked: Asked, body: bytes) -> Reply:
        self.asked.append(("here", asked.snapshot, held()))
        return Reply(b"here")

    def call(self, asked: Asked, body: bytes, ticket: Ticket, **where: Any) -> Reply:
        self.asked.append((asked.snapshot, where.get("reference"), where.get("worker"), ticket.of))
        return Reply(b"there")

    def __len__(self) -> int:
        return 2

    def close(self) -> None:
        self.asked.append("closed")


def dispatcher(pool: Any = None, **more: Any) -> tuple[Dispatcher, Calls]:
    here = Calls()
    return Dispatcher(cast("Answerer", here), pool, **({"small": 10, "seconds": 60.0} | more)), here


NAMED = b'{"state":{"snapshot":"s"},"configuration":"c"}'


def test_classes_of_requests() -> None:
    made, _ = dispatcher(small=len(NAMED))
    assert made.class_of(NAMED) == "snapshot"
    assert made.class_of(NAMED + b" ") == "large"
    assert made.class_of(b"{}") == "small"
    assert made.class_of(b"{}", "s") == made.class_of(b"x" * 99, "s") == "snapshot"
    assert [made.class_of_import(b"x" * size) for size in (len(NAMED), len(NAMED) + 1)] == ["slow", "large"]


def test_who_answers_what() -> None:
    pool = Calls()
    made, here = dispatcher(pool)
    decision, large = Asked(Operation.DECISION, NOW), b"x" * 11
    assert made.run(decision, b"{}").body == b"here"
    assert made.run(decision, large).body == b"there"
    made.run(decision, NAMED + b" " * 20, ("t", "d"))
    made.run(decision, NAMED)
    made.run(Asked(Operation.SNAPSHOT_GET, NOW, "kept"), b"")
    made.run(Asked(Operation.PREEMPTION, NOW, "kept", configuration="prod"), b"{}")
    made.run(Asked(Operation.IMPORT, NOW), large)
    with holding(Ticket.now("slow", 5)):
        made.run(decision, b"{}")
    assert pool.asked == [
        ("", None, None, "large"), ("t", "d", None, "large"), ("s", "c", None, "large"),
        ("kept", None, None, "snapshot"), ("kept", "prod", None, "snapshot"), ("", None, None, "large"),
        ("", None, None, "slow"),
    ]  # fmt: skip
    assert [one[:2] for one in here.asked] == [("here", "")]
    alone, here = dispatcher()
    assert alone.run(decision, large).body == b"here"


def test_everywhere_is_every_worker() -> None:
    pool = Calls()
    made, _ = dispatcher(pool)
    assert [one.body for one in made.everywhere(Asked(Operation.SNAPSHOT_LIST, NOW))] == [b"there"] * 2
    assert [one[2:] for one in pool.asked] == [(0, "large"), (1, "large")]
    alone, _ = dispatcher()
    assert [one.body for one in alone.everywhere(Asked(Operation.SNAPSHOT_LIST, NOW))] == [b"here"]
    assert (alone.waiting().total(), alone.workers()) == (0, (0, 0))
    made.close()
    assert pool.asked[-1] == "closed"


class Times:
    """A clock, and how much of the processor was used by then."""

    def __init__(self) -> None:
        self.now = self.used = 0.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.used


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    made = Times()
    monkeypatch.setattr("app.workers.dispatcher.time", made)
    monkeypatch.setattr("app.workers.ticket.time", made)
    return made


def safe(made: Dispatcher, times: Times, ticket: Ticket, *steps: tuple[float, float]) -> int | None:
    """The first of ``steps``, each an instant and the processor's time by then, at which the work is too slow."""
    reached: list[int] = []

    def work() -> None:
        for i, (times.now, times.used) in enumerate(steps):
            reached.append(i)
            safe_point()

    times.now = times.used = 0.0
    try:
        with holding(ticket):
            made.here(work)
    except TooSlow:
        return reached[-1]
    return None


@pytest.mark.parametrize(
    ("at_once", "pooled", "crowded", "steps", "slow"),
    [
        # On the event loop: two milliseconds of the processor, looked at every two.
        (True, True, False, [(0.0021, 0.0), (0.0042, 0.0019), (0.0063, 0.0021)], 2),
        (True, False, False, [(0.0021, 0.0), (0.0030, 0.9)], None),
        (True, False, False, [(0.0021, 0.5), (0.0042, 0.503)], 1),
        # A small one where others can take it: a tenth of a second, or five milliseconds in a crowd.
        (False, True, False, [(0.0051, 0.0), (0.2, 0.1), (0.3, 0.1001)], 2),
        (False, True, True, [(0.0051, 0.0), (0.2, 0.005), (0.3, 0.0051)], 2),
        (False, False, True, [(0.0051, 0.0), (10.0, 9.0)], None),
    ],
)
def test_how_long_a_small_one_is_tried(
    times: Times, at_once: bool, pooled: bool, crowded: bool, steps: list[tuple[float, float]], slow: int | None
) -> None:
    made, _ = dispatcher(Calls() if pooled else None)
    made.crowded = lambda: crowded
    assert safe(made, times, Ticket("small", 100.0, 100.0, at_once), *steps) == slow
    assert safe(made, times, Ticket("slow", 100.0, 100.0), (0.1, 0.0), (90.0, 89.0)) is None


def test_work_here_ends_with_its_ticket(times: Times) -> None:
    made, _ = dispatcher(seconds=7.0)
    assert safe(made, times, Ticket("slow", 1.0, 1.0), (0.9, 0.0)) is None
    with pytest.raises(DeadlinePassed, match=r"^no answer within 1 s"):
        safe(made, times, Ticket("slow", 1.0, 1.0), (1.0, 0.0))

    def late() -> None:
        times.now += 7.0
        safe_point()

    with pytest.raises(DeadlinePassed, match=r"^no answer within 7 s"):
        made.here(late)


def test_a_ticket_counts_down(times: Times) -> None:
    ticket = Ticket.now("large", 2.0)
    times.now = 1.5
    assert (ticket.end, ticket.left, held()) == (2.0, 0.5, None)
    ticket.check()
    times.now = 2.0
    assert ticket.left == 0.0
    with pytest.raises(DeadlinePassed):
        ticket.check()
    times.now = 3.0
    assert ticket.left == 0.0


def test_a_reserve_is_a_quarter_larger_than_asked_for_and_no_larger_than_its_bound() -> None:
    reserve = Reserve(40 << 20)

    def filled(body: int) -> int:
        reserve.grow(body)
        return reserve._filled  # pyright: ignore[reportPrivateUsage]

    mebibyte = 1 << 20
    assert filled(mebibyte) == 9 * mebibyte * 5 // 4
    assert filled(mebibyte * 5 // 4) == 9 * mebibyte * 5 // 4
    assert filled(2 * mebibyte) == 18 * mebibyte * 5 // 4
    assert filled(100 * mebibyte) == 40 * mebibyte
