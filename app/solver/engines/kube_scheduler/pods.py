"""What is read: pods, nodes and budgets, compiled from the wire.

A pod here is one task: its namespace is its workload's queue. Pods of a node stand in the order of the request,
workloads first, then tasks, for the released code decides ties by the order of a node's list.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver.delta import Changes
from app.solver.engines.kube_scheduler.selectors import Labels, Selector, Term, selector_of, terms_of
from app.solver.kubernetes import PODS
from app.solver.model import kube_scheduler as wire
from app.solver.model.base import Quantity, micros, parse_quantity, scale_of
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import OVER, Ask, Node, State, Task, Workload

STABLE = 12
"""So many at most are left in their order by Go's sort where they are equal."""
_ANY_ADDRESS = "0.0.0.0"
_encode = msgspec.json.Encoder().encode
Port = tuple[str, str, int]
"""Address, protocol, number."""
Ints = NDArray[np.int64]
NO_LABELS: dict[str, str] = {}


class Pod(msgspec.Struct, eq=False):
    """One pod that runs, asks or is nominated. ``requests``: steps."""

    workload: str
    name: str
    namespace: str
    priority: int
    task: Task
    requests: dict[str, int]
    labels: Labels
    ports: tuple[Port, ...] = ()
    affinity: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    started: datetime | None = None
    terminating: bool = False
    preempted: bool = False
    node: int = -1
    required_node: str | None = None
    group: "Group | None" = None
    place: int = -1
    """A number of its own among all pods that run; -1: it asks."""
    _shape: bytes | None = None
    _unit: "Unit | None" = None

    @property
    def start(self) -> int | None:
        """Microseconds; None: it says none."""
        return None if self.started is None else micros(self.started)

    def unit(self, now: int, at: int) -> "Unit":
        """It alone, as what is evicted together. ``at``: how many were looked at before it; without a start it started
        just now, after them. Source: NewVictim."""
        if self._unit is not None:
            return self._unit
        alone = 0 if self.group is not None else 1
        start = self.start
        priority = self.effective_priority
        unit = Unit([self], priority, (-priority, alone, -1, (now, at + 1) if start is None else (start, 0)))
        if start is not None:
            self._unit = unit
        return unit

    @property
    def shape(self) -> bytes:
        """Equal for pods that a node takes or refuses, and scores, alike."""
        if self._shape is None:
            self._shape = _encode(self.requests) + self.suiting
        return self._shape

    @property
    def suiting(self) -> bytes:
        """Equal for pods that a node takes or refuses alike, whatever is free there."""
        task = self.task
        node = (self.required_node, task.node_selector, task.node_affinity, task.tolerations)
        return _encode((self.ports, *node))

    @property
    def effective_priority(self) -> int:
        """kube-scheduler: a pod of a group has the group's priority."""
        return self.priority if self.group is None else self.group.priority


class Unit(msgspec.Struct, eq=False):
    """What is evicted together: a pod, or all pods of a group. ``key``: ascending, the more important first."""

    pods: list[Pod]
    priority: int
    key: tuple[int, int, int, tuple[int, int]]


@dataclass(slots=True, eq=False)
class Group:
    """Pods of one workload that are a scheduling group."""

    name: str
    priority: int
    whole: bool
    pods: list[Pod] = field(default_factory=list[Pod])


class Machine(msgspec.Struct, eq=False):
    """A node as the state has it. ``capacity``: steps; ``most``: how many pods, None: no limit;
    ``used``: by pods and ``others``, who are not in the state."""

    at: int
    node: Node
    labels: Labels
    capacity: dict[str, int]
    most: int | None
    used: dict[str, int]
    others: dict[str, int]
    pods: tuple[Pod, ...]
    ports: frozenset[Port]
    _ranked: "tuple[list[Unit], list[int], bool] | None" = None

    def less_important(self, priority: int) -> list[Unit] | None:
        """Its pods of a lower priority, the most important first; None: that hangs on the moment, on pods elsewhere, or
        on where Go's sort leaves equal ones."""
        if self._ranked is None:
            alone = all(pod.started is not None and (pod.group is None or not pod.group.whole) for pod in self.pods)
            units = sorted([pod.unit(0, 0) for pod in self.pods], key=attrgetter("key")) if alone else []
            distinct = len({unit.key for unit in units}) == len(units)
            self._ranked = units, [-unit.priority for unit in units], alone and distinct
        units, ranks, distinct = self._ranked
        found = units[bisect_right(ranks, -priority) :]
        return found if distinct or (len(found) <= STABLE and len(units) == len(self.pods)) else None


class Site:
    """A node as it is supposed to be while somebody looks for room: the origin's NodeInfo. The state has one of each
    node; whoever supposes something else takes a copy. What it holds is replaced, never changed in place, so that
    copies share it."""

    __slots__ = ("machine", "pods", "ports", "used")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.used = machine.used
        self.pods = machine.pods
        self.ports = machine.ports

    @property
    def count(self) -> int:
        """How many pods, those that are not in the state too."""
        return len(self.pods) + self.machine.others.get(PODS, 0)

    def copy(self) -> "Site":
        twin = Site.__new__(Site)
        twin.machine, twin.used, twin.pods, twin.ports = self.machine, self.used, self.pods, self.ports
        return twin

    def add(self, pod: Pod) -> None:
        used = self.used
        self.used = used | {resource: used.get(resource, 0) + amount for resource, amount in pod.requests.items()}
        self.pods = (*self.pods, pod)
        self.ports |= frozenset(pod.ports)

    def remove(self, pod: Pod) -> None:
        """Ports are a set in the origin: one of two pods with the same port frees it."""
        used, at = self.used, self.pods.index(pod)
        self.used = used | {resource: used[resource] - amount for resource, amount in pod.requests.items()}
        self.pods = self.pods[:at] + self.pods[at + 1 :]
        self.ports -= frozenset(pod.ports)


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    given: wire.DisruptionBudget
    name: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]

    def selects(self, pod: Pod) -> bool:
        """Whether it is one of the pod's. kube-scheduler: never of a pod without labels, nor with an empty selector."""
        if pod.namespace != self.namespace or not pod.labels or self.selector.everything:
            return False
        return self.selector.matches(pod.labels)

    def charged_by(self, pod: Pod) -> bool:
        """Whether the pod's eviction takes one from it."""
        return self.selects(pod) and pod.name not in self.disrupted


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    settings: wire.Settings
    namespaces: tuple[str, ...]


class DryRuns:
    """What nodes would lose, by what asks and then by node, each with the node then: in states that follow one another.
    Of so many nodes at most, or all is forgotten. ``columns``: see ``Columns``; ``singles``: how many nodes that these
    do not tell of were looked at since they were made."""

    _MOST = 1 << 16

    def __init__(self) -> None:
        self.columns: object = None
        self.singles = 0
        self._found: dict[object, dict[int, tuple[Machine, Any]]] = {}
        self._count = 0

    def of(self, key: object) -> dict[int, tuple[Machine, Any]]:
        """By place of a node."""
        return self._found.get(key) or {}

    def keep(self, key: object, known: dict[int, tuple[Machine, Any]], machine: Machine, found: object) -> None:
        """``known``: what ``of`` gave."""
        self._found.setdefault(key, known)
        self._count += machine.at not in known
        known[machine.at] = machine, found
        if self._count > self._MOST:
            self._count = 0
            self._found.clear()


@dataclass(frozen=True, slots=True, eq=False)
class CompiledState:
    """``nominated``: by node, pods that an earlier cycle nominated to it, each with the ask that it is of. ``anti``:
    running pods with required anti-affinity; ``friends``: those with required affinity."""

    configuration: CompiledConfiguration
    machines: list[Machine]
    sites: list[Site]
    place: dict[str, int]
    pods: list[Pod]
    nominated: dict[int, list[tuple[str, Pod]]]
    budgets: list[Budget]
    budgets_in: dict[str, list[tuple[int, Budget]]]
    """By namespace, each with its place in ``budgets``."""
    anti: list[Pod]
    friends: list[Pod]
    by_workload: dict[str, tuple[Workload, list[Pod]]]
    numbered: int
    """How many pods have had a number, in this state and those that it came from."""
    recent: dict[object, tuple[list[Machine], Any, Any]]
    """What is kept of all nodes, see ``kept``: in states that follow one another."""
    dry_runs: "DryRuns"

    def name(self, node: int) -> str:
        """Of a node by its place."""
        return self.machines[node].node.name

    def pods_of(self, ask: Ask, *at: str | int) -> list[Pod]:
        """The pods that ``ask``, which stands at ``at`` in the request, wants. Raises InvalidInput, QuantityError."""
        priority = ask.priority if ask.priority is not None else self._priority_of(ask)
        if not ask.tasks:
            raise InvalidInput([Problem(pointer=pointer(*at, "tasks"), detail="there is no pod in it")])
        _one_each(ask.tasks, at)
        return [
            _pod(ask.id, ask.queue, task, priority if task.priority is None else task.priority, ask.required_node)
            for task in ask.tasks
        ]

    def _priority_of(self, ask: Ask) -> int:
        name = ask.workload or ask.id
        return next((pod.priority for pod in self.pods if pod.workload == name), 0)


def compile_configuration(configuration: Configuration) -> CompiledConfiguration:
    """Raises InvalidInput: namespaces are flat."""
    problems = [
        Problem(pointer=pointer("configuration", "queues", i, "parent"), detail="a namespace has no parent")
        for i, queue in enumerate(configuration.queues)
        if queue.parent is not None
    ]
    if problems:
        raise InvalidInput(problems)
    settings = configuration.settings.kube_scheduler or wire.Settings()
    return CompiledConfiguration(settings, tuple(queue.name for queue in configuration.queues))


def compile_state(
    configuration: CompiledConfiguration, state: State, before: CompiledState | None = None
) -> CompiledState:
    """``before``: a state with the same configuration and names of nodes, of which whatever stayed as it was is taken.

    Raises InvalidInput, QuantityError, KeyError for a node or namespace that is not there, ValueError for tasks of one
    workload that share a name; the caller diagnoses."""
    place = {node.name: i for i, node in enumerate(state.nodes)} if before is None else before.place
    on: list[list[Pod]] = [[] for _ in state.nodes]
    by_workload: dict[str, tuple[Workload, list[Pod]]] = {}
    compiled = {} if before is None else before.by_workload
    numbered = 0 if before is None else before.numbered
    known = frozenset(configuration.namespaces)
    for at, workload in enumerate(state.workloads):
        if workload.queue not in known:
            raise KeyError(workload.queue)
        entry = compiled.get(workload.id)
        if entry is None or entry[0] is not workload:
            entry = (workload, _running_pods(configuration, workload, at, place, numbered))
            numbered += len(entry[1])
        by_workload[workload.id] = entry
        for pod in entry[1]:
            on[pod.node].append(pod)
    pods = [pod for _, of in by_workload.values() for pod in of]
    nominated: dict[int, list[tuple[str, Pod]]] = {}
    for at, held in enumerate(state.reservations):
        _one_each(held.ask.tasks, ("state", "reservations", at, "ask"))
        for task in held.ask.tasks:
            priority = held.ask.priority or 0 if task.priority is None else task.priority
            pod = _pod(held.ask.id, held.ask.queue, task, priority, held.ask.required_node)
            nominated.setdefault(place[held.node], []).append((held.ask.id, pod))
    machines = _machines(state.nodes, on, None if before is None else before.machines)
    budgets = _budgets(state.disruption_budgets, () if before is None else before.budgets)
    return CompiledState(
        configuration=configuration,
        machines=machines,
        sites=[Site(machine) for machine in machines] if before is None else _sites(machines, before.sites),
        place=place,
        pods=pods,
        nominated=nominated,
        budgets=budgets,
        budgets_in=by_namespace(budgets),
        anti=[pod for pod in pods if pod.anti],
        friends=[pod for pod in pods if pod.affinity],
        by_workload=by_workload,
        numbered=numbered,
        recent={} if before is None else before.recent,
        dry_runs=DryRuns() if before is None else before.dry_runs,
    )


def update(old: CompiledState, configuration: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """The state after a delta: pods of workloads that stayed, and nodes that stayed with all their pods, are kept."""
    stay = old.configuration is configuration and (not changes.nodes or changes.replaced is not None)
    return compile_state(configuration, state, old if stay else None)


def _one_each(tasks: Sequence[Task], at: tuple[str | int, ...]) -> None:
    problems = [
        Problem(pointer=pointer(*at, "tasks", i, "count"), detail="a task is one pod here: its count is 1")
        for i, task in enumerate(tasks)
        if task.count != 1
    ]
    if problems:
        raise InvalidInput(problems)


def by_namespace(budgets: Sequence[Budget]) -> dict[str, list[tuple[int, Budget]]]:
    """Each with its place."""
    found: dict[str, list[tuple[int, Budget]]] = {}
    for i, budget in enumerate(budgets):
        found.setdefault(budget.namespace, []).append((i, budget))
    return found


def _budgets(given: Sequence[wire.DisruptionBudget], before: Sequence[Budget]) -> list[Budget]:
    """Those that stay in their place are kept."""
    return [before[i] if i < len(before) and before[i].given == one else _budget(one) for i, one in enumerate(given)]


def _budget(of: wire.DisruptionBudget) -> Budget:
    return Budget(of, of.name, of.queue, selector_of(of.selector), of.disruptions_allowed, frozenset(of.disrupted))


def _group_of(workload: Workload) -> Group | None:
    if workload.disruption_mode is None and workload.min_available is None:
        return None
    return Group(workload.id, workload.priority, workload.disruption_mode == "all")


def _running_pods(
    configuration: CompiledConfiguration, workload: Workload, at: int, place: Mapping[str, int], numbered: int
) -> list[Pod]:
    tasks = workload.tasks
    if len(tasks) > 1 and len({task.name for task in tasks}) < len(tasks):
        raise ValueError("two tasks of one workload share a name")
    group = _group_of(workload) if configuration.settings.workload_aware else None
    name, namespace, priority, started = workload.id, workload.queue, workload.priority, workload.started_at
    found: list[Pod] = []
    for task in tasks:
        node, state = task.node, task.state
        if task.count != 1:
            _one_each(tasks, ("state", "workloads", at))
        if node is None:
            continue
        on = place[node]
        if state in OVER:
            continue
        pod = Pod(
            name,
            task.name,
            namespace,
            priority if task.priority is None else task.priority,
            task,
            _steps(task.requests),
            task.labels or NO_LABELS,
            _ports(task.host_ports) if task.host_ports else (),
            terms_of(task.pod_affinity, namespace) if task.pod_affinity else (),
            terms_of(task.pod_anti_affinity, namespace) if task.pod_anti_affinity else (),
            task.started_at or started,
            state != "running" and state in ("preempted", "releasing", "stuck_in_releasing"),
            state == "preempted",
            on,
            task.required_node,
            group,
            numbered + len(found),
        )
        if group is not None:
            group.pods.append(pod)
        found.append(pod)
    return found


def _pod(workload: str, namespace: str, task: Task, priority: int, required: str | None) -> Pod:
    return Pod(
        workload=workload, name=task.name, namespace=namespace, priority=priority, task=task,
        requests=_steps(task.requests), labels=task.labels or NO_LABELS,
        ports=_ports(task.host_ports) if task.host_ports else (),
        affinity=terms_of(task.pod_affinity, namespace) if task.pod_affinity else (),
        anti=terms_of(task.pod_anti_affinity, namespace) if task.pod_anti_affinity else (),
        required_node=task.required_node or required,
    )  # fmt: skip


def _ports(given: Sequence[wire.HostPort]) -> tuple[Port, ...]:
    return tuple((one.ip or _ANY_ADDRESS, one.protocol, one.port) for one in given if one.port > 0)


def _machines(nodes: Sequence[Node], on: Sequence[Sequence[Pod]], before: Sequence[Machine] | None) -> list[Machine]:
    if before is None:
        return [_machine(i, node, tuple(on[i])) for i, node in enumerate(nodes)]
    return [
        had if had.node is node and had.pods == tuple(of) else _machine(had.at, node, tuple(of))
        for had, node, of in zip(before, nodes, on, strict=True)
    ]


def _sites(machines: list[Machine], before: list[Site]) -> list[Site]:
    return [had if had.machine is machine else Site(machine) for machine, had in zip(machines, before, strict=True)]


def _machine(at: int, node: Node, pods: tuple[Pod, ...]) -> Machine:
    capacity = _steps(node.capacity)
    others = _steps(node.occupied) if node.occupied else {}
    used = dict(others)
    ports: set[Port] = set()
    for pod in pods:
        for resource, amount in pod.requests.items():
            used[resource] = used.get(resource, 0) + amount
        if pod.ports:
            ports.update(pod.ports)
    return Machine(
        at,
        node,
        node.labels,
        capacity,
        capacity.get(PODS),
        used,
        others,
        pods,
        frozenset(ports),
    )


def _steps(given: Mapping[str, Quantity]) -> dict[str, int]:
    """By name, so that the order that a request names resources in never shows. Pods with the same share one: it is
    never changed."""
    return _parsed(tuple(given.items())) if given else {}


@lru_cache(maxsize=1 << 14, typed=True)
def _parsed(given: tuple[tuple[str, Quantity], ...]) -> dict[str, int]:
    return {name: parse_quantity(value, scale_of(name)) for name, value in sorted(given, key=itemgetter(0))}
