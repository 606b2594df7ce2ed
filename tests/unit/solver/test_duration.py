"""Durations in every dialect. Go's own table of time.ParseDuration stands for what all of them share."""

import pytest

from app.solver.model.base import GO, GO_WITH_DAYS, WIRE, Dialect, DurationError, nanoseconds, parse_duration, seconds

ALL = {"wire": WIRE, "go": GO, "go with days": GO_WITH_DAYS}
S, M, H = 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize("dialect", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0), ("+0", 0), ("-0", 0), ("5s", 5 * S), ("30s", 30 * S), ("1478s", 1478 * S), ("-5s", -5 * S),
        ("+5s", 5 * S), ("5.0s", 5 * S), ("5.6s", 5_600_000_000), ("5.s", 5 * S), (".5s", S // 2),
        ("1.004s", 1_004_000_000), ("100.00100s", 100_001_000_000), ("10ns", 10), ("11us", 11_000), ("12µs", 12_000),
        ("12μs", 12_000), ("13ms", 13_000_000), ("3h30m", 3 * H + 30 * M), ("1m30s1m", 150 * S),
        ("-2m3.4s", -123_400_000_000), ("0.3333333333333333333h", 20 * M), ("0.9223372036854775807s", 922_337_203),
        ("0.100000000000000000000h", 6 * M), ("0.0000000001s", 0), ("1.9ns1.9ns", 2),
        ("0.830103483285477580700h", 49 * M + 48 * S + 372_539_827),
    ],
)  # fmt: skip
def test_what_go_parses_every_dialect_does(text: str, found: int, dialect: Dialect) -> None:
    assert nanoseconds(text, dialect) == found


@pytest.mark.parametrize("dialect", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    "text",
    ["", " ", "-", "+", "3", "s", ".", ".s", "-.s", "1S", "1 s", "1s ", "30sec", "1m-30s", "--1s", "1_0s", "1e3s", "1y",
     "٣s", "9" * 30 + "h", "1s" * 129],
)  # fmt: skip
def test_what_go_refuses_every_dialect_does(text: str, dialect: Dialect) -> None:
    with pytest.raises(DurationError):
        nanoseconds(text, dialect)


def test_a_text_is_so_long_and_no_longer() -> None:
    assert nanoseconds("1s" * 128) == nanoseconds("-" + "1s" * 128) * -1 == 128 * S
    with pytest.raises(DurationError):
        nanoseconds("1s" * 128 + "1")


@pytest.mark.parametrize(
    ("text", "found"),
    # Of the digits of the first 18 fit into 64 bits: the others are left out.
    [
        ("0.999133036148110045772185182222w", 604_275_660_262_376),
        ("1w2d", 9 * 24 * H),
        ("1d1h", 25 * H),
        ("1.5d", 36 * H),
        ("-1d", -24 * H),
    ],
)
def test_days_and_weeks_are_units_of_one_dialect(text: str, found: int) -> None:
    assert nanoseconds(text, GO_WITH_DAYS) == found
    for other in (GO, WIRE):
        with pytest.raises(DurationError):
            nanoseconds(text, other)


@pytest.mark.parametrize("dialect", [GO, GO_WITH_DAYS])
def test_a_go_duration_is_an_int64(dialect: Dialect) -> None:
    assert nanoseconds("9223372036854775807ns", dialect) == 2**63 - 1
    assert nanoseconds("-9223372036854775808ns", dialect) == -(2**63)
    assert parse_duration("-9223372036854775808ns", dialect) == -(2**63 // 1000)
    for beyond in ("9223372036854775808ns", "-9223372036854775809ns", "2562048h"):
        with pytest.raises(DurationError, match="out of range: at most"):
            nanoseconds(beyond, dialect)
    with pytest.raises(DurationError, match="out of range"):
        parse_duration(9_223_372_037, dialect)


def test_the_wire_takes_as_many_seconds_from_a_text_as_from_a_number() -> None:
    assert parse_duration("2562048h") == 2562048 * 3600 * 10**6
    assert (
        parse_duration(10**12) == parse_duration("1000000000000s") == parse_duration("+999999999999.999s1ms") == 10**18
    )
    assert parse_duration(-(10**12)) == parse_duration("-1000000000000s") == -(10**18)
    for beyond in (10**12 + 1, -(10**12) - 1, "1000000000001s", "-1000000000000.1s", "-1000000000000s1ns"):
        with pytest.raises(DurationError, match="out of range"):
            parse_duration(beyond)


@pytest.mark.parametrize(
    ("value", "micros"),
    [(5, 5_000_000), (0.25, 250_000), (-0.5, -500_000), ("1.5ms", 1500), ("1us", 1), ("1999ns", 1), ("-1999ns", -1)],
)
def test_microseconds(value: str | float, micros: int) -> None:
    assert parse_duration(value) == micros


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, True, False])
def test_numbers_that_are_no_duration(value: float) -> None:
    with pytest.raises(DurationError):
        parse_duration(value)


def test_answers_show_seconds() -> None:
    assert (seconds(0), seconds(-500_000), seconds(10**6 + 1)) == (0, -0.5, 1.000001)
    assert seconds(1_500_000) == 1.5
    assert isinstance(seconds(2_000_000), int)
