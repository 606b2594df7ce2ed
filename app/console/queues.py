"""Pages of queues: the tree of a configuration, with what a kept snapshot uses of it, and one queue's settings."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, cast

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console import situation
from app.console.api import Api, Json, Refused, segment
from app.console.situation import paged
from app.console.visit import PageRoute, Text, Visiting
from app.http.openapi import page
from app.solver.engine import Entitlement
from app.solver.registry import facts_of

_MOST_USES = 12


class Use(NamedTuple):
    """One resource. ``promised``: None where nothing is stated or it is unlimited; ``share``: the fair share."""

    resource: str
    used: float
    promised: float | None
    above: float
    share: float | str | None


def uses(engine: str, line: Json) -> list[Use]:
    """Resources of a queue's line in the answer that it uses or that are promised to it, and what it has above that, in
    its engine's own words.

    All amounts are those of ``POST /v1/shares``, in whole units. Kueue and YuniKorn say themselves what is above; for
    KAI and YTsaurus it is the use that the answer states less the promise that it states.
    """
    entitlement = facts_of(engine).entitlement
    if entitlement is None:
        return []
    promised = line.get(entitlement.field, {})
    share = line.get("fair_share", {})
    found: list[Use] = []
    for resource in dict.fromkeys((*promised, *line.get("usage", ()))):
        used, due = line["usage"].get(resource, 0), _number(promised, resource)
        if used or due:
            found.append(Use(resource, used, due, _above(entitlement, line, resource, due), share.get(resource)))
    return found[:_MOST_USES]


def _above(entitlement: Entitlement, line: Json, resource: str, promised: float | None) -> float:
    if entitlement.borrowed is not None:
        return line[entitlement.borrowed].get(resource, 0)
    if entitlement.remaining is not None:
        return max(0, -line[entitlement.remaining].get(resource, 0))
    return 0 if promised is None else max(0, line["usage"].get(resource, 0) - promised)


def _number(amounts: Mapping[str, Any], resource: str) -> float | None:
    found = amounts.get(resource)
    return found if isinstance(found, int | float) else None


_SHOWN = 200
_LATELY = 10
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
        words=facts_of(told["engine"]).entitlement if told else None,
        units=situation.units, way=situation.above(tree, wanted["under"] or None)[::-1],
        sizes={one.name: len(one.children) for one in tree.values()},
        topologies=told.get("topologies", {}), most=_SHOWN,
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
        untold=untold, words=facts_of(told["engine"]).entitlement if told else None,
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
