"""Rules of the house that no linter knows."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from app.solver.engine import all_facts
from app.solver.model.configuration import Settings

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"
OWN = ("app", "benchmarks", "openapi", "tests", "vendoring")
PYTHON = [path for name in OWN for path in (ROOT / name).rglob("*.py")]


def contracts() -> dict[str, dict[str, Any]]:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return {contract["name"]: contract for contract in tool["importlinter"]["contracts"]}


def modules(under: Path) -> set[str]:
    """Names of the packages and modules directly in ``under``."""
    found = (path for path in under.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return {path.stem for path in found if path.stem != "__init__"}


@cache
def tree(path: Path) -> ast.Module:
    """The code of ``path``, which nobody here changes."""
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of it: to walk is slower than to look."""
    return tuple(ast.walk(tree(path)))


def names(path: Path) -> Iterator[str]:
    """Dotted names that the code of ``path`` uses."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def test_the_solver_is_at_the_bottom_and_every_package_has_its_place() -> None:
    layers = contracts()["from the edge down to the solver, and never back up"]
    assert layers["exhaustive"] is True
    assert layers["layers"][-1] == "solver"


def test_all_engines_are_kept_apart() -> None:
    apart = contracts()["engines do not import one another"]["modules"]
    assert set(apart) == {f"app.solver.engines.{name}" for name in modules(APP / "solver" / "engines")}


def test_every_engine_reads_decides_and_says() -> None:
    """Engines whose files have other names have a contract each."""
    staged: list[str] = []
    for name, contract in contracts().items():
        if name.endswith("reads, decides, says, in this order and never back"):
            assert contract["exhaustive"] is True
            staged += contract["containers"]
    assert sorted(staged) == sorted(f"app.solver.engines.{name}" for name in modules(APP / "solver" / "engines"))


def test_no_module_outside_of_an_engines_folders_names_it() -> None:
    """What holds for one engine stands in a record there, which all others ask."""
    facts = all_facts()
    called, folders = {one.name for one in facts}, {one.block for one in facts}
    naming = {
        path.relative_to(APP).as_posix()
        for path in APP.rglob("*.py")
        if not folders & {*path.relative_to(APP).parts, path.stem}
        and any(isinstance(node, ast.Constant) and node.value in called for node in nodes(path))
    }
    assert naming == {"solver/engines/__init__.py"}, "the list of engines"
    word = re.compile(f"[\"'>](?:{'|'.join(map(re.escape, called))})[\"'<]")
    assert [path.name for path in APP.rglob("*.html") if word.search(path.read_text())] == []


def test_no_module_compares_the_name_of_a_rule_set_or_a_release() -> None:
    """A table has what each of them does, and is asked by the rule."""
    settings = [get_type_hints(get_args(of)[0]) for of in get_type_hints(Settings).values()]
    called = {name for of in settings for field in ("rules", "release") if field in of for name in get_args(of[field])}
    assert {"shipped", "0.17"} <= called
    comparing = {
        f"{path.relative_to(APP)}:{node.lineno}"
        for path in APP.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Compare)
        and any(isinstance(of, ast.Constant) and of.value in called for one in (node.left, *node.comparators)
                for of in ast.walk(one))
    }  # fmt: skip
    assert comparing == set()


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports for the types alone are imports as well."""
    found = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PYTHON if APP in path.parents}
    modules = {name.removesuffix(".__init__") for name in found.values()}
    graph: dict[str, set[str]] = {}
    for path, name in found.items():
        asked = {
            dotted
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom) and node.module
            for dotted in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        }
        below = {one for one in asked & modules if not any(other.startswith(f"{one}.") for other in asked & modules)}
        graph[name.removesuffix(".__init__")] = below
    assert len(graph) > 100
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


_SAYING_NOTHING = {"found", "at", "one", "made", "kept", "told"}


def unnamed(path: Path) -> Iterator[str]:
    """Parameters, variables, attributes, functions and classes of ``path`` that are called after how they were come by.
    Fields of a class have the words of the wire."""
    fields = {
        id(line.target)
        for of in nodes(path)
        if isinstance(of, ast.ClassDef)
        for line in of.body
        if isinstance(line, ast.AnnAssign)
    }
    for node in nodes(path):
        name = ""
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name.lower()
        if name.strip("_") in _SAYING_NOTHING:
            yield f"{path.relative_to(ROOT)}: {name}"


def test_what_is_passed_and_what_comes_back_is_called_by_what_it_is() -> None:
    """``victims`` and ``revision``, not ``found``. The wire has its `Found`, and a curve its value ``at`` a place."""
    curves = {f"app/solver/engines/ytsaurus/{line}" for line in ("curves.py: at", "exact.py: _at", "polyline.py: at")}
    left = {
        "kai/explain.py: _found", "kai/explain.py: found", "kai/job_order.py: at", "kai/placing.py: _kept",
        "kai/search.py: _at", "kai/solver.py: found", "ytsaurus/preparation.py: told", "ytsaurus/reading.py: _at",
        "ytsaurus/reading.py: _one", "yunikorn/candidates.py: found", "yunikorn/ahead.py: told",
    }  # fmt: skip
    allowed = curves | {"app/search/service.py: found"} | {f"app/solver/engines/{line}" for line in left}
    assert {line for path in APP.rglob("*.py") for line in unnamed(path)} <= allowed


def test_no_file_is_past_500_lines() -> None:
    assert len(PYTHON) > 100
    assert {str(path): lines for path in PYTHON if (lines := path.read_text().count("\n")) > 500} == {}


def test_no_test_module_imports_another() -> None:
    """What tests share is in tests/support."""
    imported = re.compile(r"^(?:from|import) tests\.(?:[\w.]+\.)?test_", re.MULTILINE)
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert [file.name for file in files if imported.search(file.read_text())] == []


READS_AT_ONCE = {"all", "all_inner_texts", "count", "get_attribute", "inner_text", "input_value", "is_visible"}
ACTS = {"check", "click", "fill", "press", "select_option", "uncheck"}
LOADS = {"expect_navigation", "go", "goto", "reload", "wait_for_load_state", "wait_for_url"}


def test_a_browser_test_reads_no_page_that_may_still_load() -> None:
    """After what may leave the page, a test waits until the next one is there, or asks by ``expect``, which waits."""
    early: list[str] = []
    for path in sorted((ROOT / "tests" / "browser").rglob("test_*.py")):
        for function in (node for node in nodes(path) if isinstance(node, ast.FunctionDef)):
            acted = False
            methods = [n for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
            for call in sorted(methods, key=lambda n: (n.end_lineno, n.end_col_offset)):
                name = cast(ast.Attribute, call.func).attr
                acted = (acted or name in ACTS) and name not in LOADS
                if acted and name in READS_AT_ONCE:
                    early.append(f"{path.relative_to(ROOT)}:{call.lineno}: {name}")
    assert early == []


def test_only_the_settings_read_the_environment() -> None:
    allowed = {
        APP / "base" / "settings.py",
        APP / "cli" / "__init__.py",  # looks for misspelt names before the settings are loaded
        APP / "workers" / "pool.py",  # hands its own environment on to the workers
    }
    readers = {path for path in APP.rglob("*.py") if {"os.environ", "os.getenv"} & set(names(path))}
    assert readers <= allowed


def test_only_repositories_and_the_database_know_sql() -> None:
    allowed = {
        *(APP / "db").rglob("*.py"),
    }
    knowing = {
        path
        for path in APP.rglob("*.py")
        if any(
            (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("sqlalchemy", "psycopg")
            and {alias.name for alias in node.names} - {"Session", "RowMapping"})
            or (isinstance(node, ast.Import) and {alias.name for alias in node.names} & {"sqlalchemy", "psycopg"})
            for node in nodes(path)
        )
    }  # fmt: skip
    assert {str(path.relative_to(ROOT)) for path in knowing - allowed if path.name != "repository.py"} == set()


def _is_seeded(made: ast.Call) -> bool:
    return len(made.args) == 1 and not (isinstance(made.args[0], ast.Constant) and made.args[0].value is None)


def test_the_solver_reads_no_clock_and_draws_no_lots() -> None:
    """A generator with a seed draws none: it yields the same every time."""
    banned = {"time", "random", "secrets", "logging", "structlog", "socket", "subprocess", "threading", "os", "uuid"}
    found: set[str] = set()
    for path in (APP / "solver").rglob("*.py"):
        for node in nodes(path):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and ast.unparse(node) == "from random import Random":
                imported = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Random" and not _is_seeded(node):
                imported = ["random"]
            found |= {f"{path.relative_to(ROOT)}: {name}" for name in imported if name.split(".")[0] in banned}
        found |= {f"{path.relative_to(ROOT)}: {name}" for name in names(path) if name in ("datetime.now", "date.today")}
    assert found == set()


def test_every_file_that_the_docs_name_is_there() -> None:
    """What an old decision says of the house of its day stays as it was."""
    docs = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *APP.rglob("*.md")]
    there = [path.as_posix() for path in PYTHON]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in docs
        if "decisions" not in path.parts
        for name in re.findall(r"`([a-z_/]+/[a-z_]+\.py)`", path.read_text())
        if not any(file.endswith(f"/{name}") for file in there)
    }
    assert missing == set()


def test_the_changelog_is_whole() -> None:
    """A merge that takes a conflict for its end cuts it off there."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert lines[0] == "# Changelog"
    assert lines[-1] == "- Decisions of large states are logged as fast as they come."
    assert not [line for line in lines if line.startswith(("<<<<<<<", "=======", ">>>>>>>"))]
