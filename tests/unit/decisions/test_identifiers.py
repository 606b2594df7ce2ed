from datetime import UTC, datetime, timedelta

from app.base.identifiers import Identifiers, earliest

NOON = datetime(2026, 3, 2, 12, 0, 0, 123_456, tzinfo=UTC)


def test_ids_are_version_7_and_carry_their_instant() -> None:
    made = Identifiers().new(NOON)
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == int(NOON.timestamp() * 1000)


def test_ids_of_one_instant_keep_the_order_in_which_they_were_made() -> None:
    identifiers = Identifiers()
    made = [identifiers.new(NOON) for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_clock_that_goes_back_does_not_reorder() -> None:
    identifiers = Identifiers()
    assert identifiers.new(NOON) < identifiers.new(NOON - timedelta(hours=1))


def test_earliest_parts_before_from_after() -> None:
    before = Identifiers().new(NOON - timedelta(microseconds=1))
    after = Identifiers().new(NOON)
    assert before < earliest(NOON) <= after


def test_instants_before_1970_have_an_earliest_too() -> None:
    assert earliest(datetime(1, 1, 1, tzinfo=UTC)) == earliest(datetime(1970, 1, 1, tzinfo=UTC))
