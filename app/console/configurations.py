"""Stored configurations: the list, one with its history and differences, export, restoring and labels."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.console.api import Json, Refused, Reply, segment
from app.console.visit import PageRoute, Visit, Visiting
from app.http.openapi import page
from app.http.policy import HEADERS

_PAGE = 50
Number = Annotated[int | None, Query(ge=1, le=10**9)]
Cursor = Annotated[str, Query(max_length=1024)]

router = APIRouter(route_class=PageRoute)


def at(name: str) -> str:
    """Where the API has a configuration."""
    return f"/v1/configurations/{segment(name)}"


@router.get("/configurations", **page(needs="read"))
async def configurations(visit: Visiting, cursor: Cursor = "") -> Response:
    """By name."""
    found = await visit.api.get("/v1/configurations", {"cursor": cursor or None, "limit": _PAGE})
    return visit.show("configurations.html", found=found["items"], following=found["next_cursor"], first=not cursor)


@router.get("/configurations/{name}", **page(needs="read"))
async def configuration(
    visit: Visiting, name: str, revision: Number = None,
    against: Annotated[int | None, Query(ge=0, le=10**9)] = None, cursor: Cursor = "",
) -> Response:  # fmt: skip
    """One revision: what it says, what it changed, and what came before and after."""
    return await shown(visit, name, revision, against, cursor)


async def shown(
    visit: Visit, name: str, revision: int | None = None, against: int | None = None, cursor: str = "",
    problem: Json | None = None,
) -> Response:  # fmt: skip
    """The page; with ``problem`` what went wrong on it."""
    current = await visit.api.call("GET", at(name))
    stored = current.json()
    if revision is not None and revision != stored["revision"]:
        stored = await visit.api.get(f"{at(name)}/revisions/{revision}")
    number = stored["revision"]
    diff = await visit.api.get(f"{at(name)}/revisions/{number}/diff", {"against": against})
    history = await visit.api.get(f"{at(name)}/revisions", {"cursor": cursor or None, "limit": _PAGE})
    labels = (await visit.api.get(f"{at(name)}/labels"))["items"]
    return visit.show(
        "configuration.html", 200 if problem is None else int(problem["status"]), name=name, stored=stored, diff=diff,
        history=history["items"], following=history["next_cursor"], labels=labels, current=current.json()["revision"],
        etag=current.etag, problem=problem,
    )  # fmt: skip


@router.get("/configurations/{name}/export.yaml", **page(needs="read"))
async def export(visit: Visiting, name: str) -> Response:
    """The native YAML of its system."""
    found: Reply = await visit.api.call("GET", f"{at(name)}:export")
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{segment(name)}.yaml"'}
    return Response(found.body, headers=headers, media_type="application/yaml")


@router.post("/configurations/{name}/restore", **page(needs="admin"))
async def restore(visit: Visiting, name: str) -> Response:
    """Bring an earlier revision back, as a new one."""
    fields = await visit.form()
    try:
        await visit.api.call(
            "POST", f"{at(name)}/revisions/{_number(fields)}:restore",
            {"comment": fields.get("comment") or None}, headers={"If-Match": fields.get("etag")},
        )  # fmt: skip
    except Refused as refused:
        return await shown(visit, name, problem={**refused.document, "status": refused.status})
    return visit.go(f"/configurations/{segment(name)}")


@router.post("/configurations/{name}/labels", **page(needs="admin"))
async def label(visit: Visiting, name: str) -> Response:
    """Point a label at a revision."""
    fields = await visit.form()
    place = f"{at(name)}/labels/{segment(fields.get('label', ''))}"
    try:
        try:
            tag = (await visit.api.call("GET", place)).etag
        except Refused as refused:
            if refused.status != 404:
                raise
            tag = None
        await visit.api.call("PUT", place, body={"revision": int(_number(fields))}, headers={"If-Match": tag})
    except Refused as refused:
        return await shown(visit, name, problem={**refused.document, "status": refused.status})
    return visit.go(f"/configurations/{segment(name)}")


def _number(fields: dict[str, str]) -> str:
    given = fields.get("revision", "")
    return given if given.isascii() and given.isdigit() and len(given) < 10 else "0"
