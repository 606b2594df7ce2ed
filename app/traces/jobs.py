"""From a record of any format, or a line of our own, to a job, as the mapping says; what holds between lines. Pure."""

import re
from collections.abc import Callable, Collection, Iterator
from collections.abc import Mapping as Columns
from decimal import Decimal

import msgspec

from app.base.decoding import decode
from app.simulations.schemas import Change, Job
from app.solver.model import base
from app.solver.model.base import (
    Duration,
    DurationError,
    Quantity,
    QuantityError,
    Time,
    micros,
    parse_quantity,
    scale_of,
)
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Expression, Task
from app.traces.formats import Complaints, LineError, Record, decimal_of, numbered
from app.traces.mapping import AmountOf, LabelOf, Mapping, PreemptibleOf, PriorityOf

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
            requests={name: found for name, amount in self._amounts if (found := amount(cells)) is not None},
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
    found: list[Problem] = []

    def check(column: str | None, *where: str) -> None:
        if column is not None and column not in columns:
            detail = f"no column {column[:64]!r}; there are {', '.join(sorted(columns))}"
            found.append(Problem(pointer=pointer(*where), detail=detail))

    for column in _HOLE.findall(mapping.queue):
        check(column, "queue")
    check(mapping.count, "count")
    for name, amount in mapping.resources.items():
        if isinstance(amount, AmountOf):
            check(amount.column, "resources", name, "column")
        try:
            parse_quantity(amount.default if isinstance(amount, AmountOf) else amount, scale_of(name))
        except QuantityError as error:
            found.append(Problem(pointer=pointer("resources", name), detail=str(error)))
    for name in ("priority", "preemptible", "node_label"):
        rule = getattr(mapping, name)
        if isinstance(rule, PriorityOf | PreemptibleOf | LabelOf):
            check(rule.column, name, "column")
    if mapping.cluster is not None and mapping.cluster.each.groups is not None:
        for column in _HOLE.findall(mapping.cluster.each.groups):
            check(column, "cluster", "each", "groups")
    return found


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

    def found(cells: Cells) -> Quantity | None:
        text = cells[column]
        if text == "":
            return default or None
        amount = decimal_of(text, column) * times
        if amount == 0:
            return None
        if amount * scale != int(amount * scale):
            raise LineError(f"{column}: {amount} of {name} is finer than {'1/1000' if scale > 1 else '1'}")
        return int(amount) if amount == int(amount) else f"{int(amount * scale)}m"

    return found


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
            at = self._moment(job.submitted_at, "submitted_at")
            if at < self._last_job:
                raise LineError("submitted_at: it goes backwards: the job before was submitted later")
            self._last_job = at
            if _span(job.duration, "duration") == 0:
                raise LineError("duration: it must be above 0")
            if job.cancelled_at is not None and self._moment(job.cancelled_at, "cancelled_at") < at:
                raise LineError("cancelled_at: it goes backwards: the job is submitted later")
            self._checkpoint(job)
            if job.ask.id in self._ids:
                raise LineError(f"ask.id: {job.ask.id[:64]!r} is there twice")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        finally:
            self._ids.add(job.ask.id)
        self._seen(at)
        for wanted in job.after:
            if wanted not in self._ids or wanted == job.ask.id:
                self._complaints.add(line, f"after: no job {wanted[:64]!r} before it")

    def change(self, line: int, change: Change) -> None:
        """A change of line ``line``."""
        try:
            at = self._moment(change.at, "at")
            if at < self._last_change:
                raise LineError("at: it goes backwards: the change before is later")
        except LineError as error:
            self._complaints.add(line, str(error))
            return
        self._last_change = at
        self._seen(at)

    def _seen(self, at: int) -> None:
        self.first = at if self.first is None else min(self.first, at)
        self.last = max(self.last, at)

    def _checkpoint(self, job: Job) -> None:
        if job.checkpoint is not None:
            if _span(job.checkpoint.every, "checkpoint.every") == 0:
                raise LineError("checkpoint.every: it must be above 0")
            _span(job.checkpoint.cost, "checkpoint.cost")

    def _moment(self, value: int | float | str, name: str) -> int:
        """In microseconds, since 1970 or since the beginning; a trace has one kind. Raises LineError."""
        absolute, at = moment(value, name)
        if self._absolute is None:
            self._absolute = absolute
        if absolute is not self._absolute:
            raise LineError(f"{name}: {'a time' if absolute else 'seconds'}, where a line before has the other")
        return at


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
        found = base.parse_duration(value)
    except DurationError as error:
        raise LineError(f"{name}: {error}") from None
    if not 0 <= found <= _MOST_PROBABLE:
        raise LineError(f"{name}: {str(value)[:32]} is out of range")
    return found


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
            found = _second_look(number, line, complaints)
            if found is not None:
                yield number, found


def _second_look(number: int, line: bytes, complaints: Complaints) -> Job | Change | None:
    """A change; or what is wrong with the line, which is a change when it has ``at`` and no ``ask``."""
    is_change = b'"at"' in line and b'"ask"' not in line
    try:
        return decode(line, Change) if is_change else decode(line, Job)
    except InvalidInput as invalid:
        for problem in invalid.problems:
            complaints.add(number, problem.detail, problem.pointer)
        return None
