"""Simulations: the list, one with its progress and what its variants came to, its events and rounds, starting one."""

from collections import Counter
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.console.api import Json, Refused, segment
from app.console.ask import Malformed, document
from app.console.circle import Dot, Edge, circle
from app.console.measures import MEASURES
from app.console.pictures import pictures_of
from app.console.verdicts import paged
from app.console.visit import PageRoute, Visit, Visiting
from app.console.words import pretty
from app.http.openapi import page
from app.simulations.examples import SIMULATION
from app.solver.registry import ENGINES

_PAGE = 50
_LINES = 200
_QUEUES = 100
_LOOPS = 6
_ACTIVE = ("queued", "running")
Cursor = Annotated[str, Query(max_length=1024)]
Variant = Annotated[str | None, Query(max_length=512)]
First = Annotated[int, Query(alias="from", ge=0, le=2**53)]
Number = Annotated[int, Query(ge=1, le=10**6)]

router = APIRouter(route_class=PageRoute)


class Turn(NamedTuple):
    """A loop of a variant, its jobs on a circle."""

    variant: str
    loop: Json
    dots: list[Dot]
    edges: list[Edge]


@router.get("/simulations", **page(needs="read"))
async def simulations(visit: Visiting, cursor: Cursor = "") -> Response:
    """Newest first, with how far each is."""
    found = await visit.api.get("/v1/simulations", {"cursor": cursor or None, "limit": _PAGE})
    return visit.show(
        "simulations.html", found=found["items"], following=found.get("next_cursor"), first=not cursor, active=_ACTIVE
    )  # fmt: skip


@router.get("/simulations/{id}", **page(needs="read"))
async def simulation(visit: Visiting, id: UUID, page: Number = 1, drawn: Variant = None) -> Response:  # noqa: A002
    """How far it is; once done, what each variant came to, side by side."""
    found: Json = await visit.api.get(f"/v1/simulations/{id}")
    variants: list[Json] = found.get("variants", [])
    queues = list(dict.fromkeys(name for one in variants for name in one["summary"].get("queues", {})))
    return visit.show(
        "simulation.html", id=str(id), found=found, variants=variants, active=found["status"] in _ACTIVE,
        measures=MEASURES, queues=paged(queues, page, _QUEUES), turns=_turns(variants),
        pictures=pictures_of(found, drawn), drawn=drawn,
    )  # fmt: skip


def _turns(variants: list[Json]) -> list[Turn]:
    """The first loops of each variant."""
    found: list[Turn] = []
    for one in variants:
        for loop in one["summary"].get("first_loops", [])[:_LOOPS]:
            pairs = Counter((e["by"], e["job"]) for e in loop.get("evictions", ()) if e.get("by"))
            found.append(Turn(one.get("name", ""), loop, *circle(pairs)))
    return found


@router.post("/simulations/{id}/stop", **page(needs="decide"))
async def stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Stop it; one that has ended is forgotten."""
    await visit.api.call("DELETE", f"/v1/simulations/{id}")
    still = await visit.api.find(f"/v1/simulations/{id}")
    return visit.go("/simulations" if still is None else f"/simulations/{id}")


@router.get("/simulations/{id}/events", **page(needs="read"))
async def events(visit: Visiting, id: UUID, variant: Variant = None, first: First = 0) -> Response:  # noqa: A002
    """What happened, in order."""
    return await _listed(visit, id, variant, first, "events")


@router.get("/simulations/{id}/rounds", **page(needs="read"))
async def rounds(visit: Visiting, id: UUID, variant: Variant = None, first: First = 0) -> Response:  # noqa: A002
    """What was asked in each round, and what came of it."""
    return await _listed(visit, id, variant, first, "rounds")


@router.get("/simulations/{id}/jobs", **page(needs="read"))
async def jobs(visit: Visiting, id: UUID, variant: Variant = None, first: First = 0) -> Response:  # noqa: A002
    """What became of each job."""
    return await _listed(visit, id, variant, first, "jobs")


async def _listed(visit: Visit, identity: UUID, variant: str | None, first: int, kind: str) -> Response:
    at = f"/v1/simulations/{identity}"
    found = await visit.api.get(at)
    query = {"variant": variant or None, "from": first, "limit": _LINES + 1}
    lines = (await visit.api.call("GET", f"{at}/{kind}", query)).body.splitlines()
    return visit.show(
        "simulation_lines.html", id=str(identity), found=found, kind=kind, variant=variant or "", first=first,
        lines=[msgspec.json.decode(line) for line in lines[:_LINES]], more=len(lines) > _LINES, size=_LINES,
    )  # fmt: skip


@router.post("/simulations/{id}/rounds/{n}", **page(needs="decide"))
async def decide_round(visit: Visiting, id: UUID, n: int) -> Response:  # noqa: A002
    """A round's request, decided with its reasons; the decision's page says why."""
    variant = (await visit.form()).get("variant") or None
    asked = await visit.api.get(f"/v1/simulations/{id}/rounds/{n}/request", {"variant": variant})
    made = await visit.api.ask("/v1/decisions", {**asked, "explain": "full"})
    return visit.go(f"/decisions/{made['id']}")


@router.get("/simulate", **page(needs="decide"))
async def simulate(visit: Visiting) -> Response:
    """A request to start with."""
    return await _begun(visit, {"request": pretty(SIMULATION)}, None)


@router.post("/simulate", **page(needs="decide"))
async def simulated(visit: Visiting) -> Response:
    """Start it, and go where its progress is."""
    fields = await visit.form()
    try:
        request = _request(fields)
        made = await visit.api.ask("/v1/simulations", request)
    except Malformed as wrong:
        return await _begun(visit, fields, {"title": "Invalid input", "detail": wrong.detail, "errors": []})
    except Refused as refused:
        return await _begun(visit, fields, refused.document)
    return visit.go(f"/simulations/{segment(made['id'])}")


def _request(fields: dict[str, str]) -> Json:
    """The request with what the fields beside it say. Raises Malformed."""
    request = document(fields.get("request", ""), "request")
    request |= {name: fields[name] for name in ("configuration", "trace") if fields.get(name)}
    chosen = [engine for engine in ENGINES if fields.get(f"engine-{engine}")]
    if chosen:
        request["variants"] = [{"name": engine, "engine": engine} for engine in chosen]
    return request


async def _begun(visit: Visit, fields: dict[str, str], problem: Json | None) -> Response:
    names, traces = list[str](), list[str]()
    if visit.may("read"):
        names = [one["name"] for one in (await visit.api.get("/v1/configurations", {"limit": 500}))["items"]]
        traces = [one["name"] for one in (await visit.api.get("/v1/traces", {"limit": 500}))["items"]]
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show(
        "simulate.html", status, fields=fields, problem=problem, names=names, traces=traces, engines=list(ENGINES)
    )
