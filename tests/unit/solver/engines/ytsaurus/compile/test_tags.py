"""Formulas over tags."""

from random import Random

import pytest

from app.solver.engines.ytsaurus.reading import MAX_DEPTH, MAX_LENGTH, FormulaError, parse_formula, tags_of

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
        ("(" * 101 + "a" + ")" * 101, "nested deeper than 100 levels"),
        ("a & (b | cd) e", "'e' at character 14 is not expected there"),
        ("a & (b | cd) & (e", "the bracket at character 16 is not closed"),
        ("a" * 5000, "longer than 4096 characters"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, detail: str) -> None:
    with pytest.raises(FormulaError) as refused:
        parse_formula(text)
    assert str(refused.value) == detail


def test_what_is_just_short_enough_is_read() -> None:
    assert parse_formula("!" * MAX_DEPTH + "fast").holds(TAGS) is (MAX_DEPTH % 2 == 0)
    assert parse_formula("(" * MAX_DEPTH + "fast" + ")" * MAX_DEPTH).holds(TAGS)
    assert not parse_formula("a" * MAX_LENGTH).holds(TAGS)
    for text in ("!" * (MAX_DEPTH + 1) + "fast", "a" * (MAX_LENGTH + 1)):
        with pytest.raises(FormulaError):
            parse_formula(text)


def drawn(random: Random, depth: int) -> tuple[str, str]:
    """A formula, and the same in Python."""
    kind = random.choice("ab|&!()" if depth else "ab")
    if kind in "ab":
        return kind, f"({kind!r} in tags)"
    (one, same), (other, as_well) = drawn(random, depth - 1), drawn(random, depth - 1)
    if kind == "!":
        return f"!({one})", f"(not {same})"
    if kind in "()":
        return f"({one})", same
    joined = " or " if kind == "|" else " and "
    return f"({one}){kind} ({other})", f"({same}{joined}{as_well})"


def test_formulas_hold_as_the_same_ones_of_python_do() -> None:
    random = Random(1)
    for _ in range(200):
        text, same = drawn(random, 4)
        for tags in ({"a"}, {"b"}, {"a", "b"}, set[str]()):
            assert parse_formula(text).holds(frozenset(tags)) is eval(same, {"tags": tags}), text


@pytest.mark.parametrize("tags", ["", "a", "b", "c", "ab", "ac", "bc", "abc"])
def test_not_binds_most_and_or_least(tags: str) -> None:
    a, b, c = (name in tags for name in "abc")
    for text, holds in (
        ("a | b & c", a or (b and c)), ("a & b | c", (a and b) or c), ("!a & b", (not a) and b),
        ("!a | b", (not a) or b), ("a & !b & c", a and not b and c), ("a|b|c", a or b or c), ("a&b&c", a and b and c),
        ("!(a | b) & c", not (a or b) and c), ("a | !(b & c)", a or not (b and c)),
    ):  # fmt: skip
        assert parse_formula(text).holds(frozenset(tags)) is holds
