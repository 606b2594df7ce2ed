"""One queue of a stored configuration: read, put or deleted, and what its endpoints take and answer.

A change locks the configuration, changes its document (pure), checks and stores the whole.
"""

from dataclasses import replace
from typing import Annotated, Any

import msgspec
from sqlalchemy.orm import Session

from app.base.decoding import decode
from app.base.errors import BadInput, Conflict, NotFound
from app.configurations.repository import Revision
from app.configurations.service import (
    Configurations,
    ConfigurationSummary,
    ConfigurationWritten,
    Editor,
    Intent,
    drafted,
    etag,
)
from app.http.openapi import Preconditions
from app.solver.model.configuration import Configuration, Queue
from app.solver.model.problems import Finding, Problem, few, pointer


class QueueDocument(Queue, frozen=True, kw_only=True):
    """A queue to be stored. ``name`` may be left out: it is the path's."""

    name: Annotated[str, msgspec.Meta(max_length=512)] = ""
    """The name of the queue; may be left out, it is the path's."""

    def named(self, name: str) -> Queue:
        """The same queue as configurations hold it."""
        said: dict[str, Any] = {field: getattr(self, field) for field in Queue.__struct_fields__}
        said["name"] = name
        return Queue(**said)


class StoredQueue(ConfigurationSummary, frozen=True, kw_only=True):
    """One queue, and the revision that it was read from."""

    queue: Queue
    """The queue."""


def position(configuration: Configuration, name: str) -> int | None:
    """Where the queue stands in the document."""
    return next((i for i, queue in enumerate(configuration.queues) if queue.name == name), None)


def children(configuration: Configuration, name: str) -> list[str]:
    """Queues whose parent it is, in the order of the document."""
    return [queue.name for queue in configuration.queues if queue.parent == name]


def with_queue(configuration: Configuration, queue: Queue) -> Configuration:
    """``queue`` in the place of the one of its name, or as the last one."""
    index = position(configuration, queue.name)
    queues = list(configuration.queues)
    if index is None:
        queues.append(queue)
    else:
        queues[index] = queue
    return msgspec.structs.replace(configuration, queues=queues)


def without_queue(configuration: Configuration, name: str) -> Configuration:
    """All queues but that one."""
    left = [queue for queue in configuration.queues if queue.name != name]
    return msgspec.structs.replace(configuration, queues=left)


_MOST_NAMED = 10


def read_queue(body: bytes, name: str) -> Queue:
    """The queue in a body. Raises InvalidInput, and BadInput where it has another name than the path."""
    document = decode(body, QueueDocument)
    if document.name not in ("", name):
        detail = f"the body's name {document.name[:64]!r} is not the path's {name[:64]!r}"
        raise BadInput([Problem(pointer="/name", detail=detail)])
    return document.named(name)


class Queues:
    """Queues of the stored configurations."""

    def __init__(self, stored: Configurations, editor: Editor) -> None:
        self._stored = stored
        self._editor = editor

    def get(self, name: str, queue: str) -> tuple[Revision, Queue]:
        """A queue of the current revision. Raises NotFound, Unavailable."""
        revision = self._stored.get(name)
        configuration = decode(revision.document, Configuration)
        index = position(configuration, queue)
        if index is None:
            raise _unknown(name, queue)
        return revision, configuration.queues[index]

    def put(
        self, session: Session, name: str, queue: Queue, intent: Intent, engine: str | None
    ) -> ConfigurationWritten:
        """``created`` says whether there was no queue of that name.

        Raises BadInput (pointers into the queue), NotFound, PreconditionFailed, PreconditionRequired.
        """
        now = self._editor.current(session, name, Preconditions(intent.conditions.if_match, None))
        before = decode(now.document, Configuration)
        index = position(before, queue.name)
        intent = replace(intent, conditions=_conditions(intent.conditions, etag(now), exists=index is not None))
        intent.conditions.check_stated(etag(now))
        where = pointer("queues", len(before.queues) if index is None else index)
        draft = drafted(with_queue(before, queue), engine, lambda finding: _located(finding, where))
        written = self._editor.put(
            session, name, draft, intent, "configuration.queue.put", {"queue": _printable(queue.name)}
        )
        return msgspec.structs.replace(written, created=index is None)

    def delete(
        self, session: Session, name: str, queue: str, intent: Intent, engine: str | None
    ) -> ConfigurationWritten:
        """Raises Conflict for a queue with children, BadInput, NotFound, PreconditionFailed, PreconditionRequired."""
        now = self._editor.current(session, name, intent.conditions)
        before = decode(now.document, Configuration)
        if position(before, queue) is None:
            raise _unknown(name, queue)
        intent.conditions.check_stated(etag(now))
        if below := children(before, queue):
            raise _has_children(queue, below)
        draft = drafted(without_queue(before, queue), engine)
        return self._editor.put(
            session, name, draft, intent, "configuration.queue.delete", {"queue": _printable(queue)}
        )


def _conditions(given: Preconditions, tag: str | None, *, exists: bool) -> Preconditions:
    """If-Match is about the configuration, If-None-Match about the queue: ``*`` alone may add one, never replace."""
    if given.if_none_match is None:
        return given
    Preconditions(None, given.if_none_match).check_stated(tag if exists else None)
    return Preconditions(given.if_match if exists else given.if_match or ("*",), None)


def _located(finding: Finding, where: str) -> Problem:
    """Inside of the queue by its own pointer; elsewhere in the document the detail says where."""
    if finding.pointer == where or finding.pointer.startswith(where + "/"):
        return Problem(pointer=finding.pointer[len(where) :], detail=finding.detail)
    return Problem(pointer="", detail=f"the configuration's {finding.pointer or 'document'}: {finding.detail}")


def _has_children(queue: str, below: list[str]) -> Conflict:
    named = few([repr(child[:64]) for child in below], _MOST_NAMED)
    return Conflict(f"queue {queue!r} has children: {named}; delete or move them first")


def _unknown(name: str, queue: str) -> NotFound:
    return NotFound(f"configuration {name!r} has no queue {queue!r}")


def _printable(name: str) -> str:
    """As the audit log can store it: PostgreSQL's text holds no NUL."""
    return name.replace("\x00", "\N{SYMBOL FOR NULL}")
