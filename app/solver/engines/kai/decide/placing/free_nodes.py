"""Nodes by free GPUs, kept up to date as an overlay changes, so that the best node for a pod is found without looking
at every node."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import merge

from app.solver.engines.kai.compile.resources import GPU
from app.solver.engines.kai.decide.overlay import Overlay


class FreeNodes:
    """Nodes by GPUs that are free (idle or being released), then idle ones. ``place[n]``: the place of node n among
    the names."""

    def __init__(self, overlay: Overlay, by_name: list[int], place: list[int]) -> None:
        self._overlay = overlay
        self._by_name = by_name
        self._place = place
        self._kept: list[tuple[int, int]] = []
        self._places: dict[int, dict[int, list[int]]] = {}
        free, idle = overlay.free[GPU], overlay.idle[GPU]
        for n in by_name:
            self._places.setdefault(free[n], {}).setdefault(idle[n], []).append(place[n])
        self._kept = list(zip(free, idle, strict=True))
        overlay.touched.clear()

    def refresh(self) -> None:
        """Look again at what changed."""
        touched = self._overlay.touched
        if touched:
            free, idle = self._overlay.free[GPU], self._overlay.idle[GPU]
            for n in set(touched):
                if n >= 0 and self._kept[n] != (free[n], idle[n]):
                    self._move(n, (free[n], idle[n]))
            touched.clear()

    def at_least(self, gpus: int, *, idle: bool) -> Iterator[int]:
        """Nodes with that many GPUs free, and with ``idle`` as many idle: fewest free first, then by name."""
        by_name = self._by_name
        for free in sorted(free for free in self._places if free >= gpus):
            for place in merge(*(places for now, places in self._places[free].items() if not idle or now >= gpus)):
                yield by_name[place]

    def _move(self, n: int, now: tuple[int, int]) -> None:
        free, idle = self._kept[n]
        places = self._places[free][idle]
        del places[bisect_left(places, self._place[n])]
        if not places:
            del self._places[free][idle]
        self._kept[n] = now
        free, idle = now
        insort(self._places.setdefault(free, {}).setdefault(idle, []), self._place[n])
