"""What each test ran, kept between runs in ``.cache/mutants``.

A file of tests is watched again only where it, something that it may share with others, or a module that it ran has
changed.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple


class Reached(NamedTuple):
    """What one test did on the code as it is."""

    name: str
    seconds: float
    """Of the processor."""
    lines: Mapping[str, frozenset[int]]
    """The lines that it ran, by module."""
    processes: bool
    """Whether it started a process with the code under test, whose lines nobody saw."""
    passed: bool


class Recordings:
    """A file of JSON for each file of tests."""

    def __init__(self, root: Path, kept: Path) -> None:
        """``root``: the tree that is watched; ``kept``: a folder, made where it is missing."""
        self._root = root
        self._kept = kept
        kept.mkdir(parents=True, exist_ok=True)

    def read(self, file: str) -> list[Reached] | None:
        """What the tests of a file did; None where that isn't known of the tree as it is."""
        path = self._path(file)
        if not path.exists():
            return None
        kept = json.loads(path.read_text())
        if kept["of"] != self._digests(file, kept["of"]["modules"]):
            return None
        return [
            Reached(
                name,
                one["seconds"],
                {module: frozenset(lines) for module, lines in one["lines"].items()},
                one["processes"],
                one["passed"],
            )
            for name, one in kept["tests"].items()
        ]

    def keep(self, file: str, tests: Mapping[str, Any]) -> None:
        """Keep what was written down of the tests of a file (see ``reach``)."""
        modules = {module for one in tests.values() for module in one["lines"]}
        self._path(file).write_text(json.dumps({"of": self._digests(file, modules), "tests": tests}))

    def _path(self, file: str) -> Path:
        return self._kept / f"{file.replace('/', '-')}.json"

    def _digests(self, file: str, modules: Iterable[str]) -> dict[str, Any]:
        return {
            "tests": sha256(b"".join(self._digest(path) for path in self._helpers(self._root / file))).hexdigest(),
            "modules": {module: self._digest(self._root / module).hex() for module in sorted(modules)},
        }

    def _helpers(self, test: Path) -> list[Path]:
        """A file of tests, what lies in and below its folder without being one, and in the folders above."""
        above = [folder for folder in test.parents if folder.is_relative_to(self._root / "tests")]
        found = [path for folder in above for path in folder.glob("*.py")] + list(test.parent.rglob("*.gz"))
        found += [path for path in test.parent.rglob("*.py") if path.parent != test.parent]
        return [test, *sorted(path for path in found if not path.name.startswith("test_"))]

    def _digest(self, path: Path) -> bytes:
        return sha256(path.read_bytes()).digest() if path.exists() else b""
