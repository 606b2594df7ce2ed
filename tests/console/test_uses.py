"""What a queue uses above its promise, by the API's own answer, in each engine's word."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.console.queues import WORDS, uses
from tests.support.live import ROOT

EXAMPLES = ROOT / "examples"
GPU = "nvidia.com/gpu"


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
        assert WORDS["kueue"].above in text
        assert f"11 of 8 {GPU}" in text, page
    assert WORDS["kueue"].above not in service.get("/queues?configuration=c").text
