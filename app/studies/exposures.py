"""Who is next: of all that runs, what would evict it, now and next, and what keeps it; and in which order what waits
would go.

*Now*: the engine's own rounds over what waits, played on without an end of anything (as a forecast plays them), and
whom they stop for which ask. *Next*: asks that nobody has made yet, of a shape that the cluster has, from each queue:
the fewest units and then the lowest priority with which one would stop a workload. Each was decided as
``POST /v1/decisions`` decides it, so that whoever asks it gets the same; how many are decided is bounded, and the
answer says whether the bound cut it short. What nothing takes is kept by a rule, or was spared by every ask tried.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from app.answering.sources import Configurations
from app.simulations.core.life import one_by_one
from app.simulations.core.run import run
from app.simulations.core.scenario import Scenario, scenario_of
from app.simulations.core.sink import Asked, Silence, Stopped, span, time_of
from app.simulations.schemas import Job, SimulationRequest, Trace
from app.solver import solve
from app.solver.apply import delta_of
from app.solver.delta import apply_delta
from app.solver.model.base import Time
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Outcome, planned
from app.solver.model.duration import DurationError
from app.solver.model.instant import at, micros
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.quantity import parse, scale_of
from app.solver.model.state import Ask, Task
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Unit
from app.studies.exposure_schemas import (
    Exposure,
    ExposureOutcome,
    ExposureRequest,
    Protection,
    Standing,
    Start,
    Taking,
    Threat,
)

_STARTS = ("admit", "preempt")
_MOST_UNITS = {"job": 4096, "gang": 64, "task": 64}
"""Alike that one ask is tried with, by what the engine decides on as one: single tasks are decided one by one."""
_HIGHEST = 2**31
_LONG = 100 * 365 * 86400
"""Seconds that everything is taken to run: longer than anybody looks ahead."""
PROBE = "what-if"
"""The id of the asks that nobody has made."""


def expose(
    request: ExposureRequest, configurations: Configurations, stop: Callable[[], bool], tell: Callable[[int], None]
) -> ExposureOutcome:
    """Answer ``request``, whose configuration, state, asks and time are given in full. ``tell``: how many of its
    decisions are made. Raises InvalidInput, Stopped, and what ``configurations`` raises."""
    assert request.configuration is not None
    assert request.now is not None
    assert isinstance(request.asks, list)
    attached = any(ask.workload is not None for ask in request.asks)
    played = _simulation(request, request.configuration, [] if attached else request.asks)
    scenario = _scenario(played, configurations)
    loaded = solve.load(scenario.configured, request.state)
    wanted = _wanted(request, loaded)
    watcher, now = _Rounds(request.asks, request.rounds), micros(request.now)
    if attached:  # a run knows no work of which a part runs and a part waits
        _cycles(loaded, request.asks, now, watcher, stop)
    else:
        try:
            run(scenario, watcher, lambda: stop() or watcher.full, watcher.look)
        except Stopped:
            if not watcher.full:
                raise
    probes = _Probes(loaded, request.asks, now, request.decisions, stop, tell, _unit(scenario), _waited(request))
    threats = probes.search()
    told = solve.preemptibility(loaded, ProtectionQuestion(now, request.asks))["workloads"]
    exposures = [
        _exposure(one.id, one.queue, one.priority, watcher.taken.get(one.id), threats.get(one.id), told.get(one.id, {}))
        for one in request.state.workloads
        if one.id in wanted
    ]
    exposures.sort(key=lambda one: _rank(one, probes))
    return ExposureOutcome(
        engine=scenario.configured.engine.name,  # pyright: ignore[reportArgumentType]
        configuration=scenario.configured.used, state=loaded.used, now=request.now, exposures=exposures,
        order=watcher.order(), rounds=watcher.played, decisions=probes.made,
        complete=not watcher.full and not probes.spent,
    )  # fmt: skip


def _simulation(request: ExposureRequest, configuration: str | Configuration, asks: list[Ask]) -> SimulationRequest:
    """What waits and what runs, with nothing that ends."""
    jobs = [Job(ask=ask, submitted_at=0, duration=_LONG) for ask in asks]
    running = {one.id for one in request.state.workloads}
    return SimulationRequest(
        engine=request.engine, configuration=configuration, state=request.state,
        remaining=dict.fromkeys(running, _LONG), trace=Trace(jobs=jobs), start=request.now, until=request.horizon,
        options=request.options,
    )  # fmt: skip


def _scenario(played: SimulationRequest, configurations: Configurations) -> Scenario:
    """Raises InvalidInput, whose problems point into the request for exposures."""
    try:
        return scenario_of(played, configurations, hopeless=True)
    except InvalidInput as invalid:
        raise InvalidInput(Problem(pointer=_ours(p.pointer), detail=p.detail) for p in invalid.problems) from None


def _ours(pointer: str) -> str:
    if pointer == "/until":
        return "/horizon"
    jobs = "/trace/jobs/"
    if not pointer.startswith(jobs):
        return pointer
    position, _, rest = pointer.removeprefix(jobs).partition("/")
    return f"/asks/{position}/{rest.removeprefix('ask').removeprefix('/')}".rstrip("/")


def _waited(request: ExposureRequest) -> int:
    """In microseconds. Raises InvalidInput."""
    try:
        return span(request.waited)
    except DurationError as error:
        raise InvalidInput([Problem(pointer="/waited", detail=str(error))]) from None


def _unit(scenario: Scenario) -> Unit:
    """What runs and is stopped as one: a whole ask, or each of its tasks."""
    configured = scenario.configured
    return configured.engine.rounds(configured.compiled, configured.configuration, scenario.request.options).unit


def _wanted(request: ExposureRequest, loaded: solve.Loaded) -> set[str]:
    """The workloads that are asked about. Raises InvalidInput for names that mean nothing."""
    running = {one.id: one.queue for one in request.state.workloads}
    problems = [
        Problem(pointer=f"/workloads/{i}", detail=f"no workload {name!r} runs")
        for i, name in enumerate(request.workloads)
        if name not in running
    ]
    if request.queue is not None and request.queue not in loaded.configured.names:
        problems.append(Problem(pointer="/queue", detail=f"no queue {request.queue!r}"))
    if problems:
        raise InvalidInput(problems)
    parents = {queue.name: queue.parent for queue in loaded.configured.configuration.queues}
    below = {name for name in loaded.configured.names if request.queue in (None, *_above(name, parents))}
    return {name for name, queue in running.items() if queue in below} & set(request.workloads or running)


def _above(queue: str | None, parents: dict[str, str | None]) -> Iterator[str]:
    """``queue`` and what is above it."""
    while queue is not None:
        yield queue
        queue = parents.get(queue)


def _cycles(loaded: solve.Loaded, waiting: list[Ask], now: int, watcher: "_Rounds", stop: Callable[[], bool]) -> None:
    """Cycle after cycle at one instant, each carried out at once, until one changes nothing."""
    while waiting and not watcher.full:
        if stop():
            raise Stopped
        question = Question(now, waiting, "cycle")
        result = solve.planned(loaded, question)
        watcher.look(Asked(watcher.played + 1, loaded, question, result))
        started = {one.ask for one in result.decisions if one.outcome in _STARTS}
        if not started and not result.plan.evictions:
            return
        decisions = [replace(one, outcome="admit") if one.ask in started else one for one in result.decisions]
        delta = delta_of(loaded.state, loaded.index, 0, waiting, decisions, result.plan, now)
        state, index, changes = apply_delta(loaded.state, loaded.index, delta)
        loaded = solve.update(loaded, state, index, changes, generation=None)
        for name in started:
            watcher.started(name)
        waiting = [ask for ask in waiting if ask.id not in started]


class _Rounds(Silence):
    """Sink and watch of the rounds over what waits. ``taken``: what stops each workload first; ``full``: whether as
    many as may be were played."""

    def __init__(self, asks: list[Ask], most: int) -> None:
        self.taken: dict[str, Taking] = {}
        self.played = 0
        self._most = most
        self._asks = {ask.id: ask for ask in asks}
        self._started: dict[str, tuple[int, Time]] = {}
        self._evicts: dict[str, dict[str, None]] = {}
        self._last: dict[str, tuple[Outcome, str]] = {}
        self._when = time_of(0)

    @property
    def full(self) -> bool:
        return self.played >= self._most

    def look(self, asked: Asked) -> None:
        """A round was answered."""
        self.played = asked.n
        when = time_of(asked.question.now)
        for decision in asked.result.decisions:
            name = self._named(decision.ask)
            if name is not None:
                reason = decision.conditions[0].reason if decision.conditions else ""
                self._last[name] = (decision.outcome, reason)
                if decision.outcome == "admit":
                    self._started.setdefault(name, (asked.n, when))
        self._when = when
        for eviction in planned(solve.answer_of(asked.loaded, asked.result)):
            name = self._named(eviction.for_ask or "")
            if name is None or eviction.workload in self._asks:
                continue
            self._evicts.setdefault(name, {})[eviction.workload] = None
            taking = Taking(ask=name, round=asked.n, at=when, rule=eviction.reason)
            self.taken.setdefault(eviction.workload, taking)

    def started(self, ask: str) -> None:
        """It starts in the round that was answered last."""
        self._started.setdefault(ask, (self.played, self._when))

    def _named(self, ask: str) -> str | None:
        """The ask that a round's ask is, or is a part of: some engines ask task by task."""
        if ask in self._asks:
            return ask
        whole = ask.rpartition("/")[0]
        return whole if whole in self._asks else None

    def order(self) -> list[Start]:
        """What waits, first what starts first."""
        position = {name: i for i, name in enumerate(self._started)}
        return [
            self._start(self._asks[name]) for name in sorted(self._asks, key=lambda n: position.get(n, len(position)))
        ]

    def _start(self, ask: Ask) -> Start:
        outcome, reason = self._last.get(ask.id, ("wait", "Queued"))
        started = self._started.get(ask.id)
        return Start(
            ask=ask.id, queue=ask.queue, outcome=outcome if started is None else "admit",
            round=None if started is None else started[0], at=None if started is None else started[1],
            evicts=list(self._evicts.get(ask.id, ())), reason=reason if started is None else "",
        )  # fmt: skip


class _Spent(Exception):
    """As many asks were decided as may be."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """What one ask came to: whether all of it would run, and whom it stops, in the engine's order, with the rule."""

    fits: bool
    victims: dict[str, str]


@dataclass(slots=True)
class _Probes:
    """Asks that nobody has made, of every queue, against the state as it is."""

    loaded: solve.Loaded
    waiting: list[Ask]
    now: int
    most: int
    stop: Callable[[], bool]
    tell: Callable[[int], None]
    unit: Unit
    waited: int
    made: int = 0
    spent: bool = False
    _decided: dict[tuple[str, int, int], _Decided] = field(default_factory=dict[tuple[str, int, int], _Decided])
    _found: dict[str, Threat] = field(default_factory=dict[str, Threat])
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
        return self._found

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
                found = self._decide(queue, units, priority)
                if found.fits:
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
        found = self._decide(queue, units, priorities[high])
        ask = self._ask(queue, units, priorities[high])
        threat = Threat(
            ask=ask, units=units, priority=priorities[high], before=list(found.victims).index(workload),
            rule=found.victims[workload],
        )  # fmt: skip
        known = self._found.get(workload)
        if known is None or self._key(threat) < self._key(known):
            self._found[workload] = threat

    def _key(self, threat: Threat) -> tuple[float, int, int, str]:
        return self.size(threat.ask), threat.priority, threat.before, threat.ask.queue

    def _decide(self, queue: str, units: int, priority: int) -> _Decided:
        known = self._decided.get((queue, units, priority))
        if known is not None:
            return known
        if self.stop():
            raise Stopped
        if self.made >= self.most:
            raise _Spent
        self.made += 1
        self.tell(self.made)
        result = solve.planned(self.loaded, Question(self.now, [self._ask(queue, units, priority)]))
        decision = result.decisions[0]
        victims: dict[str, str] = {}
        for victim in decision.victims:
            victims.setdefault(victim.workload, victim.reason)
        found = self._decided[queue, units, priority] = _Decided(
            decision.outcome in _STARTS and decision.starts is None, victims
        )
        return found

    def _ask(self, queue: str, units: int, priority: int) -> Ask:
        task = replace(self._shapes[queue], count=units)
        ask = Ask(id=PROBE, queue=queue, priority=priority, created_at=at(self.now - self.waited), tasks=[task])
        return ask if self.unit == "job" else one_by_one(ask)

    def _of_queues(self) -> dict[str, Task]:
        """The smallest shape of work that each queue with work of its own has; of others, that most have."""
        shapes: Counter[bytes] = Counter()
        by_key: dict[bytes, Task] = {}
        by_queue: dict[str, dict[bytes, None]] = {}
        for one in (*self.loaded.state.workloads, *self.waiting):
            for task in one.tasks:
                for resource, amount in _amounts(task).items():
                    self._totals[resource] += amount
                if not task.requests:
                    continue
                shape = _shape(task)
                key = msgspec.json.encode(shape, order="sorted")
                by_key[key] = shape
                shapes[key] += 1
                by_queue.setdefault(one.queue, {})[key] = None
        if not shapes:
            return {}
        commonest = by_key[min(shapes, key=lambda key: (-shapes[key], key))]
        found: dict[str, Task] = {}
        parents = {queue.parent for queue in self.loaded.configured.configuration.queues}
        for queue in self.loaded.configured.configuration.queues:
            if queue.name in parents:
                continue
            mine = [by_key[key] for key in by_queue.get(queue.name, ())]
            found[queue.name] = min(mine, key=self._size_of, default=commonest)
        return found

    def _size_of(self, task: Task) -> tuple[float, bytes]:
        parts = [amount / self._totals[r] for r, amount in _amounts(task).items() if self._totals[r]]
        return max(parts, default=0.0), msgspec.json.encode(task, order="sorted")

    def _priorities(self) -> list[int]:
        """Every one that makes a difference to what runs, ascending: as high, and one higher."""
        given = {one.priority for one in self.loaded.state.workloads}
        given |= {t.priority for one in self.loaded.state.workloads for t in one.tasks if t.priority is not None}
        return sorted({0, *given, *(min(_HIGHEST, one + 1) for one in given)})


def _shape(task: Task) -> Task:
    """One unit of ``task``, as anybody may ask for it."""
    return Task(
        name=PROBE, requests=task.requests, node_selector=task.node_selector, tolerations=task.tolerations,
        node_affinity=task.node_affinity,
    )  # fmt: skip


def _amounts(task: Task) -> dict[str, int]:
    return {r: parse(value, scale_of(r)) * task.count for r, value in task.requests.items()}


def _exposure(
    workload: str, queue: str, priority: int, taking: Taking | None, threat: Threat | None, told: dict[str, Any]
) -> Exposure:
    standing: Standing = "spared"
    if taking is not None:
        standing = "now"
    elif threat is not None:
        standing = "next"
    elif told.get("preemptible") is False:
        standing = "safe"
    protection = None
    if told.get("reason") is not None:
        protection = Protection(
            reason=told["reason"], message=told.get("message") or told.get("detail") or "",
            until=told.get("protected_until"),
        )  # fmt: skip
    return Exposure(
        workload=workload, queue=queue, priority=priority, standing=standing, now=taking, next=threat,
        protection=protection,
    )  # fmt: skip


def _rank(one: Exposure, probes: _Probes) -> tuple[Any, ...]:
    """Whom the next rounds stop, in their order; then whom the smallest asks do; then who is spared, and who is
    safe."""
    if one.now is not None:
        return 0, one.now.round, 0, 0, one.workload
    if one.next is not None:
        return 1, probes.size(one.next.ask), one.next.priority, one.next.before, one.workload
    return (2 if one.standing == "spared" else 3), 0, 0, 0, one.workload
