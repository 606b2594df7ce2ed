# pyright: reportPrivateUsage=false
"""How the service is put together, and in which order it begins and ends."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from app.auth.tokens import AuthenticationMiddleware
from app.base import decoding
from app.base.errors import ArbiterError
from app.base.settings import Settings
from app.base.ticket import CLASSES
from app.decisions.log import DecisionLog
from app.decisions.service import Decider
from app.http.middleware import (
    CompressionMiddleware,
    ForwardedMiddleware,
    RequestMiddleware,
    SitesMiddleware,
    TimeoutMiddleware,
    TurnsMiddleware,
)
from app.http.routing import Services
from app.http.tracing import Tracing, TracingMiddleware
from app.metrics import Metrics
from app.service import main
from app.workers.dispatcher import Dispatcher, Room
from tests.support.instead import Instead, Machine

ALONE = Settings(database_url=None, workers=0)


def made(**settings: Any) -> Any:
    return main.create_app(ALONE.model_copy(update=settings))


@pytest.mark.parametrize(("workers", "others"), [(0, Room(8, 5)), (3, Room(8, 0)), (1, Room(6, 0))])
def test_small_requests_have_threads_of_their_own(workers: int, others: Room) -> None:
    rooms = main._rooms(Settings(workers=workers, waiting_requests=5))
    assert rooms == {one: Room(8, 80) if one == "small" else others for one in CLASSES}


def test_a_provider_is_asked_for_what_it_was_made_for() -> None:
    asks = main._provider
    assert asks(Settings()) is None
    assert asks(Settings(oidc_audience="a")) is None
    settings = Settings(
        oidc_issuer="https://id", oidc_audience="a", authentication="required", oidc_jwks_url="https://id/keys",
        oidc_scope_claim="roles", oidc_scope_prefix="arbiter:",
    )  # fmt: skip
    for audience, expected in ((None, "a"), ("own", "own")):
        found = asks(settings, audience)
        assert found is not None
        provider: Any = next(value for value in vars(found).values() if isinstance(value, main.Provider))
        assert (provider.issuer, provider.audience, provider.jwks_url, provider.claim, provider.prefix) == (
            "https://id", expected, "https://id/keys", "roles", "arbiter:",
        )  # fmt: skip
    assert main._code_flow(settings) is None
    assert main._code_flow(settings.model_copy(update={"oidc_client_id": "c", "oidc_issuer": None})) is None
    assert main._code_flow(settings.model_copy(update={"oidc_client_id": "c"})) is not None


@pytest.mark.parametrize(
    ("settings", "guarded"), [({}, False), ({"authentication": "required"}, True)],
)  # fmt: skip
def test_what_a_request_passes_through(settings: Any, guarded: bool, instead: Instead) -> None:
    inner = [AuthenticationMiddleware] if guarded else []
    around = [RequestMiddleware, TurnsMiddleware, CompressionMiddleware, SitesMiddleware, *inner, TimeoutMiddleware]
    assert [one.cls for one in made(**settings).user_middleware] == [ForwardedMiddleware, *around]
    instead(main, traces_configured=lambda: Tracing(lambda: None))
    assert [one.cls for one in made(**settings).user_middleware] == [
        ForwardedMiddleware, TracingMiddleware, *around,
    ]  # fmt: skip


@pytest.mark.parametrize(("console", "there"), [("on", True), ("off", False)])
def test_the_console_is_there_where_it_is_wanted(console: str, there: bool) -> None:
    for authentication in ("open", "required"):
        app = made(console=console, authentication=authentication)
        scope = {"type": "http", "method": "GET", "path": "/"}
        assert (app.state.operations.resolve(scope).operation is not None) is there
        options = [one.kwargs for one in app.user_middleware if one.cls is AuthenticationMiddleware]
        assert all((one["visitors"] is not None) is there for one in options)


def test_what_is_raised_is_told_as_a_problem_or_as_a_page() -> None:
    with_pages, without = (made(console=console).exception_handlers for console in ("on", "off"))
    assert {ArbiterError, HTTPException} <= set(without)
    assert with_pages[HTTPException] is not without[HTTPException]


def test_who_waits_for_the_log_waits_no_longer_than_the_database_may_take() -> None:
    for log, waits in (("async", None), ("sync", 5.0)):
        decider = made(decision_log=log, database_timeout=4.0).state.services.of(Decider)
        assert waits in vars(decider).values()
        assert (5.0 in vars(decider).values()) is (waits is not None)


def test_metrics_show_all_parts_of_the_service() -> None:
    services: Services = made().state.services
    text = services.of(Metrics).text().decode()
    for name in ("arbiter_configurations_stale", "arbiter_configurations_known 0.0", "arbiter_requests_waiting"):
        assert name in text
    collectors: Any = services.of(Metrics).registry
    assert "Census" in {type(one).__name__ for one in collectors._collector_to_names}
    log: Any = services.of(DecisionLog)
    assert log._lost.__name__ == "lost"


def test_workers_are_there_where_they_are_wanted() -> None:
    for workers, there in ((0, False), (2, True)):
        dispatcher = made(workers=workers).state.services.of(Dispatcher)
        assert any(type(value).__name__ == "Pool" for value in vars(dispatcher).values()) is there


class Parts:
    """Services that tell what is done to them."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, part: str) -> Any:
        if part == "settings":
            return Settings(small_body_bytes=1000)
        told = self.told

        class Part:
            def __getattr__(self, name: str) -> Any:
                return lambda: told.append(f"{part}.{name}")

        return Part()


def test_what_begins_ends(instead: Instead) -> None:
    parts = Parts()
    memory: list[Any] = []
    fake = SimpleNamespace(
        collect=lambda: memory.append("collect"), freeze=lambda: memory.append("freeze"),
        set_threshold=lambda *of: memory.append(of),
    )  # fmt: skip
    instead(
        main,
        gc=fake,
        keep_freed_blocks=lambda: memory.append("kept"),
        Reserve=lambda size: SimpleNamespace(grow=lambda by: memory.append((size, by))),
    )
    app: Any = SimpleNamespace(state=SimpleNamespace(services=parts))

    async def lives() -> None:
        async with main._lifespan(app):
            parts.told.append("serving")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(lives())
    assert memory == ["kept", (64 << 20, 4000), "collect", "freeze", (20_000, 10, 10)]
    assert parts.told == [
        "tracing.start", "log.start", "follower.start", "dispatcher.start", "serving", "log.stop", "dispatcher.close",
        "traces.close", "simulations.close", "offload.close", "follower.close", "database.close", "tracing.close",
    ]  # fmt: skip


def test_parameters_are_those_of_the_document() -> None:
    """What is read from signatures is what FastAPI reads from them."""
    app, count = made(), 0
    paths = app.openapi()["paths"]
    for place in app.state.operations.places:
        for method, operation in place.operations.items():
            if (said := paths.get(place.template, {}).get(method.lower())) is None:
                continue
            for where, listed in (("path", operation.path), ("query", operation.query)):
                documented = [one for one in said.get("parameters", ()) if one.get("in") == where]
                assert {(one.alias, one.required) for one in listed} == {
                    (one["name"], one["required"]) for one in documented
                }, (method, place.template)
                count += len(listed)
    assert count > 100


def test_the_document_is_made_once(instead: Instead) -> None:
    app, count = made(), list[int]()
    instead(main, described=lambda *_: count.append(1) or {"made": len(count)})
    assert app.openapi() == app.openapi() == {"made": 1}
    assert (app.router.redirect_slashes, app.openapi_url) == (False, None)


def test_the_fast_search_is_that_of_linux(monkeypatch: pytest.MonkeyPatch, machine: Machine, instead: Instead) -> None:
    machine.runs("darwin")
    assert decoding._of_libc() is None
    machine.runs("linux")
    instead(decoding.ctypes, PyDLL=lambda name: SimpleNamespace())
    assert decoding._of_libc() is None
    asked: list[int] = []
    monkeypatch.setattr(decoding, "_memmem", lambda body, size, needle, length: asked.append(size))
    for size in ((1 << 16) - 1, 1 << 16):
        assert not decoding.occurs(b"x", b"y" * size)
    assert asked == [1 << 16]
    monkeypatch.setattr(decoding, "_memmem", None)
    assert decoding.occurs(b"y", b"y" * (1 << 16))
    assert decoding.occurs(b"y", b"y")
