"""Forecasts, backtests, sweeps and the traces that they are about: what was asked, how far each is, what came of it."""

from base64 import b64encode
from secrets import token_hex
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from starlette.responses import Response

from app.base.documents import read_one
from app.base.errors import BadRequest
from app.console.api import ApiError, Json, next_page, segment, status_of
from app.console.decisions import moment_of
from app.console.simulations import MEASURES
from app.console.situation import paged
from app.console.visit import Number, PageRoute, Text, Visit, Visiting
from app.http.openapi import page
from app.solver.model.problems import InvalidInput

_ACTIVE = ("queued", "running")
_ROWS = 50
_TRACES = 200

studies_pages = APIRouter(route_class=PageRoute)


@studies_pages.get("/forecasts", **page(needs="read"))
async def forecasts(visit: Visiting, cursor: Text = "") -> Response:
    """Newest first."""
    listing: Json = await visit.api.get("/v1/forecasts", {"limit": _ROWS, "cursor": cursor or None})
    return visit.show("forecasts.html", found=listing["items"], following=next_page(listing, "/forecasts", {}))


@studies_pages.get("/forecasts/{id}", **page(needs="read"))
async def forecast(visit: Visiting, id: UUID, find: Text = "", page: Number = 1) -> Response:  # noqa: A002
    """When each ask starts, what it waits for, and how variants move that."""
    study: Json = await visit.api.get(f"/v1/forecasts/{id}")
    part = find.strip().lower()
    asks = [ask for ask in study.get("asks", ()) if part in f"{ask['ask']} {ask['queue']}".lower()]
    return visit.show(
        "forecast.html", id=str(id), found=study, find=find.strip(), active=study["status"] in _ACTIVE,
        asks=paged(asks, page, _ROWS), total=len(study.get("asks", ())),
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
    body |= {name: fields[name] for name in ("queue", "configuration", "recording") if fields.get(name)}
    if body.get("recording", "").startswith("{"):  # its lines, pasted as they are
        body["recording"] = b64encode(body["recording"].encode()).decode()
    other = fields.get("other", "")
    body["variants"] = [{"name": other, "configuration": other}]
    try:
        begun = await visit.api.ask("/v1/backtests", body)
    except ApiError as refused:
        return await _backtests(visit, fields, refused.document, "")
    return visit.go(f"/backtests/{begun['id']}")


async def _backtests(visit: Visit, fields: dict[str, str], problem: Json | None, cursor: str) -> Response:
    listing: Json = {"items": []}
    if visit.may("read"):
        listing = await visit.api.get("/v1/backtests", {"limit": _ROWS, "cursor": cursor or None})
    return visit.show(
        "backtests.html", status_of(problem), found=listing["items"], fields=fields, problem=problem,
        following=next_page(listing, "/backtests", {}),
    )  # fmt: skip


@studies_pages.get("/backtests/{id}", **page(needs="read"))
async def one_backtest(visit: Visiting, id: UUID, variant: Text = "", page: Number = 1) -> Response:  # noqa: A002
    """What each variant came to, and the decisions that one makes otherwise."""
    study: Json = await visit.api.get(f"/v1/backtests/{id}")
    chosen = variant or study["names"][0]
    start = (page - 1) * _ROWS
    query = {"variant": chosen, "from": start, "limit": _ROWS + 1}
    lines = (await visit.api.call("GET", f"/v1/backtests/{id}/differences", query)).lines()
    return visit.show(
        "backtest.html", id=str(id), found=study, variant=chosen, active=study["status"] in _ACTIVE, number=page,
        first=start + 1, lines=lines[:_ROWS], more=len(lines) > _ROWS,
    )  # fmt: skip


_MEASURES = [
    measure
    for measure in MEASURES
    if measure.title
    in (
        "Finished",
        "Wait, median",
        "Wait, 90 %",
        "Completion, 90 %",
        "Slowdown, 90 %",
        "Evictions",
        "Work lost",
        "Used",
    )
]


@studies_pages.get("/sweeps", **page(needs="read"))
async def sweeps(visit: Visiting, cursor: Text = "", trace: Text = "") -> Response:
    """Newest first, and a form for another."""
    return await _sweeps(visit, {"trace": trace}, None, cursor)


@studies_pages.post("/sweeps", **page(needs="decide"))
async def begin_sweep(visit: Visiting) -> Response:
    """Begin, and go where its progress is."""
    fields = {name: text.strip() for name, text in (await visit.form()).items()}
    try:
        begun = await visit.api.ask("/v1/sweeps", _swept(fields))
    except (BadRequest, InvalidInput) as error:
        return await _sweeps(visit, fields, {"title": "The form can't be read", "detail": str(error)}, "")
    except ApiError as refused:
        return await _sweeps(visit, fields, refused.document, "")
    return visit.go(f"/sweeps/{begun['id']}")


def _swept(fields: dict[str, str]) -> Json:
    """The request that a form asks for. Raises BadRequest for what is no number or no YAML."""
    names = [name for text in fields.get("configurations", "").split(",") if (name := text.strip())]
    body: Json = {"trace": fields.get("trace", ""), "configurations": {name: name for name in names}}
    try:
        if fields.get("sample"):
            body["sample"] = float(fields["sample"])
        if fields.get("seeds"):
            body["seeds"] = [int(text) for text in fields["seeds"].split(",")]
    except ValueError as error:
        raise BadRequest(f"the sample is a number, seeds are whole numbers: {error}") from None
    if fields.get("settings"):
        body["settings"] = read_one(fields["settings"].encode(), "the values to try")
    return body


async def _sweeps(visit: Visit, fields: dict[str, str], problem: Json | None, cursor: str) -> Response:
    listing: Json = {"items": []}
    stored: list[Json] = []
    if visit.may("read"):
        listing = await visit.api.get("/v1/sweeps", {"limit": _ROWS, "cursor": cursor or None})
        stored = (await visit.api.get("/v1/traces", {"limit": _TRACES}))["items"]
    return visit.show(
        "sweeps.html", status_of(problem), found=listing["items"], following=next_page(listing, "/sweeps", {}),
        traces=stored, fields=fields, problem=problem,
    )  # fmt: skip


@studies_pages.get("/sweeps/{id}", **page(needs="read"))
async def one_sweep(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The grid, as far as it was played."""
    study: Json = await visit.api.get(f"/v1/sweeps/{id}")
    lines = (await visit.api.call("GET", f"/v1/sweeps/{id}/points")).lines()
    return visit.show(
        "sweep.html", id=str(id), found=study, lines=lines, active=study["status"] in _ACTIVE, measures=_MEASURES,
        seeds=len({point["seed"] for point in lines}) > 1,
    )  # fmt: skip


def _stops(what: str) -> None:
    """The pages that stop or forget a study of one kind."""
    address = f"/{what}s/{{id}}/stop"

    @studies_pages.get(address, name=f"ask_to_stop_{what}", **page(needs="decide"))
    async def ask_to_stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
        """Whether to stop or forget it."""
        says = "One that is under way ends; one that has ended is deleted, for everybody."
        here = f"/{what}s/{id}"
        return visit.confirm(
            f"Stop or forget this {what}?", says, "Stop or forget it", f"{here}/stop", (here, f"The {what}")
        )

    @studies_pages.post(address, name=f"stop_{what}", **page(needs="decide"))
    async def stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
        """Stop or forget it. Raises ApiError."""
        await visit.api.call("DELETE", f"/v1/{what}s/{id}")
        return visit.go(f"/{what}s")


_stops("forecast")
_stops("backtest")
_stops("sweep")


Name = Annotated[str, Path(max_length=512)]

traces_pages = APIRouter(route_class=PageRoute)


@traces_pages.get("/traces", **page(needs="read"))
async def traces(visit: Visiting, cursor: Text = "") -> Response:
    """What is stored, and how one is."""
    return await _traces(visit, {"format": "ndjson"}, None, None, cursor)


@traces_pages.post("/traces", **page(needs="decide"))
async def store_trace(visit: Visiting) -> Response:
    """Show what the mapping makes of a trace; or store it under a name that no other has."""
    fields = await visit.form()
    form, name, preview = fields.get("format", ""), fields.get("name", "").strip(), "preview" in fields
    parts = {"pods" if form == "alibaba-gpu-2023" else "trace": fields.get("trace", "")}
    parts |= {part: fields[part] for part in ("nodes", "mapping") if fields.get(part, "").strip()}
    boundary = token_hex(16)
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}", "If-None-Match": None if preview else "*",
    }  # fmt: skip
    query = {"format": form, "dry_run": preview or None}
    try:
        reply = await visit.api.call("PUT", f"/v1/traces/{segment(name)}", query, _multipart(parts, boundary), headers)
    except ApiError as refused:
        return await _traces(visit, fields, refused.document, None, "")
    if preview:
        return await _traces(visit, fields, None, reply.json(), "")
    return visit.go(f"/traces/{segment(name)}")


def _multipart(parts: dict[str, str], boundary: str) -> bytes:
    said = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n{text}\r\n'
        for name, text in parts.items()
    )
    return f"{said}--{boundary}--\r\n".encode()


async def _traces(
    visit: Visit, fields: dict[str, str], problem: Json | None, stored: Json | None, cursor: str
) -> Response:
    listing: Json = {"items": []}
    formats: list[Json] = []
    if visit.may("read"):
        listing = await visit.api.get("/v1/traces", {"limit": _ROWS, "cursor": cursor or None})
        formats = (await visit.api.get("/v1/trace-formats"))["items"]
    return visit.show(
        "traces.html", status_of(problem), found=listing["items"], following=next_page(listing, "/traces", {}),
        formats=formats, fields=fields, problem=problem, made=stored,
    )  # fmt: skip


@traces_pages.get("/traces/{name}", **page(needs="read"))
async def trace(visit: Visiting, name: Name, page: Number = 1, note: Number = 1) -> Response:
    """Its queues, the largest first, and the lines about which something is to be said."""
    summary: Json = await visit.api.get(f"/v1/traces/{segment(name)}/summary")
    queues = sorted(summary.get("queues", {}).items(), key=lambda queue: -queue[1]["jobs"])
    return visit.show(
        "trace.html", name=name, found=summary, queues=paged(queues, page, _ROWS),
        notes=paged(summary.get("first_notes", []), note, _ROWS),
    )  # fmt: skip


@traces_pages.get("/traces/{name}/forget", **page(needs="decide"))
async def ask_to_forget(visit: Visiting, name: Name) -> Response:
    """Whether to."""
    address = f"/traces/{segment(name)}"
    seen = (await visit.api.call("GET", f"/v1{address}/summary")).etag if visit.may("read") else None
    says = "Simulations that were begun with it go on. It has to be stored again to be played again."
    fields = {"etag": seen} if seen else {}
    return visit.confirm(
        f"Forget the trace {name}?", says, "Forget it", f"{address}/forget", (address, "The trace"), **fields
    )


@traces_pages.post("/traces/{name}/forget", **page(needs="decide"))
async def forget(visit: Visiting, name: Name) -> Response:
    """Forget it, unless another was stored since it was looked at. Raises ApiError."""
    seen = (await visit.form()).get("etag")
    await visit.api.call("DELETE", f"/v1/traces/{segment(name)}", headers={"If-Match": seen})
    return visit.go("/traces")
