"""One followed cluster: who follows it and how far behind, what can't be carried over, what was evicted there, and how
often Arbiter would have done the same; and nodes: what each has, what is used of it, all of it by a label."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console.api import Json, next_page, places_of, segment
from app.console.situation import ordered, paged, steps, units
from app.console.visit import Cursor, Number, PageRoute, Text, Visiting
from app.http.assets import HEADERS
from app.http.openapi import page
from app.solver.kubernetes import HOSTNAME, PODS
from app.solver.model.state import OVER, TaskState

_ROWS = 50
_INKS = {"agreed": "good", "differs": "stop", "unjudged": "wait"}
"""With the colour of their badges. What agreed a moment earlier agreed."""
Outcome = Annotated[Literal["", "agreed", "agreed_earlier", "differs", "unjudged"], Query()]


def _whose(queue: Text = "", job: Text = "") -> dict[str, str]:
    return {"queue": queue.strip(), "job": job.strip()}


def _alike(outcome: Outcome = "", cause: Text = "") -> dict[str, str]:
    return {"outcome": outcome, "cause": cause}


Alike = Annotated[dict[str, str], Depends(_alike)]
Whose = Annotated[dict[str, str], Depends(_whose)]

cluster_pages = APIRouter(route_class=PageRoute)


@cluster_pages.get("/clusters/{name}", **page(needs="read"))
async def cluster(
    visit: Visiting, name: str, alike: Alike, cursor: Cursor = "", older: Cursor = "", finding: Number = 1,
    *, whose: Whose,
) -> Response:  # fmt: skip
    """``cursor`` and ``older``: where the comparisons and the evictions that are shown begin; ``whose``: whose
    evictions."""
    followed: Json = await visit.api.get(f"/v1/clusters/{segment(name)}")
    counts: Json = await visit.api.get("/v1/shadow:counts", {"cluster": name})
    asked = {"cluster": name, **{field: text or None for field, text in alike.items()}}
    compared: Json = await visit.api.get("/v1/shadow", {**asked, "cursor": cursor or None, "limit": _ROWS})
    evicted: Json = await visit.api.get(
        f"/v1/clusters/{segment(name)}/evictions",
        {**{field: text or None for field, text in whose.items()}, "cursor": older or None, "limit": _ROWS},
    )
    used: Json = await visit.api.get(f"/v1/clusters/{segment(name)}/use", {"points": 1})
    findings = {
        (entry["rule"], entry["pointer"], entry["detail"]): entry
        for follower in followed["followers"]
        for entry in follower.get("findings", ())
    }
    chosen = {**alike, **whose, "cursor": cursor, "older": older}
    here = {field: text for field, text in chosen.items() if text}
    return visit.show(
        "cluster.html", cluster=followed, name=name, outcome=alike["outcome"], here=here, agreement=agreement(counts),
        uses=uses_of(name, used),
        findings=paged(list(findings.values()), finding, _ROWS), compared=compared["items"], evicted=evicted["items"],
        following=next_page(compared, "", here, part="#real"),
        earlier=next_page(evicted, "", here, name="older", part="#evicted"),
    )  # fmt: skip


def uses_of(cluster: str, used: Json, queue: str = "") -> list[tuple[str, str]]:
    """Charts of a cluster's use, or of a queue's: the resource of each, and where its numbers are. ``used``: the last
    that is known."""
    of = {"queue": queue} if queue else {}
    resources = sorted({series["resource"] for series in (*used["usage"], *used["waiting"])})
    address = f"/clusters/{segment(cluster)}/use.json"
    return [(name, f"{address}?{urlencode({**of, 'resource': name})}") for name in resources[:_RESOURCES]]


@cluster_pages.get("/clusters/{name}/use.json", **page(needs="read"))
async def use(visit: Visiting, name: str, resource: Text, queue: Text = "") -> Response:
    """What was used of a resource, for the browser to draw: a line for each flavor, and what waited, dashed."""
    used: Json = await visit.api.get(
        f"/v1/clusters/{segment(name)}/use", {"queue": queue or None, "resource": resource}
    )
    series: list[Json] = [
        {"label": f"in {line['flavor']}" if "flavor" in line else "used", "values": line["values"], "step": True}
        for line in used["usage"]
    ]
    series += [{"label": "waits", "values": line["values"], "dash": True, "step": True} for line in used["waiting"]]
    x = [datetime.fromisoformat(moment).timestamp() for moment in used["at"]]
    document = {"x": x, "series": series, "unit": resource, "of": "time"}
    return Response(msgspec.json.encode(document), headers=HEADERS, media_type="application/json")


def agreement(counts: Json) -> Json:
    """A chart's series, and how often each outcome was in all of it."""
    intervals: list[Json] = counts["intervals"]
    each = [Counter[str]() for _ in intervals]
    for here, interval in zip(each, intervals, strict=True):
        for word, times in interval["outcomes"].items():
            here["agreed" if word == "agreed_earlier" else word] += times
    series = [
        {"label": word, "values": [here[word] for here in each], "ink": ink, "dash": False}
        for word, ink in _INKS.items()
    ]
    total = sum(each, Counter[str]())
    x = [datetime.fromisoformat(interval["at"]).timestamp() for interval in intervals]
    judged = total["agreed"] + total["differs"]
    return {"series": {"x": x, "series": series}, "total": total, "judged": judged, "causes": counts["causes"]}


_NODES = 100
_KEYS = 30
_RESOURCES = 6
_NOTHING = msgspec.Raw(b"{}")
Steps = dict[str, int]


class _Domain(msgspec.Struct, gc=False):
    values: list[str]
    count: int


class _Assigned(msgspec.Struct, gc=False):
    levels: list[str]
    domains: list[_Domain]


class _Task(msgspec.Struct, gc=False):
    count: int = 1
    requests: msgspec.Raw = _NOTHING
    node: str | None = None
    state: TaskState = "running"
    topology_assignment: _Assigned | None = None

    def places(self, hosts: Mapping[str, str]) -> Iterable[tuple[str | None, int]]:
        """Nodes and how many of it run on each. ``hosts``: nodes by their label."""
        if (assigned := self.topology_assignment) is None:
            return ((self.node, self.count),)
        if assigned.levels[-1:] != [HOSTNAME]:
            return ()
        return ((hosts.get(domain.values[-1]), domain.count) for domain in assigned.domains)


class _Work(msgspec.Struct, gc=False):
    id: str
    queue: str
    tasks: list[_Task]
    priority: int = 0
    started_at: str | None = None


class _Node(msgspec.Struct, gc=False):
    name: str
    capacity: msgspec.Raw
    occupied: msgspec.Raw = _NOTHING
    labels: dict[str, str] = {}
    schedulable: bool = True


class _State(msgspec.Struct):
    """What pages of nodes read of a state: a tenth of the time that all of 50,000 tasks takes."""

    nodes: list[_Node] = []
    workloads: list[_Work] = []


nodes_pages = APIRouter(route_class=PageRoute)


def _nodes_wanted(
    snapshot: Text = "", find: Text = "", label: Text = "", value: Text = "", node: Text = "", sort: Text = ""
) -> dict[str, str]:
    return {
        "snapshot": snapshot, "find": find.strip(), "label": label, "value": value, "node": node, "sort": sort,
    }  # fmt: skip


@nodes_pages.get("/nodes", **page(needs="read"))
async def nodes(
    visit: Visiting, wanted: Annotated[dict[str, str], Depends(_nodes_wanted)], page: Number = 1
) -> Response:
    """``label``: totals by its values; with ``value`` the nodes that have it. ``node``: what runs there. ``sort``: of
    the nodes, by ``name`` or by ``use``, that of the resource of which most is used."""
    places = await places_of(visit.api)
    snapshot = wanted["snapshot"] or (places[0][0]["name"] if places else "")
    state = (await visit.api.call("GET", f"/v1/snapshots/{segment(snapshot)}/state")).body if snapshot else b"{}"
    wanted = {**wanted, "snapshot": snapshot}
    shown = await to_thread.run_sync(_read, state, wanted, page)
    return visit.show("nodes.html", wanted=wanted, places=places, units=units, **shown)


def _read(text: bytes, wanted: dict[str, str], number: int) -> Json:
    state = msgspec.json.decode(text, type=_State)
    keys = Counter(key for node in state.nodes for key in node.labels)
    label, value, part = wanted["label"], wanted["value"], wanted["find"].lower()
    chosen = [
        node for node in state.nodes if part in node.name.lower() and (not value or node.labels.get(label) == value)
    ]
    known = _Amounts()
    used, here = _used(state, wanted["node"], by_node := {node.name: node for node in chosen}, known)
    groups = _groups(chosen, used, label, known) if label and not value else []
    orders: dict[str, Callable[[_Node], Any]] = {
        "name": lambda node: node.name, "use": lambda node: _fullest(known.of(node.capacity), used[node.name]),
    }  # fmt: skip
    rows = paged(ordered(chosen, wanted["sort"], orders), number, _NODES)
    return {
        "keys": [key for key, _ in keys.most_common(_KEYS)],
        "total": len(state.nodes),
        "groups": paged(groups, number, _NODES),
        "nodes": rows._replace(rows=[(node, uses(known.of(node.capacity), used[node.name])) for node in rows.rows]),
        "here": paged(here, number, _NODES),
        "one": by_node.get(wanted["node"]),
    }


def _fullest(capacity: Steps, used: Steps) -> float | None:
    """The largest part of a resource that is used."""
    return max((used.get(name, 0) / of for name, of in capacity.items() if of), default=None)


class _Amounts:
    """Quantities in steps, by resource; a cluster repeats few, and each is read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Steps] = {}

    def of(self, text: msgspec.Raw) -> Steps:
        """Of an object of JSON."""
        said = bytes(text)
        if (amounts := self._known.get(said)) is None:
            read: Json = msgspec.json.decode(said)
            amounts = self._known[said] = {resource: steps(amount, resource) for resource, amount in read.items()}
        return amounts


def _used(
    state: _State, node: str, chosen: dict[str, _Node], known: _Amounts
) -> tuple[dict[str, Counter[str]], list[tuple[_Work, Json]]]:
    """What runs on each of ``chosen``, in steps by resource, with what others use there; and the workloads of ``node``,
    each with what it holds there in whole units."""
    used = {name: Counter(known.of(node.occupied)) for name, node in chosen.items()}
    hosts = {node.labels.get(HOSTNAME, name): name for name, node in chosen.items()}
    here: list[tuple[_Work, Json]] = []
    for workload in state.workloads:
        held = Counter[str]()
        for task in workload.tasks:
            if task.state in OVER:
                continue
            amounts = known.of(task.requests)
            for name, count in task.places(hosts):
                if (of := used.get(name or "")) is None:
                    continue
                if PODS not in amounts:
                    of[PODS] += count
                for resource, amount in amounts.items():
                    of[resource] += count * amount
                    if name == node:
                        held[resource] += count * amount
        if held:
            here.append((workload, {resource: units(amount, resource) for resource, amount in held.items()}))
    return used, here


def uses(capacity: Steps, used: Steps) -> list[Json]:
    """By resource what there is and what is used of it, in whole units."""
    return [
        {"resource": name, "used": units(used.get(name, 0), name), "promised": units(of, name)}
        for name, of in list(capacity.items())[:_RESOURCES]
    ]


def _groups(chosen: list[_Node], used: dict[str, Counter[str]], label: str, known: _Amounts) -> list[Json]:
    """Totals by the label's values, the largest group first; nodes without it are together."""
    count = Counter[str]()
    has: dict[str, Counter[str]] = defaultdict(Counter)
    takes: dict[str, Counter[str]] = defaultdict(Counter)
    for node in chosen:
        value = node.labels.get(label, "")
        count[value] += 1
        has[value].update(known.of(node.capacity))
        takes[value].update(used[node.name])
    return [
        {"value": value, "nodes": nodes, "uses": uses(has[value], takes[value])} for value, nodes in count.most_common()
    ]
