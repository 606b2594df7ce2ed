"""Integral guarantees: the share that pools get now for the volume they have saved.

Burst pools one by one, depth first; then relaxed pools together, by volume, of what guarantees leave over. The rules
are those of ``UpdateBurstPoolIntegralShares`` and ``UpdateRelaxedPoolIntegralShares`` (``fair_share_update.cpp``).
Rows are pools, the root last; shares are parts of the cluster.
"""

from typing import Protocol

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Floats, Ints
from app.solver.engines.ytsaurus.decide.fair_share.doubles import in_order, largest
from app.solver.engines.ytsaurus.decide.fair_share.volumes import Volumes
from app.solver.engines.ytsaurus.decide.situation import Situation

_MOST_STEPS = 32


class Functions(Protocol):
    """What elements take of suggestions: ``levels.Levels`` and ``exact.Exact``."""

    def prepare(self, top: int, guarantee: Floats, limits: Floats) -> None: ...

    def taken(self, pools: Ints, suggestions: Floats) -> Floats: ...

    def forget(self, pool: int) -> None: ...

    def divided(self, tops: Ints, suggestion: float) -> tuple[Floats, Floats]: ...


class IntegralShares:
    """``proposed``: shares by pool, with those of the pools below, the root's is 0; ``ratios``: what each pool spends
    from now on."""

    def __init__(
        self, situation: Situation, functions: Functions, strong: Floats, limits: Floats, volumes: Volumes
    ) -> None:
        self._situation = situation
        self._functions = functions
        self._strong = strong
        self._limits = limits
        self._volumes = volumes
        self.proposed = np.zeros_like(strong)
        self.ratios = situation.cluster.pool_ratios.copy()

    def propose(self, burst: Floats, flow: Floats, demand: Floats) -> None:
        """``burst``, ``flow``: ratios by pool; ``demand``: shares."""
        for pool in self._pools("burst"):
            self._burst(pool, float(burst[pool]))
        relaxed = {pool: self._volumes.ratio(pool) for pool in self._pools("relaxed")}
        relaxed = {pool: ratio for pool, ratio in relaxed.items() if ratio != 0}
        if relaxed:
            self._relaxed(relaxed, flow, demand)

    def _pools(self, kind: str) -> list[int]:
        """Depth first, each before those below it."""
        tree = self._situation.config.tree
        pending = list(reversed(tree.roots))
        out: list[int] = []
        while pending:
            pool = pending.pop()
            pending += reversed(tree.children[pool])
            if self._situation.config.pools[pool].shares.integral.kind == kind:
                out.append(pool)
        return out

    def _burst(self, pool: int, burst: float) -> None:
        ratio = min(burst, self._volumes.ratio(pool))
        proposed = self._fitting(pool, np.minimum(ratio, self._room(pool)))
        guarantee = self._strong.copy()  # those below it have none of the burst yet
        guarantee[pool] += proposed
        self._functions.prepare(pool, guarantee, self._limits)
        taken = self._functions.taken(np.array([pool]), np.zeros(1))[0]
        self._give(pool, np.maximum(taken - self._strong[pool], 0.0))

    def _relaxed(self, pools: dict[int, float], flow: Floats, demand: Floats) -> None:
        first = np.flatnonzero(self._situation.depth == 0)
        used = np.minimum(self._strong + self.proposed, demand)[first]
        available = np.ones(used.shape[1])
        for row in used:
            available = available - row
        available = np.maximum(available, 0.0)
        limits = self._limits.copy()
        for pool, ratio in pools.items():
            most = min(ratio, float(flow[pool]) * self._multiplier(pool)) + self._strong[pool]
            limits[pool] = np.minimum(limits[pool], most)
            self._functions.prepare(pool, self._strong + self.proposed, limits)
        rows, ratios = np.array(list(pools)), np.array(list(pools.values()))
        weights = ratios / ratios.min()

        def shares(fit: float) -> Floats:
            taken = self._functions.taken(rows, np.minimum(1.0, fit * weights))
            return np.maximum(taken - self._strong[rows], 0.0)

        found = shares(largest(lambda fit: bool((in_order(shares(fit)) <= available).all()), 0.0, 1.0))
        for pool, share in zip(pools, found, strict=True):
            self._give(pool, np.minimum(share, self._room(pool)))

    def _multiplier(self, pool: int) -> float:
        own = self._situation.config.pools[pool].shares.integral.multiplier_limit
        return self._situation.config.settings.shares.multiplier_limit if own is None else own

    def _room(self, pool: int) -> Floats:
        """What the limits of ``pool`` and of those above leave over."""
        room = np.ones(self._strong.shape[1])
        while pool != self._situation.root:
            room = np.minimum(room, self._limits[pool] - (self._strong[pool] + self.proposed[pool]))
            pool = int(self._situation.parent[pool])
        return np.maximum(room, 0.0)

    def _give(self, pool: int, share: Floats) -> None:
        """``share`` more for ``pool`` and all above it but the root; its function is to be worked out anew."""
        self._functions.forget(pool)
        self.ratios[pool] = float(share.max())
        while pool != self._situation.root:
            self.proposed[pool] = self._fitting(pool, self.proposed[pool] + share)
            pool = int(self._situation.parent[pool])

    def _fitting(self, pool: int, proposed: Floats) -> Floats:
        return fitting(proposed, self._strong[pool], self._limits[pool])


def fitting(proposed: Floats, strong: Floats, limits: Floats) -> Floats:
    """``proposed``, with the last bits such that with ``strong`` it does not exceed ``limits``; where it does, all
    resources take what the limits leave (YTsaurus: ``AdjustProposedIntegralShare``)."""
    if (strong + proposed <= limits).all():
        return proposed
    out: Floats = np.maximum(limits - strong, 0.0)
    for _ in range(_MOST_STEPS):
        out = np.where(strong + out > limits, np.nextafter(out, np.zeros_like(out)), out)
    return out
