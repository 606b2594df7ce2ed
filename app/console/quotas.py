"""Trying other quotas: guarantees are dragged, and what a snapshot's waiting work would stop then stands beside now."""

from typing import NamedTuple

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from app.console import situation
from app.console.api import Json, Refused, segment
from app.console.queues import Name
from app.console.verdicts import named, sentence
from app.console.visit import PageRoute, Visit, Visiting
from app.http.openapi import page

_MOST = 200
_STEPS = 200
_FIELD = "quota."
_NOW, _THEN = "with the quotas in force", "with these"

router = APIRouter(route_class=PageRoute)


class Slider(NamedTuple):
    """One queue's guarantee of the resource: all in whole units of it. ``depth``: in the tree."""

    queue: str
    depth: int
    stated: int | float
    value: int | float
    most: int | float
    step: int | float


class Tried(NamedTuple):
    """Decisions as they are and with the quotas tried, ask by ask; ``only``: victims of either alone, by name."""

    pairs: list[tuple[Json, Json]]
    more: list[Json]
    fewer: list[Json]


def quota_of(queue: Json, resource: str) -> Json | None:
    """The quota of a queue's document that states ``resource``: its own, else that of its first flavor that does."""
    quotas = [queue["quota"]] if "quota" in queue else []
    quotas += [f["quota"] for g in queue.get("resource_groups", ()) for f in g.get("flavors", ()) if "quota" in f]
    found = next((quota for quota in quotas if resource in quota), None)
    return None if found is None else found[resource]


@router.get("/queues/quotas", **page(needs="decide"))
async def quotas(visit: Visiting, configuration: Name, snapshot: Name = "", resource: Name = "") -> Response:
    """A slider for each queue that is promised something of the resource."""
    return await _shown(visit, {"configuration": configuration, "snapshot": snapshot, "resource": resource})


@router.post("/queues/quotas", **page(needs="decide"))
async def tried(visit: Visiting) -> Response:
    """Decide what waits as it is, and with the quotas of the form."""
    return await _shown(visit, await visit.form())


async def _shown(visit: Visit, fields: dict[str, str]) -> Response:
    name, snapshot = fields.get("configuration", ""), fields.get("snapshot", "")
    stored = await visit.api.get(f"/v1/configurations/{segment(name)}")
    document: Json = stored["configuration"]
    tree = situation.queues_of(document)
    resources = list(dict.fromkeys(r for one in tree.values() for r in one.guaranteed))
    resource = fields.get("resource") or (resources[0] if resources else "")
    sliders = _sliders(document, tree, resource, fields)
    snapshots = [one["name"] for one in (await visit.api.get("/v1/snapshots"))["items"]]
    found, problem, asks = None, None, list[Json]()
    try:
        if snapshot:
            asks = await _asks(visit, snapshot, resource, fields)
        if asks and any(one.value != one.stated for one in sliders):
            found = await _compared(visit, stored, snapshot, asks, (resource, sliders))
    except Refused as refused:
        problem = refused.document
    status = 200 if problem is None or visit.request.headers.get("hx-request") else int(problem.get("status", 422))
    return visit.show(
        "quotas.html", status, stored=stored, fields=fields, resources=resources, resource=resource, sliders=sliders,
        snapshots=snapshots, snapshot=snapshot, asks=asks, found=found, problem=problem, named=named,
        sentence=sentence, queues=list(tree), total=sum(map(_asked, asks)),
    )  # fmt: skip


def _asked(ask: Json) -> int:
    return sum(int(task.get("count", 1)) for task in ask.get("tasks", ()))


def _sliders(document: Json, tree: dict[str, situation.Queue], resource: str, fields: dict[str, str]) -> list[Slider]:
    """At most 200, in the order of the tree."""
    stated: dict[str, int | float] = {}
    for queue in document.get("queues", ()):
        quota = quota_of(queue, resource)
        if quota is not None and isinstance(quota.get("guaranteed"), int | float | str):
            value = situation.units(situation.steps(quota["guaranteed"], resource), resource)
            stated[queue["name"]] = value or 0
    most = 2 * max([*stated.values(), 1])
    step = 1 if most <= _STEPS and all(value == int(value) for value in stated.values()) else most / _STEPS
    return [
        Slider(one.name, one.depth, stated[one.name], _typed(fields, one.name, stated[one.name]), most, step)
        for one in tree.values()
        if one.name in stated
    ][:_MOST]


def _typed(fields: dict[str, str], queue: str, stated: int | float) -> int | float:
    """The value of the form; what is no amount counts as unmoved."""
    try:
        value = float(fields[_FIELD + queue])
    except (KeyError, ValueError):
        return stated
    if not 0 <= value < 2**62:
        return stated
    return int(value) if value == int(value) else value


async def _asks(visit: Visit, snapshot: str, resource: str, fields: dict[str, str]) -> list[Json]:
    """What waits beside the snapshot; where nothing does, the one that the form describes. Raises Refused."""
    waiting: list[Json] = (await visit.api.get(f"/v1/snapshots/{segment(snapshot)}/asks")).get("items", [])
    queue = fields.get("queue", "")
    if waiting or not queue:
        return waiting
    wanted = {resource: fields.get("amount") or "1"}
    priority = fields.get("priority", "").strip()
    task = {"name": "main", "requests": wanted}
    asked: Json = {"id": "an ask like this", "queue": queue, "tasks": [task]}
    return [{**asked, "priority": int(priority)} if priority.lstrip("-").isdigit() else asked]


async def _compared(
    visit: Visit, stored: Json, snapshot: str, asks: list[Json], moved: tuple[str, list[Slider]]
) -> Tried:
    """Raises Refused."""
    resource, sliders = moved
    document: Json = msgspec.json.decode(msgspec.json.encode(stored["configuration"]))
    values = {one.queue: one.value for one in sliders if one.value != one.stated}
    for queue in document.get("queues", ()):
        quota = quota_of(queue, resource) if queue["name"] in values else None
        if quota is not None:
            quota["guaranteed"] = values[queue["name"]]
    state = await visit.api.get(f"/v1/snapshots/{segment(snapshot)}/state")
    answer = await visit.api.ask("/v1/comparisons", {
        "configuration": f"{stored['name']}@{stored['revision']}", "state": state, "asks": asks,
        "variants": [{"name": _NOW}, {"name": _THEN, "configuration": document}],
    })  # fmt: skip
    before, after = (variant["answer"]["decisions"] for variant in answer["variants"])
    stopped = [{named(v): v for one in decisions for v in one["victims"]} for decisions in (before, after)]
    return Tried(
        list(zip(before, after, strict=True))[:50],
        [v for name, v in stopped[1].items() if name not in stopped[0]][:_MOST],
        [v for name, v in stopped[0].items() if name not in stopped[1]][:_MOST],
    )
