"""Labels of configurations: moving them by compare-and-set, and what their endpoints take and answer.

Every write is part of the caller's transaction.
"""

from datetime import datetime
from typing import Annotated

import msgspec
from sqlalchemy.orm import Session

from app.auth import audit
from app.auth.callers import current_actor
from app.base.errors import BadInput
from app.configurations import repository
from app.configurations import repository as configurations
from app.configurations.repository import HeadRow, LabelRow
from app.configurations.service import Configurations, unknown
from app.db.database import Database, after_commit
from app.http.parameters import Preconditions
from app.solver.model.base import Wire
from app.solver.model.problems import Problem


class LabelRequest(Wire, frozen=True, kw_only=True):
    """``PUT`` of a label: the revision that it shall mean."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    """The revision that the label shall mean."""


class Label(Wire, frozen=True, kw_only=True):
    """A label and the revision that it means; ``name@label`` is a reference to it."""

    name: str
    """The name of the configuration."""
    label: str
    """The label; `name@label` is a reference to its revision."""
    revision: int
    """The revision that it means."""
    updated_at: datetime
    """When it was last moved."""
    author: str
    """Who moved it."""
    comment: str | None = None
    """Why, as the mover said."""


class LabelList(Wire, frozen=True, kw_only=True):
    """The labels of one configuration, by name."""

    items: list[Label]
    """By name of the label."""


LABEL = r"^[A-Za-z][A-Za-z0-9._-]{0,63}$"


class Labels:
    """The labels of configurations."""

    def __init__(self, database: Database, stored: Configurations) -> None:
        self._database = database
        self._stored = stored

    def every(self, name: str) -> list[Label]:
        """Labels of ``name`` that point somewhere. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if not configurations.exists(session, name):
                raise unknown(name)
            return [_shown(name, row) for row in repository.every(session, name)]

    def get(self, name: str, label: str) -> tuple[Label, str]:
        """A label and its entity tag. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            row = repository.find(session, name, label)
        if row is None or row.revision is None:
            raise unknown(name, label=label)
        return _shown(name, row), _etag(row) or ""

    def move(
        self, session: Session, name: str, label: str, revision: int, conditions: Preconditions, comment: str | None
    ) -> tuple[Label, str, bool]:
        """Point a label at a revision; with its entity tag, and whether there was none of that name.

        Raises NotFound, BadInput, PreconditionFailed, PreconditionRequired.
        """
        _lock(session, name)
        before = repository.find(session, name, label)
        conditions.check_write(_etag(before))
        created = before is None or before.revision is None
        if before is not None and before.revision == revision:
            return _shown(name, before), _etag(before) or "", False
        if configurations.at(session, name, revision) is None:
            detail = f"no revision {revision} of configuration {name!r}"
            raise BadInput([Problem(pointer="/revision", detail=detail)])
        row = repository.move(session, name, label, revision, current_actor(), comment)
        said = {"label": label, "revision": revision, "before": None if before is None else before.revision}
        audit.record(session, "configuration.label.move", name, said | {"comment": comment})
        self._tell(session, name, row)
        return _shown(name, row), _etag(row) or "", created

    def take_off(self, session: Session, name: str, label: str, conditions: Preconditions) -> None:
        """Raises NotFound, PreconditionFailed, PreconditionRequired."""
        _lock(session, name)
        before = repository.find(session, name, label)
        if before is None or before.revision is None:
            conditions.check_stated(None)
            raise unknown(name, label=label)
        conditions.check_write(_etag(before))
        row = repository.move(session, name, label, None, current_actor(), None)
        audit.record(session, "configuration.label.delete", name, {"label": label, "before": before.revision})
        self._tell(session, name, row)

    def _tell(self, session: Session, name: str, row: LabelRow) -> None:
        moved = HeadRow(name, row.label, row.revision, row.change)
        after_commit(session, lambda: self._stored.heads.learn([moved]))


def _lock(session: Session, name: str) -> None:
    head = configurations.locked(session, name)
    if head is None or head[1] is None:
        raise unknown(name)


def _shown(name: str, row: LabelRow) -> Label:
    assert row.revision is not None
    return Label(
        name=name, label=row.label, revision=row.revision, updated_at=row.updated_at, author=row.author,
        comment=row.comment,
    )  # fmt: skip


def _etag(row: LabelRow | None) -> str | None:
    """A label that goes away and comes back counts on: an old tag never fits again."""
    return None if row is None or row.revision is None else f'"{row.version}-{row.revision}"'
