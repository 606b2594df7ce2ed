"""The next version of a cluster, given what a delta changed.

Rows of operations and allocations that the delta does not touch are copied, those of touched operations are compiled
and spliced in. The old version is not written to: decisions run on it. Fair shares depend on everything and are no
part of a cluster: each answer works them out.
"""

from bisect import bisect_left
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.operations import (
    Ints,
    Operations,
    compile_operations,
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
    pool_states,
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


class _Rows(Struct, frozen=True, eq=False):
    """Operations that a delta touches. ``touched``: old rows, and which of the fresh ones each becomes, None where it
    goes; ``added``: how many come last; ``fresh``: the changed and then the added ones; ``order``: each new row's place
    among the old ones with the fresh ones after them."""

    touched: dict[int, int | None]
    added: int
    fresh: list[Workload]
    order: Ints

    @staticmethod
    def of(old: CompiledState, state: State, changes: Changes) -> "_Rows":
        was = sorted((row, now is None) for row, before, now in changes.workloads if before is not None)
        gone = [row for row, goes in was if goes]
        changed = [row for row, goes in was if not goes]
        count = len(old.operations)
        added = len(state.workloads) - (count - len(gone))
        fresh = [state.workloads[row - bisect_left(gone, row)] for row in changed]
        fresh += state.workloads[len(state.workloads) - added :]
        order = np.arange(count + len(fresh))
        order[changed] = order[count : count + len(changed)]
        order = np.delete(order, [*gone, *range(count, count + len(changed))])
        which = dict.fromkeys(gone) | {row: i for i, row in enumerate(changed)}
        return _Rows(dict(sorted(which.items())), added, fresh, order)

    def column(self, old: NDArray[Any], fresh: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """A column of operations. ``axis``: of the rows."""
        return np.concatenate((old, fresh), axis).take(self.order, axis)


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
    allocations = _spliced(cluster.allocations, allocations, rows)
    if (allocations.node == _UNKNOWN).any():
        raise _Anew
    on_node, node_start = by_node(allocations.node, len(cluster.node_index))
    return replace(
        cluster,
        operations=operations,
        operation_index=_indexed(cluster, operations, rows),
        usage=usage,
        allocations=allocations,
        on_node=on_node,
        node_start=node_start,
    )


def _with_standings(cluster: CompiledState, changes: Changes) -> CompiledState:
    """``cluster`` with what its operations carry, where all else about them is as it was."""
    _refuse_unknown(cluster)
    level, since = cluster.operations.starvation.copy(), cluster.operations.since.copy()
    for row, _, now in changes.workloads:
        level[row], since[row] = standing(None if now is None else now.ytsaurus)
    return replace(cluster, operations=replace(cluster.operations, starvation=level, since=since))


def _operations(old: Operations, rows: _Rows, fresh: Operations) -> Operations:
    ids = old.ids + fresh.ids
    return old.put_together(fresh, [ids[row] for row in rows.order.tolist()], rows.column)


def _indexed(cluster: CompiledState, operations: Operations, rows: _Rows) -> dict[str, int]:
    if len(operations) < len(cluster.operations) + rows.added:
        return dict(zip(operations.ids, range(len(operations)), strict=True))
    if rows.added:
        start = len(cluster.operations)
        return cluster.operation_index | {name: start + i for i, name in enumerate(operations.ids[start:])}
    return cluster.operation_index


def _spliced(old: Allocations, fresh: Allocations, rows: _Rows) -> Allocations:
    """The allocations of the new version: what operations that stay have, and those of the fresh ones."""
    count, done = len(old), 0
    pieces: list[Ints] = []
    begins: list[int] = (fresh.of + count).tolist()
    for row, which in rows.touched.items():
        begin, end = int(old.of[row]), int(old.of[row + 1])
        pieces.append(np.arange(done, begin))
        if which is not None:
            pieces.append(np.arange(begins[which], begins[which + 1]))
        done = end
    pieces += [np.arange(done, count), np.arange(begins[len(rows.fresh) - rows.added], count + len(fresh))]
    order = np.concatenate(pieces)
    sizes = rows.column(np.diff(old.of), np.diff(fresh.of))
    columns = {
        name: np.concatenate((getattr(old, name), getattr(fresh, name)))[order]
        for name in ("node", "task", "usage", "has_gap", "started")
    }
    return Allocations(
        operation=np.repeat(np.arange(len(sizes)), sizes),
        of=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
        **columns,
    )
