"""The explanation as the wire shows it; ``app.solver.trace`` records it."""

from typing import Any, Literal

from app.solver.model.base import Total, Wire

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
    """The id of the workload."""
    task: str | None = None
    """The name of the task. Absent: all of the workload."""
    queue: str | None = None
    """The queue it is charged to."""
    node: str | None = None
    """The node it runs on."""
    verdict: Verdict
    """What became of it."""
    rule: str
    """By which rule; `GET /v1/rules` says what it means."""
    detail: str = ""
    """The rule on this candidate, in a few words."""
    numbers: dict[str, Any] = {}
    """What was compared, by name."""


class Group(Wire, frozen=True, kw_only=True):
    """Candidates that met the same fate by the same rule, collapsed (``explain: summary``)."""

    verdict: Verdict
    """What became of them."""
    rule: str
    """By which rule; `GET /v1/rules` says what it means."""
    count: Total
    """How many they are."""
    examples: list[str]
    """The first few of them: `workload`, or `workload/task`."""


class Step(Wire, frozen=True, kw_only=True):
    """One step of the algorithm: an attempt, a round, a scenario, a node considered."""

    rule: str
    """What was done; `GET /v1/rules` says what it means."""
    detail: str
    """The step, in a few words."""
    numbers: dict[str, Any] = {}
    """What was compared, by name."""


class Change(Wire, frozen=True, kw_only=True):
    """The smallest change of one quota that would let the ask in, in whole units."""

    queue: str
    """The queue whose quota would have to change."""
    flavor: str | None = None
    """The flavor, where the engine knows flavors."""
    resource: str
    """The resource."""
    field: str
    """The field of the quota."""
    current: int | float | None = None
    """Its value now, in whole units. Absent: none."""
    needed: int | float
    """The value that would let the ask in, in whole units."""
    detail: str = ""
    """The change, in a few words."""


class Explanation(Wire, frozen=True, kw_only=True):
    """Why. ``blocker``: what stands most in the way of an ask that waits."""

    level: Literal["summary", "full"]
    """How much is told."""
    headline: str = ""
    """The answer in one sentence."""
    steps: list[Step]
    """What the engine did, in order."""
    candidates: list[Candidate] | None = None
    """Every candidate, in the order in which they were looked at (`full`)."""
    groups: list[Group] | None = None
    """Candidates by what became of them (`summary`)."""
    blocker: str | None = None
    """What stands most in the way of an ask that waits."""
    smallest_change: list[Change] | None = None
    """The smallest changes of one quota that would each let the ask in."""
