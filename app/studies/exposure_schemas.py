"""The body and the answer of exposures, and the asks that nobody has made, by which they find who is next."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from app.answering.snapshots import FollowedAge
from app.jobs.service import JobState
from app.simulations.core.life import one_by_one
from app.simulations.core.sink import Stopped
from app.solver import solve
from app.solver.engine import example
from app.solver.engines import FIRST
from app.solver.model.base import Count, Duration, Name, Priority, Time, Wire, parse_quantity, scale_of, to_datetime
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import STARTS, ConfigurationUsed, Outcome, StateUsed
from app.solver.model.problems import Finding
from app.solver.model.request import Asks, RunOptions, StateOrReference
from app.solver.model.state import Ask, Task
from app.solver.question import Question
from app.solver.rounds import Unit

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
    message: str = ""
    """Of one that is not tried at all: why, in a sentence."""


class ExposureOutcome(Wire, frozen=True, kw_only=True):
    """Who is next, and who goes next."""

    engine: EngineName
    """Whose rules decided."""
    release: str | None = None
    """Of which release, where Arbiter has the rules of several (KAI). Absent: it has those of one."""
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
        "engine": FIRST,
        "queues": [
            {"name": "cohort"},
            {"name": "research", "parent": "cohort", "quota": {"gpu": {"guaranteed": 2}}},
            {"name": "serving", "parent": "cohort", "quota": {"gpu": {"guaranteed": 2}}, **example().reclaiming},
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


_MOST_UNITS = {"job": 4096, "gang": 64, "task": 64}
"""Alike that one ask is tried with, by what the engine decides on as one: single tasks are decided one by one."""
_HIGHEST = 2**31
PROBE = "what-if"
"""The id of the asks that nobody has made."""


class _Spent(Exception):
    """As many asks were decided as may be."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """What one ask came to: whether all of it would run, and whom it stops, in the engine's order, with the rule."""

    fits: bool
    victims: dict[str, str]


@dataclass(slots=True)
class Probes:
    """Asks that nobody has made, of every queue, against the state as it is."""

    loaded: solve.Loaded
    waiting: list[Ask]
    now: int
    most: int
    stop: Callable[[], bool]
    tell: Callable[[int], None]
    unit: Unit
    waited: int
    decisions: int = 0
    spent: bool = False
    _decided: dict[tuple[str, int, int], _Decided] = field(default_factory=dict[tuple[str, int, int], _Decided])
    _threats: dict[str, Threat] = field(default_factory=dict[str, Threat])
    _shapes: dict[str, Task] = field(default_factory=dict[str, Task])
    _totals: Counter[str] = field(default_factory=Counter[str])

    def search(self) -> dict[str, Threat]:
        """The smallest ask that takes each workload that any takes. All queues are tried with few units before any with
        many."""
        self._shapes = self._of_queues()
        priorities = self._priorities()
        try:
            hits = [(queue, units, names) for queue, units, names in self._ladder(priorities[-1])]
            for queue, units, names in hits:
                for name in names:
                    self._lowest(queue, units, name, priorities)
        except _Spent:
            self.spent = True
        return self._threats

    def size(self, ask: Ask) -> float:
        """How large an ask is: the largest part that it is of what runs and waits."""
        return max(
            (count / self._totals[r] for r, count in _amounts(ask.tasks[0]).items() if self._totals[r]), default=0
        )

    def _ladder(self, priority: int) -> Iterator[tuple[str, int, list[str]]]:
        """Of each queue the numbers of units at which an ask takes somebody whom no fewer take, and whom."""
        steps: dict[str, list[int]] = {queue: [0] for queue in self._shapes}
        units = 1
        while steps and units <= _MOST_UNITS[self.unit]:
            for queue in list(steps):
                decided = self._decide(queue, units, priority)
                if decided.fits:
                    steps[queue].append(units)
                else:  # what does not fit any more may fit with somewhat fewer
                    yield from self._between(queue, [*steps.pop(queue), units], priority)
            units *= 2
        for queue, tried in steps.items():
            yield from self._between(queue, tried, priority)

    def _between(self, queue: str, tried: list[int], priority: int) -> Iterator[tuple[str, int, list[str]]]:
        """Halve the steps, for as long as there is somebody whom the larger takes and the smaller does not."""
        for fewer, more in pairwise(tried):
            yield from self._halve(queue, fewer, more, priority)

    def _halve(self, queue: str, fewer: int, more: int, priority: int) -> Iterator[tuple[str, int, list[str]]]:
        small = self._decide(queue, fewer, priority).victims if fewer else dict[str, str]()
        large = self._decide(queue, more, priority)
        new = [name for name in large.victims if name not in small]
        if large.fits and not new:
            return
        if more - fewer <= 1:
            if new:
                yield queue, more, new
            return
        middle = (fewer + more) // 2
        yield from self._halve(queue, fewer, middle, priority)
        yield from self._halve(queue, middle, more, priority)

    def _lowest(self, queue: str, units: int, workload: str, priorities: list[int]) -> None:
        """Keep the ask with the lowest priority that takes ``workload``, if it is the smallest so far."""
        low, high = 0, len(priorities) - 1
        while low < high:
            middle = (low + high) // 2 if low else 0
            if workload in self._decide(queue, units, priorities[middle]).victims:
                high = middle
            else:
                low = middle + 1
        decided = self._decide(queue, units, priorities[high])
        ask = self._ask(queue, units, priorities[high])
        threat = Threat(
            ask=ask, units=units, priority=priorities[high], before=list(decided.victims).index(workload),
            rule=decided.victims[workload],
        )  # fmt: skip
        known = self._threats.get(workload)
        if known is None or self._key(threat) < self._key(known):
            self._threats[workload] = threat

    def _key(self, threat: Threat) -> tuple[float, int, int, str]:
        return self.size(threat.ask), threat.priority, threat.before, threat.ask.queue

    def _decide(self, queue: str, units: int, priority: int) -> _Decided:
        known = self._decided.get((queue, units, priority))
        if known is not None:
            return known
        if self.stop():
            raise Stopped
        if self.decisions >= self.most:
            raise _Spent
        self.decisions += 1
        self.tell(self.decisions)
        result = solve.planned(self.loaded, Question(self.now, [self._ask(queue, units, priority)]))
        decision = result.decisions[0]
        victims: dict[str, str] = {}
        for victim in decision.victims:
            victims.setdefault(victim.workload, victim.reason)
        decided = self._decided[queue, units, priority] = _Decided(
            decision.outcome in STARTS and decision.starts is None, victims
        )
        return decided

    def _ask(self, queue: str, units: int, priority: int) -> Ask:
        task = replace(self._shapes[queue], count=units)
        ask = Ask(
            id=PROBE, queue=queue, priority=priority, created_at=to_datetime(self.now - self.waited), tasks=[task]
        )
        return solve.waited(self.loaded, ask if self.unit == "job" else one_by_one(ask), self.now)

    def _of_queues(self) -> dict[str, Task]:
        """The smallest shape of work that each queue with work of its own has; of others, that most have."""
        shapes: Counter[bytes] = Counter()
        by_key: dict[bytes, Task] = {}
        by_queue: dict[str, dict[bytes, None]] = {}
        for workload in (*self.loaded.state.workloads, *self.waiting):
            for task in workload.tasks:
                for resource, amount in _amounts(task).items():
                    self._totals[resource] += amount
                if not task.requests:
                    continue
                shape = _shape(task)
                key = msgspec.json.encode(shape, order="sorted")
                by_key[key] = shape
                shapes[key] += 1
                by_queue.setdefault(workload.queue, {})[key] = None
        if not shapes:
            return {}
        commonest = by_key[min(shapes, key=lambda key: (-shapes[key], key))]
        of_queues: dict[str, Task] = {}
        parents = {queue.parent for queue in self.loaded.configured.configuration.queues}
        for queue in self.loaded.configured.configuration.queues:
            if queue.name in parents:
                continue
            mine = [by_key[key] for key in by_queue.get(queue.name, ())]
            of_queues[queue.name] = min(mine, key=self._size_of, default=commonest)
        return of_queues

    def _size_of(self, task: Task) -> tuple[float, bytes]:
        parts = [amount / self._totals[r] for r, amount in _amounts(task).items() if self._totals[r]]
        return max(parts, default=0.0), msgspec.json.encode(task, order="sorted")

    def _priorities(self) -> list[int]:
        """Every one that makes a difference to what runs, ascending: as high, and one higher."""
        given = {workload.priority for workload in self.loaded.state.workloads}
        given |= {
            t.priority for workload in self.loaded.state.workloads for t in workload.tasks if t.priority is not None
        }
        return sorted({0, *given, *(min(_HIGHEST, priority + 1) for priority in given)})


def _shape(task: Task) -> Task:
    """One unit of ``task``, as anybody may ask for it."""
    return Task(
        name=PROBE, requests=task.requests, node_selector=task.node_selector, tolerations=task.tolerations,
        node_affinity=task.node_affinity,
    )  # fmt: skip


def _amounts(task: Task) -> dict[str, int]:
    return {r: parse_quantity(value, scale_of(r)) * task.count for r, value in task.requests.items()}
