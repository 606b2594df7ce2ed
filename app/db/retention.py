"""What of a log is past its retention: the same bounds for every table whose ids sort by time."""

from uuid import UUID

import sqlalchemy as sa


def past_retention(
    entry: sa.Column[UUID], size: sa.ColumnElement[int], *, before: UUID | None, keep: int | None,
    keep_bytes: int | None,
) -> sa.ColumnElement[bool] | None:  # fmt: skip
    """Whether an entry, by its id, is older than ``before``, beyond the newest ``keep``, or beyond the newest whose
    ``size`` adds up to ``keep_bytes``; None: no such bound, and of all of them nothing is past it."""
    past: list[sa.ColumnElement[bool]] = []
    if before is not None:
        past.append(entry < before)
    if keep is not None:
        first_out = sa.select(entry).order_by(entry.desc()).offset(keep).limit(1)
        past.append(entry <= first_out.scalar_subquery())
    if keep_bytes is not None:
        total = sa.func.sum(size).over(order_by=entry.desc()).label("total")
        running = sa.select(entry.label("id"), total).subquery()
        too_much = sa.select(running.c.id).where(running.c.total > sa.literal(keep_bytes, sa.BigInteger))
        past.append(entry.in_(too_much))
    return sa.or_(*past) if past else None
