"""The catalogue on the wire."""

from app.solver.model.base import Wire
from app.solver.model.configuration import EngineName
from app.solver.model.rule import Rule


class CataloguedRule(Rule, frozen=True, kw_only=True):
    """A rule with the engine whose rule it is; the same id may mean something else in another engine."""

    engine: EngineName
    """Whose rule it is."""


class Catalogue(Wire, frozen=True, kw_only=True):
    """Every rule, by engine and id."""

    rules: list[CataloguedRule]
    """By engine and id."""
