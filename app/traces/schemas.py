"""What the endpoints of traces answer."""

from app.solver.model.base import Time, Wire
from app.solver.model.configuration import Configuration
from app.traces.mapping import Format, Mapping


class LineNote(Wire, frozen=True, kw_only=True):
    line: int
    """The number of the line, from 1."""
    detail: str
    """What was made of it."""


class TraceQueue(Wire, frozen=True, kw_only=True):
    jobs: int
    """Its jobs."""
    work: dict[str, float]
    """What they need, by resource: units times seconds."""


class TraceSummary(Wire, frozen=True, kw_only=True):
    """A stored trace without its lines."""

    name: str
    """Its name."""
    digest: str
    """SHA-256 of its lines."""
    format: Format
    """What it was read from."""
    jobs: int
    """How many jobs it has."""
    changes: int = 0
    """How many changes of the cluster it has."""
    nodes: int = 0
    """How many nodes its first change adds."""
    bytes: int
    """Its size as newline-delimited JSON."""
    start: Time | None = None
    """The time of its second 0. Absent: it does not know."""
    seconds: float = 0
    """From the first to the last line."""
    queues: dict[str, TraceQueue] = {}
    """The queues that its jobs name."""
    configuration: Configuration | None = None
    """The configuration to play it on, with a queue for each that its jobs name. Absent: the mapping has no cluster,
    or this is a list."""
    notes: int = 0
    """About how many lines something is to be said: they were left out, or taken otherwise than they stand."""
    first_notes: list[LineNote] = []
    """The first hundred of these."""
    created_at: Time
    """When it was stored."""


class TracePage(Wire, frozen=True, kw_only=True):
    """``GET /v1/traces``: by name."""

    items: list[TraceSummary]
    """By name."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page. Absent: this is the last."""


class TraceFormat(Wire, frozen=True, kw_only=True):
    name: Format
    """As `format` says it."""
    columns: list[str] = []
    """What a mapping can name. Empty: its lines are jobs and changes, and need no mapping."""
    mapping: Mapping | None = None
    """The mapping that is used where none is sent."""


class TraceFormats(Wire, frozen=True, kw_only=True):
    """``GET /v1/trace-formats``."""

    items: list[TraceFormat]
    """Every format that a trace can be sent in."""
