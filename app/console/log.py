"""The decision log, and every decision that concerns one workload."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console.api import Refused, segment
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page

_PAGE = 50
_MOST = 2048
Text = Annotated[str, Query(max_length=_MOST)]
Filters = dict[str, str]

router = APIRouter(route_class=PageRoute)


def _filters(
    engine: Text = "", outcome: Text = "", configuration: Text = "", queue: Text = "", ask: Text = "",
    workload: Text = "", actor: Text = "",
) -> Filters:  # fmt: skip
    found = {
        "engine": engine, "outcome": outcome, "configuration": configuration, "queue": queue, "ask": ask,
        "workload": workload, "actor": actor,
    }  # fmt: skip
    return {name: value.strip() for name, value in found.items()}


def _span(since: Text = "", until: Text = "") -> Filters:
    return {"since": _moment(since), "until": _moment(until)}


def _moment(text: str) -> str:
    """What a browser's field of date and time gives is UTC here; all else goes to the API as it is."""
    plain = text.strip()
    if len(plain) == len("2026-03-02T09:30"):
        plain += ":00"
    return f"{plain}Z" if len(plain) == len("2026-03-02T09:30:00") else plain


@router.get("/decisions", **page(needs="read"))
async def decisions(
    visit: Visiting, about: Annotated[Filters, Depends(_filters)], span: Annotated[Filters, Depends(_span)],
    cursor: Annotated[str, Query(max_length=1024)] = "",
) -> Response:  # fmt: skip
    """Filter, page, open."""
    filters = {**about, **span}
    wanted = {name: value for name, value in filters.items() if value}
    found: dict[str, Any] = {"items": []}
    problem = None
    try:
        found = await visit.api.get("/v1/decisions", {**wanted, "cursor": cursor or None, "limit": _PAGE})
    except Refused as refused:
        if refused.status not in (400, 422):
            raise
        problem = refused.document
    more = found.get("next_cursor")
    following = f"/decisions?{urlencode({**wanted, 'cursor': more})}" if more else None
    return visit.show(
        "decisions.html", 200 if problem is None else problem["status"], found=found["items"], filters=filters,
        filtered=bool(wanted), problem=problem, following=following, first=not cursor,
        faults={f.get("parameter"): f["detail"] for f in (problem or {}).get("errors", ())},
    )  # fmt: skip


@router.get("/why", **page(needs="read"))
async def why(visit: Visiting, workload: Text = "", cursor: Annotated[str, Query(max_length=1024)] = "") -> Response:
    """Every kept decision that stopped a workload or was asked about it, newest first."""
    wanted = workload.strip()
    found: dict[str, Any] = {"items": []}
    if wanted:
        query = {"limit": _PAGE, "cursor": cursor or None}
        found = await visit.api.get(f"/v1/workloads/{segment(wanted)}/history", query)
    more = found.get("next_cursor")
    following = f"/why?{urlencode({'workload': wanted, 'cursor': more})}" if more else None
    return visit.show("why.html", workload=wanted, found=found, following=following)
