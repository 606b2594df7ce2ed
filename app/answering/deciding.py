"""Which rule of a new release decided: each difference between two variants that differ in nothing but the release is
looked for again with rules as they were in the older one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from app.solver import solve
from app.solver.model.decision import Answer
from app.solver.question import Question
from app.solver.solve import Loaded

Said = Callable[[Answer], Any]
"""What an answer says of the one thing on which two differ."""


@dataclass(slots=True)
class Releases:
    """Two variants of one engine, ``older`` and ``newer`` in their places of the request."""

    older: int
    newer: int
    loaded: Loaded
    question: Question
    rules: tuple[str, ...]
    _known: dict[frozenset[str], Answer] = field(default_factory=dict[frozenset[str], Answer])

    def decided(self, said: Said, before: Any) -> list[str]:
        """The rules each of which alone makes the difference: with it undone the newer release says what the older
        says. Where none does, a smallest set of those that do together. Empty: no rule does, it is chance."""
        alone = [rule for rule in self.rules if said(self._without({rule})) == before]
        if alone or said(self._without(self.rules)) != before:
            return alone
        needed = set(self.rules)
        for rule in self.rules:
            if said(self._without(needed - {rule})) == before:
                needed.remove(rule)
        return [rule for rule in self.rules if rule in needed]

    def _without(self, rules: Iterable[str]) -> Answer:
        """The newer release's answer with these rules as they were in the older one."""
        undone = frozenset(rules)
        if undone not in self._known:
            configured = self.loaded.configured
            undo = configured.engine.undone
            assert undo is not None
            compiled = undo(configured.compiled, undone)
            loaded = solve.load(replace(configured, compiled=compiled), self.loaded.state)
            self._known[undone] = solve.decide(loaded, self.question)
        return self._known[undone]


def releases_of(variants: list[tuple[int, Loaded, Question]]) -> Iterator[Releases]:
    """Pairs of variants that differ in their release alone."""
    for (i, one, asked), (j, other, asked_other) in combinations(variants, 2):
        engine = one.configured.engine
        if engine is not other.configured.engine or engine.changed is None:
            continue
        if rules := engine.changed(one.configured.compiled, other.configured.compiled):
            yield Releases(i, j, other, asked_other, rules)
        elif rules := engine.changed(other.configured.compiled, one.configured.compiled):
            yield Releases(j, i, one, asked, rules)
