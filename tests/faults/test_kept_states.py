"""What decisions on snapshots need later survives retention, restarts, lost rows and a service that is killed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import psycopg
import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.db.database import Database
from app.decisions import repository
from app.decisions import repository as kept
from app.decisions.log import DatabaseStore
from app.service.main import create_app
from tests.support.live import running

QUEUE = {
    "name": "q",
    "quota": {"cpu": {"guaranteed": 2}},
    "kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}},
}
CONFIGURATION = {"engine": "kueue", "queues": [QUEUE]}
TASK = {"name": "m", "requests": {"cpu": 1}, "flavors": {"cpu": "default"}}
ASK = {"id": "ask", "queue": "q", "uid": "u", "priority": 9, "tasks": [{"name": "m", "requests": {"cpu": 1}}]}
BODY = {"state": {"snapshot": "s"}, "asks": [ASK]}


def job(number: int) -> dict[str, Any]:
    return {"id": f"w{number}", "queue": "q", "uid": str(number), "tasks": [TASK]}


@pytest.fixture
def settings(migrated_database: Callable[[], str], tmp_path: Path) -> Settings:
    return Settings(database_url=migrated_database(), data_dir=tmp_path, workers=0)


def serve(settings: Settings) -> TestClient:
    return TestClient(create_app(settings), raise_server_exceptions=False)


def rows(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect((settings.database_url or "").replace("+psycopg", "")) as connection:
        found = connection.execute(query)
        return found.fetchall() if found.description else []


def stream(client: TestClient, count: int) -> list[str]:
    """Decisions on a snapshot with a change between each two."""
    put = {"configuration": CONFIGURATION, "state": {"workloads": [job(0), job(1)]}}
    generation = client.put("/v1/snapshots/s", json=put).json()["generation"]
    made: list[str] = []
    for number in range(count):
        made.append(client.post("/v1/decisions", json=BODY).json()["id"])
        delta = {"generation": generation + number, "workloads": {"add": [job(number + 2)]}}
        assert client.post("/v1/snapshots/s/deltas", json=delta).status_code == 200
    return made


def same(client: TestClient, decision: str) -> bool:
    answer = client.post(f"/v1/decisions/{decision}/replay")
    assert answer.status_code == 200, answer.text
    return answer.json()["identical"]


def test_states_are_kept_once_and_as_changes(settings: Settings) -> None:
    with serve(settings) as client:
        made = stream(client, 3)
        twice = [client.post("/v1/decisions", json=BODY).json()["id"] for _ in range(2)]
        assert all(same(client, one) for one in made + twice)
        found = rows(settings, "select depth, base is null from kept_documents where length(content) > 0 order by id")
        assert found == [(0, True), (0, True), (1, False), (2, False), (3, False)]  # the configuration is one
    with serve(settings) as client:  # the same state again after a restart: nothing new
        stream(client, 1)
        client.get("/v1/decisions")
        assert rows(settings, "select count(*) from kept_documents") == [(5,)]


def test_retention_takes_states_with_the_last_decision_that_needs_them(settings: Settings) -> None:
    with serve(settings) as client:
        first = stream(client, 3)
        client.delete("/v1/snapshots/s")
        client.get("/v1/decisions")
    with serve(settings) as client:
        put = {"configuration": CONFIGURATION, "state": {"workloads": [job(99)]}}
        client.put("/v1/snapshots/s", json=put)
        last = client.post("/v1/decisions", json=BODY).json()["id"]
        client.get("/v1/decisions")
        database = Database(settings.database_url, settings)
        store = DatabaseStore(database, settings.model_copy(update={"decision_log_retention_entries": 2}))
        store.prune()
        assert [same(client, one) for one in (first[2], last)] == [True, True]  # its bases are older than what is kept
        DatabaseStore(database, settings.model_copy(update={"decision_log_retention_entries": 1})).prune()
        assert len(rows(settings, "select 1 from kept_documents")) == 5  # too young to go
        with database.session() as session:
            gone = kept.prune_documents(session, datetime.now(UTC) + timedelta(hours=1), repository.decisions)
        assert gone == 3
        assert same(client, last)
        database.close()


def test_retention_by_size_counts_what_is_kept(settings: Settings) -> None:
    with serve(settings) as client:
        stream(client, 2)
        client.get("/v1/decisions")
        ((sizes, contents),) = rows(
            settings,
            "select (select sum(kept_bytes) from decisions), (select sum(length(content)) from kept_documents)",
        )
        assert sizes == contents > 0


def test_a_base_that_was_lost_costs_one_replay_and_no_entry(settings: Settings) -> None:
    with serve(settings) as client:
        first = stream(client, 1)[0]
        client.get("/v1/decisions")
        rows(settings, "update decisions set kept_state = null, kept_configuration = null")
        rows(settings, "delete from kept_documents")
        lost = client.post("/v1/decisions", json=BODY).json()["id"]
        client.get("/v1/decisions")
        delta = {"generation": 2, "workloads": {"add": [job(7)]}}
        assert client.post("/v1/snapshots/s/deltas", json=delta).status_code == 200
        healed = client.post("/v1/decisions", json=BODY).json()["id"]
        listed = [item["id"] for item in client.get("/v1/decisions").json()["items"]]
        assert listed == [healed, lost, first]
        refused = client.get(f"/v1/decisions/{lost}/request?resolved=true")
        assert (refused.status_code, refused.json()["code"]) == (409, "state_not_kept")
        assert client.post(f"/v1/decisions/{lost}/replay").status_code == 409
        assert same(client, healed)


def test_a_queue_without_room_for_the_state_still_takes_the_decision(settings: Settings) -> None:
    small = settings.model_copy(update={"decision_log_queue_bytes": 6000, "decision_log_queue_entries": 1000})
    with serve(small) as client:
        many = {"configuration": CONFIGURATION, "state": {"workloads": [job(n) for n in range(200)]}}
        client.put("/v1/snapshots/s", json=many)
        made = list[str]()
        for _ in range(3):
            made.insert(0, client.post("/v1/decisions", json=BODY).json()["id"])
            listed = [item["id"] for item in client.get("/v1/decisions").json()["items"]]  # which waits for the queue
            assert listed == made


def test_what_a_killed_service_acknowledged_in_sync_mode_is_made_again_by_the_next(
    settings: Settings, tmp_path: Path
) -> None:
    with running(settings.database_url or "", tmp_path, ARBITER_DECISION_LOG="sync") as live:

        def send(method: str, path: str, body: Any) -> Any:
            headers = {"Content-Type": "application/json"}
            asked = Request(live.address + path, msgspec.json.encode(body), headers, method=method)
            with urlopen(asked, timeout=30) as answer:
                return msgspec.json.decode(answer.read())

        put = {"configuration": CONFIGURATION, "state": {"workloads": [job(0), job(1)]}}
        send("PUT", "/v1/snapshots/s", put)
        made: list[str] = []
        for number in range(5):
            made.append(send("POST", "/v1/decisions", BODY)["id"])
            delta = {"generation": number + 1, "workloads": {"add": [job(number + 2)]}}
            send("POST", "/v1/snapshots/s/deltas", delta)
        live.process.kill()
    with serve(settings) as client:
        assert all(same(client, one) for one in made)
