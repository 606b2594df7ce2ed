"""Endpoints that every kind of job has: begin one, list them, look at one, stop it."""

from inspect import cleandoc
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response

from app.answering.answers import encode
from app.http.body import Body
from app.http.openapi import Cursor, Limit, operation
from app.http.responses import json_response
from app.http.routing import service
from app.jobs.service import JobsOfKind
from app.solver.model.base import Wire
from app.workers.dispatcher import Offload

READ = (404, 422, 503)
"""Errors of whatever looks at one job."""


class Said(NamedTuple):
    """What the document says of an endpoint."""

    operation_id: str
    summary: str
    description: str

    def fields(self) -> dict[str, str]:
        """As a route takes them."""
        return {**self._asdict(), "description": cleandoc(self.description)}


def router_of(  # noqa: PLR0913
    jobs: type[JobsOfKind[Any, Any]], kind: str, *, request: type[Wire], shown: type[Wire], page: type[Wire],
    example: dict[str, Any], begin: Said, listed: Said, got: Said, forgotten: str = "forgotten",
    errors: tuple[int, ...] = (404, 409, 429, 503, 504),
) -> APIRouter:  # fmt: skip
    """The endpoints of ``jobs`` below ``/v1/<kind>s``; those that only this kind has are added to it. ``errors``: of
    beginning one; ``forgotten``: what becomes of one that has ended and is deleted."""
    router = APIRouter(prefix=f"/v1/{kind}s", tags=["simulations"])

    named = Path(description=f"`id` of {'an' if kind[0] in 'aeiou' else 'a'} {kind}")

    @router.post(
        "", **begin.fields(),
        **operation(needs="decide", request=request, responses={202: shown}, errors=errors, example=example),
    )  # fmt: skip
    async def begin_one(request: Request, body: Body) -> Response:
        made = await service(request, Offload).run("large", service(request, jobs).start, body)
        return json_response(encode(made), 202, {"Location": f"/v1/{kind}s/{made.id}"})

    @router.get("", **listed.fields(), **operation(needs="read", responses={200: page}, errors=(503,)))
    def list_all(request: Request, limit: Limit = 50, cursor: Cursor = None) -> Response:
        return json_response(encode(service(request, jobs).page(cursor, limit)))

    @router.get("/{id}", **got.fields(), **operation(needs="read", responses={200: shown}, errors=READ))
    def get_one(request: Request, id: Annotated[UUID, named]) -> Response:  # noqa: A002
        return json_response(encode(service(request, jobs).get(id)))

    @router.delete(
        "/{id}", operation_id=f"delete_{kind}", summary="Stop it, or forget it",
        description=f"One that waits or runs is `cancelled` and stops within 2 s; one that has ended is {forgotten}.",
        **operation(needs="decide", responses={204: None}, errors=READ),
    )  # fmt: skip
    def delete_one(request: Request, id: Annotated[UUID, named]) -> Response:  # noqa: A002
        service(request, jobs).stop(id)
        return Response(status_code=204)

    _ = begin_one, list_all, get_one, delete_one
    return router
