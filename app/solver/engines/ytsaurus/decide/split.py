"""The three groups of an operation's allocations: non-preemptible, aggressively preemptible, preemptible.

Allocations are taken oldest first. Each stays in the current group while what the earlier ones use (with
consider_allocation_on_fair_share_bound_preemptible: the earlier ones and itself) is below the operation's protected
amount, or its share below the group's part of the fair share; groups only go up.
"""

from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints, all_of, any_of
from app.solver.engines.ytsaurus.compile.operations import Levels
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import FairShares
from app.solver.engines.ytsaurus.decide.fair_share.guarantees import to_shares
from app.solver.engines.ytsaurus.decide.satisfaction import EPSILON, blocked, strictly_dominates
from app.solver.engines.ytsaurus.decide.situation import Situation

NON_PREEMPTIBLE, AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE = 0, 1, 2
GROUPS = ("non_preemptible", "aggressively_preemptible", "preemptible")


@dataclass(frozen=True, slots=True)
class Bounds:
    """By operation: up to which share its allocations are protected. ``upper`` is infinite where the fair share
    equals the demand: then nothing is plainly preemptible."""

    lower: Floats
    upper: Floats
    is_blocked: Flags


def bounds(situation: Situation, shares: FairShares) -> Bounds:
    """Bounds from the published fair shares."""
    settings = situation.config.settings
    gap = np.abs(shares.fair - shares.demand)
    satisfied = all_of(gap <= EPSILON) & any_of(shares.demand > EPSILON)
    return Bounds(
        lower=shares.fair * settings.aggressive_threshold,
        upper=np.where(satisfied[:, None], np.inf, shares.fair * settings.threshold),
        is_blocked=blocked(shares.fair, shares.demand),
    )


def groups(situation: Situation, limits: Bounds, rows: Ints) -> Levels:
    """Groups of the allocation ``rows``: all that run of some operations, by operation and then oldest first."""
    if not len(rows):
        return np.zeros(0, np.int8)
    cluster, operations = situation.cluster, situation.operations
    operation, usage = cluster.allocations.operation[rows], cluster.allocations.usage[rows]
    first = np.ones(len(rows), bool)
    first[1:] = operation[1:] != operation[:-1]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    until = np.cumsum(usage, axis=0)
    before = until - usage
    before -= before[begin]
    on_bound = situation.config.settings.bound_allocation_preemptible
    amount = before + usage if on_bound else before
    counted = to_shares(amount.astype(float), cluster.total)
    protected = operations.protects[operation] & all_of(amount < operations.non_preemptible[operation])
    closed = limits.is_blocked[operation]
    own = np.where(
        protected | _stays(limits.lower[operation], counted, closed, on_bound), NON_PREEMPTIBLE,
        np.where(_stays(limits.upper[operation], counted, closed, on_bound), AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE),
    )  # fmt: skip
    # A running maximum within each operation: once left, a group is not entered again.
    rank = np.cumsum(first) * (PREEMPTIBLE + 1)
    return (np.maximum.accumulate(rank + own) - rank).astype(np.int8)


def _stays(bound: Floats, counted: Floats, closed: Flags, on_bound: bool) -> Flags:
    below = strictly_dominates(bound, counted, closed)
    if not on_bound:
        return below
    return below | all_of(np.abs(bound - counted) <= EPSILON)
