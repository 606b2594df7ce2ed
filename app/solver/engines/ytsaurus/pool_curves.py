"""The curves of operations and pools, level by level: bottom-up what each takes, top-down what each is suggested.

Elements are operations, then pools (the root last), each in rows as a situation has them. All pools of a level are
worked out at once (``curves``), exact but for rounding of doubles. Gangs whose curve is one step are too sensitive to
the last bits, and the improved computation divides otherwise: both take ``exact``.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from app.solver.compiled import ROOTLESS, Tree
from app.solver.engines.ytsaurus.curves import (
    BESIDE,
    EDGE,
    MUCH,
    TOLERANCE,
    Curves,
    Kind,
    PoolCurves,
    Together,
    kind_of,
    pool_curves,
)
from app.solver.engines.ytsaurus.operations import HARDLY, Flags, Floats, Ints, any_of, by_level, least, most, quotients
from app.solver.engines.ytsaurus.polyline import Lines, Vertex, Vertices, is_straight
from app.solver.engines.ytsaurus.situation import Children, Demands, Situation, operation_values, phases
from app.solver.question import safe_point


def operation_curves(of: Demands) -> Curves:
    """H of every operation in closed form, all vertices."""
    n = len(of.usage)
    usage, stop, reach = phases(of)
    positions: list[Floats] = [np.zeros(n)]
    values: list[Floats] = [np.zeros_like(of.usage)]
    for column in np.sort(of.usage, axis=1).T:
        position = np.minimum(column, stop)
        positions.append(position)
        values.append(np.minimum(of.usage, position[:, None]))
    _second_phase(of, usage, reach, np.isinf(stop), positions, values)
    position, value = np.stack(positions, axis=1), np.stack(values, axis=1)
    new = np.ones(position.shape, bool)
    new[:, 1:] = any_of(np.diff(value, axis=1) != 0)
    owner = np.broadcast_to(np.arange(n)[:, None], position.shape)
    return Curves(owner[new], position[new], value[new])


def _second_phase(
    of: Demands, used: Floats, reach: Floats, active: Flags, positions: list[Floats], values: list[Floats]
) -> None:
    """Append the vertices from usage to demand: the lower envelope of one ramp a resource, cut at ``reach``."""
    usage, gap = of.usage, of.gap
    everyone = np.arange(len(usage))
    ramp = quotients(used[:, None] - usage, gap, gap > 0, np.inf)
    lowest = least(ramp)
    # Of the ramps that are lowest together, the one that grows slowest stays lowest.
    line: Ints = np.argmax(np.where(ramp <= lowest[:, None] + TOLERANCE, gap, 0.0), axis=1)
    part = np.minimum(lowest, reach)
    here = used.copy()
    last_position, last_value = used, values[-1]
    alive = active
    while alive.any():  # at most once a resource and at the end: each line grows faster than the one before
        # A vertex needs what its largest share is: an operation has no guarantee.
        value = of.between(part)
        last_position = np.where(alive, np.maximum(most(value), last_position), last_position)
        last_value = np.where(alive[:, None], value, last_value)
        positions.append(last_position)
        values.append(last_value)
        alive = alive & (part < reach)
        own_usage, own_gap = usage[everyone, line], gap[everyone, line]
        slower = gap > own_gap[:, None]
        apart = own_usage[:, None] * gap - usage * own_gap[:, None]
        cross = np.maximum(quotients(apart, gap - own_gap[:, None], slower, np.inf), here[:, None])
        end = own_usage + reach * own_gap
        nearest = cross.argmin(axis=1)
        crossing = cross[everyone, nearest]
        ends = crossing >= end
        further = quotients(crossing - own_usage, own_gap, ~ends, 0.0)
        part = np.where(ends, reach, further)
        here = np.maximum(np.where(ends, end, crossing), here)
        line = np.where(ends, line, nearest)


MOST_REMEMBERED = 1_000
"""Pools and operations of a tree of which it is quicker to look pool by pool for what is known."""


class LevelCurves:
    """The functions of every element: prepared below a pool at a time, kept until forgotten.

    ``sensitive``: whether the last bits of doubles may have decided something that was asked of them. ``stale``:
    whether some pool keeps a function although one below it has got another since, and so hands on too much.

    In a small tree pools of which nothing has changed since the last turn are not worked out again."""

    def __init__(self, situation: Situation, demands: Demands, children: Children) -> None:
        self._situation = situation
        self._remembers = len(situation.operations) + situation.root <= MOST_REMEMBERED
        self._alone: dict[int, PoolCurves] = {}
        self._demands = demands
        self._children = children
        self._batches: list[tuple[Ints, PoolCurves]] = []
        self._levels = [np.array([situation.root]), *by_level(situation.depth)]
        self._batch, self._row = np.full(situation.root + 1, -1, np.int64), np.zeros(situation.root + 1, np.int64)
        self.sensitive = self.stale = False

    def prepare(self, top: int, guarantee: Floats, limits: Floats) -> None:
        """Work out the functions of ``top`` and of the pools below it that have none. By pool: what is guaranteed,
        what is the limit."""
        missing = self._below(np.array([top])) & (self._batch < 0)
        for rows in reversed(self._levels):
            safe_point()
            pools = rows[missing[rows]]
            if len(pools):
                curves = self._remembered if self._remembers else self._level
                self._keep(pools, curves(pools, guarantee[pools], limits[pools]))

    def taken(self, pools: Ints, suggestions: Floats) -> Floats:
        """What prepared ``pools`` take, each of its suggestion."""
        curves = self._curves(pools)
        fit, value = curves.at(suggestions)
        self.sensitive = self.sensitive or curves.sensitive(suggestions, fit)
        return value

    def forget(self, pool: int) -> None:
        """The functions of ``pool`` alone are to be worked out anew."""
        self._batch[pool] = -1
        while pool != self._situation.root:
            pool = int(self._situation.parent[pool])
            self.stale = self.stale or self._batch[pool] >= 0

    def divided(self, tops: Ints, suggestion: float) -> tuple[Floats, Floats]:
        """Fair shares of operations and pools when ``tops`` are offered ``suggestion``; 0 outside of them."""
        situation, children = self._situation, self._children
        fair = np.zeros_like(self._demands.usage)
        pool_fair = np.zeros((situation.root + 1, fair.shape[1]))
        suggested, fit = np.zeros(situation.root + 1), np.zeros(situation.root + 1)
        suggested[tops] = suggestion
        inside = self._below(tops)
        handing = np.zeros_like(inside)
        for rows in self._levels:
            pools = rows[inside[rows]]
            if not len(pools):
                continue
            inner = pools[handing[situation.parent[pools]]]
            handed = (fit[situation.parent[inner]] - children.pool_shift[inner]) / children.pool_scale[inner]
            suggested[inner] = np.clip(handed, 0.0, 1.0)
            curves = self._curves(pools)
            fit[pools], pool_fair[pools] = curves.at(suggested[pools])
            self._look(curves, suggested[pools], fit[pools], np.isin(pools, tops))
            handing[pools] = True
        rows = np.flatnonzero(inside[situation.operation_parent])
        handed = (fit[situation.operation_parent[rows]] - children.shift[rows]) / children.scale[rows]
        fair[rows] = operation_values(self._demands.take(rows), np.clip(handed, 0.0, 1.0))
        return fair, pool_fair

    def _look(self, curves: PoolCurves, suggested: Floats, fit: Floats, top: Flags) -> None:
        """Below the top, a jump at the very suggestion is where the pool above has stopped: nothing hangs on bits."""
        jumps = top | (suggested >= 1.0 - EDGE)
        known = np.where(jumps | (suggested <= EDGE), suggested, np.inf)
        self.sensitive = self.sensitive or curves.sensitive(known, fit)

    def has_edges(self) -> bool:
        """Whether the last bits would decide what some pool takes, if it were suggested enough."""
        return any(bool(np.isfinite(curves.edge).any()) for _, curves in self._batches)

    def _below(self, tops: Ints) -> Flags:
        """Pools that are among ``tops`` or below one."""
        situation = self._situation
        out = np.zeros(situation.root + 1, bool)
        out[tops] = True
        for rows in self._levels[1:]:
            out[rows] |= out[situation.parent[rows]]
        return out

    def _remembered(self, pools: Ints, guarantee: Floats, limits: Floats) -> PoolCurves:
        """As ``_level``; worked out for those pools of which something has changed since the last turn."""
        recent = self._situation.cluster.recent
        rows: list[int] = pools.tolist()
        bounds = zip(rows, guarantee, limits, strict=True)
        keys = [(*self._read(pool), floor.tobytes(), cap.tobytes()) for pool, floor, cap in bounds]
        parts: list[tuple[PoolCurves, list[PoolCurves]] | None] = [recent.part(key) for key in keys]
        new = [i for i, part in enumerate(parts) if part is None]
        if new:
            fresh = self._level(pools[new], guarantee[new], limits[new])
            for n, i in enumerate(new):
                parts[i] = recent.keep(keys[i], (fresh.take(np.array([n])), self._inner(rows[i])))
        curves = [part[0] for part in parts if part is not None]
        self._alone.update(zip(rows, curves, strict=True))
        return PoolCurves.joined(curves)

    def _inner(self, pool: int) -> list[PoolCurves]:
        situation = self._situation
        return [self._alone[i] for i in np.flatnonzero(situation.parent[: situation.root] == pool).tolist()]

    def _read(self, pool: int) -> tuple[Hashable, ...]:
        """All that the curve of ``pool`` hangs on beside guarantee and limits."""
        situation, children, demands = self._situation, self._children, self._demands
        rows = np.flatnonzero(situation.operation_parent == pool)
        inner = np.flatnonzero(situation.parent[: situation.root] == pool)
        return (
            *(part[rows].tobytes() for part in (demands.usage, demands.demand, demands.limits)),
            children.scale[rows].tobytes(), children.shift[rows].tobytes(), float(children.end[pool]),
            children.pool_scale[inner].tobytes(), children.pool_shift[inner].tobytes(),
            *map(id, self._inner(pool)),
        )  # fmt: skip

    def _level(self, pools: Ints, guarantee: Floats, limits: Floats) -> PoolCurves:
        situation, children = self._situation, self._children
        local = np.zeros(situation.root + 1, np.int64)
        local[pools] = np.arange(len(pools))
        among = np.zeros(situation.root + 1, bool)
        among[pools] = True
        operations = np.flatnonzero(among[situation.operation_parent])
        inner = np.flatnonzero(among[situation.parent[: situation.root]])
        curves = operation_curves(self._demands.take(operations))
        if len(inner):
            below = self._curves(inner).curves()
            curves = Curves(
                np.concatenate((curves.owner, below.owner + len(operations))),
                np.concatenate((curves.position, below.position)),
                np.concatenate((curves.value, below.value)),
            )
        owners = local[np.concatenate((situation.operation_parent[operations], situation.parent[inner]))]
        scale = np.concatenate((children.scale[operations], children.pool_scale[inner]))
        shift = np.concatenate((children.shift[operations], children.pool_shift[inner]))
        return pool_curves(children.end[pools], curves, owners, scale, shift, guarantee, limits)

    def _keep(self, pools: Ints, curves: PoolCurves) -> None:
        self._batch[pools] = len(self._batches)
        self._row[pools] = np.arange(len(pools))
        self._batches.append((pools, curves))

    def _curves(self, pools: Ints) -> PoolCurves:
        """The curves of prepared ``pools``, in their order."""
        batch = self._batch[pools]
        if (batch == batch[0]).all():
            whole, curves = self._batches[int(batch[0])]
            return curves if len(whole) == len(pools) else curves.take(self._row[pools])
        batches: list[int] = batch.tolist()
        rows: list[int] = self._row[pools].tolist()
        parts = [self._batches[b][1].take(np.array([row])) for b, row in zip(batches, rows, strict=True)]
        return PoolCurves.joined(parts)


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


MOST_KINDS = 64
"""Kinds of operations for which it is quicker to go through them one by one than to take all pools of a level."""
Rows = list[list[float]]
_Span = tuple[float, float]
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
    pool_scale: list[float] = children.pool_scale.tolist()
    divided = by_kinds(situation.config.tree, of, pool_scale, guarantee.tolist(), limits.tolist())
    if divided is None:
        return None
    fit, pool_fair = np.array(divided[0]), np.array(divided[1])
    suggested = np.minimum(fit[situation.operation_parent] / children.scale, 1.0)
    hardly = ((suggested < HARDLY) & any_of(demands.demand > 0)).any()
    return None if hardly else (operation_values(demands, suggested), pool_fair)


def by_kinds(tree: Tree, of: Mapping[int, Kinds], scales: list[float], floors: Rows, caps: Rows) -> "Divided | None":
    """``of``: operations by pool; by pool, ``scales`` as ``Children`` has them, guarantees and limits; None: the last
    bits may decide."""
    root = len(tree)
    taking: dict[int, _Taking] = {}
    for pool in (*reversed(tree.top_down), root):
        inner = tree.children[pool] if pool < root else tree.roots
        own, pools = of.get(pool, ()), tuple([kind_of(taking[row].curve, scales[row], 1) for row in inner])
        taken = _taking(own, pools, (*floors[pool],), (*caps[pool],), top=pool == root)
        if taken is None:
            return None
        taking[pool] = taken
    fit, pool_fair = [0.0] * (root + 1), [[0.0]] * (root + 1)
    for pool in (root, *tree.top_down):
        above = tree.parent[pool] if pool < root else ROOTLESS
        offered = 1.0 if pool == root else min(fit[root if above == ROOTLESS else above] / scales[pool], 1.0)
        reached = taking[pool].reached(offered)
        if reached is None:
            return None
        fit[pool], pool_fair[pool] = reached
    return fit, pool_fair


Divided = tuple[list[float], Rows]
"""Fit factors and fair shares of pools, the root last."""


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
        bound = [min(part + offered, cap) for part, cap in zip(self._floor, self._cap, strict=True)]
        return self._together.within(bound)


@lru_cache(maxsize=256)
def _taking(
    of: Kinds, pools: tuple[Kind, ...], floor: tuple[float, ...], cap: tuple[float, ...], *, top: bool
) -> _Taking | None:
    """None: the last bits may decide. Most pools of a round are as they were a round ago."""
    together = Together.of([*of, *pools], len(floor))
    if together is None:
        return None
    floors, caps = [*map(max, floor, together.values[0])], [*map(max, cap, together.values[0])]
    curve = () if top else together.over_suggestion(floors, caps)
    return None if curve is None else _Taking(curve, together, floors, caps)


class _Piece(NamedTuple):
    """What a pool takes of suggestions from ``low`` to ``high``, and its fit factor after that: at 0, and what more of
    it comes to; ``first``, ``last``: fit factors between which that is so; ``share``: what it is in the sums of the
    pool above, by whose fit factor it begins and ends, ``span``."""

    low: float
    high: float
    first: float
    last: float
    base: list[float]
    slope: list[float]
    share: list[float]
    span: _Span

    def meets(self, other: "_Piece", offered: float) -> bool:
        """Whether both take as much of that."""
        lines = zip(self.base[:-1], self.slope, other.base, other.slope, strict=False)  # without the fit factor
        return all([abs(b - c + (s - t) * offered) <= BESIDE for b, s, c, t in lines])  # noqa: C419


_APART, _ALIKE = 1e-9, 1e-12
"""Suggestions that are so far from where anything bends hang on no last bits; slopes that differ less do not part."""
_FIRST, _MOST_STEPS = 0.5, 64
_Known = tuple[list[Lines] | None, float, list[_Piece | None], _Piece | None]
"""A piece, with the operations, the fit factor and the pieces of the pools below that it follows from."""


class Nearby:
    """Fair shares of pools, looked for where they were last: what everybody takes never falls, so that whatever adds
    up about some fit factors does so nowhere else, and what the pools take there alone is worked out."""

    def __init__(self, tree: Tree, floors: Rows, caps: Rows) -> None:
        """By pool, guarantees and limits, the root last."""
        self._tree, self._root, self._given, self._caps = tree, len(tree), floors, caps
        top = [min(floor + 1.0, cap) - 1.0 for floor, cap in zip(floors[-1], caps[-1], strict=True)]
        self._floors, self._inner = [*floors[:-1], top], [*tree.children, tree.roots]
        self._able = all(
            sum([floors[row][r] for row in rows]) <= floors[pool][r] + TOLERANCE
            for pool, rows in enumerate(self._inner) for r in range(len(top))
        )  # fmt: skip
        self._fits, self._scales = [_FIRST] * (self._root + 1), list[float]()
        self._known: tuple[dict[int, _Known], dict[int, _Known]] = {}, {}

    def divided(self, of: Mapping[int, list[Lines]], scales: list[float]) -> Divided | None:
        """``of``: operations by pool, those that take alike together; see ``by_kinds``."""
        if self._able and (simply := self._simply(of, scales)) is not None:
            return simply
        kinds = {pool: grouped([lines.of for lines in own]) for pool, own in of.items()}
        return by_kinds(self._tree, kinds, scales, self._given, self._caps)

    def _simply(self, of: Mapping[int, list[Lines]], scales: list[float]) -> Divided | None:
        if scales != self._scales:
            self._scales, self._known = scales, ({}, {})
        fit, pool_fair = [1.0] * (self._root + 1), [[0.0]] * (self._root + 1)
        for pool in (self._root, *self._tree.top_down):
            offered = 1.0 if pool == self._root else fit[self._tree.parent[pool]] / scales[pool]
            piece = self._about(pool, offered, of)
            if piece is None:
                return None
            *values, fit[pool] = [b + s * offered for b, s in zip(piece.base, piece.slope, strict=True)]
            if pool != self._root and any([v >= c - BESIDE for v, c in zip(values, self._caps[pool], strict=True)]):  # noqa: C419
                return None
            pool_fair[pool] = values
        return fit, pool_fair

    def _about(self, pool: int, offered: float, of: Mapping[int, list[Lines]]) -> _Piece | None:
        """The piece in which that is offered."""
        for _ in range(_MOST_STEPS):
            piece = self._piece(pool, self._fits[pool], of)
            if piece is None:
                break
            if piece.low + _APART < offered < piece.high - _APART:
                return piece
            before, after = piece.first - 2 * _APART, piece.last + 2 * _APART
            if piece.low - _ALIKE <= offered <= piece.high + _ALIKE:
                near = [fit for fit, end in ((before, piece.low), (after, piece.high)) if abs(offered - end) <= _APART]
                others = [self._piece(pool, fit, of, beside=1) if fit > 0 else None for fit in near]
                return piece if all([other and other.meets(piece, offered) for other in others]) else None  # noqa: C419
            self._fits[pool] = before if offered < piece.low else after
            if not 0 < self._fits[pool] <= 1:
                break
        self._fits[pool] = _FIRST
        return None

    def _piece(self, pool: int, fit: float, of: Mapping[int, list[Lines]], beside: int = 0) -> _Piece | None:
        """About a fit factor, that of the last time or one ``beside`` it."""
        own, scales, inner = of.get(pool), self._scales, self._inner[pool]
        pieces = [self._about(row, fit / scales[row], of) for row in inner]
        known = self._known[beside].get(pool)
        if known is None or known[0] is not own or known[1] != fit or known[2] != pieces:
            first, last, rows = 0.0, inf, [[0.0] * (2 * len(self._floors[pool]))]
            for lines in own or ():
                i = bisect_left(lines.ends, fit)
                if (row := lines.rows[i]) is None:
                    return None
                first, last = max(first, lines.begins[i]), min(last, lines.ends[i])
                rows.append(row)
            for piece in pieces:
                if piece is None:
                    return None
                first, last = max(first, piece.span[0]), min(last, piece.span[1])
                rows.append(piece.share)
            sums: list[float] = list(map(sum, zip(*rows, strict=True)))
            piece = _piece_of(fit, self._floors[pool], (first, last), sums, scales[pool] if pool < self._root else 1.0)
            known = self._known[beside][pool] = own, fit, pieces, piece
        return known[3]


def _piece_of(fit: float, floor: list[float], span: _Span, sums: list[float], scale: float) -> _Piece | None:
    """Of a pool that takes ``sums``, values at 0 and slopes, where fit factors are in ``span``, about one of these: up
    to where another resource needs most on top of ``floor``; None: the one that does hardly rises, or nothing does."""
    base, slope, (first, last) = sums[: len(floor)], sums[len(floor) :], span
    needs = [b + s * fit - of for b, s, of in zip(base, slope, floor, strict=True)]
    if any(slope):
        _, pace, most = max([(round(need, 11), s, r) for r, (need, s) in enumerate(zip(needs, slope, strict=True))])
        if pace < MUCH * max(slope):
            return None
        for other, faster in zip(needs, slope, strict=True):
            if faster - pace > _ALIKE:
                last = min(last, fit + (needs[most] - other) / (faster - pace))
            elif pace - faster > _ALIKE:
                first = max(first, fit + (needs[most] - other) / (faster - pace))
        at_zero = base[most] - floor[most]
        low, high, factor = max(0.0, at_zero + pace * first), at_zero + pace * last, (-at_zero / pace, 1 / pace)
        base, slope = [b - s * at_zero / pace for b, s in zip(base, slope, strict=True)], [s / pace for s in slope]
    elif last > 1.0:
        low, high, last, factor = max(0.0, *needs), inf, inf, (1.0, 0.0)
    else:
        return None
    share = base + [s / scale for s in slope]
    return _Piece(low, high, first, last, [*base, factor[0]], [*slope, factor[1]], share, (low * scale, high * scale))
