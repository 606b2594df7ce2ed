"""Simulations over HTTP: accepted, made by a worker, read line by line, stopped."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.jobs.worker import Worker
from app.settings import Settings
from app.simulations.examples import SIMULATION
from tests.working import working


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
