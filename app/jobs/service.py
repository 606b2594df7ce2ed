"""Jobs as those see them who ask for them: accepted, shown, read from, stopped, counted, done by a worker beside; and
the endpoints that every kind of job has.
"""

import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from inspect import cleandoc
from types import FrameType
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
import structlog
import zstandard
from fastapi import APIRouter, Path, Query, Request, Response
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.answering.answers import encode
from app.auth import audit
from app.auth.audit import current_actor, require_place
from app.base import python
from app.base.errors import NotFound, Unavailable
from app.base.identifiers import Identifiers
from app.base.ticket import held
from app.db.database import Database
from app.http.body import body_or
from app.http.openapi import Cursor, Limit, decode_id, encode_cursor, operation
from app.http.responses import json_response
from app.http.routing import service
from app.jobs import repository
from app.jobs.worker import lines_of
from app.search.service import JOBS, Hit, fold, ids_beginning
from app.solver.model.base import Time, Wire
from app.workers.dispatcher import Offload

Status = Literal["queued", "running", "done", "failed", "cancelled"]


class JobState(Wire, frozen=True, kw_only=True):
    """How a job stands, whatever its kind."""

    id: UUID
    """Its id."""
    status: Status
    """`queued`, `running`, `done`, `failed` (see `error`) or `cancelled`."""
    created_at: Time
    """When it was asked for."""
    started_at: Time | None = None
    """When it first began. Absent: it has not."""
    ended_at: Time | None = None
    """When it ended. Absent: it has not."""
    attempt: int = 0
    """How often it was begun: again from the start after a worker was lost."""


def state_of(row: RowMapping) -> dict[str, Any]:
    """The fields of a ``JobState`` and ``error``, of a job as it is stored."""
    return {name: row[name] for name in (*JobState.__struct_fields__, "error")}


class New(NamedTuple):
    """A job that is asked for. ``about``: what is shown of it, as JSON; ``trace``: the stored trace it needs; ``name``:
    by which it is found, also in ``about``."""

    about: bytes
    request: bytes
    trace: UUID | None = None
    name: str | None = None


class _Called(msgspec.Struct):
    name: str


class Jobs:
    """The jobs of ``database``; ``most`` may wait or run at once, of all kinds together. A caller who is known by name
    has at most as many as are left for others, so that none of them takes every place."""

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._identifiers = Identifiers()

    def add(self, kind: str, prepare: Callable[[Session], New]) -> UUID:
        """Accept a job; ``prepare`` is called in the transaction that does. Raises TooManyRequests, Unavailable, and
        what ``prepare`` raises."""
        moment = datetime.now(UTC)
        identity = self._identifiers.new(moment)
        with self._database.session() as session:
            new = prepare(session)
            require_place(
                repository.alive(session), self._most, full="{} simulations wait or run already",
                own="{} simulations of yours wait or run", setting="ARBITER_SIMULATIONS_ALIVE", retry_after=5,
            )  # fmt: skip
            row = {
                "id": identity,
                "kind": kind,
                "actor": current_actor(),
                "created_at": moment,
                "trace": new.trace,
                "about": new.about,
                "folded": None if new.name is None else fold(new.name),
                "request": zstandard.ZstdCompressor().compress(new.request),
            }
            repository.add(session, row)
            audit.record(session, f"{kind}.begin", str(identity))
        return identity

    def row(self, job: UUID, kind: str) -> RowMapping:
        """What is known of it, without its request. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.find(session, job, kind)
        if row is None:
            raise unknown(kind, job)
        return row

    def request(self, job: UUID, kind: str) -> tuple[bytes, UUID | None]:
        """What was asked for, and the trace that it needs. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            packed = repository.request(session, job, kind)
        if packed is None:
            raise unknown(kind, job)
        return zstandard.ZstdDecompressor().decompress(packed[0]), packed[1]

    def page(self, kind: str, before: UUID | None, limit: int) -> list[RowMapping]:
        """Newest first. Raises Unavailable."""
        with self._database.session() as session:
            return list(repository.page(session, kind, before, limit))

    def named(self, part: str, limit: int) -> list[Hit]:
        """Those whose ids begin with ``part``, and simulations whose names hold it, newest first. Raises
        Unavailable."""
        span = ids_beginning(part)
        with self._database.session() as session:
            by_id = repository.between(session, JOBS, *span, limit) if span else ()
            by_name = repository.holding(session, "simulation", part, limit)
        hits = [Hit(kind=row["kind"], name=str(row["id"])) for row in by_id]
        for row in by_name:
            name = msgspec.json.decode(row["about"], type=_Called).name
            hits.append(Hit(kind="simulation", name=name, id=row["id"]))
        return hits

    def stop(self, job: UUID, kind: str) -> None:
        """Stop it; one that has ended is forgotten with its results. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            cancelled = repository.cancel(session, job, kind)
            if not cancelled and not repository.delete(session, job, kind):
                raise unknown(kind, job)
            audit.record(session, f"{kind}.{'cancel' if cancelled else 'delete'}", str(job))

    def lines(self, job: UUID, stream: str, first: int = 0, most: int | None = None) -> Iterator[bytes]:
        """The lines of a stream with their ends, some at a time, from number ``first`` (0 is the first), at most
        ``most``, as far as they are stored; one chunk in memory at a time. Raises Unavailable, and DeadlinePassed where
        a request is being answered with them."""
        line = first
        ticket = held()
        while most is None or most > 0:
            if ticket is not None:
                ticket.check()
            with self._database.session() as session:
                chunk = repository.chunk_after(session, job, stream, line)
            if chunk is None:
                return
            text, count = lines_of(chunk, line - chunk.first, most)
            yield text
            line += count
            most = None if most is None else most - count


Outcome = TypeVar("Outcome")


def outcome_of(row: RowMapping, shape: type[Outcome]) -> Outcome | None:
    """What came of a job, as a ``shape``; None while it has none, and of a row that was read without."""
    if row.get("outcome") is None:
        return None
    return msgspec.json.decode(zstandard.ZstdDecompressor().decompress(row["outcome"]), type=shape)


def unknown(kind: str, job: UUID) -> NotFound:
    """The error for a job that is not there."""
    return NotFound(f"no {kind} {job}")


Shown = TypeVar("Shown", bound=JobState)
Page = TypeVar("Page")


class JobsOfKind(ABC, Generic[Shown, Page]):
    """The jobs of one kind, shown, listed and stopped alike whatever they do. ``shown``: a stored job as its kind tells
    it; ``paged``: makes a page of ``items`` and ``next_cursor``."""

    def __init__(self, jobs: Jobs, kind: str, shown: Callable[[RowMapping], Shown], paged: Callable[..., Page]) -> None:
        self._jobs = jobs
        self._kind = kind
        self._shown = shown
        self._paged = paged

    @abstractmethod
    def start(self, body: bytes) -> Shown:
        """Accept one. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""

    def get(self, identity: UUID) -> Shown:
        """Raises NotFound, Unavailable."""
        return self._shown(self._jobs.row(identity, self._kind))

    def page(self, cursor: str | None, limit: int) -> Page:
        """Raises BadRequest, Unavailable."""
        rows = self._jobs.page(self._kind, None if cursor is None else decode_id(cursor), limit + 1)
        more = encode_cursor(str(rows[limit - 1]["id"])) if len(rows) > limit else None
        return self._paged(items=[self._shown(row) for row in rows[:limit]], next_cursor=more)

    def stop(self, identity: UUID) -> None:
        """Raises NotFound, Unavailable."""
        self._jobs.stop(identity, self._kind)

    def _accept(self, prepare: Callable[[Session], New]) -> Shown:
        """``prepare`` is called in the transaction that accepts. Raises TooManyRequests, Unavailable, what it does."""
        return self.get(self._jobs.add(self._kind, prepare))

    def _variant(self, identity: UUID, variant: str | None, names: Sequence[str]) -> int:
        """Which of the job's variants, by ``names``, that is. Raises NotFound."""
        if variant is None:
            return 0
        if variant not in names:
            raise NotFound(f"{self._kind} {identity} has no variant {variant!r}")
        return names.index(variant)


Which = Annotated[str | None, Query(max_length=512, description="The name of a variant. Absent: the first.")]
First = Annotated[int, Query(alias="from", ge=0, le=2**62, description="The first line wanted; the first of all is 0.")]
Most = Annotated[int | None, Query(ge=1, le=2**62, description="The most lines wanted. Absent: all.")]


_SECONDS = 1.0
"""For the database; a scrape without these says more than one that comes too late."""


class Census(Collector):
    """How many jobs wait, run and have ended, for Prometheus: counted in the database when it is asked. The jobs of
    ``database``; nothing while it is away or not migrated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[GaugeMetricFamily]:
        """The families without samples, so that registering asks nothing of the database."""
        labels = ["kind", "status"]
        return [
            GaugeMetricFamily("arbiter_jobs", "Jobs that the database keeps.", labels=labels),
            GaugeMetricFamily("arbiter_jobs_seconds", "What those that ended took, summed.", labels=labels),
            GaugeMetricFamily(
                "arbiter_jobs_oldest_seconds", "How long the oldest that waits has waited.", labels=["kind"]
            ),
        ]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Those of now."""
        try:
            with self._database.session(_SECONDS) as session:
                rows = repository.census(session)
        except Unavailable:
            return
        count, seconds, oldest = self.describe()
        for row in rows:
            count.add_metric([row.kind, row.status], row.jobs)
            if row.status == "queued":
                oldest.add_metric([row.kind], row.oldest)
            elif row.seconds is not None:
                seconds.add_metric([row.kind, row.status], row.seconds)
        yield from (count, seconds, oldest)


_PATIENCE = 3.0
"""Seconds that it has to give back its job."""
PAUSE_SECONDS = 1.0
"""Before the next one is started."""
STEADY_SECONDS = 5.0
"""After which one that was started in place of another counts as able."""

log = structlog.stdlib.get_logger("arbiter.worker")


class Companion:
    """The worker that a process starts beside itself: it ends with that process, and is replaced when it dies.

    Runs ``python -m module``. It reads ``settings``, a line of JSON, from its standard input, and ends when that is
    closed: no worker outlives a service that was killed.
    """

    def __init__(self, module: str, settings: str, name: str = "background") -> None:
        self.name = name
        self._failing: datetime | None = None
        self._began = 0.0
        self._command = [*python(), "-m", module]
        self._settings = settings.encode() + b"\n"
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, name="companion", daemon=True)

    def failing(self) -> datetime | None:
        """Since when no process of it has lived for some seconds; None: it is able, or has only begun."""
        process = self._process
        lives = process is not None and process.poll() is None
        if lives and time.monotonic() - self._began >= STEADY_SECONDS:
            self._failing = None
        return self._failing

    def start(self) -> None:
        """Start it, and whenever it has ended start another."""
        self._thread.start()

    def run(self) -> None:
        """Start it, and close it once this process is told to end."""
        ending = threading.Event()

        def end(_: int, __: FrameType | None) -> None:
            ending.set()

        for signalled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signalled, end)
        self.start()
        ending.wait()
        self.close()

    def close(self) -> None:
        """Let it give back its job and end."""
        self._closing.set()
        process = self._process
        if process is not None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
        if self._thread.ident is not None:
            self._thread.join(PAUSE_SECONDS)

    def _watch(self) -> None:
        while not self._closing.is_set():
            self._began = time.monotonic()
            # In a session of its own: what a terminal tells the service is for the service to pass on.
            try:
                process = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)
            except OSError as error:  # no memory, or too many processes or files: that may pass
                self._failing = self.failing() or datetime.now(UTC)
                log.error("no worker can be started", why=str(error))
                self._closing.wait(PAUSE_SECONDS)
                continue
            self._process = process
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.write(self._settings)
                process.stdin.flush()
            if self._closing.is_set():
                process.terminate()
            code = process.wait()
            process.stdin.close()
            self._failing = self.failing() or datetime.now(UTC)
            if not self._closing.wait(PAUSE_SECONDS):
                log.warning("worker ended, another is started", code=code)


READ = (404, 422, 503)
"""Errors of whatever looks at one job."""


class Said(NamedTuple):
    """What the document says of an endpoint."""

    operation_id: str
    summary: str
    description: str

    def fields(self) -> dict[str, str]:
        """As a route takes them."""
        return {**self._asdict(), "description": cleandoc(self.description)}


def router_of(  # noqa: PLR0913
    jobs: type[JobsOfKind[Any, Any]], kind: str, *, request: type[Wire], shown: type[Wire], page: type[Wire],
    example: dict[str, Any], begin: Said, listed: Said, got: Said, forgotten: str = "forgotten",
    errors: tuple[int, ...] = (404, 409, 429, 503, 504), otherwise: str = "",
) -> APIRouter:  # fmt: skip
    """The endpoints of ``jobs`` below ``/v1/<kind>s``; those that only this kind has are added to it. ``errors``: of
    beginning one; ``forgotten``: what becomes of one that has ended and is deleted; ``otherwise``: what to do about a
    body that is too large."""
    router = APIRouter(prefix=f"/v1/{kind}s", tags=["simulations"])

    named = Path(description=f"`id` of {'an' if kind[0] in 'aeiou' else 'a'} {kind}")

    @router.post(
        "", **begin.fields(),
        **operation(needs="decide", request=request, responses={202: shown}, errors=errors, example=example),
    )  # fmt: skip
    async def begin_one(request: Request, body: Annotated[bytes, body_or(otherwise)]) -> Response:
        job = await service(request, Offload).run("large", service(request, jobs).start, body)
        return json_response(encode(job), 202, {"Location": f"/v1/{kind}s/{job.id}"})

    @router.get("", **listed.fields(), **operation(needs="read", responses={200: page}, errors=(503,)))
    def list_all(request: Request, limit: Limit = 50, cursor: Cursor = None) -> Response:
        return json_response(encode(service(request, jobs).page(cursor, limit)))

    @router.get("/{id}", **got.fields(), **operation(needs="read", responses={200: shown}, errors=READ))
    def get_one(request: Request, id: Annotated[UUID, named]) -> Response:  # noqa: A002
        return json_response(encode(service(request, jobs).get(id)))

    @router.delete(
        "/{id}", operation_id=f"delete_{kind}", summary="Stop it, or forget it",
        description=f"One that waits or runs is `cancelled` and stops within 2 s; one that has ended is {forgotten}.",
        **operation(needs="decide", responses={204: None}, errors=READ),
    )  # fmt: skip
    def delete_one(request: Request, id: Annotated[UUID, named]) -> Response:  # noqa: A002
        service(request, jobs).stop(id)
        return Response(status_code=204)

    _ = begin_one, list_all, get_one, delete_one
    return router
