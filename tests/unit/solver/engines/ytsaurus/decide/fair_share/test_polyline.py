"""Piecewise linear functions, to the last bit."""

from random import Random
from typing import Any

import numpy as np
import pytest

from app.solver.engines.ytsaurus.exact import operation_function
from app.solver.engines.ytsaurus.polyline import (
    Column,
    Polyline,
    composed,
    compressed,
    largest,
    polyline,
    rounded,
    smallest,
    total,
)


def through(*points: tuple[float, float]) -> Polyline:
    """A function with one column, superfluous vertices left out."""
    return polyline(np.array([x for x, _ in points], float), np.array([[y] for _, y in points], float))


def points(of: Polyline) -> list[tuple[float, float]]:
    return list(zip(of.x.tolist(), of.y[:, 0].tolist(), strict=True))


STEP = through((0, 0), (0.5, 0), (0.5, 1), (1, 1))


def test_superfluous_vertices_are_left_out() -> None:
    assert points(through((0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (2, 3), (3, 4), (4, 5))) == [
        (0, 0), (2, 0), (2, 3), (3, 4), (4, 5),
    ]  # fmt: skip
    assert points(through((1, 2), (1, 2))) == [(1, 2), (1, 2)]


def test_the_value_at_a_jump_is_its_smaller_end() -> None:
    assert [STEP.at(x)[0] for x in (0, 0.5, 0.5000001, 1)] == [0, 0, 1, 1]
    left, right = STEP.both(np.array([0.2, 0.5, 0.7]))
    assert (left[:, 0].tolist(), right[:, 0].tolist()) == ([0, 0, 1], [0, 1, 1])
    assert STEP.right(np.array([0.5, 1.0]))[:, 0].tolist() == [1, 1]


def test_ends_are_met_exactly() -> None:
    """0.1 + (0.7 - 0.1) * 1 is not 0.7 in doubles."""
    assert through((0, 0.1), (1, 0.7)).at(1.0)[0] == 0.7
    assert through((0, 0.1), (1, 0.7)).at(0.0)[0] == 0.1


def test_from_the_middle_on_values_count_back_from_the_end() -> None:
    """0.1 and a half of 0.7 - 0.1 are 0.4 in doubles, 0.7 without it 0.39999999999999997."""
    one = through((0, 0.1), (1, 0.7))
    assert one.at(0.5)[0] == 0.39999999999999997
    meets = through((0, 0.39999999999999997), (1, 0.39999999999999997))
    assert smallest(one, meets).x[1] >= 0.5, "with 0.4 it would be the higher one at the middle already"


def test_the_smaller_of_two_crosses_at_the_last_double_before_they_change_places() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        ends = np.sort(rng.random(4))
        begin, end = (rng.permutation(ends[:2]), rng.permutation(ends[2:]))
        one, other = (through((0, a), (1, b)) for a, b in zip(begin, end, strict=True))
        low, high = sorted((one, other), key=lambda of: float(of.y[0, 0]))
        inner = smallest(one, other).x[1:-1]
        assert len(inner) == (low.y[1, 0] > high.y[1, 0])
        for x in inner.tolist():
            after = float(np.nextafter(x, 1))
            assert low.at(x)[0] <= high.at(x)[0]
            assert low.at(after)[0] > high.at(after)[0]


def test_sums_add_in_the_order_of_the_functions() -> None:
    parts = [through((0, a), (1, a)) for a in (0.1, 0.2, 0.3)]
    assert total(parts).at(0.5)[0] == (0.1 + 0.2) + 0.3
    assert total(parts[::-1]).at(0.5)[0] == (0.3 + 0.2) + 0.1
    assert points(total([STEP, through((0, 0), (0.5, 1), (0.5, 2))])) == [(0, 0), (0.5, 1), (0.5, 3)]


def test_narrowed_keeps_the_jumps_at_both_ends() -> None:
    inverse = STEP.transposed()
    assert points(inverse.narrowed(0.0, 1.0)) == [(0, 0), (0, 0.5), (1, 0.5), (1, 1)]
    assert points(inverse.narrowed(0.0, 1.0).trimmed_left().trimmed()) == [(0, 0.5), (1, 0.5)]
    assert points(inverse.narrowed(0.0, 0.0).trimmed_left()) == [(0, 0.5), (0, 0.5)]


def test_the_smaller_of_two_crosses_where_they_meet() -> None:
    assert points(smallest(through((0, 0), (1, 1)), through((0, 0.5), (1, 0.5)))) == [(0, 0), (0.5, 0.5), (1, 0.5)]


def test_a_composition_jumps_where_either_does() -> None:
    assert points(composed(STEP, through((0, 0), (2, 1)))) == [(0, 0), (1, 0), (1, 1), (2, 1)]
    jumping = through((0, 0), (1, 0.25), (1, 0.75), (2, 1))
    assert points(composed(through((0, 0), (1, 4)), jumping)) == [(0, 0), (1, 1), (1, 3), (2, 4)]
    assert points(composed(STEP, jumping)) == [(0, 0), (1, 0), (1, 1), (2, 1)]


def test_compression_joins_what_is_nearly_straight() -> None:
    assert points(compressed(through((0, 0), (1, 1), (2, 2), (3, 4)))) == [(0, 0), (2, 2), (3, 4)]
    assert points(compressed(STEP)) == points(STEP)


@pytest.mark.parametrize(("bound", "found"), [(0.3, 0.3), (1.0, 1.0), (0.0, 0.0), (5e-324, 5e-324)])
def test_the_largest_double_is_found(bound: float, found: float) -> None:
    assert largest(lambda x: x <= bound, 0.0, 1.0) == found


def test_halves_are_rounded_away_from_zero() -> None:
    values: Any = rounded(np.array([0.5, 1.5, -0.5, 0.49999999999999994, 2.4]))
    assert values.tolist() == [1, 2, -1, 0, 2]


def test_an_operation_takes_its_share_in_as_few_segments_as_are_straight() -> None:
    """From nothing by way of its usage, an eighth, to a demand of a half is one line; what it takes of a suggestion of
    everything, where it wants twice the cluster, is what the end of that line comes to."""
    free = np.ones(1)
    assert points(operation_function(np.array([0.125]), np.array([0.5]), free)) == [(0, 0), (0.5, 0.5), (1, 0.5)]
    assert points(operation_function(np.array([0.125]), np.array([0.5]), np.array([0.3125]))) == [
        (0, 0), (0.3125, 0.3125), (1, 0.3125),
    ]  # fmt: skip
    assert points(operation_function(np.zeros(1), np.array([2.0]), free)) == [(0, 0), (1, 1)]
    assert points(operation_function(np.zeros(1), np.zeros(1), free)) == [(0, 0), (1, 0)]


def test_plain_numbers_give_the_same_doubles() -> None:
    """Inverses cut at a limit, and the smaller of two of them, both ways."""

    def rising() -> tuple[list[float], list[float]]:
        x, y = (sorted(rng.choice((rng.random(), 0.25, 0.5)) for _ in range(4)) for _ in range(2))
        return [0.0, *x, 1.0], [0.0, *y, 1.0]

    rng = Random(3)
    for _ in range(200):
        both: list[tuple[Column, Polyline]] = []
        for x, y in (rising(), rising()):
            limit = rng.choice((1.0, 0.5, rng.random(), y[2]))
            inverse = polyline(np.array(x), np.array([y]).T).transposed()
            cut = inverse.narrowed(0.0, limit).trimmed_left().shifted(-0.0).extended(1.0).trimmed()
            plain = Column(x, y)
            both.append((Column(plain.y, plain.x).up_to(limit), cut))
        (own, same), (other, like) = both
        for plain, of in ((own, same), (other, like), (own.or_less(other), smallest(same, like))):
            assert list(zip(plain.x, plain.y, strict=True)) == points(of)
