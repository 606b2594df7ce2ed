"""The answer: decisions with victims and conditions, and the plan to carry out."""

from typing import Any, Literal

from app.solver.model.base import Time, Wire
from app.solver.model.trace import Explanation

Units = int | float
Outcome = Literal["admit", "preempt", "wait", "infeasible"]


class Condition(Wire, frozen=True, kw_only=True):
    """A Kubernetes-style condition."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: Time


class Victim(Wire, frozen=True, kw_only=True):
    """A running workload, or one of its tasks, that the decision evicts; ``freed`` in whole units."""

    workload: str
    task: str | None = None
    queue: str
    node: str | None = None
    reason: str
    message: str
    conditions: list[Condition]
    freed: dict[str, Units]
    on_preemption: Literal["Requeue", "Terminate"] | None = None
    timeout_seconds: Units | None = None


class Shortage(Wire, frozen=True, kw_only=True):
    """What an ask lacks of one resource: ``short`` = ``requested`` - ``available``, in whole units."""

    resource: str
    flavor: str | None = None
    queue: str | None = None
    node: str | None = None
    requested: Units
    available: Units
    short: Units


class Decision(Wire, frozen=True, kw_only=True):
    """The answer for one ask. ``beyond`` names rules that the origin does not have and that changed this decision."""

    ask: str
    outcome: Outcome
    node: str | None = None
    placements: dict[str, str] | None = None
    assignment: dict[str, dict[str, str]] | None = None
    borrowing: bool | None = None
    counts: dict[str, int] | None = None
    victims: list[Victim]
    conditions: list[Condition]
    shortages: list[Shortage] | None = None
    beyond: list[str] | None = None
    starts: list[str] | None = None
    explanation: Explanation | None = None


class PlannedEviction(Wire, frozen=True, kw_only=True):
    workload: str
    task: str | None = None
    queue: str
    node: str | None = None
    reason: str
    for_ask: str | None = None


class Placement(Wire, frozen=True, kw_only=True):
    """``pipelined``: waits for resources that are still being released."""

    ask: str | None = None
    workload: str | None = None
    task: str
    node: str
    pipelined: bool
    stage: str | None = None


class Plan(Wire, frozen=True, kw_only=True):
    """What to carry out, in order; each eviction once."""

    evictions: list[PlannedEviction]
    placements: list[Placement]


class Result(Wire, frozen=True, kw_only=True):
    """What an engine returns. ``notes`` are engine-specific additions shown beside the plan (state to carry over)."""

    decisions: list[Decision]
    order: list[str] | None = None
    plan: Plan
    notes: dict[str, Any] | None = None


class ConfigurationUsed(Wire, frozen=True, kw_only=True):
    name: str | None = None
    revision: int | None = None
    digest: str


class StateUsed(Wire, frozen=True, kw_only=True):
    digest: str
    snapshot: str | None = None
    generation: int | None = None


class Answer(Wire, frozen=True, kw_only=True):
    """The body of a decision response; ``id`` and ``stats`` are added by the service and are not part of it."""

    engine: str
    configuration: ConfigurationUsed
    state: StateUsed
    decisions: list[Decision]
    order: list[str] | None = None
    plan: Plan
    notes: dict[str, Any] | None = None


def plan_of(decisions: list[Decision]) -> Plan:
    """The union of the decisions' victims, in order, each once. Placements are the engine's to add."""
    seen: set[tuple[str, str | None]] = set()
    evictions: list[PlannedEviction] = []
    for decision in decisions:
        for victim in decision.victims:
            if (key := (victim.workload, victim.task)) not in seen:
                seen.add(key)
                evictions.append(
                    PlannedEviction(
                        workload=victim.workload, task=victim.task, queue=victim.queue, node=victim.node,
                        reason=victim.reason, for_ask=decision.ask,
                    )
                )  # fmt: skip
    return Plan(evictions=evictions, placements=[])
