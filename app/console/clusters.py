"""One followed cluster: who follows it and how far behind, what can't be carried over, what was evicted there, and how
often Arbiter would have done the same; and nodes: what each has, what is used of it, all of it by a label."""

from collections import Counter, defaultdict
from datetime import datetime
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.console.api import Json, next_page, places_of, segment
from app.console.situation import paged, requested, steps, units
from app.console.visit import Cursor, Number, PageRoute, Text, Visiting
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


_NODES = 100
_KEYS = 30
_RESOURCES = 6

nodes_pages = APIRouter(route_class=PageRoute)


@nodes_pages.get("/nodes", **page(needs="read"))
async def nodes(
    visit: Visiting, snapshot: Text = "", find: Text = "", label: Text = "", value: Text = "", node: Text = "",
    page: Number = 1,
) -> Response:  # fmt: skip
    """``label``: totals by its values; with ``value`` the nodes that have it. ``node``: what runs there."""
    places = await places_of(visit.api)
    kept = snapshot or (places[0][0]["name"] if places else "")
    state: Json = await visit.api.get(f"/v1/snapshots/{segment(kept)}/state") if kept else {}
    wanted = {"snapshot": kept, "find": find.strip(), "label": label, "value": value, "node": node}
    shown = await to_thread.run_sync(_read, state, wanted, page)
    return visit.show("nodes.html", wanted=wanted, places=places, units=units, **shown)


def _read(state: Json, wanted: dict[str, str], number: int) -> Json:
    every: list[Json] = state.get("nodes", [])
    keys = Counter(key for one in every for key in one.get("labels", {}))
    label, value, part = wanted["label"], wanted["value"], wanted["find"].lower()
    chosen = [
        one for one in every if part in one["name"].lower() and (not value or one.get("labels", {}).get(label) == value)
    ]
    used, here = _used(state, wanted["node"], by_node := {one["name"]: one for one in chosen})
    groups = _groups(chosen, used, label) if label and not value else []
    rows = paged(chosen, number, _NODES)
    return {
        "keys": [key for key, _ in keys.most_common(_KEYS)],
        "total": len(every),
        "groups": paged(groups, number, _NODES),
        "nodes": rows._replace(rows=[(one, uses(one["capacity"], used[one["name"]])) for one in rows.rows]),
        "here": paged(here, number, _NODES),
        "one": by_node.get(wanted["node"]),
    }


def _used(state: Json, node: str, known: dict[str, Json]) -> tuple[dict[str, Counter[str]], list[tuple[Json, Any]]]:
    """What runs on each of ``known``, in steps by resource, with what others use there; and the workloads of ``node``,
    each with what it holds there."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for name, one in known.items():
        used[name].update({resource: steps(amount, resource) for resource, amount in one.get("occupied", {}).items()})
    here: list[tuple[Json, Any]] = []
    for workload in state.get("workloads", ()):
        held = Counter[str]()
        for task in workload.get("tasks", ()):
            if (name := task.get("node")) in known:
                asked = requested([task])
                used[name].update(asked)
                if name == node:
                    held.update(asked)
        if held:
            here.append((workload, {resource: units(amount, resource) for resource, amount in held.items()}))
    return used, here


def uses(capacity: Json, used: Counter[str]) -> list[Json]:
    """By resource what there is and what is used of it, in whole units."""
    return [
        {"resource": name, "used": units(used[name], name), "promised": units(steps(of, name), name)}
        for name, of in list(capacity.items())[:_RESOURCES]
    ]


def _groups(chosen: list[Json], used: dict[str, Counter[str]], label: str) -> list[Json]:
    """Totals by the label's values, the largest group first; nodes without it are together."""
    count = Counter[str]()
    has: dict[str, Counter[str]] = defaultdict(Counter)
    takes: dict[str, Counter[str]] = defaultdict(Counter)
    for one in chosen:
        value = one.get("labels", {}).get(label, "")
        count[value] += 1
        has[value].update({resource: steps(amount, resource) for resource, amount in one["capacity"].items()})
        takes[value].update(used[one["name"]])
    return [
        {
            "value": value,
            "nodes": nodes,
            "uses": [
                {"resource": name, "used": units(takes[value][name], name), "promised": units(of, name)}
                for name, of in list(has[value].items())[:_RESOURCES]
            ],
        }
        for value, nodes in count.most_common()
    ]
