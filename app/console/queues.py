"""Pages of queues: the tree of a configuration, with what a kept snapshot uses of it, and one queue's settings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, cast

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console import situation
from app.console.api import Api, ApiError, Json, names_of, segment
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
    listed: list[Use] = []
    for resource in dict.fromkeys((*promised, *line.get("usage", ()))):
        used, due = line["usage"].get(resource, 0), _number(promised, resource)
        if used or due:
            above = _above(entitlement, line, resource, due)
            listed.append(Use(resource, used, due, above, share.get(resource), max(0, (due or 0) - used)))
    return listed


def _above(entitlement: Entitlement, line: Json, resource: str, promised: float | None) -> float:
    if entitlement.borrowed is not None:
        return line[entitlement.borrowed].get(resource, 0)
    if entitlement.remaining is not None:
        return max(0, -line[entitlement.remaining].get(resource, 0))
    return 0 if promised is None else max(0, line["usage"].get(resource, 0) - promised)


def _number(amounts: Mapping[str, Any], resource: str) -> float | None:
    value = amounts.get(resource)
    return value if isinstance(value, int | float) else None


class Lent(NamedTuple):
    """What siblings use of one another's: who has how much above its promise, and who leaves how much of its own."""

    parent: str
    cell: situation.Cell
    above: list[tuple[str, float]]
    unused: list[tuple[str, float]]


def lent(tree: Mapping[str, situation.Queue], used: Mapping[str, list[Use]]) -> list[Lent]:
    """Where somebody is above a promise, by the queue whose children share, in the tree's order; the largest first."""
    rows: list[Lent] = []
    for parent in tree.values():
        cells: dict[situation.Cell, tuple[list[tuple[str, float]], list[tuple[str, float]]]] = {}
        for name in parent.children:
            for use in used.get(name, ()):
                above, unused = cells.setdefault(situation.Cell(use.resource, use.flavor), ([], []))
                above += [(name, use.above)] if use.above else []
                unused += [(name, use.unused)] if use.unused else []
        rows += [
            Lent(parent.name, cell, *(sorted(side, key=lambda of: -of[1]) for side in sides))
            for cell, sides in cells.items()
            if sides[0]
        ]
    return rows


class Line(NamedTuple):
    """What a queue is told of one resource, of one flavor. Amounts in steps."""

    cell: situation.Cell
    use: Use | None


def lines(queue: situation.Queue, used: list[Use]) -> list[Line]:
    """What it states, then what it uses beyond that; one empty line where there is nothing."""
    by_cell = {situation.Cell(use.resource, use.flavor): use for use in used}
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
    names = await names_of(visit.api, "/v1/configurations")
    snapshots = (await visit.api.get("/v1/snapshots"))["items"]
    chosen = wanted["configuration"] or ("example" if "example" in names else names[0] if names else "")
    stored = await visit.api.get(f"/v1/configurations/{segment(chosen)}") if chosen else None
    tree = situation.queues_of(stored["configuration"]) if stored else situation.Tree()
    answer, problem = await _shares(visit.api, chosen, wanted["snapshot"])
    shares: dict[str, Json] = answer.get("queues", {})
    used = {name: uses(answer["engine"], shares.get(name, {})) for name in tree} if answer else {}
    rows = paged(_shown(tree, wanted, shares, used), page, _SHOWN)
    return visit.show(
        "queues.html", names=names, snapshots=snapshots, wanted={**wanted, "configuration": chosen}, stored=stored,
        tree=tree, rows=rows, shares=shares, problem=problem,
        lines={entry.name: lines(entry, used.get(entry.name, [])) for entry in rows.rows},
        borrowing=any(entry.borrowing for entry in tree.values()),
        lending=any(entry.lending for entry in tree.values()), limits=any(entry.limit for entry in tree.values()),
        lent=lent(tree, used)[:_LENT], words=facts_of(answer["engine"]).entitlement if answer else None,
        units=situation.units, way=situation.above(tree, wanted["under"] or None)[::-1],
        topologies=answer.get("topologies", {}), most=_SHOWN,
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
    except ApiError as refused:
        return {}, refused.detail


def _shown(tree: Queues, wanted: Json, shares: dict[str, Json], used: Mapping[str, list[Use]]) -> list[situation.Queue]:
    """All of a small tree; of a large one what is asked for: a search, a subtree, else the two upper levels."""
    every = list(tree.values())
    if wanted["find"]:
        every = [entry for entry in every if wanted["find"].lower() in entry.name.lower()]
    elif wanted["under"] in tree:
        every = _below(tree, wanted["under"])
    elif len(every) > _SHOWN:
        every = [entry for entry in every if entry.depth <= 1]
    keys: dict[str, Callable[[situation.Queue], Any]] = {
        "name": lambda entry: entry.name, "below": lambda entry: len(entry.children) or None,
        "share": lambda entry: _number(shares.get(entry.name, {}), "share"),
        "uses": lambda entry: max((u.used / u.promised for u in used.get(entry.name, ()) if u.promised), default=None),
    }  # fmt: skip
    return ordered(every, wanted["sort"], keys)


def _below(tree: Queues, top: str) -> list[situation.Queue]:
    below, waiting = list[situation.Queue](), [top]
    while waiting:
        entry = tree[waiting.pop()]
        below.append(entry)
        waiting += reversed(entry.children)
    return below


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
    document = await visit.api.get(f"/v1/configurations/{segment(configuration)}/queues/{segment(queue)}")
    effective: Json = {}
    problem = None
    if visit.may("decide"):
        try:
            asked = {"configuration": configuration}
            effective = (await visit.api.ask("/v1/effective-settings", asked))["queues"].get(queue, {})
        except ApiError as refused:
            problem = refused.detail
    documents = {configured["name"]: configured for configured in stored["configuration"].get("queues", ())}
    engine = stored["configuration"].get("engine", FIRST)
    way = situation.above(tree, queue)
    here = frozenset(entry.name for entry in _below(tree, queue))
    work = await _work(visit.api, snapshot, here)
    running, waiting = (ordered(rows, listed.sort, _orders(tree[queue])) for rows in work)
    answer, untold = await _shares(visit.api, configuration, snapshot)
    return visit.show(
        "queue.html", clusters=await _clusters(visit.api, configuration, queue),
        name=configuration, queue=queue, stored=stored, document=document["queue"], problem=problem,
        settings=[(key, value, _origin(key, way, documents, engine)) for key, value in effective.items()],
        way=way[::-1], one=tree[queue], lines=lines, units=situation.units, snapshot=snapshot, listed=listed,
        snapshots=(await visit.api.get("/v1/snapshots"))["items"], running=paged(running, listed.runs, _SHOWN),
        waiting=paged(waiting, listed.waits, _SHOWN), requested=partial(_requested, flavored=tree.flavored),
        untold=untold, words=facts_of(answer["engine"]).entitlement if answer else None,
        used=uses(answer["engine"], answer["queues"].get(queue, {})) if answer else [],
        lately=(await visit.api.get("/v1/decisions", {"queue": queue, "limit": _LATELY}))["items"],
    )  # fmt: skip


async def _clusters(api: Api, configuration: str, queue: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The charts of the queue's use in each followed cluster whose configuration that is."""
    followed = [
        cluster["name"]
        for cluster in (await api.get("/v1/clusters"))["items"]
        if cluster["configuration"] == configuration
    ]
    last = {"queue": queue, "points": 1}
    charts = [(name, await api.get(f"/v1/clusters/{segment(name)}/use", last)) for name in followed[:_CLUSTERS]]
    return [(name, uses_of(name, used, queue)) for name, used in charts]


async def _work(api: Api, snapshot: str, queues: frozenset[str]) -> tuple[list[Json], list[Json]]:
    """What runs in these queues by a snapshot, and what waits for them beside it. Raises ApiError."""
    if not snapshot:
        return [], []
    address = f"/v1/snapshots/{segment(snapshot)}"
    state: Json = await api.get(f"{address}/state")
    running = [
        workload
        for workload in state.get("workloads", ())
        if workload.get("queue") in queues and not workload.get("evicted")
    ]
    return running, [ask for ask in (await api.get(f"{address}/asks"))["items"] if ask["queue"] in queues]


def _requested(work: Json, *, flavored: bool) -> dict[situation.Cell, int | float | None]:
    """What a workload or an ask wants in all, in whole units."""
    cells = situation.held(work.get("tasks", ()), flavored=flavored)
    return {cell: situation.units(amount, cell.resource) for cell, amount in cells.items()}


def _orders(queue: situation.Queue) -> dict[str, Callable[[Json], Any]]:
    """What work is sorted by; what it holds by the resources in the order in which the queue states them."""
    resources = list(dict.fromkeys(cell.resource for cell in queue.stated()))

    def holds(work: Json) -> list[int]:
        amounts = situation.requested(work.get("tasks", ()))
        return [amounts.get(resource, 0) for resource in resources or sorted(amounts)]

    return {
        "name": lambda work: work["id"], "queue": lambda work: work["queue"],
        "priority": lambda work: work.get("priority", 0), "holds": holds,
        "since": lambda work: work.get("started_at") or work.get("created_at"),
    }  # fmt: skip


def _origin(setting: str, way: list[situation.Queue], documents: dict[str, Json], engine: str) -> str:
    """The nearest queue on the way up whose document states the setting."""
    for above in way:
        if _states(documents[above.name].get(engine), setting) or setting in documents[above.name]:
            return "here" if above is way[0] else above.name
    return "default"


def _states(block: Any, setting: str) -> bool:
    if not isinstance(block, dict):
        return False
    fields = cast(Json, block)
    return setting in fields or any(_states(value, setting) for value in fields.values())
