"""``POST /v1/extenders/{name}/preempt`` as kube-scheduler speaks it: what stays, what is logged, what is counted."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app
from tests.support.asgi import Asgi
from tests.support.kai_answers import PROTECTED as KAI

NOW = "2026-11-22T12:00:00Z"
LONG_AGO = "2026-01-01T00:00:00Z"
AHEAD = "2999-01-01T00:00:00Z"
STATE: dict[str, Any] = {
    "nodes": [{"name": "n1", "capacity": {"cpu": 8}}],
    "workloads": [
        {
            "id": f"ml/{name}", "queue": "a", "started_at": started, "min_available": 1,
            "tasks": [{"name": f"{name}-0", "uid": f"uid-{name}", "node": "n1", "requests": {"cpu": 2}}],
        }
        for name, started in (("old", LONG_AGO), ("young", AHEAD))
    ],
}  # fmt: skip


@pytest.fixture(
    params=[pytest.param(0, id="in-process"), pytest.param(2, id="two-workers", marks=pytest.mark.slow)],
)
def client(settings: Settings, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    with TestClient(
        create_app(settings.model_copy(update={"workers": request.param})), raise_server_exceptions=False
    ) as opened:
        assert opened.put("/v1/configurations/prod", json=KAI).status_code == 201
        assert opened.put("/v1/snapshots/prod", json={"configuration": "prod", "state": STATE}).status_code == 200
        yield opened


def pod(name: str, group: str | None = None, **fields: Any) -> dict[str, Any]:
    """As the API server would send it, with fields that nobody here reads."""
    annotations = {} if group is None else {"pod-group-name": group}
    metadata = {
        "name": name, "namespace": "ml", "uid": f"uid-{name.removesuffix('-0')}", "annotations": annotations,
        "labels": {"kai.scheduler/queue": "b"}, "managedFields": [{"manager": "x"}],
    }  # fmt: skip
    containers = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
    return {"metadata": metadata, "spec": {"priority": 9, "containers": containers, **fields}, "status": {}}


ASKING = pod("serve", "serve", schedulerName="default-scheduler")


def question(victims: dict[str, list[dict[str, Any]]], asking: dict[str, Any]) -> dict[str, Any]:
    proposals = {node: {"Pods": pods, "NumPDBViolations": 1} for node, pods in victims.items()}
    return {"Pod": asking, "NodeNameToVictims": proposals, "NodeNameToMetaVictims": None}


def ask(client: TestClient, victims: dict[str, list[dict[str, Any]]], asking: dict[str, Any] = ASKING) -> Any:
    answer = client.post("/v1/extenders/prod/preempt", json=question(victims, asking))
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"NodeNameToMetaVictims"}
    return answer.json()["NodeNameToMetaVictims"]


def counted(client: TestClient, value: str, metric: str = "requests_total", label: str = "outcome") -> float:
    found = re.search(
        rf'^arbiter_extender_{metric}{{{label}="{value}"}} (\S+)', client.get("/metrics").text, re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def test_only_lawful_nodes_stay_and_the_log_says_why(client: TestClient) -> None:
    old, young = pod("old-0", "old"), pod("young-0", "young")
    stays = ask(client, {"n1": [old], "n2": [young], "n3": [old, young], "n4": []})
    assert stays == {"n1": {"Pods": [{"UID": "uid-old"}], "NumPDBViolations": 1}}
    (entry,) = client.get("/v1/decisions", params={"ask": "ml/serve"}).json()["items"]
    assert entry["outcomes"] == ["preempt"]
    record = client.get(f"/v1/decisions/{entry['id']}").json()["answer"]
    said = {verdict["node"]: verdict for verdict in record["proposals"]}
    assert {node for node, verdict in said.items() if verdict["allowed"]} == {"n1", "n4"}
    (refusal,) = said["n2"]["refusals"]
    assert (refusal["workload"], refusal["task"], refusal["rule"]) == ("ml/young", "young-0", "reclaim-min-runtime")
    history = client.get("/v1/workloads/ml%2Fyoung/history").json()
    assert (history["stopped"], history["asked"]) == (0, 0)
    assert history["items"][0]["spared"] == [
        {"task": "young-0", "node": node, "rule": refusal["rule"], "message": refusal["detail"], "for_ask": "ml/serve"}
        for node in ("n2", "n3")
    ]
    assert client.get("/v1/workloads/ml%2Fold/history").json()["items"] == []
    assert client.post(f"/v1/decisions/{entry['id']}/replay").json()["identical"] is True
    assert client.get(f"/v1/decisions/{entry['id']}/explanation").json()["identical"] is True
    assert counted(client, "answered") == 1
    shown = client.get(f"/decisions/{entry['id']}").text
    (table,) = re.findall(r'aria-label="What the scheduler proposed">(.*?)</table>', shown, re.DOTALL)
    assert [table.count(word) for word in (">stays<", ">refused<")] == [2, 2]
    assert refusal["rule"] in table
    assert "would take it by itself" in table
    assert "ignorable: true" in shown


def test_what_the_guard_makes_of_what_kube_scheduler_would_do_is_counted(client: TestClient) -> None:
    old, young = pod("old-0", "old"), pod("young-0", "young")
    least = young | {"spec": {"priority": 1}}

    def effects() -> dict[str, float]:
        return {of: counted(client, of, "effects_total", "effect") for of in ("same", "another", "stopped", "unknown")}

    for victims in ({"n1": [old]}, {"n1": [old], "n2": [least]}, {"n2": [least]}, {"n1": [old], "n2": [old, young]}):
        ask(client, victims)
    assert effects() == {"same": 2, "another": 1, "stopped": 1, "unknown": 0}
    by_uid = {"Pod": ASKING, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-old"}]}}}
    assert client.post("/v1/extenders/prod/preempt", json=by_uid).status_code == 200
    assert effects() == {"same": 2, "another": 1, "stopped": 1, "unknown": 1}
    assert client.post("/v1/extenders/nowhere/preempt", json=by_uid).status_code == 404
    assert sum(effects().values()) == 5


def test_decisions_are_found_by_the_names_of_pods(client: TestClient) -> None:
    asking = pod("serve-7", "serve", schedulerName="default-scheduler")
    ask(client, {"n1": [pod("old-0", "old")], "n2": [pod("young-0", "young"), pod("other-0")]}, asking)
    ask(client, {"n1": [pod("old-0", "old")]}, pod("next-0", "next"))
    second, first = (one["id"] for one in client.get("/v1/decisions").json()["items"])

    def found(**by: str) -> list[str]:
        return [one["id"] for one in client.get("/v1/decisions", params=by).json()["items"]]

    assert found(ask="ml/serve-7") == found(pod="ml/serve-7") == found(pod="ml/young-0") == [first]
    assert found(pod="ml/old-0") == [second, first]
    assert found(ask="ml/old-0") == found(pod="ml/nobody") == []
    (event,) = client.get("/v1/workloads/ml%2Fserve-7/history").json()["items"]
    assert (event["decision"], event["asked"][0]["outcome"]) == (first, "preempt")


def test_uids_alone_are_enough(client: TestClient) -> None:
    proposals = {
        name: {"Pods": [{"UID": uid}], "NumPDBViolations": 0}
        for name, uid in (("n1", "uid-old"), ("n2", "uid-young"), ("n3", "uid-stranger"))
    }
    body = {"Pod": ASKING, "NodeNameToVictims": None, "NodeNameToMetaVictims": proposals}
    answer = client.post("/v1/extenders/prod/preempt?snapshot=prod", json=body).json()
    assert answer == {"NodeNameToMetaVictims": {"n1": proposals["n1"]}}
    history = client.get("/v1/workloads/ml%2Fserve/history").json()
    assert history["items"][0]["asked"][0]["reason"] == "ProposalAllowed"


def test_who_belongs_to_no_queue(client: TestClient) -> None:
    """A stranger may be evicted by anybody, evicts strangers only; what Kubernetes itself needs is never held up."""
    stranger, young = pod("other-0"), pod("young-0", "young")
    asked = {"n1": [stranger], "n2": [stranger, young]}
    assert set(ask(client, asked)) == {"n1"}
    assert set(ask(client, asked, pod("plain"))) == {"n1"}
    newest = client.get("/v1/decisions").json()["items"][0]
    refused = client.get(f"/v1/decisions/{newest['id']}").json()["answer"]["proposals"][1]["refusals"]
    assert [one["rule"] for one in refused] == ["no-queue"]
    assert set(ask(client, asked, pod("agent", priority=2_000_001_000))) == {"n1", "n2"}


def test_fields_that_nobody_reads_are_no_mistake_whatever_is_in_them(client: TestClient) -> None:
    """An instant at the end of the calendar has the body looked at twice."""
    old = pod("old-0", "old", terminationGracePeriodSeconds=30)
    old["metadata"]["creationTimestamp"] = "0001-01-01T00:00:00+23:00"
    assert set(ask(client, {"n1": [old]})) == {"n1"}


def test_a_pod_that_the_snapshot_does_not_have_yet_stays(client: TestClient) -> None:
    assert ask(client, {"n1": [pod("new-0", "new")], "n2": [pod("old-1", "old")]}) == {}


def test_what_can_t_be_answered_is_a_status_and_counted(client: TestClient) -> None:
    url = "/v1/extenders/prod/preempt"
    good = {"Pod": ASKING, "NodeNameToVictims": {}}
    assert client.post("/v1/extenders/nobody/preempt", json=good).status_code == 404
    assert client.post(f"{url}?snapshot=lost", json=good).json()["code"] == "snapshot_lost"
    assert counted(client, "not_found") == 2
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"pod": ASKING}, "/Pod"),
        ({"Pod": ASKING}, "/NodeNameToVictims"),
        ({"Pod": {}, "NodeNameToVictims": {}}, "/Pod/metadata/name"),
        ({"Pod": ASKING, "NodeNameToVictims": {"n": {"Pods": [{}]}}}, "/NodeNameToVictims/n/Pods/0/metadata"),
    ]
    for body, at in wrong:
        answer = client.post(url, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, at)
    assert counted(client, "invalid") == 4


def test_an_answer_that_nobody_waits_for_any_more_is_late(client: TestClient) -> None:
    body = json.dumps(question({"node-1": [pod("old-0", "old")]}, ASKING)).encode()
    with Asgi(client.app, hangs_up=True) as gone:
        gone.post("/v1/extenders/prod/preempt", body)
    assert counted(client, "late") == 1
    assert counted(client, "answered") == 0
