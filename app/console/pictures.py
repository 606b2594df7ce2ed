"""Pictures of simulations: curves that the browser draws from their numbers, every variant laid over the others; a
table of who was evicted for whom; and the same as files.

What a run came to never changes: numbers are worked out once, and a browser that has them needs no others.
"""

from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.base import Lru
from app.base.errors import NotInstalled
from app.console.api import Json
from app.console.visit import PageRoute, Visit, Visiting
from app.http.assets import HEADERS
from app.http.openapi import page
from app.http.routing import service
from app.simulations.plots import Kind, require

_SVG, _JSON = "image/svg+xml", "application/json"
_KEPT = 500
_KEPT_BYTES = 32 << 20
_MOST_VARIANTS = 8
_MOST_QUEUES = 12
_MOST_RESOURCES = 6
_POINTS = 240
_SHARES = 100
Curves = Literal["usage", "waits", "fragmentation"]
Text = Annotated[str | None, Query(max_length=512)]

pictures_pages = APIRouter(route_class=PageRoute)


class Drawn(Lru[tuple[UUID, str | None, str], bytes]):
    """Numbers of pictures as the API tells them, by simulation, variant and kind."""

    def __init__(self) -> None:
        super().__init__(_KEPT, _KEPT_BYTES)


class Picture(NamedTuple):
    """Curves, or with ``part`` a table that is loaded when it is looked at. ``says``: what one would see, for who
    can't; ``file``: the same as SVG, empty where nothing can draw it."""

    title: str
    address: str
    says: str
    file: str = ""
    part: bool = False


def pictures_of(run: Json, variant: str | None, queue: str | None) -> list[Picture]:
    """Those of a run; none of one that is not done. ``variant``: whose evictions, and whose files; ``queue``: of which
    everything is drawn, else of those that used most how much."""
    if run["status"] != "done":
        return []
    names: list[str] = run.get("names", [])
    chosen = variant or (names[0] if names else None)
    address = f"/simulations/{run['id']}/plots"
    of = f"?{urlencode({'variant': chosen})}" if chosen else ""
    every = " by each variant" if len(names) > 1 else ""
    draws = _can_draw()

    def curves(kind: str, title: str, says: str, name: str = "", file: str = of, resource: str = "") -> Picture:
        asked = {field: text for field, text in (("name", name), ("resource", resource)) if text}
        query = f"?{urlencode(asked)}" if asked else ""
        return Picture(title, f"{address}/{kind}.json{query}", says, f"{address}/{kind}.svg{file}" if draws else "")

    used = f"What was used over time{every}, beside what is guaranteed"
    pictures = [
        curves("usage", "Usage over time, all queues together", used),
        curves("waits", "Waits for the first start", f"How long jobs{every} waited, shortest first", file=""),
    ]
    if queue is not None:
        return [
            Picture(
                f"{queue}: {resource} over time",
                f"{address}/queue.json?{urlencode({'name': queue, 'resource': resource})}",
                f"What {queue} used of {resource} over time{every}, what is guaranteed to it, and what it wanted",
            )
            for resource in resources_of(run["variants"], queue)
        ]
    pictures += [
        curves("usage", f"Usage over time of {name}", f"What {name} used over time{every}", name)
        for name in _largest(run["variants"][0]["summary"])
    ]
    for flavor, level in _levels(run):
        title = f"Free over time, {flavor}: {level}"
        says = f"At most in one {level} of {flavor}{every}, beside all together"
        pictures.append(curves("fragmentation", title, says, f"{flavor}: {level}"))
    whose = f" by {chosen}" if chosen else ""
    caption = f"How often work of each queue was evicted for each other queue{whose}"
    file = f"{address}/evictions.svg{of}" if draws else ""
    pictures.append(Picture(f"Evictions{whose}", f"{address}/evictions{of}", caption, file, part=True))
    return pictures


def _largest(summary: Json) -> list[str]:
    """The queues of which there are panels: that used most of what was used most, by name; none where one is all."""
    shares: dict[str, float] = summary["total"].get("utilisation", {})
    most = min(shares, key=lambda name: (-shares[name], name), default="")
    used = {name: totals.get("used", {}).get(most, 0) for name, totals in summary.get("queues", {}).items()}
    whole = summary["total"].get("used", {}).get(most, 0)
    named = sorted((name for name, amount in used.items() if 0 < amount < whole), key=lambda name: (-used[name], name))
    return sorted(named[:_MOST_QUEUES])


def resources_of(variants: list[Json], queue: str) -> list[str]:
    """The resources that a queue used in any variant, or missed."""
    totals = [variant["summary"].get("queues", {}).get(queue, {}) for variant in variants]
    every = (
        name for total in totals for of in ("used", "shortfall") for name, amount in total.get(of, {}).items() if amount
    )
    return list(dict.fromkeys(every))[:_MOST_RESOURCES]


def _levels(run: Json) -> list[tuple[str, str]]:
    every = (level for variant in run["variants"] for level in variant["summary"].get("fragmentation", ()))
    return list(dict.fromkeys((level["flavor"], level["level"]) for level in every))


def _can_draw() -> bool:
    try:
        require()
    except NotInstalled:
        return False
    return True


@pictures_pages.get("/simulations/{id}/plots/{kind}.svg", **page(needs="read"))
async def plot(visit: Visiting, id: UUID, kind: Kind, variant: Text = None) -> Response:  # noqa: A002
    """As the API draws it, to keep."""
    address = f"/v1/simulations/{id}"
    await visit.api.get(address)  # who has the picture may still see it only while the run is there
    if (known := _unchanged(visit, f"{id} {kind} {variant}")) is not None:
        return known
    picture = await visit.api.call("GET", f"{address}/plots/{kind}.svg", {"variant": variant})
    return Response(picture.body, headers=_headers(f"{id} {kind} {variant}"), media_type=_SVG)


@pictures_pages.get("/simulations/{id}/plots/{kind}.json", **page(needs="read"))
async def curves(visit: Visiting, id: UUID, kind: Curves, name: Text = None) -> Response:  # noqa: A002
    """Numbers for the browser: a line for each variant. ``name``: a queue, or a flavor with its level."""
    run: Json = await visit.api.get(f"/v1/simulations/{id}")
    mark = f"{id} {kind} {name} curves"
    if (known := _unchanged(visit, mark)) is not None:
        return known
    names: list[str | None] = [*run.get("names", [])[:_MOST_VARIANTS]] or [None]
    numbers = {variant or "the run": await _numbers(visit, id, variant, kind) for variant in names}
    document = waits_drawn(numbers) if kind == "waits" else levels_drawn(numbers, name or "", kind)
    return Response(msgspec.json.encode(document), headers=_headers(mark), media_type=_JSON)


@pictures_pages.get("/simulations/{id}/plots/queue.json", **page(needs="read"))
async def queue_curves(visit: Visiting, id: UUID, name: Text, resource: Text) -> Response:  # noqa: A002
    """Of one queue and resource what was used, guaranteed and wanted: a line for each variant."""
    run: Json = await visit.api.get(f"/v1/simulations/{id}")
    mark = f"{id} queue {name} {resource}"
    if (known := _unchanged(visit, mark)) is not None:
        return known
    names: list[str | None] = [*run.get("names", [])[:_MOST_VARIANTS]] or [None]
    asked = {"queue": name, "resource": resource, "points": _POINTS}
    numbers = {variant or "the run": await _numbers(visit, id, variant, "series", **asked) for variant in names}
    document = queue_drawn(numbers, resource or "")
    return Response(msgspec.json.encode(document), headers=_headers(mark), media_type=_JSON)


@pictures_pages.get("/simulations/{id}/plots/evictions", **page(needs="read"))
async def evictions(visit: Visiting, id: UUID, variant: Text = None) -> Response:  # noqa: A002
    """Who was evicted for whom: a row for each queue whose work was, a column for each that it was for."""
    await visit.api.get(f"/v1/simulations/{id}")
    counts: dict[str, dict[str, int]] = (await _numbers(visit, id, variant, "evictions"))["counts"]
    columns = sorted({by for row in counts.values() for by in row}, key=lambda by: (not by, by))
    most = max((times for row in counts.values() for times in row.values()), default=1)
    return visit.show(
        "evictions.html", id=str(id), counts=counts, columns=columns, variant=variant,
        shades={times: min(4, 1 + 4 * times // (most + 1)) for row in counts.values() for times in row.values()},
    )  # fmt: skip


async def _numbers(visit: Visit, identity: UUID, variant: str | None, kind: str, **asked: Any) -> Json:
    """Those of a picture; with what is ``asked`` of a queue, its series."""
    drawn = service(visit.request, Drawn)
    key = identity, variant, f"{kind} {sorted(asked.items())}"
    body = drawn.get(key)
    if body is None:
        address = f"/v1/simulations/{identity}/{'series' if asked else f'plots/{kind}.json'}"
        body = (await visit.api.call("GET", address, {"variant": variant, **asked})).body
        drawn.put(key, body, len(body))
    return msgspec.json.decode(body)


def _headers(mark: str) -> dict[str, str]:
    tag = f'"{sha256(mark.encode()).hexdigest()[:32]}"'
    return {**HEADERS, "Cache-Control": "private, no-cache", "ETag": tag}


def _unchanged(visit: Visit, mark: str) -> Response | None:
    headers = _headers(mark)
    same = visit.request.headers.get("if-none-match") == headers["ETag"]
    return Response(status_code=304, headers=headers) if same else None


def levels_drawn(by_variant: dict[str, Json], name: str, kind: str) -> Json:
    """One panel of each variant over time, means of intervals, and what it is beside, dashed, where that differs from
    the variants before. The first variant's clock is everybody's: those of a trace begin together."""
    whole, beside = ("used", "guaranteed") if kind == "usage" else ("at most in one", "in all")
    longest = max(by_variant.values(), key=lambda picture: picture["at"][-1])
    x: list[float] = longest["at"][:-1]
    series: list[Json] = []
    known: list[list[Any]] = []
    for variant, picture in by_variant.items():
        panel = next((panel for panel in picture["panels"] if panel["name"] == name), None)
        if panel is None:
            continue
        of = "" if len(by_variant) == 1 else f"{variant}: "
        begins = picture["at"]
        series.append({"label": f"{of}{whole}", "values": _onto(x, begins, panel["usage"]), "variant": variant})
        dashed = _onto(x, begins, panel["guarantee"])
        if dashed not in known:
            known.append(dashed)
            series.append({"label": f"{of}{beside}", "values": dashed, "dash": True, "variant": variant})
    resource = next(iter(by_variant.values()))["resource"]
    return {"x": x, "series": [{**line, "step": True} for line in series], "unit": resource, "of": "time"}


def queue_drawn(by_variant: dict[str, Json], resource: str) -> Json:
    """What was used, wanted and guaranteed of a resource: means of intervals by variant, as ``levels_drawn`` lays them
    over each other."""
    panels: dict[str, Json] = {}
    wanted: dict[str, Json] = {}
    for variant, numbers in by_variant.items():
        begins = [datetime.fromisoformat(moment).timestamp() for moment in numbers["at"]]
        areas: Json = numbers["resources"].get(resource) or {}

        def means(of: str, begins: list[float] = begins, areas: Json = areas) -> list[float]:
            pairs = zip(areas.get(of) or [0.0] * (len(begins) - 1), begins, begins[1:], strict=False)
            return [area / (after - before) for area, before, after in pairs]

        beside = {"at": begins, "resource": resource}
        panels[variant] = {**beside, "panels": [{"name": "", "usage": means("usage"), "guarantee": means("guarantee")}]}
        wanted[variant] = {
            **beside,
            "panels": [{"name": "", "usage": means("demand"), "guarantee": means("guarantee")}],
        }
    drawn = levels_drawn(panels, "", "usage")
    of = levels_drawn(wanted, "", "usage")["series"]
    drawn["series"] += [
        {**line, "label": f"{line['label'].removesuffix('used')}wanted"} for line in of if not line.get("dash")
    ]
    return drawn


def _onto(x: list[float], begins: list[float], values: list[float]) -> list[float | None]:
    """``values`` of the intervals that begin at ``begins``, at each of ``x``; None past the last one."""
    laid: list[float | None] = []
    i = 0
    for moment in x:
        while i + 1 < len(begins) and begins[i + 1] <= moment:
            i += 1
        laid.append(values[i] if begins[0] <= moment < begins[-1] else None)
    return laid


def waits_drawn(by_variant: dict[str, Json]) -> Json:
    """How long a share of the jobs that started waited at most, in percent; of one variant queue by queue."""
    lines: dict[str, list[float]] = {}
    for variant, picture in by_variant.items():
        own: dict[str, list[float]] = picture["lines"]
        lines |= own if len(by_variant) == 1 else {variant: next(iter(own.values()))}
    x = list(range(_SHARES + 1))
    series = [
        {"label": label, "values": [line[round(share * (len(line) - 1) / _SHARES)] if line else None for share in x]}
        for label, line in lines.items()
    ]
    return {"x": x, "series": series, "unit": "seconds", "of": "share"}
