"""Guarantees of pools: strong ones as given, inferred and made to fit; integral ones as the share they give now.

The rules are those of ``yt/yt/library/vector_hdrf/fair_share_update.cpp``, in its order of operations. Rows are pools
in document order, the root last; columns are resources; shares are parts of the cluster.

A pool with an integral one gains its flow, spends it as integral share and keeps what flows in within the saturation
period; the rest goes to others (``resource_volume.cpp``). In grain-seconds: hundredths of cpu, units of all else.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.solver.compiled import ROOTLESS
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration, nested_promises, without_donor
from app.solver.engines.ytsaurus.curves import EDGE
from app.solver.engines.ytsaurus.operations import Flags, Floats, Ints, add_upwards, any_of, by_level, quotients
from app.solver.engines.ytsaurus.polyline import EPSILON, in_order, largest, rounded, sums_of
from app.solver.engines.ytsaurus.reading import SECOND, Steps
from app.solver.engines.ytsaurus.situation import Situation
from app.solver.model.problems import InvalidInput, Problem

OVERCOMMITTED, NESTED_PROMISES, NO_DONOR = 29000, 29001, 29002
"""The origin's error codes (``yt/yt/library/vector_hdrf/public.h``)."""


@dataclass(frozen=True, slots=True)
class Update:
    """When fair shares are updated, and when they were before (None: volumes are as carried); microseconds."""

    now: int = 0
    last: int | None = None

    @property
    def seconds(self) -> float | None:
        """How much time went by; None: volumes are as carried. Raises InvalidInput for a negative one."""
        if self.last is not None and self.last > self.now:
            late = Problem(pointer="/options/ytsaurus/last_update_at", detail="later than the update that is asked for")
            raise InvalidInput([late])
        return None if self.last is None else (self.now - self.last) / SECOND


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


@dataclass(frozen=True, slots=True)
class Specified:
    """What the configuration promises of this cluster, before it is made to fit.

    ``amounts``: strong guarantees in whole units, with the inferred ones; ``strong``: the same as shares, the root's
    is the sum of the first level; ``burst``, ``flow``: ratios; ``total_flow``: with the pools below."""

    amounts: Floats
    strong: Floats
    burst: Floats
    flow: Floats
    total_burst: Floats
    total_flow: Floats


@dataclass(frozen=True, slots=True)
class Fitted:
    """``strong``: guarantees that fit; ``burst``: ratios that do; ``alerts``: the origin's error codes, ascending."""

    strong: Floats
    burst: Floats
    alerts: list[int]


def to_shares(amounts: Floats, total: Floats) -> Floats:
    """Amounts as parts of the cluster; 0 where the cluster has none."""
    return quotients(amounts, total, total > 0, 0.0)


def specified(situation: Situation) -> Specified:
    """What the configuration promises."""
    config, total = situation.config, situation.total
    amounts = _inferred(situation)
    strong = to_shares(amounts, total)
    first = np.flatnonzero(situation.depth == 0)
    strong[situation.root] = in_order(strong[first])
    burst = _ratios(situation, [pool.shares.integral.burst for pool in config.pools])
    flow = _ratios(situation, [pool.shares.integral.flow for pool in config.pools])
    return Specified(amounts, strong, burst, flow, _with_children(situation, burst), _with_children(situation, flow))


def _ratios(situation: Situation, given: list[Steps]) -> Floats:
    """The largest part of the cluster that each pool's map is, in some resource."""
    out = np.zeros(situation.root + 1)
    if any(given):
        shares = to_shares(_units(situation, given)[0], situation.total)
        out[: situation.root] = shares.max(axis=1)
    return out


def _with_children(situation: Situation, own: Floats) -> Floats:
    out = own.copy()
    if own.any():
        add_upwards(out, situation.parent, situation.depth)
    return out


def _units(situation: Situation, given: list[Steps]) -> tuple[Floats, Flags]:
    """Resource maps in whole units, and which resources they name."""
    names, scales = situation.cluster.index.index, situation.cluster.index.scales
    out = np.zeros((len(given), len(names)))
    known = np.zeros(out.shape, bool)
    for i, row in enumerate(given):
        for name, value in row.items():
            r = names[name]
            out[i, r], known[i, r] = value / scales[r], True
    return out, known


def _inferred(situation: Situation) -> Floats:
    """Every pool's strong guarantee in whole units. The root's is the cluster.

    A resource that a pool leaves out follows its main resource: the same part of what its parent has. Where the
    inferred parts of one parent exceed what the given ones leave over, they shrink together (not at the root,
    where guarantees may be promised twice and are cut as shares). The origin keeps whole units: what is inferred is
    truncated, cpu rounded to hundredths, before the next level looks at it.
    """
    config = situation.config
    given, known = _units(situation, config.guaranteed)
    names = situation.cluster.index.index
    main = names[config.settings.main_resource]
    out = np.concatenate((given, situation.total[None, :]))
    cpu = names.get("cpu")
    for rows in by_level(situation.depth):
        inferred = _infer(out, rows, situation.parent[rows], known[rows], main, situation.root)
        whole = np.trunc(inferred)
        if cpu is not None:
            whole[:, cpu] = rounded(inferred[:, cpu] * 100) / 100
        out[rows] = np.where(known[rows], out[rows], whole)
    return out


def _infer(out: Floats, rows: Ints, parent: Ints, known: Flags, main: int, root: int) -> Floats:
    n = len(out)
    own, above = out[rows], out[parent]
    ratio = quotients(own[:, main], above[:, main], above[:, main] > 0, 0.0)
    inferred = np.where(known, 0.0, ratio[:, None] * above)
    if parent[0] != root:
        left = np.maximum(out - sums_of(np.where(known, own, 0.0), parent, n), 0.0)
        claimed = sums_of(inferred, parent, n)
        factor = quotients(left, claimed, claimed > left, 1.0)
        inferred = inferred * factor[parent]
    return inferred


def depth_first(config: CompiledConfiguration, kind: str) -> list[int]:
    """Pools with an integral guarantee of this ``kind``, each before those below it."""
    pending = list(reversed(config.tree.roots))
    out: list[int] = []
    while pending:
        pool = pending.pop()
        pending += reversed(config.tree.children[pool])
        if config.pools[pool].shares.integral.kind == kind:
            out.append(pool)
    return out


def fitted(situation: Situation, of: Specified, limits: Floats) -> Fitted:
    """Make guarantees fit: the cluster, then top-down each parent's own and the pool's limits."""
    strong, burst = of.strong.copy(), of.burst.copy()
    overcommitted = _exceeds(situation, of.amounts, of.total_burst)
    if overcommitted:
        pools = depth_first(situation.config, "burst")

        def fits(factor: float) -> bool:
            parts = np.broadcast_to((burst[pools] * factor)[:, None], (len(pools), strong.shape[1]))
            return bool((in_order(np.concatenate((strong[-1:] * factor, parts))) <= 1.0).all())

        factor = largest(fits, 0.0, 1.0)
        strong[situation.root] *= factor
        burst[pools] *= factor
    orphans = without_donor(situation.config)
    tiers = _tiers(situation, strong, orphans)
    strong[situation.root] = np.minimum(strong[situation.root], limits[situation.root])
    for rows in by_level(situation.depth):
        strong[rows] = np.minimum(_adjusted(strong, tiers, rows, situation.parent[rows]), limits[rows])
    alerts = {
        OVERCOMMITTED: overcommitted or _exceeds(situation, of.amounts, of.total_flow),
        NESTED_PROMISES: bool(nested_promises(situation.config)),
        NO_DONOR: bool(orphans),
    }
    return Fitted(strong, burst, [code for code, holds in alerts.items() if holds])


def _exceeds(situation: Situation, amounts: Floats, totals: Floats) -> bool:
    """Whether the first level's guarantees and a ratio of the cluster are more than the cluster, in whole steps."""
    scales = np.array(situation.cluster.index.scales)
    steps = rounded(amounts[np.flatnonzero(situation.depth == 0)] * scales).sum(axis=0)
    grains = np.array([100 if name == "cpu" else 1 for name in situation.resources])
    ratio = rounded(situation.total * grains * totals[situation.root]) / grains
    return bool((steps + rounded(ratio * scales) > situation.total * scales).any())


def _tiers(situation: Situation, strong: Floats, orphans: set[int]) -> tuple[Floats, Floats] | None:
    """What of each guarantee is in the tier that is cut last, and the rest; None: nothing is.

    A priority pool's is, up to the nearest donor above (``ComputeStrongGuaranteeShareByTier``)."""
    pools = [pool.shares for pool in situation.config.pools]
    if not any(pool.priority for pool in pools):
        return None
    tree = situation.config.tree
    first = np.zeros_like(strong)
    rest = strong.copy()
    for i in reversed(tree.top_down):
        if pools[i].priority and i not in orphans:
            first[i], rest[i] = strong[i], 0.0
        elif not pools[i].donor:
            first[i] = in_order(first[tree.children[i]])
            rest[i] = strong[i] - first[i]
    return first, rest


def _adjusted(strong: Floats, tiers: tuple[Floats, Floats] | None, rows: Ints, parent: Ints) -> Floats:
    """Guarantees of ``rows`` cut to what their parents have, the first tier before the second."""
    if tiers is None:
        return _cut(strong, strong[rows], parent)[0]
    first, over = _cut(strong, tiers[0][rows], parent)
    taken = sums_of(first, parent, len(strong))
    rest, _ = _cut(strong - taken, tiers[1][rows], parent)
    return first + np.where(over[parent][:, None], 0.0, rest)


def _cut(available: Floats, parts: Floats, parent: Ints) -> tuple[Floats, Flags]:
    """``parts`` of each parent, all times the largest factor that fits; and whose did not fit as they are."""
    available = np.maximum(available, 0.0)
    over = any_of(sums_of(parts, parent, len(available)) > available)
    out = parts.copy()
    for p in np.flatnonzero(over).tolist():
        rows = np.flatnonzero(parent == p)
        own, most = parts[rows], available[p]
        factor = largest(lambda f, own=own, most=most: bool((in_order(own * f) <= most).all()), 0.0, 1.0)
        out[rows] = own * factor
    return out, over


def pool_weights(config: CompiledConfiguration, parent: Ints, strong: Floats, total_flow: Floats) -> Floats:
    """Weights of the pools, the root's last: as given, else inferred from guarantees where asked for, else 1."""
    multiplier = config.settings.infer_weight
    most = strong.max(axis=1) + total_flow
    out = np.ones(len(strong))
    for i, given in enumerate(config.weights):
        if given is not None:
            out[i] = given
        elif multiplier is not None and most[i] >= EPSILON and most[parent[i]] >= EPSILON:
            out[i] = most[i] * multiplier / most[parent[i]]
    return out


def granted(situation: Situation, limits: Floats) -> tuple[Specified, Fitted, Floats]:
    """What the configuration promises, what of it fits, and the weights of pools: the same until nodes change."""
    config, cluster = situation.config, situation.cluster
    key = (config, cluster.index, cluster.total, limits)
    known: tuple[Specified, Fitted, Floats] | None = cluster.recent.get("promises", key)
    if known is None:
        of = specified(situation)
        fit = fitted(situation, of, limits)
        known = of, fit, pool_weights(config, situation.parent, fit.strong, of.total_flow)
        cluster.recent.put("promises", key, known)
    return known


_MOST_STEPS = 32


class Functions(Protocol):
    """What elements take of suggestions: ``pool_curves.LevelCurves`` and ``exact.Exact``."""

    def prepare(self, top: int, guarantee: Floats, limits: Floats) -> None: ...

    def taken(self, pools: Ints, suggestions: Floats) -> Floats: ...

    def forget(self, pool: int) -> None: ...

    def divided(self, tops: Ints, suggestion: float) -> tuple[Floats, Floats]: ...


class IntegralShares:
    """The share that pools get now for the volume they have saved: burst pools one by one, depth first; then relaxed
    pools together, by volume, of what guarantees leave over (``UpdateBurstPoolIntegralShares``,
    ``UpdateRelaxedPoolIntegralShares``).

    ``proposed``: shares by pool, with those of the pools below, the root's is 0; ``ratios``: what each pool spends
    from now on; ``close``: whether some come so near to a limit, or to what there is, that the last bits may decide
    whether they exceed it."""

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
        self.close = False

    def propose(self, burst: Floats, flow: Floats, demand: Floats) -> None:
        """``burst``, ``flow``: ratios by pool; ``demand``: shares."""
        for pool in depth_first(self._situation.config, "burst"):
            self._burst(pool, float(burst[pool]))
        relaxed = {pool: self._volumes.ratio(pool) for pool in depth_first(self._situation.config, "relaxed")}
        relaxed = {pool: ratio for pool, ratio in relaxed.items() if ratio != 0}
        if relaxed:
            self._relaxed(relaxed, flow, demand)

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

        given = shares(largest(lambda fit: bool((in_order(shares(fit)) <= available).all()), 0.0, 1.0))
        self._look(in_order(given), available)
        for pool, share in zip(pools, given, strict=True):
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
        strong, limits = self._strong[pool], self._limits[pool]
        self._look(strong + proposed, limits)
        return fitting(proposed, strong, limits)

    def _look(self, share: Floats, bound: Floats) -> None:
        near = (np.abs(share - bound) <= EDGE) & (share > EDGE)
        self.close = self.close or bool(near.any())


def fitting(proposed: Floats, strong: Floats, limits: Floats) -> Floats:
    """``proposed``, with the last bits such that with ``strong`` it does not exceed ``limits``; where it does, all
    resources take what the limits leave (YTsaurus: ``AdjustProposedIntegralShare``)."""
    if (strong + proposed <= limits).all():
        return proposed
    out: Floats = np.maximum(limits - strong, 0.0)
    for _ in range(_MOST_STEPS):
        out = np.where(strong + out > limits, np.nextafter(out, np.zeros_like(out)), out)
    return out
