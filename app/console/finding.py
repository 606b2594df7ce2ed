"""Finding: anything by a part of its name, and all that happened to one workload, decided here or really done."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import Api, Json, next_page, segment
from app.console.visit import Cursor, PageRoute, Text, Visit, Visiting
from app.http.openapi import page

_MOST = 20
_PAGE = 50
_NEAREST = 5
_CLUSTERS = 20
_EVICTIONS = 20

finding_pages = APIRouter(route_class=PageRoute)


class Nearest(NamedTuple):
    """Something of a name that is nearly the one that was looked for, and where it is shown."""

    name: str
    kind: str
    address: str
    where: str


@finding_pages.get("/find", **page(needs="read"))
async def find(visit: Visiting, text: Text = "") -> Response:
    """What is called so. Whoever typed a whole name that one thing alone has is led there."""
    wanted = text.strip()
    found: Json = await visit.api.get("/v1/find", {"text": wanted, "limit": _MOST}) if wanted else {"items": []}
    hits = [_shown(hit) for hit in found["items"]]
    typed = visit.request.headers.get("hx-request") == "true"
    whole = list(dict.fromkeys(hit.address for hit in hits if hit.name == wanted))
    if not typed and len(whole) == 1:
        return visit.go(whole[0])
    return visit.show(
        "find.html", text=wanted, hits=_once(hits), nearest=_once([_shown(hit) for hit in found.get("nearest", ())]),
        away=found.get("away", False), most=_MOST,
    )  # fmt: skip


def _once(hits: list[Nearest]) -> list[Nearest]:
    """An ask and a workload of one name are the same page."""
    return list({hit.address: hit for hit in reversed(hits)}.values())[::-1]


def _shown(hit: Json) -> Nearest:
    kind, name = hit["kind"], hit["name"]
    configuration, snapshot = hit.get("configuration"), hit.get("snapshot")
    where = f"snapshot {snapshot}" if snapshot else f"configuration {configuration}" if configuration else "log"
    match kind:
        case "queue" if configuration:
            at = {"configuration": configuration, "queue": name} | ({"snapshot": snapshot} if snapshot else {})
            return Nearest(name, kind, f"/queues/of?{urlencode(at)}", where)
        case "queue":
            return Nearest(name, kind, f"/decisions?{urlencode({'queue': name})}", where)
        case "configuration":
            return Nearest(name, kind, f"/configurations/{segment(name)}", "")
        case "snapshot":
            at = {"snapshot": name} | ({"configuration": configuration} if configuration else {})
            return Nearest(name, kind, f"/queues?{urlencode(at)}", "")
        case "node":
            at = {"snapshot": snapshot or "", "node": name}
            return Nearest(name, kind, f"/nodes?{urlencode(at)}", where)
        case "cluster":
            return Nearest(name, kind, f"/clusters/{segment(name)}", "")
        case "simulation" | "decision":
            return Nearest(name, kind, f"/{kind}s/{segment(name)}", "")
        case _:
            return Nearest(name, kind, f"/why?{urlencode({'workload': name})}", where)


async def nearest_of(visit: Visit, text: str, kinds: tuple[str, ...]) -> list[Nearest]:
    """What of these kinds has ``text`` in its name, or nearly so; nothing where nothing was looked for."""
    if not text:
        return []
    found: Json = await visit.api.get("/v1/find", {"text": text, "limit": 5 * _NEAREST})
    hits = [*found["items"], *found.get("nearest", ())]
    return _once([_shown(hit) for hit in hits if hit["kind"] in kinds and hit["name"] != text])[:_NEAREST]


@finding_pages.get("/why", **page(needs="read"))
async def why(visit: Visiting, workload: Text = "", cursor: Cursor = "") -> Response:
    """Every kept decision that stopped a workload or was asked about it, newest first, and what really befell it."""
    wanted = workload.strip()
    found: Json = {"items": []}
    happened: list[Json] = []
    if wanted:
        query = {"limit": _PAGE, "cursor": cursor or None}
        found = await visit.api.get(f"/v1/workloads/{segment(wanted)}/history", query)
        happened = [] if cursor else await _happened(visit.api, wanted)
    nothing = not found["items"] and not happened
    return visit.show(
        "why.html", workload=wanted, found=found, happened=happened,
        following=next_page(found, "/why", {"workload": wanted}),
        nearest=await nearest_of(visit, wanted, ("workload", "ask")) if nothing else [],
    )  # fmt: skip


async def _happened(api: Api, wanted: str) -> list[Json]:
    """Evictions that followers saw of a workload or a job, newest first; and compared preemptions that stopped it, of
    which none of those tells."""
    seen: dict[str, Json] = {}
    compared: list[Json] = (await api.get("/v1/shadow", {"workload": wanted, "limit": _EVICTIONS}))["items"]
    clusters = [one["name"] for one in (await api.get("/v1/clusters"))["items"]]
    for name in dict.fromkeys([*clusters, *(one["cluster"] for one in compared)][:_CLUSTERS]):
        for by in ("workload", "job"):
            query: dict[str, Any] = {by: wanted, "limit": _EVICTIONS}
            for one in (await api.get(f"/v1/clusters/{segment(name)}/evictions", query))["items"]:
                seen[one["id"]] = one
    known = {one.get("shadow") for one in seen.values()}
    for one in compared:
        if one["id"] not in known:
            reason = next((v.get("reason") for v in one["observed"] if v["workload"] == wanted), None)
            seen[one["id"]] = {
                "at": one["seen_at"], "cluster": one["cluster"], "workload": wanted, "by": one["ask"],
                "reason": reason, "outcome": one["outcome"], "shadow": one["id"],
            }  # fmt: skip
    return sorted(seen.values(), key=lambda one: one["at"], reverse=True)[:_EVICTIONS]
