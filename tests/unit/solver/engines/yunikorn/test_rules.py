"""The catalogue has every rule that the engine's code names, and no other."""

import ast
import re
from pathlib import Path

from app.solver.engines import yunikorn
from app.solver.engines.yunikorn import configuration
from app.solver.engines.yunikorn.candidates import REASONS
from app.solver.engines.yunikorn.configuration import DIFFERENCES
from app.solver.engines.yunikorn.engine import RULES
from app.solver.model.problems import PROPOSALS

PACKAGE = Path(yunikorn.__file__).parent


def strings() -> set[str]:
    """Every string in the engine's code but the catalogue's own."""
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "rules.py":
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found


def test_every_catalogued_rule_is_named_in_the_code() -> None:
    derived = {difference.rule for difference in DIFFERENCES} | {rule.rule for rule in PROPOSALS}
    assert {rule.rule for rule in RULES} - derived <= strings()


def test_every_difference_is_told_where_it_shows() -> None:
    told = (PACKAGE / "explain.py").read_text()
    named = [name for name, value in vars(configuration).items() if value in DIFFERENCES]
    assert len(named) == len(DIFFERENCES)
    assert [name for name in named if not re.search(rf"configuration\.{name}\b", told)] == []


def test_every_failure_is_catalogued() -> None:
    assert set(REASONS) <= {rule.rule for rule in RULES}
