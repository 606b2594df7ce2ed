"""Operations on columns, against the same row by row."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from app.solver.engines.ytsaurus.curves import TOLERANCE, _grouped  # pyright: ignore[reportPrivateUsage]
from app.solver.engines.ytsaurus.operations import (
    all_of,
    any_of,
    by_level,
    least,
    most,
    quotients,
    running_sums,
    scattered,
)
from app.solver.engines.ytsaurus.state import by_node


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_reductions_over_columns(columns: int) -> None:
    rows = np.random.default_rng(columns).integers(0, 3, (50, columns)).astype(float)
    kept = rows.copy()
    flags = rows > 0
    assert any_of(flags).tolist() == [any(row) for row in flags.tolist()]
    assert all_of(flags).tolist() == [all(row) for row in flags.tolist()]
    assert most(rows).tolist() == [max(row) for row in rows.tolist()]
    assert least(rows).tolist() == [min(row) for row in rows.tolist()]
    assert (rows == kept).all()
    assert (flags == (kept > 0)).all()


@pytest.mark.parametrize("seed", range(8))
def test_running_sums_begin_anew_with_every_block(seed: int) -> None:
    random = Random(seed)
    sizes = [random.choice((0, 1, 2, 3, 4, 5, 9, 17)) for _ in range(random.randint(1, 9))]
    bounds = np.array([sum(sizes[:i]) for i in range(len(sizes) + 1)])
    steps = np.array([[random.randint(-3, 9), 2.0 ** random.randint(0, 20)] for _ in range(sum(sizes))]).reshape(-1, 2)
    expected = [steps[begin:at].sum(axis=0).tolist() for begin, end in pairwise(bounds) for at in range(begin, end)]
    assert running_sums(steps, bounds).tolist() == expected


def test_rounding_does_not_carry_over_from_block_to_block() -> None:
    steps = np.array([[1e300], [1.0], [0.25], [0.5], [0.125]])
    assert running_sums(steps, np.array([0, 2, 5])).tolist() == [[0], [1e300], [0], [0.25], [0.75]]


def test_scattered_rows_add_up() -> None:
    found = scattered(np.array([2, 0, 2]), np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]), 4)
    assert found.tolist() == [[2, 5], [0, 0], [4, 10], [0, 0]]
    assert scattered(np.zeros(0, np.int64), np.zeros((0, 2)), 1).tolist() == [[0, 0]]


def test_quotients_where_they_are_asked_for() -> None:
    rows, total = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]]), np.array([1.0, 0.0, 4.0])
    assert quotients(rows, total, total > 0, 7.0).tolist() == [[1, 7, 0.75], [4, 7, 1.5]]
    assert quotients(total, rows[:, :1], np.array([[False], [True]]), np.inf).tolist() == [[np.inf] * 3, [0.25, 0, 1]]


def test_rows_of_a_tree_by_level() -> None:
    assert [rows.tolist() for rows in by_level(np.array([0, 1, 2, 1, 0, -1]))] == [[0, 4], [1, 3], [2]]
    assert by_level(np.array([-1])) == []


@pytest.mark.parametrize("last", [2, 2**15 - 1, 2**15, 40_000, 2**16])
def test_places_of_very_many_pools_are_told_apart(last: int) -> None:
    places, pools = np.array([0.5, 0.25, 0.5, 0.25, 0.5 + TOLERANCE / 2]), np.array([last, last, 1, 1, last])
    fit, of, group = _grouped(places, pools)
    assert (fit.tolist(), of.tolist(), group.tolist()) == ([0.25, 0.5] * 2, [1, 1, last, last], [3, 2, 1, 0, 3])
    empty = _grouped(np.zeros(0), np.zeros(0, np.int64))
    assert [part.tolist() for part in empty] == [[], [], []]


@pytest.mark.parametrize("count", [3, 2**15 - 1, 2**15, 2**16 + 1])
def test_allocations_are_in_order_of_very_many_nodes(count: int) -> None:
    on_node, start = by_node(np.array([count - 1, -1, 0, count - 1, -1]), count)
    assert on_node.tolist() == [1, 4, 2, 0, 3]
    assert (len(start), start[0], start[1], start[count - 1], start[count]) == (count + 1, 2, 3, 3, 5)
