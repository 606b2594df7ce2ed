"""The order of queues at one moment, asked for again and again as victims are chosen below them."""

from app.solver.engines.kai.compile.resources import Share
from app.solver.engines.kai.decide.order.queue_order import NOTHING, QueueOrder, within

_Rank = tuple[bool, bool, int, bool]


class Standing:
    """What ``QueueOrder.first`` says without a job that wants anything, on what queues held when the attempt began:
    its first four steps and the sixth are worked out once for each queue."""

    def __init__(self, frozen: QueueOrder) -> None:
        self._order = frozen
        self._known: dict[int, tuple[_Rank, float]] = {}
        self._latest: dict[int, tuple[Share, float]] = {}

    def first(self, a: int, b: int, taken_a: Share, taken_b: Share) -> bool:
        """Whether queue a comes before queue b. ``taken``: what victims chosen below it give back."""
        rank_a, share_a = self._of(a)
        rank_b, share_b = self._of(b)
        if rank_a != rank_b:
            return rank_a < rank_b
        left_a, left_b = self._left(a, taken_a), self._left(b, taken_b)
        if left_a != left_b:
            return left_a < left_b
        if share_a != share_b:
            return share_a < share_b
        order = self._order
        below_a = within(order.allocatable[a], order.allocatable[b])
        below_b = within(order.allocatable[b], order.allocatable[a])
        if below_a != below_b:
            return below_a
        return order.older(a, b)

    def _of(self, q: int) -> tuple[_Rank, float]:
        found = self._known.get(q)
        if found is None:
            order = self._order
            found = self._known[q] = order.rank(q), order.dominant(q, NOTHING, NOTHING)
        return found

    def _left(self, q: int, taken: Share) -> float:
        latest = self._latest.get(q)
        if latest is None or latest[0] != taken:
            latest = self._latest[q] = taken, self._order.dominant(q, NOTHING, taken)
        return latest[1]
