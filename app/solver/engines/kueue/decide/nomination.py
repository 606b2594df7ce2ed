"""What comes of nominating an ask."""

from collections.abc import Callable
from dataclasses import dataclass

from app.solver.engines.kueue.decide.flavors.assignment import Assignment
from app.solver.engines.kueue.decide.overlay import Overlay, Preemptor, Target
from app.solver.engines.kueue.topology.pod_sets import Place
from app.solver.model.state import Ask


@dataclass(frozen=True, slots=True)
class Nomination:
    """``preemptor.request`` is what the assignment asks for; ``seeker`` is the same ask as the search for victims sees
    it, without "pods". ``contested``: flavor-resources of the request that need preemption. ``targets``: who stops;
    none in mode PREEMPT when nobody may. ``places``: where the pods go, once the targets have stopped; with nobody to
    stop where they would go in an empty cluster. ``pinned``: the ask named its flavors. ``elsewhere``: the same
    nomination, victims searched for alike, on another overlay, with nothing told of it."""

    ask: Ask
    preemptor: Preemptor
    seeker: Preemptor
    assignment: Assignment
    contested: list[int]
    targets: list[Target]
    places: dict[str, Place]
    pinned: bool
    elsewhere: Callable[[Overlay], "Nomination"]

    @property
    def reduced(self) -> bool:
        """Whether fewer units than asked for would start."""
        return self.assignment.counts != [t.count for t in self.ask.tasks]
