"""Where a run tells what happens, in the words of the wire; whoever listens decides what to keep.

Times are microseconds since 1970, amounts integer steps by resource: exact, so that ties are ties.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

import msgspec

from app.answering.answers import encode
from app.simulations.schemas import Event, Instant, JobLine, RoundLine
from app.solver import solve
from app.solver.model.base import (
    Duration,
    DurationError,
    Quantity,
    Time,
    micros,
    parse_duration,
    parse_quantity,
    scale_of,
    to_datetime,
)
from app.solver.model.decision import Placement, Result
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.model.state import State, Task
from app.solver.question import Question
from app.solver.rounds import Turn
from app.solver.solve import Configured, Loaded

FIRST = micros(datetime(2000, 1, 1, tzinfo=UTC))
"""Where a run starts that nobody gave a time."""
EARLIEST = micros(datetime.min.replace(tzinfo=UTC))
LATEST = micros(datetime(9000, 1, 1, tzinfo=UTC))
"""No instant lies outside of these: every answer can still be written as a time."""


def span(value: Duration) -> int:
    """A length, 0 or more. Raises DurationError."""
    length = parse_duration(value)
    if length < 0:
        raise DurationError("negative")
    return length


def is_time(value: Instant) -> bool:
    """Whether ``value`` is a time of day and not a length from the start."""
    return isinstance(value, str) and "T" in value.upper()


def moment(value: Instant, start: int) -> int:
    """An instant; lengths count from ``start``. Raises DurationError."""
    if is_time(value):
        try:
            instant = micros(msgspec.convert(value, Time))
        except msgspec.ValidationError:
            raise DurationError(f"{str(value)[:64]!r} is no RFC 3339 time with an offset") from None
    else:
        instant = start + parse_duration(value)
    if not EARLIEST <= instant <= LATEST:
        raise DurationError("out of range")
    return instant


def time_of(value: int) -> datetime:
    """An instant as the wire has it."""
    return to_datetime(value)


Amounts = dict[str, int]


def amounts_of(tasks: Iterable[Task]) -> Amounts:
    """What asks and running workloads hold, added up: steps by resource, over all units of all tasks; not to be
    changed, for equal ones share it. Raises QuantityError."""
    alike: list[tuple[dict[str, Quantity], int]] = []
    requests, count = None, 0
    for task in tasks:
        if task.requests is not requests:  # units of one task share theirs
            if requests is not None:
                alike.append((requests, count))
            requests, count = task.requests, 0
        count += task.count
    if requests is None:
        return {}
    if not alike:
        return _held(tuple(requests.items()), count)
    amounts: Amounts = {}
    for wanted, units in (*alike, (requests, count)):
        for resource, amount in _held(tuple(wanted.items()), units).items():
            amounts[resource] = amounts.get(resource, 0) + amount
    return amounts


@lru_cache(maxsize=4096)
def _held(requests: tuple[tuple[str, Quantity], ...], count: int) -> Amounts:
    return {resource: count * parse_quantity(value, scale_of(resource)) for resource, value in requests}


def work(area: int, resource: str) -> int | float:
    """Steps times microseconds as units times seconds."""
    whole, rest = divmod(area, scale_of(resource) * 10**6)
    return whole if rest == 0 else area / (scale_of(resource) * 10**6)


@dataclass(frozen=True, slots=True)
class Asked:
    """A round, asked and answered. ``n``: which, from 1; ``loaded``: the state that it was decided on."""

    n: int
    loaded: Loaded
    question: Question
    result: Result

    def request(self) -> bytes:
        """The decision request, as anybody could post it."""
        return in_words(self.loaded.configured, self.loaded.state, self.question)

    def answer(self) -> bytes:
        """The answer, as the service would give it, without ``id`` and ``stats``."""
        return encode(solve.answer_of(self.loaded, self.result))


def in_words(configured: Configured, state: State, question: Question) -> bytes:
    """The decision request that asks ``question`` of ``state``."""
    used = configured.used
    request = DecisionRequest(
        engine=configured.engine.name,  # pyright: ignore[reportArgumentType]
        now=time_of(question.now), mode=question.mode,
        configuration=configured.configuration if used.name is None else f"{used.name}@{used.revision}",
        state=StateOrReference(
            nodes=state.nodes, workloads=state.workloads, reservations=state.reservations, queues=state.queues,
            disruption_budgets=state.disruption_budgets,
        ),
        asks=question.asks, options=question.options, explain=question.explain,
    )  # fmt: skip
    return encode(request)


Watch = Callable[[Asked], None]


@dataclass(frozen=True, slots=True)
class Carried:
    """A round that is about to be carried out. ``n``: which, from 1; ``state``, ``question``: what it was asked of, or
    would have been; ``turn``: what it comes to; ``promised``: room that whoever evicts nobody waits for, where somebody
    leaves already: only rounds that are asked know of any."""

    n: int
    configured: Configured
    state: State
    question: Question
    turn: Turn
    promised: Sequence[Placement]


Course = Callable[[Carried], None]


class Stopped(Exception):
    """Somebody asked the run to stop; what it told so far stands."""


class Sink(Protocol):
    """Called in order, from the thread of the run. What a method raises ends the run. ``leveled``: whether ``level``
    and ``spare`` are to be called; ``recorded``: whether ``record`` is; ``digested``: whether rounds tell the digest of
    their state."""

    leveled: bool
    recorded: bool
    digested: bool

    def event(self, event: Event) -> None:
        """Something happened."""
        ...

    def round(self, line: RoundLine) -> None:
        """A round was answered; the events that follow from it come after."""
        ...

    def record(self, line: bytes) -> None:
        """What the request of the round told last can be made of again: a line, a ``Record`` of ``core.state``."""
        ...

    def job(self, line: JobLine) -> None:
        """A job has ended, or the run has, with the job as it then was."""
        ...

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """What a queue with all below it holds, waits for and is guaranteed from an instant on; of all queues together
        where it has no name. Amounts in steps, which are not to be kept: they go on changing."""
        ...

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        """What the nodes of a flavor have free from an instant on: in all domains of a level of its topology, and at
        most in one of them. Called as ``level`` is."""
        ...

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """Once an instant: the virtual time in microseconds since 1970, jobs that ended of all (None: not known), and
        rounds."""
        ...


def hears(sink: Sink, what: str) -> bool:
    """Whether anybody does anything with what the sink's method ``what`` is told. A sink that may do without names
    these methods (``unheard``)."""
    return getattr(type(sink), what) is not getattr(Silence, what) and what not in getattr(sink, "unheard", ())


class Silence:
    """A sink that keeps nothing; to be subclassed by those who want some of it."""

    leveled = recorded = digested = False

    def event(self, event: Event) -> None:
        """See ``Sink``."""
        del event

    def round(self, line: RoundLine) -> None:
        """See ``Sink``."""
        del line

    def record(self, line: bytes) -> None:
        """See ``Sink``."""
        del line

    def job(self, line: JobLine) -> None:
        """See ``Sink``."""
        del line

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        """See ``Sink``."""
        del queue, since, usage, waiting, guarantee

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        """See ``Sink``."""
        del flavor, level, since, free, largest

    def progress(self, now: int, ended: int, total: int | None, rounds: int) -> None:
        """See ``Sink``."""
        del now, ended, total, rounds
