"""Bounds on GPUs that tell at a glance which victims are too few."""

from collections.abc import Callable, Iterable, Sequence

from app.solver.engines.kai.compile.jobs import NOWHERE
from app.solver.engines.kai.compile.resources import GPU
from app.solver.engines.kai.decide.overlay import Overlay


class GpuRoom:
    """KAI's own filter: whether nodes could hold the part's GPUs if everybody listed were gone, by first fit, largest
    first. It can be wrong where sizes differ, and then it is wrong in the same way."""

    _slots: int  # how many pods nodes hold; where all are of one size

    def __init__(self, overlay: Overlay, part: Sequence[int], free: Sequence[int]) -> None:
        """``free``: GPUs by node before anybody is gone."""
        self._overlay = overlay
        self._free = list(free)
        self._size = -1
        self.need(part)

    def need(self, part: Sequence[int]) -> None:
        """The pods to hold."""
        request = self._overlay.request
        self._needs = sorted((need for t in part if (need := request[t][GPU])), reverse=True)
        size = self._needs[0] if self._needs and self._needs[-1] == self._needs[0] else 0
        if size != self._size:
            self._size = size
            if size:
                self._slots = sum(free // size for free in self._free if free > 0)

    def give(self, tasks: Iterable[int]) -> None:
        """Count these pods' GPUs as free."""
        size, free, overlay = self._size, self._free, self._overlay
        for t in tasks:
            n = overlay.node[t]
            if n != NOWHERE and (amount := overlay.request[t][GPU]):
                before = free[n]
                free[n] = after = before + amount
                if size and after >= size:
                    self._slots += after // size - (before // size if before > 0 else 0)

    def enough(self) -> bool:
        """Whether the part fits by this bound."""
        if self._size:
            return self._slots >= len(self._needs)
        return not self._needs or self._first_fit()

    def _first_fit(self) -> bool:
        left = sorted(self._free, reverse=True)[: len(self._needs)]
        for need in self._needs:
            for i, have in enumerate(left):
                if have >= need:
                    left[i] = have - need
                    break
            else:
                return False
        return True


class Headroom:
    """What a try could place at best: for every size of pod, how many of that size or larger there are, and how many
    nodes could hold in what is free now; once for all pods, and once for those of each constraint on nodes. Never
    wrong where it says no."""

    def __init__(
        self, overlay: Overlay, part: Sequence[int], allowed: Callable[[int], list[bool] | None]
    ) -> None:  # fmt: skip
        self._overlay = overlay
        self._free = overlay.nodes.gpu_free()
        pods = [(need, allowed(t)) for t in part if (need := overlay.request[t][GPU])]
        masks = {id(mask): mask for _, mask in pods if mask is not None}
        self._bounds: list[tuple[list[bool] | None, int, int]] = []
        for mask in (None, *masks.values()):
            self._add(mask, [need for need, own in pods if mask is None or own is mask])

    def _add(self, mask: list[bool] | None, needs: list[int]) -> None:
        free = self._free
        for size in sorted(set(needs)):
            slots = sum(have // size for n, have in enumerate(free) if have >= size and (mask is None or mask[n]))
            self._bounds.append((mask, size, sum(need >= size for need in needs) - slots))

    def enough(self, victims: Iterable[int]) -> bool:
        """Whether the part could fit with these pods, which hold their places now, gone."""
        if not self._bounds:
            return True
        overlay = self._overlay
        given: dict[int, int] = {}
        for t in victims:
            if amount := overlay.request[t][GPU]:
                given[overlay.node[t]] = given.get(overlay.node[t], 0) + amount
        free = self._free
        for mask, size, lacking in self._bounds:
            short = lacking
            for n, amount in given.items():
                have = free[n]
                if have + amount >= size and (mask is None or mask[n]):
                    short -= (have + amount) // size - (have // size if have > 0 else 0)
            if short > 0:
                return False
        return True
