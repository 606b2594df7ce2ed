"""What bounds the console: over TLS a cookie that neighbours can't set, and only so many listeners."""

from typing import cast

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.console.overview import Listeners
from app.service.main import create_app


def test_over_tls_the_cookie_is_for_this_host_alone(settings: Settings) -> None:
    with TestClient(create_app(settings), base_url="https://testserver") as client:
        given = client.get("/ask").headers["set-cookie"]
        name, *flags = given.partition("=")[0], *given.lower().split("; ")[1:]
        assert name == "__Host-arbiter_session"
        assert {"secure", "httponly", "samesite=strict", "path=/"} <= set(flags)
        assert not any(flag.startswith("domain") for flag in flags)


def test_one_page_more_than_may_listen_is_told_so(settings: Settings) -> None:
    with TestClient(create_app(settings.model_copy(update={"console_listeners": 1}))) as client:
        listeners: Listeners = cast(FastAPI, client.app).state.services.of(Listeners)
        listeners.join()
        refused = client.get("/events")
        assert refused.status_code == 429
        assert listeners.open == 1
        assert client.get("/decisions").status_code == 200, "the page itself is there"
