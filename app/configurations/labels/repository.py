"""All SQL about labels on revisions."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Table,
    Text,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from app.db import metadata

labels = Table(
    "configuration_labels",
    metadata,
    Column("name", Text(collation="C"), ForeignKey("configurations.name"), primary_key=True),
    Column("label", Text(collation="C"), primary_key=True),
    Column("revision", Integer),
    Column("version", Integer, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("author", Text, nullable=False),
    Column("comment", Text),
    Column("change", BigInteger, nullable=False, server_default="0"),
    ForeignKeyConstraint(
        ["name", "revision"],
        ["configuration_revisions.name", "configuration_revisions.revision"],
        name="fk_configuration_labels_revision",
    ),
    Index("ix_configuration_labels_change", "change"),
)

_ROW = (
    labels.c.label, labels.c.revision, labels.c.version, labels.c.updated_at, labels.c.author, labels.c.comment,
    labels.c.change,
)  # fmt: skip


class LabelRow(NamedTuple):
    """A label of one configuration. ``version`` counts its moves; without ``revision`` it has been taken off."""

    label: str
    revision: int | None
    version: int
    updated_at: datetime
    author: str
    comment: str | None
    change: int


def find(session: Session, name: str, label: str) -> LabelRow | None:
    """The label's row, taken off or not."""
    found = session.execute(select(*_ROW).where(labels.c.name == name, labels.c.label == label)).first()
    return None if found is None else LabelRow(*found)


def every(session: Session, name: str) -> list[LabelRow]:
    """Labels that point somewhere, by name."""
    wanted = select(*_ROW).where(labels.c.name == name, labels.c.revision.is_not(None)).order_by(labels.c.label)
    return [LabelRow(*row) for row in session.execute(wanted)]


def move(session: Session, name: str, label: str, revision: int | None, author: str, comment: str | None) -> LabelRow:
    """Point a label at ``revision``, or take it off. The configuration is locked by this transaction."""
    said = {"revision": revision, "author": author, "comment": comment}
    row = upsert(labels).values(name=name, label=label, version=1, **said)
    row = row.on_conflict_do_update(
        index_elements=[labels.c.name, labels.c.label],
        set_={**said, "version": labels.c.version + 1, "updated_at": func.now()},
    )
    return LabelRow(*session.execute(row.returning(*_ROW)).one())


def take_off_all(session: Session, name: str, author: str) -> list[LabelRow]:
    """Take every label of a configuration off."""
    row = update(labels).where(labels.c.name == name, labels.c.revision.is_not(None))
    row = row.values(revision=None, author=author, comment=None, version=labels.c.version + 1, updated_at=func.now())
    return [LabelRow(*found) for found in session.execute(row.returning(*_ROW))]
