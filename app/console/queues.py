"""What a queue uses beside what is promised to it, and what it has above that, in its engine's own words.

All amounts are those of ``POST /v1/shares``, in whole units. Kueue and YuniKorn say themselves what is above; for KAI
and YTsaurus it is the use that the answer states less the promise that it states.

The queue tree of a configuration, with what a kept snapshot uses of it; and one queue's settings.

Trying other quotas: guarantees are dragged, and what a snapshot's waiting work would stop then stands beside now.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console import situation
from app.console.api import Api, Json, Refused, segment
from app.console.situation import named, paged, sentence
from app.console.visit import PageRoute, Visit, Visiting
from app.http.openapi import page

_MOST_USES = 12


class Words(NamedTuple):
    """``promise``: what an engine calls that which a queue may count on; ``above``: what is used beyond it."""

    promise: str
    above: str


WORDS = {
    "kueue": Words("nominal", "Borrowed"),
    "kai": Words("deserved", "Over quota"),
    "yunikorn": Words("guaranteed", "Over guaranteed"),
    "ytsaurus": Words("strong guarantee", "Above guarantee"),
    "kube-scheduler": Words("promised", "Used"),
}
_PROMISED = {"kueue": "fair_share", "kai": "deserved", "yunikorn": "guaranteed", "ytsaurus": "strong_guarantee",
             "kube-scheduler": "fair_share"}  # fmt: skip


class Use(NamedTuple):
    """One resource. ``promised``: None where nothing is stated or it is unlimited; ``share``: the fair share."""

    resource: str
    used: float
    promised: float | None
    above: float
    share: float | str | None


def uses(engine: str, line: Json) -> list[Use]:
    """Resources of a queue's line in the answer that it uses or that are promised to it."""
    promised = line.get(_PROMISED[engine], {})
    share = line.get("fair_share", {})
    found: list[Use] = []
    for resource in dict.fromkeys((*promised, *line.get("usage", ()))):
        used, due = line["usage"].get(resource, 0), _number(promised, resource)
        if used or due:
            found.append(Use(resource, used, due, _above(engine, line, resource, due), share.get(resource)))
    return found[:_MOST_USES]


def _above(engine: str, line: Json, resource: str, promised: float | None) -> float:
    if engine == "kueue":
        return line["borrowed"].get(resource, 0)
    if engine == "yunikorn":  # what is left of the guarantee is below nothing when more is used
        return max(0, -line["remaining"].get(resource, 0))
    return 0 if promised is None else max(0, line["usage"].get(resource, 0) - promised)


def _number(amounts: Mapping[str, Any], resource: str) -> float | None:
    found = amounts.get(resource)
    return found if isinstance(found, int | float) else None


_SHOWN = 200
_LATELY = 10
Text = Annotated[str, Query(max_length=2048)]
Name = Annotated[str, Query(max_length=256)]
Number = Annotated[int, Query(ge=1, le=10**6)]
Queues = dict[str, situation.Queue]

queues_pages = APIRouter(route_class=PageRoute)


def _wanted(configuration: Name = "", snapshot: Name = "", find: Text = "", under: Text = "", sort: Name = "") -> Json:
    return {"configuration": configuration, "snapshot": snapshot, "find": find.strip(), "under": under, "sort": sort}


@queues_pages.get("/queues", **page(needs="read"))
async def queues(visit: Visiting, wanted: Annotated[Json, Depends(_wanted)], page: Number = 1) -> Response:
    """Search, fold, sort."""
    names = [one["name"] for one in (await visit.api.get("/v1/configurations", {"limit": 500}))["items"]]
    snapshots = (await visit.api.get("/v1/snapshots"))["items"]
    chosen = wanted["configuration"] or ("example" if "example" in names else names[0] if names else "")
    stored = await visit.api.get(f"/v1/configurations/{segment(chosen)}") if chosen else None
    tree = situation.queues_of(stored["configuration"]) if stored else {}
    told, problem = await _shares(visit.api, chosen, wanted["snapshot"])
    shares: dict[str, Json] = told.get("queues", {})
    resources = list(dict.fromkeys(r for one in tree.values() for r in (*one.guaranteed, *one.limit)))[:4]
    rows = paged(_shown(tree, wanted, shares), page, _SHOWN)
    return visit.show(
        "queues.html", names=names, snapshots=snapshots, wanted={**wanted, "configuration": chosen}, stored=stored,
        tree=tree, rows=rows, shares=shares, problem=problem, resources=resources,
        uses={one.name: uses(told["engine"], shares.get(one.name, {})) for one in rows.rows if told},
        words=WORDS.get(told.get("engine", "")),
        units=situation.units, way=situation.above(tree, wanted["under"] or None)[::-1],
        sizes={one.name: len(one.children) for one in tree.values()},
    )  # fmt: skip


async def _shares(api: Api, configuration: str, snapshot: str) -> tuple[Json, str | None]:
    """What the snapshot uses, as the engine counts it, or nothing; why not, where that can't be told."""
    if not snapshot or not configuration:
        return {}, None
    if not api.may("decide"):
        return {}, "What a snapshot uses is a question: that needs scope decide."
    try:
        asked = {"configuration": configuration, "state": {"snapshot": snapshot}}
        return await api.ask("/v1/shares", asked), None
    except Refused as refused:
        return {}, refused.detail


def _shown(tree: Queues, wanted: Json, shares: dict[str, Json]) -> list[situation.Queue]:
    """All of a small tree; of a large one what is asked for: a search, a subtree, else the two upper levels."""
    every = list(tree.values())
    if wanted["find"]:
        every = [one for one in every if wanted["find"].lower() in one.name.lower()]
    elif wanted["under"] in tree:
        every = _below(tree, wanted["under"])
    elif len(every) > _SHOWN:
        every = [one for one in every if one.depth <= 1]
    if wanted["sort"] == "name":
        every.sort(key=lambda one: one.name)
    elif wanted["sort"] == "share":
        every.sort(key=lambda one: -float(shares.get(one.name, {}).get("share") or 0))
    return every


def _below(tree: Queues, top: str) -> list[situation.Queue]:
    found, waiting = list[situation.Queue](), [top]
    while waiting:
        one = tree[waiting.pop()]
        found.append(one)
        waiting += reversed(one.children)
    return found


@queues_pages.get("/queues/of", **page(needs="read"))
async def queue(visit: Visiting, configuration: Name, queue: Text, snapshot: Name = "", page: Number = 1) -> Response:
    """One queue: what runs and waits there in a snapshot, and its settings with where each comes from."""
    stored = await visit.api.get(f"/v1/configurations/{segment(configuration)}")
    tree = situation.queues_of(stored["configuration"])
    found = await visit.api.get(f"/v1/configurations/{segment(configuration)}/queues/{segment(queue)}")
    effective: Json = {}
    problem = None
    if visit.may("decide"):
        try:
            asked = {"configuration": configuration}
            effective = (await visit.api.ask("/v1/effective-settings", asked))["queues"].get(queue, {})
        except Refused as refused:
            problem = refused.detail
    documents = {one["name"]: one for one in stored["configuration"].get("queues", ())}
    engine = stored["configuration"].get("engine", "kueue")
    way = situation.above(tree, queue)
    here = frozenset(one.name for one in _below(tree, queue))
    running, waiting = await _work(visit.api, snapshot, here) if snapshot else ([], [])
    told, untold = await _shares(visit.api, configuration, snapshot)
    return visit.show(
        "queue.html", name=configuration, queue=queue, stored=stored, document=found["queue"], problem=problem,
        settings=[(key, value, _origin(key, way, documents, engine)) for key, value in effective.items()],
        way=way[::-1], one=tree[queue], units=situation.units, snapshot=snapshot, running=paged(running, page, _SHOWN),
        snapshots=(await visit.api.get("/v1/snapshots"))["items"], waiting=waiting, requested=_requested,
        untold=untold, words=WORDS.get(told.get("engine", "")),
        uses=uses(told["engine"], told["queues"].get(queue, {})) if told else [],
        lately=(await visit.api.get("/v1/decisions", {"queue": queue, "limit": _LATELY}))["items"],
    )  # fmt: skip


async def _work(api: Api, snapshot: str, queues: frozenset[str]) -> tuple[list[Json], list[Json]]:
    """What runs in these queues by a snapshot, and what waits for them beside it. Raises Refused."""
    at = f"/v1/snapshots/{segment(snapshot)}"
    state: Json = await api.get(f"{at}/state")
    running = [one for one in state.get("workloads", ()) if one.get("queue") in queues and not one.get("evicted")]
    return running, [ask for ask in (await api.get(f"{at}/asks"))["items"] if ask["queue"] in queues]


def _requested(one: Json) -> Json:
    """What a workload or an ask wants in all, in whole units by resource."""
    found = situation.requested(one.get("tasks", ()))
    return {resource: situation.units(amount, resource) for resource, amount in found.items()}


def _origin(setting: str, way: list[situation.Queue], documents: dict[str, Json], engine: str) -> str:
    """The nearest queue on the way up whose document states the setting."""
    for one in way:
        if _states(documents[one.name].get(engine), setting) or setting in documents[one.name]:
            return "here" if one is way[0] else one.name
    return "default"


def _states(block: Any, setting: str) -> bool:
    if not isinstance(block, dict):
        return False
    found = cast(Json, block)
    return setting in found or any(_states(value, setting) for value in found.values())


_MOST = 200
_STEPS = 200
_FIELD = "quota."
_NOW, _THEN = "with the quotas in force", "with these"

quotas_pages = APIRouter(route_class=PageRoute)


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


@quotas_pages.get("/queues/quotas", **page(needs="decide"))
async def quotas(visit: Visiting, configuration: Name, snapshot: Name = "", resource: Name = "") -> Response:
    """A slider for each queue that is promised something of the resource."""
    return await _curves_shown(visit, {"configuration": configuration, "snapshot": snapshot, "resource": resource})


@quotas_pages.post("/queues/quotas", **page(needs="decide"))
async def tried(visit: Visiting) -> Response:
    """Decide what waits as it is, and with the quotas of the form."""
    return await _curves_shown(visit, await visit.form())


async def _curves_shown(visit: Visit, fields: dict[str, str]) -> Response:
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
