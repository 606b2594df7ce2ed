"""Everything that a heartbeat reads and no heartbeat changes: shares, groups, priorities, who may run where."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.solver.engines.ytsaurus.compile.arrays import Flags, Floats, Ints
from app.solver.engines.ytsaurus.compile.operations import Levels
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.compile.tags import has_labels
from app.solver.engines.ytsaurus.decide.fair_share.fair_shares import FairShares, fair_shares
from app.solver.engines.ytsaurus.decide.priority import (
    aggressive_allowed,
    levels,
    normally_takeable,
    priorities,
    takeable,
)
from app.solver.engines.ytsaurus.decide.satisfaction import blocked, local_satisfaction
from app.solver.engines.ytsaurus.decide.situation import Situation, situate
from app.solver.engines.ytsaurus.decide.split import Bounds, bounds, groups
from app.solver.engines.ytsaurus.decide.status import operation_below
from app.solver.engines.ytsaurus.decide.tag_limits import admitting
from app.solver.model.state import Ask


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
    shares: FairShares
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
    shares = fair_shares(situation)
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
