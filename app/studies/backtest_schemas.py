"""The body and the answers of backtests.

A backtest as the OpenAPI document shows it.
"""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from app.answering.comparison import Difference
from app.jobs.service import JobState
from app.solver.model.base import Time, Wire
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Problem
from app.solver.model.request import Variant


class BacktestRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/backtests``. What is given must all hold for a logged decision to be decided again."""

    since: Time | None = None
    """Decisions logged at this time or later. Absent: from the first."""
    until: Time | None = None
    """Decisions logged before this time. Absent: up to when the backtest is asked for."""
    engine: EngineName | None = None
    """Those that this engine decided. Absent: any."""
    configuration: str | None = None
    """Those on the stored configuration of this name, in any revision. Absent: on any, stored or not."""
    queue: str | None = None
    """Those with an ask or an eviction in this queue. Absent: any."""
    actor: str | None = None
    """Those that this one asked for. Absent: anybody."""
    variants: Annotated[list[Variant], msgspec.Meta(min_length=1)]
    """What each changes in the logged requests, as in a comparison; names are unique."""


class Decided(Wire, frozen=True, kw_only=True):
    """What a number of decisions came to."""

    asks: dict[str, int] = {}
    """Asks by outcome."""
    evictions: int = 0
    """Evictions that they plan."""


class BacktestVariant(Wire, frozen=True, kw_only=True):
    """What one variant came to."""

    name: str
    """Its name."""
    same: int = 0
    """Decisions that it makes as they were logged: outcomes, nodes and evictions are the same."""
    differ: int = 0
    """Decisions that it makes otherwise."""
    refused: int = 0
    """Requests that its engine refuses."""
    logged: Decided = Decided()
    """What the log has for those that it does not refuse."""
    here: Decided = Decided()
    """What it decides on them."""


class Skipped(Wire, frozen=True, kw_only=True):
    """A logged decision that can't be made again."""

    decision: UUID
    """Its id."""
    reason: str
    """Why, such as a state that the log has not kept."""


class BacktestProgress(Wire, frozen=True, kw_only=True):
    """How far a backtest is."""

    decisions: int
    """Decisions that are done."""
    total: int
    """All of the range."""


class BacktestOutcome(Wire, frozen=True, kw_only=True):
    """What a backtest came to."""

    decisions: int
    skipped: int
    first_skipped: list[Skipped]
    variants: list[BacktestVariant]


class Backtest(JobState, frozen=True, kw_only=True):
    """``GET /v1/backtests/{id}``."""

    since: Time | None = None
    """From when. Absent: from the first entry."""
    until: Time
    """Up to when."""
    names: list[str]
    """The names of its variants."""
    progress: BacktestProgress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    decisions: int | None = None
    """Logged decisions in the range. Absent: it is not done."""
    skipped: int = 0
    """Of these, those that can't be made again."""
    first_skipped: list[Skipped] = []
    """The first 20 of them."""
    variants: list[BacktestVariant] = []
    """What each variant came to, in the order of the request. Empty until it is done."""
    error: str | None = None
    """Why it failed."""


class BacktestPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/backtests``: newest first."""

    items: list[Backtest]
    """Newest first, without counts."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class DecisionDiffers(Wire, frozen=True, kw_only=True):
    """A logged decision that a variant makes otherwise, or refuses."""

    decision: UUID
    """Its id in the log."""
    created_at: Time
    """When it was logged."""
    now: Time
    """The time it was made for."""
    differences: list[Difference] = []
    """Where they differ; `values` are by `logged` and `variant`."""
    problems: list[Problem] = []
    """Why the engine refuses it under the variant."""


BACKTEST: dict[str, Any] = {
    "since": "2026-03-01T00:00:00Z",
    "engine": "kueue",
    "variants": [{"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}],
}
