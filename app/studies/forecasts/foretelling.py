"""A forecast: what waits and what runs, played on by the engine's own rounds until every ask has started."""

from collections.abc import Callable, Iterator
from dataclasses import replace as with_

from msgspec.structs import replace

from app.answering.sources import Configurations
from app.simulations.core.run import Clock
from app.simulations.core.scenario import Scenario, scenario_of, variants_of
from app.simulations.core.sink import Stopped, time_of
from app.simulations.core.world import World
from app.simulations.schemas import Job, SimulationRequest, Trace
from app.solver.model.duration import seconds
from app.solver.model.problems import InvalidInput, Problem
from app.studies.forecasts.schemas import AskForecast, ForecastOutcome, ForecastRequest, WhatIf
from app.studies.forecasts.watching import Awaited, Watcher

_DAY = 86_400_000_000


def scenarios(request: ForecastRequest, configurations: Configurations, days: float) -> Iterator[tuple[str, Scenario]]:
    """The run without variants, called ``""``, and that of each variant; none looks further ahead than ``days``.

    Raises InvalidInput, with pointers into the forecast's request, and what ``configurations`` raises."""
    played = _simulation(request)
    try:
        yield "", _within(scenario_of(played, configurations, hopeless=True), days)
        if request.variants:
            for name, one in variants_of(replace(played, variants=request.variants), configurations):
                yield name, _within(scenario_of(one, configurations, hopeless=True), days)
    except InvalidInput as invalid:
        raise InvalidInput(Problem(pointer=_ours(p.pointer), detail=p.detail) for p in invalid.problems) from None


def foretell(
    request: ForecastRequest, configurations: Configurations, days: float, stop: Callable[[], bool]
) -> ForecastOutcome:
    """The first start of every ask, without variants and under each. Raises as ``scenarios``, and as ``stop``."""
    (_, first), *others = scenarios(request, configurations, days)
    asks, end, rounds = _played(first, request, stop)
    told = [_forecast(one, asks[one.ask.id]) for one in _jobs(request)]
    for name, scenario in others:
        found, _, _ = _played(scenario, request, stop)
        told = [replace(one, what_if=[*one.what_if, _what_if(name, found[one.ask], asks[one.ask])]) for one in told]
    return ForecastOutcome(asks=told, end=time_of(end), rounds=rounds)


def _played(
    scenario: Scenario, request: ForecastRequest, stop: Callable[[], bool]
) -> tuple[dict[str, Awaited], int, int]:
    """Each ask by id, how far the run came, and its rounds."""
    watcher = Watcher(_jobs(request))
    clock = Clock(World(scenario, watcher, watcher.look), lambda: stop() or watcher.ready)
    try:
        clock.run()
    except Stopped:
        return watcher.found, clock.now, watcher.rounds
    return watcher.found, clock.end, watcher.rounds


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
        Job(ask=one.ask, submitted_at=one.submitted_at, duration=one.duration, checkpoint=one.checkpoint)
        for one in request.asks
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


def _forecast(job: Job, found: Awaited) -> AskForecast:
    return AskForecast(
        ask=job.ask.id, queue=job.ask.queue,
        starts_at=None if found.starts_at is None else time_of(found.starts_at), wait=_wait(found),
        waits_for=found.waits, freed_by=found.freed_by, evicts=list(found.evicts),
    )  # fmt: skip


def _what_if(name: str, found: Awaited, before: Awaited) -> WhatIf:
    later = None
    if found.starts_at is not None and before.starts_at is not None:
        later = seconds(found.starts_at - before.starts_at)
    return WhatIf(
        variant=name, starts_at=None if found.starts_at is None else time_of(found.starts_at), wait=_wait(found),
        later=later, waits_for=found.waits,
    )  # fmt: skip


def _wait(found: Awaited) -> int | float | None:
    if found.starts_at is None or found.asked_at is None:
        return None
    return seconds(found.starts_at - found.asked_at)
