"""Piecewise linear functions against the plain reading of their vertices: one value before and one after each place."""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

from app.solver.engines.ytsaurus import polyline as lines
from app.solver.engines.ytsaurus.exact import by_fit_factor
from app.solver.engines.ytsaurus.operations import Floats
from app.solver.engines.ytsaurus.polyline import (
    COMPRESSION,
    EPSILON,
    Polyline,
    composed,
    compressed,
    polyline,
    sampled,
    smallest,
    total,
)

Row = list[float]
NEAR = 1e-12


def seeded(test: Callable[[Random], None]) -> Callable[[], None]:
    """A test of many draws."""

    def run() -> None:
        for seed in range(40):
            test(Random(seed))

    return run


def drawn(random: Random, begin: float = 0.0, end: float | None = None, columns: int = 2) -> Polyline:
    """Places and values are eighths: slopes, jumps and plateaus, at the ends too."""
    x, y = [begin], [[random.randint(0, 3) / 8 for _ in range(columns)]]
    end = begin + random.randint(1, 8) / 8 if end is None else end
    while True:
        kind = random.random()
        if kind < 0.3 and (len(x) < 2 or x[-1] != x[-2]):
            x.append(x[-1])
        elif x[-1] == end:
            break
        else:
            x.append(min(end, x[-1] + random.randint(1, 3) / 8))
        flat = random.random() < 0.3 and x[-1] != x[-2]
        y.append([value if flat else value + random.randint(0, 3) / 8 for value in y[-1]])
    if len(x) < 2:
        return drawn(random, begin, end, columns)
    return polyline(np.array(x), np.array(y))


def before(of: Polyline, x: float) -> Row:
    """What the function comes to, up to ``x``: the first vertex there, or the way to the next."""
    places = of.x.tolist()
    k = next(i for i, place in enumerate(places) if place >= x)
    return of.y[k].tolist() if places[k] == x else on_the_way(of, k - 1, x)


def after(of: Polyline, x: float) -> Row:
    """What it goes on from, behind ``x``: the last vertex there."""
    places = of.x.tolist()
    k = next(i for i in range(len(places) - 1, -1, -1) if places[i] <= x)
    return of.y[k].tolist() if places[k] == x else on_the_way(of, k, x)


def on_the_way(of: Polyline, k: int, x: float) -> Row:
    part = (x - of.x[k]) / (of.x[k + 1] - of.x[k])
    return [float(low + part * (high - low)) for low, high in zip(of.y[k], of.y[k + 1], strict=True)]


def places(begin: float, end: float, step: float = 1 / 16) -> list[float]:
    return [begin + i * step for i in range(int((end - begin) / step) + 1)]


def is_lean(of: Polyline) -> None:
    """No vertex could be left out, but for the two that a function has at least."""
    assert len(of.x) == len(of.y) >= 2
    assert (np.diff(of.x) >= 0).all()
    for i in range(len(of.x) - 1 if len(of.x) > 2 else 0):
        assert of.x[i] != of.x[i + 1] or (of.y[i] != of.y[i + 1]).any()
    for i in range(1, len(of.x) - 1):
        assert not of.x[i - 1] == of.x[i] == of.x[i + 1]
        assert not ((of.y[i - 1] == of.y[i]) & (of.y[i] == of.y[i + 1])).all()


def same(found: Polyline, at: list[float], left: Callable[[float], Row], right: Callable[[float], Row]) -> None:
    """``found`` has these values before and after each place, and ends with the first and the last of them."""
    is_lean(found)
    assert (found.x[0], found.end) == (at[0], at[-1])
    for x in at:
        near(before(found, x), left(x))
        near(after(found, x), right(x))


def near(found: Sequence[float] | Floats, expected: Sequence[float] | Floats, most: float = NEAR) -> None:
    assert np.abs(np.subtract(found, expected)).max() <= most


@seeded
def test_vertices_that_say_nothing_are_left_out(random: Random) -> None:
    of = drawn(random)
    is_lean(of)
    rows = [i for i in range(len(of.x)) for _ in range(random.randint(1, 3))]
    again = polyline(of.x[rows], of.y[rows])
    assert (again.x.tolist(), again.y.tolist()) == (of.x.tolist(), of.y.tolist())
    one = polyline(np.zeros(4), np.ones((4, 2)))
    assert (one.x.tolist(), one.y.tolist()) == ([0.0, 0.0], [[1.0, 1.0]] * 2)


@seeded
def test_values_on_both_sides_of_every_place(random: Random) -> None:
    of = drawn(random, begin=random.choice((0, 0.25)))
    at = places(float(of.x[0]), of.end)
    left, right = of.both(np.array(at))
    for i, x in enumerate(at):
        near(of.at(x), before(of, x))
        near(left[i], before(of, x))
        near(right[i], after(of, x))
    assert of.left(np.array(at)).tolist() == left.tolist()
    assert of.right(np.array(at)).tolist() == right.tolist()


@seeded
def test_scaled_shifted_extended_and_one_column(random: Random) -> None:
    of = drawn(random)
    at = places(0, of.end)
    for scale in (0.5, 2.0, 4.0):
        same(of.scaled(scale), [x / scale for x in at], lambda x, s=scale: before(of, x * s),
             lambda x, s=scale: after(of, x * s))  # fmt: skip
    same(of.shifted(0.375), [x + 0.375 for x in at], lambda x: before(of, x - 0.375), lambda x: after(of, x - 0.375))
    longer = of.extended(1.5)
    same(longer, places(0, 1.5), lambda x: before(of, x) if x <= of.end else of.y[-1].tolist(),
         lambda x: after(of, x) if x <= of.end else of.y[-1].tolist())  # fmt: skip
    assert of.extended(of.end) is of
    for r in (0, 1):
        same(of.column(r), at, lambda x, r=r: before(of, x)[r : r + 1], lambda x, r=r: after(of, x)[r : r + 1])


@seeded
def test_jumps_at_the_ends_are_taken_or_never_taken(random: Random) -> None:
    of = drawn(random)
    at = places(0, of.end)
    same(of.trimmed_left(), at, lambda x: before(of, x) if x else after(of, x), lambda x: after(of, x))
    same(of.trimmed(), at, lambda x: before(of, x), lambda x: after(of, x) if x < of.end else before(of, x))
    one_place = Polyline(np.array([0.5, 0.5]), np.array([[0.0, 1.0], [0.0, 2.0]]))
    assert one_place.trimmed_left().y.tolist() == [[0.0, 2.0]] * 2
    assert one_place.trimmed().y.tolist() == [[0.0, 1.0]] * 2


@seeded
def test_narrowed_to_a_part_of_it(random: Random) -> None:
    of = drawn(random)
    at = places(0, of.end, 1 / 8)
    low, high = sorted(random.choices(at, k=2))
    part = of.narrowed(low, high)
    assert (part.x[0], part.end) == (low, high)
    for x in places(low, high):
        near(before(part, x), before(of, x))
        near(after(part, x), after(of, x))


@seeded
def test_sums_and_the_smaller_where_all_are_defined(random: Random) -> None:
    all_of = [drawn(random, begin=random.choice((0, 0, 0.125))) for _ in range(3)]
    begin, end = max(f.x[0] for f in all_of), min(f.end for f in all_of)
    if begin < end:
        at = places(begin, end)
        left = lambda x: [sum(one) for one in zip(*(before(f, x) for f in all_of), strict=True)]  # noqa: E731
        right = lambda x: [sum(one) for one in zip(*(after(f, x) for f in all_of), strict=True)]  # noqa: E731
        same(total(all_of), at, left, right)
        near(sampled(np.array(at), all_of).at(end), left(end))
    one, other = (f.column(0) for f in all_of[:2])
    begin, end = max(one.x[0], other.x[0]), min(one.end, other.end)
    if begin < end:
        same(smallest(one, other), places(begin, end), lambda x: min(before(one, x), before(other, x)),
             lambda x: min(after(one, x), after(other, x)))  # fmt: skip


@seeded
def test_a_function_of_a_function(random: Random) -> None:
    """Both are continuous from below, and so is what they make: at every place one of the other."""
    inner = drawn(random, columns=1)
    outer = drawn(random, float(inner.y[0, 0]), float(inner.y[-1, 0]) + 0.125)
    found = composed(outer, inner)
    is_lean(found)
    assert (found.x[0], found.end) == (inner.x[0], inner.end)
    for x in places(0, inner.end, 1 / 32):
        near(found.at(x), before(outer, before(inner, x)[0]), 1e-9)
    # A place may be known to the last bit only; on both sides of it there is no doubt.
    for x in [x + little for x in found.x.tolist() for little in (-1e-7, 1e-7) if 0 <= x + little <= inner.end]:
        near(found.at(x), before(outer, before(inner, x)[0]), 1e-9)
    assert found.right(np.array([found.end]))[0].tolist() == found.at(found.end).tolist(), "never taken"


@seeded
def test_segment_by_segment_and_all_at_once_come_to_the_same_bits(random: Random) -> None:
    of = drawn(random)
    of = Polyline(of.x * random.random(), of.y * random.random())
    begin, end = float(of.x[0]), of.end
    between = np.array([random.uniform(begin, end) for _ in range(9)])
    x = np.sort(np.concatenate((of.x, between)))
    few = of.both(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_FEW", 0)
        many = of.both(x)
    assert [side.tobytes() for side in few] == [side.tobytes() for side in many]
    assert [of.at(place).tobytes() for place in x.tolist()] == [row.tobytes() for row in of.left(x)]


@seeded
def test_what_is_straight_is_one_segment_again(random: Random) -> None:
    of = drawn(random)
    corners = compressed(of)
    for i in range(1, len(corners.x) - 1):
        widths = corners.x[i] - corners.x[i - 1], corners.x[i + 1] - corners.x[i]
        rises = corners.y[i] - corners.y[i - 1], corners.y[i + 1] - corners.y[i]
        assert (widths[0] * rises[1] != widths[1] * rises[0]).any(), "a vertex that goes straight on"
    same(corners, places(0, of.end), lambda x: before(of, x), lambda x: after(of, x))
    x, y = corners.x.tolist(), corners.y.tolist()
    for i in range(len(x) - 2, -1, -1):
        for part in (0.75, 0.5, 0.25):
            if x[i] < x[i + 1] and random.random() < 0.7:
                x.insert(i + 1, x[i] + part * (x[i + 1] - x[i]))
                y.insert(i + 1, [a + part * (b - a) for a, b in zip(y[i], y[i + 1], strict=True)])
    again = compressed(Polyline(np.array(x), np.array(y)))
    assert again.x.tolist() == corners.x.tolist()


@pytest.mark.parametrize(("off", "kept"), [(0.4, False), (-0.4, False), (4.0, True), (-4.0, True)])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_vertex_may_stray_a_little(off: float, kept: bool, column: int, place: int) -> None:
    """Small values, of which doubles know the last bits well enough."""
    x, y = np.arange(5.0), np.stack((np.arange(5.0), 2 * np.arange(5.0)), axis=1) / 64
    y[place, column] += off * COMPRESSION
    found = compressed(Polyline(x, y))
    assert (len(found.x) > 2) is kept
    assert np.abs(found.left(x) - y).max() <= 2 * COMPRESSION


def children(random: Random) -> list[Polyline]:
    """Functions over [0, 1] that begin with nothing and don't jump at the end, as elements' are."""
    found: list[Polyline] = []
    for _ in range(random.randint(1, 4)):
        one = drawn(random, 0.0, 1.0)
        found.append(polyline(one.x, one.y - one.y[0]).trimmed())
    return found


@seeded
def test_children_of_a_fifo_pool_step_one_after_another(random: Random) -> None:
    functions = children(random)
    pool = by_fit_factor(functions, fifo=True)
    for fit in places(0, len(functions)):
        parts = pool.parts(fit)
        for i, function in enumerate(functions):
            near(parts[i], before(function, min(max(fit - i, 0.0), 1.0)))
        near(pool.whole.at(fit), parts.sum(axis=0))


def steps(functions: list[Polyline]) -> list[tuple[float, int]]:
    """Places where functions bend, and whose turn it is: at one place the children in order."""
    return sorted((x, i) for i, function in enumerate(functions) for x in set(function.x.tolist()))


@seeded
def test_children_of_a_pool_step_in_turn_where_they_bend_together(random: Random) -> None:
    functions = children(random)
    pool = by_fit_factor(functions, fifo=False)
    turns = steps(functions)
    assert pool.whole.end == len(turns) - 1
    for step, (x, turn) in enumerate(turns):
        ready = [after(f, x) if i < turn else before(f, x) for i, f in enumerate(functions)]
        taken = [after(f, x) if i <= turn else before(f, x) for i, f in enumerate(functions)]
        near(pool.parts(float(step)), np.array(ready))
        near(before(pool.whole, step), np.sum(ready, axis=0))
        near(after(pool.whole, step), np.sum(taken, axis=0))
        if step + 1 < len(turns):
            follows, whose = turns[step + 1]
            coming = [after(f, follows) if i < whose else before(f, follows) for i, f in enumerate(functions)]
            for part in (0.25, 0.75):
                expected = np.array(taken) + part * (np.array(coming) - np.array(taken))
                near(pool.parts(step + part), expected)


@seeded
def test_children_get_all_that_fits_into_the_share(random: Random) -> None:
    functions, fifo = children(random), random.random() < 0.5
    pool = by_fit_factor(functions, fifo=fifo)
    most = pool.whole.y[-1]
    share = np.array([random.choice((0.0, 0.25, 0.5, 1.0, 1.5)) for _ in most]) * most
    fits = [fit for fit in places(0, pool.whole.end, 1 / 4) if (np.array(before(pool.whole, fit)) <= share).all()]
    best = before(pool.whole, max(fits, default=0.0))
    for gap, more in ((False, NEAR), (True, 2 * EPSILON)):
        parts = np.array(pool.divided(share, gap=gap)).sum(axis=0)
        assert (parts <= share + more).all()
        assert (parts >= np.array(best) - NEAR).all()


@pytest.mark.parametrize("short", [0.0, 5e-10, -5e-10, 3e-9])
def test_a_child_that_misses_its_share_by_rounding_steps_only_where_the_gap_is_closed(short: float) -> None:
    """Two that step by 3/8 of the cluster each, and a share that is nearly both of them."""
    step = polyline(np.array([0.0, 0.25, 0.25, 1.0]), np.array([[0.0], [0.0], [0.375], [0.375]]))
    pool = by_fit_factor([step, step], fifo=False)
    for gap in (False, True):
        second = 0.375 if short <= (EPSILON if gap else 0) else 0.0
        near(np.array(pool.divided(np.array([0.75 - short]), gap=gap)).ravel(), [0.375, second])
