"""A translation of a few pods of a group put into that of all of its pods.

The tasks of a workload are those of its pods, in the order of a list. So a group of which few pods changed is
translated from these and from the pods on which what is said of the whole group hangs; the tasks of all others stay as
they are.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec

from app.following.mirror import Key
from app.solver.model.state import Ask, Task, Workload

Of = TypeVar("Of", Workload, Ask)


def key_of(space: str, task: str) -> Key:
    """The pod of a task, and what else is named with its namespace or within ``space``. KAI's tasks have the name of
    their pod, which is in the namespace of the group; YuniKorn's have both."""
    within, _, name = task.rpartition("/")
    return within or space, name


def untouched(tasks: Iterable[Task], space: str, changed: Collection[Key]) -> Key | None:
    """A pod that did not change of those behind ``tasks``, and that is not done."""
    for task in tasks:
        if task.state != "released" and (key := key_of(space, task.name)) not in changed:
            return key
    return None


def spliced(old: Of | None, new: Of, space: str, read: Collection[Key]) -> Of:
    """``new``, which is of the pods in ``read`` alone, with the tasks that ``old`` has of others."""
    if old is None:
        return new
    tasks, again = list(old.tasks), {key_of(space, task.name): task for task in new.tasks}
    for key in read:
        at = bisect_left(tasks, key, key=lambda task: key_of(space, task.name))
        there = at < len(tasks) and key_of(space, tasks[at].name) == key
        task = again.get(key)
        if task is not None:
            tasks[at : at + there] = [task]
        elif there:
            del tasks[at]
    return msgspec.structs.replace(new, tasks=tasks)
