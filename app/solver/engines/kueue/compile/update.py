"""The next version of a compiled state, given what a delta changed: what it did not touch is kept as it is."""

import numpy as np

from app.solver.delta import Changes
from app.solver.engines.kueue.compile.configuration import Configured
from app.solver.engines.kueue.compile.quota import Usage
from app.solver.engines.kueue.compile.state import Loaded, load, refuse_cohorts
from app.solver.model.state import State

_LARGE = 4


def update(loaded: Loaded, configured: Configured, state: State, changes: Changes) -> Loaded:
    """Equal to ``load(configured, state)``. Raises what that raises; ``loaded`` is not changed.

    Where the delta touches a good part of the state, or usage that no quota covers, it is compiled anew."""
    if configured is not loaded.configured or loaded.quotas is not configured.quotas:
        return load(configured, state)
    if len(changes.workloads) * _LARGE > len(loaded.workloads):
        return load(configured, state)
    workloads, index = state.workloads, configured.tree.index
    gone = np.unique(np.array([at for at, _, new in changes.workloads if at >= 0 and new is None], dtype=np.int64))
    kept = np.unique(np.array([at for at, _, new in changes.workloads if at >= 0 and new is not None], dtype=np.int64))
    added = len(workloads) - (len(loaded.workloads) - len(gone))
    changed = (kept - np.searchsorted(gone, kept)).tolist()
    fresh = [*changed, *range(len(workloads) - added, len(workloads))]
    queue = np.concatenate((np.delete(loaded.queue, gone), np.zeros(added, dtype=np.int64)))
    priority = np.concatenate((np.delete(loaded.priority, gone), np.zeros(added, dtype=np.int64)))
    shape = np.concatenate((np.delete(loaded.shape, gone), np.zeros(added, dtype=np.int64)))
    if fresh:
        queue[fresh] = [index[workloads[i].queue] for i in fresh]
        priority[fresh] = [workloads[i].priority for i in fresh]
    refuse_cohorts(configured, queue[fresh], fresh)
    leaving = np.concatenate((gone, kept))
    out = Loaded(
        configured, workloads, queue, priority,
        evicted=_marked(loaded.evicted, leaving, gone) | {i for i in fresh if workloads[i].evicted},
        protected=_marked(loaded.protected, leaving, gone) | {i for i in fresh if not workloads[i].preemptible},
    )  # fmt: skip
    nodes = frozenset([None, *(node.name for node in state.nodes)]) if changes.nodes else loaded.shapes.nodes
    out.shapes = loaded.shapes.copy(nodes)
    if fresh:
        shape[fresh] = out.shapes.column([workloads[i] for i in fresh], queue[fresh].tolist(), fresh)
    out.shape = shape
    wanted = {(int(queue[i]), fr) for i in fresh for fr, _ in out.amounts(i)}
    if len(out.shapes.frs) > len(configured.quotas.frs) or configured.quotas.missing(wanted):
        return load(configured, state)
    out.quotas = configured.quotas
    usage = Usage(out.quotas, loaded.used.copy())
    for i in leaving.tolist():
        usage.remove(int(loaded.queue[i]), loaded.amounts(i))
    for i in fresh:
        usage.add(int(queue[i]), out.amounts(i))
    out.used = usage.used
    if loaded.places is not None:
        out.places = loaded.places.moved(leaving, workloads, priority, fresh)
    out.settled_as(loaded)
    return out


def _marked(old: frozenset[int], leaving: np.ndarray, gone: np.ndarray) -> frozenset[int]:
    """Indices of marked workloads that stay, at their new places."""
    if not old:
        return old
    marked = np.setdiff1d(np.fromiter(old, dtype=np.int64, count=len(old)), leaving)
    return frozenset((marked - np.searchsorted(gone, marked)).tolist())
