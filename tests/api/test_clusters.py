"""``/v1/clusters``: reports of followers, and which of them writes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
import zstandard
from starlette.testclient import TestClient

from app.answering.answers import encode
from app.base.settings import Settings
from app.clusters.router import EXAMPLE, USE, Clusters, UseOf
from app.clusters.schemas import UseReport
from app.clusters.shadow import Retention
from app.db.database import Database


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


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def tell(service: TestClient, minutes: float, cpu: int, **more: Any) -> None:
    used = {"usage": {"spot": {"cpu": cpu}}, **more}
    at = (NOON + timedelta(minutes=minutes)).isoformat()
    body = {"at": at, "total": {"usage": {"": {"cpu": cpu + 1}}}, "queues": {"a": used} if cpu else {}}
    answer = service.post("/v1/clusters/prod/use", json=body)
    assert answer.status_code == 204, answer.text


def use(service: TestClient, **of: Any) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    asked = {"since": NOON.isoformat(), "until": (NOON + timedelta(hours=1)).isoformat(), **of}
    found = service.get("/v1/clusters/prod/use", params=asked).json()
    return [one[11:16] for one in found["at"]], found["usage"], found["waiting"]


def test_what_a_queue_used_over_time(service: TestClient) -> None:
    assert use(service) == ([], [], []), "nobody has told"
    tell(service, 0, 9)
    tell(service, 4, 1, waiting={"gpu": 2})  # of an interval the last word
    tell(service, 5, 2)
    tell(service, 10, 0)
    assert use(service, queue="a") == (
        ["12:04", "12:05", "12:10"], [{"resource": "cpu", "flavor": "spot", "values": [1, 2, 0]}],
        [{"resource": "gpu", "values": [2, 0, 0]}],
    )  # fmt: skip
    assert use(service)[1] == [{"resource": "cpu", "values": [2, 3, 1]}]
    assert use(service, queue="a", resource="gpu")[1:] == ([], [{"resource": "gpu", "values": [2, 0, 0]}])
    assert use(service, queue="nobody") == (["12:04", "12:05", "12:10"], [], [])
    assert use(service, queue="a", points=1)[0] == ["12:10"]
    assert use(service, queue="a", points=8)[0] == ["12:05", "12:10"]
    assert use(service, since=(NOON + timedelta(minutes=5)).isoformat())[0] == ["12:05", "12:10"]
    assert use(service, until=(NOON + timedelta(minutes=10)).isoformat())[0] == ["12:04", "12:05"]
    assert use(service, until=(NOON - timedelta(minutes=10)).isoformat())[0] == []
    assert service.get("/v1/clusters/prod/use").json()["at"] == [], "of the last day"


def test_use_is_kept_for_a_time_and_up_to_a_size(database_url: str, settings: Settings) -> None:
    database = Database(database_url, settings)
    said = msgspec.convert({**USE, "at": NOON}, UseReport)
    everything = UseOf(None, None, NOON - timedelta(days=60), NOON + timedelta(days=60), 300)

    def told(retention: Retention, days: float) -> int:
        clusters = Clusters(database, retention)
        clusters.use("bounded", msgspec.structs.replace(said, at=NOON + timedelta(days=days)))
        return len(clusters.used("bounded", everything).at)

    assert [told(Retention(30, 0, 0), days) for days in (-40, -20, 0)] == [1, 2, 2]
    size = len(zstandard.ZstdCompressor().compress(encode(said)))
    assert told(Retention(0, 0, 2 * size + size // 2), 1) == 2
    database.close()


def test_bad_use_is_named_and_changes_nothing(service: TestClient) -> None:
    refused = service.post(
        "/v1/clusters/prod/use", json={"at": NOON.isoformat(), "total": {"usage": {"": {"cpu": -1}}}}
    )
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/total/usage//cpu"
    assert use(service)[0] == []
