"""Applications and tasks of the next version of a cluster, in canonical order, and where each one was before."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.yunikorn.cluster import Cluster, Ints, by_name
from app.solver.model.state import Task, Workload

_COMES, _STANDS = 0, 1
"""What happens at a place: an application comes in before it; the one there goes or is replaced."""
_INHERITED = tuple(map(attrgetter, ("priority", "preemptible", "created_at")))
"""What a task takes from its application where it gives none."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """``source``: by new task index the old one, -1 for those to be compiled; None: every index is as it was.

    ``gone``: old indices of tasks that have left or changed; ``fresh``: new indices of those that have come or
    changed; both ascending. Tasks that are neither keep their order.
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


def arrange(old: Cluster, new: Cluster, changes: Changes) -> Arranged:
    """Fill in what ``new`` has by application, and its tasks and their applications and queues."""
    if not changes.workloads:
        none = np.zeros(0, dtype=np.int64)
        return Arranged(old.task_count, None, none, none)
    edits = _edits(old, changes)
    bounds: list[int] = old.starts[[edit[0] for edit in edits]].tolist()
    everybody, sizes = np.arange(old.task_count), np.diff(old.starts)
    workloads: list[Workload] = []
    tasks: list[Task] = []
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    at = begin = 0
    for (place, kind, rank, _, workload), end in zip(edits, bounds, strict=True):
        workloads += old.workloads[at:place]
        tasks += old.tasks[begin:end]
        pieces.append((everybody[begin:end], sizes[at:place], old.rank[at:place]))
        at, begin = place + kind, end + (int(sizes[place]) if kind == _STANDS else 0)
        if workload is not None:
            before = old.workloads[place] if kind == _STANDS else None
            ordered, source = _tasks(before, old.tasks[end:begin], workload, everybody[end:begin])
            workloads.append(workload)
            tasks += ordered
            pieces.append((source, np.array((len(ordered),)), np.array((rank,))))
    new.workloads, new.tasks = workloads + old.workloads[at:], tasks + old.tasks[begin:]
    pieces.append((everybody[begin:], sizes[at:], old.rank[at:]))
    source, counts, new.rank = map(np.concatenate, zip(*pieces, strict=True))
    new.task_count = len(new.tasks)
    _name_queues(new, changes)
    return _arranged(old, new, source, counts)


def _edits(old: Cluster, changes: Changes) -> list[tuple[int, int, int, str, Workload | None]]:
    """(canonical index, what happens there, place of the queue, id, what comes), in canonical order."""
    queue, rank = old.queues.tree.index, old.queues.rank
    edits: list[tuple[int, int, int, str, Workload | None]] = []
    for _, was, now in changes.workloads:
        stands = was is not None and now is not None and was.queue == now.queue
        if was is not None:
            of = queue[was.queue]
            edits.append((old.find(of, was.id), _STANDS, rank[of], was.id, now if stands else None))
        if now is not None and not stands:
            of = queue[now.queue]
            edits.append((old.find(of, now.id), _COMES, rank[of], now.id, now))
    return sorted(edits, key=lambda edit: edit[:4])


def _tasks(before: Workload | None, was: list[Task], now: Workload, places: Ints) -> tuple[Sequence[Task], Ints]:
    """The tasks of an application in canonical order, and by task the old index, -1 for those to be compiled.
    ``places``: the indices of ``was``."""
    if before is None:
        tasks = by_name(now)
        return tasks, np.full(len(tasks), -1, dtype=np.int64)
    inherited = [field for field in _INHERITED if field(before) != field(now)]
    if was == now.tasks and all(None not in map(field, was) for field in inherited):
        return now.tasks, places
    tasks, place = by_name(now), {task.name: i for i, task in enumerate(was)}
    source = np.full(len(tasks), -1, dtype=np.int64)
    for i, task in enumerate(tasks):
        at = place.get(task.name)
        if at is not None and was[at] == task and all(field(task) is not None for field in inherited):
            source[i] = places[at]
    return tasks, source


def _name_queues(new: Cluster, changes: Changes) -> None:
    moved = [(was, now) for _, was, now in changes.workloads if was is None or now is None or was.queue != now.queue]
    if moved:
        new.queue_of = dict(new.queue_of)
    for was, _ in moved:
        if was is not None:
            del new.queue_of[was.id]
    for _, now in moved:
        if now is not None:
            new.queue_of[now.id] = new.queues.tree.index[now.queue]


def _arranged(old: Cluster, new: Cluster, source: Ints, counts: Ints) -> Arranged:
    fresh = np.flatnonzero(source < 0)
    gone = np.ones(old.task_count, dtype=bool)
    gone[source[source >= 0]] = False
    if not np.array_equal(new.rank, old.rank) or not np.array_equal(counts, np.diff(old.starts)):
        new.tasks_of(counts)
        return Arranged(old.task_count, source, np.flatnonzero(gone), fresh)
    everybody = np.arange(len(source))
    still = bool(((source == everybody) | (source < 0)).all())
    new.rank = old.rank
    return Arranged(old.task_count, None if still else source, np.flatnonzero(gone), fresh)
