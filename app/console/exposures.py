"""Who: anything by a part of its name, all that happened to one workload, decided here or really done, and who is next:
what would evict each running workload, and what waits in the order in which it would go."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import Api, ApiError, Json, next_page, places_of, segment, status_of
from app.console.situation import ordered, paged
from app.console.visit import Cursor, Number, PageRoute, Text, Visit, Visiting
from app.console.words import amounts
from app.http.openapi import page

_ACTIVE = ("queued", "running")
_LISTED = 20
_ROWS = 100
STANDINGS = {
    "now": "what waits stops it",
    "next": "an ask that nobody has made would",
    "spared": "no ask that was tried takes it",
    "safe": "a rule keeps it",
}

exposures_pages = APIRouter(route_class=PageRoute)


@exposures_pages.get("/next", **page(needs="read"))
async def who_is_next(visit: Visiting, snapshot: Text = "") -> Response:
    """Where to ask, and what was asked before."""
    return await _asking(visit, {"snapshot": snapshot}, None)


@exposures_pages.post("/next", **page(needs="decide"))
async def expose(visit: Visiting) -> Response:
    """Begin, and go where its progress is."""
    fields = {name: text.strip() for name, text in (await visit.form()).items()}
    body: Json = {"state": {"snapshot": fields.get("snapshot", "")}, "asks": "pending"}
    body |= {name: fields[name] for name in ("configuration", "queue", "horizon") if fields.get(name)}
    try:
        body |= {name: int(fields[name]) for name in ("decisions", "rounds") if fields.get(name)}
        job = await visit.api.ask("/v1/exposures", body)
    except ValueError:
        return await _asking(visit, fields, {"title": "Invalid input", "detail": "How many is a whole number."})
    except ApiError as refused:
        return await _asking(visit, fields, refused.document)
    return visit.go(f"/next/{segment(job['id'])}")


async def _asking(visit: Visit, fields: Json, problem: Json | None) -> Response:
    places, before = list[tuple[Json, str | None]](), list[Json]()
    if visit.may("read"):
        places = await places_of(visit.api)
        before = (await visit.api.get("/v1/exposures", {"limit": _LISTED}))["items"]
    return visit.show(
        "next.html", status_of(problem), fields=fields, problem=problem, before=before, active=_ACTIVE,
        choices=places,
    )  # fmt: skip


_ORDERS: dict[str, Callable[[tuple[int, Json]], Any]] = {
    "rank": lambda row: row[0], "name": lambda row: row[1]["workload"], "queue": lambda row: row[1]["queue"],
    "priority": lambda row: row[1].get("priority", 0),
}  # fmt: skip


@exposures_pages.get("/next/{id}", **page(needs="read"))
async def exposures(
    visit: Visiting, id: UUID, standing: Text = "", queue: Text = "", find: Text = "", page: Number = 1,  # noqa: A002
    sort: Text = "",
) -> Response:  # fmt: skip
    """How far it is; once done who is next, the most exposed first, and in which order what waits would go."""
    job: Json = await visit.api.get(f"/v1/exposures/{id}")
    outcome: Json = job.get("outcome") or {}
    every: list[Json] = outcome.get("exposures", [])
    wanted = {"standing": standing, "queue": queue.strip(), "find": find.strip(), "sort": sort}
    part = wanted["find"].lower()
    chosen = [
        (rank, exposure)
        for rank, exposure in enumerate(every, 1)
        if standing in ("", exposure["standing"]) and wanted["queue"] in ("", exposure["queue"])
        and (part in exposure["workload"].lower())
    ]  # fmt: skip
    return visit.show(
        "exposures.html", id=str(id), found=job, outcome=outcome, active=job["status"] in _ACTIVE,
        counts=Counter(exposure["standing"] for exposure in every), standings=STANDINGS, wanted=wanted, threat=threat,
        queues=sorted({exposure["queue"] for exposure in every}), total=len(every),
        lines=paged(ordered(chosen, sort, _ORDERS), page, _ROWS),
        asked=paged(outcome.get("order", []), 1, _ROWS), generation=await _generation(visit, job, outcome),
    )  # fmt: skip


async def _generation(visit: Visit, job: Json, outcome: Json) -> int | None:
    """Of the snapshot now, where it has moved on since."""
    used = outcome.get("state", {}).get("generation")
    now = await visit.api.find(f"/v1/snapshots/{segment(job['snapshot'])}") if outcome and job.get("snapshot") else None
    return None if now is None or used is None or now["generation"] == used else now["generation"]


def threat(threatening: Json) -> str:
    """The smallest ask that would take it, in words."""
    ask = threatening["ask"]
    requests: dict[str, Any] = ask["tasks"][0].get("requests", {})
    return f"{threatening['units']} × {amounts(requests)}"


@exposures_pages.post("/next/{id}/why", **page(needs="decide"))
async def explain(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Ask what would stop a workload as a decision, whose page says why. Raises ApiError."""
    workload = (await visit.form()).get("workload", "")
    job: Json = await visit.api.get(f"/v1/exposures/{id}")
    outcome: Json = job.get("outcome") or {}
    exposure = next((e for e in outcome.get("exposures", ()) if e["workload"] == workload), None)
    if exposure is None or not job.get("snapshot") or not (exposure.get("now") or exposure.get("next")):
        detail = "Nothing is there to be asked: the state was sent along, or nothing takes that workload."
        raise ApiError(409, {"title": "Conflict", "detail": detail, "status": 409}, {})
    used = outcome["configuration"]
    body: Json = {
        "engine": outcome["engine"], "now": outcome["now"], "state": {"snapshot": job["snapshot"]}, "explain": "full",
        "configuration": f"{used['name']}@{used['revision']}" if used.get("name") else None,
    }  # fmt: skip
    body |= {"asks": "pending", "mode": "cycle"} if exposure.get("now") else {"asks": [exposure["next"]["ask"]]}
    asked = {name: said for name, said in body.items() if said is not None}
    decided = await visit.api.ask("/v1/decisions", asked, {"purpose": "what-if"})
    ask = exposure["now"]["ask"] if exposure.get("now") else exposure["next"]["ask"]["id"]
    return visit.go(f"/decisions/{decided['id']}?{urlencode({'ask': ask, 'find': workload})}")


@exposures_pages.get("/next/{id}/stop", **page(needs="decide"))
async def ask_to_stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """What stopping or forgetting it takes away, and whether to."""
    job: Json = await visit.api.get(f"/v1/exposures/{id}") if visit.may("read") else {}
    running = job.get("status", "running") in _ACTIVE
    question = "Stop looking?" if running else "Forget this answer?"
    says = "Nothing of what it has found so far is kept." if running else "It can be asked again at any time."
    verb = "Stop it" if running else "Forget it"
    return visit.confirm(question, says, verb, f"/next/{id}/stop", (f"/next/{id}", "Who is next"))


@exposures_pages.post("/next/{id}/stop", **page(needs="decide"))
async def stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Stop it; one that has ended is forgotten."""
    await visit.api.call("DELETE", f"/v1/exposures/{id}")
    still = await visit.api.find(f"/v1/exposures/{id}") if visit.may("read") else None
    return visit.go("/next" if still is None else f"/next/{id}")


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
    answer: Json = await visit.api.get("/v1/find", {"text": wanted, "limit": _MOST}) if wanted else {"items": []}
    hits = [_shown(hit) for hit in answer["items"]]
    typed = visit.request.headers.get("hx-request") == "true"
    whole = list(dict.fromkeys(hit.address for hit in hits if hit.name == wanted))
    if not typed and len(whole) == 1:
        return visit.go(whole[0])
    return visit.show(
        "find.html", text=wanted, hits=_once(hits), nearest=_once([_shown(hit) for hit in answer.get("nearest", ())]),
        away=answer.get("away", False), most=_MOST,
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
            query = {"configuration": configuration, "queue": name} | ({"snapshot": snapshot} if snapshot else {})
            return Nearest(name, kind, f"/queues/of?{urlencode(query)}", where)
        case "queue":
            return Nearest(name, kind, f"/decisions?{urlencode({'queue': name})}", where)
        case "configuration":
            return Nearest(name, kind, f"/configurations/{segment(name)}", "")
        case "snapshot":
            query = {"snapshot": name} | ({"configuration": configuration} if configuration else {})
            return Nearest(name, kind, f"/queues?{urlencode(query)}", "")
        case "node":
            query = {"snapshot": snapshot or "", "node": name}
            return Nearest(name, kind, f"/nodes?{urlencode(query)}", where)
        case "cluster":
            return Nearest(name, kind, f"/clusters/{segment(name)}", "")
        case "exposure":
            return Nearest(name, kind, f"/next/{segment(name)}", "")
        case "decision" | "simulation" | "sweep" | "forecast" | "backtest":
            return Nearest(name, kind, f"/{kind}s/{segment(hit.get('id') or name)}", hit.get("id") or "")
        case _:
            return Nearest(name, kind, f"/why?{urlencode({'workload': name})}", where)


async def nearest_of(visit: Visit, text: str, kinds: tuple[str, ...]) -> list[Nearest]:
    """What of these kinds has ``text`` in its name, or nearly so; nothing where nothing was looked for."""
    if not text:
        return []
    answer: Json = await visit.api.get("/v1/find", {"text": text, "limit": 5 * _NEAREST})
    hits = [*answer["items"], *answer.get("nearest", ())]
    return _once([_shown(hit) for hit in hits if hit["kind"] in kinds and hit["name"] != text])[:_NEAREST]


@finding_pages.get("/why", **page(needs="read"))
async def why(visit: Visiting, workload: Text = "", cursor: Cursor = "") -> Response:
    """Every kept decision that stopped a workload or was asked about it, newest first, and what really befell it."""
    wanted = workload.strip()
    history: Json = {"items": []}
    happened: list[Json] = []
    if wanted:
        query = {"limit": _PAGE, "cursor": cursor or None}
        history = await visit.api.get(f"/v1/workloads/{segment(wanted)}/history", query)
        happened = [] if cursor else await _happened(visit.api, wanted)
    nothing = not history["items"] and not happened
    return visit.show(
        "why.html", workload=wanted, found=history, happened=happened,
        following=next_page(history, "/why", {"workload": wanted}),
        nearest=await nearest_of(visit, wanted, ("workload", "ask")) if nothing else [],
    )  # fmt: skip


async def _happened(api: Api, wanted: str) -> list[Json]:
    """Evictions that followers saw of a workload or a job, newest first; and compared preemptions that stopped it, of
    which none of those tells."""
    seen: dict[str, Json] = {}
    compared: list[Json] = (await api.get("/v1/shadow", {"workload": wanted, "limit": _EVICTIONS}))["items"]
    clusters = [cluster["name"] for cluster in (await api.get("/v1/clusters"))["items"]]
    for name in dict.fromkeys([*clusters, *(comparison["cluster"] for comparison in compared)][:_CLUSTERS]):
        for by in ("workload", "job"):
            query: dict[str, Any] = {by: wanted, "limit": _EVICTIONS}
            for eviction in (await api.get(f"/v1/clusters/{segment(name)}/evictions", query))["items"]:
                seen[eviction["id"]] = eviction
    known = {eviction.get("shadow") for eviction in seen.values()}
    for comparison in compared:
        if comparison["id"] not in known:
            reason = next((v.get("reason") for v in comparison["observed"] if v["workload"] == wanted), None)
            seen[comparison["id"]] = {
                "at": comparison["seen_at"], "cluster": comparison["cluster"], "workload": wanted,
                "by": comparison["ask"], "reason": reason, "outcome": comparison["outcome"], "shadow": comparison["id"],
            }  # fmt: skip
    return sorted(seen.values(), key=lambda eviction: eviction["at"], reverse=True)[:_EVICTIONS]
