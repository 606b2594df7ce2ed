"""Pages of queues: the tree of a configuration, with what a kept snapshot uses of it, and one queue's settings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, cast

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console import situation
from app.console.api import Api, Json, Refused, segment
from app.console.clusters import uses_of
from app.console.situation import ordered, paged
from app.console.visit import PageRoute, Text, Visiting
from app.http.openapi import page
from app.solver.engine import Entitlement, facts_of
from app.solver.engines import FIRST


class Use(NamedTuple):
    """One resource, of a flavor where the engine counts by those. ``promised``: None where nothing is stated or it is
    unlimited; ``share``: the fair share; ``unused``: what is promised and others may use meanwhile."""

    resource: str
    used: float
    promised: float | None
    above: float
    share: float | str | None
    unused: float = 0
    flavor: str = ""


def uses(engine: str, line: Json) -> list[Use]:
    """Resources of a queue's line in the answer that it uses or that are promised to it, and what it has above that, in
    its engine's own words.

    All amounts are those of ``POST /v1/shares``, in whole units. Kueue and YuniKorn say themselves what is above; for
    KAI and YTsaurus it is the use that the answer states less the promise that it states.
    """
    entitlement = facts_of(engine).entitlement
    if entitlement is None:
        return []
    if "flavors" in line:
        return [
            Use(resource, of["usage"], of["fair_share"], of.get("borrowed", 0), None, of.get("lendable", 0), flavor)
            for flavor, resources in line["flavors"].items()
            for resource, of in resources.items()
            if of["usage"] or of["fair_share"]
        ]
    promised = line.get(entitlement.field, {})
    share = line.get("fair_share", {})
    found: list[Use] = []
    for resource in dict.fromkeys((*promised, *line.get("usage", ()))):
        used, due = line["usage"].get(resource, 0), _number(promised, resource)
        if used or due:
            above = _above(entitlement, line, resource, due)
            found.append(Use(resource, used, due, above, share.get(resource), max(0, (due or 0) - used)))
    return found


def _above(entitlement: Entitlement, line: Json, resource: str, promised: float | None) -> float:
    if entitlement.borrowed is not None:
        return line[entitlement.borrowed].get(resource, 0)
    if entitlement.remaining is not None:
        return max(0, -line[entitlement.remaining].get(resource, 0))
    return 0 if promised is None else max(0, line["usage"].get(resource, 0) - promised)


def _number(amounts: Mapping[str, Any], resource: str) -> float | None:
    found = amounts.get(resource)
    return found if isinstance(found, int | float) else None


class Lent(NamedTuple):
    """What siblings use of one another's: who has how much above its promise, and who leaves how much of its own."""

    parent: str
    cell: situation.Cell
    above: list[tuple[str, float]]
    unused: list[tuple[str, float]]


def lent(tree: Mapping[str, situation.Queue], used: Mapping[str, list[Use]]) -> list[Lent]:
    """Where somebody is above a promise, by the queue whose children share, in the tree's order; the largest first."""
    found: list[Lent] = []
    for parent in tree.values():
        cells: dict[situation.Cell, tuple[list[tuple[str, float]], list[tuple[str, float]]]] = {}
        for name in parent.children:
            for one in used.get(name, ()):
                above, unused = cells.setdefault(situation.Cell(one.resource, one.flavor), ([], []))
                above += [(name, one.above)] if one.above else []
                unused += [(name, one.unused)] if one.unused else []
        found += [
            Lent(parent.name, cell, *(sorted(side, key=lambda of: -of[1]) for side in sides))
            for cell, sides in cells.items()
            if sides[0]
        ]
    return found


class Line(NamedTuple):
    """What a queue is told of one resource, of one flavor. Amounts in steps."""

    cell: situation.Cell
    use: Use | None


def lines(queue: situation.Queue, used: list[Use]) -> list[Line]:
    """What it states, then what it uses beyond that; one empty line where there is nothing."""
    by_cell = {situation.Cell(one.resource, one.flavor): one for one in used}
    return [Line(cell, by_cell.get(cell)) for cell in dict.fromkeys((*queue.stated(), *by_cell))]


_SHOWN = 200
_LENT = 200
_LATELY = 10
_CLUSTERS = 3
Name = Annotated[str, Query(max_length=256)]
Number = Annotated[int, Query(ge=1, le=10**6)]
Queues = Mapping[str, situation.Queue]

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
    tree = situation.queues_of(stored["configuration"]) if stored else situation.Tree()
    told, problem = await _shares(visit.api, chosen, wanted["snapshot"])
    shares: dict[str, Json] = told.get("queues", {})
    used = {name: uses(told["engine"], shares.get(name, {})) for name in tree} if told else {}
    rows = paged(_shown(tree, wanted, shares, used), page, _SHOWN)
    return visit.show(
        "queues.html", names=names, snapshots=snapshots, wanted={**wanted, "configuration": chosen}, stored=stored,
        tree=tree, rows=rows, shares=shares, problem=problem,
        lines={one.name: lines(one, used.get(one.name, [])) for one in rows.rows},
        borrowing=any(one.borrowing for one in tree.values()), lending=any(one.lending for one in tree.values()),
        limits=any(one.limit for one in tree.values()),
        lent=lent(tree, used)[:_LENT], words=facts_of(told["engine"]).entitlement if told else None,
        units=situation.units, way=situation.above(tree, wanted["under"] or None)[::-1],
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


def _shown(tree: Queues, wanted: Json, shares: dict[str, Json], used: Mapping[str, list[Use]]) -> list[situation.Queue]:
    """All of a small tree; of a large one what is asked for: a search, a subtree, else the two upper levels."""
    every = list(tree.values())
    if wanted["find"]:
        every = [one for one in every if wanted["find"].lower() in one.name.lower()]
    elif wanted["under"] in tree:
        every = _below(tree, wanted["under"])
    elif len(every) > _SHOWN:
        every = [one for one in every if one.depth <= 1]
    keys: dict[str, Callable[[situation.Queue], Any]] = {
        "name": lambda one: one.name, "below": lambda one: len(one.children) or None,
        "share": lambda one: _number(shares.get(one.name, {}), "share"),
        "uses": lambda one: max((u.used / u.promised for u in used.get(one.name, ()) if u.promised), default=None),
    }  # fmt: skip
    return ordered(every, wanted["sort"], keys)


def _below(tree: Queues, top: str) -> list[situation.Queue]:
    found, waiting = list[situation.Queue](), [top]
    while waiting:
        one = tree[waiting.pop()]
        found.append(one)
        waiting += reversed(one.children)
    return found


class Listed(NamedTuple):
    """Which of what runs and waits is shown: in which order, and which page of either."""

    sort: str
    runs: int
    waits: int


_FIRST = Listed("", 1, 1)


def _listed(sort: Name = "", page: Number = 1, waits: Number = 1) -> Listed:
    return Listed(sort, page, waits)


@queues_pages.get("/queues/of", **page(needs="read"))
async def queue(
    visit: Visiting, configuration: Name, queue: Text, snapshot: Name = "",
    listed: Annotated[Listed, Depends(_listed)] = _FIRST,
) -> Response:  # fmt: skip
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
    engine = stored["configuration"].get("engine", FIRST)
    way = situation.above(tree, queue)
    here = frozenset(one.name for one in _below(tree, queue))
    work = await _work(visit.api, snapshot, here)
    running, waiting = (ordered(rows, listed.sort, _orders(tree[queue])) for rows in work)
    told, untold = await _shares(visit.api, configuration, snapshot)
    return visit.show(
        "queue.html", clusters=await _clusters(visit.api, configuration, queue),
        name=configuration, queue=queue, stored=stored, document=found["queue"], problem=problem,
        settings=[(key, value, _origin(key, way, documents, engine)) for key, value in effective.items()],
        way=way[::-1], one=tree[queue], lines=lines, units=situation.units, snapshot=snapshot, listed=listed,
        snapshots=(await visit.api.get("/v1/snapshots"))["items"], running=paged(running, listed.runs, _SHOWN),
        waiting=paged(waiting, listed.waits, _SHOWN), requested=partial(_requested, flavored=tree.flavored),
        untold=untold, words=facts_of(told["engine"]).entitlement if told else None,
        used=uses(told["engine"], told["queues"].get(queue, {})) if told else [],
        lately=(await visit.api.get("/v1/decisions", {"queue": queue, "limit": _LATELY}))["items"],
    )  # fmt: skip


async def _clusters(api: Api, configuration: str, queue: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The charts of the queue's use in each followed cluster whose configuration that is."""
    followed = [
        one["name"] for one in (await api.get("/v1/clusters"))["items"] if one["configuration"] == configuration
    ]
    last = {"queue": queue, "points": 1}
    found = [(name, await api.get(f"/v1/clusters/{segment(name)}/use", last)) for name in followed[:_CLUSTERS]]
    return [(name, uses_of(name, used, queue)) for name, used in found]


async def _work(api: Api, snapshot: str, queues: frozenset[str]) -> tuple[list[Json], list[Json]]:
    """What runs in these queues by a snapshot, and what waits for them beside it. Raises Refused."""
    if not snapshot:
        return [], []
    at = f"/v1/snapshots/{segment(snapshot)}"
    state: Json = await api.get(f"{at}/state")
    running = [one for one in state.get("workloads", ()) if one.get("queue") in queues and not one.get("evicted")]
    return running, [ask for ask in (await api.get(f"{at}/asks"))["items"] if ask["queue"] in queues]


def _requested(one: Json, *, flavored: bool) -> dict[situation.Cell, int | float | None]:
    """What a workload or an ask wants in all, in whole units."""
    found = situation.held(one.get("tasks", ()), flavored=flavored)
    return {cell: situation.units(amount, cell.resource) for cell, amount in found.items()}


def _orders(queue: situation.Queue) -> dict[str, Callable[[Json], Any]]:
    """What work is sorted by; what it holds by the resources in the order in which the queue states them."""
    resources = list(dict.fromkeys(cell.resource for cell in queue.stated()))

    def holds(one: Json) -> list[int]:
        found = situation.requested(one.get("tasks", ()))
        return [found.get(resource, 0) for resource in resources or sorted(found)]

    return {
        "name": lambda one: one["id"], "queue": lambda one: one["queue"],
        "priority": lambda one: one.get("priority", 0), "holds": holds,
        "since": lambda one: one.get("started_at") or one.get("created_at"),
    }  # fmt: skip


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
