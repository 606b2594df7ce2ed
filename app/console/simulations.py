"""Pages of simulations: the list, one with its progress and what its variants came to, its pictures, starting one."""

import math
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console.api import ApiError, Json, Reply, names_of, segment, status_of
from app.console.ask import Malformed, document
from app.console.pictures import pictures_of
from app.console.situation import ordered, paged
from app.console.visit import Cursor, PageRoute, Visit, Visiting
from app.console.words import amount, lasted, pretty
from app.http.openapi import page
from app.simulations.router import SIMULATION
from app.solver.engine import ENGINES

_EVERY = 120
_RADIUS = 150.0


class Edge(NamedTuple):
    """Work of ``to`` stopped ``times`` times for ``source``, drawn as a curve between two points."""

    source: str
    to: str
    times: int
    path: str
    mutual: bool


class Dot(NamedTuple):
    """A queue or a job on the circle; the middle is at 250, 200."""

    name: str
    x: float
    y: float


def circle(pairs: Counter[tuple[str, str]], most: int = 12) -> tuple[list[Dot], list[Edge]]:
    """Who stops whom, drawn on a circle: the ``most`` that stop or are stopped oftenest, and a curve from each source
    to whom it stops, so that loops show as such: two that stop one another are one."""
    names = list(dict.fromkeys(name for pair, _ in pairs.most_common() for name in pair))[:most]
    dots = {
        name: Dot(name, 250 + _RADIUS * math.cos(angle), 200 + _RADIUS * math.sin(angle))
        for i, name in enumerate(names)
        for angle in [2 * math.pi * i / max(len(names), 1) - math.pi / 2]
    }
    edges: list[Edge] = []
    for (source, to), count in pairs.most_common():
        if source in dots and to in dots:
            mutual = source != to and (to, source) in pairs
            edges.append(Edge(source, to, count, _curve(dots[source], dots[to]), mutual))
    return list(dots.values()), edges[:_EVERY]


def _curve(a: Dot, b: Dot) -> str:
    if a.name == b.name:
        return f"M {a.x:.0f} {a.y:.0f} c -60 40 60 40 2 2"
    x, y = (a.x + b.x) / 2 + (b.y - a.y) * 0.18, (a.y + b.y) / 2 - (b.x - a.x) * 0.18
    return f"M {a.x:.0f} {a.y:.0f} Q {x:.0f} {y:.0f} {b.x:.0f} {b.y:.0f}"


class Measure(NamedTuple):
    """One row of a summary, of a run or of one queue in it, as people read it. ``of``: its words of a total;
    ``queues``: whether it is also shown queue by queue."""

    title: str
    says: str
    of: Callable[[Json], str]
    queues: bool


def _count(name: str) -> Callable[[Json], str]:
    return lambda total: amount(total.get(name, 0))


def _spread(name: str, statistic: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        spread: Json | None = total.get(name)
        return lasted(None if spread is None else spread.get(statistic, 0))

    return words


def _ratio(name: str, statistic: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        ratio = total.get(name)
        return "–" if ratio is None else f"{ratio.get(statistic, 0):.3g}×"

    return words


def _work(name: str) -> Callable[[Json], str]:
    """Amounts by resource times seconds, in hours."""

    def words(total: Json) -> str:
        hours = {resource: value / 3600 for resource, value in total.get(name, {}).items() if value}
        return ", ".join(f"{amount(value, resource)} {resource}·h" for resource, value in hours.items()) or "none"

    return words


def _shares(name: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        return ", ".join(f"{resource} {100 * value:.3g} %" for resource, value in total.get(name, {}).items()) or "–"

    return words


MEASURES = (
    Measure("Jobs", "asked for", _count("jobs"), True),
    Measure("Finished", "of these", _count("finished"), True),
    Measure("Cancelled", "of these", _count("cancelled"), False),
    Measure("Wait, median", "from being asked for to the first start", _spread("wait", "p50"), True),
    Measure("Wait, 90 %", "nine of ten waited no longer", _spread("wait", "p90"), True),
    Measure("Completion, median", "from being asked for to the finish", _spread("completion", "p50"), False),
    Measure("Completion, 90 %", "nine of ten took no longer", _spread("completion", "p90"), True),
    Measure("Slowdown, 90 %", "completion over the job's own duration", _ratio("slowdown", "p90"), False),
    Measure("Evictions", "how often something was stopped", _count("evictions"), True),
    Measure("Most of one job", "evictions", _count("most_evictions"), False),
    Measure("Work lost", "progress that evictions threw away", _work("work_lost"), True),
    Measure("Used", "held over what is guaranteed, over all of the capacity", _shares("utilisation"), True),
    Measure("Missing", "to the guarantee while there was demand", _work("shortfall"), True),
)


_PAGE = 50
_LINES = 200
_QUEUES = 100
_LOOPS = 6
_ACTIVE = ("queued", "running")
Variant = Annotated[str | None, Query(max_length=512)]
First = Annotated[int, Query(alias="from", ge=0, le=2**53)]
Number = Annotated[int, Query(ge=1, le=10**6)]
Round = Annotated[int | None, Query(alias="round", ge=1, le=2**31)]
Only = Annotated[Literal["", "evictions", "loops"], Query()]
Moment = Annotated[float | None, Query(alias="at", ge=0, le=1e11)]
_MOST_ROUNDS = 1 << 24
_MOST_SORTED = 100_000
"""Jobs that are sorted; of more the first."""
_ORDERS: dict[str, Callable[[Json], Any]] = {
    "name": itemgetter("job"), "queue": itemgetter("queue"), "status": itemgetter("status"),
    "asked": itemgetter("submitted_at"), "start": lambda job: job.get("started_at"),
    "end": lambda job: job.get("ended_at"), "waited": lambda job: job.get("waited", 0),
    "evictions": lambda job: job.get("evictions", 0), "lost": lambda job: job.get("lost", 0),
}  # fmt: skip
Order = Annotated[str, Query(max_length=16)]

simulations_pages = APIRouter(route_class=PageRoute)


class Turn(NamedTuple):
    """A loop of a variant, its jobs on a circle."""

    variant: str
    loop: Json
    dots: list[Dot]
    edges: list[Edge]


@simulations_pages.get("/simulations", **page(needs="read"))
async def simulations(visit: Visiting, cursor: Cursor = "") -> Response:
    """Newest first, with how far each is."""
    listing = await visit.api.get("/v1/simulations", {"cursor": cursor or None, "limit": _PAGE})
    return visit.show(
        "simulations.html", found=listing["items"], following=listing.get("next_cursor"), first=not cursor,
        active=_ACTIVE,
    )  # fmt: skip


@simulations_pages.get("/simulations/{id}", **page(needs="read"))
async def simulation(
    visit: Visiting, id: UUID, page: Number = 1, drawn: Variant = None, queue: Variant = None,  # noqa: A002
) -> Response:  # fmt: skip
    """How far it is; once done, what each variant came to, side by side. ``queue``: whose use is drawn."""
    run: Json = await visit.api.get(f"/v1/simulations/{id}")
    variants: list[Json] = run.get("variants", [])
    queues = list(dict.fromkeys(name for variant in variants for name in variant["summary"].get("queues", {})))
    return visit.show(
        "simulation.html", id=str(id), found=run, variants=variants, active=run["status"] in _ACTIVE,
        measures=MEASURES, queues=paged(queues, page, _QUEUES), turns=_turns(variants),
        pictures=pictures_of(run, drawn, queue if queue in queues else None), drawn=drawn, queue=queue,
        shown_loops=_LOOPS,
    )  # fmt: skip


def _turns(variants: list[Json]) -> list[Turn]:
    """The first loops of each variant."""
    turns: list[Turn] = []
    for variant in variants:
        for loop in variant["summary"].get("first_loops", [])[:_LOOPS]:
            pairs = Counter((e["by"], e["job"]) for e in loop.get("evictions", ()) if e.get("by"))
            turns.append(Turn(variant.get("name", ""), loop, *circle(pairs)))
    return turns


@simulations_pages.get("/simulations/{id}/stop", **page(needs="decide"))
async def ask_to_stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """What stopping or forgetting it takes away, and whether to."""
    run: Json = await visit.api.get(f"/v1/simulations/{id}") if visit.may("read") else {}
    running = run.get("status", "running") in _ACTIVE
    progress: Json = run.get("progress") or {}
    stopping = f"It ends where it is, after {amount(progress.get('rounds', 0))} rounds; what it has told so far stays."
    forgetting = "Its rounds, events, jobs and pictures are deleted, for everybody. There is no way back."
    verb, here = "Stop" if running else "Forget", f"/simulations/{id}"
    says = stopping if running else forgetting
    return visit.confirm(f"{verb} this simulation?", says, f"{verb} it", f"{here}/stop", (here, "The simulation"))


@simulations_pages.post("/simulations/{id}/stop", **page(needs="decide"))
async def stop(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Stop it; one that has ended is forgotten."""
    await visit.api.call("DELETE", f"/v1/simulations/{id}")
    still = await visit.api.find(f"/v1/simulations/{id}")
    return visit.go("/simulations" if still is None else f"/simulations/{id}")


@simulations_pages.get("/simulations/{id}/events", **page(needs="read"))
async def events(visit: Visiting, id: UUID, variant: Variant = None, first: First = 0) -> Response:  # noqa: A002
    """What happened, in order."""
    return await _listed(visit, id, variant, first, "events")


class Look(NamedTuple):
    """Which rounds: only some kind of them, from one on, or from the last that had begun at a second."""

    only: str
    number: int | None
    at: float | None


_ALL = Look("", None, None)


def _look(only: Only = "", number: Round = None, moment: Moment = None) -> Look:
    return Look(only, number, moment)


@simulations_pages.get("/simulations/{id}/rounds", **page(needs="read"))
async def rounds(
    visit: Visiting, id: UUID, variant: Variant = None, first: First = 0,  # noqa: A002
    look: Annotated[Look, Depends(_look)] = _ALL,
) -> Response:  # fmt: skip
    """What was asked in each round, and what came of it."""
    if look.at is not None:
        number = await _round_at(visit, id, variant, look.at)
        return visit.go(f"/simulations/{id}/rounds?{urlencode({'variant': variant or '', 'from': number})}")
    first = first if look.number is None else look.number - 1
    return await _listed(visit, id, variant, first, "rounds", only=look.only)


async def _round_at(visit: Visit, identity: UUID, variant: str | None, moment: float) -> int:
    """Which line of the rounds that is: they are in the order of their times."""
    low, high = 0, _MOST_ROUNDS  # the line at ``low`` has begun by then, that at ``high`` has not, or is not there
    while high - low > 1:
        middle = (low + high) // 2
        query = {"variant": variant or None, "from": middle, "limit": 1}
        line = (await visit.api.call("GET", f"/v1/simulations/{identity}/rounds", query)).body
        begun = line and datetime.fromisoformat(msgspec.json.decode(line)["at"]).timestamp() <= moment
        low, high = (middle, high) if begun else (low, middle)
    visit.api.calls.clear()
    return low


@simulations_pages.get("/simulations/{id}/jobs", **page(needs="read"))
async def jobs(
    visit: Visiting, id: UUID, variant: Variant = None, first: First = 0, sort: Order = "",  # noqa: A002
) -> Response:  # fmt: skip
    """What became of each job."""
    known = sort.removeprefix("-") in _ORDERS
    return await _listed(visit, id, variant, first, "jobs", sort=sort if known else "")


async def _listed(
    visit: Visit, identity: UUID, variant: str | None, first: int, kind: str, *, only: str = "", sort: str = ""
) -> Response:
    address = f"/v1/simulations/{identity}"
    run = await visit.api.get(address)
    begin, most = (0, _MOST_SORTED) if sort else (first, _LINES + 1)
    query = {"variant": variant or None, "from": begin, "limit": most} | ({"only": only} if only else {})
    reply = await visit.api.call("GET", f"{address}/{kind}", query)
    lines = await to_thread.run_sync(_sorted, reply, sort) if sort else reply.lines()
    cut = len(lines) if sort and len(lines) == _MOST_SORTED else 0
    lines = lines[first : first + _LINES + 1] if sort else lines
    following = lines[_LINES]["n"] - 1 if only and len(lines) > _LINES else first + _LINES
    return visit.show(
        "simulation_lines.html", id=str(identity), found=run, kind=kind, variant=variant or "", first=first,
        lines=lines[:_LINES], more=len(lines) > _LINES, size=_LINES, only=only, following=following,
        sort=sort, cut=cut,
    )  # fmt: skip


def _sorted(reply: Reply, sort: str) -> list[Json]:
    return ordered(reply.lines(), sort, _ORDERS)


@simulations_pages.post("/simulations/{id}/rounds/{n}", **page(needs="decide"))
async def decide_round(visit: Visiting, id: UUID, n: int) -> Response:  # noqa: A002
    """A round's request, decided with its reasons; the decision's page says why."""
    variant = (await visit.form()).get("variant") or None
    asked = await visit.api.get(f"/v1/simulations/{id}/rounds/{n}/request", {"variant": variant})
    decided = await visit.api.ask("/v1/decisions", {**asked, "explain": "full"}, {"purpose": "simulation"})
    return visit.go(f"/decisions/{decided['id']}")


@simulations_pages.get("/simulate", **page(needs="decide"))
async def simulate(visit: Visiting) -> Response:
    """A request to start with."""
    return await _begun(visit, {"request": pretty(SIMULATION)}, None)


@simulations_pages.post("/simulate", **page(needs="decide"))
async def simulated(visit: Visiting) -> Response:
    """Start it, and go where its progress is."""
    fields = await visit.form()
    try:
        request = _request(fields)
        run = await visit.api.ask("/v1/simulations", request)
    except Malformed as wrong:
        return await _begun(visit, fields, wrong.document())
    except ApiError as refused:
        return await _begun(visit, fields, refused.document)
    return visit.go(f"/simulations/{segment(run['id'])}")


def _request(fields: dict[str, str]) -> Json:
    """The request with what the fields beside it say. Raises Malformed."""
    request = document(fields.get("request", ""), "request")
    request |= {name: fields[name] for name in ("name", "configuration", "trace") if fields.get(name, "").strip()}
    chosen = [engine for engine in ENGINES if fields.get(f"engine-{engine}")]
    if chosen:
        request["variants"] = [{"name": engine, "engine": engine} for engine in chosen]
    return request


async def _begun(visit: Visit, fields: dict[str, str], problem: Json | None) -> Response:
    names, traces = list[str](), list[str]()
    if visit.may("read"):
        names = await names_of(visit.api, "/v1/configurations")
        traces = await names_of(visit.api, "/v1/traces")
    return visit.show(
        "simulate.html", status_of(problem), fields=fields, problem=problem, names=names, traces=traces,
        engines=list(ENGINES),
    )  # fmt: skip
