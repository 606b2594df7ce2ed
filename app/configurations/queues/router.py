"""``/v1/configurations/{name}/queues/{queue}``: one queue at a time."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.configurations.endpoint import Admin, Engine, Intended, Name, shown, summary, written
from app.configurations.idempotency.service import Keyed
from app.configurations.queues.schemas import QueueDocument, StoredQueue
from app.configurations.queues.service import read_queue
from app.configurations.schemas import ConfigurationWritten
from app.configurations.service import etag
from app.http.body import Body
from app.http.openapi import operation
from app.http.preconditions import Conditions

DOCUMENTED = (QueueDocument, StoredQueue)
_EXAMPLE = {"parent": "all", "quota": {"cpu": {"guaranteed": "12"}}}

router = APIRouter(tags=["configurations"])

QueueName = Annotated[
    str, Path(min_length=1, max_length=512, description="Percent-encoded; may hold slashes", examples=["root.a.b"])
]


@router.get(
    "/{name}/queues/{queue:path}",
    operation_id="get_queue",
    summary="One queue",
    **operation(needs="read", responses={200: StoredQueue, 304: None}, errors=(404, 503), etag=True),
)
def get_queue(name: Name, queue: QueueName, admin: Admin, conditions: Conditions) -> Response:
    """A queue of the current revision; the entity tag is the configuration's."""
    revision, found = admin.queues.get(name, queue)
    return shown({**summary(revision), "queue": found}, etag(revision) or "", conditions)


@router.put(
    "/{name}/queues/{queue:path}",
    operation_id="put_queue",
    summary="Add or replace one queue",
    **operation(
        needs="admin",
        request=QueueDocument, responses={200: ConfigurationWritten, 201: ConfigurationWritten},
        errors=(404, 409, 412, 428, 503), example=_EXAMPLE, etag=True,
    ),
)  # fmt: skip
def put_queue(
    name: Name, queue: QueueName, body: Body, admin: Admin, intent: Intended, once: Keyed, engine: Engine = None
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


@router.delete(
    "/{name}/queues/{queue:path}",
    operation_id="delete_queue",
    summary="Remove one queue",
    **operation(
        needs="admin",
        responses={200: ConfigurationWritten}, errors=(404, 409, 412, 428, 503), etag=True
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
