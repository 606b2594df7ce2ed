"""All nodes as one attempt after the other leaves them, and numbers that are kept of each from state to state."""

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

import numpy as np

from app.solver.engines.kube_scheduler.pods import CompiledState, Ints, Machine, Pod, Site

_SHAPES = 256
"""So much at most is kept of nodes: what is free of a resource, whom they suit."""


class World:
    """All nodes as one attempt after the other leaves them: pods that were bound or nominated, and ``leaving``, pods
    that were told to go and still hold what they have. ``touched``: nodes that are not as the state has them; ``anti``:
    pods there that have required anti-affinity; ``friends``: required affinity; ``waits``: see ``attempt``, until
    something changes."""

    def __init__(self, state: CompiledState) -> None:
        self.state = state
        self.sites = list(state.sites)
        self.touched: set[int] = set()
        self.anti = list(state.anti)
        self.friends = list(state.friends)
        self.nominated: dict[int, list[tuple[str, Pod]]] = {node: list(of) for node, of in state.nominated.items()}
        self.leaving: set[int] = set()
        self.waits: dict[object, object] = {}

    def copy(self) -> "World":
        twin = World.__new__(World)
        twin.state, twin.sites, twin.anti = self.state, list(self.sites), list(self.anti)
        twin.friends = list(self.friends)
        twin.nominated, twin.leaving, twin.touched = dict(self.nominated), set(self.leaving), set(self.touched)
        twin.waits = {}
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
                self.nominate(node, [one for one in held if one[0] != ask or one[1].name != pod.name])

    def nominate(self, node: int, pods: list[tuple[str, Pod]]) -> None:
        """These are nominated to the node, each with its ask."""
        self.nominated[node] = pods
        self.waits.clear()

    def leave(self, pods: Iterable[Pod]) -> None:
        """They are told to go."""
        for pod in pods:
            self.leaving.add(pod.place)
            self.waits.clear()

    def claims(self, ask: str, pod: Pod) -> bool:
        """Whether the pod of this ask is nominated somewhere."""
        return any(name == ask and other.name == pod.name for held in self.nominated.values() for name, other in held)

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

    def _own(self, node: int) -> Site:
        self.waits.clear()
        if node not in self.touched:
            self.touched.add(node)
            self.sites[node] = self.sites[node].copy()
        return self.sites[node]


W = TypeVar("W", bound=Callable[[Site], tuple[int, ...]])


def kept(
    world: World, key: object, width: int, work: W, anew: Callable[[CompiledState], Ints] | None = None
) -> tuple[Ints, W]:
    """Numbers that ``work`` says of a node, ``width`` for each, which depend on what is on the node alone: a row by
    number, a column by node; and what says so. Where ``key`` is known, in this state or one that it came from, that is
    who said so first, and only nodes that changed since are asked. ``anew``: the same of all nodes at once."""
    of, work = of_state(world.state, key, width, work, anew)
    return _with(of, list(world.touched), work, world.sites), work


def of_state(
    state: CompiledState, key: object, width: int, work: W, anew: Callable[[CompiledState], Ints] | None = None
) -> tuple[Ints, W]:
    recent, machines = state.recent, state.machines
    known = recent.get(key)
    if known is None:
        of = _numbers(list(map(work, state.sites)), width) if anew is None else anew(state)
        if len(recent) >= _SHAPES:
            recent.clear()
    else:
        before, of, work = cast(tuple[list[Machine], Ints, W], known)
        if before is not machines:
            of = _with(of, _changed(state, before), work, state.sites)
    recent[key] = machines, of, work
    return of, work


def _with(of: Ints, changed: list[int], work: Callable[[Site], tuple[int, ...]], sites: list[Site]) -> Ints:
    if not changed:
        return of
    made = _numbers([work(sites[i]) for i in changed], len(of))
    of = of.astype(made.dtype) if made.dtype == object else of.copy()
    of[:, changed] = made
    return of


def _numbers(rows: list[tuple[int, ...]], width: int) -> Ints:
    """What is too large for the machine's integers stays as it is, and is compared one by one."""
    try:
        of = np.array(rows, np.int64)
    except OverflowError:
        of = np.array(rows, object)
    return np.ascontiguousarray(of.reshape(len(rows), width).T)


def _changed(state: CompiledState, before: list[Machine]) -> list[int]:
    """Nodes that are not as they were."""
    machines = state.machines
    known = state.recent.get(_changed)
    if known is not None and known[0] is machines and known[1] is before:
        return known[2]
    found = [i for i, (old, new) in enumerate(zip(before, machines, strict=True)) if old is not new]
    state.recent[_changed] = machines, before, found
    return found
