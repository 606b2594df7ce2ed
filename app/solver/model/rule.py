"""A rule of an engine, as the catalogue tells it: what explanations name by its id."""

from app.solver.model.base import Wire


class Rule(Wire, frozen=True, kw_only=True):
    """One rule of one engine. Its id never changes its meaning."""

    rule: str
    """Its id, as explanations name it."""
    sentence: str
    """What it says, in one sentence."""
    source: str
    """Where the origin says so: a file or a page of it; "Arbiter" where the origin has nothing like it."""
