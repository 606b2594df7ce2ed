"""A Configuration and a State as KAI reads them, in flat integer tables. Built once, then read only.

Quantities are integers: cpu in thousandths, memory in bytes, GPUs in thousandths of a device. Queues know
exactly these three resources (KAI: resource_share.AllResources); tasks and nodes may have more columns, which
only nodes limit. ``UNLIMITED`` (-1) stands for no limit and for an unlimited deserved quota, as in KAI.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.solver.compiled.resources import ResourceIndex
from app.solver.compiled.tree import Tree, compile_tree
from app.solver.engines.kai.compile.min_runtime import MinRuntimes
from app.solver.engines.kai.compile.resident import Resident, Share
from app.solver.engines.kai.compile.settings import Policy, compile_min_runtimes, compile_policy
from app.solver.model.base import Quantity
from app.solver.model.configuration import Configuration, Queue, Quota
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import UNLIMITED as UNLIMITED_WORD
from app.solver.model.quantity import parse
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.quotas import quotas

CPU, MEMORY, GPU = 0, 1, 2
QUEUE_RESOURCES = ("cpu", "memory", "gpu")
PODS = "pods"
UNLIMITED = -1
OLDEST = -(2**62)
NOWHERE = -1
BOUNDLESS = 2**62

# Task states. RUNNING covers KAI's Bound and Running; ALLOCATED its Allocated and Binding.
PENDING, RUNNING, ALLOCATED, PIPELINED, RELEASING, GONE = range(6)

Vector = tuple[int, ...]

_STATES = {"running": RUNNING, "releasing": RELEASING, "preempted": RELEASING, "released": GONE}


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    """Queues by index in document order; ``Share`` is (cpu, memory, gpu). ``weight`` is the over-quota weight."""

    policy: Policy
    min_runtimes: MinRuntimes
    tree: Tree
    queues: list[Queue]
    deserved: list[Share]
    limit: list[Share]
    weight: list[tuple[float, float, float]]
    priority: list[int]
    created: list[int]


@dataclass(slots=True)
class Jobs:
    """PodGroups and their pods. Jobs and tasks are numbered in the order of the request: workloads, then asks.

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


@dataclass(frozen=True, slots=True)
class CompiledState:
    """``capacity[n]`` is what KAI may use of node n: capacity less what others occupy, never below 0; BOUNDLESS
    pods where others count pods and n does not.
    ``named_by_nodes``: how many resources there would be without the requests of workloads."""

    configuration: CompiledConfiguration
    resources: ResourceIndex
    nodes: list[Node]
    node_name: list[str]
    node_index: dict[str, int]
    capacity: list[Vector]
    jobs: Jobs
    named_by_nodes: int
    resident: Resident = field(default_factory=Resident)


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput: a cycle, an unknown parent, bad settings, several flavors (KAI has none)."""
    tree = compile_tree(configuration.queues)
    policy = compile_policy(configuration.settings.kai)
    problems: list[Problem] = []
    deserved: list[Share] = []
    limit: list[Share] = []
    weight: list[tuple[float, float, float]] = []
    for i, queue in enumerate(configuration.queues):
        own = _quotas(queue, i, problems)
        deserved.append(_share([q.guaranteed for q in own], 0))
        limit.append(_share([q.limit for q in own], UNLIMITED))
        cpu, memory, gpu = (queue.weight if q.weight is None else q.weight for q in own)
        weight.append((cpu, memory, gpu))
    if problems:
        raise InvalidInput(problems)
    return CompiledConfiguration(
        policy=policy, min_runtimes=compile_min_runtimes(configuration, tree, policy), tree=tree,
        queues=configuration.queues,
        deserved=deserved, limit=limit, weight=weight, priority=[q.priority for q in configuration.queues],
        created=[OLDEST if q.created_at is None else micros(q.created_at) for q in configuration.queues],
    )  # fmt: skip


def _quotas(queue: Queue, i: int, problems: list[Problem]) -> tuple[Quota, Quota, Quota]:
    for g, group in enumerate(queue.resource_groups or ()):
        if len(group.flavors) > 1:
            at = pointer("configuration", "queues", i, "resource_groups", g, "flavors")
            problems.append(Problem(pointer=at, detail="KAI has no flavors: give one quota a resource"))
    named = {placed.resource: placed for placed in quotas(queue, ("configuration", "queues", i))}
    gpus = [placed for name, placed in named.items() if is_gpu(name)]
    if len(gpus) > 1:
        detail = "several GPU resources: KAI counts GPUs once"
        problems += [Problem(pointer=pointer(*placed.at), detail=detail) for placed in gpus]
    cpu, memory = (named[name].quota if name in named else Quota() for name in ("cpu", "memory"))
    return cpu, memory, gpus[0].quota if gpus else Quota()


def _share(values: Sequence[Quantity | None], absent: int) -> Share:
    cpu, memory, gpu = (
        absent if value is None else UNLIMITED if value == UNLIMITED_WORD else parse(value, scale)
        for value, scale in zip(values, (1000, 1, 1000), strict=True)
    )
    return cpu, memory, gpu


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


def compile_state(configuration: CompiledConfiguration, state: State) -> CompiledState:
    """Raises KeyError, QuantityError or InvalidInput; what is wrong with the document itself the caller diagnoses."""
    resources = ResourceIndex(QUEUE_RESOURCES)
    for node in state.nodes:
        for name in node.capacity:
            if not is_gpu(name):
                resources.add(name)
    named_by_nodes, pods = len(resources), resources.index.get(PODS)
    node_index = {node.name: n for n, node in enumerate(state.nodes)}
    columns = Columns(resources)
    jobs = Jobs()
    add_workloads(jobs, state.workloads, configuration.tree.index, node_index, columns)
    capacity: list[Vector] = []
    for node in state.nodes:
        have, taken = columns(node.capacity), columns(node.occupied)
        capacity.append(tuple(max(0, a - b) for a, b in zip(have, taken, strict=False)))
        if pods is not None and PODS not in node.capacity:
            capacity[-1] = _uncounted(capacity[-1], pods)
    width = len(resources)
    return CompiledState(
        configuration=configuration, resources=resources, nodes=state.nodes,
        node_name=[node.name for node in state.nodes], node_index=node_index,
        capacity=[_wide(v, width) for v in capacity], jobs=jobs,
        named_by_nodes=named_by_nodes,
    )  # fmt: skip


def _uncounted(capacity: Vector, pods: int) -> Vector:
    """The capacity of a node that doesn't say how many pods it takes, where others do."""
    return (*capacity[:pods], BOUNDLESS, *capacity[pods + 1 :])


def _wide(vector: Vector, width: int) -> Vector:
    return vector if len(vector) == width else vector + (0,) * (width - len(vector))


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


def with_asks(state: CompiledState, asks: Sequence[Ask]) -> tuple[Jobs, ResourceIndex]:
    """The jobs of a state and of the asks, in that order; an ask of a workload adds its pending tasks to that job.

    Requests of unknown resources widen the columns, so vectors are padded to the width of the returned index.
    """
    jobs = state.jobs.copy()
    resources = ResourceIndex(state.resources.names)
    columns = Columns(resources)
    queues = state.configuration.tree.index
    for a, ask in enumerate(asks):
        j = jobs.by_id.get(ask.workload) if ask.workload is not None else None
        if j is None:
            j = _add_ask(jobs, ask, queues[ask.queue])
        if jobs.ask[j] < 0:
            jobs.ask[j] = a
        jobs.of_ask.append(j)
        first = len(jobs.task_name)
        jobs.tasks[j] = [*jobs.tasks[j], *range(first, first + len(ask.tasks))]
        for task in ask.tasks:
            jobs.task_name.append(task.name)
            jobs.task_job.append(j)
            jobs.task_node.append(NOWHERE)
            jobs.task_state.append(PENDING)
            jobs.task_request.append(columns(task.requests, pod=True))
            jobs.task_wire.append(task)
    width = len(resources)
    jobs.task_request = [v if len(v) == width else _wide(v, width) for v in jobs.task_request]
    return jobs, resources


def _add_ask(jobs: Jobs, ask: Ask, queue: int) -> int:
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
