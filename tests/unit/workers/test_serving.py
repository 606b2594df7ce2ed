"""What a worker does for each call: its answer, its stages, what it asks back, and the collector between calls."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from app.answering.answers import Facts
from app.answering.operations import Inquiry, Logged, Operation, Reply
from app.answering.sources import LogDocument
from app.base import ticket
from app.base.errors import NotFound
from app.solver.engine import ENGINES
from app.solver.model.decision import ConfigurationUsed
from app.solver.question import safe_point
from app.workers import worker as working
from app.workers.messages import (
    Call,
    Closed,
    Document,
    Done,
    FromWorker,
    Head,
    WantDocument,
    WantHead,
    failed,
    receive,
    send,
    supply,
)
from tests.support.instead import Instead

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FACTS = Facts(
    now=0, engine="kueue", configuration=ConfigurationUsed(digest="c"), state_digest="s", asks=[], outcomes=[],
    reasons=[], evicted=[], victims={},
)  # fmt: skip


class Collector:
    """Stands for the garbage collector."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def freeze(self) -> None:
        self.told.append("freeze")

    def disable(self) -> None:
        self.told.append("disable")

    def get_count(self) -> tuple[int, int, int]:
        return 2_000, 7, 9

    def collect(self, generation: int) -> None:
        self.told.append(generation)


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, answerer: Any) -> Iterator[tuple[socket.socket, Collector, list[Any]]]:
    """A worker in a thread, with ``answerer`` in place of its own; what it told the collector and its reserve."""
    collector, reserved, imported = Collector(), list[Any](), list[str]()
    Instead(monkeypatch)(
        working,
        gc=collector,
        engine_of=imported.append,
        keep_freed_blocks=lambda: reserved.append("blocks"),
        Reserve=lambda most: reserved.append(most) or SimpleNamespace(grow=reserved.append),
        Answerer=answerer,
    )
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
    assert imported == list(ENGINES), "before the first request, not within it"


def call(body: bytes = b"", snapshot: str = "", seconds: float = 60.0, **more: Any) -> Call:
    return Call(Inquiry(Operation.DECISION, NOW, snapshot), time.monotonic() + seconds, seconds, **more)


class Echo:
    """An answerer that does what the body says."""

    def __init__(self, compiled: Any, store: Any) -> None:
        self._compiled = compiled

    def run(self, asked: Inquiry, body: bytes) -> Reply:
        if body == b"named":
            return Reply(self._compiled.named("prod", None).used.name.encode())
        if body == b"fault":
            raise ZeroDivisionError("x")
        if body == b"slow":
            time.sleep(0.002)
            safe_point()
        with ticket.stage("solve"):
            return Reply(body, FACTS, {"solve": 1.0}, [LogDocument("d", b"")], Logged(b"r", b"a"))


def test_a_worker_answers_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Echo) as (connection, collector, reserved):

        def ask(made: Call, body: bytes) -> tuple[Any, bytes]:
            send(connection, made, body)
            return receive(connection, FromWorker)

        assert ask(call(), b"one") == (
            Done((0, 0), FACTS, {"solve": 1.0}, [LogDocument("d", b"")], Logged(b"r", b"a")),
            b"one",
        )
        traced, _ = ask(call(traced=True), b"two")
        assert [stage.name for stage in traced.stages] == ["solve"]
        fault, _ = ask(call(traced=True), b"fault")
        assert (fault.error, fault.detail, fault.stages) == ("WorkerFault", "x", [])
        assert "ZeroDivisionError" in (fault.trace or "")
        for late, body in ((call(seconds=-1.0), b"none"), (call(seconds=0.001), b"slow")):
            refused, _ = ask(late, body)
            assert refused.error == "DeadlinePassed"
        ask(call(snapshot="s"), b"about a snapshot")
        for _ in range(58):
            ask(call(), b"")
    assert collector.told[:2] == ["freeze", "disable"]
    assert collector.told[2:66] == [0] * 50 + [2] + [0] * 13, "a full one once more than 100,000 have stayed"
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


def test_what_is_asked_of_one_who_is_gone_is_an_end_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Echo) as (connection, _, _):
        send(connection, call(), b"named")
        assert receive(connection, FromWorker)[0] == WantHead("prod")
    documents: Any = SimpleNamespace(head=lambda _: ("prod", 3))
    with pytest.raises(Closed):
        supply(connection, WantHead("prod"), documents)
