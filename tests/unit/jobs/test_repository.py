"""Jobs in the database: who gets which, whose they are, what is forgotten. One database for all, a job at a time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.base.errors import Unavailable
from app.db.database import Database
from app.jobs import repository
from app.jobs.repository import Chunk, jobs

NOW = datetime.now(UTC)


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    with database.session() as opened:
        yield opened


def add(session: Session, number: int, age: float = 0, **more: Any) -> UUID:
    """A job that was asked for ``age`` seconds ago."""
    own = {
        "id": UUID(int=number), "kind": "play", "actor": "mo", "created_at": NOW - timedelta(seconds=age),
        "trace": None, "about": b"", "request": b"%d" % number,
    }  # fmt: skip
    repository.add(session, own | more)
    return UUID(int=number)


def value(session: Session, job: UUID, *names: str) -> tuple[Any, ...]:
    return tuple(session.execute(sa.select(*(jobs.c[name] for name in names)).where(jobs.c.id == job)).one())


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def test_the_oldest_that_waits_or_was_lost_is_next(session: Session) -> None:
    add(session, 1, age=5)
    add(session, 2, age=50, kind="other")
    lost = add(session, 3, age=9, status="running", attempt=4, lost=1, heartbeat_at=ago(60), progress={"x": 1})
    add(session, 4, age=99, status="running", heartbeat_at=ago(1))
    add(session, 5, age=99, status="done")
    repository.put(session, lost, 4, [Chunk("s", 0, 0, 1, b"")])
    found = repository.claim(session, ["play"], 15)
    assert found == (lost, "play", 5, 2, None, b"3")
    assert value(session, lost, "status", "progress", "attempt") == ("running", None, 5)
    assert session.execute(sa.select(repository.chunks)).all() == [], "what the lost attempt has written is gone"
    first = repository.claim(session, ["play"], 15)
    assert first is not None
    assert (first.id.int, first.attempt, first.lost) == (1, 1, 0)
    assert repository.claim(session, ["play"], 15) is None
    both = repository.claim(session, ["play", "other"], 15)
    assert both is not None
    assert both.kind == "other"
    assert repository.alive(session) == {"mo": 4}


def test_actors_take_turns(session: Session) -> None:
    """Many that one has asked for do not stand before the one of another, and an actor's own come by age."""
    for number, (actor, age) in enumerate([("many", 9), ("many", 8), ("many", 7), ("few", 6), ("few", 5), ("one", 4)]):
        add(session, number, age, actor=actor)
    order = list[int]()
    for _ in range(6):
        found = repository.claim(session, ["play"], 15)
        assert found is not None
        order.append(found.id.int)
    assert order == [0, 3, 5, 1, 4, 2]
    assert repository.alive(session) == {"many": 3, "few": 2, "one": 1}


def test_a_job_belongs_to_its_attempt_while_it_runs(session: Session) -> None:
    job = add(session, 1, status="running", attempt=2)
    row = Chunk("s", 0, 0, 1, b"data")
    assert not repository.beat(session, job, 1, {"a": 1})
    assert not repository.put(session, job, 1, [row])
    assert not repository.end(session, job, 1, {"status": "done"})
    repository.release(session, job, 1)
    assert value(session, job, "status", "heartbeat_at", "progress") == ("running", None, None)
    assert repository.beat(session, job, 2, {"a": 1})
    assert value(session, job, "progress") == ({"a": 1},)
    assert value(session, job, "heartbeat_at")[0] is not None
    assert repository.put(session, job, 2, [row])
    repository.release(session, job, 2)
    assert value(session, job, "status", "heartbeat_at") == ("queued", None)
    assert not repository.beat(session, job, 2, None)


def test_the_last_word_has_no_nul(session: Session) -> None:
    job = add(session, 1, status="running")
    assert repository.end(session, job, 0, {"status": "failed", "error": "a\0b"})
    assert value(session, job, "status", "error") == ("failed", "a\ufffdb")
    assert value(session, job, "ended_at")[0] is not None
    assert not repository.cancel(session, job, "play"), "it has ended"


def test_stopping_and_forgetting(session: Session) -> None:
    job = add(session, 1)
    assert not repository.cancel(session, job, "other")
    assert repository.cancel(session, job, "play")
    assert value(session, job, "status") == ("cancelled",)
    assert value(session, job, "ended_at")[0] is not None
    assert repository.find(session, job, "other") is None
    assert repository.request(session, job, "other") is None
    assert repository.request(session, job, "play") == (b"1", None)
    assert not repository.delete(session, job, "other")
    assert repository.delete(session, job, "play")
    assert repository.find(session, job, "play") is None


def test_a_worker_is_lost_only_after_more_than_so_many_seconds(session: Session) -> None:
    job = add(session, 1, status="running", heartbeat_at=sa.func.now())  # a transaction's now is one instant
    assert repository.claim(session, ["play"], 0) is None
    session.execute(sa.update(jobs).values(heartbeat_at=sa.func.now() - timedelta(microseconds=1)))
    found = repository.claim(session, ["play"], 0)
    assert found is not None
    assert found.id == job


def test_workers_do_not_wait_for_one_another_nor_a_heart_for_what_is_stored(database: Database) -> None:
    with database.session() as session:
        for number in (1, 2):
            add(session, number, age=9 - number)
        assert repository.claim(session, ["play"], 15) is not None
    with database.session() as first, database.session(5) as second:
        assert repository.put(first, UUID(int=1), 1, [Chunk("s", 0, 0, 1, b"")])
        assert repository.beat(second, UUID(int=1), 1, None)
    with database.session() as first, database.session(5) as second:
        taken = [repository.claim(one, ["play"], lost_after=0) for one in (first, second)]
        assert [one.id.int for one in taken if one is not None] == [1, 2]


def test_lines_are_those_of_the_present_attempt(session: Session) -> None:
    job = add(session, 1, status="running", attempt=1)
    session.execute(sa.insert(repository.chunks).values(
        job=job, attempt=0, stream="s", number=0, first=0, lines=9, data=b"lost"
    ))  # fmt: skip
    rows = [Chunk("s", 0, 0, 2, b"a"), Chunk("s", 1, 2, 3, b"b"), Chunk("t", 0, 0, 9, b"c")]
    repository.put(session, job, 1, rows)
    found = [repository.chunk_after(session, job, "s", line) for line in range(6)]
    assert found == [rows[0], rows[0], rows[1], rows[1], rows[1], None]


def test_pages_and_a_census(session: Session) -> None:
    for number in (1, 2, 3):
        add(session, number, age=10 * number)
    add(session, 4, kind="other", status="done", started_at=ago(60), ended_at=ago(20))
    assert [row["id"].int for row in repository.page(session, "play", None, 2)] == [3, 2]
    assert [row["id"].int for row in repository.page(session, "play", UUID(int=3), 5)] == [2, 1]
    done, queued = repository.census(session)
    assert (done.kind, done.status, done.jobs, round(done.seconds or 0)) == ("other", "done", 1, 40)
    assert (queued.kind, queued.status, queued.jobs, queued.seconds) == ("play", "queued", 3, None)
    assert 30 <= queued.oldest <= 31 + (datetime.now(UTC) - NOW).total_seconds()


def test_a_census_of_a_database_that_is_not_migrated(database: Database) -> None:
    def counted() -> None:
        with database.session() as session:
            session.execute(sa.text("alter table jobs rename to others"))
            repository.census(session)

    with pytest.raises(Unavailable, match=r"^the database is not migrated$"):
        counted()


def test_what_ended_long_ago_and_beyond_the_newest_is_forgotten(session: Session) -> None:
    for number, age in ((1, 100), (2, 50), (3, 10), (4, 5)):
        add(session, number, ended_at=ago(age), status="done")
    add(session, 5)
    (oldest,) = value(session, UUID(int=1), "ended_at")
    assert repository.prune(session, oldest, 4) == 0, "it ended then, not before"
    assert repository.prune(session, ago(75), 3) == 1
    assert repository.prune(session, ago(75), 2) == 1
    assert [row["id"].int for row in repository.page(session, "play", None, 9)] == [5, 4, 3]
