"""The tool behind ``make mutants``: which changes it makes, and that those called equivalent are still there."""

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.equivalent import equivalents, key
from tests.mutants.forks import put_in
from tests.mutants.operators import mutants
from tests.mutants.packages import chosen_tests, files, packages
from tests.mutants.recordings import Reached, Recordings
from tests.mutants.workshop import may_notice

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
        ("def f(a):\n    del a[0]", ["pass", "del a[1]"]),
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
        "LIMIT = -(2**63 - 1) // 1000",
        "STEPS = 1, 2.5",
        "def f(a, b): return zip(a, b, strict=True)",
        "def f(a, b): safe_point()",
        "def f(a): del a",
        "@cache(maxsize=2)\ndef f() -> int | None: ...",
        "class A(Struct, frozen=True): ...",
        "def f(a: Literal[1] | None): return f'{a + 1}'",
        "def f(a): log.info('started', port=1)",
        "def f(a):\n    match a:\n        case 1: return a",
    ],
)
def test_left_as_they_are(source: str) -> None:
    assert changes(source) == []


def test_a_comparison_that_is_never_asked_of_equals_is_left() -> None:
    assert changes("def f(a, b):\n    if a != b:\n        return a < b") == ["if (a == b):"]
    assert changes("def f(a, b):\n    if a != b:\n        return a < c") == ["if (a == b):", "return (a <= c)"]
    assert changes("def f(a, b):\n    if a == b:\n        return a < b") == ["if (a != b):", "return (a <= b)"]


def test_a_mutant_knows_the_function_around_it() -> None:
    source = "X = [1]\n\n@cache\ndef f(a=2):\n    def g():\n        return a + a\n    return a - a"
    assert [mutant.function for mutant in mutants("app/x.py", source)] == [None, None, (5, 3), (3, 3)]


def test_a_mutant_knows_the_lines_that_run_wherever_it_matters() -> None:
    source = (
        "def f(a):\n    if (\n        a > 0\n    ):\n        return g(\n            -a\n        )\n    return not a"
    )
    lines = [(mutant.after, mutant.lines) for mutant in mutants("app/x.py", source)]
    assert [at for after, at in lines if ">" in after] == [(2, 5)] * 3
    assert lines[-2:] == [("(a)", (5, 7)), ("return (a)", (8, 8))]


def test_a_mutant_meets_the_tests_that_run_its_lines_and_those_that_start_processes() -> None:
    mutant = mutants("app/x.py", "def f(a):\n    return not a\n")[0]

    def test(name: str, line: int, *, processes: bool = False) -> Reached:
        return Reached(name, 1.0, {"app/x.py": frozenset([line])}, processes, passed=True)

    tests = [test("a", 1, processes=True), test("b", 2), test("c", 3), test("d", 2, processes=True)]
    assert [one.name for one in may_notice(mutant, tests)] == ["b", "d", "a"]
    at_import = mutants("app/x.py", "X = [1]")[0]
    elsewhere = Reached("e", 1.0, {}, False, passed=True)
    assert may_notice(at_import, [elsewhere, *tests]) == [*tests, elsewhere]


@pytest.mark.slow
def test_all_mutants_of_a_module_are_other_programs() -> None:
    path = "app/solver/engines/ytsaurus/answer.py"
    source = (ROOT / path).read_text()
    trees = [ast.dump(ast.parse(mutant.source)) for mutant in mutants(path, source)]
    assert len(trees) > 50
    assert len({*trees, ast.dump(ast.parse(source))}) == len(trees) + 1


def test_what_is_called_equivalent_stands_in_its_file() -> None:
    for path, before, _ in equivalents():
        assert before in (ROOT / path).read_text(), path


@pytest.mark.slow
def test_what_is_called_equivalent_is_a_mutant_still() -> None:
    known = equivalents()
    changing: dict[str, set[str]] = {}
    for path, before, _ in known:
        changing.setdefault(path, set()).add(before)
    found = {
        key(mutant) for path, lines in changing.items() for mutant in mutants(path, (ROOT / path).read_text(), lines)
    }
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
        paths = files(ROOT, name)
        assert paths
        assert all((ROOT / path).exists() for path in paths), name


def test_tests_are_files_or_all_of_a_folder_each_once(tmp_path: Path) -> None:
    (tmp_path / "tests" / "a").mkdir(parents=True)
    for name in ("test_y.py", "a/test_x.py", "a/helper.py"):
        (tmp_path / "tests" / name).touch()
    assert chosen_tests(tmp_path, []) == []
    assert chosen_tests(tmp_path, ["tests/a", "tests"]) == ["tests/a/test_x.py", "tests/test_y.py"]
    with pytest.raises(FileNotFoundError, match=r"^tests/b$"):
        chosen_tests(tmp_path, ["tests/b"])


def test_what_tests_ran_is_known_until_something_of_it_changes(tmp_path: Path) -> None:
    test, module, helper = "tests/unit/test_x.py", "app/x.py", "tests/conftest.py"
    for path in (test, module, helper, "app/y.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    recordings = Recordings(tmp_path, tmp_path / "kept")
    ran = {"seconds": 1.0, "lines": {module: [2, 3]}, "processes": False, "passed": True}
    for path in (test, module, helper):
        assert recordings.read(test) is None
        recordings.keep(test, {"tests/unit/test_x.py::test": ran})
        (tmp_path / "app/y.py").write_text(f"X = {path!r}")
        found = recordings.read(test)
        assert found == [Reached("tests/unit/test_x.py::test", 1.0, {module: frozenset([2, 3])}, False, True)]
        (tmp_path / path).write_text("# changed")
