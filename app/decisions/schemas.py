"""What answers and the decision log look like on the wire."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.http.openapi import shown_as
from app.solver.model.base import Time
from app.solver.model.decision import Answer, ConfigurationUsed, Outcome, Units


class DecisionAnswer(Answer, frozen=True, kw_only=True):
    """``POST /v1/decisions``: only ``id`` and ``stats`` (milliseconds by stage) may differ between equal requests."""

    id: UUID
    stats: dict[str, float]


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine noticed on its way; ``rule`` is a stable id, ``pointer`` leads into the request."""

    rule: str
    pointer: str
    detail: str


class Shares(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/shares``: by name of queue and id of workload, as the engine counts.

    YTsaurus adds what the nodes have in ``total``, and the ``fair_share`` of all queues together.
    """

    engine: str
    configuration: ConfigurationUsed
    queues: dict[str, dict[str, Any]]
    workloads: dict[str, dict[str, Any]] | None = None
    total: dict[str, Units] | None = None
    fair_share: dict[str, Units] | None = None
    warnings: list[Remark] | None = None


class Preemptibility(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/preemptibility``: by id of workload; ``evict_allowed`` answers ``evict``."""

    engine: str
    configuration: ConfigurationUsed
    workloads: dict[str, dict[str, Any]]
    evict_allowed: bool | None = None


class EffectiveSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``POST /v1/effective-settings``: by name of queue and id of workload; ``settings`` of the scheduler (KAI)."""

    engine: str
    configuration: ConfigurationUsed
    settings: dict[str, Any] | None = None
    queues: dict[str, dict[str, Any]]
    workloads: dict[str, dict[str, Any]] | None = None


class DecisionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log. ``asks`` and ``outcomes`` run in parallel; ``evictions`` counts those of the plan."""

    id: UUID
    created_at: Time
    now: Time
    engine: str
    configuration: ConfigurationUsed
    state_digest: str
    request_digest: str
    asks: list[str]
    outcomes: list[Outcome]
    evictions: int
    stats: dict[str, float]


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``GET /v1/decisions``: newest first; ``next_cursor`` is absent on the last page."""

    items: list[DecisionSummary]
    next_cursor: str | None = None


class DecisionRecord(DecisionSummary, frozen=True, kw_only=True):
    """``GET /v1/decisions/{id}``: ``answer`` as it was given, without ``id`` and ``stats``."""

    answer: Annotated[msgspec.Raw, shown_as(Answer)]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """``POST /v1/decisions/{id}/replay``. ``differences``: JSON pointers into the answers, empty when identical."""

    decision: UUID
    identical: bool
    recorded_digest: str
    replayed_digest: str
    differences: list[str]
    answer: Annotated[msgspec.Raw, shown_as(Answer)]
