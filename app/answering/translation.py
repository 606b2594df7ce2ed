"""A situation of one engine in the words of another: quotas, weights and priorities as far as both have them.

Everything that the other engine has no word for, or takes otherwise, is a finding; pointers lead into the request.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, repeat
from typing import Any, Literal, TypeVar

import msgspec

from app.base.decoding import descriptions
from app.solver.engine import all_facts, facts_of
from app.solver.model.base import UNLIMITED, Quantity, QuantityError, parse_quantity, scale_of, units
from app.solver.model.configuration import UNWEIGHTED, Configuration, PlacedQuota, Queue, Quota, quotas
from app.solver.model.problems import Finding, pointer
from app.solver.model.request import StateOrReference
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload

Severity = Literal["warning", "info"]


@cache
def read_by(kind: type[msgspec.Struct]) -> dict[str, frozenset[str]]:
    """By field of ``kind``, the engines that read it, as its description says; what is not listed is read by all, or by
    none. A block that is called as an engine is that engine's."""
    names = {facts.short: facts.name for facts in all_facts()}
    pattern = "|".join(map(re.escape, names))
    said = re.compile(rf"Read by (?:{pattern})(?:(?:, | and )(?:{pattern}))*")
    blocks = {facts.block: facts.name for facts in all_facts()}
    readers = {name: frozenset({blocks[name]}) for name in kind.__struct_fields__ if name in blocks}
    for name, text in descriptions(kind).items():
        if (listed := said.search(text)) is not None:
            readers[name] = frozenset(names[word] for word in re.findall(pattern, listed[0]))
    return readers


_TOLD_ELSEWHERE = {(Queue, "priority"), (Quota, "borrowing_limit"), (Quota, "lending_limit"), (Quota, "weight")}
_WHERE_IT_IS = {
    (Task, "node"), (Task, "topology_assignment"), (Task, "flavors"), (Task, "uid"), (Workload, "uid"), (Ask, "uid"),
    (Ask, "workload"), (State, "nodes"), (Node, "capacity"), (Node, "occupied"), (Node, "schedulable"),
    (Node, "gpu_memory"), (Task, "gpu_group"),
}  # fmt: skip
"""What the other engine does without: it has its own way to say where work is."""


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A field that is set, and that the other engine has no word for."""

    field: str
    severity: Severity


def unsaid(struct: msgspec.Struct, kind: type[msgspec.Struct], old: str, new: str) -> Iterator[Unsaid]:
    """The fields of ``struct``, a ``kind``, that ``old`` reads, ``new`` does not, and that say something."""
    for field, silent in _lost(kind, old, new).items():
        if getattr(struct, field) != silent:
            yield Unsaid(field, "info" if (kind, field) in _WHERE_IT_IS else "warning")


@cache
def _lost(kind: type[msgspec.Struct], old: str, new: str) -> dict[str, Any]:
    """The fields of ``kind`` that ``old`` reads and ``new`` does not, and what each is where it says nothing."""
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(kind)
        if (readers := read_by(kind).get(field.name)) is not None
        and old in readers and new not in readers and (kind, field.name) not in _TOLD_ELSEWHERE
    }  # fmt: skip


_NAME, _ALL, _GPU = "all-quota", "all-nodes", "nvidia.com/gpu"
_SLOTS = {"pods": 100_000, "user_slots": 100_000}


def one_node(configuration: Configuration) -> Node:
    """For a situation that has no nodes: one with as much as the quotas of all queues guarantee together."""
    steps: dict[str, int] = {}
    for queue in configuration.queues:
        for _, resource, quota, _ in quotas(queue):
            try:
                given = quota.guaranteed
                steps[resource] = steps.get(resource, 0) + (
                    0 if given is None or given == UNLIMITED else parse_quantity(given, scale_of(resource))
                )
            except QuantityError:
                continue
    capacity: dict[str, Quantity] = {name: units(value, name) for name, value in steps.items()}
    return Node(name=_NAME, capacity={**_SLOTS, **capacity})


class Room:
    """What is free on each node while work is put there: running work of an engine that knows only quotas, for one that
    places on nodes.

    Each pod goes to the first node with room, in the order of the request. That is no claim about where it runs: only
    how much room is left in all, and that a node can't be overfull.
    """

    def __init__(self, nodes: list[Node], workloads: list[Workload]) -> None:
        self._free = {node.name: _steps(node.capacity) for node in nodes}
        self._labels = {node.name: node.labels for node in nodes}
        self._with: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for node in nodes:
            self._take(node.name, _steps(node.occupied))
        for task in (task for workload in workloads for task in workload.tasks):
            if task.node in self._free:
                self._take(task.node, {name: value * task.count for name, value in _steps(task.requests).items()})

    def placed(self, task: Task, labels: tuple[tuple[str, str], ...] = ()) -> Task | None:
        """``task``, one pod, on the first node with these labels that has room; None where no node has any."""
        wanted = _steps(task.requests)
        for node in self._labelled(labels):
            free = self._free[node]
            if all(free.get(name, 0) >= value for name, value in wanted.items() if value):
                self._take(node, wanted)
                return msgspec.structs.replace(task, node=node)
        return None

    def _labelled(self, labels: tuple[tuple[str, str], ...]) -> Iterable[str]:
        if not labels:
            return self._free
        names = self._with.get(labels)
        if names is None:
            names = self._with[labels] = [
                name for name, of in self._labels.items() if all(of.get(key) == value for key, value in labels)
            ]
        return names

    def _take(self, node: str, amounts: dict[str, int]) -> None:
        free = self._free[node]
        for name, value in amounts.items():
            free[name] = free.get(name, 0) - value


def _steps(amounts: dict[str, Quantity]) -> dict[str, int]:
    """What is no quantity is left for the engine to refuse."""
    out: dict[str, int] = {}
    for name, value in amounts.items():
        try:
            out[name] = parse_quantity(value, scale_of(name))
        except QuantityError:
            continue
    return out


R = TypeVar("R", Workload, Ask)


_CALLED: dict[type[msgspec.Struct], str] = {
    Configuration: "a configuration", Queue: "queues", State: "a state", Node: "nodes", Workload: "running work",
    Ask: "asks", Task: "tasks", QueueState: "what queues carry over",
}  # fmt: skip
_MOST_PODS = 20_000


@dataclass(frozen=True, slots=True)
class Translation:
    """The situation in other words, and what was lost."""

    configuration: Configuration
    state: StateOrReference
    asks: list[Ask]
    findings: list[Finding]


def translate(
    configuration: Configuration, state: StateOrReference, asks: list[Ask], old: str, new: str
) -> Translation:
    """The situation of engine ``old`` for engine ``new``. A state that is only named stays as it is."""
    return _Translator(configuration, old, new).all(state, asks)


class _Translator:
    def __init__(self, configuration: Configuration, old: str, new: str) -> None:
        self._configuration = configuration
        self._old = facts_of(old)
        self._new = facts_of(new)
        self._findings: dict[tuple[str, str], Finding] = {}
        self._parents = {queue.parent for queue in configuration.queues if queue.parent is not None}
        self._names = self._new_names()
        self._first: dict[str, dict[str, str]] = {}
        self._gpus: dict[str, int] = {}

    def all(self, state: StateOrReference, asks: list[Ask]) -> Translation:
        """Queues first: they say what everybody else is called."""
        queues = [self._queue(i, queue) for i, queue in enumerate(self._configuration.queues)]
        if self._new.root is not None and self._new.root.name not in {queue.name for queue in queues}:
            queues.insert(0, self._new.root)
        if self._new.quotas and not self._old.quotas and queues:
            queues = self._unbounded(queues, state)
        configuration = msgspec.structs.replace(self._configuration, engine=self._new.name, queues=queues)
        self._lose_unsaid(self._configuration, "/configuration")
        if getattr(self._configuration.settings, self._old.block, None) is not None:
            why = f"{self._new.name} decides by its own, or by its defaults"
            detail = f"settings of {self._old.name} do not count: {why}"
            self._lose(pointer("configuration", "settings", self._old.block), "no-word", detail)
        if state.snapshot is not None:
            detail = "a snapshot is decided on as it is: its names are not translated"
            self._lose("/state/snapshot", "kept-as-is", detail)
            return Translation(configuration, state, self._each(asks, "asks"), list(self._findings.values()))
        self._lose_unsaid(msgspec.structs.replace(state, snapshot=None), "/state")
        for name, queue in state.queues.items():
            self._lose_unsaid(queue, pointer("state", "queues", name))
        nodes, workloads = state.nodes, state.workloads
        self._gpus = {node.name: node.gpu_memory for node in nodes if node.gpu_memory}
        if self._new.places:
            nodes, workloads = self._on_nodes(nodes, workloads)
        translated = msgspec.structs.replace(
            state,
            nodes=[self._node(node, pointer("state", "nodes", i)) for i, node in enumerate(nodes)],
            workloads=self._each(workloads, "state", "workloads"),
        )
        return Translation(configuration, translated, self._each(asks, "asks"), list(self._findings.values()))

    def _lose(self, where: str, rule: str, detail: str, severity: Any = "warning") -> None:
        """Of one kind only the first is listed."""
        self._findings.setdefault((rule, detail), Finding(rule=rule, severity=severity, pointer=where, detail=detail))

    def _lose_unsaid(self, struct: msgspec.Struct, where: str) -> None:
        """What the other engine has no word for."""
        kind = State if isinstance(struct, State) else type(struct)
        for lost in unsaid(struct, kind, self._old.name, self._new.name):
            detail = f"{self._new.name} does not read {lost.field.replace('_', ' ')} of {_CALLED[kind]}"
            self._lose(f"{where}/{lost.field}", "no-word", detail, lost.severity)

    def _new_names(self) -> dict[str, str]:
        """Paths under one root, where the engine has such."""
        root = self._new.root
        if root is None or any(queue.name == root.name for queue in self._configuration.queues):
            return {}
        above = {queue.name: queue.parent for queue in self._configuration.queues}
        names: dict[str, str] = {}
        for name in above:
            path: list[str] = []
            ancestor: str | None = name
            while ancestor is not None and len(path) <= len(above):
                path.append(ancestor.lower().replace(".", "-"))
                ancestor = above.get(ancestor)
            names[name] = ".".join([root.name, *reversed(path)])
        return names

    def _name(self, name: str) -> str:
        return self._names.get(name, name)

    def _resource(self, name: str) -> str:
        """Only YuniKorn has a word of its own for processors, and names of others may be its word too."""
        if name == "cpu":
            return self._new.cpu
        return "cpu" if name == self._old.cpu else name

    def _amounts(self, amounts: dict[str, Quantity]) -> dict[str, Quantity]:
        return {self._resource(name): value for name, value in amounts.items()}

    def _queue(self, i: int, queue: Queue) -> Queue:
        where = pointer("configuration", "queues", i)
        self._lose_unsaid(queue, where)
        changes: dict[str, Any] = {"name": self._name(queue.name), "quota": None, "resource_groups": None}
        parent = self._name(queue.parent) if queue.parent is not None else None
        above = self._new.root.name if self._new.root is not None and self._names else None
        changes["parent"] = above if parent is None else parent
        if not self._new.queues_nest and queue.parent is not None:
            self._lose(f"{where}/parent", "no-word", f"queues of {self._new.name} have no parents")
            changes["parent"] = None
        self._quotas(i, where, queue, changes)
        if not self._new.weights and queue.has_weight and queue.weight != 1:
            self._lose(f"{where}/weight", "no-word", f"{self._new.name} has no weights of queues")
            changes["weight"] = UNWEIGHTED
        if queue.priority:
            changes |= self._priority(where, queue)
        return msgspec.structs.replace(queue, **changes)

    def _quotas(self, i: int, where: str, queue: Queue, changes: dict[str, Any]) -> None:
        if not self._new.quotas:
            detail = f"{self._new.name} knows no quotas: priority alone decides"
            for field in (field for field in ("quota", "resource_groups") if getattr(queue, field)):
                self._lose(f"{where}/{field}", "no-word", detail)
            return
        if queue.resource_groups is not None and self._new.borrows:
            changes["resource_groups"] = queue.resource_groups
            return
        if queue.resource_groups is not None:
            detail = f"{self._new.name} knows no flavors: their quotas are added up"
            self._lose(f"{where}/resource_groups", "flavors", detail, "info")
        if quota := self._quota(i, queue):
            changes["quota"] = quota

    def _unbounded(self, queues: list[Queue], state: StateOrReference) -> list[Queue]:
        """Queues of an engine without quotas: each may have all that the nodes have."""
        borrows = self._new.shares_by_priority
        what = "no queue is guaranteed anything" if borrows is None else "all queues borrow what the nodes have"
        if borrows is not None and state.snapshot is not None:
            borrows, what = None, "the nodes of a snapshot are not looked at, so that queues have nothing"
        self._lose("/configuration/queues", "no-quotas", f"{self._old.name} knows no quotas: {what}")
        if borrows is None:
            return queues
        total: dict[str, int] = {}
        for node in state.nodes:
            occupied = _steps(node.occupied)
            for name, steps in _steps(node.capacity).items():
                total[name] = total.get(name, 0) + max(0, steps - occupied.get(name, 0))
        quota = {self._resource(name): Quota(guaranteed=units(steps, name)) for name, steps in total.items()}
        above = next(name for name in accumulate(repeat("-"), initial=_ALL) if all(q.name != name for q in queues))
        shares: dict[str, Any] = {"parent": above, "quota": dict.fromkeys(quota, Quota(guaranteed=0))}
        return [
            Queue(name=above, quota=quota),
            *(msgspec.structs.replace(queue, **shares, **borrows(queue)) for queue in queues),
        ]

    def _priority(self, where: str, queue: Queue) -> dict[str, Any]:
        """A queue's priority may be one among its siblings, or shift those of its asks, or nothing."""
        if self._new.offsets_priority is not None:
            return self._new.offsets_priority(queue)
        if not self._new.prefers_queues:
            self._lose(f"{where}/priority", "no-word", f"{self._new.name} has no priorities of queues")
        return {}

    def _quota(self, i: int, queue: Queue) -> dict[str, Quota]:
        """One quota a resource. Kueue's borrowing limit is a limit above the guarantee, and the other way round."""
        by_resource: dict[str, list[PlacedQuota]] = {}
        for placed in quotas(queue, ("configuration", "queues", i)):
            by_resource.setdefault(self._resource(placed.resource), []).append(placed)
        return {name: self._combined(name, queue, listed) for name, listed in by_resource.items()}

    def _combined(self, name: str, queue: Queue, placed: list[PlacedQuota]) -> Quota:
        listed = [placed_quota.quota for placed_quota in placed]
        guaranteed = _sum(name, (quota.guaranteed for quota in listed))
        limit = _sum(name, (quota.limit for quota in listed)) if all(q.limit is not None for q in listed) else None
        weight = next((quota.weight for quota in listed if quota.weight is not None), None)
        if weight is not None and not self._new.weighs_resources:
            where = _first(placed, lambda quota: quota.weight is not None)
            self._lose(where, "no-word", f"{self._new.name} has no weight of one resource")
            weight = None
        if any(quota.lending_limit is not None for quota in listed) and not self._new.borrows:
            where = _first(placed, lambda quota: quota.lending_limit is not None)
            self._lose(where, "no-word", f"{self._new.name} lends everything: a lending limit does not count")
        if self._old.borrows and not self._new.borrows:
            limit = self._kueue_limit(name, queue, listed, guaranteed, limit)
        boundless = _first(placed, lambda quota: quota.guaranteed == UNLIMITED)
        if self._new.borrows:
            return self._nominal(boundless, name, guaranteed, limit)
        if guaranteed == UNLIMITED and not self._new.boundless:
            self._lose(boundless, "no-word", f"{self._new.name} has no guarantee without bound: none is given")
            guaranteed = None
        if self._new.root is not None and queue.name == self._new.root.name:
            return Quota()
        return Quota(guaranteed=guaranteed, limit=limit, weight=weight)

    def _kueue_limit(
        self, name: str, queue: Queue, listed: list[Quota], guaranteed: Quantity | None, limit: Quantity | None
    ) -> Quantity | None:
        """A ClusterQueue without a cohort can't borrow; in one it may borrow so much, or everything."""
        if queue.parent is None and queue.name not in self._parents:
            return guaranteed if guaranteed is not None else 0
        borrowed = [quota.borrowing_limit for quota in listed]
        if queue.parent is None or any(value is None for value in borrowed):
            return limit
        return _sum(name, [guaranteed, *borrowed])

    def _nominal(self, where: str, name: str, guaranteed: Quantity | None, limit: Quantity | None) -> Quota:
        if guaranteed == UNLIMITED:
            self._lose(where, "no-word", f"{self._new.name} has no nominal quota without bound: 2^53 units are given")
            guaranteed = 2**53 // scale_of(name)
        if limit is None or limit == UNLIMITED:
            return Quota(guaranteed=guaranteed)
        try:
            more = parse_quantity(limit, scale_of(name)) - parse_quantity(guaranteed or 0, scale_of(name))
        except QuantityError:
            return Quota(guaranteed=guaranteed, limit=limit)
        return Quota(guaranteed=guaranteed, borrowing_limit=units(max(0, more), name))

    def _node(self, node: Node, where: str) -> Node:
        self._lose_unsaid(node, where)
        capacity, occupied = self._amounts(node.capacity), self._amounts(node.occupied)
        return msgspec.structs.replace(node, capacity=capacity, occupied=occupied)

    def _each(self, listed: list[R], *where: str) -> list[R]:
        return [self._work(work, pointer(*where, i)) for i, work in enumerate(listed)]

    def _work(self, work: R, where: str) -> R:
        self._lose_unsaid(work, where)
        for i, task in enumerate(work.tasks):
            self._lose_unsaid(task, f"{where}/tasks/{i}")
        tasks = [task for old in work.tasks for task in self._tasks(old, where)]
        flavors = self._flavors(work) if self._new.borrows and isinstance(work, Workload) else None
        if flavors:
            tasks = [
                task
                if task.flavors is not None
                else msgspec.structs.replace(task, flavors={r: flavors[r] for r in task.requests if r in flavors})
                for task in tasks
            ]
        several = isinstance(work, Ask) and sum(t.count for t in work.tasks) > 1
        if several and self._old.pod_by_pod != self._new.pod_by_pod:
            single, whole = (self._old, self._new) if self._old.pod_by_pod else (self._new, self._old)
            detail = f"pods of an ask start one after the other under {single.name}, and together under {whole.name}"
            self._lose(where, "pod-by-pod", detail)
        return msgspec.structs.replace(work, queue=self._name(work.queue), tasks=tasks)

    def _tasks(self, task: Task, where: str) -> list[Task]:
        usage = None if task.usage is None else self._amounts(task.usage)
        requests = self._shares(task) if task.gpu_memory or task.gpu_devices else task.requests
        translated = msgspec.structs.replace(task, requests=self._amounts(requests), usage=usage)
        if not self._new.tasks_are_pods or task.count == 1 or task.count > _MOST_PODS:
            return [translated]
        self._lose(where, "pods", f"a task of several pods is that many tasks to {self._new.name}", "info")
        return _pods(translated)

    def _shares(self, task: Task) -> dict[str, Quantity]:
        """Requests with memory of GPUs in GPUs of the node, else the smallest, else whole ones; and shares together."""
        if self._new.name in read_by(Task)["gpu_memory"]:
            return task.requests
        name = next((name for name in task.requests if name.endswith("gpu")), _GPU)
        size = self._gpus.get(task.node or "", min(self._gpus.values(), default=0))
        steps = _steps(task.requests).get(name, 0)
        if task.gpu_memory:
            steps = min(1000, -(-task.gpu_memory * 1000 // size)) if size else 1000
        return {**task.requests, name: units(steps * (task.gpu_devices or 1), name)}

    def _flavors(self, workload: Workload) -> dict[str, str]:
        """Where running work has no flavors: the first that its queue has of each resource."""
        if workload.queue not in self._first:
            queue = next((q for q in self._configuration.queues if q.name == workload.queue), None)
            flavors = {} if queue is None else dict.fromkeys(map(self._resource, queue.quota or ()), "default")
            for group in (queue.resource_groups or ()) if queue is not None else ():
                for flavor in reversed(group.flavors):
                    flavors |= {self._resource(name): flavor.name for name in flavor.quota}
            self._first[workload.queue] = flavors
        if self._first[workload.queue] and any(task.flavors is None for task in workload.tasks):
            detail = "running work is taken to have the first flavor of its queue"
            self._lose("/state/workloads", "flavors", detail, "info")
        return self._first[workload.queue]

    def _on_nodes(self, nodes: list[Node], workloads: list[Workload]) -> tuple[list[Node], list[Workload]]:
        """Every pod on a node, as engines that place want it."""
        if not nodes:
            detail = "there are no nodes: one with as much as all quotas together is taken"
            self._lose("/state/nodes", "no-nodes", detail)
            nodes = [one_node(self._configuration)]
        if all(task.node is not None for workload in workloads for task in workload.tasks):
            return nodes, workloads
        nowhere = [task for workload in workloads for task in workload.tasks if task.node is None]
        if any(task.topology_assignment is None for task in nowhere):
            detail = "running work that stands on no node is put on the first with room"
            self._lose("/state/workloads", "no-nodes", detail)
        if any(task.topology_assignment is not None for task in nowhere):
            detail = "pods with a topology assignment are put on the first node with room of each of its domains"
            self._lose("/state/workloads", "no-nodes", detail, "info")
        room = Room(nodes, workloads)
        return nodes, [self._put(workload, room, i) for i, workload in enumerate(workloads)]

    def _put(self, workload: Workload, room: Room, i: int) -> Workload:
        tasks: list[Task] = []
        for task in workload.tasks:
            if task.node is not None or task.count > _MOST_PODS:
                tasks.append(task)
                continue
            pods = zip(_pods(task), _domains(task), strict=False)
            placed = [placed_task for pod, labels in pods if (placed_task := room.placed(pod, labels)) is not None]
            if len(placed) < task.count:
                detail = f"{workload.id!r}: {task.count - len(placed)} of {task.name!r} fit on no node: left out"
                self._lose(pointer("state", "workloads", i), "left-out", detail)
            tasks += placed
        return msgspec.structs.replace(workload, tasks=tasks)


def _domains(task: Task) -> Iterator[tuple[tuple[str, str], ...]]:
    """Of each pod in turn the labels that its node has by the task's topology assignment; none for those beyond it."""
    if (assigned := task.topology_assignment) is not None:
        for domain in assigned.domains:
            yield from repeat(tuple(zip(assigned.levels, domain.values, strict=False)), domain.count)
    yield from repeat(())


def _pods(task: Task) -> list[Task]:
    names = [task.name] if task.count == 1 else [f"{task.name}-{i}" for i in range(task.count)]
    alike = msgspec.structs.replace(task, count=1, min_count=None, full_count=None)
    return [msgspec.structs.replace(alike, name=name) for name in names]


def _first(placed: list[PlacedQuota], has: Callable[[Quota], bool]) -> str:
    """The pointer of the first quota of its kind; of the first, where there is none."""
    return pointer(*next((quota.where for quota in placed if has(quota.quota)), placed[0].where))


def _sum(name: str, given: Iterable[Quantity | None]) -> Quantity | None:
    """In whole units; None where nothing is given. What is no quantity is left for the engine to refuse."""
    listed = [value for value in given if value is not None]
    if not listed or len(listed) == 1:
        return listed[0] if listed else None
    if UNLIMITED in listed:
        return UNLIMITED
    try:
        return units(sum(parse_quantity(value, scale_of(name)) for value in listed), name)
    except QuantityError:
        return listed[0]
