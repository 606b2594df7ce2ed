"""What answers and the decision log look like on the wire, with small requests and answers for the OpenAPI document."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from app.answering.snapshots import FollowedAge
from app.base import shipped
from app.http.openapi import shown_as
from app.solver.engine import all_facts, example
from app.solver.engines import FIRST
from app.solver.model.base import Time
from app.solver.model.decision import Answer, ConfigurationUsed, Outcome, Units
from app.solver.model.problems import Finding


class DecisionAnswer(Answer, frozen=True, kw_only=True):
    """``POST /v1/decisions``: only ``id``, ``followed`` and ``stats`` (milliseconds by stage) may differ between equal
    requests."""

    id: UUID
    """The id of the decision in the log."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was decided on. Absent: no follower keeps it."""
    stats: dict[str, float]
    """Milliseconds by stage; what equal requests may differ in."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine noticed on its way; ``rule`` is a stable id, ``pointer`` leads into the request."""

    rule: str
    """A stable id of the remark."""
    pointer: str
    """Where: an RFC 6901 pointer into the request."""
    detail: str
    """The remark, in one sentence."""


class Shares(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/shares``: by name of queue and id of workload, as the engine counts.

    YTsaurus adds what the nodes have in ``total``, the ``fair_share`` of all queues together, and its own codes of
    what is wrong with the guarantees in ``alerts``.
    """

    engine: str
    """Whose rules counted."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    queues: dict[str, dict[str, Any]]
    """By name of queue: what it is entitled to and uses, as the engine counts; amounts in whole units."""
    workloads: dict[str, dict[str, Any]] | None = None
    """By id of workload, where the engine counts those (YTsaurus)."""
    total: dict[str, Units] | None = None
    """What the nodes have together, in whole units, by resource (YTsaurus)."""
    fair_share: dict[str, Units] | None = None
    """The fair share of all queues together (YTsaurus)."""
    alerts: list[int] | None = None
    """What is wrong with the guarantees, by YTsaurus' own codes, ascending: 29000 they exceed the cluster, 29001
    promised shares are asked for below a pool that asks for them too, 29002 a priority pool has no donor above."""
    warnings: list[Remark] | None = None
    """What the engine noticed on its way."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    this may be wrong (`error`) or differ (`warning`). Absent: nothing."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was asked about. Absent: no follower keeps it."""


class Preemptibility(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/preemptibility``: by id of workload; ``evict_allowed`` answers ``evict``."""

    engine: str
    """Whose rules protect."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    workloads: dict[str, dict[str, Any]]
    """By id of workload: whether it could be preempted, and what protects it."""
    evict_allowed: bool | None = None
    """Whether evicting exactly `evict` together would pass. Absent: not asked."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    this may be wrong (`error`) or differ (`warning`). Absent: nothing."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was asked about. Absent: no follower keeps it."""


class EffectiveSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/effective-settings``: by name of queue and id of workload; ``settings`` of the scheduler."""

    engine: str
    """Whose settings."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    settings: dict[str, Any] | None = None
    """Of the scheduler itself, by name: its `release`, and its `rules` where it has several sets."""
    queues: dict[str, dict[str, Any]]
    """By name of queue: what it inherits or overrides in the end; durations in seconds."""
    workloads: dict[str, dict[str, Any]] | None = None
    """By id of workload, where workloads override settings (YTsaurus)."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    this may be wrong (`error`) or differ (`warning`). Absent: nothing."""
    followed: FollowedAge | None = None
    """How old the snapshot is that was asked about. Absent: no follower keeps it."""


Purpose = Literal["decision", "what-if", "simulation"]
"""What a decision is asked for: by a scheduler, to see what would be, or as a round of a simulation looked at again."""


class OutcomeCount(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided in one interval."""

    at: Time
    """Where it begins."""
    outcomes: dict[Outcome, int]
    """How many asks had each outcome; one that none had is left out."""


class EvictionCount(msgspec.Struct, frozen=True, kw_only=True):
    """Evictions of one kind."""

    by: str
    """The queue of the asks that they were for; empty: for no ask."""
    queue: str
    """The queue that what was evicted was charged to."""
    reason: str
    """Why, in one word: the engine's own reason."""
    times: int
    """How many."""


class DecisionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """``GET /v1/decisions:counts``: what the log has between two moments."""

    since: Time
    """Included."""
    until: Time
    """Not included."""
    decisions: int
    """How many were logged."""
    evictions: int
    """How many evictions their plans have together."""
    intervals: list[OutcomeCount]
    """60 of equal length, one after the other."""
    stops: list[EvictionCount]
    """Whose asks evicted whose work, most often first; at most 200. What was logged before it was noted is missing."""


class DecisionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log. ``asks`` and ``outcomes`` run in parallel; ``evictions`` counts those of the plan."""

    id: UUID
    """The id of the decision."""
    created_at: Time
    """When it was logged."""
    now: Time
    """The time it was made for."""
    engine: str
    """Whose rules decided."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Null: it has those of one, or did not note it
    yet."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    state_digest: str
    """The digest of the state that was used."""
    request_digest: str
    """SHA-256 of the request's body."""
    asks: list[str]
    """The ids of the asks, in order."""
    outcomes: list[Outcome]
    """The outcome of each ask, in the same order."""
    evictions: int
    """How many evictions the plan has."""
    actor: str | None = None
    """Who asked: `token:<name>`, `oidc:<subject>`, or `anonymous` on an open service. Null: logged before that was
    noted."""
    queues: list[str] = []
    """The queues of the asks and of what is evicted."""
    circle: bool = False
    """Whether it belongs to a circle seen in the log: it evicts a workload for another, and a decision made for a time
    within an hour of this one's, by the same engine on a configuration of the same name, evicts the other for the
    one."""
    purpose: Purpose = "decision"
    """What it was asked for."""
    stats: dict[str, float]
    """Milliseconds by stage."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workload, or one of its tasks, that a decision stops."""

    task: str | None = None
    """The name of the task. Absent: all of the workload."""
    queue: str
    """The queue it was charged to."""
    node: str | None = None
    """The node it ran on. Absent: the engine knows no nodes, or it ran on several."""
    reason: str
    """Why, in one word: the engine's own reason."""
    message: str | None = None
    """Why, in one sentence. Absent: the plan stops it, and no ask's victims have it."""
    for_ask: str | None = None
    """The id of the ask that needed it. Absent: no ask did."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An ask of a workload, and what was decided on it."""

    ask: str
    """The id of the ask."""
    outcome: Outcome
    """What was decided."""
    reason: str | None = None
    """The reason of its first condition. Absent: it has none."""
    message: str | None = None
    """The message of its first condition. Absent: it has none."""


class Spared(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workload, or one of its tasks, that another scheduler would have evicted, and may not."""

    task: str | None = None
    """The name of the task. Absent: all of the workload."""
    node: str
    """Where the room would have been: the proposal."""
    rule: str
    """By which rule; `GET /v1/rules` says what it means."""
    message: str
    """The rule on this one, in one sentence."""
    for_ask: str | None = None
    """The id of the ask that it would have made room for. Absent: for work that is in no queue."""


class WorkloadEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that stops the workload, spares it, or is about an ask of it."""

    decision: UUID
    """The id of the decision."""
    created_at: Time
    """When it was logged."""
    now: Time
    """The time it was made for."""
    engine: str
    """Whose rules decided."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one, or did not note it
    yet."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    actor: str | None = None
    """Who asked. Absent: logged before that was."""
    stopped: list[Stop] = []
    """What of the workload is stopped."""
    asked: list[Asked] = []
    """Asks of the workload."""
    spared: list[Spared] = []
    """What of the workload another scheduler would have evicted, and may not."""
    purpose: Purpose = "decision"
    """What the decision was asked for. Absent: by a scheduler, to be carried out."""


class WorkloadHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``GET /v1/workloads/{id}/history``: what was decided, whether or not it was carried out."""

    workload: str
    """The id of the workload."""
    stopped: int
    """How many decisions in the log stop it, or part of it."""
    asked: int
    """How many decisions in the log are about an ask of it."""
    items: list[WorkloadEvent]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``GET /v1/decisions``: newest first; ``next_cursor`` is absent on the last page."""

    items: list[DecisionSummary]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class DecisionRecord(DecisionSummary, frozen=True, kw_only=True):
    """``GET /v1/decisions/{id}``: ``answer`` as it was given, without ``id`` and ``stats``."""

    answer: Annotated[msgspec.Raw, shown_as(Answer)]
    """The answer as it was given, without `id` and `stats`."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """``POST /v1/decisions/{id}/replay``. ``differences``: JSON pointers into the answers, empty when identical."""

    decision: UUID
    """The id of the decision that was made again."""
    identical: bool
    """Whether the answer is the same, byte for byte."""
    recorded_digest: str
    """SHA-256 of the recorded answer."""
    replayed_digest: str
    """SHA-256 of the answer now."""
    differences: list[str]
    """JSON pointers to where the answers differ."""
    answer: Annotated[msgspec.Raw, shown_as(Answer)]
    """The answer now."""


SITUATION: dict[str, Any] = {
    "now": "2026-03-02T09:30:00Z",
    "configuration": {
        "engine": FIRST,
        "queues": [
            example().parent,
            {"name": "research", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}, **example().preempting},
            {"name": "serving", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}, **example().preempting},
        ],
    },
    "state": {
        "workloads": [
            {
                "id": "sweep-17",
                "queue": "research",
                "started_at": "2026-03-02T07:10:05Z",
                "tasks": [{"name": "trial", "requests": {"cpu": 10}, "flavors": {"cpu": "default"}}],
            }
        ]
    },
}

ASK: dict[str, Any] = {
    "id": "chat-api",
    "queue": "serving",
    "priority": 100,
    "tasks": [{"name": "replica", "count": 2, "requests": {"cpu": "3500m"}, "flavors": {"cpu": "default"}}],
}

CARRIED: dict[str, Any] = {
    "asks": [ASK],
    "decisions": [
        {
            "ask": "chat-api",
            "outcome": "preempt",
            "victims": [
                {
                    "workload": "sweep-17",
                    "queue": "research",
                    "reason": "InCohortReclamation",
                    "message": "Preempted to accommodate a workload due to reclamation within the cohort",
                    "conditions": [],
                    "freed": {"cpu": 10},
                }
            ],
            "conditions": [],
        }
    ],
    "plan": {
        "evictions": [
            {"workload": "sweep-17", "queue": "research", "reason": "InCohortReclamation", "for_ask": "chat-api"}
        ],
        "placements": [],
    },
}

DECISION: dict[str, Any] = {**SITUATION, "asks": [ASK], "explain": "summary"}


def by_engine() -> dict[str, Any]:
    """The requests that come with Arbiter: the first of each engine by file, under the title of its system."""
    files = sorted(shipped("examples").glob("*.json"))
    requests: list[dict[str, Any]] = [msgspec.json.decode(file.read_bytes()) for file in files]
    decided = [request for request in requests if "asks" in request and "variants" not in request]
    return {
        facts.title: first
        for facts in all_facts()
        if (first := next((request for request in decided if request.get("engine") == facts.name), None)) is not None
    }
