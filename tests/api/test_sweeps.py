"""Sweeps over HTTP: a grid over a stored trace, each point what a simulation of it comes to."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.simulations.router import SIMULATION
from app.solver.engine import ENGINES
from app.traces.router import TRACE
from tests.support.placed_runs import NODES, configuration, mixed
from tests.support.working import working

FAIR = "/configuration/settings/kueue/fair_sharing"


def stored(service: TestClient, name: str = "january", jobs: Sequence[dict[str, Any]] = TRACE) -> None:
    lines = "\n".join(map(json.dumps, jobs))
    headers = {"Content-Type": "application/x-ndjson", "If-None-Match": "*"}
    assert service.put(f"/v1/traces/{name}", content=lines, headers=headers).is_success


def asked(**more: Any) -> dict[str, Any]:
    return {"configurations": {"teams": SIMULATION["configuration"]}, "trace": "january", **more}


def points(service: TestClient, where: str, **query: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.get(f"{where}/points", params=query).text.splitlines()]


def made(service: TestClient, own: Settings, /, **more: Any) -> tuple[str, dict[str, Any]]:
    accepted = service.post("/v1/sweeps", json=asked(**more))
    assert accepted.status_code == 202, accepted.text
    where = accepted.headers["location"]
    with working(own) as worker:
        assert worker.once()
    return where, service.get(where).json()


def test_every_combination_is_what_a_simulation_of_it_comes_to(service: TestClient, settings: Settings) -> None:
    stored(service)
    put = service.put("/v1/configurations/kept", json=SIMULATION["configuration"], headers={"If-None-Match": "*"})
    assert put.is_success
    more = {"configurations": {"teams": SIMULATION["configuration"], "stored": "kept"}, "request": {"grace": "30s"}}
    where, told = made(service, settings, settings={FAIR: [False, True], "/round_every": [1]}, **more)
    assert (told["status"], told["points"], told["failed"], told["progress"]) == (
        "done", 4, 0, {"points": 4, "failed": 0},
    )  # fmt: skip
    found = points(service, where)
    assert [(one["configuration"], one["settings"][FAIR]) for one in found] == [
        ("teams", False), ("teams", True), ("stored", False), ("stored", True),
    ]  # fmt: skip
    assert len({one["key"] for one in found}) == 2  # by what they depend on, whatever it is called
    variants = [{"name": str(fair), "settings": {"kueue": {"fair_sharing": fair}}} for fair in (False, True)]
    simulation = {**SIMULATION, "trace": "january", "variants": variants}
    at = service.post("/v1/simulations", json=simulation).headers["location"]
    with working(settings) as worker:
        assert worker.once()
    summaries = [one["summary"] for one in service.get(at).json()["variants"]]
    assert [one["summary"]["total"] for one in found] == [one["total"] for one in summaries] * 2
    assert points(service, where, **{"from": 1, "limit": 2}) == found[1:3]
    assert service.get("/v1/sweeps").json()["items"][0]["id"] == told["id"]
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404
    assert service.get(f"{where}/points").status_code == 404


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_swept_as_it_is_simulated(service: TestClient, settings: Settings, engine: str) -> None:
    jobs = mixed(engine)
    stored(service, jobs=jobs)
    request = {"state": NODES, "grace": "3s"}
    grid = {"configurations": {"own": configuration(engine)}, "settings": {"/round_every": [1, 7]}}
    where, told = made(service, settings, **grid, request=request)
    assert (told["status"], told["points"], told["failed"]) == ("done", 2, 0), points(service, where)
    alike = {**request, "configuration": configuration(engine), "trace": "january"}
    runs = [service.post("/v1/simulations", json={**alike, "round_every": every}) for every in (1, 7)]
    with working(settings) as worker:
        assert all(worker.once() for _ in runs)
    found = [service.get(run.headers["location"]).json()["variants"][0]["summary"] for run in runs]
    assert [one["summary"]["total"] for one in points(service, where)] == [one["total"] for one in found]
    assert [one["total"]["finished"] for one in found] == [len(jobs)] * 2


def test_a_point_that_fails_says_why_and_the_others_go_on(service: TestClient, settings: Settings) -> None:
    stored(service)
    where, told = made(service, settings, settings={"/configuration/queues/1/name": ["team-a", "elsewhere"]})
    assert (told["status"], told["failed"]) == ("done", 1)
    done, failed = points(service, where)
    assert (done["status"], failed["status"]) == ("done", "failed")
    assert "/trace/lines/1" in failed["error"]
    where, told = made(service, settings.model_copy(update={"simulation_days": 0.01}))
    assert "ARBITER_SIMULATION_DAYS" in points(service, where)[0]["error"]


def test_seeds_draw_samples(service: TestClient, settings: Settings) -> None:
    stored(service)
    where, _ = made(service, settings, sample=0.5, seeds=list(range(20)))
    jobs = [one["summary"]["total"].get("jobs", 0) for one in points(service, where)]
    assert set(jobs) == {0, 1, 2}


@pytest.mark.parametrize(
    ("more", "status", "pointer"),
    [
        ({"trace": "nothing"}, 404, "/trace"),
        ({"configurations": {"a": "nobody"}}, 404, None),
        ({"configurations": {"a": "trace"}}, 422, "/configurations/a"),
        ({"configurations": {}}, 422, ""),
        ({"seeds": list(range(201))}, 422, ""),
        ({"seeds": []}, 422, ""),
        ({"settings": {"/nothing/there": [1]}}, 422, "/nothing"),
        ({"settings": {"/trace": ["x"]}}, 422, "/settings/~1trace"),
        ({"settings": {FAIR: ["much"]}}, 422, FAIR),
        ({"sample": 0}, 422, "/sample"),
    ],
)
def test_bad_input_is_named_and_nothing_is_begun(
    service: TestClient, more: dict[str, Any], status: int, pointer: str | None
) -> None:
    stored(service)
    answer = service.post("/v1/sweeps", json=asked(**more))
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert service.get("/v1/sweeps").json()["items"] == []
