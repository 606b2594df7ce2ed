"""Following the database, step by step: what is read when, which documents are fetched, and doing without it."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from app.base import Lru
from app.base.errors import Unavailable
from app.configurations import heads as module
from app.configurations import repository
from app.configurations import repository as configurations
from app.configurations.heads import Follower, Heads
from app.configurations.repository import HeadRow, Revision
from app.db.database import Database
from tests.support.bounds import Bounded
from tests.support.instead import Instead

Step = Callable[[], None]


def row(name: str, revision: int | None, change: int, label: str | None = None) -> HeadRow:
    return HeadRow(name, label, revision, change)


class Stored:
    """A database of these rows. ``steps``: what happens in each wait, after the last of which it is told to stop;
    ``sessions``: on which connection each reading was done; ``read``: past which change;
    ``fetched``: documents, in order."""

    def __init__(self, patch: pytest.MonkeyPatch, *rows: HeadRow) -> None:
        self.rows = list(rows)
        self.steps: list[Step] = []
        self.down = self.pool_down = False
        self.watched = 0
        self.waits: list[float] = []
        self.sessions: list[str] = []
        self.fetched: list[tuple[str, int]] = []
        self.read: list[int] = []
        self.horizon = 10**6
        self.heads = Heads(lambda: 0.0)
        self.documents: Lru[tuple[str, int], Revision] = Lru(100, 1000)
        self.follower = Follower(cast(Database, self), self.heads, self.documents, 3.5)
        self._stop: threading.Event = vars(self.follower)["_stop"]
        Bounded(patch)(module, AGAIN_SECONDS=0)
        Instead(patch)(repository, changed=self._changed, horizon=lambda _: self.horizon)
        Instead(patch)(configurations, numbered=self._at)

    def _changed(self, _: Any, after: int) -> list[HeadRow]:
        self.read.append(after)
        return [one for one in self.rows if one.change > after]

    def _at(self, _: Any, name: str, revision: int) -> Revision | None:
        self.fetched.append((name, revision))
        if revision == 404:
            return None
        return Revision(name, revision, "", cast(Any, None), "", None, None, b"x" * (500 if name == "large" else 10))

    @contextmanager
    def watching(self, channel: str) -> Generator["Stored"]:
        assert channel == configurations.CHANNEL
        self.watched += 1
        if self.down:
            self._stop_unless(self.steps)
            raise Unavailable("away\nfor now")
        yield self

    @contextmanager
    def session(self) -> Generator[None]:
        """Of the pool where the database is asked, and of the watch while that is open."""
        if self.pool_down:
            raise Unavailable("away")
        self.sessions.append("pool" if self.down else "watch")
        yield

    def wait(self, seconds: float, told_to_stop: socket.socket) -> None:
        self.waits.append(seconds)
        if self.steps:
            self.steps.pop(0)()
        else:
            self._stop.set()

    def _stop_unless(self, steps: list[Step]) -> None:
        if steps:
            steps.pop(0)()
        else:
            self._stop.set()

    def run(self, *steps: Step) -> None:
        """Follow through these steps, in this thread."""
        self.steps = list(steps)
        ours, theirs = socket.socketpair()
        with ours:
            vars(Follower)["_run"](self.follower, theirs)
        assert theirs.fileno() == -1


def test_everything_is_read_and_then_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Stored(monkeypatch, row("a", 1, 0), row("b", 2, 1), row("b", 1, 2, "stable"))
    found: list[Any] = []

    def another() -> None:
        found.append((of.heads.find("a"), of.heads.find("b"), of.heads.find("b", "stable"), of.heads.seen))
        of.rows += [row("a", 2, 5)]

    of.run(another, lambda: None)
    assert found == [(1, 2, 1, 2)]
    assert (of.heads.find("a"), of.heads.seen, of.heads.is_stale(1)) == (2, 5, False)
    assert of.fetched == [("b", 1), ("b", 2), ("a", 1), ("a", 2)], "the latest first, and each once"
    assert [("a", 1) in of.documents, ("a", 2) in of.documents] == [True, True]
    assert (set(of.waits), of.watched, set(of.sessions)) == ({3.5}, 1, {"watch"})


def test_a_database_that_was_set_back_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Stored(monkeypatch, row("a", 3, 7), row("b", 1, 9))

    def set_back() -> None:
        of.rows, of.horizon = [row("a", 2, 4)], 8

    def not_quite() -> None:
        assert (of.heads.find("a"), of.heads.find("b"), of.heads.seen) == (2, None, 4)
        of.horizon = 4

    of.run(set_back, not_quite)
    assert (of.heads.find("a"), of.heads.seen) == (2, 4)
    assert of.fetched == [("b", 1), ("a", 3), ("a", 2)]
    assert of.read == [-1, 9, -1, 4, 4], "and as it is, only what has changed"


def test_what_is_written_here_while_everything_is_read_again_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, instead: Instead
) -> None:
    of = Stored(monkeypatch, row("a", 1, 3))
    of.heads.expect()

    def written_meanwhile(session: Any, name: str, revision: int) -> None:
        del session, name, revision
        of.heads.learn([row("a", 2, 4)])

    instead(configurations, numbered=written_meanwhile)
    of.run()
    assert (of.heads.find("a"), of.heads.seen) == (2, 3), "the follower itself has not read it yet"


def test_where_nobody_tells_of_changes_the_pool_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Stored(monkeypatch, row("a", 1, 3))
    of.down = True

    def changed() -> None:
        of.rows = [row("a", 2, 4)]

    of.run(changed)
    assert (of.heads.find("a"), of.watched, set(of.sessions), of.heads.is_stale(1)) == (2, 2, {"pool"}, False)


def test_without_the_database_what_is_known_stays_and_is_stale_and_that_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = Stored(monkeypatch, row("a", 1, 3))

    def goes() -> None:
        of.down = of.pool_down = True
        raise Unavailable("gone\nsince now")

    def comes_back() -> None:
        of.down = of.pool_down = False

    with capture_logs() as said:
        of.run(goes, lambda: None, comes_back)
    assert [(one["log_level"], one["why"]) for one in said] == [("warning", "gone")]
    assert (of.heads.find("a"), of.heads.is_stale(1), of.watched) == (1, False, 4)
    with capture_logs() as said:
        stopped = Stored(monkeypatch, row("a", 1, 3))
        stopped.run(lambda: stopped.heads.follow([]))
        stopped.pool_down = True
        stopped.run(goes)
    assert said == [], "nobody needs it any more"


def test_documents_are_fetched_as_long_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Stored(monkeypatch, row("early", 1, 1), row("large", 1, 2), row("large", 2, 3), row("large", 3, 4),
                row("gone", None, 5), row("lost", 404, 6), row("late", 1, 7))  # fmt: skip
    of.run()
    assert of.fetched == [("late", 1), ("lost", 404), ("large", 3), ("large", 2)]
    kept = [(name, n) in of.documents for name, n in (("late", 1), ("large", 3), ("large", 2), ("early", 1))]
    assert kept == [True, True, False, False]
    assert of.heads.find("early") == 1

    def one() -> None:
        of.rows = [row("large", 4, 9)]

    of.fetched.clear()
    vars(of.follower)["_stop"].clear()
    of.rows = [row("late", 1, 7)]
    of.run(one)
    assert of.fetched == [("large", 4)]
    assert ("large", 4) in of.documents, "one alone takes the place of others"


class Waiting(Stored):
    """Waits until it is told to stop."""

    def wait(self, seconds: float, told_to_stop: socket.socket) -> None:
        self.waits.append(seconds)
        told_to_stop.settimeout(60)
        assert told_to_stop.recv(1) == b""
        threading.Event().wait(0.01)  # whoever does not wait for this thread goes on before it


def test_it_follows_from_its_start_and_stops_when_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Waiting(monkeypatch, row("a", 1, 3))
    of.heads.learn([row("b", 1, 4)])
    assert of.heads.find("b") is None, "nobody follows yet"
    of.follower.start()
    of.heads.learn([row("b", 1, 4)])
    assert of.heads.find("b") == 1
    assert [one.daemon for one in threading.enumerate() if one.name == "follower"] == [True]
    of.follower.close()
    assert [one for one in threading.enumerate() if one.name == "follower"] == []
    Stored(monkeypatch).follower.close()
