import pytest

from app.solver.model.base import QuantityError, parse_quantity, scale_of, units


@pytest.mark.parametrize(
    ("value", "scale", "steps"),
    [
        ("1500m", 1000, 1500),
        (2, 1000, 2000),
        (1.5, 1000, 1500),
        ("0.001", 1000, 1),
        (".5", 1000, 500),
        ("4Gi", 1, 4 * 2**30),
        ("1e3", 1, 1000),
        ("1P", 1, 10**15),
        ("+3", 1, 3),
        (2**53, 1, 2**53),
        ("9223372036854775000m", 1000, 9223372036854775000),
        ("2000m", 1, 2),
        ("0", 1, 0),
        ("-0", 1, 0),
        ("3000000000n", 1, 3),
        ("1000000n", 1000, 1),
        ("7000u", 1000, 7),
        ("1k", 1, 10**3),
        ("1M", 1, 10**6),
        ("1G", 1, 10**9),
        ("1T", 1, 10**12),
        ("0.001E", 1, 10**15),
        ("1Ki", 1, 2**10),
        ("1Mi", 1, 2**20),
        ("1Gi", 1, 2**30),
        ("1Ti", 1, 2**40),
        ("1Pi", 1, 2**50),
        ("0.0078125Ei", 1, 2**53),
        ("1E3", 1, 1000),
        ("1e-3", 1000, 1),
        ("0e30", 1, 0),
        ("0e-30", 1, 0),
        ("0" * 63 + "1", 1, 1),
        ("9007199254740992", 1000, 2**53 * 1000),
        ("9007199254740992000m", 1000, 2**53 * 1000),
        ("9223372036854775807m", 1000, 2**63 - 1),
        (float(2**53), 1, 2**53),
    ],
)
def test_a_quantity_is_an_exact_integer(value: str | float, scale: int, steps: int) -> None:
    assert parse_quantity(value, scale) == steps


@pytest.mark.parametrize(
    ("value", "scale"),
    [
        ("1.5.2", 1000), ("-1", 1), ("NaN", 1), ("1e400", 1), ("0.0001", 1000), ("1500m", 1), (float("nan"), 1),
        (float("inf"), 1), (1e300, 1), ("", 1), ("Gi", 1), (2**53 + 1, 1), ("9007199254740993", 1000), (True, 1),
        (0.5, 1), ("1 Gi", 1), ("1" * 65, 1), ("9223372036854775808m", 1000), ("١", 1),
        ("0e31", 1), ("0e-31", 1), ("0" * 64 + "1", 1), (-1, 1), (-0.5, 1000), (float("-inf"), 1), (False, 1),
        ("9007199254740993000m", 1), ("1e999", 1), ("1KI", 1), ("1500u", 1000), ("9007199254740992.001", 1000),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(value: str | float, scale: int) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(value, scale)


def test_thousandths_are_for_processors_and_graphics_cards() -> None:
    assert [scale_of(r) for r in ("cpu", "vcore", "gpu", "nvidia.com/gpu", "memory", "pods", "gpus")] == [1000] * 4 + [
        1
    ] * 3


def test_answers_show_whole_units() -> None:
    assert units(1500, "cpu") == 1.5
    assert units(2000, "cpu") == 2
    assert isinstance(units(2000, "cpu"), int)
    assert units(7, "memory") == 7
