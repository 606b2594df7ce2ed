"""Volumes of integral guarantees: resources times time, that pools save up and spend.

A pool with such a guarantee gains its resource flow, spends what it had as integral share, and keeps at most what
flows in within the saturation period. What flows over goes to other pools that can take it. The rules are those of
``fair_share_update.cpp`` and ``resource_volume.cpp``; the origin keeps cpu in hundredths, so this counts *grains*:
hundredths of cpu, whole units of the rest; a volume is grain-seconds. Rows are pools, the root last.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.ytsaurus.operations import Floats, by_level, running_sums
from app.solver.engines.ytsaurus.polyline import EPSILON, rounded, sums_of
from app.solver.engines.ytsaurus.reading import SECOND
from app.solver.engines.ytsaurus.situation import Situation
from app.solver.model.problems import InvalidInput, Problem

LATE = "later than the update that is asked for"


@dataclass(frozen=True, slots=True)
class Update:
    """When fair shares are updated, and when they were before (None: volumes are as carried); microseconds."""

    now: int = 0
    last: int | None = None

    @property
    def seconds(self) -> float | None:
        """How much time went by; None: volumes are as carried. Raises InvalidInput for a negative one."""
        if self.last is None:
            return None
        if self.last > self.now:
            raise InvalidInput([Problem(pointer="/options/ytsaurus/last_update_at", detail=LATE)])
        return (self.now - self.last) / SECOND


class Volumes:
    """The volumes of one update. ``accumulated``: after it has been refilled."""

    def __init__(self, situation: Situation, flow: Floats, total_flow: Floats, update: Update) -> None:
        self._situation = situation
        self._pools = [pool.shares.integral for pool in situation.config.pools]
        self._flow, self._total_flow = flow, total_flow
        self._cpu = situation.cluster.index.index.get("cpu")
        self._grains = np.array([100.0 if name == "cpu" else 1.0 for name in situation.resources])
        self._total = rounded(situation.total * self._grains)
        cluster = situation.cluster
        self.accumulated = self._whole(situation.carried(cluster.pool_volumes) * self._grains)
        shape = self.accumulated.shape
        self._overflow, self._acceptable = np.zeros(shape), np.zeros(shape)
        self._spilt, self._accepted = np.zeros(shape), np.zeros(shape)
        integral = [i for i, pool in enumerate(self._pools) if pool.kind != "none"]
        seconds = update.seconds
        if seconds is not None:
            for i in integral:
                self._refill(i, seconds, float(cluster.pool_ratios[i]))
        if integral:
            self._measure()
            self._distribute()

    def ratio(self, pool: int) -> float:
        """What part of the cluster the volume of ``pool`` lasts for, over the smooth period."""
        some = self._total > 0
        if not some.any():
            return 0.0
        units, total = (self.accumulated[pool] / self._grains)[some], (self._total / self._grains)[some]
        return float((units / total).min()) / (self._situation.config.settings.shares.smooth_period / SECOND)

    def amounts(self, pool: int) -> dict[str, float]:
        """The volume of ``pool``: unit-seconds by resource."""
        units = (self.accumulated[pool] / self._grains).tolist()
        return self._situation.cluster.pool_volumes[pool] | dict(zip(self._situation.resources, units, strict=True))

    def _whole(self, volume: Floats) -> Floats:
        """Cpu in whole grains."""
        if self._cpu is not None:
            volume[..., self._cpu] = rounded(volume[..., self._cpu])
        return volume

    def _refill(self, i: int, seconds: float, spent: float) -> None:
        old = self.accumulated[i].copy()
        flow = rounded(self._total * self._flow[i])
        saturation = self._situation.config.settings.shares.saturation_period / SECOND
        capacity = self._whole(flow * saturation)
        passed = self._whole(self._total * seconds)
        new = old + self._whole(passed * self._flow[i]) - self._whole(passed * spent)
        new = np.maximum(new, 0.0)
        most = np.maximum(old, capacity)
        self._overflow[i] = np.maximum(new - most, 0.0)
        if self._pools[i].accept:
            self._acceptable[i] = np.maximum(capacity - new, 0.0)
        self.accumulated[i] = np.minimum(new, most)

    def _measure(self) -> None:
        """Bottom-up: what flows over below each pool without a guarantee of its own, and what could be taken there."""
        tree = self._situation.config.tree
        for i in reversed(tree.top_down):
            if self._pools[i].kind != "none":
                continue
            takes = np.zeros_like(self._total)
            for child in tree.children[i]:
                self._spilt[i] += self._overflow[child]
                takes += self._acceptable[child]
            left = self._spilt[i] - takes
            self._overflow[i] = np.maximum(left, 0.0)
            if self._pools[i].accept:
                self._acceptable[i] = np.maximum(-left, 0.0)

    def _distribute(self) -> None:
        """Top-down: what flows over to those that can take it; not at the root, nor below a guarantee."""
        tree = self._situation.config.tree
        settled = {ROOTLESS: False}
        for i in tree.top_down:
            own = self._pools[i].kind != "none"
            above = settled[tree.parent[i]]
            settled[i] = own or above
            if own and not above:
                self.accumulated[i] += self._accepted[i]
            elif not above and self._shares_out(i):
                free = self._accepted[i] + self._spilt[i]
                for r in np.flatnonzero(free).tolist():
                    self._share_out(tree.children[i], r, float(free[r]))

    def _shares_out(self, i: int) -> bool:
        own = self._pools[i].distribute
        return self._situation.config.settings.shares.distribute_volume if own is None else own

    def _share_out(self, children: list[int], r: int, free: float) -> None:
        """Those that can take less than their part first, all they can; the others by their flow."""
        hungry = [
            child for child in children if self._acceptable[child, r] > EPSILON and self._total_flow[child] > EPSILON
        ]
        weight = 0.0
        for child in hungry:
            weight += float(self._total_flow[child])
        # In units, not grains: the origin's doubles, to the last bit.
        hungry.sort(key=lambda child: self._acceptable[child, r] / self._grains[r] / self._total_flow[child])
        for k, child in enumerate(hungry):
            part = self._counted(free, float(self._total_flow[child]) / weight, r)
            takes = float(self._acceptable[child, r])
            if part < takes:
                for other in hungry[k:]:
                    self._accepted[other, r] = self._counted(free, float(self._total_flow[other]) / weight, r)
                return
            self._accepted[child, r] = takes
            free -= takes
            weight -= float(self._total_flow[child])

    def _counted(self, free: float, part: float, r: int) -> float:
        """A part of ``free`` grain-seconds, cpu in whole ones."""
        grain = float(self._grains[r])
        amount = free / grain * part
        return float(rounded(np.array(amount * grain))) if r == self._cpu else amount


def estimated_guarantees(situation: Situation, strong: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Shares of operations and of pools (the root last), given guarantees and weights of pools.

    What each could count on if everybody wanted all: its guarantee, and by weight what its pool has left
    (``ComputeEstimatedGuaranteeShare``, ``fair_share_update.cpp``); output only."""
    root, parent, above = situation.root, situation.parent, situation.operation_parent
    own = situation.operations.weight
    weights = np.bincount(np.concatenate((parent[:root], above)), np.concatenate((weight[:root], own)), root + 1)
    out = np.zeros_like(strong)
    out[root] = strong[root]
    left = strong.copy()
    for level in by_level(situation.depth):
        rows = level[np.argsort(parent[level], kind="stable")]
        bounds = np.append(np.flatnonzero(np.diff(parent[rows], prepend=-1)), len(rows))
        before = running_sums(strong[rows], bounds)
        given = np.clip(out[parent[rows]] - before, 0.0, strong[rows])
        left = out - sums_of(given, parent[rows], root + 1)
        out[rows] = given + left[parent[rows]] * (weight[rows] / weights[parent[rows]])[:, None]
    left = out - sums_of_children(situation, strong, out)
    return left[above] * (own / weights[above])[:, None], out


def sums_of_children(situation: Situation, strong: Floats, estimated: Floats) -> Floats:
    """By pool, how much of its estimate its pools' guarantees take."""
    rows = np.arange(situation.root)
    guaranteed = sums_of(strong[rows], situation.parent[rows], situation.root + 1)
    return np.minimum(guaranteed, estimated)
