"""SQL of the follower: what has changed since it last looked."""

from typing import NamedTuple

from sqlalchemy import case, literal_column, null, select, text, union_all
from sqlalchemy.orm import Session

from app.configurations.labels.repository import labels
from app.configurations.repository import configurations


class HeadRow(NamedTuple):
    """What a name, or a label of a name, means since ``change``; without ``revision`` nothing any more."""

    name: str
    label: str | None
    revision: int | None
    change: int


def changed(session: Session, after: int) -> list[HeadRow]:
    """Names and labels whose last change is past ``after``, oldest change first."""
    live = case((configurations.c.deleted_at.is_(None), configurations.c.revision))
    heads = select(configurations.c.name, null().label("label"), live.label("revision"), configurations.c.change)
    moved = select(labels.c.name, labels.c.label, labels.c.revision, labels.c.change)
    wanted = union_all(
        heads.where(configurations.c.change > after), moved.where(labels.c.change > after)
    ).order_by(literal_column("change"))  # fmt: skip
    return [HeadRow(*row) for row in session.execute(wanted)]


def horizon(session: Session) -> int:
    """The last number of a change given out. Below what was seen before: the database was set back."""
    return session.execute(text("select last_value from configuration_change")).scalar_one()
