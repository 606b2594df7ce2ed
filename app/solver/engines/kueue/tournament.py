"""Which queue to take the next victim from: from the root cohort down, always the child with the highest share.

Source: Kueue ``pkg/scheduler/preemption/fairsharing/ordering.go``. Shares only fall while victims are taken, so each
cohort keeps its children in heaps whose stale heads are put back in their place when they come up: only the shares
on the path of the latest victim are ever computed again.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from app.solver.engines.kueue import order
from app.solver.engines.kueue.share import Share, ratio, share
from app.solver.engines.kueue.snapshot import Snapshot

_Head = tuple[bool, bool, int, int, tuple[str, str]]
_QueueEntry = tuple[bool, float, bool, _Head | tuple[()], int]
_CohortEntry = tuple[bool, float, str, int]


class Tournament:
    """Candidates by queue, and the choice of the next queue. ``waiting[queue]``: its remaining candidates, sorted when
    the queue is first looked at unless ``sorted_already``.

    Shares include the preemptor's request, which the caller has booked on its queue."""

    def __init__(
        self, snapshot: Snapshot, preemptor_queue: int, candidates: dict[int, list[int]], *, sorted_already: bool
    ) -> None:
        self._snapshot = snapshot
        self._own = preemptor_queue
        self._configured = snapshot.loaded.configured
        self._above = frozenset(self._configured.tree.path(preemptor_queue)[1:])
        self._candidates = candidates
        self._sorted_already = sorted_already
        self._waiting: dict[int, deque[int]] = {}
        self._share: dict[int, Share] = {}
        self._queues: dict[int, list[_QueueEntry]] = {}
        self._cohorts: dict[int, list[_CohortEntry]] = {}
        self._populated = {cohort for queue in candidates for cohort in self._configured.tree.path(queue)[1:]}

    def next(self) -> int | None:
        """The queue to take a candidate from, or None when no candidates are left to consider."""
        root = self._configured.root[self._own]
        if root == self._own:
            return self._own if self.waiting(self._own) else None
        while True:
            node = root
            path: list[int] = []
            while True:
                queue, queue_share = self._highest_queue(node)
                cohort, cohort_share = self._highest_cohort(node)
                if queue is None and cohort is None:
                    break
                if cohort is None or (queue is not None and queue_share > cohort_share):
                    return queue
                # On equal shares the cohort goes first: the most unfair queue may be inside it.
                path.append(node)
                node = cohort
            if not path:
                return None
            # All of its children are done with, so this cohort is too.
            heappop(self._cohorts[path[-1]])

    def waiting(self, queue: int) -> deque[int]:
        """The queue's remaining candidates, first to go first."""
        found = self._waiting.get(queue)
        if found is None:
            mine = self._candidates.get(queue, [])
            if not self._sorted_already:
                mine.sort(key=lambda i: order.sort_key(self._snapshot, i, self._own))
            found = self._waiting[queue] = deque(mine)
        return found

    def drop(self, queue: int) -> None:
        """Take nothing more from this queue."""
        self.waiting(queue).clear()

    def changed(self, queue: int) -> None:
        """The queue's usage has changed: its share and those of its cohorts are out of date."""
        for node in self._configured.tree.path(queue):
            self._share.pop(node, None)

    def share(self, node: int) -> Share:
        """The node's share at this moment, computed when something below it has changed."""
        known = self._share.get(node)
        if known is None:
            known = self._share[node] = share(self._configured, self._snapshot.usage, node)
        return known

    def _highest_queue(self, cohort: int) -> tuple[int | None, Share]:
        """The unpruned child queue with the highest share; between equals the one whose first candidate goes first.

        A queue is done with for good when it is out of candidates or does not borrow (the preemptor's own may)."""
        heap = self._queues.get(cohort)
        if heap is None:
            heap = self._queues[cohort] = [
                self._entry(q) for q in self._configured.child_queues[cohort] if q in self._candidates
            ]
            heapify(heap)
        while heap:
            weightless, value, known, head, queue = heap[0]
            waiting = self.waiting(queue) if queue in self._waiting else self._candidates[queue]
            if not waiting or (queue != self._own and not ratio(self._snapshot.usage, queue)[0]):
                heappop(heap)
                continue
            now = self.share(queue)
            if (not now.weightless, -now.value) != (weightless, value):
                heappop(heap)
                heappush(heap, self._entry(queue))
                continue
            first = order.sort_key(self._snapshot, self.waiting(queue)[0], self._own)
            if not known or head != first:
                heappop(heap)
                heappush(heap, (weightless, value, True, first, queue))
                continue
            return queue, now
        return None, Share(False, -1.0)

    def _entry(self, queue: int) -> _QueueEntry:
        """Before any with a known head of the same share, so that all equals are looked at before one is chosen."""
        now = self.share(queue)
        return (not now.weightless, -now.value, False, (), queue)

    def _highest_cohort(self, parent: int) -> tuple[int | None, Share]:
        """The unpruned child cohort with the highest share. Between equals Kueue's choice is random, this one goes by
        name. A cohort that does not borrow is done with, unless the preemptor is below it."""
        heap = self._cohorts.get(parent)
        if heap is None:
            heap = self._cohorts[parent] = [
                self._cohort_entry(c) for c in self._configured.child_cohorts[parent] if c in self._populated
            ]
            heapify(heap)
        while heap:
            weightless, value, name, cohort = heap[0]
            if cohort not in self._above and not ratio(self._snapshot.usage, cohort)[0]:
                heappop(heap)
                continue
            now = self.share(cohort)
            if (not now.weightless, -now.value) != (weightless, value):
                heappop(heap)
                heappush(heap, (not now.weightless, -now.value, name, cohort))
                continue
            return cohort, now
        return None, Share(False, -1.0)

    def _cohort_entry(self, cohort: int) -> _CohortEntry:
        now = self.share(cohort)
        return (not now.weightless, -now.value, self._configured.tree.names[cohort], cohort)


def group(snapshot: Snapshot, candidates: Sequence[int]) -> dict[int, list[int]]:
    """Candidates by queue, keeping their order."""
    out: dict[int, list[int]] = {}
    for workload, queue in zip(candidates, snapshot.loaded.queue[list(candidates)].tolist(), strict=True):
        out.setdefault(queue, []).append(workload)
    return out
