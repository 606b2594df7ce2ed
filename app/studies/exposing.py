"""Who is next: of all that runs, what would evict it, now and next, and what keeps it; and how what waits would go.

*Now*: the engine's own rounds over what waits, played on without an end of anything (as a forecast plays them), and
whom they stop for which ask. *Next*: asks that nobody has made yet, of a shape that the cluster has, from each queue:
the fewest units and then the lowest priority with which one would stop a workload. Each was decided as
``POST /v1/decisions`` decides it, so that whoever asks it gets the same; how many are decided is bounded, and the
answer says whether the bound cut it short. What nothing takes is kept by a rule, or was spared by every ask tried. What
waits is told in the order in which it would go.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.answering.answers import encode
from app.answering.sources import Configurations
from app.base.decoding import decode
from app.jobs.repository import Claimed
from app.jobs.worker import Work
from app.simulations.core.run import run
from app.simulations.core.scenario import Scenario, scenario_of
from app.simulations.core.sink import EARLIEST, Asked, Silence, Stopped, span, time_of
from app.simulations.schemas import Job, SimulationRequest, Trace
from app.solver import solve
from app.solver.model.base import DurationError, Time, micros, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import STARTS, Outcome, planned
from app.solver.model.problems import InvalidInput, Problem, pointing
from app.solver.model.state import Ask
from app.solver.question import ProtectionQuestion, Question
from app.solver.rounds import Unit
from app.studies.exposure_schemas import (
    Exposure,
    ExposureOutcome,
    ExposureRequest,
    Probes,
    Protection,
    Standing,
    Start,
    Taking,
    Threat,
)

_LONG = 100 * 365 * 86400
"""Seconds that everything is taken to run: longer than anybody looks ahead."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that is sound. ``wanted``: the workloads that are asked about; ``attached``: whether asks belong to
    work that runs already."""

    scenario: Scenario
    loaded: solve.Loaded
    wanted: set[str]
    asks: list[Ask]
    now: int
    waited: int
    attached: bool


def prepared(request: ExposureRequest, configurations: Configurations) -> Prepared:
    """``request``, whose configuration, state, asks and time are given in full. Raises InvalidInput, and what
    ``configurations`` raises."""
    assert request.configuration is not None
    assert request.now is not None
    assert isinstance(request.asks, list)
    attached = any(ask.workload is not None for ask in request.asks)
    played = _simulation(request, request.configuration, [] if attached else request.asks)
    scenario = _scenario(played, configurations)
    loaded, now = solve.load(scenario.configured, request.state), micros(request.now)
    solve.shares(loaded, request.asks, now)  # checks the asks as every question does
    return Prepared(
        scenario, loaded, _wanted(request, loaded), request.asks, now, _waited(request, now), attached
    )  # fmt: skip


def expose(
    request: ExposureRequest, configurations: Configurations, stop: Callable[[], bool], tell: Callable[[int], None]
) -> ExposureOutcome:
    """Answer ``request``, given in full. ``tell``: how many of its decisions are made. Raises as ``prepared``, and
    Stopped."""
    of = prepared(request, configurations)
    watcher = _Rounds(of.asks, request.rounds, solve.asides(of.scenario.configured, of.asks, of.now))
    if of.attached:  # a run knows no work of which a part runs and a part waits
        _cycles(of.loaded, of.asks, of.now, watcher, stop)
    else:
        try:
            run(of.scenario, watcher, lambda: stop() or watcher.full, watcher.look)
        except Stopped:
            if not watcher.full:
                raise
    probes = Probes(of.loaded, of.asks, of.now, request.decisions, stop, tell, _unit(of.scenario), of.waited)
    threats = probes.search()
    protection = solve.preemptibility(of.loaded, ProtectionQuestion(of.now, of.asks))["workloads"]
    exposures = [
        _exposure(
            workload.id,
            workload.queue,
            workload.priority,
            watcher.taken.get(workload.id),
            threats.get(workload.id),
            protection.get(workload.id, {}),
        )
        for workload in request.state.workloads
        if workload.id in of.wanted
    ]
    exposures.sort(key=lambda exposure: _rank(exposure, probes))
    return ExposureOutcome(
        engine=of.scenario.configured.engine.name,  # pyright: ignore[reportArgumentType]
        release=of.scenario.configured.release,
        configuration=of.scenario.configured.used, state=of.loaded.used, now=to_datetime(of.now), exposures=exposures,
        order=watcher.order(), rounds=watcher.played, decisions=probes.decisions,
        complete=not watcher.full and not probes.spent, findings=of.loaded.findings,
    )  # fmt: skip


def _simulation(request: ExposureRequest, configuration: str | Configuration, asks: list[Ask]) -> SimulationRequest:
    """What waits and what runs, with nothing that ends."""
    jobs = [Job(ask=ask, submitted_at=0, duration=_LONG) for ask in asks]
    running = {workload.id for workload in request.state.workloads}
    return SimulationRequest(
        engine=request.engine, configuration=configuration, state=request.state,
        remaining=dict.fromkeys(running, _LONG), trace=Trace(jobs=jobs), start=request.now, until=request.horizon,
        options=request.options,
    )  # fmt: skip


def _scenario(played: SimulationRequest, configurations: Configurations) -> Scenario:
    """Raises InvalidInput, whose problems point into the request for exposures."""
    with pointing(_ours):
        return scenario_of(played, configurations, hopeless=True)


def _ours(pointer: str) -> str:
    if pointer == "/until":
        return "/horizon"
    jobs = "/trace/jobs/"
    if not pointer.startswith(jobs):
        return pointer
    position, _, rest = pointer.removeprefix(jobs).partition("/")
    return f"/asks/{position}/{rest.removeprefix('ask').removeprefix('/')}".rstrip("/")


def _waited(request: ExposureRequest, now: int) -> int:
    """In microseconds. Raises InvalidInput, also for what began before the calendar does."""
    try:
        waited = span(request.waited)
        if now - waited < EARLIEST:
            raise DurationError("that is before the first year")
    except DurationError as error:
        raise InvalidInput([Problem(pointer="/waited", detail=str(error))]) from None
    return waited


def _unit(scenario: Scenario) -> Unit:
    """What runs and is stopped as one: a whole ask, or each of its tasks."""
    return solve.rounds(scenario.configured, scenario.request.options).unit


def _wanted(request: ExposureRequest, loaded: solve.Loaded) -> set[str]:
    """The workloads that are asked about. Raises InvalidInput for names that mean nothing."""
    running = {workload.id: workload.queue for workload in request.state.workloads}
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
        started = {decision.ask for decision in result.decisions if decision.outcome in STARTS}
        if not started and not result.plan.evictions:
            return
        loaded = solve.carried_out(loaded, question, result)
        for name in started:
            watcher.started(name)
        waiting = [ask for ask in waiting if ask.id not in started]


class _Rounds(Silence):
    """Sink and watch of the rounds over what waits. ``taken``: what stops each workload first; ``full``: whether as
    many as may be were played."""

    def __init__(self, asks: list[Ask], most: int, aside: dict[str, tuple[str, str]]) -> None:
        """``aside``: why asks are not tried at all."""
        self._aside = aside
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
        for eviction in planned(asked.result):
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
        aside, message = self._aside.get(ask.id, ("Queued", ""))
        outcome, reason = self._last.get(ask.id, ("wait", aside))
        started = self._started.get(ask.id)
        return Start(
            ask=ask.id, queue=ask.queue, outcome=outcome if started is None else "admit",
            round=None if started is None else started[0], at=None if started is None else started[1],
            evicts=list(self._evicts.get(ask.id, ())), reason=reason if started is None else "",
            message=message if started is None and reason == aside else "",
        )  # fmt: skip


def _exposure(
    workload: str, queue: str, priority: int, taking: Taking | None, threat: Threat | None, protected: dict[str, Any]
) -> Exposure:
    standing: Standing = "spared"
    if taking is not None:
        standing = "now"
    elif threat is not None:
        standing = "next"
    elif protected.get("preemptible") is False:
        standing = "safe"
    protection = None
    if protected.get("reason") is not None:
        protection = Protection(
            reason=protected["reason"], message=protected.get("message") or protected.get("detail") or "",
            until=protected.get("protected_until"),
        )  # fmt: skip
    return Exposure(
        workload=workload, queue=queue, priority=priority, standing=standing, now=taking, next=threat,
        protection=protection,
    )  # fmt: skip


def _rank(exposure: Exposure, probes: Probes) -> tuple[Any, ...]:
    """Whom the next rounds stop, in their order; then whom the smallest asks do; then who is spared, and who is
    safe."""
    if exposure.now is not None:
        return 0, exposure.now.round, 0, 0, exposure.workload
    if exposure.next is not None:
        return 1, probes.size(exposure.next.ask), exposure.next.priority, exposure.next.before, exposure.workload
    return (2 if exposure.standing == "spared" else 3), 0, 0, 0, exposure.workload


class Exposing:
    """Does jobs of the kind ``exposure``."""

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        del job
        asked = decode(request, ExposureRequest)

        def tell(decisions: int) -> None:
            work.progress = {"decisions": decisions, "total": asked.decisions}

        outcome = expose(asked, self._configurations, work.check, tell)
        return encode(outcome)
