"""Bodies of the snapshot endpoints."""

from app.solver.model.base import Time, Total, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import ConfigurationUsed, Decision, Plan
from app.solver.model.state import Ask, State


class SnapshotRequest(Wire, frozen=True, kw_only=True):
    """``PUT /v1/snapshots/{name}``: the whole state, and the configuration that it is compiled for."""

    engine: EngineName | None = None
    """Whose rules it is compiled for. Absent: the configuration's engine."""
    configuration: str | Configuration
    """The configuration it is compiled for: `name`, `name@revision`, `name@label`, or the document itself."""
    state: State
    """The whole state."""
    asks: list[Ask] = []
    """What waits, kept beside the state: a decision decides it with `"asks": "pending"`."""
    resource_versions: dict[str, str] | None = None
    """Where the state follows a cluster: the resource version, by kind, that it has been followed to. Answers name
    them."""


class Counts(Wire, frozen=True, kw_only=True):
    nodes: Total
    """How many nodes."""
    workloads: Total
    """How many workloads."""
    tasks: Total
    """How many tasks."""
    reservations: Total
    """How many reservations."""
    asks: Total = 0
    """How many asks wait beside it."""


class SnapshotStatus(Wire, frozen=True, kw_only=True):
    """What is kept. ``age_seconds``: since the state was put whole; ``bytes``: estimated memory."""

    name: str
    """The name of the snapshot."""
    generation: int
    """Counts up with every change."""
    engine: str
    """Whose rules it is compiled for."""
    configuration: ConfigurationUsed
    """The configuration it is compiled for."""
    counts: Counts
    """What is in it."""
    age_seconds: float
    """Seconds since the state was put whole."""
    idle_seconds: float
    """Seconds since it was last used; one that is idle for long is dropped."""
    bytes: int
    """Estimated memory, in bytes."""
    digest: str | None = None
    """The digest of the state. Absent: not worked out."""


class SnapshotList(Wire, frozen=True, kw_only=True):
    items: list[SnapshotStatus]
    """By name."""


class PendingAsks(Wire, frozen=True, kw_only=True):
    """What waits beside a kept state."""

    generation: int
    """The generation that they belong to."""
    items: list[Ask]
    """By id: the order in which they are decided, whichever way they came."""


class Carried(Wire, frozen=True, kw_only=True):
    """An answer to carry out, with the asks that it answers; a logged decision is expanded to this."""

    asks: list[Ask]
    """The asks that the decisions answer."""
    decisions: list[Decision]
    """The decisions to carry out."""
    plan: Plan
    """The plan to carry out."""


class ApplyRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/snapshots/{name}/apply``. ``decision``: the id of a logged one, or an answer with its asks.

    ``generation``: refuse (409) unless the snapshot is still at it; absent: the one the decision was made on.
    """

    decision: str | Carried
    """The id of a logged decision, or an answer with its asks."""
    ask: str | None = None
    """Carry out the decision on this ask alone. Needed where several asks were decided each alone (mode `independent`):
    their plans exclude one another."""
    generation: Total | None = None
    """Refuse (409) unless the snapshot is still at it. Absent: the one that the decision was made on."""
    now: Time | None = None
    """When what is placed starts. Absent: the host's clock."""
