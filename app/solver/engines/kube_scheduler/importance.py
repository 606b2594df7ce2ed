"""Pods by importance: Go's ``sort.Slice``, exactly, since what it does with equal elements decides who is a victim; the
pods of all nodes side by side, so that victims are looked up on many nodes at once; and the scheduling queue.

Insertion sort up to twelve elements, pattern-defeating quicksort beyond. Source: Go's ``sort`` package.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kube_scheduler.filters import places_on_all, room_on_all
from app.solver.engines.kube_scheduler.pods import STABLE, Ints, Machine, Pod
from app.solver.engines.kube_scheduler.world import Budget, CompiledState, World
from app.solver.model.base import micros
from app.solver.model.state import Ask

T = TypeVar("T")
_NINTHER = 50
_STEPS = 5
_ALL_SWAPPED = 12
_WORD = 2**64 - 1


def go_sorted(items: list[T], keys: list[Any]) -> list[T]:
    """``items`` in ascending order of ``keys``, with equal ones where Go's sort leaves them."""
    if len(items) <= STABLE:  # insertion sort leaves equal ones as they are
        return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]
    run = _Run(list(keys), list(items))
    run.sort(0, len(items), len(items).bit_length())
    return run.items


class _Run(Generic[T]):
    def __init__(self, keys: list[Any], items: list[T]) -> None:
        self.keys = keys
        self.items = items

    def less(self, i: int, j: int) -> bool:
        return self.keys[i] < self.keys[j]

    def swap(self, i: int, j: int) -> None:
        keys, items = self.keys, self.items
        keys[i], keys[j] = keys[j], keys[i]
        items[i], items[j] = items[j], items[i]

    def sort(self, a: int, b: int, limit: int) -> None:
        balanced = partitioned = True
        while True:
            length = b - a
            if length <= STABLE:
                self._insertion(a, b)
                return
            if limit == 0:
                self._heap(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                limit -= 1
            pivot, swaps = self._pivot(a, b)
            rising = swaps == 0
            if swaps == _ALL_SWAPPED:
                self.keys[a:b] = self.keys[a:b][::-1]
                self.items[a:b] = self.items[a:b][::-1]
                pivot = (b - 1) - (pivot - a)
                rising = True
            if balanced and partitioned and rising and self._nearly_sorted(a, b):
                return
            if a > 0 and not self.less(a - 1, pivot):
                a = self._partition_equal(a, b, pivot)
                continue
            middle, partitioned = self._partition(a, b, pivot)
            left, right = middle - a, b - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(a, middle, limit)
                a = middle + 1
            else:
                self.sort(middle + 1, b, limit)
                b = middle

    def _insertion(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def _heap(self, a: int, b: int) -> None:
        size = b - a
        for i in range((size - 1) // 2, -1, -1):
            self._sift(i, size, a)
        for i in range(size - 1, -1, -1):
            self.swap(a, a + i)
            self._sift(0, i, a)

    def _sift(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def _break_patterns(self, a: int, b: int) -> None:
        length = b - a
        if length < 8:
            return
        drawn = length
        mask = (1 << length.bit_length()) - 1
        middle = a + (length // 4) * 2 - 1
        for i in range(3):
            drawn ^= drawn << 13 & _WORD
            drawn ^= drawn >> 7
            drawn ^= drawn << 17 & _WORD
            other = drawn & mask
            if other >= length:
                other -= length
            self.swap(middle + i, a + other)

    def _pivot(self, a: int, b: int) -> tuple[int, int]:
        length = b - a
        i, j, k = (a + length // 4 * quarter for quarter in (1, 2, 3))
        swaps = 0
        if length >= 8:
            if length >= _NINTHER:
                i, swaps = self._median(i - 1, i, i + 1, swaps)
                j, swaps = self._median(j - 1, j, j + 1, swaps)
                k, swaps = self._median(k - 1, k, k + 1, swaps)
            j, swaps = self._median(i, j, k, swaps)
        return j, swaps

    def _median(self, a: int, b: int, c: int, swaps: int) -> tuple[int, int]:
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self.less(c, b):
            b, swaps = c, swaps + 1
        if self.less(b, a):
            b, swaps = a, swaps + 1
        return b, swaps

    def _nearly_sorted(self, a: int, b: int) -> bool:
        i = a + 1
        for _ in range(_STEPS):
            while i < b and not self.less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _NINTHER:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:
                j = i - 1
                while j >= 1 and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j -= 1
            if b - i >= 2:
                j = i + 1
                while j < b and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j += 1
        return False

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self.less(a, i):
                i += 1
            while i <= j and self.less(a, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        already = True
        while True:
            while i <= j and self.less(i, a):
                i += 1
            while i <= j and not self.less(j, a):
                j -= 1
            if i > j:
                self.swap(j, a)
                return j, already
            already = False
            self.swap(i, j)
            i, j = i + 1, j - 1


NOBODY, ALONE = -1, -2
"""No pod of the node would have to go or help; the node is to be looked at by itself."""
_LEAST = 64
"""Of fewer nodes there are no columns."""
_LARGEST = 2**61
_MIDDLE, _WIDTH = 2**32, 2**33
"""More than priorities differ; room for them in a number."""
_OFFSET = 2**31
Bools = NDArray[np.bool_]


class Columns:
    """``pods``: so ordered; ``ends``: by node, how many are on it and those before it."""

    def __init__(self, machines: list[Machine]) -> None:
        pods = [pod for machine in machines for pod in machine.pods]
        counts = np.array([len(machine.pods) for machine in machines], np.int64)
        nodes = np.repeat(np.arange(len(machines)), counts)
        started = [pod.start for pod in pods]
        starts = np.array([start or 0 for start in started], np.int64)
        priorities = np.array([pod.effective_priority for pod in pods], np.int64)
        alone = np.array([pod.group is None for pod in pods], np.int64)
        order: Ints = np.lexsort((starts, alone, -priorities, nodes))
        keys = np.stack((nodes, priorities, alone, starts))[:, order]
        odd = np.zeros(len(machines), np.bool_)
        odd[[pod.node for pod in pods if pod.started is None or (pod.group is not None and pod.group.whole)]] = True
        alike = keys[0, 1:][(keys[:, 1:] == keys[:, :-1]).all(0)]
        odd[alike[counts[alike] > STABLE]] = True
        self.machines = machines
        self.pods: list[Pod] = [pods[i] for i in order.tolist()]
        self.ends = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))
        self.starts = starts[order]
        self.priorities = np.array([pod.priority for pod in self.pods], np.int64)
        self.ranks = keys[0] * _WIDTH + _MIDDLE - keys[1]
        self._sums: dict[str, Ints | None] = {}
        self._odd = odd
        self._stale = machines, np.zeros(len(machines), np.bool_)
        self._budgets: list[Budget] = []
        self._crowded = np.zeros(len(machines), np.int8)

    def sums(self, resource: str) -> Ints | None:
        """What pods request, added up; None: too much for the machine's integers."""
        if resource not in self._sums:
            amounts = [pod.requests.get(resource, 0) for pod in self.pods]
            fine = sum(amounts) < _LARGEST
            self._sums[resource] = np.concatenate(([0], np.cumsum(amounts, dtype=np.int64))) if fine else None
        return self._sums[resource]

    def stale(self, machines: list[Machine]) -> Bools:
        """Nodes that are not any more as they were."""
        if self._stale[0] is not machines:
            self._stale = machines, np.array([a is not b for a, b in zip(self.machines, machines, strict=True)])
        return self._stale[1]

    def alone(self, world: World, nodes: Ints) -> Bools:
        """Which of ``nodes`` are to be looked at by themselves: those that are not as they were, whose pods have no
        order but at a moment, that some are nominated to, or that could violate a budget."""
        state = world.state
        apart = self._odd[nodes] | self.stale(state.machines)[nodes]
        if others := world.touched | world.nominated.keys():
            apart |= np.isin(nodes, list(others))
        if state.budgets:
            apart |= self._could_violate(state, nodes)
        return apart

    def _could_violate(self, state: CompiledState, nodes: Ints) -> Bools:
        """Nodes with more pods of a budget than it allows to go."""
        budgets = self._budgets
        if len(budgets) != len(state.budgets) or any(a is not b for a, b in zip(budgets, state.budgets, strict=True)):
            self._budgets = state.budgets
            self._crowded[:] = -1
        unknown: list[int] = nodes[self._crowded[nodes] < 0].tolist()
        for node in unknown:
            of = (
                i for pod in self.machines[node].pods if pod.labels
                for i, budget in state.budgets_in.get(pod.namespace, ()) if budget.charged_by(pod)
            )  # fmt: skip
            self._crowded[node] = any(count > state.budgets[i].allowed for i, count in Counter(of).items())
        return self._crowded[nodes] > 0


class Search:
    """Who would have to go for one pod. ``_limits``: by resource, sums and by node what is free beside the pod."""

    def __init__(self, columns: Columns, world: World, pod: Pod, limits: Sequence[tuple[Ints, Ints]]) -> None:
        self._columns, self._world, self._pod, self._limits = columns, world, pod, limits
        self._places = places_on_all(world)

    def first(self, nodes: Ints) -> Ints:
        """By node the place of the first, the most important one; else NOBODY, or ALONE."""
        columns = self._columns
        ends = columns.ends[nodes + 1]
        first = self._places[nodes] + ends - 1
        for sums, free in self._limits:
            first = np.minimum(first, sums.searchsorted(sums[ends] + free[nodes], side="right") - 1)
        lower = columns.ranks.searchsorted(nodes * _WIDTH + _MIDDLE - self._pod.priority, side="right")
        places = np.where((first >= lower) & (first < ends), first, NOBODY)
        places[columns.alone(self._world, nodes)] = ALONE
        return places

    def is_stale(self, machine: Machine) -> bool:
        """Whether a node is not any more as it was."""
        return self._columns.machines[machine.index] is not machine

    def highest(self, first: Mapping[int, int]) -> list[list[float]]:
        """By node how many would violate budgets, and the highest priority of who would have to go. ``first``: by node
        where they begin."""
        return [[0, priority] for priority in self._columns.priorities[list(first.values())].tolist()]

    def scores(self, first: Mapping[int, int]) -> list[list[float]]:
        """By node the sum of priorities of all who would have to go, how many they are, and how early the first of
        those of the highest priority started: the less the better."""
        nodes = np.array(list(first))
        columns = self._columns
        current, ends = np.array(list(first.values())), columns.ends[nodes + 1]
        places = self._places[nodes] + ends - 1 - current
        left = [sums[ends] + free[nodes] - sums[current] for sums, free in self._limits]
        total, count = np.zeros((2, len(nodes)), np.int64)
        highest = np.full(len(nodes), -_MIDDLE)
        start = np.zeros(len(nodes), np.int64)
        while (here := current < ends).any():
            i = np.where(here, current, 0)
            amounts = [sums[i + 1] - sums[i] for sums, _ in self._limits]
            stays = here & (places > 0)
            for amount, of in zip(amounts, left, strict=True):
                stays &= amount <= of
            left = [of - amount * stays for amount, of in zip(amounts, left, strict=True)]
            places -= stays
            goes = here & ~stays
            priority, began = columns.priorities[i], columns.starts[i]
            total += (priority + _OFFSET) * goes
            count += goes
            start = np.where(goes & ((priority > highest) | ((priority == highest) & (began < start))), began, start)
            highest = np.where(goes, np.maximum(highest, priority), highest)
            current += 1
        return np.stack((total, count, -start), axis=1).tolist()


def search_of(world: World, pod: Pod, wanted: Mapping[str, int]) -> Search | None:
    """None: numbers are too large, or not so many nodes were looked at one by one yet that columns would have been
    worth their while."""
    dry_runs, machines = world.state.dry_runs, world.state.machines
    if dry_runs.singles >= len(machines) >= _LEAST:
        dry_runs.columns, dry_runs.singles = Columns(machines), 0
    columns = dry_runs.columns
    if not isinstance(columns, Columns):
        return None
    limits: list[tuple[Ints, Ints]] = []
    for resource, amount in wanted.items():
        sums, (free, most) = columns.sums(resource), room_on_all(world, resource)
        if sums is None or free.dtype == object or max(amount, int(most.max(initial=0))) >= _LARGEST:
            return None
        limits.append((sums, free - amount))
    return Search(columns, world, pod, limits)


class Attempt(msgspec.Struct, frozen=True, eq=False):
    """What is tried together: a pod of an ask, or a gang. ``turn``: its place in the scheduling queue; ``kind``: equal
    for pods that wait on equal nodes where one of at least their priority does, None where more than what is free may
    stand in the way; ``alike``: with the priority."""

    ask: Ask
    pods: list[Pod]
    turn: tuple[int, int]
    kind: object
    alike: object


def kind_of(ask: Ask, pods: list[Pod]) -> object:
    """See ``Attempt``."""
    pod = pods[0]
    if len(pods) > 1 or ask.min_available is not None or pod.task.nominated_node is not None:
        return None
    plain = not (pod.ports or pod.affinity or pod.anti or pod.task.topology_spread or pod.task.scheduling_gates)
    return (pod.shape, ask.preemption_policy) if plain else None


_OLDEST = -(2**62)
_MOST_ASKED = 4096
"""Of so many asks is it kept what is tried for them."""


def attempts_of(state: CompiledState, ask: Ask, i: int) -> list[Attempt]:
    """Of the ``i``-th ask. Without the gate each pod of an ask is scheduled for itself, the more important first. In
    the order of the scheduling queue priority counts, then age; equal ones are as they are listed."""
    pods = state.pods_of(ask, "asks", i)
    together = state.configuration.settings.workload_aware
    age = _OLDEST if ask.created_at is None else micros(ask.created_at)
    attempts: list[Attempt] = []
    for unit in [pods] if together else [[pod] for pod in sorted(pods, key=lambda pod: -pod.priority)]:
        kind, priority = kind_of(ask, unit), unit[0].priority
        attempts.append(Attempt(ask, unit, (-priority, age), kind, (kind, priority)))
    if ask.priority is not None:
        if len(state.asked) >= _MOST_ASKED:
            state.asked.clear()
        state.asked[ask.id] = attempts
    return attempts


def is_vain(world: World, of: Attempt) -> bool:
    """Whether one like it waited on nodes as they are, so that it does too unless it is nominated."""
    return world.state.vain.get(of.alike) is world.stamps and not world.anti


MOST_IN_VAIN = 1024
"""Of so many kinds of pods is it kept that they wait."""


def no_less_waits(world: World, of: Attempt) -> bool:
    """Whether one of its kind that matters as much or more waited in vain, and no nomination has gone since."""
    waits = world.vain.get(of.kind)
    return waits is not None and waits[0] == world.claims_lost and waits[1] >= of.pods[0].priority


def wait(world: World, of: Attempt) -> None:
    """It does on nodes as they are, and so does all that is like it."""
    vain = world.state.vain
    if len(vain) >= MOST_IN_VAIN:
        vain.clear()
    vain[of.alike] = world.stamps
    if not no_less_waits(world, of):
        world.vain[of.kind] = world.claims_lost, of.pods[0].priority


def _waits_unseen(world: World, of: Attempt) -> bool:
    """Whether it is nominated nowhere, and waits as one of its kind does."""
    if of.kind is None or world.anti or of.ask.nominated_node is not None or not no_less_waits(world, of):
        return False
    return (of.ask.id, of.pods[0].name) not in world.claimants


Place = tuple[tuple[int, int], str, int]
"""Of a pod in the scheduling queue: its turn, its job, and which of the job's pods that wait it is."""
Entry = tuple[Place, Attempt]
_basis = attrgetter("tasks", "queue", "priority", "created_at", "required_node", "preemption_policy")
"""What of an ask for one pod is read of what is tried for it."""


class Queue:
    """What waits from round to round, in lines: pods of one priority that no node tells apart are one, in order, each
    other pod is one for itself. ``changed``: jobs of which other pods may wait, or otherwise, than there are here."""

    def __init__(self, jobs: Iterable[str]) -> None:
        self.changed: set[str] = set(jobs)
        self._lines: dict[object, list[Entry]] = {}
        self._of: dict[str, list[tuple[object, Entry]]] = {}

    def put(self, job: str, asks: Iterable[Ask], state: CompiledState) -> None:
        """Of ``job`` these wait, each for one pod, and nothing else."""
        known: dict[str, Attempt] = {}
        for key, entry in self._of.pop(job, ()):
            known[entry[1].ask.id] = entry[1]
            line = self._lines[key]
            del line[bisect_left(line, entry[:1])]
            if not line:
                del self._lines[key]
        for i, ask in enumerate(asks):
            of = known.get(ask.id)
            if of is None or ask.priority is None or _basis(of.ask) != _basis(ask):
                (of,) = attempts_of(state, ask, i)
            else:
                of = Attempt(ask, of.pods, of.turn, of.kind, of.alike)
            entry = (of.turn, job, i), of
            key = ask.id if of.kind is None or ask.nominated_node is not None else of.alike
            insort(self._lines.setdefault(key, []), entry)
            self._of.setdefault(job, []).append((key, entry))

    def walk(self, world: World) -> Iterator[Attempt]:
        """Those that are to be looked at, in their turn, each carried out before the next is asked for. Where one waits
        in vain, so do all after it in its line, until a nomination goes (``World.claims_lost``)."""
        ahead = [(line[0], 0, line) for line in self._lines.values()]
        heapify(ahead)
        vain: list[list[Entry]] = []
        while ahead:
            (place, of), i, line = heappop(ahead)
            if _waits_unseen(world, of):
                wait(world, of)
                vain.append(line)
                continue
            lost = world.claims_lost
            yield of
            if world.claims_lost != lost:
                for other in vain:
                    if (after := bisect_left(other, (place,))) < len(other):
                        heappush(ahead, (other[after], after, other))
                vain.clear()
            if i + 1 < len(line):
                if is_vain(world, of):
                    vain.append(line)
                else:
                    heappush(ahead, (line[i + 1], i + 1, line))
