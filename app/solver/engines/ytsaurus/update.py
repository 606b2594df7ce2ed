"""The next version of a cluster, given what a delta changed.

Rows of operations and allocations that the delta does not touch are copied, those of touched operations are compiled
and spliced in. The old version is not written to: decisions run on it. Fair shares depend on everything and are no
part of a cluster: each answer works them out.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.operations import (
    Ints,
    Operations,
    compile_operations,
    pool_states,
    same_but_standing,
    standing,
)
from app.solver.engines.ytsaurus.state import (
    Allocations,
    CompiledState,
    by_node,
    compile_allocations,
    compile_state,
    config_and_nodes,
    heartbeats_left,
    names_of,
    node_limits,
    refuse_overflow,
    requests_of,
    schedulable,
    sum_of,
    total,
)
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Node, State, Workload

LARGE = 2
"""A delta that touches operations with one allocation for so many allocations and nodes is not worth following."""
MANY = 16
"""Nor is one that touches an operation for so many operations, allocations and nodes."""
_SURE = 2**61
"""Below it, amounts certainly don't add up to too much."""
_NOWHERE, _UNKNOWN = -1, -2


class _Anew(Exception):
    """Compiling the whole state is better, or the only way to say what is wrong with it."""


def update(old: CompiledState, config: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """Equal to ``compile_state(config, state)``. Raises what that raises; ``old`` is not changed."""
    try:
        return _followed(old, config, state, changes)
    except (_Anew, InvalidInput, KeyError, ValueError, OverflowError):
        return compile_state(config, state)


def _followed(old: CompiledState, config: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    size = len(old.operations) + len(old.allocations) + len(old.node_index)
    if config is not old.config or len(changes.workloads) * MANY > size:
        raise _Anew
    new = replace(old, state=state, **(pool_states(config, state) if changes.rest else {}))
    if changes.replaced is not None:
        new = _with_replaced(new, old.state.nodes, changes.replaced)
    elif changes.nodes:
        new = _with_nodes(new, old.state.nodes)
    if changes.workloads:
        return _with_operations(new, old, changes)
    _refuse_unknown(new)
    return new


def _refuse_unknown(cluster: CompiledState) -> None:
    if (cluster.allocations.node == _UNKNOWN).any():
        raise _Anew


def _with_replaced(cluster: CompiledState, before: list[Node], rows: list[int]) -> CompiledState:
    """``cluster`` with the nodes of its state, where those in ``rows`` are other than ``before`` and none came or went.

    What heartbeats leave behind changes far more often than what a node has."""
    nodes = cluster.state.nodes
    fresh, places = [nodes[i] for i in rows], np.array(rows, np.int64)
    last, since = cluster.last_preemptive.copy(), cluster.overcommit_since.copy()
    last[places], since[places] = heartbeats_left(fresh)
    cluster = replace(cluster, last_preemptive=last, overcommit_since=since)
    other = [
        i for i, new in zip(rows, fresh, strict=True)
        if (new.capacity is not (old := before[i]).capacity and new.capacity != old.capacity)
        or (new.occupied is not old.occupied and new.occupied != old.occupied)
        or new.schedulable != old.schedulable
    ]  # fmt: skip
    if not other:
        return cluster
    if any(_names(nodes[i]) != _names(before[i]) for i in other):
        return _with_nodes(cluster, before)
    limits, able = cluster.node_limits.copy(), cluster.schedulable.copy()
    limits[other], able[other] = node_limits(cluster.index, fresh := [nodes[i] for i in other]), schedulable(fresh)
    refuse_overflow(limits, ("state", "nodes"))
    return replace(cluster, node_limits=limits, schedulable=able, total=total(limits))


def _names(node: Node) -> set[str]:
    return {*node.capacity, *node.occupied}


def _with_nodes(cluster: CompiledState, before: list[Node]) -> CompiledState:
    """``cluster`` with the nodes of its state, where ``before`` were those that its columns are for."""
    nodes = cluster.state.nodes
    if config_and_nodes(cluster.config, nodes) != cluster.named:
        raise _Anew
    limits = node_limits(cluster.index, nodes)
    refuse_overflow(limits, ("state", "nodes"))
    last, since = heartbeats_left(nodes)
    cluster = replace(
        cluster,
        node_limits=limits,
        schedulable=schedulable(nodes),
        total=total(limits),
        last_preemptive=last,
        overcommit_since=since,
    )
    names = [node.name for node in nodes]
    if names == [node.name for node in before]:
        return cluster
    node_index = {name: i for i, name in enumerate(names)}
    moved = np.array([*(node_index.get(node.name, _UNKNOWN) for node in before), _NOWHERE], np.int64)
    node = moved[cluster.allocations.node]
    on_node, node_start = by_node(node, len(nodes))
    return replace(
        cluster,
        node_index=node_index,
        allocations=replace(cluster.allocations, node=node),
        on_node=on_node,
        node_start=node_start,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Operations that a delta touches. ``gone``, ``kept``: old rows; ``changed``, ``at``: old rows and the new ones;
    ``added``: how many come last; ``fresh``: the changed and the added ones, in rows ``at`` and the last ones."""

    gone: Ints
    kept: Ints
    changed: Ints
    at: Ints
    added: int
    fresh: list[Workload]

    @staticmethod
    def of(old: CompiledState, state: State, changes: Changes) -> "_Rows":
        def rows(*, stay: bool) -> Ints:
            touched = [row for row, was, now in changes.workloads if was is not None and (now is not None) is stay]
            return np.array(sorted(touched), np.int64)

        gone, changed = rows(stay=False), rows(stay=True)
        added = len(state.workloads) - (len(old.operations) - len(gone))
        moved = changed - np.searchsorted(gone, changed)
        places: list[int] = moved.tolist()
        fresh = [state.workloads[i] for i in places] + state.workloads[len(state.workloads) - added :]
        staying = np.delete(np.arange(len(old.operations)), gone)
        return _Rows(gone, staying, changed, moved, added, fresh)

    def column(self, old: NDArray[Any], fresh: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """A column of operations. ``fresh``: of the changed and added ones; ``axis``: of the rows."""
        changed = len(self.at)
        if axis:
            out = np.concatenate((old[:, self.kept], fresh[:, changed:]), 1)
            out[:, self.at] = fresh[:, :changed]
            return out
        out = np.concatenate((old[self.kept], fresh[changed:]))
        out[self.at] = fresh[:changed]
        return out


def _with_operations(cluster: CompiledState, old: CompiledState, changes: Changes) -> CompiledState:
    """``cluster``, whose nodes are compiled, with the operations and allocations of its state."""
    if all(was is not None and now is not None and same_but_standing(was, now) for _, was, now in changes.workloads):
        return _with_standings(cluster, changes)
    state, index = cluster.state, cluster.index
    rows = _Rows.of(old, state, changes)
    requests = requests_of(rows.fresh)
    if len(requests.tasks) * LARGE > len(old.allocations) + len(old.node_index):
        raise _Anew
    left = [was for _, was, _ in changes.workloads if was is not None]
    loose = index.index.keys() - cluster.named
    if loose and not loose.isdisjoint(names_of(left, requests_of(left))):
        raise _Anew
    if not names_of(rows.fresh, requests) <= index.index.keys():
        raise _Anew
    problems: list[Problem] = []
    fresh = compile_operations(cluster.config, index, rows.fresh, ("state", "workloads"), problems)
    if problems:
        raise _Anew
    operations = _operations(cluster.operations, rows, fresh)
    allocations = compile_allocations(index, rows.fresh, requests, cluster.node_index)
    refuse_overflow(allocations.usage, ("state", "workloads"))
    usage = rows.column(cluster.usage, sum_of(allocations, len(rows.fresh)))
    if int(usage.sum(axis=0).max(initial=0)) >= _SURE:
        raise _Anew
    splice = _Splice.of(cluster.allocations, allocations, rows)
    new = replace(
        cluster,
        operations=operations,
        operation_index=_indexed(cluster, operations, rows),
        usage=usage,
        allocations=splice.joined(cluster.allocations, allocations, rows),
    )
    _refuse_unknown(new)
    on_node, node_start = by_node(new.allocations.node, len(cluster.node_index))
    return replace(new, on_node=on_node, node_start=node_start)


def _with_standings(cluster: CompiledState, changes: Changes) -> CompiledState:
    """``cluster`` with what its operations carry, where all else about them is as it was."""
    _refuse_unknown(cluster)
    level, since = cluster.operations.starvation.copy(), cluster.operations.since.copy()
    for row, _, now in changes.workloads:
        level[row], since[row] = standing(None if now is None else now.ytsaurus)
    return replace(cluster, operations=replace(cluster.operations, starvation=level, since=since))


def _operations(old: Operations, rows: _Rows, fresh: Operations) -> Operations:
    ids = old.ids
    if len(rows.gone) or rows.added:
        gone = set(rows.gone.tolist())
        ids = [name for i, name in enumerate(ids) if i not in gone] + fresh.ids[len(rows.at) :]
    return old.put_together(fresh, ids, rows.column)


def _indexed(cluster: CompiledState, operations: Operations, rows: _Rows) -> dict[str, int]:
    if len(rows.gone):
        return dict(zip(operations.ids, range(len(operations)), strict=True))
    if rows.added:
        start = len(cluster.operations)
        return cluster.operation_index | {name: start + i for i, name in enumerate(operations.ids[start:])}
    return cluster.operation_index


@dataclass(frozen=True, slots=True)
class _Splice:
    """Allocation rows of the new version, piece by piece: (whether fresh, from, to) in the old or the fresh ones."""

    pieces: list[tuple[bool, int, int]]

    @staticmethod
    def of(old: Allocations, fresh: Allocations, rows: _Rows) -> "_Splice":
        touched = np.sort(np.concatenate((rows.gone, rows.changed)))
        begins: list[int] = old.of[touched].tolist()
        ends: list[int] = old.of[touched + 1].tolist()
        starts: list[int] = fresh.of.tolist()
        which = {row: i for i, row in enumerate(rows.changed.tolist())}
        pieces: list[tuple[bool, int, int]] = []
        done = 0
        for row, begin, end in zip(touched.tolist(), begins, ends, strict=True):
            pieces.append((False, done, begin))
            if (i := which.get(row)) is not None:
                pieces.append((True, starts[i], starts[i + 1]))
            done = end
        pieces += [(False, done, len(old)), (True, starts[len(which)], len(fresh))]
        return _Splice(pieces)

    def joined(self, old: Allocations, fresh: Allocations, rows: _Rows) -> Allocations:
        """All columns of the new version."""
        sizes = rows.column(np.diff(old.of), np.diff(fresh.of))
        columns = {
            name: np.concatenate([(b if new else a)[i:j] for new, i, j in self.pieces])
            for name in ("node", "task", "usage", "has_gap", "started")
            for a, b in [(getattr(old, name), getattr(fresh, name))]
        }
        return Allocations(
            operation=np.repeat(np.arange(len(sizes)), sizes),
            of=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
            **columns,
        )
