"""Go's ``sort.Slice``, exactly: what it does with equal elements decides who is a victim.

Insertion sort up to twelve elements, pattern-defeating quicksort beyond. Source: Go's ``sort`` package.
"""

from typing import Any, Generic, TypeVar

from app.solver.engines.kube_scheduler.pods import STABLE

T = TypeVar("T")
_NINTHER = 50
_STEPS = 5
_ALL_SWAPPED = 12
_WORD = 2**64 - 1


def go_sorted(items: list[T], keys: list[Any]) -> list[T]:
    """``items`` in ascending order of ``keys``, with equal ones where Go's sort leaves them."""
    if len(items) <= STABLE:  # insertion sort leaves equal ones as they are
        return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]
    run = _Run(list(keys), list(items))
    run.sort(0, len(items), len(items).bit_length())
    return run.items


class _Run(Generic[T]):
    def __init__(self, keys: list[Any], items: list[T]) -> None:
        self.keys = keys
        self.items = items

    def less(self, i: int, j: int) -> bool:
        return self.keys[i] < self.keys[j]

    def swap(self, i: int, j: int) -> None:
        keys, items = self.keys, self.items
        keys[i], keys[j] = keys[j], keys[i]
        items[i], items[j] = items[j], items[i]

    def sort(self, a: int, b: int, limit: int) -> None:
        balanced = partitioned = True
        while True:
            length = b - a
            if length <= STABLE:
                self._insertion(a, b)
                return
            if limit == 0:
                self._heap(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                limit -= 1
            pivot, swaps = self._pivot(a, b)
            rising = swaps == 0
            if swaps == _ALL_SWAPPED:
                self.keys[a:b] = self.keys[a:b][::-1]
                self.items[a:b] = self.items[a:b][::-1]
                pivot = (b - 1) - (pivot - a)
                rising = True
            if balanced and partitioned and rising and self._nearly_sorted(a, b):
                return
            if a > 0 and not self.less(a - 1, pivot):
                a = self._partition_equal(a, b, pivot)
                continue
            middle, partitioned = self._partition(a, b, pivot)
            left, right = middle - a, b - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(a, middle, limit)
                a = middle + 1
            else:
                self.sort(middle + 1, b, limit)
                b = middle

    def _insertion(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def _heap(self, a: int, b: int) -> None:
        size = b - a
        for i in range((size - 1) // 2, -1, -1):
            self._sift(i, size, a)
        for i in range(size - 1, -1, -1):
            self.swap(a, a + i)
            self._sift(0, i, a)

    def _sift(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def _break_patterns(self, a: int, b: int) -> None:
        length = b - a
        if length < 8:
            return
        drawn = length
        mask = (1 << length.bit_length()) - 1
        at = a + (length // 4) * 2 - 1
        for i in range(3):
            drawn ^= drawn << 13 & _WORD
            drawn ^= drawn >> 7
            drawn ^= drawn << 17 & _WORD
            other = drawn & mask
            if other >= length:
                other -= length
            self.swap(at + i, a + other)

    def _pivot(self, a: int, b: int) -> tuple[int, int]:
        length = b - a
        i, j, k = (a + length // 4 * quarter for quarter in (1, 2, 3))
        swaps = 0
        if length >= 8:
            if length >= _NINTHER:
                i, swaps = self._median(i - 1, i, i + 1, swaps)
                j, swaps = self._median(j - 1, j, j + 1, swaps)
                k, swaps = self._median(k - 1, k, k + 1, swaps)
            j, swaps = self._median(i, j, k, swaps)
        return j, swaps

    def _median(self, a: int, b: int, c: int, swaps: int) -> tuple[int, int]:
        if self.less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self.less(c, b):
            b, swaps = c, swaps + 1
        if self.less(b, a):
            b, swaps = a, swaps + 1
        return b, swaps

    def _nearly_sorted(self, a: int, b: int) -> bool:
        i = a + 1
        for _ in range(_STEPS):
            while i < b and not self.less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _NINTHER:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:
                j = i - 1
                while j >= 1 and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j -= 1
            if b - i >= 2:
                j = i + 1
                while j < b and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j += 1
        return False

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self.less(a, i):
                i += 1
            while i <= j and self.less(a, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        already = True
        while True:
            while i <= j and self.less(i, a):
                i += 1
            while i <= j and not self.less(j, a):
                j -= 1
            if i > j:
                self.swap(j, a)
                return j, already
            already = False
            self.swap(i, j)
            i, j = i + 1, j - 1
