"""What happens around an answer: which log entry is offered and how, what is asked, what comes back."""

import asyncio
import json
from concurrent.futures import Future
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import zstandard

from app.answering.answers import Facts
from app.answering.operations import Inquiry, Logged, Operation, Reply
from app.answering.sources import Known, LogDocument, Used
from app.auth.audit import acting
from app.base import ticket
from app.base.errors import NotFound, Unavailable
from app.db.database import Database
from app.decisions import repository
from app.decisions.kept import LoggedStates
from app.decisions.log import DecisionLog, Entry
from app.decisions.service import Decided, Decider
from app.metrics import Metrics
from app.solver.model.decision import ConfigurationUsed, StateUsed
from app.workers.dispatcher import Dispatcher, Named
from tests.support.instead import Instead

Json = dict[str, Any]
ID = UUID(int=7)
ANSWER: Json = {
    "engine": "kueue", "configuration": {"name": "main", "revision": 3, "digest": "c"},
    "state": {"digest": "s"}, "decisions": [{"ask": "a", "outcome": "wait"}],
}  # fmt: skip


def facts(**more: Any) -> Facts:
    own: Json = {
        "now": 5, "engine": "kueue", "configuration": ConfigurationUsed(digest="c"), "state_digest": "s",
        "asks": ["a", "b"], "outcomes": ["preempt", "wait"], "reasons": ["", "Pending"], "evicted": ["w"],
        "victims": {"InClusterQueue": 2},
    }  # fmt: skip
    return Facts(**(own | more))


def about_snapshot(**more: Any) -> Facts:
    return facts(snapshot="live", **more)


class Answering:
    """Stands for a dispatcher: what it was asked, and the replies that it has."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[tuple[Inquiry, bytes, Named | None]] = []
        self._replies = list(replies)

    def run(self, asked: Inquiry, body: bytes, named: Named | None = None) -> Reply:
        self.asked.append((asked, body, named))
        return self._replies.pop(0)


class Offered:
    """Stands for a log: what it was offered, and whether it has room for documents."""

    def __init__(self) -> None:
        self.is_behind = False
        self.room = True
        self.offers: list[tuple[str, Entry]] = []
        self.settled: list[float] = []

    def offer(self, entry: Entry) -> bool:
        self.offers.append(("offer", entry))
        return True

    def offer_whole(self, entry: Entry) -> bool:
        self.offers.append(("whole", entry))
        return self.room

    def settle(self, seconds: float) -> bool:
        self.settled.append(seconds)
        return True


class Bench:
    def __init__(self, *replies: Reply, **more: Any) -> None:
        self.answering, self.log, self.metrics, self.logged_states = (
            Answering(*replies),
            Offered(),
            Metrics(),
            LoggedStates(),
        )
        self.decider = Decider(
            cast("Dispatcher", self.answering), log=cast("DecisionLog", self.log), metrics=self.metrics,
            database=cast("Database", Sessions()), logged_states=self.logged_states, **more,
        )  # fmt: skip

    def known(self) -> Known | None:
        return self.answering.asked[-1][0].known

    @property
    def entry(self) -> Entry:
        return self.log.offers[-1][1]


class Sessions:
    """Stands for a database whose sessions nobody looks into."""

    def session(self) -> Any:
        from contextlib import nullcontext

        return nullcontext("a session")


def test_an_answer_goes_out_unchanged_between_its_id_and_how_long_it_took() -> None:
    bench = Bench(Reply(b'{"x":[1, 2]}', facts(), {"decode": 0.0015, "solve": 0.25}))
    with acting("token:ci"):
        before = datetime.now(UTC)
        decided = bench.decider.decide(b'{"a":1}')
    ((how, entry),) = bench.log.offers
    assert decided == Decided(
        b'{"id":"%b","x":[1, 2],"stats":{"decode_ms":1.5,"solve_ms":250.0}}' % str(entry.id).encode(), None
    )
    assert (how, entry.request, entry.answered.body, entry.actor) == ("offer", b'{"a":1}', b'{"x":[1, 2]}', "token:ci")
    assert before <= entry.created_at <= datetime.now(UTC)
    assert (entry.documents, entry.kept_state, entry.kept_configuration, entry.ended) == ((), None, None, None)
    ((asked, body, named),) = bench.answering.asked
    assert (asked, body, named) == (Inquiry(Operation.DECISION, entry.created_at), b'{"a":1}', (None, None))
    value = bench.metrics.registry.get_sample_value
    counted = value("arbiter_victims_total", {"engine": "kueue", "reason": "InClusterQueue"})
    assert counted == 2


def test_what_the_log_has_of_a_snapshot_is_told_unless_it_is_behind() -> None:
    body = b'{"state":{"snapshot":"live"}}'
    bench = Bench(*(Reply(b"{}", about_snapshot()) for _ in range(4)))
    bench.decider.decide(body)
    assert bench.known() == Known()
    assert bench.answering.asked[-1][2] == ("live", None)
    bench.logged_states.taken("live", "s0", "c", [LogDocument("s0", b""), LogDocument("c", b"")])
    bench.decider.decide(body)
    assert bench.known() == Known("s0", "c")
    bench.log.is_behind = True
    bench.decider.decide(body)
    assert bench.known() is None
    bench.decider.guard("main", "live", body)
    assert bench.known() is None


def test_an_entry_about_a_snapshot_has_what_it_is_decided_again_with() -> None:
    own, named = ConfigurationUsed(digest="c"), ConfigurationUsed(name="main", revision=1, digest="c")
    new = [LogDocument("s", b"{}"), LogDocument("c", b"{}")]
    bench = Bench(
        Reply(b"{}", about_snapshot(configuration=own), documents=new),
        Reply(b"{}", about_snapshot(configuration=named)),
        Reply(b"{}", about_snapshot(state_digest="s2")), Reply(b"{}", facts(), documents=new),
    )  # fmt: skip
    found: list[tuple[str, str | None, str | None, int]] = []
    for _ in range(4):
        bench.decider.decide(b"{}")
        how, entry = bench.log.offers[-1]
        found.append((how, entry.kept_state, entry.kept_configuration, len(entry.documents)))
    # With all of it; with what is there already; a state that nobody gave: without; of no snapshot: without.
    assert found == [
        ("whole", "s", "c", 2),
        ("whole", "s", None, 0),
        ("offer", None, None, 0),
        ("offer", None, None, 0),
    ]
    assert bench.logged_states.known("live") == Known("s", "c")


def test_what_the_log_had_no_room_for_is_not_known_to_be_there() -> None:
    bench = Bench(Reply(b"{}", about_snapshot(), documents=[LogDocument("s", b"{}")]))
    bench.log.room = False
    bench.decider.decide(b"{}")
    assert bench.log.offers[-1][0] == "whole"
    assert bench.logged_states.known("live") == Known()


def test_asks_that_wait_beside_a_snapshot_are_written_out() -> None:
    bench = Bench(Reply(b"{}", facts(pending=b'[{"id":"a"}]')))
    bench.decider.decide(b'{"state":{"x":1.0},"asks":"pending","now":"z"}')
    assert bench.entry.request == b'{"state":{"x":1.0},"asks":[{"id":"a"}],"now":"z"}'


def test_what_guards_is_logged_as_the_decision_that_it_rests_on() -> None:
    logged = Logged(b"the request", b"the answer")
    bench = Bench(Reply(b"said", facts(), {"solve": 1.0}, logged=logged), Reply(b"nothing to decide"))
    bench.logged_states.taken("live", "s0", "c", [LogDocument("s0", b"")])
    assert bench.decider.guard("main", "live", b"body") == Decided(b"said", None)
    assert (bench.entry.request, bench.entry.answered.body) == (b"the request", b"the answer")
    ((asked, body, named),) = bench.answering.asked
    expected = Inquiry(Operation.PREEMPTION, asked.now, "live", known=Known("s0"), configuration="main")
    assert (asked, body, named) == (expected, b"body", None)
    assert bench.decider.guard("main", "live", b"body") == Decided(b"nothing to decide", None)
    assert len(bench.log.offers) == 1


def test_other_questions_are_asked_and_not_logged() -> None:
    bench = Bench(Reply(b"shares"))
    assert bench.decider.ask(Operation.SHARES, b"body") == b"shares"
    assert bench.answering.asked[0][0].operation is Operation.SHARES
    assert bench.log.offers == []


def test_where_answers_wait_for_their_entries_they_do_so_for_so_long() -> None:
    bench = Bench(*(Reply(b"{}", facts()) for _ in range(3)), waits=0.01)
    stored, lost, late = (bench.decider.decide(b"{}") for _ in range(3))
    for decided, (_, entry) in zip((stored, lost, late), bench.log.offers, strict=True):
        assert decided.stored is entry.stored is not None
    assert isinstance(stored.stored, Future)
    stored.stored.set_result(None)
    assert asyncio.run(bench.decider.acknowledged(stored)) == stored.answer
    bench.log.offers[1][1].settle("the disk is full")
    with pytest.raises(Unavailable, match=r"^the decision can't be logged: the disk is full$"):
        asyncio.run(bench.decider.acknowledged(lost))
    with pytest.raises(Unavailable, match=r"^the decision can't be logged in time$"):
        asyncio.run(bench.decider.acknowledged(late))


def test_whoever_traces_is_told_how_long_the_log_took() -> None:
    bench = Bench(Reply(b"{}", facts()), Reply(b"{}", facts()))
    told: list[ticket.Stage] = []
    with ticket.heard_by(told.append):
        bench.decider.decide(b"{}")
        bench.decider.decide(b"{}")
    assert told == []
    (_, stored), (_, lost) = bench.log.offers
    assert stored.ended is not None
    assert lost.ended is not None
    stored.ended("")
    lost.ended("refused")
    assert [(one.name, one.failed, one.end >= one.begin) for one in told] == [("log", "", True), ("log", "Lost", True)]


def row(answer: Json, **more: Any) -> Json:
    def squeezed(document: Json) -> bytes:
        return zstandard.ZstdCompressor().compress(msgspec.json.encode(document))

    own: Json = {
        "id": ID, "created_at": datetime(2026, 3, 2, tzinfo=UTC), "now": 1_500_000, "engine": "kueue",
        "release": None, "configuration_name": "main", "configuration_revision": 3, "configuration_digest": "c",
        "state_digest": "s", "request_digest": "r", "asks": ["a"], "outcomes": ["wait"], "evictions": 0, "actor": None,
        "queues": None,
        "circle": None, "purpose": None, "seconds": {"solve": 0.5},
        "request": squeezed({"explain": "none", "asks": [1.0]}),
        "answer": squeezed(answer), "kept_state": None, "kept_configuration": None,
    }  # fmt: skip
    return own | more


def reading(bench: Bench, monkeypatch: pytest.MonkeyPatch, *rows: Json) -> None:
    """Let ``bench`` find ``rows``, newest first."""
    Instead(monkeypatch)(
        repository,
        find=lambda _, identity: next((r for r in rows if r["id"] == identity), None),
        page=lambda _, filters, before, limit: rows[:limit],
    )


def test_a_record_says_what_the_log_has(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    reading(bench, monkeypatch, row(ANSWER), row(ANSWER, id=UUID(int=8), actor="mo", queues=["q"], circle=True))
    plain, other = bench.decider.record(ID), bench.decider.record(UUID(int=8))
    assert json.loads(bytes(plain.answer)) == ANSWER
    assert (plain.id, plain.now.timestamp(), plain.engine, plain.state_digest, plain.request_digest) == (
        ID, 1.5, "kueue", "s", "r",
    )  # fmt: skip
    assert plain.configuration == ConfigurationUsed(name="main", revision=3, digest="c")
    assert (plain.asks, plain.outcomes, plain.evictions, plain.stats) == (["a"], ["wait"], 0, {"solve_ms": 500.0})
    assert (plain.actor, plain.queues, plain.circle) == (None, [], False)
    assert (other.actor, other.queues, other.circle) == ("mo", ["q"], True)
    with pytest.raises(NotFound, match=rf"^no decision {UUID(int=9)}$"):
        bench.decider.record(UUID(int=9))
    assert bench.log.settled == [1.0] * 3, "what was answered by now is looked for, a second long"


def test_a_page_says_where_the_next_begins(monkeypatch: pytest.MonkeyPatch, instead: Instead) -> None:
    bench = Bench()
    rows = [row(ANSWER, id=UUID(int=i)) for i in (3, 2, 1)]
    reading(bench, monkeypatch, *rows)
    page = bench.decider.listing(repository.Filters(), None, 2)
    assert [item.id.int for item in page.items] == [3, 2]
    cursor = page.next_cursor
    assert cursor is not None
    assert bench.decider.listing(repository.Filters(), None, 3).next_cursor is None
    asked: list[tuple[Any, ...]] = []
    instead(repository, page=lambda *given: asked.append(given) or [])
    assert bench.decider.listing(repository.Filters(engine="kai"), cursor, 2).items == []
    assert asked == [("a session", repository.Filters(engine="kai"), UUID(int=2), 3)]
    assert bench.log.settled == [1.0] * 3


def test_a_decision_is_made_again_as_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = msgspec.json.encode(ANSWER)
    other = recorded.replace(b"wait", b"fits")
    bench = Bench(Reply(recorded), Reply(other))
    reading(bench, monkeypatch, row(ANSWER))
    same, differing = bench.decider.replay(ID), bench.decider.replay(ID)
    assert (same.decision, same.identical, same.differences, bytes(same.answer)) == (ID, True, [], recorded)
    assert same.recorded_digest == same.replayed_digest == sha256(recorded).hexdigest()
    assert (differing.identical, differing.differences) == (False, ["/decisions/0/outcome"])
    assert differing.replayed_digest == sha256(other).hexdigest()
    assert bytes(differing.answer) == other
    used = Used(ConfigurationUsed(name="main", revision=3, digest="c"), StateUsed(digest="s"))
    for asked, body, _ in bench.answering.asked:
        assert asked == Inquiry(Operation.DECISION, datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), pinned=used)
        assert json.loads(body) == {"explain": "none", "asks": [1.0]}


def test_explanations_are_not_what_a_decision_is_compared_by(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = ANSWER["decisions"][0]
    explained = ANSWER | {"decisions": [decision | {"explanation": {"why": 1}}]}
    said = msgspec.json.encode(explained)
    changed = said.replace(b"wait", b"fits")
    bench = Bench(Reply(said), Reply(changed))
    reading(bench, monkeypatch, row(ANSWER | {"decisions": [decision | {"explanation": "another"}]}))
    same, differing = bench.decider.explain(ID, "full"), bench.decider.explain(ID, "summary")
    assert (same.identical, same.differences, bytes(same.answer)) == (True, [], said)
    assert (differing.identical, differing.differences) == (False, ["/decisions/0/outcome"])
    assert same.recorded_digest == sha256(msgspec.json.encode(ANSWER)).hexdigest()
    levels = [json.loads(body) for _, body, _ in bench.answering.asked]
    assert levels == [{"explain": "full", "asks": [1.0]}, {"explain": "summary", "asks": [1.0]}]
