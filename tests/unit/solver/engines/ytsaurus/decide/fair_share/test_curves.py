"""Curves of many pools in arrays: what each function does at its edges. tests/properties has them on random levels."""

from collections.abc import Sequence

import numpy as np
import pytest

from app.solver.engines.ytsaurus import curves as curve_sums
from app.solver.engines.ytsaurus.curves import (
    EDGE,
    Curves,
    PoolCurves,
    Sum,
    edges,
    pool_curves,
    summed,
    with_kinks,
    within,
)
from app.solver.engines.ytsaurus.pool_curves import curve_of, operation_curves
from app.solver.engines.ytsaurus.situation import Demands, operation_values
from tests.support.bounds import Bounded

LITTLE = 0.5 * EDGE
MORE = 2 * EDGE
Point = tuple[float, ...]
"""A place, and the value there by resource."""


def curves(*children: Sequence[Point]) -> Curves:
    owner = np.array([i for i, points in enumerate(children) for _ in points], np.int64)
    points = np.array([point for points in children for point in points], float)
    return Curves(owner, points[:, 0], points[:, 1:])


def added(
    *children: Sequence[Point], parent: Sequence[int] | None = None, end: Sequence[float] = (1.0,),
    scale: Sequence[float] | None = None, shift: Sequence[float] | None = None,
) -> Sum:  # fmt: skip
    """The sum of children that are all in pool 0 and follow it as it is, unless told otherwise."""
    count = len(children)
    of = curves(*children)
    start = np.zeros((len(end), of.value.shape[1]))
    return summed(
        np.array(end), of, np.array(parent or [0] * count), np.array(scale or [1.0] * count),
        np.array(shift or [0.0] * count), start,
    )  # fmt: skip


def points(of: Sum, pool: int = 0) -> list[Point]:
    own = of.pool == pool
    return [(fit, *value) for fit, value in zip(of.fit[own].tolist(), of.value[own].tolist(), strict=True)]


def test_a_sum_has_the_vertices_of_all_and_those_at_both_ends() -> None:
    of = added([(0, 0), (0.5, 1)], [(0.25, 2), (0.75, 3)])
    assert points(of) == [(0, 2), (0.25, 2.5), (0.5, 3.5), (0.75, 4), (1, 4)]
    assert not of.jumped.any()


def test_a_sum_follows_scale_and_shift_and_who_hears_nothing_stays_where_it_begins() -> None:
    of = added(
        [(0, 0), (1, 4)], [(0, 1), (0.125, 9)], [(0, 0), (1, 8)], scale=[0.5, np.inf, 1], shift=[0, 0, 1], end=[2.0]
    )
    assert points(of) == [(0, 1), (0.5, 5), (1, 5), (2, 13)]


def test_a_jump_has_two_ends_but_for_one_at_the_very_end() -> None:
    of = added([(0, 0), (0.5, 1), (0.5, 3), (1, 3), (1, 7)], [(0.5, 0), (0.5, 1)])
    assert points(of) == [(0, 0), (0.5, 1), (0.5, 4), (1, 4)]
    assert of.jumped.tolist() == [False, False, True, False]


def test_each_pool_has_a_sum_of_its_own() -> None:
    of = added([(0, 0), (1, 1)], [(0, 0), (0.5, 2)], [(0, 0), (1, 4)], parent=[1, 0, 1], end=[1.0, 1.0, 3.0])
    assert points(of, 0) == [(0, 0), (0.5, 2), (1, 2)]
    assert points(of, 1) == [(0, 0), (1, 5)]
    assert points(of, 2) == [(0, 0), (3, 0)]
    assert of.pool.tolist() == sorted(of.pool.tolist())


def test_the_sum_over_nobody_and_what_it_begins_with() -> None:
    start = np.ones((1, 2))
    nobody, nothing = np.zeros(0, np.int64), np.zeros(0)
    of = summed(np.ones(1), Curves(nobody, nothing, np.zeros((0, 2))), nobody, nothing, nothing, start)
    assert start.tolist() == [[0, 0]]
    assert points(of) == [(0, 0, 0), (1, 0, 0)]
    whole = curves([(0, 1, 2)], [(0, 3, 5), (1, 9, 9)])
    summed(np.ones(1), whole, np.zeros(2, np.int64), np.ones(2), np.zeros(2), start)
    assert start.tolist() == [[4, 7]]


@pytest.mark.parametrize(("apart", "count"), [(5e-13, 3), (2e-12, 4)])
def test_places_that_are_nearer_than_the_tolerance_are_one(apart: float, count: int) -> None:
    of = added([(0, 0), (0.5, 1)], [(0, 0), (0.5 + apart, 1)])
    assert len(of.fit) == count
    assert of.value[-1].tolist() == [2]


def test_very_many_pools_stay_in_their_order() -> None:
    """More than two bytes count."""
    end = np.ones(2**15 + 1)
    of = summed(end, curves([(0, 0), (1, 1)]), np.array([2**15]), np.ones(1), np.zeros(1), np.zeros((len(end), 1)))
    assert of.pool.tolist() == np.repeat(np.arange(len(end)), 2).tolist()
    assert of.value.sum() == of.value[-1, 0] == 1


@pytest.mark.parametrize("pairs", [4_000_000, 1, 0])
@pytest.mark.parametrize("width", [2**-20, 2**-10, 0.5])
def test_a_segment_over_several_intervals_is_spread_over_them(width: float, pairs: int, bounded: Bounded) -> None:
    """Steep ones interval by interval, unless those are too many; the others by their slope."""
    bounded(curve_sums, MOST_PAIRS=pairs)
    inner = [0.25 + part * width for part in (0.0, 0.25, 0.75, 1.0)]
    steep = [(0, 0, 1), (0.25, 0, 1), (0.25 + width, 1, 3)]
    of = added(steep, *([(0, 0, 0), (place, 0, 0)] for place in inner))
    expected = [(0.25, 0, 1), (inner[1], 0.25, 1.5), (inner[2], 0.75, 2.5), (inner[3], 1, 3)]
    assert np.array(points(of)[1:-1]) == pytest.approx(np.array(expected), abs=1e-12)
    assert points(of)[-1] == pytest.approx((1, 1, 3), abs=1e-9)
    assert (np.diff(of.value, axis=0) >= 0).all()


def made(*pools: Sequence[Point], jumped: Sequence[int] = ()) -> Sum:
    of = curves(*pools)
    flags = np.zeros(len(of.owner), bool)
    flags[list(jumped)] = True
    return Sum(of.owner, of.position, of.value, flags)


def cut(of: Sum, *limits: Point) -> list[list[Point]]:
    found = within(of, np.array(limits, float))
    return [points(found, p) for p in range(len(limits))]


def test_what_stays_within_its_limits_stays_as_it_is() -> None:
    of = made([(0, 0), (1, 1)])
    assert within(of, np.ones((1, 1))) is of
    assert within(of, np.full((1, 1), 1 - 5e-13)) is of


def test_a_curve_ends_where_the_first_resource_meets_its_limit() -> None:
    of = made([(0, 0, 0), (0.5, 1, 2), (1, 2, 4)], [(0, 0, 0), (1, 4, 1)], [(0, 0, 0), (1, 1, 1)])
    assert cut(of, (1.5, 2.5), (2, 0.25), (1, 1)) == [
        [(0, 0, 0), (0.5, 1, 2), (0.625, 1.25, 2.5)],
        [(0, 0, 0), (0.25, 1, 0.25)],
        [(0, 0, 0), (1, 1, 1)],
    ]


def test_a_jump_past_the_limit_is_not_taken_nor_one_to_the_limit_that_goes_on_growing() -> None:
    past = made([(0, 0), (0.5, 1), (0.5, 3), (1, 4)], jumped=[2])
    assert cut(past, (2,)) == [[(0, 0), (0.5, 1)]]
    assert cut(past, (3,)) == [[(0, 0), (0.5, 1)]]
    assert cut(past, (3.5,)) == [[(0, 0), (0.5, 1), (0.5, 3), (0.75, 3.5)]]
    stays = made([(0, 0), (0.5, 1), (0.5, 3), (0.75, 3), (1, 4)], jumped=[2])
    assert cut(stays, (3,)) == [[(0, 0), (0.5, 1), (0.5, 3), (0.75, 3), (0.75, 3)]]


def test_where_limits_cut_every_pool_keeps_its_own() -> None:
    of = made([(0, 2), (1, 3)], [(0, 0), (0.5, 0), (0.5, 2), (1, 3)], jumped=[4])
    assert cut(of, (2,), (1,)) == [[(0, 2), (0, 2)], [(0, 0), (0.5, 0)]]


def bent(of: Sum, *floors: Point) -> list[Point]:
    return points(with_kinks(of, np.array(floors, float)))


def test_a_vertex_is_added_where_another_resource_needs_more() -> None:
    assert bent(made([(0, 0, 1), (1, 4, 2)]), (0, 0)) == [
        (0, 0, 1),
        (pytest.approx(1 / 3), *[pytest.approx(4 / 3)] * 2),
        (1, 4, 2),
    ]
    assert bent(made([(0, 0, 1), (1, 4, 2)]), (4, 0)) == [(0, 0, 1), (1, 4, 2)]
    assert bent(made([(0, 0, 0), (1, 4, 2)]), (0, 0)) == [(0, 0, 0), (1, 4, 2)]
    # Up to its guarantee nothing is needed.
    assert bent(made([(0, 0, 0), (1, 4, 2)]), (1, 9)) == [(0, 0, 0), (0.25, 1, 0.5), (1, 4, 2)]


def test_several_resources_may_need_most_one_after_another() -> None:
    of = made([(0, 4, 3, 0), (1, 4, 6, 8)])
    found = bent(of, (0, 0, 0))
    assert [fit for fit, *_ in found] == pytest.approx([0, 1 / 3, 0.5, 0.6, 1]), "at 0.5 the first meets the last"
    assert [row[1:] for row in found] == [pytest.approx((4, 3 + 3 * fit, 8 * fit)) for fit, *_ in found]
    # One of the middle that never needs most adds nothing but what lies on the way.
    assert [fit for fit, *_ in bent(made([(0, 4, 0, 0), (1, 4, 3, 8)]), (0, 0, 0))] == pytest.approx([0, 0.5, 1])


def test_nothing_bends_inside_a_jump_nor_from_pool_to_pool() -> None:
    jump = made([(0, 0, 1), (0, 4, 2), (1, 4, 2)], jumped=[1])
    assert bent(jump, (0, 0)) == points(jump)
    two = made([(0, 0, 1)], [(0, 4, 2), (1, 4, 2)])
    assert with_kinks(two, np.zeros((2, 2))) is two


def edge(of: Sum, *limits: Point) -> list[float]:
    return edges(of, np.array(limits, float)).tolist()


def test_an_edge_is_where_a_limit_is_just_met_and_something_goes_on() -> None:
    of = made([(0, 0), (0.25, 0.5), (0.5, 0.5), (1, 1)], [(0, 0), (1, 0.5)], [(0, 0), (1, 0)])
    assert edge(of, (0.5,), (0.5,), (0,)) == [0.5, np.inf, np.inf]
    assert edge(of, (0.5 + LITTLE,), (0.7,), (0.5,)) == [0.5, np.inf, np.inf]
    assert edge(of, (0.5 + MORE,), (0.7,), (0.5,)) == [np.inf] * 3
    other = made([(0, 0, 0), (0.25, 0.5, 0), (0.5, 0.5, 1), (0.75, 0.5, 2)])
    assert edge(other, (0.5, 9)) == [0.25]
    assert edge(other, (0.5, 1)) == [0.25]
    assert edge(other, (9, 0)) == [np.inf], "a limit of nothing is met from the start"
    assert edge(other, (9, 2)) == [np.inf]


def test_a_jump_that_ends_at_a_limit_is_an_edge() -> None:
    """A bit more, and it would be beyond: then it is not taken at all."""
    of = made([(0, 0), (0.25, 0.25), (0.25, 0.5), (1, 0.5)], jumped=[2])
    assert edge(of, (0.5,)) == [0.25]
    assert edge(of, (0.5 - LITTLE,)) == [0.25]
    assert edge(of, (0.5 + MORE,)) == [np.inf]


def pool_of(
    *pools: Sequence[Point], edge: Sequence[float] | None = None, at_zero: Sequence[bool] | None = None
) -> PoolCurves:
    """Each point: suggestion, fit factor, value by resource."""
    of = curves(*pools)
    start = np.searchsorted(of.owner, np.arange(len(pools) + 1))
    return PoolCurves(
        start, of.position, of.value[:, 0], of.value[:, 1:],
        np.array(edge or [np.inf] * len(pools)), np.array(at_zero or [False] * len(pools)),
    )  # fmt: skip


def sensitive(of: PoolCurves, suggestion: Sequence[float], fit: Sequence[float]) -> bool:
    return of.sensitive(np.array(suggestion), np.array(fit))


def test_bits_decide_at_an_edge_and_beyond_it() -> None:
    of = pool_of([(0, 0, 0), (1, 1, 1)], [(0, 0, 0), (1, 1, 1)], edge=[np.inf, 0.5])
    assert [sensitive(of, (0.5, 0.5), (1, fit)) for fit in (0.5 - MORE, 0.5 - LITTLE, 0.5, 0.9)] == [
        False,
        True,
        True,
        True,
    ]


def test_bits_decide_at_a_suggestion_of_nothing_with_a_jump_there() -> None:
    of = pool_of([(0, 0, 0), (1, 1, 1)], [(0, 0, 0), (1, 1, 1)], at_zero=[False, True])
    assert [sensitive(of, (0, s), (0, 0)) for s in (0, LITTLE, MORE)] == [True, True, False]


def test_bits_decide_at_a_jump() -> None:
    of = pool_of([(0, 0, 0, 0), (0.5, 1, 1, 0)], [(0.5, 0, 3, 0), (0.75, 1, 3, 1), (0.75, 1, 3, 2), (1, 2, 4, 4)])
    at = (0.5, 0.75 - MORE, 0.75 - LITTLE, 0.75 + LITTLE, 0.75 + MORE)
    assert [sensitive(of, (0.5, s), (0, 0)) for s in at] == [False, False, True, True, False]
    assert not sensitive(of, (0.75, 0.5), (0, 0)), "that of another pool"
    small = pool_of([(0, 0, 0), (0.5, 0, 1), (0.5, 0, 1 + LITTLE), (1, 1, 1 + LITTLE)])
    assert not sensitive(small, (0.5,), (0,))
    near = pool_of([(0, 0, 0), (0.5, 0, 1), (0.5 + LITTLE, 0, 2), (0.5 + MORE * 2, 0, 3)])
    assert sensitive(near, (0.5,), (0,))
    assert not sensitive(near, (0.5 + MORE * 2,), (0,))


def test_a_curve_between_its_vertices_at_them_before_and_behind() -> None:
    of = pool_of([(0.25, 0, 1), (0.75, 1, 3), (0.75, 1, 5), (1, 2, 6)], [(0, 7, 7)])
    found = [of.at(np.array([s, s])) for s in (0, 0.25, 0.5, 0.75, 0.875, 1, 1.5)]
    assert [fit[0] for fit, _ in found] == [0, 0, 0.5, 1, 1.5, 2, 2]
    assert [value[0, 0] for _, value in found] == [1, 1, 2, 3, 5.5, 6, 6]
    assert {(fit[1], value[1, 0]) for fit, value in found} == {(7, 7)}
    for off in (-5e-13, 5e-13):
        assert of.at(np.array([0.75 + off, 0]))[1][0, 0] == pytest.approx(3), "at the jump"
    assert of.at(np.array([0.75 + 2e-12, 0]))[1][0, 0] == pytest.approx(5)


def test_vertices_are_met_to_the_last_bit() -> None:
    """0.1 + (0.7 - 0.1) is not 0.7 in doubles."""
    of = pool_of([(0, 0.1, 0.1), (0.3, 0.7, 0.7), (1, 1, 1)])
    assert of.at(np.array([0.3])) == (np.array([0.7]), np.array([[0.7]]))


def test_curves_of_some_pools_and_of_all_again() -> None:
    of = pool_of(
        [(0, 0, 0), (1, 1, 1)],
        [(0, 5, 5)],
        [(0, 0, 2), (0.5, 1, 3), (1, 1, 4)],
        edge=[1, 2, 3],
        at_zero=[True, False, True],
    )
    some = of.take(np.array([2, 0]))
    assert (some.start.tolist(), some.position.tolist()) == ([0, 3, 5], [0, 0.5, 1, 0, 1])
    assert (some.fit.tolist(), some.value[:, 0].tolist()) == ([0, 1, 1, 0, 1], [2, 3, 4, 0, 1])
    assert (some.edge.tolist(), some.at_zero.tolist()) == ([3, 1], [True, True])
    again = PoolCurves.joined([of.take(np.array([0])), of.take(np.array([1, 2]))])
    for name in PoolCurves.__slots__:
        assert getattr(again, name).tolist() == getattr(of, name).tolist()
    assert of.curves().owner.tolist() == [0, 0, 1, 2, 2, 2]
    assert of.curves().position is of.position
    assert of.curves().value is of.value


def pool_curve(child: Sequence[Point], guarantee: float, limit: float = 9.0) -> PoolCurves:
    end, zero = np.ones(1), np.zeros(1)
    return pool_curves(
        end, curves(child), np.zeros(1, np.int64), end, zero, np.full((1, 1), guarantee), np.full((1, 1), limit)
    )


def test_whether_something_is_taken_of_a_suggestion_of_nothing() -> None:
    child = [(0, 0), (0.25, 0), (0.25, 0.5), (1, 1)]
    of = pool_curve(child, 0.5)
    assert of.at_zero.tolist() == [True]
    assert list(zip(of.position.tolist(), of.fit.tolist(), of.value[:, 0].tolist(), strict=True)) == [
        (0, 0.25, 0.5),
        (0.5, 1, 1),
    ]
    of = pool_curve(child, 0.25)
    assert of.at_zero.tolist() == [False]
    assert list(zip(of.position.tolist(), of.fit.tolist(), of.value[:, 0].tolist(), strict=True)) == [
        (0, 0.25, 0), (0.25, 0.25, 0), (0.25, 0.25, 0.5), (0.75, 1, 1),
    ]  # fmt: skip
    assert pool_curve([(0, 0), (1, 1)], 0.0).at_zero.tolist() == [False]
    assert pool_curve([(0, 0.5), (1, 0.75)], 0.25).position.tolist() == [0, 0.25], "what it begins with needs nothing"


def demands(*rows: tuple[Point, Point, Point]) -> Demands:
    usage, demand, limits = (np.array(column, float) for column in zip(*rows, strict=True))
    return Demands(usage, demand, limits)


def test_both_ends_of_the_way_from_usage_to_demand_are_met_exactly() -> None:
    of = demands(((0.1, 0.3), (0.7, 0.9), (1, 1)))
    assert of.between(np.zeros(1)).tolist() == of.usage.tolist()
    assert of.between(np.ones(1)).tolist() == of.demand.tolist()
    assert of.between(np.array([0.5]))[0] == pytest.approx([0.4, 0.6])
    for part in (0.25, 0.75):
        assert of.between(np.array([part]))[0] == pytest.approx([0.1 + 0.6 * part, 0.3 + 0.6 * part])
    twice = of.take(np.array([0, 0]))
    assert twice.between(np.array([0.0, 1.0])).tolist() == [of.usage[0].tolist(), of.demand[0].tolist()]
    assert (twice.limits.tolist(), twice.gap.tolist()) == ([[1, 1]] * 2, (twice.demand - twice.usage).tolist())


def vertices(of: Demands) -> list[Point]:
    found = operation_curves(of)
    return [(x, *value) for x, value in zip(found.position.tolist(), found.value.tolist(), strict=True)]


def test_the_vertices_of_an_operation() -> None:
    assert vertices(demands(((0.25, 0.5), (0.5, 0.75), (1, 1)))) == [
        (0, 0, 0), (0.25, 0.25, 0.25), (0.5, 0.25, 0.5), (0.75, 0.5, 0.75),
    ]  # fmt: skip
    assert vertices(demands(((0, 0), (0, 0), (1, 1)))) == [(0, 0, 0)]
    assert vertices(demands(((0, 0), (0.5, 0.25), (1, 1)))) == [(0, 0, 0), (0.5, 0.5, 0.25)]
    jump = demands(((0.5, 0.25), (0.5, 0.5), (1, 1)))
    assert vertices(jump) == [(0, 0, 0), (0.25, 0.25, 0.25), (0.5, 0.5, 0.25), (0.5, 0.5, 0.5)]
    crossing = demands(((0.25, 0), (0.5, 1), (1, 1)))
    assert vertices(crossing) == [
        (0, 0, 0), (0.25, 0.25, 0), (pytest.approx(1 / 3), *[pytest.approx(1 / 3)] * 2), (1, 0.5, 1),
    ]  # fmt: skip


def test_a_limit_stops_an_operation_on_either_way() -> None:
    assert vertices(demands(((0.25, 0.5), (1, 1), (1, 0.375)))) == [(0, 0, 0), (0.25, 0.25, 0.25), (0.375, 0.25, 0.375)]
    assert vertices(demands(((0.25, 0.5), (0.5, 0.75), (0.375, 1)))) == [
        (0, 0, 0), (0.25, 0.25, 0.25), (0.5, 0.25, 0.5), (0.625, 0.375, 0.625),
    ]  # fmt: skip
    assert vertices(demands(((0.25, 0.5), (0.5, 0.75), (0.25, 1)))) == [(0, 0, 0), (0.25, 0.25, 0.25), (0.5, 0.25, 0.5)]
    # A limit that is missed by rounding alone is none.
    assert len(vertices(demands(((0.5,), (0.75,), (0.5 - 5e-13,))))) == 2
    assert vertices(demands(((0.5,), (0.75,), (0.25,)))) == [(0, 0), (0.25, 0.25)]


def test_a_suggestion_of_just_the_usage_gives_the_usage() -> None:
    of = demands(((0.5, 0.25), (0.5, 0.75), (1, 1)))
    for off, second in ((-5e-13, False), (5e-13, False), (2e-12, True)):
        found = operation_values(of, np.array([0.5 + off]))[0]
        assert found == pytest.approx([0.5, 0.5 if second else 0.25], abs=1e-11)


def test_behind_steep_segments_nothing_grows_any_more() -> None:
    """By slopes of millions, what their sum keeps of rounding would still be seen at the end."""
    widths = (1.1e-6, 1.7e-6, 2.3e-6, 3.1e-6)
    of = added(*([(0, 0), (0.1 * k, 0), (0.1 * k + width, 0.3), (1, 0.3)] for width in widths for k in (1, 2)))
    assert of.value[-1, 0] == of.value[-2, 0] == pytest.approx(2.4, abs=1e-13)


def test_what_an_operation_uses_makes_no_difference_to_one_that_wants_the_same_in_proportion() -> None:
    def curve(used: float) -> object:
        return curve_of(np.array([[used, used], [0.5, 0.5], [1.0, 1.0]]).tobytes())

    assert curve(0.0) == curve(0.125) == curve(0.3) == ((0.0, (0.0, 0.0)), (0.5, (0.5, 0.5)))


def test_a_vertex_in_which_an_operation_bends_stays() -> None:
    """Up to its usage, a quarter of one resource alone; then of the other one too."""
    row = np.array([[0.25, 0.0], [0.75, 0.5], [1.0, 1.0]])
    assert [place for place, _ in curve_of(row.tobytes())] == [0.0, 0.25, 0.75]
