"""The improved computation: children step one after another where they would jump together.

Every place where some child's function bends is a step of the fit factor, and children step in their order. So of
children that jump at the same suggestion those are fitted that can be (``fair_share_update.cpp``).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from app.solver.engines.ytsaurus.decide.fair_share.doubles import EPSILON, in_order, largest
from app.solver.engines.ytsaurus.decide.fair_share.polyline import Polyline, polyline

if TYPE_CHECKING:
    from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints


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
