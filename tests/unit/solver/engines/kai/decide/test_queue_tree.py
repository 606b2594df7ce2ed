"""Heaps that sift as Go's do, and the lazily repaired tree over them."""

from random import Random

from app.solver.compiled import ROOTLESS
from app.solver.engines.kai.queue_order import Heap, Node, QueueTree


def test_a_heap_gives_the_least_first() -> None:
    random = Random(1)
    for size in range(20):
        values = [random.randint(0, 9) for _ in range(size)]
        heap: Heap[int] = Heap(lambda a, b: a < b)
        for value in values:
            heap.push(value)
        assert [heap.pop() for _ in values] == sorted(values)
        assert not heap


def test_equal_items_come_as_a_binary_heap_leaves_them() -> None:
    heap: Heap[tuple[int, str]] = Heap(lambda a, b: a[0] < b[0])
    for name in "abcde":
        heap.push((0, name))
    assert [heap.pop()[1] for _ in range(5)] == ["a", "e", "d", "c", "b"]


def test_a_changed_top_sinks_when_repaired_and_only_the_top() -> None:
    rank = {"a": 0, "b": 1, "c": 2}
    heap: Heap[str] = Heap(lambda a, b: rank[a] < rank[b])
    for name in rank:
        heap.push(name)
    rank["a"] = 9
    assert heap.items[0] == "a"
    heap.fix_top()
    assert heap.items[0] == "b"
    rank["c"] = -1
    heap.fix_top()
    assert heap.items[0] == "b" or heap.items[0] == "c"


class Jobs(list[int]):
    """The jobs of a leaf."""


def tree(parent: list[int], rank: dict[int, int]) -> QueueTree[Jobs]:
    def less(a: Node[Jobs], b: Node[Jobs]) -> bool:
        return rank[a.queue] < rank[b.queue]

    return QueueTree(parent, less)


PARENT = [ROOTLESS, 0, 0, ROOTLESS, 3]  # 0: {1, 2}, 3: {4}


def test_the_tree_descends_by_rank_and_drops_empty_queues() -> None:
    rank = {0: 1, 1: 5, 2: 2, 3: 0, 4: 0}
    queues = tree(PARENT, rank)
    for leaf, jobs in ((1, [10]), (2, [20, 21]), (4, [40])):
        queues.add(leaf, Jobs(jobs))
    taken: list[tuple[int, int]] = []
    while (found := queues.next()) is not None:
        queue, jobs = found
        taken.append((queue, jobs.pop()))
        queues.took(queue)
    assert taken == [(4, 40), (2, 21), (2, 20), (1, 10)]
    assert queues.leaf(1) is None


def test_a_rank_that_changes_shows_once_the_tree_was_touched() -> None:
    rank = {0: 0, 1: 1, 2: 2, 3: 9, 4: 0}
    queues = tree(PARENT, rank)
    queues.add(1, Jobs([1, 1]))
    queues.add(2, Jobs([2, 2]))
    assert queues.next() == (1, [1, 1])
    rank[1] = 5
    assert queues.next() == (1, [1, 1])
    queues.took(1)
    assert queues.next() == (2, [2, 2])
    rank[2] = 8
    queues.took(1)
    assert queues.next() == (2, [2, 2])
