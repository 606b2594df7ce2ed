"""PodGroups and their pods in flat tables, numbered: workloads by id, then asks in the order of the request.

Resources as KAI counts them: cpu in thousandths, memory in bytes, GPUs in thousandths of a device. Queues know exactly
these three (KAI: resource_share.AllResources); tasks and nodes may have more columns, which only nodes limit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.solver.compiled.resources import ResourceIndex
from app.solver.model.base import Quantity
from app.solver.model.instant import micros
from app.solver.model.problems import Problem, pointer
from app.solver.model.quantity import parse
from app.solver.model.state import Ask, State, Task, Workload

CPU, MEMORY, GPU = 0, 1, 2
QUEUE_RESOURCES = ("cpu", "memory", "gpu")
PODS = "pods"
KAI_UNLIMITED = -1
"""No limit, or an unlimited deserved quota, as KAI's arithmetic has it: its comparisons treat minus one unit so."""
BOUNDLESS = 2**62
"""Pods of a node that does not count them."""

Vector = tuple[int, ...]
"""Amounts by column: cpu, memory, gpu, others."""
Share = tuple[int, int, int]
"""Amounts of cpu, memory and gpu."""


def is_gpu(name: str) -> bool:
    """Names of whole GPUs and shares of one: gpu, nvidia.com/gpu, amd.com/gpu, ..."""
    return name == "gpu" or name.endswith("/gpu")


def unsupported_gpu(name: str) -> str | None:
    """Why a GPU resource of this name is refused: MIG instances and slices of GPU memory; None where it is not."""
    low = name.lower()
    if "/mig-" in low or low.startswith("mig-"):
        return "MIG instances are not supported: request whole GPUs, or a share of one"
    if "gpu" in low and "mem" in low:
        return "requests for GPU memory are not supported: request a share of a GPU"
    return None


class Columns:
    """Request dictionaries as vectors, each distinct one parsed once. Column order: cpu, memory, gpu, others. There is
    a column of pods where some node counts them; a pod is one, whatever its requests say."""

    __slots__ = ("_one_pod", "_seen", "resources")

    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self._one_pod: tuple[tuple[str, Quantity], ...] = ((PODS, 1),) if PODS in resources.index else ()
        self._seen: dict[tuple[tuple[str, Quantity], ...], Vector] = {}

    def __call__(self, quantities: dict[str, Quantity], *, pod: bool = False) -> Vector:
        """The vector of ``quantities``; resources that no node has are columns too. Raises QuantityError."""
        if pod and PODS in quantities:
            quantities = {name: value for name, value in quantities.items() if name != PODS}
        key = (*quantities.items(), *self._one_pod) if pod else tuple(quantities.items())
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._parse(dict(key))
        return found

    def _parse(self, quantities: dict[str, Quantity]) -> Vector:
        steps: dict[int, int] = {}
        for name, value in quantities.items():
            r = GPU if is_gpu(name) else self.resources.add(name)
            steps[r] = steps.get(r, 0) + parse(value, self.resources.scales[r])
        return tuple(steps.get(r, 0) for r in range(len(self.resources)))


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


NOWHERE = -1
OLDEST = -(2**62)

# Task states. RUNNING covers KAI's Bound and Running; ALLOCATED its Allocated and Binding.
PENDING, RUNNING, ALLOCATED, PIPELINED, RELEASING, GONE = range(6)

_STATES = {"running": RUNNING, "releasing": RELEASING, "preempted": RELEASING, "released": GONE}


@dataclass(slots=True)
class Jobs:
    """PodGroups and their pods. Jobs are numbered: workloads by id, then asks in the order of the request.

    ``tasks[j]`` lists the task numbers of job j. ``started`` and ``created`` in microseconds; a start that is
    not known is None, a creation that is not known is OLDEST. ``ask[j]`` is the first ask of a job, -1 without one;
    ``of_ask[a]`` the job of an ask.
    """

    id: list[str] = field(default_factory=list[str])
    uid: list[str] = field(default_factory=list[str])
    queue: list[int] = field(default_factory=list[int])
    priority: list[int] = field(default_factory=list[int])
    created: list[int] = field(default_factory=list[int])
    started: list[int | None] = field(default_factory=list[int | None])
    preemptible: list[bool] = field(default_factory=list[bool])
    min_available: list[int] = field(default_factory=list[int])
    tasks: list[list[int]] = field(default_factory=list[list[int]])
    ask: list[int] = field(default_factory=list[int])
    of_ask: list[int] = field(default_factory=list[int])
    by_id: dict[str, int] = field(default_factory=dict[str, int])
    task_name: list[str] = field(default_factory=list[str])
    task_job: list[int] = field(default_factory=list[int])
    task_node: list[int] = field(default_factory=list[int])
    task_state: list[int] = field(default_factory=list[int])
    task_request: list[Vector] = field(default_factory=list[Vector])
    task_wire: list[Task] = field(default_factory=list[Task])

    def copy(self) -> "Jobs":
        """A copy whose lists can grow; what they hold is shared, so ``tasks`` of a job must not grow in place."""
        return Jobs(
            id=self.id.copy(), uid=self.uid.copy(), queue=self.queue.copy(), priority=self.priority.copy(),
            created=self.created.copy(), started=self.started.copy(), preemptible=self.preemptible.copy(),
            min_available=self.min_available.copy(), tasks=self.tasks.copy(), ask=self.ask.copy(),
            of_ask=self.of_ask.copy(), by_id=self.by_id.copy(), task_name=self.task_name.copy(),
            task_job=self.task_job.copy(),
            task_node=self.task_node.copy(), task_state=self.task_state.copy(),
            task_request=self.task_request.copy(), task_wire=self.task_wire.copy(),
        )  # fmt: skip


def add_workloads(
    jobs: Jobs, workloads: Sequence[Workload], queues: dict[str, int], nodes: dict[str, int], columns: Columns
) -> None:
    """Append workloads to an empty table. Raises KeyError, QuantityError."""
    names, of, where, states = jobs.task_name, jobs.task_job, jobs.task_node, jobs.task_state
    requests, wires = jobs.task_request, jobs.task_wire
    for j, w in enumerate(workloads):
        jobs.id.append(w.id)
        jobs.uid.append(w.id if w.uid is None else w.uid)
        jobs.queue.append(queues[w.queue])
        jobs.priority.append(w.priority)
        jobs.created.append(OLDEST if w.created_at is None else micros(w.created_at))
        jobs.started.append(None if w.started_at is None else micros(w.started_at))
        jobs.preemptible.append(w.preemptible)
        jobs.min_available.append(1 if w.min_available is None else w.min_available)
        jobs.ask.append(-1)
        first = len(names)
        for task in w.tasks:
            names.append(task.name)
            of.append(j)
            where.append(NOWHERE if task.node is None else nodes[task.node])
            states.append(RELEASING if w.evicted and task.state == "running" else _STATES[task.state])
            requests.append(columns(task.requests, pod=True))
            wires.append(task)
        jobs.tasks.append(list(range(first, len(names))))
    jobs.by_id = {name: j for j, name in enumerate(jobs.id)}


def add_ask(jobs: Jobs, ask: Ask, queue: int) -> int:
    """A job for an ask that belongs to no workload, without pods yet; its number."""
    j = len(jobs.id)
    jobs.id.append(ask.id)
    jobs.uid.append(ask.id if ask.uid is None else ask.uid)
    jobs.queue.append(queue)
    jobs.priority.append(ask.priority or 0)
    jobs.created.append(OLDEST if ask.created_at is None else micros(ask.created_at))
    jobs.started.append(None)
    jobs.preemptible.append(True if ask.preemptible is None else ask.preemptible)
    jobs.min_available.append(1 if ask.min_available is None else ask.min_available)
    jobs.tasks.append([])
    jobs.ask.append(-1)
    jobs.by_id.setdefault(ask.id, j)
    return j


def widened(vector: Vector, width: int) -> Vector:
    """The vector with zeros in the columns that it lacks."""
    return vector if len(vector) == width else vector + (0,) * (width - len(vector))
