"""The tool behind ``make mutants``: which changes it makes, and that those called equivalent are still there."""

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.equivalent import equivalents, key
from tests.mutants.forks import put_in
from tests.mutants.operators import mutants
from tests.mutants.packages import arguments, packages

ROOT = Path(__file__).parents[2]


MANY = [
    "return min(a) if (not (a)) else -1",
    "return max(a) if a else -1",
    "return min(a) if a else (1)",
    "return min(a) if a else -2",
]


def changes(source: str) -> list[str]:
    """The changed lines of a module."""
    return [mutant.after for mutant in mutants("app/x.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a, b):\n    return a < b", ["return (a <= b)"]),
        ("def f(a, b):\n    return a and not b", ["return (a or not b)", "return a and (b)"]),
        ("def f(a):\n    if a > 0:\n        g(a)", ["if (not (a > 0)):", "if (a >= 0):", "if a > 1:", "pass"]),
        ("def f(a):\n    a.left -= 1", ["a.left += 1", "pass", "a.left -= 2"]),
        ("def f(a):\n    a.since = None", ["pass"]),
        ("def f(a):\n    return min(a) if a else -1", MANY),
        ("def f(a):\n    return sorted(a, key=len)", ["return list(a)"]),
        (
            "def f(ü, a):\n    return 'ü' in ü, a % 2",
            ["return ('ü' not in ü), a % 2", "return 'ü' in ü, (a * 2)", "return 'ü' in ü, a % 3"],
        ),
    ],
)
def test_changes(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "LIMIT = 500",
        "LIMIT: int = 500",
        "@cache(maxsize=2)\ndef f() -> int | None: ...",
        "class A(Struct, frozen=True): ...",
        "def f(a: Literal[1] | None): return f'{a + 1}'",
        "def f(a): log.info('started', port=1)",
        "def f(a):\n    match a:\n        case 1: return a",
    ],
)
def test_left_as_they_are(source: str) -> None:
    assert changes(source) == []


def test_a_mutant_knows_the_function_around_it() -> None:
    source = "X = [1]\n\n@cache\ndef f(a=2):\n    def g():\n        return a + a\n    return a - a"
    assert [mutant.function for mutant in mutants("app/x.py", source)] == [None, None, (5, 3), (3, 3)]


def test_all_mutants_of_a_module_are_other_programs() -> None:
    path = "app/solver/engines/ytsaurus/report/waiting.py"
    source = (ROOT / path).read_text()
    trees = [ast.dump(ast.parse(mutant.source)) for mutant in mutants(path, source)]
    assert len(trees) > 50
    assert len({*trees, ast.dump(ast.parse(source))}) == len(trees) + 1


def test_what_is_called_equivalent_is_a_mutant_still() -> None:
    known = equivalents()
    paths = {path for path, _, _ in known}
    found = {key(mutant) for path in paths for mutant in mutants(path, (ROOT / path).read_text())}
    assert set(known) - found == set()
    assert all(known.values())


def test_a_function_that_is_there_already_gets_the_code_of_the_mutant() -> None:
    source = "class A:\n    def f(self, a, b):\n        def g():\n            return a < b\n        return g()\n"
    names: dict[str, Any] = {}
    exec(compile(source, str(ROOT / "app/x.py"), "exec"), names)
    f = names["A"].f
    mutant = mutants("app/x.py", source)[0]
    assert mutant.function == (3, 2)
    request = {"path": "app/x.py", "source": mutant.source, "line": 2}
    assert not f(None, 1, 1)
    assert put_in(request, [f])
    assert f(None, 1, 1)
    assert not put_in(request | {"line": 3}, [f])
    assert not put_in(request | {"path": "app/y.py"}, [f])


def test_every_package_has_tests() -> None:
    names = packages(ROOT)
    assert {"app", "formats", "http", "solver", "solver/engines/kai"} <= set(names)
    for name in names:
        paths = [argument for argument in arguments(ROOT, name) if argument.startswith("tests/")]
        assert paths
        assert all((ROOT / path).exists() for path in paths), name
