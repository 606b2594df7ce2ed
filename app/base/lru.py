"""What is kept to be used again, within bounds."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """A mapping that forgets what was not used for longest, past ``most`` entries or ``budget`` bytes. Thread-safe.

    What was put in last always stays: an entry larger than the budget is kept alone.
    """

    def __init__(self, most: int, budget: int) -> None:
        self._most = most
        self._budget = budget
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value of ``key``, which counts as a use of it; None where it is not kept."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep ``value``, which counts as ``size`` bytes."""
        with self._lock:
            before = self._entries.pop(key, None)
            self._size += size - (0 if before is None else before[1])
            self._entries[key] = (value, size)
            while len(self._entries) > 1 and (len(self._entries) > self._most or self._size > self._budget):
                self._size -= self._entries.popitem(last=False)[1][1]

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes more would push nothing out."""
        with self._lock:
            return len(self._entries) < self._most and self._size + size <= self._budget

    def __contains__(self, key: K) -> bool:
        """Without counting as a use."""
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
