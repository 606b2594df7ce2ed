"""What followers report, and what is known of a cluster that is followed."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from app.answering.snapshots import Counts
from app.clusters.shadow_schemas import Seconds, ShadowOutcome, Text
from app.solver.model.base import Name, Priority, Time, Total, Wire
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding

Stage = Literal["listing", "following", "broken"]


class FollowedKind(Wire, frozen=True, kw_only=True):
    """One kind of object that is followed."""

    kind: Name
    """The kind, as `Workload`."""
    api_version: Name
    """Group and version in which it is read."""
    objects: Total
    """How many there are."""
    resource_version: Text
    """Up to which resource version it has been followed."""
    heard_at: Time | None = None
    """When the API server was last heard: an object, a bookmark or a list. Absent: never."""


class ClusterReport(Wire, frozen=True, kw_only=True):
    """``PUT /v1/clusters/{name}``: what a follower has to say, every few seconds."""

    follower: Name
    """Which follower this is; one runs beside each replica."""
    engine: EngineName
    """Whose objects it follows."""
    snapshot: Name
    """The snapshot that it keeps."""
    configuration: Name
    """The configuration that it keeps."""
    stage: Stage
    """`listing`: it reads everything; `following`: the snapshot is the cluster; `broken`: `error` says why not."""
    kinds: Annotated[list[FollowedKind], msgspec.Meta(max_length=32)]
    """What it follows."""
    counts: Counts | None = None
    """What is in the snapshot. Absent: there is none yet."""
    generation: Total | None = None
    """The generation of the snapshot that it wrote last. Absent: none yet."""
    synced_at: Time | None = None
    """The last time at which the snapshot was all that the follower had heard. Absent: never yet."""
    lag_seconds: Seconds = 0
    """How long the oldest change of the last batch waited until it was in the snapshot."""
    lists: Annotated[dict[str, Total], msgspec.Meta(max_length=32)] = {}
    """How often it had to list again or put the snapshot again, by reason."""
    findings: Annotated[list[Finding], msgspec.Meta(max_length=1000)] = []
    """What of the cluster could not be carried over, and a configuration that was refused."""
    error: Text | None = None
    """What it can't do now. Absent: all is well."""
    local_queues: Annotated[dict[str, str], msgspec.Meta(max_length=100_000)] = {}
    """The ClusterQueue of each LocalQueue, by `namespace/name` (Kueue)."""
    priority_classes: Annotated[dict[str, Priority], msgspec.Meta(max_length=10_000)] = {}
    """The value of each PriorityClass of Kubernetes, by name."""
    workload_priority_classes: Annotated[dict[str, Priority], msgspec.Meta(max_length=10_000)] = {}
    """The value of each WorkloadPriorityClass of Kueue, by name: one of Kubernetes of the same name is another."""


class ClusterLease(Wire, frozen=True, kw_only=True):
    """Which part the follower has until it reports again."""

    writer: bool
    """Whether it writes the configuration: one follower of a cluster does."""
    seconds: float
    """For how long, unless it reports before."""


class ClusterFollower(ClusterReport, frozen=True, kw_only=True):
    """A follower's last report."""

    reported_at: datetime
    """When it was heard last."""
    age_seconds: float
    """Seconds since then."""
    writer: bool
    """Whether it writes the configuration."""


class FollowedCluster(Wire, frozen=True, kw_only=True):
    """``GET /v1/clusters/{name}``."""

    name: str
    """Its name."""
    engine: EngineName
    """Whose objects are followed."""
    snapshot: str
    """The snapshot to decide on."""
    configuration: str
    """The configuration that is kept."""
    age_seconds: float | None = None
    """How old the freshest follower's snapshot is at most. Absent: there is none yet."""
    followers: list[ClusterFollower]
    """By name."""


class FollowedClusterList(Wire, frozen=True, kw_only=True):
    items: list[FollowedCluster]
    """By name."""


class SeenEviction(Wire, frozen=True, kw_only=True):
    """One eviction, as the cluster says it."""

    at: Time
    """When."""
    workload: Name
    """The id of the workload, as the state has it."""
    task: Name | None = None
    """The name of one of its tasks. Absent: all of it."""
    job: Name | None = None
    """Whose it is, as `namespace/name`: the Job, JobSet or other object that owns it. Absent: nobody's."""
    job_kind: Name | None = None
    """The kind of that."""
    queue: Name | None = None
    """The queue that it ran in."""
    by: Name | None = None
    """For whom: the id of the ask. Absent: the cluster does not say, or for nobody."""
    reason: Text | None = None
    """Why, in the engine's own word."""
    message: Text | None = None
    """Why, in the cluster's own sentence."""
    outcome: ShadowOutcome | None = None
    """What shadow found. Absent: it was not compared."""
    shadow: UUID | None = None
    """The comparison: `GET /v1/shadow/{id}`."""


class EvictionReport(Wire, frozen=True, kw_only=True):
    """``POST /v1/clusters/{name}/evictions``: evictions that a follower saw."""

    engine: EngineName
    """Whose objects it follows."""
    evictions: Annotated[list[SeenEviction], msgspec.Meta(min_length=1, max_length=10_000)]
    """In their order. One that is known already is not kept again."""


class EvictionRecord(SeenEviction, frozen=True, kw_only=True):
    """An eviction that was seen."""

    id: UUID
    """Its id; ids sort by time."""
    cluster: str
    """Where it happened."""
    engine: EngineName
    """Which scheduler is followed there."""


class EvictionPage(Wire, frozen=True, kw_only=True):
    items: list[EvictionRecord]
    """Newest first."""
    next_cursor: str | None = None
    """Where the next page begins. Absent: this is the last."""
