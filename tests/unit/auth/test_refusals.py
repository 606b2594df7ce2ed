"""Refusals are counted one by one and written down now and then."""

from app.auth.audit import Kind, Refusals
from tests.support.bounds import Bounded


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_are_written_then_one_a_minute_with_the_number_of_the_others() -> None:
    counted, clock = list[Kind](), Clock()
    refusals = Refusals(counted.append, clock)
    assert [refusals.add("anonymous", "unauthenticated") for _ in range(4000)] == [0] * 10 + [None] * 3990
    clock.now = 60
    assert refusals.add("anonymous", "unauthenticated") == 3990
    assert refusals.add("anonymous", "unauthenticated") is None
    assert counted == ["unauthenticated"] * 4002


def test_one_caller_does_not_hide_another() -> None:
    refusals = Refusals(lambda kind: None, Clock())
    for _ in range(100):
        refusals.add("anonymous", "unauthenticated")
    assert refusals.add("token:a", "forbidden") == 0
    assert refusals.add("anonymous", "forbidden") == 0


def test_a_day_of_refusals_is_a_bounded_number_of_lines() -> None:
    clock = Clock()
    refusals = Refusals(lambda kind: None, clock)
    written = 0
    for second in range(86_400):
        clock.now = float(second)
        written += refusals.add("anonymous", "unauthenticated") is not None
    assert written <= 10 + 24 * 60


def test_a_quiet_hour_allows_ten_lines_again_and_no_more() -> None:
    clock = Clock()
    refusals = Refusals(lambda kind: None, clock)
    written = [refusals.add("anonymous", "forbidden") for _ in range(11)]
    assert written[-2:] == [0, None]
    clock.now = 59.9
    assert refusals.add("anonymous", "forbidden") is None
    clock.now = 60.0
    assert refusals.add("anonymous", "forbidden") == 2
    clock.now = 3660.0
    assert [refusals.add("anonymous", "forbidden") for _ in range(11)] == [0] * 10 + [None]


def test_those_who_have_not_knocked_for_longest_are_forgotten(bounded: Bounded) -> None:
    bounded("app.auth.audit", MOST_KEPT=2)
    refusals = Refusals(lambda kind: None, Clock())

    def knock(who: str, times: int) -> int | None:
        return [refusals.add(who, "forbidden") for _ in range(times)][-1]

    assert [knock("a", 11), knock("b", 11), knock("a", 1)] == [None] * 3
    assert knock("c", 1) == 0
    assert knock("a", 1) is None
    assert knock("b", 1) == 0
