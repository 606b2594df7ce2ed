"""Questions on their way to whoever answers them, and what of the address a listing is limited to."""

import asyncio
from concurrent.futures import Future
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from app.base.errors import Unavailable
from app.decisions import router
from app.decisions.repository import Filters
from app.decisions.service import Decided, Decider
from app.workers.dispatcher import Offload
from tests.support.instead import Instead

ID = UUID(int=7)
NOBODY = cast("Any", None)


class Wired:
    """Stands for what the app is wired with: ``asked`` has the class, what was called with what, and whether brief."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.stored: Future[None] | None = None

    def __call__(self, request: Any, kind: type[Any]) -> Any:
        dispatcher = SimpleNamespace(
            looked_into=lambda operation, body: (f"{operation.value} of {len(body)}", (None, None)), offload=self
        )
        decider = Decider(cast("Any", dispatcher), log=NOBODY, metrics=NOBODY, database=NOBODY)
        return {Decider: decider, Offload: self}[cast("Any", kind)]

    async def run(self, of: str, act: Any, *asked: Any, **how: Any) -> Any:
        self.asked.append((of, act.__name__, *asked, how.get("brief")))
        if act.__name__ == "decide":
            return Decided(b"decided", self.stored)
        return b"decided" if act.__name__ in ("ask", "request", "resolved") else {"of": act.__name__}


@pytest.fixture
def wired(instead: Instead) -> Wired:
    made = Wired()
    instead(router, service=made)
    return made


def test_small_bodies_are_brief_and_decisions_wait_for_the_log(wired: Wired, instead: Instead) -> None:
    small, large = b"x" * 8192, b"x" * 8193

    async def body(request: Any) -> bytes:
        return small

    instead(router, read_body=body)
    assert asyncio.run(router.decide(NOBODY)).body == b"decided"
    wired.stored = Future()
    wired.stored.set_exception(Unavailable("away"))
    with pytest.raises(Unavailable):
        asyncio.run(wired(NOBODY, Decider).answer(large, "what-if"))
    assert wired.asked == [
        ("decision of 8192", "decide", small, "decision", (None, None), True),
        ("decision of 8193", "decide", large, "what-if", (None, None), False),
    ]  # fmt: skip
    wired.asked.clear()
    for act in (router.shares, router.preemptibility, router.effective_settings):
        for sent in (small, large):
            assert asyncio.run(act(NOBODY, sent)).body == b"decided"
    assert [(of, what, operation.value, brief) for of, what, operation, _, _, brief in wired.asked] == [
        (f"{operation} of {size}", "ask", operation, size == 8192)
        for operation in ("shares", "preemptibility", "effective-settings") for size in (8192, 8193)
    ]  # fmt: skip


def test_what_is_read_from_the_log_and_decided_again_has_places_of_large_ones(wired: Wired) -> None:
    decider = wired(NOBODY, Decider)
    asyncio.run(router.get_decision_request(ID, NOBODY, decider))
    asyncio.run(router.get_decision_request(ID, NOBODY, decider, resolved=True))
    asyncio.run(router.replay_decision(ID, NOBODY, decider))
    asyncio.run(router.explain_decision(ID, NOBODY, decider))
    asyncio.run(router.explain_decision(ID, NOBODY, decider, level="summary"))
    assert wired.asked == [
        ("large", "request", ID, None), ("large", "resolved", ID, None), ("large", "replay", ID, None),
        ("large", "explain", ID, "full", None), ("large", "explain", ID, "summary", None),
    ]  # fmt: skip


def test_a_listing_is_limited_by_what_is_asked() -> None:
    about = router._about("a", "w", "mo", "q", True, "ns/p")  # pyright: ignore[reportPrivateUsage]
    assert about == Filters(ask="a", pod="ns/p", evicted="w", actor="mo", queue="q", circle=True)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for configuration, name, revision in ((None, None, None), ("main", "main", None), ("main@12", "main", 12)):
        found = router._filters(about, "kai", "wait", configuration, now, now)  # pyright: ignore[reportPrivateUsage]
        assert found == Filters(
            ask="a", pod="ns/p", evicted="w", actor="mo", queue="q", circle=True, engine="kai", outcome="wait",
            configuration=name, revision=revision, since=now, until=now,
        )  # fmt: skip
    assert router._filters(Filters()) == Filters()  # pyright: ignore[reportPrivateUsage]


def test_pages_of_the_log_are_asked_for_as_they_are_named() -> None:
    asked: list[Any] = []

    def noted(*given: Any) -> Any:
        asked.append(given)
        return {}

    decider = cast("Any", SimpleNamespace(listing=noted, record=noted, history=noted))
    router.list_decisions(decider, Filters(engine="kai"))
    router.list_decisions(decider, Filters(), "c", 3)
    router.get_decision(ID, decider)
    router.get_workload_history(decider, "w")
    router.get_workload_history(decider, "w", "c", 3)
    assert asked == [
        (Filters(engine="kai"), None, 50), (Filters(), "c", 3), (ID,), ("w", None, 50), ("w", "c", 3),
    ]  # fmt: skip
