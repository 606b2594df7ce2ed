"""All SQL of followed clusters. Times are the database's: followers report to any replica."""

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy import RowMapping
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.db import metadata

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


def report(session: Session, cluster: str, follower: str, body: bytes, forget_after: timedelta) -> None:
    """Keep a follower's last report; followers of the cluster that are silent for longer are forgotten."""
    row = upsert(followers).values(cluster=cluster, follower=follower, reported_at=sa.func.now(), report=body)
    said = {"reported_at": row.excluded.reported_at, "report": row.excluded.report}
    session.execute(row.on_conflict_do_update(index_elements=["cluster", "follower"], set_=said))
    silent = followers.c.reported_at < sa.func.now() - forget_after
    session.execute(sa.delete(followers).where(followers.c.cluster == cluster, silent))


def lease(session: Session, cluster: str, follower: str, seconds: float) -> bool:
    """Take or keep the part of the writer, unless somebody else has it still."""
    until = sa.func.now() + timedelta(seconds=seconds)
    row = upsert(writers).values(cluster=cluster, follower=follower, until=until)
    free = (writers.c.follower == row.excluded.follower) | (writers.c.until < sa.func.now())
    row = row.on_conflict_do_update(
        index_elements=["cluster"], set_={"follower": row.excluded.follower, "until": row.excluded.until}, where=free
    )
    return session.execute(row.returning(writers.c.follower)).first() is not None


def reports(session: Session, cluster: str | None = None) -> Sequence[RowMapping]:
    """The last report of every follower, of one cluster or of all, by cluster and follower."""
    age = sa.extract("epoch", sa.func.now() - followers.c.reported_at).label("age")
    writes = sa.func.coalesce(writers.c.until > sa.func.now(), sa.false()).label("writes")
    of = (writers.c.cluster == followers.c.cluster) & (writers.c.follower == followers.c.follower)
    wanted = sa.select(followers, age, writes).outerjoin(writers, of)
    if cluster is not None:
        wanted = wanted.where(followers.c.cluster == cluster)
    return session.execute(wanted.order_by(followers.c.cluster, followers.c.follower)).mappings().all()


def forget(session: Session, cluster: str) -> bool:
    """Whether there was something to forget."""
    session.execute(sa.delete(writers).where(writers.c.cluster == cluster))
    gone = session.execute(sa.delete(followers).where(followers.c.cluster == cluster).returning(followers.c.follower))
    return gone.first() is not None
