"""The decision log's tables: what each filter finds, how pages follow one another, whom a workload's history is about,
what goes when it is old, and what is kept of snapshots for as long as a decision needs it."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from app.answering.answers import Answered
from app.base.errors import NotFound
from app.base.identifiers import earliest
from app.base.settings import Settings
from app.db.database import Database
from app.decisions import repository
from app.decisions import repository as kept
from app.decisions.log import DatabaseStore, Entry
from app.decisions.repository import Filters, New, kept_documents
from app.decisions.service import Decider
from app.metrics import Metrics
from app.solver.model.decision import ConfigurationUsed
from tests.support.bounds import Bounded
from tests.support.stored import facts

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DIGESTS = [bytes([i]) * 32 for i in range(30)]


def stored(database: Database, *rows: dict[str, Any]) -> list[UUID]:
    """Ids of decisions an hour apart, each with facts of its own; ``actor`` and ``kept_state`` are the entry's."""
    entries: list[Entry] = []
    for i, given in enumerate(rows):
        more = {name: given.pop(name) for name in ("actor", "kept_state", "kept_configuration") if name in given}
        plain = {"evictions": [], "spared": [], "asks": ["a"], "workloads": ["a"], "evicted": [], "queues": ["q"]}
        answered = Answered(body=b"answer", facts=facts(**(plain | given)), seconds={})
        entries.append(Entry(earliest(NOON + i * HOUR), NOON + i * HOUR, b"request", answered, **more))
    DatabaseStore(database, Settings()).save([entry.row() for entry in entries])
    return [entry.id for entry in entries]


def test_each_filter_finds_its_own_and_all_together_what_fits_all(database: Database) -> None:
    used = ConfigurationUsed(name="other", revision=7, digest="d")
    one, two, three = stored(
        database,
        {},
        {"engine": "kai", "outcomes": ["admit"], "configuration": used, "asks": ["b", "c\0"], "workloads": ["b"],
         "evicted": ["v"], "queues": ["r", "s"], "actor": "mo"},
        {"asks": ["b"]},
    )  # fmt: skip
    with database.session() as session:
        session.execute(sa.update(repository.decisions).where(repository.decisions.c.id == three).values(circle=True))
        for filters, expected in (
            (Filters(), [three, two, one]), (Filters(engine="kai"), [two]), (Filters(outcome="admit"), [two]),
            (Filters(outcome="wait"), [three, one]), (Filters(configuration="other"), [two]),
            (Filters(revision=7), [two]), (Filters(ask="b"), [three, two]), (Filters(ask="c\0"), [two]),
            (Filters(evicted="v"), [two]), (Filters(actor="mo"), [two]), (Filters(queue="s"), [two]),
            (Filters(circle=True), [three]), (Filters(circle=False), [two, one]),
            (Filters(since=NOON + HOUR), [three, two]), (Filters(until=NOON + HOUR), [one]),
            (Filters(since=NOON + HOUR, until=NOON + 2 * HOUR), [two]), (Filters(ask="b", engine="kueue"), [three]),
            (Filters(engine="\0"), []),
        ):  # fmt: skip
            assert [row["id"] for row in repository.page(session, filters, None, 9)] == expected, filters
            assert [row["id"] for row in repository.oldest(session, filters, None, 9)] == expected[::-1], filters
            assert repository.count(session, filters) == len(expected)
        found = repository.find(session, two)
        assert found is not None
        assert (found["evicted"], found["actor"], found["asks"]) == (["v"], "mo", ["b", "c�"])
        assert found["kept_bytes"] == 0
        assert repository.find(session, UUID(int=1)) is None


def test_pages_follow_one_another_either_way(database: Database) -> None:
    one, two, three = stored(database, {}, {}, {})
    with database.session() as session:

        def newest(before: UUID | None, limit: int) -> list[UUID]:
            return [row["id"] for row in repository.page(session, Filters(), before, limit)]

        def oldest(after: UUID | None, limit: int) -> list[UUID]:
            return [row["id"] for row in repository.oldest(session, Filters(), after, limit)]

        assert (newest(None, 2), newest(two, 2), newest(one, 2)) == ([three, two], [one], [])
        assert (oldest(None, 2), oldest(two, 2), oldest(three, 2)) == ([one, two], [three], [])
        (row, *_) = repository.page(session, Filters(), None, 1)
        assert {"request", "answer", "pairs", "evicted"}.isdisjoint(row)
        assert "request" in repository.oldest(session, Filters(), None, 1)[0]


def test_the_same_decision_is_stored_once(database: Database) -> None:
    stored(database, {})
    stored(database, {"asks": ["other"]}, {})
    with database.session() as session:
        assert [row["asks"] for row in repository.page(session, Filters(), None, 9)] == [["a"], ["a"]]


def test_a_workload_is_in_decisions_that_stop_it_spare_it_or_are_about_it(database: Database) -> None:
    stops, asks, spares, _, both = stored(
        database, {"evicted": ["w", "v"]}, {"asks": ["x"], "workloads": ["w"]}, {"spared": ["w"]}, {"evicted": ["v"]},
        {"asks": ["w"], "workloads": ["w"], "evicted": ["w"]},
    )  # fmt: skip
    with database.session() as session:
        every = repository.mentions(session, "w", None, 9)
        assert (every.stopped, every.asked) == (2, 2)
        assert [row["id"] for row in every.rows] == [both, spares, asks, stops]
        assert "answer" in every.rows[0]
        page = repository.mentions(session, "w", spares, 1)
        assert (page.stopped, page.asked, [row["id"] for row in page.rows]) == (2, 2, [asks])
        nobody = repository.mentions(session, "\0", None, 9)
        assert (nobody.stopped, nobody.asked, list(nobody.rows)) == (0, 0, [])


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        ({}, [0, 1, 2, 3]), ({"before": NOON + HOUR}, [1, 2, 3]), ({"keep": 1}, [3]), ({"keep": 3}, [1, 2, 3]),
        ({"sized": 2}, [2, 3]),
    ],
)  # fmt: skip
def test_what_is_past_retention_goes_oldest_first(database: Database, bounds: Any, left: list[int]) -> None:
    ids = stored(database, {}, {}, {}, {})
    with database.session() as session:
        size = len(repository.oldest(session, Filters(), None, 1)[0]["request"])
        size += len(repository.oldest(session, Filters(), None, 1)[0]["answer"])
        session.execute(sa.update(repository.decisions).values(kept_bytes=20))
        given = {"before": None, "keep": None, "keep_bytes": None} | bounds
        if count := given.pop("sized", 0):
            given["keep_bytes"] = count * (size + 20)
        assert repository.prune(session, **given) == 4 - len(left)
        assert [row["id"] for row in repository.oldest(session, Filters(), None, 9)] == [ids[i] for i in left]


def test_a_thousand_go_at_once(database: Database, bounded: Bounded) -> None:
    bounded(repository, PRUNED_AT_ONCE=2)
    ids = stored(database, {}, {}, {}, {})
    with database.session() as session:
        bounds: dict[str, Any] = {"before": None, "keep": 1, "keep_bytes": None}
        assert repository.prune(session, **bounds) == 2
        assert [row["id"] for row in repository.oldest(session, Filters(), None, 9)] == ids[2:]
        assert [repository.prune(session, **bounds) for _ in range(2)] == [1, 0]


def documents(session: Session) -> dict[bytes, tuple[int, int | None, int | None, int]]:
    """Id, base, root and depth by digest."""
    rows = session.execute(sa.select(kept_documents))
    return {bytes(row.digest): (row.id, row.base, row.root, row.depth) for row in rows}


def test_what_builds_on_something_has_its_root_and_what_builds_on_nothing_is_left(database: Database) -> None:
    whole, change, further, orphan = DIGESTS[:4]
    with database.session() as session:
        kept.save(
            session,
            [
                New(change, whole, b"1"),
                New(whole, None, b"0"),
                New(further, change, b"2"),
                New(orphan, DIGESTS[9], b""),
            ],
        )
        kept.save(session, [New(whole, None, b"again"), New(change, whole, b"again")])
        found = documents(session)
        root = found[whole][0]
        assert {digest: row[1:] for digest, row in found.items()} == {
            whole: (None, None, 0), change: (root, root, 1), further: (found[change][0], root, 2),
        }  # fmt: skip
        assert kept.missing(session, [whole, orphan, further]) == {orphan}
        assert kept.chain(session, found[further][0]) == [b"0", b"1", b"2"]
        assert kept.chain(session, root) == [b"0"]
        kept.save(session, [])


def test_what_is_kept_goes_with_its_root_once_nobody_needs_any_of_it(database: Database) -> None:
    """One root each that is needed itself, by a change, as a configuration, is young, has a young change; and two that
    nobody needs."""
    roots = DIGESTS[:7]
    changes = {root: bytes([100 + i]) * 32 for i, root in enumerate(roots)}
    with database.session() as session:
        kept.save(session, [New(root, None, b"") for root in roots])
        kept.save(session, [New(change, root, b"") for root, change in changes.items()])
        session.execute(sa.update(kept_documents).values(created_at=NOON - HOUR))
        young = sa.update(kept_documents).values(created_at=NOON)
        session.execute(young.where(kept_documents.c.digest.in_([roots[3], changes[roots[4]]])))
    stored(
        database, {"kept_state": roots[0].hex()}, {"kept_state": changes[roots[1]].hex()},
        {"kept_configuration": roots[2].hex()},
    )  # fmt: skip
    with database.session() as session:
        assert kept.prune_documents(session, NOON, repository.decisions) == 4
        assert documents(session).keys() == {*roots[:5], *(changes[root] for root in roots[:5])}
        assert kept.prune_documents(session, NOON, repository.decisions) == 0


def test_ten_roots_go_at_once(database: Database) -> None:
    with database.session() as session:
        kept.save(session, [New(digest, None, b"") for digest in DIGESTS[:12]])
        session.execute(sa.update(kept_documents).values(created_at=NOON - HOUR))
        assert [kept.prune_documents(session, NOON, repository.decisions) for _ in range(3)] == [10, 2, 0]


class Settled:
    """A log with nothing under way; ``waited``: for how long it was waited for."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def settle(self, seconds: float) -> bool:
        """Nothing waits."""
        self.waited.append(seconds)
        return True


def test_the_log_is_told_in_pages_each_of_which_says_where_the_next_begins(database: Database) -> None:
    ids = stored(database, {}, {"evicted": ["w"]}, {"spared": ["w"]})
    log: Any = Settled()
    decider = Decider(cast("Any", None), log=log, metrics=Metrics(), database=database)
    first = decider.listing(Filters(), None, 2)
    assert [one.id for one in first.items] == [ids[2], ids[1]]
    assert first.next_cursor is not None
    rest = decider.listing(Filters(), first.next_cursor, 2)
    assert ([one.id for one in rest.items], rest.next_cursor) == ([ids[0]], None)
    assert decider.listing(Filters(), None, 3).next_cursor is None
    assert decider.request(ids[0]) == b"request"
    assert log.waited == [1.0] * 4, "what this process has just answered is in it"
    for unknown in (decider.request, decider.record):
        with pytest.raises(NotFound):
            unknown(UUID(int=1))
