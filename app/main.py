"""create_app: wiring only. What a request passes through, top to bottom, and who answers it."""

import gc
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI

from app.comparisons import router as comparisons
from app.configurations import router as configurations
from app.configurations.service import Configurations
from app.db import Database
from app.decisions import router as decisions
from app.decisions.log import DatabaseStore, DecisionLog
from app.decisions.service import Decider
from app.decisions.stored import StoredSources
from app.http import health, problems
from app.http.compression import CompressionMiddleware
from app.http.offload import Offload
from app.http.openapi import VERSION, describe
from app.http.requests import RequestMiddleware
from app.metrics import Metrics
from app.metrics import router as metrics
from app.settings import Settings
from app.snapshots.store import SnapshotStore
from app.workers.desk import Desk

SUMMARY = "To run this, what must stop, and why?"
DESCRIPTION = """
Arbiter answers a scheduler's hardest question with the decisions of Kueue, YuniKorn, KAI Scheduler and YTsaurus.

Send a cluster's queues (inline, or stored as a configuration), what runs on it, and what waits. The answer says for
each ask whether it can start, which running work must stop for it, in which order, and by which rule. The same request
gives the same answer, byte for byte.

Every error is `application/problem+json`; `errors` names each field at fault by JSON pointer.
"""
TAGS = [
    {"name": "decisions", "description": "Questions about a cluster"},
    {"name": "comparisons", "description": "The same question under several rule books"},
    {"name": "decision log", "description": "What was answered, and answering it again"},
    {"name": "configurations", "description": "Stored settings, flavors and queue trees, with immutable revisions"},
    {"name": "operations", "description": "Health, readiness and metrics"},
]


def create_app(settings: Settings) -> FastAPI:
    """The service on ``settings``. Nothing connects or starts before its lifespan begins."""
    app = FastAPI(
        title="Arbiter", summary=SUMMARY, description=DESCRIPTION, version=VERSION, openapi_tags=TAGS,
        lifespan=_lifespan, redirect_slashes=False,
    )  # fmt: skip
    database = Database(settings.database_url, settings)
    kept = Metrics()
    log = DecisionLog(
        DatabaseStore(database, settings), kept,
        most_entries=settings.decision_log_queue_entries, most_bytes=settings.decision_log_queue_bytes,
    )  # fmt: skip
    stored = Configurations(database)
    sources = StoredSources(stored)
    snapshots = SnapshotStore(budget=1 << 30, idle=3600.0, clock=time.monotonic)
    desk = Desk(sources, snapshots)

    app.state.settings = settings
    app.state.database = database
    app.state.metrics = kept
    app.state.decision_log = log
    app.state.configurations = stored
    app.state.offload = Offload()
    app.state.decider = Decider(desk, desk.sources, log=log, metrics=kept, database=database)

    app.add_middleware(CompressionMiddleware)
    app.add_middleware(RequestMiddleware)
    problems.install(app)
    for found in (decisions, comparisons, configurations, metrics, health):
        app.include_router(found.router)
    app.openapi = cache(lambda: describe_api(app))  # pyright: ignore[reportAttributeAccessIssue]
    return app


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, as ``/openapi.json`` and openapi/openapi.json have it."""
    return describe(
        app, (*decisions.DOCUMENTED, *comparisons.DOCUMENTED, *configurations.DOCUMENTED, *health.DOCUMENTED)
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    log: DecisionLog = app.state.decision_log
    database: Database = app.state.database
    log.start()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        app.state.offload.close()
        log.stop()
        database.close()
