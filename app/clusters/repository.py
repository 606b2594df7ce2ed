"""All SQL of followed clusters. Times are the database's: followers report to any replica."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import RowMapping
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.base.identifiers import earliest
from app.db.database import Intervals, metadata, past_retention

followers = sa.Table(
    "cluster_followers",
    metadata,
    sa.Column("cluster", sa.Text(collation="C"), primary_key=True),
    sa.Column("follower", sa.Text(collation="C"), primary_key=True),
    sa.Column("reported_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("report", sa.LargeBinary, nullable=False),
)

writers = sa.Table(
    "cluster_writers",
    metadata,
    sa.Column("cluster", sa.Text(collation="C"), primary_key=True),
    sa.Column("follower", sa.Text(collation="C"), nullable=False),
    sa.Column("until", sa.DateTime(timezone=True), nullable=False),
)

evictions = sa.Table(
    "cluster_evictions",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("cluster", sa.Text(collation="C"), nullable=False),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("workload", sa.Text(collation="C"), nullable=False),
    sa.Column("task", sa.Text(collation="C"), nullable=False),
    sa.Column("job", sa.Text(collation="C")),
    sa.Column("queue", sa.Text(collation="C")),
    sa.Column("by", sa.Text(collation="C")),
    sa.Column("shadow", sa.Uuid),
    sa.Column("bytes", sa.Integer, nullable=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("cluster", "workload", "task", "at", name="uq_cluster_evictions"),
    sa.Index("ix_cluster_evictions_workload", "cluster", "workload", "id"),
    sa.Index("ix_cluster_evictions_job", "cluster", "job", "id"),
    sa.Index("ix_cluster_evictions_queue", "cluster", "queue", "id"),
    sa.Index("ix_cluster_evictions_shadow", "shadow"),
)

use = sa.Table(
    "cluster_use",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("cluster", sa.Text(collation="C"), nullable=False),
    sa.Column("interval", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.Integer, nullable=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("cluster", "interval", name="uq_cluster_use"),
)


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept; 0: without such a bound."""

    days: float
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """What a listing of evictions is limited to; None: anything. ``since`` is included, ``until`` is not."""

    workload: str | None = None
    job: str | None = None
    queue: str | None = None
    by: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def report(session: Session, cluster: str, follower: str, body: bytes, forget_after: timedelta) -> None:
    """Keep a follower's last report; followers of any cluster that are silent for longer are forgotten."""
    row = upsert(followers).values(cluster=cluster, follower=follower, reported_at=sa.func.now(), report=body)
    said = {"reported_at": row.excluded.reported_at, "report": row.excluded.report}
    session.execute(row.on_conflict_do_update(index_elements=["cluster", "follower"], set_=said))
    silent = followers.c.reported_at < sa.func.now() - forget_after
    session.execute(sa.delete(followers).where(silent))


def lease(session: Session, cluster: str, follower: str, seconds: float) -> bool:
    """Take or keep the part of the writer, unless somebody else has it still."""
    until = sa.func.now() + timedelta(seconds=seconds)
    row = upsert(writers).values(cluster=cluster, follower=follower, until=until)
    free = (writers.c.follower == row.excluded.follower) | (writers.c.until < sa.func.now())
    row = row.on_conflict_do_update(
        index_elements=["cluster"], set_={"follower": row.excluded.follower, "until": row.excluded.until}, where=free
    )
    return session.execute(row.returning(writers.c.follower)).first() is not None


def reports(session: Session, cluster: str | None, silent: timedelta) -> Sequence[RowMapping]:
    """The last report of every follower, of one cluster or of all, by cluster and follower. Not of those that have been
    silent for that long."""
    age = sa.extract("epoch", sa.func.now() - followers.c.reported_at).label("age")
    writes = sa.func.coalesce(writers.c.until > sa.func.now(), sa.false()).label("writes")
    of = (writers.c.cluster == followers.c.cluster) & (writers.c.follower == followers.c.follower)
    wanted = sa.select(followers, age, writes).outerjoin(writers, of)
    wanted = wanted.where(followers.c.reported_at >= sa.func.now() - silent)
    if cluster is not None:
        wanted = wanted.where(followers.c.cluster == cluster)
    return session.execute(wanted.order_by(followers.c.cluster, followers.c.follower)).mappings().all()


def forget(session: Session, cluster: str) -> bool:
    """Whether there was something to forget."""
    session.execute(sa.delete(writers).where(writers.c.cluster == cluster))
    gone = session.execute(sa.delete(followers).where(followers.c.cluster == cluster).returning(followers.c.follower))
    return gone.first() is not None


def save_evictions(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep those that are not known yet."""
    known = upsert(evictions).on_conflict_do_nothing(constraint="uq_cluster_evictions")
    session.execute(known, list(rows))


def prune_evictions(session: Session, newest: datetime, retention: Retention) -> None:
    """Delete what is past these bounds, counted back from ``newest``."""
    _prune(session, evictions, newest, retention)


def evicted(session: Session, cluster: str, of: Evicted, before: UUID | None, limit: int) -> Sequence[RowMapping]:
    """Up to ``limit`` evictions, newest first, older than ``before``. A workload is also found by one of its tasks."""
    query = sa.select(evictions.c.id, evictions.c.record).where(evictions.c.cluster == cluster)
    if before is not None:
        query = query.where(evictions.c.id < before)
    if of.workload is not None:
        query = query.where(sa.or_(evictions.c.workload == of.workload, evictions.c.task == of.workload))
    for name in ("job", "queue", "by"):
        if (wanted := getattr(of, name)) is not None:
            query = query.where(evictions.c[name] == wanted)
    if of.since is not None:
        query = query.where(evictions.c["at"] >= of.since)
    if of.until is not None:
        query = query.where(evictions.c["at"] < of.until)
    return session.execute(query.order_by(evictions.c.id.desc()).limit(limit)).mappings().all()


def save_use(session: Session, row: Mapping[str, Any]) -> None:
    """Keep what queues use; of an interval the last word."""
    said = upsert(use).values(**row)
    last = {"bytes": said.excluded.bytes, "record": said.excluded.record}
    session.execute(said.on_conflict_do_update(constraint="uq_cluster_use", set_=last))


def prune_use(session: Session, newest: datetime, retention: Retention) -> None:
    """Delete what is past the bounds of time and bytes, counted back from ``newest``."""
    _prune(session, use, newest, replace(retention, entries=0))


def used(session: Session, cluster: str, first: int, end: int, points: int) -> Sequence[bytes]:
    """What was kept of the intervals from ``first`` on, up to ``end``: of each of ``points`` equal parts the last."""
    part = (use.c.interval - first) * points // (end - first)
    within = (use.c.cluster == cluster, use.c.interval >= first, use.c.interval < end)
    last = sa.select(sa.func.max(use.c.interval)).where(*within).group_by(part)
    query = sa.select(use.c.record).where(use.c.cluster == cluster, use.c.interval.in_(last))
    return session.scalars(query.order_by(use.c.interval)).all()


shadow = sa.Table(
    "shadow",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("cluster", sa.Text(collation="C"), nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("ask", sa.Text(collation="C"), nullable=False),
    sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("bytes", sa.Integer, nullable=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
    sa.Column("request", sa.LargeBinary),
    sa.Column("victims", ARRAY(sa.Text)),
    sa.Index("ix_shadow_cluster", "cluster", "id"),
    sa.Index("ix_shadow_outcome", "outcome", "id"),
    sa.Index("ix_shadow_ask", "ask", "id"),
    sa.Index("ix_shadow_victims", "victims", postgresql_using="gin", postgresql_where=sa.text("victims is not null")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a listing is limited to; None: anything. ``since`` is included, ``until`` is not."""

    cluster: str | None = None
    engine: str | None = None
    outcome: str | None = None
    cause: str | None = None
    ask: str | None = None
    workload: str | None = None
    job: str | None = None
    queue: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def save_comparison(session: Session, row: Mapping[str, Any]) -> None:
    """Store one comparison."""
    session.execute(sa.insert(shadow).values(**row))


def comparisons(session: Session, filters: Filters, before: UUID | None, limit: int) -> Sequence[sa.RowMapping]:
    """Up to ``limit`` comparisons without their requests, newest first, older than ``before``."""
    query = sa.select(shadow.c.id, shadow.c.record).where(*_fitting(filters))
    if before is not None:
        query = query.where(shadow.c.id < before)
    return session.execute(query.order_by(shadow.c.id.desc()).limit(limit)).mappings().all()


def agreements(session: Session, filters: Filters, intervals: Intervals) -> list[tuple[int, str, str, int]]:
    """How many comparisons of each outcome and cause by interval."""
    interval, outcome, cause = intervals.number(shadow.c.seen_at), shadow.c.outcome, shadow.c.cause
    query = sa.select(interval, outcome, cause, sa.func.count()).where(*_fitting(filters))
    return [(*row,) for row in session.execute(query.group_by(interval, outcome, cause))]


def _fitting(filters: Filters) -> list[sa.ColumnElement[bool]]:
    where = [
        shadow.c[name] == wanted
        for name in ("cluster", "engine", "outcome", "cause", "ask")
        if (wanted := getattr(filters, name)) is not None
    ]
    of_owner = filters.job is not None or filters.queue is not None
    if filters.workload is not None or of_owner:
        known = shadow.c.id.in_(_with_victim(filters))
        observed = shadow.c.victims.contains([filters.workload])
        where.append(known if filters.workload is None or of_owner else known | observed)
    if filters.since is not None:
        where.append(shadow.c.seen_at >= filters.since)
    if filters.until is not None:
        where.append(shadow.c.seen_at < filters.until)
    return where


def _with_victim(filters: Filters) -> sa.Select[tuple[UUID]]:
    """The comparisons of evictions of a workload, of a job's, or from a queue."""
    query = sa.select(evictions.c.shadow).where(evictions.c.shadow.is_not(None))
    if filters.workload is not None:
        query = query.where(evictions.c.workload == filters.workload)
    if filters.job is not None:
        query = query.where(evictions.c.job == filters.job)
    if filters.queue is not None:
        query = query.where(evictions.c.queue == filters.queue)
    return query


def comparison(session: Session, identity: UUID) -> sa.RowMapping | None:
    """One comparison, with its request."""
    return session.execute(sa.select(shadow).where(shadow.c.id == identity)).mappings().first()


def prune_comparisons(session: Session, newest: datetime, retention: Retention) -> None:
    """Delete what is past these bounds, counted back from ``newest``."""
    _prune(session, shadow, newest, retention)


def _prune(session: Session, table: sa.Table, newest: datetime, retention: Retention) -> None:
    try:
        before = earliest(newest - timedelta(days=retention.days)) if retention.days else None
    except OverflowError:  # nothing is as old as that
        before = None
    past = past_retention(
        table.c.id, table.c.bytes, before=before, keep=retention.entries or None, keep_bytes=retention.bytes or None
    )
    if past is not None:
        session.execute(sa.delete(table).where(past))
