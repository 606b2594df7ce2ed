"""``/v1/find``: everything that has a name, by any part of it."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from app.finding.service import Finder, Found, Hit
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.routing import service

DOCUMENTED = (Found, Hit)

router = APIRouter(prefix="/v1/find", tags=["decision log"])


async def _service(request: Request) -> Finder:
    return service(request, Finder)


@router.get(
    "",
    operation_id="find",
    summary="What is called so?",
    **operation(needs="read", responses={200: Found}, errors=(503, 504)),
)
def find(
    finder: Annotated[Finder, Depends(_service)],
    text: Annotated[str, Query(min_length=1, max_length=2048, description="Any part of a name or id, in any case.")],
    limit: Annotated[int, Query(ge=1, le=100, description="How many at most")] = 20,
) -> Response:
    """Workloads, asks and queues that the log or a follower told of; what runs, waits and is there in kept snapshots;
    queues and names of configurations; snapshots, clusters; simulations and decisions by their ids."""
    return json_response(msgspec.json.encode(finder.find(text, limit)))
