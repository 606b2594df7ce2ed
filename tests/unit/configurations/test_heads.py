"""What names mean, whoever says so first."""

import pytest

from app.configurations.heads import Heads
from app.configurations.repository import HeadRow


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heads(clock: Clock) -> Heads:
    made = Heads(clock)
    made.expect()
    return made


def row(revision: int | None, change: int, name: str = "prod", label: str | None = None) -> HeadRow:
    return HeadRow(name, label, revision, change)


def read(heads: Heads, *rows: HeadRow) -> None:
    heads.start_over()
    heads.replace(rows)


def test_names_and_labels(heads: Heads) -> None:
    read(heads, row(3, 1), row(2, 2, label="stable"), row(1, 3, name="other"))
    assert (heads.find("prod"), heads.find("prod", "stable"), heads.find("other")) == (3, 2, 1)
    assert (heads.find("nothing"), heads.find("other", "stable")) == (None, None)
    assert (heads.seen, len(heads)) == (3, 2)


def test_the_later_change_wins_in_whatever_order(heads: Heads) -> None:
    read(heads, row(3, 5))
    heads.learn([row(5, 9)])
    heads.follow([row(4, 7)])
    assert (heads.find("prod"), heads.seen) == (5, 7)
    heads.follow([row(5, 9)])
    assert (heads.find("prod"), heads.seen) == (5, 9)


def test_a_number_that_is_given_out_again_is_of_what_was_written_last(heads: Heads) -> None:
    """By a database that was set back, before anybody has noticed."""
    read(heads, row(3, 50))
    heads.learn([row(2, 50)])
    assert heads.find("prod") == 2


def test_what_was_deleted_does_not_come_back_from_an_older_reading(heads: Heads) -> None:
    read(heads, row(3, 5), row(3, 6, label="stable"))
    heads.learn([row(None, 8), row(None, 9, label="stable")])
    heads.follow([row(3, 7, label="stable")])
    assert (heads.find("prod"), heads.find("prod", "stable"), len(heads)) == (None, None, 0)


def test_a_write_while_everything_is_read_again_is_not_lost(heads: Heads) -> None:
    read(heads, row(3, 5))
    heads.start_over()
    heads.learn([row(4, 6)])
    heads.replace([row(3, 5)])
    assert (heads.find("prod"), heads.seen) == (4, 5)


def test_reading_everything_forgets_what_is_no_more(heads: Heads) -> None:
    read(heads, row(3, 50), row(1, 60, name="other"))
    read(heads, row(2, 40))
    assert (heads.find("prod"), heads.find("other"), heads.seen) == (2, None, 40)


def test_writes_are_known_before_the_first_reading(heads: Heads) -> None:
    heads.learn([row(1, 1)])
    assert (heads.find("prod"), heads.is_known) == (1, False)


def test_where_nobody_follows_nothing_is_kept(clock: Clock) -> None:
    heads = Heads(clock)
    heads.learn([row(1, 1)])
    assert heads.find("prod") is None


def test_staleness(heads: Heads, clock: Clock) -> None:
    assert heads.is_stale(5)
    assert (heads.age, heads.seen, heads.lost()) == (float("inf"), 0, False)
    read(heads, row(1, 1))
    assert not heads.is_stale(5)
    clock.now += 5
    assert (heads.is_stale(5), heads.age) == (False, 5)
    clock.now += 1
    assert (heads.is_stale(5), heads.age) == (True, 6)
    heads.follow([])
    assert not heads.is_stale(5)
    assert (heads.lost(), heads.lost()) == (True, False)
    assert heads.is_stale(5)
    assert heads.find("prod") == 1
