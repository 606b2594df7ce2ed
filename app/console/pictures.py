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

from app.base.errors import NotInstalled
from app.base.lru import Lru
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


def pictures_of(found: Json, variant: str | None, queue: str | None) -> list[Picture]:
    """Those of a run; none of one that is not done. ``variant``: whose evictions, and whose files; ``queue``: of which
    everything is drawn, else of those that used most how much."""
    if found["status"] != "done":
        return []
    names: list[str] = found.get("names", [])
    one = variant or (names[0] if names else None)
    at = f"/simulations/{found['id']}/plots"
    of = f"?{urlencode({'variant': one})}" if one else ""
    every = " by each variant" if len(names) > 1 else ""
    draws = _can_draw()

    def curves(kind: str, title: str, says: str, name: str = "", file: str = of, resource: str = "") -> Picture:
        asked = {field: text for field, text in (("name", name), ("resource", resource)) if text}
        query = f"?{urlencode(asked)}" if asked else ""
        return Picture(title, f"{at}/{kind}.json{query}", says, f"{at}/{kind}.svg{file}" if draws else "")

    used = f"What was used over time{every}, beside what is guaranteed"
    pictures = [
        curves("usage", "Usage over time, all queues together", used),
        curves("waits", "Waits for the first start", f"How long jobs{every} waited, shortest first", file=""),
    ]
    if queue is not None:
        return [
            Picture(
                f"{queue}: {resource} over time",
                f"{at}/queue.json?{urlencode({'name': queue, 'resource': resource})}",
                f"What {queue} used of {resource} over time{every}, what is guaranteed to it, and what it wanted",
            )
            for resource in resources_of(found["variants"], queue)
        ]
    pictures += [
        curves("usage", f"Usage over time of {name}", f"What {name} used over time{every}", name)
        for name in _largest(found["variants"][0]["summary"])
    ]
    for flavor, level in _levels(found):
        title = f"Free over time, {flavor}: {level}"
        says = f"At most in one {level} of {flavor}{every}, beside all together"
        pictures.append(curves("fragmentation", title, says, f"{flavor}: {level}"))
    whose = f" by {one}" if one else ""
    told = f"How often work of each queue was evicted for each other queue{whose}"
    file = f"{at}/evictions.svg{of}" if draws else ""
    pictures.append(Picture(f"Evictions{whose}", f"{at}/evictions{of}", told, file, part=True))
    return pictures


def _largest(summary: Json) -> list[str]:
    """The queues of which there are panels: that used most of what was used most, by name; none where one is all."""
    shares: dict[str, float] = summary["total"].get("utilisation", {})
    most = min(shares, key=lambda name: (-shares[name], name), default="")
    used = {name: one.get("used", {}).get(most, 0) for name, one in summary.get("queues", {}).items()}
    whole = summary["total"].get("used", {}).get(most, 0)
    named = sorted((name for name, amount in used.items() if 0 < amount < whole), key=lambda name: (-used[name], name))
    return sorted(named[:_MOST_QUEUES])


def resources_of(variants: list[Json], queue: str) -> list[str]:
    """The resources that a queue used in any variant, or missed."""
    totals = [one["summary"].get("queues", {}).get(queue, {}) for one in variants]
    every = (
        name for total in totals for of in ("used", "shortfall") for name, amount in total.get(of, {}).items() if amount
    )
    return list(dict.fromkeys(every))[:_MOST_RESOURCES]


def _levels(found: Json) -> list[tuple[str, str]]:
    every = (level for one in found["variants"] for level in one["summary"].get("fragmentation", ()))
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
    at = f"/v1/simulations/{id}"
    await visit.api.get(at)  # who has the picture may still see it only while the run is there
    if (known := _unchanged(visit, f"{id} {kind} {variant}")) is not None:
        return known
    found = await visit.api.call("GET", f"{at}/plots/{kind}.svg", {"variant": variant})
    return Response(found.body, headers=_headers(f"{id} {kind} {variant}"), media_type=_SVG)


@pictures_pages.get("/simulations/{id}/plots/{kind}.json", **page(needs="read"))
async def curves(visit: Visiting, id: UUID, kind: Curves, name: Text = None) -> Response:  # noqa: A002
    """Numbers for the browser: a line for each variant. ``name``: a queue, or a flavor with its level."""
    told: Json = await visit.api.get(f"/v1/simulations/{id}")
    mark = f"{id} {kind} {name} curves"
    if (known := _unchanged(visit, mark)) is not None:
        return known
    names: list[str | None] = [*told.get("names", [])[:_MOST_VARIANTS]] or [None]
    found = {variant or "the run": await _numbers(visit, id, variant, kind) for variant in names}
    document = waits_drawn(found) if kind == "waits" else levels_drawn(found, name or "", kind)
    return Response(msgspec.json.encode(document), headers=_headers(mark), media_type=_JSON)


@pictures_pages.get("/simulations/{id}/plots/queue.json", **page(needs="read"))
async def queue_curves(visit: Visiting, id: UUID, name: Text, resource: Text) -> Response:  # noqa: A002
    """Of one queue and resource what was used, guaranteed and wanted: a line for each variant."""
    told: Json = await visit.api.get(f"/v1/simulations/{id}")
    mark = f"{id} queue {name} {resource}"
    if (known := _unchanged(visit, mark)) is not None:
        return known
    names: list[str | None] = [*told.get("names", [])[:_MOST_VARIANTS]] or [None]
    asked = {"queue": name, "resource": resource, "points": _POINTS}
    found = {variant or "the run": await _numbers(visit, id, variant, "series", **asked) for variant in names}
    document = queue_drawn(found, resource or "")
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
    kept = service(visit.request, Drawn)
    key = identity, variant, f"{kind} {sorted(asked.items())}"
    body = kept.get(key)
    if body is None:
        at = f"/v1/simulations/{identity}/{'series' if asked else f'plots/{kind}.json'}"
        body = (await visit.api.call("GET", at, {"variant": variant, **asked})).body
        kept.put(key, body, len(body))
    return msgspec.json.decode(body)


def _headers(mark: str) -> dict[str, str]:
    tag = f'"{sha256(mark.encode()).hexdigest()[:32]}"'
    return {**HEADERS, "Cache-Control": "private, no-cache", "ETag": tag}


def _unchanged(visit: Visit, mark: str) -> Response | None:
    headers = _headers(mark)
    same = visit.request.headers.get("if-none-match") == headers["ETag"]
    return Response(status_code=304, headers=headers) if same else None


def levels_drawn(found: dict[str, Json], name: str, kind: str) -> Json:
    """One panel of each variant over time, means of intervals, and what it is beside, dashed, where that differs from
    the variants before. The first variant's clock is everybody's: those of a trace begin together."""
    whole, beside = ("used", "guaranteed") if kind == "usage" else ("at most in one", "in all")
    longest = max(found.values(), key=lambda one: one["at"][-1])
    x: list[float] = longest["at"][:-1]
    series: list[Json] = []
    known: list[list[Any]] = []
    for variant, one in found.items():
        panel = next((panel for panel in one["panels"] if panel["name"] == name), None)
        if panel is None:
            continue
        of = "" if len(found) == 1 else f"{variant}: "
        at = one["at"]
        series.append({"label": f"{of}{whole}", "values": _onto(x, at, panel["usage"]), "variant": variant})
        dashed = _onto(x, at, panel["guarantee"])
        if dashed not in known:
            known.append(dashed)
            series.append({"label": f"{of}{beside}", "values": dashed, "dash": True, "variant": variant})
    resource = next(iter(found.values()))["resource"]
    return {"x": x, "series": [{**one, "step": True} for one in series], "unit": resource, "of": "time"}


def queue_drawn(found: dict[str, Json], resource: str) -> Json:
    """What was used, wanted and guaranteed of a resource: means of intervals by variant, as ``levels_drawn`` lays them
    over each other."""
    panels: dict[str, Json] = {}
    wanted: dict[str, Json] = {}
    for variant, one in found.items():
        at = [datetime.fromisoformat(moment).timestamp() for moment in one["at"]]
        areas: Json = one["resources"].get(resource) or {}

        def means(of: str, at: list[float] = at, areas: Json = areas) -> list[float]:
            pairs = zip(areas.get(of) or [0.0] * (len(at) - 1), at, at[1:], strict=False)
            return [area / (after - before) for area, before, after in pairs]

        beside = {"at": at, "resource": resource}
        panels[variant] = {**beside, "panels": [{"name": "", "usage": means("usage"), "guarantee": means("guarantee")}]}
        wanted[variant] = {
            **beside,
            "panels": [{"name": "", "usage": means("demand"), "guarantee": means("guarantee")}],
        }
    drawn = levels_drawn(panels, "", "usage")
    of = levels_drawn(wanted, "", "usage")["series"]
    drawn["series"] += [
        {**one, "label": f"{one['label'].removesuffix('used')}wanted"} for one in of if not one.get("dash")
    ]
    return drawn


def _onto(x: list[float], at: list[float], values: list[float]) -> list[float | None]:
    """``values`` of the intervals that begin at ``at``, at each of ``x``; None past the last one."""
    found: list[float | None] = []
    i = 0
    for moment in x:
        while i + 1 < len(at) and at[i + 1] <= moment:
            i += 1
        found.append(values[i] if at[0] <= moment < at[-1] else None)
    return found


def waits_drawn(found: dict[str, Json]) -> Json:
    """How long a share of the jobs that started waited at most, in percent; of one variant queue by queue."""
    lines: dict[str, list[float]] = {}
    for variant, one in found.items():
        own: dict[str, list[float]] = one["lines"]
        lines |= own if len(found) == 1 else {variant: next(iter(own.values()))}
    x = list(range(_SHARES + 1))
    series = [
        {"label": label, "values": [line[round(share * (len(line) - 1) / _SHARES)] if line else None for share in x]}
        for label, line in lines.items()
    ]
    return {"x": x, "series": series, "unit": "seconds", "of": "share"}
