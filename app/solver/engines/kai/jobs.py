"""PodGroups and their pods in flat tables, numbered: workloads by id, then asks in the order of the request.

Resources as KAI counts them: cpu in thousandths, memory in bytes, GPUs in thousandths of a device. Queues know exactly
these three (KAI: resource_share.AllResources); tasks and nodes may have more columns, which only nodes limit.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import ceil
from operator import add
from typing import Any

from app.solver.compiled import ResourceIndex
from app.solver.engines.kai.gangs import Gang, compile_gang, gang_problems
from app.solver.engines.kai.rule_sets import ReleaseRules
from app.solver.kubernetes import PODS
from app.solver.model.base import (
    GO_WITH_DAYS,
    Duration,
    DurationError,
    Quantity,
    micros,
    parse_duration,
    parse_quantity,
)
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import Ask, State, Task, Workload

CPU, MEMORY, GPU = 0, 1, 2
QUEUE_RESOURCES = ("cpu", "memory", "gpu")
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


NAMED = -1
"""What a pod asks for that names a resource beside CPU, memory and GPUs with 0, in 0.13: it takes nothing, but goes
only where some of it is left."""


def holds(free: int, amount: int) -> bool:
    """Whether so much is enough for so much of a request."""
    return amount <= free if amount >= 0 else free > 0


class Columns:
    """Request dictionaries as vectors, each distinct one parsed once. Column order: cpu, memory, gpu, others. There is
    a column of pods where some node counts them; a pod is one, whatever its requests say."""

    __slots__ = ("_nothing", "_one_pod", "_seen", "resources")

    def __init__(self, resources: ResourceIndex, rules: ReleaseRules) -> None:
        self.resources = resources
        self._nothing = 0 if rules.overfull_for_all else NAMED
        self._one_pod: tuple[tuple[str, Quantity], ...] = ((PODS, 1),) if PODS in resources.index else ()
        self._seen: dict[tuple[tuple[str, Quantity], ...], Vector] = {}

    def __call__(self, quantities: dict[str, Quantity], *, pod: bool = False) -> Vector:
        """The vector of ``quantities``; resources that no node has are columns too. Raises QuantityError."""
        if pod and PODS in quantities:
            quantities = {name: value for name, value in quantities.items() if name != PODS}
        key = (*quantities.items(), *self._one_pod) if pod else tuple(quantities.items())
        known = self._seen.get(key)
        if known is None:
            known = self._parse(dict(key), self._nothing if pod else 0)
            self._seen[key] = known
        return known

    def _parse(self, quantities: dict[str, Quantity], nothing: int) -> Vector:
        steps: dict[int, int] = {}
        for name, value in quantities.items():
            r = GPU if is_gpu(name) else self.resources.add(name)
            steps[r] = steps.get(r, 0) + parse_quantity(value, self.resources.scales[r])
        if nothing:
            steps = {r: amount if amount or r <= GPU else nothing for r, amount in steps.items()}
        return tuple(steps.get(r, 0) for r in range(len(self.resources)))


def input_problems(state: State) -> Iterator[Problem]:
    """What KAI can't read in a state: several units of a task, MIG and memory-sliced GPUs, shares of several GPUs,
    sub groups that are no tree."""
    readable = Readable()
    for i, workload in enumerate(state.workloads):
        yield from job_problems(workload, ("state", "workloads", i))
        for task in workload.tasks:
            if task.count != 1 or task.gpu_memory or not readable(task.requests):
                yield from task_problems(workload.tasks, ("state", "workloads", i))
                break


class Readable:
    """Whether KAI can read a request; every distinct one is looked at once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, Quantity], ...], bool] = {}

    def __call__(self, requests: dict[str, Quantity]) -> bool:
        key = tuple(requests.items())
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = all(_unreadable(name, value) is None for name, value in key)
        return known


def _unreadable(name: str, value: Quantity) -> str | None:
    if (why := unsupported_gpu(name)) is not None:
        return why
    if is_gpu(name) and (steps := parse_quantity(value, 1000)) > 1000 and steps % 1000:
        return "a request is a number of whole GPUs, or a share of one"
    return None


def task_problems(tasks: Sequence[Task], path: tuple[str | int, ...]) -> Iterator[Problem]:
    """What KAI can't read of one workload or ask; ``path`` is its place in the request."""
    for t, task in enumerate(tasks):
        whole = [name for name, value in task.requests.items() if is_gpu(name) and value not in (0, "0")]
        if task.gpu_memory and whole:
            detail = f"it asks for {whole[0]} too: a pod asks for GPUs, or for memory of them"
            yield Problem(pointer=pointer(*path, "tasks", t, "gpu_memory"), detail=detail)
        if task.count != 1:
            detail = f"count {task.count}: a KAI task is one pod, give each its own name"
            yield Problem(pointer=pointer(*path, "tasks", t, "count"), detail=detail)
        for name, value in task.requests.items():
            if (why := _unreadable(name, value)) is not None:
                yield Problem(pointer=pointer(*path, "tasks", t, "requests", name), detail=why)


def task_key(task: Task) -> tuple[int, int, str]:
    """Task order: priority, age, name."""
    return -(task.priority or 0), micros(task.created_at) if task.created_at else OLDEST, task.name


def are_twins(task: Task, other: Task) -> bool:
    """Whether nothing tells two pods apart but their names, at a glance."""
    return (
        task.requests is other.requests
        and task.state == other.state
        and task.node_selector is other.node_selector
        and task.tolerations is other.tolerations
        and task.node_affinity is other.node_affinity
        and (task.required_node, task.gpu_memory, task.gpu_devices)
        == (other.required_node, other.gpu_memory, other.gpu_devices)
    )


def job_problems(job: Workload | Ask, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """What KAI can't read of a job beside its pods; ``path`` is its place in the request."""
    if job.sub_groups is not None:
        places = (((*path, "tasks", t, "sub_group"), task.sub_group) for t, task in enumerate(job.tasks))
        yield from gang_problems(job.sub_groups, places, path)
    if job.preemption_delay is not None:
        yield from duration_problems(job.preemption_delay, (*path, "preemption_delay"))
    if isinstance(job, Workload) and job.staleness_grace_period is not None:
        yield from duration_problems(job.staleness_grace_period, (*path, "staleness_grace_period"), negative=True)


def duration_problems(value: Duration, path: tuple[str | int, ...], *, negative: bool = False) -> Iterator[Problem]:
    """What is wrong with a duration: it does not parse, or is below 0 where it must not be (``negative``: it may)."""
    try:
        if parse_duration(value, GO_WITH_DAYS) < 0 and not negative:
            yield Problem(pointer=pointer(*path), detail=f"{value!r} is negative")
    except DurationError as error:
        yield Problem(pointer=pointer(*path), detail=str(error))


def _length(value: Duration | None) -> int | None:
    """Microseconds; None where there is no value, or none that parses, which is a problem of its own."""
    try:
        return None if value is None else parse_duration(value, GO_WITH_DAYS)
    except DurationError:
        return None


NOWHERE = -1
OLDEST = -(2**62)

# Task states. RUNNING covers KAI's Bound and Running; ALLOCATED its Allocated and Binding. GONE holds nothing and waits
# for nothing: gated pods too. STUCK (since 0.17) should have gone long ago: it keeps what it holds, and nothing waits
# for that.
PENDING, RUNNING, ALLOCATED, PIPELINED, RELEASING, GONE, STUCK = range(7)

_STATES = {
    "running": RUNNING, "bound": RUNNING, "releasing": RELEASING, "preempted": RELEASING, "released": GONE,
    "gated": GONE, "succeeded": GONE, "failed": GONE, "stuck_in_releasing": STUCK,
}  # fmt: skip


LEAST_GPU_MEMORY = 100
"""MiB of a GPU of a node that does not say; amounts are whole multiples of it."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Shares of GPUs: of how many, and of each thousandths (``part``), or MiB (``memory``), the other being 0."""

    devices: int
    part: int
    memory: int

    def memory_on(self, size: int) -> int:
        """MiB of each device on a node whose GPUs have ``size``. Parts are doubles there, and are cut."""
        return self.memory or int(self.part / 1000 * size)

    def gpus_on(self, size: int) -> int:
        """What it counts there wherever GPUs are added up, in thousandths of one: hundredths of each device, parts to
        the nearest one, half of one up, memory to the next (KAI: getExtendedResourceGpus, getGpuMemoryFractionalOnNode;
        doubles, as there). Its devices have what it asks for."""
        return self.devices * (hundredths(self.memory, size) if self.memory else int(self.part / 1000 * 100 + 0.5) * 10)


def hundredths(memory: int, size: int) -> int:
    """The part of a GPU of ``size`` MiB, in thousandths, rounded up to hundredths as doubles have it."""
    return ceil(memory / size * 100) * 10


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """By node: the MiB of each of its GPUs, how many it has, and thousandths of GPUs that pods listed there take whole,
    those that wait or that left included. ``portions``: by pod what it wants of shared ones."""

    memory: list[int]
    gpus: list[int]
    whole: list[int]
    portions: Sequence[Portion | None]


def is_numbered(group: str) -> bool:
    """Whether a shared GPU has a number for a name, by which KAI tells that it is not new."""
    return re.fullmatch(r"[+-]?[0-9]+", group) is not None


def added_up(amounts: Iterable[float]) -> float:
    """One after the other, as Go adds doubles; ``sum`` makes up for what is rounded off, from Python 3.12 on."""
    return reduce(add, amounts, 0.0)


def portion_of(task: Task, gpus: int) -> Portion | None:
    """The shares that a pod wants that asks for so many thousandths of a GPU; None where it wants none."""
    devices = task.gpu_devices or 1
    if task.gpu_memory:
        return Portion(devices, 0, task.gpu_memory)
    return Portion(devices, gpus, 0) if 0 < gpus < 1000 else None


def with_shares(request: Vector, portion: Portion | None, size: int | None) -> Vector:
    """The request with what its shares count in GPUs; memory counts nothing before the pod has a node (``size``)."""
    if portion is None or not (portion.memory or portion.devices > 1 or portion.part % 10):
        return request
    gpus = 0 if portion.memory and size is None else portion.gpus_on(size or LEAST_GPU_MEMORY)
    return (*request[:GPU], gpus, *request[GPU + 1 :])


def counted(taken: tuple[tuple[int, int], ...], lacking: frozenset[int]) -> Sequence[tuple[int, int]]:
    """What of it counts on a node, without what the node has nothing of."""
    return [(r, amount) for r, amount in taken if r not in lacking] if lacking else taken


def constraints(task: Task, ask: Ask | None) -> str:
    """The pod's constraints as one string; empty without any. Equal constraints give equal strings."""
    if not (
        task.required_node is not None or task.node_selector or task.tolerations or task.node_affinity
        or (ask is not None and (ask.required_node is not None or ask.feasible_nodes is not None))
    ):  # fmt: skip
        return ""
    parts = (
        task.required_node or (ask.required_node if ask else None),
        tuple(sorted(ask.feasible_nodes)) if ask and ask.feasible_nodes is not None else None,
        sorted((task.node_selector or {}).items()),
        [(t.key, t.operator, t.value, t.effect) for t in task.tolerations or []],
        [[(e.key, e.operator, e.values) for e in t] for t in task.node_affinity or []],
    )
    return repr(parts) if any(part is not None and part != [] for part in parts) else ""


@dataclass(slots=True)
class Jobs:
    """PodGroups and their pods. Jobs are numbered: workloads by id, then asks in the order of the request.

    ``tasks[j]`` lists the task numbers of job j. ``started`` and ``created`` in microseconds; a start that is
    not known is None, a creation that is not known is OLDEST. ``ask[j]`` is the first ask of a job, -1 without one;
    ``of_ask[a]`` the job of an ask. ``gang[j]``: the tree of its sub groups, None without any; then ``min_available``
    says it all. ``delay`` and ``grace`` (None: the settings') in microseconds, ``evicted_at`` and ``stale_since`` None
    where nobody knows. ``ask_constraints`` and ``ask_columns`` (what each takes from a node, shares of GPUs left
    out): of the pods that came with asks, which are the last; ``waiting``: by ask its job, how many of its pods wait,
    and what for; ``in_order`` and ``like``: of jobs that are one ask, their pods in task order, and a number that is
    equal for what is alike; ``asked``: of those that one ask grows, too, its pods in task order.
    """

    id: list[str] = field(default_factory=list)
    uid: list[str] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    created: list[int] = field(default_factory=list)
    started: list[int | None] = field(default_factory=list)
    preemptible: list[bool] = field(default_factory=list)
    min_available: list[int] = field(default_factory=list)
    gang: list[Gang | None] = field(default_factory=list)
    delay: list[int] = field(default_factory=list)
    evicted_at: list[int | None] = field(default_factory=list)
    stale_since: list[int | None] = field(default_factory=list)
    grace: list[int | None] = field(default_factory=list)
    tasks: list[list[int]] = field(default_factory=list)
    ask: list[int] = field(default_factory=list)
    of_ask: list[int] = field(default_factory=list)
    by_id: dict[str, int] = field(default_factory=dict)
    task_name: list[str] = field(default_factory=list)
    task_job: list[int] = field(default_factory=list)
    task_node: list[int] = field(default_factory=list)
    task_state: list[int] = field(default_factory=list)
    task_request: list[Vector] = field(default_factory=list)
    task_wire: list[Task] = field(default_factory=list)
    task_portion: list[Portion | None] = field(default_factory=list)
    ask_constraints: list[str] = field(default_factory=list)
    ask_columns: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    waiting: list[tuple[int, int, Share]] = field(default_factory=list)
    in_order: dict[int, list[int]] = field(default_factory=dict)
    asked: dict[int, list[int]] = field(default_factory=dict)
    like: dict[int, int] = field(default_factory=dict)

    def copy(self) -> "Jobs":
        """A copy whose lists can grow; what they hold is shared, so ``tasks`` of a job must not grow in place."""
        return Jobs(
            id=self.id.copy(), uid=self.uid.copy(), queue=self.queue.copy(), priority=self.priority.copy(),
            created=self.created.copy(), started=self.started.copy(), preemptible=self.preemptible.copy(),
            min_available=self.min_available.copy(), gang=self.gang.copy(), delay=self.delay.copy(),
            evicted_at=self.evicted_at.copy(), stale_since=self.stale_since.copy(), grace=self.grace.copy(),
            tasks=self.tasks.copy(), ask=self.ask.copy(),
            of_ask=self.of_ask.copy(), by_id=self.by_id.copy(), task_name=self.task_name.copy(),
            task_job=self.task_job.copy(),
            task_node=self.task_node.copy(), task_state=self.task_state.copy(),
            task_request=self.task_request.copy(), task_wire=self.task_wire.copy(),
            task_portion=self.task_portion.copy(),
        )  # fmt: skip

    def by_pod_set(self, tasks: Iterable[int]) -> dict[str, list[int]]:
        """Pods of a job that has sub groups by the one that they are in, in the order given."""
        wires = self.task_wire
        pods: dict[str, list[int]] = {}
        for t in tasks:
            pods.setdefault(wires[t].sub_group or "", []).append(t)
        return pods

    def elastic(self, j: int) -> bool:
        """More pods (in any state, pending and finished ones too) than the gang needs, of some pod set."""
        gang = self.gang[j]
        if gang is not None:
            return gang.elastic(self.by_pod_set(self.tasks[j]))
        return self.min_available[j] < len(self.tasks[j])

    def grow(self, a: int, pods: list[int], in_order: list[int], like: int | None) -> None:
        """Ask number ``a`` adds pods to a job that there is. ``like``: see the class."""
        j, tasks = self.of_ask[a], self.tasks
        if self.ask[j] < 0:
            self.ask[j] = a
            self.asked[j] = in_order
        else:
            self.asked.pop(j, None)
        if not tasks[j]:
            self.in_order[j] = self.asked[j] = in_order
            tasks[j] = pods
        else:
            self.in_order.pop(j, None)
            tasks[j] = tasks[j] + pods
        if like is not None and j in self.asked:
            self.like[j] = like
        else:
            self.like.pop(j, None)

    def is_stale(self, j: int, used: int, used_pods: Callable[[int], Mapping[str, Sequence[int]]]) -> bool:
        """Some of the gang runs (``used``: how many, those being released counted; ``used_pods``: by pod set), none of
        it has ended well, and some pod set lacks pods."""
        if any(self.task_wire[t].state == "succeeded" for t in self.tasks[j]):
            return False
        gang = self.gang[j]
        if gang is None:
            return 0 < used < self.min_available[j]
        return used > 0 and not gang.every_set_satisfied(used_pods(j))


def add_workloads(
    jobs: Jobs, workloads: Sequence[Workload], queues: dict[str, int], nodes: dict[str, int], columns: Columns,
    rules: ReleaseRules, memory: Sequence[int],
) -> None:  # fmt: skip
    """Append workloads to an empty table. Raises KeyError, QuantityError."""
    names, of, where, states = jobs.task_name, jobs.task_job, jobs.task_node, jobs.task_state
    requests, wires, portions = jobs.task_request, jobs.task_wire, jobs.task_portion
    rows: list[Row] = []
    for j, w in enumerate(workloads):
        rows.append(row_of(w, queues[w.queue], rules))
        jobs.ask.append(-1)
        first = len(names)
        for task in w.tasks:
            names.append(task.name)
            of.append(j)
            where.append(NOWHERE if task.node is None else nodes[task.node])
            state = RELEASING if w.evicted and task.state == "running" else _STATES[task.state]
            states.append(state if state != STUCK or rules.knows_stuck else RELEASING)
            request = columns(task.requests, pod=True)
            portion = portion_of(task, request[GPU])
            portions.append(portion)
            size = None if task.node is None or states[-1] == GONE else memory[nodes[task.node]]
            requests.append(request if portion is None else with_shares(request, portion, size))
            wires.append(task)
        jobs.tasks.append(list(range(first, len(names))))
    add_rows(jobs, rows)
    jobs.by_id = {name: j for j, name in enumerate(jobs.id)}


BY_JOB = ("id", "uid", "queue", "priority", "created", "started", "preemptible", "min_available",
          "gang", "delay", "evicted_at", "stale_since", "grace")  # fmt: skip
"""What a job says of itself, by column of ``Jobs``."""
Row = tuple[Any, ...]
"""The same of one job, in that order."""


def row_of(job: Workload | Ask, queue: int, rules: ReleaseRules) -> Row:
    """A job without its pods. Raises QuantityError."""
    gang, least = None, 1 if job.min_available is None else job.min_available
    if job.sub_groups:
        gang = compile_gang(job.sub_groups, job.min_sub_group, flat=not rules.sub_group_trees)
        least = gang.needs
    runs = job if isinstance(job, Workload) else None
    return (
        job.id, job.id if job.uid is None else job.uid, queue, job.priority or 0,
        OLDEST if job.created_at is None else micros(job.created_at),
        None if runs is None or runs.started_at is None else micros(runs.started_at),
        job.preemptible is not False, least, gang, _length(job.preemption_delay) or 0,
        None if job.last_evicted_at is None else micros(job.last_evicted_at),
        None if runs is None or runs.stale_since is None else micros(runs.stale_since),
        None if runs is None else _length(runs.staleness_grace_period),
    )  # fmt: skip


def add_rows(jobs: Jobs, rows: Sequence[Row]) -> None:
    """Append jobs, in these columns."""
    for name, column in zip(BY_JOB, zip(*rows, strict=True), strict=False):
        getattr(jobs, name).extend(column)


def widened(vector: Vector, width: int) -> Vector:
    """The vector with zeros in the columns that it lacks."""
    return vector if len(vector) == width else vector + (0,) * (width - len(vector))


def rank(active: int, min_available: int) -> int:
    """Of a job with so many active pods: 0 below its gang, 1 at it, 2 above it."""
    return 0 if active < min_available else 1 if active == min_available else 2


def total(requests: list[tuple[int, ...]], tasks: Iterable[int]) -> Share:
    """The sum of the pods' requests, queue resources only."""
    cpu = memory = gpu = 0
    for t in tasks:
        request = requests[t]
        cpu += request[0]
        memory += request[1]
        gpu += request[2]
    return cpu, memory, gpu


def packs(rooms: list[int], items: list[int]) -> bool:
    """Whether all items find room. Never wrong where it says no; it looks for a while only."""
    rooms, items, tries = sorted(rooms), sorted(items, reverse=True), iter(range(200))

    def rest(i: int) -> bool:
        if i == len(items) or next(tries, None) is None:
            return True
        for d in {room: d for d, room in enumerate(rooms) if room >= items[i]}.values():
            rooms[d] -= items[i]
            if rest(i + 1):
                return True
            rooms[d] += items[i]
        return False

    return sum(items) <= sum(rooms) and rest(0)
