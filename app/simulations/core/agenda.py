"""What is to happen, in order: by instant, then by kind, then by job."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

FINISH, RELEASE, CANCEL, CHANGE, ARRIVE = 0, 1, 2, 3, 4
"""The order of kinds at one instant."""

Item = tuple[int, int, str, int, Any]
"""(instant, kind, job, serial number, what else there is to know: never compared)."""


class Agenda:
    """A queue of events. Those that turn out never to happen are dropped by whoever takes them out."""

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._serial = 0

    def add(self, at: int, kind: int, job: str, detail: Any = None) -> None:
        """Something is to happen at ``at``, in microseconds."""
        self._serial += 1
        heappush(self._heap, (at, kind, job, self._serial, detail))

    def first(self) -> int | None:
        """When the next thing happens; None: nothing does any more."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: int) -> Item | None:
        """The next thing that happens at ``now`` or before; None: nothing does."""
        return heappop(self._heap) if self._heap and self._heap[0][0] <= now else None

    def skip(self, wanted: Callable[[Item], bool]) -> None:
        """Drop what comes next as long as it is not wanted any more."""
        while self._heap and not wanted(self._heap[0]):
            heappop(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def prune(self, wanted: Callable[[Item], bool]) -> None:
        """Drop everything that is not wanted any more."""
        self._heap = [item for item in self._heap if wanted(item)]
        heapify(self._heap)
