"""Which queue to take the next victim from: from the root cohort down, always the child with the highest share.

Source: Kueue ``pkg/scheduler/preemption/fairsharing/ordering.go``. Shares only fall while victims are taken, so each
cohort keeps its children in heaps whose stale heads are put back in their place when they come up: only the shares
on the path of the latest victim are ever computed again.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from app.solver.compiled.tree import ROOTLESS
from app.solver.engines.kueue.decide.overlay import Overlay
from app.solver.engines.kueue.decide.share import Share, Standing, shares, standing
from app.solver.engines.kueue.decide.victims import order
from app.solver.engines.kueue.decide.victims.pool import Leftover, Pool
from app.solver.stopping import safe_point

_Head = tuple[bool, bool, int, int, tuple[str, str]]
_QueueEntry = tuple[bool, float, bool, _Head | tuple[()], int]
_CohortEntry = tuple[bool, float, str, int]
_BELOW_ALL = Share(False, -1.0)


class Tournament:
    """Candidates by queue, and the choice of the next queue. A queue's candidates are sorted when it is first looked
    into: most queues never are.

    Shares include the preemptor's request, which the caller has booked on its queue."""

    def __init__(self, overlay: Overlay, preemptor_queue: int, candidates: Pool | Leftover) -> None:
        self._overlay = overlay
        self._own = preemptor_queue
        self._configuration = overlay.state.configuration
        self._above = frozenset(self._configuration.tree.path(preemptor_queue)[1:])
        self._candidates = candidates
        self._entered = frozenset(candidates.queues)
        self._waiting: dict[int, deque[int]] = {}
        self._unsorted: dict[int, list[int]] = {}
        self._standings: dict[int, Standing] = {}
        self._queues: dict[int, list[_QueueEntry]] = {}
        self._cohorts: dict[int, list[_CohortEntry]] = {}
        self._populated = self._configuration.tree.above(candidates.queues)

    def next(self) -> int | None:
        """The queue to take a candidate from, or None when no candidates are left to consider."""
        root = self._configuration.root[self._own]
        if root == self._own:
            return self._own if self.waiting(self._own) else None
        while True:
            safe_point()
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
            mine = list(self.remaining(queue))
            order.sort_queue(self._overlay, mine)
            found = self._waiting[queue] = deque(mine)
        return found

    def remaining(self, queue: int) -> Sequence[int]:
        """The same in no particular order."""
        found = self._waiting.get(queue)
        if found is not None:
            return found
        mine = self._unsorted.get(queue)
        if mine is None:
            mine = self._unsorted[queue] = self._candidates.of(queue) if queue in self._entered else []
        return mine

    def surrender(self, queue: int) -> Sequence[int]:
        """Take nothing more from this queue; what was left of it."""
        left = self.remaining(queue)
        self._waiting[queue] = deque()
        return left

    def changed(self, queue: int) -> None:
        """The queue's usage has changed: its share and those of its cohorts are out of date."""
        node, parent = queue, self._configuration.tree.parent
        while node != ROOTLESS:
            self._standings.pop(node, None)
            node = parent[node]

    def share(self, node: int) -> Share:
        """The node's share at this moment."""
        return self._standing(node).share

    def _standing(self, node: int) -> Standing:
        """Computed only when something below the node has changed."""
        known = self._standings.get(node)
        if known is None:
            known = self._standings[node] = standing(self._configuration, self._overlay.usage, node)
        return known

    def _highest_queue(self, cohort: int) -> tuple[int | None, Share]:
        """The unpruned child queue with the highest share; between equals the one whose first candidate goes first.

        A queue is done with for good when it is out of candidates or does not borrow (the preemptor's own may)."""
        heap = self._queues.get(cohort)
        if heap is None:
            queues = [q for q in self._configuration.child_queues[cohort] if q in self._entered]
            found = shares(self._configuration, self._overlay.usage, queues)
            heap = self._queues[cohort] = [_entry(q, share) for q, share in zip(queues, found, strict=True)]
            heapify(heap)
        while heap:
            weightless, value, known, head, queue = heap[0]
            borrows, now = self._standing(queue)
            if not self._waits(queue) or (queue != self._own and not borrows):
                heappop(heap)
            elif (not now.weightless, -now.value) != (weightless, value):
                heapreplace(heap, _entry(queue, now))
            elif not known and not any(entry[:2] == (weightless, value) for entry in heap[1:3]):
                return queue, now
            else:
                first = order.sort_key(self._overlay, self.waiting(queue)[0], self._own)
                if known and head == first:
                    return queue, now
                heapreplace(heap, (weightless, value, True, first, queue))
        return None, _BELOW_ALL

    def _waits(self, queue: int) -> bool:
        known = self._waiting.get(queue)
        return known is None or bool(known)

    def _highest_cohort(self, parent: int) -> tuple[int | None, Share]:
        """The unpruned child cohort with the highest share. Between equals Kueue's choice is random, this one goes by
        name. A cohort that does not borrow is done with, unless the preemptor is below it."""
        heap = self._cohorts.get(parent)
        if heap is None:
            heap = self._cohorts[parent] = [
                self._cohort_entry(c) for c in self._configuration.child_cohorts[parent] if c in self._populated
            ]
            heapify(heap)
        while heap:
            weightless, value, name, cohort = heap[0]
            borrows, now = self._standing(cohort)
            if cohort not in self._above and not borrows:
                heappop(heap)
                continue
            if (not now.weightless, -now.value) != (weightless, value):
                heapreplace(heap, (not now.weightless, -now.value, name, cohort))
                continue
            return cohort, now
        return None, _BELOW_ALL

    def _cohort_entry(self, cohort: int) -> _CohortEntry:
        now = self.share(cohort)
        return (not now.weightless, -now.value, self._configuration.tree.names[cohort], cohort)


def _entry(queue: int, share: tuple[bool, float]) -> _QueueEntry:
    """Before any with a known head of the same share, so that all equals are looked at before one is chosen."""
    weightless, value = share
    return (not weightless, -value, False, (), queue)
