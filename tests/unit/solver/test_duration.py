import pytest

from app.solver.model.duration import DurationError, parse, seconds


@pytest.mark.parametrize(
    ("value", "micros"),
    [("30s", 30_000_000), ("1h30m", 5_400_000_000), (5, 5_000_000), (0.25, 250_000), ("-5s", -5_000_000), ("0", 0),
     ("1.5ms", 1500), (".5s", 500_000), ("+2m", 120_000_000), ("1us", 1), ("1µs", 1)],
)  # fmt: skip
def test_a_duration_is_seconds_or_a_go_string(value: str | float, micros: int) -> None:
    assert parse(value) == micros


@pytest.mark.parametrize("value", ["", "5", "s", "1d", "1h 30m", "-", "+", float("nan"), 1e300, True, "9" * 30 + "h"])
def test_what_is_no_duration_is_refused(value: str | float) -> None:
    with pytest.raises(DurationError):
        parse(value)


def test_answers_show_seconds() -> None:
    assert seconds(1_500_000) == 1.5
    assert isinstance(seconds(2_000_000), int)
