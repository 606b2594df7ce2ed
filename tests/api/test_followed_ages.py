"""Every answer about a snapshot that follows a cluster says how old that is, and warns past a limit."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.clusters.router import EXAMPLE as CLUSTER
from app.decisions.guard import EXAMPLE as PREEMPTING
from app.decisions.schemas import ASK, SITUATION
from app.studies.forecasting import FORECAST
from tests.support.document import document

NAMED: dict[str, Any] = {"state": {"snapshot": "production"}}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "decide": ("/v1/decisions", {**NAMED, "asks": "pending"}),
    "decide_batch": ("/v1/decisions:batch", {**NAMED, "asks": "pending"}),
    "shares": ("/v1/shares", NAMED),
    "preemptibility": ("/v1/preemptibility", NAMED),
    "effective_settings": ("/v1/effective-settings", NAMED),
    "compare": ("/v1/comparisons", {**NAMED, "asks": "pending", "variants": [{"name": "same"}]}),
    "plan": ("/v1/plans", {**NAMED, "work": [{**ASK, "id": "other"}]}),
    "expose": ("/v1/exposures", {**NAMED, "configuration": "c", "asks": "pending"}),
    "forecast": (
        "/v1/forecasts",
        {**NAMED, "configuration": "c", "remaining_otherwise": 60, "asks": [{"ask": ASK, "duration": 60}]},
    ),
    "guard_preemption": ("/v1/extenders/c/preempt?snapshot=production", PREEMPTING),
}


@pytest.fixture
def followed(service: TestClient) -> TestClient:
    """A service with the snapshot `production`, which a follower keeps."""
    configuration = {"engine": "kueue", **SITUATION["configuration"]}
    service.put("/v1/configurations/c", json=configuration).raise_for_status()
    kept = {"configuration": "c", "state": SITUATION["state"], "asks": [ASK]}
    service.put("/v1/snapshots/production", json=kept).raise_for_status()
    return service


def known(service: TestClient, ago: float | None) -> None:
    """The follower says when it last knew that the snapshot is the cluster, None: it has just begun, and has not."""
    synced = {} if ago is None else {"synced_at": (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()}
    report = {name: value for name, value in CLUSTER.items() if name != "synced_at"}
    service.put("/v1/clusters/prod", json=report | synced).raise_for_status()


def answered(service: TestClient, operation: str) -> dict[str, Any]:
    path, body = BODIES[operation]
    if operation == "decide_batch":
        return service.post(path, json=body, headers={"Content-Type": "application/x-ndjson"}).json()["answer"]
    answer = service.post(path, json=body)
    assert answer.is_success, answer.text
    where = answer.headers.get("location")
    return answer.json() if where is None else service.get(where).json()


def test_every_question_about_a_snapshot_is_asked_here() -> None:
    found = document()
    asking = {
        operation["operationId"]
        for operations in found["paths"].values()
        for operation in operations.values()
        if "StateOrReference" in reached(found, operation.get("requestBody", {}))
        or (
            operation.get("requestBody")
            and any(one.get("name") == "snapshot" for one in operation.get("parameters", ()))
        )
    }
    assert asking - {"report_preemption"} == BODIES.keys(), "a follower's report has questions whole by themselves"


def reached(found: dict[str, Any], part: Any) -> set[str]:
    """The names of all schemas that ``part`` of the document refers to."""
    seen, left = set[str](), [part]
    while left:
        for name in references(left.pop()):
            if name not in seen:
                seen.add(name)
                left.append(found["components"]["schemas"][name])
    return seen


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(to := part.get("$ref"), str):
            yield to.rpartition("/")[2]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


@pytest.mark.parametrize("operation", BODIES)
def test_it_says_how_old_what_it_answers_is(followed: TestClient, operation: str) -> None:
    assert "followed" not in answered(followed, operation), "nobody follows it yet"
    known(followed, 5)
    said = answered(followed, operation)["followed"]
    assert (said["cluster"], 5 <= said["age_seconds"] < 90, "warning" in said) == ("prod", True, False)
    known(followed, 600)
    said = answered(followed, operation)["followed"]
    assert said["age_seconds"] >= 600
    assert "cluster prod was last known 60" in said["warning"]
    known(followed, None)
    assert answered(followed, operation)["followed"]["age_seconds"] >= 600, "another follower has not read it all yet"
    followed.delete("/v1/clusters/prod").raise_for_status()
    assert "followed" not in answered(followed, operation), "nobody follows it any more"


def test_what_is_sent_along_has_no_age(followed: TestClient) -> None:
    known(followed, 5)
    assert "followed" not in followed.post("/v1/decisions", json={**SITUATION, "asks": [ASK]}).json()
    assert "followed" not in followed.post("/v1/forecasts", json=FORECAST).json()
