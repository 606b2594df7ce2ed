"""A tree of heaps: queues above jobs, lazily repaired.

The order of queues changes while jobs are placed, but a heap is repaired only where the tree was touched, and only
at its top; what comes next is therefore the top of a lazily repaired heap, not the best queue. That repair decides
outcomes, so the heaps sift exactly as KAI's (Go's container/heap) do.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from app.solver.compiled.tree import ROOTLESS

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


class Leaf(Protocol):
    """The jobs of a leaf queue."""

    def __len__(self) -> int: ...


L = TypeVar("L", bound=Leaf)


class Node(Generic[L]):
    """A queue that has jobs at or below it: ``jobs`` of a leaf, ``queues`` otherwise."""

    __slots__ = ("dirty", "jobs", "parent", "queue", "queues")

    def __init__(self, queue: int, queues: "Heap[Node[L]] | None", jobs: L | None) -> None:
        self.queue = queue
        self.queues = queues
        self.jobs = jobs
        self.parent: Node[L] | None = None
        self.dirty = True


class QueueTree(Generic[L]):
    """``less``: whether the first queue comes before the second. A queue is judged by the best job of its best child,
    as the heaps stand."""

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
            found = parent is not None
            if parent is None:
                parent = self._nodes[above] = Node(above, Heap(self._less), None)
            node.parent = parent
            assert parent.queues is not None
            parent.queues.push(node)
            node = parent
            if found:
                self._touch(node)
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
                heap.fix_top()
                node.dirty = False
            elif node.jobs is not None:
                return node.queue, node.jobs
            else:
                assert node.queues is not None
                heap = node.queues

    def took(self, queue: int) -> None:
        """The leaf that ``next`` gave lost a job: drop queues that ran empty, the rest of the way up needs repair."""
        node: Node[L] | None = self._nodes[queue]
        while node is not None:
            if node.jobs if node.jobs is not None else node.queues:
                self._touch(node)
                return
            above = node.parent
            (self._roots if above is None or above.queues is None else above.queues).pop()
            del self._nodes[node.queue]
            node = above

    def _touch(self, node: Node[L]) -> None:
        current: Node[L] | None = node
        while current is not None:
            current.dirty = True
            current = current.parent
