"""All SQL of stored traces, and a stored trace as a run reads it.

What a trace says never changes: another under its name is another row, and the old one stays, nameless, as long as a
job is about it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.db.database import metadata
from app.jobs.repository import jobs
from app.simulations.schemas import Change, Job
from app.solver.question import safe_point
from app.traces.ingest import Chunk
from app.traces.jobs import TraceSummary

traces = sa.Table(
    "traces",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text(collation="C")),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("summary", sa.LargeBinary, nullable=False),
    sa.Column("configuration", sa.LargeBinary),
    sa.Index("ix_traces_name", "name", unique=True),
)

chunks = sa.Table(
    "trace_chunks",
    metadata,
    sa.Column("trace", sa.Uuid, sa.ForeignKey("traces.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("first", sa.Integer, nullable=False),
    sa.Column("jobs", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)


def lock(session: Session, name: str) -> None:
    """Let others who would give that name to a trace wait until the transaction ends."""
    session.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"arbiter.trace.{name}"))))


def replace(session: Session, row: dict[str, Any], packed: Sequence[Chunk]) -> bool:
    """Store a trace under its name; whether there was one before."""
    before = unname(session, row["name"])
    session.execute(sa.insert(traces).values(**row))
    if packed:
        session.execute(
            sa.insert(chunks),
            [{"trace": row["id"], "number": number, **chunk._asdict()} for number, chunk in enumerate(packed)],
        )
    return before


def unname(session: Session, name: str) -> bool:
    """Let nothing have that name any more; whether something had. What no job is about goes."""
    had = session.execute(sa.update(traces).where(traces.c.name == name).values(name=None).returning(traces.c.id))
    existed = had.first() is not None
    sweep(session)
    return existed


def sweep(session: Session) -> None:
    """Forget what has no name and no job."""
    used = sa.select(jobs.c.id).where(jobs.c.trace == traces.c.id)
    session.execute(sa.delete(traces).where(traces.c.name.is_(None), ~used.exists()))


def find(session: Session, name: str, *, keep: bool = False) -> sa.RowMapping | None:
    """The trace of that name. ``keep``: it stays at least until the transaction ends."""
    wanted = sa.select(traces).where(traces.c.name == name)
    return session.execute(wanted.with_for_update(read=True) if keep else wanted).mappings().one_or_none()


def by_id(session: Session, trace: UUID) -> sa.RowMapping | None:
    """A trace, whatever its name is by now."""
    return session.execute(sa.select(traces).where(traces.c.id == trace)).mappings().one_or_none()


def page(session: Session, after: str | None, limit: int) -> Sequence[sa.RowMapping]:
    """Traces by name, from the first name past ``after``."""
    query = sa.select(traces.c.name, traces.c.created_at, traces.c.summary).where(traces.c.name.is_not(None))
    if after is not None:
        query = query.where(traces.c.name > after)
    return session.execute(query.order_by(traces.c.name).limit(limit)).mappings().all()


def chunk(session: Session, trace: UUID, number: int) -> bytes | None:
    """A chunk's bytes, compressed; None past the last."""
    wanted = sa.select(chunks.c.data).where(chunks.c.trace == trace, chunks.c.number == number)
    return session.execute(wanted).scalar_one_or_none()


_job = msgspec.json.Decoder(Job).decode
_change = msgspec.json.Decoder(Change).decode
_CHANGE = b'{"at"'
"""How a change's line begins, as we have written it: a job's begins with its ask."""


class StoredTrace:
    """One trace as a run reads it: its changes at once, its jobs as they come. ``lines`` reads its lines from the
    first, some at a time, and raises Unavailable."""

    def __init__(self, summary: TraceSummary, lines: Callable[[], Iterator[bytes]]) -> None:
        self._lines = lines
        self._summary = summary

    @property
    def start(self) -> datetime | None:
        """The time of its second 0."""
        return self._summary.start

    @property
    def total(self) -> int:
        """How many jobs it has."""
        return self._summary.jobs

    def changes(self) -> list[Change]:
        """In their order."""
        if not self._summary.changes:
            return []
        return [_change(line) for text in self._heeded() for line in text.splitlines() if line.startswith(_CHANGE)]

    def jobs(self) -> Iterator[Job]:
        """In order of submission."""
        for _, job in self.numbered():
            yield job

    def numbered(self) -> Iterator[tuple[int, Job]]:
        """The same with the number of each line, from 1."""
        number = 0
        for text in self._heeded():
            for line in text.splitlines():
                number += 1
                if not line.startswith(_CHANGE):
                    yield number, _job(line)

    def _heeded(self) -> Iterator[bytes]:
        """The lines; whoever wants to stop the reading can, before each piece."""
        for text in self._lines():
            safe_point()
            yield text
