"""Bodies of the snapshot endpoints."""

from app.solver.model.base import Time, Wire
from app.solver.model.configuration import Configuration, EngineName
from app.solver.model.decision import ConfigurationUsed, Decision, Plan
from app.solver.model.state import Ask, State


class SnapshotRequest(Wire, frozen=True, kw_only=True):
    """``PUT /v1/snapshots/{name}``: the whole state, and the configuration that it is compiled for."""

    engine: EngineName | None = None
    configuration: str | Configuration
    state: State


class Counts(Wire, frozen=True, kw_only=True):
    nodes: int
    workloads: int
    tasks: int
    reservations: int


class SnapshotStatus(Wire, frozen=True, kw_only=True):
    """What is kept. ``age_seconds``: since the state was put whole; ``bytes``: estimated memory."""

    name: str
    generation: int
    engine: str
    configuration: ConfigurationUsed
    counts: Counts
    age_seconds: float
    idle_seconds: float
    bytes: int
    digest: str | None = None


class SnapshotList(Wire, frozen=True, kw_only=True):
    items: list[SnapshotStatus]


class Carried(Wire, frozen=True, kw_only=True):
    """An answer to carry out, with the asks that it answers; a logged decision is expanded to this."""

    asks: list[Ask]
    decisions: list[Decision]
    plan: Plan


class ApplyRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/snapshots/{name}/apply``. ``decision``: the id of a logged one, or an answer with its asks.

    ``generation``: refuse (409) unless the snapshot is still at it; absent: the one the decision was made on.
    """

    decision: str | Carried
    generation: int | None = None
    now: Time | None = None
