"""Reading and writing configurations: findings first, then one transaction that names what it replaces."""

import re
from collections import OrderedDict
from threading import Lock

import msgspec
from sqlalchemy.orm import Session

from app.configurations import repository
from app.configurations.repository import Revision, Summary
from app.configurations.schemas import ConfigurationWritten
from app.db import Database
from app.decoding import decode
from app.errors import BadInput, NotFound, PreconditionFailed
from app.http.preconditions import Preconditions
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, Problem

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_REFERENCE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,127})(?:@([1-9][0-9]{0,8}))?")
_KEPT = 64


class Configurations:
    """The stored configurations. Revisions never change, so those asked for by number are kept in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, int], Revision] = OrderedDict()

    def resolve(self, reference: str) -> Revision:
        """What ``name`` or ``name@revision`` in a request means now. Raises BadInput, NotFound, Unavailable."""
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise BadInput(
                [Problem(pointer="/configuration", detail=f"{reference[:64]!r} is not a name or name@revision")]
            )
        name, revision = match[1], int(match[2]) if match[2] else None
        if revision is not None and (kept := self._recall(name, revision)) is not None:
            return kept
        with self._database.session() as session:
            found = lookup(session, name, revision)
        self._keep(found)
        return found

    def put(
        self, name: str, body: bytes, conditions: Preconditions, engine: str | None, *, dry_run: bool
    ) -> ConfigurationWritten:
        """Store ``body`` as the next revision of ``name``; the first one has number 1.

        Raises InvalidInput and BadInput (with every finding), PreconditionFailed, PreconditionRequired, Unavailable.
        """
        configuration = decode(body, Configuration)
        findings = solve.findings(configuration, engine)
        _refuse_errors(findings)
        digest = solve.digest(configuration)
        with self._database.session() as session:
            head = repository.locked(session, name)
            last, now = head or (0, None)
            if dry_run:
                conditions.check_stated(etag(now))
            else:
                conditions.check_write(etag(now))
            changed = now is None or now.digest != digest
            if changed and not dry_run:
                if head is None and not repository.claim(session, name):
                    raise PreconditionFailed("somebody else has just created it")
                repository.add(session, name, last + 1, digest, msgspec.json.encode(configuration))
        return ConfigurationWritten(
            name=name, revision=last + 1 if changed else last, digest=digest,
            dry_run=dry_run, created=now is None, changed=changed, findings=findings,
        )  # fmt: skip

    def delete(self, name: str, conditions: Preconditions) -> None:
        """Raises NotFound, PreconditionFailed, PreconditionRequired, Unavailable."""
        with self._database.session() as session:
            _, now = repository.locked(session, name) or (0, None)
            if now is None:
                conditions.check_stated(None)
                raise _unknown(name)
            conditions.check_write(etag(now))
            repository.delete(session, name)

    def get(self, name: str, revision: int | None = None) -> Revision:
        """The current revision, or the one of that number. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if revision is not None and not repository.exists(session, name):
                raise _unknown(name)
            return lookup(session, name, revision)

    def page(self, after: str | None, limit: int) -> list[Summary]:
        """Raises Unavailable."""
        with self._database.session() as session:
            return repository.page(session, after, limit)

    def history(self, name: str, before: int | None, limit: int) -> list[Summary]:
        """Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if not repository.exists(session, name):
                raise _unknown(name)
            return repository.history(session, name, before, limit)

    def _recall(self, name: str, revision: int) -> Revision | None:
        with self._lock:
            if (found := self._kept.get((name, revision))) is not None:
                self._kept.move_to_end((name, revision))
            return found

    def _keep(self, found: Revision) -> None:
        with self._lock:
            self._kept[found.name, found.revision] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)


def lookup(session: Session, name: str, revision: int | None = None) -> Revision:
    """The current revision of ``name``, or any one ever stored by its number. Raises NotFound."""
    found = repository.current(session, name) if revision is None else repository.at(session, name, revision)
    if found is None:
        raise _unknown(name, revision)
    return found


def etag(of: Summary | Revision | ConfigurationWritten | None) -> str | None:
    """The entity tag of a revision. Its number alone would do, being never given out twice; the digest is for eyes."""
    return None if of is None else f'"{of.revision}-{of.digest[:12]}"'


def _unknown(name: str, revision: int | None = None) -> NotFound:
    what = f"no configuration {name!r}" if revision is None else f"no revision {revision} of configuration {name!r}"
    return NotFound(what, problems=[Problem(pointer="/configuration", detail=what)])


def _refuse_errors(findings: list[Finding]) -> None:
    errors = [Problem(pointer=f.pointer, detail=f.detail) for f in findings if f.severity == "error"]
    if errors:
        raise BadInput(errors, extra={"findings": findings})
