"""A request whose times are instants and whose trace is at hand: what one run needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from app.answering.comparison import with_settings
from app.answering.sources import Configurations
from app.simulations.core.times import FIRST, is_time, moment, span
from app.simulations.schemas import Change, Job, OnLoop, Requeue, SimulationRequest, Trace
from app.solver.model.base import Duration
from app.solver.model.configuration import Configuration
from app.solver.model.duration import DurationError
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.request import Explain, Variant
from app.solver.model.state import State


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run. Instants and lengths in microseconds; ``jobs`` in order of submission; ``total``: how many, where that
    is known."""

    engine: str | None
    configuration: str | Configuration
    state: State
    remaining: dict[str, Duration]
    jobs: Iterable[Job]
    changes: list[Change]
    total: int | None
    start: int
    until: int | None
    round_every: int
    grace: int
    requeue: Requeue
    on_loop: OnLoop
    explain: Explain


def scenario_of(request: SimulationRequest, jobs: Iterable[Job] | None = None, total: int | None = None) -> Scenario:
    """The run of a request without variants. ``jobs``: those of the trace, in order of submission, where it is too
    large for a list; ``total``: how many. Raises InvalidInput with every time that can't be read."""
    problems: list[Problem] = []
    trace = request.trace if isinstance(request.trace, Trace) else Trace()
    start = _start(request, trace)

    def read(value: Duration, at: str, *, least: int = 0) -> int:
        try:
            found = span(value)
        except DurationError as error:
            problems.append(Problem(pointer=at, detail=str(error)))
            return least
        if found < least:
            problems.append(Problem(pointer=at, detail="must be above 0"))
        return found

    until: int | None = None
    if request.until is not None:
        try:
            until = moment(request.until, start)
        except DurationError as error:
            problems.append(Problem(pointer="/until", detail=str(error)))
    round_every = read(request.round_every, "/round_every", least=1)
    grace = read(request.grace, "/grace")
    if problems:
        raise InvalidInput(problems)
    if jobs is None:
        jobs, total = in_order(trace.jobs, start), len(trace.jobs)
    return Scenario(
        engine=request.engine, configuration=request.configuration, state=request.state, remaining=request.remaining,
        jobs=jobs, changes=sorted(trace.changes, key=lambda change: moment(change.at, start)), total=total,
        start=start, until=until, round_every=round_every, grace=grace, requeue=request.requeue,
        on_loop=request.on_loop, explain=request.explain,
    )  # fmt: skip


def variants_of(request: SimulationRequest, configurations: Configurations) -> Iterator[tuple[str, SimulationRequest]]:
    """The run of each variant, by name, as a request without variants; one called ``""`` where there are none.

    Raises InvalidInput, and what ``configurations`` raises."""
    if request.variants is None:
        yield "", request
        return
    names = [variant.name for variant in request.variants]
    again = [i for i, name in enumerate(names) if name in names[:i]]
    if again or not names:
        where = [pointer("variants", i, "name") for i in again] or ["/variants"]
        raise InvalidInput(Problem(pointer=at, detail="a variant needs a name of its own") for at in where)
    for variant in request.variants:
        yield variant.name, varied(request, variant, configurations)


def varied(request: SimulationRequest, variant: Variant, configurations: Configurations) -> SimulationRequest:
    """The request of one variant. Raises what ``configurations`` raises."""
    document = request.configuration if variant.configuration is None else variant.configuration
    engine = variant.engine or request.engine
    if variant.settings is not None:
        if isinstance(document, str):
            document = configurations.named(document, engine).configuration
        document = with_settings(document, variant.settings)
    return msgspec.structs.replace(request, variants=None, engine=engine, configuration=document)


def in_order(jobs: list[Job], start: int) -> list[Job]:
    """By time of submission, then id."""
    return sorted(jobs, key=lambda job: (moment(job.submitted_at, start), job.ask.id))


def _start(request: SimulationRequest, trace: Trace) -> int:
    """The request's, else the trace's, else the earliest time that a job gives, else the year 2000."""
    given = request.start or trace.start
    if given is not None:
        return micros(given)
    times = [job.submitted_at for job in trace.jobs if is_time(job.submitted_at)]
    found: list[int] = []
    for value in times:
        try:
            found.append(moment(value, 0))
        except DurationError:
            continue  # named by line, with everything else that is wrong
    return min(found, default=FIRST)
