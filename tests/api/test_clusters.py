"""``/v1/clusters``: reports of followers, and which of them writes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from starlette.testclient import TestClient

from app.clusters.router import EXAMPLE


def report(service: TestClient, follower: str, **fields: Any) -> dict[str, Any]:
    answer = service.put("/v1/clusters/prod", json={**EXAMPLE, "follower": follower, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_one_follower_writes_until_it_is_silent(service: TestClient, database_url: str) -> None:
    assert [report(service, name)["writer"] for name in ("a", "b", "a", "b")] == [True, False, True, False]
    found = service.get("/v1/clusters/prod").json()
    assert [(one["follower"], one["writer"]) for one in found["followers"]] == [("a", True), ("b", False)]
    with psycopg.connect(database_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute("update cluster_writers set until = now() - interval '1 second'")
    assert [report(service, name)["writer"] for name in ("b", "a")] == [True, False]


def test_the_age_is_that_of_the_freshest_snapshot(service: TestClient) -> None:
    old = datetime.now(UTC) - timedelta(minutes=5)
    report(service, "a", synced_at=old.isoformat())
    assert 300 <= service.get("/v1/clusters/prod").json()["age_seconds"] < 400
    report(service, "b", synced_at=datetime.now(UTC).isoformat())
    assert service.get("/v1/clusters/prod").json()["age_seconds"] < 100
    assert [one["name"] for one in service.get("/v1/clusters").json()["items"]] == ["prod"]


def test_who_is_silent_for_long_is_forgotten(service: TestClient, database_url: str) -> None:
    report(service, "a")
    with psycopg.connect(database_url.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute("update cluster_followers set reported_at = now() - interval '2 hours'")
    report(service, "b")
    assert [one["follower"] for one in service.get("/v1/clusters/prod").json()["followers"]] == ["b"]
    assert service.delete("/v1/clusters/prod").status_code == 204
    assert service.get("/v1/clusters/prod").status_code == 404


def test_a_bad_report_changes_nothing(service: TestClient) -> None:
    refused = service.put("/v1/clusters/prod", json={**EXAMPLE, "kinds": [{"kind": "Workload"}], "generation": "x"})
    assert refused.status_code == 422
    assert service.get("/v1/clusters/prod").status_code == 404
