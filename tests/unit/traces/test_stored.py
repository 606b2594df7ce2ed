"""Stored traces, on a database: names, chunks, what stays and what goes; and counting the lines of a file."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import sqlalchemy as sa

from app.base.errors import BadRequest, NotFound, PreconditionFailed, TooLarge
from app.db.database import Database
from app.http.openapi import Preconditions
from app.jobs.repository import jobs
from app.solver.model.problems import InvalidInput
from app.traces import preparing as module
from app.traces import repository
from app.traces.ingest import Limits, Source, ingest
from app.traces.jobs import ALIBABA, SWF, Mapping
from app.traces.preparing import lines_within, prepare
from app.traces.router import Traces, etag
from tests.support.bounds import Bounded
from tests.support.ingest import change, job, lines
from tests.support.instead import Instead

NONE = Preconditions(None, None)
SECOND = lines(change(0), job("a"), job("b", 5))


@pytest.fixture
def traces(database: Database, instead: Instead) -> Iterator[Traces]:
    made = Traces(database, Limits())

    # In this process, which a test can reach into.
    instead(made._readers, prepared=prepare)  # pyright: ignore[reportPrivateUsage]
    yield made
    made.close()


def rows(database: Database, table: sa.Table) -> int:
    with database.session() as session:
        return session.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_a_trace_is_kept_under_its_name(traces: Traces, database: Database) -> None:
    first = traces.put("t", "ndjson", {"trace": lines(job("a"))}, NONE)
    assert not first.replaced
    second = traces.put("t", "ndjson", {"trace": SECOND}, Preconditions((first.etag,), None))
    assert second.replaced
    assert second.etag != first.etag
    identifier, summary = traces.get("t")
    assert (summary.name, summary.jobs, summary.changes, summary.seconds) == ("t", 2, 1, 5.0)
    assert etag(summary) == second.etag == f'"{summary.digest[:32]}"'
    assert msgspec.json.decode(second.summary)["jobs"] == 2
    assert traces.by_id(identifier) == summary == traces.summary("t")
    opened = traces.opened(identifier)
    assert [one.ask.id for one in opened.jobs()] == ["a", "b"]
    assert [number for number, _ in opened.numbered()] == [2, 3]
    assert len(opened.changes()) == 1
    with database.session() as session:
        assert traces.digest(session, identifier) == summary.digest
        assert traces.pinned(session, "t") == identifier
    assert (rows(database, repository.traces), rows(database, repository.chunks)) == (1, 1), "the first has gone"


def test_a_write_that_names_another_version_changes_nothing(traces: Traces) -> None:
    first = traces.put("t", "ndjson", {"trace": lines(job("a"))}, Preconditions(None, ("*",)))
    for conditions in (Preconditions(None, ("*",)), Preconditions(('"x"',), None)):
        with pytest.raises(PreconditionFailed):
            traces.put("t", "ndjson", {"trace": SECOND}, conditions)
        if conditions.if_match:
            with pytest.raises(PreconditionFailed):
                traces.delete("t", conditions)
    with pytest.raises(InvalidInput):
        traces.put("t", "ndjson", {"trace": b"{}"}, NONE)
    assert etag(traces.get("t")[1]) == first.etag
    traces.delete("t", Preconditions((first.etag,), None))
    with pytest.raises(NotFound):
        traces.delete("t", NONE)


def test_what_there_is_not(traces: Traces, database: Database) -> None:
    for ask in (traces.get, traces.summary):
        with pytest.raises(NotFound) as refused:
            ask("nobody")
        assert (refused.value.detail, refused.value.problems) == ("no trace 'nobody'", [])
    with pytest.raises(NotFound, match="the trace is gone"):
        traces.by_id(UUID(int=1))
    with database.session() as session, pytest.raises(NotFound) as refused:
        traces.pinned(session, "nobody")
    assert [(one.pointer, one.detail) for one in refused.value.problems] == [("/trace", "no trace 'nobody'")]
    assert list(traces.lines(UUID(int=1))) == []


def test_pages_are_by_name(traces: Traces) -> None:
    for name in ("c", "a", "b"):
        traces.put(name, "ndjson", {"trace": lines(job(name))}, NONE)
    assert [one.name for one in traces.page(None, 2)] == ["a", "b"]
    assert [one.name for one in traces.page("a", 5)] == ["b", "c"]
    assert traces.page("c", 5) == []
    traces.delete("b", NONE)
    assert [one.name for one in traces.page(None, 5)] == ["a", "c"]


def test_a_trace_that_a_job_is_about_stays_without_its_name(traces: Traces, database: Database) -> None:
    traces.put("t", "ndjson", {"trace": SECOND}, NONE)
    identifier, summary = traces.get("t")
    with database.session() as session:
        session.execute(
            sa.insert(jobs).values(
                id=UUID(int=9), kind="play", actor="mo", created_at=datetime(2026, 11, 22, tzinfo=UTC),
                trace=identifier, about=b"", request=b"",
            )
        )  # fmt: skip
    traces.delete("t", NONE)
    assert traces.page(None, 5) == []
    assert traces.by_id(identifier) == summary
    assert len(b"".join(traces.lines(identifier)).splitlines()) == 3
    with database.session() as session:
        session.execute(sa.delete(jobs))
        repository.sweep(session)
    with pytest.raises(NotFound):
        traces.by_id(identifier)
    assert rows(database, repository.chunks) == 0


def test_chunks_are_read_in_their_order(traces: Traces, bounded: Bounded) -> None:
    bounded("app.traces.ingest", CHUNK=1)
    traces.put("t", "ndjson", {"trace": lines(*(job(f"j{i}", i) for i in range(12)))}, NONE)
    identifier, _ = traces.get("t")
    pieces = list(traces.lines(identifier))
    assert len(pieces) == 12
    assert [one.ask.id for one in traces.opened(identifier).jobs()] == [f"j{i}" for i in range(12)]


def test_even_a_small_one_is_read_in_a_process_that_may_die(database: Database, instead: Instead) -> None:
    traces = Traces(database, Limits())

    def here(*_: Any) -> Any:
        raise AssertionError("read in the service")

    instead("app.traces.preparing", ingest=here)
    traces.put("t", "ndjson", {"trace": lines(job("a"))}, NONE)
    assert [one.name for one in traces.page(None, 9)] == ["t"]
    traces.close()


@pytest.mark.parametrize(
    ("text", "jobs_most", "count"),
    [(b"", 5, 0), (b"a", 5, 1), (b"a\n", 5, 1), (b"a\nb", 5, 2), (b"a\nb\n", 2, 2), (b"a\nb\nc", 2, 3),
     (b"a\n" * 50, 2, 3), (b"\n\n\n", 5, 3)],
)  # fmt: skip
def test_lines_are_counted_up_to_one_too_many(
    text: bytes, jobs_most: int, count: int, tmp_path: Path, bounded: Bounded
) -> None:
    bounded(module, PIECE=3)
    path = tmp_path / "t"
    path.write_bytes(text)
    assert lines_within(str(path), Limits(jobs_most, 1000)) == count


def test_a_file_has_so_many_bytes_and_is_one(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a\n" * 5)
    assert lines_within(str(path), Limits(10, 10)) == 5
    with pytest.raises(TooLarge, match=r"/t: more than 9 bytes \(ARBITER_TRACE_BYTES\)$"):
        lines_within(str(path), Limits(10, 9))
    with pytest.raises(BadRequest, match="jobs are read twice, which takes a file"):
        lines_within(str(tmp_path), Limits(10, 9))
    with pytest.raises(OSError, match="No such file"):
        lines_within(str(tmp_path / "nobody"), Limits(10, 9))


def test_empty_lines_are_let_be_and_each_line_is_named() -> None:
    text = b"\n  \n" + lines(job("a")) + b"\r\n" + lines(change(3)) + b'{"at": 5, "huh": 1}\n{"ask": {}, "at": 1}\nx\n'
    with pytest.raises(InvalidInput) as refused:
        ingest(Source("ndjson", text), Limits())
    found = [(one.pointer, one.detail) for one in refused.value.problems]
    assert found[0] == ("/huh", "line 6: unknown field"), "of a change"
    assert ("/at", "line 7: unknown field") in found, "of a job"
    assert found[-1] == ("", "line 8: not JSON: Expecting value at line 1, column 1")
    assert {detail.partition(":")[0] for _, detail in found} == {"line 6", "line 7", "line 8"}
    good = ingest(Source("ndjson", b"\n \n" + lines(job("a"), change(3)) + b"\n"), Limits())
    assert (good.jobs, good.changes, good.span) == (1, 1, 3.0)
    assert ingest(Source("ndjson", lines(job("a"))), Limits()).span == 0.0


def test_the_mappings_that_formats_have_of_their_own() -> None:
    swf = {"queue": "user-{user}", "count": "processors", "resources": {"cpu": 1}}
    assert msgspec.convert(swf, Mapping) == SWF
    assert ALIBABA.preemptible == msgspec.convert(
        {"column": "qos", "values": {"BE": True}, "default": False}, type(ALIBABA.preemptible)
    )
    for zero, good in ((0, False), (0.001, True), (86_400, True), (86_401, False)):
        document = {"resources": {"cpu": 1}, "zero_run_time": zero}
        if good:
            assert msgspec.convert(document, Mapping).zero_run_time == zero
            continue
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(document, Mapping)
