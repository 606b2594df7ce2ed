"""Which queue goes first: KAI's comparison of two siblings, a tree of heaps that follows it, with what waits in its
leaves, and the bounds that a job must keep.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import lt
from typing import Generic, Protocol, Self, TypeVar

from app.solver.compiled import ROOTLESS
from app.solver.engines.kai.configuration import CompiledConfiguration
from app.solver.engines.kai.fair_share import STEPS, Division
from app.solver.engines.kai.jobs import KAI_UNLIMITED, Share, hundredths
from app.solver.engines.kai.overlay import Overlay
from app.solver.engines.kai.state import Key

T = TypeVar("T")


class Heap(Generic[T]):
    """A binary heap; ``less`` may change its mind between calls."""

    __slots__ = ("_less", "items")

    def __init__(self, less: Callable[[T, T], bool]) -> None:
        self.items: list[T] = []
        self._less = less

    def __len__(self) -> int:
        return len(self.items)

    def push(self, item: T) -> None:
        """Add."""
        self.items.append(item)
        self._up(len(self.items) - 1)

    def pop(self) -> T:
        """Remove the top."""
        items = self.items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        self._down(last)
        return items.pop()

    def fix_top(self) -> None:
        """The top may have changed."""
        self._down(len(self.items))

    def _up(self, j: int) -> None:
        items, less = self.items, self._less
        while j > 0:
            i = (j - 1) // 2
            if not less(items[j], items[i]):
                break
            items[i], items[j] = items[j], items[i]
            j = i

    def _down(self, n: int) -> None:
        items, less, i = self.items, self._less, 0
        while (child := 2 * i + 1) < n:
            if child + 1 < n and less(items[child + 1], items[child]):
                child += 1
            if not less(items[child], items[i]):
                break
            items[i], items[child] = items[child], items[i]
            i = child


Entry = tuple[Key, int]
ByLeaf = Mapping[int, list[Entry]]
"""Jobs of each leaf that has some, the best first. Lists stay as they are: who changes one makes another."""


def put_in_line(lines: dict[int, list[Entry]], queue: int, job: int, before: Key | None, now: Key | None) -> None:
    """The job's key was ``before`` and is ``now``, None where it has no place in its line."""
    line = lines.get(queue, []).copy()
    if before is not None and line[(i := bisect_left(line, (before, job))) : i + 1] == [(before, job)]:
        del line[i]
    if now is not None:
        insort(line, (now, job))
    if line:
        lines[queue] = line
    else:
        lines.pop(queue, None)


def those(waiting: ByLeaf, are: Callable[[int], bool]) -> ByLeaf:
    """Only the jobs that ``are``."""
    some = {queue: [entry for entry in entries if are(entry[1])] for queue, entries in waiting.items()}
    return {queue: entries for queue, entries in some.items() if entries}


class Waiting:
    """The pending jobs of a leaf: a heap, kept as a sorted list for as long as no job changes its rank while it waits.
    Jobs are pushed before the first is popped, or where none changes."""

    __slots__ = ("_entries", "_first", "_heap", "_key", "_looked", "_next", "_pushed", "_settled")

    def __init__(
        self, settled: Sequence[int], key: Callable[[int], Key], entries: list[Entry], looked: int | None = None,
        popped: int = 0,
    ) -> None:  # fmt: skip
        """``settled``: jobs whose key may have changed, which grows; ``entries``: those that are pushed first, the best
        first; that list stays as it is; ``looked``: how many had settled by then, None: all; ``popped``: since."""
        self._settled, self._looked = settled, len(settled) if looked is None else looked
        self._key = key
        self._entries = self._first = entries
        self._pushed: list[int] = []
        self._next = popped
        self._heap: Heap[int] | None = None

    def __len__(self) -> int:
        return len(self._entries) - self._next if self._heap is None else len(self._heap)

    def first(self) -> int:
        """The top."""
        return self._entries[self._next][1] if self._heap is None else self._heap.items[0]

    def push(self, job: int) -> None:
        """Add."""
        self._pushed.append(job)
        if self._entries is self._first:
            self._entries = self._first.copy()
        insort(self._entries, (self._key(job), job), self._next)

    def pop(self) -> int:
        """Remove the top."""
        if self._heap is None and self._looked < len(self._settled):
            touched = set(self._settled[self._looked :])
            self._looked = len(self._settled)
            if any(job in touched and self._key(job) != key for key, job in self._entries[self._next :]):
                self._heap = self._as_it_stands()
        if self._heap is not None:
            return self._heap.pop()
        self._next += 1
        return self._entries[self._next - 1][1]

    def _as_it_stands(self) -> Heap[int]:
        """The heap that the jobs were pushed to and the first ones popped from, which looks again from now on."""
        place = {job: i for i, (_, job) in enumerate(self._entries)}
        places = Heap[int](lt)
        for job in (*(job for _, job in self._first), *self._pushed):
            places.push(place[job])
        for _ in range(self._next):
            places.pop()
        heap = Heap[int](lambda a, b: self._key(a) < self._key(b))
        heap.items = [self._entries[place][1] for place in places.items]
        return heap


class Leaf(Protocol):
    """The jobs of a leaf queue."""

    def __len__(self) -> int: ...


L = TypeVar("L", bound=Leaf)


class Node(Generic[L]):
    """A queue that has jobs at or below it: ``jobs`` of a leaf, ``queues`` otherwise."""

    __slots__ = ("dirty", "jobs", "queue", "queues")

    def __init__(self, queue: int, queues: "Heap[Node[L]] | None", jobs: L | None) -> None:
        self.queue = queue
        self.queues = queues
        self.jobs = jobs
        self.dirty = True


class QueueTree(Generic[L]):
    """``less``: whether the first queue comes before the second. A queue is judged by the best job of its best child,
    as the heaps stand. Nothing here leads back to whoever holds the tree, so that it goes when he does."""

    __slots__ = ("_less", "_nodes", "_parent", "_roots")

    def __init__(self, parent: Sequence[int], less: Callable[[Node[L], Node[L]], bool]) -> None:
        self._parent = parent
        self._less = less
        self._nodes: dict[int, Node[L]] = {}
        self._roots: Heap[Node[L]] = Heap(less)

    def leaf(self, queue: int) -> L | None:
        """The jobs of a queue; None where it has none now. Jobs are added to it before the first is taken, or right
        after ``took``: then the way up is to be repaired anyway."""
        node = self._nodes.get(queue)
        return None if node is None else node.jobs

    def add(self, queue: int, jobs: L) -> None:
        """Hang a leaf with its first jobs into the tree, and what is missing above it."""
        node: Node[L] = Node(queue, None, jobs)
        self._nodes[queue] = node
        while (above := self._parent[node.queue]) != ROOTLESS:
            parent = self._nodes.get(above)
            was_there = parent is not None
            if parent is None:
                parent = self._nodes[above] = Node(above, Heap(self._less), None)
            assert parent.queues is not None
            parent.queues.push(node)
            node = parent
            if was_there:
                self._touch(above)
                return
        self._roots.push(node)

    def next(self) -> tuple[int, L] | None:
        """The leaf whose turn it is; None when no jobs are left. Repairs the top of each heap on the way."""
        heap = self._roots
        if not heap.items:
            return None
        while True:
            node = heap.items[0]
            if node.dirty:
                node.dirty = False
                if len(heap.items) > 1:
                    heap.fix_top()
            elif node.jobs is not None:
                return node.queue, node.jobs
            else:
                assert node.queues is not None
                heap = node.queues

    def took(self, queue: int) -> None:
        """The leaf that ``next`` gave lost a job: drop queues that ran empty, the rest of the way up needs repair."""
        while queue != ROOTLESS:
            node, above = self._nodes[queue], self._parent[queue]
            if node.jobs if node.jobs is not None else node.queues:
                self._touch(queue)
                return
            siblings = self._roots if above == ROOTLESS else self._nodes[above].queues
            assert siblings is not None
            siblings.pop()
            del self._nodes[queue]
            queue = above

    def _touch(self, queue: int) -> None:
        while queue != ROOTLESS:
            self._nodes[queue].dirty = True
            queue = self._parent[queue]


NOTHING: Share = (0, 0, 0)
# A held resource without any share weighs a thousand times its amount in KAI's units: milli-CPU, bytes, GPUs.
_NO_SHARE = (1000.0, 1000.0, 1.0)
_RESOURCES = (0, 1, 2)
_MOST_KNOWN = 4096
_MINUS_ONE = tuple(-step for step in STEPS)


@dataclass(frozen=True, slots=True)
class OverBound:
    """A queue that would pass its limit, or a non-preemptible job its queue's deserved quota."""

    rule: str
    queue: int
    resource: int
    bound: int
    held: int
    requested: int


Position = tuple[bool, bool, int, bool, float, float]  # what steps 1 to 6 compare, less is earlier


class Bounds:
    """What queues hold, ``allocated`` and ``fixed`` by resource, and how much more they may. ``paths``: from each queue
    upwards."""

    def __init__(
        self, configuration: CompiledConfiguration, paths: list[list[int]], allocated: list[list[int]],
        fixed: list[list[int]],
    ) -> None:  # fmt: skip
        self.paths, self.allocated, self.fixed = paths, allocated, fixed
        self.deserved = configuration.deserved
        self.limit = configuration.limit

    def held(self, q: int) -> Share:
        """What queue q holds."""
        cpu, memory, gpu = self.allocated
        return cpu[q], memory[q], gpu[q]

    def held_fixed(self, q: int) -> Share:
        """What non-preemptible pods of queue q hold."""
        cpu, memory, gpu = self.fixed
        return cpu[q], memory[q], gpu[q]

    def over_limit(self, leaf: int, want: Share) -> OverBound | None:
        """The first limit that ``want`` would pass, from the leaf upwards."""
        for q in self.paths[leaf]:
            limit, held = self.limit[q], self.held(q)
            for r in _RESOURCES:
                if want[r] and limit[r] != KAI_UNLIMITED and limit[r] < held[r] + want[r]:
                    return OverBound("over-limit", q, r, limit[r], held[r], want[r])
        return None

    def over_deserved(self, leaf: int, want: Share) -> OverBound | None:
        """The same of deserved quotas, for what can't be preempted."""
        for q in self.paths[leaf]:
            deserved, held = self.deserved[q], self.held_fixed(q)
            for r in _RESOURCES:
                if want[r] and deserved[r] != KAI_UNLIMITED and deserved[r] < held[r] + want[r]:
                    return OverBound("non-preemptible-over-quota", q, r, deserved[r], held[r], want[r])
        return None

    def passed(self, leaf: int, want: Share, *, preemptible: bool) -> OverBound | None:
        """The first bound that ``want`` would pass, from the leaf upwards: limits, then quotas."""
        return self.over_limit(leaf, want) or (None if preemptible else self.over_deserved(leaf, want))


class Comparison(Bounds):
    """Comparisons of queues on what they hold. ``division``: their shares."""

    def __init__(
        self, configuration: CompiledConfiguration, paths: list[list[int]], allocated: list[list[int]],
        fixed: list[list[int]], division: Callable[[], Division],
    ) -> None:  # fmt: skip
        super().__init__(configuration, paths, allocated, fixed)
        self._known: dict[tuple[int, Share, Share, int, int, int], Position] = {}
        self._divided = division
        self._created = configuration.created
        self._priority = configuration.priority

    @cached_property
    def fair(self) -> list[tuple[float, float, float]]:
        """Fair shares in steps, by queue."""
        return [_steps(v) for v in self._divided().fair]

    @cached_property
    def allocatable(self) -> list[tuple[float, float, float]]:
        """What queues may hold before others take from them, in steps."""
        return [_steps(v) for v in self._divided().allocatable]

    @cached_property
    def _measure(self) -> list[tuple[float, ...]]:
        total = self._divided().total
        return [tuple(float(total[r]) if v[r] == KAI_UNLIMITED else v[r] for r in _RESOURCES) for v in self.allocatable]

    def first(self, a: int, b: int, want_a: Share, want_b: Share, taken_a: Share, taken_b: Share) -> bool:
        """Whether queue a comes before queue b. ``want``: what the best job of each would add; ``taken``: what
        victims chosen below it give back."""
        standing_a, standing_b = self.standing(a, want_a, taken_a), self.standing(b, want_b, taken_b)
        return standing_a < standing_b if standing_a != standing_b else self.goes_before(a, b)  # 1 to 6

    def goes_before(self, a: int, b: int) -> bool:
        """Whether it does where they stand alike."""
        below_a = within(self.allocatable[a], self.allocatable[b])
        below_b = within(self.allocatable[b], self.allocatable[a])
        return below_a if below_a != below_b else self.older(a, b)  # 7 and 8

    def standing(self, q: int, want: Share, taken: Share) -> Position:
        """Worked out once for what the queue holds."""
        cpu, memory, gpu = self.allocated
        key = q, want, taken, cpu[q], memory[q], gpu[q]
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = (
                self._over_utilised(q), not self._starved(q, want), -self._priority[q], self._without_share(q, want),
                self.dominant(q, want, taken), self.dominant(q, NOTHING, NOTHING),
            )  # fmt: skip
        return known

    def hangs_on_jobs(self, wants: Mapping[int, Collection[Share]]) -> bool:
        """Whether which of these siblings comes first hangs on which of its jobs each is judged by (``wants``)."""
        standings = [[self.standing(q, want, NOTHING) for want in of] for q, of in wants.items()]
        spans = sorted((min(of), max(of)) for of in standings)
        return any(
            after[0] < before[1] or (after[0] == before[1] and (before[0] != before[1] or after[0] != after[1]))
            for before, after in pairwise(spans)
        )

    def older(self, a: int, b: int) -> bool:
        """Whether queue a is older; a tie goes to the right one, whichever that is."""
        return self._created[a] < self._created[b]

    def frozen(self) -> Self:
        """The same comparisons on what queues hold at this moment, whatever happens next."""
        still = self.__new__(type(self))
        still.__dict__.update(self.__dict__)
        still.allocated = [column.copy() for column in self.allocated]
        still.fixed = [column.copy() for column in self.fixed]
        return still

    def _over_utilised(self, q: int) -> bool:
        fair, (cpu, memory, gpu) = self.fair[q], self.allocated
        return fair[2] < gpu[q] and fair[0] < cpu[q] and fair[1] < memory[q]

    def _starved(self, q: int, want: Share) -> bool:
        cpu, memory, gpu = self.allocated
        return holds_within((cpu[q] + want[0], memory[q] + want[1], gpu[q] + want[2]), self.deserved[q])

    def _without_share(self, q: int, want: Share) -> bool:
        share = self.allocatable[q]
        return 0 in share and any(share[r] == 0 and held[q] + want[r] > 0 for r, held in enumerate(self.allocated))

    def dominant(self, q: int, want: Share, taken: Share) -> float:
        """The largest part of its allocatable share that queue q would hold of any resource."""
        measure, (cpu, memory, gpu) = self._measure[q], self.allocated
        largest = 0.0
        for r, held in ((0, cpu[q]), (1, memory[q]), (2, gpu[q])):
            amount = held + want[r] - taken[r]
            value = amount / measure[r] if measure[r] else amount * _NO_SHARE[r]
            if value > largest:
                largest = value
        return largest


class QueueOrder(Comparison):
    """The same in a cycle, and the bounds that its jobs must keep."""

    def __init__(self, overlay: Overlay) -> None:
        configuration, allocated, fixed = overlay.state.configuration, overlay.allocated, overlay.fixed
        super().__init__(configuration, overlay.paths, allocated, fixed, lambda: overlay.division)
        self._overlay, self._jobs = overlay, overlay.jobs

    def over_bounds(self, job: int, want: Share) -> OverBound | None:
        """The first bound that placing ``want`` for the job would pass, from its leaf upwards."""
        return self.passed(self._jobs.queue[job], want, preemptible=self._jobs.preemptible[job])

    def over_bounds_there(self, t: int, size: int) -> OverBound | None:
        """The same for one pod that asks for GPU memory, on a node whose GPUs have ``size`` MiB: only there it is known
        how much of a GPU that is. In 0.13 of one, however many it asks for."""
        portion = self._jobs.task_portion[t]
        if portion is None or not portion.memory:
            return None
        (cpu, memory), overlay = self._jobs.task_request[t][:2], self._overlay
        devices = portion.devices if overlay.state.configuration.policy.release.measures_gpu_memory else 1
        return self.over_bounds(self._jobs.task_job[t], (cpu, memory, devices * hundredths(portion.memory, size)))

    def over_quota(self, job: int, want: Share) -> OverBound | None:
        """The deserved quota that a non-preemptible job would pass."""
        return None if self._jobs.preemptible[job] else self.over_deserved(self._jobs.queue[job], want)


def plus(a: Share, b: Share) -> Share:
    """Sum by resource."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a: Share, b: Share) -> Share:
    """Difference by resource."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def holds_within(held: Share, bound: tuple[float, float, float]) -> bool:
    """What is held against a bound. Held amounts can go below zero (a pod evicted twice leaves its queue twice), and
    KAI takes minus one unit for its sign of infinity: more than any bound."""
    cpu, memory, gpu = bound
    return (
        (cpu == KAI_UNLIMITED or (held[0] <= cpu and held[0] != _MINUS_ONE[0]))
        and (memory == KAI_UNLIMITED or (held[1] <= memory and held[1] != _MINUS_ONE[1]))
        and (gpu == KAI_UNLIMITED or (held[2] <= gpu and held[2] != _MINUS_ONE[2]))
    )


def within(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """At most, in every resource; -1 is without bound on either side."""
    return all(y == KAI_UNLIMITED or (x != KAI_UNLIMITED and x <= y) for x, y in zip(a, b, strict=True))


def _steps(amounts: tuple[float, float, float]) -> tuple[float, float, float]:
    """KAI's units as steps. Whole thousandths of a GPU stay whole, although doubles hardly hold them."""
    cpu, memory, gpu = amounts
    if gpu == KAI_UNLIMITED:
        return amounts
    scaled = gpu * STEPS[2]
    whole = round(scaled)
    return cpu, memory, float(whole) if abs(scaled - whole) < 1e-6 else scaled


class Standing:
    """What ``QueueOrder.first`` says without a job that wants anything, on what queues held when the attempt began: of
    each queue the first four steps and the sixth are worked out once."""

    def __init__(self, frozen: Comparison) -> None:
        self._order = frozen
        self._known: dict[int, tuple[Share, Position]] = {}

    def first(self, a: int, b: int, taken_a: Share, taken_b: Share) -> bool:
        """Whether queue a comes before queue b. ``taken``: what victims chosen below it give back."""
        known_a, known_b = self._known.get(a), self._known.get(b)
        key_a = known_a[1] if known_a is not None and known_a[0] == taken_a else self._look(a, taken_a)
        key_b = known_b[1] if known_b is not None and known_b[0] == taken_b else self._look(b, taken_b)
        return key_a < key_b if key_a != key_b else self._order.goes_before(a, b)

    def _look(self, q: int, taken: Share) -> Position:
        order, known = self._order, self._known.get(q)
        if known is None:  # worked out for attempts before this one, as a rule
            standing = order.standing(q, NOTHING, taken)
        else:
            over, content, priority, bad, _, share = known[1]
            standing = over, content, priority, bad, order.dominant(q, NOTHING, taken), share
        self._known[q] = taken, standing
        return standing
