"""``/v1/configurations/{name}/revisions``: the history."""

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.configurations.endpoint import (
    Admin,
    Intended,
    Name,
    Number,
    Service,
    revision_shown,
    summaries,
    tagged,
    written,
)
from app.configurations.idempotency.service import Keyed
from app.configurations.revisions.schemas import ConfigurationDiff, RevisionPage
from app.configurations.revisions.service import compare
from app.configurations.schemas import ConfigurationWritten, StoredConfiguration
from app.http.openapi import operation
from app.http.pages import Cursor, Limit, decode_cursor, encode_cursor
from app.http.preconditions import Conditions

DOCUMENTED = (RevisionPage, ConfigurationDiff)

_NO_REVISION = 2**31 - 1

router = APIRouter(tags=["configurations"])

Against = Annotated[
    int | None, Query(ge=0, le=10**9, description="The older revision; by default the one before, 0 for nothing at all")
]


@router.get(
    "/{name}/revisions",
    operation_id="list_configuration_revisions",
    **operation(needs="read", responses={200: RevisionPage, 304: None}, errors=(404, 503), etag=True),
)
def list_revisions(
    name: Name, service: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Revisions of a configuration, newest first, with author, time and comment."""
    before = min(int(decode_cursor(cursor, int)[0]), _NO_REVISION) if cursor else None
    found = service.history(name, before, limit + 1)
    more = encode_cursor(found[limit - 1].revision) if len(found) > limit else None
    return tagged(RevisionPage(items=summaries(found[:limit]), next_cursor=more), conditions)


@router.get(
    "/{name}/revisions/{number}",
    operation_id="get_configuration_revision",
    **operation(needs="read", responses={200: StoredConfiguration, 304: None}, errors=(404, 503), etag=True),
)
def get_revision(name: Name, number: Number, service: Service, conditions: Conditions) -> Response:
    """One revision, with its document; it never changes."""
    return revision_shown(service.get(name, number), conditions)


@router.get(
    "/{name}/revisions/{number}/diff",
    operation_id="diff_configuration_revisions",
    summary="What a revision changed",
    **operation(needs="read", responses={200: ConfigurationDiff, 304: None}, errors=(404, 503), etag=True),
)
def diff_revisions(
    name: Name, number: Number, service: Service, conditions: Conditions, against: Against = None
) -> Response:
    """By structure: queues and flavors added, removed and changed, settings; each value by pointer, old and new."""
    return tagged(compare(service, name, number, against), conditions)


@router.post(
    "/{name}/revisions/{number}:restore",
    operation_id="restore_configuration_revision",
    summary="Bring a revision back",
    **operation(
        needs="admin",
        responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(404, 409, 412, 428, 503), etag=True,
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
