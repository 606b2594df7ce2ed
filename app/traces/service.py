"""Stored traces: put, read a chunk at a time, forgotten."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy.orm import Session

from app.auth import audit
from app.base.errors import NotFound
from app.base.identifiers import Identifiers
from app.db.database import Database
from app.http.parameters import Preconditions
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Problem
from app.traces import repository
from app.traces.ingest import Limits, unpacked
from app.traces.mapping import Format
from app.traces.preparing import Readers, Upload, prepare
from app.traces.repository import StoredTrace
from app.traces.schemas import TraceSummary

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

    def put(self, name: str, form: Format, files: dict[str, bytes], conditions: Preconditions) -> Stored:
        """Store a trace; one that is wrong changes nothing. Raises InvalidInput, BadInput, BadRequest,
        PreconditionFailed, DeadlinePassed, Unavailable."""
        upload = Upload(name, form, datetime.now(UTC), self._limits)
        plain = form == "ndjson" and sum(map(len, files.values())) <= self._small
        read = (prepare if plain else self._readers.prepared)(upload, files)
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
