"""Idempotency-Key: sent twice, done once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from app.auth.audit import acting
from app.base.settings import Settings
from app.service.main import create_app

URL = "/v1/configurations/prod"
KEY = {"Idempotency-Key": "a-key"}


def document(cpu: int = 1) -> dict[str, Any]:
    return {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": cpu}}}]}


def revisions(service: TestClient) -> int:
    return len(service.get(f"{URL}/revisions").json()["items"])


def test_the_same_request_gets_the_same_answer(service: TestClient) -> None:
    first = service.put(URL, json=document(), headers=KEY)
    again = service.put(URL, json=document(), headers=KEY)
    assert (again.status_code, again.content) == (201, first.content)
    for header in ("ETag", "Location", "Content-Type"):
        assert again.headers[header] == first.headers[header]
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert revisions(service) == 1


def test_every_write_knows_keys(service: TestClient) -> None:
    service.put(URL, json=document(1))
    service.put(URL, json=document(2), headers={"If-Match": "*"})
    anything = {"If-Match": "*"}
    writes: list[tuple[str, str, Any]] = [
        ("PUT", URL, document(3)),
        ("PUT", f"{URL}/queues/b", {"weight": 2}),
        ("DELETE", f"{URL}/queues/b", None),
        ("POST", f"{URL}/revisions/1:restore", None),
        ("DELETE", URL, None),
    ]
    for number, (method, path, body) in enumerate(writes):
        key = {"Idempotency-Key": f"k{number}"}
        first = service.request(method, path, json=body, headers=anything | key)
        assert first.status_code < 300, (path, first.text)
        again = service.request(method, path, json=body, headers=key)
        assert (again.status_code, again.content) == (first.status_code, first.content), path
    label = f"{URL}/labels/stable"
    service.post(f"{URL}/revisions/1:restore")
    for method, body in (("PUT", {"revision": 1}), ("DELETE", None)):
        headers = {"Idempotency-Key": method} | ({} if body else anything)
        statuses = {service.request(method, label, json=body, headers=headers).status_code for _ in range(2)}
        assert len(statuses) == 1
    assert [line["action"] for line in service.get("/v1/audit").json()["items"]].count("configuration.delete") == 1


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (URL, document(2), {}),
        (URL + "?comment=other", document(1), {}),
        (URL, document(1), {"X-Comment": "other"}),
        ("/v1/configurations/other", document(1), {}),
    ],
)
def test_a_key_stands_for_one_request(
    service: TestClient, path: str, body: dict[str, Any], headers: dict[str, str]
) -> None:
    service.put(URL, json=document(1), headers=KEY)
    refused = service.put(path, json=body, headers=KEY | headers)
    assert refused.status_code == 422
    assert "Idempotency-Key" in refused.json()["detail"]
    assert revisions(service) == 1
    assert service.get("/v1/configurations/other").status_code == 404


def test_what_was_refused_is_not_kept(service: TestClient) -> None:
    service.put(URL, json=document(1))
    assert service.put(URL, json=document(2), headers=KEY).status_code == 428
    done = service.put(URL, json=document(2), headers=KEY | {"If-Match": "*"})
    assert (done.status_code, "Idempotency-Replayed" in done.headers) == (200, False)


def test_keys_belong_to_their_actor(service: TestClient) -> None:
    service.put(URL, json=document(1), headers=KEY)
    with acting("token:other"):
        own = service.put(URL, json=document(2), headers=KEY | {"If-Match": "*"})
        assert (own.status_code, own.json()["revision"]) == (200, 2)


def test_of_many_at_once_one_is_done(service: TestClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: service.put(URL, json=document(), headers=KEY), range(24)))
    assert {(answer.status_code, answer.content) for answer in answers} == {(201, answers[0].content)}
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert revisions(service) == 1


@pytest.fixture
def hasty(settings: Settings) -> Iterator[TestClient]:
    """A service that keeps answers for ten minutes."""
    app = create_app(settings.model_copy(update={"idempotency_seconds": 600.0}))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_keys_expire_and_go(hasty: TestClient, settings: Settings) -> None:
    assert settings.database_url is not None
    for number in range(3):
        hasty.put(f"/v1/configurations/c{number}", json=document(1), headers={"Idempotency-Key": f"k{number}"})
    with psycopg.connect(settings.database_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute(
            "update idempotency_keys set created_at = created_at - interval '11 minutes' where key != 'k1'"
        )
        reused = hasty.put(
            "/v1/configurations/c0", json=document(2), headers={"Idempotency-Key": "k0", "If-Match": "*"}
        )
        assert (reused.status_code, reused.json()["revision"]) == (200, 2)
        kept = hasty.put("/v1/configurations/c1", json=document(2), headers={"Idempotency-Key": "k1", "If-Match": "*"})
        assert kept.status_code == 422
        left = connection.execute("select key from idempotency_keys order by key").fetchall()
        assert left == [("k0",), ("k1",)]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\x7f"])
def test_keys_are_short_and_printable(service: TestClient, key: str) -> None:
    refused = service.put(URL, json=document(), headers={"Idempotency-Key": key})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["parameter"] == "Idempotency-Key"


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/plans", "/v1/configurations:import?format=kueue"])
def test_a_key_is_refused_where_no_answers_are_kept(service: TestClient, path: str) -> None:
    refused = service.post(path, json={}, headers=KEY)
    assert refused.status_code == 422
    (problem,) = refused.json()["errors"]
    assert problem["parameter"] == "Idempotency-Key"
    assert "no answers of this operation are kept" in problem["detail"]
    assert service.get("/v1/decisions", headers=KEY).status_code == 200, "what only reads may have one"
