"""What will my job evict: a manifest, or a form's few fields, against a snapshot, a followed cluster or manifests."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console.api import Json, Refused, places_of, segment
from app.console.ask import example
from app.console.situation import named, sentence
from app.console.visit import Packed, PageRoute, Text, Visit, Visiting, packed, unpacked
from app.http.openapi import page

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
    found, problem = await _planned(visit, _of_form(fields, wanted)) if whole else (None, None)
    return await _shown(visit, fields | {"wanted": wanted}, found, problem)


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
    return int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() else text


async def _planned(visit: Visit, body: Json) -> tuple[Json | None, Json | None]:
    try:
        return await visit.api.ask("/v1/plans", body), None
    except Refused as refused:
        return None, refused.document


async def _shown(
    visit: Visit, fields: Json, found: Json | None, problem: Json | None, address: str | None = None
) -> Response:
    manifest = {"manifest": example("job.yaml").decode(), "cluster": example("kueue-cluster.yaml").decode()}
    places = await places_of(visit.api) if visit.may("read") else []
    room: Json = {}
    for one, _ in places:
        if one["name"] == fields.get("snapshot"):
            room = await _room(visit, fields.get("configuration") or "", one["configuration"])
    status = 200 if problem is None else int(problem.get("status", 422))
    return visit.show(
        "plan.html", status, fields=(manifest if visit.request.method == "GET" else {}) | fields, found=found,
        problem=problem, sentence=sentence, named=named, room=room, told=told_once(found or {}),
        places=[(one["name"], cluster) for one, cluster in places], address=address if found else None,
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
    at = f"/v1/configurations/{segment(name)}"
    found = await visit.api.find(f"{at}/revisions/{version}" if version else at)
    queues: list[Json] = found["configuration"].get("queues", []) if found else []
    parents = {one.get("parent") for one in queues}
    resources: dict[str, dict[str, None]] = {}
    for one in queues:
        quota: dict[str, Json] = one.get("quota") or {}
        for resource in quota:
            resources.setdefault(resource, {})
        groups: list[Json] = one.get("resource_groups") or []
        for group in groups:
            names: list[str] = group["resources"]
            for resource in names:
                known = resources.setdefault(resource, {})
                known |= dict.fromkeys(flavor["name"] for flavor in group["flavors"])
    leaves = [one["name"] for one in queues if one["name"] not in parents]
    return {"queues": leaves[:_MOST_QUEUES], "resources": {name: list(of) for name, of in sorted(resources.items())}}


def told_once(found: Json) -> list[tuple[Json, int]]:
    """Decisions that differ, each with how many fare alike: a hundred pods of a job are told once."""
    told: dict[Any, tuple[Json, int]] = {}
    for i, one in enumerate(found.get("decisions", ())):
        key = i if one["victims"] else one["outcome"]
        first, alike = told.get(key, (one, 0))
        told[key] = (first, alike + 1)
    return list(told.values())
