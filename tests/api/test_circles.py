"""The log marks decisions that go in circles."""

from typing import Any

from starlette.testclient import TestClient

from app.decisions.schemas import ASK, SITUATION

CONFIGURATION = SITUATION["configuration"]


def evict(service: TestClient, who: str, whom: str, now: str, **more: Any) -> str:
    """``who`` of `serving` takes its quota back from ``whom`` of `research`, or the other way round."""
    mine, theirs = ("serving", "research") if who < whom else ("research", "serving")
    running = {
        "id": whom,
        "queue": theirs,
        "tasks": [{"name": "m", "requests": {"cpu": 10}, "flavors": {"cpu": "default"}}],
    }
    request = {
        "now": now, "configuration": CONFIGURATION, "state": {"workloads": [running]},
        "asks": [{**ASK, "id": who, "queue": mine}], **more,
    }  # fmt: skip
    answer = service.post("/v1/decisions", json=request)
    assert answer.status_code == 200, answer.text
    assert [one["workload"] for one in answer.json()["plan"]["evictions"]] == [whom]
    return answer.json()["id"]


def marked(service: TestClient, **query: Any) -> set[str]:
    items = service.get("/v1/decisions", params=query).json()["items"]
    found = {item["id"] for item in items if item.get("circle")}
    assert found == {item["id"] for item in service.get("/v1/decisions?circle=true").json()["items"]}
    others = {item["id"] for item in service.get("/v1/decisions?circle=false").json()["items"]}
    assert others == {item["id"] for item in items} - found
    return found


def test_both_sides_of_a_circle_within_an_hour_are_marked(service: TestClient) -> None:
    first = evict(service, "a", "b", "2026-03-02T09:30:00Z")
    evict(service, "a", "c", "2026-03-02T09:40:00Z")
    assert marked(service) == set()
    late = evict(service, "b", "a", "2026-03-02T10:30:00.000001Z")
    assert marked(service) == set()
    back = evict(service, "b", "a", "2026-03-02T10:29:59Z")
    assert marked(service) == {first, back}
    again = evict(service, "a", "b", "2026-03-02T11:30:00Z")
    assert marked(service) == {first, back, late, again}
    assert service.get(f"/v1/decisions/{first}").json()["circle"] is True


def test_other_clusters_are_other_circles(service: TestClient) -> None:
    first = {"If-None-Match": "*"}
    for name in ("east", "west"):
        assert service.put(f"/v1/configurations/{name}", json=CONFIGURATION, headers=first).is_success
    evict(service, "a", "b", "2026-03-02T09:30:00Z", configuration="east")
    evict(service, "b", "a", "2026-03-02T09:31:00Z", configuration="west")
    assert marked(service) == set()
    evict(service, "b", "a", "2026-03-02T09:32:00Z", configuration="east")
    assert len(marked(service)) == 2
