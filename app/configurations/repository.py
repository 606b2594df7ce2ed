"""All SQL about configurations and their revisions.

A trigger counts every change of ``configurations`` and of ``configuration_labels`` in ``change``, in the order in which
they were committed, and tells the channel ``CHANNEL``.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.db import metadata

CHANNEL = "arbiter_configurations"

configurations = Table(
    "configurations",
    metadata,
    Column("name", Text(collation="C"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("deleted_at", DateTime(timezone=True)),
    Column("change", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("revision > 0", name="revision_positive"),
    Index("ix_configurations_change", "change"),
)

revisions = Table(
    "configuration_revisions",
    metadata,
    Column("name", Text(collation="C"), ForeignKey("configurations.name"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("author", Text, nullable=False, server_default="anonymous"),
    Column("comment", Text),
    Column("restored_from", Integer),
)

_IS_CURRENT = (
    (configurations.c.name == revisions.c.name)
    & (configurations.c.revision == revisions.c.revision)
    & configurations.c.deleted_at.is_(None)
)
_SUMMARY = (
    revisions.c.name, revisions.c.revision, revisions.c.digest, revisions.c.created_at, revisions.c.author,
    revisions.c.comment, revisions.c.restored_from,
)  # fmt: skip


class Summary(NamedTuple):
    """One revision without its document."""

    name: str
    revision: int
    digest: str
    created_at: datetime
    author: str
    comment: str | None
    restored_from: int | None


class Revision(NamedTuple):
    """One immutable revision; ``document`` is JSON."""

    name: str
    revision: int
    digest: str
    created_at: datetime
    author: str
    comment: str | None
    restored_from: int | None
    document: bytes


class New(NamedTuple):
    """What a new revision says."""

    digest: str
    document: bytes
    author: str
    comment: str | None
    restored_from: int | None = None


def current(session: Session, name: str) -> Revision | None:
    """The newest revision of a configuration that isn't deleted."""
    found = session.execute(
        select(*_SUMMARY, revisions.c.document).join(configurations, _IS_CURRENT).where(revisions.c.name == name)
    ).first()
    return None if found is None else Revision(*found)


def at(session: Session, name: str, revision: int) -> Revision | None:
    """Any revision ever stored, of a deleted configuration too: decisions in the log refer to it."""
    wanted = select(*_SUMMARY, revisions.c.document).where(revisions.c.name == name, revisions.c.revision == revision)
    found = session.execute(wanted).first()
    return None if found is None else Revision(*found)


def exists(session: Session, name: str) -> bool:
    """Is there a configuration of that name that isn't deleted?"""
    found = select(configurations.c.name).where(configurations.c.name == name, configurations.c.deleted_at.is_(None))
    return session.execute(found).first() is not None


def locked(session: Session, name: str) -> tuple[int, Summary | None] | None:
    """Lock the name until the transaction ends: the last number given out, and the current revision unless deleted.

    ``None``: the name was never used.
    """
    wanted = select(configurations.c.revision, configurations.c.deleted_at)
    head = session.execute(wanted.where(configurations.c.name == name).with_for_update()).first()
    if head is None:
        return None
    if head.deleted_at is not None:
        return head.revision, None
    newest = select(*_SUMMARY).where(revisions.c.name == name, revisions.c.revision == head.revision)
    return head.revision, Summary(*session.execute(newest).one())


def claim(session: Session, name: str) -> bool:
    """Take a name that was never used, for revision 1; false when somebody else just did."""
    row = upsert(configurations).values(name=name, revision=1).on_conflict_do_nothing()
    return session.execute(row.returning(configurations.c.name)).first() is not None


def add(session: Session, name: str, revision: int, new: New) -> tuple[Revision, int]:
    """Store a revision and make it the current one; with the number of this change.

    The name is locked or claimed by this transaction.
    """
    row = insert(revisions).values(name=name, revision=revision, **new._asdict())
    created_at = session.execute(row.returning(revisions.c.created_at)).scalar_one()
    moved = update(configurations).where(configurations.c.name == name).values(revision=revision, deleted_at=None)
    change = session.execute(moved.returning(configurations.c.change)).scalar_one()
    stored = Revision(name, revision, new.digest, created_at, new.author, new.comment, new.restored_from, new.document)
    return stored, change


def delete(session: Session, name: str) -> int:
    """Hide a configuration; the number of this change. Its revisions stay for the decisions that used them."""
    hidden = update(configurations).where(configurations.c.name == name).values(deleted_at=func.now())
    return session.execute(hidden.returning(configurations.c.change)).scalar_one()


def page(session: Session, after: str | None, limit: int) -> list[Summary]:
    """Current revisions by name, from the first name past ``after``."""
    wanted = select(*_SUMMARY).join(configurations, _IS_CURRENT).order_by(revisions.c.name).limit(limit)
    if after is not None:
        wanted = wanted.where(revisions.c.name > after)
    return [Summary(*row) for row in session.execute(wanted)]


def history(session: Session, name: str, before: int | None, limit: int) -> list[Summary]:
    """Revisions of one configuration, newest first, from the first number below ``before``."""
    wanted = select(*_SUMMARY).where(revisions.c.name == name).order_by(revisions.c.revision.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(revisions.c.revision < before)
    return [Summary(*row) for row in session.execute(wanted)]
