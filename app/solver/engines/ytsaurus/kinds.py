"""Operations that are alike: their curves together, pool by pool, as few vertices in plain numbers, and what is due to
each kind. Says nothing where the last bits may decide.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import le
from typing import NamedTuple

import numpy as np

from app.solver.compiled import ROOTLESS, Tree
from app.solver.engines.ytsaurus.curves import TOLERANCE
from app.solver.engines.ytsaurus.operations import NEVER, Floats, Ints, any_of
from app.solver.engines.ytsaurus.pool_curves import Children, Demands, operation_curves, operation_values
from app.solver.engines.ytsaurus.situation import Situation
from app.solver.model.state import Ask, Task, Workload

Vertex = tuple[float, tuple[float, ...]]
"""Position and value."""
Vertices = tuple[Vertex, ...]
"""A curve that never jumps, from position 0 on."""
LEAST_RISE, _GENTLE = 1e-14, 1e3
"""What rises less is level; what rises faster is as good as a jump."""
_BESIDE = 1e-10
"""Values that are nearer to a bound may meet it at another vertex in other doubles."""
_MUCH = 1e-3
"""The part of the steepest rise beside which a bound is met at a place that hangs on no last bits."""


def value_at(curve: Vertices, suggestion: float) -> tuple[float, ...]:
    """Of an operation at its suggestion."""
    (begin, low), *rest = curve
    for end, high in rest:
        if suggestion < end:
            part = (suggestion - begin) / (end - begin)
            return tuple([v + part * (w - v) for v, w in zip(low, high, strict=True)])
        begin, low = end, high
    return low


def is_straight(first: Vertex, middle: Vertex, last: Vertex) -> bool:
    """Whether ``middle`` lies between the others, but for rounding."""
    if last[0] <= first[0]:
        return False
    part = (middle[0] - first[0]) / (last[0] - first[0])
    values = zip(first[1], middle[1], last[1], strict=True)
    return all(abs(v + part * (w - v) - m) <= LEAST_RISE for v, m, w in values)


class Kind(NamedTuple):
    """Children of a pool that are alike: the curve of each, its ``scale`` as ``summed`` has it, and how many."""

    curve: Vertices
    scale: float
    number: int


class Together(NamedTuple):
    """What the children of a pool take together, by vertex: the fit factor from 0 to 1, and shares by resource."""

    fits: list[float]
    values: list[list[float]]

    @staticmethod
    def of(kinds: Sequence[Kind], width: int) -> "Together | None":
        """None: some child all but jumps. ``width``: how many resources."""
        value = [0.0] * width
        turns: dict[float, list[float]] = {0.0: value.copy(), 1.0: value.copy()}
        for curve, scale, count in kinds:
            before, low = curve[0]
            value = [v + part * count for v, part in zip(value, low, strict=True)]
            for place, high in curve[1:]:
                length = (place - before) * scale
                rises = [(h - v) * count for h, v in zip(high, low, strict=True)]
                if (steepest := max(rises)) > LEAST_RISE:
                    if length * _GENTLE * count < steepest:
                        return None
                    for where, sign in ((before * scale, 1), (place * scale, -1)):
                        turn = turns.setdefault(where, [0.0] * width)
                        for r, rise in enumerate(rises):
                            turn[r] += sign * rise / length
                before, low = place, high
        fits, values, slope = [0.0], [value], turns.pop(0.0)
        last = 0.0
        for place in sorted(turns):
            gap, last = place - last, place
            value = [v + s * gap for v, s in zip(value, slope, strict=True)]
            slope = [s + turn for s, turn in zip(slope, turns[place], strict=True)]
            if place - fits[-1] <= TOLERANCE:
                values[-1] = value
            else:
                fits.append(place)
                values.append(value)
        return Together(fits, values)

    def within(self, bound: list[float]) -> tuple[float, list[float]] | None:
        """The largest fit factor at which no value passes its bound, and the values there; None: the last bits may
        decide. At fit factor 0 none does."""
        fits, values = self
        beside: set[int] = set()
        for i, value in enumerate(values):
            near = {r for r, (v, b) in enumerate(zip(value, bound, strict=True)) if v >= b - _BESIDE}
            over = [r for r, (v, b) in enumerate(zip(value, bound, strict=True)) if v > b + LEAST_RISE]
            if i and over:
                low = values[i - 1]
                rises = [v - w for v, w in zip(value, low, strict=True)]
                part, first = min((max(bound[r] - low[r], 0.0) / rises[r], r) for r in over if rises[r] > 0)
                if rises[first] < _MUCH * max(rises):
                    return None
                if max(value[r] - bound[r] for r in over) <= _BESIDE and not self._settled(i, near, beside):
                    return None
                return fits[i - 1] + part * (fits[i] - fits[i - 1]), [
                    v + part * rise for v, rise in zip(low, rises, strict=True)
                ]
            if near and not self._settled(i, near, beside):
                return None
            beside = near
        return fits[-1], values[-1]

    def _settled(self, i: int, near: set[int], before: set[int]) -> bool:
        """Whether vertex ``i`` is where some value meets its bound, whatever the last bits. ``near``, ``before``: those
        that are beside theirs there, and at the vertex before."""
        value = self.values[i]
        if i:
            rises = [v - w for v, w in zip(value, self.values[i - 1], strict=True)]
            steep = max(rises)
            if steep > _BESIDE and any(rises[r] < _MUCH * steep for r in near - before):
                return False
        if i + 1 < len(self.values):
            rises = [v - w for v, w in zip(self.values[i + 1], value, strict=True)]
            steep = max(rises)
            return steep <= _BESIDE or any(rises[r] >= _MUCH * steep for r in near)
        return True

    def over_suggestion(self, floor: list[float], cap: list[float]) -> Vertices | None:
        """What the pool takes of a suggestion on top of ``floor``, up to ``cap``; None: the last bits may decide."""
        last = self.within(cap)
        if last is None:
            return None
        ends = [value for fit, value in zip(*self, strict=True) if fit < last[0]] + [last[1]]
        out: list[tuple[float, tuple[float, ...]]] = []
        for i, value in enumerate(ends):
            for point in [*(_bends_between(ends[i - 1], value, floor) if i else ()), value]:
                need = max(0.0, *(v - f for v, f in zip(point, floor, strict=True)))
                if len(out) == 1 and need <= TOLERANCE:
                    out.clear()
                out.append((need if out else 0.0, tuple(point)))
        return tuple(out)


def _bends_between(low: list[float], high: list[float], floor: list[float]) -> list[list[float]]:
    """Values between two ends where another resource becomes the one that needs most on top of ``floor``."""
    lines = [(v - f, w - v) for v, w, f in zip(low, high, floor, strict=True)] + [(0.0, 0.0)]
    part, (begin, rise) = 0.0, max(lines)
    out: list[list[float]] = []
    while True:
        steeper = [((begin - b) / (r - rise), r, b) for b, r in lines if r > rise]
        crossing = min(((p, -r, b) for p, r, b in steeper), default=(1.0, 0.0, 0.0))
        if crossing[0] >= 1.0:
            return out
        part, rise, begin = max(crossing[0], part), -crossing[1], crossing[2]
        if part > TOLERANCE:
            out.append([v + part * (w - v) for v, w in zip(low, high, strict=True)])


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
        pools, own = tuple([Kind(taking[row].curve, scales[row], 1) for row in inner]), of.get(pool, ())
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
    of: dict[int, list[Kind]] = {}
    for (pool, own, row), count in counts.items():
        of.setdefault(pool, []).append(Kind(curve_of(row), own, count))
    return {pool: grouped(kinds) for pool, kinds in of.items()}


def grouped(kinds: Iterable[Kind]) -> Kinds:
    """Of a pool: those that take alike are one kind."""
    of: dict[tuple[Vertices, float], int] = {}
    for curve, scale, count in kinds:
        of[curve, scale] = of.get((curve, scale), 0) + count
    return tuple(sorted([Kind(curve, scale, count) for (curve, scale), count in of.items()]))


class _Taking:
    """Of a pool: what it takes of a suggestion (nothing is said of the root), and its children of its fit factor; its
    guarantee and limit, of which it has at least what it begins with."""

    def __init__(self, curve: Vertices, together: Together, floor: list[float], cap: list[float]) -> None:
        self.curve, self._together, self._floor, self._cap = curve, together, floor, cap

    @lru_cache(maxsize=256)  # noqa: B019  # there are no more of these either
    def reached(self, offered: float) -> tuple[float, list[float]] | None:
        """Fit factor and values; None: the last bits may decide."""
        return self._together.within([*map(min, (part + offered for part in self._floor), self._cap)])


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


@lru_cache(maxsize=1024)
def curve_of(row: bytes) -> Vertices:
    """Of an operation: usage, demand and limits one after another. Without vertices in which it does not bend, so that
    what is used already makes no difference to operations that want the same."""
    curve = operation_curves(Demands(*np.frombuffer(row).reshape(3, 1, -1)))
    out: list[Vertex] = []
    for position, value in zip(curve.position.tolist(), curve.value.tolist(), strict=True):
        vertex = position, tuple(value)
        while len(out) > 1 and is_straight(out[-2], out[-1], vertex):
            del out[-1]
        out.append(vertex)
    return tuple(out)


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


class Alike:
    """A kind of operations: pool, weight, and steps that they want. ``usage``, ``demand``: shares; ``curve``: what they
    take of a suggestion; ``fits``: whether what they want is allowed; ``due``: by what was suggested, as far as it is
    known; ``now``: of these what is due in the last round."""

    __slots__ = ("curve", "demand", "due", "fits", "now", "pool", "usage", "wanted", "weight")

    now: Due

    def __init__(self, pool: int, weight: float, wanted: tuple[int, ...], shares: Floats) -> None:
        """``shares``: used, wanted and allowed, one row each."""
        self.pool, self.weight, self.wanted = pool, weight, wanted
        usage, demand, limits = shares.tolist()
        self.usage, self.demand = tuple(usage), tuple(demand)
        self.curve = curve_of(shares.tobytes())
        self.fits = all(map(le, demand, limits))
        self.due: dict[float, Due] = {}


UNKNOWN: tuple[None, list[tuple[Allocation, int]]] = (None, [])


class Operation:
    """``usage``, ``wanted``: steps; ``allocations``: oldest first; ``taken``: those that are not protected by what is
    due, with their levels; ``tasks``: those that wait, with what each needs; ``needs``: all of these; ``timeouts``:
    after which it starves."""

    __slots__ = (
        "allocations", "ask", "is_gang", "kind", "level", "name", "needs", "pool", "since", "taken", "tasks",
        "timeouts", "usage", "wanted", "weight",
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
        self.level, self.since = 0, NEVER
