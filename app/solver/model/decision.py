"""The answer: decisions with victims, conditions and explanation, and the plan to carry out."""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from app.solver.model.base import Time, Total, Wire
from app.solver.model.kueue import Ask as KueueAsk
from app.solver.model.kueue import TopologyAssignment
from app.solver.model.problems import Finding

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
    """The smallest change of one quota that would let the ask in, in whole units. kube-scheduler has no quotas: of the
    ask (`priority`, `requests`, `min_available`), or of a budget that its victims violate (`disruptions_allowed`)."""

    queue: str
    """The queue whose quota would have to change, or the namespace."""
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
    """The smallest changes of one quota that would each let the ask in, or would let it violate a budget less."""
    ties: list[str] | None = None
    """What the origin chooses among by chance: nodes (kube-scheduler), cohorts whose shares are equal (Kueue, fair
    sharing); the answer has the first. Absent: no chance."""


Units = int | float
Outcome = Literal["admit", "preempt", "wait", "infeasible"]
STARTS: tuple[Outcome, ...] = ("admit", "preempt")
"""With these an ask runs, now or once others have stopped."""


def label(workload: str, task: str | None) -> str:
    """A workload, or one of its tasks, as people read it."""
    return workload if task is None else f"{workload}/{task}"


EXAMPLES = 5


def grouped(records: Iterable[Candidate]) -> list[Group]:
    """Candidates by what became of them, each group with its first few."""
    alike: dict[tuple[Verdict, str], list[Candidate]] = {}
    for record in records:
        alike.setdefault((record.verdict, record.rule), []).append(record)
    return [
        Group(verdict=verdict, rule=rule, count=len(of), examples=[label(c.workload, c.task) for c in of[:EXAMPLES]])
        for (verdict, rule), of in alike.items()
    ]


class Condition(Wire, frozen=True, kw_only=True):
    """A Kubernetes-style condition."""

    type: str
    """What it is about: `QuotaReserved`, `Preempted`, `Evicted` and others."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """One word for programs."""
    message: str
    """One sentence for people."""
    last_transition_time: Time
    """When it came to hold: the decision's `now`."""


class Victim(Wire, frozen=True, kw_only=True):
    """A running workload, or one of its tasks, that the decision evicts; ``freed`` in whole units."""

    workload: str
    """The id of the workload that stops."""
    task: str | None = None
    """The name of the task that stops. Absent: all of the workload."""
    queue: str
    """The queue it is charged to."""
    node: str | None = None
    """The node it runs on. Absent: the engine knows no nodes, or it runs on several."""
    reason: str
    """Why, in one word: the engine's own reason."""
    message: str
    """Why, in one sentence."""
    conditions: list[Condition]
    """The conditions that the origin would set on it."""
    freed: dict[str, Units]
    """What its stopping frees, in whole units, by resource."""
    on_preemption: Literal["Requeue", "Terminate"] | None = None
    """What becomes of it, as its workload says (Kueue). Absent: not said."""
    timeout_seconds: Units | None = None
    """How long it may take to stop before it is killed, in seconds (YTsaurus). Absent: no such time."""


class Shortage(Wire, frozen=True, kw_only=True):
    """What an ask lacks of one resource: ``short`` = ``requested`` - ``available``, in whole units."""

    resource: str
    """What is short."""
    flavor: str | None = None
    """Of which flavor (Kueue). Absent: the engine knows none."""
    queue: str | None = None
    """Where quota is short. Absent: it is not quota."""
    node: str | None = None
    """Which node is short. Absent: it is not a node."""
    requested: Units
    """What is asked for, in whole units."""
    available: Units
    """What is there, in whole units."""
    short: Units
    """`requested` less `available`, in whole units."""


class PlannedEviction(Wire, frozen=True, kw_only=True):
    workload: str
    """The id of the workload to evict."""
    task: str | None = None
    """The name of the task to evict. Absent: all of the workload."""
    queue: str
    """The queue it is charged to."""
    node: str | None = None
    """The node it runs on. Absent: the engine knows no nodes, or it runs on several."""
    reason: str
    """Why, in one word: the engine's own reason."""
    for_ask: str | None = None
    """The id of the ask that needs it. Absent: no ask does (a limit or a node is exceeded)."""
    just_placed: bool | None = None
    """It does not run: the same cycle gave it a place on `node`, and took it again (released KAI). Absent: it runs."""


class Placement(Wire, frozen=True, kw_only=True):
    """``pipelined``: waits for resources that are still being released."""

    ask: str | None = None
    """The id of the ask that is placed. Absent: running work moves."""
    workload: str | None = None
    """The id of the workload that moves. Absent: an ask is placed."""
    task: str
    """The name of the task."""
    node: str
    """Where it goes."""
    pipelined: bool
    """Whether it waits there for resources that are still being released."""
    stage: str | None = None
    """The stage of scheduling that placed it (YTsaurus)."""


class Plan(Wire, frozen=True, kw_only=True):
    """What to carry out, in order; each eviction once. Empty where several asks were decided each alone."""

    evictions: list[PlannedEviction]
    """What to evict, in order, each once."""
    placements: list[Placement]
    """What to place, in order, where the engine places."""
    chance: "Chance | None" = None
    """What else it could be, where the origin draws lots (KAI 0.17). Absent: it leaves nothing to chance here."""


class Alternative(Wire, frozen=True, kw_only=True):
    """Another outcome of the same question."""

    share: float
    """Of all draws those that came to it, from 0 to 1."""
    plan: Plan
    """What would be carried out."""


class Chance(Wire, frozen=True, kw_only=True):
    """What the origin leaves to the order of a map was drawn many times: the answer is what most draws came to."""

    draws: Total
    """How many draws there were. 0: they would have taken too long, and the answer is that of the likeliest orders."""
    share: float | None = None
    """Of all draws those that came to the answer, from 0 to 1. Absent: there were none."""
    others: list[Alternative]
    """What the other draws came to, the likeliest first."""


class Decision(Wire, frozen=True, kw_only=True):
    """The answer for one ask. ``beyond`` names rules that the origin does not have and that changed this decision."""

    ask: str
    """The id of the ask."""
    outcome: Outcome
    """`admit`: it fits as things are; `preempt`: once the victims have stopped; `wait`: it could run later;
    `infeasible`: never under this configuration."""
    node: str | None = None
    """The node it is bound to (`admit`) or that is reserved for it (`preempt`), where the engine places. Absent: none,
    or several."""
    placements: dict[str, str] | None = None
    """The node of each task, by name of the task, where the engine places."""
    assignment: dict[str, dict[str, str]] | None = None
    """The flavor of each resource, by name of the task and of the resource (Kueue)."""
    borrowing: bool | None = None
    """Whether it uses more than the nominal quota of its queue (Kueue)."""
    counts: dict[str, Total] | None = None
    """How many of each task are admitted, where fewer than asked."""
    victims: list[Victim]
    """What stops for it, in the engine's order."""
    violations: Total | None = None
    """How many of the victims violate a PodDisruptionBudget (kube-scheduler)."""
    conditions: list[Condition]
    """The conditions that the origin would set on it; one says why it waits."""
    shortages: list[Shortage] | None = None
    """What it lacks. Absent: nothing."""
    beyond: list[str] | None = None
    """Rules that the origin does not have and that changed this decision. Absent: none."""
    starts: list[str] | None = None
    """Names of the tasks that start now, where not all of them do."""
    plan: Plan | None = None
    """What to carry out for this ask, as if it were alone (mode `independent`). Absent: the answer's `plan` says it."""
    topology_assignment: dict[str, TopologyAssignment] | None = None
    """Where the pods of each task run, by name of the task: of `admit`; of `preempt`, where they would once the victims
    have stopped (Kueue). Absent: no topology has a say."""
    kueue: KueueAsk | None = None
    """What its ask carries to the next cycle (Kueue, mode `cycle`). Absent: nothing."""
    explanation: Explanation | None = None
    """Why, at the level that `explain` asked for."""


class Refusal(Wire, frozen=True, kw_only=True):
    """Why one workload or task of a proposal may not be evicted."""

    workload: str
    """The id of the workload."""
    task: str | None = None
    """The name of the task. Absent: all of the workload."""
    rule: str
    """By which rule; `GET /v1/rules` says what it means."""
    detail: str
    """The rule on this one, in one sentence."""


class ProposalVerdict(Wire, frozen=True, kw_only=True):
    """What the rules say to one proposal: it stands as a whole or not at all."""

    node: str
    """The proposal."""
    allowed: bool
    """Whether all that it would evict may go together."""
    refusals: list[Refusal] = []
    """Who may not, and why; none where it is allowed."""
    preferred: bool = False
    """Whether that scheduler would take it if nobody said no; it draws where there are several."""
    taken: bool = False
    """Whether it takes it of those that are allowed; it draws where there are several."""


class Result(Wire, frozen=True, kw_only=True):
    """What an engine returns. ``notes`` are engine-specific additions shown beside the plan (state to carry over)."""

    decisions: list[Decision]
    """One for each ask, in the order of the request."""
    order: list[str] | None = None
    """Ids of the asks in the order in which the engine took them (mode `cycle`)."""
    plan: Plan
    """What to carry out."""
    notes: dict[str, Any] | None = None
    """What the engine carries over to its next cycle."""
    proposals: list[ProposalVerdict] | None = None
    """One for each proposal of the request, in its order. Absent: it has none."""


class ConfigurationUsed(Wire, frozen=True, kw_only=True):
    name: str | None = None
    """Its name. Absent: it was sent with the request."""
    revision: int | None = None
    """Its revision. Absent: it was sent with the request."""
    digest: str
    """SHA-256 of the document as decoded."""


class StateUsed(Wire, frozen=True, kw_only=True):
    digest: str
    """Changes with the content of the state, and with nothing else."""
    snapshot: str | None = None
    """The name of the snapshot. Absent: the state was sent with the request."""
    generation: int | None = None
    """The generation of the snapshot. Absent: the state was sent with the request."""
    resource_versions: dict[str, str] | None = None
    """Where the snapshot follows a cluster: the resource version, by kind, up to which it has followed."""


class Answer(Wire, frozen=True, kw_only=True):
    """The body of a decision response; ``id`` and ``stats`` are added by the service and are not part of it."""

    engine: str
    """Whose rules decided."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    state: StateUsed
    """The state that was used."""
    decisions: list[Decision]
    """One for each ask, in the order of the request."""
    order: list[str] | None = None
    """Ids of the asks in the order in which the engine took them (mode `cycle`)."""
    plan: Plan
    """What to carry out: the union of all victims in order, each once, and placements. Empty where several asks were
    decided each alone (mode `independent`): their plans exclude one another, and stand in the decisions."""
    notes: dict[str, Any] | None = None
    """What the engine carries over to its next cycle."""
    proposals: list[ProposalVerdict] | None = None
    """One for each proposal of the request, in its order. Absent: it has none."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that the
    answer may be wrong (`error`) or differ (`warning`): their `findings`, the worst first. Absent: nothing."""


def each_alone(decided: list[tuple[Decision, Plan]], notes: dict[str, Any] | None = None) -> Result:
    """The result of mode ``independent``: every decision has the plan of its ask. Nobody could carry several of them
    out, for each takes the same resources: only the plan of a single ask is the plan of the whole."""
    return Result(
        decisions=[msgspec.structs.replace(decision, plan=plan) for decision, plan in decided],
        plan=decided[0][1] if len(decided) == 1 else Plan(evictions=[], placements=[]),
        notes=notes,
    )


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


def planned(answer: Answer | Result) -> list[PlannedEviction]:
    """Every eviction that ``answer`` plans, for all of its asks or for one of them, each once."""
    plans = [answer.plan, *(decision.plan for decision in answer.decisions if decision.plan is not None)]
    evictions: dict[tuple[str, str | None], PlannedEviction] = {}
    for plan in plans:
        for eviction in plan.evictions:
            evictions.setdefault((eviction.workload, eviction.task), eviction)
    return list(evictions.values())
