"""create_app: wiring only. What a request passes through, top to bottom, and who answers it."""

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, get_args

from fastapi import FastAPI

from app.answering.answerer import Answerer
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.auth import router as access
from app.auth.code_flow import Client, CodeFlow
from app.auth.guesses import Guesses
from app.auth.middleware import AuthenticationMiddleware
from app.auth.oidc import OpenId, Provider
from app.auth.refusals import Refusals
from app.auth.scopes import Scope
from app.auth.service import Tokens
from app.auth.sessions import Sessions
from app.base.settings import Settings
from app.base.spans import Tracing
from app.base.spans import configured as traces_configured
from app.clusters import router as clusters
from app.clusters.service import Clusters
from app.clusters.shadow import router as shadow
from app.clusters.shadow.service import Retention, Shadow
from app.configurations import manifests, rules
from app.configurations import router as configurations
from app.configurations.heads import Follower
from app.configurations.router import Administration
from app.configurations.service import Configurations
from app.console import router as console
from app.console.decisions import Recordings
from app.console.overview import Listeners
from app.console.sign_in import PageVisitors, ProviderSignIn
from app.db import Database
from app.decisions import batch, snapshots
from app.decisions import guard as extenders
from app.decisions import router as decisions
from app.decisions.kept import Ledger
from app.decisions.log import DatabaseStore, DecisionLog
from app.decisions.service import Decider
from app.decisions.snapshots import Snapshots
from app.http import assets, docs, problems, routing
from app.http.budget import Budget
from app.http.compression import CompressionMiddleware
from app.http.description import describe
from app.http.openapi import SCHEMA, VERSION, reference
from app.http.requests import RequestMiddleware
from app.http.services import Services, install
from app.http.sites import SitesMiddleware
from app.http.timeout import TimeoutMiddleware
from app.http.tracing import TracingMiddleware
from app.jobs.companion import Census, Companion
from app.jobs.service import Jobs
from app.metrics import Metrics
from app.metrics import router as metrics
from app.service import health
from app.simulations import router as simulations
from app.simulations.accepting import Terms
from app.simulations.service import Simulations
from app.solver.model import kai, kueue, ytsaurus
from app.solver.model.configuration import Configuration, EngineName, TaintEffect
from app.solver.model.decision import Outcome
from app.solver.model.request import Explain, Mode
from app.solver.model.state import TaskState
from app.studies import backtests, forecasts
from app.studies.backtests import Backtests
from app.studies.forecasts import Forecasts
from app.traces import router as traces
from app.traces.ingest import Limits as TraceLimits
from app.traces.service import Traces
from app.workers.dispatcher import Dispatcher
from app.workers.offload import CLASSES, Class, Offload, Room
from app.workers.pool import Limits, Pool
from app.workers.worker import Reserve, give_back_when_idle, keep_freed_blocks

_CHOICES = {
    "EngineName": EngineName,
    "Explain": Explain,
    "Mode": Mode,
    "Outcome": Outcome,
    "Scope": Scope,
    "TaintEffect": TaintEffect,
    "TaskState": TaskState,
    "KueueFungibility": kueue.Fungibility,
    "KueueSorting": kueue.Sorting,
    "KueueStrategy": kueue.Strategy,
    "KaiAction": kai.Action,
    "Rules": ytsaurus.Rules,
    "YtsaurusMode": ytsaurus.Mode,
    "YtsaurusPreemptionMode": ytsaurus.PreemptionMode,
    "YtsaurusPriorityScope": ytsaurus.PriorityScope,
    "YtsaurusStarvation": ytsaurus.Starvation,
    "YtsaurusStatus": ytsaurus.Status,
}


def common() -> dict[str, dict[str, Any]]:
    """By name in the document."""
    quantity = {"$ref": SCHEMA.format(name="Quantity")}
    return {
        "Resources": {"type": "object", "additionalProperties": quantity},
        "ConfigurationOrName": {"anyOf": [{"type": "string"}, reference(Configuration)]},
        **{name: {"type": "string", "enum": list(get_args(of))} for name, of in _CHOICES.items()},
    }


_CAPABILITIES = (
    decisions, batch, decisions.COMPARISONS, decisions.PLANS, extenders, rules, snapshots, clusters, shadow, manifests,
    configurations,
    simulations, forecasts, backtests, traces, access, health,
)  # fmt: skip
"""What the interface documents."""

_THREADS = 8
"""Requests of a class that this process works on at once; more would only slow one another down."""
_SMALL_WAITING = 16
"""As many small requests may wait as this times any others: they take little memory, and a slow one goes on elsewhere
after some milliseconds. So a burst of slow ones does not shut out the others."""
_AT_ONCE = 4
"""Small requests in memory at the same time that memory is kept for."""
_RESERVE_BYTES = 64 << 20
_REST_SECONDS = 15.0
_SETTLE_SECONDS = 1.0
_COLLECT_EVERY = 20_000
"""Containers made and not yet freed, between collections: with the usual 700 every small decision would pay for one."""

SUMMARY = "To run this, what must stop, and why?"
DESCRIPTION = """
Arbiter answers a scheduler's hardest question with the decisions of Kueue, YuniKorn, KAI Scheduler and YTsaurus.

Send a cluster's queues (inline, or stored as a configuration), what runs on it, and what waits. The answer says for
each ask whether it can start, which running work must stop for it, in which order, and by which rule. The same request
gives the same answer, byte for byte.

Every error is `application/problem+json`; `errors` names each field at fault by JSON pointer, unknown fields and query
parameters too. `HEAD` works wherever `GET` does.
"""
TAGS = [
    {"name": "decisions", "description": "Questions about a cluster"},
    {"name": "comparisons", "description": "The same question under several rule books"},
    {"name": "plans", "description": "Work that is not submitted yet"},
    {"name": "extenders", "description": "Schedulers that ask before they evict"},
    {"name": "decision log", "description": "What was answered, and answering it again"},
    {"name": "snapshots", "description": "States that stay: changed by deltas, named by decisions"},
    {"name": "clusters", "description": "Clusters that are followed live: how old, how much, by whom"},
    {"name": "shadow", "description": "Real preemptions beside what Arbiter says for the moment before"},
    {"name": "configurations", "description": "Stored settings, flavors and queue trees, with immutable revisions"},
    {"name": "simulations", "description": "Decisions over time: a trace of jobs, round by round"},
    {"name": "traces", "description": "Jobs and changes over time, to play on other configurations"},
    {"name": "access", "description": "Tokens, and the log of every write and of refusals"},
    {"name": "operations", "description": "Health, readiness and metrics"},
]


def create_app(settings: Settings, beside: Sequence[Companion] = ()) -> FastAPI:
    """The service on ``settings``; ``beside``: processes that run as long, which ``/readyz`` tells of.

    Nothing connects or starts before its lifespan begins."""
    app = FastAPI(
        title="Arbiter", summary=SUMMARY, description=DESCRIPTION, version=VERSION, openapi_tags=TAGS,
        lifespan=_lifespan, redirect_slashes=False, openapi_url=None,
    )  # fmt: skip
    database = Database(settings.database_url, settings)
    kept = Metrics()
    ledger = Ledger()
    log = _decision_log(database, settings, kept, ledger)
    stored = Configurations(database, settings.configuration_cache_bytes)
    kept.follow(stored.heads, settings.heads_stale_seconds)
    dispatcher = _dispatcher(settings, stored)
    offload = Offload(_rooms(settings), settings.request_timeout)
    dispatcher.crowded = lambda: offload.inside("small") > 1
    waits = settings.database_timeout + 1 if settings.decision_log == "sync" else None
    decider = Decider(
        dispatcher, log=log, metrics=kept, database=database, waits=waits, documents=stored, ledger=ledger
    )
    snapshots = Snapshots(dispatcher, decider, database)
    kept.work(dispatcher, offload)
    kept.registry.register(Census(database))
    tokens = Tokens(database)
    sessions = Sessions(database, tokens, settings.console_key, settings.console_session_seconds)
    services = Services(
        settings, database, kept, log, stored, dispatcher, offload, decider, tokens, sessions,
        Listeners(settings.console_listeners), Recordings(), ProviderSignIn(_code_flow(settings)),
        snapshots,
        Clusters(database, _retention(settings)),
        Shadow(database, dispatcher, _retention(settings), kept.shadowed),
        Administration(database, stored, settings.idempotency_seconds),
        Budget(settings.bodies_memory_bytes),
        Follower(database, stored.heads, stored.documents, settings.configuration_poll_seconds),
        traces_configured(),
        Guesses(),
        health.Outages(tuple(beside)),
        *_simulations(database, settings, stored, log, snapshots),
    )  # fmt: skip
    install(app.state, services)

    _pass_through(app, settings, services)
    problems.install(app)
    found = (*_CAPABILITIES, metrics, docs, assets, *_pages(app, settings))
    app.state.operations = routing.install(app, [one.router for one in found])
    app.openapi = cache(lambda: describe_api(app))  # pyright: ignore[reportAttributeAccessIssue]
    return app


def _pass_through(app: FastAPI, settings: Settings, services: Services) -> None:
    """What every request goes through, the innermost first."""
    app.add_middleware(TimeoutMiddleware)
    if settings.authentication == "required":
        _guard(app, settings, services)
    app.add_middleware(SitesMiddleware, hosts=settings.hosts if settings.authentication == "open" else None)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(RequestMiddleware, answered=services.of(Metrics).answered)
    if (exported := services.of(Tracing)).is_on:
        app.add_middleware(TracingMiddleware, traces=exported)


def _pages(app: FastAPI, settings: Settings) -> tuple[Any, ...]:
    """The console, where it is wanted."""
    if settings.console == "off":
        return ()
    console.install(app)
    return (console,)


def _simulations(
    database: Database, settings: Settings, stored: Configurations, log: DecisionLog, snapshots: Snapshots
) -> tuple[Traces, Simulations, Forecasts, Backtests]:
    traced = Traces(database, TraceLimits(settings.trace_jobs, settings.trace_bytes), settings.small_body_bytes)
    jobs = Jobs(database, settings.simulations_alive)
    terms = Terms(settings.simulation_variants, settings.trace_jobs)
    return (
        traced,
        Simulations(jobs, traced, stored, terms, settings.small_body_bytes),
        Forecasts(jobs, stored, snapshots.state, settings.simulation_variants, settings.simulation_days),
        Backtests(jobs, stored, settings.simulation_variants, lambda: log.settle(_SETTLE_SECONDS)),
    )


def _retention(settings: Settings) -> Retention:
    return Retention(settings.shadow_retention_days, settings.shadow_retention_entries, settings.shadow_retention_bytes)


def _decision_log(database: Database, settings: Settings, metrics: Metrics, ledger: Ledger) -> DecisionLog:
    """The log, which tells ``ledger`` what it could not keep."""
    log = DecisionLog(
        DatabaseStore(database, settings, ledger.lost), metrics,
        most_entries=settings.decision_log_queue_entries, most_bytes=settings.decision_log_queue_bytes,
    )  # fmt: skip
    log.lost = ledger.lost
    return log


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, as ``/openapi.json`` and openapi/openapi.json have it."""
    shapes = tuple(shape for router in _CAPABILITIES for shape in router.DOCUMENTED)
    return describe(app, app.state.operations.contexts, shapes, common())


def _guard(app: FastAPI, settings: Settings, services: Services) -> None:
    """Have everybody say who they are: programs with tokens, people at pages with sessions."""
    refused = services.of(Metrics).refusals
    app.add_middleware(
        AuthenticationMiddleware,
        tokens=services.of(Tokens),
        provider=_provider(settings),
        refusals=Refusals(lambda kind: refused.labels(kind).inc()),
        guesses=services.of(Guesses),
        visitors=PageVisitors(services.of(Sessions)) if settings.console == "on" else None,
    )


def _code_flow(settings: Settings) -> CodeFlow | None:
    """Signing in at the provider, where it knows the console."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None:
        return None
    api, own = _provider(settings), _provider(settings, settings.oidc_client_id)
    assert api is not None
    assert own is not None
    client = Client(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)
    return CodeFlow(client, api, own)


def _provider(settings: Settings, audience: str | None = None) -> OpenId | None:
    audience = audience or settings.oidc_audience
    if settings.oidc_issuer is None or audience is None:
        return None
    return OpenId(
        Provider(
            issuer=settings.oidc_issuer,
            audience=audience,
            jwks_url=settings.oidc_jwks_url,
            claim=settings.oidc_scope_claim,
            prefix=settings.oidc_scope_prefix,
        )
    )


def _rooms(settings: Settings) -> dict[Class, Room]:
    """A thread for each request that may wait for a worker; few where they share this process's interpreter."""
    waiting = settings.waiting_requests
    elsewhere = Room(settings.workers + waiting, 0) if settings.workers else Room(_THREADS, waiting)
    return {of: Room(_THREADS, _SMALL_WAITING * waiting) if of == "small" else elsewhere for of in CLASSES}


def _dispatcher(settings: Settings, stored: Configurations) -> Dispatcher:
    store = SnapshotStore(
        budget=settings.snapshot_memory_bytes, idle=settings.snapshot_idle_seconds, clock=time.monotonic
    )
    limits = Limits(settings.snapshot_memory_bytes, settings.snapshot_idle_seconds)
    pool = Pool(settings.workers, stored, limits) if settings.workers else None
    answerer = Answerer(Compiled(stored, budget=settings.configuration_cache_bytes), store)
    return Dispatcher(answerer, pool, small=settings.small_body_bytes, seconds=settings.request_timeout)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    services: Services = app.state.services
    log, dispatcher, follower = services.of(DecisionLog), services.of(Dispatcher), services.of(Follower)
    services.of(Tracing).start()
    log.start()
    follower.start()
    dispatcher.start()
    keep_freed_blocks()
    reserve = Reserve(_RESERVE_BYTES)
    reserve.grow(_AT_ONCE * services.of(Settings).small_body_bytes)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, 10, 10)
    resting = asyncio.create_task(give_back_when_idle(_REST_SECONDS))
    try:
        yield
    finally:
        resting.cancel()
        log.stop()
        dispatcher.close()
        services.of(Traces).close()
        services.of(Simulations).close()
        services.of(Offload).close()
        follower.close()
        services.of(Database).close()
        services.of(Tracing).close()
