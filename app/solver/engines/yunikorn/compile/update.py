"""The next version of a cluster, given what a delta changed.

Columns are copied with the changed tasks replaced, put in or left out where the canonical order wants them; usage
and free space move by what has left and what has come. Nothing of the old version is written to: decisions run on it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.yunikorn.compile.arrange import Arranged, arrange
from app.solver.engines.yunikorn.compile.configuration import Amounts, CompiledConfiguration
from app.solver.engines.yunikorn.compile.state import (
    NOWHERE,
    OPTED_OUT,
    ORIGINATOR,
    Bools,
    CompiledState,
    Ints,
    Lazy,
    ShapeKey,
    compile_state,
    resources_of,
    steps_of,
)  # fmt: skip
from app.solver.model.state import State, Task, Workload

LARGE = 4
"""A delta that changes one task in so many is not worth following."""
MANY = 16
"""Nor is one that touches an application for so many applications and tasks that there are."""
SPARE_SHAPES = 64
"""So few are kept, whether tasks have them or not."""
_UNKNOWN = -2


class _Anew(Exception):
    """Compiling the whole state is better, or the only way to say what is wrong with it."""


def update(old: CompiledState, queues: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """Equal to ``compile_state(queues, state)``. Raises what that raises; ``old`` is not changed."""
    try:
        return _followed(old, queues, state, changes)
    except _Anew:
        return compile_state(queues, state)


def _followed(old: CompiledState, queues: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    if queues is not old.configuration or len(changes.workloads) * MANY > len(old.workloads) + old.task_count:
        raise _Anew
    if not all(queues.leaf[queues.tree.index[w.queue]] for _, _, w in changes.workloads if w is not None):
        raise _Anew
    new = CompiledState.__new__(CompiledState)
    for name in CompiledState.__slots__:
        setattr(new, name, getattr(old, name))
    new.reservations = state.reservations
    new.lazy = Lazy() if changes.nodes else Lazy(passing=old.lazy.passing)
    arranged = arrange(old, new, changes)
    if len(arranged.gone) * LARGE > old.task_count or len(arranged.fresh) * LARGE > old.task_count:
        raise _Anew
    moved = changes.nodes and _place_nodes(old, new, state)
    _columns(old, new, arranged)
    turnover = _Turnover.of(old, new, arranged)
    new.asked += sum(net * sum(new.shapes[shape].values()) for shape, net in turnover.nets(turnover.shape).items())
    _check_resources(new, turnover, nodes=changes.nodes)
    if changes.nodes:
        new.capacities()
    if new.narrow != old.narrow:
        raise _Anew
    if changes.nodes:
        new.take_room()
    else:
        _move_room(new, turnover)
    _move_usage(new, turnover)
    if not moved:
        _keep_by_node(old, new, arranged)
    _keep_created(old, new, arranged)
    _forget_shapes(old, new)
    return new


def _place_nodes(old: CompiledState, new: CompiledState, state: State) -> bool:
    """Whether nodes have other indices than before."""
    new.place_nodes(state.nodes)
    if new.node_names == old.node_names:
        return False
    index = np.full(len(old.node_names) + 1, NOWHERE, dtype=np.int64)
    index[:-1] = [new.node_index.get(name, _UNKNOWN) for name in old.node_names]
    new.node = index[old.node]
    return True


def _columns(old: CompiledState, new: CompiledState, arranged: Arranged) -> None:
    fresh: list[int] = arranged.fresh.tolist()
    tasks = [new.tasks[i] for i in fresh]
    of: list[int] = new.workload[fresh].tolist()
    owners = [new.workloads[i] for i in of]
    node = [NOWHERE if t.node is None else new.node_index[t.node] for t in tasks]
    new.node = arranged.column(new.node, node)
    if (new.node == _UNKNOWN).any():
        raise _Anew
    new.shape = arranged.column(old.shape, _numbered(new, tasks))
    new.priority = arranged.column(
        old.priority, [w.priority if t.priority is None else t.priority for t, w in zip(tasks, owners, strict=True)]
    )
    new.flags = arranged.column(old.flags, [_flags(t, w) for t, w in zip(tasks, owners, strict=True)])
    new.eligible = arranged.column(
        old.eligible, [t.state == "running" and t.node is not None and t.required_node is None for t in tasks]
    )
    leaving = [t.state == "preempted" for t in tasks]
    if old.preempted is not None or any(leaving):
        before = np.zeros(old.task_count, dtype=bool) if old.preempted is None else old.preempted
        preempted = arranged.column(before, leaving)
        new.preempted = preempted if preempted.any() else None


def _flags(task: Task, owner: Workload) -> int:
    opted_in = owner.preemptible if task.preemptible is None else task.preemptible
    return (0 if opted_in else OPTED_OUT) | (ORIGINATOR if task.originator else 0)


def _numbered(new: CompiledState, tasks: list[Task]) -> list[int]:
    """The tasks' shapes; new ones get numbers after the old ones. Raises QuantityError."""
    keys: list[ShapeKey] = [(tuple(t.requests.items()), t.count) for t in tasks]
    unknown = [key for key in dict.fromkeys(keys) if key not in new.shape_of]
    if unknown:
        if any(name not in new.resources.index for requests, _ in unknown for name, _ in requests):
            raise _Anew
        new.shapes = [*new.shapes, *(steps_of(key, new.resources) for key in unknown)]
        start = len(new.shape_of)
        new.shape_of = new.shape_of | {key: start + i for i, key in enumerate(unknown)}
    return [new.shape_of[key] for key in keys]


@dataclass(frozen=True, slots=True)
class _Turnover:
    """Tasks that have left and that have come, one after the other; ``sign``: -1 and 1."""

    sign: Ints
    queue: Ints
    shape: Ints
    node: Ints
    preempted: Bools

    @staticmethod
    def of(old: CompiledState, new: CompiledState, arranged: Arranged) -> "_Turnover":
        def both(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate((before[arranged.gone], after[arranged.fresh]))

        def leaving(state: CompiledState) -> Bools:
            return np.zeros(state.task_count, dtype=bool) if state.preempted is None else state.preempted

        return _Turnover(
            sign=np.repeat(np.array([-1, 1]), (len(arranged.gone), len(arranged.fresh))),
            queue=both(old.queue, new.queue), shape=both(old.shape, new.shape),
            node=both(old.node, new.node), preempted=both(leaving(old), leaving(new)),
        )  # fmt: skip

    def nets(self, column: Ints, among: Bools | None = None) -> dict[int, int]:
        """By value of ``column``: how many more there are now, where that is not 0."""
        sign = self.sign
        if among is not None:
            column, sign = column[among], sign[among]
        values, which = np.unique(column, return_inverse=True)
        nets = np.bincount(which, weights=sign, minlength=len(values)).astype(np.int64)
        changed = np.flatnonzero(nets)
        return dict(zip(values[changed].tolist(), nets[changed].tolist(), strict=True))


def _check_resources(new: CompiledState, turnover: _Turnover, *, nodes: bool) -> None:
    """Columns of resources that nothing names any more are dropped, and new ones put in, by compiling anew."""
    if not nodes and (len(new.named) == len(new.resources) or not len(turnover.shape)):
        return
    used = np.bincount(new.shape, minlength=len(new.shapes)).tolist()
    live = [key for key, uses in zip(new.shape_of, used, strict=True) if uses]
    if resources_of(new.configuration, new.nodes, live).names != new.resources.names:
        raise _Anew


def _move_room(new: CompiledState, turnover: _Turnover) -> None:
    """Free space by what has come and what has left; capacities are as they were."""
    size = len(new.shapes)
    nets = turnover.nets(turnover.node * size + turnover.shape, turnover.node >= 0)
    if not nets:
        return
    new.free = new.free.copy()
    changes: dict[int, tuple[list[int], list[int]]] = {}
    for pair, net in nets.items():
        node, shape = divmod(pair, size)
        for r, amount in new.shapes[shape].items():
            nodes, amounts = changes.setdefault(r, ([], []))
            nodes.append(node)
            amounts.append(net * amount)
    for r, (nodes, amounts) in changes.items():
        np.subtract.at(new.free[:, r], nodes, np.array(amounts, dtype=new.free.dtype))


def _move_usage(new: CompiledState, turnover: _Turnover) -> None:
    """Usage of queues, and what they have above their guarantees, by what has come and what has left."""
    pairs = turnover.queue * len(new.shapes) + turnover.shape
    allocated, preempting = turnover.nets(pairs), turnover.nets(pairs, turnover.preempted)
    if not allocated and not preempting:
        return
    new.slack = list(new.slack)
    new.allocated = _moved(new, new.allocated, allocated, -1)
    new.preempting = _moved(new, new.preempting, preempting, 1)


def _moved(new: CompiledState, usage: list[list[int]], nets: dict[int, int], sign: int) -> list[list[int]]:
    """``usage`` with ``nets`` by queue and shape; the slack moves by the same times ``sign``."""
    queues, usage = new.configuration, list(usage)
    own: set[int] = set()
    for pair, net in nets.items():
        queue, shape = divmod(pair, len(new.shapes))
        amounts, cells = new.shapes[shape], queues.path_cells[queue]
        for q in queues.paths[queue]:
            if q not in own:
                own.add(q)
                usage[q] = list(usage[q])
            for r, amount in amounts.items():
                usage[q][r] += net * amount
        for r, amount in amounts.items():
            for cell in cells.get(r, ()):
                new.slack[cell] += sign * net * amount
    return usage


def _keep_by_node(old: CompiledState, new: CompiledState, arranged: Arranged) -> None:
    """The order by node, with those taken out that have gone and those put in that have come."""
    if old.lazy.by_node is None:
        return
    if arranged.source is None and np.array_equal(old.node[arranged.gone], new.node[arranged.fresh]):
        new.lazy.by_node = old.lazy.by_node
        return
    size = new.task_count
    kept = arranged.index()[old.lazy.by_node[0]]
    kept = kept[kept >= 0]
    coming = np.sort(new.node[arranged.fresh] * size + arranged.fresh)
    order = np.insert(kept, np.searchsorted(new.node[kept] * size + kept, coming), coming % max(1, size))
    new.lazy.by_node = (order, np.cumsum(np.bincount(new.node + 1, minlength=len(new.node_names) + 1)))


def _keep_created(old: CompiledState, new: CompiledState, arranged: Arranged) -> None:
    if old.lazy.created is not None:
        fresh = [new.created(i) for i in arranged.fresh.tolist()]
        new.lazy.created = arranged.column(old.lazy.created, fresh)


def _forget_shapes(old: CompiledState, new: CompiledState) -> None:
    """Drop shapes that no task has any more, once they are most of what is kept."""
    if new.shapes is old.shapes or len(new.shapes) < SPARE_SHAPES:
        return
    used = np.bincount(new.shape, minlength=len(new.shapes)) > 0
    if int(used.sum()) * 2 > len(new.shapes):
        return
    number = np.cumsum(used) - 1
    live: list[bool] = used.tolist()
    keys = [key for key, kept in zip(new.shape_of, live, strict=True) if kept]
    shapes: list[Amounts] = [of for of, kept in zip(new.shapes, live, strict=True) if kept]
    new.shape_of, new.shapes, new.shape = {key: i for i, key in enumerate(keys)}, shapes, number[new.shape]
