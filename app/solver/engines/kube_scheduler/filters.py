"""Which nodes can take a pod: kube-scheduler's filters in their order, and what they worked out before the first node.

``Cycle`` is what one attempt for one pod knows of all nodes (the origin: CycleState); a pod that is taken away or put
back changes it by itself, as the origin's PreFilterExtensions do, and that is not always what looking again would give.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from app.solver import kubernetes
from app.solver.engines.kube_scheduler.pods import Ints, Labels, Machine, Pod, Selector, Site, selector_of
from app.solver.engines.kube_scheduler.world import World, numbers_of, per_node
from app.solver.kubernetes import PODS
from app.solver.model.configuration import Taint
from app.solver.model.state import Task, Toleration

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_ANY_ADDRESS = "0.0.0.0"
_MANY = 2**31 - 1
_BITS = 60
"""Of so many resources at most can a number say which are short."""
Pairs = dict[tuple[str, str], int]
"""How many, by label of nodes and its value."""


@dataclass(frozen=True, slots=True)
class Status:
    """Why a node can't take a pod. ``final``: nor would it if pods were taken away (UnschedulableAndUnresolvable)."""

    rule: str
    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint that decides where a pod may go."""

    key: str
    max_skew: int
    min_domains: int
    selector: Selector
    affinity: bool
    taints: bool


def spreads_of(task: Task) -> tuple[Spread, ...]:
    """Its constraints; ``match_label_keys`` become part of the selector, where the pod has these labels."""
    labels = task.labels or {}
    return tuple(
        Spread(
            key=constraint.topology_key, max_skew=constraint.max_skew, min_domains=constraint.min_domains or 1,
            selector=selector_of(
                constraint.label_selector, [(key, labels[key]) for key in constraint.match_label_keys if key in labels]
            ),
            affinity=constraint.node_affinity_policy == "Honor", taints=constraint.node_taints_policy == "Honor",
        )
        for constraint in task.topology_spread or ()
    )  # fmt: skip


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
                matching = 0
                if not of.selector.everything:  # an empty selector counts nothing, the origin says
                    for other in site.pods:
                        if other.namespace == pod.namespace and not world.terminates(other):
                            matching += of.selector.matches(other.labels)
                value = machine.labels[of.key]
                numbers[value] = numbers.get(value, 0) + matching
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


class Statuses:
    """What filters say of every node. ``codes``: 0 where the pod fits, more where only resources are short, a bit for
    each of ``names`` and the lowest where there is too little in all; else one of ``others``, counted from -1 down."""

    def __init__(self, codes: Ints, names: list[str], others: list[Status]) -> None:
        self._codes, self._names, self._others = codes, names, others

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, node: int) -> Status | None:
        return self._status_of(int(self._codes[node]))

    def __iter__(self) -> Iterator[Status | None]:
        return map(self._status_of, self._codes.tolist())

    def __setitem__(self, node: int, status: Status | None) -> None:
        if status is not None:
            self._others.append(status)
        self._codes[node] = 0 if status is None else -len(self._others)

    def _status_of(self, code: int) -> Status | None:
        return self._others[-code - 1] if code < 0 else _short(code, self._names)

    def fitting(self) -> Ints:
        """Places of nodes that can take the pod."""
        return (self._codes == 0).nonzero()[0]

    def helped(self) -> Ints:
        """Places of nodes that could if pods were taken away."""
        codes = self._codes
        if not self._others:
            return ((codes > 0) & (codes & 1 == 0)).nonzero()[0]
        final = codes & 1 == 1
        of = codes < 0
        final[of] = np.array([status.final for status in self._others])[-codes[of] - 1]
        return ((codes != 0) & ~final).nonzero()[0]

    def reasons(self) -> Counter[str]:
        """How many nodes give each, in the order in which they are first given."""
        nodes: Counter[str] = Counter()
        codes, first, counts = np.unique(self._codes, return_index=True, return_counts=True)
        for i in np.argsort(first).tolist():
            if (status := self._status_of(int(codes[i]))) is not None:
                nodes[status.reason] += int(counts[i])
        return nodes


NONE_LOOKED_AT = Statuses(np.zeros(0, np.int64), [], [])


def statuses_of(cycle: Cycle, world: World) -> Statuses:
    """``fits``, of every node."""
    pod, sites = cycle.pod, world.sites
    if cycle.spreads or cycle.affine or len(pod.requests) > _BITS:
        statuses = Statuses(np.zeros(len(sites), np.int64), [], [])
        for node, site in enumerate(sites):
            if (status := fits(cycle, site, world)) is not None:
                statuses[node] = status
        return statuses
    alone = _Alone(world, pod)
    (codes,), work = per_node(world, (_Alone, pod.shape), 1, alone, alone.on_all)
    statuses = Statuses(codes.copy(), work.names, list(work.unsuited.codes))
    claims, memory, key = world.claims(cycle.own, pod), world.state.dry_runs, (fits, pod.shape, pod.priority)
    known = memory.of(key)
    for node in world.nominated:
        stamp, status = known.get(node, (None, None))
        if claims or stamp != world.stamps.item(node):
            status = fits(cycle, sites[node], world)
            if not claims:
                memory.keep(key, known, node, (world.stamps.item(node), status))
        statuses[node] = status
    return statuses


def room_on_all(world: World, resource: str) -> tuple[Ints, Ints]:
    """What is free of it by node, and what there is in all, in steps."""
    (free, most), _ = per_node(world, (_room, resource), 2, partial(_room, resource), partial(_rooms, resource))
    return free, most


def places_on_all(world: World) -> Ints:
    """For how many more pods a node has room."""
    return per_node(world, _places, 1, _places)[0][0]


def _alone(pod: Pod, site: Site) -> Status | None:
    """What filters say that look at one node."""
    return _unsuited(pod, site) or _short(*_shortage(pod, *_places(site), lambda name: _room(name, site)))


class _Unsuited:
    """What filters say before what is free counts, as a number: ``codes`` has it from -1 down. 0: nothing."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self.codes: dict[Status, int] = {}

    def __call__(self, site: Site) -> tuple[int]:
        status = _unsuited(self._pod, site)
        return (0 if status is None else self.codes.setdefault(status, -len(self.codes) - 1),)

    def on_all(self, world: World) -> Ints:
        """Of every node. A pod that wants nothing of nodes is kept away by cordons and taints alone."""
        pod, task = self._pod, self._pod.task
        if pod.ports or pod.required_node is not None or task.node_selector or task.node_affinity is not None:
            suspects = world.sites
        else:
            suspects = [site for site in world.sites if site.machine.node.taints or not site.machine.node.schedulable]
        codes = np.zeros((1, len(world.sites)), np.int64)
        for site in suspects:
            (codes[0, site.machine.index],) = self(site)
        return codes


class _Alone:
    """What filters say that look at one node, as a code of ``Statuses``. ``unsuited``: shared by pods that differ in
    what they request."""

    def __init__(self, world: World, pod: Pod) -> None:
        known = world.state.recent.get((_Unsuited, pod.suiting))
        self._pod = pod
        self.unsuited: _Unsuited = _Unsuited(pod) if known is None else known[2]
        self.names = [PODS, *(name for name, amount in pod.requests.items() if amount > 0)]

    def __call__(self, site: Site) -> tuple[int]:
        (code,) = self.unsuited(site)
        return (code or _shortage(self._pod, *_places(site), lambda name: _room(name, site))[0],)

    def on_all(self, world: World) -> Ints:
        """Of every node, a resource at a time."""
        pod = self._pod
        (unsuited,), _ = per_node(world, (_Unsuited, pod.suiting), 1, self.unsuited, self.unsuited.on_all)
        codes, _ = _shortage(pod, places_on_all(world), partial(room_on_all, world))
        return np.where(unsuited < 0, unsuited, codes)[np.newaxis]


def _unsuited(pod: Pod, site: Site) -> Status | None:
    return of_the_node(pod, site.machine) or _ports(pod, site)


N = TypeVar("N", int, Ints)


def _shortage(pod: Pod, places: N, room: Callable[[str], tuple[N, N]]) -> tuple[N, list[str]]:
    """Of one node, or of all at once: a bit for each of the resources named that is short, the lowest where there is
    too little in all. ``places``: for how many more pods; ``room``: what is free, and what there is in all."""
    names, bit = [PODS], 2
    code = (places < 1) * bit
    for name, amount in pod.requests.items():
        if amount > 0:
            names.append(name)
            bit *= 2
            free, most = room(name)
            code = code | (amount > free) * bit | (amount > most) * 1
    return code, names


def _short(code: int, names: list[str]) -> Status | None:
    short = ", ".join(name for i, name in enumerate(names, start=1) if code >> i & 1)
    return _lacks(short, final=bool(code & 1)) if short else None


def _places(site: Site) -> tuple[int]:
    most = site.machine.most
    return (_MANY if most is None else most - site.count,)


def _room(resource: str, site: Site) -> tuple[int, int]:
    most = site.machine.capacity.get(resource, 0)
    return most - site.used.get(resource, 0), most


def _rooms(resource: str, world: World) -> Ints:
    most = [site.machine.capacity.get(resource, 0) for site in world.sites]
    used = [site.used.get(resource, 0) for site in world.sites]
    return numbers_of([[of - by for of, by in zip(most, used, strict=True)], most])


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
        for ask, other in world.nominated.get(site.machine.index, ())
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


def of_the_node(pod: Pod, machine: Machine) -> Status | None:
    """Why a node can't take the pod whatever is on it."""
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
    return any(kubernetes.tolerates(toleration, taint) for toleration in tolerations)


def _ports(pod: Pod, site: Site) -> Status | None:
    for address, protocol, number in pod.ports:
        for taken in site.ports:
            if taken[1:] == (protocol, number) and (_ANY_ADDRESS in (address, taken[0]) or taken[0] == address):
                return Status("ports", f"port {number} is taken", final=False)
    return None


@lru_cache(maxsize=1 << 10)
def _lacks(resources: str, *, final: bool) -> Status:
    return Status("resources", f"too little {resources}", final=final)


def _add(pairs: Pairs, pair: tuple[str, str], by: int) -> None:
    count = pairs.get(pair, 0) + by
    if count:
        pairs[pair] = count
    else:
        pairs.pop(pair, None)
