"""``/v1/snapshots`` on a service with two workers, and on one with none."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app

QUEUE = {
    "name": "q",
    "quota": {"cpu": {"guaranteed": 2}},
    "kueue": {"preemption": {"within_cluster_queue": "LowerPriority"}},
}
CONFIGURATION: dict[str, Any] = {"engine": "kueue", "flavors": [{"name": "default"}], "queues": [QUEUE]}
TASK: dict[str, Any] = {"name": "m", "requests": {"cpu": 1}}
STATE = {
    "workloads": [
        {"id": f"w{i}", "queue": "q", "uid": str(i), "tasks": [{**TASK, "flavors": {"cpu": "default"}}]}
        for i in range(2)
    ]
}
ASK = {"id": "ask", "queue": "q", "uid": "u", "priority": 9, "tasks": [TASK]}
NOW = "2026-11-21T12:00:00Z"


@pytest.fixture(
    params=[pytest.param(0, id="in-process"), pytest.param(2, id="two-workers", marks=pytest.mark.slow)],
)
def client(settings: Settings, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    app = create_app(settings.model_copy(update={"workers": request.param}))
    with TestClient(app, raise_server_exceptions=False) as opened:
        yield opened


def put(client: TestClient, name: str = "s", **fields: Any) -> dict[str, Any]:
    answer = client.put(f"/v1/snapshots/{name}", json={"configuration": CONFIGURATION, "state": STATE, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(client: TestClient, state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"configuration": CONFIGURATION, "state": state, "asks": [ASK], "now": NOW, "explain": "full", **fields}
    answer = client.post("/v1/decisions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_kept_state_answers_as_the_whole_one(client: TestClient) -> None:
    status = put(client)
    assert status["counts"] == {"nodes": 0, "workloads": 2, "tasks": 2, "reservations": 0}
    kept, whole = decide(client, {"snapshot": "s"}), decide(client, STATE)
    assert kept["decisions"] == whole["decisions"]
    assert kept["state"] == {**whole["state"], "snapshot": "s", "generation": 1}
    assert client.get("/v1/snapshots/s").json()["digest"] == whole["state"]["digest"]


def test_a_question_with_another_configuration_leaves_a_snapshot_what_it_was_put_with(client: TestClient) -> None:
    own = put(client)["configuration"]
    other = {**CONFIGURATION, "queues": [{**queue, "weight": 3} for queue in CONFIGURATION["queues"]]}
    assert decide(client, {"snapshot": "s"}, configuration=other)["configuration"] != own
    assert client.get("/v1/snapshots/s").json()["configuration"] == own
    assert decide(client, {"snapshot": "s"})["configuration"] == own


def test_deltas_are_atomic_and_checked_by_generation(client: TestClient) -> None:
    put(client)
    changed = client.post("/v1/snapshots/s/deltas", json={"generation": 1, "workloads": {"remove": ["w1"]}})
    assert (changed.status_code, changed.json()["generation"]) == (200, 2)
    assert decide(client, {"snapshot": "s"})["decisions"][0]["outcome"] == "admit"
    stale = client.post("/v1/snapshots/s/deltas", json={"generation": 1, "workloads": {"remove": ["w0"]}})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_generation")
    broken = {"generation": 2, "workloads": {"remove": ["w0", "w0", "ghost"]}}
    wrong = client.post("/v1/snapshots/s/deltas", json=broken)
    assert wrong.status_code == 422
    assert [e["pointer"] for e in wrong.json()["errors"]] == ["/workloads/remove/1", "/workloads/remove/2"]
    assert client.get("/v1/snapshots/s").json()["counts"]["workloads"] == 1


def test_of_many_deltas_on_one_generation_one_wins(client: TestClient) -> None:
    put(client)

    def send(i: int) -> int:
        task = {**TASK, "flavors": {"cpu": "default"}}
        added = {"id": f"n{i}", "queue": "q", "tasks": [task]}
        return client.post("/v1/snapshots/s/deltas", json={"generation": 1, "workloads": {"add": [added]}}).status_code

    with ThreadPoolExecutor(8) as pool:
        said = sorted(pool.map(send, range(8)))
    assert said == [200] + [409] * 7
    status = client.get("/v1/snapshots/s").json()
    assert (status["generation"], status["counts"]["workloads"]) == (2, 3)


def test_a_decision_is_carried_out_by_its_id_once(client: TestClient) -> None:
    put(client)
    decision = decide(client, {"snapshot": "s"})
    assert [v["workload"] for v in decision["decisions"][0]["victims"]] == ["w0"]
    applied = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"]})
    assert (applied.status_code, applied.json()["counts"]["workloads"]) == (200, 1), applied.text
    again = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"]})
    assert again.status_code == 409
    follow = decide(client, {"snapshot": "s"})
    assert follow["decisions"][0]["outcome"] == "admit"
    client.post("/v1/snapshots/s/apply", json={"decision": follow["id"]})
    assert client.get("/v1/snapshots/s").json()["counts"]["workloads"] == 2


def test_several_independent_asks_have_plans_of_their_own_and_one_is_carried_out(client: TestClient) -> None:
    put(client)
    asks = [{**ASK, "id": "a", "uid": "a"}, {**ASK, "id": "b", "uid": "b"}]
    decision = decide(client, {"snapshot": "s"}, asks=asks)
    assert [[e["workload"] for e in d["plan"]["evictions"]] for d in decision["decisions"]] == [["w0"], ["w0"]]
    assert decision["plan"] == {"evictions": [], "placements": []}
    both = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"]})
    assert (both.status_code, both.json()["errors"][0]["pointer"]) == (422, "/ask")
    other = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"], "ask": "c"})
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/ask")
    one = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"], "ask": "b"})
    assert (one.status_code, one.json()["counts"]["workloads"]) == (200, 1), one.text
    logged = client.get(f"/v1/decisions/{decision['id']}").json()
    assert logged["evictions"] == 1
    assert client.get("/v1/decisions?workload=w0").json()["items"][0]["id"] == decision["id"]


EVICTION = {"workload": "ghost", "queue": "q", "reason": "r"}
PLACEMENT = {"ask": "ask", "task": "m", "node": "ghost", "pipelined": False}
DECIDED: dict[str, Any] = {"outcome": "admit", "victims": [], "conditions": []}
GIVEN: dict[str, tuple[dict[str, Any], str]] = {
    "who does not run": ({"plan": {"evictions": [EVICTION], "placements": []}}, "/decision/plan/evictions/0"),
    "an ask that is not there": (
        {"plan": {"evictions": [], "placements": [{**PLACEMENT, "ask": "x"}]}}, "/decision/plan/placements/0"),
    "a node that is not there": ({"plan": {"evictions": [], "placements": [PLACEMENT]}}, "/decision"),
    "two tasks of one name": (
        {"asks": [{**ASK, "tasks": [TASK, TASK]}], "decisions": [{**DECIDED, "ask": "ask"}]},
        "/decision/asks"),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_wrong_with_an_answer_is_pointed_at_where_it_was_given(client: TestClient, name: str) -> None:
    put(client)
    wrong, where = GIVEN[name]
    decision: dict[str, Any] = {"asks": [ASK], "decisions": [], "plan": {"evictions": [], "placements": []}}
    decision |= wrong
    refused = client.post("/v1/snapshots/s/apply", json={"decision": decision, "now": NOW})
    assert (refused.status_code, [e["pointer"] for e in refused.json()["errors"]]) == (422, [where]), refused.text
    assert client.get("/v1/snapshots/s").json()["generation"] == 1


def test_what_is_wrong_with_one_plan_of_several_is_pointed_at_there(client: TestClient) -> None:
    put(client)
    asks = [{**ASK, "id": "a"}, {**ASK, "id": "b"}]
    plan: dict[str, Any] = {"evictions": [EVICTION], "placements": []}
    decisions = [{**DECIDED, "ask": ask, "plan": plan} for ask in ("a", "b")]
    decision: dict[str, Any] = {"asks": asks, "decisions": decisions, "plan": {"evictions": [], "placements": []}}
    refused = client.post("/v1/snapshots/s/apply", json={"decision": decision, "ask": "b", "now": NOW})
    assert [e["pointer"] for e in refused.json()["errors"]] == ["/decision/decisions/1/plan/evictions/0"]


def test_what_is_wrong_with_a_logged_answer_is_pointed_at_its_id(client: TestClient) -> None:
    put(client)
    decision = decide(client, {"snapshot": "s"})
    assert client.post("/v1/snapshots/s/apply", json={"decision": decision["id"]}).status_code == 200
    again = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"], "generation": 2})
    assert (again.status_code, [e["pointer"] for e in again.json()["errors"]]) == (422, ["/decision"]), again.text


def test_a_cycle_is_carried_out_as_a_whole(client: TestClient) -> None:
    put(client)
    asks = [{**ASK, "id": "a", "uid": "a"}, {**ASK, "id": "b", "uid": "b"}]
    decision = decide(client, {"snapshot": "s"}, asks=asks, mode="cycle")
    assert all("plan" not in one for one in decision["decisions"])
    part = client.post("/v1/snapshots/s/apply", json={"decision": decision["id"], "ask": "a"})
    assert (part.status_code, part.json()["errors"][0]["pointer"]) == (422, "/ask")
    assert client.post("/v1/snapshots/s/apply", json={"decision": decision["id"]}).status_code == 200


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("decisions", {"asks": [ASK]}),
    ("shares", {}),
    ("preemptibility", {}),
    ("effective-settings", {}),
    ("comparisons", {"asks": [ASK], "variants": [{"name": "a"}, {"name": "b", "settings": {"kueue": {}}}]}),
]


@pytest.mark.parametrize(("path", "fields"), QUESTIONS)
def test_a_question_about_a_snapshot_needs_no_configuration(
    client: TestClient, path: str, fields: dict[str, Any]
) -> None:
    put(client)
    body = {"state": {"snapshot": "s"}, "now": NOW, **fields}
    if path == "effective-settings":
        del body["now"]
    without = client.post(f"/v1/{path}", json=body)
    named = client.post(f"/v1/{path}", json={**body, "configuration": CONFIGURATION})
    assert without.status_code == 200, without.text
    own = {"id", "stats"}
    assert {k: v for k, v in without.json().items() if k not in own} == {
        k: v for k, v in named.json().items() if k not in own
    }
    missing = client.post(f"/v1/{path}", json={**body, "state": STATE})
    assert (missing.status_code, missing.json()["errors"][0]["pointer"]) == (422, "/configuration")


def test_a_snapshots_own_configuration_is_what_its_name_means_now(client: TestClient) -> None:
    client.put("/v1/configurations/prod", json=CONFIGURATION, headers={"If-None-Match": "*"})
    put(client, configuration="prod")
    body = {"state": {"snapshot": "s"}, "asks": [ASK], "now": NOW}
    assert client.post("/v1/decisions", json=body).json()["configuration"]["revision"] == 1
    calm = {**CONFIGURATION, "queues": [{**QUEUE, "kueue": {}}]}
    tried = client.post("/v1/decisions", json={**body, "configuration": calm}).json()
    assert (tried["decisions"][0]["outcome"], "name" in tried["configuration"]) == ("wait", False)
    client.put("/v1/configurations/prod", json=calm, headers={"If-Match": "*"})
    revised = client.post("/v1/decisions", json=body).json()
    assert (revised["configuration"]["revision"], revised["decisions"][0]["outcome"]) == (2, "wait")
    logged = client.post(f"/v1/decisions/{revised['id']}/replay")
    assert logged.json()["identical"], logged.text


def test_a_lost_snapshot_says_send_it_again(client: TestClient) -> None:
    answer = client.post(
        "/v1/decisions", json={"configuration": CONFIGURATION, "state": {"snapshot": "s"}, "asks": [ASK]}
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "snapshot_lost")
    put(client)
    assert client.delete("/v1/snapshots/s").status_code == 204
    assert client.delete("/v1/snapshots/s").status_code == 404


def test_all_snapshots_are_listed_wherever_they_live(client: TestClient) -> None:
    for name in ("c", "a", "b", "d"):
        put(client, name)
    assert [s["name"] for s in client.get("/v1/snapshots").json()["items"]] == ["a", "b", "c", "d"]


def test_a_snapshot_follows_a_stored_configuration_and_refuses_another_engine(client: TestClient) -> None:
    wider = {**CONFIGURATION, "queues": [{**QUEUE, "quota": {"cpu": {"guaranteed": 3}}}]}
    etag = client.put("/v1/configurations/prod", json=CONFIGURATION).headers["etag"]
    put(client, configuration="prod")
    assert decide(client, {"snapshot": "s"}, configuration="prod")["decisions"][0]["outcome"] == "preempt"
    client.put("/v1/configurations/prod", json=wider, headers={"If-Match": etag})
    followed = decide(client, {"snapshot": "s"}, configuration="prod")
    assert (followed["decisions"][0]["outcome"], followed["configuration"]["revision"]) == ("admit", 2)
    other = {"engine": "ytsaurus", "queues": [{"name": "q"}]}
    refused = client.post("/v1/decisions", json={"configuration": other, "state": {"snapshot": "s"}, "asks": []})
    assert (refused.status_code, refused.json()["code"]) == (409, "snapshot_of_another_engine")


@pytest.mark.parametrize(("value", "status"), [("10", 200), ("500ms", 200), ("soon", 400), ("-1", 400), ("0", 400)])
def test_the_caller_may_say_how_long_to_wait(client: TestClient, value: str, status: int) -> None:
    body = {"configuration": CONFIGURATION, "state": STATE, "asks": [ASK]}
    assert client.post("/v1/decisions", json=body, headers={"Request-Timeout": value}).status_code == status


def test_solving_stops_when_the_caller_waits_no_longer(client: TestClient) -> None:
    state = {"workloads": [{"id": f"w{i}", "queue": "q"} for i in range(50_000)]}
    body = {"configuration": CONFIGURATION, "state": state, "asks": [ASK]}
    late = client.post("/v1/decisions", json=body, headers={"Request-Timeout": "10ms"})
    assert (late.status_code, late.json()["title"]) == (504, "Deadline passed")
    assert client.post("/v1/decisions", json={**body, "state": STATE}).status_code == 200


def change(client: TestClient, generation: int, **workloads: Any) -> None:
    answer = client.post("/v1/snapshots/s/deltas", json={"generation": generation, "workloads": workloads})
    assert answer.status_code == 200, answer.text


def job(name: str) -> dict[str, Any]:
    return {"id": name, "queue": "q", "uid": name, "tasks": [{**TASK, "flavors": {"cpu": "default"}}]}


def test_a_decision_on_a_snapshot_is_made_again_after_the_snapshot_has_moved_on_and_gone(client: TestClient) -> None:
    put(client)
    bodies: list[dict[str, Any]] = []
    for generation in range(1, 6):
        body = {"state": {"snapshot": "s"}, "asks": [ASK], "explain": "full"}
        bodies.append(client.post("/v1/decisions", json=body).json())
        change(client, generation, add=[job(f"n{generation}")], remove=[f"w{generation - 1}"] if generation < 3 else [])
    client.delete("/v1/snapshots/s")
    for decided in bodies:
        again = client.post(f"/v1/decisions/{decided['id']}/replay")
        assert (again.status_code, again.json()["identical"]) == (200, True), again.text
    victims = [one["decisions"][0]["victims"][0]["workload"] for one in bodies]
    assert len(set(victims)) > 1


def test_the_request_of_a_decision_on_a_snapshot_can_be_had_whole(client: TestClient) -> None:
    put(client)
    body = {"state": {"snapshot": "s"}, "asks": [ASK]}
    first = client.post("/v1/decisions", json=body).json()
    change(client, 1, remove=["w0"])
    second = client.post("/v1/decisions", json=body).json()
    for decided, count in ((first, 2), (second, 1)):
        path = f"/v1/decisions/{decided['id']}/request"
        assert client.get(path).json() == body
        whole = client.get(path, params={"resolved": "true"}).json()
        assert whole["configuration"]["queues"][0]["name"] == "q"
        assert (len(whole["state"]["workloads"]), whole["engine"], whole["mode"]) == (count, "kueue", "independent")
        again = client.post("/v1/decisions", json=whole).json()
        assert again["decisions"] == decided["decisions"]
        assert again["state"]["digest"] == decided["state"]["digest"]


def test_a_snapshot_can_be_read_back_and_put_again(client: TestClient) -> None:
    put(client)
    change(client, 1, add=[job("n")], remove=["w0"])
    read = client.get("/v1/snapshots/s/state")
    assert (read.status_code, read.headers["ETag"]) == (200, '"2"')
    assert [workload["id"] for workload in read.json()["workloads"]] == ["w1", "n"]
    before = client.get("/v1/snapshots/s").json()["digest"]
    put(client, "t", state=read.json())
    assert client.get("/v1/snapshots/t").json()["digest"] == before
    assert client.get("/v1/snapshots/u/state").status_code == 404


def test_what_waits_is_kept_beside_the_state_and_decided(client: TestClient) -> None:
    versions = {"Workload": "17"}
    status = put(client, asks=[ASK, {**ASK, "id": "second", "uid": "v"}], resource_versions=versions)
    assert status["counts"]["asks"] == 2
    whole = decide(client, STATE, asks=[ASK, {**ASK, "id": "second", "uid": "v"}])
    kept = decide(client, {"snapshot": "s"}, asks="pending")
    assert kept["decisions"] == whole["decisions"]
    assert kept["state"] == {**whole["state"], "snapshot": "s", "generation": 1, "resource_versions": versions}
    changes = {"remove": ["second"], "change": [{**ASK, "priority": -1}], "add": [{**ASK, "id": "third", "uid": "w"}]}
    delta = {"generation": 1, "asks": changes, "resource_versions": {"Workload": "18"}}
    assert client.post("/v1/snapshots/s/deltas", json=delta).json()["generation"] == 2
    listed = client.get("/v1/snapshots/s/asks").json()
    assert (listed["generation"], [(a["id"], a["priority"]) for a in listed["items"]]) == (
        2,
        [("ask", -1), ("third", 9)],
    )
    again = decide(client, {"snapshot": "s"}, asks="pending")
    assert [(d["ask"], d["outcome"]) for d in again["decisions"]] == [("ask", "wait"), ("third", "preempt")]
    assert again["state"]["resource_versions"] == {"Workload": "18"}
    for identity, answer in ((kept["id"], kept), (again["id"], again)):  # though others wait by now
        replayed = client.post(f"/v1/decisions/{identity}/replay").json()
        assert replayed["identical"], replayed["differences"]
        assert [a["id"] for a in client.get(f"/v1/decisions/{identity}/request").json()["asks"]] == [
            decision["ask"] for decision in answer["decisions"]
        ]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"remove": ["ghost"]}, "/asks/remove/0"),
    ({"add": [ASK]}, "/asks/add/0/id"),
    ({"change": [{**ASK, "queue": "ghost"}]}, "/asks/0/queue"),
]


@pytest.mark.parametrize(("changes", "pointer"), WRONG)
def test_a_change_of_what_waits_is_refused_whole(client: TestClient, changes: dict[str, Any], pointer: str) -> None:
    put(client, asks=[ASK])
    delta = {"generation": 1, "workloads": {"remove": ["w0"]}, "asks": changes}
    refused = client.post("/v1/snapshots/s/deltas", json=delta)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)
    status = client.get("/v1/snapshots/s").json()
    assert (status["generation"], status["counts"]["workloads"], status["counts"]["asks"]) == (1, 2, 1)


def test_pending_asks_are_those_of_a_snapshot(client: TestClient) -> None:
    body = {"configuration": CONFIGURATION, "state": STATE, "asks": "pending"}
    for path in ("decisions", "shares", "comparisons"):
        more = {"variants": [{"name": "a"}]} if path == "comparisons" else {}
        refused = client.post(f"/v1/{path}", json=body | more)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/asks"), path
    put(client, asks=[ASK])
    on = {"state": {"snapshot": "s"}, "asks": "pending"}
    compared = client.post("/v1/comparisons", json={**on, "variants": [{"name": "a"}]}).json()
    assert compared["variants"][0]["answer"]["decisions"][0]["ask"] == "ask"
    decided = client.post("/v1/decisions", json=on).json()
    carried = client.post("/v1/snapshots/s/apply", json={"decision": decided["id"]})
    assert carried.status_code == 200
