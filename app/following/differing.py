"""What changed between two translations of a cluster: as a delta, and in a sentence."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from app.following.translating import Translated
from app.solver.model.configuration import Configuration
from app.solver.model.state import (
    AskChanges,
    Delta,
    NodeChanges,
    TaskChanges,
    TaskName,
    TaskOf,
    Workload,
    WorkloadChanges,
)

T = TypeVar("T")
_NAMED = 5


def delta(old: Translated, new: Translated, generation: int, versions: dict[str, str]) -> Delta:
    """From ``old``, which is what the snapshot has at ``generation``, to ``new``."""
    nodes = _changes(old.nodes, new.nodes)
    workloads = _changes(old.workloads, new.workloads)
    asks = _changes(old.asks, new.asks)
    tasks, whole = _tasks(old.workloads, workloads[1])
    return Delta(
        generation=generation,
        nodes=NodeChanges(add=nodes[0], change=nodes[1], remove=nodes[2]),
        workloads=WorkloadChanges(add=workloads[0], change=whole, remove=workloads[2]),
        tasks=tasks,
        asks=AskChanges(add=asks[0], change=asks[1], remove=asks[2]),
        resource_versions=versions,
    )


def _changes(old: Mapping[str, T], new: Mapping[str, T]) -> tuple[list[T], list[T], list[str]]:
    """Added, changed, removed."""
    added = [item for name, item in new.items() if name not in old]
    changed = [item for name, item in new.items() if name in old and old[name] is not item and old[name] != item]
    return added, changed, [name for name in old if name not in new]


def _tasks(old: Mapping[str, Workload], changed: list[Workload]) -> tuple[TaskChanges, list[Workload]]:
    """Where nothing but a few of a workload's tasks changed, those; the workloads that are told whole."""
    add: list[TaskOf] = []
    change: list[TaskOf] = []
    remove: list[TaskName] = []
    whole: list[Workload] = []
    for new in changed:
        was = old[new.id]
        before, now = {task.name: task for task in was.tasks}, {task.name: task for task in new.tasks}
        added, altered, removed = _changes(before, now)
        # Tasks keep their places, and new ones come last: what that does not give is told whole.
        kept = [name for name in before if name in now] + [task.name for task in added]
        few = 2 * (len(added) + len(altered) + len(removed)) < len(new.tasks) and len(now) == len(new.tasks)
        if few and kept == list(now) and replace(was, tasks=new.tasks) == new:
            add += [TaskOf(workload=new.id, task=task) for task in added]
            change += [TaskOf(workload=new.id, task=task) for task in altered]
            remove += [TaskName(workload=new.id, task=name) for name in removed]
        else:
            whole.append(new)
    return TaskChanges(add=add, change=change, remove=remove), whole


def told(old: Configuration | None, new: Configuration) -> str:
    """What changed, for the comment of a revision."""
    if old is None:
        return f"followed from the cluster: {len(new.queues)} queues"
    said = [
        *_said("queue", {q.name: q for q in old.queues}, {q.name: q for q in new.queues}),
        *_said("flavor", {f.name: f for f in old.flavors}, {f.name: f for f in new.flavors}),
    ]
    return "followed from the cluster: " + ("; ".join(said) or "the order of queues")


def _said(kind: str, old: Mapping[str, T], new: Mapping[str, T]) -> list[str]:
    added, changed, removed = _changes({n: (n, v) for n, v in old.items()}, {n: (n, v) for n, v in new.items()})
    names = {"added": [n for n, _ in added], "changed": [n for n, _ in changed], "removed": removed}
    return [f"{kind} {_few(of)} {word}" for word, of in names.items() if of]


def _few(names: list[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
