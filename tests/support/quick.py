"""Which modules of tests try the same in `make test` and in all other runs."""

import ast
import sys
from functools import cache
from pathlib import Path

_DEEPER = {
    "tests.support.profiles": ("Met", "PROFILE", "examples", "share"),
    "tests.vectors.files": ("AT_HAND", "recorded"),
}
"""What stands for more in other profiles than the quick one."""
_NAMES = {*_DEEPER, *(f"{module}.{name}" for module, names in _DEEPER.items() for name in names)}


def goes_deeper(module: str) -> bool:
    """Whether other profiles than the quick one try more in this module, which is imported: it takes one of those
    names, or something of a module of the tests that does."""
    seen, pending = set(_DEEPER), [module]
    while pending:
        if (one := pending.pop()) not in seen:
            taken, modules = _imports(Path(sys.modules[one].__file__ or ""))
            if taken & _NAMES:
                return True
            seen.add(one)
            pending += modules
    return False


@cache
def _imports(file: Path) -> tuple[set[str], set[str]]:
    """What a module takes, by its whole name; and the modules of the tests that it takes, or takes something of."""
    taken, origins = set[str](), set[str]()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            taken |= {f"{node.module}.{alias.name}" for alias in node.names}
            origins.add(node.module)
    return taken, {name for name in taken | origins if name.startswith("tests.") and name in sys.modules}
