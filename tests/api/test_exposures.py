"""Exposures over HTTP and from the command line: accepted, made by a worker, stopped; who is next is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.cli import run
from app.studies.exposure_schemas import EXPOSURE
from tests.support.working import working


def test_who_is_next_is_told_and_forgotten(service: TestClient, settings: Settings) -> None:
    accepted = service.post("/v1/exposures", json=EXPOSURE)
    assert (accepted.status_code, accepted.json()["status"]) == (202, "queued"), accepted.text
    where = accepted.headers["location"]
    with working(settings) as worker:
        assert worker.once()
    told = service.get(where).json()
    assert told["status"] == "done", told
    (line,) = told["outcome"]["exposures"]
    assert (line["workload"], line["standing"]) == ("sweep", "now")
    assert (line["now"]["ask"], line["now"]["round"], line["now"]["rule"]) == ("chat", 1, "InCohortReclamation")
    assert told["outcome"]["order"][0]["evicts"] == ["sweep"]
    decided = service.post(
        "/v1/decisions",
        json={**{name: EXPOSURE[name] for name in ("configuration", "state", "now")}, "asks": [line["next"]["ask"]]},
    ).json()["decisions"][0]
    assert [victim["workload"] for victim in decided["victims"]] == ["sweep"]
    (item,) = service.get("/v1/exposures").json()["items"]
    assert (item["id"], "outcome" in item) == (told["id"], False)
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


def test_a_snapshot_with_what_waits_beside_it_and_its_own_configuration(
    service: TestClient, settings: Settings
) -> None:
    assert service.put("/v1/configurations/c", json=EXPOSURE["configuration"]).is_success
    put = {"configuration": "c", "state": EXPOSURE["state"], "asks": EXPOSURE["asks"]}
    assert service.put("/v1/snapshots/now", json=put).is_success
    body = {"state": {"snapshot": "now"}, "asks": "pending", "now": EXPOSURE["now"]}
    where = service.post("/v1/exposures", json=body).headers["location"]
    with working(settings) as worker:
        assert worker.once()
    told = service.get(where).json()
    assert (told["configuration"], told["snapshot"]) == ("c@1", "now")
    assert told["outcome"]["exposures"][0]["now"]["ask"] == "chat"


def test_what_is_not_tried_is_never_next_and_says_why(service: TestClient, settings: Settings) -> None:
    held = [{**ask, "kueue": {"inadmissible": "its queue is held"}} for ask in EXPOSURE["asks"]]
    where = service.post("/v1/exposures", json={**EXPOSURE, "asks": held}).headers["location"]
    with working(settings) as worker:
        assert worker.once()
    outcome = service.get(where).json()["outcome"]
    assert {(one.get("round"), one["reason"], one["message"]) for one in outcome["order"]} == {
        (None, "Inadmissible", "its queue is held")
    }
    assert all("now" not in one for one in outcome["exposures"])


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"queue": "nowhere"}, "/queue"),
        ({"workloads": ["ghost"]}, "/workloads/0"),
        ({"horizon": "soon"}, "/horizon"),
        ({"waited": -1}, "/waited"),
        ({"waited": "1s", "now": "0001-01-01T00:00:00.999999Z"}, "/waited"),
        ({"waited": 64_000_000_000}, "/waited"),
        ({"asks": "pending"}, "/asks"),
        ({"configuration": None}, "/configuration"),
        ({"decisions": 10**6}, "/decisions"),
    ],
)
def test_bad_input_is_named(service: TestClient, changed: dict[str, Any], pointer: str) -> None:
    refused = service.post("/v1/exposures", json={**EXPOSURE, **changed})
    assert refused.status_code == 422, refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(EXPOSURE))
    assert run(["next", str(file)]) == 1
    said = capsys.readouterr().out
    assert "chat, in round 1 (InCohortReclamation)" in said
    assert run(["next", str(file), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["exposures"][0]["workload"] == "sweep"
