"""All SQL of what the decision log keeps of snapshots.

A state is kept whole, or as what changed since another one, its ``base``. States that build on one another share a
``root``, the whole one at their beginning; they go together, when no decision in the log needs any of them.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.db import metadata

kept_documents = sa.Table(
    "kept_documents",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("base", sa.BigInteger, sa.ForeignKey("kept_documents.id", name="fk_kept_documents_base")),
    sa.Column("root", sa.BigInteger),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index("ix_kept_documents_digest", "digest", unique=True),
    sa.Index("ix_kept_documents_base", "base", postgresql_where=sa.text("base is not null")),
    sa.Index("ix_kept_documents_root", "root", postgresql_where=sa.text("root is not null")),
)

_PRUNED_AT_ONCE = 10


class New(NamedTuple):
    """``digest`` and ``base`` are SHA-256; ``content`` is compressed."""

    digest: bytes
    base: bytes | None
    content: bytes


def save(session: Session, documents: Sequence[New]) -> None:
    """Keep ``documents`` in order; what is there stays as it is, what builds on something that is not there is left."""
    whole = [{"d": one.digest, "c": one.content} for one in documents if one.base is None]
    changes = [{"d": one.digest, "c": one.content, "b": one.base} for one in documents if one.base is not None]
    if whole:
        session.execute(_WHOLE, whole)
    if changes:
        session.execute(_CHANGES, changes)


_DIGEST, _BASE, _CONTENT = (sa.bindparam(name, type_=sa.LargeBinary()) for name in "dbc")
_WHOLE = (
    insert(kept_documents)
    .from_select(["digest", "depth", "content"], sa.select(_DIGEST, sa.literal(0, sa.Integer), _CONTENT))
    .on_conflict_do_nothing()
)
_CHANGES = (
    insert(kept_documents)
    .from_select(
        ["digest", "base", "root", "depth", "content"],
        sa.select(
            _DIGEST,
            kept_documents.c.id,
            sa.func.coalesce(kept_documents.c.root, kept_documents.c.id),
            kept_documents.c.depth + 1,
            _CONTENT,
        ).where(kept_documents.c.digest == _BASE),
    )
    .on_conflict_do_nothing()
)


def missing(session: Session, digests: Sequence[bytes]) -> set[bytes]:
    """Those of ``digests`` that nothing is kept of."""
    found = session.scalars(sa.select(kept_documents.c.digest).where(kept_documents.c.digest.in_(digests)))
    return set(digests) - {bytes(one) for one in found}


def chain(session: Session, identity: int) -> list[bytes]:
    """The contents that make up one document: the whole one first, then each change."""
    step = sa.select(kept_documents.c.base, kept_documents.c.depth, kept_documents.c.content)
    walk = step.where(kept_documents.c.id == identity).cte("walk", recursive=True)
    walk = walk.union_all(step.where(kept_documents.c.id == walk.c.base))
    return [bytes(one) for one in session.scalars(sa.select(walk.c.content).order_by(walk.c.depth))]


def prune(session: Session, before: datetime, decisions: sa.Table) -> int:
    """Delete what no row of ``decisions`` needs: up to ten roots with all that builds on them, none of which was made
    since ``before``. How many documents went."""
    root, member = kept_documents.alias("root"), kept_documents.alias("member")

    def needed(identity: Any) -> sa.ColumnElement[bool]:
        return sa.exists().where((decisions.c.kept_state == identity) | (decisions.c.kept_configuration == identity))

    members = sa.exists().where(member.c.root == root.c.id, (member.c.created_at >= before) | needed(member.c.id))
    unused = root.c.root.is_(None) & (root.c.created_at < before) & ~needed(root.c.id) & ~members
    doomed = sa.select(root.c.id).where(unused).limit(_PRUNED_AT_ONCE).scalar_subquery()
    of = sa.func.coalesce(kept_documents.c.root, kept_documents.c.id)
    gone = session.execute(sa.delete(kept_documents).where(of.in_(doomed)).returning(kept_documents.c.id))
    return len(gone.all())
