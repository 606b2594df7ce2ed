"""What is stored of a decision, what would close a circle with it, and what the log tells of a workload: by hand."""

import json
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from uuid import UUID

import pytest
import zstandard
from sqlalchemy import RowMapping

from app.answering.answers import Answered
from app.answering.sources import LogDocument
from app.base.errors import Unavailable
from app.base.identifiers import earliest
from app.base.settings import Settings
from app.db.database import Database
from app.decisions.kept import WITHIN, pairs_of, returns_of
from app.decisions.log import DatabaseStore, DecisionLog, Entry, Row
from app.decisions.repository import Mentions
from app.decisions.service import history
from app.http.openapi import decode_id
from app.metrics import Metrics
from app.solver.model.decision import ConfigurationUsed
from tests.support.stored import ID, NOON, Json, entry, facts


def columns(of: Entry) -> Json:
    return json.loads(of.row().columns)


def plain(data: str) -> bytes:
    return zstandard.ZstdDecompressor().decompress(b64decode(data))


def test_every_column_of_an_entry() -> None:
    of = entry(facts(), actor="mo\0", kept_state="k1", kept_configuration="k2", documents=[LogDocument("d", b"1234")])
    found = columns(of)
    assert (plain(found.pop("request")), plain(found.pop("answer"))) == (b"the request", b"the answer")
    shown = {name: value for name, value in found.items() if name not in ("id", "created_at", "pairs")}
    assert shown == {
        "now": 5, "engine": "kueue", "release": None, "configuration_name": "main", "configuration_revision": 3,
        "configuration_digest": "c", "state_digest": "s", "asks": ["a", "b\ufffd"], "outcomes": ["preempt", "wait"],
        "evicted": ["x\ufffd", "y"], "evictions": 3, "seconds": {"decode": 0.25},
        "request_digest": sha256(b"the request").hexdigest(), "actor": "mo\ufffd", "queues": ["q\ufffd"],
        "spared": ["z\ufffd"], "pods": ["p\ufffd"], "workloads": ["a", "w\ufffd"], "kept_state": "k1",
        "kept_configuration": "k2", "purpose": None, "stops": [["q\ufffd", "p", "r", 2]],
    }  # fmt: skip
    assert UUID(found["id"]) == ID
    assert len(found["pairs"]) == 2
    assert of.size == len(b"the request") + len(b"the answer") + 4 + 1024
    assert of.row() is of.row()


def test_what_needs_no_column_has_none() -> None:
    own = facts(
        spared=[], pods=[], stops=[], workloads=["a", "b\0"], evictions=[], configuration=ConfigurationUsed(digest="c")
    )
    found = columns(entry(own))
    assert [found[name] for name in ("spared", "pods", "stops", "workloads", "pairs", "configuration_name")] == [
        None
    ] * 6
    assert entry(own).row().returns is None
    assert entry(facts()).row().returns is not None
    tried = entry(facts(), purpose="what-if")
    assert (columns(tried)["purpose"], columns(tried)["pairs"], tried.row().returns) == ("what-if", None, None)


def test_an_entry_without_what_it_would_be_decided_again_with() -> None:
    plainly = entry(facts())
    assert plainly.bare is plainly
    for more in ({"kept_state": "k"}, {"kept_configuration": "k"}, {"documents": [LogDocument("d", b"")]}):
        bare = entry(facts(), **more).bare
        assert (bare.kept_state, bare.kept_configuration, bare.documents, bare.id) == (None, None, (), ID)


HOUR = WITHIN


@pytest.mark.parametrize(
    ("first", "second", "closes"),
    [(0, 0, True), (HOUR - 1, HOUR, True), (0, 2 * HOUR - 1, True), (0, 2 * HOUR, False), (3 * HOUR, 2 * HOUR, True),
     (3 * HOUR, 2 * HOUR - 1, False)],
)  # fmt: skip
def test_a_circle_is_looked_for_in_the_hour_and_its_neighbours(first: int, second: int, closes: bool) -> None:
    one, back = facts(first, evictions=[("a", "b")]), facts(second, evictions=[("b", "a")])
    assert (not set(pairs_of(one) or ()).isdisjoint(returns_of(back))) is closes


def test_a_circle_is_one_of_the_same_two_under_the_same_rules() -> None:
    one = set(pairs_of(facts(evictions=[("a", "b")])) or ())
    for other in (
        facts(evictions=[("a", "b")]), facts(evictions=[("b", "c")]), facts(engine="kai", evictions=[("b", "a")]),
        facts(configuration=ConfigurationUsed(name="other", digest="c"), evictions=[("b", "a")]),
    ):  # fmt: skip
        assert one.isdisjoint(returns_of(other))
    assert len(returns_of(facts(evictions=[("b", "a"), ("b", "a")]))) == 3
    crowd = [("a", f"w{i}") for i in range(1001)]
    assert len(pairs_of(facts(evictions=crowd)) or ()) == 1000
    assert len(returns_of(facts(evictions=crowd))) == 3000


def test_an_identifier_has_its_instant_in_microseconds() -> None:
    """48 bits of milliseconds, the version, 12 bits of the part of one that has passed, the variant."""
    at = datetime(1970, 1, 1, 0, 0, 1, 500_750, tzinfo=UTC)
    assert earliest(at) == UUID(int=1500 << 80 | 7 << 76 | (750 * 4096 // 1000) << 64 | 2 << 62)


def victim(workload: str, task: str | None, message: str) -> Json:
    return {
        "workload": workload, "task": task, "queue": "q", "reason": "r", "message": message, "conditions": [],
        "freed": {},
    }  # fmt: skip


def eviction(workload: str, task: str | None, for_ask: str | None) -> Json:
    return {"workload": workload, "task": task, "queue": "q", "node": "n", "reason": "why", "for_ask": for_ask}


def row(answer: Json, identity: int = 7, **more: Any) -> RowMapping:
    own: Json = {
        "id": UUID(int=identity), "created_at": NOON, "now": 1_500_000, "engine": "kai", "release": "0.17",
        "configuration_name": "main",
        "configuration_revision": 2, "configuration_digest": "c", "actor": "mo", "asks": ["a", "b"], "workloads": None,
        "pods": None,
        "purpose": None,
        "answer": zstandard.ZstdCompressor().compress(json.dumps(answer).encode()),
    }  # fmt: skip
    return cast("RowMapping", own | more)


def decided(ask: str, outcome: str, *victims: Json, **more: Any) -> Json:
    return {"ask": ask, "outcome": outcome, "victims": list(victims), "conditions": []} | more


def test_what_the_log_tells_of_a_workload() -> None:
    """It is stopped for a, and for b alone, told once each; a task of it for nobody; two proposals spare it."""
    condition = {
        "type": "t", "status": "False", "reason": "Because", "message": "so",
        "last_transition_time": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    alone = {"evictions": [eviction("w", None, "b"), eviction("v", None, "b")], "placements": []}
    answer = {
        "decisions": [
            decided("a", "preempt", victim("w", None, "for a")),
            decided("b", "wait", plan=alone, conditions=[condition]),
        ],
        "plan": {
            "evictions": [eviction("w", None, "a"), eviction("w", "t", None), eviction("w", None, "a")],
            "placements": [],
        },
        "proposals": [
            {"node": n, "allowed": False, "refusals": [{"workload": who, "task": "t", "rule": "r", "detail": "d"}]}
            for n, who in (("n0", "w"), ("n1", "w"), ("n2", "v"))
        ],
    }  # fmt: skip
    (told,) = history("w", Mentions(2, 1, [row(answer)]), 1).items
    assert (told.decision, told.engine, told.actor, told.now.timestamp()) == (ID, "kai", "mo", 1.5)
    assert told.release == "0.17"
    assert (told.configuration.name, told.configuration.revision, told.configuration.digest) == ("main", 2, "c")
    assert [(s.task, s.node, s.reason, s.message, s.for_ask) for s in told.stopped] == [
        (None, "n", "why", "for a", "a"), ("t", "n", "why", None, None), (None, "n", "why", None, "b"),
    ]  # fmt: skip
    assert [(s.task, s.node, s.rule, s.message, s.for_ask) for s in told.spared] == [
        ("t", "n0", "r", "d", "a"), ("t", "n1", "r", "d", "a")
    ]  # fmt: skip
    assert told.asked == []
    (told,) = history("b", Mentions(0, 1, [row(answer)]), 5).items
    assert [(a.ask, a.outcome, a.reason, a.message) for a in told.asked] == [("b", "wait", "Because", "so")]
    (told,) = history("mine", Mentions(0, 1, [row(answer, workloads=["mine", "b"])]), 5).items
    assert [(a.ask, a.reason, a.message) for a in told.asked] == [("a", None, None)]
    (told,) = history("ns/p", Mentions(0, 1, [row(answer, pods=["ns/p", "b"])]), 5).items
    assert [a.ask for a in told.asked] == ["a", "b"]
    (told,) = history("ns/other", Mentions(0, 1, [row(answer, pods=["ns/p", "ns/other"])]), 5).items
    assert told.asked == []


def test_a_page_of_the_history_says_where_the_next_begins() -> None:
    empty: Json = {
        "decisions": [decided("a", "wait"), decided("b", "wait")],
        "plan": {"evictions": [], "placements": []},
    }
    rows = [row(empty, i) for i in (4, 3, 2, 1)]
    page = history("w", Mentions(4, 9, rows), 3)
    assert ([item.decision.int for item in page.items], page.stopped, page.asked) == ([4, 3, 2], 4, 9)
    assert page.next_cursor is not None
    assert decode_id(page.next_cursor) == UUID(int=2)
    assert history("w", Mentions(4, 9, rows), 4).next_cursor is None


class Choosy:
    """A store that takes no documents, and no row of an ask called poison."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.rows: list[Json] = []

    def save(self, rows: Sequence[Row]) -> None:
        found = [json.loads(row.columns) for row in rows]
        if any(row.documents for row in rows) or any(one["asks"] == ["poison"] for one in found):
            raise ValueError("refused")
        self.batches.append(len(rows))
        self.rows += found

    def prune(self) -> None:
        """Nothing is old."""


def written(*entries: Entry) -> tuple[Choosy, DecisionLog]:
    """A log that begins to write once all ``entries`` wait."""
    store = Choosy()
    log = DecisionLog(
        store, Metrics(), most_entries=1000, most_bytes=1 << 30,
        lost=lambda digests: store.rows.append({"lost": digests}),
    )  # fmt: skip
    for one in entries:
        assert log.offer(one)
    log.start()
    assert log.settle(60)
    log.stop()
    return store, log


def test_a_batch_has_so_many_entries_and_so_many_bytes() -> None:
    assert written(*(entry(facts()) for _ in range(501)))[0].batches == [250, 250, 1]
    third = Answered(body=b"x" * (3 << 20), facts=facts(), seconds={})
    large = [Entry(ID, NOON, b"", third) for _ in range(5)]
    assert written(*large)[0].batches == [2, 2, 1]
    alone = Answered(body=b"x" * (9 << 20), facts=facts(), seconds={})
    assert written(Entry(ID, NOON, b"", alone), entry(facts()))[0].batches == [1, 1]


def test_what_is_refused_with_its_documents_is_stored_without() -> None:
    documents = [LogDocument("d1", b"1"), LogDocument("d2", b"2")]
    told: list[str] = []
    poison = facts(asks=["poison"], workloads=["poison"])
    store, _ = written(
        entry(facts(), kept_state="k", documents=documents, ended=told.append), entry(facts(), ended=told.append),
        entry(poison, kept_state="k", ended=told.append), entry(poison, ended=told.append),
    )  # fmt: skip
    assert [row["kept_state"] for row in store.rows if "lost" not in row] == [None, None]
    assert [row["lost"] for row in store.rows if "lost" in row] == [{"d1", "d2", "k"}]
    assert told == ["", "", "refused", "refused"]


class Recorded:
    """Stands for a database: what is sent, and which statements fail."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.sent: list[Any] = []
        self._fails = fails

    def send(self, *statements: Any) -> None:
        if self.sent and self._fails is not None:
            raise self._fails
        self.sent.append(statements)


def test_circles_are_looked_for_once_their_decisions_are_stored() -> None:
    quiet, evicting = entry(facts(evictions=[])).row(), entry(facts()).row()
    for rows, sent in (([quiet], 1), ([quiet, evicting], 2)):
        database = Recorded()
        DatabaseStore(cast("Database", database), Settings()).save(rows)
        assert len(database.sent) == sent
        assert "insert" in str(database.sent[0]).lower()
    failing = Recorded(ValueError("no such column"))
    DatabaseStore(cast("Database", failing), Settings()).save([evicting])
    assert len(failing.sent) == 1, "that circles could not be looked for is no loss of a decision"
    with pytest.raises(Unavailable):
        DatabaseStore(cast("Database", Recorded(Unavailable("away"))), Settings()).save([evicting])
