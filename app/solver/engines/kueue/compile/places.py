"""Where workloads stand in the order of candidates, for states that answer more than once.

The order among candidates of one class (lower priority, later start, lower UID) does not depend on who asks. A
state that stays is sorted once and then kept sorted under deltas, so that a decision only filters.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.solver.model.instant import micros
from app.solver.model.state import Workload

Key = tuple[int, int, str, str]
_UNKNOWN = -(2**62)


class Places:
    """``order``: indices of all workloads, first to go first; ``rank``: the place of each, equal for those that only
    their ids tell apart. ``latest``: no known start is later, in microseconds, where some start is unknown."""

    WORTHWHILE: ClassVar[int] = 512

    __slots__ = ("latest", "order", "rank", "ties")

    def __init__(self, order: NDArray[np.int64], alike: NDArray[np.bool_], latest: int | None) -> None:
        """``alike``: by place, whether only the id tells it from the one before."""
        self.order = order
        self.rank = np.empty_like(order)
        self.rank[order] = np.cumsum(~alike)
        self.ties = bool(alike.any())
        self.latest = latest

    @staticmethod
    def of(workloads: Sequence[Workload], priority: NDArray[np.int64]) -> "Places":
        """Sort them all."""
        keys = [_key(w, p) for w, p in zip(workloads, priority.tolist(), strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        alike = [keys[a][:3] == keys[b][:3] for a, b in pairwise(order)]
        unknown = any(w.started_at is None for w in workloads)
        latest = max((micros(w.started_at) for w in workloads if w.started_at), default=_UNKNOWN) if unknown else None
        return Places(np.array(order, dtype=np.int64), np.array([False, *alike][: len(order)], dtype=bool), latest)

    def hold(self, now: int) -> bool:
        """Whether the places are right at ``now``: an unknown start counts as ``now``, which must be the latest."""
        return self.latest is None or self.latest < now

    def moved(
        self, gone: NDArray[np.int64], workloads: Sequence[Workload], priority: NDArray[np.int64], new: Sequence[int]
    ) -> "Places":
        """The places once the workloads at old indices ``gone`` are removed and those at new indices ``new`` are put
        in; what is at neither keeps its order. ``workloads``, ``priority``: after the change."""
        # Old index -> new index of all that stay; the changed ones are taken out here and put in below.
        stays = np.ones(len(self.order), dtype=bool)
        stays[gone] = False
        fresh = np.ones(len(workloads), dtype=bool)
        fresh[list(new)] = False
        index = np.full(len(self.order), -1, dtype=np.int64)
        index[stays] = np.flatnonzero(fresh)
        kept = self.order[stays[self.order]]
        order, rank = index[kept], self.rank[kept]
        alike = np.concatenate((np.zeros(min(1, len(rank)), dtype=bool), np.diff(rank) == 0))

        def key(i: int) -> Key:
            return _key(workloads[i], int(priority[i]))

        arriving = sorted((key(i), i) for i in new)
        where = [bisect_left(range(len(order)), k, key=lambda at: key(int(order[at]))) for k, _ in arriving]
        order = np.insert(order, where, [i for _, i in arriving])
        alike = np.insert(alike, where, False)
        for shift, at in enumerate(where):
            for place in (at + shift, at + shift + 1):
                if 0 < place < len(order):
                    alike[place] = key(int(order[place - 1]))[:3] == key(int(order[place]))[:3]
        return Places(order, alike, self._latest(workloads, new))

    def _latest(self, workloads: Sequence[Workload], new: Sequence[int]) -> int | None:
        """Never too early: one that has left may still count."""
        starts = [workloads[i].started_at for i in new]
        if self.latest is None and None not in starts:
            return None
        if self.latest is None:
            return max((micros(w.started_at) for w in workloads if w.started_at), default=_UNKNOWN)
        return max([self.latest, *(micros(at) for at in starts if at is not None)])


def _key(workload: Workload, priority: int) -> Key:
    started = workload.started_at
    return (priority, _UNKNOWN if started is None else -micros(started), workload.uid or "", workload.id)
