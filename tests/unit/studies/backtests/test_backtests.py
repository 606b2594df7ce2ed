"""A backtest without a database: which entries are decided again, what is counted, what is skipped and why."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import zstandard

from app.answering.answers import answer
from app.answering.sources import Compiled, nothing_stored
from app.base.errors import BadInput, Conflict, NotFound
from app.db.database import Database
from app.decisions import repository
from app.decisions.repository import Filters
from app.decisions.schemas import DECISION
from app.jobs.repository import Claimed
from app.jobs.service import Jobs, New
from app.jobs.worker import ChunkWriter, Unwanted, Work, lines_of
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput
from app.studies import backtesting as running
from app.studies.backtesting import Backtesting, BacktestOutcome, Backtests
from tests.support import released
from tests.support.bounds import Bounded
from tests.support.instead import Instead

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SAME = {"name": "same"}
NEVER = {"name": "never", "set": {"queues.serving.kueue.preemption.reclaim_within_cohort": "Never"}}
BROKEN = {"name": "broken", "set": {"queues.serving.quota.cpu.guaranteed": "much"}}


def entry(number: int, **request: Any) -> dict[str, Any]:
    """A decision of the log, with its request as the resolver gives it."""
    body = msgspec.json.encode({**DECISION, "now": NOW, **request})
    made = answer(body, NOW, nothing_stored()).body
    return {
        "id": UUID(int=number), "created_at": NOW + timedelta(seconds=number), "now": micros(NOW), "request": body,
        "answer": zstandard.ZstdCompressor().compress(made),
    }  # fmt: skip


SMALL = [{**DECISION["asks"][0], "id": "small", "tasks": [{"name": "m", "requests": {"cpu": 1}}]}]


class Log:
    """A log of these entries, in the place of the database's."""

    def __init__(self, patch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> None:
        self.entries = list(entries)
        self.asked: list[tuple[Filters, UUID | None, int]] = []
        self.counted: Filters | None = None
        self.lines: dict[str, list[Any]] = {}
        self.progress: list[Any] = []
        self.stop_at = -1
        Instead(patch)(repository, count=self._count, oldest=self._oldest)
        self._writer = ChunkWriter(self._store, 1 << 30)
        self.work = Work(self._writer, self._check)

    @contextmanager
    def session(self) -> Generator[None]:
        yield

    def _count(self, _: None, filters: Filters) -> int:
        self.counted = filters
        return len(self.entries)

    def _oldest(self, _: None, filters: Filters, after: UUID | None, most: int) -> list[dict[str, Any]]:
        self.asked.append((filters, after, most))
        return [one for one in self.entries if after is None or one["id"] > after][:most]

    def _store(self, chunks: Any) -> None:
        for chunk in chunks:
            found = map(msgspec.json.decode, lines_of(chunk, 0, None)[0].splitlines())
            self.lines.setdefault(chunk.stream, []).extend(found)

    def _check(self) -> None:
        self.progress.append(self.work.progress)
        if len(self.progress) == self.stop_at:
            raise Unwanted

    def resolved(self, row: Any) -> bytes:
        if isinstance(row["request"], Exception):
            raise row["request"]
        return row["request"]

    def made(self, *variants: dict[str, Any], **request: Any) -> BacktestOutcome:
        body = msgspec.json.encode({"variants": variants, **request})
        doing = Backtesting(cast(Database, self), Compiled(None), cast(Any, self), cast(Any, None))
        found = doing.do(cast(Claimed, None), body, self.work)
        self._writer.flush()
        return msgspec.json.decode(found, type=BacktestOutcome)


def test_every_entry_is_decided_again_under_each_variant_and_what_differs_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(monkeypatch, entry(1), entry(2, asks=SMALL), entry(3))
    found = log.made(SAME, NEVER, BROKEN)
    assert (found.decisions, found.skipped, found.first_skipped) == (3, 0, [])
    same, never, broken = found.variants
    assert [(one.name, one.same, one.differ, one.refused) for one in found.variants] == [
        ("same", 3, 0, 0), ("never", 1, 2, 0), ("broken", 0, 0, 3),
    ]  # fmt: skip
    assert (same.logged.asks, same.logged.evictions) == ({"admit": 1, "preempt": 2}, 2)
    assert list(same.logged.asks) == ["admit", "preempt"], "by name"
    assert same.here == same.logged == never.logged
    assert (never.here.asks, never.here.evictions) == ({"admit": 1, "wait": 2}, 0)
    assert (broken.logged.asks, broken.here.asks) == ({}, {})
    assert set(log.lines) == {"1/differences", "2/differences"}
    one = log.lines["1/differences"][0]
    assert (one["decision"], one["created_at"], one["now"]) == (
        str(UUID(int=1)), "2026-03-02T09:30:01Z", "2026-03-02T09:30:00Z"
    )  # fmt: skip
    assert {name for difference in one["differences"] for name in difference["values"]} == {"logged", "variant"}
    assert "problems" not in one
    assert [line["decision"][-1] for line in log.lines["1/differences"]] == ["1", "3"]
    refused = log.lines["2/differences"]
    assert (len(refused), bool(refused[0]["problems"]), "differences" in refused[0]) == (3, True, False)


def test_a_variant_of_another_release_says_by_which_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"configuration": released.configuration("0.13"), "state": released.STATE, "asks": [released.WAITS]}
    log = Log(monkeypatch, entry(1, **body, engine="kai", mode="cycle", now="2000-01-01T00:00:00Z"))
    more = {"use_scheduling_signatures": False}
    newer = {"name": "newer", "settings": {"kai": released.settings("0.17")}}
    log.made(SAME, newer, {"name": "also", "settings": {"kai": released.settings("0.17") | more}})
    assert [one["rules"] for one in log.lines["1/differences"][0]["differences"]] == [[released.RULE]]
    assert ["rules" in one for one in log.lines["2/differences"][0]["differences"]] == [False], "it is not that alone"


def test_how_far_it_is_and_where_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(monkeypatch, *(entry(i) for i in range(1, 4)))
    log.made(SAME)
    assert log.progress == [None, {"decisions": 0, "total": 3}, {"decisions": 1, "total": 3}]
    assert log.work.progress == {"decisions": 2, "total": 3}
    stopped = Log(monkeypatch, *log.entries)
    stopped.stop_at = 2
    with pytest.raises(Unwanted):
        stopped.made(SAME)
    assert stopped.work.progress == {"decisions": 0, "total": 3}
    grown = Log(monkeypatch, *log.entries)
    Instead(monkeypatch)(repository, count=lambda *_: 1)
    grown.made(SAME)
    assert grown.work.progress == {"decisions": 2, "total": 2}, "more came in than were counted"


def test_the_log_is_read_some_at_a_time_and_by_what_the_request_says(monkeypatch: pytest.MonkeyPatch) -> None:
    Bounded(monkeypatch)(running, AT_ONCE=2)
    log = Log(monkeypatch, *(entry(i) for i in range(1, 6)))
    since = "2026-01-01T00:00:00Z"
    said = {"engine": "kueue", "configuration": "prod", "queue": "q", "actor": "me"}
    found = log.made(SAME, since=since, until="2026-12-01T00:00:00Z", **said)
    assert found.decisions == 5
    assert [(after and after.int, most) for _, after, most in log.asked] == [(None, 2), (2, 2), (4, 2), (5, 2)]
    times = {"since": datetime(2026, 1, 1, tzinfo=UTC), "until": datetime(2026, 12, 1, tzinfo=UTC)}
    assert {filters for filters, *_ in log.asked} == {log.counted} == {Filters(**said, **times)}  # type: ignore[arg-type]


def test_what_cannot_be_decided_again_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {f"x{i}": 1 for i in range(5)}
    bad = {**entry(3), "request": msgspec.json.encode({**DECISION, "now": NOW, **wrong})}
    other = {**entry(4), "answer": zstandard.ZstdCompressor().compress(b'{"decisions":7}')}
    gone = [{**entry(i), "request": NotFound(f"gone {i}")} for i in range(5, 40)]
    log = Log(monkeypatch, {**entry(1), "request": Conflict("moved on")}, entry(2), bad, other, *gone)
    found = log.made(SAME)
    assert (found.decisions, found.skipped, len(found.first_skipped), found.variants[0].same) == (39, 38, 20, 1)
    told = [(one.decision.int, one.reason) for one in found.first_skipped]
    assert told[0] == (1, "moved on")
    assert told[1] == (3, "; ".join(f"/x{i}: unknown field" for i in range(3)))
    assert told[2][1].startswith("its answer is of another version: ")
    assert told[3] == (5, "gone 5")


class Kept:
    """What a service of backtests keeps."""

    def __init__(self) -> None:
        self.settled = 0
        self.accepted: list[New] = []
        self.outcome: bytes | None = None
        self.progress: Any = None
        self.service = Backtests(cast(Jobs, self), cast(Any, self), 3, self._settle)

    def head(self, reference: str) -> tuple[str, int]:
        return reference, 4

    def document(self, name: str, revision: int) -> bytes:
        return b"{}"

    def _settle(self) -> None:
        assert not self.accepted
        self.settled += 1

    def add(self, kind: str, made: Any) -> UUID:
        assert (kind, self.settled) == ("backtest", 1)
        self.accepted.append(made(None))
        return UUID(int=9)

    def row(self, job: UUID, kind: str) -> dict[str, Any]:
        return {
            "id": job, "status": "done" if self.outcome else "queued", "created_at": NOW, "started_at": None,
            "ended_at": None, "attempt": 0, "error": None, "outcome": self.outcome, "progress": self.progress,
            "about": self.accepted[-1].about,
        }  # fmt: skip

    def lines(self, job: UUID, stream: str, first: int, most: int | None) -> Any:
        return iter([f"{job.int} {stream} {first} {most}".encode()])

    def start(self, *variants: dict[str, Any], **request: Any) -> Any:
        return self.service.start(msgspec.json.encode({"variants": variants, **request}))


def test_a_range_ends_when_the_backtest_is_asked_for_and_names_mean_what_they_mean_then() -> None:
    of, before = Kept(), datetime.now(UTC)
    shown = of.start(SAME, {"name": "prod", "configuration": "prod"}, since="2026-01-01T00:00:00Z")
    request = msgspec.json.decode(of.accepted[0].request)
    assert before <= shown.until <= datetime.now(UTC)
    assert datetime.fromisoformat(request["until"]) == shown.until
    assert (shown.names, shown.since, of.settled) == (["same", "prod"], datetime(2026, 1, 1, tzinfo=UTC), 1)
    assert [one.get("configuration") for one in request["variants"]] == [None, "prod@4"]
    assert (shown.progress, shown.decisions, shown.variants) == (None, None, [])
    outcome = BacktestOutcome(decisions=3, skipped=1, first_skipped=[], variants=[])
    of.outcome = zstandard.ZstdCompressor().compress(msgspec.json.encode(outcome))
    of.progress = {"decisions": 2, "total": 3}
    done = of.service.get(UUID(int=9))
    assert (done.decisions, done.skipped, done.progress and done.progress.total) == (3, 1, 3)
    assert list(of.service.differences(UUID(int=9), "prod", 5, 7)) == [b"9 1/differences 5 7"]
    assert list(of.service.differences(UUID(int=9), None, 0, None)) == [b"9 0/differences 0 None"]


@pytest.mark.parametrize(
    ("variants", "request_", "error", "said"),
    [
        ([SAME, SAME], {}, InvalidInput, {"/variants/1/name": "a second variant 'same'"}),
        ([{"name": n} for n in "abcd"], {}, BadInput, {"/variants": "4 variants; at most 3 are allowed"}),
        ([SAME], {"since": "2999-01-01T00:00:00Z"}, BadInput, {"/since": "not before `until`: the range is empty"}),
        ([SAME], {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, BadInput,
         {"/since": "not before `until`: the range is empty"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_once(variants: Any, request_: Any, error: Any, said: dict[str, str]) -> None:
    of = Kept()
    with pytest.raises(error) as found:
        of.start(*variants, **request_)
    assert {problem.pointer: problem.detail for problem in found.value.problems} == said
    assert of.accepted == []


def test_as_many_variants_as_are_allowed_and_a_range_of_a_microsecond() -> None:
    bounds = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00.000001Z"}
    assert Kept().start(*({"name": n} for n in "abc"), **bounds).names == ["a", "b", "c"]
