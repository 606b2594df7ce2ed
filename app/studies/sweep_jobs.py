"""``/v1/sweeps``: a grid of configurations, seeds and settings over one stored trace, every point of it a simulation.

A point is played by the same function as by ``arbiter sweep``, so that both come to the same; a worker plays one after
the other, on one processor, and what each came to is there as soon as it has ended.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from fastapi import Path, Response
from sqlalchemy import RowMapping
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from app.answering.answers import encode
from app.answering.sources import Compiled, Documents
from app.base.decoding import decode
from app.base.errors import ArbiterError, BadInput
from app.http.openapi import NDJSON, lines, operation
from app.http.routing import provided
from app.jobs.repository import Claimed
from app.jobs.service import READ, First, Jobs, JobsOfKind, JobState, Most, New, Said, outcome_of, router_of, state_of
from app.jobs.worker import Work
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Silence
from app.simulations.results import TraceUsed
from app.simulations.router import SIMULATION
from app.simulations.schemas import SimulationRequest, Summary, Trace
from app.simulations.service import DaysPassed, VirtualDays
from app.solver.model.base import Name, Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.studies.sweep_executors import Grid, Played, Point, TraceFile, each_point, play, size
from app.traces.router import Traces

KIND = "sweep"
POINTS = "points"
_MOST_POINTS = 200
_OF_TRACE = "trace"


class SweepRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/sweeps``. Every combination is played, at most 200."""

    request: dict[str, Any] = {}
    """Fields of a simulation that all points share, without configuration, trace, variants and seed."""
    configurations: dict[Name, str | Configuration]
    """By name: `name`, `name@revision`, `name@label`, or the document itself; `trace`: the one that the trace's mapping
    makes of it."""
    trace: str
    """The name of a stored trace."""
    sample: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """The part of the jobs that each seed draws. Absent: all of them, whatever the seed."""
    seeds: list[Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]] | None = None
    """What samples are drawn with. Absent: one, 0."""
    settings: dict[str, Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": {}})]] = {}
    """Values to try, by JSON pointer into the request of the simulation, such as `/grace` or
    `/configuration/settings/kueue/fair_sharing`."""


class SweepProgress(Wire, frozen=True, kw_only=True):
    """How far a sweep is."""

    points: int
    """Points that were played."""
    failed: int
    """Of these, those that failed."""


class SweepOutcome(Wire, frozen=True, kw_only=True):
    """What a sweep came to."""

    failed: int


class Sweep(JobState, frozen=True, kw_only=True):
    """``GET /v1/sweeps/{id}``."""

    trace: TraceUsed
    """The trace that every point plays."""
    configurations: list[str]
    """Names of the configurations."""
    settings: list[str]
    """What else differs between points, by pointer into their requests."""
    points: int
    """How many points the grid has."""
    progress: SweepProgress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    failed: int | None = None
    """Points that failed. Absent: it is not done."""
    error: str | None = None
    """Why it failed."""


class SweepPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/sweeps``: newest first."""

    items: list[Sweep]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class SweepPoint(Wire, frozen=True, kw_only=True):
    """One point of a sweep, as it ended."""

    key: str
    """Tells it from every other, by all that it depends on: the same in every sweep."""
    configuration: str
    """The name of its configuration."""
    seed: int
    """What its sample was drawn with."""
    settings: dict[str, Any] = {}
    """The values that it tried, by pointer."""
    status: Literal["done", "failed"]
    """Whether it came to an end."""
    summary: Summary | None = None
    """What it came to. Absent: it failed."""
    error: str | None = None
    """Why it failed."""


SWEEP: dict[str, Any] = {
    "configurations": {"two teams": SIMULATION["configuration"]},
    "trace": "january",
    "settings": {"/configuration/settings/kueue/fair_sharing": [False, True]},
}


class About(msgspec.Struct, frozen=True):
    """What is kept of a request to tell of it without reading it."""

    trace: TraceUsed
    configurations: list[str]
    settings: list[str]
    points: int


class Sweeps(JobsOfKind[Sweep, SweepPage]):
    """Sweeps as those see them who ask for them: accepted, shown, read from, stopped."""

    def __init__(self, jobs: Jobs, documents: Documents, traces: Traces) -> None:
        super().__init__(jobs, KIND, _shown, SweepPage)
        self._documents = documents
        self._configurations = Compiled(documents)
        self._traces = traces

    def start(self, body: bytes) -> Sweep:
        """Accept a sweep. Raises InvalidInput, BadInput, NotFound, TooManyRequests, Unavailable."""
        request = decode(body, SweepRequest)
        written = {name: self._written(name, given, request.trace) for name, given in request.configurations.items()}
        pinned = msgspec.structs.replace(request, configurations=written)
        if not 0 < (count := size(_grid(pinned))) <= _MOST_POINTS:
            raise BadInput([Problem(pointer="", detail=f"{count} points; 1 to {_MOST_POINTS} are allowed")])
        seen = set[str]()
        for point in _points(pinned, ""):  # what is wrong is told now
            if point.configuration not in seen:
                seen.add(point.configuration)
                scenario_of(decode(point.request, SimulationRequest), self._configurations, ())

        def new(session: Session) -> New:
            trace = self._traces.pinned(session, request.trace)
            used = TraceUsed(name=request.trace, digest=self._traces.digest(session, trace))
            about = About(used, list(written), list(request.settings), count)
            return New(msgspec.json.encode(about), msgspec.json.encode(pinned), trace)

        return self._accept(new)

    def _written(self, name: str, given: str | Configuration, trace: str) -> Configuration:
        """Raises NotFound, BadInput, Unavailable."""
        if isinstance(given, Configuration):
            return given
        if given != _OF_TRACE:
            return decode(self._documents.document(*self._documents.head(given)), Configuration)
        configuration = self._traces.summary(trace).configuration
        if configuration is None:
            detail = "the mapping of the trace has no cluster"
            raise BadInput([Problem(pointer=pointer("configurations", name), detail=detail)])
        return configuration

    def points(self, identity: UUID, first: int, most: int | None) -> Iterator[bytes]:
        """The lines of points from number ``first``, some at a time, as far as they are there. Raises NotFound."""
        self.get(identity)
        return self._jobs.lines(identity, POINTS, first, most)


def _grid(request: SweepRequest) -> Grid:
    trace = TraceFile(file=request.trace, sample=request.sample)
    return Grid(
        request=request.request, configurations=request.configurations, traces={request.trace: trace},
        seeds=request.seeds, settings=request.settings,
    )  # fmt: skip


def _points(request: SweepRequest, digest: str) -> Iterator[Point]:
    """Those of a request whose configurations are written out. Raises InvalidInput, BadInput."""
    documents = {
        (name, request.trace): given
        for name, given in request.configurations.items()
        if isinstance(given, Configuration)
    }
    return each_point(_grid(request), documents, {request.trace: digest})


def _shown(row: RowMapping) -> Sweep:
    about = msgspec.json.decode(row["about"], type=About)
    outcome = outcome_of(row, SweepOutcome)
    return Sweep(
        **state_of(row), trace=about.trace, configurations=about.configurations, settings=about.settings,
        points=about.points, progress=None if row["progress"] is None else SweepProgress(**row["progress"]),
        failed=None if outcome is None else outcome.failed,
    )  # fmt: skip


class _Bounded(Silence):
    """Keeps nothing of a run. ``days`` of virtual time may pass in it."""

    def __init__(self, days: float) -> None:
        self._days = VirtualDays(days)

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``. Raises DaysPassed."""
        del ended, total, rounds
        self._days.check(now)


class Sweeping:
    """Does jobs of the kind ``sweep``. ``days`` of virtual time may pass in one point."""

    def __init__(self, traces: Traces, days: float) -> None:
        self._traces = traces
        self._days = days

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        assert job.trace is not None
        asked = decode(request, SweepRequest)
        trace = self._traces.by_id(job.trace)
        start = msgspec.json.encode(Trace(start=trace.start))
        played = Played(list(self._traces.packed(job.trace)), start, asked.sample)
        failed = 0

        for number, point in enumerate(_points(asked, trace.digest)):
            work.check()
            work.progress = {"points": number, "failed": failed}
            summary, error = None, None
            try:
                encoded = play(point.request, played, _Bounded(self._days), work.check)
                summary = msgspec.json.decode(encoded, type=Summary)
            except InvalidInput as invalid:
                error = "; ".join(f"{problem.pointer}: {problem.detail}" for problem in invalid.problems[:5])
            except ArbiterError as refused:
                error = refused.detail
            except DaysPassed as past:
                error = str(past)
            failed += error is not None
            line = SweepPoint(
                key=point.key, configuration=point.configuration, seed=point.seed, settings=point.values,
                status="done" if error is None else "failed", summary=summary, error=error,
            )  # fmt: skip
            work.write(POINTS, encode(line))
            work.flush()
            work.progress = {"points": number + 1, "failed": failed}
        return encode(SweepOutcome(failed=failed))


DOCUMENTED = (SweepRequest, Sweep, SweepPage, SweepPoint)

router = router_of(
    Sweeps, KIND, request=SweepRequest, shown=Sweep, page=SweepPage, example=SWEEP,
    begin=Said("sweep", "Play a trace under a grid of configurations and settings", """
    Accepted at once, made by a worker: every combination of configurations, seeds and settings is a simulation of
    its own over the same stored trace. `Location` is where to look."""),
    listed=Said("list_sweeps", "Sweeps, newest first", "Without points."),
    got=Said("get_sweep", "Status and progress", "How many points it has, and how many were played."),
    forgotten="forgotten with its results",
)  # fmt: skip


Service = Annotated[Sweeps, provided(Sweeps)]
Id = Annotated[UUID, Path(description="`id` of a sweep")]


@router.get(
    "/{id}/points",
    operation_id="list_sweep_points",
    summary="What each point came to",
    **operation(needs="read", responses={200: lines(SweepPoint)}, errors=READ),
)
def points(id: Id, sweeps: Service, first: First = 0, limit: Most = None) -> Response:  # noqa: A002
    """One line a point, in the order of the request: configurations, then seeds, then settings; as far as it has
    come."""
    return StreamingResponse(sweeps.points(id, first, limit), media_type=NDJSON)
