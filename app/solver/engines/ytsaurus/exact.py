"""Fair shares pool by pool, to the last bit: where gangs get all of their demand or nothing, a bit decides.

The same functions as in ``pool_curves``, in the origin's order of operations: sums in the order of the children, and
the division by fit factors that its improved computation adds (``ComputeImprovedFairShareByFitFactor``).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from app.solver.engines.ytsaurus.operations import Flags, Floats, Ints, add_upwards, all_of, any_of
from app.solver.engines.ytsaurus.polyline import (
    EPSILON,
    Column,
    Polyline,
    composed,
    compressed,
    in_order,
    largest,
    polyline,
    smallest,
    total,
    values_at,
)
from app.solver.engines.ytsaurus.situation import Children, Demands, Situation
from app.solver.engines.ytsaurus.state import Recent
from app.solver.question import safe_point

if TYPE_CHECKING:
    from app.solver.engines.ytsaurus.operations import Floats, Ints


def reordered(situation: Situation, children: Children, demands: Demands, strong: Floats) -> Children:
    """``children`` in the order in which they are served: those first that fit into the guarantee of their pool.

    Only gangs that wait are put off, and none past another operation that does not fit
    (``ReorderFifoChildrenForGuaranteeUtilization``, newest source)."""
    settings = situation.config.settings.shares
    if not (settings.gang_steps and settings.reorder_fifo):
        return children
    shift = children.shift.copy()
    for pool, own in enumerate(situation.config.pools):
        guarded = bool((strong[pool] > EPSILON).any())
        if children.fifo[pool] and own.shares.gang_steps and own.shares.reorder_fifo and guarded:
            rows = np.flatnonzero(situation.operation_parent == pool)
            rows = rows[np.argsort(children.shift[rows])]
            shift[_packed(situation, rows.tolist(), demands, strong[pool])] = np.sort(children.shift[rows])
    return replace(children, shift=shift)


def _packed(situation: Situation, rows: list[int], demands: Demands, guarantee: Floats) -> list[int]:
    gang = situation.operations.gang
    running = any_of(situation.usage > 0)
    taken: list[int] = []
    put_off: list[int] = []
    accepted = np.zeros_like(guarantee)
    stopped = False
    for row in rows:
        demand, limits = demands.demand[row], demands.limits[row]
        never = gang[row] and not (limits >= demand).all()
        wanted = np.zeros_like(demand) if never else np.minimum(demand, limits)
        fits = bool((accepted + wanted <= guarantee + EPSILON).all())
        if stopped or (gang[row] and not running[row] and not fits):
            put_off.append(row)
            continue
        stopped = not fits and not gang[row]
        taken.append(row)
        accepted = accepted + wanted
    return taken + put_off


def truncated(
    situation: Situation, children: Children, demand: Floats, fair: Floats, pool_fair: Floats
) -> tuple[Floats, Floats]:
    """Fair shares without those of gangs in FIFO pools that would get less than their demand
    (``TruncateFairShareInFifoPools``, older releases)."""
    above = situation.operation_parent
    cut = np.array([pool.shares.truncate_fifo for pool in situation.config.pools], bool)
    short = ~all_of(fair + EPSILON >= demand) & any_of(fair != 0)
    rows = np.flatnonzero(children.fifo[above] & cut[above] & situation.operations.gang & short)
    if not len(rows):
        return fair, pool_fair
    lost = np.zeros_like(pool_fair)
    np.add.at(lost, above[rows], fair[rows])
    add_upwards(lost, situation.parent, situation.depth)
    fair = fair.copy()
    fair[rows] = 0.0
    return fair, np.where(any_of(lost != 0)[:, None], np.maximum(pool_fair - lost, 0.0), pool_fair)


class ByFitFactor(ABC):
    """What each child of a pool takes at a fit factor; ``whole``: all of them together."""

    whole: Polyline

    @abstractmethod
    def parts(self, fit: float) -> "Floats":
        """One row a child."""

    @abstractmethod
    def _fit(self, bound: "Floats") -> float:
        """The largest fit factor at which the children together stay within ``bound``."""

    def divided(self, share: "Floats", *, gap: bool) -> list["Floats"]:
        """What the children get of ``share``; ``gap``: with a tolerance where much would be left over."""
        fit = self._fit(share)
        if gap and not (share - in_order(self.parts(fit)) <= EPSILON).all():
            fit = max(fit, self._fit(share + EPSILON))
        return list(self.parts(0.0 if fit < EPSILON else fit))


def by_fit_factor(functions: list[Polyline], *, fifo: bool) -> ByFitFactor:
    """``functions``: of the children, in order; of a fair-share pool already scaled by weight."""
    return _InTurn(functions) if fifo else _ByWeight(functions)


class _InTurn(ByFitFactor):
    def __init__(self, functions: list[Polyline]) -> None:
        self._functions = functions
        self._full = np.array([function.at(1.0) for function in functions])
        none = np.zeros((1, self._full.shape[1]))
        self._before = np.concatenate((none, np.cumsum(self._full, axis=0)))
        ends = np.cumsum([np.zeros(1), *(np.ones(1) for _ in functions[1:])])
        self.whole = polyline(
            np.concatenate([f.x + begin for f, begin in zip(functions, ends, strict=True)]),
            np.concatenate([f.y + before for f, before in zip(functions, self._before[:-1], strict=True)]),
        )

    def parts(self, fit: float) -> "Floats":
        count = int(fit)
        out = np.zeros_like(self._full)
        out[:count] = self._full[:count]
        if fit != count:
            out[count] = self._functions[count].at(fit - count)
        return out

    def _fit(self, bound: "Floats") -> float:
        count = _last(self._before, bound)
        if count == len(self._functions):
            return float(count)
        before, function = self._before[count], self._functions[count]
        return largest(
            lambda fit: bool((before + function.at(fit - count) <= bound).all()), float(count), float(count + 1)
        )


class _ByWeight(ByFitFactor):
    """The improved computation: children step one after another where they would jump together.

    Every place where some child's function bends is a step of the fit factor, and children step in their order. So of
    children that jump at the same suggestion those are fitted that can be (``fair_share_update.cpp``)."""

    def __init__(self, functions: list[Polyline]) -> None:
        self._functions = functions
        places = [np.unique(function.x) for function in functions]
        which = np.repeat(np.arange(len(functions)), [len(place) for place in places])
        place = np.concatenate(places)
        order = np.lexsort((which, place))
        self._place, self._which = place[order], which[order]
        resources = functions[0].y.shape[1]
        self._before = np.zeros((len(order), resources))
        after = np.zeros((len(order), resources))
        for i, function in enumerate(functions):
            left, right = function.both(self._place)
            self._before += np.where((i < self._which)[:, None], right, left)
            after += np.where((i <= self._which)[:, None], right, left)
        x = np.repeat(np.arange(len(order), dtype=float), 2)
        self.whole = polyline(x, np.stack((self._before, after), axis=1).reshape(len(x), -1))

    def parts(self, fit: float) -> "Floats":
        step = int(fit)
        if fit == step:
            return self._at(step)[0]
        return self._between(step)(fit)

    def _fit(self, bound: "Floats") -> float:
        step = _last(self._before, bound)
        if step == len(self._place) - 1:
            return float(step)
        between = self._between(step)
        return largest(lambda fit: bool((in_order(between(fit)) <= bound).all()), float(step), float(step + 1))

    def _at(self, step: int) -> tuple["Floats", "Floats"]:
        """Parts before and after the child whose turn it is has stepped."""
        x = self._place[[step]]
        both = [function.both(x) for function in self._functions]
        turn, rows = int(self._which[step]), np.arange(len(both))[:, None]
        left, right = np.concatenate([b[0] for b in both]), np.concatenate([b[1] for b in both])
        return np.where(rows < turn, right, left), np.where(rows <= turn, right, left)

    def _between(self, step: int) -> Callable[[float], "Floats"]:
        low, high = self._at(step)[1], self._at(step + 1)[0]
        rise = high - low

        def parts(fit: float) -> "Floats":
            part = fit - step
            return low + rise * part if part < 0.5 else high - rise * (1 - part)

        return parts


def _last(sums: "Floats", bound: "Floats") -> int:
    """The last row, of rows that only grow, that is within ``bound``; the first if none is."""
    within: Ints = np.flatnonzero((sums <= bound).all(axis=1))
    return int(within[-1]) if len(within) else 0


class _Handed(Struct, frozen=True, eq=False):
    """What the children of a pool, with these functions, were suggested and got."""

    functions: list[Polyline]
    suggestions: list[float]
    shares: list[Floats]


class _Functions(Struct, frozen=True, eq=False):
    """Of one pool: its children's; what it takes of a suggestion, the fit factor then, and how the improved computation
    divides. ``handed``: what the children were suggested and got when they were asked last, by what the pool was."""

    children: list[Polyline]
    taken: Polyline
    fit: Polyline
    improved: ByFitFactor | None
    handed: dict[tuple[float, bytes], _Handed] = field(default_factory=dict)


class Exact:
    """The functions of every element: prepared below a pool at a time, kept until forgotten."""

    def __init__(self, situation: Situation, demands: Demands, children: Children, weight: Floats) -> None:
        self._situation = situation
        self._settings = situation.config.settings.shares
        self._children = children
        self._weight = weight
        self._inner = _children_in_order(situation, children)
        self._recent = situation.cluster.recent
        self._operations = _operation_functions(demands, _steps(situation), self._recent)
        self._pools: dict[int, _Functions] = {}
        self._resources = demands.usage.shape[1]

    def prepare(self, top: int, guarantee: Floats, limits: Floats) -> None:
        """Work out the functions of ``top`` and of the pools below it that have none. By pool: what is guaranteed,
        what is the limit."""
        pending = [top]
        order: list[int] = []
        while pending:
            pool = pending.pop()
            order.append(pool)
            pending += [child for child, is_pool in self._inner[pool] if is_pool]
        for pool in reversed(order):
            safe_point()
            if pool not in self._pools:
                self._pools[pool] = self._prepared(pool, guarantee[pool], limits[pool])

    def taken(self, pools: Ints, suggestions: Floats) -> Floats:
        """What prepared ``pools`` take, each of its suggestion."""
        pairs = zip(pools.tolist(), suggestions.tolist(), strict=True)
        return np.array([self._pools[pool].taken.at(suggestion) for pool, suggestion in pairs])

    def forget(self, pool: int) -> None:
        """The functions of ``pool`` alone are to be worked out anew."""
        del self._pools[pool]

    def divided(self, tops: Ints, suggestion: float) -> tuple[Floats, Floats]:
        """Fair shares of operations and pools when ``tops`` are offered ``suggestion``; 0 outside of them."""
        fair = np.zeros((len(self._operations), self._resources))
        pool_fair = np.zeros((self._situation.root + 1, self._resources))
        shares = self.taken(tops, np.full(len(tops), suggestion))
        rows: list[int] = tops.tolist()
        given: list[tuple[int, float, Floats]] = [
            (top, suggestion, share) for top, share in zip(rows, shares, strict=True)
        ]
        while given:
            pool, offered, share = given.pop()
            inner = self._inner[pool]
            if not inner:
                continue
            pool_fair[pool] = share
            suggestions, shares = self._handed(pool, offered, share)
            for (child, is_pool), own, part in zip(inner, suggestions, shares, strict=True):
                if is_pool:
                    given.append((child, own, part))
                else:
                    fair[child] = part
        return fair, pool_fair

    def _handed(self, pool: int, offered: float, share: Floats) -> tuple[list[float], list[Floats]]:
        """What the children of ``pool`` are suggested, and what they get of its ``share``.

        A child that got an integral share since the function of ``pool`` was worked out has another function now."""
        of = self._pools[pool]
        functions = of.children if of.improved else [self._function(child) for child in self._inner[pool]]
        key = offered, share.tobytes()
        known = of.handed.get(key)
        if known is not None and all(map(is_, known.functions, functions)):
            return known.suggestions, known.shares
        if of.improved is None:
            suggestions = self._suggestions(pool, functions, offered, share)
            shares = values_at(functions, suggestions)
        else:
            suggestions = [0.0] * len(functions)
            shares = of.improved.divided(share, gap=self._settings.distribution_gap)
        of.handed.clear()
        of.handed[key] = _Handed(functions, suggestions, shares)
        return suggestions, shares

    def _function(self, child: tuple[int, bool]) -> Polyline:
        row, is_pool = child
        return self._pools[row].taken if is_pool else self._operations[row]

    def _prepared(self, pool: int, guarantee: Floats, limits: Floats) -> _Functions:
        functions = [self._function(child) for child in self._inner[pool]]
        fifo = bool(self._children.fifo[pool])
        weights = () if fifo or not functions else tuple(self._weights(pool))
        key = (
            tuple(map(id, functions)), weights, fifo, self._settings, guarantee.tobytes(), limits.tobytes()
        )  # fmt: skip
        known: _Functions | None = self._recent.part(key)
        return known or self._recent.keep(key, self._worked_out(functions, weights, guarantee, limits))

    def _worked_out(
        self, functions: list[Polyline], weights: Sequence[float], guarantee: Floats, limits: Floats
    ) -> _Functions:
        """``weights``: none where the children come one after another."""
        improved: ByFitFactor | None = None
        if not functions:
            whole = Polyline(np.array([0.0, 1.0]), np.zeros((2, self._resources)))
        elif self._settings.improved:
            improved = by_fit_factor(_weighted(functions, weights) if weights else functions, fifo=not weights)
            whole = improved.whole
        else:
            whole = total(_weighted(functions, weights)) if weights else one_after_another(functions)
        fit = _largest_fit(whole, guarantee, limits)
        return _Functions(functions, compressed(composed(whole, fit)), fit, improved)

    def _weights(self, pool: int) -> list[float]:
        """Of the children, over the smallest."""
        own = self._situation.operations.weight
        weights = [float(self._weight[row] if is_pool else own[row]) for row, is_pool in self._inner[pool]]
        least = min((weight for weight in weights if weight > EPSILON), default=min(weights))
        return [weight / least for weight in weights]

    def _suggestions(self, pool: int, functions: list[Polyline], offered: float, share: Floats) -> list[float]:
        """What the children, with these functions, are suggested: by the fit factor, or the largest one below it that
        is safe."""
        weights = [] if self._children.fifo[pool] else self._weights(pool)

        def handed(fit: float) -> list[float]:
            if not weights:
                return [min(max(fit - i, 0.0), 1.0) for i in range(len(functions))]
            return [min(1.0, fit * weight) for weight in weights]

        def safe(fit: float) -> bool:
            return bool((in_order(np.array(values_at(functions, handed(fit)))) <= share + EPSILON).all())

        return handed(largest(safe, 0.0, float(self._pools[pool].fit.at(offered)[0])))


def one_after_another(functions: list[Polyline]) -> Polyline:
    """The children of a FIFO pool: each has one unit of the fit factor (``ComputeFastFifoFairShareByFitFactor``)."""
    x: list[Floats] = []
    y: list[Floats] = []
    before = np.zeros(functions[0].y.shape[1])
    for i, function in enumerate(functions):
        x.append(function.x + float(i))
        y.append(function.y + before)
        before = before + function.y[-1]
    return polyline(np.concatenate(x), np.concatenate(y))


def _largest_fit(whole: Polyline, guarantee: Floats, limits: Floats) -> Polyline:
    """The largest fit factor that a suggestion on top of the guarantee lets through (``MaxFitFactorBySuggestion``)."""
    joint: Polyline | None = None
    for r in range(whole.y.shape[1]):
        own = whole.column(r)
        first, last = float(own.y[0, 0]), float(own.y[-1, 0])
        limit = min(max(float(limits[r]), first), last)
        given = min(max(float(guarantee[r]), first), limit)
        fit = own.transposed().narrowed(given, limit).trimmed_left().shifted(-given).extended(1.0).trimmed()
        joint = fit if joint is None else smallest(joint, fit)
    assert joint is not None
    return joint


def _steps(situation: Situation) -> Flags:
    """Which operations get all of their demand or nothing."""
    settings = situation.config.settings.shares
    pools = np.array([pool.shares.gang_steps for pool in situation.config.pools], bool)
    return situation.operations.gang & pools[situation.operation_parent] & settings.gang_steps


def _weighted(functions: list[Polyline], weights: Sequence[float]) -> list[Polyline]:
    known: dict[tuple[int, float], Polyline] = {}
    out: list[Polyline] = []
    for function, weight in zip(functions, weights, strict=True):
        key = id(function), weight
        if key not in known:
            known[key] = function.scaled(weight).extended(1.0)
        out.append(known[key])
    return out


def _operation_functions(demands: Demands, steps: Flags, recent: Recent) -> list[Polyline]:
    """One object for those that are equal: most operations of a pool want one of a few things."""
    rows = np.concatenate((demands.usage, demands.demand, demands.limits), axis=1)
    gang: list[bool] = steps.tolist()
    size, block = rows.shape[1] * rows.itemsize, rows.tobytes()
    known: dict[tuple[bytes, bool], Polyline] = {}
    out: list[Polyline] = []
    for i, step in enumerate(gang):
        key = (block[i * size : (i + 1) * size], step)
        if key not in known:
            known[key] = recent.part(key) or recent.keep(key, _alike(recent, _function_of(demands, i, step=step)))
        out.append(known[key])
    return out


def _function_of(demands: Demands, i: int, *, step: bool) -> Polyline:
    demand, limits = demands.demand[i], demands.limits[i]
    return _step(demand, limits) if step else operation_function(demands.usage[i], demand, limits)


def _alike(recent: Recent, fresh: Polyline) -> Polyline:
    """The same function, if others have it."""
    vertices = fresh.x.tobytes(), fresh.y.tobytes()
    return recent.part(vertices) or recent.keep(vertices, fresh)


def operation_function(usage: Floats, demand: Floats, limits: Floats) -> Polyline:
    """What an operation that is no gang takes of a suggestion.

    By fit factor it gets up to 1 its usage, equally in every resource, then up to 2 its demand, in proportion."""
    most = usage.max()
    levels = np.unique(usage[usage > 0]) if most > 0 else np.zeros(1)
    x = np.concatenate(([0.0], levels / most if most > 0 else [1.0], [2.0]))
    y = np.concatenate((np.zeros((1, len(usage))), np.minimum(levels[:, None], usage), demand[None]))
    fits: list[float] = x.tolist()
    joint: Column | None = None
    for shares, limit in zip(y.T.tolist(), limits.tolist(), strict=True):
        component = Column(fits, shares)
        fit = Column(component.y, component.x).up_to(min(max(limit, 0.0), shares[-1]))
        joint = fit if joint is None else joint.or_less(fit)
    assert joint is not None
    return compressed(composed(polyline(x, y), Polyline(np.array(joint.x), np.array(joint.y)[:, None])))


def _step(demand: Floats, limits: Floats) -> Polyline:
    """Nothing, then from the suggestion that the demand takes all of it; never where a limit is in the way, nor where
    that suggestion is the whole cluster."""
    place = float(demand.max())
    if not 0.0 < place < 1.0 or (limits < demand).any():
        return Polyline(np.array([0.0, 1.0]), np.zeros((2, len(demand))))
    nothing = np.zeros(len(demand))
    return Polyline(np.array([0.0, place, place, 1.0]), np.stack((nothing, nothing, demand, demand)))


def _children_in_order(situation: Situation, children: Children) -> list[list[tuple[int, bool]]]:
    """Children of each pool: pools in document order, then operations as they came; in a FIFO pool by rank.

    Each is a row and whether it is a pool's. The origin has them in the order in which they were attached."""
    out: list[list[tuple[int, bool]]] = [[] for _ in range(situation.root + 1)]
    for row in range(situation.root):
        out[int(situation.parent[row])].append((row, True))
    order = np.argsort(situation.operations.created, kind="stable")
    for row in order.tolist():
        out[int(situation.operation_parent[row])].append((row, False))
    for pool in np.flatnonzero(children.fifo).tolist():
        out[pool].sort(key=lambda child: children.place(*child))
    return out
