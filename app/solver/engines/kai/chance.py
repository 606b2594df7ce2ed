"""What released KAI leaves to chance: the order in which Go yields the entries of a map.

Go fills a map of up to eight entries slot by slot and reads it from a slot drawn at random, round to where it began; a
larger one keeps its entries in groups of eight by a hash that differs from map to map. So the order in which a small
map was filled is the likeliest one. An answer of 0.17 that hangs on such an order is drawn again and again: it is the
outcome that most draws came to, and names the others.
"""

from collections.abc import Iterable
from random import Random
from typing import TypeVar

T = TypeVar("T")

DRAWS = 40
"""Draws of an answer that hangs on an order: what happens half the time is met, all but for one in a trillion."""
MOST_STEPS = 30_000
"""Steps that all draws of an answer may spend on simulations together."""

_GROUP = 8
_FULL = 7


class Chance:
    """The orders of one run. Without a seed every map yields its entries as they came in. ``matters``: whether the run
    met an order on which a choice of it hangs."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = None if seed is None else Random(seed)
        self.matters = False

    def order(self, entries: Iterable[T]) -> list[T]:
        """The entries as a map yields them that was filled in the given order."""
        found = list(entries)
        if self._random is None or len(found) < 2:
            return found
        if len(found) <= _GROUP:
            return _from(found, self._random.randrange(_GROUP))
        groups = 2
        while len(found) > groups * _FULL:
            groups *= 2
        slots: list[list[T]] = [[] for _ in range(groups)]
        for entry in found:
            at = self._random.randrange(groups)
            while len(slots[at]) == _GROUP:
                at = (at + 1) % groups
            slots[at].append(entry)
        at, first = divmod(self._random.randrange(groups * _GROUP), _GROUP)
        later = [entry for group in (*slots[at + 1 :], *slots[:at]) for entry in group]
        return [*slots[at][first:], *later, *slots[at][:first]]


def _from(entries: list[T], start: int) -> list[T]:
    """From slot ``start`` on; behind the last entry all slots are empty."""
    start = start if start < len(entries) else 0
    return entries[start:] + entries[:start]
