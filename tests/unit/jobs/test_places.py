"""Who may have how many jobs that wait or run at once."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

import pytest

from app.auth.audit import acting, current_actor
from app.base.errors import TooManyRequests
from app.db.database import Database
from app.jobs import repository
from app.jobs.service import Jobs, New
from tests.support.instead import Instead


class Places:
    """Who has how many of a hundred."""

    def __init__(self, instead: Instead) -> None:
        self.had: Counter[str] = Counter()
        self.jobs = Jobs(cast("Database", self), 100)
        instead(repository, alive=lambda _: dict(self.had), add=self._added)
        instead("app.auth.audit", record=lambda *_: None)

    @contextmanager
    def session(self) -> Generator[None]:
        yield

    def ask(self) -> None:
        self.jobs.add("play", lambda _: New(b"", b""))

    def _added(self, _: Any, row: dict[str, Any]) -> None:
        assert row["actor"] == current_actor()
        self.had[row["actor"]] += 1


def test_no_caller_takes_the_place_of_all_others(instead: Instead) -> None:
    """Half of all places go to the first, half of what is left to the next, and so on; who has none gets the last."""
    places = Places(instead)
    for caller in "abcdefgh":
        with acting(f"token:{caller}"), suppress(TooManyRequests):
            while True:
                places.ask()
    assert list(places.had.values()) == [50, 25, 13, 6, 3, 2, 1]


def test_who_has_as_many_as_are_left_is_told_so(instead: Instead) -> None:
    places = Places(instead)
    places.had.update({"token:a": 30, "token:b": 45})
    with acting("token:a"), pytest.raises(TooManyRequests) as refused:
        places.ask()
    assert (refused.value.detail, refused.value.headers) == (
        "30 simulations of yours wait or run already, and only 25 of 100 places are left for others "
        "(ARBITER_SIMULATIONS_ALIVE)", {"Retry-After": "5"},
    )  # fmt: skip


def test_where_nobody_says_who_asks_all_places_are_for_all(instead: Instead) -> None:
    places = Places(instead)
    for _ in range(100):
        places.ask()
    with pytest.raises(TooManyRequests, match="100 simulations wait or run already"):
        places.ask()
