"""The packages of ``app``, and where the tests are that may notice a change in each."""

from pathlib import Path

_EVERYWHERE = ["tests/unit", "tests/properties/test_requests.py", "tests/vectors"]
_LEFT_OUT = [
    # They read the code rather than run it.
    "tests/unit/test_house_rules.py",
    "tests/unit/test_mutants.py",
    # They run an installed Arbiter, not the code beside them.
    "tests/api/test_python_client.py",
    "tests/api/test_readme.py",
]


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


def arguments(root: Path, package: str) -> list[str]:
    """Arguments that make pytest collect what may notice a change in ``package``."""

    def named(pattern: str) -> list[str]:
        return sorted(path.relative_to(root).as_posix() for path in (root / "tests").glob(pattern))

    left_out = [f"--ignore={path}" for path in _LEFT_OUT]
    engine = package.removeprefix("solver/engines/")
    if engine != package:
        units = [f"tests/unit/{package}", *named("unit/solver/*.py")]
        laws = [*named(f"properties/test_{engine}*.py"), "tests/properties/test_requests.py"]
        return [*units, *laws, "tests/vectors/test_parity.py", "-k", f"{engine} or not (properties or parity)"]
    if package == "formats":
        ours = [*named("properties/test_formats*.py"), *named("api/test_formats*.py")]
        return ["tests/unit/formats", "tests/unit/cli/test_manifests.py", *ours]
    if package == "solver":
        return [*_EVERYWHERE, *left_out]
    faults = ["tests/faults"] if package in ("app", "configurations", "decisions") else []
    return [*_EVERYWHERE, "tests/api", *faults, *left_out]
