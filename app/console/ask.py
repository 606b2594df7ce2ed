"""Asking: a decision as it is and with one thing changed, side by side; variants of one."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.base.installation import shipped
from app.console.api import Json, Refused, segment
from app.console.quotas import quota_of
from app.console.situation import named, sentence
from app.console.visit import PageRoute, Visit, Visiting, pretty
from app.http.openapi import page
from app.solver.registry import ENGINES

_EXAMPLES = shipped("examples")
_FIELDS = ("guaranteed", "limit", "borrowing_limit", "lending_limit", "weight")
From = Annotated[UUID | None, Query(alias="from")]

router = APIRouter(route_class=PageRoute)


class Malformed(Exception):
    """A field of the form can't be read: which, and why."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(field, detail)
        self.field = field
        self.detail = detail


@router.get("/ask", **page(needs="decide"))
async def ask(visit: Visiting, origin: From = None) -> Response:
    """A request to start with: that of a decision, or the example."""
    body = example("kueue-classic.json")
    if origin is not None:
        body = (await visit.api.call("GET", f"/v1/decisions/{origin}/request")).body
    return _asked(visit, {"request": pretty(body)}, [])


@router.post("/ask", **page(needs="decide"))
async def asked(visit: Visiting) -> Response:
    """Decide it as it is, and where something is to change, once more with that."""
    fields = await visit.form()
    answers: list[tuple[str, Json]] = []
    problem: Json | None = None
    try:
        request = document(fields.get("request", ""), "request")
        changed, what = await _changed(visit, request, fields)
        answers.append(("As it is", await visit.api.ask("/v1/decisions", {**request, "explain": "summary"})))
        if what:
            after = await visit.api.ask("/v1/decisions", {**changed, "explain": "summary"})
            answers.append((", ".join(what), after))
    except Malformed as wrong:
        problem = {"title": "Invalid input", "detail": wrong.detail, "errors": [], "field": wrong.field}
    except Refused as refused:
        problem = refused.document
    return _asked(visit, fields, answers, problem)


async def _changed(visit: Visit, request: Json, fields: dict[str, str]) -> tuple[Json, list[str]]:
    """The request with what the form changes, and what that is. Raises Malformed, Refused."""
    changed: Json = dict(request)
    what: list[str] = []
    if engine := fields.get("engine", ""):
        changed["engine"] = engine
        what.append(f"rules of {engine}")
    if priority := fields.get("priority", "").strip():
        if not priority.lstrip("-").isdigit():
            raise Malformed("priority", "A priority is a whole number.")
        asks: Any = request.get("asks", ())
        if isinstance(asks, str):
            raise Malformed("priority", "What is asked for waits beside the snapshot: its priorities stand there.")
        changed["asks"] = [{**one, "priority": int(priority)} for one in asks]
        what.append(f"priority {priority}")
    queue, value = fields.get("queue", "").strip(), fields.get("value", "").strip()
    if queue or value:
        resource, field = fields.get("resource", "").strip(), fields.get("field", _FIELDS[0])
        stored = await _configuration(visit, request)
        changed["configuration"] = _with_quota(stored, queue, resource, field, value)
        changed.setdefault("engine", stored.get("engine"))
        what.append(f"{queue}: {field} {value} {resource}")
    return {name: said for name, said in changed.items() if said is not None}, what


async def _configuration(visit: Visit, request: Json) -> Json:
    given = request.get("configuration")
    if isinstance(given, dict):
        return {**given}
    if not isinstance(given, str):
        raise Malformed("queue", "The request names no configuration whose quota could change.")
    name, _, version = given.partition("@")
    place = f"/v1/configurations/{segment(name)}"
    if version and not version.isdigit():
        version = str((await visit.api.get(f"{place}/labels/{segment(version)}"))["revision"])
    found: Json = await visit.api.get(f"{place}/revisions/{version}" if version else place)
    return found["configuration"]


def _with_quota(stored: Json, queue: str, resource: str, field: str, value: str) -> Json:
    """``stored`` with one quota of one queue changed. Raises Malformed."""
    if field not in _FIELDS:
        raise Malformed("field", "There is no such field of a quota.")
    copied: Json = msgspec.json.decode(msgspec.json.encode(stored))
    one = next((q for q in copied.get("queues", ()) if q.get("name") == queue), None)
    if one is None:
        raise Malformed("queue", f"There is no queue {queue!r} in the configuration.")
    found = quota_of(one, resource)
    if found is None:
        raise Malformed("resource", f"Queue {queue!r} states no quota of {resource!r}.")
    found[field] = value
    return copied


def _asked(visit: Visit, fields: Json, answers: list[tuple[str, Json]], problem: Json | None = None) -> Response:
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show(
        "ask.html", status, fields=fields, answers=answers, problem=problem, engines=list(ENGINES), quotas=_FIELDS,
        sentence=sentence, named=named,
        stopping=[{named(v) for d in answer["decisions"] for v in d["victims"]} for _, answer in answers],
    )  # fmt: skip


@router.get("/compare", **page(needs="decide"))
async def compare(visit: Visiting) -> Response:
    """An example to start with."""
    text = pretty(example("compare-fair-sharing.json"))
    return visit.show("compare.html", text=text, found=None, problem=None, sentence=sentence, named=named)


@router.post("/compare", **page(needs="decide"))
async def compared(visit: Visiting) -> Response:
    """Variants side by side, and where they differ."""
    text = (await visit.form()).get("request", "")
    found, problem = await _tried(visit, "/v1/comparisons", text)
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show("compare.html", status, text=text, found=found, problem=problem, sentence=sentence, named=named)


async def _tried(visit: Visit, place: str, text: str) -> tuple[Json | None, Json | None]:
    try:
        return await visit.api.ask(place, document(text, "request")), None
    except Malformed as wrong:
        return None, {"title": "Invalid input", "detail": wrong.detail, "errors": []}
    except Refused as refused:
        return None, refused.document


def document(text: str, field: str) -> Json:
    """The JSON object of a form's ``field``. Raises Malformed."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Malformed(field, f"This is not a JSON object: {error}") from None


def example(name: str) -> bytes:
    return (_EXAMPLES / name).read_bytes()
