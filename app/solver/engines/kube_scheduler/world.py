"""All nodes: as a state has them, and as one attempt after the other leaves them; and numbers that are kept of each
from state to state."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, count, pairwise, repeat
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np

from app.solver.delta import Changes
from app.solver.engines.kube_scheduler.pods import (
    NO_LABELS,
    DryRuns,
    Group,
    Ints,
    Machine,
    Pod,
    Port,
    Running,
    Selector,
    Shapes,
    Site,
    ports_of,
    selector_of,
    steps_of,
    taken_by,
    terms_of,
)
from app.solver.kubernetes import PODS
from app.solver.model import kube_scheduler as wire
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import OVER, Ask, DisruptionBudget, Node, Reservation, State, Task, Workload
from app.solver.question import safe_point

_AT_ONCE, _LARGEST = 16, 2**62
"""Of so many resources at most, and so much, are requests added up on all nodes at once."""
_name, _queue, _tasks, _node = map(attrgetter, ("name", "queue", "tasks", "node"))
_count, _state, _requests, _task = map(attrgetter, ("count", "state", "requests", "task"))
_host_ports, _pod_affinity, _pod_anti_affinity = map(attrgetter, ("host_ports", "pod_affinity", "pod_anti_affinity"))
_NO_PORTS: frozenset[Port] = frozenset()
_SHAPES = 256
"""So much at most is kept of nodes: what is free of a resource, whom they suit."""
_FEW = 32
"""So many nodes are asked one by one sooner than all at once."""
_stamps = count(1)
Claims = dict[int, tuple[Reservation, list[Pod]]]
"""Reservations by their ``id``, each with its pods."""


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    given: DisruptionBudget
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


@dataclass(frozen=True, slots=True, eq=False)
class CompiledState:
    """``nominated``: by node, pods that an earlier cycle nominated to it, each with the ask that it is of. ``anti``:
    running pods with required anti-affinity; ``friends``: those with required affinity."""

    configuration: CompiledConfiguration
    machines: list[Machine]
    sites: list[Site]
    place: dict[str, int]
    pods: Running
    nominated: dict[int, list[tuple[str, Pod]]]
    budgets: list[Budget]
    budgets_in: dict[str, list[tuple[int, Budget]]]
    """By namespace, each with its place in ``budgets``."""
    claims: Claims
    anti: list[Pod]
    friends: list[Pod]
    soft: bool
    """Whether some node has a taint that only makes it worse."""
    numbered: int
    """How many pods have had a number, in this state and those that it came from."""
    stamps: Ints
    """Of each node one that is another whenever anything is, of it or of who is nominated to it."""
    recent: dict[object, tuple[Ints, Ints, Any]]
    """What is kept of all nodes, see ``per_node``, by the stamps that they had: in states that follow one another."""
    vain: dict[object, Ints]
    """The same of asks that wait, see ``attempt_unseen``."""
    asked: dict[str, list[Any]]
    """What is tried for the asks of rounds, by name: in states that follow one another."""
    dry_runs: DryRuns

    def name(self, node: int) -> str:
        """Of a node by its place."""
        return self.machines[node].node.name

    def pods_of(self, ask: Ask, *where: str | int) -> list[Pod]:
        """The pods that ``ask``, at ``where`` in the request, wants. Raises InvalidInput, QuantityError."""
        priority = ask.priority if ask.priority is not None else self._priority_of(ask)
        if not ask.tasks:
            raise InvalidInput([Problem(pointer=pointer(*where, "tasks"), detail="there is no pod in it")])
        _one_each(ask.tasks, where)
        return [_pod_of(ask, task, priority) for task in ask.tasks]

    def _priority_of(self, ask: Ask) -> int:
        first = self.pods.first_of(ask.workload or ask.id)
        return 0 if first is None else first.priority


def compile_state(configuration: CompiledConfiguration, state: State) -> CompiledState:
    """Raises InvalidInput, QuantityError, KeyError for a node or namespace that is not there, ValueError for tasks of
    one workload that share a name; the caller diagnoses."""
    place = {node.name: i for i, node in enumerate(state.nodes)}
    running = _running(configuration, state, state.workloads, place, 0)
    machines = _machines(state.nodes, running)
    claims = _claims(state, {})
    budgets = _budgets(state.disruption_budgets, ())
    return CompiledState(
        configuration=configuration,
        machines=machines,
        sites=list(map(Site, machines)),
        place=place,
        pods=running,
        nominated=_nominated(claims, place),
        budgets=budgets,
        budgets_in=by_namespace(budgets),
        claims=claims,
        anti=running.having(_pod_anti_affinity),
        friends=running.having(_pod_affinity),
        soft=_soft(state.nodes),
        numbered=len(running),
        stamps=np.full(len(machines), next(_stamps)),
        recent={},
        vain={},
        asked={},
        dry_runs=DryRuns(),
    )


def update(old: CompiledState, configuration: CompiledConfiguration, state: State, changes: Changes) -> CompiledState:
    """The state after a delta: pods of workloads that stayed, and nodes that stayed with all their pods, are kept."""
    if old.configuration is not configuration or (changes.nodes and changes.replaced is None):
        return compile_state(configuration, state)
    came = [workload for _, _, workload in changes.workloads if workload is not None]
    gone = [had.id for _, had, _ in changes.workloads if had is not None]
    return followed(old, state, gone, came, changes)


def followed(
    old: CompiledState, state: State, left: Sequence[str], came: Sequence[Workload], changes: Changes
) -> CompiledState:
    """``left``, ``came``: workloads as they were, by name, and as they are. Of ``state`` its workloads are not read."""
    aware = old.configuration.settings.workload_aware
    parts = [(workload, dict[str, Pod]()) if aware else old.pods.parted(workload) for workload in came]
    fresh = _running(old.configuration, state, [new for new, _ in parts], old.place, old.numbered)
    running, gone = old.pods.after(left, came, [stay for _, stay in parts], fresh)
    machines, sites = list(old.machines), list(old.sites)
    changed = {pod.node for pod in (*gone, *fresh)} | set(changes.replaced or ())
    off, on = dict[int, list[Pod]](), dict[int, list[Pod]]()
    for pods, by_node in ((gone, off), (fresh, on)):
        for pod in pods:
            by_node.setdefault(pod.node, []).append(pod)
    for i in changed:
        machine, went, come = machines[i], off.get(i, ()), on.get(i, ())
        stay = [pod for pod in machine.pods if pod not in went] if went else machine.pods
        pods = tuple(sorted((*stay, *come), key=running.rank)) if come else tuple(stay)
        if machine.node is state.nodes[i]:
            machines[i] = machine.after(went, come, pods)
        else:
            machines[i] = _machine(i, state.nodes[i], _sum(map(_requests, pods)), taken_by(pods), pods)
        sites[i] = Site(machines[i])
    claims = _claims(state, old.claims) if changes.rest else old.claims
    nominated = _nominated(claims, old.place) if changes.rest else old.nominated
    if nominated is not old.nominated:
        changed |= {i for i in nominated.keys() | old.nominated.keys() if nominated.get(i) != old.nominated.get(i)}
    stamps, budgets = old.stamps.copy(), _budgets(state.disruption_budgets, old.budgets)
    stamps[list(changed)] = next(_stamps)
    none_near = not old.anti and not old.friends and not fresh.having(_pod_anti_affinity, _pod_affinity)
    return replace(
        old, machines=machines, sites=sites, pods=running, nominated=nominated, budgets=budgets,
        budgets_in=by_namespace(budgets), claims=claims, stamps=stamps,
        anti=[] if none_near else running.having(_pod_anti_affinity),
        friends=[] if none_near else running.having(_pod_affinity),
        soft=_soft(state.nodes) if changes.replaced else old.soft, numbered=old.numbered + len(fresh),
    )  # fmt: skip


def _pod_of(ask: Ask, task: Task, priority: int) -> Pod:
    """``priority``: of a task that says none."""
    return Pod(
        workload=ask.id, name=task.name, namespace=ask.queue, task=task,
        priority=priority if task.priority is None else task.priority,
        requests=steps_of(task.requests), labels=task.labels or NO_LABELS,
        ports=ports_of(task.host_ports) if task.host_ports else (),
        affinity=terms_of(task.pod_affinity, ask.queue) if task.pod_affinity else (),
        anti=terms_of(task.pod_anti_affinity, ask.queue) if task.pod_anti_affinity else (),
        required_node=task.required_node or ask.required_node,
    )  # fmt: skip


def _soft(nodes: Sequence[Node]) -> bool:
    return any(taint.effect == "PreferNoSchedule" for node in nodes for taint in node.taints)


def _claims(state: State, before: Claims) -> Claims:
    """``before``: of an earlier state."""
    claims: Claims = {}
    for position, held in enumerate(state.reservations):
        known, ask = before.get(id(held)), held.ask
        if known is None:
            _one_each(ask.tasks, ("state", "reservations", position, "ask"))
            known = held, [_pod_of(ask, task, ask.priority or 0) for task in ask.tasks]
        claims[id(held)] = known
    return claims


def _nominated(claims: Claims, place: Mapping[str, int]) -> dict[int, list[tuple[str, Pod]]]:
    nominated: dict[int, list[tuple[str, Pod]]] = {}
    for held, pods in claims.values():
        nominated.setdefault(place[held.node], []).extend((held.ask.id, pod) for pod in pods)
    return nominated


def _one_each(tasks: Sequence[Task], where: tuple[str | int, ...]) -> None:
    problems = [
        Problem(pointer=pointer(*where, "tasks", i, "count"), detail="a task is one pod here: its count is 1")
        for i, task in enumerate(tasks)
        if task.count != 1
    ]
    if problems:
        raise InvalidInput(problems)


def by_namespace(budgets: Sequence[Budget]) -> dict[str, list[tuple[int, Budget]]]:
    """Each with its place."""
    budgets_in: dict[str, list[tuple[int, Budget]]] = {}
    for i, budget in enumerate(budgets):
        budgets_in.setdefault(budget.namespace, []).append((i, budget))
    return budgets_in


def _budgets(given: Sequence[DisruptionBudget], before: Sequence[Budget]) -> list[Budget]:
    """Those that stay in their place are kept."""
    return [
        before[i] if i < len(before) and before[i].given == budget else _budget(budget)
        for i, budget in enumerate(given)
    ]


def _budget(of: DisruptionBudget) -> Budget:
    return Budget(of, of.name, of.queue, selector_of(of.selector), of.disruptions_allowed, frozenset(of.disrupted))


def _group_of(workload: Workload) -> Group | None:
    if workload.disruption_mode is None and workload.min_available is None:
        return None
    return Group(workload.id, workload.priority, workload.disruption_mode == "all")


def _running(
    configuration: CompiledConfiguration,
    state: State,
    workloads: Sequence[Workload],
    place: Mapping[str, int],
    first: int,
) -> Running:
    """Pods of some workloads of the state, one field of all tasks at a time: pod by pod it takes twice as long."""
    if unknown := set(map(_queue, workloads)).difference(configuration.namespaces):
        raise KeyError(min(unknown))
    lists = list(map(_tasks, workloads))
    tasks = list(chain.from_iterable(lists))
    if len(set(map(_name, tasks))) < len(tasks) and any(len(set(map(_name, of))) < len(of) for of in lists):
        raise ValueError("two tasks of one workload share a name")
    if not set(map(_count, tasks)) <= {1}:
        for i, workload in enumerate(state.workloads):
            _one_each(workload.tasks, ("state", "workloads", i))
    owners = list(chain.from_iterable(map(repeat, workloads, map(len, lists))))
    nodes = [-1 if name is None else place[name] for name in map(_node, tasks)]
    states = list(map(_state, tasks))
    if -1 in nodes or not OVER.isdisjoint(states):
        holds = [node >= 0 and of not in OVER for node, of in zip(nodes, states, strict=True)]
        tasks, owners, nodes = list(compress(tasks, holds)), list(compress(owners, holds)), list(compress(nodes, holds))
    shapes = Shapes()
    numbers = shapes.numbers(map(_requests, tasks))
    groups: dict[str, Group] = {}
    if configuration.settings.workload_aware:
        groups = {owner.id: group for owner in workloads if (group := _group_of(owner)) is not None}
    return Running(workloads, owners, tasks, nodes, (numbers, shapes.parsed), groups, first)


def _machines(nodes: Sequence[Node], running: Running) -> list[Machine]:
    on = np.array(running.nodes, np.int64)
    order, ends = on.argsort(kind="stable"), np.bincount(on, minlength=len(nodes)).cumsum()
    places: list[int] = order.tolist()
    parts = [places[start:end] for start, end in pairwise([0, *ends.tolist()])]
    holders: dict[int, list[Pod]] = {}
    for pod in running.having(_host_ports):
        holders.setdefault(pod.node, []).append(pod)
    return [
        _machine(i, node, used, taken_by(holders[i]) if i in holders else _NO_PORTS, None, (running, here))
        for i, (node, used, here) in enumerate(zip(nodes, _used(running, order, ends), parts, strict=True))
    ]


def _used(running: Running, order: Ints, ends: Ints) -> Iterable[dict[str, int]]:
    """What pods of each node request together. ``order``: pods, node by node, and where those of each end."""
    shapes, numbers = running.shapes, np.array(running.numbers, np.int64)[order]
    starts = np.concatenate(([0], ends[:-1]))
    names = sorted(set[str]().union(*shapes))
    most = max((amount for of in shapes for amount in of.values()), default=0)
    if len(names) > _AT_ONCE or most * len(numbers) > _LARGEST:
        by_node: list[int] = numbers.tolist()
        return (_sum(shapes[i] for i in by_node[a:b]) for a, b in pairwise([0, *ends.tolist()]))
    sums = np.zeros((len(names), len(numbers) + 1), np.int64)
    amounts = np.array([[of.get(name, 0) for of in shapes] for name in names], np.int64)
    if names:
        amounts[:, numbers].cumsum(axis=1, out=sums[:, 1:])
    return (dict(zip(names, row, strict=True)) for row in (sums[:, ends] - sums[:, starts]).T.tolist())


def _sum(requests: Iterable[dict[str, int]]) -> dict[str, int]:
    used: dict[str, int] = {}
    for amounts in requests:
        for resource, amount in amounts.items():
            used[resource] = used.get(resource, 0) + amount
    return used


def _machine(
    index: int,
    node: Node,
    used: dict[str, int],
    ports: frozenset[Port],
    pods: tuple[Pod, ...] | None,
    unmade: tuple[Running, list[int]] | None = None,
) -> Machine:
    """``used``: by pods."""
    safe_point()
    capacity = steps_of(node.capacity)
    others = steps_of(node.occupied) if node.occupied else {}
    used = _sum((others, used)) if others else used
    return Machine(index, node, node.labels, capacity, capacity.get(PODS), used, others, ports, pods, unmade)


class World:
    """All nodes as one attempt after the other leaves them: pods that were bound or nominated, and ``leaving``, pods
    that were told to go and still hold what they have. ``touched``: nodes that are not as the state has them;
    ``stamps``: see the state; ``anti``: pods there that have required anti-affinity; ``friends``: required affinity;
    ``claimants``: which pods of which asks are nominated; ``waits``, ``vain``: see ``attempt``, the first until
    something changes; ``claims_lost``: how many nominations have gone, which alone makes room for those whose turn is
    still to come: whoever was bound or nominated meanwhile matters at least as much, and is nobody's victim;
    ``offers``: by what is alike, see ``Offers``, None: these are not kept."""

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.sites = list(state.sites)
        self.touched: set[int] = set()
        self.stamps = state.stamps
        self.anti = list(state.anti)
        self.friends = list(state.friends)
        self.nominated: dict[int, list[tuple[str, Pod]]] = {node: list(of) for node, of in state.nominated.items()}
        self.claimants = {(ask, pod.name) for held in self.nominated.values() for ask, pod in held}
        self.leaving, self.waits = set[int](), dict[object, object]()
        self.vain: dict[object, tuple[int, int]] = {}
        self.claims_lost = 0
        self.offers: dict[object, object] | None = None

    def copy(self) -> "World":
        twin = World.__new__(World)
        twin.state, twin.sites, twin.anti = self.state, list(self.sites), list(self.anti)
        twin.friends = list(self.friends)
        twin.nominated, twin.leaving, twin.touched = dict(self.nominated), set(self.leaving), set(self.touched)
        twin.stamps = self.stamps
        twin.claimants, twin.waits, twin.vain, twin.offers = self.claimants, {}, {}, None
        twin.claims_lost = 0
        for node in self.touched:
            twin.sites[node] = self.sites[node].copy()
        return twin

    def terminates(self, pod: Pod) -> bool:
        return pod.terminating or pod.place in self.leaving

    def preempted(self, pod: Pod) -> bool:
        """Whether it terminates because the scheduler preempted it."""
        return pod.preempted or pod.place in self.leaving

    def withdraw(self, ask: str, pod: Pod, to: int) -> None:
        """The pod of this ask is nominated nowhere: it goes ``to`` a node."""
        for node, held in self.nominated.items() if self.claims(ask, pod) else ():
            if any(name == ask and other.name == pod.name for name, other in held):
                self.claims_lost += node != to
                self.nominate(node, [nominee for nominee in held if nominee[0] != ask or nominee[1].name != pod.name])

    def nominate(self, node: int, pods: list[tuple[str, Pod]]) -> None:
        """These are nominated to the node, each with its ask."""
        self.nominated[node] = pods
        self.claimants = {(ask, pod.name) for held in self.nominated.values() for ask, pod in held}
        self._changed(node)

    def leave(self, pods: Iterable[Pod]) -> None:
        """They are told to go."""
        for pod in pods:
            self.leaving.add(pod.place)
            self.waits.clear()

    def claims(self, ask: str, pod: Pod) -> bool:
        """Whether the pod of this ask is nominated somewhere."""
        return (ask, pod.name) in self.claimants

    def add(self, pod: Pod, node: int) -> None:
        pod.node = node
        self._own(node).add(pod)
        if pod.anti:
            self.anti.append(pod)
        if pod.affinity:
            self.friends.append(pod)

    def remove(self, pod: Pod, node: int) -> None:
        self._own(node).remove(pod)
        if pod.anti:
            self.anti.remove(pod)
        if pod.affinity:
            self.friends.remove(pod)

    def _changed(self, node: int) -> None:
        self.waits.clear()
        self.stamps = self.stamps.copy()
        self.stamps[node] = next(_stamps)

    def _own(self, node: int) -> Site:
        self._changed(node)
        if node not in self.touched:
            self.touched.add(node)
            self.sites[node] = self.sites[node].copy()
        return self.sites[node]


W = TypeVar("W", bound=Callable[[Site], tuple[int, ...]])


def per_node(
    world: World, key: object, width: int, work: W, anew: Callable[[World], Ints] | None = None
) -> tuple[Ints, W]:
    """Numbers that ``work`` says of a node, ``width`` for each, which depend on what is on the node alone: a row by
    number, a column by node; and what says so. Where ``key`` is known, in this state or one that it came from, that is
    who said so first, and only nodes that changed since are asked. ``anew``: the same of all nodes at once."""
    recent, stamps = world.state.recent, world.stamps
    known = recent.get(key)
    if known is not None and known[0] is stamps:
        return known[1], known[2]
    changed: list[int] | None = None
    if known is not None:
        work = cast(W, known[2])
        changed = (known[0] != stamps).nonzero()[0].tolist()
    if known is not None and changed is not None and (anew is None or len(changed) < _FEW):
        of = _with(known[1], changed, work, world.sites)
    else:
        of = _numbers(list(map(work, world.sites)), width) if anew is None else anew(world)
        if len(recent) >= _SHAPES:
            recent.clear()
    recent[key] = stamps, of, work
    return of, work


def _with(of: Ints, changed: list[int], work: Callable[[Site], tuple[int, ...]], sites: list[Site]) -> Ints:
    if not changed:
        return of
    columns = _numbers([work(sites[i]) for i in changed], len(of))
    of = of.astype(columns.dtype) if columns.dtype == object else of.copy()
    of[:, changed] = columns
    return of


def _numbers(rows: list[tuple[int, ...]], width: int) -> Ints:
    return np.ascontiguousarray(numbers_of(rows).reshape(len(rows), width).T)


def numbers_of(rows: Sequence[Sequence[int]]) -> Ints:
    """What is too large for the machine's integers stays as it is, and is compared one by one."""
    try:
        return np.array(rows, np.int64)
    except OverflowError:
        return np.array(rows, object)
