"""The next version of a cluster, given what a delta changed.

Columns are copied with the changed tasks replaced, put in or left out where the canonical order wants them; usage
and free space move by what has left and what has come. Nothing of the old version is written to: decisions run on it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.yunikorn.configuration import CompiledConfiguration
from app.solver.engines.yunikorn.state import (  # fmt: skip
    COLUMNS,
    NOWHERE,
    OPTED_OUT,
    ORIGINATOR,
    CompiledState,
    Ints,
    Lazy,
    ShapeKey,
    by_name,
    compile_state,
    forget_shapes,
    resources_of,
    steps_of,
)
from app.solver.model.state import State, Task, Workload

_INHERITED = tuple(map(attrgetter, ("priority", "preemptible", "created_at")))
"""What a task takes from its application where it gives none."""
_NONE = np.zeros(0, dtype=np.int64)
_name = attrgetter("name")
Move = tuple[Workload | None, Workload | None]
"""What an application was and what it is."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """Applications and tasks of the next version, in canonical order, and where each one was before.

    ``source``: by new task index the old one, -1 for those to be compiled; None: every index is as it was.
    ``gone``: old indices of tasks that have left or changed; ``fresh``: new indices of those that have come or
    changed, in any order. Tasks that are neither keep their order."""

    before: int
    source: Ints | None
    gone: Ints
    fresh: Ints

    def column(self, old: NDArray[Any], fresh: list[Any]) -> NDArray[Any]:
        """A column of the old tasks as the new ones have it. ``fresh``: the values to be filled in."""
        if self.source is None and not fresh:
            return old
        if self.source is None:
            out = old.copy()
        elif self.before:
            out = old[self.source]
        else:
            out = np.zeros(len(self.source), dtype=old.dtype)
        out[self.fresh] = fresh
        return out

    def index(self) -> Ints:
        """By old task index: the new one, -1 for those that have gone."""
        out = np.arange(self.before)
        if self.source is not None:
            stays = np.flatnonzero(self.source >= 0)
            out[self.source[stays]] = stays
        out[self.gone] = -1
        return out


class _Edit(NamedTuple):
    """What happens at canonical index ``at`` of the old applications, whose tasks are from ``begin`` to ``end``:
    ``stands``: the one there goes, and ``workload`` replaces it if there is one; else ``workload`` comes in before it.
    ``tasks``, ``differ``, ``places``: see ``_tasks``.
    """

    at: int
    begin: int
    end: int
    stands: bool
    rank: int
    workload: Workload | None
    tasks: Sequence[Task]
    differ: list[int]
    places: list[int] | None

    def source(self) -> Ints:
        """By task of ``workload`` its index in the old tasks, -1 for those to be compiled."""
        places = range(self.end - self.begin) if self.places is None else self.places
        source = np.array(places, dtype=np.int64) + self.begin
        source[self.differ] = -1
        return source


def arrange(old: CompiledState, new: CompiledState, moves: Iterable[Move]) -> Arranged:
    """Fill in what ``new`` has by application, and its tasks and their applications and queues."""
    edits = _edits(old, moves)
    if not edits:
        return Arranged(old.task_count, None, _NONE, _NONE)
    if all(edit.stands and edit.workload is not None and edit.places is None for edit in edits):
        return _replace(old, new, edits)
    return _rearrange(old, new, edits)


def _replace(old: CompiledState, new: CompiledState, edits: list[_Edit]) -> Arranged:
    """Every application and every task keeps its place."""
    new.workloads, new.tasks = old.workloads.copy(), old.tasks.copy()
    for edit in edits:
        new.workloads[edit.at : edit.at + 1] = () if edit.workload is None else (edit.workload,)
        new.tasks[edit.begin : edit.end] = edit.tasks
    differ = np.array([edit.begin + i for edit in edits for i in edit.differ], dtype=np.int64)
    return Arranged(old.task_count, None, differ, differ)


def _rearrange(old: CompiledState, new: CompiledState, edits: list[_Edit]) -> Arranged:
    everybody, sizes = np.arange(old.task_count), np.diff(old.starts)
    workloads: list[Workload] = []
    tasks: list[Task] = []
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    done = begin = 0
    for edit in edits:
        workloads += old.workloads[done : edit.at]
        tasks += old.tasks[begin : edit.begin]
        pieces.append((everybody[begin : edit.begin], sizes[done : edit.at], old.rank[done : edit.at]))
        done, begin = edit.at + edit.stands, edit.end
        if edit.workload is not None:
            workloads.append(edit.workload)
            tasks += edit.tasks
            pieces.append((edit.source(), np.array((len(edit.tasks),)), np.array((edit.rank,))))
    pieces.append((everybody[begin:], sizes[done:], old.rank[done:]))
    new.workloads, new.tasks = workloads + old.workloads[done:], tasks + old.tasks[begin:]
    new.task_count = len(new.tasks)
    source, counts, new.rank = map(np.concatenate, zip(*pieces, strict=True))
    new.tasks_of(counts)
    gone = np.ones(old.task_count, dtype=bool)
    gone[source[source >= 0]] = False
    return Arranged(old.task_count, source, np.flatnonzero(gone), np.flatnonzero(source < 0))


def _edits(old: CompiledState, changed: Iterable[Move]) -> list[_Edit]:
    """In canonical order."""
    queue, rank = old.configuration.tree.index, old.configuration.rank
    moves: list[tuple[int, str, Workload | None, Workload | None]] = []
    for was, now in changed:
        if was is not None and now is not None and was.queue == now.queue:
            moves.append((rank[queue[now.queue]], now.id, was, now))
            continue
        if was is not None:
            moves.append((rank[queue[was.queue]], was.id, was, None))
        if now is not None:
            moves.append((rank[queue[now.queue]], now.id, None, now))
    moves.sort(key=itemgetter(0, 1))
    edits: list[_Edit] = []
    first = np.array(old.find([move[:2] for move in moves]), dtype=np.int64)
    stands = np.array([was is not None for _, _, was, _ in moves], dtype=np.int64)
    bounds = zip(first.tolist(), old.starts[first].tolist(), old.starts[first + stands].tolist(), strict=True)
    for (of, _, was, now), (place, begin, end) in zip(moves, bounds, strict=True):
        tasks, differ, places = (), [], None
        if now is not None and was is not None:
            tasks, differ, places = _tasks(was, old.tasks[begin:end], now)
        elif now is not None:
            tasks = by_name(now)
            differ, places = list(range(len(tasks))), [-1] * len(tasks)
        edits.append(_Edit(place, begin, end, was is not None, of, now, tasks, differ, places))
    return edits


def _tasks(before: Workload, was: list[Task], now: Workload) -> tuple[Sequence[Task], list[int], list[int] | None]:
    """The tasks of an application in canonical order, which of them are to be compiled, and for each its place in
    ``was``, -1 where it has none there; None instead of places that are the same."""
    inherited = [field for field in _INHERITED if field(before) != field(now)]
    tasks, places = now.tasks, None
    differ = _differ(was, tasks)
    if differ is None:
        tasks = by_name(now)
        differ = _differ(was, tasks)
    if differ is None:
        place = dict(zip(map(_name, was), range(len(was)), strict=True))
        places = [place.get(task.name, -1) for task in tasks]
        differ = [i for i, (p, b) in enumerate(zip(places, tasks, strict=True)) if p < 0 or was[p] != b]
    for field in inherited:
        values = list(map(field, tasks))
        if None in values:
            differ = list({*differ, *(i for i, value in enumerate(values) if value is None)})
    return tasks, differ, places


def _differ(was: list[Task], tasks: Sequence[Task]) -> list[int] | None:
    """Where the tasks differ, if the same names follow one another."""
    if len(was) != len(tasks):
        return None
    if was == tasks:
        return []
    differ = [i for i, (a, b) in enumerate(zip(was, tasks, strict=True)) if a is not b and a != b]
    return None if any(was[i].name != tasks[i].name for i in differ) else differ


def _name_queues(new: CompiledState, moves: Iterable[Move]) -> None:
    moved = [(was, now) for was, now in moves if was is None or now is None or was.queue != now.queue]
    if moved:
        new.queue_of = dict(new.queue_of)
    for was, _ in moved:
        if was is not None:
            del new.queue_of[was.id]
    for _, now in moved:
        if now is not None:
            new.queue_of[now.id] = new.configuration.tree.index[now.queue]


LARGE = 4
"""A delta that changes one task for so many tasks and nodes that there are is not worth following."""
MANY = 16
"""Nor is one that touches an application for so many applications, tasks and nodes."""
FAR = 64
"""Columns fall behind by so many applications at most."""
_UNKNOWN = -2


class _Anew(Exception):
    """Compiling the whole state is better, or the only way to say what is wrong with it."""


def update(old: CompiledState, queues: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """Equal to ``compile_state(queues, state)``. Raises what that raises; ``old`` is not changed."""
    try:
        return _followed(old, queues, state, changes)
    except _Anew:
        new = compile_state(queues, state)
        if queues is old.configuration and not changes.nodes and new.resources.names == old.resources.names:
            new.lazy = old.lazy.after()
        return new


_KEPT = tuple(name for name in CompiledState.__slots__ if name not in COLUMNS)


class _Behind:
    """``base``: a version that has its columns; ``moves``: by application what it was there and what it is now.

    Most rounds of a simulation look at no column, and columns cost as much to arrange for many changes as for one."""

    def __init__(self, old: CompiledState, changes: Changes) -> None:
        self.base, self.moves = old, dict[str, Move]()
        if isinstance(old.behind, _Behind):
            self.base, self.moves = old.behind.base, dict(old.behind.moves)
        for _, was, now in changes.workloads:
            touched = now if was is None else was
            assert touched is not None
            self.moves[touched.id] = self.moves[touched.id][0] if touched.id in self.moves else was, now

    def catch_up(self, state: CompiledState) -> None:
        """See ``Behind``. The nodes are those of ``base``."""
        self.columns(state, None)

    def columns(self, state: CompiledState, nodes: Ints | None) -> None:
        """Fill in the task columns of ``state``; see ``_rearranged``. Whoever looks meanwhile finds each column as it
        should be, or not at all."""
        twin = _rearranged(self.base, state, state.lazy, self.moves.values(), nodes)
        for name in COLUMNS:
            setattr(state, name, getattr(twin, name))
        state.behind = None


def with_tasks(base: CompiledState, moves: Sequence[Move]) -> CompiledState:
    """``base`` with the applications and tasks after ``moves``; what it sums up does not follow."""
    new = _rearranged(base, base, base.lazy.after(), moves, None)
    _name_queues(new, moves)
    new.uses = np.bincount(new.shape, minlength=len(new.shapes)).tolist()
    forget_shapes(base, new)
    return new


def _rearranged(
    base: CompiledState, state: CompiledState, lazy: Lazy, moves: Iterable[Move], nodes: Ints | None
) -> CompiledState:
    """``state`` with ``lazy``, and the task columns of ``base`` after ``moves``. ``nodes``: by node of ``base`` its
    index now, and in the end that of no node; None: the same. Raises _Anew."""
    new = CompiledState.__new__(CompiledState)
    for name in CompiledState.__slots__:
        setattr(new, name, getattr(base if name in COLUMNS else state, name))
    new.lazy = lazy
    arranged = arrange(base, new, moves)
    _columns(base, new, arranged, base.node if nodes is None else nodes[base.node])
    if nodes is None:
        _keep_by_node(base, new, arranged)
    _keep_created(base, new, arranged)
    return new


def _followed(old: CompiledState, queues: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    size = len(old.queue_of) + old.task_count + len(old.node_names)
    if queues is not old.configuration or len(changes.workloads) * MANY > size:
        raise _Anew
    if not all(queues.leaf[queues.tree.index[w.queue]] for _, _, w in changes.workloads if w is not None):
        raise _Anew
    if changes.nodes and old.behind is not None:
        old.behind.catch_up(old)
    new = CompiledState.__new__(CompiledState)
    for name in _KEPT:
        setattr(new, name, getattr(old, name))
    new.reservations = state.reservations
    new.lazy = Lazy() if changes.nodes else old.lazy.after()
    new.behind = behind = _Behind(old, changes)
    _name_queues(new, [(was, now) for _, was, now in changes.workloads])
    turnover = _Turnover(old, new, changes)
    if max(turnover.left, turnover.came) * LARGE > old.task_count + len(old.node_names):
        raise _Anew
    _count(new, turnover)
    nodes = _place_nodes(old, new, state) if changes.nodes else None
    _check_resources(new, turnover, nodes=changes.nodes)
    if changes.nodes:
        new.capacities()
    if new.narrow != old.narrow:
        raise _Anew
    if changes.nodes:
        behind.columns(new, nodes)
        new.take_room()
    else:
        _move_room(old, new, turnover)
        if len(behind.moves) > FAR:
            behind.catch_up(new)
    _move_usage(new, turnover)
    forget_shapes(old, new)
    return new


def _place_nodes(old: CompiledState, new: CompiledState, state: State) -> Ints | None:
    """By old node its index now, and in the end that of no node; None where all have those that they had."""
    new.place_nodes(state.nodes)
    if new.node_names == old.node_names:
        return None
    index = np.full(len(old.node_names) + 1, NOWHERE, dtype=np.int64)
    index[:-1] = [new.node_index.get(name, _UNKNOWN) for name in old.node_names]
    return index


def _columns(old: CompiledState, new: CompiledState, arranged: Arranged, nodes: Ints) -> None:
    """``nodes``: by old task its node, as nodes are numbered now."""
    fresh: list[int] = arranged.fresh.tolist()
    tasks = [new.tasks[i] for i in fresh]
    of: list[int] = new.workload[fresh].tolist()
    owners = [new.workloads[i] for i in of]
    new.node = arranged.column(nodes, [NOWHERE if t.node is None else new.node_index[t.node] for t in tasks])
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


Kind = tuple[int, int, int, bool]
"""Of tasks that count alike: queue, shape, node, and whether they are being preempted."""


class _Turnover:
    """Tasks that have left or changed, ``left``, and that have come or changed, ``came``, of applications touched.
    ``nets``: by kind how many more there are now, where that is not 0. Raises QuantityError, KeyError, _Anew."""

    __slots__ = ("came", "left", "nets")

    def __init__(self, old: CompiledState, new: CompiledState, changes: Changes) -> None:
        self.left = self.came = 0
        counts: dict[Kind, int] = {}
        for _, was, now in changes.workloads:
            left, came = [] if was is None else was.tasks, [] if now is None else now.tasks
            new.task_count += len(came) - len(left)
            if was is not None and now is not None and was.queue == now.queue:
                stay = set(map(id, left)).intersection(map(id, came))
                left, came = [t for t in left if id(t) not in stay], [t for t in came if id(t) not in stay]
            self.left += len(left)
            self.came += len(came)
            for workload, tasks, sign in ((was, left, -1), (now, came, 1)):
                if workload is None:
                    continue
                queue = new.configuration.tree.index[workload.queue]
                for task, shape in zip(tasks, _numbered(new, tasks), strict=True):
                    node = NOWHERE if task.node is None or changes.nodes else old.node_index[task.node]
                    kind = queue, shape, node, task.state == "preempted"
                    counts[kind] = counts.get(kind, 0) + sign
        self.nets = {kind: net for kind, net in counts.items() if net}


def _count(new: CompiledState, turnover: _Turnover) -> None:
    """By shape how many tasks have it, and the bound of what they request."""
    new.uses = [*new.uses, *[0] * (len(new.shapes) - len(new.uses))]
    for (_, shape, _, _), net in turnover.nets.items():
        new.uses[shape] += net
        new.asked += net * sum(new.shapes[shape].values())


def _check_resources(new: CompiledState, turnover: _Turnover, *, nodes: bool) -> None:
    """Columns of resources that nothing names any more are dropped, and new ones put in, by compiling anew."""
    if not nodes and (len(new.named) == len(new.resources) or not turnover.nets):
        return
    live = [key for key, uses in zip(new.shape_of, new.uses, strict=True) if uses]
    if resources_of(new.configuration, new.nodes, live).names != new.resources.names:
        raise _Anew


def _move_room(old: CompiledState, new: CompiledState, turnover: _Turnover) -> None:
    """Free space by what has come and what has left; capacities are as they were."""
    if not turnover.nets:
        new.lazy.use = old.lazy.use
        return
    new.free = new.free.copy()
    for (_, shape, node, _), net in turnover.nets.items():
        if node != NOWHERE:
            for r, amount in new.shapes[shape].items():
                new.free[node, r] -= net * amount
    if old.lazy.use is not None:
        new.lazy.use = old.lazy.use.copy()
        for node in {node for _, _, node, _ in turnover.nets} - {NOWHERE}:
            new.lazy.use[node] = new.use_of(node, new.free[node])


def _move_usage(new: CompiledState, turnover: _Turnover) -> None:
    """Usage of queues, and what they have above their guarantees, by what has come and what has left."""
    if not turnover.nets:
        return
    new.slack = list(new.slack)
    new.allocated = _moved(new, new.allocated, turnover.nets.items(), -1)
    preempting = [(kind, net) for kind, net in turnover.nets.items() if kind[3]]
    if preempting:
        new.preempting = _moved(new, new.preempting, preempting, 1)


def _moved(new: CompiledState, usage: list[list[int]], nets: Iterable[tuple[Kind, int]], sign: int) -> list[list[int]]:
    """``usage`` with ``nets`` of kinds; the slack moves by the same times ``sign``."""
    queues, usage = new.configuration, list(usage)
    own: set[int] = set()
    for (queue, shape, _, _), net in nets:
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
    staying = arranged.index()[old.lazy.by_node[0]]
    staying = staying[staying >= 0]
    coming = np.sort(new.node[arranged.fresh] * size + arranged.fresh)
    order = np.insert(staying, np.searchsorted(new.node[staying] * size + staying, coming), coming % max(1, size))
    new.lazy.by_node = (order, np.cumsum(np.bincount(new.node + 1, minlength=len(new.node_names) + 1)))


def _keep_created(old: CompiledState, new: CompiledState, arranged: Arranged) -> None:
    if old.lazy.created is not None:
        fresh = [new.created(i) for i in arranged.fresh.tolist()]
        new.lazy.created = arranged.column(old.lazy.created, fresh)
