"""A State as KAI reads it, compiled against a configuration. Built once, then read only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from app.solver.compiled.resources import ResourceIndex
from app.solver.engines.kai.compile.configuration import CompiledConfiguration
from app.solver.engines.kai.compile.jobs import NOWHERE, PENDING, Jobs, add_ask, add_workloads, widened
from app.solver.engines.kai.compile.problems import input_problems
from app.solver.engines.kai.compile.resident import Resident
from app.solver.engines.kai.compile.resources import BOUNDLESS, PODS, QUEUE_RESOURCES, Columns, Vector, is_gpu
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, Node, State, Workload


@dataclass(frozen=True, slots=True)
class CompiledState:
    """``capacity[n]`` is what KAI may use of node n: capacity less what others occupy, never below 0; BOUNDLESS
    pods where others count pods and n does not. ``workloads``: as the state has them; jobs go by their ids instead,
    so that no place in a document, which deltas move, breaks a tie that KAI leaves to a map.
    ``named_by_nodes``: how many resources there would be without the requests of workloads."""

    configuration: CompiledConfiguration
    resources: ResourceIndex
    nodes: list[Node]
    node_name: list[str]
    node_index: dict[str, int]
    capacity: list[Vector]
    jobs: Jobs
    workloads: list[Workload]
    named_by_nodes: int
    resident: Resident = field(default_factory=Resident)


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
    add_workloads(jobs, sorted(state.workloads, key=attrgetter("id")), configuration.tree.index, node_index, columns)
    capacity: list[Vector] = []
    for node in state.nodes:
        have, taken = columns(node.capacity), columns(node.occupied)
        capacity.append(tuple(max(0, a - b) for a, b in zip(have, taken, strict=False)))
        if pods is not None and PODS not in node.capacity:
            capacity[-1] = _uncounted(capacity[-1], pods)
    if problems := list(input_problems(state)):
        raise InvalidInput(problems)
    width = len(resources)
    return CompiledState(
        configuration=configuration, resources=resources, nodes=state.nodes,
        node_name=[node.name for node in state.nodes], node_index=node_index,
        capacity=[widened(v, width) for v in capacity], jobs=jobs,
        workloads=state.workloads, named_by_nodes=named_by_nodes,
    )  # fmt: skip


def _uncounted(capacity: Vector, pods: int) -> Vector:
    """The capacity of a node that doesn't say how many pods it takes, where others do."""
    return (*capacity[:pods], BOUNDLESS, *capacity[pods + 1 :])


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
            j = add_ask(jobs, ask, queues[ask.queue])
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
    jobs.task_request = [v if len(v) == width else widened(v, width) for v in jobs.task_request]
    return jobs, resources
