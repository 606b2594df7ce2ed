"""Tokens, scopes and the audit log on a service that asks everybody for a name."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from starlette.testclient import TestClient

from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.service.main import create_app
from app.service.serve import run
from tests.support.bounds import Bounded
from tests.support.document import document

DOCUMENT = {"engine": "kueue", "queues": [{"name": "q"}]}
QUESTION: dict[str, Any] = {"configuration": DOCUMENT, "state": {}, "asks": []}


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    with TestClient(
        create_app(settings.model_copy(update={"authentication": "required"})), raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture
def tokens(guarded: TestClient) -> Tokens:
    app: Any = guarded.app
    return app.state.services.of(Tokens)


def bearer(tokens: Tokens, *scopes: str, expires: datetime | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens.create('test', list(scopes), expires)[0]}"}


def audit(guarded: TestClient, tokens: Tokens, **params: Any) -> list[tuple[str, str, str]]:
    answer = guarded.get("/v1/audit", headers=bearer(tokens, "admin"), params=params)
    return [(line["actor"], line["action"], line["target"]) for line in answer.json()["items"]]


def test_a_token_is_a_password_where_the_guard_is_asked(guarded: TestClient, tokens: Tokens) -> None:
    secret, *_ = tokens.create("scheduler", ["decide"], None)
    asked = {"Pod": {}, "NodeNameToVictims": {}}
    assert guarded.post("/v1/extenders/x/preempt", json=asked, auth=("guard", secret)).status_code == 422
    assert guarded.post("/v1/extenders/x/preempt", json=asked, auth=("guard", "arb_x")).status_code == 401
    assert guarded.post("/v1/decisions", json=QUESTION, auth=("guard", secret)).status_code == 401, "only the guard's"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Basic",
        "Basic !",
        "Basic /w==",
        "Basic YTo=",
        "Bearer",
        "Bearer arb_wrong",
        "Basic YTpi",
        "Bearer a.b.c",
        "arb_x",
    ],
)
def test_nobody_without_a_good_token(guarded: TestClient, header: str | None) -> None:
    answer = guarded.post("/v1/decisions", json=QUESTION, headers={"Authorization": header} if header else {})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Bearer realm="arbiter"')
    assert answer.headers["content-type"] == "application/problem+json"


def test_health_is_public_and_the_rest_is_not(guarded: TestClient) -> None:
    assert [guarded.get(path).status_code for path in ("/healthz", "/readyz", "/openapi.json", "/docs")] == [200] * 4
    assert [guarded.get(path).status_code for path in ("/metrics", "/v1/configurations", "/nowhere")] == [401] * 3


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("decide", {"decide"}),
        ("read", {"read"}),
        ("admin", {"decide", "read", "write", "tokens"}),
    ],
)
def test_each_scope_opens_its_own_doors(guarded: TestClient, tokens: Tokens, scope: str, allowed: set[str]) -> None:
    headers = bearer(tokens, scope)
    statuses = {
        "decide": guarded.post("/v1/decisions", json=QUESTION, headers=headers).status_code,
        "read": guarded.get("/v1/configurations", headers=headers).status_code,
        "write": guarded.put("/v1/configurations/c", json=DOCUMENT, headers=headers).status_code,
        "tokens": guarded.get("/v1/tokens", headers=headers).status_code,
    }
    assert {door for door, status in statuses.items() if status < 300} == allowed
    assert {status for door, status in statuses.items() if door not in allowed} <= {403}


def test_a_token_is_shown_once_and_ends_when_revoked_or_expired(guarded: TestClient, tokens: Tokens) -> None:
    admin = bearer(tokens, "admin")
    made = guarded.post("/v1/tokens", json={"name": "ci", "scopes": ["read", "read"]}, headers=admin)
    assert made.status_code == 201
    secret, identity = made.json()["token"], made.json()["id"]
    assert made.headers["cache-control"] == "no-store"
    listed = guarded.get("/v1/tokens", headers=admin)
    assert secret not in listed.text
    assert next(t for t in listed.json()["items"] if t["id"] == identity)["scopes"] == ["read"]
    reader = {"Authorization": f"Bearer {secret}"}
    assert guarded.get("/v1/configurations", headers=reader).status_code == 200
    assert guarded.delete(f"/v1/tokens/{identity}", headers=admin).json()["revoked_at"]
    assert guarded.get("/v1/configurations", headers=reader).status_code == 401
    past = bearer(tokens, "admin", expires=datetime.now(UTC) - timedelta(seconds=1))
    assert guarded.get("/v1/configurations", headers=past).status_code == 401


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "", "scopes": ["read"]}, "/name"),
        ({"name": "x", "scopes": ["root"]}, "/scopes/0"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": ["read"], "expires_at": "2027-01-01T00:00:00"}, "/expires_at"),
    ],
)
def test_a_wrong_token_request_names_the_field(
    guarded: TestClient, tokens: Tokens, body: dict[str, Any], pointer: str
) -> None:
    answer = guarded.post("/v1/tokens", json=body, headers=bearer(tokens, "admin"))
    assert (answer.status_code, [e["pointer"] for e in answer.json()["errors"]]) == (422, [pointer])


def test_writes_and_refusals_are_written_down_and_stay(guarded: TestClient, tokens: Tokens, settings: Settings) -> None:
    guarded.get("/v1/configurations")
    guarded.post("/v1/tokens", json={"name": "x", "scopes": ["read"]}, headers=bearer(tokens, "read"))
    lines = audit(guarded, tokens)
    assert ("anonymous", "refused.unauthenticated", "GET /v1/configurations") in lines
    assert ("token:test", "refused.forbidden", "POST /v1/tokens") in lines
    assert [a for _, a, _ in audit(guarded, tokens, action="token.create")] != []
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        for statement in ("update audit set actor = 'nobody'", "delete from audit", "truncate audit"):
            with pytest.raises(psycopg.errors.RaiseException):
                connection.execute(statement)


def test_a_flood_of_refusals_is_counted_and_hardly_written(guarded: TestClient, tokens: Tokens) -> None:
    reader = bearer(tokens, "read")
    for _ in range(200):
        assert guarded.get("/v1/configurations").status_code == 401
        assert guarded.get("/v1/audit", headers=reader).status_code == 403
    assert guarded.put("/v1/configurations/c", json=DOCUMENT, headers=bearer(tokens, "admin")).status_code == 201
    lines = [action for _, action, _ in audit(guarded, tokens, limit=500)]
    assert lines.count("refused.unauthenticated") == lines.count("refused.forbidden") == 10
    assert lines.count("configuration.put") == 1
    counted = guarded.get("/metrics", headers=reader).text
    assert 'arbiter_refusals_total{kind="unauthenticated"} 200.0' in counted
    assert 'arbiter_refusals_total{kind="forbidden"} 200.0' in counted


def test_guesses_do_not_push_out_who_is_known(guarded: TestClient, tokens: Tokens, bounded: Bounded) -> None:
    bounded("app.auth.tokens", MOST_KEPT=4, FRESH_SECONDS=600.0)
    reader = bearer(tokens, "read")
    assert guarded.get("/v1/configurations", headers=reader).status_code == 200
    for guess in range(20):
        guarded.get("/v1/configurations", headers={"Authorization": f"Bearer arb_{guess}"})
    assert tokens.remembered(reader["Authorization"].partition(" ")[2]) is not None


@pytest.mark.parametrize("path", ["/v1/%00", "/v1/configurations/a%00b", "/v1/\u2028%0A", "/v1/" + "x" * 4000])
def test_whatever_the_path_its_refusal_is_written_down(guarded: TestClient, tokens: Tokens, path: str) -> None:
    assert guarded.get(path).status_code == 401
    assert guarded.get(path, headers=bearer(tokens, "decide")).status_code in (403, 404)
    refused = [target for _, action, target in audit(guarded, tokens) if action == "refused.unauthenticated"]
    assert len(refused) == 1
    assert refused[0].startswith("GET /v1/")
    assert len(refused[0]) < 600


def test_the_audit_log_is_read_in_pages(guarded: TestClient, tokens: Tokens) -> None:
    admin = bearer(tokens, "admin")
    for _ in range(5):
        guarded.get("/v1/configurations")
    first = guarded.get("/v1/audit", headers=admin, params={"limit": 3}).json()
    second = guarded.get("/v1/audit", headers=admin, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    ids = [line["id"] for line in first["items"] + second["items"]]
    assert len(ids) == 6
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "arbiter.example"])
def test_an_open_service_does_not_start_where_others_can_reach_it(host: str, settings: Settings) -> None:
    said: list[str] = []
    assert run(settings.model_copy(update={"host": host}), said.append) == 1
    assert "ARBITER_AUTHENTICATION=required" in said[0]


@pytest.mark.parametrize(
    ("host", "exposed"), [("127.0.0.1", False), ("::1", False), ("localhost", False), ("::", True)]
)
def test_loopback_is_not_exposed(host: str, exposed: bool, settings: Settings) -> None:
    assert settings.model_copy(update={"host": host}).is_exposed is exposed


def test_a_provider_needs_an_audience_and_authentication() -> None:
    with pytest.raises(ValueError, match="AUDIENCE"):
        Settings(oidc_issuer="https://login.example", authentication="required")
    with pytest.raises(ValueError, match="open service"):
        Settings(oidc_issuer="https://login.example", oidc_audience="arbiter")


def test_the_last_instant_reads_back_whatever_zone_the_database_has(settings: Settings) -> None:
    url = make_url(settings.database_url or "").update_query_dict({"options": "-c timezone=Pacific/Auckland"})
    elsewhere = settings.model_copy(update={"database_url": url.render_as_string(hide_password=False)})
    with TestClient(create_app(elsewhere)) as client:
        app: Any = client.app
        app.state.services.of(Tokens).create("for-good", ["read"], datetime.max.replace(tzinfo=UTC))
        (listed,) = client.get("/v1/tokens").json()["items"]
    assert listed["expires_at"] == "9999-12-31T23:59:59.999999Z"


def test_a_follower_s_token_needs_its_own_right_alone() -> None:
    found = {
        operation["operationId"]
        for operations in document()["paths"].values()
        for operation in operations.values()
        if {"bearer": ["follow"]} in operation["security"]
    }
    assert found == {
        "report_cluster", "report_evictions", "report_preemption", "report_use", "put_snapshot", "change_snapshot",
        "get_snapshot", "get_configuration", "put_configuration",
    }  # fmt: skip
