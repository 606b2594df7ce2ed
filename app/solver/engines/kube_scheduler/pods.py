"""What is read: pods, nodes and budgets, compiled from the wire.

A pod here is one task: its namespace is its workload's queue. Pods of a node stand in the order of the request,
workloads first, then tasks, for the released code decides ties by the order of a node's list.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from app.solver.delta import Changes
from app.solver.model import kube_scheduler as wire
from app.solver.model.configuration import Configuration
from app.solver.model.instant import micros
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.quantity import Quantity, parse, scale_of
from app.solver.model.state import OVER, Ask, Node, State, Task, Workload

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
PODS = "pods"
STABLE = 12
"""So many at most are left in their order by Go's sort where they are equal."""
_ANY_ADDRESS = "0.0.0.0"
Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]
_encode = msgspec.json.Encoder().encode
Port = tuple[str, str, int]
"""Address, protocol, number."""
NO_LABELS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. ``nothing``: none was given; ``everything``: an empty one was."""

    requirements: tuple[tuple[str, str, frozenset[str]], ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements

    def matches(self, labels: Labels) -> bool:
        """Kubernetes: ``NotIn`` and ``DoesNotExist`` match where the label is missing."""
        if self.nothing:
            return False
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == "In":
                fits = value is not None and value in values
            elif operator == "NotIn":
                fits = value is None or value not in values
            else:
                fits = (value is not None) == (operator == "Exists")
            if not fits:
                return False
        return True


NOTHING = Selector(nothing=True)


def selector_of(given: wire.LabelSelector | None, also: Iterable[tuple[str, str]] = ()) -> Selector:
    """``also``: labels that must be there besides; with any of these an absent selector is an empty one."""
    more = [(key, "In", frozenset((value,))) for key, value in also]
    if given is None:
        return Selector(tuple(more)) if more else NOTHING
    labels = [(key, "In", frozenset((value,))) for key, value in given.match_labels.items()]
    rest = [(one.key, one.operator, frozenset(one.values)) for one in given.match_expressions]
    return Selector((*labels, *rest, *more))


@dataclass(frozen=True, slots=True)
class Term:
    """A required term of affinity: of which pods, by which label of nodes."""

    key: str
    selector: Selector
    namespaces: frozenset[str]
    others: Selector
    """Namespaces by their labels."""

    def matches(self, namespace: str, labels: Labels) -> bool:
        """Kubernetes: a namespace that is listed, or whose labels are selected."""
        if namespace not in self.namespaces and not self.others.matches({NAMESPACE_LABEL: namespace}):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint that decides where a pod may go."""

    key: str
    max_skew: int
    min_domains: int
    selector: Selector
    affinity: bool
    taints: bool


@dataclass(slots=True, eq=False)
class Pod:
    """One pod that runs, asks or is nominated. ``start``: microseconds, None: it says none; ``requests``: steps."""

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
    start: int | None = None
    terminating: bool = False
    preempted: bool = False
    node: int = -1
    required_node: str | None = None
    group: "Group | None" = None
    place: int = -1
    """A number of its own among all pods that run; -1: it asks."""
    _shape: bytes | None = None
    _unit: "Unit | None" = None

    def unit(self, now: int, at: int) -> "Unit":
        """It alone, as what is evicted together. ``at``: how many were looked at before it; without a start it started
        just now, after them. Source: NewVictim."""
        if self._unit is not None:
            return self._unit
        alone = 0 if self.group is not None else 1
        start = (now, at + 1) if self.start is None else (self.start, 0)
        priority = self.effective_priority
        unit = Unit([self], priority, (-priority, alone, -1, start))
        if self.start is not None:
            self._unit = unit
        return unit

    @property
    def shape(self) -> bytes:
        """Equal for pods that a node takes or refuses, and scores, alike."""
        if self._shape is None:
            task = self.task
            node = (self.required_node, task.node_selector, task.node_affinity, task.tolerations)
            self._shape = _encode((self.requests, self.ports, *node))
        return self._shape

    @property
    def effective_priority(self) -> int:
        """kube-scheduler: a pod of a group has the group's priority."""
        return self.priority if self.group is None else self.group.priority


@dataclass(slots=True, eq=False)
class Unit:
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


@dataclass(slots=True, eq=False)
class Machine:
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
            alone = all(pod.start is not None and (pod.group is None or not pod.group.whole) for pod in self.pods)
            units = sorted([pod.unit(0, 0) for pod in self.pods], key=attrgetter("key")) if alone else []
            distinct = len({unit.key for unit in units}) == len(units)
            self._ranked = units, [-unit.priority for unit in units], alone and distinct
        units, ranks, distinct = self._ranked
        found = units[bisect_right(ranks, -priority) :]
        return found if distinct or (len(found) <= STABLE and len(units) == len(self.pods)) else None


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    name: str
    namespace: str
    selector: Selector
    allowed: int
    disrupted: frozenset[str]


@dataclass(frozen=True, slots=True)
class CompiledConfiguration:
    settings: wire.Settings
    namespaces: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledState:
    """``nominated``: by node, pods that an earlier cycle nominated to it, each with the ask that it is of. ``anti``:
    running pods with required anti-affinity; ``friends``: those with required affinity."""

    configuration: CompiledConfiguration
    machines: list[Machine]
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
    recent: dict[object, tuple[list[Machine], list[Any]]]
    """What was worked out of nodes for pods of one shape, and the nodes then: in states that follow one another."""

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

    Raises InvalidInput, QuantityError, or KeyError for a node that is not there; the caller diagnoses."""
    place = {node.name: i for i, node in enumerate(state.nodes)} if before is None else before.place
    on: list[list[Pod]] = [[] for _ in state.nodes]
    by_workload: dict[str, tuple[Workload, list[Pod]]] = {}
    compiled = {} if before is None else before.by_workload
    numbered = 0 if before is None else before.numbered
    for at, workload in enumerate(state.workloads):
        entry = compiled.get(workload.id)
        if entry is None or entry[0] is not workload:
            entry = (workload, _running_pods(configuration, workload, at, place))
            for pod in entry[1]:
                pod.place = numbered
                numbered += 1
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
    budgets = [
        Budget(one.name, one.queue, selector_of(one.selector), one.disruptions_allowed, frozenset(one.disrupted))
        for one in state.disruption_budgets
    ]
    budgets_in: dict[str, list[tuple[int, Budget]]] = {}
    for i, budget in enumerate(budgets):
        budgets_in.setdefault(budget.namespace, []).append((i, budget))
    return CompiledState(
        configuration=configuration,
        machines=_machines(state.nodes, on, None if before is None else before.machines),
        place=place,
        pods=pods,
        nominated=nominated,
        budgets=budgets,
        budgets_in=budgets_in,
        anti=[pod for pod in pods if pod.anti],
        friends=[pod for pod in pods if pod.affinity],
        by_workload=by_workload,
        numbered=numbered,
        recent={} if before is None else before.recent,
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


def _group_of(workload: Workload) -> Group | None:
    if workload.disruption_mode is None and workload.min_available is None:
        return None
    return Group(workload.id, workload.priority, workload.disruption_mode == "all")


def _running_pods(
    configuration: CompiledConfiguration, workload: Workload, at: int, place: Mapping[str, int]
) -> list[Pod]:
    _one_each(workload.tasks, ("state", "workloads", at))
    group = _group_of(workload) if configuration.settings.workload_aware else None
    return [
        _running(workload, task, place[task.node], group)
        for task in workload.tasks
        if task.state not in OVER and task.node is not None
    ]


def _running(workload: Workload, task: Task, node: int, group: Group | None) -> Pod:
    started = task.started_at or workload.started_at
    state, namespace = task.state, workload.queue
    pod = Pod(
        workload.id,
        task.name,
        namespace,
        workload.priority if task.priority is None else task.priority,
        task,
        _steps(task.requests),
        task.labels or NO_LABELS,
        _ports(task.host_ports) if task.host_ports else (),
        _terms(task.pod_affinity, namespace) if task.pod_affinity else (),
        _terms(task.pod_anti_affinity, namespace) if task.pod_anti_affinity else (),
        None if started is None else micros(started),
        state != "running" and state in ("preempted", "releasing", "stuck_in_releasing"),
        state == "preempted",
        node,
        task.required_node,
        group,
    )
    if group is not None:
        group.pods.append(pod)
    return pod


def _pod(workload: str, namespace: str, task: Task, priority: int, required: str | None) -> Pod:
    return Pod(
        workload=workload, name=task.name, namespace=namespace, priority=priority, task=task,
        requests=_steps(task.requests), labels=task.labels or NO_LABELS,
        ports=_ports(task.host_ports) if task.host_ports else (),
        affinity=_terms(task.pod_affinity, namespace) if task.pod_affinity else (),
        anti=_terms(task.pod_anti_affinity, namespace) if task.pod_anti_affinity else (),
        required_node=task.required_node or required,
    )  # fmt: skip


def _ports(given: Sequence[wire.HostPort]) -> tuple[Port, ...]:
    return tuple((one.ip or _ANY_ADDRESS, one.protocol, one.port) for one in given if one.port > 0)


def _terms(given: Sequence[wire.PodAffinityTerm], namespace: str) -> tuple[Term, ...]:
    return tuple(
        Term(
            key=one.topology_key,
            selector=selector_of(one.label_selector),
            namespaces=frozenset(one.namespaces or ((namespace,) if one.namespace_selector is None else ())),
            others=selector_of(one.namespace_selector),
        )
        for one in given
    )


def spreads_of(pod: Pod) -> tuple[Spread, ...]:
    """Its constraints; ``match_label_keys`` become part of the selector, where the pod has these labels."""
    return tuple(
        Spread(
            key=one.topology_key, max_skew=one.max_skew, min_domains=one.min_domains or 1,
            selector=selector_of(
                one.label_selector, [(key, pod.labels[key]) for key in one.match_label_keys if key in pod.labels]
            ),
            affinity=one.node_affinity_policy == "Honor", taints=one.node_taints_policy == "Honor",
        )
        for one in pod.task.topology_spread or ()
    )  # fmt: skip


def _machines(nodes: Sequence[Node], on: Sequence[Sequence[Pod]], before: Sequence[Machine] | None) -> list[Machine]:
    if before is None:
        return [_machine(i, node, tuple(on[i])) for i, node in enumerate(nodes)]
    return [
        had if had.node is node and had.pods == tuple(of) else _machine(had.at, node, tuple(of))
        for had, node, of in zip(before, nodes, on, strict=True)
    ]


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
    return {name: parse(value, scale_of(name)) for name, value in sorted(given, key=itemgetter(0))}
