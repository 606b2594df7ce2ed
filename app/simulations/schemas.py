"""What goes into a simulation and what comes out of it, as the wire has it."""

from typing import Annotated, Literal

import msgspec

from app.answering.comparison import Difference
from app.solver.model import kai as kai_model
from app.solver.model import kueue as kueue_model
from app.solver.model import ytsaurus as ytsaurus_model
from app.solver.model import yunikorn as yunikorn_model
from app.solver.model.base import Duration, Priority, Time, Wire
from app.solver.model.configuration import Configuration, EngineName, Quota, ResourceGroup
from app.solver.model.problems import Finding
from app.solver.model.request import Explain, RunOptions, Variant
from app.solver.model.state import Ask, NodeChanges, State

Instant = Annotated[
    int | float | str,
    msgspec.Meta(title="Instant", description="Seconds (or a Go duration) from the start, or an RFC 3339 time"),
]
Requeue = Literal["created", "evicted"]
OnLoop = Literal["stop", "continue"]
EventKind = Literal[
    "submitted", "started", "evicted", "released", "moved", "finished", "cancelled", "node", "configuration", "loop"
]
JobStatus = Literal["pending", "waiting", "running", "releasing", "finished", "cancelled"]
Units = int | float


class Checkpoint(Wire, frozen=True, kw_only=True):
    """What survives an eviction: whole multiples of ``every``."""

    every: Duration
    """How much progress lies between two checkpoints; above 0."""
    cost: Duration = 0
    """How long one takes; the job makes no progress meanwhile. Default: 0."""


class Job(Wire, frozen=True, kw_only=True):
    """One job of a trace: an ask, when it is made, and for how long it must run."""

    ask: Ask
    """What it asks for. Its id is the job's; its `created_at`, where absent, is the time of submission."""
    submitted_at: Instant
    """When it is submitted."""
    duration: Duration
    """How long it must run; above 0."""
    checkpoint: Checkpoint | None = None
    """What survives an eviction. Absent: nothing."""
    cancelled_at: Instant | None = None
    """When its owner gives it up, unless it has finished. Absent: never."""
    after: list[str] = []
    """Ids of jobs, submitted no later, that must have ended before this one is asked for."""


class QueueAmendment(Wire, frozen=True, kw_only=True):
    """What becomes of a queue; each field that is given replaces the queue's own."""

    parent: str | None = None
    """As of a queue. Absent: as it was."""
    quota: dict[str, Quota] | None = None
    """As of a queue, whole. Absent: as it was."""
    resource_groups: list[ResourceGroup] | None = None
    """As of a queue, whole. Absent: as it was."""
    weight: float | None = None
    """As of a queue. Absent: as it was."""
    priority: Priority | None = None
    """As of a queue. Absent: as it was."""
    kueue: kueue_model.Queue | None = None
    """As of a queue, whole. Absent: as it was."""
    yunikorn: yunikorn_model.Queue | None = None
    """As of a queue, whole. Absent: as it was."""
    kai: kai_model.Queue | None = None
    """As of a queue, whole. Absent: as it was."""
    ytsaurus: ytsaurus_model.Queue | None = None
    """As of a queue, whole. Absent: as it was."""


class Change(Wire, frozen=True, kw_only=True):
    """What an administrator does during the run."""

    at: Instant
    """When."""
    nodes: NodeChanges | None = None
    """Nodes that come, change and go; what ran on one that goes is evicted without grace."""
    configuration: str | Configuration | None = None
    """Another configuration, for the same engine. Absent: as it was."""
    queues: dict[str, QueueAmendment] = {}
    """Changes of single queues, by name, after those of the configuration."""


class Trace(Wire, frozen=True, kw_only=True):
    """Jobs and changes, in any order."""

    jobs: list[Job] = []
    """The jobs."""
    changes: list[Change] = []
    """What an administrator does meanwhile."""
    start: Time | None = None
    """The time that seconds are counted from. Absent: the earliest time that a job gives, else 2000-01-01."""


def too_many_jobs(most: int) -> str:
    """What is said of a trace that has more than ``most``."""
    return f"more than {most} jobs (ARBITER_TRACE_JOBS)"


class SimulationRequest(Wire, frozen=True, kw_only=True):
    """``POST /v1/simulations``."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    """What people call it. Absent: nothing."""
    engine: EngineName | None = None
    """Whose rules decide. Absent: the configuration's engine."""
    configuration: str | Configuration
    """The configuration: `name`, `name@revision`, `name@label`, or the document itself."""
    variants: list[Variant] | None = None
    """Runs of their own over the same trace, each with what differs from this request. Absent: one run."""
    state: State = State()
    """Nodes, and what runs at the start: running work needs a job in the trace, or `remaining`."""
    remaining: dict[str, Duration] = {}
    """How long work that runs at the start must still run, by id of the workload. Absent: the duration of its job less
    the time since it started."""
    trace: str | Trace
    """The name of a stored trace, or the trace itself."""
    start: Time | None = None
    """When the run starts. Absent: the trace's own start."""
    until: Instant | None = None
    """When it ends, whatever still runs or waits. Absent: once nothing happens any more."""
    round_every: Duration = 1
    """The least time between two rounds; above 0. Default: 1 s."""
    grace: Duration = 0
    """From an eviction to the release of what the victim holds. Default: 0."""
    requeue: Requeue = "created"
    """Which time an evicted job has in queue order afterwards: that of its creation, or that of its eviction."""
    on_loop: OnLoop = "stop"
    """What follows a loop: `stop` goes on at the next event from outside, `continue` plays its turns again."""
    options: RunOptions = RunOptions()
    """Options of the engine for the whole run."""
    explain: Explain = "none"
    """How much the decision requests of the rounds ask about why."""
    seed: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | None = None
    """Kept with the run for callers that drew the trace from it; nothing is drawn here."""


class Event(Wire, frozen=True, kw_only=True):
    """Something that happened to a job, a node or the configuration."""

    at: Time
    """When, on the virtual clock."""
    kind: EventKind
    """What happened."""
    job: str | None = None
    """The job it happened to. Absent: none."""
    task: str | None = None
    """Its task. Absent: all of it, or its only one."""
    queue: str | None = None
    """The job's queue, or the queue that changed."""
    round: int | None = None
    """The round that decided it. Absent: none did."""
    by: str | None = None
    """The job that it was evicted for. Absent: none."""
    rule: str | None = None
    """Why it was evicted, in one word: the engine's own reason."""
    node: str | None = None
    """The node it runs on, or that changed."""
    lost: Units | None = None
    """Seconds of running that the eviction threw away."""
    first: int | None = None
    """Of a loop: the earlier round that was asked of the same situation as `round`."""
    jobs: list[str] | None = None
    """Of a loop: the jobs that were evicted in one turn."""


class Evicted(Wire, frozen=True, kw_only=True):
    """One eviction of a round."""

    job: str
    """The job that was evicted."""
    task: str | None = None
    """Its task. Absent: all of it."""
    queue: str
    """Its queue."""
    by: str | None = None
    """The job that it was evicted for. Absent: none."""
    rule: str
    """Why, in one word: the engine's own reason."""


class Loop(Wire, frozen=True, kw_only=True):
    """What runs and what waits is the same as at an earlier round, after somebody was evicted."""

    at: Time
    """When it was found, on the virtual clock."""
    first: int
    """The earlier round, with which the turn begins."""
    second: int
    """The later round, which was asked of the same situation."""
    jobs: list[str]
    """The jobs that were evicted in between, in order of id."""
    evictions: list[Evicted]
    """The evictions of one turn, in order, with the rule behind each."""


class RoundLine(Wire, frozen=True, kw_only=True):
    """One round: what was asked and what came of it."""

    n: int
    """Its number, from 1."""
    at: Time
    """When, on the virtual clock: the `now` of its request."""
    asks: list[str]
    """Ids of its asks, in the order of the request: jobs, or single tasks of jobs where the engine asks for these."""
    order: list[str] | None = None
    """In the order in which the engine took them."""
    admitted: list[str] = []
    """Jobs of which something started."""
    evicted: list[Evicted] = []
    """Who was evicted, in order."""
    state: str | None = None
    """The digest of the state it was decided on. Absent: not worked out."""
    loop: bool = False
    """Whether it would have begun the turn of a loop again, so that its answer was not carried out."""


class JobLine(Wire, frozen=True, kw_only=True):
    """What became of one job. Times are on the virtual clock, lengths in seconds."""

    job: str
    """Its id."""
    queue: str
    """Its queue."""
    status: JobStatus
    """What it was when the run ended."""
    submitted_at: Time
    """When it was asked for: its submission, or the end of the last job that it comes after."""
    started_at: Time | None = None
    """When something of it first started. Absent: never."""
    ended_at: Time | None = None
    """When it finished or was cancelled. Absent: it did neither."""
    wait: Units | None = None
    """From being asked for to the first start. Absent: it never started."""
    waited: Units = 0
    """In which it waited, over all its waits; summed over its tasks where each runs for itself."""
    starts: int = 0
    """How often it started."""
    evictions: int = 0
    """How often it was evicted."""
    ran: Units = 0
    """In which it ran: its progress, what was lost and what its checkpoints took; summed over its tasks where each runs
    for itself."""
    lost: Units = 0
    """Of these, thrown away by evictions."""
    overhead: Units = 0
    """Of these, taken by checkpoints."""


class Spread(Wire, frozen=True, kw_only=True):
    """A distribution, exact: a percentile is the smallest value that so many do not exceed."""

    mean: Units
    """The mean."""
    p50: Units
    """The median."""
    p90: Units
    """The 90th percentile."""
    p99: Units
    """The 99th percentile."""
    max: Units
    """The largest."""


class Totals(Wire, frozen=True, kw_only=True):
    """What a run, or one queue in it, came to. Lengths in seconds; work in units of the resource times seconds."""

    jobs: int = 0
    """Jobs that were asked for."""
    finished: int = 0
    """Jobs that finished."""
    cancelled: int = 0
    """Jobs that were cancelled."""
    wait: Spread | None = None
    """From being asked for to the first start, of the jobs that started. Absent: none did."""
    completion: Spread | None = None
    """From being asked for to the finish, of the jobs that finished. Absent: none did."""
    slowdown: Spread | None = None
    """That time over the job's duration, of the jobs that finished. Absent: none did."""
    evictions: int = 0
    """Evictions."""
    most_evictions: int = 0
    """The most evictions of one job."""
    work_done: dict[str, Units] = {}
    """Progress that was made and kept, by resource."""
    work_lost: dict[str, Units] = {}
    """Progress that evictions threw away, by resource."""
    work_overhead: dict[str, Units] = {}
    """What checkpoints took, by resource."""
    used: dict[str, Units] = {}
    """What was held, by resource: running, or until an evicted job released it."""
    utilisation: dict[str, float] = {}
    """What was held over what is guaranteed, by resource (over all: of the capacity)."""
    shortfall: dict[str, Units] = {}
    """What was missing to the guarantee while there was demand for it, by resource."""


class Fragmentation(Wire, frozen=True, kw_only=True):
    """How much of what a flavor's nodes had free could be had in one place. Areas in units of the resource times
    seconds."""

    flavor: str
    """The flavor."""
    level: str
    """The level of its topology."""
    resource: str
    """The resource."""
    free: Units
    """What was free in all domains of the level, over time."""
    largest: Units
    """What was free in the one of them that had most, over time."""
    share: float
    """The share of what was free that was elsewhere: 1 - `largest` / `free`, 0 where nothing was free."""


class Parted(Wire, frozen=True, kw_only=True):
    """The first round that a variant decides otherwise than the first one: up to there the situation is the same."""

    round: int
    """Which it is, from 1."""
    at: Time
    """When."""
    differences: list[Difference] = []
    """The first 20 things on which they differ there, with the rules that make the difference where they differ in
    their release alone. Empty: they have another engine, or what differs is in no answer."""


class Summary(Wire, frozen=True, kw_only=True):
    """What a run came to."""

    engine: EngineName
    """Whose rules decided."""
    start: Time
    """When the run started, on the virtual clock."""
    end: Time
    """When it ended."""
    makespan: Units
    """From the first submission to the last end of a job, in seconds."""
    rounds: int
    """How many rounds there were."""
    total: Totals
    """Over all queues."""
    queues: dict[str, Totals] = {}
    """By queue; a queue counts what lies below it."""
    fragmentation: list[Fragmentation] = []
    """What was free where pods are placed by topologies (Kueue), and how scattered. Empty: no flavor has a topology."""
    loops: int = 0
    """How many loops were found."""
    first_loops: list[Loop] = []
    """The first of them."""
    findings: list[Finding] | None = None
    """What of the documents that configuration and state were read from is not in them as it is there, so that
    all of this may be wrong (`error`) or differ (`warning`). Absent: nothing."""
    orbits: int = 0
    """How often rounds of one instant went round for ever, without an end of their own: a real scheduler spins there,
    and in which phase the next event meets it is chance. The run goes on from the last."""
