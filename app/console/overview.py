"""What is here, and what was decided in the last hour: by outcome, by reason, and who stopped whose work."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import Api, Json, segment
from app.console.circle import circle
from app.console.situation import asks_of
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page

_NEWEST = 500
_READ = 20
_LABELLED = 50

router = APIRouter(route_class=PageRoute)


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
