"""What is settled before the first heartbeat: shares, groups of allocations, who may preempt whom, who may run where.

Every heartbeat reads it and none changes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.fair_shares import Due, due_shares
from app.solver.engines.ytsaurus.guarantees import to_shares
from app.solver.engines.ytsaurus.operations import Flags, Floats, Ints, Levels, all_of, any_of
from app.solver.engines.ytsaurus.reading import has_labels
from app.solver.engines.ytsaurus.situation import Situation, admitting, situate
from app.solver.engines.ytsaurus.starvation import (
    EPSILON,
    blocked,
    local_satisfaction,
    operation_below,
    strictly_dominates,
)
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model.state import Ask

NON_PREEMPTIBLE, AGGRESSIVELY_PREEMPTIBLE, PREEMPTIBLE = 0, 1, 2
GROUPS = ("non_preemptible", "aggressively_preemptible", "preemptible")


@dataclass(frozen=True, slots=True)
class Bounds:
    """By operation: up to which share its allocations are protected. ``upper`` is infinite where the fair share
    equals the demand: then nothing is plainly preemptible."""

    lower: Floats
    upper: Floats
    is_blocked: Flags


def bounds(situation: Situation, shares: Due) -> Bounds:
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
    """Groups of the allocation ``rows``: all that run of some operations, by operation and then oldest first.

    Each stays in the current group while what the earlier ones use (with
    consider_allocation_on_fair_share_bound_preemptible: the earlier ones and itself) is below the operation's protected
    amount, or its share below the group's part of the fair share; groups only go up."""
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


NO_PRIORITY, NORMAL, AGGRESSIVE = 0, 1, 2


def priorities(situation: Situation) -> Levels:
    """Preemption priority of each operation: its own starvation and, unless the scope forbids, its pools'."""
    own = situation.operations.starvation
    if situation.config.settings.scope == "operation_only":
        return own
    above = situation.cluster.pool_starvation.copy()
    for pool in situation.config.tree.top_down:
        parent = situation.parent[pool]
        if parent != situation.root:
            above[pool] = max(above[pool], above[parent])
    return np.maximum(own, above[situation.operations.pool])


def aggressive_allowed(situation: Situation) -> Flags:
    """Whose aggressively preemptible allocations may be taken: by pool, and for gangs by the tree's setting."""
    allowed = situation.config.columns.allow_aggressive
    gangs = situation.operations.gang & (not situation.config.settings.allow_gang)
    return allowed[situation.operations.pool] & ~gangs


def levels(group: Levels, allowed: Flags) -> Levels:
    """Preemption level of allocations: the group, but protected where aggressive preemption is not allowed."""
    spared = (group == AGGRESSIVELY_PREEMPTIBLE) & ~allowed
    return np.where(spared, NON_PREEMPTIBLE, group).astype(np.int8)


def takeable(situation: Situation) -> Flags:
    """Operations whose allocations may be victims at all: neither graceful nor, by default, starving themselves."""
    operations = situation.operations
    starving = (operations.starvation > 0) & (not situation.config.settings.allow_from_starving)
    return ~operations.graceful & ~starving


def normally_takeable(situation: Situation) -> Flags:
    """Operations below no pool that switches normal preemption off."""
    allowed = situation.config.columns.allow_normal
    return allowed[situation.operations.pool]


@dataclass(frozen=True, slots=True)
class Feasible:
    """Where each want may run. ``anywhere``: no restriction; ``on``: restricted wants that a node serves."""

    anywhere: Flags
    on: dict[int, Ints]


@dataclass(frozen=True, slots=True)
class Prepared:
    """``group``, ``level``: of allocations. ``priority``, ``gentle`` (aggressive preemption allowed), ``takeable``,
    ``rank`` (in a depth-first walk): of operations; ``active``: which may start anything. ``shapes``: distinct needs,
    ``shape_of`` each want. ``node_usage``: by node; ``spare``: what a node must have left for scheduling to go on."""

    situation: Situation
    shares: Due
    bounds: Bounds
    is_blocked: Flags
    satisfaction: Floats
    group: Levels
    level: Levels
    priority: Levels
    gentle: Flags
    takeable: Flags
    normally_takeable: Flags
    active: Flags
    rank: Ints
    shapes: Ints
    shape_of: Ints
    feasible: Feasible
    node_usage: Ints
    spare: Ints


def prepare(cluster: CompiledState, asks: Sequence[Ask]) -> Prepared:
    """Prepare heartbeats on ``cluster`` with pending ``asks``. Raises InvalidInput."""
    situation = situate(cluster, asks)
    cluster = situation.cluster
    shares = due_shares(situation)
    limits = bounds(situation, shares)
    group = groups(situation, limits, np.arange(len(cluster.allocations)))
    operations = situation.operations
    gentle = aggressive_allowed(situation)
    content = operations.graceful & ~operation_below(situation, shares)
    shapes, shape_of = np.unique(situation.wants.need, axis=0, return_inverse=True)
    names = cluster.index.index
    spare = np.zeros(len(names), np.int64)
    for name, value in situation.config.settings.min_spare.items():
        spare[names[name]] = value
    return Prepared(
        situation=situation,
        shares=shares,
        bounds=limits,
        is_blocked=limits.is_blocked,
        satisfaction=local_satisfaction(shares.usage, shares.fair, blocked(shares.fair, shares.demand)),
        group=group,
        level=levels(group, gentle[cluster.allocations.operation]),
        gentle=gentle,
        priority=priorities(situation),
        takeable=takeable(situation),
        normally_takeable=normally_takeable(situation),
        active=~operations.suspended & ~content,
        rank=_ranks(situation),
        shapes=shapes,
        shape_of=shape_of,
        feasible=_feasible(situation, asks),
        node_usage=_node_usage(cluster),
        spare=spare,
    )


def _node_usage(cluster: CompiledState) -> Ints:
    """Usage of the allocations of each node, exactly."""
    usage = cluster.allocations.usage[cluster.on_node]
    sums = np.zeros((len(usage) + 1, usage.shape[1]), np.int64)
    np.cumsum(usage, axis=0, out=sums[1:])
    return sums[cluster.node_start[1:]] - sums[cluster.node_start[:-1]]


def _ranks(situation: Situation) -> Ints:
    """Place of each operation in a depth-first walk: below a pool first its child pools, then its operations."""
    tree = situation.config.tree
    left: list[int] = []
    stack = [(pool, False) for pool in reversed(tree.roots)]
    while stack:
        pool, done = stack.pop()
        if done:
            left.append(pool)
        else:
            stack.append((pool, True))
            stack.extend((child, False) for child in reversed(tree.children[pool]))
    order = np.empty(len(tree), np.int64)
    order[np.array(left, np.int64)] = np.arange(len(left))
    rank = np.empty(len(situation.operations), np.int64)
    rank[np.argsort(order[situation.operations.pool], kind="stable")] = np.arange(len(rank))
    return rank


def _feasible(situation: Situation, asks: Sequence[Ask]) -> Feasible:
    """Nodes by ask: feasible_nodes, required_node, node_selector and the tag filters of the pools above together."""
    cluster = situation.cluster
    wants = situation.wants
    anywhere = np.ones(len(wants), bool)
    on: dict[int, list[int]] = {}
    selected: dict[frozenset[tuple[str, str]], frozenset[str]] = {}
    admitted = admitting(cluster)
    for row in range(len(wants)):
        ask = asks[int(wants.ask[row])]
        task = ask.tasks[int(wants.task[row])]
        required = task.required_node or ask.required_node
        within = admitted[int(situation.operations.pool[wants.operation[row]])]
        if ask.feasible_nodes is None and required is None and not task.node_selector and within is None:
            continue
        anywhere[row] = False
        names: list[str] = list(cluster.node_index) if ask.feasible_nodes is None else ask.feasible_nodes
        if task.node_selector:
            key = frozenset(task.node_selector.items())
            if key not in selected:
                selected[key] = _matching(cluster, key)
            names = [name for name in names if name in selected[key]]
        for name in dict.fromkeys(names):
            if (required is None or name == required) and (within is None or name in within):
                on.setdefault(cluster.node_index[name], []).append(row)
    return Feasible(anywhere, {node: np.array(rows, np.int64) for node, rows in on.items()})


def _matching(cluster: CompiledState, selector: frozenset[tuple[str, str]]) -> frozenset[str]:
    return frozenset(node.name for node in cluster.state.nodes if has_labels(node.labels, selector))
