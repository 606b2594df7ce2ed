"""Evict, restore and place on top of a compiled snapshot, with checkpoint and rollback.

The compiled arrays are shared between decisions and never change. An engine copies the few mutable tables
that a decision touches (usage by tree node, free space by node, flags) and writes to them only through a
journal, so a failed attempt costs what it wrote, not what there is.
"""

from collections.abc import MutableSequence, Sequence
from typing import TypeVar, cast

T = TypeVar("T")


class Journal:
    """A journal of writes to integer tables."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: list[tuple[MutableSequence[int], int, int]] = []

    def add(self, table: MutableSequence[int], at: int, delta: int) -> None:
        """``table[at] += delta``, remembered."""
        old = table[at]
        self._log.append((table, at, old))
        table[at] = old + delta

    def spread(self, tables: Sequence[MutableSequence[int]], at: int, deltas: Sequence[int], sign: int) -> None:
        """``tables[i][at] += sign * deltas[i]`` for every i, remembered."""
        log = self._log
        for table, delta in zip(tables, deltas, strict=False):
            if delta:
                old = table[at]
                log.append((table, at, old))
                table[at] = old + sign * delta

    def put(self, table: MutableSequence[int], at: int, value: int) -> None:
        """``table[at] = value``, remembered."""
        self._log.append((table, at, table[at]))
        table[at] = value

    def put_any(self, table: list[T], at: int, value: T) -> None:
        """``put`` for a table of anything."""
        self._log.append((cast(list[int], table), at, cast(int, table[at])))
        table[at] = value

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo every write since ``mark``, newest first."""
        log = self._log
        while len(log) > mark:
            table, at, old = log.pop()
            table[at] = old
