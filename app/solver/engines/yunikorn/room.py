"""What must become free before an ask fits, and which nodes it may have."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.yunikorn.overlay import Held, Overlay, Request
from app.solver.engines.yunikorn.state import Bools, CompiledState, Ints
from app.solver.question import safe_point


@dataclass(frozen=True, slots=True)
class Need:
    """``amount`` of ``resource`` is missing: on the node, or in ``queue`` where a victim must be below it."""

    resource: int
    amount: int
    queue: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What one node lacks together with the limits; all of it must be met."""

    state: CompiledState
    of: tuple[Need, ...]

    def help_of(self, task: int) -> tuple[int, ...]:
        """What evicting ``task`` gives to each need."""
        amounts = self.state.amounts(task)
        path = self.state.configuration.paths[int(self.state.queue[task])]
        return tuple(
            amounts.get(need.resource, 0) if need.queue is None or need.queue in path else 0 for need in self.of
        )


@dataclass(frozen=True, slots=True)
class PathNeeds:
    """What the limits on the asking queue's path lack, whatever the node."""

    state: CompiledState
    of: tuple[Need, ...]

    def on(self, overlay: Overlay, request: Request, node: int) -> Needs:
        """Together with what ``node`` lacks."""
        free: list[int] = overlay.free[node].tolist()
        lacking = [
            Need(r, amount - (free[r] if r < len(free) else 0))
            for r, amount in request.needs.items()
            if r >= len(free) or free[r] < amount
        ]
        return Needs(self.state, (*lacking, *self.of))


def path_needs(overlay: Overlay, request: Request) -> PathNeeds:
    """Counted after everybody that is being preempted has left, and everybody that waits for that has come."""
    state = overlay.state
    return PathNeeds(
        state,
        tuple(
            Need(r, over, q)
            for q in state.configuration.paths[request.queue]
            for r, most in (state.limit[q] or {}).items()
            if r in request.needs and (over := overlay.used_after(q, r, request) + request.needs[r] - most) > 0
        ),
    )


def has_headroom(overlay: Overlay, request: Request) -> bool:
    """Whether every limit on the path takes the ask now."""
    state = overlay.state
    expects = state.configuration.rules.counts_expected
    for q in state.configuration.paths[request.queue]:
        for r, most in (state.limit[q] or {}).items():
            if r not in request.needs:
                continue
            used = overlay.used(q, r) + (overlay.expected(q, r, request) if expects else 0)
            if used + request.needs[r] > most:
                return False
    return True


def without_superfluous(needs: Needs, taken: Sequence[int]) -> list[int]:
    """Put back whoever is not needed, the one taken last being tried last. ``taken`` must make room."""
    helps = [needs.help_of(task) for task in taken]
    spare = [sum(of) - need.amount for of, need in zip(zip(*helps, strict=True), needs.of, strict=True)]
    needed: list[int] = []
    for task, help_ in zip(taken, helps, strict=True):
        if all(given <= room for given, room in zip(help_, spare, strict=True)):
            spare = [room - given for given, room in zip(help_, spare, strict=True)]
        else:
            needed.append(task)
    return needed


RESERVATION_AGE = (2 * 60 * 60 + 2) * 10**6
"""Microseconds after which a reservation of a lower priority may be cancelled (YuniKorn: 2 x 60 min + 2 s)."""
IMPOSSIBLE = 2**31
_SURE = 1e-9
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pool:
    """``usable``: by node. ``cancelled``: reservations of others that give way; ``held``: those that don't, on nodes
    that would be usable without them."""

    usable: Bools
    cancelled: list[tuple[int, Held]]
    held: list[tuple[int, Held]]


def pool(overlay: Overlay, request: Request, now: int) -> Pool:
    """Nodes that may be preempted on: schedulable, big enough, not kept for another ask."""
    state = overlay.state
    usable = state.schedulable.copy()
    for r, amount in request.needs.items():
        usable &= column(state.capacity, r) >= amount
    cancelled: list[tuple[int, Held]] = []
    closed: list[tuple[int, Held]] = []
    for node, holders in overlay.held.items():
        if not usable[node] or any(held.is_of(request) for held in holders):
            continue
        weak = next((held for held in holders if _gives_way(held, request, now)), None)
        if weak is None:
            usable[node] = False
            closed.append((node, holders[0]))
        else:
            cancelled.append((node, weak))
    return Pool(usable, cancelled, closed)


def among_feasible(request: Request, usable: Bools) -> Bools:
    """Of the nodes those that pass the ask's predicates."""
    if request.feasible is None:
        return usable
    return usable & np.isin(np.arange(len(usable)), sorted(request.feasible))


def _gives_way(held: Held, request: Request, now: int) -> bool:
    return (
        not held.required
        and not held.triggered
        and held.priority < request.priority
        and now - held.created > RESERVATION_AGE
    )


def column(table: Ints, resource: int) -> Ints:
    """One resource of a nodes x resources table; zeros for one that no node has."""
    return table[:, resource] if resource < table.shape[1] else np.zeros(len(table), dtype=table.dtype)


def fits(overlay: Overlay, request: Request) -> Bools:
    """By node: whether the ask fits into what is free now (missing is 0, negative is 0)."""
    room: Bools | None = None
    for r, amount in request.needs.items():
        enough = column(overlay.free, r) >= amount
        room = enough if room is None else np.logical_and(room, enough, out=room)
    return np.ones(len(overlay.state.node_names), dtype=bool) if room is None else room


def at_least(
    state: CompiledState, candidates: Ints, needs: Sequence[tuple[int, Ints, Bools | None]]
) -> NDArray[np.int64]:
    """By node: a number of victims that no choice among ``candidates`` can undercut; IMPOSSIBLE when none can do.

    ``needs``: (resource, missing amount by node, which candidates help or None for all). Sums are in doubles
    with a margin: a bound may be too low, never too high.
    """
    size = len(state.node_names)
    bound = np.zeros(size, dtype=np.int64)
    for resource, missing, helps in needs:
        chosen = candidates if helps is None else candidates[helps]
        gain = state.column(resource)[chosen].astype(np.float64)
        total = np.bincount(state.node[chosen], weights=gain, minlength=size)
        short = missing.astype(np.float64) * (1 - _SURE)
        count = np.ceil(short / gain.max(initial=1.0)).clip(0, IMPOSSIBLE).astype(np.int64)
        bound = np.maximum(bound, count)
        bound[total < short] = IMPOSSIBLE
    return bound


def in_order(
    state: CompiledState, nodes: Ints, bound: NDArray[np.int64], search: Callable[[int], tuple[int, T] | None]
) -> Iterator[tuple[int, int, T]]:
    """(value, node, what was found) by value, then node name, searching a node only when its turn may have come.

    ``search`` gives a node's exact value, never below ``bound``, or None when the node is out.
    """
    rank = state.node_rank
    order = nodes[np.lexsort((rank[nodes], bound[nodes]))].tolist()
    waiting: list[tuple[int, int, int, T]] = []
    for node in order:
        safe_point()
        turn = (int(bound[node]), int(rank[node]))
        while waiting and waiting[0][:2] < turn:
            value, _, ready, victims = heapq.heappop(waiting)
            yield value, ready, victims
        result = search(node)
        if result is not None:
            heapq.heappush(waiting, (result[0], int(rank[node]), node, result[1]))
    while waiting:
        value, _, ready, victims = heapq.heappop(waiting)
        yield value, ready, victims


def best_for_placing(overlay: Overlay, nodes: Ints) -> int:
    """The node that plain scheduling takes: the least used in vcore and memory, then by name (YuniKorn: fair)."""
    use = overlay.use()[nodes]
    least = nodes[use == use.min()]
    return int(least[0] if len(least) == 1 else least[overlay.state.node_rank[least].argmin()])
