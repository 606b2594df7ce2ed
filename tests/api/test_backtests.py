"""Backtests over HTTP: the log decided again under other configurations."""

import json
from typing import Any

from starlette.testclient import TestClient

from app.base.settings import Settings
from app.db.database import Database
from app.decisions import repository
from app.decisions.schemas import ASK, DECISION, SITUATION
from tests.support.working import working

NAMED = {"name": "named", "set": {"queues.serving.kueue.preemption.reclaim_within_cohort": "Never"}}
SAME = {"name": "same"}
BROKEN = {"name": "broken", "set": {"queues.serving.quota.cpu.guaranteed": "much"}}


def made(service: TestClient, settings: Settings, **request: Any) -> tuple[str, dict[str, Any]]:
    accepted = service.post("/v1/backtests", json={"variants": [SAME, NAMED, BROKEN], **request})
    assert accepted.status_code == 202, accepted.text
    assert accepted.json()["status"] == "queued"
    where = accepted.headers["location"]
    with working(settings) as worker:
        assert worker.once()
    return where, service.get(where).json()


def differences(service: TestClient, where: str, variant: str) -> list[dict[str, Any]]:
    answer = service.get(f"{where}/differences", params={"variant": variant})
    return [json.loads(line) for line in answer.text.splitlines()]


def logged(service: TestClient) -> list[str]:
    """Ids of decisions on an inline state, on a stored configuration, and on a snapshot that has moved on."""
    first = {"If-None-Match": "*"}
    assert service.put("/v1/configurations/prod", json=SITUATION["configuration"], headers=first).is_success
    snapshot = {"configuration": "prod", "state": SITUATION["state"]}
    assert service.put("/v1/snapshots/live", json=snapshot).is_success
    asks = {"asks": [ASK], "now": SITUATION["now"]}
    small = {**ASK, "id": "small", "tasks": [{"name": "m", "requests": {"cpu": 1}}]}
    questions = [
        DECISION,
        {**asks, "configuration": "prod", "state": SITUATION["state"]},
        {**asks, "state": {"snapshot": "live"}},
        {**DECISION, "asks": [small], "mode": "cycle"},
    ]
    found = [service.post("/v1/decisions", json=one).raise_for_status().json()["id"] for one in questions]
    gone = {"generation": 1, "workloads": {"remove": ["sweep-17"]}}
    assert service.post("/v1/snapshots/live/deltas", json=gone).is_success
    return found


def test_every_logged_decision_is_made_again_and_what_differs_is_told(service: TestClient, settings: Settings) -> None:
    ids = logged(service)
    where, told = made(service, settings)
    assert (told["status"], told["decisions"], told.get("skipped")) == ("done", 4, None), told
    same, named, broken = told["variants"]
    assert (same["same"], same["logged"]) == (4, same["here"])
    assert same["logged"] == {"asks": {"admit": 1, "preempt": 3}, "evictions": 3}
    assert (named["same"], named["differ"]) == (1, 3)
    assert named["here"] == {"asks": {"admit": 1, "wait": 3}}
    assert broken["refused"] == 4
    assert differences(service, where, "same") == []
    lines = differences(service, where, "named")
    assert [line["decision"] for line in lines] == ids[:3]
    assert lines[0]["differences"] == [
        {"ask": "chat-api", "field": "outcome", "values": {"logged": "preempt", "variant": "wait"}},
        {"ask": "chat-api", "field": "victims", "values": {"logged": ["sweep-17"], "variant": []}},
    ]
    (first, *_) = differences(service, where, "broken")
    assert first["problems"][0]["pointer"].endswith("/quota/cpu/guaranteed")
    assert service.get(f"{where}/differences", params={"variant": "other"}).status_code == 404
    assert service.get("/v1/backtests").json()["items"][0]["id"] == told["id"]
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


def test_a_range_and_what_the_log_has_not_kept(service: TestClient, settings: Settings) -> None:
    ids = logged(service)
    entries = {item["id"]: item for item in service.get("/v1/decisions").json()["items"]}
    _, told = made(service, settings, since=entries[ids[2]]["created_at"], queue="research")
    assert told["decisions"] == 1
    database = Database(settings.database_url, settings)
    with database.session() as session:
        session.execute(repository.decisions.update().values(kept_state=None))
    database.close()
    _, told = made(service, settings)
    assert (told["decisions"], told["skipped"], told["variants"][0]["same"]) == (4, 1, 3)
    (skipped,) = told["first_skipped"]
    assert (skipped["decision"], "has not kept" in skipped["reason"]) == (ids[2], True)


def test_bad_input_is_named(service: TestClient) -> None:
    def pointers(**request: Any) -> list[str]:
        answer = service.post("/v1/backtests", json={"variants": [SAME], **request})
        assert answer.status_code in (404, 422)
        return [error["pointer"] for error in answer.json()["errors"]]

    assert pointers(variants=[SAME, SAME]) == ["/variants/1/name"]
    assert pointers(variants=[]) == ["/variants"]
    assert pointers(variants=[{"name": str(i)} for i in range(21)]) == ["/variants"]
    assert pointers(since="2026-03-01T00:00:00Z", until="2026-03-01T00:00:00Z") == ["/since"]
    assert (
        service.post("/v1/backtests", json={"variants": [{"name": "a", "configuration": "nobody"}]}).status_code == 404
    )
