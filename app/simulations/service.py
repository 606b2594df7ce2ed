"""Simulations as those see them who ask for them, and as a job: every variant run over the same trace, its lines stored
as they come.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session

from app.answering.answers import configure
from app.answering.sources import Compiled, Configurations, Documents, Sources
from app.base.decoding import decode
from app.base.errors import Conflict, NotFound
from app.jobs.repository import Claimed
from app.jobs.service import Jobs, JobsOfKind, New, outcome_of, state_of
from app.jobs.worker import LimitPassed, Work
from app.simulations.accepting import Acceptors, Terms, accept
from app.simulations.core.run import Parting, simulate
from app.simulations.core.scenario import scenario_of, setting_of, variants_of
from app.simulations.core.sink import Amounts
from app.simulations.core.state import base_of, request_of
from app.simulations.core.validation import check_jobs
from app.simulations.plots import (
    Drawing,
    Kind,
    Picture,
    Waits,
    drawn,
    evictions_of,
    free_of,
    lines_in,
    require,
    resource_of,
    thinned,
    usage_of,
    waits_by_variant,
    waits_of,
)
from app.simulations.results import (
    About,
    FragmentationSeries,
    JobDifference,
    Level,
    Outcome,
    Progress,
    Series,
    Simulation,
    SimulationPage,
    TraceUsed,
    VariantSummary,
    areas,
    edges,
    fragmentation_of,
    levels_of,
    line_of,
    series_of,
    spare_line_of,
    spare_of,
)
from app.simulations.schemas import Change, Event, Job, JobLine, RoundLine, SimulationRequest, Summary, Trace, Units
from app.solver.model.base import micros, to_datetime
from app.solver.solve import Configured

_MOST = 20


class _Fate(NamedTuple):
    completion: Units | None
    evictions: int


class Differing:
    """The jobs that fare most differently under one variant than under the first. Told of every job of every variant,
    the first variant's before all others. Pure."""

    def __init__(self) -> None:
        self._first: dict[str, _Fate] = {}
        self._largest: dict[str, list[tuple[float, str, _Fate]]] = {}

    def add(self, variant: str, line: JobLine, *, is_first: bool) -> None:
        """The job of ``line`` in ``variant``."""
        ended = line.status == "finished" and line.ended_at is not None
        length = (line.ended_at - line.submitted_at).total_seconds() if ended and line.ended_at is not None else None
        fate = _Fate(length, line.evictions)
        if is_first:
            self._first[line.job] = fate
            return
        before = self._first.get(line.job)
        if before is None or before == fate:
            return
        largest = self._largest.setdefault(variant, [])
        heapq.heappush(largest, (_gap(before, fate), line.job, fate))
        if len(largest) > _MOST:
            heapq.heappop(largest)

    def largest(self) -> list[JobDifference]:
        """By variant, the largest difference first."""
        return [
            self._shown(variant, job, fate)
            for variant, largest in self._largest.items()
            for _, job, fate in sorted(largest, key=lambda difference: (-difference[0], difference[1]))
        ]

    def _shown(self, variant: str, job: str, fate: _Fate) -> JobDifference:
        before = self._first[job]
        return JobDifference(
            job=job, variant=variant, completion=before.completion, completion_here=fate.completion,
            evictions=before.evictions, evictions_here=fate.evictions,
        )  # fmt: skip


def _gap(before: _Fate, after: _Fate) -> float:
    """How far apart: ending at all counts more than any time, evictions less."""
    if (before.completion is None) is not (after.completion is None):
        return float("inf")
    if before.completion is None or after.completion is None:
        return abs(before.evictions - after.evictions) * 1e-6
    return abs(before.completion - after.completion) + abs(before.evictions - after.evictions) * 1e-6


RECORDS = "records"
"""What the requests of rounds are made of: for no reader but ours."""
STREAMS = ("events", "rounds", "jobs", "levels", RECORDS)
MOST_SHARED = 50_000
"""Jobs of a trace that are kept decoded where several variants run over them."""
_MICROS_A_DAY = 86_400_000_000
_encode = msgspec.json.Encoder(order="deterministic").encode


class OpenTrace(Protocol):
    """A stored trace."""

    @property
    def start(self) -> datetime | None: ...

    @property
    def total(self) -> int: ...

    def changes(self) -> list[Change]: ...

    def jobs(self) -> Iterator[Job]: ...

    def numbered(self) -> Iterator[tuple[int, Job]]: ...


class DaysPassed(LimitPassed):
    """A run went past the days of virtual time that it may take."""


class VirtualDays:
    """How much virtual time a run may take: ``most`` days from its first moment."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._first: int | None = None

    def check(self, now: int) -> None:
        """``now``: microseconds. Raises DaysPassed."""
        if self._first is None:
            self._first = now
        if now - self._first > self._most * _MICROS_A_DAY:
            raise DaysPassed(f"it is past {self._most:g} days of virtual time (ARBITER_SIMULATION_DAYS)")


class Limits(NamedTuple):
    """What a run may take: days of virtual time."""

    days: float


def stream_of(variant: int, kind: str) -> str:
    """The name of a stream of results."""
    return f"{variant}/{kind}"


class Simulating:
    """Does jobs of the kind ``simulation``."""

    def __init__(self, configurations: Configurations, opened: Callable[[UUID], OpenTrace], limits: Limits) -> None:
        self._configurations = configurations
        self._opened = opened
        self._limits = limits

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        asked = decode(request, SimulationRequest)
        trace = None if job.trace is None else self._opened(job.trace)
        asked, jobs = with_trace(asked, trace)
        total = None if trace is None else trace.total
        variants = list(variants_of(asked, self._configurations))
        if trace is not None:
            for _, variant in variants:
                check_stored(variant, trace, self._configurations)
        if trace is not None and len(variants) > 1 and trace.total <= MOST_SHARED:
            every = list(trace.jobs())
            jobs = lambda: iter(every)  # noqa: E731
        summaries: list[VariantSummary] = []
        differing = Differing() if len(variants) > 1 else None
        parting = Parting()
        for number, (name, variant) in enumerate(variants):
            sink = _Storing(number, name, work, self._limits, differing)
            course = None if differing is None else parting.other(name) if number else parting.first(name)
            listed = None if jobs is None else jobs()
            summary = simulate(variant, self._configurations, sink, work.check, listed, total, course)
            summaries.append(VariantSummary(name=name, summary=summary, parted=parting.parted.get(name)))
        return _encode(Outcome(variants=summaries, differences=[] if differing is None else differing.largest()))


def with_trace(
    request: SimulationRequest, trace: OpenTrace | None
) -> tuple[SimulationRequest, Callable[[], Iterable[Job]] | None]:
    """The request with the changes and the start of its stored trace, and whoever reads that trace's jobs; None where
    the request brought them along."""
    if trace is None:
        return request, None
    changes = Trace(changes=trace.changes(), start=trace.start)
    return msgspec.structs.replace(request, trace=changes), trace.jobs


def check_stored(request: SimulationRequest, trace: OpenTrace, configurations: Configurations) -> None:
    """Whether every job of a stored trace can be run. Raises InvalidInput; pointers name the line of the trace."""
    located = ((f"/trace/lines/{number}", job) for number, job in trace.numbered())
    check_jobs(located, setting_of(request, configurations))


class _Storing:
    leveled = recorded = digested = True

    def __init__(self, number: int, name: str, work: Work, limits: Limits, differing: Differing | None) -> None:
        self._number = number
        self._name = name
        self._work = work
        self._differing = differing
        self._events, self._rounds, self._jobs, self._levels, self._records = (
            stream_of(number, kind) for kind in STREAMS
        )
        self._days = VirtualDays(limits.days)
        self._progress: dict[str, Any] = {"variants_done": number, "variant": number}

    def event(self, event: Event) -> None:
        self._work.write(self._events, _encode(event))

    def round(self, line: RoundLine) -> None:
        self._work.write(self._rounds, _encode(line))

    def record(self, line: bytes) -> None:
        self._work.write(self._records, line)

    def job(self, line: JobLine) -> None:
        self._work.write(self._jobs, _encode(line))
        if self._differing is not None:
            self._differing.add(self._name, line, is_first=self._number == 0)

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        self._work.write(self._levels, line_of(queue, since, usage, waiting, guarantee))

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        self._work.write(self._levels, spare_line_of(flavor, level, since, free, largest))

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``. Raises DaysPassed."""
        self._days.check(now)
        self._work.progress = {**self._progress, "at": now, "ended": ended, "total": total, "rounds": rounds}


KIND = "simulation"
ENDED = frozenset({"done", "failed", "cancelled"})


class StoredTraces(Protocol):
    """Where stored traces are found."""

    def pinned(self, session: Session, name: str) -> UUID:
        """The id of the trace of that name. Raises NotFound."""
        ...

    def digest(self, session: Session, trace: UUID) -> str:
        """SHA-256 of its lines."""
        ...

    def opened(self, trace: UUID) -> OpenTrace:
        """The trace of that id. Raises NotFound."""
        ...


class Simulations(JobsOfKind[Simulation, SimulationPage]):
    """Accepted, shown, read from, stopped. ``small``: what is larger, in bytes, is read in a process of its
    own."""

    def __init__(self, jobs: Jobs, traces: StoredTraces, documents: Documents, terms: Terms, small: int) -> None:
        super().__init__(jobs, KIND, _shown, SimulationPage)
        self._configurations = Compiled(documents)
        self._traces = traces
        self._documents = documents
        self._terms = terms
        self._small = small
        self._acceptors = Acceptors(documents)

    def start(self, body: bytes) -> Simulation:
        """Accept one. Raises InvalidInput, BadInput, NotFound, TooManyRequests, DeadlinePassed, Unavailable."""
        if len(body) > self._small:
            asked = self._acceptors.accepted(body, self._terms)
        else:
            asked = accept(body, self._terms, self._documents, self._configurations)

        def new(session: Session) -> New:
            trace, used = None, None
            if asked.trace is not None:
                trace = self._traces.pinned(session, asked.trace)
                used = TraceUsed(name=asked.trace, digest=self._traces.digest(session, trace))
            about = About(variants=asked.names, trace=used, name=asked.name)
            return New(msgspec.json.encode(about), asked.request, trace, asked.name)

        return self._accept(new)

    def close(self) -> None:
        """Read no further: whoever waits for that gets Unavailable."""
        self._acceptors.close()

    def lines(
        self, identity: UUID, variant: str | None, kind: str, first: int = 0, most: int | None = None
    ) -> Iterator[bytes]:
        """The lines of a variant's stream from number ``first``, some at a time, as far as they are there.

        Raises NotFound."""
        return self._jobs.lines(identity, stream_of(self.index(identity, variant), kind), first, most)

    def rounds(
        self, identity: UUID, variant: str | None, only: Literal["evictions", "loops"], first: int, most: int | None
    ) -> Iterator[bytes]:
        """The lines of rounds from number ``first`` that evict, or that would have begun a loop again. Raises
        NotFound."""
        mark = {"evictions": b'"evicted":[', "loops": b'"loop":true'}[only]
        blocks = self.lines(identity, variant, "rounds", first)
        marked = (line + b"\n" for block in blocks for line in block.splitlines() if mark in line)
        return islice(marked, most)

    def line(self, identity: UUID, variant: str | None, kind: str, number: int) -> bytes:
        """One line without its end; 0 is the first. Raises NotFound."""
        line = next(self.lines(identity, variant, kind, number, 1), None)
        if line is None:
            raise NotFound(f"simulation {identity} has no such line yet, or never")
        return line.rstrip(b"\n")

    def series(
        self, identity: UUID, variant: str | None, queue: str | None, resource: str | None, points: int
    ) -> Series:
        """What a queue (None: all together) held, waited for and was guaranteed. Raises NotFound, Conflict."""
        index, summary, _ = self._done(identity, variant)
        start, end = micros(summary.start), micros(summary.end)
        levels = levels_of(self._jobs.lines(identity, stream_of(index, "levels")), queue or "")
        by_resource = areas(levels, edges(start, end, points), resource)
        if not by_resource and queue is not None and queue not in summary.queues:
            raise NotFound(f"simulation {identity} has no queue {queue!r} that a job named")
        return series_of(queue, edges(start, end, points), by_resource)

    def fragmentation(
        self, identity: UUID, variant: str | None, resource: str | None, points: int
    ) -> FragmentationSeries:
        """What was free where pods are placed by topologies. Raises NotFound, Conflict."""
        index, summary, _ = self._done(identity, variant)
        spare = self._spare(identity, index)
        return fragmentation_of(edges(micros(summary.start), micros(summary.end), points), spare, resource)

    def _spare(self, identity: UUID, index: int) -> dict[tuple[str, str], list[Level]]:
        return spare_of(self._jobs.lines(identity, stream_of(index, "levels")))

    def plot(self, identity: UUID, variant: str | None, kind: Kind, resource: str | None) -> bytes:
        """SVG; waits of all variants together where none is named. Raises NotFound, Conflict, NotInstalled."""
        require()
        return drawn(Drawing(*self._pictured(identity, variant, kind, resource)))

    def picture(self, identity: UUID, variant: str | None, kind: Kind, resource: str | None) -> Picture:
        """The numbers of the same. Raises NotFound, Conflict."""
        _, (picture,) = self._pictured(identity, variant, kind, resource)
        return thinned(picture) if isinstance(picture, Waits) else picture

    def _pictured(
        self, identity: UUID, variant: str | None, kind: Kind, resource: str | None
    ) -> tuple[str, list[Picture]]:
        index, summary, names = self._done(identity, variant)

        def lines(number: int, of: str) -> Iterator[bytes]:
            return lines_in(self._jobs.lines(identity, stream_of(number, of)))

        def levels(queue: str) -> Iterator[Level]:
            return levels_of(self._jobs.lines(identity, stream_of(index, "levels")), queue)

        title = summary.engine if not names else f"{summary.engine}: {names[index]}"
        if kind == "usage":
            picture = usage_of(summary, resource_of(summary, resource), levels)
        elif kind == "fragmentation":
            picture = free_of(summary, resource, self._spare(identity, index))
        elif kind == "evictions":
            picture = evictions_of(lines(index, "events"))
        elif variant is None and len(names) > 1:
            title = str(summary.engine)
            picture = waits_by_variant({name: lines(number, "jobs") for number, name in enumerate(names)})
        else:
            picture = waits_of(lines(index, "jobs"))
        return title, [picture]

    def _done(self, identity: UUID, variant: str | None) -> tuple[int, Summary, list[str]]:
        """Which of its variants that is, what it came to, and the names of all; none where it has no variants.

        Raises NotFound, and Conflict before its end."""
        simulation = self.get(identity)
        index = self._variant(identity, variant, simulation.names or [""])
        if simulation.status != "done":
            raise Conflict(f"simulation {identity} is {simulation.status}: there is nothing to draw before it is done")
        return index, simulation.variants[index].summary, simulation.names

    def request_of(self, identity: UUID, variant: str | None, n: int) -> bytes:
        """The decision request of a round, from 1. Raises NotFound."""
        index = self.index(identity, variant)
        stream = stream_of(index, RECORDS)
        line = next(self._jobs.lines(identity, stream, n - 1, 1), None)
        if line is None:
            raise NotFound(f"simulation {identity} has no round {n} yet, or never")
        base = base_of(line)
        lines = lines_in(self._jobs.lines(identity, stream, base - 1, n - base + 1))
        return request_of(lines, partial(self._configured, identity, index))

    def _configured(self, identity: UUID, index: int, number: int) -> Configured:
        """The configuration of a number in the records of a variant. Of a stored trace only changes are read."""
        body, trace = self._jobs.request(identity, KIND)
        asked = decode(body, SimulationRequest)
        if number and trace is not None:
            asked, _ = with_trace(asked, self._traces.opened(trace))
        variant = next(islice((variant for _, variant in variants_of(asked, self._configurations)), index, None))
        if number == 0:
            return configure(variant.configuration, variant.engine, Sources(self._configurations))
        return scenario_of(variant, self._configurations, ()).configuration(number)

    def index(self, identity: UUID, variant: str | None) -> int:
        """Which of its variants that is. Raises NotFound."""
        return self._variant(identity, variant, _about(self._jobs.row(identity, KIND)).variants)


def _shown(row: RowMapping) -> Simulation:
    about, progress = _about(row), row["progress"]
    outcome = outcome_of(row, Outcome)
    return Simulation(
        **state_of(row), name=about.name, trace=about.trace,
        names=about.variants if about.variants != [""] else [],
        progress=None if progress is None else _progress(progress, about),
        variants=[] if outcome is None else outcome.variants,
        differences=[] if outcome is None else outcome.differences,
    )  # fmt: skip


def _progress(progress: dict[str, int], about: About) -> Progress:
    return Progress(
        variant=about.variants[progress["variant"]], variants_done=progress["variants_done"],
        at=to_datetime(progress["at"]), ended=progress["ended"], total=progress["total"], rounds=progress["rounds"],
    )  # fmt: skip


def _about(row: RowMapping) -> About:
    return msgspec.json.decode(row["about"], type=About)
