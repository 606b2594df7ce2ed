"""Other quotas in the console: only what moved is asked, a refusal is shown, the address says it, it is saved."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACE = "configuration=c&snapshot=now&resource=nvidia.com/gpu"


def example(name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


@pytest.fixture
def stored(service: TestClient) -> dict[str, Any]:
    first = example("kueue-classic")
    document = {"engine": "kueue", **first["configuration"]}
    assert service.put("/v1/configurations/c", json=document).status_code < 300
    state = {"engine": "kueue", "configuration": "c", "state": first["state"], "asks": first["asks"]}
    assert service.put("/v1/snapshots/now", json=state).status_code < 300
    return document


def stamp(page: str) -> str:
    return page.partition('name="stamp" value="')[2].partition('"')[0]


def moved(service: TestClient, **quotas: str) -> tuple[str, list[str]]:
    """Where the form leads, and what the address says was moved."""
    page = service.get(f"/queues/quotas?{PLACE}").text
    fields = {"stamp": stamp(page), "configuration": "c", "snapshot": "now", "resource": "nvidia.com/gpu"}
    sent = fields | {f"quota.{name}": value for name, value in quotas.items()}
    answer = service.post("/queues/quotas", data=sent, follow_redirects=False)
    assert answer.status_code == 303
    where = answer.headers["location"]
    return where, parse_qs(urlsplit(where).query).get("moved", [])


def test_what_nobody_moved_is_not_asked(service: TestClient, stored: dict[str, Any]) -> None:
    where, what = moved(service, research="8", serving="8.0000001")
    assert what == []
    assert "Move a quota" in service.get(where).text


def test_steps_are_those_that_engines_accept(service: TestClient, stored: dict[str, Any]) -> None:
    where, what = moved(service, research="3.33333333", serving="8")
    assert what == ["research=3.333"]
    page = service.get(where)
    assert page.status_code == 200
    assert "What changes" in page.text


def test_what_the_engine_refuses_is_shown(service: TestClient) -> None:
    """YuniKorn takes no guarantee above a limit: the page says so instead of failing."""
    first = example("yunikorn-guarantee")
    document: dict[str, Any] = {"engine": "yunikorn", **first["configuration"]}
    batch = next(one for one in document["queues"] if one["name"] == "root.batch")
    batch["quota"]["vcore"]["limit"] = 5
    assert service.put("/v1/configurations/y", json=document).status_code < 300
    state = {"engine": "yunikorn", "configuration": "y", "state": first["state"], "asks": first["asks"]}
    assert service.put("/v1/snapshots/there", json=state).status_code < 300
    page = service.get("/queues/quotas?configuration=y&snapshot=there&resource=vcore&moved=root.batch%3D6")
    assert page.status_code == 422
    assert "is above the limit" in page.text


def test_it_is_saved_through_the_difference(service: TestClient, stored: dict[str, Any]) -> None:
    where, _ = moved(service, research="4")
    page = service.get(where).text
    fields = {"configuration": "c", "resource": "nvidia.com/gpu", "quota.research": "4", "stamp": stamp(page)}
    difference = service.post("/queues/quotas/save", data=fields)
    assert difference.status_code == 200
    assert "research" in difference.text
    assert json.dumps(stored, sort_keys=True) == json.dumps(
        service.get("/v1/configurations/c").json()["configuration"], sort_keys=True
    ), "nothing is stored before somebody has seen the difference"
