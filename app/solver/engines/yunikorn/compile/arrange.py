"""Applications and tasks of the next version of a cluster, in canonical order, and where each one was before."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.yunikorn.compile.state import CompiledState, Ints, by_name
from app.solver.model.state import Task, Workload

_INHERITED = tuple(map(attrgetter, ("priority", "preemptible", "created_at")))
"""What a task takes from its application where it gives none."""
_NONE = np.zeros(0, dtype=np.int64)
_name = attrgetter("name")


@dataclass(frozen=True, slots=True)
class Arranged:
    """``source``: by new task index the old one, -1 for those to be compiled; None: every index is as it was.

    ``gone``: old indices of tasks that have left or changed; ``fresh``: new indices of those that have come or
    changed, in any order. Tasks that are neither keep their order.
    """

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
        found = np.array(places, dtype=np.int64) + self.begin
        found[self.differ] = -1
        return found


def arrange(old: CompiledState, new: CompiledState, changes: Changes) -> Arranged:
    """Fill in what ``new`` has by application, and its tasks and their applications and queues."""
    if not changes.workloads:
        return Arranged(old.task_count, None, _NONE, _NONE)
    edits = _edits(old, changes)
    if all(edit.stands and edit.workload is not None and edit.places is None for edit in edits):
        return _replace(old, new, edits)
    return _rearrange(old, new, edits, changes)


def _replace(old: CompiledState, new: CompiledState, edits: list[_Edit]) -> Arranged:
    """Every application and every task keeps its place."""
    new.workloads, new.tasks = old.workloads.copy(), old.tasks.copy()
    for edit in edits:
        new.workloads[edit.at : edit.at + 1] = () if edit.workload is None else (edit.workload,)
        new.tasks[edit.begin : edit.end] = edit.tasks
    differ = np.array([edit.begin + i for edit in edits for i in edit.differ], dtype=np.int64)
    return Arranged(old.task_count, None, differ, differ)


def _rearrange(old: CompiledState, new: CompiledState, edits: list[_Edit], changes: Changes) -> Arranged:
    everybody, sizes = np.arange(old.task_count), np.diff(old.starts)
    workloads: list[Workload] = []
    tasks: list[Task] = []
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    at = begin = 0
    for edit in edits:
        workloads += old.workloads[at : edit.at]
        tasks += old.tasks[begin : edit.begin]
        pieces.append((everybody[begin : edit.begin], sizes[at : edit.at], old.rank[at : edit.at]))
        at, begin = edit.at + edit.stands, edit.end
        if edit.workload is not None:
            workloads.append(edit.workload)
            tasks += edit.tasks
            pieces.append((edit.source(), np.array((len(edit.tasks),)), np.array((edit.rank,))))
    pieces.append((everybody[begin:], sizes[at:], old.rank[at:]))
    new.workloads, new.tasks = workloads + old.workloads[at:], tasks + old.tasks[begin:]
    new.task_count = len(new.tasks)
    source, counts, new.rank = map(np.concatenate, zip(*pieces, strict=True))
    new.tasks_of(counts)
    _name_queues(new, changes)
    return Arranged(old.task_count, source, _gone(old, source), np.flatnonzero(source < 0))


def _gone(old: CompiledState, source: Ints) -> Ints:
    gone = np.ones(old.task_count, dtype=bool)
    gone[source[source >= 0]] = False
    return np.flatnonzero(gone)


def _edits(old: CompiledState, changes: Changes) -> list[_Edit]:
    """In canonical order."""
    queue, rank = old.configuration.tree.index, old.configuration.rank
    moves: list[tuple[int, str, Workload | None, Workload | None]] = []
    for _, was, now in changes.workloads:
        if was is not None and now is not None and was.queue == now.queue:
            moves.append((rank[queue[now.queue]], now.id, was, now))
            continue
        if was is not None:
            moves.append((rank[queue[was.queue]], was.id, was, None))
        if now is not None:
            moves.append((rank[queue[now.queue]], now.id, None, now))
    moves.sort(key=itemgetter(0, 1))
    edits: list[_Edit] = []
    found = np.array(old.find([move[:2] for move in moves]), dtype=np.int64)
    stands = np.array([was is not None for _, _, was, _ in moves], dtype=np.int64)
    bounds = zip(found.tolist(), old.starts[found].tolist(), old.starts[found + stands].tolist(), strict=True)
    for (of, _, was, now), (at, begin, end) in zip(moves, bounds, strict=True):
        tasks, differ, places = (), [], None
        if now is not None and was is not None:
            tasks, differ, places = _tasks(was, old.tasks[begin:end], now)
        elif now is not None:
            tasks = by_name(now)
            differ, places = list(range(len(tasks))), [-1] * len(tasks)
        edits.append(_Edit(at, begin, end, was is not None, of, now, tasks, differ, places))
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
        differ = [i for i, (at, b) in enumerate(zip(places, tasks, strict=True)) if at < 0 or not _same(was[at], b)]
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


def _same(a: Task, b: Task) -> bool:
    return a is b or a == b


def _name_queues(new: CompiledState, changes: Changes) -> None:
    moved = [(was, now) for _, was, now in changes.workloads if was is None or now is None or was.queue != now.queue]
    if moved:
        new.queue_of = dict(new.queue_of)
    for was, _ in moved:
        if was is not None:
            del new.queue_of[was.id]
    for _, now in moved:
        if now is not None:
            new.queue_of[now.id] = new.configuration.tree.index[now.queue]
