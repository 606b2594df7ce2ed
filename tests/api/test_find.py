"""Everything that has a name is found by any part of it, in any case; what is misspelt by what is nearest."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.clusters.router import EXAMPLE as REPORT
from app.clusters.shadow import EXAMPLE as PREEMPTION
from app.db.database import Database
from app.search import repository
from app.search.service import Finder, Hit, Names, fold
from app.simulations.router import SIMULATION
from app.studies.forecasting import FORECAST
from tests.api.requests import decision
from tests.support.bounds import Bounded


def found(service: TestClient, text: str, **more: Any) -> dict[str, Any]:
    answer = service.get("/v1/find", params={"text": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def kinds(service: TestClient, text: str) -> set[tuple[str, str]]:
    return {(hit["kind"], hit["name"]) for hit in found(service, text)["items"]}


def named(prefix: str) -> dict[str, Any]:
    """A decision whose every name begins so."""
    said = decision()
    queues = [{**queue, "name": f"{prefix}-{queue['name']}"} for queue in said["configuration"]["queues"]]
    for queue in queues:
        if "parent" in queue:
            queue["parent"] = f"{prefix}-{queue['parent']}"
    running = [
        {**one, "id": f"{prefix}-{one['id']}", "queue": f"{prefix}-{one['queue']}"}
        for one in said["state"]["workloads"]
    ]
    asks = [{**one, "id": f"{prefix}-{one['id']}", "queue": f"{prefix}-{one['queue']}"} for one in said["asks"]]
    return {
        **said, "configuration": {**said["configuration"], "queues": queues},
        "state": {**said["state"], "workloads": running}, "asks": asks,
    }  # fmt: skip


def test_what_was_decided_is_found_by_any_part_of_its_names(service: TestClient) -> None:
    said = named("Blue")
    answer = service.post("/v1/decisions", json=said).json()
    victim = answer["decisions"][0]["victims"][0]["workload"]
    assert ("ask", "Blue-x") in kinds(service, "lue-X")
    assert ("workload", victim) in kinds(service, "blue")
    assert ("queue", said["asks"][0]["queue"]) in kinds(service, "BLUE-")
    assert ("decision", answer["id"]) in kinds(service, answer["id"][:13])
    assert found(service, "blue-x")["items"][0]["name"] == "Blue-x"  # what it is goes before what has it
    assert "seen_at" in found(service, "blue-x")["items"][0]
    assert found(service, "%")["items"] == []
    assert found(service, "_")["items"] == []
    assert len(found(service, "blue", limit=1)["items"]) == 1


def test_what_is_stored_kept_and_followed_is_found(service: TestClient) -> None:
    said = named("green")
    assert service.put("/v1/configurations/green-house", json={"engine": "kueue", **said["configuration"]}).is_success
    body = {"configuration": "green-house", "state": said["state"], "asks": said["asks"]}
    assert service.put("/v1/snapshots/green-now", json=body).is_success
    assert service.put("/v1/clusters/green-field", json=REPORT).is_success
    simulation = service.post("/v1/simulations", json=SIMULATION | {"name": "Green grass"}).json()["id"]
    again = service.post("/v1/simulations", json=SIMULATION | {"name": "Green grass"}).json()["id"]
    forecast = service.post("/v1/forecasts", json=FORECAST).json()["id"]
    running, queue = said["state"]["workloads"][0]["id"], said["asks"][0]["queue"]
    assert {
        ("configuration", "green-house"), ("snapshot", "green-now"), ("cluster", "green-field"), ("queue", queue),
        ("workload", running), ("ask", "green-x"),
    } <= kinds(service, "reen")  # fmt: skip
    assert ("simulation", simulation) in kinds(service, simulation[:13].upper())
    assert ("forecast", forecast) in kinds(service, forecast[:23])
    grass = [hit for hit in found(service, "EN GRASS")["items"] if hit["kind"] == "simulation"]
    assert [(hit["name"], hit["id"]) for hit in grass] == [("Green grass", again), ("Green grass", simulation)]
    assert [hit["id"] for hit in found(service, "EN GRASS", limit=1)["items"]] == [again]
    hits = [hit for hit in found(service, queue)["items"] if hit["kind"] == "queue" and hit["name"] == queue]
    assert {hit.get("snapshot") for hit in hits} == {None, "green-now"}
    assert {hit["configuration"] for hit in hits} == {"green-house"}
    assert service.delete("/v1/snapshots/green-now").is_success
    assert ("workload", running) not in kinds(service, "green")


def test_whom_a_cluster_really_evicted_is_found(service: TestClient) -> None:
    one = {
        "at": "2026-11-22T12:00:00Z",
        "workload": "ml/gone",
        "job": "ml/their-job",
        "queue": "deep",
        "by": "ml/for",
    }
    told = service.post("/v1/clusters/there/evictions", json={"engine": "kueue", "evictions": [one]})
    assert told.status_code == 204
    assert service.post("/v1/shadow", json={**PREEMPTION, "victims": [{"workload": "ml/compared"}]}).is_success
    for text, kind, name in (
        ("gone", "workload", "ml/gone"), ("eir-jo", "workload", "ml/their-job"), ("dee", "queue", "deep"),
        ("ml/fo", "ask", "ml/for"), ("compared", "workload", "ml/compared"), ("hat-ap", "ask", PREEMPTION["ask"]),
    ):  # fmt: skip
        assert (kind, name) in kinds(service, text), text
    listed = service.get("/v1/shadow", params={"workload": "ml/compared"}).json()["items"]
    assert [item["ask"] for item in listed] == [PREEMPTION["ask"]]
    assert service.get("/v1/shadow", params={"workload": "ml/other"}).json()["items"] == []


def test_what_is_misspelt_leads_to_the_likest(service: TestClient) -> None:
    service.post("/v1/decisions", json=named("crimson"))
    answer = found(service, "crimsen-x")
    assert answer["items"] == []
    assert answer["nearest"][0]["name"] == "crimson-x"
    assert found(service, "quite another thing") == {"items": []}


def test_the_log_is_filtered_by_parts_of_names(service: TestClient) -> None:
    one = service.post("/v1/decisions", json=named("red")).json()["id"]
    other = service.post("/v1/decisions", json=named("redder")).json()["id"]

    def listed(**query: str) -> list[str]:
        return [item["id"] for item in service.get("/v1/decisions", params=query).json()["items"]]

    assert listed(ask="red-*") == [one]
    assert listed(ask="RED*") == [other, one]
    assert listed(workload="*dder-*") == [other]
    assert listed(queue="red-*") == [one]
    assert listed(actor="*nonymou*") == [other, one]
    assert listed(ask="red") == listed(ask="re_*") == listed(ask="%*") == []


@pytest.fixture
def names(database: Database) -> Names:
    with database.session() as session:
        session.execute(sa.delete(repository.names))
    return Names(database)


def test_names_are_told_once_an_hour_and_bounded(database: Database, names: Names, bounded: Bounded) -> None:
    names.tell([("workload", f"w{i}") for i in range(5)] + [("workload", "w" * 2001), ("ask", "")])
    with database.session() as session:
        session.execute(sa.delete(repository.names).where(repository.names.c.name == "w3"))
    names.tell([("workload", "w3")])
    assert [hit.name for hit in names.holding("w", 9)] == ["w0", "w1", "w2", "w4"], "told within the hour"
    Names(database).tell([("workload", "w3")])  # another process
    assert names.holding("w", 9)[0].name == "w3"
    bounded("app.search.service", MOST_NAMES=2)
    Names(database).tell([("workload", "new")])
    assert [hit.name for hit in names.holding("w", 9)] == ["w3", "new"]
    Names(database, timedelta(0)).tell([("workload", "last")])
    assert names.holding("w", 9) == []


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=8), max_size=30), st.text(min_size=1, max_size=4))
def test_whatever_holds_a_text_is_found_and_nothing_else(called: list[str], text: str) -> None:
    def source(part: str, limit: int) -> list[Hit]:
        return [Hit(kind="queue", name=name) for name in called if part in fold(name)][:limit]

    part = fold(text.strip())
    items = Finder([source]).find(text, 100).items
    assert {hit.name for hit in items} == ({name for name in called if part in fold(name)} if part else set())
    ranks = [(fold(hit.name) != part, not fold(hit.name).startswith(part)) for hit in items]
    assert ranks == sorted(ranks)


def test_with_the_database_away_what_is_in_memory_is_found(settings: Settings, homeless: TestClient) -> None:
    said = named("grey")
    body = {"engine": "kueue", "configuration": said["configuration"], "state": said["state"]}
    assert homeless.put("/v1/snapshots/here", json=body).is_success
    answer = homeless.get("/v1/find", params={"text": "grey"}).json()
    assert answer["away"] is True
    assert said["state"]["workloads"][0]["id"] in {hit["name"] for hit in answer["items"]}


def test_without_a_word_nothing_is_asked(service: TestClient) -> None:
    assert service.get("/v1/find").status_code == 422
    assert found(service, "  ") == {"items": []}
