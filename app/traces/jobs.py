"""From a record of any format to a job, as the mapping says. Pure."""

import re
from collections.abc import Callable, Collection
from collections.abc import Mapping as Columns
from decimal import Decimal

from app.simulations.schemas import Job
from app.solver.model import duration
from app.solver.model.base import Quantity
from app.solver.model.problems import Problem, pointer
from app.solver.model.quantity import QuantityError, parse, scale_of
from app.solver.model.state import Ask, Expression, Task
from app.traces.formats.record import LineError, Record, decimal_of
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
            submitted_at=duration.seconds(record.submitted),
            duration=duration.seconds(record.duration),
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
            parse(amount.default if isinstance(amount, AmountOf) else amount, scale_of(name))
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
