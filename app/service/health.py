"""``/healthz``: the process lives. ``/readyz``: it can do all of its work, and if not, what is missing."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.configurations.service import Configurations
from app.db import Database, is_newer
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.services import service
from app.solver.model.base import Wire

_SECONDS = 1.5
"""That a look at the database may take: whoever asks whether we are ready does not wait for long."""
_LOOKS = CapacityLimiter(4)
"""Threads of its own: requests that wait for the database may take all others."""

router = APIRouter(tags=["operations"])


class Health(Wire, frozen=True, kw_only=True, omit_defaults=False):
    status: Literal["ok"] = "ok"
    """The process answers."""


class Readiness(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """``migration`` is where the database is, ``needed`` where this version of the code wants it.

    ``configurations``: whether names mean what the database says; ``stale`` are those last known, as of
    ``configurations_as_of``, ``unknown`` before the first look.
    """

    status: Literal["ready", "unready"]
    """Whether all work can be done."""
    database: Literal["ok", "unreachable"]
    """Whether the database answers."""
    migration: str | None
    """The migration that the database is at; null where it is not known."""
    needed: str | None
    """The migration that this version needs."""
    configurations: Literal["current", "stale", "unknown"]
    """Whether names mean what the database says now, what it last said, or nothing yet."""
    configurations_as_of: datetime | None
    """When names were last looked up; null before the first look."""
    detail: str = ""
    """What is missing, in one sentence."""


DOCUMENTED = (Health, Readiness)


@router.get("/healthz", operation_id="get_health", **operation(needs=None, responses={200: Health}))
async def health() -> Response:
    """The process answers. It says nothing about the database: decisions with an inline configuration need none."""
    return json_response(Health())


Purpose = Annotated[
    Literal["everything", "decisions"],
    Query(alias="for", description="`decisions`: also ready without the database, once names are known"),
]


@router.get(
    "/readyz",
    operation_id="get_readiness",
    **operation(needs=None, responses={200: Readiness, 503: Readiness}),
)
async def readiness(request: Request, purpose: Purpose = "everything") -> Response:
    """Whether the database answers and is migrated to what this version needs, or further.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only for that.
    """
    found = await to_thread.run_sync(_found, service(request, Database), *_heads(request), limiter=_LOOKS)
    if purpose == "decisions" and found.configurations != "unknown":
        found = msgspec.structs.replace(found, status="ready")
    ready = found.status == "ready"
    return json_response(found, 200 if ready else 503, {} if ready else {"Retry-After": "5"})


def _heads(request: Request) -> tuple[Literal["current", "stale", "unknown"], datetime | None]:
    heads = service(request, Configurations).heads
    if not heads.is_known:
        return "unknown", None
    stale = heads.is_stale(service(request, Settings).heads_stale_seconds)
    return ("stale" if stale else "current"), heads.as_of


def _found(database: Database, heads: Literal["current", "stale", "unknown"], as_of: datetime | None) -> Readiness:
    try:
        migration, needed = database.migration_state(_SECONDS)
    except Unavailable as away:
        return Readiness(
            status="unready", database="unreachable", migration=None, needed=None, configurations=heads,
            configurations_as_of=as_of, detail=away.detail,
        )  # fmt: skip
    ready = migration == needed or is_newer(migration)
    return Readiness(
        status="ready" if ready else "unready", database="ok", migration=migration, needed=needed,
        configurations=heads, configurations_as_of=as_of, detail="" if ready else "run `make migrate`",
    )  # fmt: skip
