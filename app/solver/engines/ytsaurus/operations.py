"""Operations and pools as columns: what they say themselves, inherit and carry; and sums over such columns.

Resources are the columns of a matrix, so there are between one and a dozen of them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from app.solver.compiled import ResourceIndex
from app.solver.engines.ytsaurus.configuration import (
    WEIGHTLESS,
    CompiledConfiguration,
    Inherited,
    operation_threshold,
    operation_timeout,
    operation_tolerance,
)
from app.solver.engines.ytsaurus.reading import Steps, Where
from app.solver.engines.ytsaurus.settings import OperationSettings, has_overrides, operation_settings
from app.solver.model.base import micros, to_datetime
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import Ask, Task, Workload
from app.solver.model.ytsaurus import Starvation
from app.solver.model.ytsaurus import Workload as OperationOptions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.float64)
Work = TypeVar("Work", Ask, Workload)


def any_of(flags: Flags) -> Flags:
    """Whether some column of each row is set.

    NumPy reduces along a short last axis row by row; taking the columns one after another, as all such reductions here
    do, is several times faster."""
    out = flags[..., 0].copy()
    for r in range(1, flags.shape[-1]):
        out |= flags[..., r]
    return out


def all_of(flags: Flags) -> Flags:
    """Whether every column of each row is set."""
    out = flags[..., 0].copy()
    for r in range(1, flags.shape[-1]):
        out &= flags[..., r]
    return out


def most(values: Floats) -> Floats:
    """The largest value of each row."""
    out = values[..., 0].copy()
    for r in range(1, values.shape[-1]):
        np.maximum(out, values[..., r], out=out)
    return out


def least(values: Floats) -> Floats:
    """The smallest value of each row."""
    out = values[..., 0].copy()
    for r in range(1, values.shape[-1]):
        np.minimum(out, values[..., r], out=out)
    return out


def by_level(depth: Ints) -> list[Ints]:
    """The rows of each depth, those of depth 0 first; the root's, -1, is none."""
    return list(_by_level(depth.tobytes()))


@lru_cache(maxsize=64)
def _by_level(depth: bytes) -> tuple[Ints, ...]:
    """A tree's, which every round asks for several times."""
    rows: Ints = np.frombuffer(depth, np.int64)
    return tuple(np.flatnonzero(rows == level) for level in range(int(rows.max()) + 1))


def add_upwards(values: npt.NDArray[Number], parent: Ints, depth: Ints) -> None:
    """Add to each pool, and to the root, what is below it: one row a pool, the root last. In place."""
    for rows in reversed(by_level(depth)):
        np.add.at(values, parent[rows], values[rows])


def quotients(above: Floats, below: Floats, where: Flags, otherwise: float) -> Floats:
    """``above`` by ``below`` where that is asked for, and ``otherwise`` elsewhere."""
    out = np.empty(np.broadcast(above, below).shape)
    out.fill(otherwise)  # half the time of np.full
    return np.divide(above, below, out=out, where=where)


def running_sums(steps: Floats, bounds: Ints) -> Floats:
    """Sums of the rows before each row within its block; blocks are the spans between ``bounds``.

    Each block is summed on its own, so that rounding does not carry over from block to block. Blocks of like size
    share one array operation.
    """
    out = np.zeros_like(steps)
    first, sizes = bounds[:-1], np.diff(bounds)
    magnitude = np.zeros(len(sizes), np.int64)
    np.log2(np.maximum(sizes, 1), out=magnitude, casting="unsafe")
    for power in np.unique(magnitude).tolist():
        blocks = np.flatnonzero(magnitude == power)
        width = int(sizes[blocks].max())
        if width < 2:
            continue
        inner = first[blocks][:, None] + np.arange(width - 1)
        inside = np.arange(1, width) < sizes[blocks][:, None]
        sums = np.cumsum(steps[np.where(inside, inner, 0)], axis=1)
        out[inner[inside] + 1] = sums[inside]
    return out


def scattered(rows: Ints, values: Floats, count: int) -> Floats:
    """Sums of ``values`` by row: a matrix of ``count`` rows."""
    out = np.zeros((count, values.shape[1]))
    if len(rows):
        for r in range(values.shape[1]):
            out[:, r] = np.bincount(rows, values[:, r], minlength=count)
    return out


Levels = npt.NDArray[np.int8]

UNLIMITED_STEPS = 2**62
"""A limit or threshold that was not given, or is larger."""
NEVER = -(2**63)
"""An instant that was not given: older than everything."""
_EXACT = 2**32
"""Seconds since 1970 below which a double, and a million times it, is off by less than half a microsecond."""

_FEW = 16
"""Values that Python has read before NumPy has begun."""

STARVATION: tuple[Starvation, Starvation, Starvation] = ("non_starving", "starving", "aggressively_starving")
STARVATION_CODE: dict[str | None, int] = {None: 0, "non_starving": 0, "starving": 1, "aggressively_starving": 2}


class Operations(Struct, frozen=True, eq=False):
    """One row an operation. ``tolerance`` and ``timeout`` are inherited already; ``non_preemptible`` too, with
    ``protects`` saying whether it names any resource. Instants and durations in microseconds.

    ``integers``, ``numbers`` and ``flags`` hold columns of one kind, so that putting rows together takes few steps."""

    ids: list[str]
    integers: Ints
    numbers: Floats
    flags: Flags
    limits: Ints
    non_preemptible: Ints
    starvation: Levels
    since: Ints

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def pool(self) -> Ints:
        """Row of the pool of each."""
        return self.integers[0]

    @property
    def created(self) -> Ints:
        """When it was."""
        return self.integers[1]

    @property
    def timeout(self) -> Ints:
        """How long it is below its fair share before it starves."""
        return self.integers[2]

    @property
    def preemption_timeout(self) -> Ints:
        """What its allocations are given to stop."""
        return self.integers[3]

    @property
    def graceful_timeout(self) -> Ints:
        """The same where they are only asked to."""
        return self.integers[4]

    @property
    def weight(self) -> Floats:
        """Within its pool."""
        return self.numbers[0]

    @property
    def tolerance(self) -> Floats:
        """The part of its fair share from which it has enough."""
        return self.numbers[1]

    @property
    def graceful(self) -> Flags:
        """Whether its allocations are only asked to stop."""
        return self.flags[0]

    @property
    def gang(self) -> Flags:
        """Whether it is one."""
        return self.flags[1]

    @property
    def suspended(self) -> Flags:
        """Whether it starts nothing."""
        return self.flags[2]

    @property
    def protects(self) -> Flags:
        """Whether ``non_preemptible`` names any resource."""
        return self.flags[3]

    def put_together(self, other: "Operations", ids: list[str], join: Callable[[Any, Any, int], Any]) -> "Operations":
        """``join`` of each column of these operations and ``other``'s, along its axis of rows."""
        return Operations(
            ids=ids,
            integers=join(self.integers, other.integers, 1), numbers=join(self.numbers, other.numbers, 1),
            flags=join(self.flags, other.flags, 1), limits=join(self.limits, other.limits, 0),
            non_preemptible=join(self.non_preemptible, other.non_preemptible, 0),
            starvation=join(self.starvation, other.starvation, 0), since=join(self.since, other.since, 0),
        )  # fmt: skip

    def joined(self, other: "Operations") -> "Operations":
        """These operations, then ``other``'s."""
        return self.put_together(
            other, self.ids + other.ids, lambda own, others, axis: np.concatenate((own, others), axis)
        )


def matrix(index: ResourceIndex, rows: Sequence[Steps], missing: int = 0) -> Ints:
    """Resource maps as a dense matrix. Raises KeyError for a resource that the index does not know."""
    out = np.full((len(rows), len(index)), missing, np.int64)
    columns = index.index
    for i, row in enumerate(rows):
        for name, value in row.items():
            out[i, columns[name]] = min(value, UNLIMITED_STEPS)
    return out


def compile_operations(
    config: CompiledConfiguration,
    index: ResourceIndex,
    of: Sequence[Workload | Ask],
    base: Where,
    problems: list[Problem],
) -> Operations:
    """The operations that ``of`` are; problems are added to ``problems``, with pointers below ``base``."""
    pools, settings, inherited, columns = config.tree.index, config.settings, config.inherited, config.columns
    pool = np.array([pools[w.queue] for w in of], np.int64)
    problems += _problems(config, of, pool, base)
    plain = OperationOptions()
    options = [plain if w.ytsaurus is None else w.ytsaurus for w in of]
    integers = np.empty((5, len(of)), np.int64)
    integers[0], integers[1], integers[2] = pool, instants([w.created_at for w in of]), columns.timeout[pool]
    integers[3], integers[4] = settings.preemption_timeout, settings.graceful_timeout
    numbers = np.empty((2, len(of)))
    numbers[0] = [1.0 if w.weight is None else w.weight for w in of]
    numbers[1] = columns.tolerance[pool]
    flags = np.empty((4, len(of)), bool)
    flags[0] = [o.preemption_mode == "graceful" for o in options]
    flags[1] = [o.is_gang for o in options]
    flags[2] = [o.suspended for o in options]
    flags[3] = columns.protects[pool]
    out = Operations(
        ids=[w.id for w in of],
        integers=integers,
        numbers=numbers,
        flags=flags,
        limits=np.full((len(of), len(index)), UNLIMITED_STEPS, np.int64),
        non_preemptible=matrix(index, [p.non_preemptible for p in inherited], UNLIMITED_STEPS)[pool],
        starvation=np.array([STARVATION_CODE[o.starvation] for o in options], np.int8),
        since=instants([o.below_fair_share_since for o in options]),
    )
    for i, w in enumerate(of):
        if w.limit:
            for r, value in index.steps(w.limit).items():
                out.limits[i, r] = min(value, UNLIMITED_STEPS)
        if has_overrides(options[i]):
            own = operation_settings(options[i], (*base, i, "ytsaurus"), problems)
            _override(out, i, inherited[int(pool[i])], own, index)
    return out


def _override(out: Operations, i: int, pool: Inherited, own: OperationSettings, index: ResourceIndex) -> None:
    """Write what operation ``i`` says itself over what it inherits."""
    out.tolerance[i] = operation_tolerance(pool, own)
    out.timeout[i] = operation_timeout(pool, own)
    for name, value in (own.limits or {}).items():
        r = index.index[name]
        out.limits[i, r] = min(out.limits[i, r], value)
    threshold = operation_threshold(pool, own)
    out.protects[i] = bool(threshold)
    for name, value in threshold.items():
        out.non_preemptible[i, index.index[name]] = min(value, UNLIMITED_STEPS)
    if own.preemption_timeout is not None:
        out.preemption_timeout[i] = own.preemption_timeout
    if own.graceful_timeout is not None:
        out.graceful_timeout[i] = own.graceful_timeout


def _problems(
    config: CompiledConfiguration, of: Sequence[Workload | Ask], pool: Ints, base: Where
) -> Iterator[Problem]:
    forbidden = {i for i, p in enumerate(config.pools) if p.forbid_operations and config.is_inner(i)}
    for i in [i for i, p in enumerate(pool.tolist()) if p in forbidden] if forbidden else []:
        detail = f"pool {of[i].queue!r} has child pools and forbids immediate operations"
        yield Problem(pointer=pointer(*base, i, "queue"), detail=detail)
    for i, w in enumerate(of):
        if w.weight is not None and not 0 < w.weight < float("inf"):
            detail = WEIGHTLESS if w.weight == 0 else f"{w.weight!r} is out of range: above 0, and finite"
            yield Problem(pointer=pointer(*base, i, "weight"), detail=detail)


def operation_names(option: OperationOptions) -> set[str]:
    """Every resource that an operation's options name."""
    names = {*(option.non_preemptible_resource_usage_threshold or ()), *(option.resource_limits or ())}
    return names if option.max_unpreemptible_running_job_count is None else names | {"user_slots"}


def instants(values: list[datetime | None]) -> Ints:
    """Microseconds since 1970. ``timestamp`` is exact to the microsecond until 2106; later ones take the slow way."""
    if len(values) < _FEW:
        return np.array([NEVER if value is None else micros(value) for value in values], np.int64)
    given = [value for value in values if value is not None]
    known = np.fromiter(map(datetime.timestamp, given), float, len(given))
    exact = np.rint(known * 1e6).astype(np.int64)
    for i in np.flatnonzero(np.abs(known) > _EXACT):
        exact[i] = micros(given[i])
    if len(given) == len(values):
        return exact
    out = np.full(len(values), NEVER, np.int64)
    out[np.array([value is not None for value in values], bool)] = exact
    return out


class Standing(NamedTuple):
    """What an element carries to the next update: its starvation, and since when it is below its fair share, in
    microseconds; None: it is not."""

    starvation: Starvation
    since: int | None

    @staticmethod
    def of(level: int, since: int) -> "Standing":
        """Of codes, as columns have them."""
        return Standing(STARVATION[level], None if since == NEVER else since)

    @property
    def codes(self) -> tuple[int, int]:
        """The inverse."""
        return STARVATION_CODE[self.starvation], NEVER if self.since is None else self.since

    @property
    def below_since(self) -> datetime | None:
        """``since``, as the wire has it."""
        return None if self.since is None else to_datetime(self.since)

    def carried_by(self, block: OperationOptions | None) -> OperationOptions:
        """``block`` of an operation that stands so."""
        return replace(block or OperationOptions(), starvation=self.starvation, below_fair_share_since=self.below_since)


QUIET = Standing("non_starving", None)


def standing(options: OperationOptions | None) -> tuple[int, int]:
    """What an operation carries: the code of its starvation, and since when it is below its fair share."""
    if options is None:
        return 0, NEVER
    since = options.below_fair_share_since
    return STARVATION_CODE[options.starvation], NEVER if since is None else micros(since)


def moved_on(
    before: tuple[int, int], is_below: bool, timeouts: list[float], now: int, later: list[int]
) -> tuple[int, int]:
    """How starvation, and since when, moves on of an element that may be below its fair share. ``timeouts``: after
    which it starves, and does so aggressively; ``later``: gains instants at which time alone changes that."""
    if not is_below:
        return 0, NEVER
    level, since = before
    starves = since != NEVER
    since = since if starves else now
    for reached, timeout in enumerate(timeouts, 1):
        if starves and now - since > timeout:
            level = reached
        if (instant := since + math.floor(timeout) + 1) > now:
            later.append(instant)
    return level, since


def same_but_standing(was: Work, now: Work) -> bool:
    """Whether an operation, or an ask for it, differs only in what it carries: its starvation, and since when."""
    old, new = was.ytsaurus, now.ytsaurus
    if old is not new and _without_standing(old) != _without_standing(new):
        return False
    return was is now or replace(now, ytsaurus=old) == was


def _without_standing(options: OperationOptions | None) -> OperationOptions:
    return OperationOptions() if options is None else replace(options, starvation=None, below_fair_share_since=None)


def pool_sums(amounts: npt.NDArray[Number], pool: Ints, parent: Ints, depth: Ints) -> npt.NDArray[Number]:
    """Amounts of operations summed up the tree, whole ones exactly: one row a pool, the root last."""
    out = np.zeros((len(parent), amounts.shape[1]), amounts.dtype)
    np.add.at(out, pool, amounts)
    add_upwards(out, parent, depth)
    return out


def charge(pools: list[list[int]], path: Iterable[int], amounts: Iterable[int], sign: int) -> None:
    """So much more, or less, in each pool of ``path``."""
    signed = [sign * amount for amount in amounts]
    for pool in path:
        pools[pool] = list(map(add, pools[pool], signed))


def pool_satisfaction(local: Floats, operations: Floats, pool: Ints, parent: Ints, depth: Ints) -> Floats:
    """The lowest satisfaction of a schedulable operation below each pool; its own where there is none. Root last.

    ``operations``, ``pool``: of the schedulable ones (``TPoolTreeCompositeElement::ComputeSatisfactionRatioAtUpdate``).
    """
    lowest = np.full(len(local), np.inf)
    np.minimum.at(lowest, pool, operations)
    for rows in reversed(by_level(depth)):
        np.minimum.at(lowest, parent[rows], lowest[rows])
    return np.where(np.isinf(lowest), local, lowest)


ROUNDING, SATISFIABLE, HARDLY = 1e-10, 1e-4, 1e-10
"""More than sums of doubles are off by; what is due lacks more than this where it does not satisfy; a suggestion that
is nothing in other doubles."""
NOWHERE = -1


class Allocation(NamedTuple):
    """``node``: its row, or NOWHERE; ``usage``, ``steps``: what it uses; ``begun``: microseconds; ``has_gap``: uses
    less cpu than it asked for."""

    task: Task
    node: int
    usage: Ints
    steps: tuple[int, ...]
    begun: int
    has_gap: bool


Shares = tuple[float, ...]


class Due:
    """What operations of a kind stand at: shares, in which resources what is due covers what they want, whether they
    are below their fair share, and their ``satisfaction``, where that is asked for."""

    __slots__ = ("below", "closed", "demand", "fair", "satisfaction", "usage")

    def __init__(self, usage: Shares, demand: Shares, fair: Shares, closed: tuple[bool, ...], below: bool) -> None:
        self.usage, self.demand, self.fair, self.closed, self.below = usage, demand, fair, closed, below
        self.satisfaction = 0.0


class Span:
    """Suggestions, from ``low`` to ``high``, with which a kind stands alike: ``below`` its fair share or not, and in
    which resources what is due covers what it wants (``closed``), or all but so (``covered``)."""

    __slots__ = ("below", "closed", "covered", "high", "low")

    def __init__(self, part: float, below: bool, closed: tuple[bool, ...], covered: list[bool]) -> None:
        self.low = self.high = part
        self.below, self.closed, self.covered = below, closed, covered


class Grade:
    """Suggestions, from ``low`` to ``high``, with which ``levels`` are those of the newest of a kind's allocations;
    ``bounds``: where its fair share covers what it wants."""

    __slots__ = ("bounds", "high", "levels", "low")

    def __init__(self, part: float, bounds: tuple[bool, ...], levels: list[int]) -> None:
        self.low = self.high = part
        self.bounds, self.levels = bounds, levels
