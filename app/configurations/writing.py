"""Writing configurations: findings first, then one transaction, the caller's, that names what it replaces."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy.orm import Session

from app.auth import actor, audit
from app.base.decoding import decode
from app.base.errors import BadInput, PreconditionFailed
from app.configurations import repository
from app.configurations.heads.repository import HeadRow
from app.configurations.labels import repository as labels
from app.configurations.repository import New, Revision, Summary
from app.configurations.schemas import ConfigurationWritten
from app.configurations.service import Configurations, etag, lookup, unknown
from app.db import after_commit
from app.http.preconditions import Preconditions
from app.solver import solve
from app.solver.digest import digest as digest_of
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, Problem


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that may be stored: no finding of it is an error."""

    configuration: Configuration
    digest: str
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class Intent:
    """What a writer says beside the document: ``comment`` for the history, ``dry_run`` to change nothing."""

    conditions: Preconditions
    comment: str | None = None
    dry_run: bool = False


def in_document(finding: Finding) -> Problem:
    """A finding of severity error where the body is the document."""
    return Problem(pointer=finding.pointer, detail=finding.detail)


def drafted(
    configuration: Configuration, engine: str | None, located: Callable[[Finding], Problem] = in_document
) -> Draft:
    """Check a document for ``engine``, or for its own.

    ``located`` says where in the body an error is. Raises InvalidInput, and BadInput with every finding.
    """
    findings = solve.findings(configuration, engine)
    digest = ""
    try:
        digest = digest_of(configuration)
    except InvalidInput as invalid:
        findings += [solve.as_finding(problem) for problem in invalid.problems]
    if errors := [located(finding) for finding in findings if finding.severity == "error"]:
        raise BadInput(errors, extra={"findings": findings})
    return Draft(configuration, digest, findings)


class Editor:
    """Writes configurations. The transaction that it is given decides whether anything has happened."""

    def __init__(self, stored: Configurations) -> None:
        self._stored = stored

    def put(self, session: Session, name: str, draft: Draft, intent: Intent) -> ConfigurationWritten:
        """Store ``draft`` as the next revision of ``name``; the first one has number 1.

        Raises PreconditionFailed, PreconditionRequired.
        """
        return self._store(session, name, draft, intent, "configuration.put")

    def restore(self, session: Session, name: str, revision: int, intent: Intent) -> ConfigurationWritten:
        """Store an earlier revision again, also of a configuration that was deleted.

        Raises NotFound, BadInput where today's rules refuse it, PreconditionFailed, PreconditionRequired.
        """
        document = lookup(session, name, revision).document
        draft = drafted(decode(document, Configuration), None)
        return self._store(session, name, draft, intent, "configuration.restore", restored_from=revision)

    def current(self, session: Session, name: str, conditions: Preconditions) -> Revision:
        """Lock a configuration to change a part of it. Raises NotFound, PreconditionFailed."""
        head = repository.locked(session, name)
        if head is None or head[1] is None:
            conditions.check_stated(None)
        return lookup(session, name)

    def replace(
        self, session: Session, name: str, draft: Draft, intent: Intent, action: str, detail: dict[str, Any]
    ) -> ConfigurationWritten:
        """Store what became of a part of ``current``. Raises PreconditionFailed, PreconditionRequired."""
        return self._store(session, name, draft, intent, action, detail)

    def delete(self, session: Session, name: str, conditions: Preconditions) -> None:
        """With its labels. Raises NotFound, PreconditionFailed, PreconditionRequired."""
        _, now = repository.locked(session, name) or (None, None)
        if now is None:
            conditions.check_stated(None)
            raise unknown(name)
        conditions.check_write(etag(now))
        off = labels.take_off_all(session, name, actor.current())
        gone = [HeadRow(name, row.label, None, row.change) for row in off]
        gone.append(HeadRow(name, None, None, repository.delete(session, name)))
        detail = {"revision": now.revision, "labels": [row.label for row in off]}
        audit.record(session, "configuration.delete", name, detail)
        after_commit(session, lambda: self._stored.heads.learn(gone))

    def _store(
        self, session: Session, name: str, draft: Draft, intent: Intent, action: str,
        detail: dict[str, Any] | None = None, restored_from: int | None = None,
    ) -> ConfigurationWritten:  # fmt: skip
        head = repository.locked(session, name)
        last, now = head or (0, None)
        _check(intent, now)
        changed = now is None or now.digest != draft.digest
        if changed and not intent.dry_run:
            if head is None and not repository.claim(session, name):
                raise PreconditionFailed("somebody else has just created it")
            document = msgspec.json.encode(draft.configuration)
            new = New(draft.digest, document, actor.current(), intent.comment, restored_from)
            stored, change = repository.add(session, name, last + 1, new)
            said = {"revision": last + 1, "comment": intent.comment, "restored_from": restored_from, **(detail or {})}
            audit.record(session, action, name, {key: value for key, value in said.items() if value is not None})
            after_commit(session, lambda: self._learn(stored, change))
        return ConfigurationWritten(
            name=name, revision=last + 1 if changed else last, digest=draft.digest,
            dry_run=intent.dry_run, created=now is None, changed=changed, findings=draft.findings,
        )  # fmt: skip

    def _learn(self, stored: Revision, change: int) -> None:
        self._stored.keep(stored)
        self._stored.heads.learn([HeadRow(stored.name, None, stored.revision, change)])


def _check(intent: Intent, now: Summary | None) -> None:
    if intent.dry_run:
        intent.conditions.check_stated(etag(now))
    else:
        intent.conditions.check_write(etag(now))
