"""What was answered can be found, read and answered again."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.base.identifiers import earliest
from app.base.settings import Settings
from app.base.ticket import FairGate
from app.db.database import Database
from app.decisions import repository
from app.decisions.log import DatabaseStore
from app.http.body import Budget
from app.service.main import create_app
from tests.api.requests import decision
from tests.support import released
from tests.support.decisions import stored
from tests.support.stored import entry, facts


def decide(service: TestClient, request: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    answer = service.post("/v1/decisions", json=(request or decision()) | changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(service: TestClient, **query: Any) -> list[str]:
    answer = service.get("/v1/decisions", params=query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def waiting() -> dict[str, Any]:
    request = decision()
    request["asks"][0] |= {"id": "y", "priority": 0}
    return request


def test_the_list_is_newest_first_and_short(service: TestClient) -> None:
    made = [decide(service)["id"] for _ in range(5)]
    assert made == sorted(made)
    answer = service.get("/v1/decisions").json()
    assert [item["id"] for item in answer["items"]] == made[::-1]
    assert "next_cursor" not in answer
    first = answer["items"][0]
    assert (first["asks"], first["outcomes"], first["evictions"]) == (["x"], ["preempt"], 1)
    assert first["now"] == "2026-03-02T09:30:00Z"
    assert not {"request", "answer"} & set(first)


def test_lines_of_the_log_say_by_which_release(service: TestClient) -> None:
    question = {"engine": "kai", "state": released.STATE, "asks": [released.WAITS]}
    for release in ("0.13", "0.17"):
        asked = {"configuration": released.configuration(release), "now": "2026-03-02T09:30:00Z"}
        assert decide(service, question | asked)["release"] == release
        shares = service.post("/v1/shares", json=question | asked).json()
        protection = service.post("/v1/preemptibility", json=question | asked).json()
        del asked["now"]
        settings = service.post(
            "/v1/effective-settings", json={**asked, "engine": "kai", "state": released.STATE}
        ).json()
        assert [answer["release"] for answer in (shares, protection, settings)] == [release] * 3
    decide(service)
    assert [line["release"] for line in service.get("/v1/decisions").json()["items"]] == [None, "0.17", "0.13"]
    history = service.get("/v1/workloads/x/history").json()["items"]
    assert [event.get("release") for event in history] == [None, "0.17", "0.13"]


def test_pages_hold_everything_once_also_while_more_arrives(service: TestClient) -> None:
    made = [decide(service)["id"] for _ in range(7)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    for page in range(3):
        answer = service.get("/v1/decisions", params=query).json()
        seen += [item["id"] for item in answer["items"]]
        query["cursor"] = answer.get("next_cursor")
        if page == 0:
            decide(service)
    assert seen == made[::-1]
    assert query["cursor"] is None


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "WyJ4Il0", "WzFd"])
def test_a_cursor_from_elsewhere_is_refused(service: TestClient, cursor: str) -> None:
    assert service.get("/v1/decisions", params={"cursor": cursor}).status_code == 400


@pytest.mark.parametrize("limit", [0, -1, 501, "many"])
def test_limits_have_limits(service: TestClient, limit: Any) -> None:
    assert service.get("/v1/decisions", params={"limit": limit}).status_code == 422


def test_filters(service: TestClient) -> None:
    preempting = decide(service)["id"]
    denied = decide(service, waiting())["id"]
    named = decide(service, stored(service))["id"]
    assert listed(service, outcome="preempt") == [named, preempting]
    assert listed(service, outcome="wait") == [denied]
    assert listed(service, outcome="infeasible") == []
    assert listed(service, ask="y") == [denied]
    assert listed(service, workload="w1") == [named, preempting]
    assert listed(service, workload="w2") == []
    assert listed(service, configuration="main") == [named]
    assert listed(service, configuration="main@1") == [named]
    assert listed(service, configuration="main@2") == []
    assert listed(service, engine="kueue") == [named, denied, preempting]
    assert listed(service, engine="kai") == []
    assert listed(service, ask="x", outcome="preempt", configuration="main") == [named]
    refused = service.get("/v1/decisions", params={"ask": "nul\0"})
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "ask")


def test_filters_by_time(service: TestClient) -> None:
    first = decide(service)["id"]
    between = datetime.now(UTC)
    second = decide(service)["id"]
    assert listed(service, since=between.isoformat()) == [second]
    assert listed(service, until=between.isoformat()) == [first]
    assert listed(service, since="0001-01-01T00:00:00Z", until="9999-12-31T23:59:59Z") == [second, first]


@pytest.mark.parametrize(
    "query",
    [{"engine": "slurm"}, {"outcome": "maybe"}, {"since": "2026-01-01T00:00:00"}, {"until": "noon"},
     {"since": "0.5"}, {"until": "2026-01-01"},
     {"configuration": "a@b"}, {"configuration": "a@99999999999"}],
)  # fmt: skip
def test_filters_that_make_no_sense_are_refused(service: TestClient, query: dict[str, str]) -> None:
    answer = service.get("/v1/decisions", params=query)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize(
    "moment",
    ["", "2026", "1772443800", "2026-03-02", "2026-03-02T09:30:00", "2026-03-02T09:30Z", "2026-03-02 09:30:00Z",
     "2026-03-02T09:30:00+0100", "2026-03-02T09:30:00+01", "2026-03-02T09:30:00 01:00", "2026-03-02T09:30:00,5Z",
     "2026-03-02T09:30:00.Z", "2026-03-02T09:30:00Z\n", "2026-02-30T09:30:00Z", "2026-03-02T24:00:00Z",
     "2026-03-02T09:30:00+25:00", "0000-01-01T00:00:00Z", "٢٠٢٦-03-02T09:30:00Z", "P1D", "now"],
)  # fmt: skip
def test_a_filter_by_time_is_a_whole_moment(service: TestClient, name: str, moment: str) -> None:
    answer = service.get("/v1/decisions", params={name: moment})
    assert answer.status_code == 422
    assert [fault["parameter"] for fault in answer.json()["errors"]] == [name]


@pytest.mark.parametrize(
    "moment",
    ["2026-03-02T09:30:00Z", "2026-03-02t09:30:00z", "2026-03-02T09:30:00.5-00:00", "2026-03-02T09:30:00.123456789Z",
     "2026-03-02T10:30:00+01:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"],
)  # fmt: skip
def test_every_form_of_a_moment_is_taken(service: TestClient, moment: str) -> None:
    assert service.get("/v1/decisions", params={"since": moment, "until": moment}).json() == {"items": []}


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_operations_reckon_from_the_ends_of_the_calendar(service: TestClient, name: str, moment: str) -> None:
    paths = service.get("/openapi.json").json()["paths"]
    timed = [
        path for path, operations in paths.items()
        if any(parameter.get("name") == name for parameter in operations.get("get", {}).get("parameters", ()))
    ]  # fmt: skip
    assert "/v1/decisions:counts" in timed
    for path in timed:
        answer = service.get(path.replace("{name}", "none"), params={name: moment})
        assert answer.status_code in (200, 404), (path, answer.text)


def test_a_record_has_the_answer_and_its_request_byte_for_byte(service: TestClient) -> None:
    body = json.dumps(decision(), indent=3).encode()
    answer = service.post("/v1/decisions", content=body).json()
    record = service.get(f"/v1/decisions/{answer['id']}").json()
    assert record["answer"] == {key: value for key, value in answer.items() if key not in ("id", "stats")}
    assert record["stats"] == answer["stats"]
    assert record["id"] == answer["id"]
    assert service.get(f"/v1/decisions/{answer['id']}/request").content == body


@pytest.mark.parametrize("method", ["get", "request", "replay"])
def test_an_unknown_decision(service: TestClient, method: str) -> None:
    path = f"/v1/decisions/{uuid4()}"
    answer = (
        service.post(f"{path}/replay")
        if method == "replay"
        else service.get(path + ("/request" if method == "request" else ""))
    )
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_id_that_is_none(service: TestClient) -> None:
    assert service.get("/v1/decisions/latest").status_code == 422


def test_of_large_records_few_are_read_at_once(service: TestClient) -> None:
    """Where there is no turn to be had a large one is late, a small one is not; and a page of either waits for its
    own."""
    request = waiting()
    request["asks"] = [request["asks"][0] | {"id": f"{i}-{uuid4()}{uuid4()}"} for i in range(2500)]
    large, small = decide(service, request)["id"], decide(service)["id"]
    budget = cast(FastAPI, service.app).state.services.of(Budget)
    budget.working, budget.showing = FairGate(0), Turns()
    assert [
        service.get(f"/v1/decisions/{identity}", headers={"Request-Timeout": "0.3"}).status_code
        for identity in (large, small)
    ] == [504, 200]
    for identity in (small, small):
        assert service.get(f"/decisions/{identity}").status_code == 200
    assert budget.showing.passes == 2


class Turns(FairGate):
    """Lets everybody in, and counts them."""

    def __init__(self) -> None:
        super().__init__(1)
        self.passes = 0

    def leave(self) -> None:
        self.passes += 1
        super().leave()


def replayed(service: TestClient, identity: str) -> dict[str, Any]:
    answer = service.post(f"/v1/decisions/{identity}/replay")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_replay_gives_the_same_bytes(service: TestClient) -> None:
    for explain in ("none", "full"):
        made = decide(service, explain=explain)
        again = replayed(service, made["id"])
        assert again["identical"] is True
        assert again["recorded_digest"] == again["replayed_digest"]
        assert again["differences"] == []
        assert again["answer"] == {key: value for key, value in made.items() if key not in ("id", "stats")}


def test_a_replay_uses_the_clock_of_then(service: TestClient) -> None:
    request = decision()
    del request["now"]
    made = decide(service, request)
    again = replayed(service, made["id"])
    assert again["identical"] is True


def test_a_replay_uses_the_revision_of_then(service: TestClient) -> None:
    request = stored(service)
    made = decide(service, request)
    gentle = decision()["configuration"] | {"engine": "kueue"}
    del gentle["queues"][1]["kueue"]
    etag = service.get("/v1/configurations/main").headers["ETag"]
    service.put("/v1/configurations/main", json=gentle, headers={"If-Match": etag})
    assert decide(service, request)["decisions"] != made["decisions"]
    assert replayed(service, made["id"])["identical"] is True
    etag = service.get("/v1/configurations/main").headers["ETag"]
    assert service.delete("/v1/configurations/main", headers={"If-Match": etag}).status_code == 204
    assert replayed(service, made["id"])["identical"] is True


def test_a_replay_says_where_today_differs(service: TestClient, settings: Settings) -> None:
    made = decide(service)
    service.get("/v1/decisions")
    database = Database(settings.database_url, settings)
    with database.session() as session:
        other = repository.decisions.update().values(request=_squeezed(waiting()))
        session.execute(other)
    database.close()
    again = replayed(service, made["id"])
    assert again["identical"] is False
    assert "/decisions/0/outcome" in again["differences"]


def _squeezed(request: dict[str, Any]) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(json.dumps(request).encode())


def test_reading_the_log_changes_nothing(service: TestClient) -> None:
    made = decide(service)["id"]
    replayed(service, made)
    service.post("/v1/shares", json={"configuration": {"engine": "kueue"}, "state": {}})
    assert listed(service) == [made]


def test_what_was_refused_is_not_logged(service: TestClient) -> None:
    assert service.post("/v1/decisions", json={}).status_code == 422
    assert listed(service) == []


def rows(settings: Settings) -> int:
    database = Database(settings.database_url, settings)
    try:
        with database.session() as session:
            return len(repository.page(session, repository.Filters(), None, 1000))
    finally:
        database.close()


def test_a_time_belongs_to_what_comes_since_it(settings: Settings) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    database = Database(settings.database_url, settings)
    try:
        DatabaseStore(database, settings).save([replace(entry(facts(evictions=[])), id=earliest(noon)).row()])
        with database.session() as session:
            found = [repository.count(session, repository.Filters(since=noon)),
                     repository.count(session, repository.Filters(until=noon))]  # fmt: skip
    finally:
        database.close()
    assert found == [1, 0]


def test_retention_by_count(service: TestClient, settings: Settings) -> None:
    made = [decide(service)["id"] for _ in range(6)]
    listed(service)
    database = Database(settings.database_url, settings)
    DatabaseStore(database, settings.model_copy(update={"decision_log_retention_entries": 2})).prune()
    database.close()
    assert listed(service) == made[:3:-1]


def test_retention_by_size(service: TestClient, settings: Settings) -> None:
    made = [decide(service)["id"] for _ in range(5)]
    listed(service)
    database = Database(settings.database_url, settings)
    with database.session() as session:
        row = repository.find(session, UUID(made[-1]))
    assert row is not None
    room = 3 * (len(row["request"]) + len(row["answer"])) + 100
    DatabaseStore(database, settings.model_copy(update={"decision_log_retention_bytes": room})).prune()
    database.close()
    assert listed(service) == made[:1:-1]


def test_retention_by_age(service: TestClient, settings: Settings) -> None:
    decide(service)
    listed(service)
    database = Database(settings.database_url, settings)
    store = DatabaseStore(database, settings)
    store.prune()
    assert rows(settings) == 1
    with database.session() as session:
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        assert repository.prune(session, before=tomorrow, keep=None, keep_bytes=None) == 1
    database.close()
    assert rows(settings) == 0


def test_retention_can_be_switched_off(service: TestClient, settings: Settings) -> None:
    decide(service)
    listed(service)
    database = Database(settings.database_url, settings)
    off = settings.model_copy(
        update={
            "decision_log_retention_entries": 0,
            "decision_log_retention_days": 0,
            "decision_log_retention_bytes": 0,
        }
    )
    DatabaseStore(database, off).prune()
    database.close()
    assert rows(settings) == 1


def test_the_log_outlives_the_service(service: TestClient, settings: Settings) -> None:
    made = decide(service)["id"]
    service.get("/v1/decisions")
    with TestClient(create_app(settings)) as another:
        assert listed(another) == [made]
        assert replayed(another, made)["identical"] is True


def test_filters_by_actor_and_queue(service: TestClient) -> None:
    made = decide(service)["id"]
    (item,) = service.get("/v1/decisions").json()["items"]
    assert item["actor"] == "anonymous"
    queue = decision()["asks"][0]["queue"]
    assert queue in item["queues"]
    assert listed(service, actor="anonymous", queue=queue) == [made]
    assert listed(service, actor="token:ci") == []
    assert listed(service, queue="elsewhere") == []


def test_the_request_can_be_had_as_it_can_be_answered_anywhere(service: TestClient) -> None:
    request = stored(service)
    del request["now"]
    made = decide(service, request)
    path = f"/v1/decisions/{made['id']}/request"
    whole = service.get(path, params={"resolved": "true"}).json()
    assert whole["configuration"]["queues"] == service.get("/v1/configurations/main").json()["configuration"]["queues"]
    assert whole["now"] == service.get(f"/v1/decisions/{made['id']}").json()["now"]
    assert decide(service, whole)["decisions"] == made["decisions"]
    assert service.get(path, params={"resolved": "perhaps"}).status_code == 422


HOSTILE = ["w1", "team/w 1", "a/history", "ä?#%&+=\"'\\\\", "..", "x\ny"]


@pytest.mark.parametrize("name", HOSTILE)
def test_who_has_stopped_my_job_and_how_often(service: TestClient, name: str) -> None:
    request = json.loads(json.dumps(decision()).replace('"w1"', json.dumps(name)))
    stops = [decide(service, request)["id"] for _ in range(3)]
    asked = (
        decide(service, waiting() | {"asks": [{**waiting()["asks"][0], "id": name}]})["id"] if name != "w1" else None
    )
    path = f"/v1/workloads/{quote(name, safe='')}/history".replace("/../", "/%2e%2e/")
    answer = service.get(path, params={"limit": 2})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["workload"], found["stopped"], found["asked"]) == (name, 3, 0 if asked is None else 1)
    rest = service.get(path, params={"limit": 2, "cursor": found["next_cursor"]}).json()
    items = found["items"] + rest["items"]
    assert [item["decision"] for item in items] == ([] if asked is None else [asked]) + stops[::-1]
    assert "next_cursor" not in rest
    last = items[-1]
    assert (last["stopped"][0]["for_ask"], last["stopped"][0]["reason"], last["actor"]) == (
        "x", "InClusterQueue", "anonymous",
    )  # fmt: skip
    assert asked is None or items[0]["asked"][0]["outcome"] == "wait"


def test_the_history_of_nobody_is_empty(service: TestClient) -> None:
    assert service.get("/v1/workloads/ghost/history").json() == {
        "workload": "ghost", "stopped": 0, "asked": 0, "items": [],
    }  # fmt: skip
    assert service.get("/v1/workloads/ghost/history", params={"cursor": "x"}).status_code == 400


def counted(service: TestClient, **query: Any) -> dict[str, Any]:
    answer = service.get("/v1/decisions:counts", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_counts_are_the_database_s_and_leave_out_what_was_only_tried(service: TestClient) -> None:
    made = [decide(service) for _ in range(3)] + [decide(service, waiting())]
    for purpose in ("what-if", "simulation"):
        answer = service.post("/v1/decisions", json=decision(), params={"purpose": purpose})
        made.append(answer.json())
        assert listed(service, purpose=purpose) == [made[-1]["id"]]
    assert listed(service, purpose="decision") == [one["id"] for one in made[3::-1]]
    assert [one["purpose"] for one in service.get("/v1/decisions").json()["items"]] == [
        "simulation", "what-if", *["decision"] * 4,
    ]  # fmt: skip
    found = counted(service, purpose="decision")
    assert (found["decisions"], found["evictions"]) == (4, 3)
    assert len(found["intervals"]) == 60
    outcomes: Counter[str] = Counter()
    for one in found["intervals"]:
        outcomes.update(one["outcomes"])
    assert outcomes == {"preempt": 3, "wait": 1}
    victim = made[0]["decisions"][0]["victims"][0]
    queue = decision()["asks"][0]["queue"]
    assert found["stops"] == [{"by": queue, "queue": victim["queue"], "reason": victim["reason"], "times": 3}]
    assert counted(service)["decisions"] == 6
    assert counted(service, until="2026-01-01T00:00:00Z")["decisions"] == 0
    later = counted(service, since=(datetime.now(UTC) + timedelta(minutes=5)).isoformat())
    assert (later["decisions"], later["stops"]) == (0, [])


def test_an_unknown_purpose_is_refused_and_logs_nothing(service: TestClient) -> None:
    answer = service.post("/v1/decisions", json=decision(), params={"purpose": "fun"})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "purpose")
    assert listed(service) == []


def test_what_was_only_tried_closes_no_circle(service: TestClient) -> None:
    there = decision()
    victim = decide(service, there)["decisions"][0]["victims"][0]["workload"]
    back = json.loads(
        json.dumps(there).replace('"x"', '"?"').replace(f'"{victim}"', '"x"').replace('"?"', f'"{victim}"')
    )
    answer = service.post("/v1/decisions", json=back, params={"purpose": "what-if"})
    assert answer.json()["decisions"][0]["victims"][0]["workload"] == "x"
    assert listed(service, circle=True) == []
    decide(service, back)
    assert len(listed(service, circle=True)) == 2


def test_a_workload_s_history_says_what_was_only_tried(service: TestClient) -> None:
    made = service.post("/v1/decisions", json=decision(), params={"purpose": "what-if"}).json()
    victim = made["decisions"][0]["victims"][0]["workload"]
    (event,) = service.get(f"/v1/workloads/{victim}/history").json()["items"]
    assert event["purpose"] == "what-if"
