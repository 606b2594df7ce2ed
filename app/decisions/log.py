"""The decision log's writer: a bounded queue and one thread, so that storing never delays or fails an answer.

An entry waits in memory until the database has taken it. While the database is away the thread tries again
and again; what no longer fits meanwhile is dropped, newest first, and counted.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from time import monotonic
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import structlog
import zstandard
from sqlalchemy.orm import Session

from app.answering.answers import Answered
from app.answering.sources import LogDocument
from app.auth.audit import ANONYMOUS
from app.base.errors import Unavailable
from app.base.settings import Settings
from app.db.database import Database
from app.decisions import repository
from app.decisions.kept import WITHIN, names_of, pairs_of, returns_of, squeezed
from app.metrics import Metrics
from app.search.service import Kind, Names

_BATCH_ENTRIES = 250
BATCH_BYTES = 8 << 20
ENOUGH_BYTES = 2 * BATCH_BYTES
"""More than one large entry: the next ones would otherwise wait for each to linger, and many are dropped."""
LINGER_SECONDS = 0.25
"""Seconds that an entry waits for others, and for its own answer to be on the way before it takes the processor."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
_AWAY = "the database is away"
_PRUNE_EVERY = 600.0
_COMPRESSION_LEVEL = 1
_ROW_AT_ONCE = 64 << 10
"""Bytes of an entry whose row is made where it was answered, once the answer is on its way. That takes microseconds;
making a hundred rows on the writer's thread, turn by turn with the answers that want the interpreter as well, costs
those far more."""
_ROW_LATER = 0.02
"""Seconds until then, where it was answered in a thread: the answer has yet to go through the event loop."""
_RECENT = timedelta(hours=1)
"""For so long a state stays that no decision in the log needs: the next one may be told against it."""

logger = structlog.stdlib.get_logger(__name__)


_own = threading.local()


class Row(NamedTuple):
    """An entry as it is stored: ``columns`` as ``repository.encoded`` has them, what is kept with it, where it may
    close a circle, by which keys, and by which names it is found."""

    columns: bytes
    documents: Sequence[LogDocument]
    returns: repository.Returns | None
    names: Sequence[tuple[Kind, str]] = ()


@dataclass(slots=True)
class Entry:
    """One answered request: the body as received, decompressed, and the answer without ``id`` and ``stats``."""

    id: UUID
    created_at: datetime
    request: bytes
    answered: Answered
    stored: "Future[None] | None" = None
    """Done once it is stored; fails with Unavailable when it is lost, or the database is away. None: nobody waits."""
    actor: str = ANONYMOUS
    documents: Sequence[LogDocument] = ()
    """What is kept with it of the snapshot that it is about."""
    kept_state: str | None = None
    kept_configuration: str | None = None
    """Digests of what its replay needs; None: nothing is kept of it."""
    purpose: str | None = None
    """What it was asked for where that was no scheduler's question."""

    ended: Callable[[str], None] | None = None
    """Told once it is stored, with nothing, or why it never will be. None: nobody wants to know."""

    size: int = field(init=False)
    """Bytes that it keeps in memory, near enough."""
    _row: Row | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        documents = sum(len(document.body) for document in self.documents)
        self.size = len(self.request) + len(self.answered.body) + documents + 1024

    @property
    def bare(self) -> "Entry":
        """The same without what makes it possible to decide it again."""
        if not self.documents and self.kept_state is None and self.kept_configuration is None:
            return self
        return replace(self, documents=(), kept_state=None, kept_configuration=None)

    def row(self) -> Row:
        """It as it is stored, compressed; made once."""
        if self._row is None:
            self._row = _row_of(self)
        return self._row

    def prepare(self) -> None:
        """Make the row now. Where that can't be done the writer will say why."""
        with suppress(Exception):
            self.row()

    def end(self, why_not: str | None = None) -> None:
        """The same once nothing more will come of it."""
        self.settle(why_not)
        if self.ended is not None:
            self.ended(why_not or "")

    def settle(self, why_not: str | None = None) -> None:
        """Tell who waits that it is stored, or why it is not. What was told once stays."""
        if self.stored is None or self.stored.done():
            return
        if why_not is None:
            self.stored.set_result(None)
        else:
            self.stored.set_exception(Unavailable(f"the decision can't be logged: {why_not}"))


class Store(Protocol):
    """Where entries go. Raises Unavailable when it is away, anything else when it refuses a row."""

    def save(self, rows: Sequence[Row]) -> None: ...

    def prune(self) -> None: ...


class DatabaseStore:
    """The ``decisions`` table and what is kept with it, with the retention that the settings give. ``lost`` is told the
    digests of what could not be kept, because what it builds on is gone; ``names``: by which entries are found."""

    def __init__(
        self, database: Database, settings: Settings, lost: Callable[[set[str]], None] = lambda _: None,
        names: Names | None = None,
    ) -> None:  # fmt: skip
        self._database = database
        self._names = names
        self._lost = lost
        self._days = settings.decision_log_retention_days
        self._keep = settings.decision_log_retention_entries
        self._keep_bytes = settings.decision_log_retention_bytes

    def save(self, rows: Sequence[Row]) -> None:
        """One transaction: what is kept, then the entries that need it."""
        missing = set[bytes]()
        if any(row.documents for row in rows):
            missing = self._save_with_documents(rows)
        else:
            self._database.send(repository.saving((row.columns, 0) for row in rows))
        self._mark_circles([row.returns for row in rows if row.returns is not None])
        self._tell_names(rows)
        if missing:
            self._lost({digest.hex() for digest in missing})

    def _save_with_documents(self, rows: Sequence[Row]) -> set[bytes]:
        """The digests of what could not be repository."""
        documents = [squeezed(document) for row in rows for document in row.documents]
        sizes = {packed.digest.hex(): len(packed.content) for packed in documents}
        save, parameters = repository.saving(
            (row.columns, sum(sizes[document.digest] for document in row.documents)) for row in rows
        )
        with self._database.session() as session:
            repository.save(session, documents)
            missing = repository.missing(session, [document.digest for document in documents])
            session.connection().exec_driver_sql(save, dict(parameters))
        return missing

    def _mark_circles(self, rows: Sequence[repository.Returns]) -> None:
        """Once they are stored: of two replicas that close a circle at once one sees both sides. Raises Unavailable."""
        if not rows:
            return
        try:
            self._database.send(*repository.marking(rows, WITHIN))
        except Unavailable:
            raise
        except Exception as error:  # the entries are stored all the same
            logger.warning("decision log: circles were not looked for", error=str(error)[:500])

    def _tell_names(self, rows: Sequence[Row]) -> None:
        """Raises Unavailable."""
        if self._names is None:
            return
        try:
            self._names.tell(name for row in rows for name in row.names)
        except Unavailable:
            raise
        except Exception as error:  # the entries are stored all the same
            logger.warning("decision log: names were not kept", error=str(error)[:500])

    def prune(self) -> None:
        """Delete what is past retention, a short transaction at a time."""
        before = datetime.now(UTC) - timedelta(days=self._days) if self._days else None
        keep, keep_bytes = self._keep or None, self._keep_bytes or None
        self._while_some_go(lambda session: repository.prune(session, before=before, keep=keep, keep_bytes=keep_bytes))
        recently = datetime.now(UTC) - _RECENT
        self._while_some_go(lambda session: repository.prune_documents(session, recently, repository.decisions))

    def _while_some_go(self, prune: Callable[[Session], int]) -> None:
        while True:
            with self._database.session() as session:
                if not prune(session):
                    return


class DecisionLog:
    """``offer`` is all that a decision does; the rest happens on the writer's thread."""

    def __init__(
        self, store: Store, metrics: Metrics, *, most_entries: int, most_bytes: int,
        lost: Callable[[set[str]], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """``lost`` is told the digests of what an entry had to be stored without."""
        self._store = store
        self._lost = lost
        self._metrics = metrics
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._waiting: deque[Entry] = deque()
        self._bytes = 0
        self._offered = self._settled = 0
        self._away = self._stopping = False
        self._hurried = 0
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._prune_at = 0.0
        metrics.log_waiting.set_function(lambda: len(self._waiting))

    def start(self) -> None:
        """Begin to write. On an event loop, rows are made there when nobody waits for them."""
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 3.0) -> None:
        """Write what waits, for at most ``seconds``; the rest is dropped and counted."""
        end = monotonic() + seconds
        self.settle(seconds)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(max(end - monotonic(), 0.1))
        with self._changed:
            self._drop("shutdown", len(self._waiting))
            for entry in self._waiting:
                entry.end("the service stops")

    def offer(self, entry: Entry) -> bool:
        """Take ``entry`` if there is room; False: dropped and counted. Never blocks on the database."""
        if entry.size <= _ROW_AT_ONCE:
            self._after_the_answer(entry.prepare)
        with self._changed:
            if not self._fits(entry):
                self._metrics.log_dropped.labels("queue_full").inc()
                entry.end("too many entries wait already")
                return False
            pressing = self._pressing()
            self._waiting.append(entry)
            self._bytes += entry.size
            self._offered += 1
            if entry.stored is not None:
                self._hurried = self._offered
                self._changed.notify_all()
                if self._away:
                    entry.settle(_AWAY)
            elif len(self._waiting) == 1 or (self._pressing() and not pressing):  # in between it need not be woken
                self._changed.notify_all()
        return True

    def _after_the_answer(self, work: Callable[[], object]) -> None:
        """On an event loop in its next turn: until then the answer goes out. From any other thread a little later: what
        is never done because the loop has ended, the writer does."""
        try:
            asyncio.get_running_loop().call_soon(work)
        except RuntimeError:
            if self._loop is None:
                work()
            else:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._loop.call_later, _ROW_LATER, work)

    def offer_whole(self, entry: Entry) -> bool:
        """Take ``entry`` with its documents, or without them where there is no room for those. Whether with them."""
        with self._changed:
            whole = not entry.documents or self._fits(entry)
            return self.offer(entry if whole else entry.bare) and whole

    @property
    def is_behind(self) -> bool:
        """Whether the database is away, or takes entries more slowly than they come: no time for large ones."""
        return self._away or 2 * self._bytes > self._most_bytes

    def _fits(self, entry: Entry) -> bool:
        full = len(self._waiting) >= self._most_entries or self._bytes + entry.size > self._most_bytes
        return not (full and self._waiting)

    def settle(self, seconds: float) -> bool:
        """Wait until everything offered so far is stored or dropped, unless the database is away or time is up."""
        with self._changed:
            goal = self._offered
            self._hurried = max(self._hurried, goal)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._settled >= goal or self._away or self._thread is None, seconds)
            return self._settled >= goal

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while batch := self._next_batch():
            try:
                self._write(batch)
                self._away, pause = False, _FIRST_PAUSE
                self._prune_if_due()
            except Unavailable:
                if not self._away:
                    logger.warning("decision log: the database is away, entries wait", waiting=len(self._waiting))
                with self._changed:
                    self._away = True
                    for entry in self._waiting:
                        entry.settle(_AWAY)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._stopping, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _next_batch(self) -> list[Entry]:
        """The oldest entries, left in the queue until they are stored; empty when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            self._changed.wait_for(self._pressing, LINGER_SECONDS)
            if self._stopping:
                return []
            batch: list[Entry] = []
            size = 0
            for entry in self._waiting:
                if batch and (len(batch) >= _BATCH_ENTRIES or size + entry.size > BATCH_BYTES):
                    break
                batch.append(entry)
                size += entry.size
            return batch

    def _pressing(self) -> bool:
        """Whether there is a reason to write now: enough for a batch, large ones that take memory until they are
        compressed, or somebody waits for it."""
        enough = len(self._waiting) >= _BATCH_ENTRIES or self._bytes >= ENOUGH_BYTES
        return enough or self._hurried > self._settled or self._stopping

    def _write(self, batch: list[Entry]) -> None:
        try:
            self._store.save([entry.row() for entry in batch])
            self._done(len(batch))
        except Unavailable:
            raise
        except Exception:  # whatever it is, this thread must live on
            for entry in batch:
                self._write_alone(entry)

    def _write_alone(self, entry: Entry) -> None:
        """One entry of a batch that was refused: only the one at fault is lost, and the entry last of all."""
        try:
            self._save_alone(entry)
            self._done(1)
        except Unavailable:
            raise
        except Exception as error:
            logger.warning("decision log: an entry was refused", decision=str(entry.id), error=str(error)[:500])
            self._done(1, lost="refused")

    def _save_alone(self, entry: Entry) -> None:
        try:
            self._store.save([entry.row()])
        except Unavailable:
            raise
        except Exception:
            if not entry.documents and entry.kept_state is None:
                raise
            self._store.save([entry.bare.row()])
            self._lost({document.digest for document in entry.documents} | {entry.kept_state or ""})

    def _done(self, count: int, lost: str | None = None) -> None:
        with self._changed:
            for _ in range(count):
                entry = self._waiting.popleft()
                self._bytes -= entry.size
                entry.end(lost)
            if lost is None:
                self._settled += count
                self._metrics.log_written.inc(count)
            else:
                self._drop(lost, count)
            self._changed.notify_all()

    def _drop(self, cause: str, count: int) -> None:
        self._settled += count
        if count:
            self._metrics.log_dropped.labels(cause).inc(count)

    def _prune_if_due(self) -> None:
        if monotonic() < self._prune_at:
            return
        self._prune_at = monotonic() + _PRUNE_EVERY
        try:
            self._store.prune()
        except Unavailable:
            raise
        except Exception as error:  # retention can wait, the writing must not
            logger.warning("decision log: retention failed", error=str(error)[:500])


def _squeezed(data: bytes) -> bytes:
    """Compressed by the thread's own compressor: making one takes longer than compressing what is small."""
    compressor: zstandard.ZstdCompressor | None = getattr(_own, "compressor", None)
    if compressor is None:
        compressor = _own.compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
    return compressor.compress(data)


def _row_of(entry: Entry) -> Row:
    returns = returns_of(entry.answered.facts) if entry.purpose is None else []
    closing = repository.Returns(entry.id, entry.answered.facts.now, returns) if returns else None
    return Row(repository.encoded(_columns(entry)), entry.documents, closing, names_of(entry.answered.facts))


def _columns(entry: Entry) -> dict[str, Any]:
    facts = entry.answered.facts
    used = facts.configuration
    return {
        "id": entry.id,
        "created_at": entry.created_at,
        "now": facts.now,
        "engine": facts.engine,
        "release": facts.release,
        "configuration_name": used.name and repository.storable(used.name),
        "configuration_revision": used.revision,
        "configuration_digest": used.digest,
        "state_digest": facts.state_digest,
        "asks": [repository.storable(ask) for ask in facts.asks],
        "outcomes": facts.outcomes,
        "evicted": [repository.storable(workload) for workload in facts.evicted],
        "evictions": sum(facts.victims.values()),
        "seconds": entry.answered.seconds,
        "request_digest": sha256(entry.request).hexdigest(),
        "request": _squeezed(entry.request),
        "answer": _squeezed(entry.answered.body),
        "actor": repository.storable(entry.actor),
        "queues": [repository.storable(queue) for queue in facts.queues],
        "spared": list(map(repository.storable, facts.spared)) or None,
        "pods": list(map(repository.storable, facts.pods)) or None,
        "workloads": None if facts.workloads == facts.asks else list(map(repository.storable, facts.workloads)),
        "kept_state": entry.kept_state,
        "kept_configuration": entry.kept_configuration,
        "pairs": pairs_of(facts) if entry.purpose is None else None,
        "purpose": entry.purpose,
        "stops": [[*map(repository.storable, names), times] for *names, times in facts.stops] or None,
    }
