"""From a record of any format, or a line of our own, to a job, as a mapping says: which columns become queue, priority
and resources. Pure.
"""

import re
from collections.abc import Callable, Collection, Iterator
from collections.abc import Mapping as Columns
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from app.base.decoding import decode
from app.simulations.schemas import Change, Checkpoint, Job
from app.solver.engines import FIRST
from app.solver.model import base
from app.solver.model.base import (
    Count,
    Duration,
    DurationError,
    Name,
    Priority,
    Quantity,
    QuantityError,
    Resources,
    Time,
    Wire,
    micros,
    parse_quantity,
    scale_of,
)
from app.solver.model.configuration import Configuration, EngineName, Flavor, Queue, Settings
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Expression, Task
from app.traces.formats import Complaints, LineError, Record, decimal_of, numbered

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

    engine: EngineName = FIRST
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


_HOLE = re.compile(r"\{([A-Za-z_]+)\}")
_MOST_TASKS = 2**31
_COUNT = re.compile(r"[0-9]{1,12}")

Cells = Columns[str, str]


class Mapper:
    """``mapping`` made ready for a format with these ``columns``."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._queue = filled(mapping.queue)
        self._amounts = [(name, _amount(name, given)) for name, given in sorted(mapping.resources.items())]

    def job(self, record: Record) -> Job:
        """Raises LineError."""
        given, cells = self._mapping, record.columns
        task = Task(
            name="main",
            count=1 if given.count is None else _count(cells, given.count),
            requests={name: value for name, amount in self._amounts if (value := amount(cells)) is not None},
            node_affinity=None if given.node_label is None else _affinity(cells, given.node_label),
        )
        ask = Ask(
            id=record.id,
            queue=self._queue(cells),
            priority=_priority(cells, given.priority),
            preemptible=_preemptible(cells, given.preemptible),
            min_available=given.min_available,
            tasks=[task],
        )
        return Job(
            ask=ask,
            submitted_at=base.seconds(record.submitted),
            duration=base.seconds(record.duration),
            checkpoint=given.checkpoint,
            after=[record.after] if given.dependencies and record.after is not None else [],
        )


def problems_of(mapping: Mapping, columns: Collection[str]) -> list[Problem]:
    """What a format with these ``columns`` can't give; pointers into the mapping."""
    problems: list[Problem] = []

    def check(column: str | None, *where: str) -> None:
        if column is not None and column not in columns:
            detail = f"no column {column[:64]!r}; there are {', '.join(sorted(columns))}"
            problems.append(Problem(pointer=pointer(*where), detail=detail))

    for column in _HOLE.findall(mapping.queue):
        check(column, "queue")
    check(mapping.count, "count")
    for name, amount in mapping.resources.items():
        if isinstance(amount, AmountOf):
            check(amount.column, "resources", name, "column")
        try:
            parse_quantity(amount.default if isinstance(amount, AmountOf) else amount, scale_of(name))
        except QuantityError as error:
            problems.append(Problem(pointer=pointer("resources", name), detail=str(error)))
    for name in ("priority", "preemptible", "node_label"):
        rule = getattr(mapping, name)
        if isinstance(rule, PriorityOf | PreemptibleOf | LabelOf):
            check(rule.column, name, "column")
    if mapping.cluster is not None and mapping.cluster.each.groups is not None:
        for column in _HOLE.findall(mapping.cluster.each.groups):
            check(column, "cluster", "each", "groups")
    return problems


def filled(text: str) -> Callable[[Cells], str]:
    """``text`` with each ``{column}`` in it taken from a line; ``unknown`` where the line does not say."""
    parts = _HOLE.split(text)
    if len(parts) == 1:
        return lambda _: text
    if len(parts) == 3:
        before, column, after = parts
        return lambda cells: f"{before}{cells[column] or 'unknown'}{after}"
    return lambda cells: "".join(part if i % 2 == 0 else cells[part] or "unknown" for i, part in enumerate(parts))


def _amount(name: str, given: Quantity | AmountOf) -> Callable[[Cells], Quantity | None]:
    """How much of resource ``name`` a line asks for; None for nothing."""
    if not isinstance(given, AmountOf):
        return lambda _: given
    column, default, scale = given.column, given.default, scale_of(name)
    times = Decimal(repr(given.times))

    def read(cells: Cells) -> Quantity | None:
        text = cells[column]
        if text == "":
            return default or None
        amount = decimal_of(text, column) * times
        if amount == 0:
            return None
        if amount * scale != int(amount * scale):
            raise LineError(f"{column}: {amount} of {name} is finer than {'1/1000' if scale > 1 else '1'}")
        return int(amount) if amount == int(amount) else f"{int(amount * scale)}m"

    return read


def _count(cells: Cells, column: str) -> int:
    text = cells[column]
    count = int(text) if _COUNT.fullmatch(text) else 0
    if not 0 < count < _MOST_TASKS:
        raise LineError(f"{column}: {text[:32]!r} is no number of tasks")
    return count


def _priority(cells: Cells, rule: int | PriorityOf) -> int:
    """The priority of a line: the rule's own, or the one that it has for the column's value."""
    return rule.values.get(cells[rule.column], rule.default) if isinstance(rule, PriorityOf) else rule


def _preemptible(cells: Cells, rule: bool | PreemptibleOf) -> bool:
    """The same of whether it may be evicted."""
    return rule.values.get(cells[rule.column], rule.default) if isinstance(rule, PreemptibleOf) else rule


def _affinity(cells: Cells, rule: LabelOf) -> list[list[Expression]] | None:
    text = cells[rule.column]
    if text == "":
        return None
    return [[Expression(key=rule.key, operator="In", values=text.split(rule.separator))]]


_MOST_PROBABLE = 10**17
"""Microseconds: 3,000 years."""


class Order:
    """What holds between the lines of a trace: times that go forward, ids that are told apart. Told of each line,
    complains about what does not fit those before it."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._ids: set[str] = set()
        self._absolute: bool | None = None
        self._last_job = self._last_change = -_MOST_PROBABLE
        self.first: int | None = None
        self.last = 0

    @property
    def start(self) -> int | None:
        """The earliest time that a line gives, in microseconds since 1970; None where lines count seconds."""
        return self.first if self._absolute else None

    def knows(self, job: str) -> bool:
        """Whether a line before had the job of that id."""
        return job in self._ids

    def job(self, line: int, job: Job) -> None:
        """A job of line ``line``."""
        try:
            submitted = self._moment(job.submitted_at, "submitted_at")
            if submitted < self._last_job:
                raise LineError("submitted_at: it goes backwards: the job before was submitted later")
            self._last_job = submitted
            if _span(job.duration, "duration") == 0:
                raise LineError("duration: it must be above 0")
            if job.cancelled_at is not None and self._moment(job.cancelled_at, "cancelled_at") < submitted:
                raise LineError("cancelled_at: it goes backwards: the job is submitted later")
            self._checkpoint(job)
            if job.ask.id in self._ids:
                raise LineError(f"ask.id: {job.ask.id[:64]!r} is there twice")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        finally:
            self._ids.add(job.ask.id)
        self._seen(submitted)
        for wanted in job.after:
            if wanted not in self._ids or wanted == job.ask.id:
                self._complaints.add(line, f"after: no job {wanted[:64]!r} before it")

    def change(self, line: int, change: Change) -> None:
        """A change of line ``line``."""
        try:
            when = self._moment(change.at, "at")
            if when < self._last_change:
                raise LineError("at: it goes backwards: the change before is later")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        self._last_change = when
        self._seen(when)

    def _seen(self, when: int) -> None:
        self.first = when if self.first is None else min(self.first, when)
        self.last = max(self.last, when)

    def _checkpoint(self, job: Job) -> None:
        if job.checkpoint is not None:
            if _span(job.checkpoint.every, "checkpoint.every") == 0:
                raise LineError("checkpoint.every: it must be above 0")
            _span(job.checkpoint.cost, "checkpoint.cost")

    def _moment(self, value: int | float | str, name: str) -> int:
        """In microseconds, since 1970 or since the beginning; a trace has one kind. Raises LineError."""
        absolute, instant = moment(value, name)
        if self._absolute is None:
            self._absolute = absolute
        if absolute is not self._absolute:
            raise LineError(f"{name}: {'a time' if absolute else 'seconds'}, where a line before has the other")
        return instant


def moment(value: int | float | str, name: str) -> tuple[bool, int]:
    """Whether ``value`` is a time, and microseconds: since 1970, or since the beginning. Raises LineError."""
    if isinstance(value, str) and len(value) >= 20 and value[4:5] == "-":
        try:
            return True, micros(msgspec.convert(value, Time))
        except (msgspec.ValidationError, OverflowError):
            raise LineError(f"{name}: {value[:48]!r} is no time of RFC 3339 with its offset") from None
    return False, _span(value, name)


def _span(value: Duration, name: str) -> int:
    """Microseconds, 0 or more. Raises LineError."""
    try:
        length = base.parse_duration(value)
    except DurationError as error:
        raise LineError(f"{name}: {error}") from None
    if not 0 <= length <= _MOST_PROBABLE:
        raise LineError(f"{name}: {str(value)[:32]} is out of range")
    return length


_job = msgspec.json.Decoder(Job).decode


def entries(body: bytes, complaints: Complaints) -> Iterator[tuple[int, Job | Change]]:
    """The lines of ``body`` in our own format, newline-delimited JSON, each a job or a change, with their numbers from
    1. Empty lines are let be."""
    for number, line in numbered(body):
        if not line.strip():
            continue
        try:
            yield number, _job(line)
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            entry = _second_look(number, line, complaints)
            if entry is not None:
                yield number, entry


def _second_look(number: int, line: bytes, complaints: Complaints) -> Job | Change | None:
    """A change; or what is wrong with the line, which is a change when it has ``at`` and no ``ask``."""
    is_change = b'"at"' in line and b'"ask"' not in line
    try:
        return decode(line, Change) if is_change else decode(line, Job)
    except InvalidInput as invalid:
        for problem in invalid.problems:
            complaints.add(number, problem.detail, problem.pointer)
        return None
