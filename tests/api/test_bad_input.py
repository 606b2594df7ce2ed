"""Whatever a caller gets wrong: a problem document that points at it, and nothing changed."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.requests import changed, decision, without
from tests.support.bad_input import JSON, refused

W1 = "/state/workloads/0"


def untouched(service: TestClient) -> None:
    assert service.get("/v1/decisions").json()["items"] == []
    assert service.get("/v1/configurations").json()["items"] == []


def nested(levels: int) -> bytes:
    return b'{"configuration":"x","state":{},"asks":' + b"[" * levels + b"]" * levels + b"}"


MALFORMED = {
    "empty": b"",
    "not JSON": b"ask: x",
    "a bare word": b"nope",
    "trailing text": json.dumps(decision()).encode() + b" x",
    "not UTF-8": json.dumps(decision()).encode().replace(b'"w1"', b'"\xff\xfe"'),
    "UTF-16": json.dumps(decision()).encode("utf-16"),
    "half a surrogate pair": json.dumps(decision()).encode().replace(b'"w1"', b'"\\ud800"'),
    "truncated": json.dumps(decision()).encode()[:-20],
    "truncated in a string": json.dumps(decision()).encode()[:12],
    "single quotes": b"{'configuration': 'x'}",
    "a comment": b'{"configuration": "x", /* why */ "state": {}}',
    "a control character": b'{"configuration": "x\x00", "state": {}}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_json_is_refused(service: TestClient, body: bytes) -> None:
    refused(service.post("/v1/decisions", content=body, headers=JSON), 400, "")
    untouched(service)


@pytest.mark.parametrize("body", [b"", b"queues: []", b'{"queues": [', b'{"engine": "\xff"}', b'{"\\ud800": 1}'])
def test_a_configuration_that_is_not_json_is_refused(service: TestClient, body: bytes) -> None:
    refused(service.put("/v1/configurations/c", content=body, headers=JSON), 400, "")
    untouched(service)


@pytest.mark.parametrize("levels", [70, 5_000, 1_000_000])
def test_deep_nesting_is_refused(service: TestClient, levels: int) -> None:
    answer = service.post("/v1/decisions", content=nested(levels), headers=JSON)
    assert answer.status_code == 400
    assert "64" in answer.json()["errors"][0]["detail"]
    untouched(service)


def test_what_is_not_too_deep_is_only_wrong(service: TestClient) -> None:
    refused(service.post("/v1/decisions", content=nested(60), headers=JSON), 422, "/asks/0")


SHAPES = {
    "a list for an object": (422, b"[]", [""]),
    "a string for an object": (422, b'"x"', [""]),
    "null": (422, b"null", [""]),
    "wrong type": (422, changed(f"{W1}/priority", "high"), [f"{W1}/priority"]),
    "a float for an integer": (422, changed(f"{W1}/priority", 1.5), [f"{W1}/priority"]),
    "a boolean for a number": (422, changed(f"{W1}/tasks/0/requests/cpu", True), [f"{W1}/tasks/0/requests/cpu"]),
    "an object for a list": (422, changed("/asks", {}), ["/asks"]),
    "unknown field": (422, changed(f"{W1}/colour", "red"), [f"{W1}/colour"]),
    "a field with a slash and a tilde": (422, changed(f"{W1}/x", 1), [f"{W1}/x"]),
    "missing field": (422, without(f"{W1}/queue"), [f"{W1}/queue"]),
    "no configuration": (422, without("/configuration"), ["/configuration"]),
    "no state": (422, without("/state"), ["/state"]),
    "an empty name": (422, changed(f"{W1}/id", ""), [f"{W1}/id"]),
    "a name of 10,000 letters": (422, changed(f"{W1}/id", "x" * 10_000), [f"{W1}/id"]),
    "a negative count": (422, changed(f"{W1}/tasks/0/count", -1), [f"{W1}/tasks/0/count"]),
    "a count past 2^31": (422, changed(f"{W1}/tasks/0/count", 2**40), [f"{W1}/tasks/0/count"]),
    "unknown engine": (422, changed("/engine", "slurm"), ["/engine"]),
    "unknown mode": (422, changed("/mode", "round"), ["/mode"]),
    "unknown explain": (422, changed("/explain", "all"), ["/explain"]),
    "a time without offset": (422, changed("/now", "2026-03-02T09:30:00"), ["/now"]),
    "a time in words": (422, changed("/now", "yesterday"), ["/now"]),
    "a date": (422, changed(f"{W1}/created_at", "2026-03-02"), [f"{W1}/created_at"]),
    "the 30th of February": (422, changed("/now", "2026-02-30T00:00:00Z"), ["/now"]),
    "a number for a time": (422, changed("/now", 1_770_000_000), ["/now"]),
    "duplicate workload": (422, changed(f"{W1}/id", "w2"), ["/state/workloads/1/id"]),
    "duplicate queue": (422, changed("/configuration/queues/2/name", "a"), ["/configuration/queues/2/name"]),
    "duplicate task": (
        422,
        changed(f"{W1}/tasks/1", {"name": "t", "requests": {"cpu": 1}}),
        [f"{W1}/tasks/1/name"],
    ),
    "unknown queue of a workload": (422, changed(f"{W1}/queue", "zz"), [f"{W1}/queue"]),
    "unknown queue of an ask": (422, changed("/asks/0/queue", "zz"), ["/asks/0/queue"]),
    "unknown node": (422, changed(f"{W1}/tasks/0/node", "n1"), [f"{W1}/tasks/0/node"]),
    "a malformed reference": (422, changed("/configuration", "a@b@c"), ["/configuration"]),
    "a reference with a path": (422, changed("/configuration", "../x"), ["/configuration"]),
}


@pytest.mark.parametrize(("status", "request_", "pointers"), SHAPES.values(), ids=SHAPES)
def test_what_is_wrong_is_pointed_at(
    service: TestClient, status: int, request_: dict[str, Any] | bytes, pointers: list[str]
) -> None:
    body = request_ if isinstance(request_, bytes) else json.dumps(request_).encode()
    refused(service.post("/v1/decisions", content=body, headers=JSON), status, *pointers)
    untouched(service)


QUANTITIES = ["1.5.2", "-1", "NaN", "1e400", "0.0001", "", "1 Gi", "0x10", "Infinity", "9" * 30, "1" * 5000]
PLACES = [f"{W1}/tasks/0/requests/cpu", "/configuration/queues/1/quota/cpu/guaranteed", "/asks/0/tasks/0/requests/cpu"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_quantities_that_are_none_are_pointed_at(service: TestClient, place: str, quantity: str) -> None:
    refused(service.post("/v1/decisions", json=changed(place, quantity)), 422, place)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", ["-1", "NaN", "1e400", "-Infinity", "0.0001", "9" * 30, "9" * 5000])
def test_numbers_that_are_no_quantities_are_pointed_at(service: TestClient, place: str, number: str) -> None:
    body = json.dumps(changed(place, "@")).replace('"@"', number).encode()
    refused(service.post("/v1/decisions", content=body, headers=JSON), 422, place)


def test_everything_wrong_is_listed_at_once(service: TestClient) -> None:
    request = changed(f"{W1}/colour", "red")
    request["state"]["workloads"][1]["priority"] = "high"
    request["asks"][0].pop("queue")
    request["mode"] = "round"
    answer = service.post("/v1/decisions", json=request)
    assert sorted(error["pointer"] for error in answer.json()["errors"]) == [
        "/asks/0/queue", "/mode", f"{W1}/colour", "/state/workloads/1/priority",
    ]  # fmt: skip


def test_everything_that_makes_no_sense_is_listed_at_once(service: TestClient) -> None:
    request = changed(f"{W1}/queue", "zz")
    request["state"]["workloads"][1]["tasks"][0]["requests"]["cpu"] = "1.5.2"
    request["state"]["workloads"].append({"id": "w2", "queue": "b"})
    answer = service.post("/v1/decisions", json=request)
    assert sorted(error["pointer"] for error in answer.json()["errors"]) == [
        f"{W1}/queue", "/state/workloads/1/tasks/0/requests/cpu", "/state/workloads/2/id",
    ]  # fmt: skip


@pytest.mark.parametrize("parent", ["a", "all"])
def test_a_cycle_in_the_tree_is_pointed_at(service: TestClient, parent: str) -> None:
    request = changed("/configuration/queues/0/parent", parent)
    answer = service.post("/v1/decisions", json=request)
    assert answer.status_code == 422
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert "/configuration/queues/0/parent" in pointers
    assert all(pointer.startswith("/configuration/queues/") and pointer.endswith("/parent") for pointer in pointers)


@pytest.mark.parametrize("reference", ["nowhere", "nowhere@1", "prod@2"])
def test_an_unknown_configuration_is_not_found(service: TestClient, reference: str) -> None:
    stored = {"engine": "kueue", "queues": [{"name": "a"}]}
    assert service.put("/v1/configurations/prod", json=stored).status_code == 201
    refused(service.post("/v1/decisions", json=changed("/configuration", reference)), 404, "/configuration")


def test_a_wrong_configuration_is_pointed_at(service: TestClient) -> None:
    wrong = {"engine": "kueue", "colour": 1, "queues": [{"name": "a", "quota": {"cpu": 3}}, {"parent": "a"}]}
    answer = service.put("/v1/configurations/prod", json=wrong)
    refused(answer, 422, "/colour", "/queues/0/quota/cpu", "/queues/1/name")
    cyclic = {"engine": "kueue", "queues": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}
    assert service.put("/v1/configurations/prod", json=cyclic).status_code == 422
    quantity = {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": "0.0001"}}}]}
    refused(service.put("/v1/configurations/prod", json=quantity), 422, "/queues/0/quota/cpu/guaranteed")
    refused(service.put("/v1/configurations/prod", json={"queues": []}), 422, "/engine")
    untouched(service)


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "cursor=" + "x" * 2000])
def test_wrong_parameters_are_named(service: TestClient, query: str) -> None:
    answer = service.get(f"/v1/configurations?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == query.partition("=")[0]


def test_unknown_paths_and_methods_are_problems(service: TestClient) -> None:
    refused(service.get("/v1/nothing"), 404)
    wrong_method = service.delete("/v1/decisions")
    refused(wrong_method, 405)
    assert "POST" in wrong_method.headers["Allow"]


@pytest.mark.parametrize("path", ["/v1/shares", "/v1/preemptibility", "/v1/effective-settings", "/v1/comparisons"])
def test_the_other_questions_refuse_alike(service: TestClient, path: str) -> None:
    refused(service.post(path, content=b"{", headers=JSON), 400, "")
    body = decision()
    body.pop("asks")
    body.pop("now")
    body["colour"] = "red"
    answer = service.post(path, json=body)
    assert answer.status_code == 422
    assert "/colour" in [error["pointer"] for error in answer.json()["errors"]]
