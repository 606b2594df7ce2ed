"""Stored traces: what each has, what was left out when it was read, and forgetting one."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from app.console.api import Json, next_page, segment
from app.console.situation import paged
from app.console.visit import Number, PageRoute, Text, Visiting
from app.http.openapi import page

_ROWS = 50
Name = Annotated[str, Path(max_length=512)]

traces_pages = APIRouter(route_class=PageRoute)


@traces_pages.get("/traces", **page(needs="read"))
async def traces(visit: Visiting, cursor: Text = "") -> Response:
    """What is stored, and how one is."""
    found: Json = await visit.api.get("/v1/traces", {"limit": _ROWS, "cursor": cursor or None})
    return visit.show("traces.html", found=found["items"], following=next_page(found, "/traces", {}))


@traces_pages.get("/traces/{name}", **page(needs="read"))
async def trace(visit: Visiting, name: Name, page: Number = 1, note: Number = 1) -> Response:
    """Its queues, the largest first, and the lines about which something is to be said."""
    found: Json = await visit.api.get(f"/v1/traces/{segment(name)}/summary")
    queues = sorted(found.get("queues", {}).items(), key=lambda one: -one[1]["jobs"])
    return visit.show(
        "trace.html", name=name, found=found, queues=paged(queues, page, _ROWS),
        notes=paged(found.get("first_notes", []), note, _ROWS),
    )  # fmt: skip


@traces_pages.get("/traces/{name}/forget", **page(needs="decide"))
async def ask_to_forget(visit: Visiting, name: Name) -> Response:
    """Whether to."""
    at = f"/traces/{segment(name)}"
    seen = (await visit.api.call("GET", f"/v1{at}/summary")).etag if visit.may("read") else None
    return visit.show(
        "confirm.html", question=f"Forget the trace {name}?", verb="Forget it", action=f"{at}/forget", back=at,
        says="Simulations that were begun with it go on. It has to be stored again to be played again.",
        back_title="The trace", problem=None, diff=None,
        fields={"etag": seen} if seen else {},
    )  # fmt: skip


@traces_pages.post("/traces/{name}/forget", **page(needs="decide"))
async def forget(visit: Visiting, name: Name) -> Response:
    """Forget it, unless another was stored since it was looked at. Raises Refused."""
    seen = (await visit.form()).get("etag")
    await visit.api.call("DELETE", f"/v1/traces/{segment(name)}", headers={"If-Match": seen})
    return visit.go("/traces")
