"""Who may ask an open service, and by which name."""

import asyncio
from typing import Any

import pytest
from starlette.responses import Response

from app.http.middleware import SitesMiddleware, name_of

OWN = {"host": "localhost:8080"}


def status(hosts: frozenset[str] | None, method: str = "POST", path: str = "/v1/decisions", /, **headers: str) -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: Any = {"type": "http", "method": method, "path": path, "headers": named, "query_string": b"",
                  "scheme": "http", "server": ("h", 80), "root_path": ""}  # fmt: skip
    middleware = SitesMiddleware(Response(status_code=204), hosts)
    asyncio.run(middleware(scope, None, send))  # pyright: ignore[reportArgumentType]
    return sent[0]["status"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", 204), ("LOCALHOST:80", 204), ("x.localhost:1", 204), ("127.0.0.1:8080", 204), ("127.9.9.9", 204),
        ("[::1]:8080", 204), ("::1", 204), ("arbiter.example:8080", 204), ("arbiter.example", 204),
        ("evil.example", 421), ("evil.example:8080", 421), ("10.0.0.1", 421), ("", 421),
        ("localhost.evil.example", 421),
        ("arbiter.example.evil.example", 421), ("[::2]:80", 421), ("127.0.0.1.evil.example", 421), ("0.0.0.0", 421),
    ],
)  # fmt: skip
def test_an_open_service_answers_to_its_own_names(host: str, expected: int) -> None:
    hosts = frozenset({"arbiter.example"})
    assert status(hosts, "GET", host=host) == expected
    assert status(hosts, host=host) == expected
    assert status(hosts, "GET", "/healthz", host=host) == 204, "probes ask by address"
    assert status(None, "GET", host=host) == 204, "where everybody says who they are, any name will do"
    assert status(frozenset({"*"}), "GET", host=host) == 204


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 204), ({"origin": "http://localhost:8080"}, 204), ({"sec_fetch_site": "same-origin"}, 204),
        ({"sec_fetch_site": "none"}, 204), ({"origin": "http://evil.example"}, 403), ({"origin": "null"}, 403),
        ({"origin": "http://localhost:9090"}, 403), ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403), ({"sec_fetch_site": "Cross-Site"}, 403), ({"origin": ""}, 403),
    ],
)  # fmt: skip
def test_pages_of_other_sites_write_nothing(headers: dict[str, str], expected: int) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert status(frozenset(), method, **OWN, **headers) == expected
        assert status(None, method, **OWN, **headers, cookie="a=b") == expected
        assert status(None, method, **OWN, **headers) == 204, "a token is sent by programs alone"
    assert status(frozenset(), "GET", **OWN, **headers) == 204


@pytest.mark.parametrize("hosts", [frozenset[str](), None])
def test_a_request_has_one_host(hosts: frozenset[str] | None) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "method": "GET", "path": "/v1/x", "query_string": b"", "scheme": "http",
                  "headers": [(b"host", b"localhost"), (b"host", b"evil.example")], "root_path": ""}  # fmt: skip
    asyncio.run(SitesMiddleware(Response(), hosts)(scope, None, send))  # pyright: ignore[reportArgumentType]
    assert sent[0]["status"] == 400


def test_names_without_their_ports() -> None:
    given = ("A:1", "[::1]:80", "[::1]", "::1", " h ", "")
    assert [name_of(host) for host in given] == ["a", "::1", "::1", "::1", "h", ""]
