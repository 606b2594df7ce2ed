"""The first page, and what is common to all: the router of pages, what browsers are told where nothing is, events.

Events are server-sent, and say that something has happened. One look at a topic serves every open page, and nobody
looks for nobody.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from app.base.errors import ArbiterError, TooManyRequests
from app.console.api import Api, Json, Refused, segment
from app.console.api import Query as Search
from app.console.ask import router as ask_pages
from app.console.configurations import configurations_pages, editing_pages, importing_pages
from app.console.decisions import clusters_pages, decision_pages, log_pages
from app.console.exposures import exposures_pages
from app.console.finding import finding_pages
from app.console.planning import planning_pages
from app.console.queues import queues_pages
from app.console.quotas import quotas_pages
from app.console.sign_in import provider_pages, sign_in_pages
from app.console.simulations import circle, pictures_pages, simulations_pages
from app.console.situation import asks_of
from app.console.visit import PageRoute, Visit, Visiting, failure
from app.http.assets import HEADERS
from app.http.openapi import page
from app.http.responses import http_exception
from app.http.routing import Operations, is_for_people, service

EVERY_SECONDS = 2.0
TOPICS: dict[str, tuple[str, Search]] = {
    "decisions": ("/v1/decisions", {"limit": 1}),
    "simulations": ("/v1/simulations", {"limit": 50}),
    "exposures": ("/v1/exposures", {"limit": 50}),
}
"""What pages follow: the list whose newest entries tell whether anything has happened."""


class Listeners:
    """Open pages, at most ``most``. A topic is looked at while anybody listens to it, however many do."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._marks: dict[str, str] = {}
        self._looked: dict[str, float] = {}

    @property
    def open(self) -> int:
        """How many listen."""
        return self._open

    def join(self) -> None:
        """Raises TooManyRequests where as many listen as may; such a page stays as it was loaded."""
        if self._open >= self._most:
            raise TooManyRequests(f"{self._open} pages listen already", retry_after=60)
        self._open += 1

    def leave(self) -> None:
        """One page less."""
        self._open -= 1

    async def mark(self, topic: str, api: Api) -> str:
        """Changes when something has happened, as of at most a moment ago; with the database away the one that is
        known."""
        now = asyncio.get_running_loop().time()
        if now - self._looked.get(topic, -EVERY_SECONDS) >= EVERY_SECONDS:
            self._looked[topic] = now
            try:
                found = await api.call("GET", *TOPICS[topic])
            except (ArbiterError, Refused):
                return self._marks.get(topic, "")
            finally:
                api.calls.clear()  # one page may stay for long
            self._marks[topic] = sha256(found.body).hexdigest()
        return self._marks.get(topic, "")


_LONGEST_SECONDS = 600.0
_MEDIA = "text/event-stream"

changes_pages = APIRouter(route_class=PageRoute)


@changes_pages.get("/events", **page(needs="read"))
async def events(visit: Visiting, topics: Annotated[str, Query(max_length=64)] = "decisions") -> Response:
    """An event of a topic's name whenever something has happened there, for ten minutes; browsers then come again."""
    if visit.request.method == "HEAD":
        return Response(headers=HEADERS, media_type=_MEDIA)
    wanted = [topic for topic in dict.fromkeys(topics.split(",")) if topic in TOPICS]
    listeners = service(visit.request, Listeners)
    listeners.join()
    try:
        known = {topic: await listeners.mark(topic, visit.api) for topic in wanted}
    except BaseException:
        listeners.leave()
        raise
    return StreamingResponse(_told(visit.api, listeners, known), headers=HEADERS, media_type=_MEDIA)


async def _told(api: Api, listeners: Listeners, known: dict[str, str]) -> AsyncGenerator[bytes]:
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
        listeners.leave()


_NEWEST = 500
_READ = 20
_LABELLED = 50

overview_pages = APIRouter(route_class=PageRoute)


@overview_pages.get("/", **page(needs="read"))
async def overview(visit: Visiting) -> Response:
    """The first page: what is here, and what was decided in the last hour, by outcome, by reason, and who stopped whose
    work."""
    api = visit.api
    configurations = (await api.get("/v1/configurations", {"limit": 100}))["items"]
    labels = {
        one["name"]: (await api.get(f"/v1/configurations/{segment(one['name'])}/labels"))["items"]
        for one in configurations[:_LABELLED]
    }
    snapshots = (await api.get("/v1/snapshots"))["items"]
    since = datetime.now(UTC) - timedelta(hours=1)
    listed = await api.get("/v1/decisions", {"since": f"{since:%Y-%m-%dT%H:%M:%SZ}", "limit": _NEWEST})
    recent: list[Json] = listed["items"]
    reasons, pairs = await _stopped(api, [one for one in recent if one["evictions"]][:_READ])
    dots, edges = circle(pairs)
    return visit.show(
        "overview.html", configurations=configurations, labels=labels, snapshots=snapshots, recent=recent,
        outcomes=Counter(o for one in recent for o in one["outcomes"]), reasons=reasons, dots=dots, edges=edges,
        more=listed.get("next_cursor") is not None, read=_READ, series=by_minute(recent, since),
        evictions=sum(one["evictions"] for one in recent),
    )  # fmt: skip


async def _stopped(api: Api, decisions: list[Json]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Reasons, and pairs of queues, of what was stopped by these decisions."""
    reasons, pairs = Counter[str](), Counter[tuple[str, str]]()
    for one in decisions:
        record = await api.find(f"/v1/decisions/{one['id']}")
        request = await api.find(f"/v1/decisions/{one['id']}/request")
        if record is None or request is None:
            continue
        queues = {ask["id"]: ask["queue"] for ask in asks_of(request)}
        for decision in record["answer"]["decisions"]:
            for victim in decision["victims"]:
                reasons[victim["reason"]] += 1
                pairs[queues.get(decision["ask"], "?"), victim["queue"]] += 1
    return reasons, pairs


def by_minute(decisions: Sequence[Json], since: datetime) -> Json:
    """Decisions of each minute, by outcome, as the chart reads them."""
    start = int(since.timestamp()) // 60
    moments = [start + i for i in range(61)]
    outcomes = ("admit", "preempt", "wait", "infeasible")
    counted = Counter(
        (int(datetime.fromisoformat(one["created_at"]).timestamp()) // 60, outcome)
        for one in decisions
        for outcome in one["outcomes"]
    )
    series = [{"label": o, "values": [counted[minute, o] for minute in moments], "step": True} for o in outcomes]
    return {"x": [60 * minute for minute in moments], "series": series}


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
    ask_pages,
    planning_pages,
    configurations_pages,
    editing_pages,
    simulations_pages,
    pictures_pages,
    quotas_pages,
    importing_pages,
    clusters_pages,
):
    router.routes += part.routes


def install(app: FastAPI) -> None:
    """Answer browsers too where no operation is found."""
    app.add_exception_handler(HTTPException, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    operations: Operations = request.app.state.operations
    if not is_for_people(request.scope, operations.found(request.scope)):
        return await http_exception(request, error)
    detail = f"No page is at {request.url.path[:200]}: the link is old, or mistyped."
    document: dict[str, Any] = {"title": HTTPStatus(error.status_code).phrase, "detail": detail, "errors": []}
    return failure(Visit(request), error.status_code, document)
