"""What a cycle came to, ask by ask: who has a place, who lost one, who goes for whom."""

from app.solver.engines.kai.compile.jobs import ALLOCATED, PIPELINED
from app.solver.engines.kai.decide.cycle import Cycle
from app.solver.engines.kai.decide.overlay import Eviction


class Outcomes:
    """What a cycle came to, by number of the ask.

    ``placed``: pods that have a place in the end. ``lost``: the eviction that took the last place of an ask that has
    none in the end. ``victims``: evictions of pods that run, in order; a pod placed by the cycle itself never ran: it
    just isn't placed. Who makes room and then loses it makes it for whoever has it in the end.
    """

    def __init__(self, cycle: Cycle) -> None:
        overlay = cycle.overlay
        self.pods = [overlay.pods_of(a) for a in range(len(overlay.asks))]
        self.placed = [[t for t in pods if overlay.status[t] in (ALLOCATED, PIPELINED)] for pods in self.pods]
        evicted = overlay.evictions
        self.lost: list[Eviction | None] = [
            None if placed else max((evicted[t] for t in pods if t in evicted), key=_statement, default=None)
            for pods, placed in zip(self.pods, self.placed, strict=True)
        ]
        self.evictions = [e for e in evicted.values() if e.task < overlay.running_tasks]
        self.victims: list[list[Eviction]] = [[] for _ in self.pods]
        for eviction in self.evictions:
            self.victims[self.holder(eviction.ask)].append(eviction)

    def holder(self, a: int) -> int:
        """Who has the room in the end that ask number ``a`` made: itself, or whoever took it. Whoever takes a place
        gets it later than whoever had it, so that this ends."""
        while (lost := self.lost[a]) is not None:
            a = lost.ask
        return a


def _statement(eviction: Eviction) -> int:
    return eviction.statement


def placed_on(cycle: Cycle, nodes: set[int]) -> list[str]:
    """The asks of which the cycle placed pods on these nodes, in the order of the request."""
    overlay = cycle.overlay
    there = {t for t in overlay.placed if overlay.status[t] in (ALLOCATED, PIPELINED) and overlay.node[t] in nodes}
    return [ask.id for a, ask in enumerate(overlay.asks) if not there.isdisjoint(overlay.pods_of(a))]
