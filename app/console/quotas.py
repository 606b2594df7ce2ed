"""Trying other quotas: guarantees are dragged, and what a snapshot's waiting work would stop then stands beside now.

What was moved stands in the address, so that it can be sent to somebody, kept, and saved as a new revision.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.base.decoding import whole
from app.console import situation
from app.console.api import ApiError, Json, segment
from app.console.configurations import offered
from app.console.situation import Cell, named, sentence
from app.console.visit import PageRoute, Visit, Visiting
from app.http.openapi import page
from app.solver.model.configuration import DEFAULT_FLAVOR

_MOST = 200
_DECISIONS = 50
_STEPS = 200
_FIELD = "quota."
_NOW, _THEN = "with the quotas in force", "with these"
_LARGEST = Decimal(2) ** 62
_FINEST = Decimal("0.001")
"""What engines tell apart: thousandths of a unit."""
Name = Annotated[str, Query(max_length=256)]
Text = Annotated[str, Query(max_length=64)]
Moved = Annotated[list[str] | None, Query(max_length=_MOST)]

quotas_pages = APIRouter(route_class=PageRoute)


class Slider(NamedTuple):
    """One queue's guarantee of the resource: all in whole units of it. ``depth``: in the tree."""

    queue: str
    depth: int
    stated: int | float
    value: int | float
    most: int | float
    step: int | str

    @property
    def moved(self) -> bool:
        """Whether it is to be another than what is stated."""
        return self.value != self.stated


class Tried(NamedTuple):
    """Decisions as they are and with the quotas tried, ask by ask; ``more``, ``fewer``: victims of either alone."""

    pairs: list[tuple[Json, Json]]
    more: list[Json]
    fewer: list[Json]


class Asked(NamedTuple):
    """What is looked at. ``moved``: other guarantees, in whole units by queue; the rest describes an ask, for a
    snapshot beside which nothing waits."""

    configuration: str
    snapshot: str
    cell: Cell
    moved: dict[str, int | float]
    queue: str = ""
    amount: str = ""
    priority: str = ""

    def address(self) -> str:
        """Where this is shown."""
        fields = [("configuration", self.configuration), ("snapshot", self.snapshot), ("resource", str(self.cell))]
        fields += [("queue", self.queue), ("amount", self.amount), ("priority", self.priority)]
        fields += [("moved", f"{name}={value}") for name, value in self.moved.items()]
        return f"/queues/quotas?{urlencode([(name, value) for name, value in fields if value])}"


def quota_of(queue: Json, resource: str, flavor: str = "") -> Json | None:
    """The quota of a queue's document that states ``resource``: its own, else that of its first flavor that does; with
    ``flavor`` that of this one."""
    quotas = [queue["quota"]] if "quota" in queue and flavor in ("", DEFAULT_FLAVOR) else []
    flavors = [f for g in queue.get("resource_groups", ()) for f in g.get("flavors", ()) if "quota" in f]
    quotas += [f["quota"] for f in flavors if flavor in ("", f.get("name"))]
    stating = next((quota for quota in quotas if resource in quota), None)
    return None if stating is None else stating[resource]


def _place(configuration: Name = "", snapshot: Name = "", resource: Name = "") -> tuple[str, str, str]:
    return configuration, snapshot, resource


def _like(queue: Name = "", amount: Text = "", priority: Text = "") -> tuple[str, str, str]:
    return queue, amount, priority


@quotas_pages.get("/queues/quotas", **page(needs="decide"))
async def quotas(
    visit: Visiting, place: Annotated[tuple[str, str, str], Depends(_place)],
    like: Annotated[tuple[str, str, str], Depends(_like)], moved: Moved = None,
) -> Response:  # fmt: skip
    """A slider for each queue that is promised something of the resource, and what moving them changes."""
    if not place[0]:  # opened directly
        names: list[Json] = (
            (await visit.api.get("/v1/configurations", {"limit": 1}))["items"] if visit.may("read") else []
        )
        return visit.go(f"/queues/quotas?{urlencode({'configuration': names[0]['name']})}" if names else "/queues")
    given = (pair.rpartition("=") for pair in moved or ())
    values = {name: value for name, _, text in given if (value := _amount(text)) is not None}
    stored = await visit.api.get(f"/v1/configurations/{segment(place[0])}")
    cells = _cells(stored["configuration"])
    return await _shown(visit, stored, Asked(*place[:2], _chosen(cells, place[2]), values, *like), cells)


@quotas_pages.post("/queues/quotas", **page(needs="decide"))
async def move(visit: Visiting) -> Response:
    """To the address of what the form says: only what was moved stands in it."""
    fields = await visit.form()
    document = (await visit.api.get(f"/v1/configurations/{segment(fields.get('configuration', ''))}"))["configuration"]
    cell = _chosen(_cells(document), fields.get("resource", ""))
    stated = _stated(document, cell)
    moved = {
        name: value
        for name, before in stated.items()
        if (value := _amount(fields.get(_FIELD + name, ""))) is not None and value != _rounded(before)
    }
    asked = Asked(
        fields.get("configuration", ""), fields.get("snapshot", ""), cell, moved,
        fields.get("queue", ""), fields.get("amount", ""), fields.get("priority", "").strip(),
    )  # fmt: skip
    return visit.go(asked.address())


@quotas_pages.post("/queues/quotas/save", **page(needs="admin"))
async def save(visit: Visiting) -> Response:
    """The configuration with these quotas, on the page that shows the difference and saves it."""
    fields = await visit.form()
    name = fields.get("configuration", "")
    stored = await visit.api.get(f"/v1/configurations/{segment(name)}")
    cell = _chosen(_cells(stored["configuration"]), fields.get("resource", ""))
    moved = {n.removeprefix(_FIELD): v for n, given in fields.items()
             if n.startswith(_FIELD) and (v := _amount(given)) is not None}  # fmt: skip
    return await offered(visit, name, _with_quotas(stored["configuration"], cell, moved), [])


def _cells(document: Json) -> list[Cell]:
    """What queues are promised something of."""
    return list(dict.fromkeys(cell for queue in situation.queues_of(document).values() for cell in queue.guaranteed))


def _chosen(cells: list[Cell], text: str) -> Cell:
    """That of the address, which may name a resource alone; else the first."""
    named = [cell for cell in cells if str(cell) == text] + [cell for cell in cells if cell.resource == text]
    return next(iter([*named, *cells]), Cell(text))


async def _shown(visit: Visit, stored: Json, asked: Asked, cells: list[Cell]) -> Response:
    document: Json = stored["configuration"]
    tree = situation.queues_of(document)
    sliders = _sliders(document, tree, asked)
    snapshots = [snapshot["name"] for snapshot in (await visit.api.get("/v1/snapshots"))["items"]]
    comparison, problem, waiting = None, None, 0
    try:
        asks: list[Json] | str = []
        if asked.snapshot:
            waiting = len((await visit.api.get(f"/v1/snapshots/{segment(asked.snapshot)}/asks"))["items"])
            asks = "pending" if waiting else _described(asked)
        if asks and any(slider.moved for slider in sliders):
            comparison = await _compared(visit, stored, asked, asks)
    except ApiError as refused:
        problem = refused.document
    status = 200 if problem is None or visit.request.headers.get("hx-request") else int(problem.get("status", 422))
    return visit.show(
        "quotas.html", status, stored=stored, asked=asked, cells=cells, sliders=sliders, snapshots=snapshots,
        waiting=waiting, found=comparison, problem=problem, named=named, sentence=sentence, queues=list(tree),
        moved=[slider for slider in sliders if slider.moved],
    )  # fmt: skip


def _sliders(document: Json, tree: dict[str, situation.Queue], asked: Asked) -> list[Slider]:
    """At most 200, in the order of the tree."""
    stated = _stated(document, asked.cell)
    every = [*stated.values(), *asked.moved.values(), 1]
    most = 2 * max(every)
    # A browser moves a slider's value to the nearest step: with any but whole ones it would change what nobody moved.
    step = 1 if most <= _STEPS and all(value == int(value) for value in every) else "any"
    return [
        Slider(queue.name, queue.depth, stated[queue.name], asked.moved.get(queue.name, stated[queue.name]), most, step)
        for queue in tree.values()
        if queue.name in stated
    ][:_MOST]


def _stated(document: Json, cell: Cell) -> dict[str, int | float]:
    """Guarantees of it in whole units, by queue."""
    stated: dict[str, int | float] = {}
    for queue in document.get("queues", ()):
        quota = quota_of(queue, *cell)
        if quota is not None and isinstance(quota.get("guaranteed"), int | float | str):
            value = situation.units(situation.steps(quota["guaranteed"], cell.resource), cell.resource)
            stated[queue["name"]] = value or 0
    return stated


def _amount(text: str) -> int | float | None:
    """An amount as somebody typed or dragged it, in steps that engines tell apart; None: it is none."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return _rounded(value) if value.is_finite() and 0 <= value < _LARGEST else None


def _rounded(value: Decimal | float) -> int | float:
    steps = Decimal(str(value)).quantize(_FINEST) if value < 2**40 else Decimal(int(value))
    return int(steps) if steps == int(steps) else float(steps)


def _described(asked: Asked) -> list[Json]:
    """The ask that the form describes; none where it names no queue."""
    if not asked.queue:
        return []
    task = {"name": "main", "requests": {asked.cell.resource: asked.amount or "1"}}
    ask: Json = {"id": "an ask like this", "queue": asked.queue, "tasks": [task]}
    priority = whole(asked.priority)
    return [ask if priority is None else {**ask, "priority": priority}]


def _with_quotas(document: Json, cell: Cell, moved: Mapping[str, int | float]) -> Json:
    """A copy of ``document`` with other guarantees of ``cell``."""
    copied: Json = msgspec.json.decode(msgspec.json.encode(document))
    for queue in copied.get("queues", ()):
        quota = quota_of(queue, *cell) if queue["name"] in moved else None
        if quota is not None:
            quota["guaranteed"] = moved[queue["name"]]
    return copied


async def _compared(visit: Visit, stored: Json, asked: Asked, asks: list[Json] | str) -> Tried:
    """Raises ApiError, also where one of the two is refused by its engine."""
    document = _with_quotas(stored["configuration"], asked.cell, asked.moved)
    answer = await visit.api.ask("/v1/comparisons", {
        "configuration": f"{stored['name']}@{stored['revision']}", "state": {"snapshot": asked.snapshot}, "asks": asks,
        "variants": [{"name": _NOW}, {"name": _THEN, "configuration": document}],
    })  # fmt: skip
    for variant in answer["variants"]:
        if "answer" not in variant:
            detail = f"It can't be decided {variant['name']}."
            raise ApiError(
                422, {"title": "Refused", "status": 422, "detail": detail, "errors": variant["problems"]}, {}
            )
    before, after = (variant["answer"]["decisions"] for variant in answer["variants"])
    stopped = [{named(v): v for decision in decisions for v in decision["victims"]} for decisions in (before, after)]
    pairs = [
        (a, b)
        for a, b in zip(before, after, strict=True)
        if (a["outcome"], a["victims"]) != (b["outcome"], b["victims"])
    ]
    return Tried(
        pairs[:_DECISIONS],
        [v for name, v in stopped[1].items() if name not in stopped[0]][:_MOST],
        [v for name, v in stopped[0].items() if name not in stopped[1]][:_MOST],
    )
