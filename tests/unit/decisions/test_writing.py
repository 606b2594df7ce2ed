"""The log's writer at its bounds: what fits, who is told, how it waits for a database, what it keeps and prunes."""

import json
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from app.answering.answers import Answered
from app.answering.sources import LogDocument
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.database import Database
from app.decisions import log as module
from app.decisions import repository
from app.decisions import repository as kept
from app.decisions.log import DatabaseStore, DecisionLog, Entry, Row
from app.metrics import Metrics
from tests.support.instead import Clock, Instead
from tests.support.stored import facts

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OVERHEAD = 1024
REASONS = ("queue_full", "refused", "shutdown")


def sized(size: int, **more: Any) -> Entry:
    """An entry that keeps ``size`` bytes in memory."""
    return Entry(
        UUID(int=7), NOON, b"x" * (size - OVERHEAD - 2), Answered(body=b"{}", facts=facts(), seconds={}), **more
    )


class Store:
    """Ends each attempt as ``script`` says, in order, then well."""

    def __init__(self, *script: Exception | None, prune: Callable[[], None] = lambda: None) -> None:
        self.script = list(script)
        self.batches: list[int] = []
        self.prune = prune

    def save(self, rows: Sequence[Row]) -> None:
        self.batches.append(len(rows))
        if self.script and (error := self.script.pop(0)) is not None:
            raise error


def log_of(store: Store | None = None, *, most_entries: int = 1000, most_bytes: int = 1 << 20) -> DecisionLog:
    return DecisionLog(store or Store(), Metrics(), most_entries=most_entries, most_bytes=most_bytes)


def test_small_rows_are_made_at_once_and_large_ones_by_the_writer() -> None:
    log = log_of()
    small, large = sized(64 << 10), sized((64 << 10) + 1)
    for one in (small, large):
        assert one.size in (64 << 10, (64 << 10) + 1)
        assert log.offer(one)
    assert (small._row is None, large._row is None) == (False, True)  # pyright: ignore[reportPrivateUsage]


def test_the_queue_is_full_to_the_byte_and_behind_beyond_half_of_it() -> None:
    log = log_of(most_bytes=10_000)
    assert log.offer(sized(5000))
    assert not log.is_behind
    assert not log.offer(sized(5001))
    assert log.offer(sized(5000))
    assert log.is_behind
    assert not log.offer(sized(1026))
    by_number = log_of(most_entries=2)
    assert [by_number.offer(sized(1026)) for _ in range(3)] == [True, True, False]
    assert log_of(most_entries=0).offer(sized(1026)), "an empty queue takes anything"


def test_documents_for_which_there_is_no_room_are_left_out() -> None:
    document = LogDocument("d", b"x" * 6000)
    full = log_of(most_bytes=7000)
    assert full.offer_whole(sized(5974)), "what has none is whole"
    assert full.offer_whole(sized(1026))
    assert not full.offer_whole(sized(1026)), "what was not taken is not there"
    roomy = log_of(most_bytes=12_000)
    assert roomy.offer(sized(5000))
    assert not roomy.offer_whole(sized(2000, documents=[document], kept_state="d"))
    waiting = list(roomy._waiting)  # pyright: ignore[reportPrivateUsage]
    assert [(one.size, len(one.documents), one.kept_state) for one in waiting] == [(5000, 0, None), (2000, 0, None)]


def test_settling_without_a_writer_says_what_is_not_stored() -> None:
    log = log_of()
    assert log.settle(60)
    log.offer(sized(1026))
    assert not log.settle(60)


def test_who_is_told_what_when_the_service_stops() -> None:
    told: list[str] = []
    log, waited = log_of(most_entries=2), Future[None]()
    log.offer(sized(1026, ended=told.append, stored=waited))
    log.offer(sized(1026))
    assert not log.offer(sized(1026, ended=told.append))
    assert told == ["too many entries wait already"]
    log.stop(0)
    assert told == ["too many entries wait already", "the service stops"]
    with pytest.raises(Unavailable, match=r"^the decision can't be logged: the service stops$"):
        waited.result(0)
    assert log.settle(0), "dropped is settled too"


def test_what_was_told_once_stays() -> None:
    waited = Future[None]()
    entry = sized(1026, stored=waited)
    entry.settle()
    entry.settle("too late")
    assert waited.result(0) is None


class Impatient(threading.Condition):
    """Notes how long the writer would wait, and does not."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.waits: list[float] = []

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        if timeout is None or threading.current_thread().name != "decision-log":
            return super().wait_for(predicate, timeout)
        if timeout != 0.25:
            self.waits.append(timeout)
        return predicate()


def test_the_writer_comes_back_to_a_database_that_is_away_ever_less_often() -> None:
    away = [Unavailable("away") for _ in range(6)]
    store, changed = Store(*away, None, Unavailable("away")), Impatient()
    log = log_of(store)
    log._changed = changed  # pyright: ignore[reportPrivateUsage]
    waiting = [sized(1026, stored=Future[None]()) for _ in range(2)]
    with capture_logs() as said:
        for one in waiting:
            log.offer(one)
        log.start()
        for one in waiting:
            assert isinstance(one.stored, Future)
            with pytest.raises(Unavailable, match=r"^the decision can't be logged: the database is away$"):
                one.stored.result(60)
        while store.script[1:]:
            threading.Event().wait(0.001)
        log.offer(sized(1026))
        while store.script:
            threading.Event().wait(0.001)
        log.stop(60)
    assert changed.waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 0.1]
    assert [(one["event"], one["waiting"]) for one in said if "away" in one["event"]] == [
        ("decision log: the database is away, entries wait", 2), ("decision log: the database is away, entries wait", 1)
    ]  # fmt: skip
    assert not log.is_behind


def written(store: Store, *entries: Entry) -> DecisionLog:
    """A log that has done with ``entries``."""
    log = log_of(store)
    for one in entries:
        log.offer(one)
    log.start()
    log.settle(60)
    log.stop(60)
    return log


def test_a_database_that_goes_away_among_entries_one_by_one_gets_each_once() -> None:
    """The batch is refused, its first entry is stored, then the database is away: the other is written later."""
    store = Store(ValueError("a batch"), None, Unavailable("away"))
    told: list[str] = []
    with capture_logs() as said:
        log = log_of(store)
        for _ in range(2):
            log.offer(sized(1026, ended=told.append))
        log._changed = Impatient()  # pyright: ignore[reportPrivateUsage]
        log.start()
        while len(store.batches) < 4:
            threading.Event().wait(0.001)
        log.stop(60)
    assert store.batches == [2, 1, 1, 1]
    assert told == ["", ""]
    assert [one["event"] for one in said] == ["decision log: the database is away, entries wait"]


def test_a_refused_entry_is_named_with_a_part_of_what_was_said() -> None:
    wrong = ValueError("x" * 900)
    with capture_logs() as said:
        written(Store(wrong, wrong), sized(1026))
    assert said == [
        {"event": "decision log: an entry was refused", "decision": str(UUID(int=7)), "error": "x" * 500,
         "log_level": "warning"}
    ]  # fmt: skip


def test_retention_is_looked_after_every_ten_minutes(clock: Clock) -> None:
    pruned = list[float]()
    clock.drives(module)
    log = log_of(Store(prune=lambda: pruned.append(clock.now)))
    for moment in (1000.0, 1599.9, 1600.0, 2199.0, 2200.0):
        clock.now = moment
        log._prune_if_due()  # pyright: ignore[reportPrivateUsage]
    assert pruned == [1000.0, 1600.0, 2200.0]


def test_retention_that_fails_is_said_and_a_database_that_is_away_is_another_matter() -> None:
    def failing(error: Exception) -> Callable[[], None]:
        def prune() -> None:
            raise error

        return prune

    with capture_logs() as said:
        log_of(Store(prune=failing(ValueError("y" * 900))))._prune_if_due()  # pyright: ignore[reportPrivateUsage]
    assert [(one["event"], one["error"]) for one in said] == [("decision log: retention failed", "y" * 500)]
    with pytest.raises(Unavailable):
        log_of(Store(prune=failing(Unavailable("away"))))._prune_if_due()  # pyright: ignore[reportPrivateUsage]


class Sessions:
    """Stands for a database: each session is a number, and what was executed in it."""

    def __init__(self) -> None:
        self.sessions = 0
        self.executed: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[Any] = []

    @contextmanager
    def session(self) -> Generator[Any]:
        self.sessions += 1
        execute = SimpleNamespace(exec_driver_sql=lambda sql, given: self.executed.append((sql, given)))
        yield SimpleNamespace(number=self.sessions, connection=lambda: execute)

    def send(self, *statements: Any) -> None:
        self.sent.append(statements)


def test_documents_and_the_entries_that_need_them_are_one_transaction(instead: Instead) -> None:
    done: list[tuple[str, int, list[bytes]]] = []

    def save(session: Any, documents: Sequence[kept.New]) -> None:
        done.append(("save", session.number, [one.digest for one in documents]))

    def missing(session: Any, digests: Sequence[bytes]) -> set[bytes]:
        done.append(("missing", session.number, list(digests)))
        return {b"\x0b"}

    instead(kept, save=save, missing=missing)
    database, lost = Sessions(), list[set[str]]()
    store = DatabaseStore(cast("Database", database), Settings(), lost.append)
    body = b"0123456789" * 20
    documents = [LogDocument("0a", body), LogDocument("0b", body, "0c")]
    quiet = {"evictions": []}
    with_them = Entry(UUID(int=1), NOON, b"", Answered(body=b"", facts=facts(**quiet), seconds={}), documents=documents)
    without = Entry(UUID(int=2), NOON, b"", Answered(body=b"", facts=facts(**quiet), seconds={}))
    store.save([with_them.row(), without.row()])
    assert done == [("save", 1, [b"\x0a", b"\x0b"]), ("missing", 1, [b"\x0a", b"\x0b"])]
    assert (database.sessions, database.sent, lost) == (1, [], [{"0b"}])
    ((_, given),) = database.executed
    sizes = sum(len(module.squeezed(one).content) for one in documents)
    assert [one["kept_bytes"] for one in json.loads(given["rows"])] == [sizes, 0]
    store.save([without.row()])
    assert (database.sessions, len(database.sent), lost) == (1, 1, [{"0b"}])


def test_retention_goes_on_until_nothing_is_past_it(instead: Instead) -> None:
    asked: list[dict[str, Any]] = []
    unneeded: list[tuple[datetime, Any]] = []
    left = {"entries": [1000, 3, 0], "documents": [10, 0]}

    def prune(_: Any, **bounds: Any) -> int:
        asked.append(bounds)
        return left["entries"].pop(0)

    def prune_kept(_: Any, before: datetime, decisions: Any) -> int:
        unneeded.append((before, decisions))
        return left["documents"].pop(0)

    instead(repository, prune=prune)
    instead(kept, prune_documents=prune_kept)
    database = Sessions()
    settings = Settings(
        decision_log_retention_days=3, decision_log_retention_entries=5, decision_log_retention_bytes=7 << 20
    )
    now = datetime.now(UTC)
    DatabaseStore(cast("Database", database), settings).prune()
    assert (len(asked), len(unneeded), database.sessions) == (3, 2, 5)
    assert (asked[0]["keep"], asked[0]["keep_bytes"]) == (5, 7 << 20)
    minute = timedelta(minutes=1)
    assert timedelta() <= asked[0]["before"] - (now - timedelta(days=3)) < minute
    assert timedelta() <= unneeded[0][0] - (now - timedelta(hours=1)) < minute
    assert unneeded[0][1] is repository.decisions
    left |= {"entries": [0], "documents": [0]}
    off = settings.model_copy(
        update={
            "decision_log_retention_days": 0, "decision_log_retention_entries": 0, "decision_log_retention_bytes": 0,
        }
    )  # fmt: skip
    DatabaseStore(cast("Database", database), off).prune()
    assert asked[-1] == {"before": None, "keep": None, "keep_bytes": None}


def test_what_is_a_reason_to_write_at_once() -> None:
    def pressing(*entries: Entry, settled: bool = False) -> bool:
        log = log_of(most_bytes=1 << 30)
        for one in entries:
            log.offer(one)
        if settled:
            log.settle(0)
        return log._pressing()  # pyright: ignore[reportPrivateUsage]

    small, enough = sized(1026), 16 << 20
    assert not pressing()
    assert not pressing(small), "it waits for others"
    assert pressing(small, settled=True)
    assert pressing(sized(1026, stored=Future[None]()))
    assert pressing(*[small] * 250)
    assert not pressing(*[small] * 249)
    assert pressing(sized(enough))
    assert not pressing(sized(enough - 1))
    stopped = log_of()
    stopped.stop(0)
    assert stopped._pressing()  # pyright: ignore[reportPrivateUsage]


def test_who_stops_wakes_the_writer_and_waits_for_it_as_long_as_is_left() -> None:
    log = log_of()
    log.start()
    writer = log._thread  # pyright: ignore[reportPrivateUsage]
    log.stop(10)
    assert writer is not None
    assert (writer.is_alive(), writer.daemon) == (False, True)
    joined: list[float] = []
    for seconds in ((60,), (), (0,)):
        log = log_of()
        log._thread = cast("Any", SimpleNamespace(join=joined.append))  # pyright: ignore[reportPrivateUsage]
        log.stop(*seconds)
    assert 30 < joined[0] <= 60
    assert 1 < joined[1] <= 3
    assert joined[2:] == [0.1]


class Woken(threading.Condition):
    """Counts how often somebody is woken."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.count = 0

    def notify_all(self) -> None:
        self.count += 1
        super().notify_all()


def test_the_writer_is_woken_for_the_first_for_a_whole_batch_and_for_who_waits() -> None:
    """Each time costs a turn of the interpreter that an answer would have had."""
    log, changed = log_of(most_bytes=1 << 30), Woken()
    log._changed = changed  # pyright: ignore[reportPrivateUsage]
    woken: list[int] = []
    for i in range(1, 252):
        log.offer(sized(1026))
        if changed.count:
            woken.append(i)
        changed.count = 0
    assert woken == [1, 250]
    log.offer(sized(1026, stored=Future[None]()))
    assert changed.count == 1
    log.settle(0)
    assert changed.count == 2


def test_a_batch_holds_eight_megabytes_to_the_byte() -> None:
    for second, held in ((4 << 20, 2), ((4 << 20) + 1, 1)):
        log = log_of(most_bytes=1 << 30)
        for size in (4 << 20, second, 1026):
            log.offer(sized(size))
        log.settle(0)
        assert len(log._next_batch()) == held  # pyright: ignore[reportPrivateUsage]


def test_what_waits_is_written_or_lost_is_counted() -> None:
    metrics = Metrics()

    def counted() -> tuple[float, ...]:
        value = metrics.registry.get_sample_value
        dropped = (value("arbiter_decision_log_dropped_total", {"cause": why}) for why in REASONS)
        return (
            value("arbiter_decision_log_waiting") or 0.0, value("arbiter_decision_log_written_total") or 0.0,
            *(one or 0.0 for one in dropped),
        )  # fmt: skip

    wrong = ValueError("no")
    log = DecisionLog(Store(wrong, wrong, None), metrics, most_entries=2, most_bytes=1 << 20)
    for _ in range(3):
        log.offer(sized(1026))
    assert counted() == (2, 0, 1, 0, 0)
    log.start()
    assert log.settle(60)
    assert counted() == (0, 1, 1, 1, 0)
    assert log._bytes == 0  # pyright: ignore[reportPrivateUsage]
    log.stop(60)
    log.offer(sized(1026))
    log.stop(0)
    assert counted()[1:] == (1, 1, 1, 1)


def test_retention_is_looked_after_at_once_on_a_machine_that_has_just_started(clock: Clock) -> None:
    pruned: list[int] = []
    clock.drives(module)
    clock.now = 0.5
    log_of(Store(prune=lambda: pruned.append(1)))._prune_if_due()  # pyright: ignore[reportPrivateUsage]
    assert pruned == [1]
