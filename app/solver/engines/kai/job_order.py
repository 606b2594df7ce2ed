"""Jobs in KAI's order: a tree of heaps, queues above jobs.

The order of queues changes while jobs are placed, but a heap is repaired only where the tree was touched, and only
at its top; what comes next is therefore the top of a lazily repaired heap, not the best queue. Both the repair and
the order of insertion (here: of the request) decide the outcome, so the heaps work exactly as KAI's (Go's) do.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kai.compile import ALLOCATED, PIPELINED, RUNNING, Share
from app.solver.engines.kai.queue_order import NOTHING, QueueOrder, plus
from app.solver.engines.kai.session import Session, total

T = TypeVar("T")
Key = tuple[int, int, int, str]
ACTIVE = (RUNNING, ALLOCATED, PIPELINED)


class Heap(Generic[T]):
    """A binary heap with the sift rules of Go's container/heap; ``less`` may change its mind between calls."""

    __slots__ = ("_less", "items")

    def __init__(self, less: Callable[[T, T], bool]) -> None:
        self.items: list[T] = []
        self._less = less

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
        if not self._down(len(self.items)):
            self._up(0)

    def _up(self, j: int) -> None:
        items, less = self.items, self._less
        while j > 0:
            i = (j - 1) // 2
            if not less(items[j], items[i]):
                break
            items[i], items[j] = items[j], items[i]
            j = i

    def _down(self, n: int) -> bool:
        items, less, i = self.items, self._less, 0
        while (child := 2 * i + 1) < n:
            if child + 1 < n and less(items[child + 1], items[child]):
                child += 1
            if not less(items[child], items[i]):
                break
            items[i], items[child] = items[child], items[i]
            i = child
        return i > 0


class Leaf(Protocol):
    """The jobs of a leaf queue."""

    items: list[Any]


L = TypeVar("L", bound=Leaf)


class Node(Generic[L]):
    """A queue that has jobs at or below it: ``jobs`` of a leaf, ``queues`` otherwise."""

    __slots__ = ("dirty", "jobs", "parent", "queue", "queues")

    def __init__(self, queue: int, queues: "Heap[Node[L]] | None", jobs: L | None) -> None:
        self.queue = queue
        self.queues = queues
        self.jobs = jobs
        self.parent: Node[L] | None = None
        self.dirty = False


class PendingOrder:
    """Pending jobs, best first. ``stands_for``: a job that competes as part of itself (a partial gang), with the
    pods that it would place."""

    def __init__(self, session: Session, order: QueueOrder) -> None:
        self._session = session
        self._order = order
        self._roots: Heap[Node[Heap[int]]] = Heap(self._queue_first)
        self._nodes: dict[int, Node[Heap[int]]] = {}
        self._part = -1
        self._part_wants = NOTHING

    def stand_for(self, job: int, wants: Share) -> None:
        """The job competes as a gang of its own of the pods whose sum is ``wants``, none of them placed yet."""
        self._part, self._part_wants = job, wants

    def add_all(self, jobs: Iterable[int]) -> None:
        """Add jobs, the best first, so that every queue enters the order with its best job.

        KAI adds them in the order of a Go map, that is in any; most of those orders end like this one.
        """
        for job in sorted(jobs, key=self.key):
            self.push(job)

    def push(self, job: int) -> None:
        """Add one job."""
        queue = self._session.jobs.queue[job]
        node = self._nodes.get(queue)
        linked = node is not None
        if node is None:
            node = self._nodes[queue] = Node(queue, None, Heap(self._job_first))
        assert node.jobs is not None
        node.jobs.push(job)
        if not linked:
            _link(self._session, self._nodes, self._roots, node, self._queue_first)
        _mark(node)

    def pop(self) -> int | None:
        """The next job; None when there are none."""
        if not self._roots.items:
            return None
        node = _descend(self._roots)
        assert node.jobs is not None
        job = node.jobs.pop()
        _after_pop(node, self._nodes, self._roots)
        return job

    def _rank(self, job: int) -> int:
        return 0 if job == self._part else self._session.elastic_rank(job)

    def key(self, job: int) -> Key:
        """Higher priority, then below its gang, at it, above it, then older, then id."""
        jobs = self._session.jobs
        return -jobs.priority[job], self._rank(job), jobs.created[job], jobs.uid[job]

    def _job_first(self, a: int, b: int) -> bool:
        return self.key(a) < self.key(b)

    def _wants(self, node: Node[Heap[int]]) -> Share:
        while node.queues is not None:
            node = node.queues.items[0]
        assert node.jobs is not None
        job = node.jobs.items[0]
        return self._part_wants if job == self._part else self._session.wanted(job)[1]

    def _queue_first(self, a: Node[Heap[int]], b: Node[Heap[int]]) -> bool:
        return self._order.first(a.queue, b.queue, self._wants(a), self._wants(b), NOTHING, NOTHING)


class Victim:
    """A job, or what is left of one, that may be taken from.

    ``tasks``: its active pods, in the order in which they are taken. ``holds``: what those hold that run.
    ``others``: whether it has pods besides, which keep it in the order although nothing can be taken.
    """

    __slots__ = ("holds", "job", "key", "others", "tasks")

    def __init__(self, job: int, key: Key, tasks: list[int], holds: Share, *, others: bool) -> None:
        self.job = job
        self.key = key
        self.tasks = tasks
        self.holds = holds
        self.others = others


class Victims:
    """The victims of a leaf: the worst job last, so that taking it is cheap."""

    __slots__ = ("items", "popped")

    def __init__(self) -> None:
        self.items: list[tuple[Key, Victim]] = []
        self.popped = NOTHING

    def push(self, victim: Victim) -> None:
        """Add."""
        insort(self.items, (victim.key, victim))

    def pop(self) -> Victim:
        """Take the worst; what it held counts as given back by this leaf from now on."""
        victim = self.items.pop()[1]
        self.popped = plus(self.popped, victim.holds)
        return victim

    def taken(self) -> Share:
        """Given back so far, the next one included."""
        return plus(self.popped, self.items[-1][1].holds)


def victim_of(session: Session, job: int) -> Victim:
    """A job as it stands as a victim."""
    status = session.status
    tasks = [t for t in reversed(session.in_order(job)) if status[t] in ACTIVE]
    running = [t for t in tasks if status[t] != PIPELINED]
    return _victim(session, job, tasks, running, others=len(tasks) < len(session.jobs.tasks[job]))


def what_is_left(session: Session, victim: Victim, tasks: list[int]) -> Victim:
    """The victim with only ``tasks`` of its active pods."""
    running = [t for t in tasks if session.status_before(t) != PIPELINED]
    return _victim(session, victim.job, tasks, running, others=victim.others)


def _victim(session: Session, job: int, tasks: list[int], running: list[int], *, others: bool) -> Victim:
    jobs = session.jobs
    over = len(tasks) - jobs.min_available[job]
    rank = 0 if over < 0 else 1 if over == 0 else 2
    key = (-jobs.priority[job], rank, jobs.created[job], jobs.uid[job])
    return Victim(job, key, tasks, total(session.request, running), others=others)


class VictimOrder:
    """Victims, worst first: the exact reverse of the order of pending jobs."""

    def __init__(self, session: Session, order: QueueOrder) -> None:
        self._session = session
        self._order = order
        self._roots: Heap[Node[Victims]] = Heap(self._queue_worse)
        self._nodes: dict[int, Node[Victims]] = {}
        self._popped: dict[int, Share] = {}

    def push(self, victim: Victim) -> None:
        """Add one victim."""
        queue = self._session.jobs.queue[victim.job]
        node = self._nodes.get(queue)
        linked = node is not None
        if node is None:
            victims = Victims()
            victims.popped = self._popped.get(queue, NOTHING)
            node = self._nodes[queue] = Node(queue, None, victims)
        assert node.jobs is not None
        node.jobs.push(victim)
        if not linked:
            _link(self._session, self._nodes, self._roots, node, self._queue_worse)
        _mark(node)

    def pop(self) -> Victim | None:
        """The next victim; None when there are none."""
        if not self._roots.items:
            return None
        node = _descend(self._roots)
        assert node.jobs is not None
        victim = node.jobs.pop()
        self._popped[node.queue] = node.jobs.popped
        _after_pop(node, self._nodes, self._roots)
        return victim

    def _taken(self, node: Node[Victims]) -> Share:
        while node.queues is not None:
            node = node.queues.items[0]
        assert node.jobs is not None
        return node.jobs.taken()

    def _queue_worse(self, a: Node[Victims], b: Node[Victims]) -> bool:
        return not self._order.first(a.queue, b.queue, NOTHING, NOTHING, self._taken(a), self._taken(b))


def _link(
    session: Session, nodes: dict[int, Node[L]], roots: Heap[Node[L]], node: Node[L], less: Callable[..., bool]
) -> None:
    """Hang a new leaf into the tree, creating what is missing above it."""
    parent = session.state.configuration.tree.parent
    while parent[node.queue] != ROOTLESS:
        above = nodes.get(parent[node.queue])
        created = above is None
        if above is None:
            above = nodes[parent[node.queue]] = Node(parent[node.queue], Heap(less), None)
        node.parent = above
        assert above.queues is not None
        above.queues.push(node)
        if not created:
            return
        node = above
    roots.push(node)


def _mark(node: Node[L]) -> None:
    current: Node[L] | None = node
    while current is not None:
        current.dirty = True
        current = current.parent


def _descend(heap: "Heap[Node[L]]") -> Node[L]:
    """The leaf that is next, repairing the top of each heap on the way."""
    while True:
        node = heap.items[0]
        if node.dirty:
            heap.fix_top()
            node.dirty = False
        elif node.queues is None:
            return node
        else:
            heap = node.queues


def _after_pop(node: Node[L], nodes: dict[int, Node[L]], roots: "Heap[Node[L]]") -> None:
    """Drop queues that ran empty; the rest of the way up needs repair."""
    while not (node.jobs.items if node.jobs is not None else node.queues is not None and node.queues.items):
        above = node.parent
        (roots if above is None or above.queues is None else above.queues).pop()
        del nodes[node.queue]
        if above is None:
            return
        node = above
    _mark(node)
