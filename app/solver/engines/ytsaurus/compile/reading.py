"""Values of settings, parsed: durations become microseconds, resource maps integer steps by name."""

import math
from dataclasses import dataclass, field

from app.solver.model import duration
from app.solver.model.base import Duration, Resources
from app.solver.model.problems import Problem, pointer
from app.solver.model.quantity import QuantityError, parse, scale_of

Steps = dict[str, int]
Where = tuple[str | int, ...]

SECOND = 1_000_000
SLOTS = "user_slots"


@dataclass(slots=True)
class Reader:
    """Parses values and collects what is wrong with them, each with its pointer."""

    at: Where
    problems: list[Problem] = field(default_factory=list[Problem])

    def refuse(self, name: str, detail: str) -> None:
        """Record a problem with the setting ``name``."""
        self.problems.append(Problem(pointer=pointer(*self.at, name), detail=detail))

    def below(self, name: str) -> "Reader":
        """The reader of a block below this one."""
        return Reader((*self.at, name), self.problems)

    def number(
        self, name: str, value: float | None, low: float, high: float = math.inf, *, above: bool = False
    ) -> None:
        """Refuse ``value`` outside [low, high] (``above``: outside (low, high])."""
        if value is None:
            return
        if not math.isfinite(value) or value > high or value < low or (above and value == low):
            limits = f"{'above' if above else 'at least'} {low:g}" + (
                "" if high == math.inf else f" and at most {high:g}"
            )
            self.refuse(name, f"{value!r} is out of range: {limits}")

    def micros(self, name: str, value: Duration | None) -> int | None:
        """A duration in microseconds; 0 after a problem."""
        if value is None:
            return None
        try:
            parsed = duration.parse(value)
        except duration.DurationError as error:
            self.refuse(name, str(error))
            return 0
        if parsed < 0:
            self.refuse(name, f"{value!r} is negative")
        return parsed

    def steps(self, name: str, value: Resources | None) -> Steps | None:
        """A resource map in integer steps by name."""
        if value is None:
            return None
        out: Steps = {}
        for resource, amount in value.items():
            try:
                out[resource] = parse(amount, scale_of(resource))
            except QuantityError as error:
                self.problems.append(Problem(pointer=pointer(*self.at, name, resource), detail=str(error)))
        return out

    def threshold(self, value: Resources | None, old_slots: int | None) -> Steps | None:
        """non_preemptible_resource_usage_threshold, with the old job count as its user_slots unless that is given."""
        steps = self.steps("non_preemptible_resource_usage_threshold", value)
        if old_slots is None:
            return steps
        return {SLOTS: old_slots} | (steps or {})

    def preferred(self, new: str, old: str, value: Duration | None, alias: Duration | None) -> int | None:
        """A duration that has an older name; the new one wins."""
        found = self.micros(new, value)
        older = self.micros(old, alias)
        return older if found is None else found
