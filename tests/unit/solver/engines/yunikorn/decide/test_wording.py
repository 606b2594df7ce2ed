"""Phrases that messages and explanations share."""

import pytest

from app.solver.engines.yunikorn.candidates import counted, joined


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcde", "a, b, c, d and e"),
        ("abcdef", "a, b, c, d, e and 1 more"), ("abcdefgh", "a, b, c, d, e and 3 more"),
    ],
)  # fmt: skip
def test_of_many_the_first_five_are_named(names: str, expected: str) -> None:
    assert joined(list(names)) == expected


def test_one_is_not_several() -> None:
    assert [counted(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
