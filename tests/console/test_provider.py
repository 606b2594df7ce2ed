"""Signing in at a small OpenID provider: the code flow with PKCE, end to end, and what must not work."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app

KEY = ec.generate_private_key(ec.SECP256R1())


class Provider(BaseHTTPRequestHandler):
    """Signs everybody in at once; ``asked`` holds the authorization requests by code, ``bend`` changes id tokens."""

    asked: dict[str, dict[str, str]] = {}
    bend: dict[str, Any] = {}

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{cast(HTTPServer, self.server).server_port}"

    def answer(self, document: Any, status: int = 200, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            self.answer({"issuer": self.issuer} | {name: self.issuer + path for name, path in paths.items()})
        elif parts.path == "/keys":
            key = json.loads(ECAlgorithm.to_jwk(KEY.public_key()))
            self.answer({"keys": [{**key, "kid": "k", "use": "sig"}]})
        else:
            asked = dict(parse_qsl(parts.query))
            code = f"code{len(self.asked)}"
            self.asked[code] = asked
            back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            self.answer({}, 302, Location=back)

    def do_POST(self) -> None:
        sent = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        asked = self.asked.pop(sent.get("code", ""), None)
        digest = base64.urlsafe_b64encode(sha256(sent["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or digest != asked["code_challenge"] or sent["redirect_uri"] != asked["redirect_uri"]:
            self.answer({"error": "invalid_grant"}, 400)
            return
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": "console", "sub": "alice", "exp": now + 60, "iat": now, "nonce": asked["nonce"],
            "scope": "openid read",
        }  # fmt: skip
        token = jwt.encode({**claims, **self.bend}, KEY, "ES256", headers={"kid": "k"})
        self.answer({"id_token": token, "access_token": "opaque", "token_type": "Bearer"})


@pytest.fixture
def issuer() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Provider.bend = {}
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(settings: Settings, issuer: str) -> Iterator[TestClient]:
    changed = {
        "authentication": "required", "oidc_issuer": issuer, "oidc_audience": "arbiter", "oidc_client_id": "console",
    }  # fmt: skip
    with TestClient(create_app(settings.model_copy(update=changed)), follow_redirects=False) as found:
        yield found


def authorized(client: TestClient, wanted: str = "/queues") -> str:
    """The address that the provider sends the browser back to."""
    begun = client.get("/sign-in/provider", params={"next": wanted})
    assert begun.status_code == 303
    address = begun.headers["location"]
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=10)) as browser:
        browser.request("GET", address.partition(urlsplit(address).netloc)[2])
        location = browser.getresponse().headers["Location"]
    return location.removeprefix("http://testserver")


def test_one_signs_in_there_and_comes_back_here(client: TestClient) -> None:
    done = client.get(authorized(client))
    assert done.status_code == 200
    assert 'content="0; url=/queues"' in done.text
    page = client.get("/queues")
    assert page.status_code == 200
    assert "oidc:alice" in page.text
    assert client.get("/ask").status_code == 403


def test_a_code_is_worth_nothing_without_its_beginning(client: TestClient) -> None:
    back = authorized(client)
    kept = dict(client.cookies)
    client.cookies.clear()
    assert client.get(back).status_code == 403
    client.cookies.update(kept)
    assert client.get(back.replace("state=", "state=x")).status_code == 403
    assert client.get(back).status_code == 200
    assert client.get(back).status_code in (403, 503), "a code is taken twice"


@pytest.mark.parametrize(
    "bend", [{"nonce": "another"}, {"aud": "somebody else"}, {"exp": 1}, {"iss": "http://elsewhere"}, {"sub": "\n"}]
)
def test_a_token_for_somebody_else_opens_nothing(client: TestClient, bend: dict[str, Any]) -> None:
    Provider.bend = bend
    assert client.get(authorized(client)).status_code == 403
    assert client.get("/queues").status_code == 303
