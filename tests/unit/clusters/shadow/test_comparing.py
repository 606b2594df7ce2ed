"""How real and expected evictions are compared, in which words, what is kept of that, and for how long."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
import sqlalchemy as sa

from app.answering.operations import Operation
from app.base.errors import BadRequest, NotFound
from app.clusters import shadow as router
from app.clusters.repository import Filters, shadow
from app.clusters.schemas import ShadowRecord, ShadowVictim, compare
from app.clusters.shadow import EXAMPLE, Retention, Shadow
from app.db.database import Database
from app.solver.model.problems import InvalidInput, Problem
from app.workers.dispatcher import Dispatcher
from tests.support.instead import Instead

Json = dict[str, Any]
(REQUEST,) = EXAMPLE["requests"]
ASK = EXAMPLE["ask"]


def victim(workload: str, task: str | None = None, reason: str | None = None) -> ShadowVictim:
    return ShadowVictim(workload=workload, task=task, reason=reason)


def answer(*victims: ShadowVictim, ask: str = "a", outcome: str = "preempt") -> bytes:
    said = [{"workload": one.workload, "task": one.task, "reason": one.reason or "r"} for one in victims]
    other = {"ask": "other", "outcome": "wait", "victims": []}
    return msgspec.json.encode({"decisions": [other, {"ask": ask, "outcome": outcome, "victims": said}]})


def test_evictions_are_the_same_in_any_order_and_reasons_count_where_they_are_given() -> None:
    expected = answer(victim("w", "t", "r"), victim("v", None, "r"))
    found = compare("a", [victim("v", None, "r"), victim("w", "t")], expected)
    assert (found.detail, found.not_expected, found.not_observed) == ("", [], [])
    assert found.expected == [victim("w", "t", "r"), victim("v", None, "r")]
    assert compare("other", [], expected).detail == ""
    found = compare("a", [victim("v", None, "s"), victim("w")], expected)
    assert found.not_expected == [victim("v", None, "s"), victim("w")]
    assert found.not_observed == [victim("w", "t", "r"), victim("v", None, "r")]
    assert found.detail == (
        "Arbiter says preempt; evicted, though Arbiter would not: v (s), w; "
        "not evicted, though Arbiter would: w/t (r), v (r)"
    )
    assert compare("a", [], answer(victim("w"))).detail == (
        "Arbiter says preempt; not evicted, though Arbiter would: w (r)"
    )
    assert compare("a", [victim("w")], answer(outcome="wait")).detail == (
        "Arbiter says wait; evicted, though Arbiter would not: w"
    )


def test_what_differs_is_told_of_the_first_and_in_few_words() -> None:
    three = [victim(f"w{i}") for i in range(3)]
    begins = "Arbiter says admit; evicted, though Arbiter would not: "
    assert compare("a", three, answer(outcome="admit")).detail == f"{begins}w0, w1, w2"
    assert compare("a", [*three, victim("x"), victim("y")], answer(outcome="admit")).detail == (
        f"{begins}w0, w1, w2 and 2 more"
    )
    long = victim("w" * 130, "t" * 130, "r" * 70)
    told = f"{begins}{'w' * 120}/{'t' * 120} ({'r' * 60})"
    assert compare("a", [long], answer(outcome="admit")).detail == told
    assert compare("a", [victim("w" * 130)], answer(outcome="admit")).detail == f"{begins}{'w' * 120}"


class Solver:
    """Answers each question by the next of ``answers``; asked whether chance decided, it says of none."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[Any] = []

    def run(self, asked: Any, body: bytes) -> Any:
        """As a dispatcher does."""
        question = msgspec.json.decode(body)
        if question.get("explain") == "summary":
            return SimpleNamespace(body=UNLIKE)
        self.asked.append((asked.operation.value, question))
        found = self._answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(body=found)


AGREES = answer(victim("nobody"), ask=ASK)
OTHER = answer(victim("sweep-17"), ask=ASK)
UNLIKE = answer(ask=ASK, outcome="admit")


class Kept:
    """Comparisons in a database. ``counted``: engine and outcome of each."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.counted: list[tuple[str, ...]] = []

    def shadow(self, *answers: bytes | Exception, **bounds: float) -> Shadow:
        self.solver = Solver(*answers)
        retention = Retention(**{"days": 0, "entries": 0, "bytes": 0, **bounds})
        return Shadow(
            self.database, cast(Dispatcher, self.solver), retention, lambda *of: self.counted.append(cast(Any, of))
        )

    def report(self, *answers: bytes | Exception, bounds: Json | None = None, **fields: Any) -> ShadowRecord:
        body = msgspec.json.encode({**EXAMPLE, **fields})
        return self.shadow(*answers, **(bounds or {})).report(body)

    def ids(self, cursor: str | None = None, limit: int = 100, **filters: Any) -> list[UUID]:
        return [one.id for one in self.shadow().page(Filters(**filters), cursor, limit).items]


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


def test_a_comparison_is_kept_as_it_was_found(kept: Kept) -> None:
    before = datetime.now(UTC)
    made = kept.report(OTHER)
    assert before <= made.created_at <= datetime.now(UTC)
    assert (made.cluster, made.engine, made.ask) == ("production", "kueue", ASK)
    assert made.seen_at == datetime(2026, 11, 22, 12, tzinfo=UTC)
    assert (made.outcome, made.has_request, made.observed) == ("differs", True, [victim("nobody")])
    assert (made.expected, made.not_observed) == ([victim("sweep-17", None, "r")],) * 2
    assert made.not_expected == [victim("nobody")]
    assert kept.shadow().get(made.id) == made
    asked = msgspec.json.decode(kept.shadow().request(made.id))
    assert asked["asks"] == REQUEST["asks"]
    agreed = kept.report(AGREES)
    assert (agreed.outcome, agreed.detail, agreed.has_request) == ("agreed", "", False)
    assert kept.solver.asked[0][0] == "decision"
    unjudged = kept.report(requests=[], unjudged="why")
    assert (unjudged.outcome, unjudged.detail, unjudged.has_request) == ("unjudged", "why", False)
    assert (unjudged.expected, unjudged.not_expected, unjudged.not_observed) == ([], [], [])
    assert kept.counted == [
        ("kueue", "differs", "victims"),
        ("kueue", "agreed", "same"),
        ("kueue", "unjudged", "unknown"),
    ]
    with pytest.raises(NotFound, match=f"preemption {agreed.id} has no request: one is kept where Arbiter differs"):
        kept.shadow().request(agreed.id)
    nobody = UUID(int=7)
    for look in (kept.shadow().get, kept.shadow().request):
        with pytest.raises(NotFound, match=f"no preemption {nobody} was compared"):
            look(nobody)
    with kept.database.session() as session:
        rows = session.execute(sa.select(shadow)).mappings().all()
    assert all(row["bytes"] == len(row["record"]) + len(row["request"] or b"") for row in rows)


def test_the_likeliest_moment_tells_how_they_differ_and_any_may_agree(kept: Kept) -> None:
    moments = [{**REQUEST, "now": f"2026-11-22T12:00:0{i}Z"} for i in range(3)]
    made = kept.report(OTHER, AGREES, requests=moments)
    assert (made.outcome, len(kept.solver.asked)) == ("agreed", 2), "nobody asks on"
    made = kept.report(UNLIKE, OTHER, OTHER, requests=moments)
    assert made.detail.startswith("Arbiter says admit")
    assert [asked["now"] for _, asked in kept.solver.asked] == [one["now"] for one in moments]
    assert msgspec.json.decode(kept.shadow().request(made.id))["now"] == "2026-11-22T12:00:00Z"
    refused = InvalidInput([Problem(pointer="/asks/0", detail="no"), Problem(pointer="", detail="odd")])
    with pytest.raises(InvalidInput) as caught:
        kept.report(OTHER, refused, requests=moments)
    assert [(one.pointer, one.detail) for one in caught.value.problems] == [
        ("/requests/1/asks/0", "no"),
        ("/requests/1", "odd"),
    ]


def test_everything_that_is_not_whole_is_named_at_once(kept: Kept) -> None:
    wrong = {
        **REQUEST, "state": {"snapshot": "s"}, "configuration": None, "asks": "pending", "proposals": [{"node": "n"}],
    }  # fmt: skip
    with pytest.raises(InvalidInput) as caught:
        kept.report(requests=[REQUEST, wrong], unjudged="why")
    assert [(one.pointer, one.detail) for one in caught.value.problems] == [
        ("/requests", "give either requests or `unjudged`, and not both"),
        ("/requests/1/state/snapshot", "the state must be written out"),
        ("/requests/1/configuration", "the configuration must be written out"),
        ("/requests/1/proposals", "victims are compared, not proposals"),
        ("/requests/1/asks", f"there is no ask {ASK!r}"),
    ]
    with pytest.raises(InvalidInput) as caught:
        kept.report(ask="x" * 250)
    assert [one.detail for one in caught.value.problems] == [f"there is no ask {'x' * 200!r}"]
    two = {**REQUEST, "asks": [{**REQUEST["asks"][0], "id": "first"}, REQUEST["asks"][0]]}
    assert kept.report(AGREES, requests=[two]).outcome == "agreed"
    assert kept.counted == [("kueue", "agreed", "same")]


def test_pages_and_filters(kept: Kept) -> None:
    at = datetime(2026, 11, 22, 12, tzinfo=UTC)
    made = [
        kept.report(
            OTHER if i else AGREES, cluster="ab"[i % 2], seen_at=(at + timedelta(seconds=i)).isoformat()
        ).id
        for i in range(4)
    ]  # fmt: skip
    assert kept.ids() == made[::-1]
    page = kept.shadow().page(Filters(), None, 4)
    assert (len(page.items), page.next_cursor) == (4, None)
    page = kept.shadow().page(Filters(), None, 3)
    assert page.next_cursor is not None
    assert [one.id for one in page.items] + kept.ids(page.next_cursor) == made[::-1]
    assert kept.ids(cluster="a") == [made[2], made[0]]
    assert kept.ids(outcome="agreed") == [made[0]]
    assert kept.ids(engine="kai") == []
    assert kept.ids(ask="nobody") == []
    assert kept.ids(ask=ASK, engine="kueue", cluster="b", outcome="differs") == [made[3], made[1]]
    assert kept.ids(since=at + timedelta(seconds=2)) == [made[3], made[2]]
    assert kept.ids(until=at + timedelta(seconds=2)) == [made[1], made[0]]
    with pytest.raises(BadRequest):
        kept.ids("x")


def test_no_more_is_kept_than_the_bounds_say(kept: Kept) -> None:
    first = kept.report(AGREES).id
    assert len(kept.ids()) == 1
    second, third = (kept.report(AGREES, bounds={"entries": 2}).id for _ in range(2))
    assert kept.ids() == [third, second]
    assert first not in kept.ids()
    with kept.database.session() as session:
        size = session.execute(sa.select(shadow.c.bytes).where(shadow.c.id == third)).scalar_one()
    last = kept.report(AGREES, bounds={"bytes": 2 * size + 8}).id
    assert kept.ids() == [last, third]
    time.sleep(0.005)
    assert kept.report(AGREES, bounds={"days": 0.001 / 86400}).id == kept.ids()[0]
    assert len(kept.ids()) == 1
    assert len([kept.report(AGREES, bounds={"days": 1.0}) for _ in range(2)]) == 2
    assert len(kept.ids()) == 3


def test_names_that_no_database_can_hold_are_refused(kept: Kept) -> None:
    with pytest.raises(InvalidInput) as refused:
        kept.report(requests=[], unjudged="why", cluster="a\0b", ask="c\0d")
    assert {one.pointer for one in refused.value.problems} == {"/cluster", "/ask"}


def test_operations_on_comparisons(kept: Kept, instead: Instead) -> None:
    classes: list[str] = []

    class Services:
        def class_of(self, operation: Operation, body: bytes) -> str:
            return f"{operation.value} of {len(body)}"

        async def run(self, of: str, act: Any, body: bytes) -> Any:
            classes.append(of)
            return act(body)

    instead(router, service=lambda request, kind: Services())
    body = msgspec.json.encode(EXAMPLE)
    answer = asyncio.run(router.report_preemption(cast(Any, None), body, kept.shadow(OTHER)))
    assert (classes, answer.status_code) == ([f"decision of {len(body)}"], 200)
    made = msgspec.json.decode(bytes(answer.body), type=ShadowRecord)
    filters = router._filters(Filters(job="ml/train"), cluster="production", outcome="differs")  # pyright: ignore
    assert filters == Filters(job="ml/train", cluster="production", outcome="differs")
    filters = replace(filters, job=None)
    listed = msgspec.json.decode(bytes(router.list_preemptions(kept.shadow(), filters).body))
    assert [one["id"] for one in listed["items"]] == [str(made.id)]
    assert msgspec.json.decode(bytes(router.get_preemption(made.id, kept.shadow()).body), type=ShadowRecord) == made
    asked = router.get_preemption_request(made.id, kept.shadow())
    assert msgspec.json.decode(bytes(asked.body))["asks"] == REQUEST["asks"]
    for _ in range(50):
        kept.report(AGREES)
    assert len(msgspec.json.decode(bytes(router.list_preemptions(kept.shadow(), Filters()).body))["items"]) == 50
