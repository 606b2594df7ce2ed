import asyncio
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import zstandard

from app.answering.answers import Answered, Facts
from app.base.errors import Unavailable
from app.base.identifiers import Identifiers
from app.decisions import log as module
from app.decisions.log import DecisionLog, Entry, Row
from app.metrics import Metrics
from app.solver.model.decision import ConfigurationUsed
from tests.support.bounds import Bounded
from tests.support.instead import Instead

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
IDENTIFIERS = Identifiers()


class Memory:
    """A store that can be away, slow, or refuse an ask by name."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, Any]] = []
        self.available = threading.Event()
        self.available.set()
        self.hold: threading.Event | None = None
        self.attempts = 0
        self.prunings = 0

    def save(self, rows: Sequence[Row]) -> None:
        self.attempts += 1
        found = [msgspec.json.decode(row.columns) for row in rows]
        if self.hold is not None:
            self.hold.wait(5)
        if not self.available.is_set():
            raise Unavailable("away")
        if any("poison" in row["asks"] for row in found):
            raise ValueError("refused")
        self.rows.extend(found)

    def prune(self) -> None:
        self.prunings += 1


def entry(ask: str = "a", size: int = 10, stored: "Future[None] | None" = None) -> Entry:
    facts = Facts(
        now=0, engine="kueue", configuration=ConfigurationUsed(digest="c"), state_digest="s", asks=[ask],
        outcomes=["preempt"], reasons=["Pending"], evicted=["w\0"], victims={"InClusterQueue": 2},
    )  # fmt: skip
    answered = Answered(body=b'{"x":1}', facts=facts, seconds={"decode": 0.001})
    return Entry(IDENTIFIERS.new(NOON), NOON, b"x" * size, answered, stored)


class Bench:
    def __init__(self, *, most_entries: int = 1000, most_bytes: int = 1 << 20) -> None:
        self.store = Memory()
        self.metrics = Metrics()
        self.log = DecisionLog(self.store, self.metrics, most_entries=most_entries, most_bytes=most_bytes)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def dropped(self, cause: str) -> float:
        return self.value("arbiter_decision_log_dropped_total", cause=cause)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.log.start()
    yield made
    made.store.available.set()
    made.log.stop()


def test_what_is_offered_is_stored_in_order_and_in_batches(bench: Bench) -> None:
    bench.store.hold = threading.Event()
    entries = [entry(str(i)) for i in range(250)]
    assert all(bench.log.offer(one) for one in entries)
    bench.store.hold.set()
    assert bench.log.settle(60)
    assert [row["id"] for row in bench.store.rows] == [str(one.id) for one in entries]
    assert bench.store.attempts <= 4
    assert bench.value("arbiter_decision_log_written_total") == 250


def test_large_entries_do_not_linger_one_by_one(bounded: Bounded) -> None:
    """Each is a batch of its own; only the last ones wait for others."""
    bounded(module, LINGER_SECONDS=3600.0, BATCH_BYTES=3000, ENOUGH_BYTES=6000)
    bench = Bench()
    bench.log.start()
    for number in range(5):
        assert bench.log.offer(entry(str(number), 3000))
    try:
        patience = time.monotonic() + 60
        while len(bench.store.rows) < 4 and time.monotonic() < patience:
            time.sleep(0.001)
        assert len(bench.store.rows) == bench.store.attempts == 4
    finally:
        bench.log.stop()
    assert [row["asks"] for row in bench.store.rows] == [[str(number)] for number in range(5)]


def test_a_row_holds_the_exact_bytes_and_no_nul_where_postgres_has_none(bench: Bench) -> None:
    bench.log.offer(entry(size=1000))
    assert bench.log.settle(60)
    (row,) = bench.store.rows
    unpack = zstandard.ZstdDecompressor().decompress
    assert [unpack(b64decode(row[name])) for name in ("request", "answer")] == [b"x" * 1000, b'{"x":1}']
    assert (row["evicted"], row["evictions"]) == (["w\ufffd"], 2)


def test_a_full_queue_drops_and_counts_and_never_waits() -> None:
    bench = Bench(most_entries=3)
    begun = time.monotonic()
    taken = [bench.log.offer(entry()) for _ in range(10)]
    assert time.monotonic() - begun < 10
    assert taken == [True] * 3 + [False] * 7
    assert bench.dropped("queue_full") == 7
    assert bench.value("arbiter_decision_log_waiting") == 3


def test_the_queue_is_bounded_in_bytes_but_takes_one_large_entry() -> None:
    bench = Bench(most_bytes=10_000)
    assert bench.log.offer(entry(size=50_000))
    assert not bench.log.offer(entry(size=1))
    assert bench.dropped("queue_full") == 1


def test_entries_wait_while_the_database_is_away_and_are_stored_when_it_is_back(bench: Bench) -> None:
    bench.store.available.clear()
    for i in range(3):
        bench.log.offer(entry(str(i)))
    assert not bench.log.settle(0.5)
    bench.store.available.set()
    deadline = time.monotonic() + 60
    while len(bench.store.rows) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [row["asks"] for row in bench.store.rows] == [["0"], ["1"], ["2"]]
    assert bench.dropped("queue_full") == 0


def test_reading_does_not_wait_for_a_database_that_is_away(bench: Bench) -> None:
    bench.store.available.clear()
    bench.log.offer(entry())
    begun = time.monotonic()
    assert not bench.log.settle(30)
    assert time.monotonic() - begun < 15


def test_only_the_entry_that_is_refused_is_lost(bench: Bench) -> None:
    bench.store.hold = threading.Event()
    for ask in ("a", "poison", "b"):
        bench.log.offer(entry(ask))
    bench.store.hold.set()
    assert bench.log.settle(60)
    assert [row["asks"] for row in bench.store.rows] == [["a"], ["b"]]
    assert bench.dropped("refused") == 1


def test_stopping_writes_what_waits(bench: Bench) -> None:
    for i in range(20):
        bench.log.offer(entry(str(i)))
    bench.log.stop()
    assert len(bench.store.rows) == 20
    assert bench.dropped("shutdown") == 0


def test_stopping_without_a_database_counts_what_is_lost(bench: Bench) -> None:
    bench.store.available.clear()
    for i in range(4):
        bench.log.offer(entry(str(i)))
    bench.log.stop(0.5)
    assert bench.dropped("shutdown") == 4


def test_retention_runs_beside_the_writing(bench: Bench) -> None:
    bench.log.offer(entry())
    bench.log.settle(60)
    deadline = time.monotonic() + 60
    while not bench.store.prunings and time.monotonic() < deadline:
        time.sleep(0.01)
    assert bench.store.prunings == 1


def test_retention_that_fails_does_not_stop_the_writing(bench: Bench, instead: Instead) -> None:
    def broken() -> None:
        raise ValueError("no such table")

    instead(bench.store, prune=broken)
    for _ in range(2):
        bench.log.offer(entry())
        assert bench.log.settle(60)
        time.sleep(0.05)
    assert len(bench.store.rows) == 2


def test_who_waits_is_told_when_the_entry_is_stored(bench: Bench) -> None:
    bench.store.hold = threading.Event()
    waited = Future[None]()
    bench.log.offer(entry(stored=waited))
    with pytest.raises(TimeoutError):
        waited.result(0.2)
    assert bench.store.rows == []
    bench.store.hold.set()
    waited.result(60)
    assert len(bench.store.rows) == 1


def test_who_waits_is_told_what_prevents_it(bench: Bench) -> None:
    poisoned, away, later = Future[None](), Future[None](), Future[None]()
    bench.log.offer(entry("poison", stored=poisoned))
    with pytest.raises(Unavailable, match="refused"):
        poisoned.result(60)
    bench.store.available.clear()
    for waited in (away, later):
        bench.log.offer(entry(stored=waited))
        with pytest.raises(Unavailable, match="away"):
            waited.result(60)
    bench.store.available.set()
    back = Future[None]()
    end = time.monotonic() + 60
    while len(bench.store.rows) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    bench.log.offer(entry(stored=back))
    back.result(60)


def test_who_waits_for_a_place_in_a_full_queue_is_refused() -> None:
    full = Bench(most_entries=1)
    first, second = Future[None](), Future[None]()
    assert full.log.offer(entry(stored=first))
    assert not full.log.offer(entry(stored=second))
    with pytest.raises(Unavailable, match="too many"):
        second.result(0)
    full.log.stop(0.1)
    with pytest.raises(Unavailable, match="stops"):
        first.result(0)


def test_on_an_event_loop_the_row_is_made_once_the_answer_is_on_its_way() -> None:
    """Compressing and hashing is not what the caller waits for; the writer finds the row made all the same."""
    bench, offered = Bench(), entry()

    async def answered() -> tuple[bool, bool]:
        assert bench.log.offer(offered)
        before = offered._row is not None  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)
        return before, offered._row is not None  # pyright: ignore[reportPrivateUsage]

    assert asyncio.run(answered()) == (False, True)


def test_in_another_thread_the_row_is_made_where_it_was_answered() -> None:
    bench, offered = Bench(), entry()
    assert bench.log.offer(offered)
    assert offered._row is not None  # pyright: ignore[reportPrivateUsage]


def test_in_a_thread_beside_an_event_loop_the_row_is_made_there_a_little_later() -> None:
    bench, offered = Bench(), entry()

    async def answered() -> bool:
        bench.log._loop = asyncio.get_running_loop()  # pyright: ignore[reportPrivateUsage]
        thread = threading.Thread(target=bench.log.offer, args=(offered,))
        thread.start()
        thread.join()  # the loop stands still meanwhile
        before = offered._row is not None  # pyright: ignore[reportPrivateUsage]
        while offered._row is None:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.001)
        return before

    assert not asyncio.run(answered())
