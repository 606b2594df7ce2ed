"""All SQL of jobs and of their results.

A job is claimed by one worker at a time (``FOR UPDATE SKIP LOCKED``), which keeps it by heartbeats; whose heartbeat is
too old has lost it, and the next attempt begins again from the start. Results belong to an attempt: what a lost attempt
has written is never seen with that of the next.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import Session

from app.base.errors import Unavailable
from app.db.database import metadata

_ALIVE = ("queued", "running")
_PLACES = 0x41524A4F  # any number that only the places of jobs use

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default="queued"),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("started_at", sa.DateTime(timezone=True)),
    sa.Column("ended_at", sa.DateTime(timezone=True)),
    sa.Column("heartbeat_at", sa.DateTime(timezone=True)),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lost", sa.Integer, nullable=False, server_default="0"),
    sa.Column("trace", sa.Uuid),
    sa.Column("about", sa.LargeBinary, nullable=False),
    sa.Column("folded", sa.Text(collation="C")),
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("progress", JSONB),
    sa.Column("outcome", sa.LargeBinary),
    sa.Column("error", sa.Text),
    sa.Index("ix_jobs_status_created_at", "status", "created_at"),
    sa.Index("ix_jobs_trace", "trace"),
    sa.Index("ix_jobs_actor_started_at", "actor", "started_at"),
    sa.Index("ix_jobs_folded", "kind", "id", postgresql_where=sa.text("folded is not null")),
)

chunks = sa.Table(
    "job_chunks",
    metadata,
    sa.Column("job", sa.Uuid, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("stream", sa.Text(collation="C"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("first", sa.BigInteger, nullable=False),
    sa.Column("lines", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

_SHOWN = [column for column in jobs.c if column.name not in ("folded", "request", "outcome")]


class Claimed(NamedTuple):
    """A job that this worker has from now on, as long as its heart beats; ``lost``: workers that vanished over it."""

    id: UUID
    kind: str
    attempt: int
    lost: int
    trace: UUID | None
    request: bytes


class Chunk(NamedTuple):
    """Some lines of a stream, compressed; ``first`` counts the lines before."""

    stream: str
    number: int
    first: int
    lines: int
    data: bytes


def alive(session: Session) -> dict[str, int]:
    """How many jobs of each actor wait or run. Whoever asks next waits until this transaction ends: two that ask at
    once can't both take the last place."""
    session.execute(sa.select(sa.func.pg_advisory_xact_lock(_PLACES)))
    counted = sa.select(jobs.c.actor, sa.func.count()).where(jobs.c.status.in_(_ALIVE)).group_by(jobs.c.actor)
    return dict(session.execute(counted).all())


class Counted(NamedTuple):
    """The jobs of a kind and a status. ``seconds``: from begin to end, summed over those that ended; ``oldest``: since
    the first of them was asked for."""

    kind: str
    status: str
    jobs: int
    seconds: float | None
    oldest: float


def census(session: Session) -> list[Counted]:
    """All jobs, by kind and status. Raises Unavailable where there is no such table, yet."""

    def lasts(interval: sa.ColumnElement[Any]) -> sa.ColumnElement[float]:
        return sa.cast(sa.extract("epoch", interval), sa.Double)

    counted = sa.select(
        jobs.c.kind, jobs.c.status, sa.func.count(),
        lasts(sa.func.sum(jobs.c.ended_at - jobs.c.started_at)),
        lasts(sa.func.clock_timestamp() - sa.func.min(jobs.c.created_at)),
    )  # fmt: skip
    try:
        rows = session.execute(counted.group_by(jobs.c.kind, jobs.c.status).order_by(jobs.c.kind, jobs.c.status))
    except ProgrammingError:
        raise Unavailable("the database is not migrated") from None
    return [Counted(*row) for row in rows]


def add(session: Session, row: dict[str, Any]) -> None:
    """A new job."""
    session.execute(sa.insert(jobs).values(**row))


def claim(session: Session, kinds: Sequence[str], lost_after: float) -> Claimed | None:
    """The oldest job that waits, or whose worker has not been heard of for ``lost_after`` seconds, of the actor for
    whom none was begun for longest; None: nothing to do. What an earlier attempt has left behind goes."""
    lost = (jobs.c.status == "running") & (jobs.c.heartbeat_at < sa.func.now() - timedelta(seconds=lost_after))
    other = jobs.alias()
    turn = sa.select(sa.func.max(other.c.started_at)).where(other.c.actor == jobs.c.actor).scalar_subquery()
    wanted = (
        sa.select(jobs.c.id)
        .where(jobs.c.kind.in_(kinds), (jobs.c.status == "queued") | lost)
        .order_by(turn.asc().nulls_first(), jobs.c.created_at, jobs.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    now = sa.func.clock_timestamp()
    taken = (
        sa.update(jobs)
        .where(jobs.c.id == wanted.scalar_subquery())
        .values(
            status="running", attempt=jobs.c.attempt + 1, heartbeat_at=now, progress=None,
            lost=jobs.c.lost + sa.case((jobs.c.status == "running", 1), else_=0),
            started_at=sa.func.coalesce(jobs.c.started_at, now),
        )
        .returning(jobs.c.id, jobs.c.kind, jobs.c.attempt, jobs.c.lost, jobs.c.trace, jobs.c.request)
    )  # fmt: skip
    row = session.execute(taken).first()
    if row is None:
        return None
    session.execute(sa.delete(chunks).where(chunks.c.job == row.id))
    return Claimed(*row)


def beat(session: Session, job: UUID, attempt: int, progress: Any) -> bool:
    """Tell that it is worked on, and how far it is. Whether it is still this attempt's to do."""
    row = sa.update(jobs).where(*_mine(job, attempt)).values(heartbeat_at=sa.func.clock_timestamp(), progress=progress)
    return session.execute(row.returning(jobs.c.id)).first() is not None


def end(session: Session, job: UUID, attempt: int, values: dict[str, Any]) -> bool:
    """Its last word: status, outcome, error. Whether it was still this attempt's to say."""
    if values.get("error") is not None:
        values["error"] = values["error"].replace("\0", "\ufffd")  # which PostgreSQL's text can't hold
    row = sa.update(jobs).where(*_mine(job, attempt)).values(ended_at=sa.func.clock_timestamp(), **values)
    return session.execute(row.returning(jobs.c.id)).first() is not None


def release(session: Session, job: UUID, attempt: int) -> None:
    """Leave it to others, at once: this worker stops."""
    session.execute(sa.update(jobs).where(*_mine(job, attempt)).values(status="queued", heartbeat_at=None))


def put(session: Session, job: UUID, attempt: int, rows: Sequence[Chunk]) -> bool:
    """Store chunks of an attempt. Whether it is still this attempt's to do: else nothing is stored."""
    mine = sa.select(jobs.c.id).where(*_mine(job, attempt)).with_for_update(read=True, key_share=True)
    if session.execute(mine).first() is None:
        return False
    stored = upsert(chunks).on_conflict_do_nothing()  # it may be told again: its first answer may have been lost
    session.execute(stored, [{"job": job, "attempt": attempt, **row._asdict()} for row in rows])
    return True


def find(session: Session, job: UUID, kind: str) -> sa.RowMapping | None:
    """The row with its outcome, without its request."""
    wanted = sa.select(*_SHOWN, jobs.c.outcome).where(jobs.c.id == job, jobs.c.kind == kind)
    return session.execute(wanted).mappings().one_or_none()


def request(session: Session, job: UUID, kind: str) -> tuple[bytes, UUID | None] | None:
    """What was asked, compressed, and the trace that it is about."""
    row = session.execute(sa.select(jobs.c.request, jobs.c.trace).where(jobs.c.id == job, jobs.c.kind == kind)).first()
    return None if row is None else (row.request, row.trace)


def page(session: Session, kind: str, before: UUID | None, limit: int) -> Sequence[sa.RowMapping]:
    """Jobs without request and outcome, newest first, older than ``before``."""
    query = sa.select(*_SHOWN).where(jobs.c.kind == kind).order_by(jobs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(jobs.c.id < before)
    return session.execute(query).mappings().all()


def between(session: Session, kinds: Sequence[str], first: UUID, last: UUID, limit: int) -> Sequence[sa.RowMapping]:
    """Ids and kinds of jobs, newest first."""
    query = sa.select(jobs.c.id, jobs.c.kind).where(jobs.c.kind.in_(kinds), jobs.c.id.between(first, last))
    return session.execute(query.order_by(jobs.c.id.desc()).limit(limit)).mappings().all()


def holding(session: Session, kind: str, part: str, limit: int) -> Sequence[sa.RowMapping]:
    """What is shown of the jobs of a kind whose folded names hold ``part``, by id, newest first."""
    query = sa.select(jobs.c.id, jobs.c.about).where(jobs.c.kind == kind, sa.func.strpos(jobs.c.folded, part) > 0)
    query = query.where(jobs.c.folded.is_not(None))  # or the index of those that have a name would not be used
    return session.execute(query.order_by(jobs.c.id.desc()).limit(limit)).mappings().all()


def cancel(session: Session, job: UUID, kind: str) -> bool:
    """Let its worker stop; whether it was alive."""
    stopped = (
        sa.update(jobs)
        .where(jobs.c.id == job, jobs.c.kind == kind, jobs.c.status.in_(_ALIVE))
        .values(status="cancelled", ended_at=sa.func.clock_timestamp())
    )
    return session.execute(stopped.returning(jobs.c.id)).first() is not None


def delete(session: Session, job: UUID, kind: str) -> bool:
    """Forget it and its results; whether it was there."""
    gone = sa.delete(jobs).where(jobs.c.id == job, jobs.c.kind == kind).returning(jobs.c.id)
    return session.execute(gone).first() is not None


def chunk_after(session: Session, job: UUID, stream: str, line: int) -> Chunk | None:
    """The chunk of the current attempt that has ``line`` (from 0) of a stream; None past its end."""
    wanted = (
        sa.select(chunks.c.stream, chunks.c.number, chunks.c.first, chunks.c.lines, chunks.c.data)
        .join(jobs, (jobs.c.id == chunks.c.job) & (jobs.c.attempt == chunks.c.attempt))
        .where(chunks.c.job == job, chunks.c.stream == stream, chunks.c.first + chunks.c.lines > line)
        .order_by(chunks.c.number)
        .limit(1)
    )
    row = session.execute(wanted).one_or_none()
    return None if row is None else Chunk(*row)


def prune(session: Session, before: datetime, keep: int) -> int:
    """Forget jobs that ended before an instant, and those beyond the newest ``keep`` that have ended."""
    ended = jobs.c.ended_at.is_not(None)
    newest = sa.select(jobs.c.id).where(ended).order_by(jobs.c.id.desc()).offset(keep)
    doomed = sa.delete(jobs).where(ended, (jobs.c.ended_at < before) | jobs.c.id.in_(newest))
    return len(session.execute(doomed.returning(jobs.c.id)).all())


def _mine(job: UUID, attempt: int) -> tuple[sa.ColumnElement[bool], ...]:
    return jobs.c.id == job, jobs.c.attempt == attempt, jobs.c.status == "running"
