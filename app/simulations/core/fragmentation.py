"""What is free where pods are placed by topologies, over time: in all domains of a level, and at most in one of them.

Much that is free and little of it in one place is fragmentation: what asks for one rack waits although quota is there.
"""

from app.simulations.core.sink import Amounts, Sink, work
from app.simulations.schemas import Fragmentation
from app.solver.rounds import Spare


class FreeRoom:
    """Told at instants, in order, of what is free from then on; tells the sink what has changed, and counts areas."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._at = 0
        self._now: Spare = {}
        self._areas: dict[tuple[str, str, str], tuple[int, int]] = {}

    def note(self, now: int, found: Spare) -> None:
        """``found``, as engines have it, is free from ``now`` on."""
        self._count(now)
        for level, of in found.items():
            if self._now.get(level) != of:
                self._tell(level, now, of)
        for level in self._now.keys() - found.keys():
            self._tell(level, now, {})
        self._now = found

    def _tell(self, level: tuple[str, str], now: int, of: dict[str, tuple[int, int]]) -> None:
        if self._sink.leveled:
            free: Amounts = {resource: amount for resource, (amount, _) in of.items()}
            largest: Amounts = {resource: most for resource, (_, most) in of.items()}
            self._sink.spare(*level, now, free, largest)

    def _count(self, now: int) -> None:
        passed, self._at = now - self._at, now
        if not passed:
            return
        for (flavor, level), of in self._now.items():
            for resource, (amount, most) in of.items():
                free, largest = self._areas.get((flavor, level, resource), (0, 0))
                self._areas[flavor, level, resource] = free + amount * passed, largest + most * passed

    def summary(self, end: int) -> list[Fragmentation]:
        """By flavor, level in order from the outermost, and resource."""
        self._count(end)
        return [
            Fragmentation(
                flavor=flavor, level=level, resource=resource, free=work(free, resource),
                largest=work(largest, resource), share=1 - largest / free if free else 0.0,
            )
            for (flavor, level, resource), (free, largest) in self._areas.items()
        ]  # fmt: skip
