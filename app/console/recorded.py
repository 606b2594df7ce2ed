"""A decision of the log with its explanation, kept for as long as it is looked at: neither ever changes."""

from dataclasses import dataclass
from typing import cast
from uuid import UUID

import msgspec

from app.base.lru import Lru
from app.console.api import Api, Call, Json, Refused, segment
from app.console.verdicts import Rules, rules_of
from app.console.visit import Visit
from app.http.services import service

_MOST_SHOWN = 64 << 10
_KEPT = 32
_KEPT_BYTES = 256 << 20
_OBJECTS = 10
"""Bytes that a document takes as objects, over its bytes as JSON."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision of the log with its explanation. ``unexplained``: why there is none. ``resolved``: the request with
    the state that it names, where that is known; else ``unknown`` says why not."""

    record: Json
    request: Json
    resolved: Json
    unknown: str | None
    answer: Json
    rules: Rules
    configuration: Json | None
    identical: bool
    unexplained: str | None
    raw_request: bytes | None
    raw_answer: bytes | None
    calls: tuple[Call, ...]

    def decision_of(self, ask: str | None) -> Json | None:
        """The decision for ``ask``; without one the first for which something stops, or the first at all."""
        decisions: list[Json] = self.answer["decisions"]
        if ask is not None:
            return next((one for one in decisions if one["ask"] == ask), None)
        stopping = (one for one in decisions if one["victims"])
        return next(stopping, decisions[0] if decisions else None)


class Recordings(Lru[UUID, Recorded]):
    """Decisions that somebody looks at: explaining one takes as long as deciding it, and its pages are many."""

    def __init__(self) -> None:
        super().__init__(_KEPT, _KEPT_BYTES)


async def recorded(visit: Visit, identity: UUID) -> Recorded:
    """All that the API says about a decision. Raises Refused."""
    kept = service(visit.request, Recordings)
    record = (await visit.api.call("GET", f"/v1/decisions/{identity}")).body  # each time: the log forgets
    found = kept.get(identity)
    if found is not None:
        visit.api.calls.extend(found.calls)
        return found
    found, size = await _read(visit.api, identity, record)
    if found.unexplained is None:
        kept.put(identity, found, _OBJECTS * size)
    return found


async def _read(api: Api, identity: UUID, body: bytes) -> tuple[Recorded, int]:
    """The same, and how long the documents are in bytes."""
    at, before = f"/v1/decisions/{identity}", len(api.calls)
    record: Json = msgspec.json.decode(body)
    sent = (await api.call("GET", f"{at}/request")).body
    request: Json = msgspec.json.decode(sent)
    resolved, unknown = await _resolved(api, at, request)
    answer, identical, unexplained, size = record["answer"], True, None, len(body) + len(sent)
    try:
        reply = await api.call("GET", f"{at}/explanation", {"level": "full"})
        explained, size = reply.json(), size + len(reply.body)
        identical = explained["identical"]
        if identical:
            answer = explained["answer"]
    except Refused as refused:
        unexplained = refused.detail
    found = Recorded(
        record=record, request=request, resolved=resolved, unknown=unknown, answer=answer,
        rules=rules_of(await api.get("/v1/rules", {"engine": record["engine"]})),
        configuration=await _configuration(api, record, request), identical=identical, unexplained=unexplained,
        raw_request=sent if len(sent) <= _MOST_SHOWN else None, raw_answer=_short(record["answer"]),
        calls=tuple(api.calls[before:]),
    )  # fmt: skip
    return found, size


def _short(document: Json) -> bytes | None:
    encoded = msgspec.json.encode(document)
    return encoded if len(encoded) <= _MOST_SHOWN else None


async def _resolved(api: Api, at: str, request: Json) -> tuple[Json, str | None]:
    """The request with what its snapshot held; as it is, and why, where that is not kept."""
    if request["state"].get("snapshot") is None:
        return request, None
    try:
        return await api.get(f"{at}/request", {"resolved": True}), None
    except Refused as refused:
        return request, refused.detail


async def _configuration(api: Api, record: Json, request: Json) -> Json | None:
    """The document that decided, from the request or from the revision that was used."""
    sent, used = request.get("configuration"), record["configuration"]
    if isinstance(sent, dict):
        return cast(Json, sent)
    if used.get("name") is None:
        return None
    found = await api.find(f"/v1/configurations/{segment(used['name'])}/revisions/{used['revision']}")
    return None if found is None else found["configuration"]
