"""Simulations over HTTP: accepted, made by a worker, read line by line, stopped."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from fastapi import FastAPI
from sqlalchemy import update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from app.auth.audit import Seats
from app.base.settings import Settings
from app.db.database import Database
from app.jobs import repository
from app.jobs.worker import Worker
from app.service.main import create_app
from app.simulations import accepting as elsewhere
from app.simulations.router import SIMULATION
from tests.support.instead import Instead
from tests.support.working import working


@pytest.fixture
def worker(settings: Settings) -> Iterator[Worker]:
    with working(settings) as worker:
        yield worker


def lines(service: TestClient, address: str) -> list[dict[str, Any]]:
    answer = service.get(address)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture
def done(service: TestClient, worker: Worker) -> Callable[..., tuple[str, dict[str, Any]]]:
    """The address of a simulation that has been made, and what it came to."""

    def make(request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        accepted = service.post("/v1/simulations", json=request)
        assert accepted.status_code == 202, accepted.text
        assert accepted.json()["status"] == "queued"
        where = accepted.headers["location"]
        assert worker.once()
        return where, service.get(where).json()

    return make


def test_events_by_hand_give_the_summary(service: TestClient, done: Any) -> None:
    where, told = done(SIMULATION)
    assert told["status"] == "done", told
    assert told["names"] == ["classical", "fair"]
    for variant in told["variants"]:
        events = lines(service, f"{where}/events?variant={variant['name']}")
        evicted = [event for event in events if event["kind"] == "evicted"]
        assert [(event["job"], event["by"]) for event in evicted] == [("train-1", "serve-1")]
        total = variant["summary"]["total"]
        assert (total["jobs"], total["finished"], total.get("evictions")) == (2, 2, 1)
        jobs = lines(service, f"{where}/jobs?variant={variant['name']}")
        assert sorted(job["job"] for job in jobs) == ["serve-1", "train-1"]
        rounds = lines(service, f"{where}/rounds?variant={variant['name']}")
        assert [line["n"] for line in rounds] == list(range(1, len(rounds) + 1))
        assert len(rounds) == variant["summary"]["rounds"]
        assert service.get(f"{where}/rounds/2?variant={variant['name']}").json() == rounds[1]


def test_a_stored_trace_gives_what_it_gives_inline(service: TestClient, done: Any) -> None:
    body = "".join(json.dumps(job) + "\n" for job in SIMULATION["trace"]["jobs"])
    put = service.put("/v1/traces/t", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert put.status_code == 201
    inline, by_name = done(SIMULATION), done({**SIMULATION, "trace": "t"})
    assert by_name[1]["trace"] == {"name": "t", "digest": put.json()["digest"]}
    assert inline[1]["variants"] == by_name[1]["variants"]
    for kind in ("events", "rounds", "jobs"):
        assert lines(service, f"{inline[0]}/{kind}") == lines(service, f"{by_name[0]}/{kind}")


def test_a_rounds_request_answered_is_the_round(service: TestClient, done: Any) -> None:
    where, told = done(SIMULATION)
    for number in range(1, told["variants"][1]["summary"]["rounds"] + 1):
        line = service.get(f"{where}/rounds/{number}?variant=fair").json()
        request = service.get(f"{where}/rounds/{number}/request?variant=fair")
        answer = service.post(
            "/v1/decisions", content=request.content, headers={"Content-Type": "application/json"}
        ).json()
        assert answer["order"] == line["order"]
        assert [ask["id"] for ask in request.json()["asks"]] == line["asks"]
        going = {one["id"] for one in request.json()["state"].get("workloads", []) if one.get("evicted")}
        planned = [one["workload"] for one in answer["plan"]["evictions"] if one["workload"] not in going]
        assert planned == [one["job"] for one in line.get("evicted", [])]
    assert service.get(f"{where}/rounds/9999/request?variant=fair").status_code == 404


def test_series_are_the_summary_over_time(service: TestClient, done: Any, worker: Worker) -> None:
    where, told = done(SIMULATION)
    for variant in told["variants"]:
        for queue, totals in {"": variant["summary"]["total"], **variant["summary"]["queues"]}.items():
            query = {"variant": variant["name"], "points": 7, **({"queue": queue} if queue else {})}
            found = service.get(f"{where}/series", params=query).json()
            assert len(found["at"]) == 8
            assert sum(found["resources"]["cpu"]["usage"]) == pytest.approx(totals["used"]["cpu"])
    assert service.get(f"{where}/series", params={"resource": "gpu"}).json()["resources"] == {}
    assert service.get(f"{where}/series", params={"queue": "nobody"}).status_code == 404
    assert service.get(f"{where}/series", headers={"Request-Timeout": "1us"}).status_code == 504
    waiting = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    assert service.get(f"{waiting}/series").status_code == 409


@pytest.mark.slow
def test_fragmentation_is_the_summary_over_time(service: TestClient, done: Any) -> None:
    host = "kubernetes.io/hostname"
    nodes = [{"name": name, "labels": {host: name}, "capacity": {"cpu": 4, "pods": 9}} for name in "ab"]
    groups = [{"resources": ["cpu"], "flavors": [{"name": "f", "quota": {"cpu": {"guaranteed": 8}}}]}]
    configuration = {
        "engine": "kueue", "topologies": [{"name": "t", "levels": [host]}], "flavors": [{"name": "f", "topology": "t"}],
        "queues": [{"name": "q", "resource_groups": groups}],
    }  # fmt: skip
    task = {"name": "m", "count": 2, "requests": {"cpu": 3}, "topology_request": {"unconstrained": True}}
    jobs = [{"ask": {"id": "x", "queue": "q", "tasks": [task]}, "submitted_at": 0, "duration": 10}]
    where, told = done({"configuration": configuration, "state": {"nodes": nodes}, "trace": {"jobs": jobs}})
    (summary,) = told["variants"][0]["summary"]["fragmentation"]
    assert summary == {
        "flavor": "f", "level": host, "resource": "cpu", "free": 20, "largest": 10, "share": 0.5,
    }  # fmt: skip
    found = service.get(f"{where}/fragmentation", params={"points": 5}).json()
    (level,) = found["levels"]
    assert (level["flavor"], level["level"], len(found["at"])) == ("f", host, 6)
    assert level["resources"]["cpu"] == {"free": [4] * 5, "largest": [2] * 5}
    assert service.get(f"{where}/rounds/1/request").json()["asks"][0]["tasks"][0]["topology_request"]
    assert b"Free cpu over time" in service.get(f"{where}/plots/fragmentation.svg").content


@pytest.mark.slow
def test_pictures_are_drawn_and_are_the_same_twice(service: TestClient, done: Any) -> None:
    where, _ = done(SIMULATION)
    found = {
        kind: service.get(f"{where}/plots/{kind}.svg") for kind in ("usage", "waits", "evictions", "fragmentation")
    }
    for kind, answer in found.items():
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml"), answer.text
        assert b"<svg" in answer.content[:500]
        if kind == "waits":
            assert b"<!-- fair (2) -->" in answer.content
            assert service.get(f"{where}/plots/{kind}.svg").content == answer.content
    assert service.get(f"{where}/plots/waits.svg?variant=nobody").status_code == 404
    assert service.get(f"{where}/plots/others.svg").status_code == 422
    hurried = service.get(f"{where}/plots/usage.svg", headers={"Request-Timeout": "50ms"})
    assert (hurried.status_code, "0.05 s" in hurried.json()["detail"]) == (504, True), "matplotlib alone takes longer"


def test_the_numbers_of_pictures_need_no_drawing(
    service: TestClient, done: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    where, told = done(SIMULATION)
    usage = service.get(f"{where}/plots/usage.json", params={"variant": "fair"}).json()
    whole = usage["panels"][0]
    width = usage["at"][1] - usage["at"][0]
    fair = told["variants"][1]["summary"]["total"]["used"]["cpu"]
    assert (usage["type"], usage["resource"], whole["name"]) == ("Usage", "cpu", "")
    assert sum(whole["usage"]) * width == pytest.approx(fair)
    assert [panel["name"] for panel in usage["panels"]] == ["", "team-a", "team-b"]
    waits = service.get(f"{where}/plots/waits.json", params={"variant": "fair"}).json()
    assert sorted(waits["lines"]["all queues"]) == waits["lines"]["all queues"] != []
    stopped = service.get(f"{where}/plots/evictions.json").json()["counts"]
    total = told["variants"][0]["summary"]["total"].get("evictions", 0)
    assert sum(sum(row.values()) for row in stopped.values()) == total > 0
    assert service.get(f"{where}/plots/usage.json", params={"variant": "nobody"}).status_code == 404


def test_rounds_that_evict_are_found_among_the_others(service: TestClient, done: Any) -> None:
    where, _ = done(SIMULATION)

    def rounds(**query: Any) -> list[Any]:
        return [json.loads(line) for line in service.get(f"{where}/rounds", params=query).content.splitlines()]

    every = rounds()
    stopping = [one for one in every if one.get("evicted")]
    assert 0 < len(stopping) < len(every)
    assert rounds(only="evictions") == stopping
    assert rounds(only="evictions", limit=1) == stopping[:1]
    assert rounds(only="evictions", **{"from": stopping[-1]["n"]}) == []
    assert rounds(only="loops") == []
    assert service.get(f"{where}/rounds", params={"only": "x"}).status_code == 422


def test_without_matplotlib_a_picture_says_what_is_missing(
    service: TestClient, done: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, _ = done(SIMULATION)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = service.get(f"{where}/plots/usage.svg")
    assert (refused.status_code, "arbiter-preemption[plot]" in refused.json()["detail"]) == (501, True)


def test_a_job_that_can_never_run_is_named_before_the_run(service: TestClient, worker: Worker) -> None:
    jobs = [job | {"ask": job["ask"] | {"queue": "nobody"}} for job in SIMULATION["trace"]["jobs"]]
    refused = service.post("/v1/simulations", json={**SIMULATION, "trace": {"jobs": jobs}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/trace/jobs/0/ask/queue")
    body = "".join(json.dumps(job) + "\n" for job in jobs)
    assert service.put("/v1/traces/t", content=body, headers={"Content-Type": "application/x-ndjson"}).is_success
    where = service.post("/v1/simulations", json={**SIMULATION, "trace": "t"}).headers["location"]
    assert worker.once()
    told = service.get(where).json()
    assert told["status"] == "failed"
    assert "/trace/lines/1/ask/queue" in told["error"]


def test_one_that_waits_can_be_stopped_and_then_forgotten(service: TestClient, worker: Worker) -> None:
    where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    assert service.delete(where).status_code == 204
    assert service.get(where).json()["status"] == "cancelled"
    assert not worker.once()
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


def test_past_a_limit_it_fails_and_says_which(settings: Settings, service: TestClient) -> None:
    where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    with working(settings.model_copy(update={"simulation_days": 1e-3})) as worker:
        assert worker.once()
    told = service.get(where).json()
    assert (told["status"], "ARBITER_SIMULATION_DAYS" in told["error"]) == ("failed", True)


def test_more_jobs_than_a_trace_may_have_are_refused_by_setting(settings: Settings) -> None:
    with TestClient(create_app(settings.model_copy(update={"trace_jobs": 1}))) as service:
        refused = service.post("/v1/simulations", json=SIMULATION)
    told = [{"pointer": "/trace/jobs", "detail": "more than 1 jobs (ARBITER_TRACE_JOBS)"}]
    assert (refused.status_code, refused.json()["errors"]) == (422, told)


def test_too_many_at_once_are_refused(settings: Settings) -> None:
    with TestClient(create_app(settings.model_copy(update={"simulations_alive": 1}))) as service:
        assert service.post("/v1/simulations", json=SIMULATION).status_code == 202
        assert service.post("/v1/simulations", json=SIMULATION).status_code == 429


def test_progress_ends_with_the_answer(service: TestClient, done: Any) -> None:
    where, told = done(SIMULATION)
    answer = service.get(f"{where}/progress")
    assert answer.headers["content-type"].startswith("text/event-stream")
    event, data = answer.text.strip().splitlines()
    assert event == "event: end"
    assert json.loads(data.removeprefix("data: ")) == told


def test_who_follows_leaves_places_for_others(settings: Settings) -> None:
    """A stream of progress stays open as long as its simulation waits: none may take the connections of everybody."""
    with TestClient(create_app(settings.model_copy(update={"console_listeners": 1}))) as service:
        seats: Seats = cast(FastAPI, service.app).state.services.of(Seats)
        where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
        who = seats.join()
        refused = service.get(f"{where}/progress")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        seats.leave(who)
        service.delete(where)
        for _ in range(2):
            assert service.get(f"{where}/progress").status_code == 200, "whoever has heard the end leaves"
        assert seats.open == 0


def test_a_lost_attempt_leaves_nothing_behind(settings: Settings, service: TestClient, worker: Worker) -> None:
    """A worker that vanished is replaced after a while, and what it had stored is not seen with the rest."""
    where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    database = Database(settings.database_url, settings)
    with database.session() as session:
        lost = repository.claim(session, ["simulation"], 15)
        assert lost is not None
        repository.put(session, lost.id, lost.attempt, [repository.Chunk("0/events", 0, 0, 1, b"nothing")])
    assert not worker.once(), "its heart may still beat"
    with database.session() as session:
        taken = repository.claim(session, ["simulation"], 0)
        assert taken is not None
        assert not repository.beat(session, lost.id, lost.attempt, None)
        repository.release(session, taken.id, taken.attempt)
    assert worker.once()
    told = service.get(where).json()
    assert (told["status"], told["attempt"]) == ("done", 3)
    assert len(lines(service, f"{where}/events")) > 3
    database.close()


def claimed(session: Session) -> repository.Claimed:
    taken = repository.claim(session, ["simulation"], 0)
    assert taken is not None
    return taken


def test_what_takes_its_workers_along_is_given_up(settings: Settings, service: TestClient, worker: Worker) -> None:
    where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    database = Database(settings.database_url, settings)
    for _ in range(3):
        with database.session() as session:
            claimed(session)
    with database.session() as session:
        session.execute(update(repository.jobs).values(heartbeat_at=datetime(2026, 1, 1, tzinfo=UTC)))
    database.close()
    assert worker.once()
    told = service.get(where).json()
    assert (told["status"], told["error"]) == ("failed", "its worker was lost 3 times")


def test_services_that_are_restarted_cost_a_job_nothing(
    settings: Settings, service: TestClient, worker: Worker
) -> None:
    where = service.post("/v1/simulations", json=SIMULATION).headers["location"]
    database = Database(settings.database_url, settings)
    for _ in range(4):
        with database.session() as session:
            taken = claimed(session)
            repository.release(session, taken.id, taken.attempt)
    database.close()
    assert worker.once()
    told = service.get(where).json()
    assert (told["status"], told["attempt"]) == ("done", 5)


@pytest.mark.slow
def test_one_that_is_large_is_read_in_a_process_of_its_own_and_accepted_or_refused_alike(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {**SIMULATION["trace"]["jobs"][0], "duration": -1}
    bodies: list[dict[str, Any]] = [
        {**SIMULATION, "configuration": "prod"},
        {**SIMULATION, "configuration": "nobody"},
        {**SIMULATION, "trace": {"jobs": [wrong]}},
    ]
    found: list[list[Any]] = []
    for small in (1 << 30, 0):
        with TestClient(create_app(settings.model_copy(update={"small_body_bytes": small}))) as one:
            one.put("/v1/configurations/prod", json=SIMULATION["configuration"])
            answers = [one.post("/v1/simulations", json=body) for body in bodies]
            found.append([(a.status_code, a.json().get("errors"), a.json().get("names")) for a in answers])
            if small == 0:
                Instead(monkeypatch)(elsewhere, ENTRY=["-c", "pass"])
                assert one.post("/v1/simulations", json=SIMULATION).status_code == 503
    assert [status for status, _, _ in found[0]] == [202, 404, 422], found[0]
    assert found[0] == found[1]
