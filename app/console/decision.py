"""One decision: why it was made, what stops, what is spared, and what queues and nodes have before and after."""

from typing import Annotated, Any, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.console import situation
from app.console.api import Json
from app.console.recorded import Recorded, recorded
from app.console.verdicts import VERDICTS, chosen, groups, named, paged, sentence
from app.console.visit import PageRoute, Visiting
from app.http.openapi import page
from app.http.policy import HEADERS

_MOST_QUEUES = 40
_MOST_NODES = 40
_MOST_STOPPED = 200

Text = Annotated[str | None, Query(max_length=2048)]
Number = Annotated[int, Query(ge=1, le=10**7)]

router = APIRouter(route_class=PageRoute)


class Looked(NamedTuple):
    """Which part of a decision is looked at: an ask, candidates of one kind, a page of them."""

    ask: str | None
    verdict: str
    rule: str
    find: str
    number: int
    asks: int
    every: bool


def _looked(
    ask: Text = None, verdict: Text = None, rule: Text = None, find: Text = None,
    page: Number = 1, asks: Number = 1, every: bool = False,
) -> Looked:  # fmt: skip
    return Looked(ask, verdict or "", rule or "", find or "", page, asks, every)


@router.get("/decisions/{id}", **page(needs="read"))
async def decision(visit: Visiting, id: UUID, look: Annotated[Looked, Depends(_looked)]) -> Response:  # noqa: A002
    """The page where links lead."""
    found = await recorded(visit, id)
    one = found.decision_of(look.ask)
    explanation: Json = (one or {}).get("explanation") or {}
    candidates = chosen(explanation, look.verdict or None, look.rule or None, look.find)
    return visit.show(
        "decision.html",
        id=str(id), found=found, record=found.record, one=one, explanation=explanation,
        sentence=sentence(one) if one else "Nothing was asked.", verdicts=VERDICTS, rules=found.rules, named=named,
        asks=paged(found.answer["decisions"], look.asks, 50), stops=_stops(one, explanation),
        groups=groups(explanation), candidates=paged(candidates, look.number),
        chosen=look,
        known=bool(explanation.get("candidates")), others=_others(found.answer, one), every=look.every,
        raw_request=found.raw_request, raw_answer=found.raw_answer, **_drawn(found, one, every=look.every),
    )  # fmt: skip


def _stops(one: Json | None, explanation: Json) -> list[tuple[Json, str | None]]:
    """Victims in the engine's order, each with the rule by which it was chosen."""
    by_rule = {
        (c["workload"], c.get("task")): c["rule"]
        for c in explanation.get("candidates") or ()
        if c["verdict"] in ("victim", "moved")
    }
    return [(v, by_rule.get((v["workload"], v.get("task")))) for v in ((one or {}).get("victims") or ())][
        :_MOST_STOPPED
    ]


def _others(answer: Json, one: Json | None) -> list[Json]:
    """Evictions of the plan that are not this ask's."""
    mine = {(v["workload"], v.get("task")) for v in ((one or {}).get("victims") or ())}
    every: list[Json] = _plan(answer, one)["evictions"]
    return [e for e in every if (e["workload"], e.get("task")) not in mine][:_MOST_STOPPED]


def _plan(answer: Json, one: Json | None) -> Json:
    """What is carried out for this ask: its own plan where asks were decided each alone."""
    return (one or {}).get("plan") or answer["plan"]


def _drawn(found: Recorded, one: Json | None, *, every: bool) -> dict[str, Any]:
    """Queues and nodes before and after; nothing of them where the request does not say what runs."""
    state: Json = found.resolved["state"]
    asks = {ask["id"]: ask for ask in situation.asks_of(found.resolved)}
    ask = asks.get(one["ask"]) if one else None
    queues = situation.queues_of(found.configuration or {})
    situation.load(queues, state)
    situation.decide(queues, one or {}, ask)
    way = situation.above(queues, ask["queue"] if ask else None)
    told = {queue.name for queue in way} | {q.name for top in queues.values() if top.changed for q in _up(queues, top)}
    shown = [queue for queue in queues.values() if every or len(queues) <= _MOST_QUEUES or queue.name in told]
    nodes = situation.nodes_of(state)
    situation.carry_out(nodes, _plan(found.answer, one), [one] if one else [], {ask["id"]: ask} if ask else {})
    listed = [node for node in nodes.values() if every or len(nodes) <= _MOST_NODES or node.changed]
    return {
        "ask": ask, "snapshot": found.request["state"].get("snapshot"), "unknown": found.unknown,
        "way": way, "resources": _resources(one, ask),
        "queues": shown[:1000], "all_queues": len(queues), "nodes": listed[:1000], "all_nodes": len(nodes),
        "units": situation.units,
    }  # fmt: skip


def _up(queues: dict[str, situation.Queue], one: situation.Queue) -> list[situation.Queue]:
    return situation.above(queues, one.name)


def _resources(one: Json | None, ask: Json | None) -> list[str]:
    """What it is about: the resources that the ask wants, then others that are freed."""
    wanted = situation.requested(ask["tasks"]) if ask else {}
    freed = [resource for victim in ((one or {}).get("victims") or ()) for resource in victim.get("freed", ())]
    return list(dict.fromkeys([*wanted, *freed]))[:4]


@router.get("/decisions/{id}/request.json", **page(needs="read"))
async def decision_request(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """The request, byte for byte, to keep."""
    return file_of((await visit.api.call("GET", f"/v1/decisions/{id}/request")).body, "request.json")


@router.get("/decisions/{id}/answer.json", **page(needs="read"))
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


@router.post("/decisions/{id}/replay", **page(needs="decide"))
async def replay(visit: Visiting, id: UUID) -> Response:  # noqa: A002
    """Decide it again by today's rules, and say whether the answer is the same."""
    found = await visit.api.ask(f"/v1/decisions/{id}/replay", None)
    return visit.show("replay.html", id=str(id), replay=found)
