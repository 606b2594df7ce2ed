"""The history of a configuration: its revisions compared, the labels that point at them, and what the endpoints
answer.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, cast

import msgspec
from sqlalchemy.orm import Session

from app.auth import audit
from app.auth.audit import current_actor
from app.base.documents import Path
from app.base.errors import BadInput
from app.configurations import repository
from app.configurations import repository as configurations
from app.configurations.repository import HeadRow, LabelRow
from app.configurations.service import Configurations, ConfigurationSummary, unknown
from app.db.database import Database, after_commit
from app.http.openapi import Preconditions
from app.solver.model.base import Wire
from app.solver.model.problems import Problem, pointer


class RevisionPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Revisions of one configuration, newest first."""

    items: list[ConfigurationSummary]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; null on the last."""


class ValueChange(Wire, frozen=True, kw_only=True):
    """A value that differs. ``pointer`` leads to it in the newer document, in the older one where it is only there.

    Without ``old`` it was not said before, without ``new`` it is not said any more: then the default holds.
    """

    pointer: str
    """Where: into the newer document, or into the older one where the value is only there."""
    old: Any = msgspec.UNSET
    """The value before. Absent: the default held."""
    new: Any = msgspec.UNSET
    """The value now. Absent: the default holds."""


class ElementChanges(Wire, frozen=True, kw_only=True):
    """Queues or flavors that differ, by name."""

    added: list["Element"] = []
    """Only in the newer one."""
    removed: list["Element"] = []
    """Only in the older one."""
    changed: list["ChangedElement"] = []
    """In both, not alike."""


class Element(Wire, frozen=True, kw_only=True):
    """A queue or flavor that only one of the revisions has."""

    name: str
    """The name of the queue or flavor."""
    pointer: str
    """Where it stands in its document."""
    value: dict[str, Any]
    """What it says."""


class ChangedElement(Wire, frozen=True, kw_only=True):
    """A queue or flavor that both have, not alike."""

    name: str
    """The name of the queue or flavor."""
    changes: list[ValueChange]
    """What differs in it."""


class ConfigurationDiff(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What became of revision ``against`` in ``revision``; against 0, the empty document, everything is added.

    ``reordered``: queues or flavors that both have stand in another order.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The newer revision."""
    against: int
    """The older revision; 0 is the empty document."""
    identical: bool
    """Whether nothing differs."""
    settings: list[ValueChange]
    """Settings, and the default engine, that differ."""
    flavors: ElementChanges
    """Flavors that differ."""
    queues: ElementChanges
    """Queues that differ."""
    reordered: bool
    """Whether queues or flavors that both have stand in another order."""


Document = dict[str, Any]


def difference(name: str, against: int, old: Document, revision: int, new: Document) -> ConfigurationDiff:
    """What differs between ``old`` and ``new``, configurations as JSON objects without defaults, by structure: queues
    and flavors by name, everything else by pointer. Pure."""
    rest_old = {key: value for key, value in old.items() if key not in ("queues", "flavors")}
    rest_new = {key: value for key, value in new.items() if key not in ("queues", "flavors")}
    queues, queues_moved = _elements("queues", old, new)
    flavors, flavors_moved = _elements("flavors", old, new)
    settings = list(_values(rest_old, rest_new, ()))
    return ConfigurationDiff(
        name=name, revision=revision, against=against, identical=old == new, settings=settings,
        flavors=flavors, queues=queues, reordered=queues_moved or flavors_moved,
    )  # fmt: skip


def _elements(kind: str, old: Document, new: Document) -> tuple[ElementChanges, bool]:
    before: dict[str, tuple[int, Document]] = {e["name"]: (i, e) for i, e in enumerate(old.get(kind, ()))}
    after: dict[str, tuple[int, Document]] = {e["name"]: (i, e) for i, e in enumerate(new.get(kind, ()))}
    changes = ElementChanges(
        added=[_element(kind, i, e) for name, (i, e) in after.items() if name not in before],
        removed=[_element(kind, i, e) for name, (i, e) in before.items() if name not in after],
        changed=[
            ChangedElement(name=name, changes=list(_values(before[name][1], e, (kind, i))))
            for name, (i, e) in after.items()
            if name in before and before[name][1] != e
        ],
    )
    kept_before = [name for name in before if name in after]
    kept_after = [name for name in after if name in before]
    return changes, kept_before != kept_after


def _element(kind: str, i: int, element: Document) -> Element:
    return Element(name=element["name"], pointer=pointer(kind, i), value=element)


def _values(old: Any, new: Any, path: Path) -> Iterator[ValueChange]:
    """Objects key by key; lists item by item where both name the same things in the same order, else as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast(Document, old), cast(Document, new)
        for key in dict.fromkeys([*before, *after]):
            yield from _values(before.get(key, msgspec.UNSET), after.get(key, msgspec.UNSET), (*path, key))
    elif (names := _names(old)) is not None and names == _names(new):
        for i in range(len(names)):
            yield from _values(old[i], new[i], (*path, i))
    elif old != new:
        yield ValueChange(pointer=pointer(*path), old=old, new=new)


def _names(value: Any) -> list[str] | None:
    """What the items of a list go by: their names, or the resources of a resource group. None where it is no such."""
    if not isinstance(value, list):
        return None
    names: list[str] = []
    for item in cast(list[Any], value):
        if not isinstance(item, dict):
            return None
        named = cast(Document, item)
        name = named.get("name", named.get("resources"))
        if name is None:
            return None
        names.append(str(name))
    return names


def compare(stored: Configurations, name: str, revision: int, against: int | None) -> ConfigurationDiff:
    """What became of revision ``against`` (by default the one before) in ``revision``. Raises NotFound, Unavailable."""
    base = revision - 1 if against is None else against
    new = stored.get(name, revision)
    old = {} if base == 0 else msgspec.json.decode(stored.get(name, base).document, type=dict[str, Any])
    return difference(name, base, old, revision, msgspec.json.decode(new.document, type=dict[str, Any]))


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
        if configurations.numbered(session, name, revision) is None:
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
