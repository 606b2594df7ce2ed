"""All SQL of the names by which something is found."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

import msgspec
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.db.connecting import Statement
from app.db.database import metadata

names = sa.Table(
    "names",
    metadata,
    sa.Column("kind", sa.Text(collation="C"), primary_key=True),
    sa.Column("name", sa.Text(collation="C"), primary_key=True),
    sa.Column("folded", sa.Text(collation="C"), nullable=False),
    sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
    sa.Index("ix_names_seen_at", "seen_at"),
)

ANY = "*"
"""In a name that somebody looks for it stands for any text."""
_MOST_FITTING = 1000
_SAVE: LiteralString = """
    insert into names (kind, name, folded, seen_at)
    select kind, name, folded, now()
    from json_to_recordset(cast(%(rows)s as json)) as x(kind text, name text, folded text)
    on conflict (kind, name) do update set seen_at = excluded.seen_at
    """


def saving(rows: Sequence[tuple[str, str, str]]) -> Statement:
    """What keeps ``rows``: kind, name, and the name as it is compared; each once, and sorted: else writers would wait
    for one another in a circle."""
    said = [{"kind": kind, "name": name, "folded": folded} for kind, name, folded in rows]
    return _SAVE, {"rows": msgspec.json.encode(said).decode()}


def holding(session: Session, part: str, limit: int) -> Sequence[sa.RowMapping]:
    """Names that hold ``part``: those that are it, then those that begin with it, then the others; newest first."""
    position = sa.func.strpos(names.c.folded, part)
    whole = sa.func.length(names.c.folded) == len(part)
    query = sa.select(names.c.kind, names.c.name, names.c.seen_at).where(position > 0)
    query = query.order_by(
        ((position == 1) & whole).desc(), (position == 1).desc(), names.c.seen_at.desc(), names.c.name
    )
    return session.execute(query.limit(limit)).mappings().all()


def pattern(name: str) -> str:
    """``name``, in which ``*`` stands for any text, as LIKE reads it."""
    return name.replace("\0", "\ufffd").replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_").replace(ANY, "%")


def fitting(kind: str, name: str) -> sa.Select[tuple[str]]:
    """The names that ``name`` (folded) stands for, those of them that were seen last."""
    query = sa.select(names.c.name).where(names.c.kind == kind, names.c.folded.like(pattern(name)))
    return query.order_by(names.c.seen_at.desc()).limit(_MOST_FITTING)


def prune(session: Session, *, before: datetime | None, keep: int) -> None:
    """Delete names that nothing was seen of since ``before``, and those beyond the ``keep`` that were seen last."""
    oldest = sa.select(names.c.seen_at).order_by(names.c.seen_at.desc()).offset(keep).limit(1)
    past = names.c.seen_at <= oldest.scalar_subquery()
    session.execute(sa.delete(names).where(past if before is None else past | (names.c.seen_at < before)))
