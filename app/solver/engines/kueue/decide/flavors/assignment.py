"""What an ask is given: a flavor for each resource of each pod set."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.solver.engines.kueue.decide.flavors.modes import Mode
from app.solver.engines.kueue.decide.overlay import PodSets
from app.solver.engines.kueue.topology.pod_sets import Place


@dataclass(frozen=True, slots=True)
class Choice:
    """The flavor that one resource of one pod set takes."""

    flavor: str
    mode: Mode
    level: int


@dataclass(slots=True)
class Assignment:
    """``choices``: by task, by resource; ``usage``: steps by flavor-resource index, of all pod sets, a request of 0
    among them; ``level``: the highest borrowing level; ``mode``: the worst over pod sets; ``lacking``: what kept a pod
    set without flavors; ``scan``: by task, by resource, the place of the flavor at which the scan of its group stopped,
    -1 where that was the last; ``pod_sets``: those that a topology has a say on, with their flavors; ``places``:
    where their pods go as things are, where they all fit."""

    counts: list[int]
    choices: dict[str, dict[str, Choice]] = field(default_factory=dict[str, dict[str, Choice]])
    usage: dict[int, int] = field(default_factory=dict[int, int])
    level: int = 0
    mode: Mode = Mode.FIT
    lacking: list[str] = field(default_factory=list[str])
    scan: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    pod_sets: PodSets = ()
    places: dict[str, Place] = field(default_factory=dict[str, Place])

    def request(self) -> tuple[tuple[int, int], ...]:
        """Usage as a Preemptor's request: what is asked for, without what is asked for 0 times (Kueue:
        TotalRequestsFor)."""
        return tuple(sorted((fr, amount) for fr, amount in self.usage.items() if amount))

    def preempt(self, tasks: Iterable[str]) -> None:
        """These pod sets need preemption for everything that they are given."""
        for task in tasks:
            self.choices[task] = {r: replace(c, mode=Mode.PREEMPT) for r, c in self.choices[task].items()}
        self.mode = Mode.PREEMPT

    @property
    def unfinished(self) -> bool:
        """Whether some scan stopped before its last flavor (Kueue: PendingFlavors)."""
        return any(place >= 0 for of in self.scan.values() for place in of.values())

    def flavors(self) -> dict[str, dict[str, str]]:
        """As the wire shows it."""
        return {task: {r: c.flavor for r, c in of.items()} for task, of in self.choices.items()}
