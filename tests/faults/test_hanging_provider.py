"""An identity provider that hangs: whoever is known goes on, whoever is not gets an answer soon."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.auth import oidc
from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.service.main import create_app
from tests.support.bounds import Bounded
from tests.support.oidc import AUDIENCE, ISSUER, OURS, published, token

CLIENTS = 60


class Provider:
    """A web site with the keys, which can hang."""

    def __init__(self) -> None:
        self.hangs, self.asked, self.goes_on = False, 0, threading.Event()
        body = json.dumps({"keys": [published(OURS, "k1")]}).encode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                if outer.hangs:
                    outer.goes_on.wait(60)
                with suppress(ConnectionError):  # who asked may have gone
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.goes_on.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    site = Provider()
    yield site
    site.close()


@pytest.fixture
def guarded(settings: Settings, provider: Provider, bounded: Bounded) -> Iterator[TestClient]:
    bounded(oidc, AT_MOST_EVERY_SECONDS=0.1)
    given = {
        "authentication": "required",
        "oidc_issuer": ISSUER,
        "oidc_audience": AUDIENCE,
        "oidc_jwks_url": f"{provider.address}/keys",
    }
    with TestClient(create_app(settings.model_copy(update=given)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def console(settings: Settings, provider: Provider) -> Iterator[TestClient]:
    given = {
        "authentication": "required",
        "oidc_issuer": provider.address,
        "oidc_audience": AUDIENCE,
        "oidc_client_id": "console",
    }
    with TestClient(create_app(settings.model_copy(update=given)), raise_server_exceptions=False) as client:
        yield client


def asked(service: TestClient, secret: str) -> tuple[int, float]:
    """Status and seconds of a request with a token."""
    began = time.monotonic()
    answer = service.get("/v1/configurations", headers={"Authorization": f"Bearer {secret}"})
    return answer.status_code, time.monotonic() - began


def test_unknown_keys_keep_nobody_waiting_but_themselves(guarded: TestClient, provider: Provider) -> None:
    tokens: Tokens = guarded.app.state.services.of(Tokens)  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
    own = tokens.create("own", ["read"], None)[0]
    known = token()
    assert (asked(guarded, own)[0], asked(guarded, known)[0]) == (200, 200)
    before, provider.hangs = provider.asked, True
    time.sleep(0.2)
    with ThreadPoolExecutor(CLIENTS) as strangers:
        waiting = [strangers.submit(asked, guarded, token(kid=f"guess-{i}")) for i in range(CLIENTS)]
        time.sleep(0.3)
        answered = [asked(guarded, secret) for _ in range(20) for secret in (own, known)]
        refused = [one.result() for one in waiting]
    assert {status for status, _ in answered} == {200}
    assert {status for status, _ in refused} == {503}
    # Half of them, on a machine that others want too: who waited for the provider would wait for 2 s, and for 10 s.
    assert median(seconds for _, seconds in answered) < 1
    assert median(seconds for _, seconds in refused) < 5
    assert provider.asked == before + 1


def test_a_provider_that_never_answered_is_asked_once_at_a_time(guarded: TestClient, provider: Provider) -> None:
    provider.hangs = True
    with ThreadPoolExecutor(CLIENTS) as strangers:
        answers = list(strangers.map(lambda i: asked(guarded, token(kid=f"k{i}")), range(CLIENTS)))
    assert {status for status, _ in answers} == {503}
    assert max(seconds for _, seconds in answers) < 5
    assert provider.asked == 1
    provider.goes_on.set()
    deadline = time.monotonic() + 5
    while asked(guarded, token())[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nobody_waits_for_those_who_sign_in(console: TestClient, provider: Provider, bounded: Bounded) -> None:
    bounded(oidc, PLACE_SECONDS=1.0, SOCKET_SECONDS=2)
    tokens: Tokens = console.app.state.services.of(Tokens)  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
    own = tokens.create("own", ["read"], None)[0]
    assert asked(console, own)[0] == 200
    provider.hangs = True
    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as strangers:
        waiting = [strangers.submit(console.get, "/sign-in/provider", follow_redirects=False) for _ in range(CLIENTS)]
        while provider.asked < 4:
            time.sleep(0.01)
        answered = [asked(console, own) for _ in range(10)]
        assert {one.result().status_code for one in waiting} == {503}
    assert {status for status, _ in answered} == {200}
    assert median(seconds for _, seconds in answered) < 1
    # Four at once, each for as long as a silent provider is listened to, and nobody when all give up together.
    assert provider.asked <= 4 * (1 + (time.monotonic() - began) / 2)
