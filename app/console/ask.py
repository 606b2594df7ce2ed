"""Asking: a decision as it is and with one thing changed, side by side; variants of one; what a job would evict.

A job is a manifest, or a form's few fields, against a snapshot, a followed cluster or manifests. Each answer has an
address: that of a question names the decisions of the log, that of a comparison holds all of it, compressed, where that
is short enough.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.base import shipped
from app.base.decoding import whole
from app.console.api import ApiError, Json, places_of, segment, status_of
from app.console.quotas import quota_of
from app.console.situation import named, sentence
from app.console.visit import Packed, PageRoute, Text, Visit, Visiting, packed, unpacked
from app.console.words import placed, pretty
from app.http.openapi import page
from app.solver.engine import ENGINES

_EXAMPLES = shipped("examples")
_FIELDS = ("guaranteed", "limit", "borrowing_limit", "lending_limit", "weight")
_MOST_TEXT = 64 << 10
"""Bytes of a request that stands in a box as a whole: of a longer one only what is asked for does."""
From = Annotated[UUID | None, Query(alias="from")]
Id = Annotated[UUID | None, Query()]
_CHANGES = ("engine", "priority", "queue", "resource", "field", "value")

router = APIRouter(route_class=PageRoute)


class Malformed(Exception):
    """Fields of the form can't be read: which, and why, all that are."""

    def __init__(self, *faults: tuple[str, str]) -> None:
        super().__init__(*faults)
        self.faults = faults

    def document(self) -> Json:
        """As a problem of the API reads, with ``fields``, those at fault."""
        detail = self.faults[0][1] if len(self.faults) == 1 else f"{len(self.faults)} fields are wrong"
        errors = [{"parameter": field, "detail": detail} for field, detail in self.faults]
        return {"title": "Invalid input", "detail": detail, "errors": errors, "fields": [of for of, _ in self.faults]}


def _changes(
    engine: Text = "", priority: Text = "", queue: Text = "", resource: Text = "", field: Text = "", value: Text = ""
) -> Json:
    given = zip(_CHANGES, (engine, priority, queue, resource, field, value), strict=True)
    return {name: said for name, said in given if said}


@router.get("/ask", **page(needs="decide"))
async def ask(
    visit: Visiting, origin: From = None, answer: Id = None, changed: Id = None,
    changes: Annotated[Json | None, Depends(_changes)] = None,
) -> Response:  # fmt: skip
    """A request to start with: that of a decision, or the example; with the answers that somebody was sent."""
    answers = [
        (title, await _recorded(visit, identity))
        for title, identity in (("As it is", answer), (", ".join(_described(changes or {})) or "Changed", changed))
        if identity is not None
    ]
    if (of := origin or answer) is None:
        return _asked(visit, {"request": pretty(example("kueue-classic.json"))}, answers)
    body = (await visit.api.call("GET", f"/v1/decisions/{of}/request")).body
    fields: Json = {**(changes or {})}
    if len(body) <= _MOST_TEXT:
        return _asked(visit, {"request": pretty(body), **fields}, answers)
    asks = msgspec.json.encode(msgspec.json.decode(body).get("asks", []))
    shown = {"asks": pretty(asks)} if len(asks) <= _MOST_TEXT else {}
    return _asked(visit, {"from": str(of), **shown, **fields}, answers, size=len(body))


async def _recorded(visit: Visit, identity: UUID) -> Json:
    record: Json = await visit.api.get(f"/v1/decisions/{identity}")
    return {**record["answer"], "id": record["id"]}


@router.post("/ask", **page(needs="decide"))
async def asked(visit: Visiting) -> Response:
    """Decide it as it is, and where something is to change, once more with that."""
    fields = await visit.form()
    answers: list[tuple[str, Json]] = []
    problem: Json | None = None
    try:
        request, changed, what = await _read(visit, fields)
        answers.append(("As it is", await _decided(visit, request)))
        if what:
            answers.append((", ".join(what), await _decided(visit, changed)))
    except Malformed as wrong:
        problem = wrong.document()
    except ApiError as refused:
        problem = refused.document
    return _asked(visit, fields, answers, problem)


async def _decided(visit: Visit, request: Json) -> Json:
    return await visit.api.ask("/v1/decisions", {**request, "explain": "summary"}, {"purpose": "what-if"})


async def _read(visit: Visit, fields: dict[str, str]) -> tuple[Json, Json, list[str]]:
    """The request, with what the form changes, and what that is. Raises Malformed with all that is wrong, Refused."""
    faults: list[tuple[str, str]] = []
    request: Json | None = None
    changed, what = Json(), list[str]()
    try:
        request = await _request(visit, fields)
    except Malformed as wrong:
        faults += wrong.faults
    try:
        changed, what = await _changed(visit, request, fields)
    except Malformed as wrong:
        faults += wrong.faults
    if faults or request is None:
        raise Malformed(*faults)
    return request, changed, what


async def _request(visit: Visit, fields: dict[str, str]) -> Json:
    """What the form holds, or the recorded request that it refers to, with what it asks for instead. Raises Malformed,
    Refused."""
    if not (of := fields.get("from", "")):
        return document(fields.get("request", ""), "request")
    recorded: Json = await visit.api.get(f"/v1/decisions/{segment(of)}/request")
    if asks := fields.get("asks", "").strip():
        try:
            recorded["asks"] = msgspec.json.decode(asks, type=list[Any] | str)
        except msgspec.DecodeError as error:
            raise Malformed(("asks", f"This is not a list of asks: {placed(error, asks)}")) from None
    return recorded


def _described(fields: Json) -> list[str]:
    """In words what the form changes."""
    what: list[str] = []
    if engine := fields.get("engine", ""):
        what.append(f"rules of {engine}")
    if priority := fields.get("priority", "").strip():
        what.append(f"priority {priority}")
    queue, value = fields.get("queue", "").strip(), fields.get("value", "").strip()
    if queue or value:
        what.append(f"{queue}: {fields.get('field', _FIELDS[0])} {value} {fields.get('resource', '').strip()}")
    return what


async def _changed(visit: Visit, request: Json | None, fields: dict[str, str]) -> tuple[Json, list[str]]:
    """The request with what the form changes, and what that is. Raises Malformed, Refused. Without a request only what
    can be seen without one is looked at."""
    changed: Json = dict(request or {})
    faults: list[tuple[str, str]] = []
    if engine := fields.get("engine", ""):
        changed["engine"] = engine
    if priority := fields.get("priority", "").strip():
        asks: Any = changed.get("asks", ())
        if (number := whole(priority)) is None:
            faults.append(("priority", "A priority is a whole number."))
        elif isinstance(asks, str):
            faults.append(("priority", "What is asked for waits beside the snapshot: its priorities stand there."))
        else:
            changed["asks"] = [{**waiting, "priority": number} for waiting in asks]
    queue, value = fields.get("queue", "").strip(), fields.get("value", "").strip()
    if request is not None and (queue or value):
        resource, field = fields.get("resource", "").strip(), fields.get("field", _FIELDS[0])
        try:
            stored = await _configuration(visit, request)
            changed["configuration"] = _with_quota(stored, queue, resource, field, value)
            changed.setdefault("engine", stored.get("engine"))
        except Malformed as wrong:
            faults += wrong.faults
    if faults:
        raise Malformed(*faults)
    return {name: said for name, said in changed.items() if said is not None}, _described(fields)


async def _configuration(visit: Visit, request: Json) -> Json:
    given = request.get("configuration")
    if isinstance(given, dict):
        return {**given}
    if not isinstance(given, str):
        raise Malformed(("queue", "The request names no configuration whose quota could change."))
    name, _, version = given.partition("@")
    place = f"/v1/configurations/{segment(name)}"
    if version and not version.isdigit():
        version = str((await visit.api.get(f"{place}/labels/{segment(version)}"))["revision"])
    revision: Json = await visit.api.get(f"{place}/revisions/{version}" if version else place)
    return revision["configuration"]


def _with_quota(stored: Json, queue: str, resource: str, field: str, value: str) -> Json:
    """``stored`` with one quota of one queue changed. Raises Malformed."""
    faults = [("field", "There is no such field of a quota.")] if field not in _FIELDS else []
    copied: Json = msgspec.json.decode(msgspec.json.encode(stored))
    stated = next((q for q in copied.get("queues", ()) if q.get("name") == queue), None)
    quota = None if stated is None else quota_of(stated, resource)
    if stated is None:
        faults.append(("queue", f"There is no queue {queue!r} in the configuration."))
    elif quota is None:
        faults.append(("resource", f"Queue {queue!r} states no quota of {resource!r}."))
    if faults or quota is None:
        raise Malformed(*faults)
    quota[field] = value
    return copied


def _asked(
    visit: Visit, fields: Json, answers: list[tuple[str, Json]], problem: Json | None = None, size: int = 0
) -> Response:
    """``size``: bytes of the recorded request that the form refers to."""
    return visit.show(
        "ask.html", status_of(problem), fields=fields, answers=answers, problem=problem, engines=list(ENGINES),
        quotas=_FIELDS, sentence=sentence, named=named, size=size,
        address=_address(visit, fields, answers) if problem is None else None,
        stopping=[{named(v) for d in answer["decisions"] for v in d["victims"]} for _, answer in answers],
    )  # fmt: skip


def _address(visit: Visit, fields: Json, answers: list[tuple[str, Json]]) -> str | None:
    """Where these answers stand, for whoever may read the log."""
    ids = [answer["id"] for _, answer in answers if "id" in answer]
    if not ids or not visit.may("read"):
        return None
    said = zip(("answer", "changed"), ids, strict=False)
    changes = ((name, fields[name]) for name in _CHANGES if fields.get(name) and len(ids) > 1)
    return f"/ask?{urlencode([*said, *changes])}"


@router.get("/compare", **page(needs="decide"))
async def compare(visit: Visiting, asked: Packed = "") -> Response:
    """The comparison that the address holds; an example to start with."""
    if asked:
        return await _compared(visit, unpacked(asked))
    text = pretty(example("compare-fair-sharing.json"))
    return visit.show("compare.html", text=text, found=None, problem=None, sentence=sentence, named=named)


@router.post("/compare", **page(needs="decide"))
async def compared(visit: Visiting) -> Response:
    """Variants side by side, and where they differ."""
    return await _compared(visit, (await visit.form()).get("request", ""))


async def _compared(visit: Visit, text: str) -> Response:
    comparison, problem = await _tried(visit, "/v1/comparisons", text)
    short = packed(text)
    return visit.show(
        "compare.html", status_of(problem), text=text, found=comparison, problem=problem, sentence=sentence,
        named=named, address=f"/compare?asked={short}" if comparison and short else None,
    )  # fmt: skip


async def _tried(visit: Visit, place: str, text: str) -> tuple[Json | None, Json | None]:
    try:
        return await visit.api.ask(place, document(text, "request")), None
    except Malformed as wrong:
        return None, wrong.document()
    except ApiError as refused:
        return None, refused.document


def document(text: str, field: str) -> Json:
    """The JSON object of a form's ``field``. Raises Malformed."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Malformed((field, f"This is not a JSON object: {placed(error, text)}")) from None


def example(name: str) -> bytes:
    return (_EXAMPLES / name).read_bytes()


_MOST_QUEUES = 1000
_MANIFEST = ("manifest", "cluster", "configuration", "queue", "snapshot")
Texts = Annotated[list[str] | None, Query(max_length=100)]

planning_pages = APIRouter(route_class=PageRoute)


def _said(
    snapshot: Text = "", configuration: Text = "", queue: Text = "", priority: Text = "", count: Text = "",
    waited: Text = "",
) -> Json:  # fmt: skip
    return {
        "snapshot": snapshot.strip(), "configuration": configuration.strip(), "queue": queue.strip(),
        "priority": priority.strip(), "count": count.strip(), "waited": waited.strip(),
    }  # fmt: skip


@planning_pages.get("/plan", **page(needs="decide"))
async def plan(
    visit: Visiting, fields: Annotated[Json, Depends(_said)], resource: Texts = None, amount: Texts = None,
    flavor: Texts = None, asked: Packed = "",
) -> Response:  # fmt: skip
    """A job of a form's fields, whose address has all of them: it can be sent to somebody. Without a queue a form to
    begin with, and a manifest with a cluster."""
    if asked:
        return await _of_manifest(visit, msgspec.json.decode(unpacked(asked), type=dict[str, str]))
    wanted = list(zip(resource or (), amount or (), flavor or (), strict=False))
    whole = bool(fields["queue"]) and any(value.strip() for _, value, _ in wanted)
    answer, problem = await _planned(visit, _of_form(fields, wanted)) if whole else (None, None)
    return await _shown(visit, fields | {"wanted": wanted}, answer, problem)


@planning_pages.post("/plan", **page(needs="decide"))
async def planned(visit: Visiting) -> Response:
    """Would this work run, and whom would it stop?"""
    return await _of_manifest(visit, await visit.form())


async def _of_manifest(visit: Visit, fields: Json) -> Response:
    body: Json = {"manifest": fields.get("manifest", "")}
    body |= {name: fields[name] for name in ("cluster", "configuration", "queue") if fields.get(name, "").strip()}
    if snapshot := fields.get("snapshot", "").strip():
        body |= {"state": {"snapshot": snapshot}, "asks": "pending"}
    said = {name: fields[name] for name in _MANIFEST if fields.get(name, "").strip()}
    short = packed(msgspec.json.encode(said).decode())
    address = f"/plan?asked={short}" if short else None
    return await _shown(visit, dict.fromkeys(_MANIFEST, "") | fields, *await _planned(visit, body), address)


def _of_form(fields: Json, wanted: Sequence[tuple[str, str, str]]) -> Json:
    """The body of a plan. What is no number goes on as it is: the answer names it."""
    asked = [(resource, amount.strip(), flavor) for resource, amount, flavor in wanted if amount.strip()]
    task: Json = {"name": "main", "count": _whole(fields["count"] or "1"), "requests": {r: a for r, a, _ in asked}}
    if flavors := {resource: flavor for resource, _, flavor in asked if flavor}:
        task["flavors"] = flavors
    ask: Json = {
        "id": "my-job",
        "queue": fields["queue"],
        "priority": _whole(fields["priority"] or "0"),
        "tasks": [task],
    }
    body: Json = {"work": [ask]} | {name: fields[name] for name in ("configuration", "waited") if fields[name]}
    return body | ({"state": {"snapshot": fields["snapshot"]}, "asks": "pending"} if fields["snapshot"] else {})


def _whole(text: str) -> int | str:
    number = whole(text)
    return text if number is None else number


async def _planned(visit: Visit, body: Json) -> tuple[Json | None, Json | None]:
    try:
        return await visit.api.ask("/v1/plans", body), None
    except ApiError as refused:
        return None, refused.document


async def _shown(
    visit: Visit, fields: Json, answer: Json | None, problem: Json | None, address: str | None = None
) -> Response:
    manifest = {"manifest": example("job.yaml").decode(), "cluster": example("kueue-cluster.yaml").decode()}
    places = await places_of(visit.api) if visit.may("read") else []
    room: Json = {}
    for snapshot, _ in places:
        if snapshot["name"] == fields.get("snapshot"):
            room = await _room(visit, fields.get("configuration") or "", snapshot["configuration"])
    return visit.show(
        "plan.html", status_of(problem), fields=(manifest if visit.request.method == "GET" else {}) | fields,
        found=answer, problem=problem, sentence=sentence, named=named, room=room, told=told_once(answer or {}),
        places=[(snapshot["name"], cluster) for snapshot, cluster in places], address=address if answer else None,
    )  # fmt: skip


async def _room(visit: Visit, named_one: str, used: Json) -> Json:
    """The queues that a job can go to, and the resources that they have with the flavors of each."""
    name, _, version = (named_one or used.get("name") or "").partition("@")
    if not name:
        return {}
    if not named_one:
        version = str(used["revision"])
    if version and not version.isdigit():
        version = ""
    address = f"/v1/configurations/{segment(name)}"
    revision = await visit.api.find(f"{address}/revisions/{version}" if version else address)
    queues: list[Json] = revision["configuration"].get("queues", []) if revision else []
    parents = {queue.get("parent") for queue in queues}
    resources: dict[str, dict[str, None]] = {}
    for queue in queues:
        quota: dict[str, Json] = queue.get("quota") or {}
        for resource in quota:
            resources.setdefault(resource, {})
        groups: list[Json] = queue.get("resource_groups") or []
        for group in groups:
            names: list[str] = group["resources"]
            for resource in names:
                known = resources.setdefault(resource, {})
                known |= dict.fromkeys(flavor["name"] for flavor in group["flavors"])
    leaves = [queue["name"] for queue in queues if queue["name"] not in parents]
    return {"queues": leaves[:_MOST_QUEUES], "resources": {name: list(of) for name, of in sorted(resources.items())}}


def told_once(answer: Json) -> list[tuple[Json, int]]:
    """Decisions that differ, each with how many fare alike: a hundred pods of a job are told once."""
    rows: dict[Any, tuple[Json, int]] = {}
    for i, decision in enumerate(answer.get("decisions", ())):
        key = i if decision["victims"] else decision["outcome"]
        first, alike = rows.get(key, (decision, 0))
        rows[key] = (first, alike + 1)
    return list(rows.values())
