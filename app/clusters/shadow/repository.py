"""All SQL of shadow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from app.clusters.repository import evictions
from app.db.database import metadata, past_retention

shadow = sa.Table(
    "shadow",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("cluster", sa.Text(collation="C"), nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
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
    ask: str | None = None
    workload: str | None = None
    queue: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def save(session: Session, row: Mapping[str, Any]) -> None:
    """Store one comparison."""
    session.execute(sa.insert(shadow).values(**row))


def page(session: Session, filters: Filters, before: UUID | None, limit: int) -> Sequence[sa.RowMapping]:
    """Up to ``limit`` comparisons without their requests, newest first, older than ``before``."""
    query = sa.select(shadow.c.id, shadow.c.record)
    if before is not None:
        query = query.where(shadow.c.id < before)
    for name in ("cluster", "engine", "outcome", "ask"):
        if (wanted := getattr(filters, name)) is not None:
            query = query.where(shadow.c[name] == wanted)
    if filters.workload is not None or filters.queue is not None:
        known = shadow.c.id.in_(_with_victim(filters))
        told = shadow.c.victims.contains([filters.workload])
        query = query.where(known if filters.workload is None or filters.queue is not None else known | told)
    if filters.since is not None:
        query = query.where(shadow.c.seen_at >= filters.since)
    if filters.until is not None:
        query = query.where(shadow.c.seen_at < filters.until)
    return session.execute(query.order_by(shadow.c.id.desc()).limit(limit)).mappings().all()


def _with_victim(filters: Filters) -> sa.Select[tuple[UUID]]:
    """The comparisons of evictions of a workload, or from a queue."""
    query = sa.select(evictions.c.shadow).where(evictions.c.shadow.is_not(None))
    if filters.workload is not None:
        query = query.where(evictions.c.workload == filters.workload)
    if filters.queue is not None:
        query = query.where(evictions.c.queue == filters.queue)
    return query


def find(session: Session, identity: UUID) -> sa.RowMapping | None:
    """One comparison, with its request."""
    return session.execute(sa.select(shadow).where(shadow.c.id == identity)).mappings().first()


def prune(session: Session, *, before: UUID | None, keep: int | None, keep_bytes: int | None) -> None:
    """Delete what is older than ``before``, beyond the newest ``keep``, or beyond the newest that take ``keep_bytes``;
    None: no such bound."""
    past = past_retention(shadow.c.id, shadow.c.bytes, before=before, keep=keep, keep_bytes=keep_bytes)
    if past is not None:
        session.execute(sa.delete(shadow).where(past))
