"""create_app: wiring only. What a request passes through, top to bottom, and who answers it."""

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from fastapi import FastAPI

from app import metrics
from app.answering.operations import Answerer
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.auth import router as access
from app.auth.audit import Refusals, Seats
from app.auth.oidc import Client, CodeFlow, OpenId, Provider
from app.auth.router import Sessions
from app.auth.tokens import AuthenticationMiddleware, Guesses, Tokens
from app.base.decoding import prepare_types
from app.base.settings import Settings
from app.base.ticket import CLASSES, Class
from app.clusters import router as clusters
from app.clusters import shadow
from app.clusters.router import Clusters
from app.clusters.shadow import Retention, Shadow
from app.configurations import manifests
from app.configurations import router as configurations
from app.configurations.heads import Follower
from app.configurations.repository import Writes
from app.configurations.router import Administration
from app.configurations.service import Configurations
from app.console import overview as console
from app.console.access import PageVisitors, ProviderSignIn
from app.console.decisions import Recordings
from app.console.overview import Listeners
from app.console.pictures import Drawn
from app.db.database import Database
from app.decisions import batch, snapshots
from app.decisions import guard as extenders
from app.decisions import router as decisions
from app.decisions.kept import LoggedStates
from app.decisions.log import DatabaseStore, DecisionLog
from app.decisions.service import Decider
from app.decisions.snapshots import Snapshots
from app.http import assets, responses, routing
from app.http.body import Budget
from app.http.middleware import (
    CompressionMiddleware,
    ForwardedMiddleware,
    RequestMiddleware,
    SitesMiddleware,
    TimeoutMiddleware,
    TurnsMiddleware,
)
from app.http.openapi import VERSION
from app.http.routing import Services as Provided
from app.http.routing import provide
from app.http.tracing import Tracing, TracingMiddleware
from app.http.tracing import configured as traces_configured
from app.jobs.service import Census, Companion, Jobs
from app.metrics import Metrics
from app.search import service as search
from app.search.service import Finder, Names
from app.service import health
from app.service.document import DESCRIPTION, SUMMARY, TAGS, described
from app.simulations import router as simulations
from app.simulations.accepting import Terms
from app.simulations.service import Simulations
from app.studies import backtesting, sweep_jobs
from app.studies.backtesting import Backtests
from app.studies.study_jobs import EXPOSURES_PART, FORECASTS_PART, ExposureJobs, Forecasts, SnapshotReads
from app.studies.sweep_jobs import Sweeps
from app.traces import router as traces
from app.traces.ingest import Limits as TraceLimits
from app.traces.router import Traces
from app.workers.dispatcher import Dispatcher, Offload, Room
from app.workers.pool import Limits, Pool
from app.workers.worker import Reserve, give_back_when_idle, keep_freed_blocks

_CAPABILITIES = (
    decisions, search, batch, decisions.COMPARISONS, decisions.PLANS, extenders, decisions.RULES, snapshots,
    clusters, shadow, manifests, configurations,
    simulations, FORECASTS_PART, EXPOSURES_PART, backtesting, sweep_jobs, traces, access, health,
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


@dataclass(frozen=True, kw_only=True)
class Services(Provided):
    """What routers work with."""

    settings: Settings
    database: Database
    metrics: Metrics
    log: DecisionLog
    configurations: Configurations
    dispatcher: Dispatcher
    offload: Offload
    decider: Decider
    tokens: Tokens
    sessions: Sessions
    guesses: Guesses
    sign_in: ProviderSignIn
    listeners: Listeners
    seats: Seats
    recordings: Recordings
    drawn: Drawn
    snapshots: Snapshots
    clusters: Clusters
    shadow: Shadow
    finder: Finder
    administration: Administration
    budget: Budget
    follower: Follower
    tracing: Tracing
    outages: health.Outages
    traces: Traces
    simulations: Simulations
    forecasts: Forecasts
    exposures: ExposureJobs
    backtests: Backtests
    sweeps: Sweeps


class Service(FastAPI):
    """FastAPI with a document of our own."""

    @cached_property
    def _document(self) -> dict[str, Any]:
        shapes = tuple(shape for part in _CAPABILITIES for shape in part.DOCUMENTED)
        return described(self, self.state.operations.routes, shapes)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, worked out when it is first asked for."""
        return self._document


def create_app(settings: Settings, beside: Sequence[Companion] = ()) -> FastAPI:
    """The service on ``settings``; ``beside``: processes that run as long, which ``/readyz`` tells of.

    Nothing connects or starts before its lifespan begins."""
    prepare_types()
    app = Service(
        title="Arbiter", summary=SUMMARY, description=DESCRIPTION, version=VERSION, openapi_tags=TAGS,
        lifespan=_lifespan, redirect_slashes=False, openapi_url=None,
    )  # fmt: skip
    database = Database(settings.database_url, settings)
    meters = Metrics()
    logged_states = LoggedStates()
    names = Names(database, _longest(settings))
    log = _decision_log(database, settings, meters, logged_states, names)
    stored = Configurations(database, settings.configuration_cache_bytes)
    meters.follow(stored.heads, settings.heads_stale_seconds)
    dispatcher = _dispatcher(settings, stored)
    waits = settings.database_timeout + 1 if settings.decision_log == "sync" else None
    decider = Decider(
        dispatcher,
        log=log,
        metrics=meters,
        database=database,
        waits=waits,
        documents=stored,
        logged_states=logged_states,
    )
    snapshots = Snapshots(dispatcher, decider, database)
    meters.work(dispatcher)
    meters.registry.register(Census(database))
    tokens = Tokens(database)
    traces = Traces(database, TraceLimits(settings.trace_jobs, settings.trace_bytes), settings.small_body_bytes)
    jobs = Jobs(database, settings.simulations_alive)
    followed = Clusters(database, _retention(settings), decider.ages, names)
    reads = SnapshotReads(snapshots.get, snapshots.state, snapshots.asks, decider.ages.of)
    variants, days = settings.simulation_variants, settings.simulation_days
    services = Services(
        settings=settings,
        database=database,
        metrics=meters,
        log=log,
        configurations=stored,
        dispatcher=dispatcher,
        offload=dispatcher.offload,
        decider=decider,
        tokens=tokens,
        sessions=Sessions(database, tokens, settings.console_key, settings.console_session_seconds),
        guesses=Guesses(),
        sign_in=ProviderSignIn(_code_flow(settings)),
        listeners=Listeners(settings.console_listeners),
        seats=Seats(settings.console_listeners),
        recordings=Recordings(),
        drawn=Drawn(),
        snapshots=snapshots,
        clusters=followed,
        finder=Finder((snapshots.find, decider.find, names.holding, stored.find, followed.find, jobs.named)),
        shadow=Shadow(database, dispatcher, _retention(settings), meters.shadowed, names),
        administration=Administration(database, stored, _writes(database, settings)),
        budget=Budget(settings.bodies_memory_bytes),
        follower=Follower(database, stored.heads, stored.documents, settings.configuration_poll_seconds),
        tracing=traces_configured(),
        outages=health.Outages(tuple(beside)),
        traces=traces,
        simulations=Simulations(jobs, traces, stored, Terms(variants, settings.trace_jobs), settings.small_body_bytes),
        forecasts=Forecasts(jobs, stored, reads, variants, days),
        exposures=ExposureJobs(jobs, stored, reads),
        backtests=Backtests(jobs, stored, variants, lambda: log.settle(_SETTLE_SECONDS)),
        sweeps=Sweeps(jobs, stored, traces),
    )
    provide(app.state, services)

    _pass_through(app, settings, services)
    responses.install(app)
    modules = (*_CAPABILITIES, metrics, assets, *_pages(app, settings))
    app.state.operations = routing.install(app, [module.router for module in modules])
    return app


def _pass_through(app: FastAPI, settings: Settings, services: Services) -> None:
    """What every request goes through, the innermost first."""
    app.add_middleware(TimeoutMiddleware)
    if settings.authentication == "required":
        _guard(app, settings, services)
    app.add_middleware(SitesMiddleware, hosts=settings.hosts if settings.authentication == "open" else None)
    app.add_middleware(CompressionMiddleware)
    app.add_middleware(TurnsMiddleware)
    app.add_middleware(RequestMiddleware, answered=services.metrics.answered)
    if services.tracing.is_on:
        app.add_middleware(TracingMiddleware, traces=services.tracing)
    app.add_middleware(ForwardedMiddleware, proxies=settings.proxies)


def _pages(app: FastAPI, settings: Settings) -> tuple[Any, ...]:
    if settings.console == "off":
        return ()
    console.install(app)
    return (console,)


def _writes(database: Database, settings: Settings) -> Writes:
    most = settings.idempotency_entries, settings.idempotency_bytes
    return Writes(database, settings.idempotency_seconds, *most)


def _retention(settings: Settings) -> Retention:
    return Retention(settings.shadow_retention_days, settings.shadow_retention_entries, settings.shadow_retention_bytes)


def _longest(settings: Settings) -> timedelta | None:
    """For how long a name may lead to something: as long as the log or what followers told is kept."""
    days = settings.decision_log_retention_days, settings.shadow_retention_days
    return timedelta(days=max(days)) if all(days) else None


def _decision_log(
    database: Database, settings: Settings, metrics: Metrics, logged_states: LoggedStates, names: Names
) -> DecisionLog:
    """The log, which tells ``logged_states`` what it could not keep."""
    return DecisionLog(
        DatabaseStore(database, settings, logged_states.lost, names), metrics, lost=logged_states.lost,
        most_entries=settings.decision_log_queue_entries, most_bytes=settings.decision_log_queue_bytes,
    )  # fmt: skip


def _guard(app: FastAPI, settings: Settings, services: Services) -> None:
    """Have everybody say who they are: programs with tokens, people at pages with sessions."""
    refused = services.metrics.refusals
    app.add_middleware(
        AuthenticationMiddleware,
        tokens=services.tokens,
        provider=_provider(settings),
        refusals=Refusals(lambda kind: refused.labels(kind).inc()),
        guesses=services.guesses,
        visitors=PageVisitors(services.sessions) if settings.console == "on" else None,
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
    rooms, most = _rooms(settings), settings.request_timeout
    offload = Offload(rooms, most) if pool is None else Offload(rooms, most, pool.drop)
    answerer = Answerer(Compiled(stored, budget=settings.configuration_cache_bytes), store)
    return Dispatcher(answerer, pool, offload, small=settings.small_body_bytes, seconds=settings.request_timeout)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    services: Services = app.state.services
    services.tracing.start()
    services.log.start()
    services.follower.start()
    services.dispatcher.start()
    keep_freed_blocks()
    reserve = Reserve(_RESERVE_BYTES)
    reserve.grow(_AT_ONCE * services.settings.small_body_bytes)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, 10, 10)
    resting = asyncio.create_task(give_back_when_idle(_REST_SECONDS))
    try:
        yield
    finally:
        resting.cancel()
        services.log.stop()
        services.dispatcher.close()
        services.traces.close()
        services.simulations.close()
        services.offload.close()
        services.follower.close()
        services.database.close()
        services.tracing.close()
