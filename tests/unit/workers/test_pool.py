"""Worker processes for real: answers, configurations by name, snapshots, deadlines, crashes, limits."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from app.answering.answers import answer
from app.answering.operations import Inquiry, Operation, Reply
from app.answering.sources import nothing_stored
from app.base.errors import DeadlinePassed, NotFound, Unavailable
from app.base.ticket import Ticket
from app.solver.model.problems import InvalidInput
from app.workers.dispatcher import named_in
from app.workers.pool import Limits, Pool
from tests.support.bounds import Bounded
from tests.support.instead import Instead

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CONFIGURATION: dict[str, Any] = {
    "engine": "kueue",
    "flavors": [{"name": "default"}],
    "queues": [
        {
            "name": "q",
            "quota": {"cpu": {"guaranteed": 2}},
            "kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}},
        }
    ],
}
TASK = {"name": "m", "requests": {"cpu": 1}}
STATE = {
    "workloads": [
        {"id": f"w{i}", "queue": "q", "uid": str(i), "tasks": [{**TASK, "flavors": {"cpu": "default"}}]}
        for i in range(2)
    ]
}
ASK = {"id": "ask", "queue": "q", "uid": "u", "priority": 9, "tasks": [TASK]}


class Shelf:
    """One configuration in two revisions, and a count of how often the document was fetched."""

    def __init__(self) -> None:
        self.revision = 1
        self.fetched = 0

    def head(self, reference: str) -> tuple[str, int]:
        if reference != "prod":
            raise NotFound(f"no configuration {reference!r}")
        return "prod", self.revision

    def document(self, name: str, revision: int) -> bytes:
        self.fetched += 1
        return msgspec.json.encode({**CONFIGURATION, "settings": {"kueue": {"fair_sharing": revision == 2}}})


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


SECONDS = 120
"""For what shall come to its end, on any machine."""


@pytest.fixture
def pool(shelf: Shelf) -> Iterator[Pool]:
    opened = Pool(2, shelf, Limits(1 << 30, SECONDS))
    opened.start()
    yield opened
    opened.close()


def call(
    pool: Pool, operation: Operation, body: bytes, *, snapshot: str = "", ticket: Ticket | None = None, **where: Any
) -> Reply:
    """A call at noon, with time enough unless told otherwise."""
    return pool.call(Inquiry(operation, NOW, snapshot), body, ticket or Ticket.now("large", SECONDS), **where)


def body(**fields: Any) -> bytes:
    return msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE, "asks": [ASK], **fields})


def test_a_worker_answers_exactly_as_this_process_does(pool: Pool) -> None:
    here = answer(body(), NOW, nothing_stored())
    there = call(pool, Operation.DECISION, body())
    assert there.body == here.body
    assert there.facts == here.facts
    assert b'"victims":[{' in there.body


@pytest.mark.slow
def test_configurations_by_name_are_fetched_once_a_revision(pool: Pool, shelf: Shelf) -> None:
    for _ in range(3):
        used = msgspec.json.decode(call(pool, Operation.DECISION, body(configuration="prod"), worker=0).body)
        assert used["configuration"]["revision"] == 1
    shelf.revision = 2
    used = msgspec.json.decode(call(pool, Operation.DECISION, body(configuration="prod"), worker=0).body)
    assert used["configuration"]["revision"] == 2
    assert shelf.fetched == 2
    with pytest.raises(NotFound):
        call(pool, Operation.DECISION, body(configuration="ghost"))


@pytest.mark.slow
def test_what_a_reference_means_is_sent_along_where_it_is_known(pool: Pool, shelf: Shelf) -> None:
    for revision in (1, 2):
        shelf.revision = revision
        answered = call(pool, Operation.DECISION, body(configuration="prod"), worker=0, reference="prod").body
        assert msgspec.json.decode(answered)["configuration"]["revision"] == revision
    with pytest.raises(NotFound):
        call(pool, Operation.DECISION, body(configuration="ghost"), reference="ghost")


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b'{"state": {"snapshot": "s"}, "configuration": "c@1"}', ("s", "c@1")),
        (b'{"state": {"snapshot": "s"}, "configuration": {"queues": []}}', ("s", None)),
        (b'{"state": {"snapshot": "s"}}', ("s", None)),
        (b'{"state": {}, "configuration": "c"}', (None, None)),
        (b'{"asks": [{"id": "snapshot"}], "configuration": "c"}', (None, "c")),
        (b'{"state": {"snapshot": 1}, "configuration": "c"}', (None, None)),
        (b'{"state": {"snapshot": "s"}, "configuration": "\xff"}', (None, None)),
        (b'"snapshot"', (None, None)),
    ],
)
def test_what_a_body_names(sent: bytes, named: tuple[str | None, str | None]) -> None:
    assert named_in(sent) == named


def test_bad_input_crosses_with_its_pointers(pool: Pool) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(pool, Operation.DECISION, body(asks=[{**ASK, "queue": "ghost"}]))
    assert [p.pointer for p in refused.value.problems] == ["/asks/0/queue"]


def test_a_snapshot_lives_in_its_owner_and_answers_as_the_whole_state_does(pool: Pool) -> None:
    put = msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE})
    status = msgspec.json.decode(call(pool, Operation.SNAPSHOT_PUT, put, snapshot="s").body)
    assert (status["generation"], status["counts"]["workloads"]) == (1, 2)
    kept = msgspec.json.decode(call(pool, Operation.DECISION, body(state={"snapshot": "s"}), snapshot="s").body)
    whole = msgspec.json.decode(answer(body(), NOW, nothing_stored()).body)
    assert kept["state"] == {**whole["state"], "snapshot": "s", "generation": 1}
    assert kept["decisions"] == whole["decisions"]


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_snapshots_are_gone(pool: Pool) -> None:
    put = msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE})
    call(pool, Operation.SNAPSHOT_PUT, put, snapshot="s")
    os.kill(pool._workers[pool.owner("s")].process.pid, signal.SIGKILL)
    with pytest.raises(Unavailable):
        call(pool, Operation.SNAPSHOT_GET, b"", snapshot="s")
    with pytest.raises(NotFound) as lost:
        call(pool, Operation.SNAPSHOT_GET, b"", snapshot="s")
    assert lost.value.extra == {"code": "snapshot_lost"}
    assert pool.alive() == 2


@pytest.mark.slow
def test_a_change_that_is_past_its_deadline_has_changed_nothing_and_the_count_is_told(pool: Pool) -> None:
    put = msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE})
    call(pool, Operation.SNAPSHOT_PUT, put, snapshot="s")
    assert pool.snapshot_totals()[0] == 1
    for kind, sent in ((Operation.SNAPSHOT_DELTA, b'{"generation":1}'), (Operation.SNAPSHOT_PUT, put)):
        with pytest.raises(DeadlinePassed):
            call(pool, kind, sent, snapshot="s", ticket=Ticket("snapshot", time.monotonic() - 1, 1))
    assert msgspec.json.decode(call(pool, Operation.SNAPSHOT_GET, b"", snapshot="s").body)["generation"] == 1


def test_solving_stops_at_the_deadline_and_the_worker_goes_on(pool: Pool, bounded: Bounded) -> None:
    bounded("app.workers.pool", GRACE_SECONDS=SECONDS)
    before = pool._workers[0].process.pid
    big = msgspec.json.encode(
        {
            "configuration": CONFIGURATION,
            "state": {"workloads": [{"id": f"w{i}", "queue": "q"} for i in range(60_000)]},
            "asks": [ASK],
        }
    )
    call(pool, Operation.DECISION, body(), worker=0)  # it has started, so all the time is spent on the big one
    with pytest.raises(DeadlinePassed):
        call(pool, Operation.DECISION, big, ticket=Ticket.now("large", 0.003), worker=0)
    assert call(pool, Operation.DECISION, body(), worker=0).facts is not None
    assert pool._workers[0].process.pid == before


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced_and_who_asked_is_told(pool: Pool, bounded: Bounded) -> None:
    bounded("app.workers.pool", GRACE_SECONDS=0.2)
    put = msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE})
    call(pool, Operation.SNAPSHOT_PUT, put, snapshot="s")
    owner = pool.owner("s")
    for worker, error in ((owner, Unavailable), (1 - owner, DeadlinePassed)):  # with snapshots, and without
        os.kill(pool._workers[worker].process.pid, signal.SIGSTOP)
        with pytest.raises(error):
            call(pool, Operation.DECISION, body(), ticket=Ticket.now("large", 0.1), worker=worker)
        assert call(pool, Operation.DECISION, body(), worker=worker).facts is not None
    assert pool.snapshot_totals() == (0, 0)


def test_closing_ends_what_runs_and_what_waits(pool: Pool) -> None:
    os.kill(pool._workers[0].process.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(call, pool, Operation.DECISION, body(), worker=0) for _ in range(2)]
        while not pool.waiting():
            time.sleep(0.01)
        assert (pool.busy(), pool.waiting()) == (1, {"large": 1})
        began = time.monotonic()
        pool.close()
        for one in asked:
            with pytest.raises(Unavailable):
                one.result()
    assert time.monotonic() - began < SECONDS / 2
    assert pool.alive() == 0
    with pytest.raises(Unavailable):
        call(pool, Operation.DECISION, body())


def test_who_has_a_worker_already_while_all_are_closed_is_told_so(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = pool._turns
    take = turns.take

    def taken(ticket: Ticket, worker: int | None = None) -> int:
        worker = take(ticket, worker)
        pool.close()
        return worker

    monkeypatch.setattr(turns, "take", taken)
    with pytest.raises(Unavailable):
        call(pool, Operation.DECISION, body())


def test_where_no_thread_is_to_be_had_workers_are_tried_when_somebody_asks_next(pool: Pool, instead: Instead) -> None:
    def none(*_: Any, **__: Any) -> Any:
        def start() -> None:
            raise RuntimeError("can't start new thread")

        return SimpleNamespace(start=start, is_alive=lambda: False)

    os.kill(pool._workers[0].process.pid, signal.SIGKILL)
    pool._workers[0].process.wait()
    instead("app.workers.pool", Thread=none)
    assert set(pool.failing()) == {0}
    instead("app.workers.pool", Thread=threading.Thread)
    end = time.monotonic() + SECONDS
    while pool.failing() and time.monotonic() < end:
        time.sleep(0.05)
    assert pool.failing() == {}


def test_a_worker_that_cannot_be_started_is_started_by_whoever_asks_once_it_can(pool: Pool, instead: Instead) -> None:
    popen = subprocess.Popen

    def full(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    instead("subprocess", Popen=full)
    os.kill(pool._workers[0].process.pid, signal.SIGKILL)
    pool._workers[0].process.wait()
    for _ in range(3):
        with pytest.raises(Unavailable, match="no solver process can be started: Resource temporarily unavailable"):
            call(pool, Operation.DECISION, body(), worker=0)
    assert call(pool, Operation.DECISION, body(), worker=1).facts is not None
    instead("subprocess", Popen=popen)
    with pytest.raises(Unavailable, match="the solver process stopped"):
        call(pool, Operation.DECISION, body(), worker=0)
    assert call(pool, Operation.DECISION, body(), worker=0).facts is not None
    assert pool.failing() == {}


@pytest.mark.slow
def test_snapshots_are_spread_evenly_and_stay_where_they_are(pool: Pool) -> None:
    put = msgspec.json.encode({"configuration": CONFIGURATION, "state": STATE})
    for name in "abcd":
        call(pool, Operation.SNAPSHOT_PUT, put, snapshot=name)
    owners = [pool.owner(name) for name in "abcd"]
    assert sorted(owners) == [0, 0, 1, 1]
    call(pool, Operation.SNAPSHOT_DELETE, b"", snapshot="a")
    for name in "ebcd":
        call(pool, Operation.SNAPSHOT_PUT, put, snapshot=name)
    assert [pool.owner(name) for name in "bcd"] == owners[1:]
    assert pool.owner("e") == owners[0]
    for name in "bcde":
        listed = msgspec.json.decode(call(pool, Operation.SNAPSHOT_LIST, b"", worker=pool.owner(name)).body)
        assert name in {item["name"] for item in listed["items"]}


@pytest.mark.slow
def test_workers_that_end_are_failing_until_one_answers(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool.failing() == {}
    began = datetime.now(UTC)
    started = [worker._start for worker in pool._workers]  # pyright: ignore[reportPrivateUsage]

    def dying() -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair()
        theirs.close()
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"]), ours

    for worker in pool._workers:  # pyright: ignore[reportPrivateUsage]
        worker._start = dying  # pyright: ignore[reportPrivateUsage]
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    first = pool.failing()
    assert set(first) == {0, 1}
    assert all(began <= since <= datetime.now(UTC) for since in first.values())
    for _ in range(3):
        time.sleep(0.1)
        assert pool.failing() == first, "tried again and again, and never able: since when stays"
    for worker, start in zip(pool._workers, started, strict=True):  # pyright: ignore[reportPrivateUsage]
        worker._start = start  # pyright: ignore[reportPrivateUsage]
    end = time.monotonic() + SECONDS
    while pool.failing() and time.monotonic() < end:
        time.sleep(0.05)
    assert pool.failing() == {}, "nobody had to ask them something for it"
    assert pool.alive() == 2


@pytest.mark.slow
def test_a_worker_that_hangs_while_nobody_asks_it_is_found_and_replaced(pool: Pool, bounded: Bounded) -> None:
    for worker in range(2):  # both have started
        call(pool, Operation.DECISION, body(), worker=worker)
    bounded("app.workers.pool", QUIET_SECONDS=0.0, LATE_SECONDS=2.0, TRIAL_SECONDS=1.0, GRACE_SECONDS=2.5)
    hanging, healthy = (worker.process.pid for worker in pool._workers)
    os.kill(hanging, signal.SIGSTOP)
    end, seen = time.monotonic() + SECONDS, set[int]()
    while (failing := set(pool.failing())) != {0} and time.monotonic() < end:
        seen |= failing
        time.sleep(0.02)
    assert failing == {0}
    assert seen <= {0}
    while pool.failing() and time.monotonic() < end:
        time.sleep(0.02)
    assert pool.failing() == {}
    assert pool._workers[0].process.pid != hanging
    assert pool._workers[1].process.pid == healthy
