"""``/v1/configurations/{name}/labels``: which revision is in use under which name."""

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.base.decoding import decode
from app.configurations.endpoint import Admin, LabelName, Name, shown, tagged
from app.configurations.idempotency.service import Keyed
from app.configurations.labels.schemas import Label, LabelList, LabelRequest
from app.http.body import Body
from app.http.comment import Comment
from app.http.openapi import operation
from app.http.preconditions import Conditions
from app.http.responses import json_response

DOCUMENTED = (Label, LabelList, LabelRequest)

router = APIRouter(tags=["configurations"])


@router.get(
    "/{name}/labels",
    operation_id="list_labels",
    summary="Labels of a configuration",
    **operation(needs="read", responses={200: LabelList, 304: None}, errors=(404, 503), etag=True),
)
def list_labels(name: Name, admin: Admin, conditions: Conditions) -> Response:
    """By name, each with the revision that it means."""
    return tagged(LabelList(items=admin.labels.every(name)), conditions)


@router.get(
    "/{name}/labels/{label}",
    operation_id="get_label",
    summary="One label",
    **operation(needs="read", responses={200: Label, 304: None}, errors=(404, 503), etag=True),
)
def get_label(name: Name, label: LabelName, admin: Admin, conditions: Conditions) -> Response:
    """The revision that it means, and its own entity tag."""
    found, tag = admin.labels.get(name, label)
    return shown(found, tag, conditions)


@router.put(
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
        found, tag, created = admin.labels.move(session, name, label, wanted.revision, conditions, comment)
        headers = {"ETag": tag, "Location": f"/v1/configurations/{name}/labels/{label}"}
        return json_response(found, 201 if created else 200, headers)

    return admin.writes.run(once, act, body)


@router.delete(
    "/{name}/labels/{label}",
    operation_id="delete_label",
    summary="Take a label off",
    **operation(needs="admin", responses={204: None}, errors=(404, 409, 412, 428, 503)),
)
def delete_label(name: Name, label: LabelName, admin: Admin, conditions: Conditions, once: Keyed) -> Response:
    """The revision stays; `name@label` means nothing any more."""

    def act(session: Session) -> Response:
        admin.labels.take_off(session, name, label, conditions)
        return Response(status_code=204)

    return admin.writes.run(once, act)
