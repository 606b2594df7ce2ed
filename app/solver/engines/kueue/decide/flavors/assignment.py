"""What an ask is given: a flavor for each resource of each pod set."""

from dataclasses import dataclass, field

from app.solver.engines.kueue.decide.flavors.modes import Mode


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
    set without flavors."""

    counts: list[int]
    choices: dict[str, dict[str, Choice]] = field(default_factory=dict[str, dict[str, Choice]])
    usage: dict[int, int] = field(default_factory=dict[int, int])
    level: int = 0
    mode: Mode = Mode.FIT
    lacking: list[str] = field(default_factory=list[str])

    def request(self) -> tuple[tuple[int, int], ...]:
        """Usage as a Preemptor's request: what is asked for, without what is asked for 0 times (Kueue:
        TotalRequestsFor)."""
        return tuple(sorted((fr, amount) for fr, amount in self.usage.items() if amount))

    def flavors(self) -> dict[str, dict[str, str]]:
        """As the wire shows it."""
        return {task: {r: c.flavor for r, c in of.items()} for task, of in self.choices.items()}
