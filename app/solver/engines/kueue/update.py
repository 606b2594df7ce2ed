"""The next version of a compiled state, given what a delta changed: what it did not touch is kept as it is."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.quota import Usage
from app.solver.engines.kueue.state import CompiledState, compile_state, local_queues_of, refuse_cohorts, rooms_of
from app.solver.engines.kueue.state import leaving as leaves
from app.solver.model.state import State, Workload

_LARGE = 4
_FEW = 16
"""So many go that what lies between them is best taken as it is."""
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Workloads by what the delta did to them. Old indices, ascending: ``gone``, and ``kept``, which are another now;
    new indices: ``fresh``, of those that are another or new. ``added``: how many are new."""

    gone: Indices
    kept: Indices
    added: int
    fresh: list[int]

    @staticmethod
    def of(before: int, after: int, changes: Changes) -> "_Rows":
        """``before``, ``after``: how many there were and are."""
        gone = _ascending(at for at, _, new in changes.workloads if at >= 0 and new is None)
        changed = _ascending(at for at, _, new in changes.workloads if at >= 0 and new is not None)
        added = after - (before - len(gone))
        moved = (changed - np.searchsorted(gone, changed)).tolist()
        return _Rows(gone, changed, added, [*moved, *range(after - added, after)])

    @property
    def leaving(self) -> Indices:
        """Old indices of all that are no longer what they were."""
        return np.concatenate((self.gone, self.kept))

    def column(self, old: Indices) -> Indices:
        """A column of the next version; what is fresh is still to be filled in."""
        stays, at = list[Indices](), 0
        for gone in self.gone.tolist() if len(self.gone) <= _FEW else ():
            stays.append(old[at:gone])
            at = gone + 1
        stays.append(old[at:] if len(self.gone) <= _FEW else np.delete(old, self.gone))
        return np.concatenate((*stays, np.zeros(self.added, dtype=np.int64)))


def _ascending(indices: Iterable[int]) -> Indices:
    return np.array(sorted(set(indices)), dtype=np.int64)


def update(
    before: CompiledState, configuration: CompiledConfiguration, state: State, changes: Changes
) -> CompiledState:
    """Equal to ``compile_state(configuration, state)``. Raises what that raises; ``before`` is not changed.

    Where the delta touches a good part of the state, or usage that no quota covers, it is compiled anew."""
    if configuration is not before.configuration or before.quotas is not configuration.quotas:
        return compile_state(configuration, state)
    if len(changes.workloads) * _LARGE > len(before.workloads):
        return compile_state(configuration, state)
    workloads = state.workloads
    rows = _Rows.of(len(before.workloads), len(workloads), changes)
    out = _columns(before, workloads, rows)
    nodes = frozenset([None, *(node.name for node in state.nodes)]) if changes.nodes else before.shapes.nodes
    fresh = rows.fresh
    out.shapes, out.shape = before.shapes.copy(nodes), rows.column(before.shape)
    if fresh:
        out.shape[fresh] = out.shapes.column([workloads[i] for i in fresh], out.queue[fresh], fresh)
    wanted = {(int(out.queue[i]), fr) for i in fresh for fr, _ in out.amounts(i)}
    if len(out.shapes.frs) > len(configuration.quotas.frs) or configuration.quotas.missing(wanted):
        return compile_state(configuration, state)
    out.quotas = configuration.quotas
    out.used = _used(before, out, rows)
    if before.rooms is None or changes.nodes:
        out.rooms = rooms_of(configuration, state)
    else:
        leaving: list[int] = rows.leaving.tolist()
        out.rooms = before.rooms.moved([before.workloads[i] for i in leaving], [workloads[i] for i in fresh])
    out.local_queues = local_queues_of(state) if changes.rest else before.local_queues
    if before.places is not None:
        out.places = before.places.moved(rows.leaving, workloads, out.priority, fresh)
    out.settled_as(before)
    out.costs_as(before, fresh)
    return out


def _columns(before: CompiledState, workloads: list[Workload], rows: _Rows) -> CompiledState:
    """The next version as far as it does not depend on what workloads use. Raises InvalidInput, KeyError."""
    configuration, fresh = before.configuration, rows.fresh
    queue, priority = rows.column(before.queue), rows.column(before.priority)
    if fresh:
        queue[fresh] = [configuration.tree.index[workloads[i].queue] for i in fresh]
        priority[fresh] = [workloads[i].priority for i in fresh]
    refuse_cohorts(configuration, queue[fresh], fresh)
    leaving = rows.leaving
    return CompiledState(
        configuration, workloads, queue, priority,
        evicted=_marked(before.evicted, leaving, rows.gone) | {i for i in fresh if leaves(workloads[i])},
        protected=_marked(before.protected, leaving, rows.gone) | {i for i in fresh if not workloads[i].preemptible},
    )  # fmt: skip


def _used(before: CompiledState, after: CompiledState, rows: _Rows) -> list[int]:
    """Usage by cell: what left taken off, what is fresh added."""
    usage = Usage(after.quotas, before.used.copy())
    for i in rows.leaving.tolist():
        usage.remove(int(before.queue[i]), before.amounts(i))
    for i in rows.fresh:
        usage.add(int(after.queue[i]), after.amounts(i))
    return usage.used


def _marked(old: frozenset[int], leaving: np.ndarray, gone: np.ndarray) -> frozenset[int]:
    """Indices of marked workloads that stay, at their new places."""
    stay = old.difference(leaving.tolist())
    if not stay or not len(gone):
        return stay
    marked = np.fromiter(stay, dtype=np.int64, count=len(stay))
    return frozenset((marked - np.searchsorted(gone, marked)).tolist())
