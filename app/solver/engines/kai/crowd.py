"""Jobs whose pods are alike and each placed by itself, in a run that nobody watches: followed as each comes, changes
and goes; and whose turn it is among those that wait.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import add

from msgspec.structs import replace

from app.solver.engines.kai.ahead import Job, Kind, Sums, apart, is_of, parted, ranked
from app.solver.engines.kai.fair_share import divided
from app.solver.engines.kai.jobs import GPU, OLDEST, Share, Vector, rank, task_key
from app.solver.engines.kai.queue_order import Comparison, Entry, Heap, Position, QueueTree, Waiting, put_in_line
from app.solver.engines.kai.state import Key
from app.solver.model.base import micros
from app.solver.model.state import Ask, Task, Workload

_MOST_ORDERS = 16


def _is_like(job: Ask | Workload | None, other: Ask | Workload | None) -> bool:
    """Whether there is no more to it than to the other but its pods."""
    return job is None or (other is not None and bool(job.tasks) and replace(job, tasks=other.tasks) == other)


def _in_order(ordered: list[Task], before: list[Task], now: list[Task]) -> tuple[list[Task], list[Task]]:
    """What is there now in task order, and the new ones. ``ordered``: what was there before."""
    gone, new = parted(before, now)
    ordered = apart(ordered, gone) if gone else ordered.copy()
    for task in new:
        insort(ordered, task, key=task_key)
    return ordered, new


def _kind(job: Job) -> Kind:
    return job.queue, job.request, job.preemptible


def _may_go(job: Job | None) -> bool:
    return job is not None and bool(job.runs) and job.preemptible


def _tasks(job: Ask | Workload | None) -> list[Task]:
    return [] if job is None else job.tasks


class Crowd:
    """Jobs whose pods are alike, followed as each comes, changes and goes. ``odd``: others; ``lines``: those that wait,
    by queue, the best first; ``victims``: those that run and can be preempted, likewise; ``kinds``: how many of each
    wait; ``protects``: whether anything has a minimum runtime. Numbers stay."""

    def __init__(self, sums: Sums) -> None:
        self.sums, self.configuration = sums, (configuration := sums.state.configuration)
        self.tree = configuration.tree
        self.jobs, self.odd = dict[int, Job](), set[str]()
        self.lines, self.victims = dict[int, list[Entry]](), dict[int, list[Entry]]()
        self.kinds = Counter[Kind]()
        self.flat = len({self.tree.parent[q] for q in range(len(self.tree)) if self.tree.is_leaf(q)}) == 1
        self.protects = any(any(configuration.min_runtimes.lengths(q)) for q in range(len(self.tree)))
        self._numbers, self._latest = dict[str, int](), 0
        self._wants = [[0] * len(self.tree) for _ in range(GPU + 1)]
        self._order: tuple[list[Share], Comparison] | None = None
        self._orders, self._vectors = dict[Hashable, Comparison](), set[Vector]()

    def look(self, name: str, ask: Ask | None, running: Workload | None) -> None:
        """The job waits with ``ask`` now and runs as ``running``, or does neither."""
        number = self._numbers.pop(name, self._latest)
        self._latest += number == self._latest
        before, after = self.jobs.pop(number, None), None
        self.odd.discard(name)
        if ask is not None or running is not None:
            self._numbers[name] = number
            if (after := self._read(number, ask, running, before)) is None:
                self.odd.add(name)
            else:
                self.jobs[number] = after
        for lines, of, now in (
            (self.lines, before if before and before.waits else None, after if after and after.waits else None),
            (self.victims, before if _may_go(before) else None, after if _may_go(after) else None),
        ):
            stays = of is not None and now is not None and of.queue == now.queue
            if of is not None and not stays:
                put_in_line(lines, of.queue, number, of.key, None)
            if now is not None and not (stays and of is not None and of.key == now.key):
                put_in_line(lines, now.queue, number, of.key if of is not None and stays else None, now.key)
        if before and after and before.waits and after.waits and _kind(before) == _kind(after):
            self.sums.book(self._wants, after.queue, after.want, len(after.waits) - len(before.waits))
        else:
            self._count(before, -1)
            self._count(after, 1)

    def _count(self, job: Job | None, sign: int) -> None:
        if job is None or not job.waits:
            return
        kind = _kind(job)
        self._vectors.clear()
        self.kinds[kind] += sign
        if not self.kinds[kind]:
            del self.kinds[kind]
        self.sums.book(self._wants, job.queue, job.want, sign * len(job.waits))

    def _read(self, number: int, ask: Ask | None, running: Workload | None, before: Job | None) -> Job | None:
        """None: its pods are not alike, or there is more to it. ``before``: pods of it are sound and alike."""
        owner, sums = running or ask, self.sums
        asked, waits, runs = (None, [], []) if before is None else (before.asked, before.waits, before.runs)
        again = before is not None and _is_like(ask, asked) and _is_like(running, before.running)
        if owner is None or not (again or all(job is None or self._is_simple(job) for job in (ask, running))):
            return None
        if running is not None and (running.id in sums.odd or not (ask is None or is_of(ask, running))):
            return None
        of_ask, of_running = (None, None) if before is None else (before.ask, before.running)
        waits, new = _in_order(waits, _tasks(of_ask), _tasks(ask))
        runs, others = _in_order(runs, _tasks(of_running), _tasks(running))
        if ask is not None and not (again and asked is not None and not (new and apart(new, asked.tasks))):
            if not sums.plain(ask):
                return None
            asked, others = ask, [*waits, *runs]
        first = before.request if before is not None else sums.request(others[0])
        if first is None or first.portion is not None or any(sums.request(task) != first for task in others):
            return None
        if again and before is not None and (running is None) == (before.running is None):
            key, started = ranked(before.key, rank(len(runs), 1)), before.started  # whose is like whose was
        else:
            created = OLDEST if owner.created_at is None else micros(owner.created_at)
            started = 0 if running is None or running.started_at is None else micros(running.started_at)
            key = -(owner.priority or 0), rank(len(runs), 1), created, owner.id, number
        queue, of = self.tree.index[owner.queue], (asked, ask, running, waits, runs)
        return Job(owner.id, queue, key, first, first.want, *of, started, owner.preemptible is not False)

    def _is_simple(self, job: Ask | Workload) -> bool:
        queue = self.tree.index.get(job.queue)
        return bool(
            job.tasks and job.min_available in (None, 1) and job.uid is None and job.sub_groups is None
            and job.preemption_delay is None and queue is not None and self.tree.is_leaf(queue)
        )  # fmt: skip

    def vectors(self) -> set[Vector]:
        """What those that wait ask for."""
        if not self._vectors:
            self._vectors = {request.vector for _, request, _ in self.kinds}
        return self._vectors

    def order(self) -> Comparison:
        """How queues compare, on what sums say that they hold from now on; their shares stay those of now."""
        sums = self.sums
        requested = list(zip(*(map(add, *of) for of in zip(sums.allocated, self._wants, strict=True)), strict=True))
        if self._order is None or self._order[0] != requested:
            held, fixed = (list(zip(*table, strict=True)) for table in (sums.allocated, sums.fixed))
            division = divided(sums.state, held, fixed, requested)
            shares = division.total, tuple(division.fair), tuple(division.allocatable)
            if (order := self._orders.get(shares)) is None:
                if len(self._orders) >= _MOST_ORDERS:
                    self._orders.clear()
                of = self.configuration, sums.paths, sums.allocated, sums.fixed
                order = self._orders[shares] = Comparison(*of, lambda: division)
            self._order = requested, order
        return self._order[1]


class Turns:
    """Whose turn it is among those that wait, as ``QueueTree`` has it. Where all queues are siblings, what each of them
    is compared by is looked up once for as long as it stands, and there is no heap before a second turn: whoever
    compares first is at its top, and of two that stand alike the one that comes before the other, or where neither does
    the one whose best job comes first.

    ``_seen``: how many had moved when they were looked at; ``_looked``: how many had settled at first."""

    def __init__(
        self, lines: Mapping[int, list[Entry]], moved: Sequence[tuple[Job, int, int]], settled: Sequence[int],
        key: Callable[[int], Key], standing: Callable[[int, int], Position], goes_before: Callable[[int, int], bool],
        tree: QueueTree[Waiting] | None,
    ) -> None:  # fmt: skip
        """``lines``: who waits, by queue; ``moved``, ``settled``: whose pods came or went, whose key may be another:
        both grow; ``standing``: what a queue is compared by if that job is its best, ``goes_before``: of two
        that stand alike; ``tree``: of queues on several levels."""
        self._lines, self._moved, self._settled = dict(lines), moved, settled
        self._key, self._position, self._goes_before, self._tree = key, standing, goes_before, tree
        self._seen, self._looked = len(moved), len(settled)
        self._first: tuple[int, int] | None = None
        self._heap: Heap[int] | None = None
        self._standings, self._leaves, self._dirty = dict[int, Position](), dict[int, Waiting](), set[int]()

    def next(self) -> tuple[int, int] | None:
        """Queue and job; None: there are no more."""
        if self._tree is not None:
            turn = self._tree.next()
            return None if turn is None else (turn[0], turn[1].pop())
        if self._heap is None and self._first is None and (first := self._leader()) is not None:
            self._first = first
            return first
        heap = self._built()
        self._heed()
        while heap.items and heap.items[0] in self._dirty:
            self._dirty.discard(heap.items[0])
            heap.fix_top()
        if not heap.items:
            return None
        queue = heap.items[0]
        number = self._leaf(queue).pop()
        self._standings.pop(queue, None)
        return queue, number

    def took(self, queue: int) -> None:
        """The job that ``next`` gave is taken; a queue that ran empty is dropped, another is compared anew."""
        if self._tree is not None:
            self._tree.took(queue)
        elif self._heap is not None:
            self._heed()
            self._drop(self._heap, queue)

    def push(self, queue: int, number: int) -> None:
        """The job, just taken, waits again."""
        tree, heap = self._tree, None if self._tree is not None else self._built()
        self._heed()
        self._standings.pop(queue, None)
        leaf = self._leaves.get(queue) if tree is None else tree.leaf(queue)
        if leaf:
            leaf.push(number)
            return
        leaf = self._leaves[queue] = Waiting(self._settled, self._key, [(self._key(number), number)])
        if tree is not None:
            tree.add(queue, leaf)
        elif heap is not None:
            self._dirty.add(queue)
            heap.push(queue)

    def best(self, queue: int) -> int | None:
        """The highest priority, as keys have it, of a job of the queue that had no turn yet; None: all had."""
        leaf = self._leaves.get(queue) if self._tree is None else self._tree.leaf(queue)
        if leaf is not None or self._tree is not None:
            return self._key(leaf.first())[0] if leaf else None
        entries, had = self._lines.get(queue, ()), self._first is not None and self._first[0] == queue
        return entries[had][0][0] if len(entries) > had else None

    def _leader(self) -> tuple[int, int] | None:
        """The first turn; None: the heap has to tell."""
        best, tied = None, list[int]()
        for queue in self._lines:
            standing = self._standing(queue)
            if best is None or standing < best:
                best, tied = standing, [queue]
            elif standing == best:
                tied.append(queue)
        if len(tied) == 2:
            a, b = sorted(tied, key=self._enters)
            tied = [b if self._goes_before(b, a) else a]
        return (tied[0], self._lines[tied[0]][0][1]) if len(tied) == 1 else None

    def _enters(self, queue: int) -> Entry:
        return self._lines[queue][0]

    def _built(self) -> Heap[int]:
        """The heap, after the first turn if that was had: as it was then, for only the queue whose turn it was has
        moved before it is taken."""
        if self._heap is None:
            heap = self._heap = Heap(self._less)
            for queue in sorted(self._lines, key=self._enters):
                heap.push(queue)
            self._dirty.update(self._lines)
            if self._first is not None:
                queue = self._first[0]
                self._leaves[queue] = Waiting(self._settled, self._key, self._lines[queue], self._looked, 1)
                self._standings.pop(queue, None)
                self._drop(heap, queue)
        return self._heap

    def _drop(self, heap: Heap[int], queue: int) -> None:
        if self._leaf(queue):
            self._dirty.add(queue)
        else:
            heap.pop()

    def _heed(self) -> None:
        for job, _, _ in self._moved[self._seen :]:
            self._standings.pop(job.queue, None)
        self._seen = len(self._moved)

    def _leaf(self, queue: int) -> Waiting:
        leaf = self._leaves.get(queue)
        if leaf is None:
            leaf = self._leaves[queue] = Waiting(self._settled, self._key, self._lines[queue], self._looked)
        return leaf

    def _standing(self, queue: int) -> Position:
        known = self._standings.get(queue)
        if known is None:
            leaf = self._leaves.get(queue)
            number = self._lines[queue][0][1] if leaf is None else leaf.first()
            known = self._standings[queue] = self._position(queue, number)
        return known

    def _less(self, a: int, b: int) -> bool:
        of_a, of_b = self._standing(a), self._standing(b)
        return of_a < of_b if of_a != of_b else self._goes_before(a, b)
