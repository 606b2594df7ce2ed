"""What a queue uses above its promise, by the API's own answer, in each engine's word."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.console.queues import uses
from app.solver.engine import facts_of
from tests.support.live import ROOT

EXAMPLES = ROOT / "examples"
GPU = "nvidia.com/gpu"
ENTITLED = facts_of("kueue").entitlement
assert ENTITLED is not None
ABOVE = ENTITLED.above


def example(name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("name", "queue", "resource", "expected"),
    [
        ("kueue-classic", "research", GPU, (11, 8, 3)),
        ("kueue-classic", "serving", GPU, (5, 8, 0)),
        ("kai-reclaim", "vision", "gpu", (8, 4, 4)),
        ("yunikorn-guarantee", "root.batch", "vcore", (12, 4, 8)),
        ("ytsaurus-starvation", "research", "cpu", (16, 0, 16)),
        ("ytsaurus-starvation", "production", "cpu", (0, 12, 0)),
    ],
)
def test_what_is_above_the_promise(
    homeless: TestClient, name: str, queue: str, resource: str, expected: tuple[int, int, int]
) -> None:
    asked = {field: value for field, value in example(name).items() if field in ("engine", "configuration", "state")}
    answer = homeless.post("/v1/shares", json=asked).json()
    (found,) = (one for one in uses(answer["engine"], answer["queues"][queue]) if one.resource == resource)
    assert (found.used, found.promised, found.above) == expected


def test_an_unlimited_promise_has_nothing_above() -> None:
    (found,) = uses("kai", {"deserved": {"gpu": "unlimited"}, "usage": {"gpu": 3}})
    assert (found.used, found.promised, found.above) == (3, None, 0)


def test_both_pages_name_it(service: TestClient) -> None:
    first = example("kueue-classic")
    stored = {"engine": "kueue", **first["configuration"]}
    assert service.put("/v1/configurations/c", json=stored).status_code < 300
    state = {"engine": "kueue", "configuration": "c", "state": first["state"]}
    assert service.put("/v1/snapshots/now", json=state).status_code < 300
    place = "configuration=c&snapshot=now"
    for page in (f"/queues?{place}", f"/queues/of?{place}&queue=research"):
        text = service.get(page).text
        assert ABOVE in text
        assert f"<td>{GPU} in a100</td>" in text, page
        assert "<span>11 of 8</span>" in text, page
    assert ABOVE not in service.get("/queues?configuration=c").text


def test_nodes_are_shown_by_level_with_what_is_free(service: TestClient) -> None:
    rack, host = "example.com/rack", "kubernetes.io/hostname"
    group = {"resources": ["cpu"], "flavors": [{"name": "gpus", "quota": {"cpu": {"guaranteed": 9}}}]}
    racks = {
        "engine": "kueue", "queues": [{"name": "q", "resource_groups": [group]}],
        "flavors": [{"name": "gpus", "topology": "t"}], "topologies": [{"name": "t", "levels": [rack, host]}],
    }  # fmt: skip
    nodes = [
        {"name": name, "labels": {rack: "r1", host: name}, "capacity": {"cpu": cpu}}
        for name, cpu in (("a", 5), ("b", 2))
    ]
    assert service.put("/v1/configurations/racks", json=racks).status_code < 300
    state = {"engine": "kueue", "configuration": "racks", "state": {"nodes": nodes}}
    assert service.put("/v1/snapshots/racks", json=state).status_code < 300
    text = service.get("/queues?configuration=racks&snapshot=racks").text
    for shown in ("Nodes of", f"{rack}: 1", f"{host}: 2", f"Most in one {host}", "r1 › a", "7 cpu", "5 cpu"):
        assert shown in text, shown
    assert "Nodes of" not in service.get("/queues?configuration=racks").text
