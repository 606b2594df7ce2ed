"""One followed cluster: who follows it and how far behind, what can't be carried over, what was evicted there, and how
often Arbiter would have done the same."""

from collections import Counter
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.console.api import Json, next_page, segment
from app.console.situation import paged
from app.console.visit import Cursor, Number, PageRoute, Visiting
from app.http.openapi import page

_ROWS = 50
_INKS = {"agreed": "good", "differs": "stop", "unjudged": "wait"}
"""With the colour of their badges. What agreed a moment earlier agreed."""
Outcome = Annotated[Literal["", "agreed", "agreed_earlier", "differs", "unjudged"], Query()]

cluster_pages = APIRouter(route_class=PageRoute)


@cluster_pages.get("/clusters/{name}", **page(needs="read"))
async def cluster(
    visit: Visiting, name: str, outcome: Outcome = "", cursor: Cursor = "", older: Cursor = "", finding: Number = 1,
) -> Response:  # fmt: skip
    """``cursor`` and ``older``: where the comparisons and the evictions that are shown begin."""
    found: Json = await visit.api.get(f"/v1/clusters/{segment(name)}")
    counts: Json = await visit.api.get("/v1/shadow:counts", {"cluster": name})
    asked = {"cluster": name, "outcome": outcome or None, "cursor": cursor or None, "limit": _ROWS}
    compared: Json = await visit.api.get("/v1/shadow", asked)
    evicted: Json = await visit.api.get(
        f"/v1/clusters/{segment(name)}/evictions", {"cursor": older or None, "limit": _ROWS}
    )
    findings = {
        (one["rule"], one["pointer"], one["detail"]): one
        for follower in found["followers"]
        for one in follower.get("findings", ())
    }
    here = {name: text for name, text in {"outcome": outcome, "cursor": cursor, "older": older}.items() if text}
    return visit.show(
        "cluster.html", cluster=found, name=name, outcome=outcome, here=here, agreement=agreement(counts),
        findings=paged(list(findings.values()), finding, _ROWS), compared=compared["items"], evicted=evicted["items"],
        following=next_page(compared, "", here, part="#real"),
        earlier=next_page(evicted, "", here, name="older", part="#evicted"),
    )  # fmt: skip


def agreement(counts: Json) -> Json:
    """A chart's series, and how often each outcome was in all of it."""
    intervals: list[Json] = counts["intervals"]
    each = [Counter[str]() for _ in intervals]
    for here, one in zip(each, intervals, strict=True):
        for word, times in one["outcomes"].items():
            here["agreed" if word == "agreed_earlier" else word] += times
    series = [
        {"label": word, "values": [here[word] for here in each], "ink": ink, "dash": False}
        for word, ink in _INKS.items()
    ]
    total = sum(each, Counter[str]())
    x = [datetime.fromisoformat(one["at"]).timestamp() for one in intervals]
    return {"series": {"x": x, "series": series}, "total": total, "judged": total["agreed"] + total["differs"]}
