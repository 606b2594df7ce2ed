"""Where workloads stand in the order of candidates, for states that answer more than once.

The order among candidates of one class (lower priority, later start, lower UID, lower id) does not depend on who
asks. A state that stays is sorted once and then kept sorted under deltas, so that a decision only filters.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.solver.model.instant import micros
from app.solver.model.state import Workload

Key = tuple[int, int, str, str]


class Places:
    """``order``: indices of all workloads, first to go first; ``rank``: the place of each, its inverse."""

    WORTHWHILE: ClassVar[int] = 512

    __slots__ = ("order", "rank")

    def __init__(self, order: NDArray[np.int64]) -> None:
        self.order = order
        self.rank = np.empty_like(order)
        self.rank[order] = np.arange(len(order))

    @staticmethod
    def of(workloads: Sequence[Workload], priority: NDArray[np.int64]) -> "Places | None":
        """None where the order is not a matter of the workloads alone: an unknown start counts as ``now``, and among
        equal UIDs it matters who asks."""
        if any(w.started_at is None for w in workloads):
            return None
        keys = [_key(w, p) for w, p in zip(workloads, priority.tolist(), strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        if any(keys[a][:3] == keys[b][:3] for a, b in pairwise(order)):
            return None
        return Places(np.array(order, dtype=np.int64))

    def moved(
        self, gone: NDArray[np.int64], workloads: Sequence[Workload], priority: NDArray[np.int64], new: Sequence[int]
    ) -> "Places | None":
        """The places once the workloads at old indices ``gone`` are removed and those at new indices ``new`` are put
        in; what is at neither keeps its order. ``workloads``, ``priority``: after the change."""
        changed = [_key(workloads[i], int(priority[i])) for i in new if workloads[i].started_at is not None]
        if len(changed) < len(new):
            return None
        # Old index -> new index of all that stay; the changed ones are taken out here and put in below.
        stays = np.ones(len(self.order), dtype=bool)
        stays[gone] = False
        fresh = np.ones(len(workloads), dtype=bool)
        fresh[list(new)] = False
        index = np.full(len(self.order), -1, dtype=np.int64)
        index[stays] = np.flatnonzero(fresh)
        order = index[self.order]
        order = order[order >= 0]

        def key_at(at: int) -> Key:
            i = int(order[at])
            return _key(workloads[i], int(priority[i]))

        where: list[int] = []
        values: list[int] = []
        for key, i in sorted(zip(changed, new, strict=True)):
            at = bisect_left(range(len(order)), key, key=key_at)
            neighbours = [key_at(n)[:3] for n in (at - 1, at) if 0 <= n < len(order)]
            if key[:3] in neighbours or (
                values and key[:3] == _key(workloads[values[-1]], int(priority[values[-1]]))[:3]
            ):
                return None
            where.append(at)
            values.append(i)
        return Places(np.insert(order, where, values))


def _key(workload: Workload, priority: int) -> Key:
    started: datetime | None = workload.started_at
    return (priority, 0 if started is None else -micros(started), workload.uid or "", workload.id)
