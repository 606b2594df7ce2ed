"""Editing a configuration or one queue of it: checked as one types, compared before it is saved, never over a change
that somebody else has made meanwhile."""

from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.configurations.revisions import difference
from app.configurations.service import NAME
from app.console.api import Json, Refused, segment
from app.console.configurations import at
from app.console.visit import PageRoute, Visit, Visiting
from app.console.words import pretty
from app.http.openapi import page

Text = Annotated[str, Query(max_length=2048)]

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True)
class Edited:
    """What is edited: a whole document, or with ``queue`` one queue of it. ``text``: as typed; ``etag``: over which."""

    name: str
    queue: str
    text: str
    etag: str
    comment: str

    @property
    def place(self) -> str:
        """Where the API has it."""
        return f"{at(self.name)}/queues/{segment(self.queue)}" if self.queue else at(self.name)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the API says of it. ``current``: the version in force, read now, and its tag."""

    problem: Json | None
    findings: list[Json]
    current: Json | None
    etag: str
    lost: bool


@router.get("/new", **page(needs="admin"))
async def new(visit: Visiting, name: Annotated[str, Query(pattern=NAME)]) -> Response:
    """To the form for a configuration of that name."""
    return visit.go(f"/configurations/{segment(name)}/edit")


@router.get("/configurations/{name}/edit", **page(needs="admin"))
async def edit(visit: Visiting, name: str) -> Response:
    """The document as it is; of a new name an empty one."""
    return await _begin(visit, name, "")


@router.get("/configurations/{name}/queue", **page(needs="admin"))
async def edit_queue(visit: Visiting, name: str, queue: Text) -> Response:
    """One queue as it is; a new one where there is none of that name."""
    return await _begin(visit, name, queue)


async def _begin(visit: Visit, name: str, queue: str) -> Response:
    current, etag = await _current(visit, Edited(name, queue, "", "", ""))
    empty: Json = {"quota": {"cpu": {"guaranteed": 0}}} if queue else {"engine": "kueue", "queues": []}
    text = pretty(current if current is not None else empty)
    return visit.show("edit.html", edited=Edited(name, queue, text, etag, ""), checked=None, diff=None, step="edit")


async def offered(visit: Visit, name: str, document: Json, imported: list[Json]) -> Response:
    """A document from elsewhere, as if typed over what is stored under ``name``: checked, compared, to be saved.
    ``imported``: what there is to say of how it was read."""
    current = Edited(name, "", "", "", "")
    sent = Edited(name, "", pretty(document), (await _current(visit, current))[1], "")
    checked = await _checked(visit, sent, document, save=False)
    return _answer(visit, sent, checked, _difference(sent, checked.current, document), "compare", imported)


@router.post("/configurations/{name}/edit", **page(needs="admin"))
async def edited(visit: Visiting, name: str) -> Response:
    """Check, show the difference, save: whichever was asked for."""
    fields = await visit.form()
    sent = Edited(
        name, fields.get("queue", ""), fields.get("document", ""), fields.get("etag", ""), fields.get("comment", "")
    )
    step = fields.get("step", "check")
    document, malformed = _read(sent.text)
    if malformed is not None:
        return _answer(visit, sent, Checked(malformed, [], None, sent.etag, False), None, "edit")
    checked = await _checked(visit, sent, document, save=step == "save")
    if step == "save" and checked.problem is None:
        return visit.go(f"/configurations/{segment(name)}")
    diff = _difference(sent, checked.current, document)
    good = checked.problem is None
    return _answer(visit, sent, checked, diff, "compare" if good and step != "check" else "edit")


async def _checked(visit: Visit, sent: Edited, document: Any, *, save: bool) -> Checked:
    """Dry, or in earnest. A version that has moved on meanwhile is not written over."""
    problem, findings, lost = None, list[Json](), False
    headers = {"If-Match": sent.etag} if sent.etag else {"If-None-Match": "*"}
    query = {"comment": sent.comment or None} if save else {"dry_run": True}
    try:
        done = await visit.api.call("PUT", sent.place, query, document, headers)
        findings = done.json()["findings"]
    except Refused as refused:
        problem, lost = refused.document, refused.status == 412
        findings = cast(list[Json], problem.get("findings") or [])
    current, etag = (None, "") if save and problem is None else await _current(visit, sent)
    return Checked(problem, findings, current, etag, lost)


async def _current(visit: Visit, sent: Edited) -> tuple[Json | None, str]:
    try:
        found = await visit.api.call("GET", sent.place)
    except Refused as refused:
        if refused.status != 404:
            raise
        if not sent.queue:
            return None, ""
        return None, (await visit.api.call("GET", at(sent.name))).etag or ""
    return found.json()["queue" if sent.queue else "configuration"], found.etag or ""


def _read(text: str) -> tuple[Any, Json | None]:
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return None, {"title": "This is not JSON", "detail": str(error), "errors": []}
    return document, None


def _difference(sent: Edited, current: Json | None, document: Any) -> Any:
    """What saving would change, by structure."""
    if not isinstance(document, dict):
        return None
    before: Json = current or {}
    after = cast(Json, document)
    if sent.queue:
        before = {"queues": [{**before, "name": sent.queue}] if current else []}
        after = {"queues": [{**after, "name": sent.queue}]}
    try:
        return msgspec.to_builtins(difference(sent.name, 0, before, 0, after))
    except (KeyError, TypeError, AttributeError):  # not even the shape of one: the findings say so
        return None


def _answer(
    visit: Visit, sent: Edited, checked: Checked, diff: Any, step: str, imported: list[Json] | None = None
) -> Response:
    status = 200 if checked.problem is None else int(checked.problem.get("status", 422))
    if visit.request.headers.get("hx-request") == "true":
        status = 200  # a part of a page: what is wrong stands in it
    return visit.show("edit.html", status, edited=sent, checked=checked, diff=diff, step=step, imported=imported)
