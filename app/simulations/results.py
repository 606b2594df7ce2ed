"""What the endpoints of simulations answer beside the lines of a run."""

from app.jobs.schemas import JobState
from app.simulations.schemas import Summary, Units
from app.solver.model.base import Time, Wire


class Progress(Wire, frozen=True, kw_only=True):
    """How far a run is."""

    variant: str = ""
    """The variant that runs; empty where there are none."""
    variants_done: int = 0
    """How many variants are done."""
    at: Time | None = None
    """The virtual time. Absent: it has not begun."""
    ended: int = 0
    """Jobs of this variant that have ended."""
    total: int | None = None
    """All jobs of the trace. Absent: not known."""
    rounds: int = 0
    """Rounds of this variant."""


class VariantSummary(Wire, frozen=True, kw_only=True):
    """What one variant came to."""

    name: str = ""
    """Its name; empty where the request has no variants."""
    summary: Summary
    """What it came to."""


class JobDifference(Wire, frozen=True, kw_only=True):
    """A job that fared otherwise in a variant than in the first."""

    job: str
    """Its id."""
    variant: str
    """The variant."""
    completion: Units | None = None
    """Seconds from being asked for to the end in the first variant. Absent: it did not end."""
    completion_here: Units | None = None
    """The same in this variant."""
    evictions: int = 0
    """How often it was evicted in the first variant."""
    evictions_here: int = 0
    """The same in this variant."""


class TraceUsed(Wire, frozen=True, kw_only=True):
    """The stored trace of a simulation."""

    name: str
    """Its name when the simulation was asked for."""
    digest: str
    """SHA-256 of its lines."""


class About(Wire, frozen=True, kw_only=True):
    """What is kept of a request to tell of it without reading it."""

    variants: list[str]
    trace: TraceUsed | None = None


class Outcome(Wire, frozen=True, kw_only=True):
    """What a simulation came to."""

    variants: list[VariantSummary]
    differences: list[JobDifference] = []


class Simulation(JobState, frozen=True, kw_only=True):
    """``GET /v1/simulations/{id}``."""

    trace: TraceUsed | None = None
    """The stored trace. Absent: the request brought its own."""
    names: list[str] = []
    """The names of its variants. Absent: it has none."""
    progress: Progress | None = None
    """How far it is, or came. Absent: it has not begun, or only just."""
    variants: list[VariantSummary] = []
    """What each variant came to, in the order of the request. Empty until it is done."""
    differences: list[JobDifference] = []
    """The jobs whose completion differs most from the first variant's, at most 20 a variant."""
    error: str | None = None
    """Why it failed."""


class ResourceSeries(Wire, frozen=True, kw_only=True):
    """One resource over time: exact areas, in units of the resource times seconds, one for each interval."""

    usage: list[Units]
    """What was held: running, or until an evicted job released it."""
    guarantee: list[Units]
    """What is guaranteed; of all queues together, the capacity."""
    demand: list[Units]
    """What was held or waited for."""


class Series(Wire, frozen=True, kw_only=True):
    """``GET /v1/simulations/{id}/series``."""

    queue: str | None = None
    """The queue, with all below it. Absent: all queues together."""
    at: list[Time]
    """Where intervals begin, and the end of the last one: one more than there are intervals. Divide an area by the
    length of its interval for the mean."""
    resources: dict[str, ResourceSeries]
    """By resource."""


class SimulationPage(Wire, frozen=True, kw_only=True):
    """``GET /v1/simulations``: newest first."""

    items: list[Simulation]
    """Newest first, without summaries."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""
