"""Circles: what runs where, what waits and what the engine carries over is as it was at an earlier round, and somebody
was evicted in between."""

from collections.abc import Hashable
from hashlib import blake2b

from app.simulations.core.times import time_of
from app.simulations.schemas import Evicted, Loop


def mark_of(text: str) -> int:
    """A number that stands for ``text``; the exclusive or of such numbers stands for a set of texts."""
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest())


class Loops:
    """Rounds since a job last arrived, ended or was cancelled, or somebody changed nodes or quotas.

    ``found``: how many loops; ``first``: the first of them."""

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._seen: dict[Hashable, tuple[int, int]] = {}
        self._evicted: list[Evicted] = []
        self.found = 0
        self.first: list[Loop] = []

    def outside(self) -> None:
        """Something happened that no round decided."""
        if self._seen:
            self._seen, self._evicted = {}, []

    def evicted(self, evictions: list[Evicted]) -> None:
        """What a round evicted."""
        self._evicted += evictions

    def look(self, n: int, situation: Hashable, now: int) -> Loop | None:
        """Round ``n``, which evicts somebody, was asked of this situation; the loop that it closes, if it does."""
        seen = self._seen.get(situation)
        if seen is None or seen[1] == len(self._evicted):
            self._seen.setdefault(situation, (n, len(self._evicted)))
            return None
        turn = self._evicted[seen[1] :]
        loop = Loop(at=time_of(now), first=seen[0], second=n, jobs=sorted({e.job for e in turn}), evictions=turn)
        self.found += 1
        if len(self.first) < self._most:
            self.first.append(loop)
        self._seen, self._evicted = {situation: (n, 0)}, []
        return loop
