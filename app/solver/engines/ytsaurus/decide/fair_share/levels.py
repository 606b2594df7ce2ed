"""Fair shares of all pools of a level at once: bottom-up curves, top-down suggestions (``curves``).

Exact but for rounding of doubles. Gangs whose curve is one step are too sensitive to the last bits, and the improved
computation divides otherwise: both take ``steps``.
"""

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, by_level
from app.solver.engines.ytsaurus.decide.fair_share.children import Children
from app.solver.engines.ytsaurus.decide.fair_share.curve_cuts import EDGE
from app.solver.engines.ytsaurus.decide.fair_share.curve_sums import Curves
from app.solver.engines.ytsaurus.decide.fair_share.curves import PoolCurves, pool_curves
from app.solver.engines.ytsaurus.decide.fair_share.operation_curves import Demands, operation_curves, operation_values
from app.solver.engines.ytsaurus.decide.situation import Situation
from app.solver.stopping import safe_point


class Levels:
    """The functions of every element: prepared below a pool at a time, kept until forgotten.

    ``sensitive``: whether the last bits of doubles may have decided something that was asked of them."""

    def __init__(self, situation: Situation, demands: Demands, children: Children) -> None:
        self._situation = situation
        self._demands = demands
        self._children = children
        self._batches: list[tuple[Ints, PoolCurves]] = []
        count = situation.root + 1
        self._levels = [np.array([situation.root]), *by_level(situation.depth)]
        self._batch = np.full(count, -1, np.int64)
        self._row = np.zeros(count, np.int64)
        self.sensitive = False

    def prepare(self, top: int, guarantee: Floats, limits: Floats) -> None:
        """Work out the functions of ``top`` and of the pools below it that have none. By pool: what is guaranteed,
        what is the limit."""
        missing = self._below(np.array([top])) & (self._batch < 0)
        for rows in reversed(self._levels):
            safe_point()
            pools = rows[missing[rows]]
            if len(pools):
                local = np.zeros(len(missing), np.int64)
                local[pools] = np.arange(len(pools))
                self._keep(pools, self._level(pools, local, guarantee[pools], limits[pools]))

    def taken(self, pools: Ints, suggestions: Floats) -> Floats:
        """What prepared ``pools`` take, each of its suggestion."""
        curves = self._curves(pools)
        fit, value = curves.at(suggestions)
        self.sensitive = self.sensitive or curves.sensitive(suggestions, fit)
        return value

    def forget(self, pool: int) -> None:
        """The functions of ``pool`` alone are to be worked out anew."""
        self._batch[pool] = -1

    def divided(self, tops: Ints, suggestion: float) -> tuple[Floats, Floats]:
        """Fair shares of operations and pools when ``tops`` are offered ``suggestion``; 0 outside of them."""
        situation, children = self._situation, self._children
        fair = np.zeros_like(self._demands.usage)
        pool_fair = np.zeros((situation.root + 1, fair.shape[1]))
        suggested = np.zeros(situation.root + 1)
        suggested[tops] = suggestion
        fit = np.zeros(situation.root + 1)
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

    def _below(self, tops: Ints) -> Flags:
        """Pools that are among ``tops`` or below one."""
        situation = self._situation
        out = np.zeros(situation.root + 1, bool)
        out[tops] = True
        for rows in self._levels[1:]:
            out[rows] |= out[situation.parent[rows]]
        return out

    def _level(self, pools: Ints, local: Ints, guarantee: Floats, limits: Floats) -> PoolCurves:
        situation, children = self._situation, self._children
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
        return pool_curves(
            children.end[pools],
            curves,
            local[np.concatenate((situation.operation_parent[operations], situation.parent[inner]))],
            np.concatenate((children.scale[operations], children.pool_scale[inner])),
            np.concatenate((children.shift[operations], children.pool_shift[inner])),
            guarantee,
            limits,
        )

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
