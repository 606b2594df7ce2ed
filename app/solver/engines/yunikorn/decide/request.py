"""Pending work as YuniKorn sees it: one allocation ask after the other, each for one node."""

from dataclasses import dataclass, replace

from app.solver import kubernetes
from app.solver.compiled.resources import ResourceIndex
from app.solver.engines.yunikorn.compile.configuration import Amounts
from app.solver.engines.yunikorn.compile.state import OLDEST, CompiledState
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Task

_DEMANDS = 256
"""Pods ask so many different things of nodes, and those are kept; one more begins anew."""
MOST_UNITS = 256
"""Allocation asks that one ask of the wire may stand for (tasks times count)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One allocation ask.

    ``amounts``: by index of ``resources`` (the cluster's, extended by what only the ask names); ``created`` and
    ``checked`` in microseconds; ``required``: index of the only node it may run on; ``feasible``: indices of the
    nodes that pass the predicates, None when all do; ``workload``: canonical index of its application; ``unit``: its
    place among the ``units`` allocation asks that ``ask`` stands for.
    """

    ask: Ask
    task: Task
    queue: int
    amounts: Amounts
    resources: ResourceIndex
    priority: int
    created: int
    checked: int | None
    triggered: bool
    required: int | None
    feasible: frozenset[int] | None
    workload: int | None
    unit: int = 0
    units: int = 1

    @property
    def needs(self) -> Amounts:
        """What it takes room for: the amounts above 0."""
        return {r: amount for r, amount in self.amounts.items() if amount > 0}


def requests_of(state: CompiledState, ask: Ask) -> list[Request]:
    """The allocation asks of ``ask``, a task after the other. Raises QuantityError."""
    found = [one for task in ask.tasks for one in [_request(state, ask, task)] * task.count]
    return found if len(found) == 1 else [replace(one, unit=i, units=len(found)) for i, one in enumerate(found)]


def holder_of(state: CompiledState, ask: Ask) -> Request | None:
    """The allocation ask that holds a reservation: the first of ``ask``. Raises QuantityError."""
    return _request(state, ask, ask.tasks[0]) if ask.tasks else None


def check_asks(state: CompiledState, asks: list[Ask]) -> None:
    """Raises InvalidInput with every ask that YuniKorn can't take; pointers start at /asks."""
    refuse([problem for i, ask in enumerate(asks) for problem in ask_problems(state, ask, "asks", i)])


def ask_problems(state: CompiledState, ask: Ask, *at: str | int) -> list[Problem]:
    """What is wrong with one ask; ``at`` leads to it."""
    problems: list[Problem] = []
    if not state.configuration.leaf[state.configuration.tree.index[ask.queue]]:
        detail = f"{ask.queue!r} is a parent queue: applications run in leaf queues"
        problems.append(Problem(pointer=pointer(*at, "queue"), detail=detail))
    if sum(task.count for task in ask.tasks) > MOST_UNITS:
        detail = f"more than {MOST_UNITS} allocation asks in one ask"
        problems.append(Problem(pointer=pointer(*at, "tasks"), detail=detail))
    if not any(task.count for task in ask.tasks):
        problems.append(Problem(pointer=pointer(*at, "tasks"), detail="asks for nothing"))
    for i, task in enumerate(ask.tasks):
        problems += kubernetes.problems(task, (*at, "tasks", i))
    return problems


def refuse(problems: list[Problem]) -> None:
    """Raises InvalidInput when there are problems."""
    if problems:
        raise InvalidInput(problems)


def _feasible(state: CompiledState, ask: Ask, task: Task) -> frozenset[int] | None:
    """Indices of the nodes that pass the predicates, those that the ask names and those of Kubernetes that the shim
    asks (k8shim, pkg/plugin/predicates: taints, node selector and required node affinity); None: all do."""
    named = None if ask.feasible_nodes is None else frozenset(state.node_index[n] for n in ask.feasible_nodes)
    if not (state.tainted or task.node_selector or task.node_affinity):
        return named
    known, key = state.lazy.passing, kubernetes.demands(task)
    if (passing := known.get(key)) is None:
        if len(known) >= _DEMANDS:
            known.clear()
        passing = frozenset(i for i, node in enumerate(state.nodes) if kubernetes.allows(task, node))
        known[key] = passing
    return passing if named is None else passing & named


def _request(state: CompiledState, ask: Ask, task: Task) -> Request:
    resources = ResourceIndex(state.resources.names)
    workload = state.application(ask.workload or ask.id)
    priority = task.priority if task.priority is not None else ask.priority
    if priority is None:
        priority = state.workloads[workload].priority if workload is not None else 0
    at = task.created_at or ask.created_at
    carried = ask.yunikorn
    checked = carried.last_preemption_check_at if carried is not None else None
    required = task.required_node or ask.required_node
    return Request(
        ask=ask, task=task, queue=state.configuration.tree.index[ask.queue],
        amounts=resources.steps(task.requests), resources=resources, priority=priority,
        created=OLDEST if at is None else micros(at), checked=None if checked is None else micros(checked),
        triggered=carried is not None and carried.triggered_preemption,
        required=None if required is None else state.node_index[required],
        feasible=_feasible(state, ask, task),
        workload=workload,
    )  # fmt: skip
