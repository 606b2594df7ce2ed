"""The questions over HTTP: answers as the contract has them, the same every time."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from tests.api.requests import decision
from tests.support.decisions import stored

EXAMPLES = Path(__file__).parents[2] / "examples"
SITUATION = {key: value for key, value in decision().items() if key in ("engine", "now", "configuration", "state")}


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key not in ("id", "stats")}


def test_a_decision_has_what_the_contract_names(service: TestClient) -> None:
    answer = service.post("/v1/decisions", json=decision())
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert UUID(body["id"]).version == 7
    assert body["engine"] == "kueue"
    assert list(body["configuration"]) == ["digest"]
    assert re.fullmatch("[0-9a-f]{64}", body["state"]["digest"])
    assert set(body["stats"]) == {"decode_ms", "compile_ms", "solve_ms", "encode_ms"}
    (decided,) = body["decisions"]
    assert (decided["ask"], decided["outcome"]) == ("x", "preempt")
    (victim,) = decided["victims"]
    assert (victim["workload"], victim["queue"], victim["reason"]) == ("w1", "a", "InClusterQueue")
    assert victim["freed"] == {"cpu": 4}
    assert [condition["type"] for condition in victim["conditions"]] == ["Evicted", "Preempted"]
    assert all(c["last_transition_time"] == "2026-03-02T09:30:00Z" for c in victim["conditions"])
    assert decided["conditions"]
    assert [e["workload"] for e in body["plan"]["evictions"]] == ["w1"]
    assert body["plan"]["evictions"][0]["for_ask"] == "x"
    assert body["plan"]["placements"] == []


def test_the_same_request_gets_the_same_bytes_but_for_id_and_stats(service: TestClient) -> None:
    body = json.dumps(decision()).encode()
    answers = [service.post("/v1/decisions", content=body).content for _ in range(3)]
    stripped = {re.sub(rb'"stats":\{[^}]*\}', b"", re.sub(rb'"id":"[0-9a-f-]{36}"', b"", answer)) for answer in answers}
    assert len(stripped) == 1
    assert len(set(answers)) == 3


def test_decisions_come_in_the_order_of_the_asks(service: TestClient) -> None:
    request = decision()
    request["asks"] = [{**request["asks"][0], "id": name} for name in ("c", "a", "b")]
    answer = service.post("/v1/decisions", json=request).json()
    assert [decided["ask"] for decided in answer["decisions"]] == ["c", "a", "b"]
    assert [[e["workload"] for e in decided["plan"]["evictions"]] for decided in answer["decisions"]] == [["w1"]] * 3
    assert answer["plan"] == {"evictions": [], "placements": []}


def test_a_cycle_says_in_which_order_it_went(service: TestClient) -> None:
    request = decision() | {"mode": "cycle"}
    answer = service.post("/v1/decisions", json=request).json()
    assert answer["order"] == ["x"]


def test_explanations_on_request(service: TestClient) -> None:
    for level in ("summary", "full"):
        (decided,) = service.post("/v1/decisions", json=decision() | {"explain": level}).json()["decisions"]
        assert decided["explanation"]["level"] == level
    (decided,) = service.post("/v1/decisions", json=decision()).json()["decisions"]
    assert "explanation" not in decided


def test_a_stored_configuration_by_name_and_by_revision(service: TestClient) -> None:
    request = stored(service)
    inline = service.post("/v1/decisions", json=decision()).json()
    by_name = service.post("/v1/decisions", json=request).json()
    assert (by_name["configuration"]["name"], by_name["configuration"]["revision"]) == ("main", 1)
    assert by_name["decisions"] == inline["decisions"]
    changed = decision()["configuration"] | {"engine": "kueue"}
    del changed["queues"][1]["kueue"]
    etag = service.get("/v1/configurations/main").headers["ETag"]
    service.put("/v1/configurations/main", json=changed, headers={"If-Match": etag})
    now = service.post("/v1/decisions", json=request).json()
    assert now["configuration"]["revision"] == 2
    assert now["decisions"][0]["outcome"] == "wait"
    before = service.post("/v1/decisions", json=request | {"configuration": "main@1"}).json()
    assert bare(before) == bare(by_name)


@pytest.mark.parametrize("reference", ["nothing", "main@7", "nothing@1"])
def test_an_unknown_configuration(service: TestClient, reference: str) -> None:
    stored(service)
    for path in ("decisions", "shares", "preemptibility", "effective-settings"):
        answer = service.post(f"/v1/{path}", json={"configuration": reference, "state": {}})
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/configuration"]


def test_shares(service: TestClient) -> None:
    answer = service.post("/v1/shares", json=SITUATION | {"asks": []})
    assert answer.status_code == 200
    body = answer.json()
    assert set(body["queues"]) >= {"a", "b"}
    assert body["queues"]["a"]["usage"] == {"cpu": 4}
    assert body["engine"] == "kueue"


def test_preemptibility(service: TestClient) -> None:
    answer = service.post("/v1/preemptibility", json=SITUATION | {"ask": decision()["asks"][0]})
    assert answer.status_code == 200
    workloads = answer.json()["workloads"]
    assert (workloads["w1"]["preemptible"], workloads["w2"]["preemptible"]) == (True, False)
    assert all(found["reason"] for found in workloads.values())


def test_effective_settings(service: TestClient) -> None:
    request = {"engine": "kueue", "configuration": SITUATION["configuration"]}
    answer = service.post("/v1/effective-settings", json=request)
    assert answer.status_code == 200
    assert set(answer.json()["queues"]) == {"all", "a", "b"}


@pytest.mark.parametrize("path", ["shares", "preemptibility", "effective-settings", "comparisons"])
def test_bad_input_to_the_other_questions(service: TestClient, path: str) -> None:
    answer = service.post(f"/v1/{path}", json={"configuration": {"engine": "kueue"}, "state": {}, "shape": 1})
    assert answer.status_code == 422
    assert "/shape" in [error["pointer"] for error in answer.json()["errors"]]
    assert service.post(f"/v1/{path}", content=b"{").status_code == 400


def test_a_comparison(service: TestClient) -> None:
    other = stored(service)["configuration"]
    gentle = decision()["configuration"]
    del gentle["queues"][1]["kueue"]
    variants = [
        {"name": "stored", "configuration": other},
        {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}},
        {"name": "gentle", "configuration": gentle},
    ]
    answer = service.post("/v1/comparisons", json=decision() | {"variants": variants})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert [variant["name"] for variant in body["variants"]] == ["stored", "fair", "gentle"]
    assert body["variants"][0]["answer"]["configuration"]["name"] == "main"
    assert body["differences"][0] == {
        "ask": "x", "field": "outcome", "values": {"stored": "preempt", "fair": "preempt", "gentle": "wait"},
    }  # fmt: skip


def test_a_comparison_of_engines(service: TestClient) -> None:
    request = decision() | {"variants": [{"name": engine, "engine": engine} for engine in ("kueue", "yunikorn")]}
    for queue in request["configuration"]["queues"]:
        queue["name"] = "root" if queue["name"] == "all" else f"root.{queue['name']}"
        if "parent" in queue:
            queue["parent"] = "root"
    for one in (*request["state"]["workloads"], *request["asks"]):
        one["queue"] = f"root.{one['queue']}"
    answer = service.post("/v1/comparisons", json=request)
    assert answer.status_code == 200, answer.text
    assert [variant["answer"]["engine"] for variant in answer.json()["variants"]] == ["kueue", "yunikorn"]


def kube_scheduler(**changes: Any) -> dict[str, Any]:
    return {**json.loads((EXAMPLES / "kube-scheduler.json").read_text()), **changes}


def test_what_would_let_a_pod_of_kube_scheduler_in_does_and_a_step_less_does_not(service: TestClient) -> None:
    (asked,) = kube_scheduler()["asks"]
    asked = {**asked, "priority": 0}
    (task,) = asked["tasks"]

    def decided(ask: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = service.post("/v1/decisions", json=kube_scheduler(asks=[ask], **more))
        assert answer.status_code == 200, answer.text
        return answer.json()["decisions"][0]

    waits = decided(asked)
    changes = {(one["field"], one["resource"]): one["needed"] for one in waits["explanation"]["smallest_change"]}
    assert (waits["outcome"], changes) == ("wait", {("priority", "pods"): 1, ("requests", "cpu"): 2})
    assert decided({**asked, "priority": 1})["outcome"] == "preempt"
    for cpu, outcome in ((2, "admit"), (2.001, "wait")):
        smaller = {**asked, "tasks": [{**task, "requests": {**task["requests"], "cpu": cpu}}]}
        assert decided(smaller)["outcome"] == outcome

    state = kube_scheduler()["state"]
    state["workloads"][1]["priority"] = 2000
    violates = decided({**asked, "priority": 1000}, state=state)
    (change,) = violates["explanation"]["smallest_change"]
    assert (violates["violations"], change["field"], change["needed"]) == (1, "disruptions_allowed", 1)
    state["disruption_budgets"][0]["disruptions_allowed"] = change["needed"]
    assert decided({**asked, "priority": 1000}, state=state)["violations"] == 0


def test_whom_another_would_evict_is_judged_by_kube_scheduler_s_rules(service: TestClient) -> None:
    """By priority alone: budgets are preferred."""
    proposals = [
        {"node": "node-2", "evict": [{"workload": "report"}], "rank": 2},
        {"node": "node-1", "evict": [{"workload": "nightly", "task": "nightly-0"}], "rank": 3},
        {"node": "other", "evict": [{"workload": "nobody"}], "rank": 1},
    ]
    for priority, allowed in ((1000, {"node-1", "node-2"}), (100, {"node-1"}), (0, set[str]())):
        asks = [{**kube_scheduler()["asks"][0], "priority": priority}]
        answer = service.post("/v1/decisions", json=kube_scheduler(asks=asks, proposals=proposals)).json()
        said = {one["node"]: one for one in answer["proposals"]}
        assert {node for node, one in said.items() if one["allowed"]} == allowed
        assert [one["rule"] for one in said["other"]["refusals"]] == ["unknown-workload"]
        assert [one["node"] for one in answer["proposals"] if one.get("taken")] == sorted(allowed)[-1:]
        refused = {of["rule"] for node in ("node-1", "node-2") for of in said[node].get("refusals", ())}
        assert refused == (set() if priority == 1000 else {"not-less-important"})
