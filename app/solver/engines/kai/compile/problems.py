"""What KAI can't read in a state or an ask: several units of a task, MIG and memory-sliced GPUs, shares of several."""

from collections.abc import Iterator, Sequence

from app.solver.engines.kai.compile.resources import is_gpu, unsupported_gpu
from app.solver.model.base import Quantity
from app.solver.model.problems import Problem, pointer
from app.solver.model.quantity import parse
from app.solver.model.state import State, Task


def input_problems(state: State) -> Iterator[Problem]:
    """What KAI can't read in a state: several units of a task, MIG and memory-sliced GPUs, shares of several GPUs."""
    readable = Readable()
    for i, workload in enumerate(state.workloads):
        for task in workload.tasks:
            if task.count != 1 or not readable(task.requests):
                yield from task_problems(workload.tasks, ("state", "workloads", i))
                break


class Readable:
    """Whether KAI can read a request; every distinct one is looked at once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, Quantity], ...], bool] = {}

    def __call__(self, requests: dict[str, Quantity]) -> bool:
        key = tuple(requests.items())
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = all(_unreadable(name, value) is None for name, value in key)
        return found


def _unreadable(name: str, value: Quantity) -> str | None:
    if (why := unsupported_gpu(name)) is not None:
        return why
    if is_gpu(name) and (steps := parse(value, 1000)) > 1000 and steps % 1000:
        return "a request is a number of whole GPUs, or a share of one"
    return None


def task_problems(tasks: Sequence[Task], at: tuple[str | int, ...]) -> Iterator[Problem]:
    """What KAI can't read of one workload or ask; ``at`` is its place in the request."""
    for t, task in enumerate(tasks):
        if task.count != 1:
            detail = f"count {task.count}: a KAI task is one pod, give each its own name"
            yield Problem(pointer=pointer(*at, "tasks", t, "count"), detail=detail)
        for name, value in task.requests.items():
            if (why := _unreadable(name, value)) is not None:
                yield Problem(pointer=pointer(*at, "tasks", t, "requests", name), detail=why)
