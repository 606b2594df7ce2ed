"""Candidates of fair sharing, by queue."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from app.solver.engines.kueue.compile.state import CompiledState


class Pool:
    """Candidates by queue; looked up when a queue is looked into."""

    __slots__ = ("_chosen", "_state", "queues")

    def __init__(self, state: CompiledState, candidates: NDArray[np.int64]) -> None:
        self._state = state
        self._chosen = np.zeros(len(state.workloads), dtype=bool)
        self._chosen[candidates] = True
        self.queues: list[int] = np.flatnonzero(np.bincount(state.queue[candidates])).tolist()

    def of(self, queue: int) -> list[int]:
        """The queue's candidates, in the order of the state."""
        members = self._state.by_queue(queue)
        return members[self._chosen[members]].tolist()

    def items(self) -> Iterator[tuple[int, list[int]]]:
        """Every queue that has candidates, with them."""
        return ((queue, self.of(queue)) for queue in self.queues)


class Leftover:
    """Candidates that failed a round, by queue."""

    __slots__ = ("_by_queue",)

    def __init__(self) -> None:
        self._by_queue: dict[int, list[int]] = {}

    def add(self, queue: int, workloads: Iterable[int]) -> None:
        """Keep these for the next round."""
        self._by_queue.setdefault(queue, []).extend(workloads)

    @property
    def queues(self) -> list[int]:
        """Queues with candidates left over."""
        return list(self._by_queue)

    def of(self, queue: int) -> list[int]:
        """The queue's, in no particular order."""
        return self._by_queue[queue]
