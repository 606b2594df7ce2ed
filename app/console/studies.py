"""Forecasts and backtests: what was asked, how far each is, and what came of it."""

from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import Json, Refused, next_page
from app.console.decisions import moment_of
from app.console.situation import paged
from app.console.visit import Number, PageRoute, Text, Visit, Visiting
from app.http.openapi import page

_ACTIVE = ("queued", "running")
_ROWS = 50

studies_pages = APIRouter(route_class=PageRoute)


@studies_pages.get("/forecasts", **page(needs="read"))
async def forecasts(visit: Visiting, cursor: Text = "") -> Response:
    """Newest first."""
    found: Json = await visit.api.get("/v1/forecasts", {"limit": _ROWS, "cursor": cursor or None})
    return visit.show(
        "forecasts.html", found=found["items"], active=_ACTIVE, following=next_page(found, "/forecasts", {})
    )


@studies_pages.get("/forecasts/{id}", **page(needs="read"))
async def forecast(visit: Visiting, id: UUID, find: Text = "", page: Number = 1) -> Response:  # noqa: A002
    """When each ask starts, what it waits for, and how variants move that."""
    found: Json = await visit.api.get(f"/v1/forecasts/{id}")
    part = find.strip().lower()
    asks = [one for one in found.get("asks", ()) if part in f"{one['ask']} {one['queue']}".lower()]
    return visit.show(
        "forecast.html", id=str(id), found=found, find=find.strip(), active=found["status"] in _ACTIVE,
        asks=paged(asks, page, _ROWS), total=len(found.get("asks", ())),
    )  # fmt: skip


@studies_pages.get("/backtests", **page(needs="read"))
async def backtests(visit: Visiting, cursor: Text = "") -> Response:
    """Newest first, and a form for another."""
    return await _backtests(visit, {}, None, cursor)


@studies_pages.post("/backtests", **page(needs="decide"))
async def backtest(visit: Visiting) -> Response:
    """Begin, and go where its progress is."""
    fields = {name: text.strip() for name, text in (await visit.form()).items()}
    body: Json = {name: moment_of(fields[name]) for name in ("since", "until") if fields.get(name)}
    body |= {name: fields[name] for name in ("queue", "configuration") if fields.get(name)}
    other = fields.get("other", "")
    body["variants"] = [{"name": other, "configuration": other}]
    try:
        made = await visit.api.ask("/v1/backtests", body)
    except Refused as refused:
        return await _backtests(visit, fields, refused.document, "")
    return visit.go(f"/backtests/{made['id']}")


async def _backtests(visit: Visit, fields: dict[str, str], problem: Json | None, cursor: str) -> Response:
    found: Json = {"items": []}
    if visit.may("read"):
        found = await visit.api.get("/v1/backtests", {"limit": _ROWS, "cursor": cursor or None})
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show(
        "backtests.html", status, found=found["items"], active=_ACTIVE, following=next_page(found, "/backtests", {}),
        fields=fields, problem=problem,
    )  # fmt: skip


@studies_pages.get("/backtests/{id}", **page(needs="read"))
async def one_backtest(visit: Visiting, id: UUID, variant: Text = "", page: Number = 1) -> Response:  # noqa: A002
    """What each variant came to, and the decisions that one makes otherwise."""
    found: Json = await visit.api.get(f"/v1/backtests/{id}")
    chosen = variant or found["names"][0]
    start = (page - 1) * _ROWS
    query = {"variant": chosen, "from": start, "limit": _ROWS + 1}
    lines = (await visit.api.call("GET", f"/v1/backtests/{id}/differences", query)).body.splitlines()
    return visit.show(
        "backtest.html", id=str(id), found=found, variant=chosen, active=found["status"] in _ACTIVE, number=page,
        first=start + 1, lines=[msgspec.json.decode(one) for one in lines[:_ROWS]], more=len(lines) > _ROWS,
    )  # fmt: skip


def _stops(what: str) -> None:
    """The pages that stop or forget a study of one kind."""
    at = f"/{what}s/{{id}}/stop"

    @studies_pages.get(at, name=f"ask_to_stop_{what}", **page(needs="decide"))
    async def ask_to_stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
        """Whether to stop or forget it."""
        return visit.show(
            "confirm.html", question=f"Stop or forget this {what}?", verb="Stop or forget it",
            action=f"/{what}s/{id}/stop", back=f"/{what}s/{id}", back_title=f"The {what}",
            says="One that is under way ends; one that has ended is deleted, for everybody.", problem=None, diff=None,
            fields={},
        )  # fmt: skip

    @studies_pages.post(at, name=f"stop_{what}", **page(needs="decide"))
    async def stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
        """Stop or forget it. Raises Refused."""
        await visit.api.call("DELETE", f"/v1/{what}s/{id}")
        return visit.go(f"/{what}s")


_stops("forecast")
_stops("backtest")
