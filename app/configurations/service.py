"""Reading configurations: by name, revision or label, from memory where possible."""

import re
import time
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.base.errors import BadInput, NotFound
from app.base.lru import Lru
from app.configurations import repository
from app.configurations.heads.table import Heads
from app.configurations.labels import repository as labels
from app.configurations.repository import Revision, Summary
from app.configurations.schemas import ConfigurationWritten
from app.db import Database
from app.solver.model.problems import Problem

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_REFERENCE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,127})"
    r"(?:@(?:(?P<revision>[1-9][0-9]{0,8})|(?P<label>[A-Za-z][A-Za-z0-9._-]{0,63})))?"
)
_MOST_DOCUMENTS = 10_000


class Pin(NamedTuple):
    """One revision of one configuration."""

    name: str
    revision: int


class Configurations:
    """The stored configurations. Revisions never change: those in use are kept, up to ``budget`` bytes of documents.

    ``heads`` says what names and labels mean; what it does not know the database is asked.
    """

    def __init__(self, database: Database, budget: int) -> None:
        self._database = database
        self.heads = Heads(time.monotonic)
        self.documents: Lru[tuple[str, int], Revision] = Lru(_MOST_DOCUMENTS, budget)

    def head(self, reference: str) -> Pin:
        """The revision that ``name``, ``name@revision`` or ``name@label`` means now; that of a number need not exist.

        Raises BadInput, NotFound, Unavailable.
        """
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            detail = f"{reference[:64]!r} is not a name, name@revision or name@label"
            raise BadInput([Problem(pointer="/configuration", detail=detail)])
        name, label = match["name"], match["label"]
        if match["revision"] is not None:
            return Pin(name, int(match["revision"]))
        if (known := self.heads.find(name, label)) is not None:
            return Pin(name, known)
        with self._database.session() as session:
            return Pin(name, _looked_up(session, name, label))

    def revision(self, pin: Pin) -> Revision:
        """A revision with its document. Raises NotFound, Unavailable."""
        if (kept := self.documents.get(pin)) is not None:
            return kept
        with self._database.session() as session:
            found = lookup(session, pin.name, pin.revision)
        self.keep(found)
        return found

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision. Raises NotFound, Unavailable."""
        return self.revision(Pin(name, revision)).document

    def keep(self, found: Revision) -> None:
        """Have a revision at hand for decisions."""
        self.documents.put((found.name, found.revision), found, len(found.document))

    def get(self, name: str, revision: int | None = None) -> Revision:
        """As the database has it: the current revision, or the one of that number. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if revision is not None and not repository.exists(session, name):
                raise unknown(name)
            return lookup(session, name, revision)

    def page(self, after: str | None, limit: int) -> list[Summary]:
        """Raises Unavailable."""
        with self._database.session() as session:
            return repository.page(session, after, limit)

    def history(self, name: str, before: int | None, limit: int) -> list[Summary]:
        """Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if not repository.exists(session, name):
                raise unknown(name)
            return repository.history(session, name, before, limit)


def lookup(session: Session, name: str, revision: int | None = None) -> Revision:
    """The current revision of ``name``, or any one ever stored by its number. Raises NotFound."""
    found = repository.current(session, name) if revision is None else repository.at(session, name, revision)
    if found is None:
        raise unknown(name, revision)
    return found


def etag(of: Summary | Revision | ConfigurationWritten | None) -> str | None:
    """The entity tag of a revision. Its number alone would do, being never given out twice; the digest is for eyes."""
    return None if of is None else f'"{of.revision}-{of.digest[:12]}"'


def unknown(name: str, revision: int | None = None, label: str | None = None) -> NotFound:
    """The error for a configuration, or one of its revisions or labels, that is not there."""
    what = f"no configuration {name!r}"
    if revision is not None:
        what = f"no revision {revision} of configuration {name!r}"
    elif label is not None:
        what = f"configuration {name!r} has no label {label!r}"
    return NotFound(what, problems=[Problem(pointer="/configuration", detail=what)])


def _looked_up(session: Session, name: str, label: str | None) -> int:
    """Raises NotFound."""
    if label is None:
        return lookup(session, name).revision
    row = labels.find(session, name, label)
    if row is None or row.revision is None:
        raise unknown(name, label=label)
    return row.revision
