"""A mapping: which columns of a trace become queue, priority and resources, and the cluster it is played on; what
endpoints of traces answer.
"""

from typing import Annotated, Literal

import msgspec

from app.simulations.schemas import Checkpoint
from app.solver.model.base import Count, Name, Priority, Quantity, Resources, Time, Wire
from app.solver.model.configuration import Configuration, EngineName, Flavor, Queue, Settings

Format = Literal["ndjson", "swf", "alibaba-gpu-2023"]
ZeroRunTime = Literal["refuse", "skip"] | Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class PriorityOf(Wire, frozen=True, kw_only=True):
    column: str
    """The column that is looked at."""
    values: dict[str, Priority]
    """The priority for each value of the column."""
    default: Priority = 0
    """The priority for every other value."""


class PreemptibleOf(Wire, frozen=True, kw_only=True):
    column: str
    """The column that is looked at."""
    values: dict[str, bool]
    """Whether a job with that value of the column may be evicted."""
    default: bool = True
    """The same for every other value."""


class AmountOf(Wire, frozen=True, kw_only=True):
    column: str
    """The column that says how much. A job whose column is empty asks for `default`."""
    times: Annotated[float, msgspec.Meta(gt=0, le=2**53)] = 1
    """What the column's number is multiplied with."""
    default: Quantity = 0
    """How much a job asks for whose column says nothing. Default: 0."""


class LabelOf(Wire, frozen=True, kw_only=True):
    key: str
    """The label that the node, or the node labels of the flavor, must have."""
    column: str
    """The column with the values that do. A job whose column is empty may run anywhere."""
    separator: Annotated[str, msgspec.Meta(min_length=1)] = "|"
    """What stands between several values."""


class NodeGroup(Wire, frozen=True, kw_only=True):
    """Alike nodes, for a format that has no list of them: `node-1`, `node-2` and so on."""

    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    """How many, at most 100,000. Absent: as the trace's header says (`MaxNodes`)."""
    capacity: Resources
    """What jobs may use of each."""


class Each(Wire, frozen=True, kw_only=True):
    """A queue for each name that the jobs have, all alike."""

    queue: Queue
    """What every one of them is; its name is replaced, and guarantees are added to its quota."""
    share: Literal["equal", "work", "none"] = "equal"
    """How what the cluster has is shared among them as guarantees: alike, in proportion to the resource-seconds that
    the jobs of each need, or not at all."""
    groups: str | None = None
    """Columns, as for `queue` of the mapping, that name a cohort between `parent` and the queue. Absent: none."""


class Cluster(Wire, frozen=True, kw_only=True):
    """The configuration that a trace is played on, with one queue for each that its jobs name."""

    engine: EngineName = "kueue"
    """Whose rules decide."""
    settings: Settings = Settings()
    """Settings of the engines."""
    flavors: list[Flavor] = []
    """Flavors, for Kueue: each has the capacity of the nodes with its labels."""
    queues: list[Queue] = []
    """The upper part of the tree, as it is."""
    each: Each
    """The queues of the jobs."""


class Mapping(Wire, frozen=True, kw_only=True):
    """How the columns of a trace become jobs. A text with `{column}` in it is filled from the job's line."""

    queue: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] = "default"
    """The queue of a job: a text with columns in it, such as `user-{user}`."""
    priority: Priority | PriorityOf = 0
    """The priority of each job, or the column that tells. Default: 0."""
    preemptible: bool | PreemptibleOf = True
    """Whether jobs may be evicted, or the column that tells. Default: true."""
    count: str | None = None
    """The column with the number of alike tasks of a job. Absent: one."""
    resources: dict[Name, Quantity | AmountOf]
    """What one task asks for, by resource."""
    node_label: LabelOf | None = None
    """What a job demands of its nodes or its flavor."""
    min_available: Count | None = None
    """How many tasks of a job must run together. Absent: all."""
    zero_run_time: ZeroRunTime = 1
    """What becomes of a job that ran for 0 s, which the formats say of less than half a second: so many seconds; `skip`
    leaves it out; `refuse` refuses the trace. Default: 1."""
    dependencies: bool = False
    """Whether a job waits for the one that the trace says precedes it."""
    checkpoint: Checkpoint | None = None
    """What survives an eviction of any job. Absent: nothing."""
    nodes: NodeGroup | None = None
    """Nodes, for a format that has no list of them."""
    cluster: Cluster | None = None
    """The configuration to play the trace on. Absent: the one that the simulation names."""


SWF = Mapping(queue="user-{user}", count="processors", resources={"cpu": 1})
ALIBABA = Mapping(
    queue="{qos}",
    priority=PriorityOf(column="qos", values={"Guaranteed": 300, "LS": 200, "Burstable": 100, "BE": 0}),
    preemptible=PreemptibleOf(column="qos", values={"BE": True}, default=False),
    resources={
        "cpu": AmountOf(column="cpus"), "memory": AmountOf(column="memory_bytes"), "gpu": AmountOf(column="gpus"),
    },
    node_label=LabelOf(key="gpu-model", column="gpu_spec"),
)  # fmt: skip
DEFAULTS: dict[str, Mapping] = {"swf": SWF, "alibaba-gpu-2023": ALIBABA}


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
