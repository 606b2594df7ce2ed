"""Nodes by free GPUs, kept up to date as a session changes, so that the best node for a pod is found without looking
at every node."""

from bisect import insort
from collections.abc import Iterator

from app.solver.engines.kai.compile import GPU
from app.solver.engines.kai.session import Session


class FreeNodes:
    """``even`` nodes have nothing being released or promised, so what fits them fits them now; they are listed by
    free GPUs, then name. ``uneven`` ones must be looked at one by one. Nodes without a GPU are left out, nodes are
    numbered by their place among the names."""

    def __init__(self, session: Session, by_name: list[int], place: list[int]) -> None:
        self._session = session
        self._by_name = by_name
        self._place = place
        self._kept: list[int | None] = [None] * len(by_name)  # by node: free GPUs where even, -1 where uneven
        self._even: dict[int, list[int]] = {}
        self.uneven: dict[int, None] = {}
        for n in by_name:
            self._look(n)
        session.touched.clear()

    def refresh(self) -> None:
        """Look again at what changed."""
        touched = self._session.touched
        if touched:
            for n in dict.fromkeys(touched):
                if n >= 0:
                    self._look(n)
            touched.clear()

    def even_at_least(self, gpus: int) -> Iterator[int]:
        """Even nodes with that many GPUs free, fewest first, then by name."""
        by_name = self._by_name
        for free in sorted(free for free in self._even if free >= gpus):
            for place in self._even[free]:
                yield by_name[place]

    def _look(self, n: int) -> None:
        session = self._session
        now = session.free[GPU][n]
        for idle, free in zip(session.idle, session.free, strict=True):
            if idle[n] != free[n]:
                now = -1
                break
        before = self._kept[n]
        if before == now:
            return
        if before == -1:
            del self.uneven[n]
        elif before is not None:
            self._even[before].remove(self._place[n])
        self._kept[n] = now
        if now == -1:
            self.uneven[n] = None
        else:
            places = self._even.setdefault(now, [])
            if not places or places[-1] < self._place[n]:
                places.append(self._place[n])
            else:
                insort(places, self._place[n])
