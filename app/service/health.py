"""``/healthz``: the process lives. ``/readyz``: it can do all of its work, and if not, what is missing."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.base.errors import Unavailable
from app.base.settings import Settings
from app.configurations.service import Configurations
from app.db.database import Database, is_newer
from app.http.openapi import operation
from app.http.responses import json_response
from app.http.routing import service
from app.jobs.service import Companion
from app.solver.model.base import Wire
from app.workers.dispatcher import Dispatcher

_SECONDS = 1.5
"""That a look at the database may take: whoever asks whether we are ready does not wait for long."""
_LOOKS = CapacityLimiter(4)
"""Threads of its own: requests that wait for the database may take all others."""

router = APIRouter(tags=["operations"])


class Health(Wire, frozen=True, kw_only=True, omit_defaults=False):
    status: Literal["ok"] = "ok"
    """The process answers."""


class Unable(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """A part of the service that can't do its work."""

    part: str
    """`database`, `workers` (solver processes), `background` (simulations, forecasts, backtests), `follower NAME`."""
    since: datetime
    """Since when, as far as this process has seen."""
    detail: str
    """What is wrong, in one sentence."""


@dataclass(frozen=True, slots=True)
class Outages:
    """What runs beside the service, and since when the database is seen not to do what is needed."""

    beside: tuple[Companion, ...] = ()
    _database: list[datetime] = field(default_factory=list[datetime])

    def database(self, detail: str) -> list[Unable]:
        """The database as just seen; ``detail``: what is wrong with it, empty where nothing is."""
        if not detail:
            self._database.clear()
            return []
        if not self._database:
            self._database.append(datetime.now(UTC))
        return [Unable(part="database", since=self._database[0], detail=detail)]

    def processes(self, dispatcher: Dispatcher, count: int) -> list[Unable]:
        """Processes that end as soon as they are started, or have ended and not answered since then."""
        unable: list[Unable] = []
        if failing := dispatcher.failing():
            detail = f"{len(failing)} of {count} solver processes ended or hang, and have answered nothing since"
            unable.append(Unable(part="workers", since=min(failing.values()), detail=detail))
        return unable + [
            Unable(part=companion.name, since=since, detail="its process ends and is started again")
            for companion in self.beside
            if (since := companion.failing()) is not None
        ]


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
    unable: list[Unable] = []
    """Each part that can't do its work."""


DOCUMENTED = (Health, Readiness, Unable)


@router.get("/healthz", operation_id="get_health", **operation(needs=None, responses={200: Health}))
async def health() -> Response:
    """The process answers. It says nothing about the database: decisions with an inline configuration need none."""
    return json_response(Health())


Purpose = Annotated[
    Literal["everything", "decisions"],
    Query(alias="for", description="`decisions`: also ready without the database, once names are known"),
]


@router.get(
    "/readyz", operation_id="get_readiness", **operation(needs=None, responses={200: Readiness, 503: Readiness})
)
async def readiness(request: Request, purpose: Purpose = "everything") -> Response:
    """Whether all parts can do their work: the database answers and is migrated to what this version needs or further,
    solver processes answer, what runs beside the service stays alive. `unable` names those that can't.

    Decisions by name go on without the database, on what names last meant; `for=decisions` asks only for that and for a
    solver process.
    """
    outages, dispatcher, count = (
        service(request, Outages),
        service(request, Dispatcher),
        service(request, Settings).workers,
    )
    state = await to_thread.run_sync(_readiness, service(request, Database), outages, *_heads(request), limiter=_LOOKS)
    unable = [*state.unable, *outages.processes(dispatcher, count)]
    ready = not unable
    if purpose == "decisions":
        named = not state.unable or state.configurations != "unknown"
        ready = named and len(dispatcher.failing()) < max(count, 1)
    state = msgspec.structs.replace(
        state, status="ready" if ready else "unready", unable=unable, detail=unable[0].detail if unable else ""
    )
    return json_response(state, 200 if ready else 503, {} if ready else {"Retry-After": "5"})


def _heads(request: Request) -> tuple[Literal["current", "stale", "unknown"], datetime | None]:
    heads = service(request, Configurations).heads
    if not heads.is_known:
        return "unknown", None
    stale = heads.is_stale(service(request, Settings).heads_stale_seconds)
    return ("stale" if stale else "current"), heads.as_of


def _readiness(
    database: Database, outages: Outages, heads: Literal["current", "stale", "unknown"], as_of: datetime | None
) -> Readiness:
    try:
        migration, needed = database.migration_state(_SECONDS)
    except Unavailable as away:
        return Readiness(
            status="unready", database="unreachable", migration=None, needed=None, configurations=heads,
            configurations_as_of=as_of, unable=outages.database(away.detail),
        )  # fmt: skip
    current = migration == needed or is_newer(migration)
    return Readiness(
        status="ready", database="ok", migration=migration, needed=needed, configurations=heads,
        configurations_as_of=as_of, unable=outages.database("" if current else "run `make migrate`"),
    )  # fmt: skip
