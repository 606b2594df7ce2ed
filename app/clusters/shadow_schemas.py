"""What a follower reports of a real preemption, and what is kept of the comparison."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from app.solver.model.base import Name, Time, Total, Wire
from app.solver.model.configuration import EngineName
from app.solver.model.request import DecisionRequest

ShadowOutcome = Literal["agreed", "agreed_earlier", "differs", "unjudged"]
Assumed = Literal["admissions", "flavor_scan"]
Why = Literal["not_named", "not_known", "not_waiting", "too_long_ago", "refused", "unknown"]
Cause = Literal["same", "earlier", Assumed, "nobody", "victims", "reasons", Why]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
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
    seconds: Seconds = 0
    """How long before the first of the evictions the cluster was what `requests` say. 0: until the moment before it."""
    changes: Total = 0
    """How many changes of objects lie between: the scheduler had not heard of them yet."""
    assumed: Annotated[list[Assumed], msgspec.Meta(max_length=2)] = []
    """What the scheduler knows in its memory alone, as the requests take it to be: `admissions`: work that it had
    admitted and that was not written down yet; `flavor_scan`: where the scan of the ask's flavors goes on (Kueue)."""
    unjudged: Text | None = None
    """Why there is no question to compare with. Exactly one of `requests` and this is given."""
    cause: Why | None = None
    """The same in one word."""


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
    """`agreed`: Arbiter evicts the same, for the same reasons; `agreed_earlier`: it does for what the cluster was
    `seconds` before; `differs`: it does not; `unjudged`: `detail` says why that can't be told."""
    seconds: Seconds = 0
    """How long before the first of the evictions the cluster was what Arbiter was asked about."""
    changes: Total = 0
    """How many changes of objects lie between."""
    assumed: list[Assumed] = []
    """What the scheduler knew in its memory alone: admissions not written down yet; where a scan of flavors went on."""
    cause: Cause = "unknown"
    """The outcome in one more word, as the metric counts it: `same`, `earlier`, or what was assumed; `nobody`, other
    `victims`, other `reasons`; or why it is not judged."""
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


class ShadowCount(Wire, frozen=True, kw_only=True):
    """What was compared in one interval."""

    at: Time
    """Where it begins."""
    outcomes: dict[ShadowOutcome, Total]
    """How many preemptions had each outcome; one that none had is left out."""


class ShadowCounts(Wire, frozen=True, kw_only=True):
    """``GET /v1/shadow:counts``: how often the two agreed, between two moments."""

    since: Time
    """Included."""
    until: Time
    """Not included."""
    intervals: list[ShadowCount]
    """60 of equal length, one after the other."""
