"""The curves that all pools of a level share, against the same functions in fractions (``ytsaurus_functions``).

All numbers are small binary fractions, so that doubles know the places of jumps, limits and plateaus as exactly."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from app.solver.engines.ytsaurus.curves import Curves, PoolCurves, pool_curves
from app.solver.engines.ytsaurus.polyline import value_at
from app.solver.engines.ytsaurus.pool_curves import curve_of, operation_curves
from app.solver.engines.ytsaurus.situation import Demands, operation_values
from tests.properties.ytsaurus_functions import Child, Function, Row, largest_fit, operation, taken, together
from tests.support.profiles import Met

NEAR = 1e-9
PARTS = [Fraction(i, 8) for i in range(9)]
STEP = Fraction(1, 512)


def rows(of: list[Row]) -> np.ndarray:
    return np.array([[float(value) for value in row] for row in of])


def drawn_row(random: Random, width: int, most: int = 8) -> Row:
    return tuple(Fraction(random.randint(0, most), 8) for _ in range(width))


def offers(*functions: Function) -> list[Fraction]:
    """Grid, and a little before and after the places where something bends or jumps."""
    bends = {x + d for f in functions for x in f.places for d in (-STEP, 0, STEP)}
    return sorted(x for x in {*PARTS, *bends} if 0 <= x <= 1)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_operations_take_what_their_usage_and_their_demand_let_them(width: int) -> None:
    random = Random(width)
    usage = [drawn_row(random, width, 4) for _ in range(200)]
    demand = [tuple(x + random.choice((0, 0, 1, 2, 3, 4)) / Fraction(8) for x in row) for row in usage]
    limits = [tuple(random.choice((Fraction(random.randint(0, 8), 8), Fraction(1))) for _ in row) for row in usage]
    of = Demands(rows(usage), rows(demand), rows(limits))
    curves = operation_curves(of)
    assert (np.diff(curves.owner) >= 0).all()
    for i, row in enumerate(zip(usage, demand, limits, strict=True)):
        expected = operation(*row)
        own = curves.owner == i
        assert (np.diff(curves.position[own]) >= 0).all()
        assert (np.diff(curves.value[own], axis=0) >= 0).all()
        at = offers(expected)
        found = values_at(curves.position[own], curves.value[own], at)
        directly = operation_values(of.take(np.full(len(at), i)), np.array([float(x) for x in at]))
        for k, x in enumerate(at):
            assert found[k] == pytest.approx(rows([expected.at(x)])[0], abs=NEAR), (row, x)
            assert directly[k] == pytest.approx(rows([expected.at(x)])[0], abs=NEAR), (row, x)
        if (np.diff(curves.position[own]) > 0).all():  # else it jumps, and nobody asks for its value there
            bends = curve_of(rows(list(row)).tobytes())
            for k, x in enumerate(at):
                assert value_at(bends, min(float(x), bends[-1][0])) == pytest.approx(directly[k], abs=NEAR), (row, x)


def values_at(position: np.ndarray, value: np.ndarray, at: list[Fraction]) -> list[np.ndarray]:
    """The polyline through the vertices, at a jump its smaller end."""
    out: list[np.ndarray] = []
    for x in map(float, at):
        k = int(np.searchsorted(position, x - 1e-12))
        if k == len(position) or k == 0:
            out.append(value[max(k - 1, 0)])
        else:
            part = min((x - position[k - 1]) / (position[k] - position[k - 1]), 1.0)
            out.append(value[k - 1] + part * (value[k] - value[k - 1]))
    return out


def drawn_function(random: Random, width: int) -> Function:
    """Slopes, jumps and plateaus; it may begin with something, and end before 1."""
    count = random.randint(0, 4)
    places = sorted(random.sample(PARTS[1:], count))
    value = drawn_row(random, width, random.choice((0, 0, 2)))
    found = [(Fraction(0), value, value)]
    for place in places:
        value = grown(random, value, 0.4)
        follows = grown(random, value, 0.6)
        found.append((place, value, follows if place < 1 else value))
        value = found[-1][2]
    return Function(*(list(column) for column in zip(*found, strict=True)))


def grown(random: Random, row: Row, rarely: float) -> Row:
    if random.random() < rarely:
        return row
    return tuple(value + random.choice((0, 0, 1, 2)) / Fraction(16) for value in row)


def as_curves(functions: list[Function]) -> Curves:
    owner, position, value = [], [], []
    for i, function in enumerate(functions):
        for x, low, high in zip(function.places, function.values, function.behind, strict=True):
            for row in (low, high) if high != low else (low,):
                owner.append(i)
                position.append(float(x))
                value.append(row)
    return Curves(np.array(owner, np.int64), np.array(position), rows(value))


class Level:
    """Some pools and their children, both ways."""

    def __init__(self, random: Random) -> None:
        self.width = random.randint(1, 3)
        self.children: list[list[Child]] = []
        self.end: list[Fraction] = []
        for _ in range(random.randint(1, 4)):
            count = random.randint(0, 4)
            fifo = random.random() < 0.3
            functions = [drawn_function(random, self.width) for _ in range(count)]
            scales = [random.choice((Fraction(1), Fraction(1, 2), Fraction(1, 4), None)) for _ in functions]
            self.end.append(Fraction(max(count, 1) if fifo else 1))
            self.children.append(
                [
                    Child(function, Fraction(1), Fraction(k)) if fifo else Child(function, scales[k])
                    for k, function in enumerate(functions)
                ]
            )
        self.guarantee = [drawn_row(random, self.width, random.choice((0, 2, 8))) for _ in self.end]
        none = (Fraction(9),) * self.width
        self.limits = [drawn_row(random, self.width) if random.random() < 0.6 else none for _ in self.end]

    def curves(self) -> PoolCurves:
        """As the code has them; the children in another order than the pools."""
        every = [(p, child) for p, own in enumerate(self.children) for child in own][::-1]
        if not every:
            every = []
        scale = [np.inf if child.scale is None else float(child.scale) for _, child in every]
        functions = [child.function for _, child in every]
        empty = Curves(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, self.width)))
        return pool_curves(
            np.array([float(end) for end in self.end]),
            as_curves(functions) if functions else empty,
            np.array([p for p, _ in every], np.int64),
            np.array(scale), np.array([float(child.shift) for _, child in every]),
            rows(self.guarantee), rows(self.limits),
        )  # fmt: skip


def test_pools_take_what_their_children_take_within_guarantee_suggestion_and_limits(met: Met) -> None:
    for seed in range(150):
        level = Level(Random(seed))
        curves = level.curves()
        totals = [together(own, end, level.width) for own, end in zip(level.children, level.end, strict=True)]
        functions = [taken(*of) for of in zip(totals, level.guarantee, level.limits, strict=True)]
        for x in offers(*functions):
            fit, value = curves.at(np.full(len(totals), float(x)))
            for p, total in met(enumerate(totals)):
                if x == 0 and curves.at_zero[p]:
                    continue
                expected = largest_fit(total, level.guarantee[p], level.limits[p], x)
                assert value[p] == pytest.approx(rows([total.at(expected)])[0], abs=NEAR), (seed, p, x)
                assert fit[p] == pytest.approx(float(expected), abs=NEAR), (seed, p, x)
