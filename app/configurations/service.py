"""Stored configurations: reading and writing them, and what their endpoints answer.

They are read by name, revision or label, from memory where possible. A write has findings first, then one transaction,
the caller's, that names what it replaces.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from app.auth import audit
from app.auth.audit import current_actor
from app.base import Lru
from app.base.decoding import decode
from app.base.errors import BadInput, NotFound, PreconditionFailed
from app.configurations import repository
from app.configurations import repository as labels
from app.configurations.heads import Heads
from app.configurations.repository import HeadRow, New, Revision, Summary
from app.db.database import Database, after_commit
from app.http.openapi import Preconditions
from app.search.service import Hit
from app.solver import solve
from app.solver.delta import digest as digest_of
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding, InvalidInput, Problem, listed


class ConfigurationSummary(Wire, frozen=True, kw_only=True):
    """One revision without its document. ``digest`` is the SHA-256 of the document as decoded.

    ``author``: who wrote it, ``comment``: why, ``restored_from``: the earlier revision that it repeats.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The number of the revision; it counts from 1."""
    digest: str
    """SHA-256 of the document as decoded."""
    created_at: datetime
    """When it was written."""
    author: str
    """Who wrote it."""
    comment: str | None = None
    """Why, as the writer said."""
    restored_from: int | None = None
    """The earlier revision that it repeats. Absent: none."""


class StoredConfiguration(ConfigurationSummary, frozen=True, kw_only=True):
    """One revision with its document."""

    configuration: Configuration
    """The document."""


class ConfigurationWritten(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a write did, or with ``dry_run`` would do.

    ``created``: there was none of that name (of that queue's, where one queue was written). ``changed`` is false when
    the document equals the current revision: then there is no new one. ``findings`` point into the whole document.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The current revision after the write."""
    digest: str
    """SHA-256 of the document as decoded."""
    dry_run: bool
    """Whether nothing was written."""
    created: bool
    """Whether there was none of that name (of that queue, where one queue was written)."""
    changed: bool
    """Whether the document differs from the current revision; if not, there is no new one."""
    findings: list[Finding]
    """What an administrator should know; pointers lead into the whole document. Of more than 1,000 the worst, and how
    many more there are."""


class ConfigurationPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Configurations by name, current revisions."""

    items: list[ConfigurationSummary]
    """Current revisions, by name."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; null on the last."""


_REFERENCE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,127})"
    r"(?:@(?:(?P<revision>[1-9][0-9]{0,8})|(?P<label>[A-Za-z][A-Za-z0-9._-]{0,63})))?"
)
_MOST_DOCUMENTS = 10_000


class Pin(NamedTuple):
    """One revision of one configuration."""

    name: str
    revision: int


class _NamedQueue(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    """Of a document as it is stored, what its queues are called."""

    queues: list[_NamedQueue] = []


_MOST_SEARCHED = 200
_MOST_NAMED = 10


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
        if (cached := self.documents.get(pin)) is not None:
            return cached
        with self._database.session() as session:
            stored = lookup(session, pin.name, pin.revision)
        self.keep(stored)
        return stored

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision. Raises NotFound, Unavailable."""
        return self.revision(Pin(name, revision)).document

    def keep(self, revision: Revision) -> None:
        """Have a revision at hand for decisions."""
        self.documents.put((revision.name, revision.revision), revision, len(revision.document))

    def get(self, name: str, revision: int | None = None) -> Revision:
        """As the database has it: the current revision, or the one of that number. Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if revision is not None and not repository.exists(session, name):
                raise unknown(name)
            return lookup(session, name, revision)

    def largest(self, name: str, *revisions: int) -> int:
        """Bytes of the largest document among these revisions, or of the current one where none is said; 0: there is
        none. Raises Unavailable."""
        with self._database.session() as session:
            return repository.largest(session, name, revisions)

    def page(self, after: str | None, limit: int) -> list[Summary]:
        """Raises Unavailable."""
        with self._database.session() as session:
            return repository.page(session, after, limit)

    def find(self, part: str, limit: int) -> list[Hit]:
        """See ``app.search.service.Source``: configurations, and queues of those that were read last or are now.
        Documents are looked through as they are stored; only those that hold the text are decoded."""
        matches: list[Hit] = []
        written = msgspec.json.encode(part)[1:-1].decode()
        for configuration in self.page(None, _MOST_SEARCHED):
            if part in configuration.name.casefold():
                matches.append(Hit(kind="configuration", name=configuration.name))
            if sum(hit.kind == "queue" for hit in matches) >= limit:
                continue
            document = self.document(configuration.name, configuration.revision)
            if written in document.decode().casefold():
                names = (queue.name for queue in msgspec.json.decode(document, type=_Named).queues)
                hits = islice((name for name in names if part in name.casefold()), limit)
                matches += [Hit(kind="queue", name=name, configuration=configuration.name) for name in hits]
        return matches

    def history(self, name: str, before: int | None, limit: int) -> list[Summary]:
        """Raises NotFound, Unavailable."""
        with self._database.session() as session:
            if not repository.exists(session, name):
                raise unknown(name)
            return repository.history(session, name, before, limit)


def lookup(session: Session, name: str, revision: int | None = None) -> Revision:
    """The current revision of ``name``, or any one ever stored by its number. Raises NotFound."""
    stored = repository.current(session, name) if revision is None else repository.numbered(session, name, revision)
    if stored is None:
        raise unknown(name, revision)
    return stored


def etag(of: Summary | Revision | ConfigurationWritten | None) -> str | None:
    """The entity tag of a revision. Its number alone would do, being never given out twice; the digest is for eyes."""
    return None if of is None else f'"{of.revision}-{of.digest[:12]}"'


def unknown(name: str, revision: int | None = None, label: str | None = None, known: Sequence[str] = ()) -> NotFound:
    """The error for a configuration, or one of its revisions or labels, that is not there. ``known``: its labels."""
    what = f"no configuration {name!r}"
    if revision is not None:
        what = f"no revision {revision} of configuration {name!r}"
    elif label is not None:
        what = f"configuration {name!r} has no label {label!r}: "
        what += f"it has {', '.join(map(repr, known[:_MOST_NAMED]))}" if known else "it has none"
    return NotFound(what, problems=[Problem(pointer="/configuration", detail=what)])


def _looked_up(session: Session, name: str, label: str | None) -> int:
    """Raises NotFound."""
    if label is None:
        return lookup(session, name).revision
    row = labels.find(session, name, label)
    if row is None or row.revision is None:
        raise unknown(name, label=label, known=[other.label for other in labels.every(session, name)])
    return row.revision


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
    return Draft(configuration, digest, listed(findings))


class Editor:
    """Writes configurations. The transaction that it is given decides whether anything has happened."""

    def __init__(self, stored: Configurations) -> None:
        self._stored = stored

    def restore(self, session: Session, name: str, revision: int, intent: Intent) -> ConfigurationWritten:
        """Store an earlier revision again, also of a configuration that was deleted.

        Raises NotFound, BadInput where today's rules refuse it, PreconditionFailed, PreconditionRequired.
        """
        document = lookup(session, name, revision).document
        draft = drafted(decode(document, Configuration), None)
        return self.put(session, name, draft, intent, "configuration.restore", restored_from=revision)

    def current(self, session: Session, name: str, conditions: Preconditions) -> Revision:
        """Lock a configuration to change a part of it. Raises NotFound, PreconditionFailed."""
        head = repository.locked(session, name)
        if head is None or head[1] is None:
            conditions.check_stated(None)
        return lookup(session, name)

    def delete(self, session: Session, name: str, conditions: Preconditions) -> None:
        """With its labels. Raises NotFound, PreconditionFailed, PreconditionRequired."""
        _, now = repository.locked(session, name) or (None, None)
        if now is None:
            conditions.check_stated(None)
            raise unknown(name)
        conditions.check_write(etag(now))
        off = labels.take_off_all(session, name, current_actor())
        gone = [HeadRow(name, row.label, None, row.change) for row in off]
        gone.append(HeadRow(name, None, None, repository.delete_configuration(session, name)))
        detail = {"revision": now.revision, "labels": [row.label for row in off]}
        audit.record(session, "configuration.delete", name, detail)
        after_commit(session, lambda: self._stored.heads.learn(gone))

    def put(
        self, session: Session, name: str, draft: Draft, intent: Intent, action: str = "configuration.put",
        detail: dict[str, Any] | None = None, restored_from: int | None = None,
    ) -> ConfigurationWritten:  # fmt: skip
        """Store ``draft`` as the next revision of ``name``; the first one has number 1. Raises PreconditionFailed,
        PreconditionRequired."""
        head = repository.locked(session, name)
        last, now = head or (0, None)
        _check(intent, now)
        changed = now is None or now.digest != draft.digest
        if changed and not intent.dry_run:
            if head is None and not repository.claim(session, name):
                raise PreconditionFailed("somebody else has just created it")
            document = msgspec.json.encode(draft.configuration)
            new = New(draft.digest, document, current_actor(), intent.comment, restored_from)
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
