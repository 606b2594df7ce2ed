"""When time alone could let a waiting job act: one instant for each of many keys, the first of them at hand."""

from heapq import heapify, heappop, heappush


class Wakes:
    """Instants in microseconds by key. What is replaced or dropped leaves the heap when its turn comes, or when there
    is more of it than of anything else."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._at: dict[str, int] = {}

    def set(self, key: str, at: int | None) -> None:
        """``key`` has this instant from now on, or none."""
        if at is None:
            self._at.pop(key, None)
            return
        if self._at.get(key) != at:
            self._at[key] = at
            heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [(when, name) for name, when in self._at.items()]
            heapify(self._heap)

    def first(self) -> int | None:
        """The earliest instant; None: there is none."""
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def passed(self, now: int) -> list[str]:
        """The keys whose instant is ``now`` or before, which they then have no longer."""
        found: list[str] = []
        while (at := self.first()) is not None and at <= now:
            _, key = heappop(self._heap)
            del self._at[key]
            found.append(key)
        return found

    def clear(self) -> None:
        """No key has an instant any more."""
        self._heap, self._at = [], {}
