"""The body and the answers of forecasts, and an example of them."""

from typing import Annotated, Any

import msgspec

from app.answering.snapshots import FollowedAge
from app.jobs.service import JobState
from app.simulations.schemas import Change, Checkpoint, Instant, OnLoop, Requeue, Units
from app.solver.model.base import Duration, Time, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import Outcome
from app.solver.model.problems import Finding
from app.solver.model.request import RunOptions, StateOrReference, Variant
from app.solver.model.state import Ask


class ForecastAsk(Wire, frozen=True, kw_only=True):
    """Work that waits, or will: what it asks for, and for how long it will run."""

    ask: Ask
    """What it asks for."""
    duration: Duration
    """How long it will run; above 0."""
    submitted_at: Instant = 0
    """When it is asked for. Default: it waits already."""
    checkpoint: Checkpoint | None = None
    """What survives an eviction. Absent: nothing."""


class ForecastRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/forecasts``."""

    engine: EngineName | None = None
    """Whose rules decide. Absent: the configuration's engine."""
    configuration: str | Configuration
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself."""
    variants: list[Variant] = []
    """What if: each is what differs from this request, as one quota (`set`), and one more forecast of all asks."""
    state: StateOrReference = StateOrReference()
    """Nodes, and what runs; or the name of a snapshot, whose state as it is now is taken."""
    remaining: dict[str, Duration] = {}
    """How long what runs will still take, by id of the workload."""
    remaining_otherwise: Duration | None = None
    """How long what runs and `remaining` does not name will still take. Absent: `remaining` names everything."""
    asks: Annotated[list[ForecastAsk], msgspec.Meta(min_length=1)]
    """Everything that waits: it is in one another's way."""
    changes: list[Change] = []
    """What an administrator is going to do: nodes that come back, quotas that change."""
    start: Time | None = None
    """The time of the state. Absent: when the forecast is asked for."""
    until: Instant | None = None
    """How far to look. Absent: until every ask has started, or nothing happens any more."""
    round_every: Duration = 1
    """The least time between two rounds; above 0. Default: 1 s."""
    grace: Duration = 0
    """From an eviction to the release of what the victim holds. Default: 0."""
    requeue: Requeue = "created"
    """Which time an evicted job has in queue order afterwards: that of its creation, or that of its eviction."""
    on_loop: OnLoop = "stop"
    """What follows a loop: `stop` goes on at the next event from outside, `continue` plays its turns again."""
    options: RunOptions = RunOptions()
    """Options of the engine for the whole forecast."""


class Waiting(Wire, frozen=True, kw_only=True):
    """A time in which an ask waits, and what for."""

    since: Time
    """The first round of it."""
    outcome: Outcome | None = None
    """What the rounds decide on it. Absent: they are asked about others, for it is not at the head of its queue."""
    reason: str
    """Why, in one word: that of the decision's first condition, or `Queued`."""
    message: str
    """Why, in one sentence."""


class WhatIf(Wire, frozen=True, kw_only=True):
    """How one variant moves the first start of an ask."""

    variant: str
    """The name of the variant."""
    starts_at: Time | None = None
    """When it first starts under it. Absent: not within the forecast."""
    wait: Units | None = None
    """From being asked for to the first start, in seconds. Absent: it does not start."""
    later: Units | None = None
    """By how many seconds later than without the variant; below 0: earlier. Absent: it does not start in both."""
    waits_for: list[Waiting] = []
    """What it waits for under it."""


class AskForecast(Wire, frozen=True, kw_only=True):
    """When one ask will start."""

    ask: str
    """Its id."""
    queue: str
    """Its queue."""
    starts_at: Time | None = None
    """When it, or the first of its tasks, first starts. Absent: not within the forecast."""
    wait: Units | None = None
    """From being asked for to the first start, in seconds. Absent: it does not start."""
    waits_for: list[Waiting] = []
    """What it waits for, in order; at most 20 are told, of more the last."""
    freed_by: list[str] = []
    """Jobs whose end or eviction since the round before made the room that it starts in; at most 20."""
    evicts: list[str] = []
    """Jobs that are evicted for it before it starts; at most 20."""
    what_if: list[WhatIf] = []
    """How each variant moves that, in the order of the request."""


class ForecastOutcome(Wire, frozen=True, kw_only=True):
    """What a forecast came to."""

    asks: list[AskForecast]
    end: Time
    rounds: int
    findings: list[Finding] | None = None


class Forecast(JobState, frozen=True, kw_only=True):
    """``GET /v1/forecasts/{id}``."""

    start: Time
    """The time of the state."""
    followed: FollowedAge | None = None
    """How old the snapshot was when the forecast was asked for. Absent: no follower kept it."""
    end: Time | None = None
    """How far it looked, without variants. Absent: it is not done."""
    rounds: int | None = None
    """How many rounds there were up to then. Absent: it is not done."""
    asks: list[AskForecast] = []
    """Each ask, in the order of the request. Empty until it is done, and in lists."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    the forecast may be wrong (`error`) or differ (`warning`). Absent: nothing."""
    error: str | None = None
    """Why it failed."""


class ForecastPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/forecasts``: newest first."""

    items: list[Forecast]
    """Newest first, without asks."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


_FOUR = {"cpu": {"guaranteed": "4"}}
_QUEUES = [
    {"name": "all", "kueue": {"role": "cohort"}},
    {"name": "team-a", "parent": "all", "quota": _FOUR},
    {"name": "team-b", "parent": "all", "quota": _FOUR},
]
FORECAST: dict[str, Any] = {
    "configuration": {"engine": "kueue", "queues": _QUEUES},
    "state": {
        "workloads": [
            {
                "id": "train-1",
                "queue": "team-a",
                "tasks": [{"name": "main", "requests": {"cpu": 6}, "flavors": {"cpu": "default"}}],
            }
        ]
    },
    "remaining": {"train-1": "45m"},
    "asks": [
        {
            "ask": {"id": "train-2", "queue": "team-b", "tasks": [{"name": "main", "requests": {"cpu": 3}}]},
            "duration": 600,
        }
    ],
    "variants": [{"name": "one more", "set": {"queues.team-b.quota.cpu.guaranteed": 5}}],
    "start": "2026-03-02T09:30:00Z",
}
