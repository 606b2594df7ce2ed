"""The packages of ``app``, and where the tests are that may notice a change in each."""

from collections.abc import Iterable
from pathlib import Path

_LEFT_OUT = {
    # They read the code rather than run it.
    "tests/unit/test_house_rules.py",
    "tests/unit/test_mutants.py",
    # They run an installed Arbiter, not the code beside them.
    "tests/api/test_python_client.py",
    "tests/api/test_readme.py",
    "tests/api/test_wheel.py",
    # It needs what stands beside a full checkout.
    "tests/vectors/test_kai_large.py",
}


def packages(root: Path) -> dict[str, list[str]]:
    """Modules of each package, relative to ``root``: a package is an engine, a folder of ``app``, or ``app`` itself."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "app").rglob("*.py")):
        module = path.relative_to(root)
        found.setdefault(package_of(module), []).append(module.as_posix())
    return dict(sorted(found.items()))


def package_of(module: Path) -> str:
    """The package of a module, both without ``app`` in front where there is something behind it."""
    parts = module.parts[1:-1]
    if parts[:2] == ("solver", "engines") and len(parts) > 2:
        return "/".join(parts[:3])
    return parts[0] if parts else "app"


def chosen_tests(root: Path, paths: Iterable[str]) -> list[str]:
    """Files of tests that ``paths``, of files or of folders, mean, each once. Raises FileNotFoundError."""
    found: list[str] = []
    for path in paths:
        if not (root / path).exists():
            raise FileNotFoundError(path)
        below = sorted(one.relative_to(root).as_posix() for one in (root / path).rglob("test_*.py"))
        found += below if (root / path).is_dir() else [path]
    return list(dict.fromkeys(found))


def files(root: Path, package: str) -> list[str]:
    """Files of tests that may notice a change in ``package``, relative to ``root``; the vectors of an engine are asked
    without them."""

    def named(*patterns: str) -> list[str]:
        found = {path.relative_to(root).as_posix() for one in patterns for path in (root / "tests").glob(one)}
        return sorted(found - _LEFT_OUT)

    engine = package.removeprefix("solver/engines/")
    if engine != package:
        units = named(f"unit/{package}/**/test_*.py", "unit/solver/test_*.py", "unit/simulations/**/test_*.py")
        laws = named(f"properties/test_{engine}*.py", "properties/test_requests.py", "properties/test_explaining.py")
        return [*units, *laws]
    if package == "formats":
        ours = named("properties/test_formats*.py", "api/test_formats*.py")
        work = named("unit/answering/test_plan*.py", "unit/cli/test_plan*.py")
        return [*named("unit/formats/test_*.py"), "tests/unit/cli/test_manifests.py", *work, *ours]
    everywhere = named("unit/**/test_*.py", "properties/test_requests.py", "vectors/test_*.py")
    if package == "solver":
        return everywhere
    faults = named("faults/test_*.py") if package in ("app", "configurations", "decisions") else []
    return [*everywhere, *named("api/test_*.py"), *faults]
