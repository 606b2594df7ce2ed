"""What a follower reports of a real preemption, and what is kept of the comparison."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from app.solver.model.base import Name, Time, Wire
from app.solver.model.configuration import EngineName
from app.solver.model.request import DecisionRequest

ShadowOutcome = Literal["agreed", "differs", "unjudged"]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
MOMENTS = 4


class ShadowVictim(Wire, frozen=True, kw_only=True):
    """Running work that was evicted, or that Arbiter would evict."""

    workload: Name
    """The id of the workload, as the state has it."""
    task: Name | None = None
    """The name of one of its tasks. Absent: all of it."""
    reason: Text | None = None
    """Why, in the engine's own word. Absent: the cluster does not say; then it is not compared."""


class ShadowReport(Wire, frozen=True, kw_only=True):
    """``POST /v1/shadow``: one real preemption, and the question that the scheduler had answered."""

    cluster: Name
    """Where it happened: the name under which the cluster is followed."""
    engine: EngineName
    """Which scheduler it was."""
    ask: Name
    """For whom: the id of the ask in the requests, or whatever else is known of who it was."""
    seen_at: Time
    """When the first of the evictions was seen."""
    victims: Annotated[list[ShadowVictim], msgspec.Meta(min_length=1, max_length=100_000)]
    """Who was evicted."""
    requests: Annotated[list[DecisionRequest], msgspec.Meta(max_length=MOMENTS)] = []
    """The question at the moment before, with configuration, state and asks written out. Where it can't be told at
    which moment the scheduler decided, one for each, the likeliest first: it agrees if one of them does."""
    unjudged: Text | None = None
    """Why there is no question to compare with. Exactly one of `requests` and this is given."""


class ShadowRecord(Wire, frozen=True, kw_only=True):
    """A real preemption, compared."""

    id: UUID
    """Its id; ids sort by time."""
    created_at: datetime
    """When it was compared."""
    cluster: str
    """Where it happened."""
    engine: EngineName
    """Which scheduler it was."""
    ask: str
    """For whom."""
    seen_at: datetime
    """When the first of the evictions was seen."""
    outcome: ShadowOutcome
    """`agreed`: Arbiter evicts the same, for the same reasons; `differs`: it does not; `unjudged`: `detail` says why
    that can't be told."""
    detail: str
    """How it differs, or why it can't be told, in one sentence; empty where it agrees."""
    observed: list[ShadowVictim]
    """Who was evicted."""
    expected: list[ShadowVictim]
    """Whom Arbiter would have evicted."""
    not_expected: list[ShadowVictim]
    """Who was evicted, though Arbiter would not have, or for another reason."""
    not_observed: list[ShadowVictim]
    """Who was not evicted, though Arbiter would have, or for another reason."""
    has_request: bool
    """Whether `GET /v1/shadow/{id}/request` has the question: it is kept where the two differ."""


class ShadowPage(Wire, frozen=True, kw_only=True):
    items: list[ShadowRecord]
    """Newest first."""
    next_cursor: str | None = None
    """Where the next page begins. Absent: this is the last."""
