"""Whatever a job does when it is deleted, it stops, and nothing more is stored of it."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard
from starlette.testclient import TestClient

from app.base.settings import Settings
from app.db.database import Database
from app.decisions import repository as decisions
from app.decisions.schemas import DECISION
from app.jobs import repository
from app.jobs import worker as chunks
from app.jobs import worker as working_off
from app.jobs.worker import Limits, Work, Worker
from app.simulations.router import SIMULATION
from app.solver import solve
from app.solver.question import safe_point
from app.studies import backtesting
from app.traces import repository as traces
from tests.support.bounds import Bounded
from tests.support.instead import Instead
from tests.support.live import ROOT
from tests.support.working import working

GENEROUS = 60.0
"""Seconds within which even a slow machine does what takes less than two."""


class Phase:
    """Told of what a job does. ``reached``: it is where it is to be stopped; ``done``: how often since."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.done = 0

    def told(self) -> None:
        self.done += 1
        self.reached.set()


def endless(name: str) -> dict[str, Any]:
    """A run that goes round in circles for ten years."""
    return {**json.loads((ROOT / "examples" / "loops" / f"{name}.json").read_text()), "on_loop": "continue"}


def forecast() -> dict[str, Any]:
    """The same, waiting for what is submitted at its end."""
    run = endless("kueue-fair-sharing")
    asks = [{**job, "submitted_at": job["submitted_at"]} for job in run.pop("trace")["jobs"]]
    last = {"id": "last", "queue": asks[0]["ask"]["queue"], "tasks": asks[0]["ask"]["tasks"]}
    asks.append({"ask": last, "submitted_at": 3000 * 86400, "duration": 1})
    return {**run, "asks": asks, "start": "2026-03-02T09:30:00Z"}


def simulation(service: TestClient) -> str:
    return posted(service, "/v1/simulations", endless("kueue-fair-sharing"))


def of_a_stored_trace(service: TestClient) -> str:
    body = "".join(json.dumps(job) + "\n" for job in SIMULATION["trace"]["jobs"])
    put = service.put("/v1/traces/t", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert put.status_code == 201
    return posted(service, "/v1/simulations", {**SIMULATION, "trace": "t"})


def forecasts(service: TestClient) -> str:
    return posted(service, "/v1/forecasts", forecast())


def backtest(service: TestClient) -> str:
    assert service.post("/v1/decisions", json=DECISION).is_success
    never = {"queues.serving.kueue.preemption.reclaim_within_cohort": "Never"}
    return posted(service, "/v1/backtests", {"variants": [{"name": "never", "set": never}]})


def posted(service: TestClient, where: str, body: dict[str, Any]) -> str:
    accepted = service.post(where, json=body)
    assert accepted.status_code == 202, accepted.text
    return accepted.headers["location"]


def reading(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """A trace without an end."""
    text = zstandard.ZstdCompressor().compress(b'{"at":1}\n' * 1000)

    def chunk(*_: object) -> bytes:
        phase.told()
        return text

    Instead(patch)(traces, chunk=chunk)


def rounds(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """One round after the other."""
    original = solve.planned

    def planned(*args: Any) -> Any:
        phase.told()
        return original(*args)

    Instead(patch)(solve, planned=planned)


def one_round(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """A round that searches and searches."""

    def planned(*_: object) -> None:
        phase.told()
        while True:
            safe_point()

    Instead(patch)(solve, planned=planned)


def writing(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """Every line is stored at once."""
    original = repository.put

    def put(*args: Any) -> bool:
        phase.told()
        return original(*args)

    Bounded(patch)(chunks, CHUNK=1, TOGETHER=1)
    Instead(patch)(repository, put=put)


def a_long_log(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """Decisions that are the same over and over."""
    original = decisions.oldest

    def oldest(session: Any, filters: Any, after: object, limit: int) -> Any:
        del after
        phase.told()
        return original(session, filters, None, limit)

    Instead(patch)(decisions, oldest=oldest)


def differences_of_a_long_log(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    a_long_log(patch, Phase())
    writing(patch, phase)


def one_decision(patch: pytest.MonkeyPatch, phase: Phase) -> None:
    """A decision of the log that searches and searches."""

    def again(*_: object) -> None:
        phase.told()
        while True:
            safe_point()

    Instead(patch)(backtesting, Again=again)


@pytest.fixture
def quick(bounded: Bounded) -> None:
    """A heart that beats fast: what is asked here is what happens, not how long half a second is."""
    bounded(working_off, BEAT_SECONDS=0.02)


@pytest.mark.parametrize(
    ("start", "doing"),
    [
        (of_a_stored_trace, reading),
        (simulation, rounds),
        (simulation, one_round),
        (simulation, writing),
        (forecasts, rounds),
        (forecasts, one_round),
        (backtest, a_long_log),
        (backtest, one_decision),
        (backtest, differences_of_a_long_log),
    ],
)
@pytest.mark.usefixtures("quick")
def test_what_is_deleted_stops_whatever_it_does(
    start: Callable[[TestClient], str],
    doing: Callable[[pytest.MonkeyPatch, Phase], None],
    settings: Settings,
    service: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, phase = start(service), Phase()
    with working(settings) as worker, monkeypatch.context() as patch:
        doing(patch, phase)
        thread = threading.Thread(target=worker.once, daemon=True)
        thread.start()
        assert phase.reached.wait(GENEROUS), service.get(where).json()
        assert service.get(where).json()["status"] == "running"
        assert service.delete(where).status_code == 204
        thread.join(GENEROUS)
        assert not thread.is_alive()
    assert service.get(where).json()["status"] == "cancelled"
    assert service.delete(where).status_code == 204
    assert service.get(where).status_code == 404


class Stuck:
    """Does a job without ever coming to a safe point; until it is ``abandoned``, which ends a real process."""

    def __init__(self) -> None:
        self.began, self.abandoned = threading.Event(), threading.Event()

    def do(self, job: object, request: bytes, work: Work) -> bytes:
        del job, request, work
        self.began.set()
        assert self.abandoned.wait(GENEROUS)
        raise SystemExit


@pytest.fixture
def stuck(settings: Settings, bounded: Bounded) -> Iterator[Callable[[float], tuple[Worker, Stuck]]]:
    bounded(working_off, STUCK_SECONDS=0.05)
    database = Database(settings.database_url, settings)

    def make(seconds: float) -> tuple[Worker, Stuck]:
        doing = Stuck()
        return Worker(database, {"simulation": doing}, Limits(seconds, 1 << 20), doing.abandoned.set), doing

    yield make
    database.close()


@pytest.mark.parametrize(
    ("why", "status", "error"),
    [
        ("deleted", "cancelled", None),
        ("ending", "queued", None),
        ("too long", "failed", "it took longer than 0.1 s (ARBITER_SIMULATION_SECONDS)"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_what_does_not_stop_ends_with_its_process_and_says_so(
    why: str, status: str, error: str | None, service: TestClient, stuck: Callable[[float], tuple[Worker, Stuck]]
) -> None:
    where = posted(service, "/v1/simulations", SIMULATION)
    worker, doing = stuck(0.1 if why == "too long" else GENEROUS)

    def once() -> None:
        with pytest.raises(SystemExit):
            worker.once()

    thread = threading.Thread(target=once, daemon=True)
    thread.start()
    assert doing.began.wait(GENEROUS)
    if why == "deleted":
        assert service.delete(where).status_code == 204
    elif why == "ending":
        worker.stop()
    thread.join(GENEROUS)
    assert not thread.is_alive()
    told = service.get(where).json()
    assert (told["status"], told.get("error")) == (status, error)


def test_a_heart_and_its_patience_take_less_than_the_two_seconds_that_are_promised() -> None:
    assert working_off.BEAT_SECONDS + working_off.STUCK_SECONDS < 2


def test_nothing_is_stored_of_what_is_no_longer_wanted(settings: Settings, service: TestClient) -> None:
    where = posted(service, "/v1/simulations", SIMULATION)
    database = Database(settings.database_url, settings)
    line = repository.Chunk("0/events", 0, 0, 1, b"")
    with database.session() as session:
        job = repository.claim(session, ["simulation"], 15)
        assert job is not None
        assert repository.put(session, job.id, job.attempt, [line])
    for _ in range(2):  # stopped, then forgotten
        assert service.delete(where).status_code == 204
        with database.session() as session:
            assert not repository.put(session, job.id, job.attempt, [line._replace(number=1)])
    database.close()


def test_how_far_a_job_came_is_told_of_one_that_is_done(service: TestClient, settings: Settings) -> None:
    where = posted(service, "/v1/simulations", SIMULATION)
    with working(settings) as worker:
        assert worker.once()
    told = service.get(where).json()
    assert told["status"] == "done"
    total = told["variants"][1]["summary"]
    progress = told["progress"]
    assert (progress["variant"], progress["ended"], progress["total"], progress["rounds"]) == (
        "fair", 2, 2, total["rounds"],
    )  # fmt: skip
    assert progress["at"] == total["end"]
