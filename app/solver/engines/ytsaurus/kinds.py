"""Operations that are alike: what is due to each kind, and how many of each there are. Says nothing where the last bits
may decide.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add, itemgetter, le
from typing import TypeVar

import numpy as np

from app.solver.engines.ytsaurus.fair_shares import INFINITE
from app.solver.engines.ytsaurus.operations import (
    HARDLY,
    NEVER,
    ROUNDING,
    SATISFIABLE,
    Allocation,
    Due,
    Floats,
    Grade,
    Ints,
    Shares,
    Span,
    charge,
)
from app.solver.engines.ytsaurus.polyline import EPSILON, Lines, Vertices, value_at
from app.solver.engines.ytsaurus.pool_curves import curve_of
from app.solver.engines.ytsaurus.situation import SLACK, in_plain_shares, scales
from app.solver.model.state import Ask, Task, Workload

_NOWHERE = Span(-1.0, below=False, closed=(), covered=[])
_MOST_GRADED = 64
"""Allocations of a kind's operations of which grades are remembered."""


class Taker:
    """What operations take of a suggestion, and their weight."""

    __slots__ = ("_part", "_value", "curve", "weight")

    def __init__(self, curve: Vertices, weight: float) -> None:
        self.curve, self.weight = curve, weight
        self._part, self._value = -1.0, curve[0][1]

    def value(self, part: float) -> Shares:
        """Of that much: kinds that take alike are suggested the same."""
        if part != self._part:
            self._part, self._value = part, value_at(self.curve, part)
        return self._value


_taker_of = lru_cache(maxsize=1024)(Taker)
"""There may be several that are equal: operations of these are counted apart first."""


@lru_cache(maxsize=4096)
def _lines_of(taker: Taker, scale: float, number: int) -> Lines:
    return Lines(taker.curve, scale, number)


class Alike:
    """A kind of operations: pool, weight, and steps that they want. ``usage``, ``demand``: shares; ``curve``: what they
    take of a suggestion, of ``most`` all that they ever take; ``even``: whether in doubles, too, they never take less
    of more; ``fits``: whether what they want is allowed; ``part``: what is suggested in the last round, and in which
    ``span`` that is; ``members``: those there are, by name; ``stood``, ``stands``: part and span as they were looked at
    last."""

    __slots__ = (
        "_due", "_grades", "_satisfaction", "_spans", "curve", "demand", "even", "fits", "members", "most", "part",
        "pool", "span", "stands", "stood", "taker", "usage", "wanted", "weight",
    )  # fmt: skip

    def __init__(self, pool: int, weight: float, wanted: tuple[int, ...], shares: Floats) -> None:
        """``shares``: used, wanted and allowed, one row each."""
        self.pool, self.weight, self.wanted = pool, weight, wanted
        usage, demand, limits = shares.tolist()
        self.usage, self.demand = tuple(usage), tuple(demand)
        self.fits = all(map(le, demand, limits))
        self.takes(curve_of(shares.tobytes()))
        self.part = self.stood = -1.0
        self.span = self.stands = _NOWHERE
        self.members: dict[str, Operation] = {}
        self._grades: dict[tuple[bool, tuple[Need, ...]], list[Grade]] = {}

    def takes(self, curve: Vertices) -> None:
        """This is what they take."""
        self.curve, self.taker, self.most = curve, _taker_of(curve, self.weight), min(curve[-1][0], 1.0)
        steps = [of for (_, low), (_, high) in pairwise(curve) for of in zip(low, high, strict=True)]
        self.even = all([v <= w and v + (w - v) == w for v, w in steps])  # noqa: C419
        self._due: Due | None = None
        self._satisfaction: float | None = None
        self._spans: list[Span] = []

    @property
    def now(self) -> "Due":
        """What is due in the last round."""
        if self._due is None:
            fair = self.taker.value(self.part)
            self._due = Due(self.usage, self.demand, fair, self.span.closed, below=self.span.below)
        return self._due

    @property
    def satisfaction(self) -> float:
        """In the last round."""
        if self._satisfaction is None:
            self._satisfaction = satisfaction(self.usage, self.taker.value(self.part), self.span.closed)
        return self._satisfaction

    def grades_of(self, is_gang: bool, steps: tuple["Need", ...]) -> list[Grade]:
        """Of its operations that run allocations of so many steps, as far as they are known: to be added to."""
        grades = self._grades.get((is_gang, steps))
        if grades is None:
            if len(self._grades) >= _MOST_GRADED:
                self._grades.clear()
            grades = self._grades[is_gang, steps] = []
        return grades

    def is_suggested(self, part: float, tolerance: float) -> bool:
        """So much from now on; False: the last bits may decide what is due then."""
        if not self.span.low <= part <= self.span.high:
            span = self._span_of(part, tolerance)
            if span is None:
                return False
            self.span = span
        self.part, self._due, self._satisfaction = part, None, None
        return True

    def _span_of(self, part: float, tolerance: float) -> Span | None:
        """More of a suggestion is never less of anything: what stands alike with two of them does so between."""
        for span in self._spans:
            if span.low <= part <= span.high:
                return span
        due = due_to(self, part, tolerance)
        if due is None:
            return None
        covered = [f + SATISFIABLE >= d for f, d in zip(due.fair, due.demand, strict=True)]
        for span in self._spans:
            if span.below == due.below and span.closed == due.closed and span.covered == covered:
                span.low, span.high = min(span.low, part), max(span.high, part)
                return span
        span = Span(part, due.below, due.closed, covered)
        if self.even:
            self._spans.append(span)
        return span


def is_below(usage: Sequence[float], demand: Sequence[float], fair: Sequence[float], given: float) -> bool:
    """``fair_shares.lacking`` of one element, ``given`` the part of its fair share that is enough."""
    satisfied = every = True
    some = False
    for f, d, u in zip(fair, demand, usage, strict=True):
        larger = min(f * given, d) > u + EPSILON
        some |= larger
        if f < d - EPSILON:
            satisfied, every = False, every and larger
    return some if satisfied else every


def satisfaction(usage: Sequence[float], fair: Sequence[float], closed: Sequence[bool]) -> float:
    """``fair_shares.local_satisfaction`` of one operation."""
    if not any(usage):
        return 0.0 if max(fair) > EPSILON else INFINITE
    is_due = exceeded = False
    every, lowest, highest, largest = True, INFINITE, 0.0, 0.0
    for u, f, is_closed in zip(usage, fair, closed, strict=True):
        filled = u / f if f > 0 else INFINITE if u > EPSILON else 0.0
        is_due |= f > EPSILON
        exceeded |= u > f + EPSILON
        every &= is_closed
        largest = max(largest, filled)
        lowest = min(lowest, filled if f > 0 else 1.0)
        if f > 0 and not is_closed:
            highest = max(highest, filled)
    if not is_due:
        return INFINITE
    if exceeded:
        return min(largest, INFINITE)
    return lowest if every else highest


def due_to(kind: Alike, part: float, tolerance: float) -> Due | None:
    """What is due to a kind that is suggested so much; None: the last bits may decide."""
    usage, demand, fair = kind.usage, kind.demand, value_at(kind.curve, part)
    lacks = [d - f - SATISFIABLE for d, f in zip(demand, fair, strict=True)]
    if (part < HARDLY and any(demand)) or any([abs(lack) < ROUNDING for lack in lacks]):  # noqa: C419
        return None
    given = 1.0 if all([f + SATISFIABLE >= d for f, d in zip(fair, demand, strict=True)]) else tolerance  # noqa: C419
    closed = tuple([f >= d - EPSILON for f, d in zip(fair, demand, strict=True)])
    return Due(usage, demand, fair, closed, is_below(usage, demand, fair, given))


Scales = dict[tuple[int, float], float]


class Part:
    """Operations of a pool: how many of each kind. What follows from these is worked out once they are others.

    ``weights``: pool and weight of each; ``misfits``: kinds that want more than is allowed."""

    __slots__ = ("_changed", "_fit", "_moved", "_of", "_scale", "_takers", "counts", "misfits", "pool", "weights")

    def __init__(self, pool: int) -> None:
        self.pool = pool
        self.counts: dict[Alike, int] = {}
        self.weights: frozenset[tuple[int, float]] = frozenset()
        self.misfits = 0
        self._moved = False
        self._takers: dict[Taker, int] = {}
        self._changed: dict[Taker, int] = {}
        self._of: list[Lines] = []
        self._scale: Scales = {}
        self._fit: float | None = None

    def count(self, kind: Alike, sign: int) -> None:
        """There is one more of this kind, or one less."""
        self._fit = None
        _add(self._changed, kind.taker, sign)
        _add(self._takers, kind.taker, sign)
        number = _add(self.counts, kind, sign)
        if number == 0 or number == sign:
            self.misfits += sign * (not kind.fits)
            if number == 0 or (self.pool, kind.weight) not in self.weights:
                self.weights = frozenset([(self.pool, taker.weight) for taker in self._takers])

    def lines(self, scale: Scales) -> list[Lines]:
        """Of those that take alike, one each. ``scale``: always the same for the weights there are."""
        if self._changed or self._scale is not scale:
            of = [_lines_of(of, scale[self.pool, of.weight], n) for of, n in self._takers.items()]
            self._of, self._changed, self._scale = self._of if of == self._of else of, {}, scale
        return self._of

    def is_due(self, fit: float, scale: Scales, tolerance: float) -> bool:
        """Whether it is sure what is due to each where the pool's fit factor is this; that is so from now on."""
        if self._fit == fit:
            return True
        self._fit, self._moved = None, True
        offered = {weight: fit / scale[pool, weight] for pool, weight in self.weights}
        for kind in self.counts:
            part = offered[kind.weight]
            if part > kind.most:
                part = kind.most  # more makes no difference
            if part != kind.part and not kind.is_suggested(part, tolerance):
                return False
        self._fit = fit
        return True

    def look(self, pending: dict[str, None], stale: dict[str, "Operation"]) -> None:
        """Who may stand otherwise than as this was looked at last is ``pending``, of whom others may be taken
        ``stale``."""
        for kind in self.counts if self._moved else ():
            if kind.stood != kind.part:
                if kind.stands.below != kind.span.below:
                    pending.update(dict.fromkeys(kind.members))
                kind.stood, kind.stands = kind.part, kind.span
                if any(kind.usage):
                    stale.update(kind.members)
        self._moved = False


T = TypeVar("T")


def _add(numbers: dict[T, int], key: T, sign: int) -> int:
    """One more, or one less, of these; how many there are now: what there is none of has no number."""
    number = numbers.get(key, 0) + sign
    if number:
        numbers[key] = number
    else:
        del numbers[key]
    return number


_MOST_ALIKE, _MOST_SCALES = 1024, 64
"""Kinds that are remembered though there is none, and sets of weights."""


class Scaling:
    """``situation.scales`` by pool and weight of operations, and by pool."""

    def __init__(self, pool_weights: Floats, parent: Ints) -> None:
        self._pool_weights, self._parent = pool_weights, parent
        self._of: dict[frozenset[frozenset[tuple[int, float]]], tuple[Scales, list[float]]] = {}

    def of(self, weights: frozenset[frozenset[tuple[int, float]]]) -> tuple[Scales, list[float]]:
        """``weights``: of each pool that has operations, those of them, with the pool."""
        known = self._of.get(weights)
        if known is None:
            each = sorted(frozenset[tuple[int, float]]().union(*weights))
            pools, own = np.array([pool for pool, _ in each], np.int64), np.array([weight for _, weight in each])
            scale, pool_scale = scales(own, pools, self._pool_weights, self._parent)
            if len(self._of) >= _MOST_SCALES:
                self._of.clear()
            known = self._of[weights] = dict(zip(each, scale.tolist(), strict=True)), pool_scale.tolist()
        return known


Need = tuple[int, ...]
"""Steps that a task needs, by resource."""
Rank = tuple[int, str]
LAST = 2**62
"""The first part of the rank of all operations of which nothing runs: they come in the order of their names."""


class Line:
    """Operations that wait and that heartbeats tell apart by their order alone: of a pool, to each of whom like is
    ``due``, whose tasks have the same ``needs`` and who starve alike; ``members``: in order."""

    __slots__ = ("kind", "level", "members", "needs", "pool")

    def __init__(self, pool: int, needs: Sequence[Need], level: int, kind: Alike | Due) -> None:
        """``kind``: of operations, or what is due to each."""
        self.pool, self.needs, self.level, self.kind = pool, needs, level, kind
        self.members: list[tuple[Rank, Operation]] = []

    @property
    def due(self) -> Due:
        """To each."""
        return self.kind if isinstance(self.kind, Due) else self.kind.now


Taken = tuple[Alike | None, Grade, list[tuple[Allocation, int]]]
"""Of which kind, and how its allocations are graded; those that may be taken, with their levels."""
UNKNOWN: Taken = (None, Grade(-1.0, (), []), [])


class Operation:
    """``usage``, ``wanted``: steps; ``allocations``: oldest first; ``taken``: those that are not protected by what is
    due, with their levels; ``tasks``: those that wait, with what each needs; ``needs``: all of these; ``timeouts``:
    after which it starves; ``rank``: its place among all; ``kind``, ``line``: those it is counted among."""

    __slots__ = (
        "allocations", "ask", "is_gang", "kind", "level", "line", "name", "needs", "pool", "rank", "since", "taken",
        "tasks", "timeouts", "usage", "wanted", "weight",
    )  # fmt: skip

    def __init__(self, name: str, pool: int, work: Workload | Ask, width: int) -> None:
        self.name, self.pool = name, pool
        self.weight = 1.0 if work.weight is None else float(work.weight)
        self.is_gang = work.ytsaurus is not None and work.ytsaurus.is_gang
        self.usage: tuple[int, ...] = (0,) * width
        self.wanted: tuple[int, ...] = (0,) * width
        self.allocations: list[Allocation] = []
        self.taken = UNKNOWN
        self.tasks: list[tuple[Task, tuple[int, ...]]] = []
        self.needs: dict[tuple[int, ...], int] = {}
        self.timeouts: list[float] = []
        self.ask: Ask | None = None
        self.kind: Alike | None = None
        self.line: Line | None = None
        self.rank: Rank = (LAST, name)
        self.level, self.since = 0, NEVER


class Alikes:
    """Kinds of operations that there have been."""

    def __init__(self, shares: Callable[[Floats], Floats], total: Floats) -> None:
        """``shares``: of steps by resource, ``total`` those of the cluster."""
        self._shares, self._total = shares, total
        self._of: dict[tuple[int, float, Need, Need], Alike] = {}
        self._many = _MOST_ALIKE

    def of(self, operation: Operation) -> Alike:
        """Its kind, as it is now."""
        key = operation.pool, operation.weight, operation.usage, operation.wanted
        kind = self._of.get(key)
        if kind is None:
            if len(self._of) >= self._many:
                self._of = {of: known for of, known in self._of.items() if known.members}
                self._many = _MOST_ALIKE + 2 * len(self._of)
            usage, wanted = np.array(operation.usage, float), np.array(operation.wanted, float)
            shares = self._shares(np.stack((usage, usage + wanted, self._total)))
            kind = self._of[key] = Alike(operation.pool, operation.weight, operation.wanted, shares)
        return kind


Victim = tuple[int, bool, int, Rank, int, Allocation, Operation]
"""What goes first is the largest: level, whether it leaves cpu unused, when it began, its operation's rank, its place
among what that may lose; the allocation and its operation."""


def emptied_by(
    order: Iterable[Victim], free: list[int], *, trades: bool
) -> tuple[list[int], dict[Operation, list[int]]]:
    """What would be free without all of these, and what of it is each one's own and nothing to itself: where nobody
    ``trades``."""
    own: dict[Operation, list[int]] = {}
    for *_, a, op in order:
        free = list(map(add, free, a.steps))
        if not trades:
            own[op] = list(map(add, own[op], a.steps)) if op in own else [*a.steps]
    return free, own


class PoolShares:
    """What a pool uses, and with that all that is wanted there; ``has_room``: whether its limit leaves room for it."""

    def __init__(self, limits: Sequence[float], scales: list[float], total: list[float]) -> None:
        """``scales``, ``total``: steps of a unit, and units of the cluster."""
        self._limits, self._scales, self._total = limits, scales, total
        self._used: list[int] = []
        self._wanted: list[int] = []
        self._usage: list[float] = []
        self._demand: list[float] = []
        self._fair: list[float] | None = None
        self._below = self.has_room = False

    def follow(self, used: list[int], wanted: list[int]) -> None:
        """These, in steps, are what it uses and what is wanted beside from now on: others are other lists."""
        if used is self._used and wanted is self._wanted:
            return
        self._used, self._wanted, self._fair = used, wanted, None
        self._usage, self._demand = self._shares(used), self._shares(map(add, used, wanted))
        self.has_room = all([d <= m - SLACK or d == 0 for d, m in zip(self._demand, self._limits, strict=True)])  # noqa: C419

    def _shares(self, steps: Iterable[int]) -> list[float]:
        if 0.0 not in self._total:
            return [s / scale / of for s, scale, of in zip(steps, self._scales, self._total, strict=True)]
        return in_plain_shares([step / scale for step, scale in zip(steps, self._scales, strict=True)], self._total)

    def is_below(self, fair: list[float], given: float) -> bool:
        """Whether it is below its fair share, as ``is_below`` has it."""
        if fair is not self._fair:
            self._fair, self._below = fair, is_below(self._usage, self._demand, fair, given)
        return self._below


class Counts:
    """Of operations: ``parts``, by pool and kind; of what waits ``lines``, by kind, starvation and needs, ``needs``,
    by how many operations have tasks of such, how many tasks are ``wanted``, and steps that are, by pool and all above
    (``pool_wanted``, the root last); how many of those who wait are ``starving``."""

    def __init__(self, paths: Sequence[Sequence[int]], width: int) -> None:
        """Of nobody. ``paths``: by pool, it and all above."""
        self._paths = paths
        self.pool_wanted = [[0] * width for _ in range(len(paths) + 1)]
        self.parts: dict[int, Part] = {}
        self.lines: dict[tuple[Alike, int, tuple[Need, ...]], Line] = {}
        self.needs: dict[Need, int] = {}
        self.wanted = self.starving = 0

    def add(self, operation: Operation, kind: Alike) -> None:
        """There is one more, of this kind."""
        operation.kind = kind
        kind.members[operation.name] = operation
        part = self.parts.get(operation.pool)
        if part is None:
            part = self.parts[operation.pool] = Part(operation.pool)
        part.count(kind, 1)
        if operation.tasks:
            self._wants(operation, 1)
            self._line_up(operation, kind)

    def remove(self, operation: Operation) -> None:
        """It is not counted any more, if it was."""
        if (kind := operation.kind) is None:
            return
        operation.kind = None
        del kind.members[operation.name]
        part = self.parts[operation.pool]
        part.count(kind, -1)
        if not part.counts:
            del self.parts[operation.pool]
        if operation.tasks:
            self._wants(operation, -1)
            self._step_out(operation)

    def _wants(self, operation: Operation, sign: int) -> None:
        self.wanted += sign * len(operation.tasks)
        charge(self.pool_wanted, self._paths[operation.pool], operation.wanted, sign)
        for need in operation.needs:
            _add(self.needs, need, sign)

    def _line_up(self, operation: Operation, kind: Alike) -> None:
        key = kind, operation.level, tuple(operation.needs)
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = Line(kind.pool, key[2], operation.level, kind)
        operation.line = line
        self.starving += line.level > 0
        insort(line.members, (operation.rank, operation))

    def _step_out(self, operation: Operation) -> None:
        line, operation.line = operation.line, None
        if line is not None:
            self.starving -= line.level > 0
            del line.members[bisect_left(line.members, operation.rank, key=itemgetter(0))]
            if not line.members and isinstance(line.kind, Alike):
                del self.lines[line.kind, line.level, (*line.needs,)]

    def line_up_again(self, operation: Operation) -> None:
        """It starves more, or less, than when it was counted."""
        if operation.line is not None and operation.kind is not None:
            self._step_out(operation)
            self._line_up(operation, operation.kind)
