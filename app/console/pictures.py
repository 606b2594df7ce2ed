"""The pictures of a simulation that is done: drawn by the API, shown where its service can draw."""

from hashlib import sha256
from typing import Annotated, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.base.errors import NotInstalled
from app.console.api import Json
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page
from app.http.policy import HEADERS
from app.simulations.plots.data import Kind
from app.simulations.plots.elsewhere import require

_SVG = "image/svg+xml"
Text = Annotated[str | None, Query(max_length=512)]

router = APIRouter(route_class=PageRoute)


class Picture(NamedTuple):
    """``says``: what one would see, for who can't; the tables of the page have the numbers."""

    title: str
    address: str
    says: str


def pictures_of(found: Json, variant: str | None) -> list[Picture]:
    """Those of a variant, the first where none is named; none of a run that is not done, or where nothing can draw."""
    if found["status"] != "done" or not _can_draw():
        return []
    names: list[str] = found.get("names", [])
    one = variant or (names[0] if names else None)
    of = f" of {one}" if one else ""
    at, query = f"/simulations/{found['id']}/plots", f"?{urlencode({'variant': one})}" if one else ""
    every = " of every variant" if len(names) > 1 else ""
    usage = f"What each queue{of} used over time, beside its guarantee"
    waits = f"How long jobs{every} waited for their first start, as a distribution"
    evictions = f"How often work of each queue{of} was stopped for each other queue"
    return [
        Picture(f"Usage over time{of}", f"{at}/usage.svg{query}", usage),
        Picture(f"Waits{every}", f"{at}/waits.svg", waits),
        Picture(f"Evictions{of}", f"{at}/evictions.svg{query}", evictions),
    ]


def _can_draw() -> bool:
    try:
        require()
    except NotInstalled:
        return False
    return True


@router.get("/simulations/{id}/plots/{kind}.svg", **page(needs="read"))
async def plot(visit: Visiting, id: UUID, kind: Kind, variant: Text = None) -> Response:  # noqa: A002
    """As the API draws it. What a run came to never changes: a browser that has the picture needs no other."""
    at = f"/v1/simulations/{id}"
    await visit.api.get(at)  # who has the picture may still see it only while the run is there
    tag = f'"{sha256(f"{id} {kind} {variant}".encode()).hexdigest()[:32]}"'
    headers = {**HEADERS, "Cache-Control": "private, no-cache", "ETag": tag}
    if visit.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    found = await visit.api.call("GET", f"{at}/plots/{kind}.svg", {"variant": variant})
    return Response(found.body, headers=headers, media_type=_SVG)
