"""Which nodes can take a pod: kube-scheduler's filters in their order, and what they worked out before the first node.

``Cycle`` is what one attempt for one pod knows of all nodes (the origin: CycleState); a pod that is taken away or put
back changes it by itself, as the origin's PreFilterExtensions do, and that is not always what looking again would give.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, cast

from app.solver import kubernetes
from app.solver.engines.kube_scheduler.pods import PODS, CompiledState, Machine, Pod, Site
from app.solver.engines.kube_scheduler.selectors import Labels, Spread, spreads_of
from app.solver.model.configuration import Taint
from app.solver.model.state import Toleration

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_ANY_ADDRESS = "0.0.0.0"
_MANY = 2**31 - 1
_SHAPES = 256
"""Of so many shapes of pods is known at most which nodes take them, or how well."""
Pairs = dict[tuple[str, str], int]
"""How many, by label of nodes and its value."""


@dataclass(frozen=True, slots=True)
class Status:
    """Why a node can't take a pod. ``final``: nor would it if pods were taken away (UnschedulableAndUnresolvable)."""

    rule: str
    reason: str
    final: bool


class World:
    """All nodes as one attempt after the other leaves them: pods that were bound or nominated, and ``leaving``, pods
    that were told to go and still hold what they have. ``touched``: nodes that are not as the state has them; ``anti``:
    pods there that have required anti-affinity."""

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.sites = list(state.sites)
        self.touched: set[int] = set()
        self.anti = list(state.anti)
        self.nominated: dict[int, list[tuple[str, Pod]]] = {node: list(of) for node, of in state.nominated.items()}
        self.leaving: set[int] = set()

    def copy(self) -> "World":
        twin = World.__new__(World)
        twin.state, twin.sites, twin.anti = self.state, list(self.sites), list(self.anti)
        twin.nominated, twin.leaving, twin.touched = dict(self.nominated), set(self.leaving), set(self.touched)
        for node in self.touched:
            twin.sites[node] = self.sites[node].copy()
        return twin

    def terminates(self, pod: Pod) -> bool:
        return pod.terminating or pod.place in self.leaving

    def preempted(self, pod: Pod) -> bool:
        """Whether it terminates because the scheduler preempted it."""
        return pod.preempted or pod.place in self.leaving

    def withdraw(self, ask: str, pod: Pod) -> None:
        """The pod of this ask is nominated nowhere."""
        for node, held in self.nominated.items():
            if any(name == ask and other.name == pod.name for name, other in held):
                self.nominated[node] = [one for one in held if one[0] != ask or one[1].name != pod.name]

    def add(self, pod: Pod, node: int) -> None:
        pod.node = node
        self._own(node).add(pod)
        if pod.anti:
            self.anti.append(pod)

    def remove(self, pod: Pod, node: int) -> None:
        self._own(node).remove(pod)
        if pod.anti:
            self.anti.remove(pod)

    def _own(self, node: int) -> Site:
        if node not in self.touched:
            self.touched.add(node)
            self.sites[node] = self.sites[node].copy()
        return self.sites[node]


class Smallest:
    """The two smallest counts by place, as the origin keeps them up: where more than one place changes, its second can
    be stale."""

    __slots__ = ("counts", "values")

    def __init__(self) -> None:
        self.values: list[str | None] = [None, None]
        self.counts = [_MANY, _MANY]

    def copy(self) -> "Smallest":
        twin = Smallest()
        twin.values, twin.counts = list(self.values), list(self.counts)
        return twin

    def update(self, value: str, count: int) -> None:
        values, counts = self.values, self.counts
        if value in values:
            counts[values.index(value)] = count
            if counts[0] > counts[1]:
                values.reverse()
                counts.reverse()
        elif count < counts[0]:
            values[1], counts[1] = values[0], counts[0]
            values[0], counts[0] = value, count
        elif count < counts[1]:
            values[1], counts[1] = value, count


class Cycle:
    """What one attempt knows. ``existing``: pods there whose anti-affinity the pod matches; ``friends``: pods that all
    its affinity terms match; ``rivals``: pods that its anti-affinity matches."""

    __slots__ = ("affine", "existing", "friends", "numbers", "own", "pod", "rivals", "smallest", "spreads")

    def __init__(self, world: World, pod: Pod, own: str) -> None:
        self.pod = pod
        self.own = own
        self.spreads: tuple[Spread, ...] = spreads_of(pod.task)
        self.numbers: list[dict[str, int]] = [{} for _ in self.spreads]
        self.smallest = [Smallest() for _ in self.spreads]
        self.existing: Pairs = {}
        self.friends: Pairs = {}
        self.rivals: Pairs = {}
        self._count_spread(world)
        machines = world.state.machines
        for other in world.anti:
            self._add_existing(other, _where(other, machines), 1)
        if pod.affinity or pod.anti:
            for site in world.sites:
                for other in site.pods:
                    self._add_own(other, site.machine.labels, 1)
        self.affine = bool(self.existing or pod.affinity or pod.anti)

    def copy(self) -> "Cycle":
        twin = Cycle.__new__(Cycle)
        twin.pod, twin.own, twin.spreads, twin.affine = self.pod, self.own, self.spreads, self.affine
        twin.numbers = [dict(of) for of in self.numbers]
        twin.smallest = [of.copy() for of in self.smallest]
        twin.existing, twin.friends, twin.rivals = dict(self.existing), dict(self.friends), dict(self.rivals)
        return twin

    def _count_spread(self, world: World) -> None:
        if not self.spreads:
            return
        pod = self.pod
        for site in world.sites:
            machine = site.machine
            if any(of.key not in machine.labels for of in self.spreads):
                continue
            for of, numbers in zip(self.spreads, self.numbers, strict=True):
                if not _counts(of, pod, machine):
                    continue
                found = 0
                if not of.selector.everything:  # an empty selector counts nothing, the origin says
                    for other in site.pods:
                        if other.namespace == pod.namespace and not world.terminates(other):
                            found += of.selector.matches(other.labels)
                value = machine.labels[of.key]
                numbers[value] = numbers.get(value, 0) + found
        for smallest, numbers in zip(self.smallest, self.numbers, strict=True):
            for value, count in numbers.items():
                smallest.update(value, count)

    def change(self, other: Pod, machine: Machine, by: int) -> None:
        """``other`` comes to (1) or leaves (-1) a node: terminating ones too."""
        pod = self.pod
        if self.spreads and other.namespace == pod.namespace:
            labels = machine.labels
            if all(of.key in labels for of in self.spreads):
                for of, numbers, smallest in zip(self.spreads, self.numbers, self.smallest, strict=True):
                    if of.selector.matches(other.labels) and _counts(of, pod, machine):
                        value = labels[of.key]
                        numbers[value] = numbers.get(value, 0) + by
                        smallest.update(value, numbers[value])
        if self.affine:
            self._add_existing(other, machine.labels, by)
            self._add_own(other, machine.labels, by)

    def _add_existing(self, other: Pod, labels: Labels, by: int) -> None:
        for term in other.anti:
            if term.key in labels and term.matches(self.pod.namespace, self.pod.labels):
                _add(self.existing, (term.key, labels[term.key]), by)

    def _add_own(self, other: Pod, labels: Labels, by: int) -> None:
        pod = self.pod
        if pod.affinity and all(term.matches(other.namespace, other.labels) for term in pod.affinity):
            for term in pod.affinity:
                if term.key in labels:
                    _add(self.friends, (term.key, labels[term.key]), by)
        for term in pod.anti:
            if term.key in labels and term.matches(other.namespace, other.labels):
                _add(self.rivals, (term.key, labels[term.key]), by)

    def status(self, site: Site) -> Status | None:
        """Why the pod can't run there, by the first filter that says so; None: it can."""
        return _alone(self.pod, site) or self._skew(site.machine) or self._neighbours(site.machine)

    def _skew(self, machine: Machine) -> Status | None:
        for of, numbers, smallest in zip(self.spreads, self.numbers, self.smallest, strict=True):
            value = machine.labels.get(of.key)
            if value is None:
                return Status("spread-key", f"node has no label {of.key}, which a spread constraint needs", final=True)
            least = 0 if len(numbers) < of.min_domains else smallest.counts[0]
            if numbers.get(value, 0) + of.selector.matches(self.pod.labels) - least > of.max_skew:
                return Status("spread", f"skew over {of.key} would be more than {of.max_skew}", final=False)
        return None

    def _neighbours(self, machine: Machine) -> Status | None:
        if not self.affine:
            return None
        pod, labels = self.pod, machine.labels
        if pod.affinity and not self._has_friends(labels):
            return Status("pod-affinity", "no pod that it needs is near", final=True)
        if any(self.rivals.get((term.key, labels.get(term.key, "")), 0) > 0 for term in pod.anti):
            return Status("pod-anti-affinity", "a pod that it avoids is near", final=False)
        if self.existing and any(self.existing.get(pair, 0) > 0 for pair in labels.items()):
            return Status("existing-anti-affinity", "a pod there avoids it", final=False)
        return None

    def _has_friends(self, labels: Labels) -> bool:
        """The first of a group that needs itself may go anywhere."""
        pod, near = self.pod, True
        for term in pod.affinity:
            if term.key not in labels:
                return False
            near = near and self.friends.get((term.key, labels[term.key]), 0) > 0
        return near or (not self.friends and all(term.matches(pod.namespace, pod.labels) for term in pod.affinity))


T = TypeVar("T")


def column(
    world: World,
    work: Callable[[Pod, Site], T],
    pod: Pod,
    anew: Callable[[CompiledState, Pod], list[T]] | None = None,
) -> list[T]:
    """``work`` of a pod on every node, which depends on the pod's shape and what is on the node alone. Of a shape that
    was asked for before, in this state or one that it came from, only nodes that changed since are worked out.
    ``anew``: the same of a shape that is new, on all nodes at once."""
    state = world.state
    of = _kept(
        state, (work, pod.shape), lambda site: work(pod, site), None if anew is None else lambda: anew(state, pod)
    )
    if world.touched:
        of = list(of)
        for i in world.touched:
            of[i] = work(pod, world.sites[i])
    return of


def _kept(
    state: CompiledState, key: object, work: Callable[[Site], T], anew: Callable[[], list[T]] | None = None
) -> list[T]:
    """``work`` of every node of the state; what is known by ``key`` of nodes that stayed is not worked out again."""
    recent, machines = state.recent, state.machines
    known = recent.get(key)
    if known is None:
        of = [work(site) for site in state.sites] if anew is None else anew()
        if len(recent) >= _SHAPES:
            recent.clear()
    else:
        before, kept = known
        of = cast(list[T], kept)
        if before is not machines:
            changed = [i for i, (old, new) in enumerate(zip(before, machines, strict=True)) if old is not new]
            if changed:
                of = list(of)
                for i in changed:
                    of[i] = work(state.sites[i])
    recent[key] = machines, of
    return of


def statuses_of(cycle: Cycle, world: World) -> list[Status | None]:
    """``fits``, of every node."""
    if cycle.spreads or cycle.affine:
        return [fits(cycle, site, world) for site in world.sites]
    statuses = list(column(world, _alone, cycle.pod, _alone_on_all))
    for at in world.nominated:
        statuses[at] = fits(cycle, world.sites[at], world)
    return statuses


def _alone(pod: Pod, site: Site) -> Status | None:
    """What filters say that look at one node."""
    return _unsuited(pod, site) or _resources(pod, site)


def _alone_on_all(state: CompiledState, pod: Pod) -> list[Status | None]:
    """``_alone`` of every node: pods that differ in what they request share the rest."""
    unsuited = _kept(state, (_unsuited, pod.suiting), lambda site: _unsuited(pod, site))
    return [one or short for one, short in zip(unsuited, _short_on_all(state, pod), strict=True)]


def _unsuited(pod: Pod, site: Site) -> Status | None:
    """What filters say before what is free counts."""
    return _of_the_node(pod, site.machine) or _ports(pod, site)


def _short_on_all(state: CompiledState, pod: Pod) -> list[Status | None]:
    """``_resources`` of every node, a resource at a time: a bit for each that is short, the lowest for ``final``."""
    names, bit = [PODS], 2
    codes = [bit if left < 1 else 0 for left in _kept(state, _places, _places)]
    for name, amount in pod.requests.items():
        if amount > 0:
            names.append(name)
            bit *= 2
            rooms = _kept(state, (_room, name), lambda site, name=name: _room(site, name))
            codes = [
                code if amount <= free else code | bit | (amount > most)
                for code, (free, most) in zip(codes, rooms, strict=True)
            ]
    found = {code: _short(code, names) for code in set(codes)}
    return [found[code] for code in codes]


def _short(code: int, names: list[str]) -> Status | None:
    short = ", ".join(name for i, name in enumerate(names, start=1) if code >> i & 1)
    return _lacks(short, final=bool(code & 1)) if short else None


def _places(site: Site) -> int:
    most = site.machine.most
    return _MANY if most is None else most - site.count


def _room(site: Site, resource: str) -> tuple[int, int]:
    """What is free, and what there is in all."""
    most = site.machine.capacity.get(resource, 0)
    return most - site.used.get(resource, 0), most


def fits(cycle: Cycle, site: Site, world: World) -> Status | None:
    """``status``, for a node with pods nominated to it of at least the priority: with them as well as without."""
    held = nominated(cycle, site, world)
    if held:
        with_them, trial = cycle.copy(), site.copy()
        for other in held:
            trial.add(other)
            with_them.change(other, site.machine, 1)
        if (status := with_them.status(trial)) is not None:
            return status
    return cycle.status(site)


def nominated(cycle: Cycle, site: Site, world: World) -> list[Pod]:
    """Pods nominated to the node that go before the one that asks."""
    pod = cycle.pod
    return [
        other
        for ask, other in world.nominated.get(site.machine.at, ())
        if other.priority >= pod.priority and (ask != cycle.own or other.name != pod.name)
    ]


def _where(pod: Pod, machines: list[Machine]) -> Labels:
    return machines[pod.node].labels


def _counts(of: Spread, pod: Pod, machine: Machine) -> bool:
    if of.affinity and not _selected(pod, machine):
        return False
    return not of.taints or kubernetes.untolerated(machine.node.taints, pod.task.tolerations or ()) is None


def _selected(pod: Pod, machine: Machine) -> bool:
    task = pod.task
    return (
        (pod.required_node is None or pod.required_node == machine.node.name)
        and kubernetes.selects(task.node_selector or {}, machine.labels)
        and (task.node_affinity is None or kubernetes.matches_any(task.node_affinity, machine.labels))
    )


def _of_the_node(pod: Pod, machine: Machine) -> Status | None:
    node, task = machine.node, pod.task
    if pod.required_node is not None and pod.required_node != node.name:
        return Status("required-node", f"it requires {pod.required_node}", final=True)
    if not node.schedulable and not _bears(task.tolerations or (), _CORDON):
        return Status("cordon", "the node is cordoned", final=True)
    if node.taints and (taint := kubernetes.untolerated(node.taints, task.tolerations or ())) is not None:
        return Status("taint", f"it does not tolerate the taint {taint.key}", final=True)
    if (task.node_selector or task.node_affinity is not None) and not _selected(pod, machine):
        return Status("node-affinity", "its node selector or affinity does not match", final=True)
    return None


def _bears(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(kubernetes.tolerates(one, taint) for one in tolerations)


def _ports(pod: Pod, site: Site) -> Status | None:
    for address, protocol, number in pod.ports:
        for taken in site.ports:
            if taken[1:] == (protocol, number) and (_ANY_ADDRESS in (address, taken[0]) or taken[0] == address):
                return Status("ports", f"port {number} is taken", final=False)
    return None


def _resources(pod: Pod, site: Site) -> Status | None:
    machine = site.machine
    capacity, used = machine.capacity, site.used
    short = ""
    final = False
    if machine.most is not None and site.count + 1 > machine.most:
        short = PODS
    for resource, amount in pod.requests.items():
        if amount > 0:
            most = capacity.get(resource, 0)
            if amount > most - used.get(resource, 0):
                short = f"{short}, {resource}" if short else resource
                final = final or amount > most
    return _lacks(short, final=final) if short else None


@lru_cache(maxsize=1 << 10)
def _lacks(resources: str, *, final: bool) -> Status:
    return Status("resources", f"too little {resources}", final=final)


def _add(pairs: Pairs, pair: tuple[str, str], by: int) -> None:
    found = pairs.get(pair, 0) + by
    if found:
        pairs[pair] = found
    else:
        pairs.pop(pair, None)
