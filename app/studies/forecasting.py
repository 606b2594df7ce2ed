"""A forecast, as a job: what waits and what runs, played on by the engine's own rounds until every ask has started;
its body and its answers.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from app.answering.answers import encode
from app.answering.snapshots import FollowedAge
from app.answering.sources import Configurations
from app.base.decoding import decode
from app.jobs.repository import Claimed
from app.jobs.service import JobState
from app.jobs.worker import Work
from app.simulations.core.run import Clock
from app.simulations.core.scenario import Scenario, scenario_of, variants_of
from app.simulations.core.sink import Asked, Silence, Stopped, time_of
from app.simulations.core.world import World
from app.simulations.schemas import (
    Change,
    Checkpoint,
    Event,
    Instant,
    Job,
    OnLoop,
    Requeue,
    SimulationRequest,
    Trace,
    Units,
)
from app.solver.engine import example
from app.solver.engines import FIRST
from app.solver.model.base import Duration, Time, Wire, micros, seconds
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import Decision, Outcome
from app.solver.model.problems import Finding, pointing
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
    example().parent,
    {"name": "team-a", "parent": "all", "quota": _FOUR},
    {"name": "team-b", "parent": "all", "quota": _FOUR},
]
FORECAST: dict[str, Any] = {
    "configuration": {"engine": FIRST, "queues": _QUEUES},
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


MOST = 20
_ROOM = frozenset({"finished", "cancelled", "evicted", "released"})
_REMEMBERED = 1000


@dataclass
class Awaited:
    """One ask. ``asked_at``, ``starts_at`` in microseconds, None: not yet; ``last``: when it was last found
    waiting, and how much room had been made by then; ``seen``: the same of the last earlier instant."""

    queue: str
    asked_at: int | None = None
    starts_at: int | None = None
    waits: list[Waiting] = field(default_factory=list[Waiting])
    freed_by: list[str] = field(default_factory=list[str])
    evicts: dict[str, None] = field(default_factory=dict[str, None])
    last: tuple[int, int] = (0, 0)
    seen: int = 0

    def look(self, now: int, started: int) -> None:
        """It waits, or starts, in a round at ``now``."""
        if self.last[0] < now:
            self.seen = self.last[1]
        self.last = (now, started)


class Watcher(Silence):
    """What a run tells of the asks that somebody waits for: first starts, and what they waited for before. Sink and
    watch of one run. ``ready``: whether every one of ``jobs`` has started; ``rounds`` so far."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.awaited = {job.ask.id: Awaited(job.ask.queue) for job in jobs}
        self.rounds = 0
        self._left = set(self.awaited)
        self._here: dict[str, Awaited] = {}
        self._freed = 0
        self._room: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)

    @property
    def ready(self) -> bool:
        """See the class."""
        return not self._left

    def event(self, event: Event) -> None:
        if event.kind in _ROOM and event.job is not None:
            self._freed += 1
            self._room.append((self._freed, event.job))
        if event.kind == "evicted" and event.by in self._here:
            evicts = self._here[event.by].evicts
            if event.job is not None and len(evicts) < MOST:
                evicts[event.job] = None
        awaited = self.awaited.get(event.job or "")
        if awaited is None:
            return
        if event.kind == "submitted":
            awaited.asked_at = micros(event.at)
            self._here[event.job or ""] = awaited
        elif event.kind == "started" and awaited.starts_at is None:
            awaited.starts_at = micros(event.at)
            awaited.look(awaited.starts_at, self._freed)
            freed = dict.fromkeys(job for number, job in self._room if number > awaited.seen)
            awaited.freed_by = [] if not awaited.waits else list(freed)[-MOST:]
            self._left.discard(event.job or "")
            del self._here[event.job or ""]

    def look(self, asked: Asked) -> None:
        """A round was answered, and is not carried out yet."""
        self.rounds = asked.n
        heads: dict[str, str] = {}
        decided: dict[str, Decision] = {}
        starting: set[str] = set()
        decisions = {decision.ask: decision for decision in asked.result.decisions}
        for ask in asked.question.asks:
            heads.setdefault(ask.queue, ask.id)
            name = ask.id if ask.id in self._here else ask.id.rpartition("/")[0]  # YuniKorn asks task by task
            if decisions[ask.id].outcome == "admit":
                starting.add(name)
            else:
                decided.setdefault(name, decisions[ask.id])
        for name, awaited in self._here.items():
            if name not in starting:
                waiting = _waiting(asked.question.now, decided.get(name), heads.get(awaited.queue), awaited)
                if waiting is not None:
                    _note(awaited.waits, waiting)
                awaited.look(asked.question.now, self._freed)


def _waiting(now: int, decision: Decision | None, head: str | None, awaited: Awaited) -> Waiting | None:
    """What a round says of it; None: nothing new."""
    if decision is not None:
        first = decision.conditions[0] if decision.conditions else None
        return Waiting(
            since=time_of(now), outcome=decision.outcome, reason="" if first is None else first.reason,
            message="" if first is None else first.message,
        )  # fmt: skip
    if head is not None and (not awaited.waits or awaited.waits[-1].outcome is None):
        return Waiting(since=time_of(now), reason="Queued", message=f"{head!r} is before it in {awaited.queue!r}")
    return None


def _note(waits: list[Waiting], waiting: Waiting) -> None:
    if waits and (waits[-1].outcome, waits[-1].message) == (waiting.outcome, waiting.message):
        return
    if len(waits) == MOST:
        waits.pop()
    waits.append(waiting)


_DAY = 86_400_000_000


def scenarios(request: ForecastRequest, configurations: Configurations, days: float) -> Iterator[tuple[str, Scenario]]:
    """The run without variants, called ``""``, and that of each variant; none looks further ahead than ``days``.

    Raises InvalidInput, with pointers into the forecast's request, and what ``configurations`` raises."""
    played = _simulation(request)
    with pointing(_ours):
        yield "", _within(scenario_of(played, configurations, hopeless=True), days)
        if request.variants:
            for name, variant in variants_of(replace(played, variants=request.variants), configurations):
                yield name, _within(scenario_of(variant, configurations, hopeless=True), days)


def foretell(
    request: ForecastRequest, configurations: Configurations, days: float, stop: Callable[[], bool]
) -> ForecastOutcome:
    """The first start of every ask, without variants and under each. Raises as ``scenarios``, and as ``stop``."""
    (_, first), *others = scenarios(request, configurations, days)
    asks, end, rounds = _played(first, request, stop)
    forecasts = [_forecast(forecast, asks[forecast.ask.id]) for forecast in _jobs(request)]
    for name, scenario in others:
        awaited, _, _ = _played(scenario, request, stop)
        forecasts = [
            replace(forecast, what_if=[*forecast.what_if, _what_if(name, awaited[forecast.ask], asks[forecast.ask])])
            for forecast in forecasts
        ]
    return ForecastOutcome(asks=forecasts, end=time_of(end), rounds=rounds, findings=first.findings)


def _played(
    scenario: Scenario, request: ForecastRequest, stop: Callable[[], bool]
) -> tuple[dict[str, Awaited], int, int]:
    """Each ask by id, how far the run came, and its rounds."""
    watcher = Watcher(_jobs(request))
    clock = Clock(World(scenario, watcher, watcher.look), lambda: stop() or watcher.ready)
    try:
        clock.run()
    except Stopped:
        return watcher.awaited, clock.now, watcher.rounds
    return watcher.awaited, clock.end, watcher.rounds


def _simulation(request: ForecastRequest) -> SimulationRequest:
    running = {workload.id for workload in request.state.workloads}
    otherwise = request.remaining_otherwise
    remaining = {} if otherwise is None else dict.fromkeys(running, otherwise)
    return SimulationRequest(
        engine=request.engine, configuration=request.configuration, state=request.state,
        remaining=remaining | request.remaining, trace=Trace(jobs=_jobs(request), changes=request.changes),
        start=request.start, until=request.until, round_every=request.round_every, grace=request.grace,
        requeue=request.requeue, on_loop=request.on_loop, options=request.options,
    )  # fmt: skip


def _jobs(request: ForecastRequest) -> list[Job]:
    return [
        Job(ask=ask.ask, submitted_at=ask.submitted_at, duration=ask.duration, checkpoint=ask.checkpoint)
        for ask in request.asks
    ]


def _within(scenario: Scenario, days: float) -> Scenario:
    last = scenario.start + int(days * _DAY)
    until = last if scenario.until is None else min(last, scenario.until)
    return with_(scenario, until=until)


def _ours(where: str) -> str:
    """A pointer into a simulation's request as one into the forecast's."""
    for theirs, ours in (("/trace/jobs", "/asks"), ("/trace/changes", "/changes")):
        if where.startswith(theirs):
            return ours + where.removeprefix(theirs)
    return where


def _forecast(job: Job, awaited: Awaited) -> AskForecast:
    return AskForecast(
        ask=job.ask.id, queue=job.ask.queue,
        starts_at=None if awaited.starts_at is None else time_of(awaited.starts_at), wait=_wait(awaited),
        waits_for=awaited.waits, freed_by=awaited.freed_by, evicts=list(awaited.evicts),
    )  # fmt: skip


def _what_if(name: str, awaited: Awaited, before: Awaited) -> WhatIf:
    later = None
    if awaited.starts_at is not None and before.starts_at is not None:
        later = seconds(awaited.starts_at - before.starts_at)
    return WhatIf(
        variant=name, starts_at=None if awaited.starts_at is None else time_of(awaited.starts_at), wait=_wait(awaited),
        later=later, waits_for=awaited.waits,
    )  # fmt: skip


def _wait(awaited: Awaited) -> int | float | None:
    if awaited.starts_at is None or awaited.asked_at is None:
        return None
    return seconds(awaited.starts_at - awaited.asked_at)


class Forecasting:
    """Does jobs of the kind ``forecast``; none looks further ahead than ``days``."""

    def __init__(self, configurations: Configurations, days: float) -> None:
        self._configurations = configurations
        self._days = days

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        del job
        return encode(foretell(decode(request, ForecastRequest), self._configurations, self._days, work.check))
