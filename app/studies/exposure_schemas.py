"""The body and the answer of exposures: who is next."""

from typing import Annotated, Literal

import msgspec

from app.answering.snapshots import FollowedAge
from app.jobs.service import JobState
from app.solver.model.base import Count, Duration, Name, Priority, Time, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import ConfigurationUsed, Outcome, StateUsed
from app.solver.model.problems import Finding
from app.solver.model.request import Asks, RunOptions, StateOrReference
from app.solver.model.state import Ask

Standing = Literal["now", "next", "safe", "spared"]


class ExposureRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/exposures``: of all that runs here, who is next?"""

    engine: EngineName | None = None
    """Whose rules decide. Absent: the configuration's engine."""
    now: Time | None = None
    """The time of the question. Absent: the host's clock."""
    configuration: str | Configuration | None = None
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself. Absent: the snapshot's own."""
    state: StateOrReference
    """What runs: the state itself, or `{snapshot: name}`."""
    asks: Asks = []
    """What waits; `pending`: what is kept waiting beside the snapshot."""
    queue: Name | None = None
    """Only work of this queue and of those below it. Absent: of all."""
    workloads: list[str] = []
    """Only these, by id. Empty: all."""
    waited: Duration = 60
    """For how long the asks that nobody has made are taken to have waited: some rules let work preempt only after a
    delay. Default: a minute."""
    horizon: Duration = "1h"
    """How far ahead the rounds over what waits are played, while nothing ends: some rules evict only after a delay."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 200
    """The most rounds that are played."""
    decisions: Annotated[int, msgspec.Meta(ge=0, le=20_000)] = 500
    """The most asks, which nobody has made, that are decided."""
    options: RunOptions = RunOptions()
    """Options of the engine for the rounds."""


class Taking(Wire, frozen=True, kw_only=True):
    """What waits stops it."""

    ask: str
    """The id of the ask."""
    round: int
    """In which round, from 1."""
    at: Time
    """When that round would be."""
    rule: str
    """Why it is stopped, in one word: the engine's own reason."""


class Threat(Wire, frozen=True, kw_only=True):
    """An ask that nobody has made and that would stop it, asked of the state as it is."""

    ask: Ask
    """The ask, as a decision takes it: of those tried in its queue the fewest units, then the lowest priority."""
    units: Count
    """How many alike it asks for."""
    priority: Priority
    """The lowest priority tried with which it stops the workload."""
    before: Count
    """How many others are stopped before it."""
    rule: str
    """Why it is stopped, in one word: the engine's own reason."""


class Protection(Wire, frozen=True, kw_only=True):
    """What the engine says that keeps it."""

    reason: str
    """In one word."""
    message: str
    """In one sentence."""
    until: Time | None = None
    """When that ends. Absent: not by time alone."""


class Exposure(Wire, frozen=True, kw_only=True):
    """One running workload."""

    workload: str
    """Its id."""
    queue: str
    """Its queue."""
    priority: Priority
    """Its priority."""
    standing: Standing
    """`now`: what waits stops it; `next`: an ask that nobody has made would; `safe`: a rule keeps it; `spared`: no ask
    that was tried takes it."""
    now: Taking | None = None
    """What of the waiting work stops it first."""
    next: Threat | None = None
    """The smallest ask that would."""
    protection: Protection | None = None
    """What keeps it, or why nothing does, in the engine's words."""


class Start(Wire, frozen=True, kw_only=True):
    """An ask that waits, in the order in which what waits would go."""

    ask: str
    """Its id."""
    queue: str
    """Its queue."""
    outcome: Outcome
    """What the last round that decided it says: `admit`: it starts."""
    round: int | None = None
    """In which round it starts. Absent: in none that was played."""
    at: Time | None = None
    """When that round would be."""
    evicts: list[str] = []
    """The workloads that are stopped for it, in order."""
    reason: str = ""
    """Of one that does not start: the engine's reason, in one word."""


class ExposureOutcome(Wire, frozen=True, kw_only=True):
    """Who is next, and who goes next."""

    engine: EngineName
    """Whose rules decided."""
    configuration: ConfigurationUsed
    """The configuration that was used."""
    state: StateUsed
    """The state that was used."""
    now: Time
    """The time of the question."""
    exposures: list[Exposure]
    """Running work, most exposed first."""
    order: list[Start]
    """What waits, in the order in which it would go; last what would not."""
    rounds: int
    """How many rounds were played."""
    decisions: int
    """How many asks that nobody has made were decided."""
    complete: bool
    """Whether neither bound, of rounds and of decisions, cut it short."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    this may be wrong (`error`) or differ (`warning`). Absent: nothing."""


class ExposureProgress(Wire, frozen=True, kw_only=True):
    """How far it is."""

    decisions: Count = 0
    """How many asks that nobody has made are decided so far."""
    total: Count = 0
    """The most that will be."""


class Exposures(JobState, frozen=True, kw_only=True):
    """Who is next: how it stands, and once done what came of it."""

    configuration: str | None = None
    """The configuration that was named. Absent: it was sent along."""
    snapshot: str | None = None
    """The snapshot that was named. Absent: the state was sent along."""
    followed: FollowedAge | None = None
    """How old the snapshot was when it was asked about. Absent: no follower kept it."""
    progress: ExposureProgress | None = None
    """How far it is. Absent: not begun, or ended."""
    outcome: ExposureOutcome | None = None
    """What came of it. Absent: it is not done, or this is a list."""
    error: str | None = None
    """Why it failed. Absent: it did not."""


class ExposuresPage(Wire, frozen=True, kw_only=True):
    """Newest first, without outcomes."""

    items: list[Exposures]
    """Those of this page."""
    next_cursor: str | None = None
    """Where the next page begins. Absent: there is none."""


EXPOSURE = {
    "now": "2026-03-02T09:30:00Z",
    "configuration": {
        "engine": "kueue",
        "queues": [
            {"name": "cohort"},
            {"name": "research", "parent": "cohort", "quota": {"gpu": {"guaranteed": 2}}},
            {"name": "serving", "parent": "cohort", "quota": {"gpu": {"guaranteed": 2}},
             "kueue": {"preemption": {"reclaim_within_cohort": "Any"}}},
        ],
    },
    "state": {
        "workloads": [
            {"id": "sweep", "queue": "research", "priority": 0, "created_at": "2026-03-02T08:00:00Z",
             "started_at": "2026-03-02T08:00:00Z", "tasks": [{"name": "main", "count": 4, "requests": {"gpu": 1}}]},
        ],
    },
    "asks": [
        {"id": "chat", "queue": "serving", "priority": 10, "created_at": "2026-03-02T09:00:00Z",
         "tasks": [{"name": "main", "count": 1, "requests": {"gpu": 1}}]},
    ],
}  # fmt: skip
