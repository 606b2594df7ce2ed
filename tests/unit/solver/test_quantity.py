import pytest

from app.solver.model.quantity import QuantityError, parse, scale_of, units


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
    ],
)
def test_a_quantity_is_an_exact_integer(value: str | float, scale: int, steps: int) -> None:
    assert parse(value, scale) == steps


@pytest.mark.parametrize(
    ("value", "scale"),
    [
        ("1.5.2", 1000), ("-1", 1), ("NaN", 1), ("1e400", 1), ("0.0001", 1000), ("1500m", 1), (float("nan"), 1),
        (float("inf"), 1), (1e300, 1), ("", 1), ("Gi", 1), (2**53 + 1, 1), ("9007199254740993", 1000), (True, 1),
        (0.5, 1), ("1 Gi", 1), ("1" * 65, 1), ("9223372036854775808m", 1000), ("١", 1),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(value: str | float, scale: int) -> None:
    with pytest.raises(QuantityError):
        parse(value, scale)


def test_thousandths_are_for_processors_and_graphics_cards() -> None:
    assert [scale_of(r) for r in ("cpu", "vcore", "gpu", "nvidia.com/gpu", "memory", "pods", "gpus")] == [1000] * 4 + [
        1
    ] * 3


def test_answers_show_whole_units() -> None:
    assert units(1500, "cpu") == 1.5
    assert units(2000, "cpu") == 2
    assert isinstance(units(2000, "cpu"), int)
    assert units(7, "memory") == 7
