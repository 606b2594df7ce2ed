"""Whoever does the jobs: takes one at a time, keeps it by heartbeats, stores what comes out of it.

A heart beats in a thread of its own. It tells how far the job is, and learns whether the job is still wanted: when it
is not, work stops at the next safe point, and where none comes in time the process ends, for the results of a lost
attempt are never seen. Whoever started the process starts another.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import msgspec
import structlog
import zstandard
from sqlalchemy.orm import Session

from app.base.errors import ArbiterError, Unavailable
from app.db.database import Database
from app.jobs import repository
from app.jobs.repository import Chunk, Claimed
from app.solver.model.problems import InvalidInput
from app.solver.question import stoppable

CHUNK = 256 << 10
_LEVEL = 3
TOGETHER = 2 << 20
"""Compressed bytes that are stored in one transaction."""


class TooManyResults(Exception):
    """The results of a job are past what it may store."""


@dataclass
class _Stream:
    lines: list[bytes] = field(default_factory=list[bytes])
    waiting: int = 0
    first: int = 0
    number: int = 0


class ChunkWriter:
    """Streams of lines on their way into the database, each by a name: gathered, compressed, stored some at a time.
    ``store`` takes what is ready; ``most``: compressed bytes over all."""

    def __init__(self, store: Callable[[Sequence[Chunk]], None], most: int) -> None:
        self._store = store
        self._most = most
        self._streams: dict[str, _Stream] = {}
        self._ready: list[Chunk] = []
        self._ready_bytes = self._total = 0
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)

    def write(self, stream: str, line: bytes) -> None:
        """One line, without its end. Raises TooManyResults, and what ``store`` raises."""
        pending = self._streams.get(stream)
        if pending is None:
            pending = self._streams[stream] = _Stream()
        pending.lines.append(line)
        pending.waiting += len(line) + 1
        if pending.waiting >= CHUNK:
            self._pack(stream, pending)

    def flush(self) -> None:
        """Store all that is left."""
        for name, stream in self._streams.items():
            if stream.lines:
                self._pack(name, stream)
        self._send()

    def _pack(self, name: str, stream: _Stream) -> None:
        data = self._compressor.compress(b"\n".join(stream.lines) + b"\n")
        self._ready.append(Chunk(name, stream.number, stream.first, len(stream.lines), data))
        self._total += len(data)
        self._ready_bytes += len(data)
        stream.first += len(stream.lines)
        stream.number += 1
        stream.lines, stream.waiting = [], 0
        if self._total > self._most:
            raise TooManyResults
        if self._ready_bytes >= TOGETHER:
            self._send()

    def _send(self) -> None:
        if self._ready:
            self._store(self._ready)
            self._ready, self._ready_bytes = [], 0


def lines_of(chunk: Chunk, skip: int, most: int | None) -> tuple[bytes, int]:
    """The lines of a chunk with their ends, without the first ``skip`` and at most so many; and how many they are."""
    text = zstandard.ZstdDecompressor().decompress(chunk.data)
    if skip == 0 and (most is None or most >= chunk.lines):
        return text, chunk.lines
    lines = text.splitlines(keepends=True)[skip:][:most]
    return b"".join(lines), len(lines)


BEAT_SECONDS = 0.5
LOST_SECONDS = 15.0
"""After which a worker that is not heard of has lost its job."""
_MOST_LOST = 3
"""Workers that may vanish over one job; one that gives it back, for a service that is restarted, has not vanished."""
_NEVER = 1e9
STUCK_SECONDS = 1.0
"""From being told to stop until the process ends, whatever it does: with a beat before it, less than 2 s."""
_STORE_SECONDS = 30.0

log = structlog.stdlib.get_logger("arbiter.worker")


class Unwanted(Exception):
    """The job was cancelled, is another's by now, or this process ends: nothing more is to be said about it."""


class LimitPassed(Exception):
    """The job went past a limit; the text says which."""


class Limits(msgspec.Struct, frozen=True):
    """``seconds`` of the clock, ``bytes`` of compressed results, that one job may take."""

    seconds: float
    bytes: int


class Work:
    """What a job is done with."""

    def __init__(self, writer: ChunkWriter, check: Callable[[], None]) -> None:
        self._check = check
        self.write = writer.write
        self.flush = writer.flush
        self.progress: Mapping[str, Any] | None = None
        """How far it is, as the next heartbeat tells."""

    def check(self) -> bool:
        """To be asked now and then, as whatever goes on until it is told to stop asks. Raises Unwanted, LimitPassed."""
        self._check()
        return False


class Doing(Protocol):
    """Does jobs of one kind."""

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        """The outcome, as JSON. Raises InvalidInput, ArbiterError, LimitPassed, and what ``work`` raises."""
        ...


class Worker:
    """Does the jobs of ``database``, one after the other. ``kinds``: who does which; ``abandon``: ends the process, or
    whatever else is stuck with a job that does not stop."""

    def __init__(
        self, database: Database, kinds: Mapping[str, Doing], limits: Limits, abandon: Callable[[], None]
    ) -> None:
        self._database = database
        self._kinds = kinds
        self._limits = limits
        self._abandon = abandon
        self._stopping = threading.Event()
        self._away = -math.inf
        self._left: tuple[UUID, int] | None = None
        """The attempt that the database was away for: given back once it is there."""

    def stop(self) -> None:
        """Give back what is being done, and end."""
        self._stopping.set()

    def run(self, idle: Callable[[], None]) -> None:
        """Until told to stop. ``idle`` is called before each look for a job."""
        while not self._stopping.is_set():
            try:
                idle()
                busy = self.once()
            except Unavailable:
                busy = False
            if not busy:
                self._stopping.wait(BEAT_SECONDS)

    def once(self) -> bool:
        """Do one job, if there is any. Raises Unavailable."""
        try:
            with self._database.session() as session:
                if self._left is not None:
                    repository.release(session, *self._left)
                    self._left = None
                # While the database was away no other worker could be heard of either.
                patience = LOST_SECONDS if time.monotonic() - self._away > LOST_SECONDS else _NEVER
                job = repository.claim(session, list(self._kinds), patience)
        except Unavailable:
            self._away = time.monotonic()
            raise
        if job is None:
            return False
        if job.lost >= _MOST_LOST:
            self._end(job, None, status="failed", error=f"its worker was lost {job.lost} times")
        else:
            self._attempt(job)
        return True

    def _attempt(self, job: Claimed) -> None:
        said = log.bind(job=str(job.id), kind=job.kind, attempt=job.attempt)
        said.info("job begins")
        began = time.monotonic()
        heart = _Heart(self._database, job, self._limits.seconds, self._stopping, self._abandon)
        writer = ChunkWriter(lambda rows: self._store(job, rows, heart), self._limits.bytes)
        work = heart.work = Work(writer, heart.check)
        try:
            with heart, stoppable(heart.check):
                request = zstandard.ZstdDecompressor().decompress(job.request)
                outcome = self._kinds[job.kind].do(job, request, work)
                writer.flush()
        except Unwanted:
            said.info("job is no longer wanted")
            if self._stopping.is_set():
                self._release(job)
            return
        except Unavailable:
            self._left, self._away = (job.id, job.attempt), time.monotonic()
            raise  # it begins again once the database is back
        except Exception as error:
            text = _reason(error)
            if text is None:
                said.exception("job failed")
                text = "unexpected; the worker's log has the rest"
            self._end(job, heart, status="failed", error=text)
        else:
            packed = zstandard.ZstdCompressor().compress(outcome)
            self._end(job, heart, status="done", outcome=packed, progress=work.progress)
        said.info("job ends", seconds=round(time.monotonic() - began, 2))

    def _store(self, job: Claimed, rows: Sequence[Chunk], heart: "_Heart") -> None:
        def put(session: Session) -> bool:
            return repository.put(session, job.id, job.attempt, rows)

        if not self._patiently(put, heart):
            raise Unwanted

    def _end(self, job: Claimed, heart: "_Heart | None", **values: Any) -> None:
        try:
            self._patiently(lambda session: repository.end(session, job.id, job.attempt, dict(values)), heart)
        except (Unwanted, LimitPassed):
            log.info("job is no longer wanted", job=str(job.id))

    def _patiently(self, write: Callable[[Session], bool], heart: "_Heart | None") -> bool:
        """``write`` once the database is there. A database that is away for a while costs no job what it has done: it
        is still this worker's, for nobody else could take it. Raises Unwanted, LimitPassed."""
        while True:
            try:
                with self._database.session(_STORE_SECONDS) as session:
                    return write(session)
            except Unavailable:
                self._away = time.monotonic()
                if heart is None:
                    raise
                heart.check()
                self._stopping.wait(BEAT_SECONDS)

    def _release(self, job: Claimed) -> None:
        with self._database.session() as session:
            repository.release(session, job.id, job.attempt)


class _Heart:
    """Beats while a job is done. ``seconds``: how long that may take; ``abandon``: see ``Worker``."""

    def __init__(
        self, database: Database, job: Claimed, seconds: float, stopping: threading.Event, abandon: Callable[[], None]
    ) -> None:
        self.work: Work | None = None
        self._database = database
        self._job = job
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._stopping = stopping
        self._abandon = abandon
        self._unwanted = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def __enter__(self) -> "_Heart":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raises Unwanted, LimitPassed."""
        if self._unwanted or self._stopping.is_set():
            raise Unwanted
        if time.monotonic() > self._end:
            raise LimitPassed(self._too_long)

    @property
    def _too_long(self) -> str:
        return f"it took longer than {self._seconds:g} s (ARBITER_SIMULATION_SECONDS)"

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            now = time.monotonic()
            try:
                with self._database.session() as session:
                    progress = None if self.work is None else self.work.progress
                    self._unwanted = not repository.beat(session, self._job.id, self._job.attempt, progress)
            except Unavailable:
                pass  # nobody can have taken it: others are not heard either, and wait before they take what seems lost
            if self._unwanted or self._stopping.is_set() or now > self._end:
                self._give_up()
                return

    def _give_up(self) -> None:
        """Work is to stop; should it not, this process can't be of use any more."""
        if self._over.wait(STUCK_SECONDS):
            return
        log.warning("job does not stop, its process ends", job=str(self._job.id), kind=self._job.kind)
        with suppress(Unavailable), self._database.session() as session:
            if self._stopping.is_set():
                repository.release(session, self._job.id, self._job.attempt)
            elif not self._unwanted:
                repository.end(session, self._job.id, self._job.attempt, {"status": "failed", "error": self._too_long})
        self._abandon()


def _reason(error: Exception) -> str | None:
    """What went wrong, for whoever asked for the job; None where it is nobody's fault but ours."""
    match error:
        case LimitPassed():
            return str(error)
        case TooManyResults():
            return "its results are larger than they may be (ARBITER_SIMULATION_BYTES)"
        case InvalidInput():
            return "; ".join(f"{p.pointer}: {p.detail}" if p.pointer else p.detail for p in error.problems[:20])
        case ArbiterError():
            return error.detail
        case MemoryError():
            return "it needs more memory than the worker has"
        case _:
            return None
