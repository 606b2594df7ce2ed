"""A simulation as a job: every variant run over the same trace, its lines stored as they come."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec

from app.answering.operations import Configurations
from app.base.decoding import decode
from app.jobs.repository import Claimed
from app.jobs.worker import LimitPassed, Work
from app.simulations.core.run import simulate
from app.simulations.core.scenario import setting_of, variants_of
from app.simulations.core.sink import Amounts
from app.simulations.core.validation import check_jobs
from app.simulations.results import JobDifference, Outcome, VariantSummary, line_of, spare_line_of
from app.simulations.schemas import Change, Event, Job, JobLine, RoundLine, SimulationRequest, Trace, Units

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
        kept = self._largest.setdefault(variant, [])
        heapq.heappush(kept, (_gap(before, fate), line.job, fate))
        if len(kept) > _MOST:
            heapq.heappop(kept)

    def found(self) -> list[JobDifference]:
        """By variant, the largest difference first."""
        return [
            self._shown(variant, job, fate)
            for variant, kept in self._largest.items()
            for _, job, fate in sorted(kept, key=lambda found: (-found[0], found[1]))
        ]

    def _shown(self, variant: str, job: str, fate: _Fate) -> JobDifference:
        before = self._first[job]
        return JobDifference(
            job=job, variant=variant, completion=before.completion, completion_here=fate.completion,
            evictions=before.evictions, evictions_here=fate.evictions,
        )  # fmt: skip


def _gap(one: _Fate, other: _Fate) -> float:
    """How far apart: ending at all counts more than any time, evictions less."""
    if (one.completion is None) is not (other.completion is None):
        return float("inf")
    if one.completion is None or other.completion is None:
        return abs(one.evictions - other.evictions) * 1e-6
    return abs(one.completion - other.completion) + abs(one.evictions - other.evictions) * 1e-6


RECORDS = "records"
"""What the requests of rounds are made of: for no reader but ours."""
STREAMS = ("events", "rounds", "jobs", "levels", RECORDS)
_SHARED = 50_000
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
        """See ``app.jobs.worker.Doing``."""
        asked = decode(request, SimulationRequest)
        trace = None if job.trace is None else self._opened(job.trace)
        asked, jobs = with_trace(asked, trace)
        total = None if trace is None else trace.total
        variants = list(variants_of(asked, self._configurations))
        if trace is not None:
            for _, one in variants:
                check_stored(one, trace, self._configurations)
        if trace is not None and len(variants) > 1 and trace.total <= _SHARED:
            kept = list(trace.jobs())
            jobs = lambda: iter(kept)  # noqa: E731
        found: list[VariantSummary] = []
        differing = Differing() if len(variants) > 1 else None
        for number, (name, one) in enumerate(variants):
            sink = _Storing(number, name, work, self._limits, differing)
            summary = simulate(one, self._configurations, sink, sink.stop, None if jobs is None else jobs(), total)
            found.append(VariantSummary(name=name, summary=summary))
        return _encode(Outcome(variants=found, differences=[] if differing is None else differing.found()))


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
    """The sink of one variant."""

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
        self._told: dict[str, Any] = {"variants_done": number, "variant": number}

    def stop(self) -> bool:
        """Asked between rounds. Raises Unwanted, LimitPassed."""
        self._work.check()
        return False

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        self._work.write(self._events, _encode(event))

    def round(self, line: RoundLine) -> None:
        """See ``Sink``."""
        self._work.write(self._rounds, _encode(line))

    def record(self, line: bytes) -> None:
        """See ``Sink``."""
        self._work.write(self._records, line)

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        self._work.write(self._jobs, _encode(line))
        if self._differing is not None:
            self._differing.add(self._name, line, is_first=self._number == 0)

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """See ``Sink``."""
        self._work.write(self._levels, line_of(queue, since, usage, waiting, guarantee))

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        """See ``Sink``."""
        self._work.write(self._levels, spare_line_of(flavor, level, since, free, largest))

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``. Raises DaysPassed."""
        self._days.check(now)
        self._work.progress = {**self._told, "at": now, "ended": ended, "total": total, "rounds": rounds}
