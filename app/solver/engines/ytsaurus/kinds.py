"""Operations that are alike: their curves together, pool by pool, what is due to each kind, and how many of each there
are. Says nothing where the last bits may decide.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import add, itemgetter, le
from typing import NamedTuple

import numpy as np

from app.solver.compiled import ROOTLESS, Tree
from app.solver.engines.ytsaurus.curves import Kind, Together, Vertices, kind_of
from app.solver.engines.ytsaurus.operations import NEVER, Floats, Ints, any_of
from app.solver.engines.ytsaurus.polyline import EPSILON
from app.solver.engines.ytsaurus.pool_curves import Children, Demands, curve_of, operation_values, scales, value_at
from app.solver.engines.ytsaurus.situation import Situation
from app.solver.model.state import Ask, Task, Workload

ROUNDING, SATISFIABLE = 1e-10, 1e-4
"""More than sums of doubles are off by; what is due lacks more than this where it does not satisfy."""
MOST_KINDS = 64
"""Kinds of operations for which it is quicker to go through them one by one than to take all pools of a level."""


Kinds = tuple[Kind, ...]
"""The operations of a pool, sorted."""


def divided_by_kinds(
    situation: Situation, demands: Demands, children: Children, guarantee: Floats, limits: Floats
) -> tuple[Floats, Floats] | None:
    """Fair shares of operations and pools, but for rounding as ``LevelCurves`` has them where the root is suggested
    everything; None: the last bits may decide, or too many operations differ. By pool: what is guaranteed, what is the
    limit."""
    of = _kinds(situation, demands, children.scale)
    if of is None:
        return None
    floors: list[list[float]] = guarantee.tolist()
    caps: list[list[float]] = limits.tolist()
    divided = by_kinds(situation.config.tree, of, children.pool_scale.tolist(), floors, caps, {})
    if divided is None:
        return None
    fit, pool_fair = np.array(divided[0]), np.array(divided[1])
    fair = suggested_values(demands, np.minimum(fit[situation.operation_parent] / children.scale, 1.0))
    return None if fair is None else (fair, pool_fair)


def by_kinds(
    tree: Tree,
    of: Mapping[int, Kinds],
    scales: list[float],
    floors: list[list[float]],
    caps: list[list[float]],
    known: dict[int, "Known"],
) -> tuple[list[float], list[list[float]]] | None:
    """Fit factors and fair shares of pools, the root last. ``of``: operations by pool; by pool, ``scales`` as
    ``Children`` has them, guarantees and limits; ``known``: pools as they were worked out last of the same guarantees
    and limits, followed; None: the last bits may decide."""
    root = len(tree)
    taking: dict[int, _Taking] = {}
    for pool in (*reversed(tree.top_down), root):
        inner = tree.children[pool] if pool < root else tree.roots
        own, pools = of.get(pool, ()), tuple([kind_of(taking[row].curve, scales[row], 1) for row in inner])
        before = known.get(pool)
        if before is not None and before[0] == own and before[1] == pools:
            taking[pool] = before[2]
            continue
        taken = _taking(own, pools, (*floors[pool],), (*caps[pool],), top=pool == root)
        if taken is None:
            return None
        taking[pool] = taken
        known[pool] = own, pools, taken
    fit, pool_fair = [0.0] * (root + 1), [[0.0]] * (root + 1)
    for pool in (root, *tree.top_down):
        above = tree.parent[pool] if pool < root else ROOTLESS
        offered = 1.0 if pool == root else min(fit[root if above == ROOTLESS else above] / scales[pool], 1.0)
        reached = taking[pool].reached(offered)
        if reached is None:
            return None
        fit[pool], pool_fair[pool] = reached
    return fit, pool_fair


def suggested_values(demands: Demands, suggested: Floats) -> Floats | None:
    """``operation_values``; None: the last bits may decide."""
    if ((suggested < HARDLY) & any_of(demands.demand > 0)).any():
        return None
    return operation_values(demands, suggested)


HARDLY = 1e-10
"""A suggestion that is nothing in other doubles."""


def _kinds(situation: Situation, demands: Demands, scale: Floats) -> dict[int, Kinds] | None:
    """By pool; None: too many."""
    numbers = np.concatenate((demands.usage, demands.demand, demands.limits), axis=1)
    block, size = numbers.tobytes(), numbers.shape[1] * numbers.itemsize
    rows = (block[i : i + size] for i in range(0, len(block), size))
    counts = Counter(zip(situation.operation_parent.tolist(), scale.tolist(), rows, strict=True))
    if len(counts) > MOST_KINDS:
        return None
    of: dict[int, list[tuple[Vertices, float, int]]] = {}
    for (pool, own, row), count in counts.items():
        of.setdefault(pool, []).append((curve_of(row), own, count))
    return {pool: grouped(kinds) for pool, kinds in of.items()}


def grouped(kinds: Iterable[tuple[Vertices, float, int]]) -> Kinds:
    """Of a pool, by curve, scale and number: those that take alike are one kind."""
    of: dict[tuple[Vertices, float], int] = {}
    for curve, scale, count in kinds:
        of[curve, scale] = of.get((curve, scale), 0) + count
    return tuple([kind_of(curve, scale, count) for (curve, scale), count in sorted(of.items())])


class _Taking:
    """Of a pool: what it takes of a suggestion (nothing is said of the root), and its children of its fit factor; its
    guarantee and limit, of which it has at least what it begins with."""

    def __init__(self, curve: Vertices, together: Together, floor: list[float], cap: list[float]) -> None:
        self.curve, self._together, self._floor, self._cap = curve, together, floor, cap

    @lru_cache(maxsize=256)  # noqa: B019  # there are no more of these either
    def reached(self, offered: float) -> tuple[float, list[float]] | None:
        """Fit factor and values; None: the last bits may decide."""
        floor, cap = self._floor, self._cap
        return self._together.within([min(part + offered, most) for part, most in zip(floor, cap, strict=True)])


Known = tuple[Kinds, Kinds, _Taking]
"""Operations and pools of a pool, and what it takes with these."""


@lru_cache(maxsize=256)
def _taking(
    of: Kinds, pools: tuple[Kind, ...], floor: tuple[float, ...], cap: tuple[float, ...], *, top: bool
) -> _Taking | None:
    """None: the last bits may decide. Most pools of a round are as they were a round ago."""
    together = Together.of([*of, *pools], len(floor))
    if together is None:
        return None
    start = together.values[0]
    floors, caps = [*map(max, floor, start)], [*map(max, cap, start)]
    curve = () if top else together.over_suggestion(floors, caps)
    return None if curve is None else _Taking(curve, together, floors, caps)


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
    are below their fair share, and their satisfaction, once that is worked out."""

    __slots__ = ("below", "closed", "demand", "fair", "satisfaction", "usage")

    def __init__(self, usage: Shares, demand: Shares, fair: Shares, closed: tuple[bool, ...], below: bool) -> None:
        self.usage, self.demand, self.fair, self.closed, self.below = usage, demand, fair, closed, below
        self.satisfaction: float | None = None


_NOTHING_DUE = Due((), (), (), (), below=False)


class Alike:
    """A kind of operations: pool, weight, and steps that they want. ``usage``, ``demand``: shares; ``curve``: what they
    take of a suggestion; ``fits``: whether what they want is allowed; ``due``: by what was suggested, as far as it is
    known; ``now``: of these what is due in the last round; ``members``: those there are, by name; ``stands``: what was
    due to them as they were looked at last."""

    __slots__ = ("curve", "demand", "due", "fits", "members", "now", "pool", "stands", "usage", "wanted", "weight")

    def __init__(self, pool: int, weight: float, wanted: tuple[int, ...], shares: Floats) -> None:
        """``shares``: used, wanted and allowed, one row each."""
        self.pool, self.weight, self.wanted = pool, weight, wanted
        usage, demand, limits = shares.tolist()
        self.usage, self.demand = tuple(usage), tuple(demand)
        self.curve = curve_of(shares.tobytes())
        self.fits = all(map(le, demand, limits))
        self.due: dict[float, Due] = {}
        self.members: dict[str, Operation] = {}
        self.now = self.stands = _NOTHING_DUE


def is_below(usage: Shares, demand: Shares, fair: Shares, given: float) -> bool:
    """``fair_shares.lacking`` of one element, ``given`` the part of its fair share that is enough."""
    closed = [f >= d - EPSILON for f, d in zip(fair, demand, strict=True)]
    larger = [min(f * given, d) > u + EPSILON for f, d, u in zip(fair, demand, usage, strict=True)]
    return any(larger) if all(closed) else all([more or c for more, c in zip(larger, closed, strict=True)])  # noqa: C419


def due_to(kind: Alike, part: float, tolerance: float) -> Due | None:
    """What is due to a kind that is suggested so much; None: the last bits may decide."""
    usage, demand, fair = kind.usage, kind.demand, value_at(kind.curve, part)
    lacks = [d - f - SATISFIABLE for d, f in zip(demand, fair, strict=True)]
    if (part < HARDLY and any(demand)) or any([abs(lack) < ROUNDING for lack in lacks]):  # noqa: C419
        return None
    given = 1.0 if all([f + SATISFIABLE >= d for f, d in zip(fair, demand, strict=True)]) else tolerance  # noqa: C419
    closed = tuple([f >= d - EPSILON for f, d in zip(fair, demand, strict=True)])
    return Due(usage, demand, fair, closed, is_below(usage, demand, fair, given))


_MOST_DUE = 32
"""Suggestions to a kind that are remembered."""
Scales = dict[tuple[int, float], float]


class Part:
    """Operations of a pool: how many of each kind. What follows from these is worked out once they are others."""

    __slots__ = ("_fit", "_fits", "_of", "_weights", "counts", "pool")

    def __init__(self, pool: int) -> None:
        self.pool = pool
        self.counts: dict[Alike, int] = {}
        self._of: Kinds | None = None
        self._fit: float | None = None
        self._weights: frozenset[tuple[int, float]] | None = None
        self._fits: bool | None = None

    def count(self, kind: Alike, sign: int) -> None:
        """There is one more of this kind, or one less."""
        number = self.counts.get(kind, 0) + sign
        if number:
            self.counts[kind] = number
        else:
            del self.counts[kind]
        self._of = self._fit = None
        if number in {0, sign}:
            self._weights = self._fits = None

    @property
    def weights(self) -> frozenset[tuple[int, float]]:
        """Pool and weight of each."""
        if self._weights is None:
            self._weights = frozenset([(self.pool, kind.weight) for kind in self.counts])
        return self._weights

    @property
    def fits(self) -> bool:
        """Whether what all of them want is allowed."""
        if self._fits is None:
            self._fits = all([kind.fits for kind in self.counts])  # noqa: C419
        return self._fits

    def grouped(self, scale: Scales) -> Kinds:
        """Those that take alike are one. ``scale``: always the same for the weights there are."""
        if self._of is None:
            self._of = grouped([(kind.curve, scale[self.pool, kind.weight], n) for kind, n in self.counts.items()])
        return self._of

    def is_due(self, fit: float, scale: Scales, tolerance: float) -> bool:
        """Whether it is sure what is due to each where the pool's fit factor is this; that is so ``now``."""
        if self._fit == fit:
            return True
        self._fit = None
        for kind in self.counts:
            part = min(fit / scale[self.pool, kind.weight], 1.0, kind.curve[-1][0])  # more makes no difference
            due = kind.due.get(part) or due_to(kind, part, tolerance)
            if due is None:
                return False
            if len(kind.due) >= _MOST_DUE:
                kind.due.clear()
            kind.now = kind.due[part] = due
        self._fit = fit
        return True


_MOST_ALIKE, _MOST_SCALES = 1024, 64
"""Kinds that are remembered though there is none, and sets of weights."""


class Scaling:
    """``pool_curves.scales`` by pool and weight of operations, and by pool."""

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

    __slots__ = ("due", "kind", "level", "members", "needs", "pool")

    def __init__(self, pool: int, needs: Sequence[Need], level: int, due: Due, kind: Alike | None = None) -> None:
        """``kind``: of operations, where that says what is due."""
        self.pool, self.needs, self.level, self.due, self.kind = pool, needs, level, due, kind
        self.members: list[tuple[Rank, Operation]] = []


UNKNOWN: tuple[None, list[tuple[Allocation, int]]] = (None, [])


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
        self.taken: tuple[Due | None, list[tuple[Allocation, int]]] = UNKNOWN
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

    def forget_members(self) -> None:
        """No kind has any."""
        for kind in self._of.values():
            kind.members.clear()


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


class Counts:
    """Of operations: ``parts``, by pool and kind; of what waits ``lines``, by kind, starvation and needs, ``needs``,
    by how many operations have tasks of such, how many tasks are ``wanted``, and steps that are, by pool and all above
    (``pool_wanted``, the root last)."""

    def __init__(self, paths: Sequence[Ints], pool_wanted: Ints) -> None:
        """Of nobody. ``paths``: by pool, it and all above."""
        self._paths, self.pool_wanted = paths, pool_wanted
        self.parts: dict[int, Part] = {}
        self.lines: dict[tuple[Alike, int, tuple[Need, ...]], Line] = {}
        self.needs: dict[Need, int] = {}
        self.wanted = 0

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
        self.pool_wanted[self._paths[operation.pool]] += np.multiply(operation.wanted, sign)
        for need in operation.needs:
            if number := self.needs.get(need, 0) + sign:
                self.needs[need] = number
            else:
                del self.needs[need]

    def _line_up(self, operation: Operation, kind: Alike) -> None:
        key = kind, operation.level, tuple(operation.needs)
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = Line(kind.pool, key[2], operation.level, kind.now, kind)
        operation.line = line
        insort(line.members, (operation.rank, operation))

    def _step_out(self, operation: Operation) -> None:
        line, operation.line = operation.line, None
        if line is not None:
            del line.members[bisect_left(line.members, operation.rank, key=itemgetter(0))]
            if not line.members and line.kind is not None:
                del self.lines[line.kind, line.level, (*line.needs,)]

    def line_up_again(self, operation: Operation) -> None:
        """It starves more, or less, than when it was counted."""
        if operation.line is not None and operation.kind is not None:
            self._step_out(operation)
            self._line_up(operation, operation.kind)

    def follow_due(self) -> None:
        """To each line that is due what is to its kind."""
        for line in self.lines.values():
            if line.kind is not None:
                line.due = line.kind.now
