"""``/v1/configurations``: administration by REST, with ETag on every read and If-Match on every write."""

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.base.decoding import decode
from app.configurations.endpoint import (
    Admin,
    Engine,
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
from app.configurations.labels import router as labels
from app.configurations.queues import router as queues
from app.configurations.revisions import router as revisions
from app.configurations.schemas import ConfigurationPage, ConfigurationWritten, StoredConfiguration
from app.configurations.writing import drafted
from app.http.body import Body
from app.http.openapi import operation
from app.http.pages import Cursor, Limit, decode_cursor, encode_cursor
from app.http.preconditions import Conditions
from app.solver.model.configuration import Configuration

DOCUMENTED = (
    Configuration, StoredConfiguration, ConfigurationWritten, ConfigurationPage,
    *queues.DOCUMENTED, *revisions.DOCUMENTED, *labels.DOCUMENTED,
)  # fmt: skip

EXAMPLE = {
    "engine": "kueue",
    "queues": [
        {"name": "all", "kueue": {"role": "cohort"}},
        {
            "name": "team-a",
            "parent": "all",
            "quota": {"cpu": {"guaranteed": "8", "borrowing_limit": "4"}},
            "kueue": {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}},
        },
        {"name": "team-b", "parent": "all", "quota": {"cpu": {"guaranteed": "8"}}},
    ],
}

__all__ = ["DOCUMENTED", "EXAMPLE", "Name", "Number", "Service", "router"]

router = APIRouter(prefix="/v1/configurations", tags=["configurations"])


@router.get(
    "",
    operation_id="list_configurations",
    **operation(needs="read", responses={200: ConfigurationPage, 304: None}, errors=(503,), etag=True),
)
def list_configurations(
    service: Service, conditions: Conditions, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Configurations by name, each with its current revision."""
    after = str(decode_cursor(cursor, str)[0]) if cursor else None
    found = service.page(after, limit + 1)
    more = encode_cursor(found[limit - 1].name) if len(found) > limit else None
    return tagged(ConfigurationPage(items=summaries(found[:limit]), next_cursor=more), conditions)


@router.get(
    "/{name}",
    operation_id="get_configuration",
    **operation(needs="read", responses={200: StoredConfiguration, 304: None}, errors=(404, 503), etag=True),
)
def get_configuration(name: Name, service: Service, conditions: Conditions) -> Response:
    """The current revision, with its document."""
    return revision_shown(service.get(name), conditions)


@router.put(
    "/{name}",
    operation_id="put_configuration",
    **operation(
        needs="admin",
        request=Configuration, responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(409, 412, 428, 503), example=EXAMPLE, etag=True,
    ),
)  # fmt: skip
def put_configuration(
    name: Name, body: Body, admin: Admin, intent: Intended, once: Keyed, engine: Engine = None
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
    **operation(needs="admin", responses={204: None}, errors=(404, 409, 412, 428, 503)),
)
def delete_configuration(name: Name, admin: Admin, conditions: Conditions, once: Keyed) -> Response:
    """Remove a configuration and its labels. Decisions in the log keep the revisions that they used."""

    def act(session: Session) -> Response:
        admin.editor.delete(session, name, conditions)
        return Response(status_code=204)

    return admin.writes.run(once, act)


for part in (queues, revisions, labels):
    router.include_router(part.router)
