"""``/healthz``: the process lives. ``/readyz``: it can do all of its work, and if not, what is missing."""

from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.db import Database
from app.errors import Unavailable
from app.http.openapi import operation
from app.http.responses import json_response
from app.solver.model.base import Wire

router = APIRouter(tags=["operations"])


class Health(Wire, frozen=True, kw_only=True, omit_defaults=False):
    status: Literal["ok"] = "ok"


class Readiness(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """``migration`` is where the database is, ``needed`` where this version of the code wants it."""

    status: Literal["ready", "unready"]
    database: Literal["ok", "unreachable"]
    migration: str | None
    needed: str | None
    detail: str = ""


DOCUMENTED = (Health, Readiness)


@router.get("/healthz", operation_id="get_health", **operation(responses={200: Health}))
async def health() -> Response:
    """The process answers. It says nothing about the database: decisions with an inline configuration need none."""
    return json_response(Health())


@router.get("/readyz", operation_id="get_readiness", **operation(responses={200: Readiness, 503: Readiness}))
def readiness(request: Request) -> Response:
    """Whether the database answers and is migrated to what this version needs."""
    database: Database = request.app.state.database
    try:
        migration, needed = database.migration_state()
    except Unavailable as away:
        found = Readiness(status="unready", database="unreachable", migration=None, needed=None, detail=away.detail)
    else:
        found = Readiness(
            status="ready" if migration == needed else "unready",
            database="ok", migration=migration, needed=needed,
            detail="" if migration == needed else "run `make migrate`",
        )  # fmt: skip
    ready = found.status == "ready"
    return json_response(found, 200 if ready else 503, {} if ready else {"Retry-After": "5"})
