"""Clusters that are followed: how old each is, what can't be carried over; and real preemptions beside Arbiter's."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.console.decision import file_of
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page

_PAGE = 50

router = APIRouter(route_class=PageRoute)


@router.get("/clusters", **page(needs="read"))
async def clusters(
    visit: Visiting, outcome: Literal["", "agreed", "differs", "unjudged"] = "",
    cursor: Annotated[str, Query(max_length=1024)] = "",
) -> Response:  # fmt: skip
    """What is followed, and what the schedulers there really stopped."""
    followed = (await visit.api.get("/v1/clusters"))["items"]
    query = {"outcome": outcome or None, "cursor": cursor or None, "limit": _PAGE}
    found: dict[str, Any] = await visit.api.get("/v1/shadow", query)
    more = found.get("next_cursor")
    return visit.show(
        "clusters.html", clusters=followed, found=found["items"], outcome=outcome,
        following=f"/clusters?{urlencode({'outcome': outcome, 'cursor': more})}#real" if more else None,
    )  # fmt: skip


@router.get("/clusters/preemptions/{id}/request.json", **page(needs="read"))
async def preemption_request(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The question on which Arbiter and the scheduler differ, to keep."""
    return file_of((await visit.api.call("GET", f"/v1/shadow/{id}/request")).body, "request.json")
