"""What is here, and what was decided in the last hour: by outcome, by reason, and who stopped whose work."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import Api, segment
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page

_NEWEST = 500
_READ = 20
_LABELLED = 50
_EVERY = 120
Json = dict[str, Any]

router = APIRouter(route_class=PageRoute)


class Edge(NamedTuple):
    """Work of ``to`` stopped ``times`` times for asks of ``source``, drawn as a curve between two points."""

    source: str
    to: str
    times: int
    path: str
    mutual: bool


class Dot(NamedTuple):
    """A queue on the circle."""

    name: str
    x: float
    y: float


@router.get("/", **page(needs="read"))
async def overview(visit: Visiting) -> Response:
    """The first page."""
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
        queues = {ask["id"]: ask["queue"] for ask in request.get("asks", ())}
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


def circle(pairs: Counter[tuple[str, str]], most: int = 12) -> tuple[list[Dot], list[Edge]]:
    """Queues on a circle and who stopped whose work: two that stop one another show as a loop."""
    names = list(dict.fromkeys(name for pair, _ in pairs.most_common() for name in pair))[:most]
    dots = {
        name: Dot(name, 250 + 150 * math.cos(at), 200 + 150 * math.sin(at))
        for i, name in enumerate(names)
        for at in [2 * math.pi * i / max(len(names), 1) - math.pi / 2]
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
