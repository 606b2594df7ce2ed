"""Pages of stored configurations: the list, one with its history, export, restoring, labels, editing and import."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.base.errors import BadRequest
from app.base.identifiers import NAME
from app.configurations.revisions import difference
from app.console.api import ApiError, Json, Reply, segment, status_of
from app.console.visit import Cursor, PageRoute, Text, Visit, Visiting
from app.console.words import placed, pretty
from app.formats.exported import YAML, Format
from app.formats.manifests import systems
from app.formats.ytsaurus.documents import MEDIA_TYPE as YSON
from app.http.assets import HEADERS
from app.http.openapi import page
from app.solver.engines import FIRST

_PAGE = 50
_NAMED = "A name has letters, digits, dots, underscores and hyphens, and begins with a letter or digit."
Number = Annotated[int | None, Query(ge=1, le=10**9)]

configurations_pages = APIRouter(route_class=PageRoute)


def path_of(name: str) -> str:
    """Where the API has a configuration."""
    return f"/v1/configurations/{segment(name)}"


@configurations_pages.get("/configurations", **page(needs="read"))
async def configurations(visit: Visiting, cursor: Cursor = "") -> Response:
    """By name."""
    listing = await visit.api.get("/v1/configurations", {"cursor": cursor or None, "limit": _PAGE})
    return visit.show(
        "configurations.html",
        found=listing["items"],
        following=listing["next_cursor"],
        first=not cursor,
        titles=[system.facts.title for system in systems()],
    )


@configurations_pages.get("/configurations/{name}", **page(needs="read"))
async def configuration(
    visit: Visiting, name: str, revision: Number = None,
    against: Annotated[int | None, Query(ge=0, le=10**9)] = None, cursor: Cursor = "",
) -> Response:  # fmt: skip
    """One revision: what it says, what it changed, and what came before and after."""
    return await shown(visit, name, revision, against, cursor)


async def shown(
    visit: Visit, name: str, revision: int | None = None, against: int | None = None, cursor: str = "",
    problem: Json | None = None,
) -> Response:  # fmt: skip
    """The page; with ``problem`` what went wrong on it."""
    current = await visit.api.call("GET", path_of(name))
    stored = current.json()
    if revision is not None and revision != stored["revision"]:
        stored = await visit.api.get(f"{path_of(name)}/revisions/{revision}")
    number = stored["revision"]
    diff = await visit.api.get(f"{path_of(name)}/revisions/{number}/diff", {"against": against})
    history = await visit.api.get(f"{path_of(name)}/revisions", {"cursor": cursor or None, "limit": _PAGE})
    labels = (await visit.api.get(f"{path_of(name)}/labels"))["items"]
    clusters = [
        cluster for cluster in (await visit.api.get("/v1/clusters"))["items"] if cluster["configuration"] == name
    ]
    return visit.show(
        "configuration.html", 200 if problem is None else int(problem["status"]), name=name, stored=stored, diff=diff,
        first_engine=FIRST,
        history=history["items"], following=history["next_cursor"], labels=labels, current=current.json()["revision"],
        problem=problem, clusters=clusters,
    )  # fmt: skip


@configurations_pages.get("/configurations/{name}/export", **page(needs="read"))
async def export(visit: Visiting, name: str) -> Response:
    """The native document of its system."""
    exported: Reply = await visit.api.call("GET", f"{path_of(name)}:export")
    kind = exported.headers.get("content-type", YAML)
    file = f"{segment(name)}.{'yson' if kind == YSON else 'yaml'}"
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{file}"'}
    return Response(exported.body, headers=headers, media_type=kind)


@configurations_pages.get("/configurations/{name}/restore", **page(needs="admin"))
async def ask_to_restore(visit: Visiting, name: str, revision: Annotated[int, Query(ge=1, le=10**9)]) -> Response:
    """What bringing an earlier revision back would change, and whether to."""
    return await _restoring(visit, name, revision, None)


async def _restoring(visit: Visit, name: str, revision: int, problem: Json | None) -> Response:
    current = await visit.api.call("GET", path_of(name))
    now = current.json()["revision"]
    diff = await visit.api.get(f"{path_of(name)}/revisions/{revision}/diff", {"against": now})
    return visit.show(
        "confirm.html", 200 if problem is None else int(problem["status"]), problem=problem,
        question=f"Restore revision {revision} of {name}?", verb=f"Restore revision {revision}", diff=diff,
        says=f"It becomes a new revision after {now}, which is in force; nothing of the history is lost.",
        action=f"/configurations/{segment(name)}/restore", back=f"/configurations/{segment(name)}", back_title=name,
        fields={"revision": revision, "etag": current.etag},
    )  # fmt: skip


@configurations_pages.post("/configurations/{name}/restore", **page(needs="admin"))
async def restore(visit: Visiting, name: str) -> Response:
    """Bring an earlier revision back, as a new one."""
    fields = await visit.form()
    try:
        await visit.api.call(
            "POST", f"{path_of(name)}/revisions/{_number(fields)}:restore",
            {"comment": fields.get("comment") or None}, headers={"If-Match": fields.get("etag")},
        )  # fmt: skip
    except ApiError as refused:
        return await _restoring(visit, name, int(_number(fields)), {**refused.document, "status": refused.status})
    return visit.go(f"/configurations/{segment(name)}")


@configurations_pages.post("/configurations/{name}/labels", **page(needs="admin"))
async def label(visit: Visiting, name: str) -> Response:
    """Point a label at a revision."""
    fields = await visit.form()
    place = f"{path_of(name)}/labels/{segment(fields.get('label', ''))}"
    try:
        try:
            tag = (await visit.api.call("GET", place)).etag
        except ApiError as refused:
            if refused.status != 404:
                raise
            tag = None
        await visit.api.call("PUT", place, body={"revision": int(_number(fields))}, headers={"If-Match": tag})
    except ApiError as refused:
        return await shown(visit, name, problem={**refused.document, "status": refused.status})
    return visit.go(f"/configurations/{segment(name)}")


def _number(fields: dict[str, str]) -> str:
    given = fields.get("revision", "")
    return given if given.isascii() and given.isdigit() and len(given) < 10 else "0"


editing_pages = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True)
class Edited:
    """What is edited: a whole document, or with ``queue`` one queue of it. ``text``: as typed; ``etag``: over which.

    It is checked as one types, compared before it is saved, never over a change that somebody else has made meanwhile.
    """

    name: str
    queue: str
    text: str
    etag: str
    comment: str

    @property
    def place(self) -> str:
        """Where the API has it."""
        return f"{path_of(self.name)}/queues/{segment(self.queue)}" if self.queue else path_of(self.name)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the API says of it. ``current``: the version in force, read now, and its tag."""

    problem: Json | None
    findings: list[Json]
    current: Json | None
    etag: str
    lost: bool


@editing_pages.get("/new", **page(needs="admin"))
async def new(visit: Visiting, name: Annotated[str, Query(max_length=128)] = "") -> Response:
    """To the form for a configuration of that name; without one, or with one that can't be, to where it is given."""
    if not name:
        return visit.go("/configurations#new")
    if re.fullmatch(NAME, name) is None:
        raise BadRequest(_NAMED)
    return visit.go(f"/configurations/{segment(name)}/edit")


@editing_pages.get("/configurations/{name}/edit", **page(needs="admin"))
async def edit(visit: Visiting, name: str) -> Response:
    """The document as it is; of a new name an empty one."""
    return await _begin(visit, name, "")


@editing_pages.get("/configurations/{name}/queue", **page(needs="admin"))
async def edit_queue(visit: Visiting, name: str, queue: Text) -> Response:
    """One queue as it is; a new one where there is none of that name."""
    return await _begin(visit, name, queue)


async def _begin(visit: Visit, name: str, queue: str) -> Response:
    current, etag = await _current(visit, Edited(name, queue, "", "", ""))
    empty: Json = {"quota": {"cpu": {"guaranteed": 0}}} if queue else {"engine": FIRST, "queues": []}
    text = pretty(current if current is not None else empty)
    return visit.show("edit.html", edited=Edited(name, queue, text, etag, ""), checked=None, diff=None, step="edit")


async def offered(visit: Visit, name: str, document: Json, imported: list[Json]) -> Response:
    """A document from elsewhere, as if typed over what is stored under ``name``: checked, compared, to be saved.
    ``imported``: what there is to say of how it was read."""
    current = Edited(name, "", "", "", "")
    sent = Edited(name, "", pretty(document), (await _current(visit, current))[1], "")
    checked = await _checked(visit, sent, document, save=False)
    return _answer(visit, sent, checked, _difference(sent, checked.current, document), "compare", imported)


@editing_pages.post("/configurations/{name}/edit", **page(needs="admin"))
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
    except ApiError as refused:
        problem, lost = refused.document, refused.status == 412
        faults = {
            (fault.get("pointer"), fault.get("detail")) for fault in refused.faults
        }  # what is told once needs no second line
        every = cast(list[Json], problem.get("findings") or [])
        findings = [fault for fault in every if (fault.get("pointer"), fault.get("detail")) not in faults]
    current, etag = (None, "") if save and problem is None else await _current(visit, sent)
    return Checked(problem, findings, current, etag, lost)


async def _current(visit: Visit, sent: Edited) -> tuple[Json | None, str]:
    try:
        reply = await visit.api.call("GET", sent.place)
    except ApiError as refused:
        if refused.status != 404:
            raise
        if not sent.queue:
            return None, ""
        return None, (await visit.api.call("GET", path_of(sent.name))).etag or ""
    return reply.json()["queue" if sent.queue else "configuration"], reply.etag or ""


def _read(text: str) -> tuple[Any, Json | None]:
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return None, {"title": "This is not JSON", "detail": placed(error, text), "errors": []}
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


_FORMATS = get_args(Format)
Name = Annotated[str, Query(max_length=128)]

importing_pages = APIRouter(route_class=PageRoute)


@importing_pages.get("/import", **page(needs="admin"))
async def begin(visit: Visiting, name: Name = "") -> Response:
    """An empty form."""
    return _form(visit, {"name": name, "format": "kubernetes"}, None)


@importing_pages.post("/import", **page(needs="admin"))
async def read(visit: Visiting) -> Response:
    """Read manifests of a real system, pasted or chosen: what is found; the configuration that they make is compared
    with what is stored, and may be saved."""
    fields = await visit.form()
    if re.fullmatch(NAME, fields.get("name", "")) is None:
        return _form(visit, fields, {"title": "Invalid input", "detail": _NAMED, "errors": []})
    wanted = {"format": fields.get("format", ""), "lenient": "true"}  # its findings are shown
    try:
        reply = await visit.api.call(
            "POST", "/v1/configurations:import", wanted, fields.get("manifest", "").encode(),
            {"Content-Type": "application/yaml"},
        )  # fmt: skip
        manifest: Json = reply.json()
        return await offered(visit, fields.get("name", ""), manifest["configuration"], manifest["findings"])
    except ApiError as refused:
        return _form(visit, fields, refused.document)


def _form(visit: Visit, fields: dict[str, str], problem: Json | None) -> Response:
    return visit.show("import.html", status_of(problem), fields=fields, formats=_FORMATS, problem=problem)
