"""The first page, and what is common to all: the router of pages, what browsers are told where nothing is, events.

Events are server-sent, and say that something has happened. One look at a topic serves every open page, and nobody
looks for nobody.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from app.auth.audit import Seats
from app.base.errors import ArbiterError
from app.console.access import access_pages, provider_pages, sign_in_pages
from app.console.api import Api, ApiError, Json, segment
from app.console.api import Query as Search
from app.console.ask import planning_pages
from app.console.ask import router as ask_pages
from app.console.clusters import cluster_pages, nodes_pages
from app.console.configurations import configurations_pages, editing_pages, importing_pages
from app.console.decisions import clusters_pages, decision_pages, log_pages
from app.console.exposures import exposures_pages, finding_pages
from app.console.pictures import pictures_pages
from app.console.queues import queues_pages
from app.console.quotas import quotas_pages
from app.console.simulations import circle, simulations_pages
from app.console.studies import studies_pages, traces_pages
from app.console.visit import PageRoute, Visit, Visiting, environment, failure
from app.http.assets import HEADERS
from app.http.openapi import page
from app.http.responses import http_exception
from app.http.routing import Operations, is_for_people, service

EVERY_SECONDS = 2.0
TOPICS: dict[str, list[tuple[str, Search]]] = {
    "decisions": [("/v1/decisions", {"limit": 1})],
    "simulations": [("/v1/simulations", {"limit": 50})],
    "exposures": [("/v1/exposures", {"limit": 50})],
    "forecasts": [("/v1/forecasts", {"limit": 50})],
    "backtests": [("/v1/backtests", {"limit": 50})],
    "sweeps": [("/v1/sweeps", {"limit": 50})],
    "kept": [("/v1/configurations", {"limit": 100}), ("/v1/snapshots", {})],
}
"""What pages follow: the lists whose newest entries tell whether anything has happened."""
_AGE = re.compile(rb'"age_seconds":[^,}]*')
"""What grows by itself."""


class Listeners(Seats):
    """Open pages, at most ``most``. A topic is looked at while anybody listens to it, however many do."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._marks: dict[str, str] = {}
        self._looked: dict[str, float] = {}

    async def mark(self, topic: str, api: Api) -> str:
        """Changes when something has happened, as of at most a moment ago; with the database away the one that is
        known."""
        now = asyncio.get_running_loop().time()
        if now - self._looked.get(topic, -EVERY_SECONDS) >= EVERY_SECONDS:
            self._looked[topic] = now
            try:
                bodies = [(await api.call("GET", *place)).body for place in TOPICS[topic]]
            except (ArbiterError, ApiError):
                return self._marks.get(topic, "")
            finally:
                api.calls.clear()  # one page may stay for long
            self._marks[topic] = sha256(_AGE.sub(b"", b"".join(bodies))).hexdigest()
        return self._marks.get(topic, "")


_LONGEST_SECONDS = 600.0
_MEDIA = "text/event-stream"

changes_pages = APIRouter(route_class=PageRoute)


@changes_pages.get("/events", **page(needs="read"))
async def events(visit: Visiting, topics: Annotated[str, Query(max_length=64)] = "decisions") -> Response:
    """An event of a topic's name whenever something has happened there, for ten minutes; browsers then come again.
    Where as many listen as may, a page stays as it was loaded."""
    if visit.request.method == "HEAD":
        return Response(headers=HEADERS, media_type=_MEDIA)
    wanted = [topic for topic in dict.fromkeys(topics.split(",")) if topic in TOPICS]
    listeners = service(visit.request, Listeners)
    who = listeners.join()
    try:
        known = {topic: await listeners.mark(topic, visit.api) for topic in wanted}
    except BaseException:
        listeners.leave(who)
        raise
    return StreamingResponse(_events(visit.api, listeners, who, known), headers=HEADERS, media_type=_MEDIA)


async def _events(api: Api, listeners: Listeners, who: str, known: dict[str, str]) -> AsyncGenerator[bytes]:
    """What differs from ``known``, the marks of the topics when the page began to listen."""
    try:
        yield b"retry: 5000\n\n"
        end = asyncio.get_running_loop().time() + _LONGEST_SECONDS
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(EVERY_SECONDS)
            for topic, before in known.items():
                known[topic] = await listeners.mark(topic, api)
                if known[topic] != before:
                    yield b"event: %b\ndata: new\n\n" % topic.encode()
            yield b": here\n\n"
    finally:
        listeners.leave(who)


_LISTED = 30
_OUTCOMES = {"admit": "good", "preempt": "stop", "wait": "wait", "infeasible": "wait"}
"""With the colour of their badges; of two that share one the second is dashed."""

overview_pages = APIRouter(route_class=PageRoute)


@overview_pages.get("/", **page(needs="read"))
async def overview(visit: Visiting) -> Response:
    """The first page: what is here, and what schedulers asked in the last hour, by outcome, by reason, and who stopped
    whose work."""
    api = visit.api
    configurations: list[Json] = (await api.get("/v1/configurations", {"limit": _LISTED + 1}))["items"]
    labels = {
        configuration["name"]: (await api.get(f"/v1/configurations/{segment(configuration['name'])}/labels"))["items"]
        for configuration in configurations[:_LISTED]
    }
    counts: Json = await api.get("/v1/decisions:counts", {"purpose": "decision"})
    reasons, pairs = Counter[str](), Counter[tuple[str, str]]()
    for stop in counts["stops"]:
        reasons[stop["reason"]] += stop["times"]
        pairs[stop["by"] or "?", stop["queue"]] += stop["times"]
    dots, edges = circle(pairs)
    outcomes = {o: sum(interval["outcomes"].get(o, 0) for interval in counts["intervals"]) for o in _OUTCOMES}
    return visit.show(
        "overview.html", configurations=configurations, labels=labels, listed=_LISTED,
        snapshots=(await api.get("/v1/snapshots"))["items"], counts=counts, outcomes=outcomes, reasons=reasons,
        dots=dots, edges=edges, series=by_interval(counts["intervals"]),
    )  # fmt: skip


def by_interval(intervals: Sequence[Json]) -> Json:
    """How often each outcome in each interval, as the chart reads them; in the colours of their badges."""
    series = [
        {
            "label": o, "values": [interval["outcomes"].get(o, 0) for interval in intervals], "step": True, "ink": ink,
            "dash": o == "infeasible",
        }
        for o, ink in _OUTCOMES.items()
    ]  # fmt: skip
    return {"x": [datetime.fromisoformat(interval["at"]).timestamp() for interval in intervals], "series": series}


router = APIRouter()
for part in (
    sign_in_pages,
    provider_pages,
    overview_pages,
    changes_pages,
    queues_pages,
    decision_pages,
    log_pages,
    finding_pages,
    exposures_pages,
    access_pages,
    ask_pages,
    planning_pages,
    configurations_pages,
    editing_pages,
    simulations_pages,
    pictures_pages,
    quotas_pages,
    importing_pages,
    clusters_pages,
    cluster_pages,
    nodes_pages,
    studies_pages,
    traces_pages,
):
    router.routes += part.routes


def install(app: FastAPI) -> None:
    """Answer browsers too where no operation is found; the first page is ready for whoever comes first."""
    for name in ("base.html", "parts.html", "overview.html"):
        environment().get_template(name)
    app.add_exception_handler(HTTPException, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    operations: Operations = request.app.state.operations
    if not is_for_people(request.scope, operations.resolve(request.scope)):
        return await http_exception(request, error)
    detail = f"No page is at {request.url.path[:200]}: the link is old, or mistyped."
    document: dict[str, Any] = {"title": HTTPStatus(error.status_code).phrase, "detail": detail, "errors": []}
    return failure(Visit(request), error.status_code, document)
