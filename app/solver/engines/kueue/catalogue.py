"""Every rule that answers of Kueue name, with what it says and where it comes from."""

from app.solver.model.rule import Rule

RULES: tuple[Rule, ...] = ()
