"""Each step of KAI's division on numbers small enough to check by hand."""

from collections.abc import Sequence

import pytest

from app.solver.compiled import Tree
from app.solver.engines.kai.fair_share import KAI_UNLIMITED, Claims, Ranks, allocatable_share, fair_shares


def divide(
    total: float,
    request: Sequence[float],
    *,
    deserved: Sequence[float] | None = None,
    limit: Sequence[float] | None = None,
    weight: Sequence[float] | None = None,
    priority: Sequence[int] | None = None,
    created: Sequence[int] | None = None,
    parent: Sequence[int] | None = None,
) -> list[float]:
    n = len(request)
    tree = Tree([f"q{i}" for i in range(n)], list(parent or [-1] * n))
    claims = Claims(deserved or [0.0] * n, limit or [KAI_UNLIMITED] * n, weight or [1.0] * n, request)
    return fair_shares(tree, total, claims, Ranks(priority or [0] * n, created or [0] * n, tree.names))


def test_each_gets_what_it_deserves_and_wants_even_when_that_oversubscribes() -> None:
    assert divide(8, [10, 3, 10], deserved=[6, 6, KAI_UNLIMITED]) == [6, 3, 8]


def test_the_limit_caps_what_is_wanted() -> None:
    assert divide(10, [10, 10], deserved=[4, 0], limit=[2, KAI_UNLIMITED]) == [2, 8]


def test_over_quota_follows_weights_in_whole_units() -> None:
    assert divide(9, [10, 10], weight=[1, 2]) == [3, 6]


def test_the_unit_that_rounding_lost_goes_to_the_largest_fraction_then_the_oldest_then_by_name() -> None:
    assert divide(10, [10, 10], weight=[1, 2]) == [3, 7]
    assert divide(3, [10, 10], created=[5, 4]) == [1, 2]
    assert divide(3, [10, 10]) == [2, 1]


def test_what_one_does_not_want_is_divided_again() -> None:
    assert divide(12, [1, 20, 20]) == [1, 6, 5]


def test_what_is_deserved_counts_against_what_is_wanted() -> None:
    """Of 8 beyond what the first deserves each has a part of 4; it wants 2 of them, and the second takes the rest."""
    assert divide(10, [4, 10], deserved=[2, 0]) == [4, 6]
    assert divide(10, [6, 10], deserved=[2, 0]) == [6, 4]
    assert divide(10, [7, 10], deserved=[2, 0]) == [6, 4]


def test_weight_zero_gets_its_deserved_quota_only() -> None:
    assert divide(10, [10, 10], deserved=[1, 0], weight=[0, 1]) == [1, 9]
    assert divide(10, [10], weight=[0]) == [0]


def test_a_higher_priority_is_served_first() -> None:
    assert divide(10, [8, 8], priority=[1, 2], weight=[100, 1]) == [2, 8]


def test_children_divide_the_fair_share_of_their_parent() -> None:
    assert divide(10, [6, 6, 6, 2], parent=[-1, -1, 0, 0]) == [5, 5, 3, 2]


def test_a_share_may_pass_the_request_by_less_than_a_unit() -> None:
    shares = divide(1, [0.5, 0.6])
    assert sum(shares) == pytest.approx(1)
    assert max(s - r for s, r in zip(shares, [0.5, 0.6], strict=True)) < 1


def test_weights_that_doubles_cannot_relate_end_the_division() -> None:
    assert divide(10, [5, 5], weight=[1.7e308, 1.7e308]) == [0, 0]
    assert divide(10, [5, 5], weight=[5e-324, 1.0]) == [5, 5]


@pytest.mark.parametrize(
    ("deserved", "limit", "fair", "expected"),
    [
        (2, KAI_UNLIMITED, 5, 5),
        (6, KAI_UNLIMITED, 5, 6),
        (6, 4, 5, 4),
        (KAI_UNLIMITED, 4, 9, 4),
        (KAI_UNLIMITED, KAI_UNLIMITED, 9, KAI_UNLIMITED),
    ],
)
def test_allocatable_share(deserved: float, limit: float, fair: float, expected: float) -> None:
    assert allocatable_share(deserved, limit, fair) == expected


def test_what_was_used_over_time_counts_against_the_weight() -> None:
    """KAI: max(0, w + k (w - used)), w and used as parts of all."""
    two = Tree(["q0", "q1"], [-1, -1])

    def shares(usage: list[float] | None, k_value: float) -> list[float]:
        claims = Claims([0.0] * 2, [KAI_UNLIMITED] * 2, [1.0] * 2, [20.0] * 2, usage, k_value)
        return fair_shares(two, 16, claims, Ranks([0, 0], [0, 0], two.names))

    assert shares(None, 1) == shares([0, 0], 1) == shares([0.9, 0], 0) == [8, 8]
    assert shares([0.5, 0], 1) == [5, 11]  # 0.5 to 1: 5.33 and 10.67, and the last unit to the larger fraction
    assert shares([1, 0], 1) == shares([9, 0], 1) == [0, 16]
    assert shares([3, 3], 1) == [0, 0]
