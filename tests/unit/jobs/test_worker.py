"""A worker's job without a database: claimed, beaten for, ended, given back or abandoned; and what is said of each."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

import pytest
import zstandard
from structlog.testing import capture_logs

from app.base.errors import Conflict, NotFound, TooManyRequests, Unavailable
from app.base.ticket import Ticket, holding
from app.db.database import Database
from app.jobs import repository, worker
from app.jobs.repository import Chunk, Claimed, Counted
from app.jobs.service import Census, Jobs, JobsOfKind, New, outcome_of
from app.jobs.worker import LimitPassed, Limits, TooManyResults, Unwanted, Work, Worker
from app.solver.model.problems import InvalidInput, Problem
from app.solver.question import safe_point
from tests.support.bounds import Bounded
from tests.support.instead import Clock, Instead

ID = UUID(int=7)
Doing = Callable[[Claimed, bytes, Work], bytes]


def squeezed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def plain(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data)


class Stored:
    """What a database has of jobs, and what it was told."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.away = False
        self.wanted = True
        self.seconds: list[float | None] = []
        self.jobs: list[Claimed] = []
        self.claims: list[tuple[Any, ...]] = []
        self.ended: list[dict[str, Any]] = []
        self.released: list[tuple[UUID, int]] = []
        self.chunks: list[Chunk] = []
        self.beats: list[Any] = []
        self.beaten = threading.Event()
        Instead(patch)(
            repository,
            claim=self._claim,
            beat=self._beat,
            put=self._put,
            end=lambda _, job, attempt, values: self.ended.append(values),
            release=lambda _, job, attempt: self.released.append((job, attempt)),
        )

    @contextmanager
    def session(self, seconds: float | None = None) -> Generator[None]:
        self.seconds.append(seconds)
        if self.away:
            raise Unavailable("away")
        yield

    def _claim(self, _: Any, *given: Any) -> Claimed | None:
        self.claims.append(given)
        return self.jobs.pop(0) if self.jobs else None

    def _beat(self, _: Any, job: UUID, attempt: int, progress: Any) -> bool:
        self.beats.append(progress)
        self.beaten.set()
        return self.wanted

    def _put(self, _: Any, job: UUID, attempt: int, rows: Sequence[Chunk]) -> bool:
        if self.wanted:
            self.chunks.extend(rows)
        return self.wanted


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, bounded: Bounded) -> Stored:
    bounded(worker, BEAT_SECONDS=0.001, STUCK_SECONDS=60)
    return Stored(monkeypatch)


class Does:
    def __init__(self, doing: Doing) -> None:
        self._doing = doing

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        return self._doing(job, request, work)


class Bench:
    def __init__(
        self, stored: Stored, doing: Doing, *, lost: int = 0, seconds: float = 60, most: int = 1 << 20
    ) -> None:
        self.abandoned = threading.Event()
        stored.jobs.append(Claimed(ID, "play", 2, lost, None, squeezed(b"the request")))
        self.worker = Worker(
            cast("Database", stored), {"play": Does(doing), "other": Does(doing)}, Limits(seconds, most),
            self.abandoned.set,
        )  # fmt: skip

    def once(self) -> list[str]:
        """What it logs."""
        with capture_logs() as lines:
            assert self.worker.once()
        return [line["event"] for line in lines]


def test_a_job_is_done(stored: Stored) -> None:
    def doing(job: Claimed, request: bytes, work: Work) -> bytes:
        work.write("events", b"a line")
        work.check()
        work.progress = {"done": 1}
        stored.beaten.wait(60)
        return request + b" answered"

    bench = Bench(stored, doing)
    assert bench.once() == ["job begins", "job ends"]
    assert stored.claims == [(["play", "other"], 15.0)]
    (values,) = stored.ended
    assert plain(values.pop("outcome")) == b"the request answered"
    assert values == {"status": "done", "progress": {"done": 1}}
    assert [(one.stream, plain(one.data)) for one in stored.chunks] == [("events", b"a line\n")]
    assert stored.seconds[-1] == 30.0
    assert not bench.worker.once()
    assert not bench.abandoned.is_set()


def test_how_long_a_job_took_is_logged_and_its_heart_ends_with_it(
    stored: Stored, clock: Clock, instead: Instead
) -> None:
    clock.drives(worker)
    daemons: list[bool] = []

    def slowly(*_: Any) -> bool:
        stored.beaten.set()
        threading.Event().wait(0.05)
        return True

    def doing(job: Claimed, request: bytes, work: Work) -> bytes:
        assert stored.beaten.wait(60)
        daemons.extend(one.daemon for one in threading.enumerate() if one.name == "heart")
        clock.sleep(1.5678)
        return b""

    instead(repository, beat=slowly)
    bench = Bench(stored, doing)
    with capture_logs() as lines:
        bench.worker.once()
    assert [line.get("seconds") for line in lines] == [None, 1.57]
    assert daemons == [True], "it doesn't keep a process that is to end"
    assert [one for one in threading.enumerate() if one.name == "heart"] == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (LimitPassed("too long"), "too long"), (Conflict("moved on"), "moved on"),
        (TooManyResults(), "its results are larger than they may be (ARBITER_SIMULATION_BYTES)"),
        (InvalidInput([Problem(pointer="/a", detail="b"), Problem(pointer="", detail="c")]), "/a: b; c"),
        (InvalidInput([Problem(pointer="", detail=str(i)) for i in range(30)]), "; ".join(map(str, range(20)))),
        (MemoryError(), "it needs more memory than the worker has"),
        (ZeroDivisionError(), "unexpected; the worker's log has the rest"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_job_that_failed(stored: Stored, error: Exception, told: str) -> None:
    def doing(*_: Any) -> bytes:
        raise error

    said = Bench(stored, doing).once()
    assert stored.ended == [{"status": "failed", "error": told}]
    unforeseen = ["job failed"] if isinstance(error, ZeroDivisionError) else []
    assert said == ["job begins", *unforeseen, "job ends"]


def test_a_job_over_which_three_workers_were_lost_is_not_tried_again(stored: Stored) -> None:
    def doing(*_: Any) -> bytes:
        return b""

    Bench(stored, doing, lost=3).once()
    assert stored.ended == [{"status": "failed", "error": "its worker was lost 3 times"}]
    stored.ended.clear()
    Bench(stored, doing, lost=2).once()
    assert stored.ended[0]["status"] == "done"


def until_stopped(job: Claimed, request: bytes, work: Work) -> bytes:
    while True:
        safe_point()
        threading.Event().wait(0.001)


def test_a_job_that_is_no_longer_wanted_ends_without_a_word(stored: Stored) -> None:
    stored.wanted = False
    assert Bench(stored, until_stopped).once() == ["job begins", "job is no longer wanted"]
    assert (stored.ended, stored.released) == ([], [])

    def writing(job: Claimed, request: bytes, work: Work) -> bytes:
        work.write("events", b"x")
        return b""

    assert Bench(stored, writing).once()[-1] == "job is no longer wanted"
    assert (stored.ended, stored.chunks) == ([], [])


def test_a_worker_that_is_stopped_gives_its_job_back(stored: Stored) -> None:
    def doing(job: Claimed, request: bytes, work: Work) -> bytes:
        bench.worker.stop()
        with pytest.raises(Unwanted):
            work.check()
        return until_stopped(job, request, work)

    bench = Bench(stored, doing)
    assert bench.once() == ["job begins", "job is no longer wanted"]
    assert (stored.ended, stored.released) == ([], [(ID, 2)])


def test_a_job_has_so_many_seconds(stored: Stored) -> None:
    Bench(stored, until_stopped, seconds=0.01).once()
    assert stored.ended == [{"status": "failed", "error": "it took longer than 0.01 s (ARBITER_SIMULATION_SECONDS)"}]


def beating(stored: Stored, patch: pytest.MonkeyPatch, *steps: tuple[float, bool]) -> list[str]:
    """A heart that beats at each of these instants, the database being away or not, of a job with 100 s from instant
    0 on; what its check says before and after each, and at last whether it gave up."""
    clock, said = Clock(patch), list[str]()
    clock.drives(worker)
    abandoned = threading.Event()
    stopping = threading.Event()
    heart: Any = worker._Heart(  # pyright: ignore[reportPrivateUsage]
        cast("Database", stored), Claimed(ID, "play", 2, 0, None, b""), 100.0, stopping, abandoned.set
    )
    rest = list(steps)

    class Over:
        """Stands for the event that ends it: each look at it is a beat."""

        def wait(self, seconds: float) -> bool:
            if seconds == worker.STUCK_SECONDS:
                said.append("gives up")
                return True
            said.append(checked())
            if not rest:
                return True
            clock.now, stored.away = rest.pop(0)
            return False

    def checked() -> str:
        try:
            heart.check()
        except (Unwanted, LimitPassed) as error:
            return type(error).__name__
        return "goes on"

    heart._over = Over()
    heart._beat()
    return said


def test_a_database_that_is_away_takes_no_job_and_its_own_seconds_do(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody can be heard nobody can take it either."""
    on = "goes on"
    assert beating(stored, monkeypatch, (10.0, False), (25.0, True), (50.0, True), (75.0, False)) == [on] * 5
    assert beating(stored, monkeypatch, (99.0, False), (100.0, False)) == [on] * 3
    assert beating(stored, monkeypatch, (100.1, False)) == [on, "gives up"]
    assert beating(stored, monkeypatch, (100.1, True)) == [on, "gives up"]


@pytest.mark.parametrize("why", ["unwanted", "stopped", "late"])
def test_a_job_that_does_not_stop_ends_with_its_process(stored: Stored, why: str, bounded: Bounded) -> None:
    bounded(worker, STUCK_SECONDS=0.001)

    def stuck(job: Claimed, request: bytes, work: Work) -> bytes:
        if why == "stopped":
            bench.worker.stop()
        assert bench.abandoned.wait(60)
        return b""

    stored.wanted = why != "unwanted"
    bench = Bench(stored, stuck, seconds=0.01 if why == "late" else 60)
    assert "job does not stop, its process ends" in bench.once()
    too_long = {"status": "failed", "error": "it took longer than 0.01 s (ARBITER_SIMULATION_SECONDS)"}
    assert stored.released == ([(ID, 2)] if why == "stopped" else [])
    assert stored.ended[:1] == ([too_long] if why == "late" else stored.ended[:1])
    assert all(one["status"] == "done" for one in stored.ended if one is not too_long and "error" not in one)


def test_a_database_that_is_away_for_a_while_costs_a_job_nothing(stored: Stored, bounded: Bounded) -> None:
    bounded(worker, BEAT_SECONDS=0.001, LOST_SECONDS=0.0)

    def back() -> None:
        stored.away = False

    def doing(job: Claimed, request: bytes, work: Work) -> bytes:
        stored.away = True
        threading.Timer(0.2, back).start()
        return b"{}"

    bench = Bench(stored, doing)
    assert bench.once()[-1] == "job ends"
    assert [one["status"] for one in stored.ended] == ["done"]


def test_a_job_whose_end_can_not_be_said_begins_again(stored: Stored, instead: Instead) -> None:
    def doing(*_: Any) -> bytes:
        stored.away = True
        raise Unavailable("away")

    bench = Bench(stored, doing)
    with capture_logs(), pytest.raises(Unavailable):
        bench.worker.once()
    stored.away = False
    asked: list[float] = []
    instead(repository, claim=lambda _, kinds, patience: asked.append(patience))
    assert not bench.worker.once()
    assert stored.released == [(ID, 2)], "it is given back, and no worker counts as lost"
    assert asked == [1e9], "and nobody else's counts as lost before they could be heard"


def test_it_looks_for_jobs_until_it_is_told_to_stop(stored: Stored) -> None:
    idled: list[int] = []

    def doing(*_: Any) -> bytes:
        return b""

    def idle() -> None:
        idled.append(len(stored.ended))
        if len(idled) == 3:
            raise Unavailable("away")
        if len(idled) == 5:
            bench.worker.stop()

    bench, waits = Bench(stored, doing), list[tuple[int, float]]()
    vars(bench.worker)["_stopping"].wait = lambda seconds: waits.append((len(idled), seconds))
    with capture_logs():
        bench.worker.run(idle)
    assert idled == [0, 1, 1, 1, 1]
    assert waits == [(i, 0.001) for i in (2, 3, 4, 5)], "not after the one that had a job to do"


class Listed:
    """Jobs as their service finds them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.alive = dict[str, int]()
        self.added: list[dict[str, Any]] = []
        self.rows = [{"id": UUID(int=i), "outcome": None} for i in (3, 2, 1)]
        self.asked: list[Any] = []
        self.cancelled = self.deleted = False
        self.chunks: list[Chunk] = []
        Instead(patch)(
            repository,
            alive=lambda _: self.alive,
            add=lambda _, row: self.added.append(row),
            find=lambda _, job, kind: self.rows[0] if (job, kind) == (ID, "play") else None,
            request=lambda _, job, kind: (squeezed(b"asked"), ID) if (job, kind) == (ID, "play") else None,
            page=self._page,
            cancel=lambda _, job, kind: self.cancelled,
            delete=lambda _, job, kind: self.deleted,
            chunk_after=self._chunk,
            census=lambda _: [
                Counted("play", "queued", 2, None, 7.5),
                Counted("play", "done", 3, 60.0, 100.0),
                Counted("play", "running", 1, None, 9.0),
            ],
        )
        self.away = False

    @contextmanager
    def session(self, seconds: float | None = None) -> Generator[None]:
        if self.away:
            raise Unavailable("away")
        yield

    def _page(self, _: Any, kind: str, before: UUID | None, limit: int) -> list[Any]:
        self.asked.append((kind, before, limit))
        return self.rows[:limit]

    def _chunk(self, _: Any, job: UUID, stream: str, line: int) -> Chunk | None:
        self.asked.append(line)
        return next((one for one in self.chunks if one.first + one.lines > line), None)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> Listed:
    instead("app.auth.audit", record=lambda *_: None)
    return Listed(monkeypatch)


def jobs(listed: Listed) -> Jobs:
    return Jobs(cast("Database", listed), 2)


def test_a_job_is_accepted_while_few_enough_are_alive(listed: Listed) -> None:
    service = jobs(listed)
    listed.alive = {"token:a": 1}
    made = service.add("play", lambda _: New(b"about", b"request", ID, "Called \0 SO"))
    (row,) = listed.added
    assert plain(row.pop("request")) == b"request"
    assert made.int >> 80 == int(row.pop("created_at").timestamp() * 1000)
    assert row == {
        "id": made,
        "kind": "play",
        "actor": "anonymous",
        "trace": ID,
        "about": b"about",
        "folded": "called \ufffd so",
    }
    listed.alive = {"token:a": 1, "token:b": 1}
    with pytest.raises(TooManyRequests) as refused:
        service.add("play", lambda _: New(b"", b""))
    assert (refused.value.detail, refused.value.headers) == (
        "2 simulations wait or run already (ARBITER_SIMULATIONS_ALIVE)", {"Retry-After": "5"},
    )  # fmt: skip
    assert len(listed.added) == 1


def test_a_job_that_is_not_there(listed: Listed) -> None:
    service = jobs(listed)
    assert service.row(ID, "play") is listed.rows[0]
    assert service.request(ID, "play") == (b"asked", ID)
    for ask in (service.row, service.request, service.stop):
        with pytest.raises(NotFound, match=rf"^no other {ID}$"):
            ask(ID, "other")
    listed.deleted = True
    service.stop(ID, "play")
    listed.cancelled, listed.deleted = True, False
    service.stop(ID, "play")


def chunk(first: int, *lines: bytes) -> Chunk:
    return Chunk("s", 0, first, len(lines), squeezed(b"".join(line + b"\n" for line in lines)))


def test_lines_come_chunk_by_chunk_from_where_they_are_wanted(listed: Listed) -> None:
    listed.chunks = [chunk(0, b"0", b"1"), chunk(2, b"2", b"3", b"4"), chunk(5, b"5")]
    service = jobs(listed)

    def found(*given: Any) -> list[bytes]:
        listed.asked.clear()
        return list(service.lines(ID, "s", *given))

    assert (found(), listed.asked) == ([b"0\n1\n", b"2\n3\n4\n", b"5\n"], [0, 2, 5, 6])
    assert (found(3), listed.asked) == ([b"3\n4\n", b"5\n"], [3, 5, 6])
    assert (found(1, 3), listed.asked) == ([b"1\n", b"2\n3\n"], [1, 2])
    assert (found(0, 0), listed.asked) == ([], [])
    assert found(9) == []
    with holding(Ticket.now("large", 0)), pytest.raises(Exception, match="no answer within"):
        found()


class Kind(JobsOfKind[Any, Any]):
    """One whose parts can be called."""

    def start(self, body: bytes) -> Any:
        return self._accept(lambda _: New(b"", b""))

    def variant(self, name: str | None) -> int:
        return self._variant(ID, name, ["a", "b"])


def test_a_kind_is_shown_and_paged(listed: Listed) -> None:
    kind = Kind(jobs(listed), "play", lambda row: row["id"].int, lambda **page: page)
    assert kind.get(ID) == 3
    page = kind.page(None, 2)
    assert page["items"] == [3, 2]
    assert kind.page(page["next_cursor"], 3) == {"items": [3, 2, 1], "next_cursor": None}
    assert listed.asked == [("play", None, 3), ("play", UUID(int=2), 4)]
    assert [kind.variant(name) for name in (None, "a", "b")] == [0, 0, 1]
    with pytest.raises(NotFound, match=rf"^play {ID} has no variant 'c'$"):
        kind.variant("c")
    listed.cancelled = True
    kind.stop(ID)


def test_what_came_of_a_job() -> None:
    assert outcome_of(cast("Any", {"outcome": None}), dict) is None
    assert outcome_of(cast("Any", {"outcome": squeezed(b'{"a":1}')}), dict) == {"a": 1}


def test_a_census_counts_what_waits_and_what_ended(listed: Listed) -> None:
    census = Census(cast("Database", listed))
    assert [len(family.samples) for family in census.describe()] == [0, 0, 0]
    found = [(one.name, one.labels, one.value) for family in census.collect() for one in family.samples]
    assert found == [
        ("arbiter_jobs", {"kind": "play", "status": "queued"}, 2),
        ("arbiter_jobs", {"kind": "play", "status": "done"}, 3),
        ("arbiter_jobs", {"kind": "play", "status": "running"}, 1),
        ("arbiter_jobs_seconds", {"kind": "play", "status": "done"}, 60.0),
        ("arbiter_jobs_oldest_seconds", {"kind": "play"}, 7.5),
    ]
    listed.away = True
    assert list(census.collect()) == []
