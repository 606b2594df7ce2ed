"""Labels: moved by compare-and-set, followed by decisions."""

from typing import Any

import pytest
from starlette.testclient import TestClient

URL = "/v1/configurations/prod"
STABLE = f"{URL}/labels/stable"


def document(cpu: int) -> dict[str, Any]:
    return {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": cpu}}}]}


@pytest.fixture
def service(service: TestClient) -> TestClient:
    """A service with three revisions of ``prod``: room for 1, 2 and 3 CPUs."""
    for cpu in (1, 2, 3):
        headers = {"If-Match": "*"} if cpu > 1 else {}
        assert service.put(URL, json=document(cpu), headers=headers).status_code in (200, 201)
    return service


def decide(service: TestClient, reference: str) -> tuple[int, Any]:
    ask = {"id": "x", "queue": "a", "tasks": [{"name": "t", "requests": {"cpu": 2}}]}
    answer = service.post("/v1/decisions", json={"configuration": reference, "state": {}, "asks": [ask]})
    if answer.status_code != 200:
        return answer.status_code, answer.json()["errors"][0]["pointer"]
    return answer.json()["configuration"]["revision"], answer.json()["decisions"][0]["outcome"]


def test_a_label_is_set_moved_and_taken_off(service: TestClient) -> None:
    made = service.put(f"{STABLE}?comment=go", json={"revision": 1})
    assert made.status_code == 201
    assert made.headers["Location"] == STABLE
    assert (made.json()["label"], made.json()["revision"], made.json()["comment"]) == ("stable", 1, "go")
    assert decide(service, "prod@stable") == (1, "infeasible")
    moved = service.put(STABLE, json={"revision": 2}, headers={"If-Match": made.headers["ETag"]})
    assert (moved.status_code, moved.json()["revision"]) == (200, 2)
    assert decide(service, "prod@stable") == (2, "admit")
    assert decide(service, "prod") == (3, "admit")
    read = service.get(STABLE)
    assert (read.json(), read.headers["ETag"]) == (moved.json(), moved.headers["ETag"])
    assert service.get(STABLE, headers={"If-None-Match": read.headers["ETag"]}).status_code == 304
    assert service.delete(STABLE, headers={"If-Match": read.headers["ETag"]}).status_code == 204
    assert decide(service, "prod@stable") == (404, "/configuration")
    assert service.get(STABLE).status_code == 404


def test_writes_say_where_it_points_now(service: TestClient) -> None:
    first = service.put(STABLE, json={"revision": 1}, headers={"If-None-Match": "*"}).headers["ETag"]
    assert service.put(STABLE, json={"revision": 2}).status_code == 428
    assert service.put(STABLE, json={"revision": 2}, headers={"If-None-Match": "*"}).status_code == 412
    assert service.delete(STABLE).status_code == 428
    assert service.put(STABLE, json={"revision": 2}, headers={"If-Match": first}).status_code == 200
    late = service.put(STABLE, json={"revision": 3}, headers={"If-Match": first})
    assert late.status_code == 412
    assert late.headers["ETag"] == service.get(STABLE).headers["ETag"]
    assert service.delete(STABLE, headers={"If-Match": first}).status_code == 412


def test_a_tag_never_fits_again(service: TestClient) -> None:
    first = service.put(STABLE, json={"revision": 1}).headers["ETag"]
    service.put(STABLE, json={"revision": 2}, headers={"If-Match": "*"})
    back = service.put(STABLE, json={"revision": 1}, headers={"If-Match": "*"}).headers["ETag"]
    service.delete(STABLE, headers={"If-Match": back})
    again = service.put(STABLE, json={"revision": 1}).headers["ETag"]
    assert len({first, back, again}) == 3
    assert service.put(STABLE, json={"revision": 2}, headers={"If-Match": first}).status_code == 412


def test_pointing_where_it_points_is_no_move(service: TestClient) -> None:
    made = service.put(STABLE, json={"revision": 1})
    again = service.put(STABLE, json={"revision": 1}, headers={"If-Match": made.headers["ETag"]})
    assert (again.status_code, again.headers["ETag"]) == (200, made.headers["ETag"])


def test_labels_are_listed_by_name(service: TestClient) -> None:
    for label, revision in (("stable", 2), ("canary", 3), ("Old", 1)):
        service.put(f"{URL}/labels/{label}", json={"revision": revision})
    listed = service.get(f"{URL}/labels")
    assert [(one["label"], one["revision"]) for one in listed.json()["items"]] == [
        ("Old", 1), ("canary", 3), ("stable", 2),
    ]  # fmt: skip
    assert service.get(f"{URL}/labels", headers={"If-None-Match": listed.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    ("body", "pointer"), [({"revision": 9}, "/revision"), ({"revision": 0}, "/revision"), ({}, "/revision")]
)
def test_a_label_points_at_a_revision(service: TestClient, body: dict[str, int], pointer: str) -> None:
    refused = service.put(STABLE, json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)
    assert service.get(f"{URL}/labels").json()["items"] == []


@pytest.mark.parametrize("label", ["7", "-a", "a b", "x" * 65, "\N{SNOWMAN}", "a@b"])
def test_a_label_is_never_taken_for_a_revision(service: TestClient, label: str) -> None:
    assert service.put(f"{URL}/labels/{label}", json={"revision": 1}).status_code == 422


def test_what_is_not_there(service: TestClient) -> None:
    other = "/v1/configurations/other/labels"
    assert service.get(other).status_code == 404
    assert service.put(f"{other}/stable", json={"revision": 1}).status_code == 404
    assert service.delete(f"{other}/stable").status_code == 404
    assert service.delete(STABLE).status_code == 404
    assert decide(service, "prod@nothing") == (404, "/configuration")
    for known, words in ((), "it has none"), (("stable", "canary"), "it has 'canary', 'stable'"):
        for label in known:
            service.put(f"{URL}/labels/{label}", json={"revision": 1})
        asked: dict[str, Any] = {"configuration": "prod@nothing", "state": {}, "asks": []}
        told = service.post("/v1/decisions", json=asked).json()["errors"]
        assert told == [
            {"pointer": "/configuration", "detail": f"configuration 'prod' has no label 'nothing': {words}"}
        ]


def test_labels_go_with_their_configuration(service: TestClient) -> None:
    service.put(STABLE, json={"revision": 1})
    service.delete(URL, headers={"If-Match": "*"})
    assert decide(service, "prod@stable")[0] == 404
    assert service.put(STABLE, json={"revision": 1}).status_code == 404
    assert service.post(f"{URL}/revisions/1:restore").status_code == 201
    assert service.get(f"{URL}/labels").json()["items"] == []
    assert decide(service, "prod@stable")[0] == 404


def test_a_decision_by_label_is_replayed_on_the_revision_it_used(service: TestClient) -> None:
    service.put(STABLE, json={"revision": 2})
    ask = {"id": "x", "queue": "a", "tasks": [{"name": "t", "requests": {"cpu": 2}}]}
    body: dict[str, Any] = {"configuration": "prod@stable", "state": {}, "asks": [ask]}
    identity = service.post("/v1/decisions", json=body).json()["id"]
    service.put(STABLE, json={"revision": 1}, headers={"If-Match": "*"})
    replay = service.post(f"/v1/decisions/{identity}/replay")
    assert (replay.status_code, replay.json()["identical"]) == (200, True)
