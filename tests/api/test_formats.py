"""Manifests in and out over HTTP."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from app.configurations.manifests import EXAMPLE
from app.formats.ytsaurus.documents import read_yson
from tests.support.roundtrip import plain_tree

MANIFESTS = Path(__file__).parents[1] / "manifests"
IMPORT = "/v1/configurations:import"
WHATEVER = f"{IMPORT}?format=kubernetes&lenient=true"
YAML = {"Content-Type": "application/yaml"}


def manifest(name: str) -> bytes:
    return (MANIFESTS / name).read_bytes()


def document() -> dict[str, Any]:
    return {
        "engine": "kueue",
        "queues": [
            {"name": "all", "priority": 3, "kueue": {"role": "cohort"}},
            {"name": "a", "parent": "all", "resource_groups": [
                {"resources": ["cpu"], "flavors": [{"name": "default", "quota": {"cpu": {"guaranteed": 4}}}]}]},
        ],
    }  # fmt: skip


@pytest.fixture
def stored(service: TestClient) -> str:
    assert service.put("/v1/configurations/team", json=document()).status_code == 201
    return "/v1/configurations/team"


def test_a_manifest_becomes_a_configuration_with_findings(homeless: TestClient) -> None:
    answer = homeless.post(f"{IMPORT}?format=kueue", content=EXAMPLE, headers=YAML)
    assert answer.status_code == 200
    body = answer.json()
    assert [(q["name"], q["parent"]) for q in body["configuration"]["queues"]] == [("team-a", "all")]
    assert (body["format"], body["state"], body["asks"], body["findings"]) == ("kueue", {}, [], [])


@pytest.mark.parametrize(
    "name", ["kueue-v1beta2.yaml", "kai-cluster.yaml", "ytsaurus-pools.yaml", "yunikorn-queues.yaml"]
)
def test_findings_lead_into_the_manifest(homeless: TestClient, name: str) -> None:
    system = name.partition("-")[0]
    answer = homeless.post(
        f"{IMPORT}?format={system}&lenient=true", content=(MANIFESTS / name).read_bytes(), headers=YAML
    )
    assert answer.status_code == 200
    found = answer.json()["findings"]
    assert all({"rule", "severity", "pointer", "detail"} == set(finding) for finding in found)
    assert any(finding["severity"] == "warning" for finding in found)


def test_what_would_be_decided_wrongly_is_refused_unless_it_is_wanted(homeless: TestClient) -> None:
    body = (MANIFESTS / "kueue-workloads.json").read_bytes()
    refused = homeless.post(f"{IMPORT}?format=kubernetes", content=body, headers=YAML)
    assert refused.status_code == 422
    assert [problem["pointer"] for problem in refused.json()["errors"]] == [
        "/items/6/spec/podSets/0/topologyRequest", "/items/9/spec",
    ]  # fmt: skip
    for text in (b"<!DOCTYPE html><html></html>", b"# A title\n\nHello: there\n", b"just: a mapping", b"hello"):
        for wanted in ("", "&lenient=true"):
            answer = homeless.post(f"{IMPORT}?format=kubernetes{wanted}", content=text, headers=YAML)
            assert answer.status_code == 422, text


def test_json_and_compressed_bodies_are_read_too(homeless: TestClient) -> None:
    body = (MANIFESTS / "kueue-workloads.json").read_bytes()
    plain = homeless.post(WHATEVER, content=body, headers={"Content-Type": "application/json"})
    packed = homeless.post(
        WHATEVER,
        content=gzip.compress(body),
        headers={**YAML, "Content-Encoding": "gzip"},
    )
    assert plain.status_code == packed.status_code == 200
    assert plain.json() == packed.json()
    assert [ask["id"] for ask in plain.json()["asks"]] == ["ns/waiting", "ns/asleep"]


def test_what_is_imported_can_be_decided(homeless: TestClient) -> None:
    body = (MANIFESTS / "kueue-workloads.json").read_bytes()
    got = homeless.post(WHATEVER, content=body, headers=YAML).json()
    question = {key: got[key] for key in ("configuration", "state", "asks")} | {"now": "2026-01-02T00:00:00Z"}
    answer = homeless.post("/v1/decisions", json=question)
    assert answer.status_code == 200
    assert [decision["ask"] for decision in answer.json()["decisions"]] == ["ns/waiting", "ns/asleep"]


@pytest.mark.parametrize(
    ("path", "content", "kind", "status"),
    [
        (f"{IMPORT}?format=kueue", b"a: [", "application/yaml", 422),
        (f"{IMPORT}?format=kueue", b"a: 1\na: 2", "text/yaml", 422),
        (f"{IMPORT}?format=slurm", b"", "application/yaml", 422),
        (IMPORT, b"", "application/yaml", 422),
        (f"{IMPORT}?format=kueue", b"", "image/png", 415),
    ],
)
def test_what_is_no_manifest_is_refused(
    homeless: TestClient, path: str, content: bytes, kind: str, status: int
) -> None:
    answer = homeless.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_errors_in_the_configuration_are_remarks_not_refusals(homeless: TestClient) -> None:
    body = json.dumps({"pools": {"a": {"weight": -1}}})
    answer = homeless.post(f"{IMPORT}?format=ytsaurus", content=body, headers=YAML)
    assert answer.status_code == 200
    remarks = answer.json()["configuration_findings"]
    assert [(r["severity"], r["pointer"]) for r in remarks] == [("error", "/queues/0/weight")]


def test_export_then_import_is_the_same_configuration(service: TestClient, stored: str) -> None:
    answer = service.get(f"{stored}:export")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/yaml")
    assert [d["kind"] for d in yaml.safe_load_all(answer.text)] == ["Cohort", "ClusterQueue"]
    back = service.post(f"{IMPORT}?format=kueue", content=answer.content, headers=YAML).json()["configuration"]
    expected = document()
    del expected["queues"][0]["priority"], expected["queues"][0]["kueue"]
    assert back["queues"][1].pop("native") == {"kueue": {"spec": {"namespaceSelector": None}}}, "open to no namespace"
    assert {**back, "settings": {}} == {**expected, "settings": {}}


def test_json_says_what_was_lost_and_the_tag_is_one_of_its_own(service: TestClient, stored: str) -> None:
    text = service.get(f"{stored}:export?format=kueue")
    told = service.get(f"{stored}:export?format=kueue", headers={"Accept": "application/json"})
    findings = [(finding["severity"], finding["pointer"]) for finding in told.json()["findings"]]
    assert findings == [("warning", "/queues/0/priority"), ("info", "/queues/1")]
    assert told.json()["text"] == text.text
    assert len({text.headers["ETag"], told.headers["ETag"], service.get(stored).headers["ETag"]}) == 3
    again = service.get(f"{stored}:export?format=kueue", headers={"If-None-Match": text.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_another_systems_words_and_an_older_revision(service: TestClient, stored: str) -> None:
    tag = service.get(stored).headers["ETag"]
    assert service.put(stored, json={**document(), "queues": []}, headers={"If-Match": tag}).status_code == 200
    pools = service.get(f"{stored}/revisions/1:export?format=ytsaurus")
    assert pools.headers["Content-Type"] == "application/x-yt-yson-text"
    a = {"strong_guarantee_resources": {"cpu": 4}}
    assert plain_tree(read_yson(pools.content)[0][1]) == {"config": {}, "pools": {"all": {"pools": {"a": a}}}}
    nothing = service.get(f"{stored}:export?format=ytsaurus")
    assert plain_tree(read_yson(nothing.content)[0][1]) == {"config": {}}
    headers = {"Content-Type": pools.headers["Content-Type"]}
    back = service.post(f"{IMPORT}?format=ytsaurus", content=pools.content, headers=headers).json()
    assert [queue["name"] for queue in back["configuration"]["queues"]] == ["all", "a"]


def test_what_is_not_there(service: TestClient, stored: str) -> None:
    assert service.get("/v1/configurations/nothing:export?format=kueue").status_code == 404
    assert service.get(f"{stored}/revisions/9:export?format=kueue").status_code == 404
    assert service.get(f"{stored}:export?format=kubernetes").status_code == 422


def test_a_configuration_without_an_engine_needs_a_format(service: TestClient) -> None:
    assert service.put("/v1/configurations/any?engine=kueue", json={"queues": []}).status_code == 201
    refused = service.get("/v1/configurations/any:export")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/engine")
    assert service.get("/v1/configurations/any:export?format=kai").status_code == 200


@pytest.mark.parametrize("nothing", [b"", b" \n"])
def test_no_manifest_is_not_an_empty_one(homeless: TestClient, nothing: bytes) -> None:
    answer = homeless.post(f"{IMPORT}?format=kueue", content=nothing, headers=YAML)
    assert (answer.status_code, answer.json()["detail"]) == (400, "there is no manifest")


def test_export_ends_at_the_deadline(service: TestClient) -> None:
    queues = [{"name": f"q{i}"} for i in range(2000)]
    document = {"engine": "kueue", "queues": queues}
    service.put("/v1/configurations/wide", json=document, headers={"If-None-Match": "*"}).raise_for_status()
    for path in ("/v1/configurations/wide:export", "/v1/configurations/wide/revisions/1:export"):
        began = time.monotonic()
        late = service.get(path, headers={"Request-Timeout": "20ms"})
        assert (late.status_code, late.json()["title"]) == (504, "Deadline passed")
        assert time.monotonic() - began < 5
        assert service.get(path).status_code == 200


ASKED: dict[str, dict[str, Any]] = {
    "/v1/decisions": {"asks": "pending"},
    "/v1/shares": {},
    "/v1/preemptibility": {},
    "/v1/effective-settings": {},
    "/v1/comparisons": {"asks": "pending", "variants": [{"name": "same"}]},
}


def carried(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in findings if one["severity"] != "info"]


ORCHID: dict[str, Any] = {
    "nodes": {"n": {"resource_limits": {"cpu": 4, "user_slots": 4}, "state": "online"}},
    "operations": {
        "op": {"start_time": "2026-11-01T00:00:00Z", "running_jobs": {"j": {"address": "gone"}}},
        "other": {"start_time": "2026-11-01T00:00:00Z"},
    },
    "pool_trees": {
        "physical": {
            "pools": {"research": {}},
            "operations": {
                "op": {"pool": "research", "resource_usage": {"cpu": 1}, "resource_demand": {"cpu": 2}},
                "other": {"pool": "research", "resource_demand": {"cpu": 2, "user_slots": 2}},
            },
        },
        "cloud": {"pools": {}},
    },
}
NATIVE: dict[str, tuple[Any, ...]] = {
    "kueue": ("kueue-workloads.json",), "kai": ("kai-cluster.yaml",), "yunikorn": ("yunikorn-dump.json",),
    "kube-scheduler": ("kube-scheduler-cluster.yaml",), "ytsaurus": ("ytsaurus-pools.yaml", ORCHID),
}  # fmt: skip


@pytest.mark.parametrize("system", NATIVE)
def test_what_an_import_could_not_read_is_said_by_every_answer_that_is_made_of_it(
    service: TestClient, system: str
) -> None:
    parts = [manifest(of) if isinstance(of, str) else json.dumps(of).encode() for of in NATIVE[system]]
    got = service.post(WHATEVER, content=b"\n---\n".join(parts), headers=YAML).json()
    found = carried(got["findings"])
    assert found
    assert got["configuration"]["engine"] == system
    assert got["asks"]
    assert service.put("/v1/configurations/team", json=got["configuration"]).status_code == 201
    of_configuration = service.get("/v1/configurations/team/revisions/1").json()["configuration"].get("findings", [])
    kept = {"configuration": "team", "state": got["state"], "asks": got["asks"]}
    put = service.put("/v1/snapshots/now", json=kept)
    assert put.is_success
    every = put.json()["findings"]
    key = json.dumps
    assert sorted(map(key, every)) == sorted(map(key, found))
    assert service.get("/v1/snapshots/now").json()["findings"] == every
    for path, asked in ASKED.items():
        answer = service.post(path, json={**asked, "state": {"snapshot": "now"}})
        assert answer.is_success, answer.text
        assert answer.json()["findings"] == every, path
        none: dict[str, Any] = {"asks": []} if "asks" in asked else {}
        alone = service.post(path, json={**asked, **none, "state": {}, "configuration": "team"})
        assert alone.is_success, alone.text
        assert alone.json().get("findings", []) == of_configuration, path
    delta = {"generation": 1, "nodes": {"add": [{"name": "another", "capacity": {"cpu": 1}}]}}
    assert service.post("/v1/snapshots/now/deltas", json=delta).json()["findings"] == every
    another = [{"rule": "r", "severity": "error", "pointer": "/Pod/ns/p", "detail": "another"}]
    for generation, findings in ((2, []), (3, another)):
        delta = {"generation": generation, "findings": findings}
        told = service.post("/v1/snapshots/now/deltas", json=delta).json().get("findings", [])
        assert sorted(map(key, told)) == sorted(map(key, [*findings, *of_configuration])), "the state has others"
    logged = service.post("/v1/decisions", json={**ASKED["/v1/decisions"], "state": {"snapshot": "now"}}).json()["id"]
    assert service.post(f"/v1/decisions/{logged}/replay").json()["identical"]


def test_a_document_that_somebody_writes_has_the_findings_that_it_says(service: TestClient) -> None:
    got = service.post(WHATEVER, content=manifest("yunikorn-queues.yaml"), headers=YAML).json()["configuration"]
    assert got["findings"]
    first = service.put("/v1/configurations/team", json=got)
    queue = service.put(
        "/v1/configurations/team/queues/root.more", json={"name": "root.more", "parent": "root"},
        headers={"If-Match": first.headers["etag"]},
    )  # fmt: skip
    assert queue.is_success, queue.text
    assert service.get("/v1/configurations/team").json()["configuration"]["findings"] == got["findings"]
    own = {name: value for name, value in got.items() if name != "findings"}
    assert service.put("/v1/configurations/team", json=own, headers={"If-Match": queue.headers["etag"]}).is_success
    asked: dict[str, Any] = {"configuration": "team", "state": {}, "asks": []}
    assert "findings" not in service.post("/v1/decisions", json=asked).json()
    named = service.post("/v1/decisions", json={**asked, "configuration": "team@2"}).json()
    assert named["findings"] == got["findings"]
    restored = service.post(
        "/v1/configurations/team/revisions/1:restore",
        headers={"If-Match": service.get("/v1/configurations/team").headers["etag"]},
    )
    assert restored.is_success
    assert service.post("/v1/decisions", json=asked).json()["findings"] == got["findings"]


def test_a_document_carries_no_more_findings_than_it_may(service: TestClient) -> None:
    finding = {"rule": "r", "severity": "error", "pointer": "", "detail": "d"}
    answer = service.put("/v1/configurations/team", json={**document(), "findings": [finding] * 101})
    assert answer.status_code == 422
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/findings"]
