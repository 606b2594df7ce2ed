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
CATALOGUE = ("_CANDIDATES", "_STEPS", "_FAILURES")


def strings() -> set[str]:
    """Every string in the engine's code but the catalogue's own."""
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for part in ast.parse(path.read_text()).body:
            if isinstance(part, ast.Assign | ast.AnnAssign) and _name(part) in CATALOGUE:
                continue
            nodes = ast.walk(part)
            found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found


def _name(assigned: ast.Assign | ast.AnnAssign) -> str:
    target = assigned.target if isinstance(assigned, ast.AnnAssign) else assigned.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


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
