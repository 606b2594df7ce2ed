"""Go's sort, checked against itself where it is stable, and against runs of Go where it is not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kube_scheduler.importance import go_sorted


@given(st.lists(st.integers(0, 5), max_size=200))
def test_it_sorts(keys: list[int]) -> None:
    found = go_sorted(list(range(len(keys))), keys)
    assert sorted(found) == list(range(len(keys)))
    assert [keys[i] for i in found] == sorted(keys)


@given(st.lists(st.integers(), unique=True, max_size=100))
def test_without_equal_ones_it_is_any_sort(keys: list[int]) -> None:
    assert go_sorted(list(keys), keys) == sorted(keys)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_up_to_twelve_equal_ones_stay_in_order(keys: list[int]) -> None:
    assert go_sorted(list(range(len(keys))), keys) == sorted(range(len(keys)), key=keys.__getitem__)


FROM_GO = [
    (
        [2, 3, 1, 3, 3, 0, 3, 2, 0, 2, 1, 4, 2, 2, 0, 0, 3, 3, 2, 1],
        [15, 14, 5, 8, 10, 2, 19, 13, 9, 12, 7, 0, 18, 1, 6, 4, 16, 17, 3, 11],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "order"), FROM_GO)
def test_beyond_them_it_is_as_go_leaves_it(keys: list[int], order: list[int]) -> None:
    """What ``sort.Slice`` of Go 1.2x printed for these keys."""
    assert go_sorted(list(range(len(keys))), keys) == order


def test_descending_and_organ_pipes_end() -> None:
    for keys in (list(range(300, 0, -1)), [*range(150), *range(150, 0, -1)], [1] * 300):
        assert [keys[i] for i in go_sorted(list(range(len(keys))), keys)] == sorted(keys)
    rng = random.Random(1)
    for size in (13, 50, 51, 1000):
        keys = [rng.randrange(size) for _ in range(size)]
        assert [keys[i] for i in go_sorted(list(range(size)), keys)] == sorted(keys)
