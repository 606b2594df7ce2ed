"""Tag filters as limits: no element can use more than the nodes have that its filter lets it run on.

An operation's filter is the ``node_selector`` of its tasks, those that run and those that are wanted; where they
differ, any of them (``ComputeSchedulingTagFilterResourceLimits``). Amounts are steps.
"""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

import numpy as np

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.ytsaurus.compile.arrays import Flags, Ints
from app.solver.engines.ytsaurus.compile.operations import UNLIMITED_STEPS
from app.solver.engines.ytsaurus.compile.state import CompiledState
from app.solver.engines.ytsaurus.compile.tags import has_labels, tags_of
from app.solver.model.state import Ask, Task, Workload

Selector = frozenset[tuple[str, str]]
_tasks, _selector = attrgetter("tasks"), attrgetter("node_selector")


def tagged(cluster: CompiledState, asks: Sequence[Ask], names: Sequence[str], operation: Ints, ask: Ints) -> Ints:
    """By operation, what the nodes of its filter have. ``names``: of the operations; ``operation``, ``ask``: of each
    want."""
    out = np.full((len(names), len(cluster.index)), UNLIMITED_STEPS, np.int64)
    workloads = cluster.state.workloads
    pending: dict[int, list[Task]] = {}
    asked_of: dict[int, int] = dict(zip(ask.tolist(), operation.tolist(), strict=True))
    for asked, row in asked_of.items():
        pending.setdefault(row, []).extend(asks[asked].tasks)
    rows = _selecting(workloads)
    rows += [row for row, tasks in pending.items() if _selects(tasks)]
    having: dict[frozenset[Selector], Ints] = {}
    for row in rows:
        running = workloads[row].tasks if row < len(workloads) else []
        selectors = frozenset(_key(task) for task in (*running, *pending.get(row, ())))
        if frozenset() not in selectors:
            if selectors not in having:
                having[selectors] = _amounts(cluster, _matching(cluster, selectors))
            out[row] = having[selectors]
    return out


def _selecting(workloads: Sequence[Workload]) -> list[int]:
    """Rows of those with a selector. Clusters without any are seen to be so in a tenth of the time."""
    if not any(map(_selector, chain.from_iterable(map(_tasks, workloads)))):
        return []
    return [row for row, workload in enumerate(workloads) if _selects(workload.tasks)]


def _selects(tasks: Sequence[Task]) -> bool:
    return any([task.node_selector for task in tasks])  # noqa: C419  # half the time, and a cluster has 100,000


def pool_tagged(cluster: CompiledState) -> Ints:
    """By pool, what the nodes of its ``scheduling_tag_filter`` have."""
    filters = [pool.shares.tags for pool in cluster.config.pools]
    out = np.full((len(filters), len(cluster.index)), UNLIMITED_STEPS, np.int64)
    if any(filters):
        tags = [tags_of(node.labels) for node in cluster.state.nodes]
        for i, formula in enumerate(filters):
            if formula is not None:
                out[i] = _amounts(cluster, np.array([formula.holds(of) for of in tags], bool))
    return out


def admitting(cluster: CompiledState) -> list[frozenset[str] | None]:
    """By pool, the nodes that its filter and those of the pools above admit; None: every node."""
    tree, pools = cluster.config.tree, cluster.config.pools
    out: list[frozenset[str] | None] = [None] * len(tree)
    for i in tree.top_down:
        above = None if tree.parent[i] == ROOTLESS else out[tree.parent[i]]
        formula = pools[i].shares.tags
        out[i] = above
        if formula is not None:
            own = frozenset(node.name for node in cluster.state.nodes if formula.holds(tags_of(node.labels)))
            out[i] = own if above is None else own & above
    return out


def _key(task: Task) -> Selector:
    return frozenset((task.node_selector or {}).items())


def _matching(cluster: CompiledState, selectors: frozenset[Selector]) -> Flags:
    nodes = cluster.state.nodes
    return np.array([any(has_labels(node.labels, selector) for selector in selectors) for node in nodes], bool)


def _amounts(cluster: CompiledState, nodes: Flags) -> Ints:
    return np.maximum(cluster.node_limits[nodes], 0).sum(axis=0)
