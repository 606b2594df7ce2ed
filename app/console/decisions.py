"""Pages of decisions: the log, and one with why it was made and what it stops; clusters that are followed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.base import Lru
from app.console import situation
from app.console.api import Api, ApiError, Call, Json, next_page, segment
from app.console.api import Json as Document
from app.console.exposures import Nearest, nearest_of
from app.console.situation import VERDICTS, Rules, chosen, groups, named, ordered, paged, rules_of, sentence
from app.console.visit import Cursor, Number, PageRoute, Text, Visit, Visiting
from app.formats.manifests import on_kubernetes
from app.http.assets import HEADERS
from app.http.body import Budget
from app.http.openapi import page
from app.http.routing import service
from app.solver.engine import ENGINES
from app.workers.dispatcher import collector_paused

_MOST_SHOWN = 64 << 10
_KEPT = 32
_KEPT_BYTES = 256 << 20
_OBJECTS = 10
"""Bytes that a document takes as objects, over its bytes as JSON."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision of the log with its explanation. ``unexplained``: why there is none. ``resolved``: the request with
    the state that it names, where that is known; else ``unknown`` says why not."""

    record: Document
    request: Document
    resolved: Document
    unknown: str | None
    answer: Document
    rules: Rules
    configuration: Document | None
    identical: bool
    unexplained: str | None
    raw_request: bytes | None
    raw_answer: bytes | None
    calls: tuple[Call, ...]

    def decision_of(self, ask: str | None) -> Document | None:
        """The decision for ``ask``; without one the first for which something stops, or the first at all."""
        decisions: list[Document] = self.answer["decisions"]
        if ask is not None:
            return next((decided for decided in decisions if decided["ask"] == ask), None)
        stopping = (decided for decided in decisions if decided["victims"])
        return next(stopping, decisions[0] if decisions else None)


class Recordings(Lru[UUID, Recorded]):
    """Decisions that somebody looks at, kept as long with their explanations: neither ever changes. Explaining one
    takes as long as deciding it, and its pages are many."""

    def __init__(self) -> None:
        super().__init__(_KEPT, _KEPT_BYTES)


async def recorded(visit: Visit, identity: UUID) -> Recorded:
    """All that the API says about a decision. Raises ApiError."""
    recordings = service(visit.request, Recordings)
    async with service(
        visit.request, Budget
    ).showing.passed():  # one may be large, which nobody knows before it is read
        record = (await visit.api.call("GET", f"/v1/decisions/{identity}")).body  # each time: the log forgets
        known = recordings.get(identity)
        if known is not None:
            visit.api.calls.extend(known.calls)
            return known
        known, size = await _read(visit.api, identity, record)
        if known.unexplained is None:
            recordings.put(identity, known, _OBJECTS * size)
        return known


async def _read(api: Api, identity: UUID, body: bytes) -> tuple[Recorded, int]:
    """The same, and how long the documents are in bytes."""
    address, before = f"/v1/decisions/{identity}", len(api.calls)
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    logged = bytes(parts.pop("answer"))  # read where nothing else is to be had: of many candidates that takes a while
    record: Document = {name: msgspec.json.decode(part) for name, part in parts.items()}
    sent = (await api.call("GET", f"{address}/request")).body
    request: Document = msgspec.json.decode(sent)
    resolved, unknown = await _resolved(api, address, request)
    answer, identical, unexplained, size = None, True, None, len(body) + len(sent)
    try:
        reply = await api.call("GET", f"{address}/explanation", {"level": "full"})
        with collector_paused():  # there is no garbage in it, however much there is
            explained, size = reply.json(), size + len(reply.body)
        identical = explained["identical"]
        if identical:
            answer = explained["answer"]
    except ApiError as refused:
        unexplained = refused.detail
    recording = Recorded(
        record=record, request=request, resolved=resolved, unknown=unknown,
        answer=msgspec.json.decode(logged) if answer is None else answer,
        rules=rules_of(await api.get("/v1/rules", {"engine": record["engine"]})),
        configuration=await _configuration(api, record, request), identical=identical, unexplained=unexplained,
        raw_request=sent if len(sent) <= _MOST_SHOWN else None,
        raw_answer=logged if len(logged) <= _MOST_SHOWN else None,
        calls=tuple(api.calls[before:]),
    )  # fmt: skip
    return recording, size


async def _resolved(api: Api, address: str, request: Document) -> tuple[Document, str | None]:
    """The request with what its snapshot held; as it is, and why, where that is not kept."""
    if request["state"].get("snapshot") is None:
        return request, None
    try:
        return await api.get(f"{address}/request", {"resolved": True}), None
    except ApiError as refused:
        return request, refused.detail


async def _configuration(api: Api, record: Document, request: Document) -> Document | None:
    """The document that decided, from the request or from the revision that was used."""
    sent, used = request.get("configuration"), record["configuration"]
    if isinstance(sent, dict):
        return cast(Document, sent)
    if used.get("name") is None:
        return None
    revision = await api.find(f"/v1/configurations/{segment(used['name'])}/revisions/{used['revision']}")
    return None if revision is None else revision["configuration"]


_MOST_QUEUES = 40
_MOST_NODES = 40
_MOST_STOPPED = 200

IdPath = Annotated[str | None, Query(max_length=2048)]

decision_pages = APIRouter(route_class=PageRoute)


class Looked(NamedTuple):
    """Which part of a decision is looked at: an ask, candidates of one kind, a page of them."""

    ask: str | None
    verdict: str
    rule: str
    find: str
    number: int
    asks: int
    every: bool
    sort: str


def _kind(ask: IdPath = None, verdict: IdPath = None, rule: IdPath = None, find: IdPath = None) -> Json:
    return {"ask": ask, "verdict": verdict or "", "rule": rule or "", "find": find or ""}


def _looked(
    kind: Annotated[Json, Depends(_kind)], page: Number = 1, asks: Number = 1, every: bool = False, sort: Text = ""
) -> Looked:
    return Looked(**kind, number=page, asks=asks, every=every, sort=sort)


_ORDERS: dict[str, Callable[[tuple[int, Json]], Any]] = {
    "place": lambda row: row[0], "verdict": lambda row: list(VERDICTS).index(row[1]["verdict"]),
    "name": lambda row: named(row[1]), "queue": lambda row: row[1].get("queue"), "node": lambda row: row[1].get("node"),
    "rule": lambda row: row[1]["rule"],
}  # fmt: skip


@decision_pages.get("/decisions/{id}", **page(needs="read"))
async def decision(visit: Visiting, id: UUID, look: Annotated[Looked, Depends(_looked)]) -> Response:  # noqa: A002
    """The page where links lead: why it was made, what stops, what is spared, and what queues and nodes have before and
    after."""
    recording = await recorded(visit, id)
    decided = recording.decision_of(look.ask)
    explanation: Json = (decided or {}).get("explanation") or {}
    candidates = ordered(chosen(explanation, look.verdict or None, look.rule or None, look.find), look.sort, _ORDERS)
    return visit.show(
        "decision.html",
        id=str(id), found=recording, record=recording.record, one=decided, explanation=explanation,
        sentence=sentence(decided) if decided else "Nothing was asked.", verdicts=VERDICTS, rules=recording.rules,
        named=named, asks=paged(recording.answer["decisions"], look.asks, 50), stops=_stops(decided, explanation),
        groups=groups(explanation), candidates=paged(candidates, look.number), chosen=look,
        known=bool(explanation.get("candidates")), others=_others(recording.answer, decided), every=look.every,
        raw_request=recording.raw_request, raw_answer=recording.raw_answer,
        **_drawn(recording, decided, every=look.every),
    )  # fmt: skip


def _stops(decided: Json | None, explanation: Json) -> list[tuple[Json, str | None]]:
    """Victims in the engine's order, each with the rule by which it was chosen."""
    by_rule = {
        (c["workload"], c.get("task")): c["rule"]
        for c in explanation.get("candidates") or ()
        if c["verdict"] in ("victim", "moved")
    }
    return [(v, by_rule.get((v["workload"], v.get("task")))) for v in ((decided or {}).get("victims") or ())][
        :_MOST_STOPPED
    ]


def _others(answer: Json, decided: Json | None) -> list[Json]:
    """Evictions of the plan that are not this ask's."""
    mine = {(v["workload"], v.get("task")) for v in ((decided or {}).get("victims") or ())}
    every: list[Json] = _plan(answer, decided)["evictions"]
    return [e for e in every if (e["workload"], e.get("task")) not in mine][:_MOST_STOPPED]


def _plan(answer: Json, decided: Json | None) -> Json:
    """What is carried out for this ask: its own plan where asks were decided each alone."""
    return (decided or {}).get("plan") or answer["plan"]


def _drawn(recording: Recorded, decided: Json | None, *, every: bool) -> dict[str, Any]:
    """Queues and nodes before and after; nothing of them where the request does not say what runs."""
    state: Json = recording.resolved["state"]
    asks = {ask["id"]: ask for ask in situation.asks_of(recording.resolved)}
    ask = asks.get(decided["ask"]) if decided else None
    queues = situation.queues_of(recording.configuration or {}, recording.record["engine"])
    running = {workload["id"]: workload for workload in state.get("workloads", ())}
    situation.load(queues, state)
    situation.decide(queues, decided or {}, ask, running)
    way = situation.above(queues, ask["queue"] if ask else None)
    changed = {queue.name for queue in way} | {
        q.name for top in queues.values() if top.changed for q in situation.above(queues, top.name)
    }
    shown = [queue for queue in queues.values() if every or len(queues) <= _MOST_QUEUES or queue.name in changed]
    nodes = situation.nodes_of(state)
    situation.carry_out(
        nodes, _plan(recording.answer, decided), [decided] if decided else [], {ask["id"]: ask} if ask else {}
    )
    listed = [node for node in nodes.values() if every or len(nodes) <= _MOST_NODES or node.changed]
    return {
        "ask": ask, "snapshot": recording.request["state"].get("snapshot"), "unknown": recording.unknown,
        "way": way, "cells": _cells(queues, decided, ask, running),
        "queues": shown[:1000], "all_queues": len(queues), "nodes": listed[:1000], "all_nodes": len(nodes),
        "units": situation.units,
    }  # fmt: skip


def _cells(
    queues: situation.Tree, decided: Json | None, ask: Json | None, running: dict[str, Json]
) -> list[situation.Cell]:
    """What it is about: what the ask gets, of each flavor that it could where it gets none, then what is freed."""
    gets = list(situation.held(situation.admitted(ask, decided or {}), flavored=queues.flavored)) if ask else []
    stated = queues[ask["queue"]].stated() if ask and ask.get("queue") in queues else []
    about: list[situation.Cell] = []
    for get in gets:
        known = get.flavor or not queues.flavored
        about += [get] if known else [cell for cell in stated if cell.resource == get.resource]
    for victim in (decided or {}).get("victims") or ():
        about += situation.freed(victim, running, flavored=queues.flavored)
    return list(dict.fromkeys(about))


@decision_pages.get("/decisions/{id}/request.json", **page(needs="read"))
async def decision_request(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The request, byte for byte, to keep."""
    return file_of((await visit.api.call("GET", f"/v1/decisions/{id}/request")).body, "request.json")


@decision_pages.get("/decisions/{id}/answer.json", **page(needs="read"))
async def decision_answer(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The recorded answer, to keep."""
    return file_of((await visit.api.call("GET", f"/v1/decisions/{id}")).body, "answer.json")


def file_of(body: bytes, name: str) -> Response:
    """A JSON document to keep, under that name."""
    return Response(
        body,
        headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'},
        media_type="application/json",
    )


@decision_pages.post("/decisions/{id}/replay", **page(needs="decide"))
async def replayed(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """To where it is decided again: an address that can be sent to somebody."""
    return visit.go(f"/decisions/{id}/replay")


@decision_pages.get("/decisions/{id}/replay", **page(needs="decide"))
async def replay(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Decide it again by today's rules, and say whether the answer is the same."""
    outcome = await visit.api.ask(f"/v1/decisions/{id}/replay", None)
    return visit.show("replay.html", id=str(id), replay=outcome)


_CLUSTERS_SHOWN = 50

clusters_pages = APIRouter(route_class=PageRoute)


@clusters_pages.get("/clusters", **page(needs="read"))
async def clusters(
    visit: Visiting, outcome: Annotated[Literal["", "agreed", "differs", "unjudged"], Query()] = "",
    cursor: Cursor = "",
) -> Response:  # fmt: skip
    """What is followed: how old each is, what can't be carried over; and what the schedulers there really stopped,
    beside what Arbiter would have."""
    followed = (await visit.api.get("/v1/clusters"))["items"]
    query = {"outcome": outcome or None, "cursor": cursor or None, "limit": _CLUSTERS_SHOWN}
    compared: dict[str, Any] = await visit.api.get("/v1/shadow", query)
    return visit.show(
        "clusters.html", clusters=followed, found=compared["items"], outcome=outcome,
        following=next_page(compared, "/clusters", {"outcome": outcome}, part="#real"),
        engines=[system.facts.name for system in on_kubernetes() if system.followed],
    )  # fmt: skip


@clusters_pages.get("/clusters/preemptions/{id}/request.json", **page(needs="read"))
async def preemption_request(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The question on which Arbiter and the scheduler differ, to keep."""
    return file_of((await visit.api.call("GET", f"/v1/shadow/{id}/request")).body, "request.json")


_PAGE = 50
_DATE = len("2026-03-02")
_AGO = re.compile(r"(\d{1,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
Filters = dict[str, str]

log_pages = APIRouter(route_class=PageRoute)


def _filters(
    engine: Text = "", outcome: Text = "", configuration: Text = "", queue: Text = "", ask: Text = "",
    workload: Text = "", actor: Text = "",
) -> Filters:  # fmt: skip
    texts = {
        "engine": engine, "outcome": outcome, "configuration": configuration, "queue": queue, "ask": ask,
        "workload": workload, "actor": actor,
    }  # fmt: skip
    return {name: value.strip() for name, value in texts.items()}


def _span(since: Text = "", until: Text = "") -> Filters:
    return {"since": moment_of(since), "until": moment_of(until)}


def moment_of(text: str) -> str:
    """Times as a browser's field gives them and as the log prints them are UTC; "1h" is that long ago. All else goes to
    the API as it is."""
    plain = text.strip()
    if (ago := _AGO.fullmatch(plain)) is not None:
        then = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return f"{then:%Y-%m-%dT%H:%M:%SZ}"
    if len(plain) > _DATE and plain[_DATE] == " ":
        plain = f"{plain[:_DATE]}T{plain[_DATE + 1 :]}"
    if len(plain) == _DATE:
        plain += "T00:00:00"
    if len(plain) == len("2026-03-02T09:30"):
        plain += ":00"
    return f"{plain}Z" if len(plain) == len("2026-03-02T09:30:00") else plain


@log_pages.get("/decisions", **page(needs="read"))
async def decisions(
    visit: Visiting, about: Annotated[Filters, Depends(_filters)], span: Annotated[Filters, Depends(_span)],
    cursor: Cursor = "", purpose: Text = "",
) -> Response:  # fmt: skip
    """Filter, page, open."""
    filters = {**about, **span, "purpose": purpose.strip()}
    wanted = {name: value for name, value in filters.items() if value}
    listing: dict[str, Any] = {"items": []}
    problem = None
    try:
        listing = await visit.api.get("/v1/decisions", {**wanted, "cursor": cursor or None, "limit": _PAGE})
    except ApiError as refused:
        if refused.status not in (400, 422):
            raise
        problem = refused.document
    parts = _parts(wanted) if not cursor and not listing["items"] and problem is None else None
    if parts is not None and (again := await visit.api.get("/v1/decisions", {**parts, "limit": _PAGE}))["items"]:
        listing, wanted = again, parts
    else:
        parts = None
    return visit.show(
        "decisions.html", 200 if problem is None else problem["status"], found=listing["items"], filters=filters,
        filtered=bool(wanted), problem=problem, following=next_page(listing, "/decisions", wanted),
        first=not cursor, engines=list(ENGINES), ranges=_ranges(wanted), parts=parts,
        nearest=await _nearest(visit, wanted) if not listing["items"] else [],
        faults={f.get("parameter"): f["detail"] for f in (problem or {}).get("errors", ())},
    )  # fmt: skip


_BY_PART = ("configuration", "queue", "ask", "workload", "actor")


def _parts(wanted: Filters) -> Filters | None:
    """The same filters by any part of a name; None: there is no name among them, or it says already what may be any."""
    named = {name: f"*{value}*" for name, value in wanted.items() if name in _BY_PART and not {"*", "@"} & set(value)}
    return {**wanted, **named} if named else None


async def _nearest(visit: Visit, wanted: Filters) -> list[tuple[str, Nearest]]:
    """For each name that was looked for, those that are nearly it, with the address of the log filtered by them."""
    kinds = {"queue": ("queue",), "ask": ("ask",), "workload": ("workload",), "configuration": ("configuration",)}
    addressed: list[tuple[str, Nearest]] = []
    for name in kinds.keys() & wanted.keys():
        near = await nearest_of(visit, wanted[name].strip("*"), kinds[name])
        addressed += [(f"/decisions?{urlencode({**wanted, name: hit.name})}", hit) for hit in near]
    return addressed


def _ranges(wanted: Filters) -> list[tuple[str, str]]:
    """Spans that people often look at, each with its address; the other filters stay."""
    others = {name: value for name, value in wanted.items() if name not in ("since", "until")}
    spans = (("last hour", "1h"), ("last day", "1d"), ("last week", "7d"))
    return [(title, f"/decisions?{urlencode({**others, 'since': since})}") for title, since in spans]
