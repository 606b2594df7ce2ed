"""Stored traces over HTTP: what was sent comes back as lines, and what is wrong is named by line and stores nothing."""

import gzip
import json
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.service.main import create_app
from app.traces import preparing as elsewhere
from tests.support.hostile import HOSTILE
from tests.support.instead import Instead

SWF = b"""; Version: 2.2
; UnixStartTime: 749458803
; MaxNodes: 4
    1    0  5  100   2 -1 -1   4  200 -1  1  7 1 -1 0 -1 -1 -1
    2   10 -1    0   1 -1 -1  -1   -1 -1  1  8 1 -1 0 -1 -1 -1
    3   20 30   -1  -1 -1 -1   2  100 -1  5  8 1 -1 0 -1 -1 -1
    4   20 -1 10.5   1 -1 -1  -1   -1 -1  1 -1 2 -1 0 -1  1  5
"""
PODS = b"""name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,460,,LS,Running,0,100,10
p-1,500,1,0,0,,BE,Failed,5,25,
p-2,500,1,2,1000,V100M16|V100M32,BE,Running,5,25,5
"""
NODES = b"sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96500,1024,8,V100M16\n"


def lines_of(service: TestClient, name: str) -> list[dict[str, Any]]:
    answer = service.get(f"/v1/traces/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def put(service: TestClient, name: str, body: bytes, form: str = "ndjson", **headers: str) -> Any:
    named = {"Content-Type": "application/x-ndjson", **headers}
    return service.put(f"/v1/traces/{name}?format={form}", content=body, headers=named)


def test_swf_becomes_jobs(service: TestClient) -> None:
    mapping = {
        "queue": "user-{user}", "count": "processors", "resources": {"cpu": 1}, "dependencies": True,
        "nodes": {"capacity": {"cpu": 2}}, "cluster": {"each": {"queue": {"name": "*", "parent": "all"}},
        "queues": [{"name": "all", "kueue": {"role": "cohort"}}]},
    }  # fmt: skip
    files = {"trace": gzip.compress(SWF), "mapping": yaml.safe_dump(mapping).encode()}
    answer = service.put("/v1/traces/t?format=swf", files=files)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["jobs"], told["changes"], told["nodes"], told["start"]) == (3, 1, 4, "1993-10-01T07:00:03Z")
    assert [note["line"] for note in told["first_notes"]] == [5, 6]
    change, first, second, third = lines_of(service, "t")
    assert [node["name"] for node in change["nodes"]["add"]] == ["node-1", "node-2", "node-3", "node-4"]
    assert first["ask"]["tasks"] == [{"name": "main", "count": 4, "requests": {"cpu": 1}}]
    assert (first["ask"]["queue"], first["submitted_at"], first["duration"]) == ("user-7", 0, 100)
    assert second["duration"] == 1  # 0 s in the log: less than half a second
    assert (third["ask"]["queue"], third["duration"], third["after"]) == ("user-unknown", 10.5, ["1"])
    queues = service.get("/v1/traces/t/summary").json()["configuration"]["queues"]
    assert told["configuration"]["queues"] == queues
    assert [queue["name"] for queue in queues] == ["all", "user-7", "user-8", "user-unknown"]
    assert [queue["quota"]["cpu"]["guaranteed"] for queue in queues[1:]] == ["2666m", "2667m", "2667m"]  # 8 in all


def test_a_dry_run_says_what_it_would_be_and_stores_nothing(service: TestClient) -> None:
    told = put(service, "nasa", SWF, "swf&dry_run=true")
    assert told.status_code == 200
    assert service.get("/v1/traces/nasa").status_code == 404
    assert service.get("/v1/audit").json()["items"] == []
    stored = put(service, "nasa", SWF, "swf")
    assert stored.status_code == 201
    assert {**stored.json(), "created_at": None} == {**told.json(), "created_at": None}
    assert stored.headers["etag"] == told.headers["etag"]
    assert put(service, "nasa", b"", "swf&dry_run=true").status_code == 200
    assert service.get("/v1/traces/nasa/summary").json()["jobs"] == stored.json()["jobs"]


def test_pods_and_nodes_of_alibaba_become_jobs_and_a_change(service: TestClient) -> None:
    answer = service.put("/v1/traces/a?format=alibaba-gpu-2023", files={"pods": PODS, "nodes": NODES})
    assert answer.status_code == 201, answer.text
    change, first, second, third = lines_of(service, "a")
    assert change["nodes"]["add"][1] == {
        "name": "n-1",
        "capacity": {"cpu": "96.5", "memory": "1073741824", "gpu": "8"},
        "labels": {"gpu-model": "V100M16"},
    }
    assert first["ask"]["tasks"][0]["requests"] == {"cpu": 12, "gpu": "460m", "memory": 16384 << 20}
    assert (first["submitted_at"], first["duration"]) == (0, 90)
    assert (first["ask"]["queue"], first["ask"]["preemptible"]) == ("LS", False)
    assert (second["ask"]["priority"], second["ask"]["preemptible"], second["duration"]) == (0, True, 20)
    (term,) = third["ask"]["tasks"][0]["node_affinity"]
    assert term == [{"key": "gpu-model", "operator": "In", "values": ["V100M16", "V100M32"]}]


def job(ident: str, at: Any, **fields: Any) -> bytes:
    ask = {"id": ident, "queue": "q", "tasks": [{"name": "main", "requests": {"cpu": 1}}]}
    return json.dumps({"ask": ask, "submitted_at": at, "duration": 5} | fields).encode() + b"\n"


WRONG = {
    "no job": (job("a", 0) + b"nonsense\n", 2, "not JSON"),
    "an unknown field": (job("a", 0, color=1), 1, "unknown field"),
    "backwards": (job("a", 5) + job("b", 4), 2, "backwards"),
    "a duration of 0": (job("a", 5, duration=0), 1, "above 0"),
    "a negative duration": (job("a", 5, duration=-3), 1, "out of range"),
    "a duration past all others": (job("a", 5, duration=1e308), 1, "out of range"),
    "a duration that is none": (job("a", 5, duration="1e308s"), 1, "is not a duration"),
    "NaN": (job("a", float("nan")), 1, "NaN"),
    "given up before it was asked for": (job("a", 5, cancelled_at=4), 1, "backwards"),
    "twice": (job("a", 5) + b"\n" + job("a", 6), 3, "twice"),
    "after nobody": (job("a", 5, after=["b"]), 1, "no job 'b'"),
    "both kinds of time": (job("a", 5) + job("b", "2026-01-01T00:00:00Z"), 2, "the other"),
    "a bad time": (job("a", "2026-01-01T00:00:00"), 1, "is not a duration"),
    "a quantity that is none": (job("a", 1).replace(b'"cpu": 1', b'"cpu": -1'), 1, "negative"),
    "too many": (b"".join(job(str(i), 0) for i in range(8)), 8, "more than 7 jobs (ARBITER_TRACE_JOBS)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_by_line_and_stores_nothing(name: str, settings: Settings) -> None:
    body, line, detail = WRONG[name]
    with TestClient(create_app(settings.model_copy(update={"trace_jobs": 7}))) as service:
        answer = put(service, "w", body)
        assert answer.status_code == 422, answer.text
        details = [error["detail"] for error in answer.json()["errors"]]
        assert any(f"line {line}: " in found and detail in found for found in details), details
        assert service.get("/v1/traces/w").status_code == 404


LINES = {"Content-Type": "application/x-ndjson"}


@pytest.mark.slow
def test_what_is_wrong_with_a_trace_or_its_mapping_is_answered(settings: Settings) -> None:
    mapping = b'{"queue": "{nobody}", "resources": {"cpu": {"column": "cpus"}}}'
    bodies: list[tuple[str, Any]] = [
        ("ndjson", {"content": WRONG["no job"][0], "headers": LINES}),
        ("ndjson", {"content": b"".join(job(str(i), i) for i in range(3000)), "headers": LINES}),
        ("swf", {"files": {"trace": SWF}}),
        ("swf", {"files": {"trace": SWF, "mapping": mapping}}),
        *(("swf", {"files": {"trace": SWF, "mapping": hostile}}) for hostile in HOSTILE.values()),
        (
            "swf",
            {"files": {"trace": SWF, "mapping": b"resources: {cpu: 1}\nnodes: {count: 1000000, capacity: {cpu: 1}}"}},
        ),
    ]
    with TestClient(create_app(settings.model_copy(update={"trace_jobs": 5000}))) as one:
        answers = [one.put(f"/v1/traces/t?format={form}", **sent) for form, sent in bodies]
        assert one.get("/healthz").status_code == 200, "the service lives"
    assert [answer.status_code for answer in answers] == [422, 201, 200, *[422] * (2 + len(HOSTILE))]


def test_reading_that_is_cut_short_or_dies_changes_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"".join(job(str(i), i) for i in range(100))
    with TestClient(create_app(settings.model_copy(update={"small_body_bytes": 0}))) as service:
        late = service.put("/v1/traces/t", content=body, headers={**LINES, "Request-Timeout": "0.05"})
        assert late.status_code == 504
        Instead(monkeypatch)(elsewhere, ENTRY=["-c", "pass"])
        assert put(service, "t", body).status_code == 503
        assert service.get("/v1/traces").json()["items"] == []


def test_bad_lines_of_swf_are_all_named(service: TestClient) -> None:
    lines = SWF.splitlines(keepends=True)
    body = b"".join(
        [*lines[:4], b"1 2 3\n", lines[3].replace(b" 100 ", b" nan "), lines[3].replace(b"  0  5", b" -1 -1")]
    )
    answer = put(service, "w", body, "swf")
    assert answer.status_code == 422
    found = [error["detail"] for error in answer.json()["errors"]]
    assert found[0].startswith("line 5: 3 fields")
    assert found[1].startswith("line 6: run_time: 'nan'")
    assert found[2].startswith("line 7: submit")


def test_a_mapping_of_columns_that_are_not_there_is_named_by_pointer(service: TestClient) -> None:
    files = {"trace": SWF, "mapping": b'{"queue": "{nobody}", "resources": {"cpu": {"column": "cpus"}}}'}
    answer = service.put("/v1/traces/t?format=swf", files=files)
    assert [error["pointer"] for error in answer.json()["errors"]] == [
        "/mapping/queue",
        "/mapping/resources/cpu/column",
    ]


def test_put_again_replaces_and_an_old_tag_does_not(service: TestClient) -> None:
    first = put(service, "t", job("a", 0))
    second = put(service, "t", job("b", 0))
    assert (first.status_code, second.status_code) == (201, 200)
    assert put(service, "t", job("c", 0), **{"If-Match": first.headers["ETag"]}).status_code == 412
    assert [line["ask"]["id"] for line in lines_of(service, "t")] == ["b"]
    assert [item["name"] for item in service.get("/v1/traces").json()["items"]] == ["t"]
    assert service.delete("/v1/traces/t").status_code == 204
    assert service.get("/v1/traces/t").status_code == 404
    assert service.delete("/v1/traces/t").status_code == 404


def test_a_long_trace_comes_back_whole_and_in_order(service: TestClient) -> None:
    body = b"".join(job(str(i), i) for i in range(20_000))
    assert put(service, "long", body).status_code == 201
    assert [line["ask"]["id"] for line in lines_of(service, "long")] == [str(i) for i in range(20_000)]


def test_a_bomb_is_refused(service: TestClient) -> None:
    answer = put(service, "bomb", gzip.compress(b" " * (80 << 20)))
    assert answer.status_code == 413
