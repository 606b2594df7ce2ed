"""What is read: pods, nodes and budgets, compiled from the wire; and what selects pods, namespaces and nodes by labels.

A pod here is one task: its namespace is its workload's queue. Pods of a node stand in the order of the request,
workloads first, then tasks, for the released code decides ties by the order of a node's list.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import compress, pairwise, repeat
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from app.solver.kubernetes import PODS
from app.solver.model import kube_scheduler as wire
from app.solver.model.base import Quantity, micros, parse_quantity, scale_of
from app.solver.model.state import Node, Task, Workload

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
Labels = Mapping[str, str]


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
    rest = [
        (expression.key, expression.operator, frozenset(expression.values)) for expression in given.match_expressions
    ]
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


def terms_of(given: Sequence[wire.PodAffinityTerm], namespace: str) -> tuple[Term, ...]:
    """Those of a pod in ``namespace``, which is meant where no namespace is said."""
    return tuple(
        Term(
            key=term.topology_key,
            selector=selector_of(term.label_selector),
            namespaces=frozenset(term.namespaces or ((namespace,) if term.namespace_selector is None else ())),
            others=selector_of(term.namespace_selector),
        )
        for term in given
    )


STABLE = 12
"""So many at most are left in their order by Go's sort where they are equal."""
_ANY_ADDRESS = "0.0.0.0"
_encode = msgspec.json.Encoder().encode
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(dict[str, Quantity]).decode
Port = tuple[str, str, int]
"""Address, protocol, number."""
Ints = NDArray[np.int64]
NO_LABELS: dict[str, str] = {}
_requests, _task, _importance = attrgetter("requests"), attrgetter("task"), attrgetter("key")


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

    def unit(self, now: int, before: int) -> "Unit":
        """It alone, as what is evicted together. ``before``: how many were looked at before it; without a start it
        started just now, after them. Source: NewVictim."""
        if self._unit is not None:
            return self._unit
        alone = 0 if self.group is not None else 1
        start, priority = self.start, self.effective_priority
        unit = Unit([self], priority, (-priority, alone, -1, (now, before + 1) if start is None else (start, 0)))
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
    pods: list[Pod] = field(default_factory=list)


class Machine(msgspec.Struct, eq=False):
    """A node as the state has it. ``capacity``: steps; ``most``: how many pods, None: no limit;
    ``used``: by pods and ``others``, who are not in the state; ``_unmade``: until somebody looks at its pods, among
    whom and where they are."""

    index: int
    node: Node
    labels: Labels
    capacity: dict[str, int]
    most: int | None
    used: dict[str, int]
    others: dict[str, int]
    ports: frozenset[Port]
    _pods: tuple[Pod, ...] | None
    _unmade: "tuple[Running, list[int]] | None" = None
    _ranked: tuple[list[Unit], list[int], bool] | None = None

    @property
    def pods(self) -> tuple[Pod, ...]:
        if self._unmade is not None:
            running, places = self._unmade
            self._pods, self._unmade = tuple(map(running.__getitem__, places)), None
        return self._pods or ()

    @property
    def count(self) -> int:
        """How many pods, those that are not in the state too."""
        here = self._pods if self._unmade is None else self._unmade[1]
        return len(here or ()) + self.others.get(PODS, 0)

    def after(self, gone: Sequence[Pod], came: Sequence[Pod], pods: tuple[Pod, ...]) -> "Machine":
        """The node with these of its pods gone and these there, so that ``pods`` are."""
        used = self.used.copy()
        for sign, moved in ((-1, gone), (1, came)):
            for pod in moved:
                for resource, amount in pod.requests.items():
                    used[resource] = used.get(resource, 0) + sign * amount
        ports = taken_by(pods) if self.ports or any(pod.ports for pod in came) else self.ports
        return Machine(self.index, self.node, self.labels, self.capacity, self.most, used, self.others, ports, pods)

    def requested(self) -> Iterable[dict[str, int]]:
        """What each of its pods requests."""
        if self._unmade is None:
            return map(_requests, self._pods or ())
        shapes, numbers, places = self._unmade[0].shapes, self._unmade[0].numbers, self._unmade[1]
        return [shapes[numbers[place]] for place in places]

    def less_important(self, priority: int) -> list[Unit] | None:
        """Its pods of a lower priority, the most important first; None: some are, and that hangs on the moment, on pods
        elsewhere, or on where Go's sort leaves equal ones."""
        if self._ranked is None:
            if all(pod.effective_priority >= priority for pod in self.pods):
                return []
            alone = all(pod.started is not None and (pod.group is None or not pod.group.whole) for pod in self.pods)
            units = sorted([pod.unit(0, 0) for pod in self.pods], key=_importance) if alone else []
            distinct = alone and all(a.key != b.key for a, b in pairwise(units))
            self._ranked = units, [-unit.priority for unit in units], distinct
        units, ranks, distinct = self._ranked
        lower = units[bisect_right(ranks, -priority) :]
        return lower if distinct or (len(lower) <= STABLE and len(units) == len(self.pods)) else None


class Site:
    """A node as it is supposed to be while somebody looks for room: the origin's NodeInfo. The state has one of each
    node; whoever supposes something else takes a copy. What it holds is replaced, never changed in place, so that
    copies share it. ``loads``: what its score is made of, once somebody has asked."""

    __slots__ = ("_lowest", "_pods", "loads", "machine", "ports", "used")

    def __init__(self, machine: Machine) -> None:
        self.machine, self.used, self.ports = machine, machine.used, machine.ports
        self._pods: tuple[Pod, ...] | None = None
        self._lowest: int | None = None
        self.loads: tuple[int, ...] | None = None

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.machine.pods if self._pods is None else self._pods

    @property
    def count(self) -> int:
        """How many pods, those that are not in the state too."""
        return self.machine.count if self._pods is None else len(self._pods) + self.machine.others.get(PODS, 0)

    def requested(self) -> Iterable[dict[str, int]]:
        """What each of its pods requests."""
        return self.machine.requested() if self._pods is None else map(_requests, self._pods)

    def copy(self) -> "Site":
        twin = Site.__new__(Site)
        twin.machine, twin.used, twin._pods, twin.ports = self.machine, self.used, self._pods, self.ports
        twin.loads, twin._lowest = self.loads, self._lowest
        return twin

    def less_important(self, priority: int) -> list[Unit] | None:
        """See ``Machine``. None too: pods have left, or pods that have come count among these."""
        known = self._pods is None or (self._lowest is not None and self._lowest >= priority)
        return self.machine.less_important(priority) if known else None

    def add(self, pod: Pod) -> None:
        used, priority = self.used, pod.effective_priority
        self.used = used | {resource: used.get(resource, 0) + amount for resource, amount in pod.requests.items()}
        if self._pods is None or self._lowest is not None:
            self._lowest = priority if self._lowest is None else min(priority, self._lowest)
        self._pods, self.loads = (*self.pods, pod), None
        self.ports |= frozenset(pod.ports)

    def remove(self, pod: Pod) -> None:
        """Ports are a set in the origin: one of two pods with the same port frees it."""
        used, pods = self.used, self.pods
        place, self._lowest = pods.index(pod), None
        self.used = used | {resource: used[resource] - amount for resource, amount in pod.requests.items()}
        self._pods, self.loads = pods[:place] + pods[place + 1 :], None
        self.ports -= frozenset(pod.ports)


class DryRuns:
    """What nodes would lose, by what asks and then by node, each with its stamp: in states that follow one another.
    ``columns``: see ``Columns``; ``singles``: how many nodes that these do not tell of were looked at since then."""

    _MOST = 1 << 16

    def __init__(self) -> None:
        self.columns: object = None
        self.singles = 0
        self._outcomes: dict[object, dict[int, tuple[int, Any]]] = {}
        self._count = 0

    def of(self, key: object) -> dict[int, tuple[int, Any]]:
        """By place of a node."""
        return self._outcomes.get(key) or {}

    def keep(self, key: object, known: dict[int, tuple[int, Any]], node: int, outcome: tuple[int, object]) -> None:
        """``known``: what ``of`` gave."""
        self._outcomes.setdefault(key, known)
        self._count += node not in known
        known[node] = outcome
        if self._count > self._MOST:
            self._count = 0
            self._outcomes.clear()


class Running:
    """Pods that run, in the order of the request. Each is made when somebody looks at it: of a state that is read anew
    one decision looks at few. ``shapes``: what is requested, in steps; ``numbers``: of each pod, which of these."""

    __slots__ = (
        "_by_workload", "_first", "_following", "_groups", "_order", "_owners", "_pods", "_tasks", "_workloads",
        "nodes", "numbers", "shapes",
    )  # fmt: skip

    def __init__(
        self,
        workloads: Sequence[Workload],
        owners: list[Workload],
        tasks: list[Task],
        nodes: list[int],
        requested: tuple[list[int], list[dict[str, int]]],
        groups: dict[str, Group],
        first: int,
    ) -> None:
        """By pod: whose it is, what is read of it, the place of its node. ``requested``: ``numbers`` and ``shapes``;
        ``first``: the number of the first one."""
        self.nodes, (self.numbers, self.shapes) = nodes, requested
        self._workloads, self._following = workloads, len(workloads)
        self._owners, self._tasks, self._groups, self._first = owners, tasks, groups, first
        self._pods: list[Pod | None] = list(repeat(None, len(tasks)))
        self._by_workload: dict[str, tuple[int, list[Pod]]] | None = None
        self._order: dict[int, int] = {}
        if groups:
            for place, owner in enumerate(owners):
                if (group := groups.get(owner.id)) is not None:
                    group.pods.append(self[place])

    def parted(self, workload: Workload) -> tuple[Workload, dict[str, Pod]]:
        """``workload`` with only what no pod here stands for as it is; and by name those that do."""
        _, pods = self.by_workload.get(workload.id, (0, ()))
        tasks = {task.name: task for task in workload.tasks} if pods else {}
        if len(tasks) < len(workload.tasks):
            return workload, {}
        stay = {
            pod.name: pod
            for pod in pods
            if (task := pod.task) is tasks.get(pod.name) and pod.namespace == workload.queue
            and pod.priority == (workload.priority if task.priority is None else task.priority)
            and pod.started == (task.started_at or workload.started_at)
        }  # fmt: skip
        return replace(workload, tasks=[task for task in workload.tasks if task.name not in stay]), stay

    def after(
        self, gone: Iterable[str], workloads: Sequence[Workload], stay: Sequence[dict[str, Pod]], came: "Running"
    ) -> tuple["Running", list[Pod]]:
        """With these workloads gone, and ``workloads`` in place of those of the same names, or last; and pods that
        went. ``stay``: pods of each of them that are as they were, ``came``: the others."""
        by_workload, pods_gone = self.by_workload.copy(), list[Pod]()
        staying = {workload.id: pods for workload, pods in zip(workloads, stay, strict=True)}
        for name in gone:
            pods_gone += [pod for pod in by_workload[name][1] if pod.name not in staying.get(name, ())]
            if name not in staying:
                del by_workload[name]
        running = Running([], [], [], [], ([], []), {}, 0)
        following, running._order = self._following, {}
        for workload in workloads:
            (_, pods), standing, had = came.by_workload[workload.id], staying[workload.id], by_workload.get(workload.id)
            if standing:
                standing = standing | {pod.name: pod for pod in pods}
                pods = [standing[task.name] for task in workload.tasks if task.name in standing]
            by_workload[workload.id] = following if had is None else had[0], pods
            following += had is None
            running._order |= {pod.place: i for i, pod in enumerate(pods)}
        running._by_workload, running._following = by_workload, following
        return running, pods_gone

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Pod]:
        return map(self.__getitem__, range(len(self._all)))

    def __getitem__(self, place: int) -> Pod:
        return self._all[place] or self._make(place)

    @property
    def _all(self) -> list[Pod | None]:
        if not self._pods and self._by_workload:  # it follows others: its pods are made already
            self._pods = [pod for _, of in self._by_workload.values() for pod in of]
        return self._pods

    @property
    def by_workload(self) -> dict[str, tuple[int, list[Pod]]]:
        """By id, each with a number that rises along the list of workloads."""
        if self._by_workload is None:
            self._by_workload = {workload.id: (rank, []) for rank, workload in enumerate(self._workloads)}
            for owner, pod in zip(self._owners, self, strict=True):
                self._by_workload[owner.id][1].append(pod)
        return self._by_workload

    def rank(self, pod: Pod) -> tuple[int, int]:
        """The number of the workload that it is of, and its own in that, where this may have changed."""
        return self.by_workload[pod.workload][0], self._order.get(pod.place, 0)

    def having(self, *fields: Callable[[Task], object]) -> list[Pod]:
        """Those whose task has one of them."""
        tasks = self._tasks or list(map(_task, self))
        have = map(any, zip(*(map(field, tasks) for field in fields), strict=True))
        return [self[place] for place in compress(range(len(tasks)), have)]

    def first_of(self, workload: str) -> Pod | None:
        """The first pod of a workload; None: it has none."""
        if self._by_workload is not None:
            _, pods = self._by_workload.get(workload, (0, ()))
            return pods[0] if pods else None
        return next((self[place] for place, owner in enumerate(self._owners) if owner.id == workload), None)

    def _make(self, place: int) -> Pod:
        owner, task = self._owners[place], self._tasks[place]
        namespace, state = owner.queue, task.state
        pod = self._all[place] = Pod(
            owner.id, task.name, namespace, owner.priority if task.priority is None else task.priority, task,
            self.shapes[self.numbers[place]], task.labels or NO_LABELS,
            ports_of(task.host_ports) if task.host_ports else (),
            terms_of(task.pod_affinity, namespace) if task.pod_affinity else (),
            terms_of(task.pod_anti_affinity, namespace) if task.pod_anti_affinity else (),
            task.started_at or owner.started_at,
            state != "running" and state in ("preempted", "releasing", "stuck_in_releasing"), state == "preempted",
            self.nodes[place], task.required_node, self._groups.get(owner.id), self._first + place,
        )  # fmt: skip
        return pod


def taken_by(pods: Iterable[Pod]) -> frozenset[Port]:
    """Ports."""
    return frozenset(port for pod in pods for port in pod.ports)


def ports_of(given: Sequence[wire.HostPort]) -> tuple[Port, ...]:
    """Those that a task names."""
    return tuple((port.ip or _ANY_ADDRESS, port.protocol, port.port) for port in given if port.port > 0)


class Shapes(dict[bytes, int]):
    """A number for whatever is requested alike, by its MessagePack, which takes a third of the time that hashing names
    and quantities does; ``parsed``: in steps, by number. Raises OverflowError for what is past the machine's integers.
    """

    def __init__(self) -> None:
        self.parsed: list[dict[str, int]] = []

    def numbers(self, requests: Iterable[dict[str, Quantity]]) -> list[int]:
        """Of each."""
        return list(map(self.__getitem__, map(_pack, requests)))

    def __missing__(self, packed: bytes) -> int:
        self.parsed.append(steps_of(_unpack(packed)))
        number = self[packed] = len(self.parsed) - 1
        return number


def steps_of(given: Mapping[str, Quantity]) -> dict[str, int]:
    """By name, so that the order that a request names resources in never shows. Pods with the same share one: it is
    never changed."""
    return _parsed(tuple(given.items())) if given else {}


@lru_cache(maxsize=1 << 14, typed=True)
def _parsed(given: tuple[tuple[str, Quantity], ...]) -> dict[str, int]:
    return {name: parse_quantity(value, scale_of(name)) for name, value in sorted(given, key=itemgetter(0))}
