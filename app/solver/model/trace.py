"""The explanation as the wire shows it; ``app.solver.trace`` records it."""

from typing import Any, Literal

from app.solver.model.base import Wire

Number = int | float | str | bool | None

Verdict = Literal["victim", "put-back", "not-needed", "protected", "out-of-reach", "moved"]
"""What became of a candidate, in every engine alike; its rule says the rest.

``victim``: the answer evicts it. ``moved``: evicted and placed again (consolidation). ``put-back``: was taken in the
search and spared, because the ask fits with it. ``not-needed``: it could go, and the search ended without it.
``protected``: a rule forbids it. ``out-of-reach``: never looked at for this ask.
"""


class Candidate(Wire, frozen=True, kw_only=True):
    """One running workload or task that was looked at: what became of it, by which rule, on which numbers."""

    workload: str
    task: str | None = None
    queue: str | None = None
    node: str | None = None
    verdict: Verdict
    rule: str
    detail: str = ""
    numbers: dict[str, Any] = {}


class Group(Wire, frozen=True, kw_only=True):
    """Candidates that met the same fate by the same rule, collapsed (``explain: summary``)."""

    verdict: Verdict
    rule: str
    count: int
    examples: list[str]


class Step(Wire, frozen=True, kw_only=True):
    """One step of the algorithm: an attempt, a round, a scenario, a node considered."""

    rule: str
    detail: str
    numbers: dict[str, Any] = {}


class Change(Wire, frozen=True, kw_only=True):
    """The smallest change of one quota that would let the ask in, in whole units."""

    queue: str
    flavor: str | None = None
    resource: str
    field: str
    current: int | float | None = None
    needed: int | float
    detail: str = ""


class Explanation(Wire, frozen=True, kw_only=True):
    """Why. ``blocker``: what stands most in the way of an ask that waits."""

    level: Literal["summary", "full"]
    headline: str = ""
    steps: list[Step]
    candidates: list[Candidate] | None = None
    groups: list[Group] | None = None
    blocker: str | None = None
    smallest_change: list[Change] | None = None
