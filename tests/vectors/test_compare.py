"""The comparison itself: a parity test is worth what its comparison is."""

from typing import Any

import pytest

from tests.vectors.compare import disagreements


def _differs(expected: Any, answer: Any, **vector: Any) -> bool:
    return bool(disagreements({"expect": expected, **vector}, answer))


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": None}, {}),
        ({"a": 0.5}, {"a": 0.5000001}),
        ({"a": 2.0}, {"a": 2}),
        ({"a": 1e9 + 0.5}, {"a": 1e9}),
        ({"at": "2024-05-01T10:00:00Z"}, {"at": "2024-05-01T12:00:00.000+02:00"}),
        ({"a": {"one_of": [1, 2]}}, {"a": 2}),
        ({"a": []}, {"a": []}),
    ],
)
def test_it_agrees(expected: Any, answer: Any) -> None:
    assert not _differs(expected, answer)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": True}, {"a": 1}),
        ({"a": None}, {"a": 0}),
        ({"a": 0.5}, {"a": 0.50001}),
        ({"a": 1}, {"a": 1.0000001}),
        ({"a": 1}, [1]),
        ({"at": "2024-05-01T10:00:00Z"}, {"at": "2024-05-01T10:00:01Z"}),
        ({"a": {"one_of": [1, 2]}}, {"a": 3}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"victims": [{"workload": "a"}, {"workload": "b"}]}, {"victims": [{"workload": "b"}, {"workload": "a"}]}),
    ],
)
def test_it_disagrees(expected: Any, answer: Any) -> None:
    assert _differs(expected, answer)


def test_an_unordered_record_lets_victims_come_in_any_order_but_nothing_else() -> None:
    expected = {"victims": [{"workload": "a", "node": "n"}, {"workload": "b"}], "order": ["x", "y"]}
    swapped = {"victims": [{"workload": "b"}, {"workload": "a", "node": "n"}], "order": ["x", "y"]}
    assert not _differs(expected, swapped, unordered=True)
    assert _differs(expected, {**swapped, "order": ["y", "x"]}, unordered=True)
    assert _differs(expected, {**swapped, "victims": [{"workload": "b"}, {"workload": "a"}]}, unordered=True)


def test_amounts_may_differ_by_the_tolerance_and_zeros_be_left_out() -> None:
    expected = {"a": {"cpu": 2.0, "gpu": 0.0}, "none": {"cpu": 0.0, "deep": {"gpu": 0}}}
    assert not _differs(expected, {"a": {"cpu": 2.01}}, tolerance={"cpu": 0.01})
    assert _differs(expected, {"a": {"cpu": 2.02}}, tolerance={"cpu": 0.01})
    assert _differs(expected, {"a": {"cpu": 2.0, "gpu": 0.1}}, tolerance={"cpu": 0.01})
    assert _differs(expected, {"a": {}}, tolerance={"cpu": 0.01})
    assert _differs(expected, {"a": {"cpu": 2.0, "gpu": 0.0}})


def test_one_alternative_is_enough_and_the_nearest_is_reported() -> None:
    vector = {"expect_any": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}
    assert not disagreements(vector, {"a": 2, "b": 2})
    assert disagreements(vector, {"a": 2, "b": 3}) == ["/b: expected '2', got 3"]
