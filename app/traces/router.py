"""``/v1/traces``: what happened on a cluster, stored once, read a chunk at a time, played as often as wanted."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args
from uuid import UUID

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.auth import audit
from app.base.errors import NotFound
from app.base.identifiers import NAME, Identifiers
from app.db.database import Database
from app.http.body import Files
from app.http.openapi import (
    NDJSON,
    Conditions,
    Content,
    Cursor,
    Limit,
    Preconditions,
    decode_cursor,
    encode_cursor,
    lines,
    operation,
)
from app.http.responses import json_response
from app.http.routing import provided, service
from app.simulations.schemas import Change, Job
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem
from app.traces import repository
from app.traces.ingest import COLUMNS, Limits, unpacked
from app.traces.jobs import DEFAULTS, Format, Mapping, TraceFormat, TraceFormats, TracePage, TraceSummary
from app.traces.preparing import Readers, Upload, prepare
from app.traces.repository import StoredTrace
from app.workers.dispatcher import Offload

_SECONDS = 30.0
"""For a trace's chunks on their way into the database."""


class Stored(NamedTuple):
    """What a put has made. ``summary``: as JSON, with the configuration that the mapping makes; ``replaced``: whether
    another trace had the name."""

    etag: str
    summary: bytes
    replaced: bool


class Traces:
    """The stored traces of ``database``. Each is read in a process of its own, which may die of it, but for plain lines
    of at most ``small`` bytes: they expand to nothing."""

    def __init__(self, database: Database, limits: Limits, small: int = 0) -> None:
        self._database = database
        self._limits = limits
        self._small = small
        self._readers = Readers()
        self._identifiers = Identifiers()

    def put(
        self, name: str, form: Format, files: dict[str, bytes], conditions: Preconditions, *, dry_run: bool = False
    ) -> Stored:
        """Store a trace, unless ``dry_run``; one that is wrong changes nothing. Raises InvalidInput, BadInput,
        BadRequest, PreconditionFailed, DeadlinePassed, Unavailable."""
        upload = Upload(name, form, datetime.now(UTC), self._limits)
        plain = form == "ndjson" and sum(map(len, files.values())) <= self._small
        read = (prepare if plain else self._readers.prepared)(upload, files)
        if dry_run:
            return Stored(etag_of(read.digest), read.answer, replaced=True)
        row = {
            "id": self._identifiers.new(upload.moment),
            "name": name,
            "created_at": upload.moment,
            "summary": read.summary,
            "configuration": read.configuration,
        }
        with self._database.session(_SECONDS) as session:
            repository.lock(session, name)
            before = repository.find(session, name)
            conditions.check_stated(None if before is None else etag(_unpacked(before["summary"])))
            replaced = repository.replace(session, row, read.chunks)
            audit.record(session, "trace.put", name, {"digest": read.digest})
        return Stored(etag_of(read.digest), read.answer, replaced)

    def close(self) -> None:
        """Read no further: whoever waits for that gets Unavailable."""
        self._readers.close()

    def get(self, name: str) -> tuple[UUID, TraceSummary]:
        """Its id and what it is. Raises NotFound, Unavailable."""
        row = self._row(name)
        return row["id"], _unpacked(row["summary"])

    def summary(self, name: str) -> TraceSummary:
        """What it is, with the configuration that its mapping makes of it. Raises NotFound, Unavailable."""
        row = self._row(name)
        packed = row["configuration"]
        configuration = None if packed is None else msgspec.json.decode(unpacked(packed), type=Configuration)
        return msgspec.structs.replace(_unpacked(row["summary"]), configuration=configuration)

    def _row(self, name: str) -> RowMapping:
        with self._database.session() as session:
            row = repository.find(session, name)
        if row is None:
            raise unknown(name)
        return row

    def opened(self, trace: UUID) -> StoredTrace:
        """The trace of that id, to be read. Raises NotFound, Unavailable."""
        return StoredTrace(self.by_id(trace), lambda: self.lines(trace))

    def by_id(self, trace: UUID) -> TraceSummary:
        """What the trace of that id is, whatever its name is by now. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.by_id(session, trace)
        if row is None:
            raise NotFound("the trace is gone")
        return _unpacked(row["summary"])

    def lines(self, trace: UUID) -> Iterator[bytes]:
        """Its lines, some at a time, each read from the database when it is asked for. Raises Unavailable."""
        return map(unpacked, self.packed(trace))

    def packed(self, trace: UUID) -> Iterator[bytes]:
        """The same, compressed as they are stored. Raises Unavailable."""
        number = 0
        while (packed := self._chunk(trace, number)) is not None:
            yield packed
            number += 1

    def page(self, after: str | None, limit: int) -> list[TraceSummary]:
        """Raises Unavailable."""
        with self._database.session() as session:
            return [_unpacked(row["summary"]) for row in repository.page(session, after, limit)]

    def delete(self, name: str, conditions: Preconditions) -> None:
        """Raises NotFound, PreconditionFailed, Unavailable."""
        with self._database.session() as session:
            row = repository.find(session, name, keep=True)
            if row is None:
                raise unknown(name)
            conditions.check_stated(etag(_unpacked(row["summary"])))
            repository.unname(session, name)
            audit.record(session, "trace.delete", name)

    def pinned(self, session: Session, name: str) -> UUID:
        """The id of the trace of that name, which stays until the transaction of ``session`` ends. Raises NotFound."""
        row = repository.find(session, name, keep=True)
        if row is None:
            raise unknown(name, "/trace")
        return row["id"]

    def digest(self, session: Session, trace: UUID) -> str:
        """SHA-256 of its lines."""
        row = repository.by_id(session, trace)
        assert row is not None
        return _unpacked(row["summary"]).digest

    def _chunk(self, trace: UUID, number: int) -> bytes | None:
        with self._database.session() as session:
            return repository.chunk(session, trace, number)


def etag(summary: TraceSummary) -> str:
    """By what it says, not by when it was stored."""
    return etag_of(summary.digest)


def etag_of(digest: str) -> str:
    """The same of a trace with that digest."""
    return f'"{digest[:32]}"'


def unknown(name: str, where: str | None = None) -> NotFound:
    """The error for a trace that is not there."""
    detail = f"no trace {name!r}"
    return NotFound(detail, problems=[] if where is None else [Problem(pointer=where, detail=detail)])


def _unpacked(packed: bytes) -> TraceSummary:
    return msgspec.json.decode(unpacked(packed), type=TraceSummary)


TRACE: list[dict[str, Any]] = [
    {
        "ask": {
            "id": "train-1",
            "queue": "team-a",
            "priority": 10,
            "tasks": [{"name": "main", "requests": {"cpu": 6}}],
        },
        "submitted_at": 0,
        "duration": 3600,
    },
    {
        "ask": {
            "id": "serve-1",
            "queue": "team-b",
            "priority": 50,
            "tasks": [{"name": "main", "requests": {"cpu": 8}}],
        },
        "submitted_at": 600,
        "duration": "30m",
        "checkpoint": {"every": "10m"},
    },
]
"""Two jobs, for the queues of the example configuration."""


DOCUMENTED = (Job, Change, Mapping, TraceSummary, TracePage, TraceFormats)

router = APIRouter(prefix="/v1", tags=["traces"])


Service = Annotated[Traces, provided(Traces)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["january"])]
FormatOf = Annotated[
    Format, Query(alias="format", description="`swf`: Standard Workload Format 2.2; `ndjson`: a job or a change a line")
]
DryRun = Annotated[bool, Query(description="Only say what it would be; nothing is stored")]
_LINES: Content = lines(Job, *TRACE)


@router.get(
    "/traces",
    operation_id="list_traces",
    summary="What is stored",
    **operation(needs="read", responses={200: TracePage}, errors=(503,)),
)
def list_traces(traces: Service, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Stored traces by name, without their lines."""
    after = str(decode_cursor(cursor, str)[0]) if cursor else None
    page = traces.page(after, limit + 1)
    more = encode_cursor(page[limit - 1].name) if len(page) > limit else None
    return json_response(encode(TracePage(items=page[:limit], next_cursor=more)))


@router.get(
    "/trace-formats",
    operation_id="list_trace_formats",
    summary="The formats that traces are read from",
    **operation(needs="read", responses={200: TraceFormats}),
)
async def list_trace_formats() -> Response:
    """The columns that a mapping can name, and the mapping of each format."""
    formats = [
        TraceFormat(name=name, columns=list(COLUMNS.get(name, ())), mapping=DEFAULTS.get(name))
        for name in get_args(Format)
    ]
    return json_response(encode(TraceFormats(items=formats)))


@router.put(
    "/traces/{name}",
    operation_id="put_trace",
    summary="Store a trace",
    **operation(
        needs="decide",
        request=_LINES,
        responses={200: TraceSummary, 201: TraceSummary},
        errors=(408, 412, 413, 415, 429, 503, 504),
        etag=True,
    ),
)
async def put_trace(
    name: Name,
    request: Request,
    files: Files,
    traces: Service,
    conditions: Conditions,
    form: FormatOf = "ndjson",
    dry_run: DryRun = False,
) -> Response:
    """The body is the trace, or `multipart/form-data`: `trace` and `mapping`; for Alibaba's format `pods`, `nodes` and
    `mapping`. A mapping is JSON or YAML and says which columns become queue, priority and resources. Files may be
    gzip. What is wrong is named by line, and then nothing is stored. With
    `dry_run` it is only read: what the mapping makes of it is told."""
    put = partial(traces.put, dry_run=dry_run)
    stored = await service(request, Offload).run("large", put, name, form, files, conditions)
    headers = {"ETag": stored.etag, "Location": f"/v1/traces/{name}"}
    return json_response(stored.summary, 200 if stored.replaced else 201, headers)


@router.get(
    "/traces/{name}",
    operation_id="get_trace",
    summary="The lines of a trace",
    **operation(needs="read", responses={200: _LINES, 304: None}, errors=(404, 503), etag=True),
)
def get_trace(name: Name, traces: Service, conditions: Conditions) -> Response:
    """Changes and jobs, one a line, in the order in which they were sent."""
    trace, summary = traces.get(name)
    headers = {"ETag": etag(summary)}
    if conditions.not_modified(etag(summary)):
        return Response(status_code=304, headers=headers)
    return StreamingResponse(traces.lines(trace), media_type=NDJSON, headers=headers)


@router.get(
    "/traces/{name}/summary",
    operation_id="get_trace_summary",
    summary="What a trace has",
    **operation(needs="read", responses={200: TraceSummary}, errors=(404, 503), etag=True),
)
def get_trace_summary(name: Name, traces: Service) -> Response:
    """Jobs, queues and their work, the configuration that the mapping makes of it, and which lines were left out or
    taken otherwise than they stand."""
    summary = traces.summary(name)
    return json_response(encode(summary), headers={"ETag": etag(summary)})


@router.delete(
    "/traces/{name}",
    operation_id="delete_trace",
    summary="Forget a trace",
    **operation(needs="decide", responses={204: None}, errors=(404, 412, 503)),
)
def delete_trace(name: Name, traces: Service, conditions: Conditions) -> Response:
    """Simulations of it keep what they need."""
    traces.delete(name, conditions)
    return Response(status_code=204)
