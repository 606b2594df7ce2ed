"""Formulas over tags."""

import pytest

from app.solver.engines.ytsaurus.compile.tags import FormulaError, parse_formula, tags_of

TAGS = tags_of({"zone": "a", "fast": "true"})


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("fast", True),
        ("slow", False),
        ("zone=a", True),
        ("zone=b", False),
        ("!slow & fast", True),
        ("slow | fast & zone=b", False),
        ("(slow | fast) & zone=a", True),
        ("!(slow|fast)", False),
        ("!!fast", True),
        ("slow & fast | zone", True),
        ("slow & (fast | zone)", False),
    ],
)
def test_a_formula_holds(text: str, holds: bool) -> None:
    assert parse_formula(text).holds(TAGS) is holds


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a &", "it ends where a tag should stand"),
        ("& a", "'&' at character 1 stands where a tag should"),
        ("a b", "'b' at character 3 is not expected there"),
        ("(a", "the bracket at character 1 is not closed"),
        ("a)", "')' at character 2 is not expected there"),
        ("a ^ b", "'^' at character 3 is neither a tag nor an operator"),
        ("!" * 200 + "a", "nested deeper than 100 levels"),
        ("a" * 5000, "longer than 4096 characters"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, detail: str) -> None:
    with pytest.raises(FormulaError) as refused:
        parse_formula(text)
    assert str(refused.value) == detail
