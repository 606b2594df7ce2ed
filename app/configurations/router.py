"""`/v1/configurations`: administration by REST, with ETag on every read and If-Match on every write; then labels,
which say what is in use under which name, one queue at a time, and the history of revisions."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated
from urllib.parse import quote

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.base.decoding import decode
from app.base.identifiers import NAME
from app.configurations.queues import QueueDocument, Queues, StoredQueue, read_queue
from app.configurations.repository import Keyed, Revision, Summary, Writes
from app.configurations.revisions import (
    LABEL,
    ConfigurationDiff,
    Label,
    LabelList,
    LabelRequest,
    Labels,
    RevisionPage,
    compare,
)
from app.configurations.service import (
    ConfigurationPage,
    Configurations,
    ConfigurationSummary,
    ConfigurationWritten,
    Editor,
    Intent,
    StoredConfiguration,
    drafted,
    etag,
)
from app.db.database import Database
from app.http.body import Body, OwnBody, read_body, worked_on
from app.http.openapi import (
    Comment,
    Conditions,
    Cursor,
    Limit,
    Preconditions,
    decode_cursor,
    encode_cursor,
    etag_of,
    operation,
)
from app.http.responses import json_response
from app.http.routing import provided, service
from app.solver.engine import example
from app.solver.engines import FIRST
from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration, EngineName

_PREFIX = "/v1/configurations"


class Administration:
    """The stored configurations, and everything that changes them; ``writes``: once each."""

    def __init__(self, database: Database, stored: Configurations, writes: Writes) -> None:
        self.stored = stored
        self.editor = Editor(stored)
        self.queues = Queues(stored, self.editor)
        self.labels = Labels(database, stored)
        self.writes = writes


Admin = Annotated[Administration, provided(Administration)]
Service = Annotated[Configurations, provided(Configurations)]
Name = Annotated[str, Path(pattern=NAME, description="Letters, digits, `.`, `_` and `-`", examples=["production"])]
Number = Annotated[int, Path(ge=1, le=10**9, description="Number of a revision", examples=[1])]
LabelName = Annotated[
    str, Path(pattern=LABEL, description="A letter, then letters, digits, `.`, `_` and `-`", examples=["stable"])
]
DryRun = Annotated[bool, Query(description="Only say what would happen, with all findings")]
Engine = Annotated[EngineName | None, Query(description="Check for this engine, not the document's")]


@asynccontextmanager
async def _turn(request: Request, name: str, *revisions: int, body: bytes = b"") -> AsyncGenerator[None]:
    """The endpoint works itself on these revisions of a configuration, none said: on the current one; and on a body.
    Raises DeadlinePassed, Unavailable."""
    size = await to_thread.run_sync(service(request, Configurations).largest, name, *revisions)
    async with worked_on(request, max(size, len(body))):
        yield


async def _on_current(request: Request, name: Name) -> AsyncGenerator[None]:
    async with _turn(request, name):
        yield


async def _on_revision(request: Request, name: Name, number: Number) -> AsyncGenerator[None]:
    async with _turn(request, name, number):
        yield


ON_CURRENT, ON_REVISION = ([Depends(turn, scope="function")] for turn in (_on_current, _on_revision))
"""Of a large document few are worked on at once, of one caller after the other."""


def read_intent(conditions: Conditions, comment: Comment, dry_run: DryRun = False) -> Intent:
    """Conditions, comment and dry run of a write."""
    return Intent(conditions, comment, dry_run)


Intended = Annotated[Intent, Depends(read_intent)]


def summary(stored: Summary | Revision) -> dict[str, object]:
    """One revision as answers show it; what there is nothing to say about is left out."""
    said = {field: getattr(stored, field) for field in ConfigurationSummary.__struct_fields__}
    return {field: value for field, value in said.items() if value is not None}


def summaries(rows: list[Summary]) -> list[ConfigurationSummary]:
    """Revisions as lists show them."""
    return [ConfigurationSummary(**asdict(stored)) for stored in rows]


def written(done: ConfigurationWritten, *, created: bool, location: str) -> Response:
    """The answer to a write, with the entity tag of the configuration as it is now."""
    headers = {} if done.dry_run else {"ETag": etag(done) or "", "Location": location}
    return json_response(done, 201 if created and not done.dry_run else 200, headers)


def shown(body: object, tag: str, conditions: Preconditions) -> Response:
    """The answer to a read, unless the caller has it."""
    if conditions.not_modified(tag):
        return Response(status_code=304, headers={"ETag": tag})
    return json_response(body, headers={"ETag": tag})


def revision_shown(revision: Revision, conditions: Preconditions) -> Response:
    """A revision with its document."""
    return shown(
        {**summary(revision), "configuration": msgspec.Raw(revision.document)}, etag(revision) or "", conditions
    )


def tagged(body: Wire, conditions: Preconditions) -> Response:
    """The answer to a read of what has no version of its own."""
    encoded = msgspec.json.encode(body)
    return shown(encoded, etag_of(encoded), conditions)


LABELS_DOCUMENTED = (Label, LabelList, LabelRequest)

labels = APIRouter(prefix=_PREFIX, tags=["configurations"])


@labels.get(
    "/{name}/labels",
    operation_id="list_labels",
    summary="Labels of a configuration",
    **operation(needs="read", responses={200: LabelList, 304: None}, errors=(404, 503), etag=True),
)
def list_labels(name: Name, admin: Admin, conditions: Conditions) -> Response:
    """By name, each with the revision that it means."""
    return tagged(LabelList(items=admin.labels.every(name)), conditions)


@labels.get(
    "/{name}/labels/{label}",
    operation_id="get_label",
    summary="One label",
    **operation(needs="read", responses={200: Label, 304: None}, errors=(404, 503), etag=True),
)
def get_label(name: Name, label: LabelName, admin: Admin, conditions: Conditions) -> Response:
    """The revision that it means, and its own entity tag."""
    labelled, tag = admin.labels.get(name, label)
    return shown(labelled, tag, conditions)


@labels.put(
    "/{name}/labels/{label}",
    operation_id="put_label",
    summary="Point a label at a revision",
    **operation(
        needs="admin",
        request=LabelRequest, responses={200: Label, 201: Label}, errors=(404, 409, 412, 428, 503),
        example={"revision": 1}, etag=True,
    ),
)  # fmt: skip
def put_label(
    name: Name, label: LabelName, body: Body, admin: Admin, conditions: Conditions, comment: Comment, once: Keyed
) -> Response:
    """Decisions that say `name@label` follow at once here, within a second on other replicas.

    A new label needs no condition; to move one say with If-Match where it points now, by its entity tag.
    """
    wanted = decode(body, LabelRequest)

    def act(session: Session) -> Response:
        moved, tag, created = admin.labels.move(session, name, label, wanted.revision, conditions, comment)
        headers = {"ETag": tag, "Location": f"/v1/configurations/{name}/labels/{label}"}
        return json_response(moved, 201 if created else 200, headers)

    return admin.writes.run(once, act, body)


@labels.delete(
    "/{name}/labels/{label}",
    operation_id="delete_label",
    summary="Take a label off",
    **operation(needs="admin", responses={204: None}, errors=(404, 409, 412, 428, 429, 503)),
)
def delete_label(name: Name, label: LabelName, admin: Admin, conditions: Conditions, once: Keyed) -> Response:
    """The revision stays; `name@label` means nothing any more."""

    def act(session: Session) -> Response:
        admin.labels.take_off(session, name, label, conditions)
        return Response(status_code=204)

    return admin.writes.run(once, act)


QUEUES_DOCUMENTED = (QueueDocument, StoredQueue)
_EXAMPLE = {"parent": "all", "quota": {"cpu": {"guaranteed": "12"}}}

queues = APIRouter(prefix=_PREFIX, tags=["configurations"])

QueueName = Annotated[
    str, Path(min_length=1, max_length=512, description="Percent-encoded; may hold slashes", examples=["root.a.b"])
]


@queues.get(
    "/{name}/queues/{queue:path}",
    operation_id="get_queue",
    summary="One queue",
    dependencies=ON_CURRENT,
    **operation(needs="read", responses={200: StoredQueue, 304: None}, errors=(404, 503, 504), etag=True),
)
def get_queue(name: Name, queue: QueueName, admin: Admin, conditions: Conditions) -> Response:
    """A queue of the current revision; the entity tag is the configuration's."""
    revision, settings = admin.queues.get(name, queue)
    return shown({**summary(revision), "queue": settings}, etag(revision) or "", conditions)


async def _read_queue(request: Request, name: Name) -> AsyncGenerator[bytes]:
    """A body that goes into the current revision."""
    body = await read_body(request)
    async with _turn(request, name, body=body):
        yield body


@queues.put(
    "/{name}/queues/{queue:path}",
    operation_id="put_queue",
    summary="Add or replace one queue",
    **operation(
        needs="admin",
        request=QueueDocument, responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(404, 409, 412, 428, 503, 504), example=_EXAMPLE, etag=True,
    ),
)  # fmt: skip
def put_queue(
    name: Name,
    queue: QueueName,
    body: Annotated[bytes, Depends(_read_queue, scope="function")],
    admin: Admin,
    intent: Intended,
    once: Keyed,
    engine: Engine = None,
) -> Response:
    """A new revision of the configuration with this queue in its place, or as the last one.

    If-Match names the version of the configuration; `If-None-Match: *` instead adds a queue, whatever else has changed.
    The whole document is checked: errors refuse the write, and point into the queue where they are about it.
    """
    document = read_queue(body, queue)

    def act(session: Session) -> Response:
        done = admin.queues.put(session, name, document, intent, engine)
        return written(done, created=done.created, location=f"/v1/configurations/{name}/queues/{quote(queue, safe='')}")

    return admin.writes.run(once, act, body)


@queues.delete(
    "/{name}/queues/{queue:path}",
    operation_id="delete_queue",
    summary="Remove one queue",
    dependencies=ON_CURRENT,
    **operation(
        needs="admin",
        responses={200: ConfigurationWritten}, errors=(404, 409, 412, 428, 429, 503, 504), etag=True
    ),
)  # fmt: skip
def delete_queue(
    name: Name, queue: QueueName, admin: Admin, intent: Intended, once: Keyed, engine: Engine = None
) -> Response:
    """A new revision of the configuration without this queue; one with children stays (409)."""

    def act(session: Session) -> Response:
        done = admin.queues.delete(session, name, queue, intent, engine)
        return written(done, created=False, location=f"/v1/configurations/{name}")

    return admin.writes.run(once, act)


REVISIONS_DOCUMENTED = (RevisionPage, ConfigurationDiff)

_NO_REVISION = 2**31 - 1

revisions = APIRouter(prefix=_PREFIX, tags=["configurations"])

Against = Annotated[
    int | None, Query(ge=0, le=10**9, description="The older revision; by default the one before, 0 for nothing at all")
]


async def _on_both(request: Request, name: Name, number: Number, against: Against = None) -> AsyncGenerator[None]:
    async with _turn(request, name, number, number - 1 if against is None else against):
        yield


@revisions.get(
    "/{name}/revisions",
    operation_id="list_configuration_revisions",
    **operation(needs="read", responses={200: RevisionPage, 304: None}, errors=(404, 503), etag=True),
)
def list_revisions(
    name: Name, stored: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Revisions of a configuration, newest first, with author, time and comment."""
    before = min(int(decode_cursor(cursor, int)[0]), _NO_REVISION) if cursor else None
    history = stored.history(name, before, limit + 1)
    more = encode_cursor(history[limit - 1].revision) if len(history) > limit else None
    return tagged(RevisionPage(items=summaries(history[:limit]), next_cursor=more), conditions)


@revisions.get(
    "/{name}/revisions/{number}",
    operation_id="get_configuration_revision",
    dependencies=ON_REVISION,
    **operation(needs="read", responses={200: StoredConfiguration, 304: None}, errors=(404, 503, 504), etag=True),
)
def get_revision(name: Name, number: Number, stored: Service, conditions: Conditions) -> Response:
    """One revision, with its document; it never changes."""
    return revision_shown(stored.get(name, number), conditions)


@revisions.get(
    "/{name}/revisions/{number}/diff",
    operation_id="diff_configuration_revisions",
    summary="What a revision changed",
    dependencies=[Depends(_on_both, scope="function")],
    **operation(needs="read", responses={200: ConfigurationDiff, 304: None}, errors=(404, 503, 504), etag=True),
)
def diff_revisions(
    name: Name, number: Number, stored: Service, conditions: Conditions, against: Against = None
) -> Response:
    """By structure: queues and flavors added, removed and changed, settings; each value by pointer, old and new."""
    return tagged(compare(stored, name, number, against), conditions)


@revisions.post(
    "/{name}/revisions/{number}:restore",
    operation_id="restore_configuration_revision",
    summary="Bring a revision back",
    dependencies=ON_REVISION,
    **operation(
        needs="admin",
        responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(404, 409, 412, 428, 429, 503, 504), etag=True,
    ),
)  # fmt: skip
def restore_revision(name: Name, number: Number, admin: Admin, intent: Intended, once: Keyed) -> Response:
    """A new revision with the document of an earlier one; of a deleted configuration too, which is then back.

    It is checked by today's rules. Over an existing configuration say with If-Match which version you mean.
    """

    def act(session: Session) -> Response:
        done = admin.editor.restore(session, name, number, intent)
        return written(done, created=done.created, location=f"/v1/configurations/{name}")

    return admin.writes.run(once, act)


DOCUMENTED = (
    Configuration, StoredConfiguration, ConfigurationWritten, ConfigurationPage,
    *QUEUES_DOCUMENTED, *REVISIONS_DOCUMENTED, *LABELS_DOCUMENTED,
)  # fmt: skip

EXAMPLE = {
    "engine": FIRST,
    "queues": [
        example().parent,
        {
            "name": "team-a",
            "parent": "all",
            "quota": {"cpu": {"guaranteed": "8", "borrowing_limit": "4"}},
            **example().preempting,
        },
        {"name": "team-b", "parent": "all", "quota": {"cpu": {"guaranteed": "8"}}},
    ],
}

router = APIRouter(prefix=_PREFIX, tags=["configurations"])


@router.get(
    "",
    operation_id="list_configurations",
    **operation(needs="read", responses={200: ConfigurationPage, 304: None}, errors=(503,), etag=True),
)
def list_configurations(stored: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Configurations by name, each with its current revision."""
    after = str(decode_cursor(cursor, str)[0]) if cursor else None
    configurations = stored.page(after, limit + 1)
    more = encode_cursor(configurations[limit - 1].name) if len(configurations) > limit else None
    return tagged(ConfigurationPage(items=summaries(configurations[:limit]), next_cursor=more), conditions)


@router.get(
    "/{name}",
    operation_id="get_configuration",
    dependencies=ON_CURRENT,
    **operation(
        needs="read", followers=True, responses={200: StoredConfiguration, 304: None}, errors=(404, 503, 504), etag=True
    ),
)
def get_configuration(name: Name, stored: Service, conditions: Conditions) -> Response:
    """The current revision, with its document."""
    return revision_shown(stored.get(name), conditions)


@router.put(
    "/{name}",
    operation_id="put_configuration",
    **operation(
        needs="admin", followers=True,
        request=Configuration, responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(409, 412, 428, 503, 504), example=EXAMPLE, etag=True,
    ),
)  # fmt: skip
def put_configuration(
    name: Name, body: OwnBody, admin: Admin, intent: Intended, once: Keyed, engine: Engine = None
) -> Response:
    """Store a configuration as a new revision.

    A new name needs no condition; over an existing one say with If-Match which version you mean. Findings of severity
    error refuse the write, warnings come back with it.
    """
    draft = drafted(decode(body, Configuration), engine)

    def act(session: Session) -> Response:
        done = admin.editor.put(session, name, draft, intent)
        return written(done, created=done.created, location=f"/v1/configurations/{name}")

    return admin.writes.run(once, act, body)


@router.delete(
    "/{name}",
    operation_id="delete_configuration",
    **operation(needs="admin", responses={204: None}, errors=(404, 409, 412, 428, 429, 503)),
)
def delete_configuration(name: Name, admin: Admin, conditions: Conditions, once: Keyed) -> Response:
    """Remove a configuration and its labels. Decisions in the log keep the revisions that they used."""

    def act(session: Session) -> Response:
        admin.editor.delete(session, name, conditions)
        return Response(status_code=204)

    return admin.writes.run(once, act)


for part in (queues, revisions, labels):
    router.routes += part.routes
