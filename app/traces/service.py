"""Stored traces: put, read a chunk at a time, forgotten."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
import yaml
import zstandard
from sqlalchemy.orm import Session

from app.db import Database
from app.decisions.identifiers import Identifiers
from app.decoding import convert
from app.errors import BadInput, BadRequest, NotFound
from app.http.preconditions import Preconditions
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem
from app.solver.model.quantity import scale_of
from app.traces import repository
from app.traces.cluster import configuration
from app.traces.ingest import Ingested, Limits, Source, Work, ingest, unpacked
from app.traces.mapping import Format, Mapping
from app.traces.reading import StoredTrace
from app.traces.schemas import LineNote, TraceQueue, TraceSummary

_SECONDS = 30.0
"""For a trace's chunks on their way into the database."""
_SHOWN_QUEUES = 1000
_FIELDS = {"ndjson": {"trace"}, "swf": {"trace", "mapping"}, "alibaba-gpu-2023": {"pods", "nodes", "mapping"}}


class Stored(NamedTuple):
    """What a put has made. ``replaced``: whether another trace had the name."""

    summary: TraceSummary
    replaced: bool


class Traces:
    """The stored traces of ``database``."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        self._identifiers = Identifiers()

    def put(self, name: str, form: Format, files: dict[str, bytes], conditions: Preconditions) -> Stored:
        """Store a trace; one that is wrong changes nothing. Raises InvalidInput, BadInput, PreconditionFailed."""
        read = ingest(source_of(form, files), self._limits)
        made = configuration(read)
        moment = datetime.now(UTC)
        summary = _summary(name, form, read, moment)
        row = {
            "id": self._identifiers.new(moment),
            "name": name,
            "created_at": moment,
            "summary": _packed(summary),
            "configuration": None if made is None else _packed(made),
        }
        with self._database.session(_SECONDS) as session:
            repository.lock(session, name)
            before = repository.find(session, name)
            conditions.check_stated(None if before is None else etag(_unpacked(before["summary"])))
            replaced = repository.replace(session, row, read.chunks)
        return Stored(msgspec.structs.replace(summary, configuration=made), replaced)

    def get(self, name: str) -> tuple[UUID, TraceSummary]:
        """Its id and what it is. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.find(session, name)
        if row is None:
            raise unknown(name)
        return row["id"], _unpacked(row["summary"])

    def summary(self, name: str) -> TraceSummary:
        """What it is, with the configuration that its mapping makes of it. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.find(session, name)
        if row is None:
            raise unknown(name)
        packed = row["configuration"]
        made = None if packed is None else msgspec.json.decode(unpacked(packed), type=Configuration)
        return msgspec.structs.replace(_unpacked(row["summary"]), configuration=made)

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
        number = 0
        while (packed := self._chunk(trace, number)) is not None:
            yield unpacked(packed)
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


def source_of(form: Format, files: dict[str, bytes]) -> Source:
    """What the files of a body are, by the names of their fields. Raises BadInput, BadRequest, InvalidInput."""
    main = "pods" if form == "alibaba-gpu-2023" else "trace"
    if strange := sorted(set(files) - {""} - _FIELDS[form]):
        named = ", ".join(sorted(_FIELDS[form]))
        raise BadRequest(f"format {form} has no file {strange[0][:64]!r}; there are {named}")
    body = files.get("", files.get(main))
    if body is None:
        raise BadInput([Problem(pointer="", detail=f"file {main!r} is missing")])
    return Source(form, body, files.get("nodes"), mapping_of(files.get("mapping")))


def mapping_of(text: bytes | None) -> Mapping | None:
    """A mapping from JSON or YAML. Raises BadRequest, InvalidInput."""
    if text is None:
        return None
    if len(text) > 1 << 20:
        raise BadRequest("the mapping is larger than 1 MiB")
    try:
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadRequest(f"the mapping is neither JSON nor YAML: {str(error)[:200]}") from None
    return convert(document, Mapping)


def etag(summary: TraceSummary) -> str:
    """By what it says, not by when it was stored."""
    return f'"{summary.digest[:32]}"'


def unknown(name: str, where: str | None = None) -> NotFound:
    """The error for a trace that is not there."""
    detail = f"no trace {name!r}"
    return NotFound(detail, problems=[] if where is None else [Problem(pointer=where, detail=detail)])


def _summary(name: str, form: Format, read: Ingested, moment: datetime) -> TraceSummary:
    notes = [LineNote(line=note.line, detail=note.detail) for note in read.notes.found]
    queues = {queue: _queue(work) for queue, work in sorted(read.queues.items())[:_SHOWN_QUEUES]}
    return TraceSummary(
        name=name, digest=read.digest, format=form, jobs=read.jobs, changes=read.changes, nodes=len(read.nodes),
        bytes=read.size, start=read.start, seconds=read.span, queues=queues,
        notes=read.notes.count, first_notes=notes, created_at=moment,
    )  # fmt: skip


def _queue(work: Work) -> TraceQueue:
    units = {resource: steps / scale_of(resource) / 1e6 for resource, steps in sorted(work.steps.items())}
    return TraceQueue(jobs=work.jobs, work=units)


def _packed(document: TraceSummary | Configuration) -> bytes:
    return zstandard.ZstdCompressor().compress(msgspec.json.encode(document, order="deterministic"))


def _unpacked(packed: bytes) -> TraceSummary:
    return msgspec.json.decode(unpacked(packed), type=TraceSummary)
