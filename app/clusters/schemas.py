"""What followers report, and what is known of a cluster that is followed."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from app.answering.snapshots import Counts
from app.solver.model.base import Name, Priority, Time, Total, Wire
from app.solver.model.configuration import EngineName
from app.solver.model.problems import Finding

Stage = Literal["listing", "following", "broken"]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]


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
    """The value of each priority class, by name."""


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
