"""Which operation a path means: whatever its spelling, nobody gets further than his scope; methods; parameters."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from starlette.testclient import TestClient

from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.db.database import Database
from app.service.main import create_app
from tests.support.live import serving

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
OPERATIONS = [
    (method.upper(), path.replace("{id}", "01920000-0000-7000-8000-000000000000").replace("{number}", "1"), operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda path: path,
    "a line break": lambda path: f"{path}%0a",
    "a line break before": lambda path: f"/%0a{path[1:]}",
    "carriage return": lambda path: f"{path}%0d%0a",
    "NUL": lambda path: f"{path}%00",
    "space": lambda path: f"{path}%20",
    "line separator": lambda path: f"{path}{quote(chr(0x2028))}",
    "trailing slash": lambda path: f"{path}/",
    "double slashes": lambda path: path.replace("/", "//"),
    "upper case": str.upper,
    "encoded slash": lambda path: "/" + path[1:].replace("/", "%2f"),
    "encoded letters": lambda path: path.replace("v1", "%761").replace("t", "%74"),
    "encoded twice": lambda path: path.replace("v1", "%25761"),
    "dot": lambda path: f"/.{path}",
    "dots": lambda path: f"/v1/..{path}",
    "dots behind": lambda path: f"{path}/../healthz",
    "parameters": lambda path: f"{path};x=1",
    "fragment": lambda path: f"{path}%23x",
    "absolute": lambda path: f"http://arbiter{path}",
}
REFUSED = {400, 401, 403, 404, 405}


def fill(path: str) -> str:
    return path.replace("{name}", "c").replace("{queue}", "q").replace("{label}", "l")


@pytest.fixture(scope="module")
def service(migrated_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One for all that is asked here, with something under the names that are asked for."""
    settings = Settings(database_url=migrated_url, data_dir=tmp_path_factory.mktemp("data"), workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        client.put("/v1/configurations/c", json={"engine": "kueue", "queues": [{"name": "q"}]})
        client.put("/v1/configurations/c/labels/l", json={"revision": 1})
        yield client


@pytest.fixture(scope="module")
def guarded(migrated_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HTTPConnection, Tokens]]:
    database = Database(migrated_url, Settings(database_url=migrated_url))
    with (
        serving(migrated_url, tmp_path_factory.mktemp("data"), ARBITER_AUTHENTICATION="required") as (address, _),
        closing(HTTPConnection(urlsplit(address).netloc, timeout=120)) as connection,
    ):
        yield connection, Tokens(database)
    database.close()


def status(connection: HTTPConnection, method: str, target: str, secret: str | None) -> int:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    connection.request(method, target, body=b"{}" if method in ("PUT", "POST") else None, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_a_path_opens_what_the_scope_does_not(
    guarded: tuple[HTTPConnection, Tokens], spelling: str
) -> None:
    connection, tokens = guarded
    secrets = {scope: tokens.create(scope, [scope], None)[0] for scope in ("decide", "read")}
    for method, path, operation in OPERATIONS:
        needed = {way["bearer"][0] for way in operation["security"] if way}
        target = SPELLINGS[spelling](fill(path))
        for held in (None, "decide", "read"):
            if needed and held not in needed:
                answered = status(connection, method, target, secrets.get(held or ""))
                assert answered in REFUSED, (method, target, held, answered)
                assert held is not None or answered in (400, 401), (method, target, answered)


def test_a_path_ends_where_it_ends(service: TestClient) -> None:
    for path in ("/v1/audit%0a", "/v1/configurations%0a", "/healthz%0a", "/v1/snapshots/x%0a", "/v1/tokens/"):
        assert service.get(path).status_code in (404, 422), path


def methods_of(path: str) -> set[str]:
    found = {method.upper() for method in DOCUMENT["paths"][path]}
    return found | ({"HEAD"} if "GET" in found else set())


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_allow_names_every_method_of_the_path(service: TestClient, path: str) -> None:
    target = fill(path).replace("{id}", "1").replace("{number}", "1")
    others = {"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"} - methods_of(path)
    assert others
    for method in others:
        answer = service.request(method, target)
        assert answer.status_code == 405, (method, target)
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert set(answer.headers["Allow"].split(", ")) == methods_of(path)


READS = [path for path, item in DOCUMENT["paths"].items() if "get" in item]


@pytest.mark.parametrize("path", [*READS, "/openapi.json", "/docs"])
def test_head_is_get_without_the_body(service: TestClient, path: str) -> None:
    target = fill(path).replace("{id}", "01920000-0000-7000-8000-000000000000").replace("{number}", "1")
    target += "?against=1" if target.endswith("/diff") else ""
    got, headed = service.get(target), service.head(target)
    assert headed.status_code == got.status_code
    assert headed.content == b""
    assert headed.headers.get("ETag") == got.headers.get("ETag")
    if path != "/metrics":
        assert headed.headers["Content-Length"] == got.headers["Content-Length"]


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda value: str(value)[:60])
def test_unknown_parameters_are_refused(service: TestClient, method: str, path: str, operation: dict[str, Any]) -> None:
    answer = service.request(method, fill(path), params={"colour": "red", "limitt": ""})
    assert answer.status_code == 422, answer.text
    named = [error.get("parameter") for error in answer.json()["errors"]]
    assert named[-2:] == ["colour", "limitt"]
    assert "422" in operation["responses"]


def test_every_wrong_parameter_is_named_at_once(service: TestClient) -> None:
    answer = service.get("/v1/decisions", params={"limit": "0", "engine": "slurm", "sicne": "2026-01-01T00:00:00Z"})
    assert answer.status_code == 422
    assert {error["parameter"] for error in answer.json()["errors"]} == {"limit", "engine", "sicne"}
